"""The commands of the page about protecting a service are run in their order, in one folder.

A command that serves goes on until the next one does; ports, names and folders that belong to the
reader's computer are replaced.
"""

import contextlib
import io
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc")
pytest.importorskip("aiohttp")
from calling import PATIENCE_S
from commands import Running
from pages import REPOSITORY
from tls import certificate_in

PAGE = (REPOSITORY / "docs/how-to/protect-a-service.md").read_text("utf-8")
COMMAND = f"{sys.executable} -m yunikorn_actors"
_BLOCK = re.compile(r"^```(sh|python shown)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Reader:
    """Does what the page says."""

    def __init__(self) -> None:
        self.running: Running | None = None

    def serve(self, line: str) -> None:
        options = line.removeprefix("yunikorn-actors serve").split()
        for name in ("--grpc", "--rest"):
            if name in options:
                at = options.index(name)
                del options[at : at + 2]
        self.end()
        self.running = Running(*options, rest=True)

    def run(self, line: str) -> str:
        line = line.replace("/etc/prometheus/", "")
        if line.startswith("yunikorn-actors "):
            assert self.running is not None
            line = line.replace("scheduler.example.com:9080", self.running.rest)
            if "--server" not in line:
                line += f" --server {self.running.rest}"
            line = line.replace("yunikorn-actors", COMMAND, 1)
        # A token that has just been written is in force a second later.
        deadline = time.monotonic() + PATIENCE_S
        while True:
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
            if not done.returncode or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        assert 0 == done.returncode, (line, done.stderr)
        return done.stdout

    def program(self, code: str) -> str:
        assert self.running is not None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code.replace("127.0.0.1:3333", self.running.address), {})  # noqa: S102 - our page
        return printed.getvalue()

    def end(self) -> None:
        if self.running is not None:
            self.running.end()
            self.running = None


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here")
    (tmp_path / "own").mkdir()
    certificate_in(tmp_path)
    certificate, key = certificate_in(tmp_path / "own")
    for file, names in (
        (certificate, ("me.pem", "clients.pem")),
        (key, ("me.key",)),
        (tmp_path / "server.pem", ("ca.pem",)),
    ):
        for name in names:
            shutil.copy(file, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    reader = Reader()
    yield reader
    reader.end()


@pytest.mark.slow
def test_the_commands_of_the_page_work_in_their_order(reader: Reader) -> None:
    served, asked = 0, 0
    for kind, text in _BLOCK.findall(PAGE):
        if kind == "python shown":
            assert "[]" == reader.program(text).strip()
            continue
        for line in text.splitlines():
            if line.startswith("yunikorn-actors serve"):
                reader.serve(line)
                served += 1
            else:
                reader.run(line.replace("/etc/prometheus/token", "reading"))
                asked += 1
    assert 3 <= served
    assert 4 <= asked
