"""Commits: a proposal is checked again on the truth, then recorded or refused with the reason.

The scheduler decided on a view that may be old, so `check_allocate` trusts nothing in a proposal:
the ask may have been cancelled (R-036), the application may have ended (H-28), the node may have
left, been drained or filled (R-061, H-11, H-33). The check is a pure function of the state. A
proposal that lost a race is refused.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from yunikorn_actors.machines.context.batch_commit import LONGEST_BATCH, Batch
from yunikorn_actors.machines.context.gangs import (
    admit,
    begin_swap,
    cancel_placeholder,
)
from yunikorn_actors.machines.context.lifecycle import (
    arm_allocation_timer,
    placeholder_placed,
    record_run_limit,
    work_started,
)
from yunikorn_actors.machines.context.preemption import preempt, preempt_together
from yunikorn_actors.machines.context.reservations import (
    displace,
    drop_used_reservation,
    reserve,
    unreserve,
)
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork, report_state
from yunikorn_actors.messages.rm_events import AnnouncedAllocation
from yunikorn_actors.messages.scheduling import Observation
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Ask, WaitingState
from yunikorn_actors.state.applications import (
    Application,
    ApplicationState,
)
from yunikorn_actors.state.eligibility import (
    check_application,
    check_limits,
    check_node,
    check_quotas,
)
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import (
    AdmitGang,
    Allocate,
    CancelPlaceholder,
    Preempt,
    Proposal,
    Refusal,
    Replace,
    Reserve,
    Unreserve,
)
from yunikorn_actors.state.reserved_nodes import own_earmark
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource

# Why an ask waits, recorded where events and states report it.
#
# A shortage is recorded when it begins and when it ends. That its resource manager refuses every
# node is recorded now and then, for as long as that is found again.

_REFUSALS_NS = 15 * SECOND


def report_waiting(unit: UnitOfWork, observations: tuple[Observation, ...]) -> None:
    """Record what waiting asks lack and tell their states, each on change only."""
    # The planner looked at a replica: the ask may have been placed, removed or replaced since.
    for seen in observations:
        app = unit.state.applications.get(seen.application_id)
        ask = None if app is None else app.asks.get(seen.key)
        if app is None or ask is None or ask.sequence != seen.sequence or not ask.remaining:
            continue
        # None: the planner did not look. NONE: there is no shortage.
        if seen.shortage is not None:
            record_shortage(unit, app, ask, seen.shortage, seen.available)
        if seen.refusals:
            _record_refusals(unit, app, ask, seen.refusals)
        # A reserved ask is reported as reserved until it loses the node, whatever it lacks.
        if not unit.partition.hears_states or ask.reported in {seen.state, WaitingState.RESERVED}:
            continue
        report_state(unit, ask, seen.state, seen.reason)
        unit.record(
            f.AskReported(
                application_id=seen.application_id,
                key=seen.key,
                state=seen.state,
                reason=seen.reason,
                at_ns=unit.now_ns,
                of_shortage=seen.shortage not in {None, GateKind.NONE},
            ),
        )


def record_shortage(
    unit: UnitOfWork,
    app: Application,
    ask: Ask,
    shortage: GateKind,
    available: Resource,
) -> None:
    # On change only: the planner finds the same in each plan.
    if ask.shortage is not shortage:
        unit.record(
            f.AskShortageChanged(
                application_id=app.id,
                key=ask.spec.key,
                queue=app.queue.path,
                old_shortage=ask.shortage,
                shortage=shortage,
                resource=ask.spec.resource,
                available=available,
                at_ns=unit.now_ns,
            )
        )


def _record_refusals(
    unit: UnitOfWork, app: Application, ask: Ask, refusals: dict[str, int]
) -> None:
    # By time and not by text: reasons may change with each answer.
    if ask.refused_ns is None or unit.now_ns - ask.refused_ns >= _REFUSALS_NS:
        unit.record(
            f.AskRefused(
                application_id=app.id, key=ask.spec.key, refusals=refusals, at_ns=unit.now_ns
            )
        )


def check_allocate(state: PartitionState, proposal: Allocate) -> Refusal | None:
    """Say why the proposal cannot be committed, or None when it can."""
    # Lost or backpressured: nobody would start what is decided now.
    if state.suspended:
        return Refusal.RM_PAUSED
    app = state.applications.get(proposal.application_id)
    ask = None if app is None else app.asks.get(proposal.key)
    # One that was cancelled and came again under its key has another sequence.
    if app is None or ask is None or ask.sequence != proposal.sequence or not ask.remaining:
        return Refusal.ASK_GONE
    refusal = check_application(state, app, ask)
    if refusal is not None:
        return refusal
    refusal = check_node(state.nodes.get(proposal.node_id), ask.spec, proposal.devices)
    if refusal is not None:
        return refusal
    # What is promised counts against the room of queues, but for the promise that this uses up.
    own = own_earmark(state, ask, proposal.node_id) if ask.reserved else None
    refusal = check_quotas(state, app, ask.spec, own)
    return refusal or check_limits(app, ask.spec.resource)


def commit(unit: UnitOfWork, proposal: Proposal) -> Refusal | None:
    """Commit one proposal, or say why not."""
    return _COMMITS[type(proposal)](unit, proposal)


def _allocate(unit: UnitOfWork, proposal: Allocate) -> Refusal | None:
    state = unit.state
    refusal = check_allocate(state, proposal)
    if refusal is None:
        # `check_allocate` has looked both up: they are there.
        app = state.applications[proposal.application_id]
        placement = Placement(
            proposal.key, proposal.node_id, proposal.proposal_id, devices=proposal.devices
        )
        place(unit, app, placement)
    return refusal


class Placement(NamedTuple):
    """Which ask runs where, as a planner decided it or the resource manager itself."""

    key: str
    node_id: str
    proposal_id: int = NO_PROPOSAL
    uuid: str = ""
    """If the allocation has a name already."""
    is_announced: bool = True
    """Not if the resource manager has reported it."""
    devices: Devices = ()


def place(unit: UnitOfWork, app: Application, placement: Placement) -> None:
    """Turn one waiting repeat of an ask into an allocation, and announce it.

    For an allocation that is not announced, SCHEDULED is reported only if another state was
    reported before. The end of a run limit and of a shortage are recorded before the allocation:
    both are over before the ask is placed.
    """
    key, node_id, proposal_id, uuid, announced, devices = placement
    ask = app.asks[key]
    spec = ask.spec
    # Nearly none was blocked, lacked something, or is reported on: then nothing is called.
    if app.run_limit is not GateKind.NONE:
        record_run_limit(unit, app, GateKind.NONE)
    # The last repeat: with others still waiting the shortage goes on.
    if ask.remaining == 1 and ask.shortage is not GateKind.NONE:
        record_shortage(unit, app, ask, GateKind.NONE, {})
    if unit.partition.hears_states and (announced or ask.reported is not WaitingState.UNREPORTED):
        report_state(unit, ask, WaitingState.SCHEDULED)
    # A report brings its own UUID, and that is kept; the core names what it decides.
    uuid = uuid or unit.partition.uuids.next()
    # Its reservation ends first, so the node is never kept for an ask that runs.
    if ask.reserved:
        drop_used_reservation(unit, ask, node_id)
    # The others give way only now: an ask that is refused must displace nobody.
    if spec.required_node:
        displace(unit, unit.state.nodes[node_id])
    # One fact takes the ask out of what waits and charges all books: no message can see a half of
    # it.
    unit.record(
        f.AllocationCommitted(
            application_id=app.spec.application_id,
            queue=app.queue.path,
            user=app.spec.user,
            group=app.group,
            key=key,
            uuid=uuid,
            node_id=node_id,
            resource=spec.resource,
            at_ns=unit.now_ns,
            proposal_id=proposal_id,
            devices=devices,
        )
    )
    if announced:
        unit.announce(
            AnnouncedAllocation(
                partition=unit.partition.name,
                uuid=uuid,
                spec=spec,
                node_id=node_id,
                devices=devices,
            )
        )
    # Timers and the state of the application last: they rest on an allocation that stands.
    if spec.timeout_ms > 0:
        arm_allocation_timer(unit, app, uuid, spec.timeout_ms)
    if spec.placeholder:
        # The first placeholder starts the clock of the gang, the last one lets it run.
        placeholder_placed(unit, app)
    elif app.state is not ApplicationState.RUNNING:
        # Running stays Running: (Running, RUN) is no transition, and asking for it would cost each
        # allocation a call.
        work_started(unit, app)


_COMMITS: dict[type, Callable[[UnitOfWork, Any], Refusal | None]] = {
    Allocate: _allocate,
    Reserve: reserve,
    Unreserve: unreserve,
    Preempt: preempt,
    AdmitGang: admit,
    Replace: begin_swap,
    CancelPlaceholder: cancel_placeholder,
}


def commit_all(
    unit: UnitOfWork, proposals: Sequence[Proposal]
) -> Iterator[tuple[Proposal, Refusal]]:
    """Commit these in their order; yield those that were refused, with the reason."""
    start = 0
    while start < len(proposals):
        first, size = proposals[start], 1
        # The last one alone is no batch: so most plans gather nothing.
        if start < len(proposals) - 1:
            if type(first) is Preempt and first.gang:
                # All for a gang are committed together, or none: victims for a part of it would go
                # in vain.
                # Those of a gang stand one behind the other in the plan, as the planner decides
                # them together.
                gang = _gang_of(proposals, start, first.gang)
                refusal = preempt_together(unit, gang)
                yield from () if refusal is None else ((it, refusal) for it in gang)
                start += len(gang)
                continue
            batch = Batch(unit.state)
            # Never more than one fact may hold, and `islice` copies nothing of a long plan.
            batch.gather(islice(proposals, start, start + LONGEST_BATCH))
            size = max(1, len(batch.asks))
            if size > 1 and batch.has_room():
                # Otherwise one at a time: some of them may still fit, and each refusal gets its own
                # reason.
                batch.commit(unit)
                start += size
                continue
        # What was gathered is not gathered again: after a full gate each further try of the same
        # asks would fail as a batch.
        for proposal in proposals[start : start + size]:
            refusal = commit(unit, proposal)
            if refusal is not None:
                yield proposal, refusal
        start += size


def _gang_of(proposals: Sequence[Proposal], start: int, gang: int) -> list[Preempt]:
    """Return those of a gang that come one right after the other."""
    found: list[Preempt] = []
    for proposal in islice(proposals, start, None):
        # By number and not by application: gangs of one plan may stand one behind the other.
        if type(proposal) is not Preempt or proposal.gang != gang:
            break
        found.append(proposal)
    return found
