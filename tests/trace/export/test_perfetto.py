"""A recording as a Chrome trace: by the rules that its readers have."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recordings import in_service, records, rewrite, simulate, write

from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.trace.export.perfetto import perfetto
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.read import TraceReader

Event = dict[str, Any]
MS = 1_000_000
CYCLE = RunCycle(partition="p", epoch=1)
START_NS = 1_767_225_600_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def events(path: Path, **wanted: Any) -> list[Event]:
    with TraceReader(path) as trace:
        text = "\n".join(perfetto(trace, DeliveryFilter(FilterOptions(**wanted), trace)))
    found: list[Event] = json.loads(text)["traceEvents"]
    return found


def of(found: list[Event], phase: str, category: str = "") -> list[Event]:
    return [it for it in found if it["ph"] == phase and category in {"", it.get("cat")}]


def slices(found: list[Event]) -> list[tuple[int, float, float]]:
    """Thread, begin and end of each slice; of what is open at the end, the end is endless."""
    done: list[tuple[int, float, float]] = []
    open_: dict[int, float] = {}
    for event in found:
        thread = event.get("tid", 0)
        if event["ph"] == "X":
            done.append((thread, event["ts"], round(event["ts"] + event["dur"], 3)))
        elif event["ph"] == "B":
            assert thread not in open_
            open_[thread] = event["ts"]
        elif event["ph"] == "E":
            done.append((thread, open_.pop(thread), event["ts"]))
    return sorted([*done, *((thread, begin, float("inf")) for thread, begin in open_.items())])


def edges(path: Path) -> int:
    steps = {(it["mailbox"], it["step"]) for it in records(path) if it["record"] == "delivery"}
    return sum(1 for it in records(path) if tuple(it.get("cause", ())) in steps)


@pytest.mark.parametrize("run", [simulate, in_service])
def test_every_message_is_a_slice_and_every_edge_an_arrow(
    path: Path, run: Callable[[Path], Path]
) -> None:
    found = events(run(path))
    messages = [it for it in records(path) if it["record"] == "delivery"]
    handled = [it for it in found if it.get("cat") == "handling"]
    assert len(messages) == len(handled) == len(slices(found))
    assert Counter(it["type"] for it in messages) == Counter(it["name"] for it in handled)
    assert edges(path) == len(of(found, "s")) == len(of(found, "f")) > 0
    assert len({it["id"] for it in of(found, "s")}) == edges(path)
    assert [it["id"] for it in of(found, "s")] == [it["id"] for it in of(found, "f")]
    assert {it["bp"] for it in of(found, "f")} == {"e"}


@pytest.mark.parametrize("run", [simulate, in_service])
def test_slices_of_a_thread_do_not_overlap(path: Path, run: Callable[[Path], Path]) -> None:
    """One that lies partly over another one is dropped by the reader, without a word."""
    last: dict[int, tuple[float, float]] = {}
    for thread, begin, end in slices(events(run(path))):
        former_begin, former_end = last.get(thread, (0.0, 0.0))
        inside = begin == end == former_begin
        assert begin >= former_end or inside
        last[thread] = max((former_begin, former_end), (begin, end))


def test_both_ends_of_an_arrow_lie_in_a_slice(path: Path) -> None:
    found = events(in_service(path))
    begins = {(thread, begin) for thread, begin, _ in slices(found)}
    for event in (*of(found, "s"), *of(found, "f")):
        assert (event["tid"], event["ts"]) in begins


def test_asynchronous_slices_end_as_they_began(path: Path) -> None:
    found = events(in_service(path))
    for category in ("waiting", "allocation"):
        begun = {(it["id"], it["name"]): it["ts"] for it in of(found, "b", category)}
        assert len(begun) == len(of(found, "b", category)) > 0
        for end in of(found, "e", category):
            assert begun.pop((end["id"], end["name"])) <= end["ts"]
        assert category == "allocation" or not begun


def timed(path: Path, *times: tuple[str, int, int, int | None, int | None]) -> Path:
    """Write messages with mailbox, step, time, time of sending and how long the step before took."""
    write(path, *[CYCLE] * len(times), driver="threads")
    changed = records(path)
    for record, (mailbox, step, at_ns, sent_ns, previous_ns) in zip(
        changed[1:], times, strict=False
    ):
        record |= {"mailbox": mailbox, "step": step, "at_ns": START_NS + at_ns, "cause": ["", 0]}
        if sent_ns is not None:
            record["sent_ns"] = START_NS + sent_ns
        if previous_ns is not None:
            record["previous_took_ns"] = previous_ns
    rewrite(path, changed)
    return path


def test_how_long_a_step_took_stands_with_the_next_one_or_in_the_footer(path: Path) -> None:
    timed(
        path, ("a", 1, 1 * MS, 0, None), ("b", 1, 2 * MS, None, None), ("a", 2, 3 * MS, None, 1500)
    )
    changed = records(path)
    changed[-1]["took_ns"] = {"a": 2501}
    rewrite(path, changed)
    assert slices(events(path)) == [(1, 1000.0, 1001.5), (1, 3000.0, 3002.501), (2, 2000.0, 2000.0)]
    assert slices(events(path, mailbox=("b",))) == [(1, 2000.0, 2000.0)]


def test_what_was_being_handled_at_a_crash_has_no_end(path: Path) -> None:
    timed(path, ("a", 1, 1 * MS, 0, None), ("a", 2, 3 * MS, None, 1500))
    rewrite(path, records(path)[:-1])
    assert slices(events(path)) == [(1, 1000.0, 1001.5), (1, 3000.0, float("inf"))]


def test_after_a_gap_no_time_is_taken_for_that_of_another_step(path: Path) -> None:
    timed(path, ("a", 1, 1 * MS, 0, None), ("a", 3, 3 * MS, None, 1500))
    assert slices(events(path))[0] == (1, 1000.0, 1000.0)


def test_what_is_handled_together_takes_time_once(path: Path) -> None:
    timed(
        path, ("a", 1, 1 * MS, 0, None), ("a", 2, 1 * MS, None, None), ("a", 3, 2 * MS, None, 700)
    )
    changed = records(path)
    changed[2]["joined"] = True
    changed[-1]["took_ns"] = {"a": 1}
    rewrite(path, changed)
    assert slices(events(path)) == [(1, 1000.0, 1000.0), (1, 1000.0, 1000.7), (1, 2000.0, 2000.001)]


def test_a_mailbox_is_as_long_as_what_waits_in_it(path: Path) -> None:
    timed(
        path,
        ("a", 1, 10 * MS, 1 * MS, None),
        ("a", 2, 20 * MS, 2 * MS, None),
        ("a", 3, 30 * MS, 15 * MS, None),
    )
    lengths = [(it["ts"], it["args"]["messages"]) for it in of(events(path), "C")]
    assert lengths == [(1e3, 1), (2e3, 2), (1e4, 1), (1.5e4, 2), (2e4, 1), (3e4, 0)]
    assert lengths == [
        (it["ts"], it["args"]["messages"]) for it in of(events(path, mailbox=("nobody",)), "C")
    ]


def test_in_a_simulated_run_the_order_is_seen(path: Path) -> None:
    """All at one time: then the order number is the time, and the name of the process says so."""
    write(path, *[CYCLE] * 3)
    changed = records(path)
    for record in changed[1:-1]:
        record["at_ns"] = START_NS
    rewrite(path, changed)
    found = events(path)
    assert [it["ts"] for it in found if it.get("cat") == "handling"] == [0.001, 0.002, 0.003]
    assert "the time is the order number" in found[0]["args"]["name"]


def test_simulated_time_is_kept_where_it_moves(path: Path) -> None:
    write(path, *[CYCLE] * 2)
    assert [it["ts"] for it in events(path) if it.get("cat") == "handling"] == [1500.0, 3000.0]


def test_queues_hold_what_their_allocations_are(path: Path) -> None:
    """The last word on each queue agrees with the state at the end of the run."""
    held: dict[str, dict[str, int]] = {}
    most: dict[str, int] = {}
    for event in of(events(simulate(path)), "C"):
        held[event["name"]] = event["args"]
        for kind, amount in event["args"].items():
            most[kind] = max(most.get(kind, 0), amount)
    assert set(held) == {"[rm-1]default root", "[rm-1]default root.default"}
    # Three asks of 3 and two of 1 on nodes of 8 and 4: of these 11 all had their place for a while.
    assert most == {"vcore": 11}
    assert [amount for amounts in held.values() for amount in amounts.values() if amount] == []


def test_facts_that_make_no_sense_end_the_counting(path: Path) -> None:
    simulate(path)
    changed = records(path)
    told = next(it for it in changed if it.get("type") == "FactsAppended")
    told["payload"]["facts"] = [{"fact": "QueueRemoved", "path": "x", "managed": True, "at_ns": 1}]
    rewrite(path, changed)
    assert len(of(events(path), "X")) == len(changed) - 2


def test_a_filter_leaves_messages_out_and_the_life_of_others(path: Path) -> None:
    found = events(simulate(path), about=("b",))
    whole = events(path)
    assert 0 < len(of(found, "X")) < len(of(whole, "X"))
    assert {it["name"] for it in of(found, "b", "allocation")} == {"app-1 b"}
    assert of(found, "C") == of(whole, "C")
    numbers = {it["id"] for it in of(found, "f")}
    assert numbers < {it["id"] for it in of(whole, "f")}


def test_names_are_text(path: Path) -> None:
    evil = 'a"},{"\u202e\x00'
    write(path, RunCycle(partition=evil, epoch=1))
    (event,) = (it for it in events(path) if it.get("cat") == "handling")
    assert event["args"]["says"] == evil
