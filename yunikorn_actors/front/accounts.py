"""The applications of a front."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.errors import (
    ApplicationEnded,
    ApplicationRejected,
    CoreError,
    Duplicate,
    QueueNotFound,
    anew,
)
from yunikorn_actors.front.books import Account, Deal, DealStage, Unanswered
from yunikorn_actors.front.deals import Deals
from yunikorn_actors.front.early import Early
from yunikorn_actors.front.events import ApplicationChanged
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.links import Links

ENDINGS: Final = ("Completed", "Failed", "Rejected", "Expired")
"""States in which an application takes no more asks."""

L = TypeVar("L", bound=BaseLease)


class Accounts(Generic[L]):
    """One account for each id, from the request on until it ends; then it has no deal left.

    What the core says of an id is about this account once it has been accepted. Until then it is
    about a former one of that id, and nobody hears it.
    """

    def __init__(self, links: Links[L], deals: Deals[L]) -> None:
        self._links = links
        self._deals = deals
        self._by_id: dict[str, Account[L]] = {}
        self._new: Unanswered[Account[L]] = Unanswered()
        self._early = Early()

    @property
    def ids(self) -> list[str]:
        """Of those that the program has been given."""
        return [name for name, it in self._by_id.items() if it.handle is not None]

    def find(self, application_id: str) -> Account[L] | None:
        return self._by_id.get(application_id)

    def deal(self, application_id: str, core_key: str) -> Deal[L] | None:
        """Return what the core means; None for what was withdrawn or has ended meanwhile."""
        account = self._by_id.get(application_id)
        if account is None or not account.is_known:
            return None
        return account.by_core_key.get(core_key)

    # -- what the program does

    def add(
        self,
        account: Account[L],
        request: si.AddApplicationRequest,
        placeholders: Iterable[si.AllocationAsk],
    ) -> None:
        if account.id in self._by_id:
            raise Duplicate(
                f"application: there is one {account.id!r} already; close() it first, or give "
                "this one another id"
            )
        account.request = request
        self._by_id[account.id] = account
        self._new.asked(account.id, account)
        self._links.outbox.put(request)
        for ask in placeholders:
            group = ask.task_group_name
            running = Running(
                application=account.id,
                key="",
                node_id="",
                resources=account.groups[group].written,
                group=group,
            )
            core_key = ask.allocation_key
            self._deals.keys.enter(
                Deal(account=account, key="", core_key=core_key, ask=ask, running=running)
            )
            self._links.outbox.put(ask)

    def close(self, account: Account[L]) -> None:
        """Take it back with all that it has; its leases are lost at once."""
        if account.ended is not None:
            return
        partition = self._links.terms.partition
        self._links.outbox.put(
            si.RemoveApplicationRequest(application_id=account.id, partition_name=partition)
        )
        closed = f"application {account.id!r} was closed"
        account.accepted.fail(ApplicationEnded(closed))
        error = ApplicationEnded(f"{closed}; make another one to ask again")
        self._end(account, error, "Removed")

    def end(self, reason: CoreError) -> None:
        for account in list(self._by_id.values()):
            account.accepted.fail(anew(reason))
            self._end(account, reason)

    def _end(self, account: Account[L], error: CoreError, state: str = "") -> None:
        """Let go of everything that it has; the core keeps nothing of it either."""
        account.ended = error
        self._early.close(account.id)
        if self._by_id.get(account.id) is account:
            del self._by_id[account.id]
        for deal in list(account.by_core_key.values()):
            if deal.stage is DealStage.WAITS:
                self._deals.refuse(deal, anew(error), "withdrawn")
            else:
                self._deals.lose(deal, str(error))
        if state:
            account.state = state
            self._tell(account, str(error))

    # -- for a core that may have forgotten all of it

    @property
    def deals(self) -> list[Deal[L]]:
        return [deal for it in self._by_id.values() for deal in it.by_core_key.values()]

    def again(self) -> list[si.AddApplicationRequest]:
        """Return all of them as they are to be submitted; what comes now is about these."""
        self._new.forget()
        for account in self._by_id.values():
            account.is_known = False
            self._new.asked(account.id, account)
        return [_again(it) for it in self._by_id.values()]

    def early_on(self, node_id: str) -> list[si.Allocation]:
        """Return what was placed there, and is of an application that may still ask for it."""
        return [it for it in self._early.on(node_id) if it.application_id in self._by_id]

    # -- what the core says

    def rejected(self, said: si.RejectedApplication) -> None:
        account = self._new.answered(said.application_id)
        if account is not None and account.ended is None:
            text = f"application {account.id!r} was rejected: {said.reason}"
            error = QueueNotFound(text, said.queues) if said.queues else ApplicationRejected(text)
            account.accepted.fail(error)
            self._end(account, error, "Rejected")

    def accepted(self, said: si.AcceptedApplication) -> None:
        account = self._new.answered(said.application_id)
        if account is not None:
            account.is_known = True
            account.queue = said.queue or account.queue
            account.accepted.keep(account)
            for deal in list(account.by_core_key.values()):
                self.claim(deal)

    def placed(self, new: si.Allocation) -> None:
        account = self._by_id.get(new.application_id)
        deal = self.deal(new.application_id, new.allocation_key)
        if deal is not None:
            self._deals.placed(deal, new)
        elif account is None or new.allocation_key not in account.withdrawn:
            self._early.keep(new)

    def claim(self, deal: Deal[L]) -> None:
        """Let a deal have what was placed for it before it was made."""
        if deal.account.is_known and (new := self._early.take(deal.account.id, deal.core_key)):
            self._deals.placed(deal, new)

    def asked_back(self, release: si.AllocationRelease) -> None:
        """The core wants the room of one that was placed; what nobody asked for goes at once."""
        application_id, key = release.application_id, release.allocation_key
        if deal := self.deal(application_id, key):
            self._deals.asked_back(deal, release)
        elif self._early.take(application_id, key):
            self._links.outbox.put(release)

    def changed(self, said: si.UpdatedApplication) -> None:
        account = self._by_id.get(said.application_id)
        if account is None or not account.is_known:
            return
        account.state = said.state
        if said.state in ENDINGS:
            self._end(account, _ended(said), said.state)
        else:
            self._tell(account, said.message)

    def _tell(self, account: Account[L], message: str) -> None:
        self._links.readers.tell(
            ApplicationChanged(application=account.id, state=account.state, message=message)
        )


def _again(account: Account[L]) -> si.AddApplicationRequest:
    """Submit it as what it is by now: with what is left of its gang, and in any case if it runs."""
    request = account.request
    assert request is not None
    deals = account.by_core_key.values()
    tags = dict(request.tags)
    if any(it.is_held for it in deals):
        tags.setdefault(si.constants.APP_TAG_CREATE_FORCE, "true")
    kept: Counter[str] = Counter()
    for deal in deals:
        if deal.is_placeholder and deal.ask is not None and deal.ask.resource_ask is not None:
            kept.update(deal.ask.resource_ask.amounts())
    return replace(request, tags=tags, placeholder_ask=si.Resource.of(kept) if kept else None)


_WORDS: Final = {
    "ResourceReservationTimeout": "there was no room for all of its gang in time",
    "completeApplication": "it had no work",
}
"""What the core says in one word."""


def in_words(message: str) -> str:
    return _WORDS.get(message, message)


def _ended(said: si.UpdatedApplication) -> ApplicationEnded:
    why = f" ({in_words(said.message)})" if said.message else ""
    remedy = "make another one to ask again"
    if said.state == "Completed":
        remedy += ", or make it with stays=True if it may idle"
    return ApplicationEnded(f"application {said.application_id!r} is {said.state}{why}; {remedy}")
