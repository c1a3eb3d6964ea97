"""A service with another token than that of its Ray cluster says so in one line, and ends."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc")
from probes import wait_until

from yunikorn_actors.service.cluster.local import ENVIRONMENT

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(300),
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed"),
]
PORT = 26379
ADDRESS = f"127.0.0.1:{PORT}"


def _with_token(letter: str) -> dict[str, str]:
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": letter * 64}
    return {**os.environ, **ENVIRONMENT, **token}


def test_a_wrong_token_of_ray_ends_the_start_in_one_line(tmp_path: Path) -> None:
    config = tmp_path / "queues.yaml"
    config.write_text("partitions: [{name: default, queues: [{name: root}]}]")
    ray = shutil.which("ray", path=str(Path(sys.executable).parent))
    assert ray is not None
    log = tmp_path / "ray.log"
    options = ["--node-ip-address", "127.0.0.1", "--num-cpus", "1", "--include-dashboard", "false"]
    with log.open("wb") as out:
        head = subprocess.Popen(
            [ray, "start", "--head", "--block", "--port", str(PORT), *options],
            env=_with_token("a"), stdout=out, stderr=out,
        )  # fmt: skip
    try:
        wait_until(lambda: "will now block" in log.read_text())
        listen = ["--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0", "--config", str(config)]
        ended = subprocess.run(
            [sys.executable, "-m", "yunikorn_actors", "serve", "--cluster", ADDRESS, *listen],
            env=_with_token("b"), capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
    finally:
        head.terminate()
        head.wait(60)
    # Ray's own part in C++ writes lines that begin with a bracket.
    lines = [it for it in ended.stderr.splitlines() if not it.startswith("[")]
    assert 2 == ended.returncode
    assert 1 == len(lines), lines
    assert (
        "RAY_AUTH_MODE, the token and the version of Ray have to be those of the cluster"
        in (lines[0])
    )
