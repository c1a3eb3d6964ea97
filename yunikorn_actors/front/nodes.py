"""The nodes of a front, and what ran on them before."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.errors import CoreError, Duplicate, NodeRejected, UnknownName, anew
from yunikorn_actors.front.accounts import Accounts
from yunikorn_actors.front.books import Account, Deal, Promise, Unanswered
from yunikorn_actors.front.deals import Deals
from yunikorn_actors.front.events import NodeChanged
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.links import Links
from yunikorn_actors.front.placement import Place, rule_of
from yunikorn_actors.front.written import shown
from yunikorn_actors.values.devices import written

L = TypeVar("L", bound=BaseLease)


@dataclass(eq=False, slots=True, kw_only=True)
class _Node(Generic[L]):
    info: si.NodeInfo
    """As the core was asked to take it, without what ran there."""
    accepted: Promise[list[L]]
    recovered: list[Deal[L]]
    """What ran there, until the core has answered."""
    is_known: bool = False
    """The core has accepted it."""
    is_drained: bool = False


class Look(NamedTuple):
    """A node at one moment."""

    capacity: dict[str, int]
    used: dict[str, int]
    attributes: Mapping[str, str]
    is_drained: bool
    idle_since: float | None


class Nodes(Generic[L]):
    """One node for each id, from `add` on until it is rejected or removed.

    What ran on it before has a deal meanwhile, so that its keys are taken; that becomes a lease
    if the node is accepted and is dropped if not.
    """

    def __init__(self, links: Links[L], accounts: Accounts[L], deals: Deals[L]) -> None:
        self._links = links
        self._accounts = accounts
        self._deals = deals
        self._by_id: dict[str, _Node[L]] = {}
        self.changes = 0
        deals.whereabouts.places = self
        self._new: Unanswered[_Node[L]] = Unanswered()

    @property
    def ids(self) -> list[str]:
        return list(self._by_id)

    # -- what the program does

    def add(
        self, info: si.NodeInfo, running: Sequence[Running], accepted: Promise[list[L]]
    ) -> None:
        name = info.node_id
        if name in self._by_id:
            raise Duplicate(
                f"add_node: there is a node {name!r} already; remove_node({name!r}) first, or "
                "give this one another name"
            )
        accounts = self._accounts_of(name, running)
        deals = [
            Deal(account=account, key=item.key, running=item, rule=rule_of(item))
            for account, item in zip(accounts, running, strict=True)
        ]
        for deal in deals:
            self._deals.keys.enter(deal)
        node = self._by_id[name] = _Node(info=info, accepted=accepted, recovered=deals)
        self._deals.idle_since[name] = time.monotonic()
        self._new.asked(name, node)
        self.changes += 1
        for deal in deals:
            if deal.rule is not None:
                self._deals.whereabouts.enter(deal, name)
        existing = tuple(
            replace(it, allocation_key=deal.core_key)
            for it, deal in zip(info.existing_allocations, deals, strict=True)
        )
        self._links.outbox.put(replace(info, existing_allocations=existing))

    def _accounts_of(self, node_id: str, running: Sequence[Running]) -> list[Account[L]]:
        """Raise if not all of it can run there and go on."""
        accounts: list[Account[L]] = []
        seen: set[tuple[str, str]] = set()
        for item in running:
            account = self._accounts.find(item.application)
            if account is None:
                raise UnknownName(
                    f"add_node: {item.key!r} runs for application {item.application!r}, which is "
                    f"not there; call application({item.application!r}, ...) before add_node"
                )
            if item.node_id != node_id:
                raise UnknownName(
                    f"add_node: {item.key!r} of {item.application!r} runs on {item.node_id!r}, not "
                    f"on {node_id!r}; pass each node what runs there"
                )
            if item.key in account.by_key or (item.application, item.key) in seen:
                raise Duplicate(
                    f"add_node: {item.key!r} of {item.application!r} is there already; report it "
                    "once"
                )
            accounts.append(account)
            seen.add((item.application, item.key))
        return accounts

    def _existing(self, deal: Deal[L]) -> si.Allocation:
        existing = replace(
            existing_allocation(self._links.terms.partition, deal.running),
            allocation_key=deal.core_key,
            uuid=deal.uuid,
            placeholder=deal.is_placeholder,
        )
        if (ask := deal.ask) is None:
            return existing
        return replace(
            existing,
            allocation_tags={**ask.tags, **existing.allocation_tags},
            originator=ask.originator,
            priority=ask.priority,
            preemption_policy=ask.preemption_policy,
        )

    def resize(self, node_id: str, size: si.Resource) -> None:
        """Types that are not named stay."""
        node = self._find(node_id)
        whole = si.Resource.of({**_capacity(node), **size.amounts()})
        node.info = replace(node.info, schedulable_resource=whole)
        self._links.outbox.put(
            si.NodeInfo(node_id=node_id, action=si.ActionFromRM.UPDATE, schedulable_resource=whole)
        )
        self._links.readers.tell(NodeChanged(node_id=node_id, state="resized"))

    def look_at(self, node_id: str) -> Look:
        node = self._find(node_id)
        used: Counter[str] = Counter()
        deals = self._deals.there.get(node_id, ())
        for deal in deals:
            used.update(_size(deal).amounts())
        return Look(
            capacity=_capacity(node),
            used={kind: quantity for kind, quantity in used.items() if quantity},
            attributes=node.info.attributes,
            is_drained=node.is_drained,
            idle_since=None if deals else self._deals.idle_since[node_id],
        )

    def leases_on(self, node_id: str) -> list[L]:
        self._find(node_id)
        deals = self._deals.there.get(node_id, ())
        return [self._deals.lease_of(it) for it in deals if it.lease is not None]

    def change(
        self, node_id: str, action: si.ActionFromRM, state: Literal["draining", "resumed"]
    ) -> None:
        self._find(node_id).is_drained = state == "draining"
        self.changes += 1
        self._links.outbox.put(si.NodeInfo(node_id=node_id, action=action))
        self._links.readers.tell(NodeChanged(node_id=node_id, state=state))

    def remove(self, node_id: str) -> None:
        """Its leases are lost when the core says so."""
        node = self._find(node_id)
        self._forget(node_id)
        self.changes += 1
        node.accepted.fail(NodeRejected(f"node {node_id!r} was removed before it was there"))
        for deal in node.recovered:
            self._deals.drop(deal)
        action = si.ActionFromRM.DECOMISSION
        self._links.outbox.put(si.NodeInfo(node_id=node_id, action=action))
        self._links.readers.tell(NodeChanged(node_id=node_id, state="removed"))

    def _forget(self, node_id: str) -> None:
        del self._by_id[node_id], self._deals.idle_since[node_id]

    def _find(self, node_id: str) -> _Node[L]:
        if not isinstance(node_id, str) or node_id not in self._by_id:
            some = ", ".join(sorted(self._by_id)[:5]) or "none"
            raise UnknownName(
                f"there is no node {shown(node_id)}; add_node it first (there: {some})"
            )
        return self._by_id[node_id]

    def place(self, node_id: str) -> Place | None:
        node = self._by_id.get(node_id)
        return None if node is None else Place(node_id, node.info.attributes)

    def open_places(self) -> Iterable[Place]:
        return [
            Place(name, it.info.attributes)
            for name, it in self._by_id.items()
            if it.is_known and not it.is_drained
        ]

    def again(self) -> list[si.NodeInfo]:
        """Return all nodes as they are to be added, each with what runs there.

        Leases on a node that was removed are lost now: the core has nothing more to report of them.
        """
        there: dict[str, list[Deal[L]]] = {
            name: [*it.recovered] for name, it in self._by_id.items()
        }
        for deal in self._accounts.deals:
            if not deal.is_held:
                continue
            if (here := there.get(deal.running.node_id)) is not None:
                here.append(deal)
            else:
                self._deals.lose(deal, f"node {deal.running.node_id} was removed")
        self._new.forget()
        for name, node in self._by_id.items():
            self._new.asked(name, node)
        actions = si.ActionFromRM
        return [
            replace(
                node.info,
                action=actions.CREATE_DRAIN if node.is_drained else node.info.action,
                existing_allocations=(
                    *map(self._existing, there[name]),
                    *self._accounts.early_on(name),
                ),
            )
            for name, node in self._by_id.items()
        ]

    def end(self, reason: CoreError) -> None:
        for node in self._by_id.values():
            node.accepted.fail(anew(reason))
        self._by_id.clear()

    # -- what the core says

    def accepted(self, said: si.AcceptedNode) -> None:
        node = self._answered(said.node_id)
        if node is None:
            return
        leases = [lease for it in node.recovered if (lease := self._deals.hold(it)) is not None]
        node.recovered.clear()
        was_known, node.is_known = node.is_known, True
        self.changes += 1
        if not was_known:
            self._links.readers.tell(NodeChanged(node_id=said.node_id, state="accepted"))
        node.accepted.keep(leases)

    def rejected(self, said: si.RejectedNode) -> None:
        node = self._answered(said.node_id)
        if node is None:
            return
        self._forget(said.node_id)
        self.changes += 1
        for deal in node.recovered:
            self._deals.drop(deal)
        reason = " ".join(said.reason.split())
        if node.is_known:
            for deal in self._accounts.deals:
                if deal.is_held and deal.running.node_id == said.node_id:
                    self._deals.lose(deal, f"its node was rejected: {reason}")
        self._links.readers.tell(
            NodeChanged(node_id=said.node_id, state="rejected", message=reason)
        )
        node.accepted.fail(NodeRejected(f"node {said.node_id!r} was rejected: {reason}"))

    def _answered(self, node_id: str) -> _Node[L] | None:
        """Return the node that this answer is about, unless it was removed meanwhile."""
        node = self._new.answered(node_id)
        return node if node is not None and self._by_id.get(node_id) is node else None


def existing_allocation(partition: str, item: Running) -> si.Allocation:
    """Return what runs already as the core is sent it, under the key of the program."""
    return si.Allocation(
        allocation_key=item.key,
        application_id=item.application,
        partition_name=partition,
        node_id=item.node_id,
        allocation_tags={si.constants.GPU_DEVICES: written(item.devices)} if item.devices else {},
        resource_per_alloc=si.Resource.parse(item.resources),
        task_group_name=item.group,
        priority=item.priority,
        preemption_policy=si.PreemptionPolicy(allow_preempt_self=item.preemptible),
    )


def _capacity(node: _Node[Any]) -> dict[str, int]:
    size = node.info.schedulable_resource
    return {} if size is None else dict(size.amounts())


def _size(deal: Deal[Any]) -> si.Resource:
    if deal.ask is not None and deal.ask.resource_ask is not None:
        return deal.ask.resource_ask
    return si.Resource.parse(deal.running.resources)
