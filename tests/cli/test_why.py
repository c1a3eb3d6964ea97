"""The command says why asks wait, from a dump, and what it cannot read.

The dump that is kept here is of the first format: whatever comes later has to read it.
"""

import json
from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.state.dump import DUMP_FORMAT

KEPT = Path(__file__).parents[1] / "formats/dump-1.json"
FULL = "queue root.batch has no room for it, {vcore: 1000} short: {vcore: 5000} of {vcore: 6000} are used"
SECOND = [
    "second of job has waited for 40 s in root.batch, place 1 of 1",
    f"  1. QUEUE_LIMIT: {FULL}",
    "     release that much there, or raise the maximum",
    "  nodes with room for it now: 1",
    "  preemption: its policy forbids to preempt others for it",
]
JOB = "application job of [rm-1]default: Running in root.batch; asks that wait: 1, allocations: 1"
IDLE = (
    "it is Completed, because it had no work for a while; submit it again, with tag "
    "application.completing.disable=true if it is to stay"
)
NOWHERE = (
    "it is Rejected (failed to place application nope: application rejected: no placement rule "
    "matched: there is no queue root.nowhere); mend that and submit it again"
)
TOLD: dict[str, list[str]] = {
    "job": [JOB, *SECOND],
    "job second": SECOND,
    "job first": ["first does not wait: it runs on node-1"],
    "job bad": [
        "bad of job does not wait",
        "  1. REJECTED: it was rejected: allocation contains negative resources",
    ],
    "idle": [f"application idle of [rm-1]default: {IDLE}"],
    "idle y": [
        "y of idle does not wait",
        f"  1. REJECTED: it was rejected: failed to find application idle: {IDLE}",
    ],
    "nope": [f"application nope of [rm-1]default: {NOWHERE}"],
}


@pytest.mark.parametrize("words", TOLD)
def test_what_it_says(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["why", *words.split(), "--dump", str(KEPT)])
    assert TOLD[words] == capsys.readouterr().out.splitlines()


def test_the_answer_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["why", "job", "--dump", str(KEPT), "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    why = json.loads(line)
    assert ("QUEUE_LIMIT", {"vcore": 1000}) == (why["obstacle"]["cause"], why["obstacle"]["lacks"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("job", "none"), "tells nothing of ask none of application job"),
        (("ghost",), "tells nothing of application ghost"),
        (("g\x1b[31m\n",), r"tells nothing of application g\x1b[31m\n"),
        (("x" * 9_999,), "tells nothing of application " + "x" * 200 + "\n"),
    ],
)
def test_what_is_not_there_is_answered_with_1(
    words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 == main(["why", *words, "--dump", str(KEPT)])
    said = capsys.readouterr()
    assert complaint in said.err
    assert "" == said.out


BROKEN = {
    "no JSON": ("no", "not JSON"),
    "a dump that was cut off": (KEPT.read_text()[:900], "not JSON"),
    "nested too deep": ("[" * 200_000, "not JSON"),
    "something else": ("[]", "not a state dump: a list at the top"),
    "an empty one": ("{}", "' is missing; write one with json.dump(core.state_dump(), file)"),
    "another": (
        '{"partitions": 3, "waiting": 3, "scheduling_errors": 0, "failed_nodes": 0}',
        "not the state dump of a core: a part has a",
    ),
    "that of a service": ('{"partitions": []}', "it is the full state dump of a service; "),
    "that of a service of long ago": ('{"Partitions": []}', "it is the full state dump of a ser"),
    "a later version": (
        json.dumps({"format": DUMP_FORMAT + 1}),
        f"is of format {DUMP_FORMAT + 1}, and this version reads up to {DUMP_FORMAT}",
    ),
    "a number that is none": ('{"format": "x"}', "is of format 'x'"),
}


@pytest.mark.parametrize(("text", "complaint"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("command", ["why job --dump", "health"])
def test_what_cannot_be_read_is_answered_with_2(
    command: str, text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dump.json"
    file.write_text(text)
    assert 2 == main([*command.split(), str(file)])
    said = capsys.readouterr()
    assert complaint in said.err
    assert "" == said.out
    assert "Error(" not in said.err
    assert "take /debug/fullstatedump" not in said.err, "they do not read that"


def test_a_cause_that_this_version_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dump.json"
    file.write_text(KEPT.read_text().replace("QUEUE_LIMIT", "MOON"))
    assert 2 == main(["why", "job", "--dump", str(file)])
    assert "MOON" in capsys.readouterr().err


def test_asks_that_the_dump_does_not_explain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = json.loads(KEPT.read_text())
    dump["waiting"]["[rm-1]default"]["asks"] = []
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump))
    assert 0 == main(["why", "job", "second", "--dump", str(file)])
    assert 0 == main(["why", "job", "--dump", str(file)])
    assert [
        "second waits; it is not among the asks that the dump explains",
        JOB,
        "asks that are not explained here: 1",
    ] == capsys.readouterr().out.splitlines()
