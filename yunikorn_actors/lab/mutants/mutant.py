"""One defect that can be switched on for a while: an edit of one function of the core.

The edit is a few words of the function's own source, so a mutant reads as the mistake that one
could make there, and everybody who calls the function gets the wrong one, wherever its name was
imported to. Nothing in the core knows of this. The code object is exchanged for as long as the
context lasts, and the original is put back whatever happens.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pkgutil import resolve_name
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

Target = Callable[..., Any] | property | str
"""Of what lies outside the machines the name, as `service.read.replica:Book.take`: the laboratory
does not depend on it."""


class Kind(StrEnum):
    """What kind of mistake it is, in the order of the page."""

    ORDER = "order of messages"
    NOTIFIED_WRONGLY = "notified wrongly"
    NOT_NOTIFIED = "not notified"
    BOUND = "bound reached"
    MANAGERS = "managers mixed up"
    QUOTA = "quota and limit"
    GUARANTEE = "guarantee"
    TIMERS = "timers"
    GANG = "gangs"
    PLANNER = "planner"
    REQUEST = "requests"
    JOURNAL = "journal"
    EVENTS = "event records"
    READ = "read side"
    CLUSTER = "cluster"
    OPERATORS = "operators"


UNPLAYED: Final = frozenset({Kind.EVENTS, Kind.READ, Kind.CLUSTER, Kind.OPERATORS})
"""No case has these parts: drawn worlds have them, and tests show what is wrong there."""


class StaleMutant(Exception):
    """The function has changed, and no longer contains the words that a mutant replaces."""


class Mutant(NamedTuple):
    id: str
    source: str
    """Where it comes from: an entry of docs/reference/races.md, an issue of Apache YuniKorn, or the
    slip that it is an example of."""
    wrong: str
    """What is wrong, in one sentence."""
    where: Target
    """The function, method or property that is edited."""
    old: str
    new: str
    held_by: str = ""
    """The test that fails with it, where the search does not find it."""
    unseen: str = ""
    """Why the search does not find it."""
    kind: Kind = Kind.ORDER

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Have the core make this mistake in the meantime."""
        with exchanged(function_of(self.where), self.code()):
            yield

    def code(self) -> CodeType:
        """Return the code of the function with the mistake in it."""
        return code_of(function_of(self.where), self.tree())

    def tree(self) -> ast.Module:
        """Return the function with the mistake in it."""
        function = function_of(self.where)
        text = source_of(function)
        if text.count(self.old) != 1:
            name = f"{function.__module__}.{function.__qualname__}"
            raise StaleMutant(
                f"mutant {self.id}: {name} has {self.old!r} {text.count(self.old)} times, not "
                "once: edit the mutant, or replace it if its mistake cannot be made any more"
            )
        return ast.parse(text.replace(self.old, self.new))


def function_of(target: Target) -> FunctionType:
    """Return the function behind a name, a method or a property."""
    if isinstance(target, str):
        target = resolve_name(f"yunikorn_actors.{target}")
    function = target.fget if isinstance(target, property) else target
    assert isinstance(function, FunctionType)
    return function


def source_of(function: FunctionType) -> str:
    return textwrap.dedent(inspect.getsource(function))


def code_of(function: FunctionType, tree: ast.Module) -> CodeType:
    """Compile another version of a function; a traceback shows the place of the one that is."""
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    module = compile(tree, inspect.getfile(function), "exec", dont_inherit=True)
    return next(
        found
        for found in module.co_consts
        if isinstance(found, CodeType) and found.co_name == function.__name__
    )


@contextmanager
def exchanged(function: FunctionType, code: CodeType) -> Iterator[None]:
    """Have a function do something else in the meantime, wherever its name was imported to."""
    original = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = original
