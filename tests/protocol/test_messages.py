"""What every message, fact and effect keeps to, and the tables that must be total.

Each rule is a function that returns the faults it finds; for each there is a test that it holds, and
one that it would notice.
"""

import ast
import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import pytest
from msgspec import Struct
from msgspec import inspect as types

from yunikorn_actors.machines import context, events, planning_loop, rm_proxy, scheduler
from yunikorn_actors.machines.machine import Effect
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.codec import MESSAGE_TYPES, UnknownMessage
from yunikorn_actors.state import facts as f

MESSAGES = tuple(MESSAGE_TYPES.values())
FACTS = get_args(f.Fact)
EFFECTS = get_args(Effect)
VALUES = (*MESSAGES, *FACTS, *EFFECTS)

ANYTHING_PLAIN = {
    ("StateDump", "state"),
    ("StartMachine", "arguments"),
    ("MachineFailed", "legacy"),
    ("PartitionSnapshot", "image"),
    ("CoreRestored", "images"),
}
"""Fields that hold plain values of any shape, because their reader is a person or a constructor."""


def faulty(kinds: Iterable[type], faults: Callable[[Any], list[str]]) -> dict[str, list[str]]:
    """Go through all kinds in one test; return what is wrong by the kind."""
    found = ((kind.__name__, faults(kind)) for kind in kinds)
    return {name: its for name, its in found if its}


# -- form


def spelling_faults(kind: type) -> list[str]:
    """Neither word is inherited by subclasses, so each class says both."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    spelt = {word.arg for word in tree.keywords if ast.unparse(word.value) == "True"}
    return [word for word in ("frozen", "kw_only") if word not in spelt]


_SCALARS = (
    types.StrType,
    types.IntType,
    types.BoolType,
    types.FloatType,
    types.NoneType,
    types.EnumType,
)


def value_faults(kind: type) -> list[str]:
    """Name the fields, however deep, that hold something else than frozen values."""
    return _faults_of(types.type_info(kind), kind.__name__, seen=[])


def _faults_of(info: types.Type, where: str, seen: list[type]) -> list[str]:
    if isinstance(info, types.Metadata):
        return _faults_of(info.type, where, seen)
    if isinstance(info, types.StructType):
        return _struct_faults(info, where, seen)
    parts: tuple[types.Type, ...]
    if isinstance(info, types.UnionType):
        parts = tuple(info.types)
    elif isinstance(info, types.VarTupleType):
        parts = (info.item_type,)
    elif isinstance(info, types.DictType) and isinstance(_bare(info.key_type), types.StrType):
        parts = (info.value_type,)
    else:
        return [] if isinstance(info, _SCALARS) else [where]
    return [fault for part in parts for fault in _faults_of(part, where, seen)]


def _bare(info: types.Type) -> types.Type:
    return info.type if isinstance(info, types.Metadata) else info


def _struct_faults(info: types.StructType, where: str, seen: list[type]) -> list[str]:
    if info.cls in seen:
        return []
    seen.append(info.cls)
    faults = [] if info.cls.__struct_config__.frozen else [where]
    for field in info.fields:
        if (info.cls.__name__, field.name) not in ANYTHING_PLAIN:
            faults += _faults_of(field.type, f"{where}.{field.name}", seen)
    return faults


class Careless(Message, frozen=True):
    note: str


class Thawed(Struct):
    note: str


class Carrier(Message, frozen=True, kw_only=True):
    several: list[str]
    either: str | set[str]
    call: Callable[[], None]
    anything: Any
    inner: tuple[Thawed, ...]
    numbered: dict[int, str]


def test_each_class_spells_frozen_and_kw_only() -> None:
    assert {} == faulty(VALUES, spelling_faults)


def test_a_class_that_leaves_kw_only_to_its_base_is_noticed() -> None:
    assert spelling_faults(Careless) == ["kw_only"]
    assert spelling_faults(Thawed) == ["frozen", "kw_only"]


def test_fields_hold_frozen_values() -> None:
    assert {} == faulty(VALUES, value_faults)


def test_each_field_that_can_change_or_act_is_noticed() -> None:
    assert value_faults(Carrier) == [
        "Carrier.several",
        "Carrier.either",
        "Carrier.call",
        "Carrier.anything",
        "Carrier.inner",
        "Carrier.numbered",
    ]


# -- names

FACT_NAME = re.compile(r"(ed|Put|Held|Made|Forgotten)$")
"""A past participle; the irregular ones are spelt out."""
MESSAGE_NAMES = re.compile(
    r"^RM[A-Z]"  # between RmProxy and Context
    r"|^Call[A-Z]"  # to a callback
    r"|Due$"  # of a timer
    r"|Requested$"  # from outside
    r"|^(Propose|Run|Send|Report|Check)[A-Z]"  # a request: a verb first
    r"|(ed|Found|Dump|Snapshot|Explanation|Lost|Left|Update)$"  # an answer, or what happened
)


def name_faults(kind: type[Struct], shape: re.Pattern[str]) -> list[str]:
    name = kind.__name__
    faults = [] if shape.search(name) else [name]
    if name.endswith("Rejected") and "reason" not in kind.__struct_fields__:
        faults.append(f"{name} without a reason")
    return faults


class NodeRejected(Message, frozen=True, kw_only=True):
    node_id: str


class AddNode(f.Base, frozen=True, kw_only=True):
    node_id: str


def test_a_fact_says_what_has_happened() -> None:
    assert {} == faulty(FACTS, lambda kind: name_faults(kind, FACT_NAME))


def test_a_message_is_named_for_its_part_in_the_protocol() -> None:
    assert {} == faulty(MESSAGES, lambda kind: name_faults(kind, MESSAGE_NAMES))


def test_names_of_another_shape_are_noticed() -> None:
    assert name_faults(AddNode, FACT_NAME) == ["AddNode"]
    assert name_faults(AddNode, MESSAGE_NAMES) == ["AddNode"]
    assert name_faults(NodeRejected, MESSAGE_NAMES) == ["NodeRejected without a reason"]


# -- what exists


def subclasses(kind: type) -> list[type]:
    below: list[type] = kind.__subclasses__()
    return [*below, *(deeper for child in below for deeper in subclasses(child))]


def unlisted(base: type, listed: Iterable[type]) -> list[str]:
    """Name the classes of the package that derive from the base and are not in the list.

    Nobody sends a message of an unknown type; it is what a recording of a later version holds.
    """
    return [
        kind.__name__
        for kind in subclasses(base)
        if kind.__module__.startswith("yunikorn_actors.") and kind not in (*listed, UnknownMessage)
    ]


def test_a_trace_can_hold_every_message() -> None:
    assert unlisted(Message, MESSAGES) == []


def test_the_union_of_facts_names_every_fact() -> None:
    assert unlisted(f.Base, FACTS) == []


def test_what_is_not_listed_is_noticed() -> None:
    assert unlisted(f.Base, FACTS[1:]) == [FACTS[0].__name__]
    assert unlisted(Message, MESSAGES[1:]) == [MESSAGES[0].__name__]


# -- tables


def handler_faults(table: Mapping[type, Any]) -> list[str]:
    """Name the handlers that are not named for their message; one of several is named freely."""
    served = Counter(table.values())
    return [
        handler.__name__
        for kind, handler in table.items()
        if not handler.__name__.startswith("_on_")
        or (served[handler] == 1 and handler.__name__ != "_on_" + snake_case(kind.__name__))
    ]


def snake_case(name: str) -> str:
    """Spell RMUpdateNode as rm_update_node."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


TABLES: dict[str, Mapping[type, Any]] = {
    "rm_proxy": rm_proxy.HANDLERS,
    "context": context.HANDLERS,
    "scheduler": {**scheduler.HANDLERS, **planning_loop.HANDLERS},
    "event_publisher": events.HANDLERS,
}


@pytest.mark.parametrize("name", TABLES)
def test_handlers_are_named_for_their_messages(name: str) -> None:
    assert handler_faults(TABLES[name]) == []


def test_a_handler_with_another_name_is_noticed() -> None:
    class Planner:
        def _on_add_node(self) -> None: ...

        def _on_node(self) -> None: ...

        def refused(self) -> None: ...

    single: dict[type, Any] = {AddNode: Planner._on_add_node, NodeRejected: Planner._on_node}
    assert handler_faults(single) == ["_on_node"]
    shared: dict[type, Any] = dict.fromkeys((AddNode, NodeRejected), Planner._on_node)
    assert handler_faults(shared) == []
    assert handler_faults(dict.fromkeys(shared, Planner.refused)) == ["refused", "refused"]


@pytest.mark.parametrize("name", TABLES)
def test_every_message_with_a_handler_can_travel(name: str) -> None:
    assert [kind for kind in TABLES[name] if kind not in MESSAGES] == []
