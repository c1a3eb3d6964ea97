"""A batch: proposals for asks of one size that become one fact and one announcement.

A plan places asks of one size by the hundred. Checking, recording and announcing each of them alone
costs as much as deciding did. So proposals that need nothing else are gathered as long as they
follow each other, and become one fact and one announcement: a *batch* (in messages and records: a
run, ADR 20). The order of the decisions stays, and the result is that of committing one at a time:

- What each proposal needs for itself (ask, application, node) is checked for each, with those
  before it in the batch counted in. The batch ends before the first that does not pass.
- Queues and limits are asked once whether they have room for the whole batch. Amounts only add up,
  so a yes holds for each part. After a no all are committed one at a time.
- A proposal that brings more than an allocation is committed by itself: the first one of an
  application or of a gang, an ask with a reservation or a timer. A batch of placeholders ends with
  its gang.
"""

from collections.abc import Iterator

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.machines.context.lifecycle import (
    COMMITMENT_TIMER,
    PLACEHOLDER_TIMER,
    placeholder_placed,
)
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork, report_state
from yunikorn_actors.messages.rm_events import AnnouncedRun
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Ask, WaitingState
from yunikorn_actors.state.applications import (
    Application,
    ApplicationState,
    Usage,
)
from yunikorn_actors.state.eligibility import (
    check_application,
)
from yunikorn_actors.state.gates import GateKind, has_room
from yunikorn_actors.state.limits import limits_on
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import (
    Allocate,
    Proposal,
)
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import Resource, add, equals
from yunikorn_actors.values.tags import GPU

LONGEST_BATCH = 256
"""As many as a plan decides, and so few that it takes milliseconds."""


class Batch:
    """Asks of one size that are placed one right after the other, each with its node."""

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._apps: list[Application] = []
        self._counts: list[int] = []
        """How many of the batch are of each application."""
        self._members: list[int] = []
        self.asks: list[Ask] = []
        self._proposals: list[Allocate] = []
        self._resource: Resource = {}
        self._of_placeholders = False

    def gather(self, proposals: Iterator[Proposal]) -> None:
        """Take proposals up to the first that has to be committed by itself, or is refused."""
        state, asks = self._state, self.asks
        # A proposal that fails here is not refused yet: the batch ends before it, and
        # `check_allocate` finds the reason.
        if state.suspended:
            return
        members: dict[str, int] = {}
        repeats: dict[int, int] = {}
        on_node: dict[str, int] = {}
        for proposal in proposals:
            # A batch says nothing of devices.
            if type(proposal) is not Allocate or proposal.devices:
                return
            id_ = proposal.application_id
            member = members.get(id_)
            if member is None:
                app = state.applications.get(id_)
                if app is None or not self._may_join(app, proposal.key):
                    return
                member = members[id_] = len(self._apps)
                self._apps.append(app)
                self._counts.append(0)
            ask = self._apps[member].asks.get(proposal.key)
            # Cancelled and asked again under its key: another sequence.
            if ask is None or ask.sequence != proposal.sequence:
                return
            # Counted with those before it: twenty proposals may each fit alone, and not together.
            repeat = repeats.get(ask.sequence, 0) + 1
            count = on_node.get(proposal.node_id, 0) + 1
            if repeat > ask.remaining or not self._suits(ask, proposal.node_id, count):
                return
            repeats[ask.sequence], on_node[proposal.node_id] = repeat, count
            self._counts[member] += 1
            self._members.append(member)
            asks.append(ask)
            self._proposals.append(proposal)
            # The last placeholder lets the gang run: a state change, which has to come right behind
            # it.
            if self._of_placeholders and self._completes(member):
                return

    def _may_join(self, app: Application, key: str) -> bool:
        """Whether allocations of this kind change nothing of the application but its amounts."""
        ask = app.asks.get(key)
        # A reservation would have to be dropped, a run limit lifted: facts of their own, between
        # the parts.
        if ask is None or app.reservation_count or app.run_limit is not GateKind.NONE:
            return False
        # The first one decides what the batch is: its size, and whether of placeholders.
        if not self._apps:
            self._resource, self._of_placeholders = ask.spec.resource, ask.spec.placeholder
        if not self._of_placeholders:
            # Running, so that no state changes; no task groups, so that no ask waits for its gang.
            return app.state is ApplicationState.RUNNING and not app.task_groups
        # The first placeholder was placed by itself: it has set the clock, and taken the place.
        # The timer of the gang runs, and no commitment is watched: `placeholder_placed` will find
        # nothing to do but at the end.
        is_under_way = PLACEHOLDER_TIMER in app.timers and COMMITMENT_TIMER not in app.timers
        return (
            is_under_way and app.has_placeholders and not check_application(self._state, app, ask)
        )

    def _completes(self, member: int) -> bool:
        """Whether the gang is complete with the last one, which then lets it run."""
        app = self._apps[member]
        # Only Accepted becomes Running by it (`run_if_complete`).
        if app.state is not ApplicationState.ACCEPTED:
            return False
        placed, wanted = app.placeholders, app.spec.placeholder_ask
        together = self._together(self._counts[member])
        # Nearly every one is not the last, and the first amount shows that.
        for kind, quantity in together:
            if placed.get(kind, 0) + quantity != wanted.get(kind, 0):
                return False
        return equals(add(placed, dict(together)), wanted)

    def _suits(self, ask: Ask, node_id: str, count: int) -> bool:
        """Whether the ask is one of the batch, and the node has room for `count` of these."""
        # The first ask decided the size; equal amounts of another object are the same size.
        resource, spec = self._resource, ask.spec
        # Nodes of its own, a timer or an announcement of it makes an ask one by itself.
        if spec.is_choosy or spec.timeout_ms > 0 or ask.shortage is not GateKind.NONE:
            return False
        if spec.placeholder is not self._of_placeholders:
            return False
        if spec.resource is not resource and spec.resource != resource:
            return False
        # An open node is one without reservations: then no other ask has room secured there.
        node = self._state.nodes.get(node_id)
        if node is None or not node.is_open:
            return False
        # Which devices it gets is chosen for each by itself, as what is free of each device
        # matters.
        if node.parts is not None and GPU in resource:
            return False
        # All of the same size: `count` times the size has to fit, and a type of which nothing is
        # wanted always fits.
        available = node.available
        for kind, quantity in resource.items():
            if quantity * count > available.get(kind, 0) and quantity > 0:
                return False
        return True

    def has_room(self) -> bool:
        """Whether all queues and limits have room for the whole batch."""
        queues: dict[Queue, int] = {}
        limits: dict[Usage, tuple[LimitConfig, int]] = {}
        for app, count in zip(self._apps, self._counts, strict=True):
            for queue in app.queue.lineage:
                # Applications of one leaf share its queues, and those of one user a limit: what
                # they add is summed before a gate is asked.
                queues[queue] = queues.get(queue, 0) + count
            for limit, usage in limits_on(app):
                others = limits[usage][1] if usage in limits else 0
                limits[usage] = (limit, others + count)
        # Each number of repeats is multiplied out once: mostly there are two or three different
        # ones.
        counts = dict.fromkeys((*queues.values(), *(count for _, count in limits.values())))
        together = {count: self._together(count) for count in counts}
        capacity = self._state.capacity
        for queue, count in queues.items():
            is_cluster = queue.parent is None
            sizes = capacity if is_cluster else queue.quota()
            # The root has no quota of its own: its maximum is the size of the cluster.
            if not has_room(sizes, queue.allocated, together[count], is_cluster):
                return False
        for usage, (limit, count) in limits.items():
            if not has_room(limit.max_resources, usage.amounts, together[count]):
                return False
        return True

    def _together(self, count: int) -> list[tuple[str, int]]:
        return [(kind, quantity * count) for kind, quantity in self._resource.items()]

    def commit(self, unit: UnitOfWork) -> None:
        """Write the batch down and announce it; `place` says what comes in which order."""
        proposals, asks = self._proposals, self.asks
        if unit.partition.hears_states:
            # Of several repeats of one ask the first changes its state, as one at a time.
            for ask in {ask.sequence: ask for ask in asks}.values():
                report_state(unit, ask, WaitingState.SCHEDULED)
        # Taken at once in the order of the asks, as they would be one by one: a replay compares
        # names.
        uuids = unit.partition.uuids.take(len(asks))
        node_ids = tuple([proposal.node_id for proposal in proposals])
        unit.record(
            f.AllocationsCommitted(
                charged=tuple([_charged(app) for app in self._apps]),
                members=tuple(self._members),
                keys=tuple([proposal.key for proposal in proposals]),
                uuids=uuids,
                node_ids=node_ids,
                proposal_ids=tuple([proposal.proposal_id for proposal in proposals]),
                resource=self._resource,
                at_ns=unit.now_ns,
            )
        )
        unit.announce(
            AnnouncedRun(
                partition=unit.partition.name,
                uuids=uuids,
                specs=tuple([ask.spec for ask in asks]),
                node_ids=node_ids,
            )
        )
        # After the fact, and only for the gang: it may be complete now. A plain application has no
        # timer that an allocation starts.
        if self._of_placeholders:
            for app in self._apps:
                placeholder_placed(unit, app)


def _charged(app: Application) -> f.Charged:
    spec = app.spec
    return f.Charged(
        application_id=spec.application_id, queue=app.queue.path, user=spec.user, group=app.group
    )
