"""Between a program and the core: all that a front can do.

The nouns have modules of their own: `Door` (whether the front is open, and the one lock), `Nodes`,
`Accounts` (applications), `Deals` (asks and their leases) with their `Keys` and their `Past`,
`Inquiry` (into what has become of one), `Readers` (of events), `Outbox` (what goes to the core) and
`Hearing` (what comes from it), with a `Watch` over what takes too long. `report` sends all of it
to a core that comes back.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from msgspec import structs

from yunikorn_actors import si
from yunikorn_actors.errors import (
    CoreError,
    CoreFailed,
    CoreStopped,
    InvalidRequest,
    StillWaiting,
    anew,
)
from yunikorn_actors.front import inquiry
from yunikorn_actors.front.accounts import Accounts
from yunikorn_actors.front.books import Account, Asked, Deal, DealStage, Fits, Promise
from yunikorn_actors.front.callers import Callers
from yunikorn_actors.front.connection import Connection
from yunikorn_actors.front.deadlines import Deadlines, Due
from yunikorn_actors.front.deals import Deals, LeaseMaker
from yunikorn_actors.front.door import Door
from yunikorn_actors.front.events import AnyEvent, ConnectionChanged, Readers, Subscription
from yunikorn_actors.front.hearing import Hearing
from yunikorn_actors.front.inquiry import Inquiry
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.links import Links
from yunikorn_actors.front.nodes import Look, Nodes, existing_allocation
from yunikorn_actors.front.outbox import Ending, Outbox
from yunikorn_actors.front.recovery import report
from yunikorn_actors.front.terms import Terms
from yunikorn_actors.front.watch import Watch
from yunikorn_actors.front.written import check_arguments, read_amounts
from yunikorn_actors.runtime.core_api import Core

L = TypeVar("L", bound=BaseLease)


class Broker(Generic[L]):
    """Takes the calls of the program: looks at their form, takes the lock, and has them done."""

    def __init__(self, core: Core, terms: Terms, make_lease: LeaseMaker[L]) -> None:
        self.terms: Final = terms
        outbox = Outbox(core, terms.rm_id, self.end)
        self.door: Final = Door(core, outbox)
        self._links: Links[L] = Links(terms, outbox, Readers())
        self._deals = Deals(self.door, self._links, make_lease)
        self._accounts = Accounts(self._links, self._deals)
        self._nodes = Nodes(self._links, self._accounts, self._deals)
        self.hearing: Final = Hearing(
            self.door, self._nodes, self._accounts, self._deals, Watch(outbox.later)
        )
        self.callers: Final = Callers()
        """For what the program is called with, and nobody waits for."""
        self.inquiry: Final = Inquiry(
            self.door, terms, self._accounts, self._deals.past, self.callers
        )
        self._deadlines = Deadlines(self._withdraw_late, self.end)
        self.registration = terms.registration
        """With the configuration that was loaded last."""
        self._connection = Connection(state="closed", reason="it was not started")

    # -- open and closed

    def open(self) -> None:
        self.door.open()
        self.door.outbox.start()
        self._connection = Connection(
            state="connected", address=getattr(self.door.core, "address", "")
        )

    def end(self, error: BaseException) -> None:
        """Nothing comes any more: every future, lease and iterator ends with the reason."""
        reason = (
            error if isinstance(error, CoreError) else CoreFailed(f"the front failed: {error!r}")
        )
        with self.door.lock:
            if not self.door.close(reason):
                return
            self._nodes.end(reason)
            self._accounts.end(reason)
            self._connection = replace(self._connection, state="closed", reason=str(reason))
            self._links.readers.end(reason if isinstance(reason, CoreFailed) else None)
        self.hearing.voice.end()
        self.door.outbox.close()
        self._deadlines.close()
        self.callers.close()

    def core_is_over(self) -> None:
        core = self.door.core
        self.end(core.failure or CoreStopped("the core was stopped"))

    def join(self, timeout: float) -> None:
        self.door.outbox.join(timeout)
        self._deadlines.join(timeout)

    # -- a core that goes away and comes back

    @property
    def connection(self) -> Connection:
        return self._connection

    def configured(self, config: str) -> None:
        """Bring this one from now on, wherever the core begins anew."""
        self.registration = structs.replace(self.registration, config=config)

    def went_away(self, reason: Exception) -> None:
        """Keep requests from now on."""
        with self.door.lock:
            self._links.outbox.hold()
            self._changed(Connection(
                state="away", address=self._connection.address, reason=str(reason)
            ))  # fmt: skip

    def tried(self, error: Exception) -> None:
        """It has not come back yet."""
        with self.door.lock:
            now = self._connection
            if now.state == "away":
                self._connection = replace(now, attempts=now.attempts + 1, reason=str(error))

    def settle(self) -> None:
        self._links.outbox.settle()

    def came_back(self, endings: Callable[[], list[Ending] | None]) -> None:
        """Report everything to a core that is there again, unless it has gone meanwhile."""
        with self.door.lock:
            sent = endings()
            if sent is None or self._connection.state != "away":
                return
            outbox = self._links.outbox
            ended = [*sent, *outbox.unsent_endings()]
            outbox.resume(report(self._accounts, self._nodes, ended))
            self._changed(Connection(state="connected", address=self._connection.address))

    def _changed(self, connection: Connection) -> None:
        if self._connection.state != "closed":
            self._connection = connection
            self._links.readers.tell(ConnectionChanged(connection=connection))

    # -- nodes

    def add_node(
        self, info: si.NodeInfo, running: Sequence[Running], accepted: Promise[list[L]]
    ) -> None:
        existing = tuple(existing_allocation(self.terms.partition, it) for it in running)
        info = structs.replace(info, existing_allocations=existing)
        check_arguments("add_node", si.NodeRequest(rm_id=self.terms.rm_id, nodes=(info,)))
        with self.door:
            self._nodes.add(info, running, accepted)

    def change_node(
        self, node_id: str, action: si.ActionFromRM, state: Literal["draining", "resumed"]
    ) -> None:
        with self.door:
            self._nodes.change(node_id, action, state)

    def remove_node(self, node_id: str) -> None:
        with self.door:
            self._nodes.remove(node_id)

    def resize_node(
        self,
        node_id: str,
        vcore: si.Amount | None,
        memory: si.Amount | None,
        resources: Mapping[str, si.Amount] | None,
    ) -> None:
        written = read_amounts("resize", vcore, memory, resources)
        if not written:
            raise InvalidRequest("resize: say how large it is: vcore=, memory=, or resources=")
        size = si.Resource.parse(written)
        info = si.NodeInfo(
            node_id=node_id, action=si.ActionFromRM.UPDATE, schedulable_resource=size
        )
        check_arguments("resize", si.NodeRequest(rm_id=self.terms.rm_id, nodes=(info,)))
        with self.door:
            self._nodes.resize(node_id, size)

    def look_at(self, node_id: str) -> Look:
        with self.door.lock:
            return self._nodes.look_at(node_id)

    def leases_on(self, node_id: str) -> list[L]:
        with self.door.lock:
            return self._nodes.leases_on(node_id)

    def node_ids(self) -> list[str]:
        with self.door.lock:
            return self._nodes.ids

    # -- applications

    def add_application(
        self,
        account: Account[L],
        request: si.AddApplicationRequest,
        placeholders: Iterable[si.AllocationAsk],
    ) -> None:
        submission = si.ApplicationRequest(rm_id=self.terms.rm_id, new=(request,))
        check_arguments("application", submission)
        asks = tuple(placeholders)
        kept_free = si.AllocationRequest(rm_id=self.terms.rm_id, asks=asks)
        check_arguments("application: gang", kept_free)
        with self.door:
            self._accounts.add(account, request, asks)

    def close_application(self, account: Account[L]) -> None:
        self.door.unless_closed(partial(self._accounts.close, account))

    def application_ids(self) -> list[str]:
        with self.door.lock:
            return self._accounts.ids

    def application(self, application_id: str) -> Account[L] | None:
        with self.door.lock:
            return self._accounts.find(application_id)

    def leases(self, account: Account[L]) -> list[L]:
        with self.door.lock:
            held = [it for it in account.by_key.values() if it.lease is not None]
            return [self._deals.lease_of(it) for it in held]

    # -- asks

    def ask(self, account: Account[L], asked: Sequence[Asked[L]]) -> list[Deal[L]]:
        """Take all or none."""
        asks = tuple([it.ask for it in asked])
        check_arguments("ask", si.AllocationRequest(rm_id=self.terms.rm_id, asks=asks))
        with self.door:
            if account.ended is not None:
                raise anew(account.ended)
            for ask in asks:
                self._deals.check_free(account, ask.allocation_key)
            deals = [self._deals.ask(account, it) for it in asked]
            for deal in deals:
                self._accounts.claim(deal)
        if asked[0].deadline_s:
            # What is alike but for its key is explained once.
            alike = (si.to_json(structs.replace(asks[0], allocation_key="")), asked[0].fits)
            self._deadlines.add(deals, alike)
        return deals

    def _withdraw_late(self, passed: Sequence[Due]) -> None:
        """They are withdrawn together; what each lacked is asked for as long as that is quick."""
        end_s = time.monotonic() + inquiry.PATIENCE_S
        reasons: dict[Hashable, str] = {}
        for _, _, deal, alike in passed:
            if deal.stage is not DealStage.WAITS:
                continue
            if alike not in reasons:
                within_s = max(0.0, end_s - time.monotonic())
                reasons[alike] = self.inquiry.reason(deal.account.id, deal.key, within_s)
            self.door.unless_closed(partial(self._deals.pass_deadline, deal, reasons[alike]))

    @property
    def tags_without_fits(self) -> dict[str, str]:
        """Of asks without a condition of their own: only a callback could have one.

        The core then asks nothing about them, which is most of the messages of an ask, and takes
        many alike as one run.
        """
        if self.hearing.voice.answers("predicates"):
            return {}
        return {si.constants.TAG_PREDICATES: "false"}

    def still_waits(self, deal: Deal[L], after_s: float) -> StillWaiting:
        """Say what an ask waits for; one that was only looked at is not asked about."""
        name, key = deal.account.id, deal.key
        waited = f" after {after_s:g} s: " if after_s > 0 else ""
        why = self.inquiry.reason(name, key, inquiry.PATIENCE_S) if waited else ""
        return StillWaiting(
            f"ask {key!r} of {name!r} still waits{waited}{why}. app.explain({key!r}).report() says "
            "more; cancel() withdraws it, as ask(..., deadline=) does by itself"
        )

    def withdraw(self, deal: Deal[L]) -> None:
        self.door.unless_closed(partial(self._deals.withdraw, deal))

    def fits_of(self, core_key: str) -> Fits | None:
        deal = self._deals.keys.asked_about(core_key)
        return None if deal is None else deal.fits

    # -- events

    def subscribe(self, reader: Subscription[AnyEvent[L]]) -> None:
        with self.door:
            self._links.readers.add(reader)

    def leave(self, reader: Subscription[AnyEvent[L]]) -> None:
        with self.door.lock:
            self._links.readers.leave(reader)


class PendingAsk(NamedTuple, Generic[L]):
    """An ask, for the future of its lease."""

    broker: Broker[L]
    deal: Deal[L]

    def withdraw(self) -> None:
        self.broker.withdraw(self.deal)

    def still_waits(self, after_s: float) -> StillWaiting:
        return self.broker.still_waits(self.deal, after_s)
