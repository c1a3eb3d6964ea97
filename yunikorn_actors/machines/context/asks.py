"""Asks, and reports of work that runs already.

An item without a node is an ask. An item with a node is a report: recovery after a restart, an
allocation that the resource manager placed by itself, or a new size of a known one. What runs
cannot be refused, so a report is charged by force, above any quota.

Asks of one application and one size that follow each other in a request become one fact (a *run*,
ADR 20). Only asks that change nothing but what waits are gathered. The others are taken one by one:
the first ask of an application may wake it, the first placeholder bars other asks, a known key
replaces an ask, and anything may be rejected.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from yunikorn_actors.machines.context.batch_commit import LONGEST_BATCH
from yunikorn_actors.machines.context.commit import Placement, place
from yunikorn_actors.machines.context.endings import request_release
from yunikorn_actors.machines.context.gangs import (
    PLACEHOLDER_EXPIRED,
    still_suits,
    swaps_of,
    unpark,
    unpark_ask,
    unsupported_sort,
)
from yunikorn_actors.machines.context.lifecycle import (
    advance,
    link_group,
    placeholder_placed,
    record_run_limit,
    run_if_complete,
    watch_commitment,
    work_gone,
    work_started,
)
from yunikorn_actors.machines.context.partition_context import Awaited
from yunikorn_actors.machines.context.quota_preemption import charged_by_force
from yunikorn_actors.machines.context.recovery_reports import (
    announce_unreported,
    end_unreported,
    take_awaited,
)
from yunikorn_actors.machines.context.reservations import (
    drop_barred_of,
    drop_of_ask,
    drop_outdated,
    drop_outgrown,
    drop_overpromised,
)
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork, rejected_ask
from yunikorn_actors.messages.rm_events import (
    AnnouncedAllocation,
    AnnouncedWithdrawal,
    AskItem,
    RejectedAsk,
)
from yunikorn_actors.planning.reasons import what_became
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, Ask, AskSpec
from yunikorn_actors.state.applications import (
    TAKES_NO_ASKS,
    Application,
    ApplicationEvent,
    ApplicationState,
)
from yunikorn_actors.state.device_fit import after_resize, reported_devices
from yunikorn_actors.state.gangs import refuses_gangs
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import Devices, devices_in
from yunikorn_actors.values.resource import fits_in, has_negative, is_zero

UNKNOWN_APPLICATION = "failed to find application"
# New: the first ask makes it Accepted. Completing: an ask in time makes it Running again (R-046,
#
_WAKES = frozenset({ApplicationState.NEW, ApplicationState.COMPLETING})


def take_item(unit: UnitOfWork, item: AskItem) -> None:
    """Take one ask or report of an AllocationRequest, or reject it by itself."""
    if item.foreign:
        _take_foreign(unit, item)
        return
    # What the core knew before its restart runs still: it is compared before anything is refused
    # that would be refused as new.
    awaited = unit.partition.awaited
    if (awaited is not None and _is_back(unit, awaited, item)) or _is_rejected(unit, item):
        return
    spec = item.spec
    app = unit.state.applications[spec.application_id]
    # From here on it is taken: `explain` must not answer with an earlier rejection of this key.
    unit.partition.rejections.forget(spec.application_id, spec.key)
    # The node tells the two apart in both forms of the interface: `allocations` of the later form
    # brings asks as well.
    if item.node_id:
        _take_report(unit, app, item, announced=True)
    else:
        _take_ask(unit, app, spec)


def recover(unit: UnitOfWork, node_id: str, item: AskItem) -> None:
    """Take work that came with its node: charged like any other, not announced back."""
    # Some resource managers leave the node of such an item empty: it is the node that brings it.
    if item.node_id != node_id:
        item = replace(item, node_id=node_id)
    awaited = unit.partition.awaited
    if (awaited is not None and _is_back(unit, awaited, item)) or _is_rejected(unit, item):
        return
    app = unit.state.applications[item.spec.application_id]
    _take_report(unit, app, item, announced=False)


def take_wanted(unit: UnitOfWork, node: Node) -> None:
    """Take asks that came again before this node as if they came now: they needed its report."""
    awaited = unit.partition.awaited
    # An ask that came again while its node was awaited could not be judged then: only the report of
    # the node shows whether its allocation runs (see `recovery_reports`).
    if awaited is not None:
        for uuid in awaited.wanted:
            allocation = node.allocations.get(uuid)
            if allocation is None:
                continue
            app = unit.state.applications[allocation.spec.application_id]
            # It may have begun to fail since.
            if app.state not in TAKES_NO_ASKS:
                _take_ask(unit, app, app.asks[allocation.spec.key].spec)


def _is_back(unit: UnitOfWork, awaited: Awaited, item: AskItem) -> bool:
    """Whether this is the report of work that the core knew before it was restarted."""
    allocation = take_awaited(unit, awaited, item)
    if allocation is None:
        return False
    # The report wins: the size may have changed while the core was away.
    _resize(unit, unit.state.applications[item.spec.application_id], (allocation.uuid,), item.spec)
    return True


def remove_ask(unit: UnitOfWork, app: Application, ask: Ask, type_: TerminationType) -> None:
    """Drop the waiting repeats of an ask; the resource manager asked for it and gets no answer."""
    # Swaps, reservations, then the ask: no fact is about an ask that is gone already.
    unpark_ask(unit, app, ask, "the ask is gone")
    drop_of_ask(unit, ask, "the ask is gone")
    unit.record(
        f.AskRemoved(
            application_id=app.id,
            key=ask.spec.key,
            resource=ask.spec.resource,
            type=type_,
            at_ns=unit.now_ns,
        )
    )
    # A placeholder that will not come any more may have been the last one that kept the gang's
    # commitment.
    if ask.spec.placeholder:
        watch_commitment(unit, app)


def withdraw_ask(
    unit: UnitOfWork, app: Application, ask: Ask, type_: TerminationType, why: str
) -> None:
    """Drop the waiting repeats by decision of the core: final at once, and announced."""
    spec = ask.spec
    remove_ask(unit, app, ask, type_)
    # So that `explain` can still tell its outcome.
    unit.partition.rejections.note(app.id, spec.key, why, unit.now_ns, was_taken=True)
    unit.announce(
        AnnouncedWithdrawal(
            partition=unit.partition.name,
            application_id=spec.application_id,
            key=spec.key,
            type=type_,
            message=why,
            later_form=spec.later_form,
        )
    )


def names_no_application(rejected: RejectedAsk) -> bool:
    """Whether it was rejected because its application is not there, or takes no asks."""
    return rejected.reason.startswith(UNKNOWN_APPLICATION)


def _is_rejected(unit: UnitOfWork, item: AskItem) -> bool:
    reason = _refusal(unit.state, item)
    if reason is None:
        # Rejections are remembered for `explain` only; the ask itself leaves no trace in the state.
        return False
    spec = item.spec
    unit.partition.rejections.note(spec.application_id, spec.key, reason, unit.now_ns)
    unit.announce(rejected_ask(spec, reason))
    return True


def no_application(states: Iterable[PartitionState], id_: str) -> str:
    """Say that an application is not there; of one that ended, say how."""
    what = f"{UNKNOWN_APPLICATION} {id_}"
    state = next((state for state in states if id_ in state.last_ends), None)
    if state is None:
        return what
    ended = state.finished[state.last_ends[id_]]
    return f"{what}: {what_became(ended.state, ended.message)}"


def _refusal(state: PartitionState, item: AskItem) -> str | None:
    spec = item.spec
    app = state.applications.get(spec.application_id)
    if app is None:
        return no_application((state,), spec.application_id)
    # Failing: new asks are rejected (H-21), but a report of what is charged already still says how
    # large it is.
    if app.state in TAKES_NO_ASKS and not _is_of_running(app, item):
        return f"{UNKNOWN_APPLICATION} {app.id} that takes asks: its state is {app.state.value}"
    if item.node_id and item.node_id not in state.nodes:
        return f"failed to find node {item.node_id}"
    reason = refused_amounts(spec)
    # An unknown node, as nothing may be charged to a node that is not registered (G08).
    if reason is not None:
        return reason
    # A gang is known by `placeholder_ask`. A placeholder of a plain application makes it a gang
    # belatedly, so the leaf is asked again.
    is_late = spec.placeholder and not item.node_id and not app.spec.is_gang
    if is_late and refuses_gangs(state, app.queue):
        return unsupported_sort(app.queue, app.id)
    if item.uuid and not item.node_id:
        return "an ask has no UUID: only a running allocation, which names its node, may bring one"
    # A UUID names one allocation for ever (G09). One that came with another key would be charged
    # twice.
    if item.uuid in state.owners and _belongs_to_another(state, app, item):
        return f"UUID {item.uuid} belongs to another allocation"
    return None


def _is_of_running(app: Application, item: AskItem) -> bool:
    """Whether it reports what runs and is charged: its size is true whatever the state."""
    # Without a UUID the key has to do; a known ask that is open could still be placed anew, so this
    # would be no report of a charged one.
    if item.uuid:
        return item.node_id != "" and item.uuid in app.allocations
    known = app.asks.get(item.spec.key)
    if known is None or known.is_open:
        return False
    return any(app.allocations[uuid].node_id == item.node_id for uuid in known.uuids)


def refused_amounts(spec: AskSpec) -> str | None:
    # Nearly every ask has positive amounts and a count. One pass says so; the rest only finds the
    # right words.
    if min(spec.resource.values(), default=0) > 0 and spec.max_allocations > 0:
        return None
    if has_negative(spec.resource):
        return "allocation contains negative resources"
    if is_zero(spec.resource):
        return "allocation contains no resources"
    if spec.max_allocations <= 0:
        return f"maxAllocations must be at least 1, not {spec.max_allocations}"
    return None


def _belongs_to_another(state: PartitionState, app: Application, item: AskItem) -> bool:
    owner = state.owner_of(item.uuid)
    if owner is app:
        return app.allocations[item.uuid].spec.key != item.spec.key
    return owner is not None


def _take_ask(unit: UnitOfWork, app: Application, spec: AskSpec) -> None:
    known = app.asks.get(spec.key)
    # The awaited placement of this key was asked back before the restart and did not come back: it
    # has ended, and only now the ask is free to wait again.
    if known is not None and end_unreported(unit, app, known):
        # The new ask first: without anything that waits the application would begin to complete.
        _take_ask(unit, app, spec)
        work_gone(unit, app, work_ended=not spec.placeholder)
        return
    if known is None:
        _add_ask(unit, app, spec)
        return
    was_unreported = announce_unreported(unit, app, known)
    # Repeats that are allocated keep running. More repeats than were ever taken make the ask wait
    # again.
    if known.is_open or spec.max_allocations > known.taken:
        _replace_ask(unit, app, known, spec)
    elif spec.later_form and not was_unreported:
        # The later form has no resize of its own: a known ask without repeats left that comes again
        # says the new size.
        _resize(unit, app, known.uuids, spec)


def _add_ask(unit: UnitOfWork, app: Application, spec: AskSpec) -> None:
    # The group while the application is New still, as it is chosen once; then the state, so that
    # the ask is never one of an application that takes no part in planning.
    if app.state in _WAKES:
        link_group(unit, app)
        advance(unit, app, ApplicationEvent.RUN)
    unit.record(
        f.AskAdded(
            spec=spec,
            created_ns=unit.now_ns if spec.created_ns is None else spec.created_ns,
            sequence=unit.partition.next_sequence(),
            at_ns=unit.now_ns,
        )
    )
    if spec.placeholder:
        _let_gang_go_first(unit, app, app.asks[spec.key])


def takes_more(app: Application, spec: AskSpec) -> bool:
    """Whether another ask like this changes nothing of the application but what waits."""
    if app.state in _WAKES or app.state in TAKES_NO_ASKS:
        return False
    # A placeholder joins where others wait already, so that it bars nobody anew, and where the
    # application is a gang: then the leaf has agreed to it.
    return not spec.placeholder or (app.spec.is_gang and app.waiting_placeholders > 0)


def _let_gang_go_first(unit: UnitOfWork, app: Application, came: Ask) -> None:
    """The first placeholder that waits bars asks of which some may have a reservation."""
    # `came` has put all its repeats among those that wait: if there are no others, it is the first.
    if app.waiting_placeholders == came.remaining:
        drop_barred_of(unit, app)


def _replace_ask(unit: UnitOfWork, app: Application, known: Ask, spec: AskSpec) -> None:
    """Allocated repeats keep their values, and the new ask cannot remove them."""
    # A decided repeat cannot be unmade by asking for fewer: only a release ends what runs.
    taken = known.taken
    if spec.max_allocations < taken:
        spec = replace(spec, max_allocations=taken)
    _unpark_what_no_longer_suits(unit, app, known, spec)
    # Behind the unparking: a repeat that came out of its swap is none of `parked` any more.
    wanted = spec.max_allocations - taken - known.parked
    # A repetition changes nothing and is not answered: it may have been sent twice only.
    if spec == known.spec and known.remaining == wanted:
        return
    # Nothing is left to wait for. `AskReplaced` with no repeats would leave an ask that is neither
    # open nor over.
    if spec.max_allocations == taken:
        remove_ask(unit, app, known, TerminationType.STOPPED_BY_RM)
        work_gone(unit, app)
        return
    _put(unit, app, known, spec)
    if spec.placeholder:
        _let_gang_go_first(unit, app, known)


def _put(unit: UnitOfWork, app: Application, known: Ask, spec: AskSpec) -> None:
    # An earmark has the size of its ask. What is given up is given up in the old size, before the
    # fact resizes the rest; what no longer fits shows only in the new one.
    drop_outdated(unit, known, spec)
    unit.record(f.AskReplaced(spec=spec, at_ns=unit.now_ns))
    drop_outgrown(unit, known)
    # Parked repeats hold room on their target nodes in the size of the ask. If it grew, earmarks
    # there may have lost theirs.
    for swap in swaps_of(app, known):
        drop_overpromised(unit, unit.state.nodes[swap.node_id])


def _unpark_what_no_longer_suits(
    unit: UnitOfWork, app: Application, known: Ask, spec: AskSpec
) -> None:
    """A parked repeat stays parked with its new size, if its placeholder still holds that."""
    for swap in swaps_of(app, known):
        if not still_suits(unit.state, app, swap, spec):
            unpark(unit, app, swap, "the ask has changed and does not fit there")
    keep = spec.max_allocations - known.taken
    unpark_ask(unit, app, known, "the ask was sent again with fewer repeats", keep)


def _take_report(unit: UnitOfWork, app: Application, item: AskItem, *, announced: bool) -> None:
    """The UUID says which allocation is meant; without one the key and the node must do."""
    known = app.asks.get(item.spec.key)
    # Resuming: the gang is being dissolved. It is charged and then asked back below, and never
    # announced, as nobody may start to use it.
    comes_too_late = item.spec.placeholder and app.state is ApplicationState.RESUMING
    announced = announced and not comes_too_late
    if item.uuid in app.allocations:
        _resize(unit, app, (item.uuid,), item.spec)
    elif known is not None and known.is_open:
        # The ask waits here and runs there already: the report is the placement of one of its
        # repeats.
        # All its repeats are parked. One swap gives its repeat back, so that this can be placed.
        if not known.remaining:
            # It runs where the resource manager says, not where its swap would end (H-31).
            unpark(unit, app, swaps_of(app, known)[0], "it runs already")
        _place_by_rm(unit, app, known, item, announced=announced)
    elif known is None or item.uuid:
        # Unknown, or a UUID that the ask does not have: work of a former life of the core, or of a
        # node that came back.
        _recover(unit, app, item, announced=announced)
    else:
        # No UUID: all allocations of this key on that node are meant.
        here = tuple(id_ for id_ in known.uuids if app.allocations[id_].node_id == item.node_id)
        _resize(unit, app, here, item.spec)
    if comes_too_late:
        # The gang is being dissolved, and goes on when its placeholders are gone. Nobody else
        # would ask this one back (G21).
        for uuid in app.asks[item.spec.key].uuids:
            allocation = app.allocations[uuid]
            request_release(unit, allocation, TerminationType.TIMEOUT, PLACEHOLDER_EXPIRED)
    # Last: all that the report charges by force has been charged by now.
    drop_overpromised(unit, unit.state.nodes[item.node_id])


def _recover(unit: UnitOfWork, app: Application, item: AskItem, *, announced: bool) -> None:
    spec = item.spec
    # As in `_add_ask`: the group is chosen while the application is New.
    if app.state in _WAKES:
        link_group(unit, app)
        advance(unit, app, ApplicationEvent.RUN)
    # It runs, so no run limit holds it back, whatever the planner found.
    record_run_limit(unit, app, GateKind.NONE)
    # Before the next one is drawn: a resource manager may report the very UUID that the core would
    # issue next.
    unit.partition.uuids.avoid(item.uuid)
    uuid = item.uuid or unit.partition.uuids.next()
    devices = _devices_of(unit, item)
    unit.record(
        f.AllocationRecovered(
            spec=spec,
            queue=app.queue.path,
            user=app.spec.user,
            group=app.group,
            uuid=uuid,
            node_id=item.node_id,
            created_ns=unit.now_ns if spec.created_ns is None else spec.created_ns,
            sequence=unit.partition.next_sequence(),
            at_ns=unit.now_ns,
            devices=devices,
        )
    )
    # Behind the fact: what is above a maximum is read from what is charged.
    charged_by_force(unit, app)
    if announced:
        unit.announce(
            AnnouncedAllocation(
                partition=unit.partition.name,
                uuid=uuid,
                spec=spec,
                node_id=item.node_id,
                devices=devices,
            )
        )
    if spec.placeholder:
        placeholder_placed(unit, app, recovered=True)
        # The first placeholder that lives bars real asks of its group, some of which may keep a
        # node.
        if app.task_groups[spec.task_group].alive == 1:
            drop_barred_of(unit, app)
    else:
        work_started(unit, app)
        # It may be the last that an admitted gang was waiting for.
        watch_commitment(unit, app)


def _place_by_rm(
    unit: UnitOfWork,
    app: Application,
    known: Ask,
    item: AskItem,
    *,
    announced: bool,
) -> None:
    """The ask waits here and runs there: the report decides, size included."""
    unit.partition.uuids.avoid(item.uuid)
    # The size first: an allocation is charged as its ask is at that moment.
    if item.spec.resource != known.spec.resource:
        sized = replace(known.spec, resource=item.spec.resource)
        _unpark_what_no_longer_suits(unit, app, known, sized)
        _put(unit, app, known, sized)
    key, uuid = item.spec.key, item.uuid
    devices = _devices_of(unit, item)
    # Announced unless it came with its node: the node's own list is known to its sender.
    placement = Placement(key, item.node_id, uuid=uuid, is_announced=announced, devices=devices)
    place(unit, app, placement)
    charged_by_force(unit, app)


def _devices_of(unit: UnitOfWork, item: AskItem) -> Devices:
    """Return the devices of running work: those that its tag names, else free ones."""
    # A tag from before a restart names the devices that the program has open. Choosing others would
    # give two programs the same device.
    resource = item.spec.resource
    return reported_devices(unit.state.nodes[item.node_id], resource, devices_in(item.spec.tags))


def _resize(unit: UnitOfWork, app: Application, uuids: Iterable[str], spec: AskSpec) -> None:
    for uuid in uuids:
        allocation: Allocation = app.allocations[uuid]
        swap = app.swaps.get(uuid)
        if swap is not None and not fits_in(app.asks[swap.key].spec.resource, spec.resource):
            # Before the placeholder shrinks: no swap ever stands on one that its ask does not fit
            # into.
            unpark(unit, app, swap, "its placeholder has become smaller")
        if allocation.resource != spec.resource:
            node = unit.state.nodes[allocation.node_id]
            unit.record(
                f.AllocationResized(
                    application_id=app.id,
                    queue=app.queue.path,
                    user=app.spec.user,
                    group=app.group,
                    key=spec.key,
                    uuid=uuid,
                    node_id=allocation.node_id,
                    old_resource=allocation.resource,
                    resource=spec.resource,
                    at_ns=unit.now_ns,
                    devices=after_resize(node, allocation, spec.resource, devices_in(spec.tags)),
                ),
            )
            drop_overpromised(unit, node)
    # A larger one may be above a maximum now, so the quota is enforced later.
    charged_by_force(unit, app)
    # A placeholder that grew may make the gang complete.
    run_if_complete(unit, app)


# Foreign work is of no application: it counts on its node, and in no queue.
def _take_foreign(unit: UnitOfWork, item: AskItem) -> None:
    spec = item.spec
    if not item.node_id:
        reason = f"trying to add a foreign request (non-allocation) {spec.key}"
        unit.announce(rejected_ask(spec, reason))
    elif item.node_id not in unit.state.nodes:
        reason = f"failed to find node {item.node_id} for allocation {spec.key}"
        unit.announce(rejected_ask(spec, reason))
    elif has_negative(spec.resource):
        unit.announce(rejected_ask(spec, "allocation contains negative resources"))
    else:
        # Off the former node first: one key never counts on two nodes.
        _leave_former_node(unit, item)
        unit.record(
            f.ForeignAllocationPut(
                key=spec.key,
                node_id=item.node_id,
                resource=spec.resource,
                at_ns=unit.now_ns,
                tags=spec.tags,
                priority=spec.priority,
                created_ns=unit.now_ns if spec.created_ns is None else spec.created_ns,
            )
        )
        drop_overpromised(unit, unit.state.nodes[item.node_id])


def _leave_former_node(unit: UnitOfWork, item: AskItem) -> None:
    known = unit.state.foreign.get(item.spec.key)
    if known is not None and known.node_id != item.node_id:
        unit.record(
            f.ForeignAllocationRemoved(
                key=known.key, node_id=known.node_id, resource=known.resource, at_ns=unit.now_ns
            )
        )


ADDED_IN_ONE = 4
"""How many asks of a run are as much work as one item."""


def take_from(unit: UnitOfWork, items: Sequence[AskItem], start: int) -> int:
    """Take the ask or report there, of this partition, or a run that begins with it.

    Return how many were taken.
    """
    # The first is taken by itself: most requests have no other.
    run = _gather(unit, items, start) if start else []
    if len(run) > 1:
        _add(unit, run)
        return len(run)
    take_item(unit, items[start])
    return 1


def _gather(unit: UnitOfWork, items: Sequence[AskItem], start: int) -> list[AskSpec]:
    """Return the asks from there on that may be added at once."""
    first, partition = items[start].spec, items[start].partition
    app = unit.state.applications.get(first.application_id)
    if app is None or not takes_more(app, first) or refused_amounts(first) is not None:
        return []
    run: dict[str, AskSpec] = {}
    # Bounded as a batch of allocations is: applying one fact takes milliseconds at most.
    for item in items[start : start + LONGEST_BATCH]:
        spec = item.spec
        # The second of one key would replace the first, which is not there before the run is.
        if spec.key in run or not _is_plain(app, item) or not _is_alike(spec, first):
            break
        if item.partition != partition:
            break
        run[spec.key] = spec
    return list(run.values())


def _is_plain(app: Application, item: AskItem) -> bool:
    """It is a new ask, and may run anywhere."""
    spec = item.spec
    return not (
        item.node_id or item.uuid or item.foreign or spec.required_node or spec.key in app.asks
    )


def _is_alike(spec: AskSpec, first: AskSpec) -> bool:
    return (
        # Amounts are shared by the translation where a request repeats one, so `is` answers nearly
        # always; equality is the rule.
        spec.application_id == first.application_id
        and (spec.resource is first.resource or spec.resource == first.resource)
        and spec.placeholder is first.placeholder
        and spec.max_allocations > 0
    )


def _add(unit: UnitOfWork, specs: list[AskSpec]) -> None:
    application_id, partition = specs[0].application_id, unit.partition
    # Nearly never is anything remembered, and then no key has to be looked up.
    if partition.rejections:
        for spec in specs:
            partition.rejections.forget(application_id, spec.key)
    unit.record(
        f.AsksAdded(
            application_id=application_id,
            specs=tuple(specs),
            # Each gets the next number: order among equals is the order of arrival, as with single
            # asks.
            first_sequence=partition.take_sequences(len(specs)),
            at_ns=unit.now_ns,
        )
    )
