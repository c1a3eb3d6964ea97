"""Whole conversations with clients that were compiled elsewhere, each in a process of its own."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("grpc_tools")

from yunikorn_actors.service.service import Serving

PATIENCE_S = 60.0
CLIENT = Path(__file__).parent / "clients/conversation.py"


def heard_from(commands: list[list[str]]) -> list[tuple[str, str]]:
    """Run them at the same time; return what each has written to both streams."""
    pipe = subprocess.PIPE
    talks = [subprocess.Popen(it, stdout=pipe, stderr=pipe, text=True) for it in commands]
    try:
        return [talk.communicate(timeout=PATIENCE_S) for talk in talks]
    finally:
        for talk in talks:
            talk.kill()
            talk.wait()


def test_clients_of_both_generations_talk_at_once(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    """In two processes: no process can have compiled both generations."""
    address = serve().parts["grpc"].address
    commands = []
    for generation in ("former", "later"):
        folder = tmp_path / generation
        folder.mkdir()
        rm = f"rm-{generation}"
        commands.append([sys.executable, str(CLIENT), generation, address, rm, str(folder)])
    assert [("done\n", "")] * 2 == heard_from(commands)


@pytest.mark.engines
@pytest.mark.timeout(500)
def test_a_client_in_another_language_talks_beside_one_of_the_former_generation(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("there is no Node here")
    install = [npm, "install", "--silent", "@grpc/grpc-js", "@grpc/proto-loader"]
    if subprocess.run(install, cwd=tmp_path, check=False, capture_output=True).returncode:
        pytest.skip("npm does not install @grpc/grpc-js here")
    program = Path(shutil.copy(CLIENT.with_suffix(".js"), tmp_path))
    address = serve().parts["grpc"].address
    folder = tmp_path / "former"
    folder.mkdir()
    commands = [
        [node, str(program), str(CLIENT.with_name("later.proto")), address, "rm-js"],
        [sys.executable, str(CLIENT), "former", address, "rm-former", str(folder)],
    ]
    assert [("done\n", "")] * 2 == heard_from(commands)
