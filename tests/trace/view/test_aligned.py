"""Two runs above each other: what is the same has one column, whatever stands between."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import ask, node, records, register, submit
from viewed import data, texts

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.cli import main
from yunikorn_actors.trace.view.aligned import columns, in_order

PAIRS = st.lists(st.integers(0, 30), unique=True, max_size=20)


@given(PAIRS, PAIRS)
def test_shared_messages_have_one_column_and_each_run_keeps_its_order(
    ones: list[int], others: list[int]
) -> None:
    pairs = sorted(zip(ones, others, strict=False))
    shared = in_order(pairs)
    assert set(shared) <= set(pairs)
    assert shared == sorted(shared)
    assert [other for _, other in shared] == sorted(other for _, other in shared)
    one, other, width = columns(shared, (31, 31))
    assert (len(one), len(other)) == (31, 31)
    assert all(one[here] == other[there] for here, there in shared)
    for column in (one, other):
        assert column == sorted(set(column))
        assert column[-1] < width <= 62


def test_as_many_as_can_be_stand_in_order() -> None:
    assert in_order([(0, 5), (1, 0), (2, 1), (3, 9), (4, 2)]) == [(1, 0), (2, 1), (4, 2)]
    assert in_order([]) == []


def test_what_is_not_shared_stands_side_by_side() -> None:
    # A  x x S y S
    # B  z   S   S w
    assert columns([(2, 1), (4, 2)], (5, 4)) == ([0, 1, 2, 3, 4], [0, 2, 4, 5], 6)


def happened(path: Path, *keys: str, vcore: int = 4, dumps: bool = False) -> Path:
    with SchedulerCore(driver="direct", trace=path) as core:
        register(core)
        node(core, "n1", si.ActionFromRM.CREATE, vcore)
        if dumps:
            core.state_dump()
        submit(core, "app-1")
        for key in keys:
            ask(core, "app-1", key, vcore=3)
    return path


def compared(one: Path, other: Path) -> dict[str, Any]:
    page = one.with_suffix(".html")
    assert main(["trace", "view", str(one), str(other), "-o", str(page)]) == 0
    found = data(page)
    sides = [
        {**side, "place": texts(it["run"], "place"), "kind": texts(it["run"], "kind")}
        for side, it in zip(found["comparison"]["sides"], found["runs"], strict=True)
    ]
    return {"sides": sides, "lines": found["comparison"]["lines"]}


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return happened(tmp_path / "one.trace", "a", "b")


def test_the_same_twice_has_no_difference(one: Path, tmp_path: Path) -> None:
    """A question more shifts all that stands behind it."""
    found = compared(one, happened(tmp_path / "other.trace", "a", "b", dumps=True))
    here, there = found["sides"]
    assert set(here["difference"] + there["difference"]) == {0}
    assert found["lines"][0].startswith("the same ")
    pairs = [(it, partner) for it, partner in enumerate(here["partner"]) if partner >= 0]
    assert len(pairs) > 5
    for message, partner in pairs:
        assert there["partner"][partner] == message
        assert here["kind"][message] == there["kind"][partner]
        assert here["column"][message] == there["column"][partner]
    assert any(message != partner for message, partner in pairs), "vacuous: nothing is shifted"


def test_what_is_different_is_told_of_the_message(one: Path, tmp_path: Path) -> None:
    """One vcore more, and one ask fewer."""
    found = compared(one, happened(tmp_path / "other.trace", "a", vcore=5))
    here, there = found["sides"]
    kinds = [
        {side["kind"][it] for it, told in enumerate(side["difference"]) if told == what}
        for side, what in ((here, 1), (there, 1), (here, 2), (there, 2))
    ]
    assert "NodesRequested" in kinds[0] & kinds[1]
    assert {"AllocationsRequested", "FactsAppended"} <= kinds[2]
    assert kinds[3] == set()
    first = next(it for it, told in enumerate(here["difference"]) if told)
    assert here["kind"][first] == "NodesRequested"
    assert found["lines"][0] == "the first difference:"


def test_a_run_beside_one_without_messages(one: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.trace"
    empty.write_bytes(b"")
    assert main(["trace", "view", str(one), str(empty)]) == 2
    assert len(records(one)) > 5
