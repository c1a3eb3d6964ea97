"""What the container file installs and starts does so where nothing else is installed."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pages import REPOSITORY

FILE = REPOSITORY / "deploy/Containerfile"
PATIENCE_S = 300
LEFT_OUT = (
    ".git",
    ".venv",
    "build",
    "dist",
    "*.egg-info",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
)


def entry_point() -> list[str]:
    found = re.search(r"^ENTRYPOINT (\[.*\])$", FILE.read_text("utf-8"), re.MULTILINE)
    assert found
    words: list[str] = json.loads(found[1])
    return words


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE_S)
def test_its_lines_install_and_start_a_service(tmp_path: Path) -> None:
    source, home = tmp_path / "src", tmp_path / "venv"
    shutil.copytree(REPOSITORY, source, ignore=shutil.ignore_patterns(*LEFT_OUT))
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=PATIENCE_S)
    installed = re.search(
        r'^RUN pip install \S+ "(/src\S*)"', FILE.read_text("utf-8"), re.MULTILINE
    )
    assert installed
    package = installed[1].replace("/src", str(source), 1)
    pip = [str(home / "bin/pip"), "install", "-q", package]
    subprocess.run(pip, check=True, timeout=PATIENCE_S, cwd=tmp_path)
    # The same command on ports that are free, and reached by nobody else.
    command, *options = entry_point()
    local = [re.sub(r"^0\.0\.0\.0:\d+$", "127.0.0.1:0", word) for word in options]
    process = subprocess.Popen(
        [str(home / "bin" / command), *local, "--insecure"],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    expected = ("REST on 127.0.0.1:", "gRPC on 127.0.0.1:", "ready;")
    assert [True] * 3 == [line.startswith(it) for line, it in zip(said, expected, strict=True)]
    assert 0 == process.returncode
