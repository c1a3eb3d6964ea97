"""What operators look for first: refusals, preemption, timeouts and losses, the newest of them.

What happens to asks and allocations is counted for their application, so that a thousand of them
are one line, with a count and the one that came last. The list is bounded, and a kind that has most
of it loses its oldest line: a storm of one kind leaves the lines of the others where they are.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.termination import TerminationType

REFUSED: Final = "refused"
PREEMPTED: Final = "preempted"
TIMEOUT: Final = "timeout"
LOST: Final = "lost"
LISTED_MAX: Final = 100
_SECOND: Final = 1_000_000_000

Line = tuple[str, str, str, str]
"""The kind, to what it happened, what happened, and to which of its asks; empty for none."""


class Trouble(Struct, kw_only=True):
    kind: str
    whom: str
    what: str
    such_as: str
    """Key of the last ask or allocation."""
    count: int
    last_ns: int


class Troubles:
    """Of one partition."""

    def __init__(self) -> None:
        self._by_line: dict[tuple[str, str, str], Trouble] = {}

    def note(self, fact: f.Fact) -> None:
        lines_of = _LINES.get(type(fact))
        if lines_of is not None:
            at_ns: int = fact.at_ns  # type: ignore[union-attr] # those of the table have one
            for line in lines_of(fact):
                self._say(line, at_ns)

    def _say(self, line: Line, at_ns: int) -> None:
        kind, whom, what, such_as = line
        known = self._by_line.pop((kind, whom, what), None)
        count = 1 if known is None else known.count + 1
        self._by_line[kind, whom, what] = Trouble(
            kind=kind, whom=whom, what=what, such_as=such_as, count=count, last_ns=at_ns
        )
        if len(self._by_line) > LISTED_MAX:
            self._drop_one()

    def _drop_one(self) -> None:
        """Drop the oldest line of the kind that has most of them."""
        kinds = Counter(kind for kind, _, _ in self._by_line)
        most = max(kinds.values())
        oldest = next(it for it in self._by_line if kinds[it[0]] == most)
        del self._by_line[oldest]

    def newest(self) -> list[Trouble]:
        return list(reversed(self._by_line.values()))


# -- by type of fact


def _application(fact: f.ApplicationRejected) -> Iterator[Line]:
    yield REFUSED, fact.spec.application_id, fact.reason, ""


def _nodes(fact: f.AskRefused) -> Iterator[Line]:
    for reason in sorted(fact.refusals):
        what = f"its resource manager refuses every node with room: {reason}"
        yield REFUSED, fact.application_id, what, fact.key


def _preemption(fact: f.PreemptionFailed) -> Iterator[Line]:
    what = "no work may be preempted for it on the nodes that it may have"
    yield REFUSED, fact.application_id, what, fact.key


def _action(fact: f.NodeActionRefused) -> Iterator[Line]:
    yield REFUSED, fact.node_id, fact.reason, ""


def _configuration(fact: f.ConfigurationRefused) -> Iterator[Line]:
    yield REFUSED, "configuration", fact.reason, ""


def _policy(fact: f.PolicyFailed) -> Iterator[Line]:
    yield LOST, fact.policy, fact.text, ""


def _withdrawn(fact: f.AskRemoved) -> Iterator[Line]:
    if fact.type is TerminationType.TIMEOUT:
        yield TIMEOUT, fact.application_id, "asks were withdrawn: their time was over", fact.key


def _asked_back(fact: f.ReleaseRequested) -> Iterator[Line]:
    lines_of = _ASKED_BACK.get(fact.type)
    if lines_of is not None:
        kind, what = lines_of
        yield kind, fact.application_id, what, fact.key


_ASKED_BACK: Final = {
    TerminationType.TIMEOUT: (TIMEOUT, "allocations were asked back: their time was over"),
    TerminationType.PREEMPTED_BY_SCHEDULER: (
        PREEMPTED,
        "allocations were preempted: others get their room",
    ),
}


def _unconfirmed(fact: f.ConfirmationMissed) -> Iterator[Line]:
    yield TIMEOUT, fact.application_id, "the release of allocations is not confirmed", fact.key


def _lapsed(fact: f.GangLapsed) -> Iterator[Line]:
    waited_s = fact.waited_ns // _SECOND
    what = f"its gang had no placeholder for {waited_s} s and awaits admission anew"
    yield TIMEOUT, fact.application_id, what, ""


def _node(fact: f.NodeRemoved) -> Iterator[Line]:
    yield LOST, fact.node_id, "the node was removed", ""


def _machine(fact: f.MachineReplaced) -> Iterator[Line]:
    yield LOST, fact.machine, f"it failed and was replaced: {fact.failure}", ""


def _held(fact: f.SchedulingHeld) -> Iterator[Line]:
    if fact.held:
        why = "does not take its messages" if fact.behind else "is away"
        yield LOST, "partition", f"its resource manager {why}, so nothing is decided", ""


_LINES: Final[dict[type, Callable[[Any], Iterator[Line]]]] = {
    f.ApplicationRejected: _application,
    f.AskRefused: _nodes,
    f.PreemptionFailed: _preemption,
    f.NodeActionRefused: _action,
    f.ConfigurationRefused: _configuration,
    f.PolicyFailed: _policy,
    f.AskRemoved: _withdrawn,
    f.ReleaseRequested: _asked_back,
    f.ConfirmationMissed: _unconfirmed,
    f.GangLapsed: _lapsed,
    f.NodeRemoved: _node,
    f.MachineReplaced: _machine,
    f.SchedulingHeld: _held,
}
