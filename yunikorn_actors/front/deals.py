"""What becomes of deals: they wait, are placed, wanted back, and over."""

import dataclasses
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, Literal, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.errors import (
    AskRejected,
    AskWithdrawn,
    CoreError,
    DeadlinePassed,
    Duplicate,
    anew,
)
from yunikorn_actors.front.books import Account, Asked, Deal, DealStage, LeaseRef
from yunikorn_actors.front.door import Door
from yunikorn_actors.front.events import LeaseOver, NotPlaced, Placed, WantedBack
from yunikorn_actors.front.keys import Keys
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.links import Links
from yunikorn_actors.front.outbox import ASK_AGAIN
from yunikorn_actors.front.past import Past
from yunikorn_actors.front.placement import Whereabouts
from yunikorn_actors.values.devices import devices_in
from yunikorn_actors.values.tags import GPU_DEVICES

L = TypeVar("L", bound=BaseLease)

LeaseMaker = Callable[[Running, Callable[[], None]], L]
"""Makes a lease of what runs, and of how it is released."""


class Deals(Generic[L]):
    """A deal goes through its stages in one direction, and has its keys until it is over.

    Each step is reported at once: to the core where the program made it, to the program where the
    core did. When a deal is over, its future has ended or its lease says that it is over, and both
    sides have let go of the room.
    """

    def __init__(self, door: Door, links: Links[L], make_lease: LeaseMaker[L]) -> None:
        self.keys: Final[Keys[L]] = Keys()
        self.past: Final = Past()
        self.there: Final[dict[str, dict[Deal[L], None]]] = {}
        """What is placed, by node; nodes without any have none."""
        self.idle_since: Final[dict[str, float]] = {}
        """Since when each node that is there has been without work, unless it has some."""
        self.whereabouts: Final[Whereabouts[L]] = Whereabouts()
        self._door = door
        self._links = links
        self._make_lease = make_lease

    # -- it begins

    def check_free(self, account: Account[L], key: str) -> None:
        deal = account.by_key.get(key)
        if deal is not None:
            raise Duplicate(
                f"ask: {key!r} of {account.id!r} {deal.standing}; release or cancel it first, "
                "or give this one another key"
            )

    def ask(self, account: Account[L], asked: Asked[L]) -> Deal[L]:
        key = asked.ask.allocation_key
        deal = Deal(
            account=account,
            key=key,
            running=asked.running,
            fits=asked.fits,
            rule=asked.rule,
            promise=asked.promise,
            deadline_s=asked.deadline_s,
        )
        self.keys.enter(deal)
        self.past.forget(deal)
        same = deal.core_key == key
        ask = asked.ask if same else replace(asked.ask, allocation_key=deal.core_key)
        deal.ask = ask
        self._links.outbox.put(ask)
        return deal

    # -- it is placed

    def placed(self, deal: Deal[L], new: si.Allocation) -> None:
        if deal.stage is not DealStage.WAITS:
            return
        self.keys.answered(deal)
        deal.uuid = new.uuid
        tags = new.allocation_tags
        devices = devices_in(tags) if GPU_DEVICES in tags else ()
        deal.running = dataclasses.replace(deal.running, node_id=new.node_id, devices=devices)
        if deal.rule is not None and self.whereabouts.placed(deal, new.node_id):
            self._links.outbox.put(ASK_AGAIN)
        self.hold(deal)

    def hold(self, deal: Deal[L]) -> L | None:
        if deal.account.ended is not None:
            return None
        deal.stage = DealStage.HELD
        self.there.setdefault(deal.running.node_id, {})[deal] = None
        if deal.is_placeholder:
            return None
        lease = self.lease_of(deal)
        promise, deal.promise = deal.promise, None
        if promise is not None:
            deal.lease = LeaseRef(lease, warn_of_dropped)
            deal.lease.deal = deal
        self._links.readers.tell(Placed(lease=lease))
        if promise is not None:
            # One that was cancelled a moment ago is given back as if it had been withdrawn.
            promise.keep(lease, lease._release)
        return lease

    def lease_of(self, deal: Deal[L]) -> L:
        """Return the lease of one that is placed, made anew if the program has dropped it."""
        if deal.lease is not None and (lease := deal.lease()) is not None:
            return lease
        release = partial(self._door.unless_closed, partial(self._release, deal))
        lease = self._make_lease(deal.running, release)
        deal.lease = LeaseRef(lease)
        if deal.stage is DealStage.WANTED:
            lease.state, lease.reason = "wanted back", deal.reason
            lease._want_back()
        return lease

    # -- the program ends it

    def withdraw(self, deal: Deal[L]) -> None:
        """Its future was cancelled; a lease that it just got is given back."""
        if deal.stage is not DealStage.WAITS:
            self._release(deal)
            return
        self._take_back(deal)
        self.past.keep(deal, "withdrawn", "its future was cancelled")

    def pass_deadline(self, deal: Deal[L], reason: str) -> None:
        if deal.stage is DealStage.WAITS:
            self._take_back(deal)
            which = f"ask {deal.key!r} of {deal.account.id!r}"
            at = f"at its deadline, {deal.deadline_s:g} s"
            self._not_placed(deal, DeadlinePassed(f"{which} was withdrawn {at}: {reason}"))

    def _take_back(self, deal: Deal[L]) -> None:
        deal.stage = DealStage.OVER
        if deal.rule is not None:
            self.whereabouts.leave(deal)
        self.keys.withdraw(deal)
        self._links.outbox.put(
            si.AllocationAskRelease(
                partition_name=self._links.terms.partition,
                application_id=deal.account.id,
                allocation_key=deal.core_key,
                termination_type=si.TerminationType.STOPPED_BY_RM,
            )
        )

    def _release(self, deal: Deal[L]) -> None:
        if deal.stage in {DealStage.HELD, DealStage.WANTED}:
            self._give_back(deal)
            self._close_lease(deal, "released", "")

    def _give_back(self, deal: Deal[L]) -> None:
        self.drop(deal)
        self._links.outbox.put(
            si.AllocationRelease(
                partition_name=self._links.terms.partition,
                application_id=deal.account.id,
                uuid=deal.uuid,
                allocation_key=deal.core_key,
                termination_type=deal.wanted,
            )
        )

    # -- the core ends it

    def rejected(self, deal: Deal[L], reason: str) -> None:
        if deal.stage is not DealStage.WAITS:
            # What ran before, and the core will not have.
            self.lose(deal, reason)
            return
        self.keys.answered(deal)
        told = f"ask {deal.key!r} of {deal.account.id!r} was rejected: {reason}"
        self.refuse(deal, AskRejected(told), "rejected")

    def taken_back(self, deal: Deal[L], why: str) -> None:
        """The core gives up an ask that waits."""
        if deal.stage is DealStage.WAITS:
            told = f"the core withdrew ask {deal.key!r} of {deal.account.id!r}: {why}"
            self.refuse(deal, AskWithdrawn(told), "withdrawn")

    def asked_back(self, deal: Deal[L], release: si.AllocationRelease) -> None:
        """The core wants the room of one that was placed; a lease has some time to go."""
        if deal.stage is DealStage.WAITS or deal.uuid not in {"", release.uuid}:
            return
        deal.uuid = release.uuid
        reason = release.message or release.termination_type.name
        if release.termination_type is si.TerminationType.STOPPED_BY_RM:
            self.lose(deal, reason)
        elif deal.is_placeholder:
            deal.wanted = release.termination_type
            self._give_back(deal)
        elif deal.stage is DealStage.WANTED:
            # A core that has begun anew asks again, perhaps for another reason.
            deal.wanted = release.termination_type
        elif deal.stage is DealStage.HELD:
            lease = self.lease_of(deal)
            deal.stage, deal.wanted = DealStage.WANTED, release.termination_type
            deal.reason = lease.reason = reason
            lease.state = "wanted back"
            self._links.readers.tell(WantedBack(lease=lease))
            lease._want_back()
            late = partial(self._door.unless_closed, partial(self._grace_over, deal))
            self._links.outbox.later(self._links.terms.grace, late)

    def _grace_over(self, deal: Deal[L]) -> None:
        if deal.stage is DealStage.WANTED:
            self._give_back(deal)
            late = f"it was not released within {self._links.terms.grace:g} s"
            self._close_lease(deal, "lost", f"{deal.reason}; {late}")

    # -- it is over

    def refuse(
        self, deal: Deal[L], error: CoreError, state: Literal["rejected", "withdrawn"]
    ) -> None:
        self.drop(deal)
        self._not_placed(deal, error, state)

    def _not_placed(
        self, deal: Deal[L], error: CoreError, state: Literal["rejected", "withdrawn"] = "withdrawn"
    ) -> None:
        promise, deal.promise = deal.promise, None
        if promise is not None:
            promise.fail(error)
            self.past.keep(deal, state, str(error))
            told = anew(error)
            self._links.readers.tell(
                NotPlaced(application=deal.account.id, key=deal.key, error=told)
            )

    def lose(self, deal: Deal[L], reason: str) -> None:
        self.drop(deal)
        lease = self._close_lease(deal, "lost", reason)
        if lease is not None:
            lease._want_back()

    def _close_lease(self, deal: Deal[L], state: Literal["released", "lost"], why: str) -> L | None:
        if deal.lease is None:
            return None
        lease = deal.lease() or self.lease_of(deal)
        deal.lease = None
        lease.reason = why or deal.reason
        lease.state = state
        self.past.keep(deal, state, lease.reason or "the program gave it back")
        self._links.readers.tell(LeaseOver(lease=lease))
        return lease

    def drop(self, deal: Deal[L]) -> None:
        """Let go of it, and say nothing."""
        deal.stage = DealStage.OVER
        node_id = deal.running.node_id
        there = self.there.get(node_id)
        if there is not None and there.pop(deal, True) is None and not there:
            del self.there[node_id]
            if node_id in self.idle_since:
                self.idle_since[node_id] = time.monotonic()
        if deal.rule is not None:
            self.whereabouts.leave(deal)
        self.keys.leave(deal)


def warn_of_dropped(lease: LeaseRef[Any]) -> None:
    """Warn of a lease that the program has dropped, and not given back.

    This runs wherever the collector does, so it takes no lock and changes nothing.
    """
    deal = lease.deal
    if deal.lease is lease and not sys.is_finalizing():
        where = f"{deal.key!r} of {deal.account.id!r} on {deal.running.node_id}"
        warnings.warn(
            f"lease {where} was dropped and not released, so its room stays taken: use it in a "
            "`with` block, release() it, or find it in the leases of its application",
            ResourceWarning,
            stacklevel=2,
        )
