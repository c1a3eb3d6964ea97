"""Whole conversations with clients that were compiled elsewhere, each in a process of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("grpc_tools")
from calling import PATIENCE_S

from yunikorn_actors.service.serving import Serving

CLIENT = Path(__file__).parent / "clients/conversation.py"


def test_clients_of_both_generations_talk_at_once(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    """In two processes: no process can have compiled both generations."""
    address = serve().parts["grpc"].address
    talks = []
    for generation in ("former", "later"):
        folder = tmp_path / generation
        folder.mkdir()
        command = [
            sys.executable,
            str(CLIENT),
            generation,
            address,
            f"rm-{generation}",
            str(folder),
        ]
        pipe = subprocess.PIPE
        talks.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True))
    try:
        heard = [talk.communicate(timeout=PATIENCE_S) for talk in talks]
    finally:
        for talk in talks:
            talk.kill()
    assert [("done\n", "")] * 2 == heard
