"""The replica of one life of a partition, with the notes and the incidents beside it.

`Book` keeps them together and applies each fact to all.

The incidents are the newest refusals, preemptions, timeouts and losses of the partition. Which
facts are incidents, and in which words, stands with the facts. What happens to asks and allocations
is counted for their application, so that a thousand of them are one line, with a count and the one
that came last. The list is bounded, and a kind that has most of it loses its oldest line: a storm
of one kind leaves the lines of the others where they are.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from yunikorn_actors.planning.expected import Expectations
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.service.read.projection import Notes
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import COUNTS_AS_RUNNING, ApplicationEvent, ApplicationState
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import restore
from yunikorn_actors.values.ids import manager_of_partition, short_partition_name

# Event counts: what has happened since the read side began, for the metrics.

_S = ApplicationState
ENDS: Final = {_S.COMPLETED: "completed", _S.FAILED: "failed", _S.REJECTED: "rejected"}


class EventCounts:
    """Of all partitions together; a queue keeps its numbers when it goes and comes back."""

    def __init__(self) -> None:
        self.allocated: Counter[str] = Counter()
        """By queue."""
        self.released: Counter[str] = Counter()
        """By queue."""
        self.ended: Counter[tuple[str, str]] = Counter()
        """Applications by queue and how they ended."""
        self.submitted: Counter[str] = Counter()
        """Applications that were new, were accepted, were rejected."""
        self.nodes_removed = 0

    def note(self, fact: f.Fact) -> None:
        count = _COUNTED.get(type(fact))
        if count is not None:
            count(self, fact)

    def _placed(self, fact: f.AllocationCommitted | f.AllocationRecovered) -> None:
        self.allocated[fact.queue] += 1

    def _all_placed(self, fact: f.AllocationsCommitted) -> None:
        # A run has few different charges, and each counts as often as it was made.
        for member, count in Counter(fact.members).items():
            self.allocated[fact.charged[member].queue] += count

    def _swapped(self, fact: f.SwapCompleted) -> None:
        self.allocated[fact.queue] += 1
        self.released[fact.queue] += 1

    def _released(self, fact: f.AllocationReleased) -> None:
        self.released[fact.queue] += 1

    def _added(self, _: f.ApplicationAdded) -> None:
        self.submitted["new"] += 1

    def _rejected(self, _: f.ApplicationRejected) -> None:
        self.submitted["rejected"] += 1
        self.ended["", "rejected"] += 1

    def _state(self, fact: f.ApplicationStateChanged) -> None:
        if fact.state is _S.ACCEPTED and fact.event is ApplicationEvent.RUN:
            self.submitted["accepted"] += 1
        end = ENDS.get(fact.state)
        if end is not None:
            self.ended[fact.queue, end] += 1
        if end == "rejected":
            self.submitted["rejected"] += 1

    def _node_removed(self, _: f.NodeRemoved) -> None:
        self.nodes_removed += 1


_COUNTED: Final[dict[type, Callable[[EventCounts, Any], None]]] = {
    f.AllocationCommitted: EventCounts._placed,
    f.AllocationRecovered: EventCounts._placed,
    f.AllocationsCommitted: EventCounts._all_placed,
    f.SwapCompleted: EventCounts._swapped,
    f.AllocationReleased: EventCounts._released,
    f.ApplicationAdded: EventCounts._added,
    f.ApplicationRejected: EventCounts._rejected,
    f.ApplicationStateChanged: EventCounts._state,
    f.NodeRemoved: EventCounts._node_removed,
}


LISTED_MAX: Final = 100


class IncidentLine(Struct, kw_only=True):
    """As the live page gets it."""

    kind: str
    whom: str
    what: str
    such_as: str
    """Key of the last ask or allocation."""
    count: int
    last_ns: int


class Incidents:
    """Of one partition."""

    def __init__(self) -> None:
        self._by_line: dict[tuple[str, str, str], IncidentLine] = {}

    def note(self, fact: f.Fact) -> None:
        for incident in fact.incidents():
            self._count(incident, fact.at_ns)  # type: ignore[union-attr] # incidents have a time

    def _count(self, incident: f.Incident, at_ns: int) -> None:
        kind, whom, what, such_as = incident
        # Taken out and put in again, so that the newest stands last.
        known = self._by_line.pop((kind, whom, what), None)
        count = 1 if known is None else known.count + 1
        self._by_line[kind, whom, what] = IncidentLine(
            kind=kind, whom=whom, what=what, such_as=such_as, count=count, last_ns=at_ns
        )
        if len(self._by_line) > LISTED_MAX:
            self._drop_one()

    def _drop_one(self) -> None:
        """Drop the oldest line of the kind that has most of them."""
        # The kind with most lines pays: the others stay, however rare they are.
        kinds = Counter(kind for kind, _, _ in self._by_line)
        most = max(kinds.values())
        oldest = next(it for it in self._by_line if kinds[it[0]] == most)
        del self._by_line[oldest]

    def newest(self) -> list[IncidentLine]:
        return list(reversed(self._by_line.values()))


_NODES: Final = frozenset({f.NodeAdded, f.NodeRemoved})


class GapInFacts(Exception):
    """Facts were missed, so the replica is not the truth any more."""


class Book:
    def __init__(
        self,
        name: str,
        epoch: int,
        event_counts: EventCounts,
        now_ns: int,
        policies: Policies = NO_POLICIES,
    ) -> None:
        self.name = name
        self.epoch = epoch
        self.state = PartitionState(name, Folds(policies))
        self.expectations = Expectations(policies)
        self.notes = Notes(self.state)
        self.incidents = Incidents()
        self.changes_of_nodes = 0
        """How often a node came or went."""
        self.changed_ns = now_ns
        """When it came into the state that it is in."""
        self._event_counts = event_counts

    @property
    def short_name(self) -> str:
        return short_partition_name(self.name)

    @property
    def rm_id(self) -> str:
        return manager_of_partition(self.name)

    @property
    def state_name(self) -> str:
        """The word for it: YuniKorn has one partition state that takes work, and so has this."""
        if not self.state.suspended:
            return "Active"
        return "Behind" if self.state.is_backpressured else "Paused"

    @property
    def running(self) -> int:
        """How many applications run."""
        return sum(app.state in COUNTS_AS_RUNNING for app in self.state.applications.values())

    def restore(self, image: dict[str, Any]) -> None:
        restore(self.state, image)
        # The peak of what was before is not known: it begins with what there is.
        for app in self.state.applications.values():
            self.notes.of(app.serial).rise(app)

    def take(self, first_revision: int, facts: tuple[f.Fact, ...]) -> None:
        state, notes, event_counts = self.state, self.notes, self._event_counts
        expectations = self.expectations
        if first_revision != state.revision + 1:
            raise GapInFacts(
                f"the read side of {self.name} is at revision {state.revision} and was sent facts "
                f"from revision {first_revision} on"
            )
        for fact in facts:
            notes.before(fact)
            expectations.before(state, fact)
            apply(state, fact)
            notes.after(fact)
            event_counts.note(fact)
            self.incidents.note(fact)
            if type(fact) is f.SchedulingHeld:
                self.changed_ns = fact.at_ns
            elif type(fact) in _NODES:
                self.changes_of_nodes += 1
