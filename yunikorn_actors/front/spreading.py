"""Spreading: where asks may go, as a rule on the attributes of nodes.

The core asks before it places, so a rule is kept at the decision, and not by what the program has
been informed of. Between a yes and its placement other questions come. So an ask counts where it
was given a yes, until it is placed, is asked about again, or is over.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from yunikorn_actors.front.lease import BaseLease
from yunikorn_actors.front.node_rules import NODE, Rule
from yunikorn_actors.front.records import AskRecord, AskStage

L = TypeVar("L", bound=BaseLease)

_Group = tuple[str, str, str]
"""What is counted together: by which kind of rule, the attribute, and the application or name."""


_Room = tuple[str, str, str]
"""Where placeholders stand in for each other: application, group, node."""


class CandidateNode(NamedTuple):
    """A node, as rules see it."""

    node_id: str
    attributes: Mapping[str, str]

    def value(self, attribute: str) -> str | None:
        return self.node_id if attribute == NODE else self.attributes.get(attribute)

    def has(self, where: tuple[tuple[str, frozenset[str]], ...]) -> bool:
        return all(self.value(attribute) in values for attribute, values in where)


class Places(Protocol):
    """The nodes that there are."""

    changes: int
    """How often they have changed."""

    def place(self, node_id: str) -> CandidateNode | None: ...

    def open_places(self) -> Iterable[CandidateNode]:
        """Those that take work."""
        ...


class Whereabouts(Generic[L]):
    """Where the asks with a rule are, or are about to be."""

    def __init__(self) -> None:
        self.places: Places
        self._at: dict[AskRecord[L], list[tuple[_Group, str]]] = {}
        self.counts: defaultdict[_Group, Counter[str]] = defaultdict(Counter)
        self._refused: set[AskRecord[L]] = set()
        """They wait, and were given a no that may not hold any longer."""
        self._kept: defaultdict[_Room, dict[AskRecord[L], None]] = defaultdict(dict)
        """Placeholders that are placed and count."""
        self._taken: dict[AskRecord[L], AskRecord[L]] = {}
        """By the member that takes over its room: the placeholder that counts no more for that."""
        self._values: dict[Rule, frozenset[str]] = {}
        self._seen_changes = -1

    def objection(self, record: AskRecord[L], node_id: str) -> str:
        """Say why the ask may not go to this node; if it may, count it there."""
        # Over or placed: what it was asked about is of no use to anybody any more.
        if record.rule is None or record.stage is not AskStage.WAITS:
            return ""
        self.leave(record)
        # A placeholder of its group keeps room for it on that very node.
        kept = None if record.is_placeholder else self._kept.get(_room_of(record, node_id))
        if kept:
            # It takes over room that was spread when it was placed, whatever nodes came since.
            placeholder = next(iter(kept))
            self.leave(placeholder)
            self._enter(record, node_id)
            self._taken[record] = placeholder
            return ""
        place = self.places.place(node_id)
        why = "it is being removed" if place is None else self._why_not(record, record.rule, place)
        if why:
            # Asked about again when something has changed, as the rule may hold no longer.
            self._refused.add(record)
        else:
            self._enter(record, node_id)
        return why

    def enter(self, record: AskRecord[L], node_id: str) -> None:
        """Count one that is placed."""
        self.leave(record)
        self._enter(record, node_id)
        # Only what is placed keeps room; what is about to be does not.
        if record.is_placeholder:
            self._kept[_room_of(record, node_id)][record] = None

    def _enter(self, record: AskRecord[L], node_id: str) -> None:
        place = self.places.place(node_id)
        if place is None or record.rule is None:
            return
        groups = [_spread_group(record, record.rule)] if record.rule.spread else []
        groups += [_apart_group(*it) for it in record.rule.apart]
        # An attribute that the node does not have counts as one value of its own.
        there = [(group, place.value(group[1]) or "") for group in groups]
        self._at[record] = there
        for group, value in there:
            self.counts[group][value] += 1

    def leave(self, record: AskRecord[L]) -> None:
        self._refused.discard(record)
        placeholder = self._taken.pop(record, None)
        # Its member went elsewhere or is over: the placeholder counts again at its place.
        if placeholder is not None and placeholder.is_held:
            self.enter(placeholder, placeholder.running.node_id)
        room = _room_of(record, record.running.node_id)
        kept = self._kept.get(room)
        if kept is not None and kept.pop(record, True) is None and not kept:
            del self._kept[room]
        for group, value in self._at.pop(record, ()):
            counts = self.counts[group]
            counts[value] -= 1
            if not counts[value]:
                # Empty counters are removed, as a spread is over the values that there are.
                del counts[value]
                if not counts:
                    del self.counts[group]

    def placed(self, record: AskRecord[L], node_id: str) -> bool:
        """Say whether others that were refused may now be asked about anew."""
        self.enter(record, node_id)
        return bool(self._refused)

    # -- rules

    def _why_not(self, record: AskRecord[L], rule: Rule, place: CandidateNode) -> str:
        for attribute, values in rule.where:
            value = place.value(attribute)
            if value not in values:
                wanted = " or ".join(sorted(values))
                return f"its {attribute} is {value or 'not known'}, and not {wanted}"
        for attribute, name in rule.apart:
            value = place.value(attribute)
            if value is None:
                return f"its {attribute} is not known"
            if self.counts[_apart_group(attribute, name)][value]:
                return f"{attribute} {value} has one of {name!r}, which are to be apart"
        return self._why_uneven(record, rule, place) if rule.spread else ""

    def _why_uneven(self, record: AskRecord[L], rule: Rule, place: CandidateNode) -> str:
        value = place.value(rule.spread)
        if value is None:
            return f"its {rule.spread} is not known"
        counts = self.counts[_spread_group(record, rule)]
        # With its own value, which may be that of no node that takes work.
        fewest = min(self._values_of(rule) | {value}, key=lambda it: (counts[it], it))
        if counts[value] > counts[fewest]:
            return (
                f"{rule.spread} {value} has {counts[value]} of {record.app.id!r} and {fewest} "
                f"has {counts[fewest]}: they are to be spread"
            )
        return ""

    def _values_of(self, rule: Rule) -> frozenset[str]:
        """Return what nodes have that take work, and to which the ask may go otherwise."""
        # Worked out once for all asks of a rule, and anew when the nodes have changed.
        if self._seen_changes != self.places.changes:
            self._seen_changes = self.places.changes
            self._values.clear()
        values = self._values.get(rule)
        if values is None:
            found = (
                it.value(rule.spread) for it in self.places.open_places() if it.has(rule.where)
            )
            values = self._values[rule] = frozenset(it for it in found if it is not None)
        return values


def _room_of(record: AskRecord[Any], node_id: str) -> _Room:
    return (record.app.id, record.running.group, node_id)


def _spread_group(record: AskRecord[L], rule: Rule) -> _Group:
    return ("spread", rule.spread, record.app.id)


def _apart_group(attribute: str, name: str) -> _Group:
    return ("apart", attribute, name)
