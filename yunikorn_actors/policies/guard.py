"""Calls of a policy: it is a program of others, and whatever it does becomes a text here.

What it raises, and what it returns in place of a key, a score or a hold, stops nobody.
"""

import inspect
from collections.abc import Callable
from operator import index
from typing import Any, Final, Protocol, TypeVar

from yunikorn_actors.policies.inputs import Hold
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.durations import NEVER_NS

_T = TypeVar("_T")


class Unfit(Exception):
    """A policy returned what is no key, score, hold or devices."""


class FromOutside(BaseException):
    """Raised into a call from outside, to end it: no fault of the policy."""


OUTSIDE: Final = (KeyboardInterrupt, FromOutside)
"""What goes through. All else stops nobody, also what is no Exception: `sys.exit`, a panic of an
extension module, the cancelling of a task."""


def tried(what: str, call: Callable[..., _T], *given: object) -> tuple[_T | None, str]:
    """Return what the call returns; else what went wrong, in words."""
    try:
        return call(*given), ""
    except BaseException as error:
        if isinstance(error, OUTSIDE):
            raise
        return None, fault_of(what, error)


def fault_of(what: str, error: BaseException) -> str:
    return f"{what}: {error}" if isinstance(error, Unfit) else f"{what} raised {shown(error)}"


class Watch(Protocol):
    """Makes a call of a policy as `tried` does."""

    def __call__(
        self, queue: str, policy: str, method: str, call: Callable[..., _T], /, *given: object
    ) -> tuple[_T | None, str]: ...


def unwatched(
    _: str, __: str, what: str, call: Callable[..., _T], /, *given: object
) -> tuple[_T | None, str]:
    return tried(what, call, *given)


def shown(value: object, most: int = 300) -> str:
    """Write it down for a reader; it may be anything, even what cannot be written."""
    try:
        return repr(value)[:most]
    except BaseException as error:
        if isinstance(error, OUTSIDE):
            raise
        return f"a {type(value).__name__} that cannot be shown"


def key_of(value: object) -> Any:  # noqa: ANN401 - a number, a text, or a tuple of such
    """Return a key that compares with others of its kind; raise Unfit for anything else.

    What derives from these types may compare as it likes, so it is made plain.
    """
    kind = type(value)
    if kind is int or kind is str:
        return value
    if isinstance(value, tuple):
        return tuple([key_of(part) for part in value])
    if isinstance(value, str):
        return str.__str__(value)
    try:
        return _number_of(value)
    except TypeError:
        _end(value)
        what = f"the key is {shown(value, 100)}: give a number, a text, or a tuple of such"
        raise Unfit(what) from None


NUMBER: Final = "number"
Kind = str | tuple["Kind", ...]


def kind_of(key: object) -> Kind:
    """Tell keys that compare from others; `key_of` has made them."""
    if isinstance(key, str):
        return "text"
    if isinstance(key, tuple):
        return tuple([kind_of(part) for part in key])
    return NUMBER


def common_kind(one: Kind, other: Kind) -> Kind | None:
    """Return what keys of both kinds are, the longer of two tuples; None if they do not compare."""
    if one == other:
        return one
    if isinstance(one, str) or isinstance(other, str):
        return None
    both = [common_kind(*parts) for parts in zip(one, other, strict=False)]
    if None in both:
        return None
    longer = one if len(one) > len(other) else other
    return (*both, *longer[len(both) :])  # type: ignore[arg-type] # none of them is None


def score_of(value: object) -> float:
    try:
        return float(_number_of(value))
    except TypeError:
        _end(value)
        raise Unfit(f"the score is {shown(value, 100)}: give a number") from None


def devices_of(value: object) -> Devices | None:
    if value is None:
        return None
    if not isinstance(value, tuple) or not all(type(device) is int for device in value):
        _end(value)
        raise Unfit(f"the devices are {shown(value, 100)}: give None or a tuple of numbers")
    return value


def hold_of(value: object) -> Hold | None:
    """Return the answer of a gate, if it is one."""
    if value is None:
        return None
    if not issubclass(type(value), Hold):
        _end(value)
        raise Unfit(f"the answer is {shown(value, 100)}: give None or a Hold")
    assert isinstance(value, Hold)
    kinds = (type(value.reason), type(value.until_ns), type(value.ends_pass))
    if kinds != (str, int, bool):
        raise Unfit(
            f"the answer is {shown(value, 100)}: its reason is a text, until_ns an int, and "
            "ends_pass True or False"
        )
    # Both stand in messages, which recordings and other processes read.
    if abs(value.until_ns) > NEVER_NS:
        raise Unfit(f"until_ns is {shown(value.until_ns, 40)}: give one up to NEVER_NS")
    if not value.reason.isascii():
        value.reason.encode()
    return value


def _number_of(value: object) -> int | float:
    if isinstance(value, float):
        number = float.__float__(value)
        if number != number:  # noqa: PLR0124 - NaN alone is not equal to itself
            raise Unfit("it is NaN, which has no place in an order")
        return number
    return index(value)  # type: ignore[arg-type] # a TypeError is what is wanted


def _end(value: object) -> None:
    """What was written with `async def` is not awaited: it ends here, and warns of nothing."""
    if inspect.iscoroutine(value):
        value.close()
