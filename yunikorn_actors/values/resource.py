"""Quantities of resource types, and the arithmetic the whole core agrees on.

A resource is a sparse dictionary from type name to quantity. Three situations differ: `None`
(not set), a type that is absent, and a type that is present with 0. A limit reads
absent as "no limit", a demand or a usage reads it as 0: each function here says which it takes.

Values are immutable by convention: every function returns a new dictionary. Two exceptions,
`charge` and `discharge`, write to a ledger that has one owner. Ledgers are exact while everything
else clamps at the ends of int64; `saturated` is the door between the two worlds.

The hot path of the scheduler runs through this module, hence plain loops over plain dictionaries.
Arguments are taken to lie within int64, except ledgers, and no argument is checked.
"""

from functools import lru_cache
from typing import Final, TypeAlias, TypeVar

Resource: TypeAlias = dict[str, int]

INT32_MAX: Final = 2**31 - 1
INT32_MIN: Final = -(2**31)
INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

# What is certainly there stays certainly there, for the type checker too.
Maybe = TypeVar("Maybe", Resource, Resource | None)


def _clamped(quantity: int) -> int:
    return max(INT64_MIN, min(INT64_MAX, quantity))


def _copied(resource: Maybe) -> Maybe:
    return None if resource is None else resource.copy()


# --- one object for equal amounts -----------------------------------------------------------------


def shared(resource: Resource) -> Resource:
    """Return the object that stands for all amounts equal to these.

    A thousand queues or users have few different limits, and their asks few sizes. A caller that
    asks about one after the other then finds amounts that are near in memory still, and tells that
    two are equal without a look at them.
    """
    return _shared(tuple(resource.items()))


@lru_cache(maxsize=1024)
def _shared(entries: tuple[tuple[str, int], ...]) -> Resource:
    return dict(entries)


# --- arithmetic -----------------------------------------------------------------------------------


def add(left: Resource | None, right: Resource | None) -> Resource:
    """Add over the union of types; None adds nothing."""
    out = {} if left is None else left.copy()
    if right is None:
        return out
    for kind, quantity in right.items():
        value = out.get(kind, 0) + quantity
        out[kind] = value if INT64_MIN <= value <= INT64_MAX else _clamped(value)
    return out


def sub(left: Resource | None, right: Resource | None) -> Resource:
    """Subtract over the union of types; the result may be negative."""
    out = {} if left is None else left.copy()
    if right is None:
        return out
    for kind, quantity in right.items():
        value = out.get(kind, 0) - quantity
        out[kind] = value if INT64_MIN <= value <= INT64_MAX else _clamped(value)
    return out


def sub_only_existing(base: Maybe, delta: Resource | None) -> Maybe:
    """Subtract from the types of base alone, so that what is unlimited stays unlimited."""
    if base is None or delta is None:
        return _copied(base)
    out = base.copy()
    for kind, quantity in base.items():
        if kind in delta:
            value = quantity - delta[kind]
            out[kind] = value if INT64_MIN <= value <= INT64_MAX else _clamped(value)
    return out


def component_wise_min(left: Maybe, right: Maybe) -> Maybe:
    """Combine two limits: a type that one of them does not name is limited by the other alone."""
    if left is None or right is None:
        return _copied(right if left is None else left)
    out = left.copy()
    for kind, quantity in right.items():
        if kind not in out or quantity < out[kind]:
            out[kind] = quantity
    return out


def pruned(resource: Resource) -> Resource:
    """Drop the types with quantity 0."""
    return {kind: quantity for kind, quantity in resource.items() if quantity}


# --- ledgers --------------------------------------------------------------------------------------


def charge(total: Resource, amount: Resource) -> None:
    """Add amount to a ledger, in place and exactly.

    Ledgers do not saturate: a book that once clamped has forgotten by how much, and what is given
    back later would leave it short for ever. Call `saturated` where an amount leaves the books.
    """
    for kind, quantity in amount.items():
        total[kind] = total.get(kind, 0) + quantity


def discharge(total: Resource, amount: Resource) -> None:
    """Take amount off a ledger, in place and exactly: the inverse of `charge`.

    The types stay, with 0 when nothing is left of them.
    """
    for kind, quantity in amount.items():
        total[kind] = total.get(kind, 0) - quantity


def saturated(resource: Resource) -> Resource:
    """Clamp each quantity of a ledger to int64, for everyone outside the books."""
    out = resource.copy()
    for kind, quantity in resource.items():
        if not INT64_MIN <= quantity <= INT64_MAX:
            out[kind] = _clamped(quantity)
    return out


# --- does it fit ----------------------------------------------------------------------------------


def fits_in(amount: Resource | None, room: Resource | None) -> bool:
    """Fit into what there is: no room of a type that room does not name, or owes.

    A demand of 0 or less always fits.
    """
    if amount is None:
        return True
    if room is None:
        room = {}
    for kind, wanted in amount.items():  # noqa: SIM110 - a generator costs more than the loop
        if wanted > room.get(kind, 0) and wanted > 0:
            return False
    return True


def fits_in_max_undef(amount: Resource | None, room: Resource | None) -> bool:
    """Fit under a limit: a type that room does not name is unlimited, an owed one has no room."""
    if amount is None or room is None:
        return True
    for kind, wanted in amount.items():
        if wanted > room.get(kind, wanted) and wanted > 0:
            return False
    return True


def fit_in_score(amount: Resource | None, room: Resource | None) -> float:
    """Grade how badly amount misses room, from 0.0 (fits) to the number of types; lower is better.

    Without any room each type counts in full, even one of which nothing is wanted.
    """
    if amount is None:
        return 0.0
    if room is None:
        return float(len(amount))
    score = 0.0
    for kind in sorted(amount):  # float additions do not commute in their last bit
        wanted, free = amount[kind], max(0, room.get(kind, 0))
        if wanted > free:
            score += (wanted - free) / wanted
    return score


# --- comparisons ----------------------------------------------------------------------------------


def equals(left: Resource | None, right: Resource | None) -> bool:
    """Compare with absent as 0; None equals None and nothing else, not even an empty resource."""
    if left is None or right is None:
        return left is right
    for kind, quantity in left.items():
        if quantity != right.get(kind, 0):
            return False
    for kind, quantity in right.items():  # noqa: SIM110 - a generator costs more than the loop
        if quantity and kind not in left:
            return False
    return True


def equals_or_empty(left: Resource | None, right: Resource | None) -> bool:
    """Compare as `equals`, with None, empty and all zeros taken for the same."""
    return (is_zero(left) and is_zero(right)) or equals(left, right)


def match_any(left: Resource | None, right: Resource | None) -> bool:
    """Tell whether both name a type, whatever its quantities."""
    if left is None or right is None:
        return False
    return not left.keys().isdisjoint(right)


def is_zero(resource: Resource | None) -> bool:
    return resource is None or not any(resource.values())


def is_empty(resource: Resource | None) -> bool:
    return not resource


def has_negative(resource: Resource | None) -> bool:
    return resource is not None and min(resource.values(), default=0) < 0


def strictly_greater_than_zero(resource: Resource | None) -> bool:
    """Tell whether something is above zero and nothing below."""
    return not is_zero(resource) and not has_negative(resource)


# --- text -----------------------------------------------------------------------------------------


def describe(resource: Resource | None) -> str:
    """Write a resource for people: types sorted, None as `unset`."""
    if resource is None:
        return "unset"
    return "{" + ", ".join(f"{kind}: {resource[kind]}" for kind in sorted(resource)) + "}"
