"""The inquiry: one question about asks that wait, what was found out for it, and its words."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.shape import Shape, Wanted
from yunikorn_actors.planning.model.views import AppView, AskView, Gate, Owner, QueueView, key_of
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.reasons import LOOKS_MAX, Obstacle
from yunikorn_actors.planning.stages.gangs import Commitments
from yunikorn_actors.planning.why.preempting import next_placeholder
from yunikorn_actors.planning.why.survey import Survey, survey
from yunikorn_actors.values.close_names import first_few
from yunikorn_actors.values.devices import WHOLE, number_of
from yunikorn_actors.values.quantity import compared, readable
from yunikorn_actors.values.resource import Resource, describe

NAMES_MAX = 3


class Words(NamedTuple):
    """How it is worded; what is found does not depend on it."""

    amounts: Callable[[Resource], str]
    compared: Callable[[Resource, Resource], tuple[str, str]]
    """Writes two, so that they are seen to differ."""
    is_brief: bool
    """Leave out how much is used of how much, and which nodes are short of what."""

    def short(self, lacks: Resource, used: Resource, sizes: Resource) -> str:
        said = f"{self.amounts(lacks)} short"
        if self.is_brief:
            return said
        some, of = self.compared(amounts_of(lacks, used), amounts_of(lacks, sizes))
        return f"{said}: {some} of {of} are used"

    def too_large(self, wanted: Resource, sizes: Resource, has: str = "the maximum is") -> str:
        over = [kind for kind, quantity in wanted.items() if quantity > sizes.get(kind, 0)]
        # Both in one unit, so that they are seen to differ.
        asked, most = self.compared({kind: wanted[kind] for kind in over}, amounts_of(over, sizes))
        return f"it asks for {asked}, and {has} {most}"

    def besides(self, amounts: Resource, what: str) -> str:
        if self.is_brief or not amounts:
            return ""
        return f", and {self.amounts(amounts)} {what}"


def _both_exact(one: Resource, other: Resource) -> tuple[str, str]:
    return describe(one), describe(other)


FULL: Final = Words(readable, compared, is_brief=False)
BRIEF: Final = Words(readable, compared, is_brief=True)
"""For tables that people read."""
IN_BASE_UNITS: Final = Words(describe, _both_exact, is_brief=False)
"""So that a question of an older recording has the answer that was recorded."""


class Line:
    """The asks that wait in one leaf, in the order in which they are tried."""

    def __init__(self, leaf: QueueView) -> None:
        self.total = 0
        self._before: dict[AppView, int] = {}
        self._orders: dict[AppView, dict[str, int]] = {}
        # In the order of the planner: applications by their rank, then asks by age.
        for app in sorted(leaf.members.values(), key=key_of):
            self._before[app] = self.total
            self.total += sum(1 for record in app.app.asks.values() if record.remaining)

    def place_of(self, ask: AskView) -> int:
        app = ask.app
        # Worked out for the applications that are asked about alone.
        if app not in self._orders:
            keys = (record.spec.key for record in app.app.waiting_asks())
            self._orders[app] = {key: place for place, key in enumerate(keys, 1)}
        return self._before[app] + self._orders[app][ask.ask.spec.key]


class Inquiry:
    """One question about waiting, with the answers to its parts so far."""

    def __init__(
        self, planner: Planner, now_ns: int, words: Words = FULL, looks: int | None = None
    ) -> None:
        """Look at no more nodes than `looks`; with 0 at none."""
        looks = LOOKS_MAX if looks is None else looks
        self.planner = planner
        self.now_ns = now_ns
        self.words = words
        self.commitments = Commitments(planner.model)
        self._looks = looks
        self.looked_at = 0
        """How many nodes were looked at, or would have been."""
        self.cost = 0
        """How many nodes and applications were looked at for it, beside those."""
        self._may_exceed = looks > 0
        """The first look is made, however many nodes there are."""
        self._surveys: dict[Shape | AskView, Survey | None] = {}
        self.rooms: dict[tuple[QueueView, Owner, Shape], tuple[Obstacle, ...]] = {}
        """What is short for all asks of one shape and one owner in one leaf."""
        self._lines: dict[QueueView, Line] = {}
        self._holders: dict[Gate, tuple[str, ...]] = {}
        self._members: dict[AppView, AskView | None] = {}

    def survey_of(self, case: "Case") -> Survey | None:
        """Look at all nodes; None if too many were looked at already."""
        # By shape for most: asks of one size see the nodes alike.
        whose = _whose(case.ask)
        if whose not in self._surveys:
            nodes = _candidates(case)
            self.looked_at += len(nodes)
            # The first look is made in any case, or a cluster that is too large would say nothing.
            is_first = self._may_exceed and not self._surveys
            may_look = is_first or self.looked_at <= self._looks
            self._surveys[whose] = survey(case.ask, nodes) if may_look else None
        return self._surveys[whose]

    def nodes_to_look_at(self, ask: AskView) -> int:
        """Return how many nodes `survey_of` would look at, and has not looked at for another."""
        # Only looks at nodes count against the bound, not those at applications.
        is_over = self.looked_at >= self._looks
        return 0 if is_over or _whose(ask) in self._surveys else len(_candidates(Case(self, ask)))

    def line_of(self, leaf: QueueView) -> Line:
        if leaf not in self._lines:
            self._lines[leaf] = Line(leaf)
        return self._lines[leaf]

    def holders_of(self, gate: Gate) -> tuple[str, ...]:
        """Name the applications that take the places of a gate, first those that do not run."""
        if gate not in self._holders:
            # What a reservation holds counts as running, but it is not there yet.
            apps, kept = self.planner.model.apps, gate.reserving
            self.cost += len(apps)
            names = [f"{apps[serial].app.id} (a node is reserved for it)" for serial in kept]
            others = (app.app for serial, app in apps.items() if serial not in kept)
            names += [app.id for app in others if gate.counts(apps[app.serial])]
            self._holders[gate] = tuple(names)
        return self._holders[gate]

    def next_member(self, app: AppView) -> AskView | None:
        """Return the placeholder that is tried next."""
        if app not in self._members:
            self._members[app] = next_placeholder(app)
        return self._members[app]


def _whose(ask: AskView) -> Shape | AskView:
    """An ask with a reservation sees its nodes in its own way."""
    return ask if ask.ask.reserved else ask.shape


class Case(NamedTuple):
    inquiry: Inquiry
    ask: AskView

    @property
    def planner(self) -> Planner:
        return self.inquiry.planner

    @property
    def app(self) -> AppView:
        return self.ask.app

    @property
    def words(self) -> Words:
        return self.inquiry.words


def _candidates(case: Case) -> list[NodeView]:
    views = case.planner.model.nodes.views
    required = case.ask.shape.required_node
    # What requires a node is compared with that one alone.
    if not required:
        return list(views.values())
    return [views[required]] if required in views else []


def named(names: Iterable[str]) -> str:
    """Name the first few."""
    return first_few(names, NAMES_MAX)


def amounts_of(kinds: Iterable[str] | Wanted, amounts: Resource) -> Resource:
    """Take the amounts of these types alone, 0 where there is none."""
    names = (kind if isinstance(kind, str) else kind[0] for kind in kinds)
    return {name: amounts.get(name, 0) for name in names}


# Without zeros: they would say nothing to a reader.
def some_of(kinds: Iterable[str], amounts: Resource) -> Resource:
    """Return the amounts of these types that are not zero."""
    return {kind: amounts[kind] for kind in kinds if amounts.get(kind)}


def no_device(amount: int) -> str:
    """Say what no device, or too few of them, have left; whatever the sum of all is."""
    if amount < WHOLE:
        return f"no device with {in_devices(amount)} of one left"
    number = number_of(amount)
    # More than one device and not whole ones: no number of devices adds up to that.
    if not number:
        return "no share of several devices: ask for less than one, or for whole ones"
    return "no idle device" if number == 1 else f"less than {number} idle devices"


def in_devices(amount: int) -> str:
    return f"{amount / WHOLE:g}"
