"""Shares: worked examples, then the equivalence of the sort key and the comparison."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn_actors.policies.built_in import fair_share, shares, usage_key
from yunikorn_actors.values.resource import Resource

Nullable = Resource | None

KINDS = st.sampled_from(["g", "m", "v"])
COUNTS = st.integers(0, 4) | st.integers(0, 2**63 - 1)
usages = st.none() | st.dictionaries(KINDS, COUNTS)
share_lists = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])).map(sorted)


def compare_shares(left: list[float], right: list[float]) -> int:
    """Order two ascending lists of shares by their largest, then the next: -1, 0 or 1.

    What a longer list has beyond the other is held against 0.
    """
    for rank in range(1, max(len(left), len(right)) + 1):
        mine = left[-rank] if rank <= len(left) else 0.0
        other = right[-rank] if rank <= len(right) else 0.0
        if mine != other:
            return -1 if mine < other else 1
    return 0


def compare_usages(left: Nullable, right: Nullable, total: Nullable) -> int:
    return compare_shares(shares(left, total), shares(right, total))


@pytest.mark.parametrize(
    ("resource", "total", "expected"),
    [
        (None, {"v": 10}, []),
        ({}, {"v": 10}, []),
        ({"v": 5, "m": 2}, {"v": 10, "m": 10}, [0.2, 0.5]),
        ({"v": 5, "m": 0}, {"v": 10}, [0.0, 0.5]),
        ({"v": 5}, None, [5.0]),
        ({"v": 5}, {"m": 10}, [5.0]),
        ({"v": 5}, {"v": 0}, [5.0]),
        ({"v": 0}, {"v": 0}, [0.0]),
        ({"v": -5, "m": 1}, {"v": 10, "m": 10}, [-0.5, 0.1]),
        ({"v": 20}, {"v": 10}, [2.0]),
    ],
)
def test_shares_ascend(resource: Nullable, total: Nullable, expected: list[float]) -> None:
    assert expected == shares(resource, total)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([], [], 0),
        ([0.5], [0.5], 0),
        ([0.1, 0.5], [0.2, 0.5], -1),
        ([0.9], [0.8, 0.8], 1),
        ([0.5], [0.0, 0.5], 0),
        ([0.5], [0.1, 0.5], -1),
        ([0.5], [-0.1, 0.5], 1),
        ([0.5], [-0.1, 0.0, 0.5], 1),
        ([], [0.0, 0.0], 0),
        ([], [0.0, 0.1], -1),
    ],
)
def test_compare_shares(left: list[float], right: list[float], expected: int) -> None:
    assert expected == compare_shares(left, right)
    assert -expected == compare_shares(right, left)


@pytest.mark.parametrize(
    ("left", "right", "total", "expected"),
    [
        ({"v": 5, "m": 5}, {"v": 5, "m": 4}, {"v": 10, "m": 10}, 1),
        ({"v": 5}, {"v": 5, "m": 0}, {"v": 10}, 0),
        ({"v": 5}, {"v": 5, "m": 1}, {"v": 10, "m": 10}, -1),
        ({"vcore": 8000, "memory": 1}, {"vcore": 1, "memory": 10**9}, None, -1),
        (None, {}, {"v": 10}, 0),
        (None, {"v": 0}, {"v": 10}, 0),
        (None, {"v": 1}, {"v": 10}, -1),
        (None, {"v": -1}, {"v": 10}, 1),
    ],
)
def test_usage_compares_by_dominant_share(
    left: Nullable, right: Nullable, total: Nullable, expected: int
) -> None:
    assert expected == compare_usages(left, right, total)
    assert -expected == compare_usages(right, left, total)


@pytest.mark.parametrize(
    ("allocated", "guaranteed", "fair_max", "expected"),
    [
        ({"v": 5, "m": 50}, {"v": 10}, {"v": 100, "m": 100}, 0.5),
        ({"v": 5, "m": 50}, {"v": 0}, {"m": 100}, 1.0),
        ({"v": 0, "m": 50}, {"v": 0}, {"m": 100}, 0.5),
        ({"v": 5}, {"v": -1}, None, 1.0),
        ({"g": 5}, {"v": 10}, {"m": 1}, 0.0),
        ({}, {"v": 10}, {"v": 10}, 0.0),
        (None, {"v": 10}, {"v": 10}, 0.0),
        ({"v": 20}, {"v": 10}, None, 2.0),
        ({"v": 20}, None, {"v": 10}, 2.0),
        ({"v": 20}, {"v": 0}, {"v": 10}, 1.0),
        ({"v": 20}, {}, {"v": 0}, 1.0),
        ({"v": 20}, None, None, 0.0),
        ({"v": -20, "m": 1}, {"v": 10, "m": 10}, None, 0.1),
        ({"v": -20}, {"v": 10}, None, 0.0),
        ({"v": -20}, {"v": 0}, None, 0.0),
    ],
)
def test_fair_share(
    allocated: Nullable, guaranteed: Nullable, fair_max: Nullable, expected: float
) -> None:
    assert expected == fair_share(allocated, guaranteed, fair_max)


@pytest.mark.parametrize(
    ("resource", "total", "expected"),
    [
        (None, None, ()),
        ({"v": 0}, {"v": 10}, ()),
        ({"v": 5, "g": 0, "m": 2}, {"v": 10, "m": 10}, (0.5, 0.2)),
    ],
)
def test_usage_key_descends_without_zeros(
    resource: Nullable, total: Nullable, expected: tuple[float, ...]
) -> None:
    assert expected == usage_key(resource, total)


def sign(left: tuple[float, ...], right: tuple[float, ...]) -> int:
    return (left > right) - (left < right)


@given(usages, usages, usages)
def test_usage_key_sorts_as_shares_compare(
    left: Nullable, right: Nullable, total: Nullable
) -> None:
    by_key = sign(usage_key(left, total), usage_key(right, total))
    assert compare_usages(left, right, total) == by_key


@given(share_lists, share_lists, share_lists)
def test_comparison_is_an_order(left: list[float], middle: list[float], right: list[float]) -> None:
    assert compare_shares(left, right) == -compare_shares(right, left)
    if compare_shares(left, middle) <= 0 and compare_shares(middle, right) <= 0:
        assert compare_shares(left, right) <= 0


@given(st.dictionaries(KINDS, COUNTS), usages)
def test_insertion_order_has_no_say(resource: Resource, total: Nullable) -> None:
    turned = dict(reversed(resource.items()))
    assert shares(resource, total) == shares(turned, total)
    assert fair_share(resource, total, None) == fair_share(turned, total, None)
