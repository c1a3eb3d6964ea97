"""The requeue: what must be looked at again, with a method for each reason and marks for each part.

A change of the model calls the method that names what has happened; only this module knows which
parts that may help. The part that looks takes its marks away. Marking too much costs a try; marking
too little lets asks wait for ever (G30). docs/explanation/planning.md has the table.
"""

from collections.abc import Iterable

from msgspec import Struct

from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.shape import Shape
from yunikorn_actors.planning.model.views import AppView, AskView, Gate, Kind, Lane, QueueView

Owed = tuple[AppView, str]
"""An application, and the key of its ask."""


class MeasureMarks(Struct, eq=False):
    is_stale: bool = False
    """The cluster or the configuration changed, and not everything has been measured since."""
    is_under_way: bool = False
    """A plan has begun to measure, and nothing has changed since."""
    leaves: dict[QueueView, None] = {}
    """Leaves whose amounts have changed: their rank is worked out once, before planning."""


class ReservingMarks(Struct, eq=False):
    is_stale: bool = False
    """A change that may let a reservation be made, used or given up."""
    waits: bool = False
    """A reservation may have to be given up when what is on its way is resolved."""
    nodes: dict[str, None] = {}
    """Reserved nodes that may have room now for the ask that they are reserved for."""
    shapes: dict[Shape, None] = {}
    """Shapes of asks with a reservation that another node may have room for."""


class PreemptingMarks(Struct, eq=False):
    is_stale: bool = False
    """A change that may let an ask preempt, or a quota be enforced."""
    was_freed: bool = False
    """A reservation has ended, a decision about a node was answered, or a victim has gone."""
    was_measured: bool = False
    """Other asks may be entitled, or find victims."""
    leaves: dict[QueueView, None] = {}
    """Entitled leaves with asks at the time when they were measured."""
    new: dict[QueueView, int] = {}
    """Entitled leaves with new asks, and when the oldest of these asks was made."""
    nodes: dict[str, None] = {}
    """Nodes kept for asks that can run nowhere else, that have changed."""
    full: dict[str, None] = {}
    """Such nodes whose asks had no room in a queue or limit, or no place, when last tried."""
    lanes: dict[Lane, None] = {}
    """Lanes of entitled leaves that waited for something else than room until now."""


class GangMarks(Struct, eq=False):
    room_has_changed: bool = False
    """A gang that awaits admission may fit now."""
    looking: dict[int, AppView] = {}
    """Applications with members that may find a placeholder."""
    stuck: dict[int, AppView] = {}
    """Applications with members that found none; a change of any node wakes them."""
    first: list[Owed] = []
    """Asks whose placeholder is gone: they are tried first with the room that it freed."""


class ExplainingMarks(Struct, eq=False):
    reports: bool
    """Whether each ask that waits is reported: the resource manager takes container states."""
    asks: dict[AskView, None] = {}
    """Asks that are not tried by themselves: the next plan finds out why."""
    apps: dict[AppView, None] = {}
    """Applications that a run limit blocked or that were woken; some are both in one plan."""


class Requeue:
    """All reasons to look again, a method for each.

    They stand together though they are many: which parts a reason wakes is decided here alone, and
    a split by part would spread each reason over all parts that it concerns.
    """

    def __init__(self, *, reports: bool) -> None:
        self.measures = MeasureMarks()
        self.places: dict[Gate, None] = {}
        """Queues and limits that hold applications back and may have places now."""
        self.reserving = ReservingMarks()
        self.preempting = PreemptingMarks()
        self.gangs = GangMarks()
        self.passes: dict[AppView, None] = {}
        """In leaves with a back-off: the pass over their asks may end in another way now."""
        self.explaining = ExplainingMarks(reports)
        self.recounts: dict[tuple[AppView, Kind | None], None] | None = None
        """Of which applications, or kinds of their asks, another number waits than was counted, or
        for another reason; None while nobody has asked for these sums."""

    def waits_changed(self, app: AppView, kind: Kind | None = None) -> None:
        """Mark counts of waiting asks; called only where `recounts` is set, to save the call."""
        assert self.recounts is not None
        self.recounts[app, kind] = None

    # -- nodes

    def cluster_changed(self) -> None:
        """Its size, or the configuration: quotas and shares are measured anew."""
        # A measurement that is under way begins anew: half of it would be of the old size.
        self.measures.is_stale, self.measures.is_under_way = True, False

    def measured(self, entitled: Iterable[QueueView]) -> None:
        self.measures.is_stale = self.measures.is_under_way = False
        self.gangs.room_has_changed = True
        preempting = self.preempting
        preempting.was_measured = True
        # What is measured again may be entitled to more, or find other victims.
        preempting.leaves.update(dict.fromkeys(entitled))
        self.try_full_again()

    def node_changed(self) -> None:
        """Note that a node or its reservations changed: another node may be the best."""
        self.reserving.is_stale = True
        self.try_full_again()

    def room_came(self, node: NodeView) -> None:
        """The node may have more room than before."""
        self.nodes_allowed()
        if node.node.reservations:
            self.reserving.nodes[node.id] = None

    def nodes_allowed(self) -> None:
        """A node may have more room, or be allowed again: members that found none look again."""
        gangs = self.gangs
        if gangs.stuck:
            # They found no node: any room that comes may be theirs.
            gangs.looking.update(gangs.stuck)
            gangs.stuck.clear()

    def work_changed(self, node: NodeView) -> None:
        """Of the work on the node: asks that can run there alone look for victims again."""
        self.preempting.is_stale = True
        reservations = node.node.reservations
        # Either all reservations of a node require it, or none does (G18).
        if reservations and next(iter(reservations.values())).required:
            self.preempting.nodes[node.id] = None

    def required_node_is_full(self, node: NodeView) -> None:
        """An ask that can run there alone has just found out: it may preempt."""
        self.preempting.nodes[node.id] = None
        self.preempting.is_stale = True

    def claim_changed(self) -> None:
        """A gang claims for fewer placeholders than before, so there may be room for all."""
        self.preempting.is_stale = True

    # -- queues and limits

    def headroom_changed(self) -> None:
        """An ask with a reservation may have it now, or not any more: then that ends in time."""
        self.reserving.is_stale = True

    def headroom_rose(self, *, some_wait_for_node: bool) -> None:
        """A gang may fit; and an ask that waits for a node may reserve one."""
        self.gangs.room_has_changed = True
        self.try_full_again()
        if some_wait_for_node:
            self.reserving.is_stale = True

    def amounts_changed(self, leaf: QueueView) -> None:
        self.measures.leaves[leaf] = None

    def starts_changed(self, *, for_nodes: bool) -> None:
        """Note that another application may start, or one with a reservation may not any more.

        `for_nodes`: a node is reserved, or asks that wait for one may reserve it now.
        """
        self.gangs.room_has_changed = True
        self.try_full_again()
        if for_nodes:
            self.reserving.is_stale = True

    def try_full_again(self) -> None:
        """Asks that can run on one node alone may have room in their queues and limits now.

        Others for which victims went, or were about to go, may not need it any more.
        """
        preempting = self.preempting
        if preempting.full:
            preempting.nodes.update(preempting.full)
            preempting.full.clear()
            preempting.is_stale = True

    # -- asks and gangs

    def may_preempt(self, leaf: QueueView, created_ns: int) -> None:
        """An ask of this leaf may once it has waited long enough."""
        # Only an older ask makes the leaf due earlier.
        new = self.preempting.new
        if created_ns < new.get(leaf, created_ns + 1):
            new[leaf] = created_ns
            self.preempting.is_stale = True

    def ask_may_reserve(self) -> None:
        """Or go before an application that has a reservation."""
        self.reserving.is_stale = True

    def pass_changed(self, app: AppView) -> None:
        """It may end at another ask, or not before the last."""
        self.passes[app] = None

    def gang_may_fit(self) -> None:
        self.gangs.room_has_changed = True

    def member_came(self, app: AppView) -> None:
        """Or a placeholder that one may take over."""
        # Looked at again, also if it found nothing before.
        gangs = self.gangs
        gangs.stuck.pop(app.app.serial, None)
        gangs.looking[app.app.serial] = app

    def goes_first(self, owed: Owed) -> None:
        """The room that its placeholder left is for this ask."""
        self.gangs.first.append(owed)

    def lane_resumed(self, lane: Lane) -> None:
        """Its asks waited for something else than room until now: they may preempt."""
        self.preempting.lanes[lane] = None

    def shape_roused(self, shape: Shape) -> None:
        """Another node may have room for its asks with a reservation."""
        self.reserving.shapes[shape] = None

    # -- decisions

    def allocated(self) -> None:
        """Fewer asks of a queue wait, and more may be taken from it."""
        self.preempting.is_stale = True

    def resolved(self) -> None:
        """A decision about a node, or about victims, is no longer on its way."""
        self.preempting.was_freed = True

    def quota_armed(self) -> None:
        """A maximum was lowered: the quota is to be enforced when its delay is over."""
        self.preempting.is_stale = True

    def something_came_out(self) -> None:
        """A reservation waits for what is on its way, and a fact has come, whatever it was."""
        self.reserving.is_stale = True

    def everything_is_new(self) -> None:
        self.cluster_changed()
        self.reserving.is_stale = self.preempting.is_stale = True

    def time_came(self) -> None:
        """A delay has ended; each part finds out by itself whether it is its own."""
        self.reserving.is_stale = True

    # -- what is reported

    def look_into(self, ask: AskView) -> None:
        self.explaining.asks[ask] = None

    def look_into_lane(self, lane: Lane) -> None:
        """If container states are reported, look into all asks of the lane: all are refused."""
        explaining = self.explaining
        # Without such reports one ask says why its lane waits.
        for ask in lane.asks() if explaining.reports else (lane.first,):
            explaining.asks[ask] = None

    def look_into_app(self, app: AppView) -> None:
        explaining = self.explaining
        if explaining.reports:
            for pile in app.piles.values():
                explaining.asks.update(dict.fromkeys(pile))

    def run_limit_changed(self, app: AppView) -> None:
        """A run limit blocked the application, or it was woken."""
        self.explaining.apps[app] = None
