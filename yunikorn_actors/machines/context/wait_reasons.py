"""Why an ask waits, where events tell of it.

That what is left for it is too little is written down when that begins, and when it ends; that its
resource manager refuses every node, now and then for as long as that is found again.
"""

from yunikorn_actors.machines.context.unit_of_work import Turn
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import Resource

_REFUSALS_NS = 15 * SECOND


def record_shortage(
    turn: Turn,
    app: Application,
    ask: Ask,
    shortage: GateKind,
    available: Resource,
) -> None:
    if ask.shortage is not shortage:
        turn.record(
            f.AskShortageChanged(
                application_id=app.id,
                key=ask.spec.key,
                queue=app.queue.path,
                old_shortage=ask.shortage,
                shortage=shortage,
                resource=ask.spec.resource,
                available=available,
                at_ns=turn.now_ns,
            )
        )


def record_refusals(turn: Turn, app: Application, ask: Ask, refusals: dict[str, int]) -> None:
    if ask.refused_ns is None or turn.now_ns - ask.refused_ns >= _REFUSALS_NS:
        turn.record(
            f.AskRefused(
                application_id=app.id, key=ask.spec.key, refusals=refusals, at_ns=turn.now_ns
            )
        )
