"""Whatever somebody does to a recording: every command answers, or says what is wrong with it."""

import io
import resource
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

import pytest
import ranges
from probes import add_nodes, register, wait_until
from recordings import in_service, simulate
from support import Recorder as Hearing

from yunikorn_actors import SchedulerCore, TraceSettings
from yunikorn_actors.cli import main
from yunikorn_actors.cli import trace as cli

QUEUES = "partitions: [{name: default, queues: [{name: root}]}]"
COMMANDS = (
    ["show"], ["show", "--full", "--about", "app-1"], ["draw"], ["stats"], ["refusals"],
    ["story", "app-1"], ["path", "a"], ["chain", "context/9"], ["chain", "rm_proxy/1", "--down"],
    ["replay"], ["why", "a"], ["at", "9"], ["scrub", "-o", "OUT"], ["diff", "FILE"],
    ["export", "--to", "perfetto", "-o", "OUT"], ["view", "-o", "OUT"],
    ["query", "SELECT count(*) FROM message"], ["what-if", "--config", QUEUES],
)  # fmt: skip
"""Given in turn, with the file behind the first word."""
MEMORY_MAX_KIB = 512 * 1024
EACH = 125


def mutilated(data: bytes, random: Random) -> bytes:
    """Change, cut, double or drop a few bytes."""
    wrong = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        at = random.randrange(len(wrong) or 1)
        length = random.choice((1, 2, 8, 300))
        match random.randrange(5):
            case 0:
                wrong[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del wrong[at : at + length]
            case 2:
                wrong[at:at] = wrong[at : at + length]
            case 3:
                wrong[at : at + length] = random.randbytes(length)
            case 4:
                del wrong[at:]
    return bytes(wrong)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, ...]:
    folder = tmp_path_factory.mktemp("whole")
    compressed = folder / "c.trace"
    with SchedulerCore(trace=TraceSettings(path=compressed, compress=True)) as core:
        register(core, Hearing())
        add_nodes(core, "n1", "n2")
        wait_until(core.is_settled)
    whole = (simulate(folder / "a.trace"), in_service(folder / "b.trace", "fused"), compressed)
    return tuple(path.read_bytes() for path in whole)


def told(path: Path, command: list[str]) -> Iterator[str]:
    out = io.StringIO()
    names = {"FILE": str(path), "OUT": str(path.with_name("out.trace"))}
    words = [names.get(word, word) for word in command[1:]]
    with redirect_stdout(out), redirect_stderr(out):
        status = main(["trace", command[0], str(path), *words])
    if status not in {0, 1, 2}:
        yield f"status {status}"
    if "Traceback" in out.getvalue():
        yield out.getvalue()


def test_each_command_is_tried() -> None:
    """All but `tail`, which does not end before its run does."""
    assert cli.COMMANDS.keys() - {"tail"} == {it[0] for it in COMMANDS}


@ranges.each("part", 80, usual=1)
def test_no_mutilation_breaks_a_command(
    tmp_path: Path, recordings: tuple[bytes, ...], part: int
) -> None:
    path = tmp_path / "wrong.trace"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(part * EACH, (part + 1) * EACH):
        random = Random(number)  # noqa: S311 - repeatable, no secret
        path.write_bytes(mutilated(random.choice(recordings), random))
        command = COMMANDS[number % len(COMMANDS)]
        assert [] == list(told(path, command)), f"mutation {number} of {command}"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + MEMORY_MAX_KIB
