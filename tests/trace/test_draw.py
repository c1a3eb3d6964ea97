"""How a trace is drawn."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from recordings import records, rewrite, simulate, write

from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.rm_events import RMNodeUpdate
from yunikorn_actors.messages.scheduling import FactsAppended, RunCycle
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.read import TraceError, TraceReader
from yunikorn_actors.trace.text.draw import draw

SCHEDULER = "scheduler:p#1"
CYCLE = RunCycle(partition="p", epoch=1)


def drawn(path: Path, *, width: int = 0, limit: int = 0, **wanted: Any) -> list[str]:
    return list(draw(path, FilterOptions(**wanted), width=width, limit=limit))


def between(path: Path, *ways: tuple[str, str, Message]) -> Path:
    """Write a trace in which each message goes that way."""
    write(path, *(message for _, _, message in ways))
    changed = records(path)
    for record, (sender, receiver, _) in zip(changed[1:], ways, strict=False):
        record |= {"sender": sender, "mailbox": receiver}
    rewrite(path, changed)
    return path


def facts(*keys: str, first: int = 5) -> FactsAppended:
    put = (
        f.ForeignAllocationPut(key=key, node_id="n1", resource={"vcore": 1}, at_ns=1)
        for key in keys
    )
    return FactsAppended(
        partition="p", epoch=1, rm_id="rm-1", first_revision=first, facts=tuple(put)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def test_a_trace_as_a_drawing(path: Path) -> None:
    told = RMNodeUpdate(rm_id="rm-1", accepted=("n1",))
    between(
        path,
        ("gateway", "rm_proxy", told),
        ("rm_proxy", SCHEDULER, CYCLE),
        (SCHEDULER, SCHEDULER, CYCLE),
        ("context", SCHEDULER, facts("a", "b")),
        ("context", "event_publisher", facts("a", "b")),
        ("context", "rm_proxy", facts("a", "b")),
        (SCHEDULER, "rm_proxy", CYCLE),
        ("rm_proxy", "rm:rm-1#1", told),
        ("context", "reply:7", CYCLE),
    )
    expected = """\
outside   rm_proxy   context   scheduler
   |          |         |          |
   |--------->|         |          |       RMNodeUpdate accepted n1
   |          |------------------->|       RunCycle p
   |          |         |          o       RunCycle p
   |          |         |--------->|       FactsAppended p revisions 5 to 6
   |          |         |          |         ForeignAllocationPut a -> n1 vcore=1
   |          |         |          |         ForeignAllocationPut b -> n1 vcore=1
   |          |<--------|          |       FactsAppended as above: p revisions 5 to 6
   |          |<-------------------|       RunCycle p
   |<---------|         |          |       RMNodeUpdate accepted n1
   |<-------------------|          |       RunCycle p"""
    assert expected.splitlines() == drawn(path)


def test_mailboxes_of_one_kind_have_their_whole_names(path: Path) -> None:
    between(path, ("context", SCHEDULER, CYCLE), ("context", "scheduler:q#1", CYCLE))
    assert drawn(path)[0] == "context   scheduler:p#1   scheduler:q#1"


def test_only_what_is_wanted_is_drawn(path: Path) -> None:
    between(
        path,
        ("context", SCHEDULER, facts("a", "b")),
        ("context", SCHEDULER, facts("c", first=7)),
        ("context", SCHEDULER, facts("d", first=8)),
    )
    said = [line.split("   ")[-1].strip() for line in drawn(path, about=("b", "d"))[2:]]
    assert said == [
        "FactsAppended p revisions 5 to 6",
        "ForeignAllocationPut b -> n1 vcore=1",
        "and 1 about others",
        "FactsAppended p revision 8",
        "ForeignAllocationPut d -> n1 vcore=1",
    ]
    assert drawn(path, limit=1) == drawn(path)[:5]
    assert drawn(path, about=("z",)) == []


def test_lines_are_cut_to_the_width_of_a_terminal(path: Path) -> None:
    between(path, ("context", SCHEDULER, facts("a" * 50)))
    assert [len(line) for line in drawn(path, width=60)] == [19, 15, 48, 60]


def test_names_from_outside_cannot_steer_the_terminal(path: Path) -> None:
    between(path, ("context", "scheduler:\x1b[2J#1", facts("a\x1b[2J")))
    assert all(line.isprintable() for line in drawn(path))


@pytest.mark.parametrize("topology", ["proposing", "fused"])
def test_a_real_run_is_drawn_whole(path: Path, topology: TopologyName) -> None:
    """Each message has its arrow, but for what the event publisher is told beside a scheduler."""
    with TraceReader(simulate(path, topology)) as trace:
        kinds = [
            type(it.message).__name__
            for it in trace
            if topology == "fused"
            or it.mailbox != "event_publisher"
            or not isinstance(it.message, FactsAppended)
        ]
    lines = drawn(path)
    said = [line[len(lines[0]) :].removeprefix("   ") for line in lines[2:]]
    assert kinds == [words.split()[0] for words in said if not words.startswith(" ")]
    assert "FactsAppended" in kinds


def test_copies_for_the_event_publisher_can_be_asked_for(path: Path) -> None:
    between(path, ("context", SCHEDULER, facts("a")), ("context", "event_publisher", facts("a")))
    assert drawn(path)[0] == "context   scheduler"
    assert drawn(path, mailbox=("event_publisher",))[0] == "context   event_publisher"


def test_the_order_of_columns_does_not_depend_on_the_run(path: Path) -> None:
    between(
        path,
        (SCHEDULER, "event_publisher", CYCLE),
        ("context", SCHEDULER, CYCLE),
        ("rm_proxy", "context", CYCLE),
        ("gateway", "rm_proxy", CYCLE),
    )
    assert ["outside", "rm_proxy", "context", "scheduler", "event_publisher"] == drawn(path)[
        0
    ].split()


def test_what_is_missing_is_said_below_a_drawing(path: Path) -> None:
    write(path, CYCLE, whole=False)
    assert "incomplete: the run is still being recorded, or was cut off" == drawn(path)[-1]
    changed = records(write(path, CYCLE))
    changed[-1] |= {"failure": "context failed"}
    rewrite(path, changed)
    assert "the run failed: context failed" == drawn(path)[-1]


def test_of_a_damaged_recording_the_good_part_is_drawn(path: Path) -> None:
    changed = records(write(path, CYCLE, CYCLE))
    del changed[2]["step"]
    rewrite(path, changed)
    lines = draw(path, FilterOptions())
    assert 3 == len(list(islice(lines, 3)))
    with pytest.raises(TraceError, match="record 3 is not as recorded"):
        next(lines)
