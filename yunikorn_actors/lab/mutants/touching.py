"""Which mutants a run would touch, seen in one run of the core as it is.

Where a mutant has another condition or value, both are worked out and the right one is used; where
it has other statements, coming there is enough. While nothing is touched the mutated core does what
the right one does: a run that touches a mutant nowhere cannot find it, and need not be played.
"""

import ast
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple, Protocol

from yunikorn_actors.lab.mutants.mutant import (
    Target,
    code_of,
    exchanged,
    function_of,
    source_of,
)

_COMPARE: Final = "_compared_with_mutant"
"""What a watched function calls instead of working out a value by itself."""
_VALUES: Final[dict[type[ast.stmt], str]] = {
    ast.If: "test",
    ast.While: "test",
    ast.For: "iter",
    ast.Return: "value",
    ast.Assign: "value",
    ast.AugAssign: "value",
}
"""The expression of a statement that may be worked out twice, as it changes nothing."""

_NEVER: Final = ast.Constant(value=False)
_BLOCKS: Final = ("body", "orelse")


class Edited(Protocol):
    """A function of the core, and another version of it."""

    @property
    def id(self) -> str: ...

    @property
    def where(self) -> Target: ...

    def tree(self) -> ast.Module: ...


Harmless = Callable[[ast.expr], bool]
"""Says of an expression whether it may be worked out once more."""


class _Change(NamedTuple):
    """What a mutant has in the place of something in the original."""

    mutant: str
    place: ast.stmt
    instead: ast.expr
    """The other expression of it, or whether the mutant does the same here."""
    is_value: bool = False


class Watch:
    """Can watch for some mutants; several of them may be in one function."""

    def __init__(self, mutants: Iterable[Edited], is_harmless: Harmless = lambda _: True) -> None:
        """To come to an expression that is not harmless is taken for a difference."""
        self._is_harmless = is_harmless
        self._watched: dict[FunctionType, list[Edited]] = {}
        for mutant in mutants:
            self._watched.setdefault(function_of(mutant.where), []).append(mutant)
        self._codes = {it: self._code(it) for it in self._watched}

    def forget(self, ids: Container[str]) -> None:
        """Watch no more for these."""
        for function, own in [*self._watched.items()]:
            left = [it for it in own if it.id not in ids]
            if not left:
                del self._watched[function], self._codes[function]
            elif len(left) < len(own):
                self._watched[function] = left
                self._codes[function] = self._code(function)

    def _code(self, function: FunctionType) -> CodeType:
        return _watched(function, self._watched[function], self._is_harmless)

    @contextmanager
    def noting(self) -> Iterator[set[str]]:
        """Gather the ids of the mutants that are touched meanwhile."""
        touched: set[str] = set()
        compare = _comparing(touched.add)
        with ExitStack() as stack:
            for function, code in self._codes.items():
                function.__globals__[_COMPARE] = compare
                stack.callback(function.__globals__.pop, _COMPARE, None)
                stack.enter_context(exchanged(function, code))
            yield touched


def _watched(function: FunctionType, mutants: Sequence[Edited], is_harmless: Harmless) -> CodeType:
    """Return the function as it is, but that it compares itself with these mutants."""
    tree = ast.parse(source_of(function))
    changes = [
        change._replace(mutant=mutant.id)
        if is_harmless(change.instead)
        else _Change(mutant.id, change.place, _NEVER)
        for mutant in mutants
        for change in _changes(tree.body, mutant.tree().body)
    ]
    return code_of(function, ast.fix_missing_locations(_Watching(changes).visit(tree)))


def _comparing(note: Callable[[str], None]) -> Callable[[str, Any, Callable[[], Any]], Any]:
    def compare(mutant: str, right: Any, wrong: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            other = wrong()
            is_same = right is other or right == other
        except Exception:  # noqa: BLE001 - the mutant would raise here
            is_same = False
        if not is_same:
            note(mutant)
        return right

    return compare


# -- what differs


def _changes(ours: Sequence[ast.stmt], theirs: Sequence[ast.stmt]) -> Iterator[_Change]:
    """Compare two blocks; what was left out or put in is a change of the statement there."""
    start = 0
    while start < min(len(ours), len(theirs)) and _is_same(ours[start], theirs[start]):
        start += 1
    if len(ours) == len(theirs):
        for one, other in zip(ours[start:], theirs[start:], strict=True):
            yield from _changes_of(one, other)
    else:
        yield _Change("", ours[min(start, len(ours) - 1)], _NEVER)


def _changes_of(one: ast.stmt, other: ast.stmt) -> Iterator[_Change]:
    """Go down to where two statements differ, as far as only blocks and values do."""
    field = _VALUES.get(type(one), "")
    if _is_same(one, other):
        return
    if isinstance(other, ast.If) and _is_block_of(one, other):
        yield _Change("", one, other.test)
        return
    if _frame(one) != _frame(other):
        yield _Change("", one, _NEVER)
        return
    if field and not _is_same(getattr(one, field), getattr(other, field)):
        yield _Change("", one, getattr(other, field), is_value=True)
    for ours, theirs in zip(_blocks(one), _blocks(other), strict=True):
        yield from _changes(ours, theirs)


def _is_block_of(one: ast.stmt, other: ast.If) -> bool:
    """Whether the mutant has the same statement under a condition."""
    return len(other.body) == 1 and not other.orelse and _is_same(one, other.body[0])


def _frame(statement: ast.stmt) -> str:
    """Return all of a statement but for what is looked into."""
    frame = copy(statement)
    for name in _BLOCKS:
        setattr(frame, name, bool(getattr(frame, name, ())))
    field = _VALUES.get(type(frame), "")
    if field:
        setattr(frame, field, None)
    return ast.dump(frame)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    return (getattr(statement, name, []) for name in _BLOCKS)


def _is_same(one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(one) == ast.dump(other)


class _Watching(ast.NodeTransformer):
    """Puts comparisons where the changes are."""

    def __init__(self, changes: Sequence[_Change]) -> None:
        self._changes = changes

    def visit(self, node: ast.AST) -> Any:  # noqa: ANN401 - a statement becomes several
        self.generic_visit(node)
        comings: list[ast.stmt] = []
        for mutant, place, instead, is_value in self._changes:
            if place is node and is_value:
                _compare_value(mutant, place, instead)
            elif place is node:
                come = _compared(mutant, ast.Constant(value=True), _truth(instead))
                comings.append(ast.Expr(come))
        return [*comings, node] if comings else node


def _compare_value(mutant: str, place: ast.stmt, instead: ast.expr) -> None:
    field = _VALUES[type(place)]
    value = getattr(place, field)
    if field == "test":
        value, instead = _truth(value), _truth(instead)
    setattr(place, field, _compared(mutant, value, instead))


def _truth(value: ast.expr) -> ast.expr:
    """Only whether it is true matters."""
    return ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), value))


def _compared(mutant: str, right: ast.expr, wrong: ast.expr) -> ast.Call:
    nothing = ast.arguments([], [], None, [], [], None, [])
    asked = ast.Name(_COMPARE, ast.Load())
    return ast.Call(asked, [ast.Constant(mutant), right, ast.Lambda(nothing, wrong)], [])
