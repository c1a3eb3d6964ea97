"""The callback of a front: the core says here what happens, on its delivery thread, and asks."""

from contextlib import nullcontext
from typing import Any, Final, Generic, Protocol, TypeVar

from yunikorn_actors import si
from yunikorn_actors.core.entry import StandIn
from yunikorn_actors.front.accounts import Accounts, in_words
from yunikorn_actors.front.books import Deal, DealStage
from yunikorn_actors.front.deals import Deals
from yunikorn_actors.front.door import Door
from yunikorn_actors.front.lease import BaseLease
from yunikorn_actors.front.nodes import Nodes
from yunikorn_actors.front.watch import Watch

CLOSED: Final = "the scheduler is closed"

L = TypeVar("L", bound=BaseLease)


class Voice(Protocol):
    """Deals the program on behalf of the core, on the thread or the loop where it wants it."""

    def answers(self, method: str) -> bool: ...

    def ask(self, method: str, *arguments: object, otherwise: Any) -> Any: ...  # noqa: ANN401

    def tell(self, method: str, told: object) -> None: ...

    def end(self) -> None: ...


class Hearing(StandIn, Generic[L]):
    """What the core says is in the books before a callback of the program hears it.

    The books are changed under the lock; the program is called, and asked, without it.
    """

    voice: Voice
    """Set once, before the core can say anything."""

    def __init__(
        self, door: Door, nodes: Nodes[L], accounts: Accounts[L], deals: Deals[L], watch: Watch
    ) -> None:
        self._door = door
        self._nodes = nodes
        self._accounts = accounts
        self._deals = deals
        self._watch = watch

    # -- what it says

    def update_node(self, response: si.NodeResponse) -> None:
        with self._door.lock:
            for refused in response.rejected:
                self._nodes.rejected(refused)
            for accepted in response.accepted:
                self._nodes.accepted(accepted)
        self._door.outbox.answered()
        self.voice.tell("update_node", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        with self._door.lock:
            for rejected in response.rejected:
                self._accounts.rejected(rejected)
            for accepted in response.accepted:
                self._accounts.accepted(accepted)
            for updated in response.updated:
                self._accounts.changed(updated)
        self._door.outbox.answered()
        self.voice.tell("update_application", response)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        find, deals = self._accounts.deal, self._deals
        refusals: tuple[si.RejectedAllocationAsk | si.RejectedAllocation, ...] = (
            *response.rejected,
            *response.rejected_allocations,
        )
        with self._door.lock:
            for refused in refusals:
                if deal := find(refused.application_id, refused.allocation_key):
                    deals.rejected(deal, refused.reason)
            for gone in response.released_asks:
                if deal := find(gone.application_id, gone.allocation_key):
                    deals.taken_back(deal, in_words(gone.message) or gone.termination_type.name)
            for release in response.released:
                self._accounts.asked_back(release)
            for new in response.new:
                # One that was withdrawn meanwhile the core takes back by itself.
                self._accounts.placed(new)
        self._door.outbox.answered()
        self.voice.tell("update_allocation", response)

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        self.voice.tell("send_event", events)

    # -- what it asks

    def answers(self, method: str) -> bool:
        """The core asks of this callback what its program answers, and always where asks may go."""
        return method == "predicates" or self.voice.answers(method)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        deal = self._deals.keys.asked_about(args.allocation_key)
        if deal is None and not self.voice.answers("predicates"):
            return None
        if deal is None or deal.rule is None:
            return self._ask_program(deal, args)
        with self._door.lock:
            objection = self._deals.whereabouts.objection(deal, args.node_id)
        if objection:
            return objection
        if deal.fits is None and not self.voice.answers("predicates"):
            return None
        said = self._ask_program(deal, args)
        if said:
            with self._door.lock:
                if deal.stage is DealStage.WAITS:
                    self._deals.whereabouts.leave(deal)
        return said

    def _ask_program(self, deal: Deal[L] | None, args: si.PredicatesArgs) -> str | None:
        watched = nullcontext() if deal is None else self._watch.over(deal, args.node_id)
        with watched:
            said: str | None = self.voice.ask("predicates", args, otherwise=CLOSED)
        return said

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        said: si.PreemptionPredicatesResponse | None = self.voice.ask(
            "preemption_predicates", args, otherwise=None
        )
        return said

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.voice.ask("update_container_scheduling_state", request, otherwise=None)

    def get_state_dump(self) -> str:
        said: str = self.voice.ask("get_state_dump", otherwise="{}")
        return said
