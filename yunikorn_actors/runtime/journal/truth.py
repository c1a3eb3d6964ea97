"""The state of a core, made again from what its Context has issued.

Facts say what is true, and the same code that applied them in Context applies them here. Nothing is
decided again, so neither the version of the planner nor its choices matter.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from yunikorn_actors.domain.changes import apply
from yunikorn_actors.domain.image import image_of, restore
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.errors import JournalError
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.codec import MESSAGE_TYPES
from yunikorn_actors.messages.restart import CoreRestored, Registered
from yunikorn_actors.messages.scheduling import FactsAppended, PartitionClosed

EVENT_BYTES_MAX: Final = 8 * 2**20
"""So much of the event records outlives a restart, the newest of them."""


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one handler of Context took and issued; messages stand beside their types."""

    at_ns: int
    requests: tuple[tuple[str, Message], ...] = ()
    """What resource managers and the administrator brought. The facts hold all of it that was
    taken, so these are for people."""
    issued: tuple[tuple[str, Message], ...] = ()
    """Facts, and what else the event publisher hears."""
    registered: Registered | None = None
    """Who is registered, after a message that may have changed that."""


class StoredEntry(Struct, frozen=True, kw_only=True):
    at_ns: int
    requests: msgspec.Raw = msgspec.Raw()
    issued: tuple[tuple[str, msgspec.Raw], ...] = ()
    registered: Registered | None = None


_entries: Final = msgspec.msgpack.Decoder(StoredEntry)
_decoders: Final[dict[str, msgspec.msgpack.Decoder[Any]]] = {
    name: msgspec.msgpack.Decoder(kind) for name, kind in MESSAGE_TYPES.items()
}


class Truth:
    def __init__(self) -> None:
        self.entries = 0
        self._registered = Registered()
        self._states: dict[tuple[str, int], PartitionState] = {}
        self._publisher = EventPublisher(settings=Settings())

    def begin_with(self, snapshot: CoreRestored) -> None:
        self._registered = snapshot.registered
        self._publisher.handle(snapshot.events, 0)
        for known in snapshot.registered.managers:
            for name, epoch in known.epochs.items():
                restore(self._state(name, epoch), snapshot.images[name])

    def take(self, payload: memoryview) -> None:
        """Do again what one handler did."""
        try:
            entry = _entries.decode(payload)
            issued = [_decoders[name].decode(data) for name, data in entry.issued]
        except (KeyError, msgspec.MsgspecError) as error:
            raise JournalError(
                f"entry {self.entries + 1} of the journal cannot be read ({error}): it was written "
                "by a later version; use that one"
            ) from error
        self.entries += 1
        self._registered = entry.registered or self._registered
        for message in issued:
            self._publisher.handle(message, entry.at_ns)
        self._apply(issued)

    def _apply(self, issued: Iterable[Message]) -> None:
        for message in issued:
            match message:
                case FactsAppended(partition=name, epoch=epoch):
                    state = self._state(name, epoch)
                    for fact in message.facts:
                        apply(state, fact)
                case PartitionClosed(partition=name, epoch=epoch):
                    self._states.pop((name, epoch), None)
                case _:
                    pass

    def _state(self, name: str, epoch: int) -> PartitionState:
        return self._states.setdefault((name, epoch), PartitionState(name))

    def told(self) -> CoreRestored:
        """Give all of it, for a core to go on with."""
        return CoreRestored(
            registered=self._registered,
            images={name: image_of(state) for (name, _), state in self._states.items()},
            events=self._publisher.remembered(EVENT_BYTES_MAX),
        )
