"""The agenda: which leaves the preemptor looks at, and when.

A leaf is *due* at the moment at which the first of its asks may preempt. A leaf in which nothing
was found is *idle*: without a change the same search would find nothing again, so only a change
makes it due, and not before its pause is over. A leaf is *blocked* as well if something that may be
given up stood in the way: when that happens its asks need not wait for the pause.
"""

from yunikorn_actors.planning.model.requeue import PreemptingMarks
from yunikorn_actors.planning.model.views import Lane, QueueView
from yunikorn_actors.planning.preemption.victim_rules import delay_of
from yunikorn_actors.values.durations import NEVER_NS, SECOND

PAUSE_NS = 15 * SECOND
"""Between two attempts for one ask."""


class Agenda:
    def __init__(self, marks: PreemptingMarks, delay_ns: int) -> None:
        self._marks = marks
        self._delay_ns = delay_ns
        self._due: dict[QueueView, int] = {}
        """Leaves with asks that may preempt, and when to look at the first of them."""
        self.idle: dict[QueueView, int] = {}
        """Leaves for which nothing was found: when to look again once something has changed."""
        self.blocked: dict[QueueView, None] = {}
        """Leaves whose asks look again as soon as something that was promised is not any more."""
        self.kept_back: dict[str, None] = {}
        """Nodes for which nothing was decided, because others of a gang found no room."""
        self.kept_back_at = -1
        """The revision at which that was found."""
        self.changes = 0
        """How many changes there were: an ask that was tried after as many finds nothing new."""

    def delay_of(self, leaf: QueueView) -> int:
        return delay_of(leaf.queue, self._delay_ns)

    def take_marks(self, revision: int) -> None:
        """Find the leaves to look at, and when; and the nodes, if something has changed."""
        marks = self._marks
        # Facts have come: what kept the gang back may be over.
        if self.kept_back and revision != self.kept_back_at:
            marks.nodes.update(self.kept_back)
            self.kept_back.clear()
        self.kept_back_at = revision
        if marks.was_measured:
            # Marks are taken away where they are read: the next plan sees only what is new.
            marks.was_measured = False
            self.changes += 1
            self._due.update(dict.fromkeys(marks.leaves, 0))
            marks.leaves.clear()
        if marks.is_stale:
            marks.is_stale = False
            self.changes += 1
            for leaf, due_ns in self.idle.items():
                self._advance(leaf, due_ns)
            self.idle.clear()
        if marks.was_freed:
            # Something that stood in the way may be gone: the blocked need not wait.
            marks.was_freed = False
            self._due.update(dict.fromkeys(self.blocked, 0))
            self.blocked.clear()
        for leaf, created_ns in marks.new.items():
            self._advance(leaf, created_ns + self.delay_of(leaf))
        marks.new.clear()
        # The lane of a mark may have ended, and another one of the same asks have taken its place.
        for former in marks.lanes:
            lane = former.leaf.lanes.get((former.shape, former.owner))
            if lane is not None and may_preempt(lane):
                self._due[lane.leaf] = 0
        marks.lanes.clear()

    def _advance(self, leaf: QueueView, due_ns: int) -> None:
        self._due[leaf] = min(due_ns, self._due.get(leaf, NEVER_NS))

    # -- what a plan asks and finds

    def is_any_due(self, now_ns: int) -> bool:
        return any(due_ns <= now_ns for due_ns in self._due.values())

    def begin(self, leaf: QueueView, now_ns: int) -> bool:
        """Say whether the leaf is due; it stays so until `end`, as the plan may be cut short."""
        if self._due.get(leaf, NEVER_NS) > now_ns:
            return False
        # Due until its end: a plan that is cut short goes on with it.
        self._due[leaf] = 0
        return True

    def end(self, leaf: QueueView, next_ns: int) -> None:
        """All of the leaf was looked at; the next of its asks has waited long enough then."""
        self._due[leaf] = next_ns

    def rest(self, leaf: QueueView, due_ns: int) -> None:
        """Nothing was found: look again after a change, and not before this time."""
        self.idle[leaf] = min(due_ns, self.idle.get(leaf, NEVER_NS))

    def block(self, leaf: QueueView, now_ns: int) -> None:
        """The obstacle may end at any time; then the asks do not wait for the pause."""
        self.blocked[leaf] = None
        self.rest(leaf, now_ns + PAUSE_NS)

    def retry(self, leaf: QueueView) -> None:
        """Look again as soon as the newer facts are here, without the pause."""
        self.idle[leaf] = 0

    def clear(self) -> None:
        """Nothing is ever due: preemption is switched off."""
        self._due.clear()

    def next_ns(self) -> int:
        """Return when to come back; a leaf in which nothing waits is forgotten.

        One that a reload has made a parent is not looked at while it is one: its time would be over
        for ever, and no timer would be set for anything else.
        """
        # Nothing waits there: the next ask makes it due again.
        for leaf in [leaf for leaf in self._due if not (leaf.lanes or leaf.held)]:
            del self._due[leaf]
        times = (
            due_ns for leaf, due_ns in self._due.items() if _has_waiting(leaf) and not leaf.below
        )
        return min(times, default=NEVER_NS)


def may_preempt(lane: Lane) -> bool:
    """Lanes that wait for room on nodes or in queues; a user's limit is nobody else's fault."""
    if lane.is_open or lane.shape.required_node:
        return False
    return lane.refused_by is None or isinstance(lane.refused_by, QueueView)


def _has_waiting(leaf: QueueView) -> bool:
    return bool(leaf.held) or len(leaf.lanes) > len(leaf.open_lanes)
