"""Edits of functions that a program makes: the slips of a tired engineer, anywhere in the core.

Nobody chose them and nobody says what is wrong with them, so they are no part of the corpus. They
are a measure: a world in which many of them make a difference is one in which much of the core is
at work.
"""

import ast
import inspect
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from pkgutil import walk_packages
from types import FunctionType, ModuleType
from typing import Final, NamedTuple, TypeGuard

from yunikorn_actors.lab.case import PACKAGE
from yunikorn_actors.lab.mutants.mutant import function_of, source_of
from yunikorn_actors.lab.schedules.random_draw import Draw

ROOMS: Final = ("state", "planning", "machines", "messages", "policies", "config", "core", "values")
"""Of the package: where the core decides."""
_PACKAGE: Final = __package__.partition(".")[0]
_NOT_PLAYED: Final = ("__repr__", "__str__")
_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_SIGNS: Final[dict[type[ast.operator], type[ast.operator]]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_OTHER_END: Final = {"min": "max", "max": "min"}
_TAKING: Final = ("pop", "discard", "remove")
_ORDERS: Final = ("sorted", "reversed")
_SMALL: Final = 100
"""A number up to it is a count or a place rather than a size."""
_EDITS_MIN: Final = 2
_EDITS_OF: Final = 8
"""Of so many that can be made of a function one more is drawn."""
_UNCHANGED: Final = (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments)
"""How a refusal is worded, and what parameters there are."""
_UNCHANGED_FIELDS: Final = ("decorator_list", "annotation", "returns")


class Edit(NamedTuple):
    """One of the edits that can be made of a function."""

    where: str
    number: int

    @property
    def id(self) -> str:
        return f"{self.where} {self.number}"

    def tree(self) -> ast.Module:
        """Return the function with the mistake in it."""
        return version(source_of(function_of(self.where)), self.number)


def drawn_edits(draw: Draw) -> Iterator[Edit]:
    """Draw some of each function of the core, more of one in which more can be edited."""
    for room in ROOMS:
        for where, function in _functions(room):
            count = count_of(source_of(function))
            wanted = min(count, _EDITS_MIN + count // _EDITS_OF)
            numbers = {draw.number(count) for _ in range(wanted)}
            yield from (Edit(where, number) for number in sorted(numbers))


def count_of(function: str) -> int:
    """Return how many edits can be made of a function, given as text."""
    return sum(1 for _ in _changes(ast.parse(function)))


def version(function: str, number: int) -> ast.Module:
    """Return the function after one of them."""
    tree = ast.parse(function)
    next(islice(_changes(tree), number, None))()
    return ast.fix_missing_locations(tree)


def _functions(room: str) -> Iterator[tuple[str, FunctionType]]:
    """Yield the functions of a room whose code can be exchanged."""
    root = import_module(f"{_PACKAGE}.{room}")
    below = walk_packages(root.__path__, f"{root.__name__}.")
    for name in (root.__name__, *(it.name for it in below)):
        module = import_module(name)
        for key, value in vars(module).items():
            if getattr(value, "__module__", "") == name:
                path = f"{name.removeprefix(f'{_PACKAGE}.')}:{key}"
                members = vars(value) if inspect.isclass(value) else {"": value}
                for member, it in members.items():
                    function = it.fget if isinstance(it, property) else it
                    if _is_of(function, module, member or key):
                        yield (f"{path}.{member}" if member else path), function


def _is_of(function: object, module: ModuleType, name: str) -> TypeGuard[FunctionType]:
    """Whether a function is written there, under its name, and stands for itself."""
    return (
        isinstance(function, FunctionType)
        and function.__module__ == module.__name__
        and function.__name__ == name not in _NOT_PLAYED
        and not function.__closure__
        and function.__code__.co_filename == module.__file__
    )


# -- what can be changed


class _Place(NamedTuple):
    """Where a node stands in the one above it."""

    above: ast.AST
    field: str
    at: int | None

    def put(self, new: ast.AST) -> None:
        if self.at is None:
            setattr(self.above, self.field, new)
        else:
            getattr(self.above, self.field)[self.at] = new


def _changes(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """Yield all that can be done to a function, in the order of its text."""
    (function,) = tree.body
    fields = _fields_of(function)
    for place, node in _places(function):
        for new in _others(node, place, fields):
            yield lambda place=place, new=new: place.put(new)  # type: ignore[misc]


def _places(node: ast.AST) -> Iterator[tuple[_Place, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in _UNCHANGED_FIELDS:
            continue
        several = isinstance(value, list)
        for at, below in enumerate(value if several else [value]):
            if isinstance(below, ast.AST) and not isinstance(below, _UNCHANGED):
                yield _Place(node, field, at if several else None), below
                yield from _places(below)


def _fields_of(function: ast.AST) -> dict[str, list[str]]:
    """Return the attributes that are read of each expression: one may be taken for another."""
    found: dict[str, dict[str, None]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.setdefault(ast.dump(node.value), {})[node.attr] = None
    return {name: [*attributes] for name, attributes in found.items()}


def _others(node: ast.AST, place: _Place, fields: dict[str, list[str]]) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node by mistake."""
    if place.field in ("test", "ifs"):
        yield ast.Constant(value=True)
        if place.field == "test":
            yield ast.Constant(value=False)
    if isinstance(node, ast.stmt):
        yield from _other_statements(node)
    elif isinstance(node, ast.Attribute):
        if isinstance(node.ctx, ast.Load) and not _is_called(place):
            for other in fields[ast.dump(node.value)]:
                if other != node.attr:
                    yield ast.Attribute(node.value, other, ast.Load())
    elif isinstance(node, ast.Call):
        yield from _other_calls(node)
    else:
        yield from _other_values(node)


def _is_called(place: _Place) -> bool:
    return isinstance(place.above, ast.Call) and place.field == "func"


def _other_statements(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript):
        yield ast.Assign(node.targets, _loaded(node.targets[0]))
    elif isinstance(node, ast.AugAssign):
        yield ast.AugAssign(node.target, node.op, ast.Constant(value=0))
    elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
        yield _left_out(node)
    elif isinstance(node, ast.Delete | ast.Continue | ast.Break):
        yield ast.Pass()
        if isinstance(node, ast.Continue):
            yield ast.Break()
    elif isinstance(node, ast.For):
        yield ast.For(node.target, node.iter, [*node.body, ast.Break()], node.orelse)


def _loaded(target: ast.Attribute | ast.Subscript) -> ast.expr:
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    return ast.Subscript(target.value, target.slice, ast.Load())


def _left_out(node: ast.Expr) -> ast.stmt:
    """Return what leaves a call out where it would change something, as far as its name tells."""
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ast.Pass()
    name, what = call.func.attr, call.func.value
    changes_nothing: ast.expr
    if name == "clear":
        changes_nothing = ast.UnaryOp(ast.Not(), what)
    elif name in _TAKING and call.args:
        changes_nothing = ast.Compare(call.args[0], [ast.NotIn()], [what])
    elif name == "add" and call.args:
        changes_nothing = ast.Compare(call.args[0], [ast.In()], [what])
    elif name in ("update", "extend") and call.args:
        changes_nothing = ast.UnaryOp(ast.Not(), call.args[0])
    else:
        return ast.Pass()
    return ast.If(changes_nothing, [node], [])


def _other_calls(node: ast.Call) -> Iterator[ast.AST]:
    if not node.args:
        return
    first, *others = node.args
    if others and not any(isinstance(it, ast.Starred) for it in node.args):
        swapped = ast.Call(node.func, [others[0], first, *others[1:]], node.keywords)
        if ast.dump(swapped) != ast.dump(node):
            yield swapped
    if isinstance(node.func, ast.Name):
        name = node.func.id
        if name in _ORDERS:
            yield ast.Call(ast.Name("list", ast.Load()), [first], [])
        if name in _OTHER_END:
            yield ast.Call(ast.Name(_OTHER_END[name], ast.Load()), node.args, node.keywords)
            if others:
                yield first


def _other_values(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield ast.Compare(node.left, [_COMPARISONS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        for left_out in range(len(node.values)):
            rest = [it for at, it in enumerate(node.values) if at != left_out]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        yield ast.BinOp(node.left, _SIGNS[type(node.op)](), node.right)
        yield node.left
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(value=not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value < _SMALL:
        yield ast.Constant(value=node.value + 1)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        yield node.value


# -- what may be worked out twice

_HARMLESS: Final = frozenset(
    (
        "abs", "all", "any", "bool", "chain", "copy", "count", "decode", "deepcopy", "dict",
        "difference", "divmod", "encode", "endswith", "enumerate", "filter", "float", "format",
        "frozenset", "get", "getattr", "hasattr", "index", "int", "intersection", "isdisjoint",
        "isinstance", "islice", "issubclass", "issubset", "issuperset", "items", "iter", "join",
        "keys", "len", "list", "lower", "map", "max", "min", "most_common", "pairwise",
        "partition", "range", "removeprefix", "removesuffix", "replace", "repr", "reversed",
        "round", "rpartition", "set", "sorted", "split", "startswith", "str", "strip", "sum",
        "tuple", "type", "union", "upper", "values", "vars", "zip",
    )
)  # fmt: skip
"""Calls of the language and its library that change nothing."""


_MADE_HERE: Final = frozenset(("dict", "list", "set", "defaultdict", "Counter", "deque"))
_CHANGING: Final = frozenset(
    (
        "add", "append", "clear", "discard", "extend", "insert", "pop", "popleft", "remove",
        "setdefault", "sort", "update",
    )
)  # fmt: skip


class Purity:
    """Which expressions change nothing, as far as the names of what they call tell."""

    def __init__(self) -> None:
        bodies: dict[str, list[frozenset[str] | None]] = {}
        for tree in map(ast.parse, _texts()):
            for node, name in _functions_of(tree):
                bodies.setdefault(name, []).append(_called(node.body))
        self._pure = {
            *_HARMLESS,
            *(f".{name}" for name in _HARMLESS),
            *(name for name, them in bodies.items() if None not in them),
        }
        while impure := {
            name
            for name in self._pure
            if not all(self._are_pure(it) for it in bodies.get(name, ()))
        }:
            self._pure -= impure

    def _are_pure(self, called: frozenset[str] | None) -> bool:
        return called is not None and all(
            it in self._pure or it.lstrip(".")[:1].isupper() for it in called
        )

    def of(self, value: ast.expr) -> bool:
        return self._are_pure(_called([value]))


def _texts() -> Iterator[str]:
    for room in ROOMS:
        for file in sorted((PACKAGE / room).rglob("*.py")):
            yield file.read_text(encoding="utf-8")


def _functions_of(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Yield all functions as they are called: those of a class behind a dot."""
    methods = {
        id(it) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for it in node.body
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node, f".{node.name}" if id(node) in methods else node.name


def _called(nodes: Sequence[ast.AST]) -> frozenset[str] | None:
    """Return the names of what is called; None if something is changed for sure."""
    names: set[str] = set()
    every = [it for root in nodes for it in ast.walk(root)]
    own = _made(every)
    for node in every:
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if not isinstance(node, ast.Subscript) or not _is_one_of(node.value, own):
                return None
        elif isinstance(node, ast.Global | ast.Nonlocal | ast.Await | ast.NamedExpr):
            return None
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute):
                if called.attr not in _CHANGING or not _is_one_of(called.value, own):
                    names.add(f".{called.attr}")
            elif isinstance(called, ast.Name):
                names.add(called.id)
            elif not isinstance(called, ast.Subscript):
                return None
    return frozenset(names)


def _made(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Return the names of the collections that are made there: who fills one changes nothing."""
    made: dict[str, bool] = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for it in targets:
                if isinstance(it, ast.Name):
                    made[it.id] = made.get(it.id, True) and _makes(node.value)
    return frozenset(name for name, is_made in made.items() if is_made)


def _makes(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        called = value.func.value if isinstance(value.func, ast.Subscript) else value.func
        return isinstance(called, ast.Name) and called.id in _MADE_HERE
    return isinstance(
        value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp
    )


def _is_one_of(value: ast.expr, names: frozenset[str]) -> bool:
    return isinstance(value, ast.Name) and value.id in names
