"""Resource arithmetic: tables of worked examples."""

from collections.abc import Callable

import pytest

from yunikorn_actors.values import resource as res
from yunikorn_actors.values.resource import INT64_MAX, INT64_MIN, Resource

Nullable = Resource | None

# --- arithmetic -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "left", "right", "expected"),
    [
        (res.add, None, None, {}),
        (res.add, {"v": 1}, None, {"v": 1}),
        (res.add, None, {"v": 0}, {"v": 0}),
        (res.add, {"v": 1}, {"m": 2, "v": 3}, {"v": 4, "m": 2}),
        (res.add, {"v": INT64_MAX}, {"v": 1}, {"v": INT64_MAX}),
        (res.add, {"v": INT64_MIN}, {"v": -1}, {"v": INT64_MIN}),
        (res.sub, None, None, {}),
        (res.sub, {"v": 1}, None, {"v": 1}),
        (res.sub, None, {"v": 1}, {"v": -1}),
        (res.sub, {"v": 1}, {"m": 2, "v": 1}, {"v": 0, "m": -2}),
        (res.sub, {"v": INT64_MIN}, {"v": 1}, {"v": INT64_MIN}),
        (res.sub, {}, {"v": INT64_MIN}, {"v": INT64_MAX}),
        (res.sub_only_existing, None, {"v": 1}, None),
        (res.sub_only_existing, {"v": 1}, None, {"v": 1}),
        (res.sub_only_existing, {}, {"v": 1}, {}),
        (res.sub_only_existing, {"v": 0, "g": 2}, {"v": 1, "m": 1}, {"v": -1, "g": 2}),
        (res.sub_only_existing, {"v": INT64_MIN}, {"v": 1}, {"v": INT64_MIN}),
        (res.component_wise_min, {"v": 5}, {"m": 3}, {"v": 5, "m": 3}),
        (res.component_wise_min, {"v": 5, "m": 9}, {"m": 3}, {"v": 5, "m": 3}),
        (res.component_wise_min, None, {"v": 1}, {"v": 1}),
        (res.component_wise_min, {"v": 1}, None, {"v": 1}),
        (res.component_wise_min, None, None, None),
        (res.component_wise_min, {}, {"v": 1}, {"v": 1}),
        (res.component_wise_min, {"v": 0}, {"v": 1}, {"v": 0}),
    ],
)
def test_two_resources_combine(
    operation: Callable[[Nullable, Nullable], Nullable],
    left: Nullable,
    right: Nullable,
    expected: Nullable,
) -> None:
    assert expected == operation(left, right)


def test_pruned_drops_zeros_alone() -> None:
    expected = {"v": 1, "m": -1}
    assert expected == res.pruned({"v": 1, "g": 0, "m": -1})


# --- does it fit ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "amount", "room", "expected"),
    [
        (res.fits_in, {"v": 5, "g": 0}, {"v": 5}, True),
        (res.fits_in, {"g": 1}, {"v": 5}, False),
        (res.fits_in, {"v": 6}, {"v": 5}, False),
        (res.fits_in, {"v": 0}, {"v": -3}, True),
        (res.fits_in, {"v": -5}, {"v": -3}, True),
        (res.fits_in, {"v": -3}, {"v": -5}, True),
        (res.fits_in, {"v": 1}, {"v": -3}, False),
        (res.fits_in, {"v": 1}, None, False),
        (res.fits_in, {"v": 0}, None, True),
        (res.fits_in, {"v": 0}, {}, True),
        (res.fits_in, None, {"v": -1}, True),
        (res.fits_in, None, None, True),
        (res.fits_in_max_undef, {"g": 1}, {"v": 5}, True),
        (res.fits_in_max_undef, {"v": 6}, {"v": 5}, False),
        (res.fits_in_max_undef, {"v": 1}, None, True),
        (res.fits_in_max_undef, {"v": 1}, {}, True),
        (res.fits_in_max_undef, {"v": 1}, {"v": 0}, False),
        (res.fits_in_max_undef, {"v": 0}, {"v": -3}, True),
        (res.fits_in_max_undef, {"v": 1}, {"v": -3}, False),
        (res.fits_in_max_undef, None, {"v": -3}, True),
    ],
)
def test_an_amount_fits(
    statement: Callable[[Nullable, Nullable], bool],
    amount: Nullable,
    room: Nullable,
    expected: bool,
) -> None:
    assert expected is statement(amount, room)


@pytest.mark.parametrize(
    ("amount", "room", "expected"),
    [
        ({"v": 10, "m": 4}, {"v": 5}, 1.5),
        ({}, {"v": 5}, 0.0),
        (None, {"v": 5}, 0.0),
        ({"v": 3}, {"v": 5}, 0.0),
        ({"v": 5, "m": 8}, {"v": 2, "m": 4}, 1.1),
        ({"v": 5, "m": 1}, None, 2.0),
        ({"v": 5, "m": 0}, None, 2.0),
        ({"v": 5, "m": 0}, {}, 1.0),
        ({"v": 5, "m": -1}, {"v": -7, "m": -7}, 1.0),
        (None, None, 0.0),
    ],
)
def test_fit_in_score(amount: Nullable, room: Nullable, expected: float) -> None:
    assert expected == res.fit_in_score(amount, room)


# --- comparisons ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "left", "right", "expected"),
    [
        (res.equals, None, None, True),
        (res.equals, None, {}, False),
        (res.equals, {}, None, False),
        (res.equals, {}, {"v": 0}, True),
        (res.equals, {"v": 0}, {}, True),
        (res.equals, {"v": 1}, {"v": 1, "m": 0}, True),
        (res.equals, {"v": 1}, {"v": 1, "m": 2}, False),
        (res.equals, {"v": 1, "m": 2}, {"v": 1}, False),
        (res.equals, {"v": 1}, {"v": 2}, False),
        (res.equals_or_empty, None, None, True),
        (res.equals_or_empty, None, {}, True),
        (res.equals_or_empty, {"v": 0}, None, True),
        (res.equals_or_empty, {"v": 1}, None, False),
        (res.equals_or_empty, {"v": 1}, {"v": 1, "m": 0}, True),
        (res.equals_or_empty, {"v": 1}, {"v": 2}, False),
        (res.match_any, {"v": 0}, {"v": 5, "m": 1}, True),
        (res.match_any, {"v": 1}, {"m": 1}, False),
        (res.match_any, {}, {}, False),
        (res.match_any, None, {"v": 1}, False),
        (res.match_any, {"v": 1}, None, False),
    ],
)
def test_two_resources_are_alike(
    statement: Callable[[Nullable, Nullable], bool],
    left: Nullable,
    right: Nullable,
    expected: bool,
) -> None:
    assert expected is statement(left, right)


@pytest.mark.parametrize(
    ("resource", "zero", "empty", "negative", "above_zero"),
    [
        (None, True, True, False, False),
        ({}, True, True, False, False),
        ({"v": 0}, True, False, False, False),
        ({"v": 0, "m": 1}, False, False, False, True),
        ({"v": -1, "m": 1}, False, False, True, False),
        ({"v": -1}, False, False, True, False),
    ],
)
def test_one_resource_is(
    resource: Nullable,
    zero: bool,
    empty: bool,
    negative: bool,
    above_zero: bool,
) -> None:
    assert zero is res.is_zero(resource)
    assert empty is res.is_empty(resource)
    assert negative is res.has_negative(resource)
    assert above_zero is res.strictly_greater_than_zero(resource)


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (None, "unset"),
        ({}, "{}"),
        ({"vcore": 1, "memory": 5}, "{memory: 5, vcore: 1}"),
        ({"vcore": 0}, "{vcore: 0}"),
    ],
)
def test_describe(resource: Nullable, expected: str) -> None:
    assert expected == res.describe(resource)


# --- ledgers --------------------------------------------------------------------------------------


def test_a_ledger_counts_beyond_int64_and_comes_back() -> None:
    start = {"v": INT64_MAX, "m": 0}
    ledger = start.copy()
    res.charge(ledger, {"v": 7, "m": 1})
    res.discharge(ledger, {"v": 7, "m": 1})
    assert start == ledger


@pytest.mark.parametrize(
    ("entry", "amount", "exact"),
    [
        (res.charge, {"v": INT64_MAX, "m": 1}, {"v": INT64_MAX + 7, "m": 1, "g": 0}),
        (res.discharge, {"v": 1}, {"v": 6, "g": 0}),
        (res.discharge, {"v": 7}, {"v": 0, "g": 0}),
        (res.discharge, {"m": 1}, {"v": 7, "m": -1, "g": 0}),
        (res.charge, {}, {"v": 7, "g": 0}),
    ],
)
def test_ledger_entries_are_exact(
    entry: Callable[[Resource, Resource], None], amount: Resource, exact: Resource
) -> None:
    ledger = {"v": 7, "g": 0}
    entry(ledger, amount)
    assert exact == ledger


def test_what_leaves_the_books_is_clamped_at_both_ends() -> None:
    expected = {"v": INT64_MAX, "m": INT64_MIN, "g": 0}
    assert expected == res.saturated({"v": INT64_MAX + 7, "m": INT64_MIN - 7, "g": 0})
