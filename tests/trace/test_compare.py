"""Two runs of one story are told apart by what happened in them, not by where it stands."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from probes import wait_until
from recordings import ask, in_service, node, records, register, release, rewrite, simulate, submit

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.cli import main
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.trace.compare_runs import Comparison, compare, comparison_lines

Screen = pytest.CaptureFixture[str]
PARTITION = "[rm-1]default"


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return tmp_path / "one.trace"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return tmp_path / "other.trace"


def happened(path: Path, **change: Any) -> None:
    """A life on real threads, with one thing changed."""
    with SchedulerCore(driver="direct", trace=path, settings=Settings()) as core:
        register(core)
        for name in change.get("nodes", ("n1", "n2")):
            node(core, name, si.ActionFromRM.CREATE, change.get("vcore", 4))
        if change.get("dumps"):
            core.state_dump()
        submit(core, "app-1")
        for key in change.get("keys", ("a", "b")):
            ask(core, "app-1", key, vcore=3)
        if change.get("ghost"):
            ask(core, "ghost", "g")
        if change.get("releases"):
            release(core, "app-1", "a")
        # A caller that finds another thread at the machines leaves its request to that.
        wait_until(core.is_settled)


def told(found: Comparison) -> list[str]:
    return list(comparison_lines((Path("one"), Path("other")), found))


def test_two_recordings_of_the_same_are_the_same(one: Path, other: Path) -> None:
    """Names of the core and times differ."""
    happened(one)
    happened(other)
    assert records(one)[0]["start_ns"] != records(other)[0]["start_ns"]
    found = compare(one, other)
    assert found.is_same, told(found)
    assert told(found) == [f"the same {found.counts[0]} requests, facts and refusals in both"]


def test_a_question_more_shifts_numbers_and_is_no_difference(one: Path, other: Path) -> None:
    happened(one)
    happened(other, dumps=True)
    steps = [
        max(it["step"] for it in records(path) if it.get("mailbox") == "context")
        for path in (one, other)
    ]
    assert steps[0] < steps[1], "vacuous: nothing is shifted"
    assert compare(one, other).is_same


def test_another_amount_is_the_first_difference(one: Path, other: Path) -> None:
    happened(one)
    happened(other, vcore=5)
    found = compare(one, other)
    assert found.sides is not None
    here, there = (side.happening for side in found.sides)
    assert here is not None
    assert there is not None
    assert (here.stimulus, here.text) == ("node-2", "NodesRequested nodes n1 CREATE")
    assert [(it.path[-1], it.one, it.other) for it in found.fields] == [("value", 4, 5)]
    assert found.ended == ()
    assert "nothing is different in the end" in told(found)


def test_what_happened_only_once_is_told_with_what_came_before(one: Path, other: Path) -> None:
    happened(one)
    happened(other, releases=True)
    found = compare(one, other)
    assert found.sides is not None
    here, there = found.sides
    assert here.happening is None
    assert there.happening is not None
    assert there.happening.text == "AllocationsRequested releases a"
    assert len(there.before) == 3
    assert (found.only[0], found.changed) == (0, 0)
    assert [it.path for it in found.ended] == [(PARTITION, "allocations", "app-1/a")]


def test_a_refusal_is_a_difference(one: Path, other: Path) -> None:
    happened(one, ghost=True)
    happened(other)
    found = compare(one, other)
    assert found.only[1] == 0
    assert found.sides is not None
    assert found.sides[0].happening is not None
    assert found.sides[0].happening.text == "AllocationsRequested asks g"


def test_what_ended_differently_is_told(one: Path, other: Path) -> None:
    happened(one)
    happened(other, nodes=("n1",))
    ended = {it.path: (it.one, it.other) for it in compare(one, other).ended}
    assert [path for path in ended if path[1] == "allocations"]
    assert (PARTITION, "applications", "app-1") not in ended


def test_a_placement_elsewhere_names_the_node(one: Path, other: Path) -> None:
    """Where it was placed is no part of who it is."""
    simulate(one)
    recorded = records(simulate(other))
    for record in recorded:
        for fact in record.get("payload", {}).get("facts", ()):
            if fact["fact"] == "AllocationCommitted" and fact["key"] == "a":
                fact["node_id"] = "n2"
    rewrite(other, recorded)
    found = compare(one, other)
    assert [(it.path, it.one, it.other) for it in found.fields] == [(("node_id",), "n1", "n2")]
    assert (found.changed, found.only) == (1, (0, 0))


@pytest.mark.parametrize("field", ["application_id", "node_id"])
def test_facts_that_contradict_each_other_are_compared_all_the_same(
    one: Path, other: Path, field: str
) -> None:
    simulate(one)
    recorded = records(simulate(other))
    for record in recorded:
        for fact in record.get("payload", {}).get("facts", ()):
            if fact["fact"] == "AllocationReleased":
                fact[field] = "nobody"
    rewrite(other, recorded)
    assert not compare(one, other).is_same


def told_facts(recorded: list[dict[str, Any]], name: str) -> list[tuple[dict[str, Any], Any]]:
    """Return the facts of a type as the event publisher was told them, each with its record."""
    return [
        (record, fact)
        for record in recorded
        if record.get("mailbox") == "event_publisher"
        for fact in record["payload"].get("facts", ())
        if fact["fact"] == name
    ]


def test_one_fewer_of_the_same_shifts_none_behind_it(one: Path, other: Path) -> None:
    """What came of the same request is the same, though it is another manieth in all."""
    recorded = records(simulate(one))
    states = told_facts(recorded, "ApplicationStateChanged")
    record, last = next(
        (record, fact)
        for (record, fact), (later, _) in pairwise(states)
        if record["stimulus"] != later["stimulus"]
    )
    record["payload"]["facts"].remove(last)
    rewrite(other, recorded)
    found = compare(one, other)
    assert (found.only, found.changed, found.moved) == ((1, 0), 0, 0)


def test_what_came_of_another_request_is_found_and_counted(one: Path, other: Path) -> None:
    recorded = records(simulate(one))
    record, _ = told_facts(recorded, "AllocationCommitted")[0]
    record["stimulus"] = next(
        it["stimulus"] for it in recorded[1:] if it["stimulus"] != record["stimulus"]
    )
    rewrite(other, recorded)
    found = compare(one, other)
    assert found.is_same
    assert found.moved >= len(record["payload"]["facts"]) > 0
    assert told(found)[0].endswith(f"; {found.moved} came of another request")


def test_runs_on_threads_are_compared(one: Path, other: Path) -> None:
    in_service(one)
    in_service(other)
    found = compare(one, other)
    assert found.counts[0] - found.only[0] == found.counts[1] - found.only[1]
    assert not [line for line in told(found) if "RunCycle" in line]


def test_another_order_of_requests_is_told(one: Path, other: Path) -> None:
    happened(one)
    happened(other, keys=("b", "a"))
    found = compare(one, other)
    assert found.order is not None
    assert [it.text[-1] for it in found.order] == ["a", "b"]
    assert told(found)[0] == "requests came in another order, first:"


def test_the_command_says_it(one: Path, other: Path, capsys: Screen) -> None:
    happened(one)
    happened(other, vcore=5)
    assert main(["trace", "diff", str(one), str(one)]) == 0
    assert capsys.readouterr().out.startswith("the same ")
    assert main(["trace", "diff", str(one), str(other)]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"the first difference:\n  {one}\n")
    assert main(["trace", "diff", str(one), str(other), "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["what"] for row in rows][:4] == ["counts", "first", "first", "field"]
    assert rows[1]["is"]["stimulus"] == "node-2"
