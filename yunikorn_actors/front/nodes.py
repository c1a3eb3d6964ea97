"""The nodes of a front, what ran on them before, and one node as a program looks at it."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.errors import (
    CoreError,
    Duplicate,
    InvalidRequest,
    NodeRejected,
    UnknownName,
    anew,
)
from yunikorn_actors.front.applications import Applications
from yunikorn_actors.front.arguments import check_arguments, read_amounts, read_texts, shown
from yunikorn_actors.front.asks import Asks
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.node_rules import rule_of
from yunikorn_actors.front.records import ApplicationRecord, AskRecord, Promise, Unanswered
from yunikorn_actors.front.session import Session
from yunikorn_actors.front.spreading import CandidateNode
from yunikorn_actors.front.subscriptions import NodeChanged
from yunikorn_actors.values.devices import written
from yunikorn_actors.values.quantity import compared

L = TypeVar("L", bound=BaseLease)
T = TypeVar("T")


@dataclass(eq=False, slots=True, kw_only=True)
class _Node(Generic[L]):
    info: si.NodeInfo
    """As the core was asked to take it, without what ran there."""
    accepted: Promise[list[L]]
    recovered: list[AskRecord[L]]
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

    Reported work has a record from the start, so that its keys are taken. The record becomes a
    lease if the node is accepted, and is dropped if not.
    """

    def __init__(self, session: Session[L], applications: Applications[L], asks: Asks[L]) -> None:
        self._session = session
        self._applications = applications
        self._asks = asks
        self._by_id: dict[str, _Node[L]] = {}
        self.changes = 0
        asks.whereabouts.places = self
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
        applications = self._applications_of(name, running)
        records = [
            AskRecord(app=app, key=item.key, running=item, rule=rule_of(item))
            for app, item in zip(applications, running, strict=True)
        ]
        # Their keys are taken from here on, although the core has not answered.
        for record in records:
            self._asks.keys.enter(record)
        # Listed before the answer: the program may drain or remove it meanwhile.
        node = self._by_id[name] = _Node(info=info, accepted=accepted, recovered=records)
        self._asks.idle_since[name] = time.monotonic()
        self._new.asked(name, node)
        self.changes += 1
        for record in records:
            if record.rule is not None:
                # Counted by the rules at once, as it runs there whatever the core answers.
                self._asks.whereabouts.enter(record, name)
        existing = tuple(
            replace(it, allocation_key=record.core_key)
            for it, record in zip(info.existing_allocations, records, strict=True)
        )
        self._session.outbox.put(replace(info, existing_allocations=existing))

    def _applications_of(
        self, node_id: str, running: Sequence[Running]
    ) -> list[ApplicationRecord[L]]:
        """Raise if not all of it can run there and go on."""
        applications: list[ApplicationRecord[L]] = []
        seen: set[tuple[str, str]] = set()
        for item in running:
            app = self._applications.find(item.application)
            if app is None:
                raise UnknownName(
                    f"add_node: {item.key!r} runs for application {item.application!r}, which is "
                    f"not there; call application({item.application!r}, ...) before add_node"
                )
            if item.node_id != node_id:
                raise UnknownName(
                    f"add_node: {item.key!r} of {item.application!r} runs on {item.node_id!r}, not "
                    f"on {node_id!r}; pass each node what runs there"
                )
            # Twice in one call: neither has a record yet, so the records would not show it.
            if item.key in app.by_key or (item.application, item.key) in seen:
                raise Duplicate(
                    f"add_node: {item.key!r} of {item.application!r} is there already; report it "
                    "once"
                )
            applications.append(app)
            seen.add((item.application, item.key))
        return applications

    def _existing(self, record: AskRecord[L]) -> si.Allocation:
        existing = replace(
            existing_allocation(self._session.options.partition, record.running),
            allocation_key=record.core_key,
            uuid=record.uuid,
            placeholder=record.is_placeholder,
        )
        # Without an ask of this program, its own report is all that there is.
        if (ask := record.ask) is None:
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
        # Written into the records, so that a later report has the new size.
        node.info = replace(node.info, schedulable_resource=whole)
        self._session.outbox.put(
            si.NodeInfo(node_id=node_id, action=si.ActionFromRM.UPDATE, schedulable_resource=whole)
        )
        self._session.readers.notify(NodeChanged(node_id=node_id, state="resized"))

    def look_at(self, node_id: str) -> Look:
        node = self._find(node_id)
        used: Counter[str] = Counter()
        records = self._asks.there.get(node_id, ())
        for record in records:
            used.update(_size(record).amounts())
        return Look(
            capacity=_capacity(node),
            used={kind: quantity for kind, quantity in used.items() if quantity},
            attributes=node.info.attributes,
            is_drained=node.is_drained,
            idle_since=None if records else self._asks.idle_since[node_id],
        )

    def leases_on(self, node_id: str) -> list[L]:
        self._find(node_id)
        records = self._asks.there.get(node_id, ())
        # Placeholders have room there and no lease.
        return [self._asks.lease_of(it) for it in records if it.lease is not None]

    def change(
        self, node_id: str, action: si.ActionFromRM, state: Literal["draining", "resumed"]
    ) -> None:
        self._find(node_id).is_drained = state == "draining"
        # What may be spread depends on which nodes take work.
        self.changes += 1
        self._session.outbox.put(si.NodeInfo(node_id=node_id, action=action))
        self._session.readers.notify(NodeChanged(node_id=node_id, state=state))

    def remove(self, node_id: str) -> None:
        """Its leases are lost when the core says so."""
        node = self._find(node_id)
        self._forget(node_id)
        self.changes += 1
        # Only if it still waits for its answer; else the promise was kept already.
        node.accepted.fail(NodeRejected(f"node {node_id!r} was removed before it was there"))
        for record in node.recovered:
            self._asks.drop(record)
        action = si.ActionFromRM.DECOMISSION
        self._session.outbox.put(si.NodeInfo(node_id=node_id, action=action))
        self._session.readers.notify(NodeChanged(node_id=node_id, state="removed"))

    def _forget(self, node_id: str) -> None:
        del self._by_id[node_id], self._asks.idle_since[node_id]

    def _find(self, node_id: str) -> _Node[L]:
        if not isinstance(node_id, str) or node_id not in self._by_id:
            some = ", ".join(sorted(self._by_id)[:5]) or "none"
            raise UnknownName(
                f"there is no node {shown(node_id)}; add_node it first (there: {some})"
            )
        return self._by_id[node_id]

    def place(self, node_id: str) -> CandidateNode | None:
        node = self._by_id.get(node_id)
        return None if node is None else CandidateNode(node_id, node.info.attributes)

    def open_places(self) -> Iterable[CandidateNode]:
        return [
            CandidateNode(name, it.info.attributes)
            for name, it in self._by_id.items()
            # Not before it was accepted: nothing can be placed there.
            if it.is_known and not it.is_drained
        ]

    def again(self) -> list[si.NodeInfo]:
        """Return all nodes as they are to be added, each with what runs there.

        Leases on a node that was removed are lost now: the core has nothing more to report of them.
        """
        there: dict[str, list[AskRecord[L]]] = {
            name: [*it.recovered] for name, it in self._by_id.items()
        }
        for record in self._applications.records:
            if not record.is_held:
                continue
            if (here := there.get(record.running.node_id)) is not None:
                here.append(record)
            else:
                self._asks.lose(record, f"node {record.running.node_id} was removed")
        # Answers to former requests say nothing about these.
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
                    # What was placed before the program asked: it runs there, too.
                    *self._applications.early_on(name),
                ),
            )
            for name, node in self._by_id.items()
        ]

    def end(self, reason: CoreError) -> None:
        for node in self._by_id.values():
            node.accepted.fail(anew(reason))
        self._by_id.clear()

    # -- what the core says

    def accepted(self, update: si.AcceptedNode) -> None:
        node = self._answered(update.node_id)
        if node is None:
            return
        # Only now they become leases: on a rejected node nobody has them.
        leases = [lease for it in node.recovered if (lease := self._asks.hold(it)) is not None]
        node.recovered.clear()
        # Known already: this is the answer to a report after a reconnection.
        was_known, node.is_known = node.is_known, True
        self.changes += 1
        if not was_known:
            self._session.readers.notify(NodeChanged(node_id=update.node_id, state="accepted"))
        node.accepted.keep(leases)

    def rejected(self, update: si.RejectedNode) -> None:
        node = self._answered(update.node_id)
        if node is None:
            return
        self._forget(update.node_id)
        self.changes += 1
        # Records that never became leases, so nobody is informed of them.
        for record in node.recovered:
            self._asks.drop(record)
        reason = " ".join(update.reason.split())
        # Known before and refused now, as after a restart of the core with another configuration.
        if node.is_known:
            for record in self._applications.records:
                if record.is_held and record.running.node_id == update.node_id:
                    self._asks.lose(record, f"its node was rejected: {reason}")
        self._session.readers.notify(
            NodeChanged(node_id=update.node_id, state="rejected", message=reason)
        )
        node.accepted.fail(NodeRejected(f"node {update.node_id!r} was rejected: {reason}"))

    def _answered(self, node_id: str) -> _Node[L] | None:
        """Return the node that this answer is about, unless it was removed meanwhile."""
        node = self._new.answered(node_id)
        return node if node is not None and self._by_id.get(node_id) is node else None


class Node(Generic[L]):
    """A node of a scheduler: `s.nodes["node-1"]`. What it says is of the moment of the look.

    Amounts are in base units: thousandths of a cpu, bytes. Once it is removed, or was rejected,
    each look raises `UnknownName`.
    """

    def __init__(self, session: Session[L], nodes: Nodes[L], node_id: str) -> None:
        """Made by `nodes` of a scheduler."""
        self.id: Final = node_id
        self._session = session
        self._nodes = nodes

    def _look(self) -> Look:
        with self._session.lock:
            return self._nodes.look_at(self.id)

    @property
    def capacity(self) -> dict[str, int]:
        """How large it is."""
        return self._look().capacity

    @property
    def used(self) -> dict[str, int]:
        """How much of that leases have, and what is kept there for members of gangs."""
        return self._look().used

    @property
    def free(self) -> dict[str, int]:
        """How much is left; less than nothing if it became smaller than what is used."""
        look = self._look()
        return {kind: size - look.used.get(kind, 0) for kind, size in look.capacity.items()}

    @property
    def attributes(self) -> Mapping[str, str]:
        """The attributes with which it was added."""
        return self._look().attributes

    @property
    def drained(self) -> bool:
        """Whether nothing new is placed there."""
        return self._look().is_drained

    @property
    def idle_since(self) -> float | None:
        """Since when it is without work, as `time.monotonic()` tells; None while there is some."""
        return self._look().idle_since

    @property
    def leases(self) -> list[L]:
        """What runs there."""
        with self._session.lock:
            return self._nodes.leases_on(self.id)

    def resize(
        self,
        *,
        vcore: si.Amount | None = None,
        memory: si.Amount | None = None,
        resources: Mapping[str, si.Amount] | None = None,
    ) -> None:
        """Give it another size, in the units of `add_node`; types that are not named stay.

        What runs there goes on, also on a node that is smaller now.
        """
        amounts = read_amounts("resize", vcore, memory, resources)
        if not amounts:
            raise InvalidRequest("resize: say how large it is: vcore=, memory=, or resources=")
        size = si.Resource.parse(amounts)
        info = si.NodeInfo(
            node_id=self.id, action=si.ActionFromRM.UPDATE, schedulable_resource=size
        )
        check_arguments("resize", si.NodeRequest(rm_id=self._session.options.rm_id, nodes=(info,)))
        with self._session:
            self._nodes.resize(self.id, size)

    def drain(self) -> None:
        """Place nothing new there; what runs there goes on."""
        with self._session:
            self._nodes.change(self.id, si.ActionFromRM.DRAIN_NODE, "draining")

    def resume(self) -> None:
        """Place work there again."""
        with self._session:
            self._nodes.change(self.id, si.ActionFromRM.DRAIN_TO_SCHEDULABLE, "resumed")

    def remove(self) -> None:
        """Take it away; the leases there are lost."""
        with self._session:
            self._nodes.remove(self.id)

    def __repr__(self) -> str:
        try:
            look = self._look()
        except UnknownName:
            return f"<Node {self.id}: removed>"
        used, size = compared(
            {kind: look.used.get(kind, 0) for kind in look.capacity}, look.capacity
        )
        return f"<Node {self.id}: {used} of {size}{', drained' if look.is_drained else ''}>"


class Named(Mapping[str, T]):
    """What a scheduler has by name, at each look."""

    def __init__(self, what: str, names: Callable[[], list[str]], make: Callable[[str], T]) -> None:
        self._what = what
        self._names = names
        self._make = make

    def __getitem__(self, name: str) -> T:
        if name not in self:
            some = ", ".join(sorted(self._names())[:5]) or "none"
            raise UnknownName(f"there is no {self._what} {shown(name)} (there: {some})")
        return self._make(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"<{len(self)} {self._what}s: {', '.join(self)}>"


def existing_allocation(partition: str, item: Running) -> si.Allocation:
    """Return what runs already as the core is sent it, under the key of the program."""
    # With the devices that it has: the core must not give those to others.
    devices = {si.constants.GPU_DEVICES: written(item.devices)} if item.devices else {}
    return si.Allocation(
        allocation_key=item.key,
        application_id=item.application,
        partition_name=partition,
        node_id=item.node_id,
        allocation_tags={**read_texts("running: tags", item.tags), **devices},
        resource_per_alloc=si.Resource.parse(item.resources),
        task_group_name=item.group,
        priority=item.priority,
        originator=item.originator,
        preemption_policy=si.PreemptionPolicy(allow_preempt_self=item.preemptible),
    )


def _capacity(node: _Node[Any]) -> dict[str, int]:
    size = node.info.schedulable_resource
    return {} if size is None else dict(size.amounts())


def _size(record: AskRecord[Any]) -> si.Resource:
    if record.ask is not None and record.ask.resource_ask is not None:
        return record.ask.resource_ask
    return si.Resource.parse(record.running.resources)
