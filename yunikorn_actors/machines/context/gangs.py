"""Gangs in Context: admission, the swap of a placeholder for a member, and how a swap ends.

A swap begins by a proposal (`begin_swap`) and ends when its placeholder does, in whatever way: the
resource manager confirms it, deletes it, answers with another type, or its node goes (H-02, H-03,
R-060). Whatever happens in between (the ask is cancelled or sent again, the target node goes, the
gang fails) takes the link off first, so that a later confirmation finds a placeholder like any
other.
"""

from collections.abc import Callable

from yunikorn_actors.machines.context.endings import remove_allocation, request_release
from yunikorn_actors.machines.context.lifecycle import (
    arm_allocation_timer,
    cancel_allocation_timer,
    placeholder_timeout,
    stop_placeholder_timer,
    watch_commitment,
    work_started,
)
from yunikorn_actors.machines.context.reservations import drop_barred_of
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork, report_state
from yunikorn_actors.machines.slices import Steps, drawn_off, ends_piece
from yunikorn_actors.messages.rm_events import AnnouncedAllocation
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, Ask, AskSpec, WaitingState
from yunikorn_actors.state.applications import SCHEDULABLE, Application, ApplicationSpec, Swap
from yunikorn_actors.state.device_fit import has_devices, taken_over
from yunikorn_actors.state.eligibility import check_limits, check_node, check_start
from yunikorn_actors.state.gangs import (
    Committed,
    awaits_admission,
    commit_room,
    commitment_of,
    is_of_group,
    refuses_gangs,
    refusing_admission,
    suits,
    tightest_max,
    unplaced,
)
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import room_for
from yunikorn_actors.state.proposals import AdmitGang, CancelPlaceholder, Refusal, Replace
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import amount_of
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource, describe, fits_in, fits_in_max_undef, sub
from yunikorn_actors.values.tag_lookup import is_forced
from yunikorn_actors.values.tags import GPU

TOO_SMALL = "cancel placeholder: resource incompatible"
PLACEHOLDER_EXPIRED = "releasing allocated placeholders on placeholder timeout"


# -- admission


def gang_refusal(state: PartitionState, queue: Queue, spec: ApplicationSpec) -> str | None:
    """Say why a queue can never run this gang; the size of the cluster does not count.

    A gang whose work runs already is never refused: nobody else would count what runs (R-100).
    """
    if not spec.is_gang or is_forced(spec.tags):
        return None
    id_ = spec.application_id
    if refuses_gangs(state, queue):
        return unsupported_sort(queue, id_)
    most = tightest_max(queue)
    # Against the configured maxima alone: what is used may end, and the cluster may grow.
    if not fits_in_max_undef(spec.placeholder_ask, most):
        return (
            f"queue {queue.path} cannot fit application {id_}: task group request "
            f"{describe(spec.placeholder_ask)} larger than max queue allocation {describe(most)}"
        )
    return None


def unsupported_sort(queue: Queue, application_id: str) -> str:
    return (
        f"queue {queue.path} cannot run application {application_id} with task group request: "
        "unsupported sort type: use a queue with application.sort.policy fifo or stateaware"
    )


def admit(unit: UnitOfWork, proposal: AdmitGang) -> Refusal | None:
    refusal = check_admission(unit.state, proposal)
    if refusal is None:
        app = unit.state.applications[proposal.application_id]
        note_admission(unit, app, proposal.proposal_id)
    return refusal


def note_admission(
    unit: UnitOfWork, app: Application, proposal_id: int = NO_PROPOSAL, *, claims: bool = False
) -> None:
    unit.record(
        f.GangAdmitted(
            application_id=app.id,
            serial=app.serial,
            queue=app.queue.path,
            # What it has not placed yet: others must not be admitted into that room (ADR 13).
            commitment=unplaced(app),
            at_ns=unit.now_ns,
            proposal_id=proposal_id,
            claims=claims,
        )
    )
    # Its time runs from the admission: a gang that never places anything must lapse.
    watch_commitment(unit, app)


def lapse(unit: UnitOfWork, app: Application) -> None:
    """Withdraw an admission that came to nothing; the gang waits behind others from now on.

    Proposals for its placeholders that are on their way are refused from now on, as for any gang
    that awaits its admission.
    """
    unit.record(
        f.GangLapsed(
            application_id=app.id,
            serial=app.serial,
            queue=app.queue.path,
            commitment=unplaced(app),
            waited_ns=placeholder_timeout(unit, app),
            at_ns=unit.now_ns,
        )
    )
    # Its placeholders await admission again: until then none of them may keep a node.
    drop_barred_of(unit, app)


def check_admission(state: PartitionState, proposal: AdmitGang) -> Refusal | None:
    """Say why the gang cannot be admitted: all of it must fit beside the commitments of others."""
    if state.suspended:
        return Refusal.RM_PAUSED
    app = state.applications.get(proposal.application_id)
    # By serial: the application may have been submitted again under its id (H-24).
    if app is None or app.serial != proposal.serial or app.state not in SCHEDULABLE:
        return Refusal.APP_STATE
    # It was admitted by another proposal, or has no placeholder left that waits.
    if not awaits_admission(app):
        return Refusal.GANG_HELD
    # An empty amount: here only the number of running applications counts, room is checked below
    # for the whole gang.
    refusal = check_start(state, app) or check_limits(app, {})
    if refusal is not None:
        return refusal
    return check_room(state, app, lambda queue: queue.allocated)


def check_room(
    state: PartitionState,
    app: Application,
    used: Callable[[Queue], Resource],
    claimed: Resource | None = None,
) -> Refusal | None:
    """Say why queues and limits have no room for the whole gang beside what others still need.

    `claimed` is what the queues have in `used` of this gang already.
    """
    gate = refusing_admission(
        app, commitments(state), used, lambda limit: state.usage_of(limit).amounts, claimed
    )
    return None if gate is None else Refusal.GANG_HELD


# Added up anew at each check: admissions are few, and a book of sums would be one more that has to
# agree.
def commitments(state: PartitionState) -> Committed:
    """Add up what the admitted gangs still need."""
    committed: Committed = {}
    for id_ in state.admitted.values():
        other = state.applications[id_]
        commit_room(committed, other, commitment_of(other))
    return committed


# -- the swap begins


def check_replace(state: PartitionState, proposal: Replace) -> Refusal | None:
    """Say why this ask cannot take the place of this placeholder there."""
    refusal = _check_member(state, proposal)
    if refusal is not None:
        return refusal
    app = state.applications[proposal.application_id]
    spec = app.asks[proposal.key].spec
    # It ended, or another reason has asked it back since (R-013, R-014, G12).
    placeholder = app.allocations.get(proposal.placeholder)
    if placeholder is None or not placeholder.may_be_released or not suits(spec, placeholder):
        return Refusal.PLACEHOLDER_GONE
    # It came again with a required node, and the swap would take it elsewhere.
    if not spec.may_run_on(proposal.node_id):
        return Refusal.NODE_FULL
    # A proposal that contradicts itself about where the placeholder is.
    if proposal.crosses is (proposal.node_id == placeholder.node_id):
        return Refusal.PLACEHOLDER_GONE
    if not proposal.crosses:
        # No more room is used, so neither a drain nor a reservation stands against it (H-33).
        # The devices of the placeholder pass to the member: the node only must have devices of its
        # kind.
        if GPU in spec.resource and not has_devices(state.nodes[proposal.node_id], spec):
            return Refusal.NODE_FULL
        return None
    return check_node(state.nodes.get(proposal.node_id), spec, proposal.devices)


def _check_member(state: PartitionState, proposal: Replace | CancelPlaceholder) -> Refusal | None:
    if state.suspended:
        return Refusal.RM_PAUSED
    app = state.applications.get(proposal.application_id)
    ask = None if app is None else app.asks.get(proposal.key)
    if app is None or ask is None or ask.sequence != proposal.sequence or not ask.remaining:
        # Parked is not gone: the planner must know which, as a parked ask may come back by
        # `unpark`.
        return Refusal.ASK_PARKED if ask is not None and ask.parked else Refusal.ASK_GONE
    if app.state not in SCHEDULABLE:
        return Refusal.APP_STATE
    # Members wait while placeholders of their gang wait (G11).
    return Refusal.GANG_HELD if app.waiting_placeholders else None


def begin_swap(unit: UnitOfWork, proposal: Replace) -> Refusal | None:
    """Ask the placeholder back and park the real ask; nothing else waits for the answer."""
    refusal = check_replace(unit.state, proposal)
    if refusal is not None:
        return refusal
    app = unit.state.applications[proposal.application_id]
    ask = app.asks[proposal.key]
    placeholder = app.allocations[proposal.placeholder]
    why = f"replacing allocationKey: {proposal.key}"
    type_ = TerminationType.PLACEHOLDER_REPLACED
    # Asked back before the ask is parked: from here on nobody else can take the placeholder.
    request_release(unit, placeholder, type_, why)
    # From here on both are in the truth, the placeholder charged and the ask parked: every race of
    # a swap is a race of messages that find them so.
    unit.record(
        f.AskParked(
            application_id=app.id,
            key=proposal.key,
            resource=ask.spec.resource,
            placeholder=placeholder.uuid,
            node_id=proposal.node_id,
            crosses=proposal.crosses,
            at_ns=unit.now_ns,
            proposal_id=proposal.proposal_id,
            devices=proposal.devices,
        )
    )
    return None


def check_cancel(state: PartitionState, proposal: CancelPlaceholder) -> Refusal | None:
    """Say why the placeholder stays: it is given up only if it is too small for its member."""
    refusal = _check_member(state, proposal)
    if refusal is not None:
        return refusal
    app = state.applications[proposal.application_id]
    spec = app.asks[proposal.key].spec
    placeholder = app.allocations.get(proposal.placeholder)
    if placeholder is None or not placeholder.may_be_released:
        return Refusal.PLACEHOLDER_GONE
    # It has shrunk, or the member has: now it would do, so it is swapped.
    if not is_of_group(spec, placeholder) or suits(spec, placeholder):
        return Refusal.PLACEHOLDER_GONE
    return None


def cancel_placeholder(unit: UnitOfWork, proposal: CancelPlaceholder) -> Refusal | None:
    """A member larger than its placeholder is placed like any ask once that is gone (R-002)."""
    refusal = check_cancel(unit.state, proposal)
    if refusal is not None:
        return refusal
    app = unit.state.applications[proposal.application_id]
    spec = app.asks[proposal.key].spec
    placeholder = app.allocations[proposal.placeholder]
    # Before the release: that counts the placeholder as spared, and this takes it off again, as a
    # larger member is still to come.
    unit.record(
        f.PlaceholderCancelled(
            application_id=app.id,
            task_group=spec.task_group,
            key=spec.key,
            resource=spec.resource,
            placeholder=placeholder.uuid,
            placeholder_key=placeholder.spec.key,
            placeholder_resource=placeholder.resource,
            at_ns=unit.now_ns,
        )
    )
    request_release(
        unit,
        placeholder,
        TerminationType.TIMEOUT,
        TOO_SMALL,
        proposal.proposal_id,
    )
    return None


def give_back_placeholders(unit: UnitOfWork, app: Application, message: str) -> Steps:
    """Ask back all placeholders that were not asked back already, for a swap or otherwise."""
    for number, allocation in enumerate((yield from drawn_off(app.allocations.values()))):
        if allocation.spec.placeholder:
            request_release(unit, allocation, TerminationType.TIMEOUT, message)
            yield 1
        elif ends_piece(number):
            yield 1


# -- the swap ends


def end_allocation(
    unit: UnitOfWork,
    app: Application,
    allocation: Allocation,
    type_: TerminationType,
    given_back: TerminationType | None = None,
) -> None:
    """The placeholder is gone: no longer charged, or taken over by the ask parked for it."""
    # Our own link decides, never the type that the resource manager sends (H-02, H-30): any end of
    # the placeholder ends its swap.
    swap = app.swaps.get(allocation.uuid)
    if swap is not None and unit.state.nodes[swap.node_id].awaited:
        # Work that ends before its node is reported may have ended with the node, so nothing is
        # placed there yet: the ask waits again, as if the node had left.
        reason = f"node {swap.node_id} is not reported since the restart"
        unpark(unit, app, swap, reason, frees=False)
        swap = None
    if swap is None:
        remove_allocation(unit, app, allocation, type_, given_back)
    else:
        complete_swap(unit, app, allocation, type_)


def complete_swap(
    unit: UnitOfWork,
    app: Application,
    placeholder: Allocation,
    type_: TerminationType,
) -> None:
    """The placeholder is gone: the real allocation stands in its place, in one step (R-004)."""
    swap = app.swaps[placeholder.uuid]
    ask = app.asks[swap.key]
    spec = ask.spec
    # A name of its own: the placeholder's UUID ends with the placeholder.
    uuid = unit.partition.uuids.next()
    # Read while the placeholder stands: the fact takes them off the node.
    if swap.crosses:
        devices = unit.state.nodes[swap.node_id].incoming[placeholder.uuid].devices
    else:
        devices = taken_over(spec.resource, placeholder) if placeholder.devices else ()
    # Only now: a swap may still be called off while its ask is parked, and SCHEDULED is final.
    report_state(unit, ask, WaitingState.SCHEDULED)
    if placeholder.spec.timeout_ms > 0:
        # It would fire for an allocation that is gone.
        cancel_allocation_timer(unit, app, placeholder.uuid)
    # One fact for both: between them the application would hold nothing and complete.
    unit.record(
        f.SwapCompleted(
            application_id=app.id,
            queue=app.queue.path,
            user=app.spec.user,
            group=app.group,
            key=swap.key,
            uuid=uuid,
            node_id=swap.node_id,
            resource=spec.resource,
            placeholder=placeholder.uuid,
            placeholder_key=placeholder.spec.key,
            placeholder_node=placeholder.node_id,
            placeholder_resource=placeholder.resource,
            type=type_,
            at_ns=unit.now_ns,
            devices=devices,
        )
    )
    unit.announce(
        AnnouncedAllocation(
            partition=unit.partition.name,
            uuid=uuid,
            spec=spec,
            node_id=swap.node_id,
            devices=devices,
        )
    )
    if spec.timeout_ms > 0:
        arm_allocation_timer(unit, app, uuid, spec.timeout_ms)
    # Behind the fact: only now is known whether a placeholder is left, and something real runs.
    stop_placeholder_timer(unit, app)
    work_started(unit, app)


def unpark(
    unit: UnitOfWork, app: Application, swap: Swap, reason: str, *, frees: bool = True
) -> None:
    """Call a swap off; its placeholder has been asked back already and ends like any other.

    `frees`: nobody takes over the room of the placeholder. It is False where the ask lost nothing
    but its target node: then what the placeholder leaves is for that ask.
    """
    unit.record(
        f.AskUnparked(
            application_id=app.id,
            key=swap.key,
            resource=app.asks[swap.key].spec.resource,
            placeholder=swap.placeholder,
            node_id=swap.node_id,
            crosses=swap.crosses,
            reason=reason,
            at_ns=unit.now_ns,
            frees=frees,
        )
    )


def unpark_ask(unit: UnitOfWork, app: Application, ask: Ask, reason: str, keep: int = 0) -> None:
    """Take an ask out of its swaps; the oldest `keep` of them stay."""
    for swap in swaps_of(app, ask)[keep:]:
        unpark(unit, app, swap, reason)


def swaps_of(app: Application, ask: Ask) -> list[Swap]:
    # Nearly no ask is parked, and swaps of an application may be thousands.
    if not ask.parked:
        return []
    return [swap for swap in app.swaps.values() if swap.key == ask.spec.key]


def still_suits(state: PartitionState, app: Application, swap: Swap, spec: AskSpec) -> bool:
    """Whether a parked ask that was sent again can stay parked (H-15)."""
    # It may require a node now, and the swap leads to another one.
    if not spec.may_run_on(swap.node_id):
        return False
    node = state.nodes[swap.node_id]
    if not suits(spec, app.allocations[swap.placeholder]) or not has_devices(node, spec):
        return False
    if not swap.crosses:
        return True
    held = node.incoming[swap.placeholder].resource
    # Its devices were chosen for what it asked for.
    if amount_of(spec.resource) != amount_of(held):
        return False
    growth = sub(spec.resource, held)
    return fits_in(growth, room_for(node, spec, node.available))
