"""What a person looks for first in a picture of a run: refusals, timeouts, what was lost."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.trace.refused import refusals_in
from yunikorn_actors.trace.text.summary import fact_summary

REFUSED: Final = "refused"
TIMEOUT: Final = "timeout"
LOST: Final = "lost"


class Mark(NamedTuple):
    kind: str
    text: str


def marks_in(delivery: Delivery, news: Iterable[f.Fact]) -> Iterator[Mark]:
    """Yield the marks of a message; `news` are the facts that no mailbox had before."""
    for refusal in refusals_in(delivery):
        yield Mark(REFUSED, f"{refusal.what} {refusal.id}: {refusal.reason}")
    for fact in news:
        kind, is_meant = _MARKS.get(type(fact), ("", _always))
        if kind and is_meant(fact):
            yield Mark(kind, f"{type(fact).__name__} {fact_summary(fact)}")


def _always(_: object) -> bool:
    return True


def _is_timeout(fact: f.AskRemoved | f.ReleaseRequested) -> bool:
    return fact.type is TerminationType.TIMEOUT


_MARKS: Final[dict[type[f.Fact], tuple[str, Callable[[Any], bool]]]] = {
    f.AskRemoved: (TIMEOUT, _is_timeout),
    f.ReleaseRequested: (TIMEOUT, _is_timeout),
    f.ConfirmationMissed: (TIMEOUT, _always),
    f.GangLapsed: (TIMEOUT, _always),
    f.NodeRemoved: (LOST, _always),
    f.MachineReplaced: (LOST, _always),
    f.PolicyFailed: (LOST, _always),
}
