"""What all facts share: each changes the state, and can be put into words."""

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct

from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.resource import Resource

# Words for things: keys, nodes and amounts, as people look for them.
#
# Facts are put into these words, and recordings show messages in them. Lists are cut short.

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


class IncidentKind(StrEnum):
    """Of what operators look for first."""

    REFUSED = "refused"
    PREEMPTED = "preempted"
    TIMEOUT = "timeout"
    LOST = "lost"


class Incident(NamedTuple):
    """Something that operators look for first: it went otherwise than somebody wanted."""

    kind: IncidentKind
    subject: str
    """The application, the node, the machine and so on to which it happened."""
    what: str
    key: str = ""
    """Of an ask or allocation of that application."""


class Base(Struct, frozen=True, kw_only=True, tag=True, tag_field="fact", gc=False):
    """What all facts share: on the wire each says which it is."""

    is_record: ClassVar[bool] = False
    """No decision depends on it: it tells what was found, or what is to happen later."""

    def change(self, state: PartitionState) -> None:
        """Bring every book of the state up to date; nothing is checked here."""
        raise NotImplementedError

    def in_words(self) -> str:
        """Say it on one line: the names in it, where the fact does not say it better."""
        return named_in(self)

    def incidents(self) -> Iterable[Incident]:
        """List the incidents of this fact, which operators look for first: most facts have none."""
        return ()
