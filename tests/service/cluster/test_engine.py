"""A start at a Ray cluster that does not take it ends in one line; Ray itself is a fake here."""

import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("aiohttp")
pytest.importorskip("grpc")
from yunikorn_actors.cli import main

ENGINE = "yunikorn_actors.service.cluster.engine"
CONFIG = "partitions: [{name: default, queues: [{name: root}]}]"
ERRORS = (
    "GetTimeoutError", "RayActorError", "RayError", "RaySystemError", "RayTaskError",
    "AuthenticationError",
)  # fmt: skip


class Ray(ModuleType):
    """As much of Ray as a start needs."""

    def __init__(self, init: Callable[..., None]) -> None:
        super().__init__("ray")
        self.init = init
        self.exceptions: Any = ModuleType("ray.exceptions")
        for name in ERRORS:
            base = getattr(self.exceptions, "RayError", Exception)
            kind = type(name, (Exception if name == "RayError" else base,), {})
            setattr(self.exceptions, name, kind)
        self.exceptions.AuthenticationError = type(
            "AuthenticationError", (self.exceptions.RayError,), {}
        )

    def shutdown(self) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """Start a service at a cluster, with a Ray whose `init` is this."""
    config = tmp_path / "queues.yaml"
    config.write_text(CONFIG)

    def started(init: Callable[[Ray], None], address: str) -> int:
        ray = Ray(lambda *_, **__: init(ray))
        monkeypatch.setitem(sys.modules, "ray", ray)
        monkeypatch.setitem(sys.modules, "ray.exceptions", ray.exceptions)
        monkeypatch.delitem(sys.modules, ENGINE, raising=False)
        listen = ["--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0"]
        try:
            return main(["serve", "--cluster", address, "--config", str(config), *listen])
        finally:
            sys.modules.pop(ENGINE, None)

    return started


def wrong_token(ray: Ray) -> None:
    raise ray.exceptions.AuthenticationError(
        "\nAuthentication failed: InvalidAuthToken\n\nEnsure that the token is set.\nSee the pages."
    )


def no_connection(_: Ray) -> None:
    raise ConnectionError("Failed to connect to Ray cluster")


def other_version(_: Ray) -> None:
    raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.1.0")


@pytest.mark.parametrize(
    ("init", "why"),
    [
        (wrong_token, "Authentication failed: InvalidAuthToken"),
        (no_connection, "Failed to connect to Ray cluster"),
        (other_version, "Version mismatch: The cluster was started with:"),
    ],
)
def test_a_cluster_that_refuses_the_service_ends_the_start_in_one_line(
    init: Callable[[Ray], None],
    why: str,
    start: Callable[..., int],
    listener: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert 2 == start(init, listener)
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--cluster {listener}: {why}" in line
    assert "RAY_AUTH_MODE, the token and the version of Ray have to be those of the cluster" in line


def test_a_cluster_that_is_not_there_is_not_waited_for(
    start: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Ray tries for minutes, with a line for each attempt, and then ends the process itself."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    called: list[Ray] = []
    assert 2 == start(called.append, address)
    assert [] == called
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--cluster {address}: Connection refused: give the address of a Ray cluster" in line
