"""What operators look for first: refusals, timeouts and losses, the newest of them.

What comes again is counted and not listed again, and the list is bounded: a storm of one refusal
leaves the other lines where they are.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.termination import TerminationType

REFUSED: Final = "refused"
TIMEOUT: Final = "timeout"
LOST: Final = "lost"
LISTED_MAX: Final = 100
_SECOND: Final = 1_000_000_000

Line = tuple[str, str, str]
"""The kind, what it happened to, and what happened."""


class Trouble(Struct, kw_only=True):
    kind: str
    whom: str
    what: str
    count: int
    last_ns: int


class Troubles:
    """Of one partition."""

    def __init__(self) -> None:
        self._by_line: dict[Line, Trouble] = {}

    def note(self, fact: f.Fact) -> None:
        told = _TOLD.get(type(fact))
        if told is not None:
            at_ns: int = fact.at_ns  # type: ignore[union-attr] # those of the table have one
            for line in told(fact):
                self._say(line, at_ns)

    def _say(self, line: Line, at_ns: int) -> None:
        known = self._by_line.pop(line, None)
        kind, whom, what = line
        count = 1 if known is None else known.count + 1
        self._by_line[line] = Trouble(kind=kind, whom=whom, what=what, count=count, last_ns=at_ns)
        if len(self._by_line) > LISTED_MAX:
            del self._by_line[next(iter(self._by_line))]

    def newest(self) -> list[Trouble]:
        return list(reversed(self._by_line.values()))


# -- by type of fact


def _ask(fact: f.AskRefused | f.AskRemoved | f.PreemptionFailed | f.ConfirmationMissed) -> str:
    return f"{fact.application_id}/{fact.key}"


def _application(fact: f.ApplicationRejected) -> Iterator[Line]:
    yield REFUSED, fact.spec.application_id, fact.reason


def _nodes(fact: f.AskRefused) -> Iterator[Line]:
    for reason in sorted(fact.refusals):
        yield REFUSED, _ask(fact), f"its resource manager refuses every node with room: {reason}"


def _preemption(fact: f.PreemptionFailed) -> Iterator[Line]:
    yield REFUSED, _ask(fact), f"no work on {fact.node_id} may be preempted for it"


def _action(fact: f.NodeActionRefused) -> Iterator[Line]:
    yield REFUSED, fact.node_id, fact.reason


def _configuration(fact: f.ConfigurationRefused) -> Iterator[Line]:
    yield REFUSED, "configuration", fact.reason


def _withdrawn(fact: f.AskRemoved) -> Iterator[Line]:
    if fact.type is TerminationType.TIMEOUT:
        yield TIMEOUT, _ask(fact), "the ask was withdrawn"


def _asked_back(fact: f.ReleaseRequested) -> Iterator[Line]:
    if fact.type is TerminationType.TIMEOUT:
        yield TIMEOUT, f"{fact.application_id}/{fact.key}", "the allocation was asked back"


def _unconfirmed(fact: f.ConfirmationMissed) -> Iterator[Line]:
    yield TIMEOUT, _ask(fact), "its release is not confirmed"


def _lapsed(fact: f.GangLapsed) -> Iterator[Line]:
    waited_s = fact.waited_ns // _SECOND
    what = f"its gang had no placeholder for {waited_s} s and awaits admission anew"
    yield TIMEOUT, fact.application_id, what


def _node(fact: f.NodeRemoved) -> Iterator[Line]:
    yield LOST, fact.node_id, "the node was removed"


def _machine(fact: f.MachineReplaced) -> Iterator[Line]:
    yield LOST, fact.machine, f"it failed and was replaced: {fact.failure}"


def _held(fact: f.SchedulingHeld) -> Iterator[Line]:
    if fact.held:
        why = "does not take its messages" if fact.behind else "is away"
        yield LOST, "partition", f"its resource manager {why}, so nothing is decided"


_TOLD: Final[dict[type, Callable[[Any], Iterator[Line]]]] = {
    f.ApplicationRejected: _application,
    f.AskRefused: _nodes,
    f.PreemptionFailed: _preemption,
    f.NodeActionRefused: _action,
    f.ConfigurationRefused: _configuration,
    f.AskRemoved: _withdrawn,
    f.ReleaseRequested: _asked_back,
    f.ConfirmationMissed: _unconfirmed,
    f.GangLapsed: _lapsed,
    f.NodeRemoved: _node,
    f.MachineReplaced: _machine,
    f.SchedulingHeld: _held,
}
