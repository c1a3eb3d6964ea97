"""A partition after the core was restarted: what is awaited, and what is dropped in the end."""

from yunikorn_actors.machines.context.asks import take_item
from yunikorn_actors.machines.context.endings import announce_end, watch_anew, watch_confirmations
from yunikorn_actors.machines.context.gangs import end_allocation
from yunikorn_actors.machines.context.lifecycle import set_timers_again, work_gone
from yunikorn_actors.machines.context.nodes import await_node, remove_node
from yunikorn_actors.machines.context.partition_context import Awaited
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.slices import Steps
from yunikorn_actors.messages.rm_events import AskItem
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.termination import TerminationType

NOT_REPORTED = (
    "it was not reported as running after the core was restarted: ask for it again if it is wanted"
)


def await_reports(unit: UnitOfWork, warning_ns: int) -> None:
    """Arm all timers again, and wait for the resource manager to say what it has."""
    unit.partition.awaited = Awaited(unit.state)
    for node in unit.state.nodes.values():
        await_node(unit, node)
    # Timers of facts, at their times: what was due while the core was away fires at once.
    set_timers_again(unit)
    watch_anew(unit, warning_ns)


def go_on(unit: UnitOfWork, warning_ns: int) -> None:
    """Arm all timers as they were: this is a copy of a core that runs, and awaits nothing."""
    set_timers_again(unit)
    watch_confirmations(unit, warning_ns)


def drop_awaited(unit: UnitOfWork) -> Steps:
    """Its time is over: drop what the resource manager has not got any more."""
    # Taken off first: what is asked back from now on waits for no report.
    awaited, unit.partition.awaited = unit.partition.awaited, None
    if awaited is None:
        return
    # Those that were asked for again first, before the removal of their node announces their end.
    for uuid in awaited.wanted:
        app = unit.state.owner_of(uuid)
        # With several repeats nobody knows which were announced; those are dropped below.
        if app is not None and app.allocations[uuid].spec.max_allocations == 1:
            _have_wait_again(unit, app, app.allocations[uuid])
            yield 1
    # A node that never came back: its allocations end as on any node that leaves.
    for node_id in awaited.nodes:
        node = unit.state.nodes.get(node_id)
        if node is not None:
            yield from remove_node(unit, node)
    # What is left is on nodes that came back without it.
    for uuid in awaited.uuids:
        app = unit.state.owner_of(uuid)
        if app is not None:
            _drop(unit, app, app.allocations[uuid], is_wanted=awaited.is_wanted(uuid))
            yield 1


def _have_wait_again(unit: UnitOfWork, app: Application, allocation: Allocation) -> None:
    """Its node has not come back, and its manager has asked again: it never heard of a placement.

    So its end is not announced either. Which of several repeats were announced nobody knows.
    """
    spec, releasing = allocation.spec, allocation.releasing
    end_allocation(unit, app, allocation, releasing or TerminationType.STOPPED_BY_RM)
    # The new ask first: without anything that waits the application would begin to complete.
    take_item(unit, AskItem(partition=unit.partition.name, spec=spec))
    work_gone(unit, app, work_ended=not spec.placeholder)


def _drop(unit: UnitOfWork, app: Application, allocation: Allocation, *, is_wanted: bool) -> None:
    """What was asked back is confirmed by its absence; anything else comes as a surprise."""
    releasing = allocation.releasing
    end_allocation(unit, app, allocation, releasing or TerminationType.STOPPED_BY_RM)
    # A manager that has asked for it again would wait for it forever.
    if releasing is None or is_wanted:
        announce_end(unit, allocation, NOT_REPORTED)
    work_gone(unit, app, work_ended=not allocation.spec.placeholder)
