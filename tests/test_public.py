"""What is public: it can be imported, it is explained, and nothing heavy comes with it unasked."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from core_parts import OF_OURS
from probes import PATIENCE_S

import yunikorn_actors
from yunikorn_actors import AsyncSchedulerCore, SchedulerCore, errors, si, what_if

FRONTS = (yunikorn_actors, si, what_if)
PUBLIC = {
    f"{front.__name__}.{name}": getattr(front, name) for front in FRONTS for name in front.__all__
}
CLASSES = {name: it for name, it in PUBLIC.items() if isinstance(it, type)}
MADE_BY_THE_CORE = ("AsyncEventStream", "EventStream", "LeasedExecutor", "Responses")
"""Nobody else makes them, so what they are made of is nobody else's either."""


# -- the lists agree


def test_what_is_listed_is_what_type_checkers_see_and_what_is_imported() -> None:
    tree = ast.parse(Path(str(yunikorn_actors.__file__)).read_text("utf-8"))
    (types,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (node.module, alias.name)
        for node in types.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = yunikorn_actors._HOMES.items()
    imported = {(f"yunikorn_actors.{home}", name) for home, names in homes for name in names}
    assert imported | {("yunikorn_actors", "si")} == seen
    assert sorted(yunikorn_actors.__all__) == sorted(name for _, name in seen)
    assert {*yunikorn_actors.__all__} <= {*dir(yunikorn_actors)}


def test_the_module_of_errors_lists_all_of_them() -> None:
    defined = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type)
        and issubclass(kind, (Exception, Warning))
        and kind.__module__ == errors.__name__
        and not name.startswith("_")
    }
    assert defined <= set(errors.__all__)


def test_what_is_not_there_is_not_found() -> None:
    with pytest.raises(AttributeError, match="module 'yunikorn_actors' has no attribute 'fly'"):
        _ = yunikorn_actors.fly
    with pytest.raises(ImportError, match="cannot import name 'fly'"):
        exec("from yunikorn_actors import fly")  # noqa: S102 - our own words


# -- every type of a public call


def unreachable(roots: dict[str, type]) -> list[str]:
    """Types of this package that public calls take or give, and that cannot be imported."""
    known = {id(it) for it in PUBLIC.values()}
    seen: dict[type, str] = {}
    waiting = list(roots.items())
    while waiting:
        path, kind = waiting.pop()
        if kind in seen or kind.__module__.partition(".")[0] != "yunikorn_actors":
            continue
        seen[kind] = path
        for name, hint in _hints(kind):
            waiting.extend((f"{path}.{name}", it) for it in _classes(hint))
    return sorted(
        f"{path}: {kind.__name__}" for kind, path in seen.items() if id(kind) not in known
    )


def _hints(kind: type) -> Iterator[tuple[str, Any]]:
    """The types of its fields, and of what its public methods and properties take and give."""
    for name, hint in get_type_hints(kind).items():
        if not name.startswith("_"):
            yield name, hint
    for name in dir(kind):
        if _is_called(kind, name):
            it = inspect.getattr_static(kind, name)
            function = it.fget if isinstance(it, property) else getattr(it, "__func__", it)
            if inspect.isfunction(function):
                for hint in get_type_hints(function).values():
                    yield name, hint


def _is_called(kind: type, name: str) -> bool:
    if name == "__init__":
        return kind.__name__ not in MADE_BY_THE_CORE
    if name in SERVED:
        return False
    return not name.startswith("_") or name in {"__next__", "__anext__", "__iter__"}


def _classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and not get_args(hint):
        yield hint
    for argument in get_args(hint):
        for inner in argument if isinstance(argument, list) else (argument,):
            yield from _classes(inner)


def test_every_type_that_a_public_call_takes_or_gives_can_be_imported() -> None:
    assert [] == unreachable(CLASSES)


class _Unknown:
    pass


class _Secret:
    value: list[_Unknown]


def test_a_type_that_cannot_be_imported_is_found() -> None:
    for kind in (_Secret, _Unknown):
        kind.__module__ = "yunikorn_actors.secret"
    found = unreachable({"Secret": _Secret})
    assert ["Secret.value: _Unknown", "Secret: _Secret"] == found


# -- help


CALLS = [
    *(
        "clock",
        "clock_was_moved",
        "event_stream",
        "events",
        "expected",
        "explain",
        "failure",
        "handled",
    ),
    *("is_settled", "next_due_ns", "register_resource_manager", "resource_manager_lost"),
    *(
        "save_trace",
        "simulate",
        "start",
        "state_dump",
        "stop",
        "trace_failure",
        "unregister_resource_manager",
        "update_allocation",
    ),
    *("update_application", "update_configuration", "update_node", "waiting"),
]


SERVED = OF_OURS - {*CALLS}
"""For parts of a service and for the front, which are ours."""


@pytest.mark.parametrize("kind", [AsyncSchedulerCore, SchedulerCore])
def test_a_core_shows_what_an_embedder_calls(kind: type) -> None:
    core: Any = kind()
    assert CALLS == [it for it in dir(core) if not it.startswith("_") and it not in SERVED]


def unexplained(kind: type) -> list[str]:
    """Name what `help` would show without a word about it."""
    faults = [] if (kind.__doc__ or "").strip() else [kind.__name__]
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        is_call = isinstance(member, property | staticmethod | classmethod)
        is_call = is_call or inspect.isfunction(member)
        if is_call and not name.startswith("_") and not inspect.getdoc(getattr(kind, name)):
            faults.append(f"{kind.__name__}.{name}")
    return faults


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("yunikorn_actors")


def test_help_has_a_word_about_each_public_class_and_call() -> None:
    ours = [kind for kind in CLASSES.values() if _is_ours(kind)]
    assert [] == [fault for kind in ours for fault in unexplained(kind)]


def test_what_is_not_explained_is_found() -> None:
    assert ["_Unknown"] == unexplained(_Unknown)


# -- nothing heavy comes with it unasked

HEAVY = {
    "asyncio",
    "concurrent.futures",
    "google.protobuf",
    "grpc",
    "loguru",
    "msgspec",
    "pykka",
    "ssl",
    "yaml",
}
PROGRAMS = {
    "import yunikorn_actors": set[str](),
    "from yunikorn_actors import si": {"msgspec"},
    "from yunikorn_actors import SchedulerCore": {"msgspec", "pykka"},
    "from yunikorn_actors import AsyncSchedulerCore": HEAVY
    - {"google.protobuf", "grpc", "loguru", "yaml"},
    "from yunikorn_actors import enable_logs; enable_logs()": set[str](),
    "from yunikorn_actors import connect": {"concurrent.futures", "msgspec", "pykka"},
}


@pytest.mark.parametrize(("program", "loaded"), PROGRAMS.items(), ids=PROGRAMS)
def test_what_is_heavy_is_imported_on_first_use(program: str, loaded: set[str]) -> None:
    """How long it takes is measured by `python -m benchmarks.imports`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert loaded == HEAVY & {*done.stdout.split()}


def test_every_name_can_be_had_without_an_extra() -> None:
    without = "import sys; sys.modules.update(dict.fromkeys(('grpc', 'google', 'aiohttp')))"
    subprocess.run(
        [sys.executable, "-c", f"{without}\nfrom yunikorn_actors import *"],
        timeout=PATIENCE_S, check=True,
    )  # fmt: skip
