"""What has become of an ask, for an explanation."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final, Literal

from yunikorn_actors.front.books import Deal
from yunikorn_actors.planning.why.reasons import Cause, Why

REMEMBERED_MAX: Final = 10_000
"""Deals that are over and can still be explained."""

Over = Literal["rejected", "withdrawn", "released", "lost"]


@dataclass(frozen=True, kw_only=True)
class AskStatus:
    """What has become of an ask, in words and in parts."""

    application: str
    """Id of the application."""
    key: str
    """Key of the ask."""
    state: Literal["waiting", "placed", "rejected", "withdrawn", "released", "lost"]
    """What it is now."""
    text: str
    """What there is to say: why it waits, where it runs, why it was rejected."""
    node_id: str = ""
    """The node where it runs, or ran."""
    why: Why | None = None
    """Of an ask that waits: what stands in its way, in parts."""

    @property
    def cause(self) -> Cause | None:
        """Of an ask that waits: why, as a word; of a gang, why its next placeholder waits."""
        if self.why is None:
            return None
        first = self.why.decisive
        return first.cause if first.gang is None else first.gang.cause or first.cause

    def report(self) -> str:
        """Say all of it, one thing on a line, as `report` of `why` does."""
        return self.text if self.why is None else self.why.report()

    def __str__(self) -> str:
        return self.text


class Past:
    """The asks that were over last, one for each application and key; none of these waits."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[tuple[str, str], AskStatus] = OrderedDict()

    def find(self, application: str, key: str) -> AskStatus | None:
        return self._by_key.get((application, key))

    def keep(self, deal: Deal[Any], state: Over, reason: str) -> None:
        self._by_key[deal.account.id, deal.key] = status(deal, state, reason)
        if len(self._by_key) > REMEMBERED_MAX:
            self._by_key.popitem(last=False)

    def forget(self, deal: Deal[Any]) -> None:
        """It is asked for again."""
        self._by_key.pop((deal.account.id, deal.key), None)


def status(deal: Deal[Any], state: Literal["placed"] | Over, reason: str) -> AskStatus:
    name = deal.account.id
    return AskStatus(
        application=name,
        key=deal.key,
        state=state,
        node_id=deal.running.node_id,
        text=f"{deal.key} of {name}: {state}; {reason}",
    )
