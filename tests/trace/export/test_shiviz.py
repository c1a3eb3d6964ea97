"""A log for ShiViz: by the rules of its parser, and true to what happened before what."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from recordings import in_service, records, simulate, write

from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.trace.export.shiviz import EVENTS, shiviz, word
from yunikorn_actors.trace.export.timeline import TooMuchError
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.read import TraceReader

CYCLE = RunCycle(partition="p", epoch=1)


class Event(NamedTuple):
    host: str
    clock: dict[str, int]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def log(path: Path, **wanted: Any) -> str:
    with TraceReader(path) as trace:
        return "".join(
            f"{line}\n" for line in shiviz(trace, DeliveryFilter(FilterOptions(**wanted), trace))
        )


def parsed(text: str) -> dict[str, list[Event]]:
    """Read a log as ShiViz does, and refuse what it refuses."""
    parser, delimiter, *lines = text.splitlines()
    event, begin = (
        re.compile(pattern.replace("(?<", "(?P<"), re.ASCII) for pattern in (parser, delimiter)
    )
    runs: dict[str, list[Event]] = {}
    name = ""
    for line in lines:
        if found := begin.fullmatch(line):
            name = found["trace"]
            assert name not in runs
            runs[name] = []
        else:
            found = event.fullmatch(line)
            assert found is not None, line
            assert found["event"]
            runs[name].append(Event(found["host"], json.loads(found["clock"])))
    for events in runs.values():
        check(events)
    return runs


def check(events: list[Event]) -> None:
    known: dict[tuple[str, int], dict[str, int]] = {}
    for host, clock in events:
        own = clock[host]
        assert own == 1 or (host, own - 1) in known
        assert (host, own) not in known
        known[host, own] = clock
    for _, clock in events:
        for host, count in clock.items():
            before = known[host, count]
            assert all(clock.get(other, 0) >= number for other, number in before.items())


def befores(path: Path) -> list[tuple[str, set[int]]]:
    """For each message its mailbox, and the numbers of all that happened before it."""
    last: dict[str, int] = {}
    at: dict[tuple[str, int], int] = {}
    found: list[tuple[str, set[int]]] = []
    for record in records(path):
        if record["record"] == "delivery":
            number, mailbox = len(found), record["mailbox"]
            parents = {last.get(mailbox), at.get(tuple(record["cause"]))} - {None}
            before = set[int]().union(*(found[parent][1] | {parent} for parent in parents))
            found.append((mailbox, before))
            last[mailbox] = at[mailbox, record["step"]] = number
    return found


@pytest.mark.parametrize("wanted", [{}, {"mailbox": ("context", "event_publisher")}])
def test_clocks_say_what_happened_before_what(path: Path, wanted: dict[str, Any]) -> None:
    (events,) = parsed(log(simulate(path), **wanted)).values()
    told = befores(path)
    taken = wanted.get("mailbox")
    numbers = [number for number, (mailbox, _) in enumerate(told) if not taken or mailbox in taken]
    assert len(numbers) == len(events) > 20
    for number, (_, clock) in zip(numbers, events, strict=True):
        for other, (host, its_clock) in zip(numbers, events, strict=True):
            assert (clock.get(host, 0) >= its_clock[host]) == (
                other == number or other in told[number][1]
            )


def test_a_run_on_threads_is_a_log(path: Path) -> None:
    in_service(path)
    mailboxes = ("rm_proxy", "context")
    (events,) = parsed(log(path, mailbox=mailboxes)).values()
    assert len(events) == sum(1 for it in records(path) if it.get("mailbox") in mailboxes)


def test_two_runs_behind_each_other_can_be_compared(path: Path) -> None:
    other = path.with_name("b.trace")
    first, second = log(simulate(path, seed=1)), log(simulate(other, seed=2))
    whole = first + "".join(second.splitlines(keepends=True)[2:])
    assert list(parsed(whole)) == ["a.trace", "b.trace"]


def test_more_than_it_takes_is_refused(path: Path) -> None:
    write(path, *[CYCLE] * EVENTS.messages)
    assert len(log(path).splitlines()) == EVENTS.messages + 3
    write(path, *[CYCLE] * (EVENTS.messages + 1))
    with pytest.raises(TooMuchError, match="takes 2000 messages, and more are wanted; narrow it"):
        log(path)
    assert len(log(path, stimulus=("node-1",)).splitlines()) == 4


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a", "a"),
        ("scheduler:[rm-1]p#1", "scheduler:[rm-1]p#1"),
        ("a b", "a%20b"),
        ("a%20b", "a%2520b"),
        ("\u2028", "%2028"),
    ],
)
def test_a_host_is_one_word(name: str, written: str) -> None:
    assert word(name) == written


def test_texts_cannot_break_a_line(path: Path) -> None:
    write(path, RunCycle(partition='}\t\n\u2028{"a', epoch=1))
    assert [len(events) for events in parsed(log(path)).values()] == [1]
