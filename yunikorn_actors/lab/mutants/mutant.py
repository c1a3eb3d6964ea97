"""One defect that can be switched on for a while: an edit of one function of the core.

The edit is a few words of the function's own source, so a mutant reads as the mistake that somebody
could make there, and everybody who calls the function gets the wrong one, wherever its name was
imported to. Nothing in the core knows of this. The code object is exchanged for as long as the
context lasts, and the original is put back whatever happens.
"""

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, NamedTuple

Target = Callable[..., Any] | property


class StaleMutant(Exception):  # noqa: N818 - it names what happened
    """The function has changed, and no longer contains the words that a mutant replaces."""


class Mutant(NamedTuple):
    id: str
    source: str
    """The entry of docs/reference/races.md, or the issue of Apache YuniKorn, that it comes from."""
    wrong: str
    """What is wrong, in one sentence."""
    where: Target
    """The function, method or property that is edited."""
    old: str
    new: str
    held_by: str = ""
    """The test that holds it, where the search does not find it, and why it does not."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Have the core make this mistake in the meantime."""
        function = function_of(self.where)
        original = function.__code__
        function.__code__ = self.code()
        try:
            yield
        finally:
            function.__code__ = original

    def code(self) -> CodeType:
        """Return the code of the function with the mistake in it."""
        function = function_of(self.where)
        lines, first = inspect.getsourcelines(function)
        source = textwrap.dedent("".join(lines))
        if source.count(self.old) != 1:
            name = f"{function.__module__}.{function.__qualname__}"
            raise StaleMutant(
                f"mutant {self.id}: {name} has {self.old!r} {source.count(self.old)} times, not "
                "once: edit the mutant, or replace it if its mistake cannot be made any more"
            )
        # Empty lines in front keep the numbers of the lines, so a traceback shows the place.
        text = "\n" * (first - 1) + source.replace(self.old, self.new)
        module = compile(text, inspect.getfile(function), "exec", dont_inherit=True)
        return next(
            found
            for found in module.co_consts
            if isinstance(found, CodeType) and found.co_name == function.__name__
        )


def function_of(target: Target) -> FunctionType:
    """Return the function behind a method or a property."""
    function = target.fget if isinstance(target, property) else target
    assert isinstance(function, FunctionType)
    return function
