"""The API reference is complete: every public name, and all that it has, is there with words.

The pages hold directives, and Sphinx puts in the words of the code; so what is checked here without
Sphinx is that the pages name everything, and that the code has the words.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import EnumType
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from msgspec import Struct
from pages import REPOSITORY

import yunikorn_actors
from yunikorn_actors import si, trace
from yunikorn_actors.lab import hunt
from yunikorn_actors.lab import user_program as trial
from yunikorn_actors.values import tags as constants

API = REPOSITORY / "docs/reference/api"
PACKAGE = "yunikorn_actors"
CONSTANTS = [name for name in vars(constants) if name.isupper()]


def public(module: ModuleType) -> dict[str, object]:
    names = {name: getattr(module, name) for name in module.__all__}
    return {name: it for name, it in names.items() if not inspect.ismodule(it)}


LABORATORY = {"Lab": hunt.Lab, "Wishes": hunt.Wishes, "Trial": trial.Trial}
"""What a test of a user holds in its hands."""
PUBLIC = {**public(si), **public(yunikorn_actors), **public(trace), **LABORATORY}


# -- each name stands in the reference


def listed() -> list[str]:
    pages = "".join(page.read_text("utf-8") for page in sorted(API.glob("*.md")))
    return re.findall(r"^\.\. auto(?:class|function|data):: ([\w.]+)$", pages, re.MULTILINE)


def test_every_public_name_stands_in_the_reference_once() -> None:
    names = [name.rpartition(".")[2] for name in listed()]
    assert sorted({*PUBLIC, *CONSTANTS}) == sorted(names)


# -- each has words


@cache
def words_in(module: str) -> dict[str, str]:
    """Return the texts that follow assignments, by the names of class and field."""
    file = sys.modules[module].__file__
    assert file is not None
    tree = ast.parse(Path(file).read_text("utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bodies = [("", tree.body), *((f"{node.name}.", node.body) for node in classes)]
    return {prefix + name: words for prefix, body in bodies for name, words in _words_of(body)}


def _words_of(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for item, following in pairwise(body):
        match item, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                yield name, words


def ours(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if base.__module__.startswith((PACKAGE, __name__))]


def fields_of(kind: type) -> list[tuple[type, str]]:
    """Return what a program reads by name, each with the class that says what it means."""
    if isinstance(kind, EnumType):
        return [(kind, member) for member in kind.__members__]
    if not issubclass(kind, Struct) and not hasattr(kind, "_fields") and not is_dataclass(kind):
        return []
    return [(base, field) for base in ours(kind) for field in inspect.get_annotations(base)]


def methods_of(kind: type) -> list[tuple[str, object]]:
    """Return the methods and properties that a program may use, those of our bases as well."""
    found = {name: it for base in reversed(ours(kind)) for name, it in vars(base).items()}
    return [
        (name, it)
        for name, it in found.items()
        if not name.startswith("_")
        and (inspect.isfunction(it) or isinstance(it, classmethod | property))
    ]


def speechless(name: str, it: object) -> list[str]:
    """Name all that has no words: the thing itself, its fields, its methods."""
    if not isinstance(it, type):
        said = it.__doc__ if inspect.isfunction(it) else words_of_value(name)
        return [] if said else [name]
    faults = [] if vars(it).get("__doc__") else [name]
    faults += [
        f"{name}.{field}"
        for base, field in fields_of(it)
        if not field.startswith("_") and f"{base.__name__}.{field}" not in words_in(base.__module__)
    ]
    return faults + [f"{name}.{method}" for method, it in methods_of(it) if not it.__doc__]


def words_of_value(name: str) -> str | None:
    """Find the words of a value in the module that makes it."""
    modules = [it for it in tuple(sys.modules) if it.startswith(PACKAGE)]
    having = (module for module in modules if name in vars(sys.modules[module]))
    return next((words_in(it)[name] for it in having if name in words_in(it)), None)


SPEECHLESS = {name: speechless(name, it) for name, it in PUBLIC.items()}
"""Found before a test has patched a class."""


def test_every_public_name_has_words() -> None:
    assert {} == {name: lacks for name, lacks in SPEECHLESS.items() if lacks}


def test_every_constant_has_words() -> None:
    words = words_in(constants.__name__)
    assert [] == [name for name in CONSTANTS if not words.get(name)]


# -- what has no words is noticed


class Plain(Struct):
    field: int

    def method(self) -> None:
        pass


class Told(Struct):
    """Has words."""

    field: int
    """So has this."""

    def method(self) -> None:
        """And this."""


def test_what_has_no_words_is_noticed() -> None:
    assert ["Plain", "Plain.field", "Plain.method"] == speechless("Plain", Plain)
    assert [] == speechless("Told", Told)
