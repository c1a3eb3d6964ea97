"""What an administrator changes over HTTP: it is done or refused, and who asked is on record."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")
from probes import wait_until
from served import P, Served, node, register, serving

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.messages.base import Message
from yunikorn_actors.service.core_queries import CoreQuestions
from yunikorn_actors.service.listener import Standing
from yunikorn_actors.service.rest.in_process import RestPart
from yunikorn_actors.service.rest.request_guard import Guard
from yunikorn_actors.service.service import ConfigFile

X = "/ws/v1/x"
NODE = f"{X}/partition/default/node"
OTHER = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: web}]}]}]"
)
ANN = {"From": "ann"}


class Slow(RestPart):
    """Its read side hears everything late."""

    def receive(self, message: Message) -> None:
        time.sleep(0.03)
        super().receive(message)


@pytest.fixture
def slow() -> Iterator[Served]:
    with serving(make=Slow) as it:
        # Without a configuration of its own, so that it lives under the administrator's.
        it.core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id="rm-1"), it.rm)
        it.nodes(node("n1"))
        wait_until(lambda: it.get("/ws/v1/partitions") and it.ask(f"{P}/node/n1").status == 200)
        yield it


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as it:
        register(it)
        it.nodes(node("n1"), node("strange / #?%\x1b"))
        yield it


def post(served: Served, path: str, body: bytes = b"", **headers: str) -> tuple[int, str]:
    response = served.ask(path, method="POST", body=body, **headers)
    told = response.json
    return response.status, told.get("message", "")


def acts(served: Served) -> list[str]:
    served.settle()
    return [it.message for it in served.core.events().records if " by " in it.message]


def takes_work(served: Served, name: str = "n1") -> bool:
    served.settle()
    shown: dict[str, Any] = served.get(f"/ws/v1/partition/default/node/{name}")
    return bool(shown["schedulable"])


def test_a_node_is_drained_and_takes_work_again(
    served: Served, log: pytest.LogCaptureFixture
) -> None:
    assert (200, "") == post(served, f"{NODE}/n1/drain", **ANN)
    wait_until(lambda: not takes_work(served))
    assert (409, "node is draining already") == post(served, f"{NODE}/n1/drain", **ANN)
    assert (200, "") == post(served, f"{NODE}/n1/undrain")
    wait_until(lambda: takes_work(served))
    said = ["Node n1 drained by ann at 127.0.0.1", "Node n1 undrained by somebody at 127.0.0.1"]
    assert said == acts(served)
    assert said == [it for it in log.messages if " by " in it]


def test_who_reads_after_a_change_reads_of_it(slow: Served) -> None:
    """The change is answered by the core, and read from a replica that hears of it on its own."""
    assert (200, "") == post(slow, f"{X}/config", OTHER.encode())
    assert b"web" in slow.ask("/ws/v1/config").body
    for change, takes in (("drain", False), ("undrain", True)):
        assert (200, "") == post(slow, f"{NODE}/n1/{change}")
        assert takes is slow.get(f"{P}/node/n1")["schedulable"]
    slow.core.resource_manager_lost("rm-1")
    assert (200, "") == post(slow, f"{X}/manager/rm-1/unregister")
    assert [] == slow.get("/ws/v1/partitions")


def test_a_node_is_named_by_any_characters(served: Served) -> None:
    quoted = "strange%20%2F%20%23%3F%25%1B"
    assert (200, "") == post(served, f"{NODE}/{quoted}/drain")
    wait_until(lambda: not takes_work(served, quoted))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (f"{NODE}/n9/drain", "Node not found"),
        (f"{X}/partition/other/node/n1/drain", "Partition not found"),
        (f"{X}/manager/rm-9/unregister", "Resource manager not found"),
    ],
)
def test_what_is_not_there_is_not_found(served: Served, path: str, says: str) -> None:
    assert (404, says) == post(served, path)
    assert [] == acts(served)


def test_a_resource_manager_is_unregistered_once_it_is_lost(served: Served) -> None:
    path = f"{X}/manager/rm-1/unregister"
    status, says = post(served, path, **ANN)
    assert (409, True) == (status, says.startswith("rm-1 is registered"))
    served.core.resource_manager_lost("rm-1")
    assert (200, "") == post(served, path, **ANN)
    assert ["Resource manager rm-1 unregistered by ann at 127.0.0.1"] == acts(served)
    wait_until(lambda: served.get("/ws/v1/partitions") == [])


def test_a_configuration_is_loaded_or_refused_with_its_faults(served: Served) -> None:
    assert (200, "") == post(served, f"{X}/config", OTHER.encode(), **ANN)
    assert ["Configuration loaded by ann at 127.0.0.1"] == acts(served)
    status, says = post(served, f"{X}/config", b"partitions:\n- queus: []\n", **ANN)
    assert 409 == status
    assert "line 2: partitions[0]: unknown key 'queus'" in says
    for body, why in ((b" \n", "is empty"), (b"\xff", "is not UTF-8")):
        status, says = post(served, f"{X}/config", body)
        assert (400, True) == (status, why in says)


def test_who_loads_a_configuration_is_told_which_file_the_service_follows(tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(OTHER)
    standing = Standing()
    with SchedulerCore(config=path) as core:
        file = ConfigFile(path, core, standing)
        told = CoreQuestions(core, standing).ask("load", OTHER, "ann")
        assert {"follows": str(path)} == told
        file.reload()
        file._look()


@pytest.mark.parametrize("claimed", ["two words", "a(b", "<b>", "x" * 101, "ann\u00e9"])
def test_a_name_that_could_be_anything_else_is_refused(served: Served, claimed: str) -> None:
    status, says = post(served, f"{NODE}/n1/drain", From=claimed)
    assert (400, "the header From names nobody") == (status, says)
    assert takes_work(served)


@pytest.mark.parametrize(
    "path", [f"{NODE}/n1/drain", f"{X}/manager/rm-1/unregister", f"{X}/config"]
)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 403),
    ],
)
def test_no_page_of_another_origin_changes_anything(
    served: Served, path: str, headers: dict[str, str], status: int
) -> None:
    assert status == post(served, path, b"x: 1", **headers)[0]
    assert [] == acts(served)
    assert 405 == served.ask(path).status


def test_with_a_token_a_change_needs_it_on_the_loopback_too() -> None:
    word = "s3cret-s3cret-s3cret"
    with serving(Guard(token=word)) as it:
        register(it)
        it.nodes(node("n1"))
        path = f"{NODE}/n1/drain"
        for shown in ({}, {"Authorization": "Bearer wrong"}):
            assert 401 == post(it, path, **ANN, **shown)[0]
        assert [] == acts(it)
        assert (200, "") == post(it, path, **ANN, Authorization=f"Bearer {word}")
        assert ["Node n1 drained by ann at 127.0.0.1"] == acts(it)
        assert word not in str(it.core.events())


def test_a_file_and_a_caller_by_grpc_are_named_too(
    serve: Callable[..., Any], tmp_path: Path
) -> None:
    pytest.importorskip("grpc")
    from calling import Caller  # noqa: PLC0415 - of the extra

    path = tmp_path / "queues.yaml"
    path.write_text(OTHER)
    serving_ = serve(SchedulerCore(config=path), config=path)
    with Caller(serving_.parts["grpc"].address) as caller:
        caller.register("rm-1", config="")
        request = si.UpdateConfigurationRequest(config=OTHER)
        caller.call("/yunikorn_actors.v1.Extension/UpdateConfiguration", request)

    def said() -> list[str]:
        return [it.message for it in serving_.core.events().records if " by " in it.message]

    serving_.reload()
    wait_until(lambda: len(said()) > 1)
    assert [True, True] == [
        said()[0].startswith("Configuration loaded by gRPC at ipv4:127.0.0.1:"),
        said()[1] == f"Configuration loaded by the file {path}",
    ]
