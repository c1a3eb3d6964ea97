"""The laws of resource arithmetic, over small numbers that meet often and the ends of int64."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from yunikorn_actors.values import resource as res
from yunikorn_actors.values.resource import INT64_MAX, INT64_MIN, Resource

Nullable = Resource | None

KINDS = st.sampled_from(["g", "m", "v"])
INT64 = st.integers(INT64_MIN, INT64_MAX)
SMALL = st.integers(-5, 5)
COUNTS = st.dictionaries(KINDS, st.integers(0, 5))
resources = st.dictionaries(KINDS, SMALL | INT64)
nullable = st.none() | resources


@given(resources, st.lists(resources))
def test_discharge_undoes_charge_in_any_order(start: Resource, amounts: list[Resource]) -> None:
    ledger = start.copy()
    for amount in amounts:
        res.charge(ledger, amount)
    for amount in amounts:
        res.discharge(ledger, amount)
    assert res.equals(start, ledger)


@given(resources, resources)
def test_a_saturated_charge_is_an_addition(total: Resource, amount: Resource) -> None:
    ledger = total.copy()
    res.charge(ledger, amount)
    assert res.add(total, amount) == res.saturated(ledger)


@given(nullable, nullable)
def test_addition_commutes(left: Nullable, right: Nullable) -> None:
    assert res.add(left, right) == res.add(right, left)


@given(st.dictionaries(KINDS, SMALL), st.dictionaries(KINDS, SMALL))
def test_subtraction_undoes_addition(left: Resource, right: Resource) -> None:
    assert res.equals(left, res.sub(res.add(left, right), right))


@given(nullable, nullable)
@example({"v": INT64_MAX}, {"v": INT64_MAX})
@example({"v": INT64_MIN}, {"v": INT64_MIN})
def test_arithmetic_stays_within_int64(left: Nullable, right: Nullable) -> None:
    results = (
        res.add(left, right),
        res.sub(left, right),
        res.sub_only_existing(left, right),
    )
    for result in results:
        assert res.saturated(result or {}) == (result or {})


TWO_ARGUMENTS = [
    res.add,
    res.sub,
    res.sub_only_existing,
    res.component_wise_min,
]


@pytest.mark.parametrize("operation", TWO_ARGUMENTS)
@given(left=nullable, right=nullable)
def test_operations_return_new_resources_and_leave_arguments_alone(
    operation: Callable[[Nullable, Nullable], Nullable], left: Nullable, right: Nullable
) -> None:
    before = repr((left, right))
    result = operation(left, right)
    assert before == repr((left, right))
    assert result is None or (result is not left and result is not right)


@given(resources, resources)
def test_subtraction_from_existing_types_keeps_the_types_of_the_base(
    base: Resource, delta: Resource
) -> None:
    full = res.sub(base, delta)
    kept = res.sub_only_existing(base, delta)
    assert {kind: full[kind] for kind in base} == kept


@given(resources, resources)
def test_min_is_the_greatest_lower_bound_where_limits_are_named(
    left: Resource, right: Resource
) -> None:
    lower = res.component_wise_min(left, right)
    assert lower == res.component_wise_min(right, left)
    for kind, quantity in lower.items():
        named = [side[kind] for side in (left, right) if kind in side]
        assert min(named) == quantity
    assert left.keys() | right.keys() == lower.keys()


@given(resources, resources, resources)
def test_what_fits_under_both_limits_fits_under_their_min(
    amount: Resource, left: Resource, right: Resource
) -> None:
    both = res.fits_in_max_undef(amount, left) and res.fits_in_max_undef(amount, right)
    assert both is res.fits_in_max_undef(amount, res.component_wise_min(left, right))


@given(COUNTS, COUNTS)
def test_what_fits_leaves_nothing_negative(amount: Resource, room: Resource) -> None:
    assert res.fits_in(amount, room) is not res.has_negative(res.sub(room, amount))


@given(nullable, nullable)
def test_fitting_scores_zero(amount: Nullable, room: Nullable) -> None:
    fits = res.fits_in(amount, room)
    assert fits is (res.fit_in_score(amount, room or {}) == 0)


@given(nullable, nullable)
def test_readings_of_room_grow_stricter(amount: Nullable, room: Nullable) -> None:
    if res.fits_in(amount, room):
        assert res.fits_in_max_undef(amount, room)


@given(nullable)
def test_above_zero_is_not_zero_and_owes_nothing(resource: Nullable) -> None:
    amounts = [] if resource is None else resource.values()
    above = any(it > 0 for it in amounts) and all(it >= 0 for it in amounts)
    assert above is res.strictly_greater_than_zero(resource)


@given(resources)
def test_pruning_changes_no_comparison(resource: Resource) -> None:
    assert res.equals(resource, res.pruned(resource))
    assert res.is_zero(resource) is res.is_empty(res.pruned(resource))


@given(COUNTS, COUNTS)
def test_insertion_order_has_no_say_in_the_score(amount: Resource, room: Resource) -> None:
    turned = dict(reversed(amount.items()))
    assert res.fit_in_score(amount, room) == res.fit_in_score(turned, room)
