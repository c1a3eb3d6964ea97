"""The clients of the pages are run as they stand there, each with the packages of its language."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc")
from commands import Running, starting
from pages import REPOSITORY

pytestmark = [pytest.mark.engines, pytest.mark.timeout(500)]
PAGE = (REPOSITORY / "docs/how-to/write-a-client.md").read_text("utf-8")
ADDRESS = "127.0.0.1:3333"
TIMES = 5


def blocks(info: str) -> list[str]:
    return re.findall(rf"^```{info}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def run() -> Iterator[Callable[..., Running]]:
    with starting() as start:
        yield start


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the page has its reader make it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no node and npm here")
    folder = tmp_path_factory.mktemp("client")
    shutil.copy(REPOSITORY / "yunikorn_actors/service/rpc/si.proto", folder)
    (install,) = blocks("sh")
    done = subprocess.run(
        ["bash", "-c", install], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"its packages cannot be had: {done.stderr[-300:]}")
    return folder


def test_the_client_in_javascript_prints_what_its_page_says(
    run: Callable[..., Running], folder: Path
) -> None:
    (program,), (shown,) = blocks("js"), blocks("output")
    assert 1 == program.count(ADDRESS)
    address = run().address
    (folder / "client.js").write_text(program.replace(ADDRESS, address))
    for _ in range(TIMES):
        done = subprocess.run(
            ["node", "client.js"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (0, "", shown) == (done.returncode, done.stderr, done.stdout)


def test_a_client_that_is_refused_says_why(run: Callable[..., Running], folder: Path) -> None:
    (program,) = blocks("js")
    wrong = program.replace(ADDRESS, run().address).replace("root.work", "root.none")
    (folder / "wrong.js").write_text(wrong)
    done = subprocess.run(
        ["node", "wrong.js"], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert 1 == done.returncode
    assert "root.none" in done.stderr
