"""Words for things: keys, nodes and amounts, as people look for them.

Facts are put into these words, and recordings show messages in them. Lists are cut short.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.values.resource import Resource

SHOWN_MAX = 4
"""How many items of a list are named; the others are counted."""
NAMES: Final = frozenset(
    {"rm_id", "partition", "application_id", "key", "node_id", "path", "kind", "reason"}
)
"""Fields that say of what a message or a fact is."""


def named_in(value: Struct) -> str:
    """Name what is in a message, or in a fact."""
    return " ".join(getattr(value, it) for it in value.__struct_fields__ if it in NAMES)


def in_list(label: str, words: Iterable[str]) -> str:
    """Name the first few items; an empty list gives an empty text."""
    all_words = tuple(words)
    if not all_words:
        return ""
    rest = len(all_words) - SHOWN_MAX
    more = f" +{rest} more" if rest > 0 else ""
    return f"{label} {', '.join(all_words[:SHOWN_MAX])}{more}"


def in_amounts(resource: Resource | None) -> str:
    if resource is None:
        return "unset"
    return ",".join(f"{kind}={quantity}" for kind, quantity in resource.items()) or "nothing"


def repeats_of(spec: AskSpec) -> str:
    return f" x{spec.max_allocations}" if spec.max_allocations != 1 else ""


def ask_in_words(spec: AskSpec) -> str:
    return f"{spec.application_id} {spec.key} {in_amounts(spec.resource)}{repeats_of(spec)}"


def placed_on(key: str, node_id: str) -> str:
    return f"{key} -> {node_id}"
