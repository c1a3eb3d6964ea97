"""Why asks wait, as far as facts tell: what was found of each when it was tried last."""

from collections import Counter

from yunikorn_actors.domain.allocation import Ask, WaitingState
from yunikorn_actors.domain.application import Application
from yunikorn_actors.domain.gates import GateKind
from yunikorn_actors.domain.partition import PartitionState


def by_reason(state: PartitionState) -> Counter[str]:
    """Count the asks that wait."""
    return Counter(
        _reason(app, ask)
        for app in state.applications.values()
        for ask in app.asks.values()
        if ask.remaining
    )


def _reason(app: Application, ask: Ask) -> str:
    if app.run_limit is not GateKind.NONE:
        return "run limit"
    if ask.reserved:
        return "reserved"
    if ask.shortage is not GateKind.NONE:
        return "queue" if ask.shortage is GateKind.QUEUE else "user or group"
    return {WaitingState.FAILED: "no node", WaitingState.SKIPPED: "held"}.get(
        ask.reported, "its turn"
    )
