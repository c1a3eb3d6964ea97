"""Questions about a recording: what led to something, what was refused, how long things took."""

import json
import re
from collections import Counter
from heapq import nlargest
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pytest
from recordings import in_service, records, rewrite, simulate, write

from yunikorn_actors.cli import main
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import Cause
from yunikorn_actors.messages.rm_events import (
    Rejected,
    RejectedAsk,
    RMNodeUpdate,
    RMRejectedAllocationAsk,
)
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.scenario.runner import RunOptions, run_file
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.trace.filters import FilterOptions, moment_of
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.refused import BY_FACT, REFUSING
from yunikorn_actors.trace.stats import Spread, stats

Screen = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def deliveries(path: Path) -> list[dict[str, Any]]:
    return [record for record in records(path) if record["record"] == "delivery"]


def told(capsys: Screen, *command: str) -> list[dict[str, Any]]:
    assert main(["trace", *command, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# -- chains


@pytest.mark.parametrize("run", [simulate, in_service])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_chain_is_what_the_causes_say(
    path: Path, capsys: Screen, run: Any, topology: str
) -> None:
    run(path, topology)
    causes = {(r["mailbox"], r["step"]): tuple(r["cause"]) for r in deliveries(path)}
    at = ("context", max(step for mailbox, step in causes if mailbox == "context"))
    wanted = [at]
    while wanted[-1] in causes and causes[wanted[-1]] in causes:
        wanted.append(causes[wanted[-1]])
    found = told(capsys, "chain", str(path), f"{at[0]}/{at[1]}")
    assert wanted[::-1] == [(it["delivery"][0], it["delivery"][1]) for it in found]
    assert [False] * (len(found) - 1) + [True] == [it["is_wanted"] for it in found]


def test_what_came_of_a_message_is_all_below_it(path: Path, capsys: Screen) -> None:
    simulate(path)
    causes = {(r["mailbox"], r["step"]): tuple(r["cause"]) for r in deliveries(path)}
    first = ("rm_proxy", 1)
    below = {first}
    while more := {at for at, cause in causes.items() if cause in below} - below:
        below |= more
    found = told(capsys, "chain", str(path), "rm_proxy/1", "--down")
    assert len(below) > 5
    assert below == {(it["delivery"][0], it["delivery"][1]) for it in found}
    assert len(found) == len(below)
    depths = {(it["delivery"][0], it["delivery"][1]): it["depth"] for it in found}
    assert all(depths[at] == depths[causes[at]] + 1 for at in below - {first})


def test_a_step_that_is_not_there_leaves_with_1(path: Path, capsys: Screen) -> None:
    simulate(path)
    for more in ([], ["--down"]):
        assert main(["trace", "chain", str(path), "context/100000", *more]) == 1
        assert f"{path}: there is no step context/100000\n" == capsys.readouterr().err


# -- refusals


def test_refusals_are_grouped_by_their_reason(path: Path, capsys: Screen) -> None:
    asks = tuple(
        RejectedAsk(application_id="a", key=key, reason="no such application", later_form=False)
        for key in "xyz"
    )
    node = Rejected(id="n1", reason="known already")
    write(
        path,
        RMRejectedAllocationAsk(rm_id="rm-1", rejected=asks),
        RunCycle(partition="p", epoch=1),
        RMNodeUpdate(rm_id="rm-1", rejected=(node,)),
    )
    found = told(capsys, "refusals", str(path))
    assert [(3, "ask", "a/x", "no such application"), (1, "node", "n1", "known already")] == [
        (it["count"], it["what"], it["first"], it["reason"]) for it in found
    ]
    assert main(["trace", "refusals", str(path)]) == 0
    assert "no such application" in capsys.readouterr().out
    assert main(["trace", "show", str(path), "--refused"]) == 0
    assert "2 of 3 messages; complete" in capsys.readouterr().out


def test_every_refusal_of_a_run_is_counted_once(path: Path, capsys: Screen) -> None:
    simulate(path)
    raw = sum(
        len(r["payload"]["rejected"])
        for r in deliveries(path)
        if r["type"] == "RMRejectedAllocationAsk"
    )
    found = told(capsys, "refusals", str(path))
    assert raw == sum(it["count"] for it in found if it["what"] == "ask") > 0


DRAINS = """
name: drains that are refused
steps:
  - create_node: {id: n1, capacity: {vcore: 4000}}
  - drain_node: nope
  - drain_node: n1
  - drain_node: n1
"""


@pytest.mark.parametrize(
    ("topology", "schedulers"), [("proposing", 1), ("proposing", 2), ("fused", 1)]
)
def test_what_only_a_fact_says_is_refused_is_counted_once(
    path: Path, capsys: Screen, topology: TopologyName, schedulers: int
) -> None:
    """Facts go to each Scheduler and to the events, so one refusal is in several messages."""
    file = path.with_name("drains.yaml")
    file.write_text(DRAINS)
    options = RunOptions(topology=topology, schedulers=schedulers, trace=path)
    assert run_file(file, options).ok
    found = told(capsys, "refusals", str(path))
    assert [
        (1, "node action", "n1", "node is draining already"),
        (1, "node action", "nope", "unknown node"),
    ] == [(it["count"], it["what"], it["first"], it["reason"]) for it in found]


def test_each_refusal_that_a_fact_records_is_listed() -> None:
    said_by_a_message = {
        "ApplicationRejected": "RMApplicationUpdate",
        "AskRefused": "PredicatesChecked",
        "ConfigurationRefused": "RMConfigRejected",
        "PolicyFailed": "",  # nothing is refused: the policy is put aside
    }
    refusing = {
        it.__name__ for it in get_args(Fact) if re.search("(Refused|Rejected|Failed)$", it.__name__)
    }
    assert refusing - {it.__name__ for it in BY_FACT} == said_by_a_message.keys()
    named = {it.__name__ for it in REFUSING}
    assert named >= {it for it in said_by_a_message.values() if it}


# -- how much, and how long


def test_counts_and_times_are_those_of_the_records(path: Path) -> None:
    in_service(path)
    found = deliveries(path)
    with TraceReader(path) as trace:
        answer = stats(trace, FilterOptions())
    counts = Counter((r["mailbox"], r["type"]) for r in found)
    assert counts == {(row.mailbox, row.type): row.count for row in answer.rows if row.type}
    assert len(found) == answer.messages
    took = {r["mailbox"]: [] for r in found}  # type: dict[str, list[int]]
    for r in found:
        if "previous_took_ns" in r:
            took[r["mailbox"]].append(r["previous_took_ns"])
    for mailbox, ns in records(path)[-1]["took_ns"].items():
        took[mailbox].append(ns)
    for row in answer.rows:
        if not row.type and took[row.mailbox]:
            assert row.took is not None
            assert row.took.max == max(took[row.mailbox])
            assert row.took.p50 in took[row.mailbox]
    assert [it.took_ns for it in answer.slowest] == nlargest(10, chain.from_iterable(took.values()))


def test_the_time_of_a_step_is_told_by_the_next_one(path: Path) -> None:
    cycle = RunCycle(partition="p", epoch=1)
    changed = records(write(path, cycle, RMNodeUpdate(rm_id="rm-1", accepted=("n",)), cycle))
    changed[2]["previous_took_ns"] = 7
    changed[3]["previous_took_ns"] = 9
    changed[-1]["took_ns"] = {"context": 8}
    for record, sent_ns in zip(changed[1:4], (5, 6, 2 * 10**18), strict=True):
        record["sent_ns"] = sent_ns
    rewrite(path, changed)
    with TraceReader(path) as trace:
        answer = stats(trace, FilterOptions())
    (whole, cycles, updates) = answer.rows
    assert (cycles.took, updates.took) == (_spread(7, 7, 8), _spread(9, 9, 9))
    assert whole.longest_queue == 2
    assert (9, Cause("context", 2), "RMNodeUpdate") == answer.slowest[0][:3]


def _spread(p50: int, p99: int, most: int) -> Any:
    return Spread(p50=p50, p99=p99, max=most)


def test_a_simulated_run_has_counts_alone(path: Path, capsys: Screen) -> None:
    simulate(path)
    assert main(["trace", "stats", str(path)]) == 0
    assert "a simulated run: nothing takes time in it" in capsys.readouterr().out


# -- facts


def test_facts_of_a_type_are_found_in_their_messages(path: Path, capsys: Screen) -> None:
    simulate(path)
    assert main(["trace", "show", str(path), "--type", "AskAdded", "--type", "NodeRemoved"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" " * 20)]
    kinds = {line.split()[0] for line in shown}
    assert kinds == {"AskAdded", "NodeRemoved", "and"}


# -- places


@pytest.mark.parametrize(
    ("begin", "end", "steps"),
    [
        ("2ms", None, [2, 3, 4]),
        (None, "3ms", [1, 2]),
        ("context/2", "context/3", [2, 3]),
        ("3", "4", [2, 3]),
        ("1s", None, []),
    ],
)
def test_a_part_of_a_recording(
    path: Path, begin: str | None, end: str | None, steps: list[int]
) -> None:
    write(path, *[RunCycle(partition="p", epoch=1)] * 4)
    wanted = FilterOptions(
        begin=None if begin is None else moment_of(begin),
        end=None if end is None else moment_of(end),
    )
    with TraceReader(path) as trace:
        assert steps == [it.step for it in wanted.over(trace)]
        assert trace.footer is not None


def test_what_is_no_place_is_refused(path: Path, capsys: Screen) -> None:
    with pytest.raises(SystemExit):
        main(["trace", "show", str(path), "--from", "soon"])
    assert (
        "'soon' is no place in a recording: give a time since its start" in capsys.readouterr().err
    )


def test_times_are_shown_where_they_are_asked_for(path: Path, capsys: Screen) -> None:
    in_service(path)
    assert main(["trace", "show", str(path), "--times", "--limit", "9"]) == 0
    assert " ms, the step before took " in capsys.readouterr().out
