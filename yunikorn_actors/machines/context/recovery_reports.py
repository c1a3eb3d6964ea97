"""Reports of a resource manager after the core was restarted, compared with what is known.

Whatever is awaited is known already, so a report of it adds nothing. What the core had asked back
is asked back again with its report, because the former request may never have arrived. An ask that
comes again although it was placed shows that its placement was never announced: it is announced
now. If that placement was asked back, it has ended, and the ask waits again. Both need the report
of the node first: without it nobody knows whether the placement arrived.
"""

from yunikorn_actors.machines.context.endings import ask_back
from yunikorn_actors.machines.context.gangs import end_allocation
from yunikorn_actors.machines.context.partition_context import Awaited
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.messages.rm_events import AnnouncedAllocation, AskItem
from yunikorn_actors.state.allocations import Allocation, Ask
from yunikorn_actors.state.applications import Application
from yunikorn_actors.values.resource import has_negative, is_zero

ASKED_BACK = "it was asked back before it was reported as running"


def is_node_back(unit: UnitOfWork, node_id: str) -> bool:
    node = unit.state.nodes.get(node_id)
    return node is not None and node.awaited


def is_application_back(unit: UnitOfWork, application_id: str) -> bool:
    awaited = unit.partition.awaited
    app = unit.state.applications.get(application_id)
    return awaited is not None and app is not None and awaited.takes_application(app)


def take_awaited(unit: UnitOfWork, awaited: Awaited, item: AskItem) -> Allocation | None:
    """Return the awaited allocation that is reported, if it is one; it is not awaited any more."""
    spec = item.spec
    app = unit.state.applications.get(spec.application_id)
    ask = None if app is None else app.asks.get(spec.key)
    # Without a node it is an ask that came again, and no report.
    if app is None or ask is None or not item.node_id:
        return None
    # Rejected like any report with such amounts, and still awaited: what runs has a size.
    if has_negative(spec.resource) or is_zero(spec.resource):
        return None
    uuid = awaited.find((app.allocations[it] for it in ask.uuids), item.uuid, item.node_id)
    if not uuid:
        return None
    # Off the list before anything else, or `ask_back` would wait for this very report.
    awaited.takes_allocation(uuid)
    allocation = app.allocations[uuid]
    if allocation.releasing is not None:
        ask_back(unit, allocation, ASKED_BACK, allocation.releasing)
    return allocation


def end_unreported(unit: UnitOfWork, app: Application, ask: Ask) -> bool:
    """End placements of an ask that were asked back and are not there; False if there are none.

    The missing report confirms the release: a manager does not confirm what was never announced. A
    repeat that ends so counts as placed, like any other that has ended.
    """
    awaited = unit.partition.awaited
    ended = False
    if awaited is not None:
        for allocation in awaited.unreported(app, ask):
            if allocation.releasing is not None:
                end_allocation(unit, app, allocation, allocation.releasing)
                ended = True
    return ended


def announce_unreported(unit: UnitOfWork, app: Application, ask: Ask) -> bool:
    """Announce placements of an ask that never arrived; return whether there were any."""
    awaited = unit.partition.awaited
    if awaited is None:
        return False
    # Also those whose node is awaited still: their turn comes with its report (`take_wanted`).
    awaited.note_wanted(ask)
    unreported = awaited.unreported(app, ask)
    for allocation in unreported:
        # Announced, it is known to both sides from here on.
        awaited.takes_allocation(allocation.uuid)
        unit.announce(
            AnnouncedAllocation(
                partition=unit.partition.name,
                uuid=allocation.uuid,
                spec=allocation.spec,
                node_id=allocation.node_id,
                devices=allocation.devices,
            )
        )
    return bool(unreported)
