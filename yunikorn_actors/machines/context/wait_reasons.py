"""Why an ask waits, recorded where events and states report it.

A shortage is recorded when it begins and when it ends. That its resource manager refuses every node
is recorded now and then, for as long as that is found again.
"""

from yunikorn_actors.machines.context.unit_of_work import UnitOfWork, report_state
from yunikorn_actors.messages.scheduling import Observation
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Ask, WaitingState
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import Resource

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
