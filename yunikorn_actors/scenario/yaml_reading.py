"""Reads YAML nodes strictly; every fault has its line.

A reader takes a node and returns a value or raises a ScenarioFault. On its way up the fault
collects the names of the keys and items around it. The keys of a mapping are declared once, as
fields of a Struct: each field is annotated with its reader, and a field without a default is
required.
"""

import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_type_hints

from msgspec import Struct, structs
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from yunikorn_actors.config import parse_duration
from yunikorn_actors.config.yaml_tree import BOOL_TAG, NULL_TAG, line_of

T = TypeVar("T")
S = TypeVar("S", bound=Struct)
E = TypeVar("E", bound=IntEnum)

Reader: TypeAlias = Callable[[Node], T]

INT_TAG: Final = "tag:yaml.org,2002:int"
_WHOLE: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,29})")
_FLAGS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_KINDS: Final = {MappingNode: "a mapping", SequenceNode: "a list", ScalarNode: "a single value"}


class ScenarioFault(Exception):
    """What is wrong with a node, and the keys and items around it."""

    def __init__(self, line: int, what: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(line, what, path)
        self.line = line
        self.what = what
        self.path = path

    def under(self, step: str) -> "ScenarioFault":
        return ScenarioFault(self.line, self.what, (step, *self.path))

    def __str__(self) -> str:
        return ": ".join((*self.path, self.what))


def within(step: str, read: Reader[T], node: Node) -> T:
    """Read the value of this key or item, and add its name to a fault."""
    try:
        return read(node)
    except ScenarioFault as fault:
        raise fault.under(step) from None


def wrong(node: Node, wanted: str) -> ScenarioFault:
    found = reprlib.repr(node.value) if isinstance(node, ScalarNode) else _KINDS[type(node)]
    return ScenarioFault(line_of(node), f"{found} where {wanted} is expected")


def allowed(words: Mapping[str, object]) -> str:
    return f"allowed: {', '.join(sorted(words))}"


def is_null(node: Node) -> bool:
    return node.tag == NULL_TAG


# --- single values --------------------------------------------------------------------------------


def text(node: Node) -> str:
    """Read any single value as it was written."""
    if not isinstance(node, ScalarNode) or is_null(node):
        raise wrong(node, "a text")
    return str(node.value)


def whole(node: Node) -> int:
    if node.tag != INT_TAG or not _WHOLE.fullmatch(str(node.value)):
        raise wrong(node, "a whole number")
    return int(node.value)


def flag(node: Node) -> bool:
    word = str(node.value).lower()
    if node.tag != BOOL_TAG or word not in _FLAGS:
        raise wrong(node, "true or false")
    return _FLAGS[word]


def duration(node: Node) -> int:
    """Read a duration such as `5m1s` in nanoseconds."""
    length = parse_duration(text(node))
    if length is None or length < 0:
        raise wrong(node, "a duration such as 200ms, 5s or 1h30m")
    return length


def one_of(words: Mapping[str, T]) -> Reader[T]:
    def read(node: Node) -> T:
        if (word := text(node)) in words:
            return words[word]
        raise ScenarioFault(line_of(node), f"unknown word {word!r}; {allowed(words)}")

    return read


def member_of(kind: type[E]) -> Reader[E]:
    return one_of({member.name: member for member in kind})


# --- lists and mappings ---------------------------------------------------------------------------


def optional(read: Reader[T]) -> Reader[T | None]:
    return lambda node: None if is_null(node) else read(node)


def many(read: Reader[T]) -> Reader[tuple[T, ...]]:
    def read_many(node: Node) -> tuple[T, ...]:
        if not isinstance(node, SequenceNode):
            raise wrong(node, "a list")
        return tuple(
            within(f"item {number}", read, item) for number, item in enumerate(node.value, 1)
        )

    return read_many


def members(node: Node) -> Iterator[tuple[ScalarNode, Node]]:
    if not isinstance(node, MappingNode):
        raise wrong(node, "a mapping")
    yield from node.value


def mapping(read: Reader[T]) -> Reader[dict[str, T]]:
    return lambda node: {key.value: within(key.value, read, value) for key, value in members(node)}


def table(readers: Mapping[str, Reader[Any]]) -> Reader[dict[str, Any]]:
    """Read a mapping with known keys; the result has only the keys that are written."""

    def read(node: Node) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in members(node):
            if key.value not in readers:
                raise ScenarioFault(line_of(key), f"unknown key {key.value!r}; {allowed(readers)}")
            values[key.value] = within(key.value, readers[key.value], value)
        return values

    return read


def record(kind: type[S]) -> Reader[S]:
    """Read a mapping into a Struct, with the reader in each field's annotation."""
    hints = get_type_hints(kind, include_extras=True)
    read_table = table({name: hint.__metadata__[0] for name, hint in hints.items()})
    required = [field.name for field in structs.fields(kind) if field.required]

    def read(node: Node) -> S:
        values = read_table(node)
        for name in required:
            if name not in values:
                raise ScenarioFault(line_of(node), f"{name!r} is missing")
        return kind(**values)

    return read


def refuse_ambiguous_keys(node: Node) -> None:
    """Refuse, anywhere below the node, a key that occurs twice or is not a single value."""
    if isinstance(node, SequenceNode):
        for item in node.value:
            refuse_ambiguous_keys(item)
    if not isinstance(node, MappingNode):
        return
    seen: dict[str, None] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            raise wrong(key, "a single text as the key")
        if key.value in seen:
            raise ScenarioFault(line_of(key), f"duplicate key {key.value!r}; keep one of the two")
        seen[key.value] = None
        refuse_ambiguous_keys(value)


# --- types of fields ------------------------------------------------------------------------------

Text = Annotated[str, text]
OptionalText = Annotated[str | None, text]
Texts = Annotated[tuple[str, ...], many(text)]
TextMap = Annotated[dict[str, str], mapping(text)]
Whole = Annotated[int, whole]
OptionalWhole = Annotated[int | None, whole]
Flag = Annotated[bool, flag]
Duration = Annotated[int, duration]
Amounts = Annotated[dict[str, int], mapping(whole)]
OptionalAmounts = Annotated[dict[str, int] | None, mapping(whole)]
