"""Context with a journal: what a handler took and issued is written before it is carried out.

A driver carries effects out after the handler has returned, so whatever is announced is in the
file. A handler that raises leaves nothing: the message that broke it does not break the next core
(ADR 28).
"""

from collections.abc import Iterator
from typing import Any, Final

from yunikorn_actors.journal.restored_state import Entry, Tally, tally_of
from yunikorn_actors.journal.writing import Journal
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import Effect, Joining, Send
from yunikorn_actors.messages import restart
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import EVENT_PUBLISHER, Message
from yunikorn_actors.messages.followers import HistoryRequested

_REGISTRATIONS: Final = frozenset(
    {
        rm.RMRegistration,
        rm.RMLost,
        rm.RMUnregistered,
        rm.RMPartitionsRemove,
        rm.RMConfigUpdate,
        rm.AdminConfigUpdate,
    }
)
"""After these others may be registered, or with another configuration."""
_REQUESTS: Final = _REGISTRATIONS | {
    rm.RMUpdateAllocation,
    rm.RMUpdateApplication,
    rm.RMUpdateNode,
    rm.AdminNodeUpdate,
}
_UNKEPT: Final = frozenset({restart.EventsRestored, HistoryRequested})
"""What the event publisher hears of no change: it stands in the snapshot, or is a question."""

TALLY_EVERY: Final = 256
"""Entries between two that note how many things there are."""


class Entries:
    """What is written of each handler of Context; it knows no file."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._until_tally = 0
        self._known = 0
        """How many changes of what is registered have been noted."""

    def of(self, taken: list[Message], effects: list[Effect], now_ns: int) -> Entry | None:
        """Note what a handler took and issued; None where the next core needs nothing of it."""
        # The event publisher gets every fact, so what goes there is the whole truth.
        issued = [
            (type(it.message).__name__, it.message)
            for it in effects
            if type(it) is Send and it.to == EVENT_PUBLISHER and type(it.message) not in _UNKEPT
        ]
        requests = [(type(it).__name__, it) for it in taken if type(it) in _REQUESTS]
        # A cycle or a question changes nothing that the next core needs.
        if not issued and not requests:
            return None
        # Long work goes on in messages that say nothing of what it is.
        changes = self._known != self._context.changes
        # A request that changes who is registered, even where the registry counts nothing.
        changes = changes or any(type(it) in _REGISTRATIONS for it in taken)
        self._known = self._context.changes
        tallies = self._tallies()
        return Entry(
            at_ns=now_ns,
            requests=tuple(requests),
            issued=tuple(issued),
            registered=self._context.registered if changes else None,
            tallies=tallies,
            # As seldom as the tallies: it is as large as what policies keep.
            folds=self._context.folds() if tallies else {},
        )

    def _tallies(self) -> dict[str, Tally]:
        if self._until_tally:
            self._until_tally -= 1
            return {}
        self._until_tally = TALLY_EVERY
        # Cheap sums: comparing everything would take hundreds of milliseconds.
        partitions = self._context.partitions.items()
        return {name: tally_of(it.state, it.epoch) for name, it in partitions}


class Kept(Joining):
    joined = Context.joined

    def __init__(self, context: Context, journal: Journal) -> None:
        self._context = context
        self._entries = Entries(context)
        self._journal = journal

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        effects = self._context.handle(message, now_ns)
        # After the handler and before its effects: that is the promise of the journal.
        self._keep([message], effects, now_ns)
        return effects

    @property
    def is_at_rest(self) -> bool:
        return self._context.is_at_rest

    def joins(self, first: Message, message: Message) -> bool:
        return self._context.joins(first, message)

    def handle_together(self, messages: Iterator[Message], now_ns: int) -> list[Effect]:
        taken: list[Message] = []
        # Noted as they are taken: how many join is known only afterwards.
        effects = self._context.handle_together(_noted(messages, taken), now_ns)
        self._keep(taken, effects, now_ns)
        return effects

    def canonical_state(self) -> dict[str, Any]:
        return self._context.canonical_state()

    def _keep(self, taken: list[Message], effects: list[Effect], now_ns: int) -> None:
        entry = self._entries.of(taken, effects, now_ns)
        if entry is not None:
            self._journal.append(entry)


def _noted(messages: Iterator[Message], taken: list[Message]) -> Iterator[Message]:
    for message in messages:
        taken.append(message)
        yield message
