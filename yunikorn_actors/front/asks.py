"""What becomes of asks: they wait, are placed, wanted back, and over."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, Literal, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.errors import AskRejected, AskWithdrawn, CoreError, Duplicate, anew
from yunikorn_actors.front.books import Account, Asked, Entry, Stage
from yunikorn_actors.front.events import LeaseOver, NotPlaced, Placed, WantedBack
from yunikorn_actors.front.keys import Keys
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.life import Life
from yunikorn_actors.front.links import Links
from yunikorn_actors.front.past import Past

L = TypeVar("L", bound=BaseLease)

LeaseMaker = Callable[[Running, Callable[[], None]], L]
"""Makes a lease of what runs, and of how it is released."""


class Asks(Generic[L]):
    """An entry goes through its stages in one direction, and has its keys until it is over.

    Each step is told at once: to the core where the program made it, to the program where the core
    did. When an entry is over, its future has ended or its lease says that it is over, and both
    sides have let go of the room.
    """

    def __init__(self, life: Life, links: Links[L], make_lease: LeaseMaker[L]) -> None:
        self.keys: Final[Keys[L]] = Keys()
        self.past: Final = Past()
        self._life = life
        self._links = links
        self._make_lease = make_lease

    # -- it begins

    def check_free(self, account: Account[L], key: str) -> None:
        entry = account.by_key.get(key)
        if entry is not None:
            raise Duplicate(
                f"ask: {key!r} of {account.id!r} {entry.standing}; release or cancel it first, "
                "or give this one another key"
            )

    def ask(self, account: Account[L], asked: Asked[L]) -> Entry[L]:
        key = asked.ask.allocation_key
        entry = Entry(
            account=account,
            key=key,
            running=asked.running,
            fits=asked.fits,
            promise=asked.promise,
        )
        self.keys.enter(entry)
        self.past.forget(entry)
        same = entry.core_key == key
        ask = asked.ask if same else replace(asked.ask, allocation_key=entry.core_key)
        self._links.outbox.put(ask)
        return entry

    # -- it is placed

    def placed(self, entry: Entry[L], new: si.Allocation) -> None:
        if entry.stage is not Stage.WAITS:
            return
        self.keys.answered(entry)
        entry.uuid = new.uuid
        entry.running = dataclasses.replace(entry.running, node_id=new.node_id)
        self.hold(entry)

    def hold(self, entry: Entry[L]) -> L | None:
        if entry.account.ended is not None:
            return None
        entry.stage = Stage.HELD
        if entry.is_placeholder:
            return None
        release = partial(self._life.unless_over, partial(self._release, entry))
        entry.lease = self._make_lease(entry.running, release)
        self._links.readers.tell(Placed(lease=entry.lease))
        if entry.promise is not None:
            entry.promise.keep(entry.lease)
        return entry.lease

    # -- the program ends it

    def withdraw(self, entry: Entry[L]) -> None:
        """Its future was cancelled; a lease that it just got is given back."""
        if entry.stage is not Stage.WAITS:
            self._release(entry)
            return
        entry.stage = Stage.OVER
        self.keys.withdraw(entry)
        self._links.outbox.put(
            si.AllocationAskRelease(
                partition_name=self._links.terms.partition,
                application_id=entry.account.id,
                allocation_key=entry.core_key,
                termination_type=si.TerminationType.STOPPED_BY_RM,
            )
        )
        self.past.keep(entry, "withdrawn", "its future was cancelled")

    def _release(self, entry: Entry[L]) -> None:
        if entry.stage in {Stage.HELD, Stage.WANTED}:
            self._give_back(entry)
            self._close_lease(entry, "released", "")

    def _give_back(self, entry: Entry[L]) -> None:
        self.drop(entry)
        self._links.outbox.put(
            si.AllocationRelease(
                partition_name=self._links.terms.partition,
                application_id=entry.account.id,
                uuid=entry.uuid,
                allocation_key=entry.core_key,
                termination_type=entry.wanted,
            )
        )

    # -- the core ends it

    def rejected(self, entry: Entry[L], reason: str) -> None:
        if entry.stage is not Stage.WAITS:
            # What ran before, and the core will not have.
            self.lose(entry, reason)
            return
        self.keys.answered(entry)
        told = f"ask {entry.key!r} of {entry.account.id!r} was rejected: {reason}"
        self.refuse(entry, AskRejected(told), "rejected")

    def taken_back(self, entry: Entry[L], why: str) -> None:
        """The core gives up an ask that waits."""
        if entry.stage is Stage.WAITS:
            told = f"the core withdrew ask {entry.key!r} of {entry.account.id!r}: {why}"
            self.refuse(entry, AskWithdrawn(told), "withdrawn")

    def asked_back(self, entry: Entry[L], release: si.AllocationRelease) -> None:
        """The core wants the room of one that was placed; a lease has some time to go."""
        if entry.stage is Stage.WAITS or entry.uuid not in {"", release.uuid}:
            return
        entry.uuid = release.uuid
        reason = release.message or release.termination_type.name
        if release.termination_type is si.TerminationType.STOPPED_BY_RM:
            self.lose(entry, reason)
        elif entry.is_placeholder:
            entry.wanted = release.termination_type
            self._give_back(entry)
        elif entry.stage is Stage.HELD and entry.lease is not None:
            entry.stage, entry.wanted = Stage.WANTED, release.termination_type
            entry.lease.reason, entry.lease.state = reason, "wanted back"
            self._links.readers.tell(WantedBack(lease=entry.lease))
            entry.lease._want_back()
            late = partial(self._life.unless_over, partial(self._grace_over, entry))
            self._links.outbox.later(self._links.terms.grace, late)

    def _grace_over(self, entry: Entry[L]) -> None:
        if entry.stage is Stage.WANTED and entry.lease is not None:
            self._give_back(entry)
            late = f"it was not released within {self._links.terms.grace:g} s"
            self._close_lease(entry, "lost", f"{entry.lease.reason}; {late}")

    # -- it is over

    def refuse(
        self, entry: Entry[L], error: CoreError, state: Literal["rejected", "withdrawn"]
    ) -> None:
        self.drop(entry)
        if entry.promise is not None:
            entry.promise.fail(error)
            self.past.keep(entry, state, str(error))
            told = anew(error)
            self._links.readers.tell(
                NotPlaced(application=entry.account.id, key=entry.key, error=told)
            )

    def lose(self, entry: Entry[L], reason: str) -> None:
        self.drop(entry)
        self._close_lease(entry, "lost", reason)
        if entry.lease is not None:
            entry.lease._want_back()

    def _close_lease(self, entry: Entry[L], state: Literal["released", "lost"], why: str) -> None:
        lease = entry.lease
        if lease is None:
            return
        lease.reason = why or lease.reason
        lease.state = state
        self.past.keep(entry, state, lease.reason or "the program gave it back")
        self._links.readers.tell(LeaseOver(lease=lease))

    def drop(self, entry: Entry[L]) -> None:
        """Let go of it, and say nothing."""
        entry.stage = Stage.OVER
        self.keys.leave(entry)
