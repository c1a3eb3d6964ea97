"""How a trace is printed."""

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import records, simulate, write

from yunikorn_actors.messages.rm_events import (
    AnnouncedRelease,
    Rejected,
    RMNodeUpdate,
    RMReleaseAllocation,
)
from yunikorn_actors.messages.scheduling import FactsAppended, ProposeAllocations, RunCycle
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.proposals import Allocate
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.show import Look, show


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def shown(path: Path, *, look: Look | None = None, **wanted: Any) -> list[str]:
    out = io.StringIO()
    with TraceReader(path) as trace:
        show(trace, out, FilterOptions(**wanted), look or Look())
    return out.getvalue().splitlines()


def body(lines: list[str]) -> list[str]:
    """The messages alone: without the heading and the closing line."""
    return lines[4:-2]


def proposal(*keys: str, node: str = "n1") -> ProposeAllocations:
    return ProposeAllocations(
        partition="[rm-1]default", epoch=1, as_of=9,
        proposals=tuple(
            Allocate(proposal_id=1, application_id="app-1", key=key, sequence=1, node_id=node)
            for key in keys
        ),
    )  # fmt: skip


def foreign(key: str) -> f.ForeignAllocationPut:
    resource = {"vcore": 1, "memory": 2}
    return f.ForeignAllocationPut(key=key, node_id="n1", resource=resource, at_ns=1)


def facts(*keys: str, first: int = 5) -> FactsAppended:
    return FactsAppended(
        partition="[rm-1]default", epoch=1, rm_id="rm-1", first_revision=first,
        facts=tuple(foreign(key) for key in keys),
    )  # fmt: skip


def test_a_trace_on_paper(path: Path) -> None:
    write(path, proposal("a", "b"), facts("a", "b"), facts("c", first=7), seed=7, topology="fused")
    expected = f"""\
{path}: fused topology, driver sim, seed 7
instance core, started 2026-01-01T00:00:00.000Z

        ms  stimulus       cause -> mailbox/step                      message
     1.500  node-1         rm_proxy/2 -> context/1                    ProposeAllocations as of 9: a -> n1, b -> n1
     3.000  node-2         rm_proxy/3 -> context/2                    FactsAppended [rm-1]default revisions 5 to 6
                           ForeignAllocationPut a -> n1 vcore=1,memory=2
                           ForeignAllocationPut b -> n1 vcore=1,memory=2
     4.500  node-3         rm_proxy/4 -> context/3                    FactsAppended [rm-1]default revision 7
                           ForeignAllocationPut c -> n1 vcore=1,memory=2

3 messages; complete"""
    assert expected.splitlines() == shown(path)


def test_the_same_facts_are_printed_once(path: Path) -> None:
    lines = body(shown(write(path, facts("a"), facts("a"))))
    assert [line[70:] for line in lines if not line.startswith(" " * 20)] == [
        "FactsAppended [rm-1]default revision 5",
        "FactsAppended as above: [rm-1]default revision 5",
    ]
    assert len(lines) == 3


def test_an_incomplete_trace_says_so(path: Path) -> None:
    lines = shown(write(path, facts("a"), whole=False))
    assert lines[-1] == "1 messages; incomplete: the run is still being recorded, or was cut off"


def test_a_real_run_is_printed_whole(path: Path) -> None:
    lines = shown(simulate(path, seed=1))
    count = len(records(path)) - 2
    assert lines[-1] == f"{count} messages; complete"
    assert len([line for line in body(lines) if not line.startswith(" " * 20)]) == count
    assert any("timer of event_publisher/2 -> event_publisher/" in line for line in lines)
    assert any(line.split()[2:5] == ["gateway", "->", "rm_proxy/1"] for line in lines[4:])


# -- what is shown

MIXED = (proposal("a"), facts("a", "b"), proposal("b", node="n2"), RunCycle(partition="p", epoch=1))
WANTED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a type": ({"type": ("ProposeAllocations",)}, ["node-1", "node-3"]),
    "a stimulus": ({"stimulus": ("node-4",)}, ["node-4"]),
    "a mailbox": ({"mailbox": ("context",)}, ["node-1", "node-2", "node-3", "node-4"]),
    "another mailbox": ({"mailbox": ("rm_proxy",)}, []),
    "an allocation key": ({"about": ("b",)}, ["node-2", "node-3"]),
    "a node": ({"about": ("n2",)}, ["node-3"]),
    "a resource type": ({"about": ("memory",)}, ["node-2"]),
    "an application": ({"about": ("app-1",)}, ["node-1", "node-3"]),
    "a part of an id": ({"about": ("app",)}, []),
    "two of them": ({"about": ("b",), "type": ("FactsAppended",)}, ["node-2"]),
}


@pytest.mark.parametrize("what", WANTED)
def test_only_what_is_wanted_is_shown(path: Path, what: str) -> None:
    wanted, expected = WANTED[what]
    lines = shown(write(path, *MIXED), **wanted)
    stimuli = [line.split()[1] for line in body(lines) if not line.startswith(" " * 20)]
    assert expected == stimuli
    assert (
        lines[-1] == f"{'' if len(expected) == 4 else f'{len(expected)} of '}4 messages; complete"
    )


def test_a_mailbox_may_be_named_without_what_tells_it_apart(path: Path) -> None:
    simulate(path)
    count = sum(1 for it in records(path) if it.get("mailbox", "").startswith("scheduler:"))
    assert shown(path, mailbox=("scheduler",))[-1].startswith(f"{count} of ")
    assert shown(path, mailbox=("scheduler:[rm-1]default#1",))[-1].split()[0] != "0"


def test_facts_about_others_are_counted(path: Path) -> None:
    lines = body(shown(write(path, facts("a", "b", "c")), about=("b",)))
    assert [line.strip() for line in lines[1:]] == [
        "ForeignAllocationPut b -> n1 vcore=1,memory=2",
        "and 2 about others",
    ]


def test_a_limit_stops_the_list(path: Path) -> None:
    lines = shown(write(path, *MIXED), look=Look(limit=2))
    assert len(body(lines)) == 4
    assert lines[-1] == "stopped at the limit of 2: there may be more"


# -- how it looks


def test_in_full_the_payload_is_json(path: Path) -> None:
    lines = shown(write(path, RunCycle(partition="p", epoch=1)), look=Look(full=True))
    assert body(lines)[1:] == ["{", '  "partition": "p",', '  "epoch": 1', "}"]


def test_long_lists_are_counted(path: Path) -> None:
    lines = body(shown(write(path, proposal(*"abcdefg"))))
    assert lines[0].endswith("as of 9: a -> n1, b -> n1, c -> n1, d -> n1 +3 more")


@pytest.mark.parametrize("width", [100, 120, 200])
def test_lines_are_cut_to_the_width_of_a_terminal(path: Path, width: int) -> None:
    write(path, proposal("a" * 300), facts("b" * 300))
    lines = body(shown(path, look=Look(width=width)))
    assert [len(lines[0]), len(lines[-1])] == [width, width]
    assert max(len(line) for line in lines) == width
    assert all(line.endswith("...") for line in lines if len(line) == width)


def test_a_narrow_terminal_wraps(path: Path) -> None:
    write(path, proposal("a" * 300))
    assert body(shown(path)) == body(shown(path, look=Look(width=60)))


def test_colour_changes_nothing_but_colour(path: Path) -> None:
    write(path, *MIXED)
    plain = body(shown(path))
    coloured = body(shown(path, look=Look(colour=True)))
    assert plain != coloured
    assert plain == [strip_colour(line) for line in coloured]


def strip_colour(text: str) -> str:
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m"):
        text = text.replace(code, "")
    return text


EVIL = "a\x1b[31m\x07\r\n\x7f\x9b\u202eb"
ESCAPED = "a\\x1b[31m\\x07\\r\\n\\x7f\\x9b\\u202eb"


def test_names_from_outside_cannot_steer_the_terminal(path: Path) -> None:
    assert printable(EVIL) == ESCAPED
    refused = RMNodeUpdate(rm_id=EVIL, rejected=(Rejected(id=EVIL, reason=EVIL),))
    ended = AnnouncedRelease(
        partition=EVIL, application_id=EVIL, uuid=EVIL, key=EVIL,
        type=TerminationType.STOPPED_BY_RM, message=EVIL,
    )  # fmt: skip
    released = RMReleaseAllocation(rm_id=EVIL, released=(ended,))
    write(path, refused, released, facts(EVIL), proposal(EVIL, node=EVIL), instance=EVIL)
    for look in (Look(), Look(full=True), Look(width=120)):
        lines = shown(path, look=look)
        assert [line for line in lines if not line.isprintable()] == []
    assert f"rejected {ESCAPED} ({ESCAPED})" in body(shown(path))[0]


@given(text=st.text())
def test_what_is_printed_is_printable(text: str) -> None:
    assert printable(text).isprintable()
    assert (printable(text) == text) is text.isprintable()
