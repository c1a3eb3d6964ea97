"""Calls the functions of the inner parts with values that are drawn by the types of arguments.

Worlds and `drawn_arguments.py` call few functions directly. Here each function and method of state,
planning, machines and of what reads them is called: with objects of the run, with copies that are
changed in one place, and with made up ones.
"""

import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Generator, Iterator
from functools import cache
from hashlib import blake2b
from importlib import import_module
from itertools import islice
from types import FunctionType
from typing import Any, Final, NamedTuple

from yunikorn_actors.lab.machine_contents import plain
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.made_values import PACKAGE, CannotMake, Values, hints_of, is_inner

_SHARE: Final = 8
"""In one world each of so many functions is called."""
_TIMES: Final = 4
"""So often."""
_LINES: Final = 100_000
"""Steps of Python after which a call is given up: what is made up may have it go round for ever."""
_OF_THE_COMPUTER: Final = frozenset({"policies.registry.installed"})
"""What they return is not for this package to say."""
_ITEMS: Final = 20


_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")


class _Call(NamedTuple):
    name: str
    function: Any
    of: dict[str, Any]
    """The types of its arguments, by their names."""


class _Endless(BaseException):
    pass


_GIVEN_UP: Final = ascii(_Endless.__name__)


@cache
def _calls() -> tuple[_Call, ...]:
    found: list[_Call] = []
    for info in pkgutil.walk_packages(import_module(PACKAGE).__path__, f"{PACKAGE}."):
        if is_inner(info.name):
            room = info.name.partition(".")[2]
            try:
                module = import_module(info.name)
            except ImportError:
                continue
            for name, it in sorted(vars(module).items()):
                if getattr(it, "__module__", "") == info.name:
                    found += _of(f"{room}.{name}", it)
    return tuple(found)


def _of(name: str, thing: Any) -> Iterator[_Call]:  # noqa: ANN401 - whatever a module has
    if isinstance(thing, type):
        for own, it in sorted(vars(thing).items()):
            it = getattr(it, "fget", it)  # noqa: PLW2901 - of a property
            if isinstance(it, FunctionType) and not own.startswith("__"):
                yield from _of_function(f"{name}.{own}", it, {"self": thing})
    elif isinstance(function := inspect.unwrap(thing) if callable(thing) else None, FunctionType):
        yield from _of_function(name, function, {})


def _of_function(name: str, function: FunctionType, first: dict[str, Any]) -> Iterator[_Call]:
    hints, known = hints_of(function), inspect.signature(function).parameters
    of = {it: hints.get(it, first.get(it)) for it in known}
    is_plain = not inspect.iscoroutinefunction(function) and not inspect.isasyncgenfunction(
        function
    )
    if is_plain and None not in of.values() and name not in _OF_THE_COMPUTER:
        yield _Call(name, function, of)


def made_calls(values: Values, draw: Draw) -> Generator[tuple[str, Any], None, bool]:
    """Call some of them; yield what each returns, or of what kind the error is.

    Return whether each has ended. One that was given up has left its objects in between, at a step
    that depends on what this process had computed and kept before: nothing is called after it.
    """
    chosen, number = draw.number(_SHARE), draw.number(1 << 30)
    for call in _calls():
        # By its name, so that another function that comes or goes changes nothing here.
        of_name = int.from_bytes(blake2b(call.name.encode(), digest_size=4).digest(), "big")
        if of_name % _SHARE != chosen:
            continue
        values.draw = Draw(of_name, number)
        found = [*_outcomes(call, values)]
        if found:
            yield call.name, found
        if _GIVEN_UP in found:
            return False
    return True


def _outcomes(call: _Call, values: Values) -> Iterator[str]:
    for _ in range(_TIMES):
        try:
            args, named = values.arguments(call.function, call.of)
        except (CannotMake, TypeError, ValueError, LookupError, AttributeError, RecursionError):
            continue
        outcome = in_words(_outcome(call.function, args, named))
        yield outcome
        if outcome == _GIVEN_UP:
            return


def in_words(value: object) -> str:
    """Write what an object of the core keeps."""
    return in_text(plain(value))


def in_text(value: object) -> str:
    """Write it without what another process has elsewhere."""
    return _ADDRESS.sub("", ascii(value))


def _outcome(function: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> Any:  # noqa: ANN401
    left = _LINES

    def counted(*_: Any) -> Any:  # noqa: ANN401 - itself, as long as it is to be called
        nonlocal left
        left -= 1
        if left < 0:
            raise _Endless
        return counted

    former = sys.gettrace()
    sys.settrace(counted)
    try:
        found = function(*args, **named)
        return [*islice(found, _ITEMS)] if isinstance(found, Iterator) else found
    except (Exception, SystemExit, _Endless) as error:  # noqa: BLE001 - each in its own way
        return type(error).__name__
    finally:
        sys.settrace(former)
