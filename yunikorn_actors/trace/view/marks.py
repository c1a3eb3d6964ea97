"""What a person looks for first in a picture of a run: refusals, timeouts, what was lost.

Refusals are taken from the messages that make them, which name more than the facts among them.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.refused import refusals_in
from yunikorn_actors.trace.text.summary import fact_summary

_MARKED: Final = frozenset({f.IncidentKind.TIMEOUT, f.IncidentKind.LOST})


class Mark(NamedTuple):
    kind: str
    text: str


def marks_in(delivery: Delivery, news: Iterable[f.Fact]) -> Iterator[Mark]:
    """Yield the marks of a message; `news` are the facts that no mailbox had before."""
    for refusal in refusals_in(delivery):
        yield Mark(f.IncidentKind.REFUSED, f"{refusal.what} {refusal.id}: {refusal.reason}")
    for fact in news:
        for incident in fact.incidents():
            if incident.kind in _MARKED:
                yield Mark(incident.kind, f"{type(fact).__name__} {fact_summary(fact)}")
