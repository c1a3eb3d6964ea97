"""Where asks may go, as a rule on the attributes of nodes.

The core asks before it places, so a rule is kept at the decision, and not by what the program has
been informed of. Between a yes and its placement other questions come. So an ask counts where it
was given a yes, until it is placed, is asked about again, or is over.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.front.arguments import shown
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.records import AskRecord, AskStage, Rule

L = TypeVar("L", bound=BaseLease)

NODE: Final = "node"
"""As an attribute: the id of the node itself."""
Where = Mapping[str, str | Iterable[str]]
Apart = str | Mapping[str, str]

_Group = tuple[str, str, str]
"""What is counted together: by which kind of rule, the attribute, and the application or name."""


class Place(NamedTuple):
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

    def place(self, node_id: str) -> Place | None: ...

    def open_places(self) -> Iterable[Place]:
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
        self._values: dict[Rule, frozenset[str]] = {}
        self._seen_changes = -1

    def objection(self, record: AskRecord[L], node_id: str) -> str:
        """Say why it may not go there; if it may, it counts as being there."""
        if record.rule is None or record.stage is not AskStage.WAITS:
            return ""
        self.leave(record)
        place = self.places.place(node_id)
        why = "it is being removed" if place is None else self._why_not(record, record.rule, place)
        if why:
            self._refused.add(record)
        else:
            self.enter(record, node_id)
        return why

    def enter(self, record: AskRecord[L], node_id: str) -> None:
        self.leave(record)
        place = self.places.place(node_id)
        if place is None or record.rule is None:
            return
        groups = [_spread_group(record, record.rule)] if record.rule.spread else []
        groups += [_apart_group(*it) for it in record.rule.apart]
        there = [(group, place.value(group[1]) or "") for group in groups]
        self._at[record] = there
        for group, value in there:
            self.counts[group][value] += 1

    def leave(self, record: AskRecord[L]) -> None:
        self._refused.discard(record)
        for group, value in self._at.pop(record, ()):
            counts = self.counts[group]
            counts[value] -= 1
            if not counts[value]:
                del counts[value]
                if not counts:
                    del self.counts[group]

    def placed(self, record: AskRecord[L], node_id: str) -> bool:
        """Say whether others that were refused may now be asked about anew."""
        self.enter(record, node_id)
        return bool(self._refused)

    # -- rules

    def _why_not(self, record: AskRecord[L], rule: Rule, place: Place) -> str:
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

    def _why_uneven(self, record: AskRecord[L], rule: Rule, place: Place) -> str:
        value = place.value(rule.spread)
        if value is None:
            return f"its {rule.spread} is not known"
        counts = self.counts[_spread_group(record, rule)]
        fewest = min(self._values_of(rule) | {value}, key=lambda it: (counts[it], it))
        if counts[value] > counts[fewest]:
            return (
                f"{rule.spread} {value} has {counts[value]} of {record.app.id!r} and {fewest} "
                f"has {counts[fewest]}: they are to be spread"
            )
        return ""

    def _values_of(self, rule: Rule) -> frozenset[str]:
        """Return what nodes have that take work, and to which the ask may go otherwise."""
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


def _spread_group(record: AskRecord[L], rule: Rule) -> _Group:
    return ("spread", rule.spread, record.app.id)


def _apart_group(attribute: str, name: str) -> _Group:
    return ("apart", attribute, name)


# -- as they are written


def read_rule(where: Where | None, spread: str, apart_from: Apart, group: str) -> Rule | None:
    """Read the arguments of `ask`; None if there is no rule."""
    if where is None and not spread and not apart_from:
        return None
    if group:
        raise InvalidRequest(
            "ask: where, spread and apart_from: not for a member of a gang, which goes where its "
            "room is kept"
        )
    if not isinstance(spread, str):
        raise InvalidRequest(f"ask: spread: must be an attribute of nodes, not {shown(spread)}")
    return Rule(_read_where(where), spread, _read_apart(apart_from))


def rule_of(running: Running) -> Rule | None:
    """Return what others have to heed of work that runs already."""
    if not running.spread and not running.apart_from:
        return None
    return Rule((), running.spread, _read_apart(running.apart_from))


def _read_where(where: Where | None) -> tuple[tuple[str, frozenset[str]], ...]:
    if where is not None and not isinstance(where, Mapping):
        raise InvalidRequest(
            f"ask: where: must be a mapping such as {{'zone': 'a'}}, not {shown(where)}"
        )
    return tuple((str(name), _read_values(name, it)) for name, it in (where or {}).items())


def _read_values(name: str, values: object) -> frozenset[str]:
    several = (values,) if isinstance(values, str) else values
    if isinstance(several, Iterable):
        found = frozenset(several)
        if found and all(isinstance(it, str) for it in found):
            return found
    raise InvalidRequest(f"ask: where: {name}: must be a text or several, not {shown(values)}")


def _read_apart(apart_from: Apart) -> tuple[tuple[str, str], ...]:
    named = {NODE: apart_from} if isinstance(apart_from, str) and apart_from else apart_from or {}
    if not isinstance(named, Mapping) or not all(
        isinstance(it, str) and it for pair in named.items() for it in pair
    ):
        raise InvalidRequest(
            "ask: apart_from: must be a name, or a mapping such as {'zone': 'db'}, not "
            f"{shown(apart_from)}"
        )
    return tuple(named.items())
