"""Why asks wait, as far as facts tell: what was found of each when it was tried last."""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from yunikorn_actors.domain.allocation import Ask, WaitingState
from yunikorn_actors.domain.application import Application
from yunikorn_actors.domain.gang import waits_for_gang
from yunikorn_actors.domain.gates import GateKind
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.service.read.slowly import Breaths, Steps

RUN_LIMIT: Final = "run limit"
RESERVED: Final = "reserved"
QUEUE: Final = "queue"
OWNER: Final = "user or group"
NO_NODE: Final = "no node"
HELD: Final = "held"
GANG: Final = "gang"
TURN: Final = "its turn"


class Waiting(NamedTuple):
    """An ask of which something waits."""

    app: Application
    ask: Ask
    reason: str


def waiting(state: PartitionState) -> Iterator[Waiting]:
    for app in state.applications.values():
        for ask in app.asks.values():
            if ask.remaining:
                yield Waiting(app, ask, _reason(app, ask))


def by_reason(state: PartitionState) -> Steps[Counter[str]]:
    """Count the asks that wait."""
    counts, breaths = Counter[str](), Breaths()
    for it in waiting(state):
        counts[it.reason] += 1
        if breaths.due:
            yield
    return counts


def _reason(app: Application, ask: Ask) -> str:
    if app.run_limit is not GateKind.NONE:
        return RUN_LIMIT
    if ask.reserved:
        return RESERVED
    if ask.shortage is not GateKind.NONE:
        return QUEUE if ask.shortage is GateKind.QUEUE else OWNER
    if waits_for_gang(app, ask.spec):
        return GANG
    return {WaitingState.FAILED: NO_NODE, WaitingState.SKIPPED: HELD}.get(ask.reported, TURN)
