"""The house rules that a program can check, and a planted fault for each to be found.

Length, what may be caught, what may be iterated over, modules that nobody can reach, the order of
public names, and text that is true on one machine only.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from yunikorn_actors.cli import COMMANDS
from yunikorn_actors.service.service import KINDS

ROOT = Path(__file__).parent.parent
PACKAGE = "yunikorn_actors"
FUNCTION_MAX = 60
MEMBERS_MAX = 60
"""Methods and properties that a class has, with those that it inherits from others of the package."""

CORE = ("values", "config", "state", "checks", "planning", "messages", "machines")
EDGES = (
    "runtime",
    "drivers",
    "journal",
    "recording",
    "scenario",
    "trace",
    "front",
    "lab",
    "service",
    "cli",
)
"""Where the first failure is kept, or told as the outcome: they may catch anything."""
CALLS_STRANGERS = tuple(
    f"{PACKAGE}.{it}" for it in ("messages.callbacks", "policies.guard", "values.masking")
)
"""What a resource manager raises when it is asked something is an answer as well."""
ENTRY_POINTS = (
    PACKAGE,
    f"{PACKAGE}.__main__",
    f"{PACKAGE}.cli",
    *(f"{PACKAGE}.cli.{command}" for command in COMMANDS),
    f"{PACKAGE}.lab.pytest_plugin",
    *(kind.module for kind in KINDS.values()),
    f"{PACKAGE}.journal.compaction",
    f"{PACKAGE}.service.rest.__main__",
    f"{PACKAGE}.service.rest.child",
    f"{PACKAGE}.service.rest.in_process",
)
"""Imported by a program, a command line, pytest or a service; everything else has to be reached from here."""
IN_SEVERAL_ROOMS = frozenset(
    {
        "__init__",
        "__main__",
        "nodes",
        "queues",
        "applications",
        "asks",
        "gangs",
        "limits",
        "preemption",
        "aio",
    }
)
"""Names that repeat on purpose: this room's half of that noun."""
TEXT = frozenset({".py", ".md", ".cfg", ".toml", ".yaml", ".yml", ".txt", ".json", ".rst", ""})
SKIPPED = re.compile(r"^\.git$|(^|/)(\.(?!ci/)[^/]+|__pycache__|build|dist|[^/]+\.egg-info)/")


class Source(NamedTuple):
    module: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.text)

    @property
    def part(self) -> str:
        """The package below the root that it belongs to."""
        return self.module.split(".")[1] if "." in self.module else ""


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _walked(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Every check goes through the same trees, and to walk them is most of what checks cost."""
    return tuple(ast.walk(tree))


def _module_name(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


SOURCES = [
    Source(_module_name(path), path.read_text()) for path in sorted((ROOT / PACKAGE).rglob("*.py"))
]


# -- length


def long_functions(source: Source) -> list[str]:
    """Lines of comments do not count: an argument must not be the first thing to go."""
    lines = source.text.splitlines()
    functions = (
        node
        for node in _walked(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    lengths = [
        (node.name, sum(not line.lstrip().startswith("#") for line in its_lines))
        for node in functions
        for its_lines in [lines[node.lineno - 1 : node.end_lineno]]
    ]
    return [f"{source.module}.{name}: {n} lines" for name, n in lengths if n > FUNCTION_MAX]


# -- what may be caught


def blind_excepts(source: Source) -> list[str]:
    """Whoever catches everything, and does not raise it again, hides broken invariants too."""
    if source.part in EDGES or source.module in CALLS_STRANGERS:
        return []
    handlers = (node for node in _walked(source.tree) if isinstance(node, ast.ExceptHandler))
    return [
        f"{source.module}:{node.lineno} catches everything" for node in handlers if _is_blind(node)
    ]


def _is_blind(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return False
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(_name(kind) in {"Exception", "BaseException"} for kind in caught)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


# -- what may be iterated over

_ORDER_MATTERS = frozenset({"list", "tuple", "enumerate", "iter", "zip", "map", "filter", "dict"})
_ORDER_DOES_NOT = frozenset({"sorted", "set", "frozenset", "any", "all", "sum", "len"})
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.DictComp)


def set_iterations(source: Source) -> list[str]:
    """The order of a set depends on the process, so nothing may come out of it in order."""
    if source.part not in CORE:
        return []
    tree = source.tree
    constants = _set_constants(tree) | set_constants()
    blind = {
        id(argument)
        for node in _walked(tree)
        if isinstance(node, ast.Call) and _name(node.func) in _ORDER_DOES_NOT
        for argument in node.args
    }
    return [
        f"{source.module}:{node.lineno} iterates over a set"
        for node, iterated in _iterations(tree)
        if id(node) not in blind and _is_set(iterated, constants)
    ]


def _iterations(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr]]:
    """Yield what iterates, and what it iterates over."""
    for node in _walked(tree):
        match node:
            case ast.For():
                yield node, node.iter
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
                yield from ((node, generator.iter) for generator in node.generators)
            case ast.Starred():
                yield node, node.value
            case ast.Call(func=ast.Name(id=name)) if name in _ORDER_MATTERS:
                yield from ((node, argument) for argument in node.args)
            case ast.Call(func=ast.Attribute(attr="join" | "extend")):
                yield from ((node, argument) for argument in node.args)


def _is_set(node: ast.expr, constants: frozenset[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Name(id=name):
            return name in constants
        case ast.BinOp(op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
            return any(
                _is_set(side, constants) or _is_keys(side) for side in (node.left, node.right)
            )
    return False


def _is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".keys", ".items"))


@cache
def _set_constants(tree: ast.Module) -> frozenset[str]:
    """Names that a module gives to sets."""
    assigned = [
        (target, node.value)
        for node in _walked(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return frozenset(_name(name) for name, value in assigned if _is_set(value, frozenset()))


@cache
def set_constants() -> frozenset[str]:
    """Of the whole package: a constant may be imported."""
    return frozenset(
        name
        for source in SOURCES
        for name in _set_constants(source.tree)
        if name.lstrip("_").isupper()
    )


# -- what is asked of a value

_BUILT_IN_VALUES = frozenset({"tuple", "str", "bytes", "int", "float", "frozenset"})


def identified_values(source: Source) -> list[str]:
    """Whether two equal tuples, numbers or texts are one object is for the interpreter to say.

    It may keep a constant once or twice, and compiled code may make a tuple anew for each reader.
    Truth values are no such values: there is one True and one False.
    """
    return _asked_of(source, _identities, "asks for the identity of a value")


def members_taken_for_truth(source: Source) -> list[str]:
    """Which member of an enumeration is false stands elsewhere, and compilers miss it."""
    return _asked_of(source, _truths, "asks whether a member of an enumeration is true")


def _asked_of(
    source: Source, ask: Callable[[ast.FunctionDef], Iterator[ast.expr]], fault: str
) -> list[str]:
    if source.part not in CORE:
        return []
    functions = (node for node in _walked(source.tree) if isinstance(node, ast.FunctionDef))
    lines = (expression.lineno for function in functions for expression in ask(function))
    return [f"{source.module}:{line} {fault}" for line in dict.fromkeys(lines)]


def _identities(function: ast.FunctionDef) -> Iterator[ast.expr]:
    declared = _declared([function], value_types())
    for node in _walked(function):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
            sides = (node.left, node.comparators[0])
            # Of None, True and False there is one each; of other constants the linter speaks.
            if not any(isinstance(side, ast.Constant) for side in sides) and any(
                _is_value(side, declared) for side in sides
            ):
                yield node


def _is_value(node: ast.expr, declared: dict[str, bool]) -> bool:
    match node:
        case ast.Tuple() | ast.JoinedStr() | ast.BinOp():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in _BUILT_IN_VALUES
    return _is_of(node, declared, value_attributes())


def _truths(function: ast.FunctionDef) -> Iterator[ast.expr]:
    declared = _declared([function], false_enumerations())
    for node in _walked(function):
        for asked in _asked_for_truth(node):
            if _is_of(asked, declared, enumerated_attributes()):
                yield asked


def _asked_for_truth(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            return [test]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [operand]
        case ast.BoolOp(values=values) | ast.comprehension(ifs=values):
            return values
        case ast.Call(func=ast.Name(id="bool"), args=arguments):
            return arguments
    return []


def _is_of(node: ast.expr, names: dict[str, bool], attributes: dict[str, bool]) -> bool:
    match node:
        case ast.Name(id=name):
            return names.get(name, False)
        case ast.Attribute(attr=name):
            return attributes.get(name, False)
    return False


def _declared(trees: Sequence[ast.AST], types: frozenset[str]) -> dict[str, bool]:
    """What is annotated, and whether it is of these types wherever that name is annotated."""
    found: dict[str, bool] = {}
    for node in (node for tree in trees for node in _walked(tree)):
        match node:
            case (
                ast.arg(arg=name, annotation=ast.expr() as kind)
                | ast.AnnAssign(target=ast.Name(id=name), annotation=kind)
                | ast.AnnAssign(target=ast.Attribute(attr=name), annotation=kind)
            ):
                found[name] = found.get(name, True) and _names_one_of(types, kind)
    return found


def _names_one_of(types: frozenset[str], kind: ast.expr) -> bool:
    match kind:
        case ast.Constant(value=str(text)):
            return _names_one_of(types, ast.parse(text, mode="eval").body)
        case ast.Subscript(value=ast.Name(id=name)) | ast.Name(id=name):
            return name in types
        case ast.BinOp(left=left, right=right):
            return _names_one_of(types, left) or _names_one_of(types, right)
    return False


def _types_of_values(statements: list[ast.stmt]) -> Iterator[str]:
    """Classes of named tuples, and names for types of tuples."""
    for node in statements:
        match node:
            case ast.ClassDef(name=name, bases=[ast.Name(id="NamedTuple")]):
                yield name
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Subscript(value=ast.Name(id="tuple"))
            ):
                yield name


def _false_enumerations(statements: list[ast.stmt]) -> Iterator[str]:
    """Enumerations with a member that is false: an empty text, or 0."""
    for node in statements:
        match node:
            case ast.ClassDef(name=name, bases=[ast.Name(id="StrEnum" | "IntEnum")], body=body):
                values = [member.value for member in body if isinstance(member, ast.Assign)]
                if any(isinstance(it, ast.Constant) and not it.value for it in values):
                    yield name


@cache
def _statements() -> list[ast.stmt]:
    return [node for source in SOURCES for node in source.tree.body]


@cache
def _core_classes() -> list[ast.ClassDef]:
    nodes = (node for it in SOURCES if it.part in CORE for node in _walked(it.tree))
    return [node for node in nodes if isinstance(node, ast.ClassDef)]


@cache
def value_types() -> frozenset[str]:
    return _BUILT_IN_VALUES.union(_types_of_values(_statements()))


@cache
def value_attributes() -> dict[str, bool]:
    return _declared(_core_classes(), value_types())


@cache
def false_enumerations() -> frozenset[str]:
    return frozenset(_false_enumerations(_statements()))


@cache
def enumerated_attributes() -> dict[str, bool]:
    return _declared(_core_classes(), false_enumerations())


# -- public names


def unsorted_names(source: Source) -> list[str]:
    names = [
        ast.literal_eval(node.value)
        for node in source.tree.body
        if isinstance(node, ast.Assign) and _name(node.targets[0]) == "__all__"
    ]
    return [f"{source.module}.__all__" for public in names if list(public) != sorted(set(public))]


OF_OTHER_LIBRARIES = frozenset(
    {
        "_replace",
        "_fields",
        "_asdict",
        "_getframe",
        "_exit",
        "_current_frames",
        "_value2member_map_",
    }
    | {"_current_request", "_kwargs"}
)
"""Private by their first letter: of the standard library, and of aiohttp."""
NAMES_PRIVATE = (f"{PACKAGE}.lab.mutants.",)
"""A defect is planted into a function, whatever its name."""
READ_ACROSS = {
    f"{PACKAGE}.front.aio": {"_core"},
    f"{PACKAGE}.front.asks": {"_want_back"},
    f"{PACKAGE}.lab.oracles.gate_oracle": {"_settle"},
    f"{PACKAGE}.service.aio": {"_operations"},
    f"{PACKAGE}.service.connect": {"_operations"},
    f"{PACKAGE}.service.reconnecting": {"_connect_anew"},
    f"{PACKAGE}.what_if.yunikorn_dump": {"_post"},
}
"""Private names that a module reads of another one; there may only be fewer."""


def private_names_of_others(source: Source) -> list[str]:
    """Find the private names that a module reads and does not have itself."""
    if source.module.startswith(NAMES_PRIVATE):
        return []
    nodes = list(ast.walk(source.tree))
    known = OF_OTHER_LIBRARIES | READ_ACROSS.get(source.module, set())
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                known |= {name}
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                known |= {name}
    return [
        f"{source.module}:{node.lineno} reads {node.attr} of another module"
        for node in nodes
        if isinstance(node, ast.Attribute)
        and re.match(r"_[a-z]", node.attr)
        and node.attr not in known
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
        and not (isinstance(node.value, ast.Call) and _name(node.value.func) == "super")
    ]


# -- what can be reached


def unreached(sources: list[Source], entry_points: tuple[str, ...]) -> list[str]:
    """Modules that no entry point imports, directly or through others."""
    imports = {source.module: _imported(source) for source in sources}
    reached: dict[str, None] = {}
    waiting = [name for name in entry_points if name in imports]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached[name] = None
            package = name.rpartition(".")[0]
            waiting.extend(known for known in (*imports[name], package) if known in imports)
    return [f"{name} is not reached" for name in imports if name not in reached]


def _imported(source: Source) -> list[str]:
    """Absolute names; of `from a import b` both a and a.b, as either may be the module."""
    names: list[str] = []
    for node in _walked(source.tree):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
            names.extend(f"{node.module}.{alias.name}" for alias in node.names)
    return names


# -- what is named

CALLED_BY_LIBRARIES: dict[str, frozenset[str]] = {
    "aiohttp": frozenset({"handle_error"}),
    "grpc": frozenset({"intercept_service"}),
    "importlib": frozenset({"create_module", "exec_module"}),
    "pickle": frozenset({"persistent_id", "persistent_load"}),
    "pykka": frozenset(
        {"_create_actor_inbox", "_create_future", "_start_actor_loop"}
        | {"on_receive", "on_start", "on_stop"}
    ),
    "pytest": frozenset({"pytest_addoption"}),
    "yaml": frozenset({"compose_node", "ignore_aliases"}),
}
"""Methods that take the place of those of a library, which calls them."""
FOR_TESTS = frozenset({"OnLoop"})
"""A front door of the laboratory's program: what it sees there is compared with what another shows."""
SHOWN = ("docs", "benchmarks", "examples", "deploy")
"""What stands there is used by readers, or by programs beside the package."""
Words = Counter[str]


def unnamed(sources: list[Source], elsewhere: Iterable[str]) -> list[str]:
    """Functions, classes, methods and constants that nothing names besides themselves.

    A name alone counts in its own module; an attribute, an import, an argument or a text counts in
    all. What a package only hands on is no use of it.
    """
    known = frozenset(re.findall(r"\w+", " ".join(elsewhere))).union(
        FOR_TESTS, *CALLED_BY_LIBRARIES.values()
    )
    named = {source.module: _named(source.tree) for source in sources}
    far: Words = Counter()
    for source in sources:
        far.update(named[source.module][0] - _handed_on(source.tree))
    return [
        f"{source.module}.{name} is named nowhere else"
        for source in sources
        for name, node in _defined(source.tree.body)
        if name not in known
        and not name.startswith("__")
        # What others name more often than its module does is not named by itself alone.
        and far[name] <= named[source.module][0][name]
        and far[name] + named[source.module][1][name] <= sum(it[name] for it in _named(node))
    ]


def _defined(
    statements: Iterable[ast.stmt], *, in_class: bool = False
) -> Iterator[tuple[str, ast.AST]]:
    """Yield what is defined, and in which node it may name itself."""
    for node in statements:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node
            case ast.ClassDef(name=name, body=body):
                yield name, node
                yield from _defined(body, in_class=True)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                # Members of an enumeration and fields of a message are read from texts and bytes.
                if not in_class:
                    yield name, ast.Pass()
            case ast.If(body=body, orelse=orelse):
                yield from _defined((*body, *orelse), in_class=in_class)


@cache
def _named(tree: ast.AST) -> tuple[Words, Words]:
    """Count what is named so that any module may be meant, and by a name alone."""
    far, near = Counter[str](), Counter[str]()
    said = {id(node.value) for node in _walked(tree) if isinstance(node, ast.Expr)}
    for node in _walked(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                near[name] += 1
            case ast.Attribute(attr=name, ctx=ast.Load()) | ast.keyword(arg=str(name)):
                far[name] += 1
            case ast.alias(name=name):
                far[name.rpartition(".")[2]] += 1
            case ast.MatchClass(kwd_attrs=names):
                far.update(names)
            case ast.Constant(value=str(text)) if id(node) not in said:
                far.update(set(re.findall(r"\w+", text)))
    if far["*"]:
        # What it imports so it calls by the names alone.
        far.update(near)
    return far, near


def _handed_on(tree: ast.Module) -> Words:
    """Count what a package imports and lists in its public names."""
    public = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and _name(node.targets[0]) == "__all__"
    ]
    own = frozenset(name for name, _ in _defined(tree.body))
    names = {name for listed in public for name in listed}
    return Counter({name: 2 if name not in own else 1 for name in names})


def test_everything_is_named_somewhere() -> None:
    shown = (it.text for it in _texts() if it.module.startswith(SHOWN) or it.module == "README.md")
    assert [] == unnamed(SOURCES, shown)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(): pass", ["f"]),
        ("def f():\n    return f()", ["f"]),
        ("def f(): pass\nx = f()\nprint(x)", []),
        ("LIMIT = 3", ["LIMIT"]),
        ("class C:\n    def m(self): return self.m()\nC()", ["m"]),
        ("class C:\n    def m(self): pass\nC().m()", []),
        ("class C:\n    m = 1\nC()", []),
        ("def used(): pass", []),
        ("def planned(): pass", []),
        ("def shown(): pass", []),
        ("def handed_on(): pass", ["handed_on"]),
        ("def on_receive(): pass", []),
    ],
)
def test_what_is_named_nowhere_is_found(text: str, found: list[str]) -> None:
    others = [
        Source("p.b", "from p.a import used\nused()\nX = 'p.a:planned'\nprint(X)"),
        Source("p", "from p.a import handed_on\n__all__ = ['handed_on']"),
    ]
    faults = [f"p.a.{name} is named nowhere else" for name in found]
    assert faults == unnamed([Source("p.a", text), *others], ["call `shown`"])


# -- circles


def in_circles(sources: list[Source]) -> list[str]:
    """Modules that import themselves in the end; also by imports in functions and for types alone.

    What stands in a circle can only be understood, and changed, as a whole.
    """
    known = {source.module for source in sources}
    imports = {source.module: _modules_imported(source, known) for source in sources}
    return [name for name in imports if name in _reached_from(name, imports)]


def _modules_imported(source: Source, known: set[str]) -> list[str]:
    """Of `from a import b` the module a.b if there is one, else a."""
    found: list[str] = []
    for node in _walked(source.tree):
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found.extend(name if name in known else node.module for name in names)
    return [name for name in found if name in known and name != source.module]


def _reached_from(module: str, imports: dict[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(imports[module])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(imports[name])
    return reached


def test_no_module_imports_itself_in_the_end() -> None:
    assert [] == in_circles(SOURCES)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from p.a import x", ["p.a", "p.b"]),
        ("def f():\n    import p.a", ["p.a", "p.b"]),
        ("if TYPE_CHECKING:\n    from p import a", ["p.a", "p.b"]),
        ("from p import other", []),
    ],
)
def test_a_circle_is_found(text: str, found: list[str]) -> None:
    sources = [Source("p", ""), Source("p.a", "from p.b import y"), Source("p.b", text)]
    assert found == in_circles(sources)


# -- large classes


def large_classes(sources: list[Source]) -> list[str]:
    """Classes with more members than a reader can keep in mind; magic methods are not counted."""
    classes = {
        (source.module, node.name): node
        for source in sources
        for node in source.tree.body
        if isinstance(node, ast.ClassDef)
    }
    modules: dict[str, list[str]] = {}
    for module, name in classes:
        modules.setdefault(name, []).append(module)
    imported = {
        (source.module, alias.asname or alias.name): (node.module or "", alias.name)
        for source in sources
        for node in _walked(source.tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def named(module: str, name: str) -> tuple[str, str]:
        """Find the class that a name means; what is handed on by a package is found by its name."""
        found = (module, name) if (module, name) in classes else imported.get((module, name))
        if found is not None and found not in classes and len(modules.get(found[1], ())) == 1:
            found = (modules[found[1]][0], found[1])
        return found or (module, name)

    @cache
    def members(module: str, name: str) -> frozenset[str]:
        node = classes.get((module, name))
        if node is None:
            return frozenset()
        own = {
            it.name for it in node.body if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        bases = [it.value if isinstance(it, ast.Subscript) else it for it in node.bases]
        above = (members(*named(module, it.id)) for it in bases if isinstance(it, ast.Name))
        return frozenset({it for it in own if not it.startswith("__")}.union(*above))

    return [
        f"{module}.{name}: {len(members(module, name))} members"
        for module, name in classes
        if len(members(module, name)) > MEMBERS_MAX
    ]


def test_no_class_has_more_members_than_one_keeps_in_mind() -> None:
    assert [] == large_classes(SOURCES)


def test_a_class_that_is_large_by_what_it_inherits_is_found() -> None:
    def having(head: str, first: int, count: int) -> str:
        methods = (f"    def m{n}(self): pass\n" for n in range(first, first + count))
        return f"{head}\n" + "".join(methods)

    below = Source("p.a", having("class Base:", 0, MEMBERS_MAX))
    same = Source("p.b", having("from p.a import Base\nclass Same(Base):", 0, 3))
    more = Source("p.c", having("from p.a import Base\nclass More(Base):", MEMBERS_MAX - 1, 2))
    assert [f"p.c.More: {MEMBERS_MAX + 1} members"] == large_classes([below, same, more])


# -- text

_MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:home|root|work|Users|mnt)/\w[\w./-]*")


def machine_paths(source: Source) -> list[str]:
    return [f"{source.module} names {path}" for path in _MACHINE_PATH.findall(source.text)]


def _texts() -> Iterator[Source]:
    for path in sorted(ROOT.rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in TEXT and not SKIPPED.search(name) and path.is_file():
            yield Source(name, path.read_text(errors="replace"))


# -- the checks

CHECKS: dict[str, Callable[[Source], list[str]]] = {
    "functions are short": long_functions,
    "nobody catches everything": blind_excepts,
    "nobody iterates over a set": set_iterations,
    "nobody asks for the identity of a value": identified_values,
    "no member of an enumeration is taken for a truth value": members_taken_for_truth,
    "public names are sorted": unsorted_names,
    "nobody reads private names of another module": private_names_of_others,
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_package_is_tidy(check: Callable[[Source], list[str]]) -> None:
    assert [] == [fault for source in SOURCES for fault in check(source)]


def repeated_names(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Find the names that files of several rooms have."""
    rooms: dict[str, list[str]] = {}
    for path in paths:
        if path.stem not in IN_SEVERAL_ROOMS:
            rooms.setdefault(path.stem, []).append(str(path.parent))
    return {name: found for name, found in rooms.items() if len(found) > 1}


def test_a_file_name_has_one_meaning() -> None:
    files = (it.relative_to(ROOT) for it in sorted((ROOT / PACKAGE).rglob("*.py")))
    assert {} == repeated_names(files), "say in the name what this one is about"


def test_a_name_in_two_rooms_is_found() -> None:
    files = map(Path, ("state/jobs.py", "front/jobs.py", "front/asks.py", "state/asks.py"))
    assert {"jobs": ["state", "front"]} == repeated_names(files)


def test_every_module_can_be_reached() -> None:
    assert [] == unreached(SOURCES, ENTRY_POINTS)


def test_no_text_is_true_on_one_machine_only() -> None:
    assert [] == [fault for source in _texts() for fault in machine_paths(source)]


def _function(lines: int) -> str:
    return "def f():\n" + "    x = 1\n" * (lines - 1)


PLANTED: dict[str, tuple[Callable[[Source], list[str]], str, str, list[str]]] = {
    "a function at the limit": (long_functions, "state.x", _function(60), []),
    "a long function": (long_functions, "state.x", _function(61), [".f: 61 lines"]),
    "a comment in it": (
        long_functions,
        "state.x",
        _function(60) + "    # why\n    y = 1\n",
        [".f: 61 lines"],
    ),
    "a comment makes none longer": (
        long_functions,
        "state.x",
        _function(59) + "    # why\n    y = 1\n",
        [],
    ),
    "a long method": (
        long_functions,
        "state.x",
        "class C:\n" + "".join(f"    {line}\n" for line in _function(61).splitlines()),
        [".f: 61 lines"],
    ),
    "except Exception": (
        blind_excepts,
        "state.x",
        "try:\n    f()\nexcept Exception:\n    pass\n",
        [":3 catches everything"],
    ),
    "except among others": (
        blind_excepts,
        "machines.x",
        "try:\n    f()\nexcept (KeyError, BaseException):\n    pass\n",
        [":3 catches everything"],
    ),
    "a bare except": (
        blind_excepts,
        "core.entry",
        "try:\n    f()\nexcept:\n    pass\n",
        [":3 catches everything"],
    ),
    "one that raises again": (
        blind_excepts,
        "state.x",
        "try:\n    f()\nexcept BaseException:\n    g()\n    raise\n",
        [],
    ),
    "a named except": (
        blind_excepts,
        "state.x",
        "try:\n    f()\nexcept KeyError:\n    pass\n",
        [],
    ),
    "except Exception at an edge": (
        blind_excepts,
        "runtime.x",
        "try:\n    f()\nexcept Exception:\n    pass\n",
        [],
    ),
    "a tuple that is itself": (
        identified_values,
        "planning.x",
        "def f(a: tuple[int, str], b: object) -> bool:\n    return a is b\n",
        [":2 asks for the identity of a value"],
    ),
    "an attribute that is itself": (
        identified_values,
        "state.x",
        "def f(a: Ask, b: Ask) -> bool:\n    return a.spec.key is not b.spec.key\n",
        [":2 asks for the identity of a value"],
    ),
    "a sum that is itself": (
        identified_values,
        "state.x",
        "def f(a, b, c):\n    return a is b + c\n",
        [":2 asks for the identity of a value"],
    ),
    "a tuple that may be missing": (
        identified_values,
        "state.x",
        "def f(a: tuple[int, str] | None) -> bool:\n    return a is None\n",
        [],
    ),
    "a record that is itself": (
        identified_values,
        "state.x",
        "def f(a: Ask, b: Ask) -> bool:\n    return a is b\n",
        [],
    ),
    "a member that may be false": (
        members_taken_for_truth,
        "machines.x",
        "def f(kind: GateKind | None):\n    return bool(kind)\n",
        [":2 asks whether a member of an enumeration is true"],
    ),
    "a member that is compared": (
        members_taken_for_truth,
        "machines.x",
        "def f(kind: GateKind | None):\n    return 1 if kind is GateKind.NONE else 0\n",
        [],
    ),
    "a private name of another module": (
        private_names_of_others,
        "front.x",
        "def f(core: Core) -> None:\n    core._lock.acquire()\n",
        [":2 reads _lock of another module"],
    ),
    "a private name of the same module": (
        private_names_of_others,
        "front.x",
        "class A:\n    def __init__(self, other):\n        self._n = other._n\n",
        [],
    ),
    "sorted names": (unsorted_names, "si", "__all__ = ['B', 'a']", []),
    "unsorted names": (unsorted_names, "si", "__all__ = ['b', 'a']", [".__all__"]),
    "a name twice": (unsorted_names, "si", "__all__ = ['a', 'a']", [".__all__"]),
    "a path": (machine_paths, "x", "see /" + "home/bob/x.txt", [" names /" + "home/bob/x.txt"]),
    "an address": (machine_paths, "x", "see https://example.com/" + "home/x, ./" + "work/x", []),
}

FAULTY_ITERATIONS = (
    "for x in {1, 2}: pass",
    "for x in set(y): pass",
    "for x in {n for n in y}: pass",
    "for x in _CONSTANT: pass",
    "for x in a.keys() | b.keys(): pass",
    "for x in set(a) - set(b): pass",
    "z = [x for x in frozenset(y)]",
    "z = {x: 1 for x in {1, 2}}",
    "z = tuple(x for x in {1, 2})",
    "z = list({1, 2})",
    "z = [*{1, 2}]",
    "z = ', '.join({'a', 'b'})",
    "z.extend({1, 2})",
    "z = enumerate(_CONSTANT)",
    "local = {1, 2}\nfor x in local: pass",
)
SOUND_ITERATIONS = (
    "for x in sorted({1, 2}): pass",
    "for x in (1, 2): pass",
    "for x in a.keys(): pass",
    "z = sorted(x for x in {1, 2})",
    "z = any(x for x in _CONSTANT)",
    "z = {x for x in {1, 2}}",
    "z = x in _CONSTANT",
    "z = len({1, 2})",
)
_CONSTANT = "_CONSTANT = frozenset({1, 2})\n"


@pytest.mark.parametrize(("check", "module", "text", "expected"), PLANTED.values(), ids=PLANTED)
def test_a_planted_fault_is_found(
    check: Callable[[Source], list[str]], module: str, text: str, expected: list[str]
) -> None:
    name = f"{PACKAGE}.{module}"
    assert [name + fault for fault in expected] == check(Source(name, text))


@pytest.mark.parametrize("text", FAULTY_ITERATIONS)
def test_an_iteration_over_a_set_is_found(text: str) -> None:
    for part in CORE:
        assert len(set_iterations(Source(f"{PACKAGE}.{part}.x", _CONSTANT + text))) == 1
    assert [] == set_iterations(Source(f"{PACKAGE}.cli.x", _CONSTANT + text))


@pytest.mark.parametrize("text", SOUND_ITERATIONS)
def test_what_has_an_order_may_be_iterated_over(text: str) -> None:
    assert [] == set_iterations(Source(f"{PACKAGE}.state.x", _CONSTANT + text))


def test_a_module_that_nobody_can_reach_is_found() -> None:
    sources = [
        Source("p", "from p.used import thing"),
        Source("p.used", "import p.deep.inner"),
        Source("p.deep", ""),
        Source("p.deep.inner", ""),
        Source("p.island", "from p import shore"),
        Source("p.shore", "from p.island import x"),
    ]
    assert ["p.island is not reached", "p.shore is not reached"] == unreached(sources, ("p",))
    assert [] == unreached(sources, ("p", "p.shore"))
