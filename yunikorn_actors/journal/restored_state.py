"""The state of a core, made again from what its Context issued.

Facts say what is true, and the same code that applied them in Context applies them here. Nothing is
decided again, so neither the version of the planner nor its choices matter. Whether the facts make
here what they made there is compared with what the other Context noted of itself.
"""

from itertools import accumulate
from typing import Any, Final

import msgspec
from msgspec import Struct

from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.codec import MESSAGE_TYPES, encode, state_digest
from yunikorn_actors.messages.restart import CoreRestored, Registered
from yunikorn_actors.messages.rm_events import EventsConfigured
from yunikorn_actors.messages.scheduling import FactsAppended, PartitionClosed
from yunikorn_actors.policies.folds import Folds, UnreadPolicies
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import image_of, restore
from yunikorn_actors.values.resource import Resource, pruned, saturated

APPLICATION_BYTES_MAX: Final = 8 * 2**20
"""So much of the applications that have ended, of each partition, the newest of them."""


class WrongReplay(Exception):
    """What a record tells cannot be done again, or leads to something else."""


class OutOfRow(WrongReplay):
    """The facts of a record do not follow those before it."""

    def __init__(self, partition: str, *, expected: int, found: int) -> None:
        super().__init__(
            f"{partition} is at revision {expected - 1}, and the record goes on from {found}"
        )
        self.how = "are repeated" if found < expected else "are missing"


class Tally(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What Context had in a partition: a few sums, cheap enough to be noted now and then."""

    epoch: int
    revision: int
    nodes: int
    applications: int
    allocations: int
    allocated: Resource = {}
    pending: Resource = {}


def tally_of(state: PartitionState, epoch: int) -> Tally:
    root = state.queues.get("root")
    return Tally(
        epoch=epoch,
        revision=state.revision,
        nodes=len(state.nodes),
        applications=len(state.applications),
        allocations=state.allocation_count,
        # Saturated, as a message holds no more; the books themselves are exact.
        allocated={} if root is None else saturated(pruned(root.allocated)),
        pending={} if root is None else saturated(pruned(root.pending)),
    )


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
    tallies: dict[str, Tally] = {}
    """What there is in each partition after this, noted now and then."""
    folds: dict[str, dict[str, Any]] = {}
    """What policies keep in each partition, noted beside it where any does."""
    follows: int | None = None
    """The checksum of the record before it in the file."""
    ended: bool = False
    """The core stopped, and this is the last record."""


# As `Entry`, with messages that are decoded only when they are applied.
class StoredEntry(Struct, frozen=True, kw_only=True):
    at_ns: int
    requests: msgspec.Raw = msgspec.Raw()
    issued: tuple[tuple[str, msgspec.Raw], ...] = ()
    registered: Registered | None = None
    tallies: dict[str, Tally] = {}
    folds: dict[str, dict[str, Any]] = {}
    follows: int | None = None
    ended: bool = False


class _Follower(Struct, frozen=True, kw_only=True):
    follows: int | None = None


_followers: Final = msgspec.msgpack.Decoder(_Follower)
_entries: Final = msgspec.msgpack.Decoder(StoredEntry)
_decoders: Final[dict[str, msgspec.msgpack.Decoder[Any]]] = {
    name: msgspec.msgpack.Decoder(kind) for name, kind in MESSAGE_TYPES.items()
}


def follows(payload: memoryview) -> int | None:
    """Return the checksum that a record names of the one before it; None if it names none."""
    # Only this field: it is asked of records that may be none of ours.
    try:
        return _followers.decode(payload).follows
    except msgspec.MsgspecError:
        return None


def stored_entry(payload: memoryview) -> StoredEntry:
    try:
        return _entries.decode(payload)
    except msgspec.MsgspecError as error:
        raise WrongReplay(f"it cannot be done again ({error!r})") from error


class Truth:
    def __init__(self) -> None:
        self.registered = Registered()
        self.states: dict[tuple[str, int], PartitionState] = {}
        """By full name and epoch."""
        self.publisher = EventPublisher(settings=Settings())
        self.at_ns = 0
        """When the last entry was made that was taken."""

    def begin_with(self, restored: CoreRestored) -> None:
        self.registered = restored.registered
        for known in restored.registered.managers:
            # Which records there are depends on it.
            rm_id, extra = known.registration.rm_id, known.registration.extra
            self.publisher.handle(EventsConfigured(rm_id=rm_id, extra=extra), 0)
            for name, epoch in known.epochs.items():
                restore(self._state(name, epoch), restored.images[name])
        self.publisher.handle(restored.events, 0)

    def take(self, entry: StoredEntry) -> None:
        """Do again what one handler did, and compare the result where Context noted its own."""
        self.at_ns = max(self.at_ns, entry.at_ns)
        try:
            issued = [_decoders[name].decode(data) for name, data in entry.issued]
            self.registered = entry.registered or self.registered
            # Revision first: a gap must not be applied, or all that follows would be wrong quietly.
            for message in issued:
                self._compare_revision(message)
                # The publisher counts event numbers on; without it readers would find other numbers
                # after a restart.
                self.publisher.handle(message, entry.at_ns)
                self._apply(message)
        except WrongReplay:
            raise
        except Exception as error:
            # Whatever it is: another version may have facts, or readers of them, of other kinds.
            raise WrongReplay(f"it cannot be done again ({error!r})") from error
        for name, noted in entry.tallies.items():
            self._compare(name, noted)
            # What policies keep cannot be made from facts without the policies: it is taken as
            # noted.
            self._folds(name, noted.epoch).note(entry.folds.get(name, {}))

    def _compare_revision(self, message: Message) -> None:
        if not isinstance(message, FactsAppended):
            return
        expected = self._state(message.partition, message.epoch).revision + 1
        if message.first_revision != expected:
            raise OutOfRow(message.partition, expected=expected, found=message.first_revision)

    def _compare(self, name: str, noted: Tally) -> None:
        made = tally_of(self._state(name, noted.epoch), noted.epoch)
        # Equal sums do not prove an equal state; the digest of a snapshot does.
        if made != noted:
            raise WrongReplay(f"{name} comes to {made}, and the core that wrote it had {noted}")

    def _apply(self, message: Message) -> None:
        match message:
            case FactsAppended(partition=name, epoch=epoch):
                state = self._state(name, epoch)
                for fact in message.facts:
                    apply(state, fact)
            case PartitionClosed(partition=name, epoch=epoch):
                self.states.pop((name, epoch), None)
            case _:
                pass

    def _state(self, name: str, epoch: int) -> PartitionState:
        state = self.states.get((name, epoch))
        if state is None:
            # Who reads a journal has no policies: what a fold gets after it was noted is kept, and
            # observed by the core that goes on.
            state = self.states[name, epoch] = PartitionState(name, Folds(UnreadPolicies()))
        return state

    def _folds(self, name: str, epoch: int) -> Folds:
        folds = self._state(name, epoch).folds
        assert isinstance(folds, Folds)
        return folds

    def forget(self, bytes_max: int) -> None:
        """Forget the oldest of the applications that have ended, beyond `bytes_max`."""
        for state in self.states.values():
            newest_first = [*reversed(state.finished.items())]
            sizes = accumulate(len(encode(app)) for _, app in newest_first)
            for (serial, _), size in zip(newest_first, sizes, strict=True):
                if size > bytes_max:
                    # Only of what is remembered: nothing is decided by it.
                    state.forget(serial)

    def digest(self) -> str:
        """Of all that a core goes on with; of the records, how many there were."""
        return state_digest(
            {
                "registered": self.registered,
                "partitions": {name: snapshot(it) for (name, _), it in self.states.items()},
                **({"folds": folds} if (folds := self._images_of_folds()) else {}),
                "records": self.publisher.ring.next_id,
            }
        )

    def _images_of_folds(self) -> dict[str, Any]:
        images = {name: self._folds(name, epoch).image() for name, epoch in self.states}
        return {name: image for name, image in images.items() if image}

    def as_message(self) -> CoreRestored:
        """Give all of it, for a core to go on with."""
        return CoreRestored(
            registered=self.registered,
            images={name: image_of(state) for (name, _), state in self.states.items()},
            events=self.publisher.remembered(),
        )
