"""Values that the collector of garbage passes over (`gc=False`) can be on no cycle.

Such a value is freed when its last reference goes, so one that led back to itself would stay for
ever. Its declared types say that it cannot: they lead to plain values and to other structures, and
none of these leads back. Nothing is left open on the way, where anything could be put in.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from types import ModuleType

import pytest
from msgspec import Struct, inspect

import benchmarks
import yunikorn_actors

OURS = {"yunikorn_actors", "benchmarks"}
ATOMS = (
    inspect.StrType,
    inspect.IntType,
    inspect.FloatType,
    inspect.BoolType,
    inspect.BytesType,
    inspect.NoneType,
    inspect.EnumType,
)


def _passed_over() -> list[type[Struct]]:
    for package in (yunikorn_actors, benchmarks):
        _import_all(package)
    found = {kind for kind in _below(Struct) if not kind.__struct_config__.gc}
    own = {kind for kind in found if kind.__module__.split(".")[0] in OURS}
    return sorted(own, key=lambda kind: (kind.__module__, kind.__name__))


def _import_all(package: ModuleType) -> None:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            _import(module.name)


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as missing:
        # What an extra brings need not be installed here.
        if str(missing.name).partition(".")[0] in OURS:
            raise


def _below(kind: type[Struct]) -> Iterator[type[Struct]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


@cache
def _fields_of(kind: type[Struct]) -> tuple[inspect.Type, ...]:
    form = inspect.type_info(kind)
    assert isinstance(form, inspect.StructType)
    return tuple(field.type for field in form.fields)


def _structs_in(declared: inspect.Type) -> Iterator[type[Struct]]:
    if isinstance(declared, inspect.StructType):
        yield declared.cls
        return
    for part in _parts_of(declared):
        yield from _structs_in(part)


def _parts_of(declared: inspect.Type) -> Iterable[inspect.Type]:
    match declared:
        case inspect.Metadata(type=part):
            return (part,)
        case inspect.UnionType(types=parts) | inspect.TupleType(item_types=parts):
            return parts
        case (
            inspect.VarTupleType(item_type=part)
            | inspect.FrozenSetType(item_type=part)
            | inspect.ListType(item_type=part)
        ):
            return (part,)
        case inspect.DictType(key_type=key, value_type=value):
            return (key, value)
        case inspect.NamedTupleType(fields=fields):
            return tuple(field.type for field in fields)
    assert isinstance(declared, ATOMS), f"anything could be in a {declared}"
    return ()


def _reached_from(kind: type[Struct]) -> set[type[Struct]]:
    reached: set[type[Struct]] = set()
    waiting = [kind]
    while waiting:
        for part in _fields_of(waiting.pop()):
            found = set(_structs_in(part)) - reached
            reached |= found
            waiting.extend(found)
    return reached


def test_those_of_which_there_are_many_are_passed_over() -> None:
    names = {kind.__name__ for kind in _passed_over()}
    wanted = {
        "Allocation",
        "AllocationRecovered",
        "ApplicationSpec",
        "Ask",
        "AskItem",
        "AskOrder",
        "AskSpec",
        "FinishedApplication",
        "Held",
        "LimitConfig",
        "Node",
        "QueueSpec",
        "Scale",
        "StateEntry",
    }
    assert wanted <= names


@pytest.mark.parametrize(
    "kind", _passed_over(), ids=lambda kind: f"{kind.__module__}.{kind.__name__}"
)
def test_nothing_it_holds_leads_back_to_it(kind: type[Struct]) -> None:
    assert kind not in _reached_from(kind)
