"""The keys a configuration may have, and the type of each, as tables.

One table per kind of mapping: key to the function that reads its value. A mapping is read into the
class named after it, whose defaults stand for the keys that are missing or null. Every fault of the
document is collected: a person who mistypes one key has often mistyped another.
"""

import math
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from yunikorn_actors.config.fault import Fault
from yunikorn_actors.config.written import (
    Entry,
    Word,
    Written,
    WrittenConfig,
    WrittenFilter,
    WrittenLimit,
    WrittenNodeSort,
    WrittenPartition,
    WrittenPreemption,
    WrittenQueue,
    WrittenResolver,
    WrittenResources,
    WrittenRule,
    WrittenTemplate,
)
from yunikorn_actors.config.yaml_tree import BOOL_TAG, NULL_TAG, compose, line_of
from yunikorn_actors.values.quantity import UINT64_MAX

T = TypeVar("T")
W = TypeVar("W", bound=Written)

_TRUE: Final = ("true", "yes", "on")
_COUNT: Final = re.compile(r"0|[1-9][0-9]{0,19}")
_NUMBER: Final = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_KINDS: Final = {MappingNode: "a mapping", SequenceNode: "a list", ScalarNode: "a single value"}


class Position(Struct, frozen=True, kw_only=True):
    """Where in the document a value stands, and where its faults go."""

    path: str
    faults: list[Fault]

    def key(self, key: str) -> "Position":
        return Position(path=f"{self.path}.{key}" if self.path else key, faults=self.faults)

    def item(self, index: int) -> "Position":
        return Position(path=f"{self.path}[{index}]", faults=self.faults)

    def fault(self, node: Node, what: str, remedy: str) -> None:
        path = self.path or "document"
        self.faults.append(Fault(line=line_of(node), path=path, what=what, remedy=remedy))


Reader: TypeAlias = Callable[[Node, Position], T]


def read_document(text: str) -> tuple[WrittenConfig, list[Fault]]:
    """Read a text, as far as its keys and types are as they should be, and say which are not."""
    node = compose(text)
    if node is None or node.tag == NULL_TAG:
        return WrittenConfig(), []
    position = Position(path="", faults=[])
    return _record(WrittenConfig, CONFIG, node, position), position.faults


# --- single values --------------------------------------------------------------------------------


def _wrong(node: Node, position: Position, wanted: str) -> None:
    found = repr(node.value) if isinstance(node, ScalarNode) else _KINDS[type(node)]
    position.fault(node, f"{found} where {wanted} is expected", f"write {wanted}")


def _text(node: Node, position: Position) -> str:
    """Take any single value as its text, as it was written."""
    if not isinstance(node, ScalarNode):
        _wrong(node, position, "a text")
        return ""
    return "" if node.tag == NULL_TAG else node.value


def _word(node: Node, position: Position) -> Word:
    return Word(text=_text(node, position), line=line_of(node))


def _unquoted(node: Node) -> str:
    return node.value if isinstance(node, ScalarNode) and node.style is None else ""


def _flag(node: Node, position: Position) -> bool:
    if node.tag != BOOL_TAG or not isinstance(node, ScalarNode):
        _wrong(node, position, "true or false")
        return False
    return node.value.lower() in _TRUE


def _count(node: Node, position: Position) -> int:
    text = _unquoted(node)
    if not _COUNT.fullmatch(text) or int(text) > UINT64_MAX:
        _wrong(node, position, "a whole number from 0 to 2^64-1")
        return 0
    return int(text)


def _number(node: Node, position: Position) -> float:
    text = _unquoted(node)
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        _wrong(node, position, "a number")
        return 0.0
    return float(text)


# --- lists and mappings ---------------------------------------------------------------------------


def _many(read: Reader[T]) -> Reader[tuple[T, ...]]:
    def read_many(node: Node, position: Position) -> tuple[T, ...]:
        if not isinstance(node, SequenceNode):
            _wrong(node, position, "a list")
            return ()
        return tuple(read(item, position.item(index)) for index, item in enumerate(node.value))

    return read_many


def _members(node: Node, position: Position) -> dict[str, tuple[Node, Node]]:
    """Return key and value nodes of a mapping by the text of the key."""
    members: dict[str, tuple[Node, Node]] = {}
    if not isinstance(node, MappingNode):
        _wrong(node, position, "a mapping")
        return members
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            _wrong(key, position, "a single text as the key")
        elif key.value in members:
            position.fault(key, f"duplicate key {key.value!r}", "keep one of the two")
        else:
            members[key.value] = (key, value)
    return members


def _entries(read: Reader[T]) -> Reader[tuple[Entry[T], ...]]:
    def read_entries(node: Node, position: Position) -> tuple[Entry[T], ...]:
        entries = []
        for name, (key, value) in _members(node, position).items():
            known = len(position.faults)
            entry = Entry(key=name, value=read(value, position.key(name)), line=line_of(key))
            if len(position.faults) == known:  # of a wrong type that is all
                entries.append(entry)
        return tuple(entries)

    return read_entries


def _record(kind: type[W], keys: dict[str, Reader[object]], node: Node, position: Position) -> W:
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for name, (key, value) in _members(node, position).items():
        if name not in keys:
            allowed = ", ".join(sorted(keys))
            position.fault(key, f"unknown key {name!r}", f"allowed here: {allowed}")
        elif value.tag != NULL_TAG:
            values[name] = keys[name](value, position.key(name))
            lines[name] = line_of(key)
    return kind(line=line_of(node), lines=lines, **values)


# --- the tables -----------------------------------------------------------------------------------


def _queue(node: Node, position: Position) -> WrittenQueue:
    return _record(WrittenQueue, QUEUE, node, position)


def _rule(node: Node, position: Position) -> WrittenRule:
    return _record(WrittenRule, RULE, node, position)


def _of(kind: type[W], keys: dict[str, Reader[object]]) -> Reader[W]:
    return lambda node, position: _record(kind, keys, node, position)


RESOURCES: Final[dict[str, Reader[object]]] = {
    "guaranteed": _entries(_text),
    "max": _entries(_text),
}
TEMPLATE: Final[dict[str, Reader[object]]] = {
    "maxapplications": _count,
    "properties": _entries(_text),
    "resources": _of(WrittenResources, RESOURCES),
}
LIMIT: Final[dict[str, Reader[object]]] = {
    "limit": _text,
    "users": _many(_word),
    "groups": _many(_word),
    "maxresources": _entries(_text),
    "maxapplications": _count,
}
QUEUE: Final[dict[str, Reader[object]]] = {
    "name": _text,
    "parent": _flag,
    "queues": _many(_queue),
    "resources": _of(WrittenResources, RESOURCES),
    "maxapplications": _count,
    "properties": _entries(_text),
    "adminacl": _text,
    "submitacl": _text,
    "limits": _many(_of(WrittenLimit, LIMIT)),
    "childtemplate": _of(WrittenTemplate, TEMPLATE),
}
FILTER: Final[dict[str, Reader[object]]] = {
    "type": _text,
    "users": _many(_word),
    "groups": _many(_word),
}
RULE: Final[dict[str, Reader[object]]] = {
    "name": _text,
    "create": _flag,
    "filter": _of(WrittenFilter, FILTER),
    "parent": _rule,
    "value": _text,
}
NODE_SORT: Final[dict[str, Reader[object]]] = {
    "type": _text,
    "resourceweights": _entries(_number),
}
PREEMPTION: Final[dict[str, Reader[object]]] = {
    "enabled": _flag,
    "quotapreemptionenabled": _flag,
}
RESOLVER: Final[dict[str, Reader[object]]] = {
    "type": _text,
}
PARTITION: Final[dict[str, Reader[object]]] = {
    "name": _text,
    "queues": _many(_queue),
    "placementrules": _many(_rule),
    "limits": _many(_of(WrittenLimit, LIMIT)),
    "preemption": _of(WrittenPreemption, PREEMPTION),
    "nodesortpolicy": _of(WrittenNodeSort, NODE_SORT),
    "usergroupresolver": _of(WrittenResolver, RESOLVER),
}
CONFIG: Final[dict[str, Reader[object]]] = {
    "partitions": _many(_of(WrittenPartition, PARTITION)),
    "checksum": _text,
}
