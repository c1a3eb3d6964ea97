"""Whether a partition is still sound after a change, found from what the change was about.

`violations` works everything out anew, which costs time in the size of the state. The watch keeps
what each application adds to the books that it shares with others: after a change it looks at the
applications and nodes that its facts name, and at the queues, users and groups above them. What
was sound before and is not named is sound still, because facts alone change a partition. What
changed without a fact shows when everything is looked at again, which is due after so many facts
that it costs each of them little.

The watch says no more than whether something is wrong: what it is `violations` says. So the watch
may be dense, as it runs after every message of a simulation: a loop over entries instead of a call,
one walk for several invariants, no text. `tests/sim/test_watch.py` compares the two.

The conservation of resources (G05) is not looked at by itself: it follows when nodes (G01),
applications (G03), queues (G04) and the places of allocations (G07) are right.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple

from yunikorn_actors.checks.gang_invariants import links_of
from yunikorn_actors.checks.state_invariants import (
    capacity,
    devices_on,
    foreign_places,
    life_of,
    misconfigured,
    reservations_of,
    reservations_on,
    violations,
)
from yunikorn_actors.checks.touched import touched_by
from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    COUNTS_BY_HOLDING,
    LEAVES_USER_COUNT,
    Application,
)
from yunikorn_actors.state.facts import Fact, revisions_of
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.state.users import Usage
from yunikorn_actors.values.resource import Resource, charge, discharge, equals

PARTS_TO_A_FACT: Final = 5
"""With so many parts looked at for each fact, looking at everything costs little on the average."""

_PREEMPTED: Final = TerminationType.PREEMPTED_BY_SCHEDULER


_SHARED: Final = ("charged", "pending", "preempting", "leaving", "earmarked")
_SHARES: Final = attrgetter(*_SHARED)
_NOTHING: Final[tuple[Resource, ...]] = ({},) * len(_SHARED)


class Unsound(Exception):
    """Something is wrong."""


class Share:
    """What one application adds to the books that it shares, by its smallest parts."""

    __slots__ = (
        *_SHARED, "alive", "allocations", "count", "flags", "levels", "owners", "place",
        "placeholders", "real", "reservations", "serial", "waiting",
    )  # fmt: skip

    def __init__(self, app: Application) -> None:
        self.serial = app.serial
        self.levels = app.queue.lineage
        user = (False, app.spec.user)
        self.owners = (user, (True, app.group)) if app.group else (user,)
        self.place = (self.serial, self.owners)
        """Decides which books it adds to."""
        self.real: Resource = {}
        self.placeholders: Resource = {}
        self.charged: Resource = {}
        """The two together."""
        self.pending: Resource = {}
        self.preempting: Resource = {}
        self.leaving: Resource = {}
        self.earmarked: Resource = {}
        self.alive: dict[str, int] = {}
        """Placeholders that wait or stand, by task group."""
        self.waiting = 0
        """Placeholders that wait."""
        self.allocations = len(app.allocations)
        self.reservations = 0
        self.count = self.allocations
        """What of it is on nodes: allocations, reservations, room to move to."""
        self.flags = _NO_FLAGS


class Flags(NamedTuple):
    """In which counts an application is."""

    runs: bool
    holds: bool
    keeps: bool
    """By a reservation alone."""
    is_counted: bool
    """Its user may count it."""
    is_kept_for: bool
    """It is counted, and a node is kept for it."""


_NO_FLAGS: Final = Flags(*(False,) * 5)


class Sum:
    """What the applications below a queue add up to."""

    __slots__ = (*_SHARED, "holding", "keeping", "members", "running")

    def __init__(self) -> None:
        self.charged: Resource = {}
        self.pending: Resource = {}
        self.preempting: Resource = {}
        self.leaving: Resource = {}
        self.earmarked: Resource = {}
        self.members = 0
        """Applications of the queue itself."""
        self.running: dict[int, None] = {}
        """Serials, here and below, as in a queue."""
        self.holding: dict[int, None] = {}
        self.keeping: dict[int, None] = {}


class UsageSum:
    """What the applications of a user or group below a queue add up to."""

    __slots__ = ("attached", "charged", "counted", "kept")

    def __init__(self) -> None:
        self.charged: Resource = {}
        self.attached = 0
        self.counted: dict[int, None] = {}
        self.kept: dict[int, None] = {}


Owner = tuple[bool, str]
"""Whether it is a group, and its name."""


class Watch:
    """Judges one partition after each change."""

    def __init__(self, state: PartitionState) -> None:
        self.state = state
        self.revision = -1
        """At which it was sound last."""
        self.mistaken = 0
        """How often something seemed wrong and was not: that costs time, and is never to happen."""
        self._facts = 0
        """How many came since everything was looked at."""
        self._forget()

    def _forget(self) -> None:
        self._shares: dict[str, Share] = {}
        self._sums: dict[str, Sum] = {}
        self._usages: dict[tuple[Owner, str], UsageSum] = {}
        self._counts: dict[str, int] = {}
        """What is on each node, as `Share.count` counts it."""
        self._on_nodes = self._of_apps = 0
        """The same of all nodes, and of all applications."""
        self._allocations = self._reservations = 0

    @property
    def is_due(self) -> bool:
        """Whether there were so many facts that everything is to be looked at."""
        state = self.state
        parts = self._of_apps + len(state.applications) + len(state.nodes) + len(state.queues)
        return self._facts > 0 and self._facts * PARTS_TO_A_FACT >= parts

    def look(self, facts: tuple[Fact, ...]) -> list[str]:
        """Return what is wrong after these facts, if they are all since the last look."""
        is_all = self.revision + revisions_of(facts) == self.state.revision
        touched = touched_by(facts) if is_all else None
        if touched is None or self._seems_wrong(*touched):
            found = self.look_at_all()
            self.mistaken += touched is not None and not found
            return found
        self._facts += len(facts)
        self.revision = self.state.revision
        return []

    def look_around(self) -> list[str]:
        """Return what is wrong, whatever has changed: as `look_at_all`, and faster."""
        state = self.state
        self._forget()
        if self._seems_wrong(state.applications, state.nodes) or self._seems_wrong_elsewhere():
            found = self.look_at_all()
            self.mistaken += not found
            return found
        self._facts, self.revision = 0, state.revision
        return []

    def look_at_all(self) -> list[str]:
        """Return what is wrong, by working everything out anew."""
        state = self.state
        found = violations(state) or [*misconfigured(state)]
        if not found:
            self._forget()
            self.mistaken += self._seems_wrong(state.applications, state.nodes)
            self._facts, self.revision = 0, state.revision
        return found

    def _seems_wrong(self, apps: Iterable[str], nodes: Iterable[str]) -> bool:
        try:
            self._look_at(apps, nodes)
        except Unsound:
            return True
        return False

    def _seems_wrong_elsewhere(self) -> bool:
        """Look where no application or node leads: most of it is empty, and to stay so."""
        state = self.state
        try:
            for path, queue in state.queues.items():
                check_queue(queue, self._sums.get(path) or Sum())
            for of_group, owners in ((False, state.users), (True, state.groups)):
                for name, by_path in owners.items():
                    for path, usage in by_path.items():
                        check_usage(usage, self._usages.get(((of_group, name), path)) or UsageSum())
        except Unsound:
            return True
        return any(chain(capacity(state), foreign_places(state), misconfigured(state)))

    def _look_at(self, apps: Iterable[str], nodes: Iterable[str]) -> None:
        state = self.state
        above: dict[Queue, None] = {}
        owners: dict[tuple[Owner, Queue], None] = {}
        for id_ in apps:
            app, old = state.applications.get(id_), self._shares.pop(id_, None)
            new = None if app is None else share_of(state, app)
            if new is not None:
                self._shares[id_] = new
            self._follow(old, new)
            for share in filter(None, (old, new)):
                for queue in share.levels:
                    above[queue] = None
                    for owner in share.owners:
                        owners[owner, queue] = None
        for queue in above:
            check_queue(queue, self._sums[queue.path])
        for (of_group, name), queue in owners:
            usage = (state.groups if of_group else state.users).get(name, {}).get(queue.path)
            if usage is not None:
                check_usage(usage, self._usages[(of_group, name), queue.path])
        self._look_at_nodes(nodes)

    def _look_at_nodes(self, nodes: Iterable[str]) -> None:
        """Look at the nodes, and whether each part of them and of applications is in a pair."""
        state = self.state
        for id_ in nodes:
            node = state.nodes.get(id_)
            count = 0 if node is None else count_on(state, node)
            self._on_nodes += count - self._counts.get(id_, 0)
            self._counts[id_] = count
        books = (self._of_apps, len(state.owners), state.reservation_count)
        if books != (self._on_nodes, self._allocations, self._reservations):
            raise Unsound

    # -- sums

    def _follow(self, old: Share | None, new: Share | None) -> None:
        """Put what an application adds now in the place of what it added before."""
        if old is not None and new is not None and old.place != new.place:
            self._follow(old, None)
            old = None
        share = new or old
        if share is None:
            return
        deltas = [*_deltas(old, new)]
        if deltas:
            self._write(share, deltas)
        came = (new is not None) - (old is not None)
        flags = _NO_FLAGS if new is None else new.flags
        if came or (old is not None and old.flags != flags):
            self._count(share, flags, came)
        for one, sign in ((old, -1), (new, 1)):
            if one is not None:
                self._of_apps += sign * one.count
                self._allocations += sign * one.allocations
                self._reservations += sign * one.reservations

    def _write(self, share: Share, deltas: list[tuple[str, Resource]]) -> None:
        for queue in share.levels:
            total = self._sums.get(queue.path)
            if total is None:
                total = self._sums[queue.path] = Sum()
            for name, delta in deltas:
                charge(getattr(total, name), delta)
                if name == "charged":
                    for owner in share.owners:
                        charge(self._usage(owner, queue).charged, delta)

    def _count(self, share: Share, flags: Flags, came: int) -> None:
        """Count an application as its flags say; it may have come (1) or gone (-1)."""
        serial = share.serial
        for queue in share.levels:
            total = self._sums.setdefault(queue.path, Sum())
            total.members += came if queue is share.levels[0] else 0
            _note(total.running, serial, counts=flags.runs)
            _note(total.holding, serial, counts=flags.holds)
            _note(total.keeping, serial, counts=flags.keeps)
            for owner in share.owners:
                usage = self._usage(owner, queue)
                usage.attached += came
                _note(usage.counted, serial, counts=flags.is_counted)
                _note(usage.kept, serial, counts=flags.is_kept_for)

    def _usage(self, owner: Owner, queue: Queue) -> UsageSum:
        key = (owner, queue.path)
        usage = self._usages.get(key)
        if usage is None:
            usage = self._usages[key] = UsageSum()
        return usage


def _deltas(old: Share | None, new: Share | None) -> Iterator[tuple[str, Resource]]:
    befores = _NOTHING if old is None else _SHARES(old)
    afters = _NOTHING if new is None else _SHARES(new)
    for name, before, after in zip(_SHARED, befores, afters, strict=True):
        if before != after:
            delta = dict(after)
            discharge(delta, before)
            yield name, delta


def _note(serials: dict[int, None], serial: int, *, counts: bool) -> None:
    if counts:
        serials[serial] = None
    else:
        serials.pop(serial, None)


# -- one application


def share_of(state: PartitionState, app: Application) -> Share:
    """Work out what an application adds to which book; raise Unsound if its own are wrong."""
    share = Share(app)
    _add_allocations(state, app, share)
    reserved, parked = _add_asks(state, app, share)
    if (
        _differ(app.allocated, share.real)
        or _differ(app.placeholders, share.placeholders)
        or _differ(app.pending, share.pending)
        or _has_debts(app.allocated, app.placeholders, app.pending)
        or ((app.swaps or parked) and any(links_of(state, app)))
        or ((reserved or app.reservation_count) and any(reservations_of(state, app)))
        or any(life_of(state, app))
        or not _are_groups_right(app, share)
        or state.queues.get(app.queue.path) is not app.queue
        or app.serial not in app.queue.applications
    ):
        raise Unsound
    charged = share.charged = share.real
    if share.placeholders:
        charge(charged, share.placeholders)
    by_holding, holds = app.state in COUNTS_BY_HOLDING, share.allocations > 0
    is_counted = app.state not in LEAVES_USER_COUNT
    share.flags = Flags(
        app.state in COUNTS_AS_RUNNING,
        by_holding and holds,
        by_holding and reserved and not holds,
        is_counted,
        is_counted and reserved,
    )
    return share


def _add_allocations(state: PartitionState, app: Application, share: Share) -> None:
    """G03, G07, G09, G12, G19: what it has, and that its node and its ask know of it."""
    nodes, owners, asks, id_ = state.nodes, state.owners, app.asks, app.spec.application_id
    for uuid, item in app.allocations.items():
        spec, node = item.spec, nodes.get(item.node_id)
        ask = asks.get(spec.key)
        if (
            node is None
            or node.allocations.get(uuid) is not item
            or ask is None
            or uuid not in ask.uuids
            or owners.get(uuid) != id_
        ):
            raise Unsound
        if spec.placeholder:
            share.alive[spec.task_group] = share.alive.get(spec.task_group, 0) + 1
            book = share.placeholders
        else:
            book = share.real
        for kind, quantity in item.resource.items():
            book[kind] = book.get(kind, 0) + quantity
        releasing = item.releasing
        if (item.beneficiary is not None) is not (releasing is _PREEMPTED):
            raise Unsound
        if releasing is not None and item.comes_free:
            charge(share.leaving, item.resource)
            if releasing is _PREEMPTED:
                charge(share.preempting, item.resource)
    for swap in app.swaps.values():
        share.count += swap.crosses


def _add_asks(state: PartitionState, app: Application, share: Share) -> tuple[bool, int]:
    """G03, G17, G18: what waits; return whether nodes are kept for it, and how much is parked."""
    pending, parked = share.pending, 0
    for key, ask in app.asks.items():
        spec, remaining = ask.spec, ask.remaining
        parked += ask.parked
        if remaining:
            for kind, quantity in spec.resource.items():
                pending[kind] = pending.get(kind, 0) + quantity * remaining
            if spec.placeholder:
                share.alive[spec.task_group] = share.alive.get(spec.task_group, 0) + remaining
                share.waiting += remaining
        if ask.reserved:
            share.reservations += len(ask.reserved)
            for node_id in dict.fromkeys(ask.reserved):
                node = state.nodes.get(node_id)
                kept = None if node is None else node.reservations.get((app.id, key))
                if kept is None:
                    raise Unsound
                charge(share.earmarked, kept.promised)
    share.count += share.reservations
    return share.reservations > 0, parked


def _are_groups_right(app: Application, share: Share) -> bool:
    """G17; like the full check it compares what is alive, and how much waits."""
    if share.waiting != app.waiting_placeholders:
        return False
    alive = {name: count for name, count in share.alive.items() if count > 0}
    counted = {name: group.alive for name, group in app.task_groups.items() if group.alive > 0}
    return alive == counted


# -- books


def count_on(state: PartitionState, node: Node) -> int:
    """Count what is on a node; raise Unsound if its books are wrong (G01, G06, G07, G09, G18)."""
    apps, id_ = state.applications, node.id
    parts: Resource = {}
    for uuid, item in node.allocations.items():
        owner = apps.get(item.spec.application_id)
        if owner is None or owner.allocations.get(uuid) is not item or item.node_id != id_:
            raise Unsound
        for kind, quantity in item.resource.items():
            parts[kind] = parts.get(kind, 0) + quantity
    for uuid, coming in node.incoming.items():
        owner = apps.get(coming.application_id)
        if owner is None or uuid not in owner.swaps:
            raise Unsound
        charge(parts, coming.resource)
    occupied = node.occupied_reported
    if node.foreign:
        occupied = dict(occupied)
        for foreign in node.foreign.values():
            charge(occupied, foreign.resource)
    whole = dict(node.available)
    charge(whole, node.allocated)
    charge(whole, node.occupied)
    if (
        _differ(node.allocated, parts)
        or _differ(node.occupied, occupied)
        or _differ(node.capacity, whole)
        or _has_debts(node.occupied)
        or (node.parts is not None and any(devices_on(node)))
        or (_has_reservations(node) and any(reservations_on(state, node)))
    ):
        raise Unsound
    kept = sum(item.repeats for item in node.reservations.values())
    return len(node.allocations) + len(node.incoming) + kept


def _has_reservations(node: Node) -> bool:
    """It has some, or has had some that left something behind."""
    return bool(node.reservations or node.promised or node.secured)


def check_queue(queue: Queue, total: Sum) -> None:
    """G04, G06, G19, G20, G28."""
    parent = queue.parent
    if (
        _differ(queue.allocated, total.charged)
        or _differ(queue.pending, total.pending)
        or _differ(queue.preempting, total.preempting)
        or _differ(queue.leaving, total.leaving)
        or _differ(queue.earmarked, total.earmarked)
        or _has_debts(queue.preempting)
        or queue.running_apps != len(total.running)
        or queue.allocating.keys() != total.holding.keys()
        or queue.reserving.keys() != total.keeping.keys()
        or len(queue.applications) != total.members
        or (parent is not None and parent.children.get(queue.name) is not queue)
    ):
        raise Unsound


def check_usage(usage: Usage, total: UsageSum) -> None:
    """G24."""
    running = usage.running.keys()
    if (
        _differ(usage.amounts, total.charged)
        or usage.attached != total.attached
        or not running <= total.counted.keys()
        or usage.reserving.keys() != total.kept.keys() - running
    ):
        raise Unsound


def _differ(book: Resource, truth: Resource) -> bool:
    """Compare, absent as 0; books and sums mostly have the same types, so a look is enough."""
    return book != truth and not equals(book, truth)


def _has_debts(*books: Resource) -> bool:
    for book in books:
        for quantity in book.values():
            if quantity < 0:
                return True
    return False
