"""The books of a front: what was asked, what was got, and what the core says about it.

The core speaks on its delivery thread, the program on any of its own; a lock keeps them apart. No
call into the program, and none to the core, is made while it is held: requests go to the outbox,
done callbacks to threads of their own.

An ask keeps the key that the program gave it, as long as the core can tell it from others. After a
withdrawal the core may still speak of the former ask of that key, and a question of the core names
a key without its application. Where that could be mistaken the core gets the key with a number.
"""

import dataclasses
import threading
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.domain.why import Why
from yunikorn_actors.errors import (
    ApplicationEnded,
    ApplicationRejected,
    AskRejected,
    AskWithdrawn,
    CoreError,
    CoreFailed,
    CoreStopped,
    Duplicate,
    NodeRejected,
    NoReply,
    SchedulerClosed,
    UnknownAsk,
    UnknownName,
    WouldBlock,
    anew,
)
from yunikorn_actors.front.events import (
    AnyEvent,
    ApplicationChanged,
    LeaseOver,
    NodeChanged,
    NotPlaced,
    Placed,
    Subscription,
    WantedBack,
)
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.outbox import Outbox
from yunikorn_actors.gateway import StandIn
from yunikorn_actors.runtime.system import REPLY_TIMEOUT_S, SchedulerCore

REMEMBERED_MAX: Final = 10_000
"""Asks that are over and can still be explained."""
ENDINGS: Final = ("Completed", "Failed", "Rejected", "Expired")
"""States in which an application takes no more asks."""

L = TypeVar("L", bound=BaseLease)
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

Fits = Callable[[str], Any]


class Promise(Protocol[T_contra]):
    """The broker's side of a future. Both calls do nothing if the future was cancelled."""

    def keep(self, value: T_contra) -> None: ...

    def fail(self, error: BaseException) -> None: ...


class Voice(Protocol):
    """Asks the program on behalf of the core, on the thread or the loop where it wants it."""

    def answers(self, method: str) -> bool: ...

    def ask(self, method: str, *arguments: object, otherwise: Any) -> Any: ...  # noqa: ANN401

    def tell(self, method: str, told: object) -> None: ...

    def end(self) -> None: ...


class _Stage(Enum):
    WAITS = auto()
    HELD = auto()
    WANTED = auto()
    OVER = auto()


@dataclass(frozen=True, kw_only=True)
class AskStatus:
    """What has become of an ask, in words and in parts."""

    application: str
    """Id of the application."""
    key: str
    """Key of the ask."""
    state: Literal["waiting", "placed", "rejected", "withdrawn", "released", "lost"]
    """What it is now."""
    text: str
    """What there is to say: why it waits, where it runs, why it was rejected."""
    node_id: str = ""
    """The node where it runs, or ran."""
    why: Why | None = None
    """Of an ask that waits: what stands in its way, in parts."""

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False, slots=True, kw_only=True)
class Account(Generic[L]):
    """One life of an application."""

    id: str
    accepted: Promise[Any]
    groups: Mapping[str, Mapping[str, si.Amount]] = field(default_factory=dict)
    """Of a gang: how large a member of each group is."""
    is_known: bool = False
    """The core has accepted it; what it says before that is about a former one of this id."""
    state: str = "New"
    ended: CoreError | None = None
    by_key: "dict[str, Entry[L]]" = field(default_factory=dict)
    """By the program's key: asks that wait, and leases that it has."""
    by_core_key: "dict[str, Entry[L]]" = field(default_factory=dict)
    """The same and placeholders, as the core names them."""
    withdrawn: set[str] = field(default_factory=set)
    """Keys of which the core may still say that they were placed."""


@dataclass(eq=False, slots=True, kw_only=True)
class Entry(Generic[L]):
    """An ask, and later its lease."""

    account: Account[L]
    key: str
    core_key: str
    promise: Promise[L] | None
    """None for placeholders, and for what ran before."""
    running: Running
    fits: Fits | None = None
    number: int = 0
    """Of the request, in the order in which asks were made."""
    stage: _Stage = _Stage.WAITS
    uuid: str = ""
    wanted: si.TerminationType = si.TerminationType.STOPPED_BY_RM
    """As what the lease is given back."""
    lease: L | None = None

    @property
    def is_placeholder(self) -> bool:
        return not self.key


class Asked(NamedTuple, Generic[L]):
    """One ask of the program, and who waits for its lease."""

    ask: si.AllocationAsk
    running: Running
    fits: Fits | None
    promise: Promise[L]


@dataclass(eq=False, slots=True, kw_only=True)
class _Node(Generic[L]):
    accepted: Promise[list[L]]
    recovered: list[Entry[L]]


class _Unanswered(Generic[T]):
    """What the core was asked to take, by id; it answers in the order in which it was asked.

    So the answer to one that was taken back meanwhile is not for the next one of its id.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, deque[T]] = {}

    def asked(self, name: str, item: T) -> None:
        self._by_id.setdefault(name, deque()).append(item)

    def answered(self, name: str) -> T | None:
        """Return what this answer is about; None if it was not asked here."""
        items = self._by_id.get(name)
        if not items:
            return None
        item = items.popleft()
        if not items:
            del self._by_id[name]
        return item


class Broker(StandIn, Generic[L]):
    """The callback of a front, and all that a front may be told to do."""

    def __init__(
        self,
        core: SchedulerCore,
        *,
        rm_id: str,
        partition: str,
        grace: float,
        make_lease: Callable[[Running, Callable[[], None]], L],
        want_back: Callable[[L], None],
    ) -> None:
        self.core: Final = core
        self.rm_id: Final = rm_id
        self.partition: Final = partition
        self.voice: Voice
        self._grace = grace
        self._make_lease = make_lease
        self._want_back = want_back
        self._outbox = Outbox(core, rm_id, self.end)
        self._lock = threading.RLock()
        self._over: CoreError | None = SchedulerClosed(
            "the scheduler was not started: use it in a `with` block, or call start()"
        )
        self._accounts: dict[str, Account[L]] = {}
        self._nodes: dict[str, _Node[L]] = {}
        self._new_nodes: _Unanswered[_Node[L]] = _Unanswered()
        self._new_accounts: _Unanswered[Account[L]] = _Unanswered()
        self._readers: list[weakref.ref[Subscription[AnyEvent[L]]]] = []
        """Weakly: what nobody can read any more need not be kept."""
        self._fits: dict[str, Entry[L]] = {}
        """Asks with a say in where they run; no other ask has one of these keys at that time."""
        self._live: Counter[str] = Counter()
        """How many applications use each core key."""
        self._asked = 0
        self._withdrawn: deque[tuple[int, Account[L], str]] = deque()
        self._past: OrderedDict[tuple[str, str], AskStatus] = OrderedDict()

    # -- life

    def open(self) -> None:
        self._over = None
        self._outbox.start()

    def end(self, error: BaseException) -> None:
        """Nothing comes any more: every future, lease and iterator ends with the reason."""
        reason = (
            error if isinstance(error, CoreError) else CoreFailed(f"the front failed: {error!r}")
        )
        with self._lock:
            if self._over is not None:
                return
            self._over = reason
            nodes, self._nodes = self._nodes, {}
            for node in nodes.values():
                node.accepted.fail(anew(reason))
            for account in list(self._accounts.values()):
                account.accepted.fail(anew(reason))
                self._end_account(account, reason)
            for reader in self._heard():
                reader.end(reason if isinstance(reason, CoreFailed) else None)
            self._readers.clear()
        self.voice.end()
        self._outbox.close()

    def core_is_over(self) -> None:
        self.end(self.core.failure or CoreStopped("the core was stopped"))

    def join(self, timeout: float) -> None:
        self._outbox.join(timeout)

    def check(self) -> None:
        """Raise what ended this front."""
        if self._over is not None:
            raise anew(self._over)
        self.core._check_running()

    @contextmanager
    def _open_books(self) -> Iterator[None]:
        """Look before the lock too: in a forked process its owner may be gone for ever."""
        self.check()
        with self._lock:
            self.check()
            yield

    @property
    def _is_over(self) -> bool:
        try:
            self.check()
        except CoreError:
            return True
        return False

    @contextmanager
    def undone(self, undo: Callable[[], None]) -> Iterator[None]:
        """Take back what the core was told, if the program stops waiting for the answer."""
        try:
            yield
        except BaseException as error:
            is_answer = isinstance(error, CoreError) and not isinstance(error, NoReply)
            if not is_answer:
                with suppress(CoreError):
                    undo()
            raise

    def wait(self, future: Future[T], what: str) -> T:
        """Wait for the core's answer to a call of the program."""
        try:
            return future.result(REPLY_TIMEOUT_S)
        except FutureTimeout:
            raise NoReply(f"no answer to {what} within {REPLY_TIMEOUT_S:.0f} s") from None

    def check_may_wait(self, what: str) -> None:
        if self.core._inside.here.shell is not None:
            raise WouldBlock(
                f"{what} waits for the core and was called from inside it (from fits, or from a "
                "callback): call it from another thread"
            )

    # -- nodes

    def add_node(
        self, info: si.NodeInfo, running: Sequence[Running], accepted: Promise[list[L]]
    ) -> None:
        for item in running:
            si.Resource.parse(item.resources)
        si.check_form(si.NodeRequest(rm_id=self.rm_id, nodes=(info,)))
        with self._open_books():
            name = info.node_id
            if name in self._nodes:
                raise Duplicate(
                    f"add_node: there is a node {name!r} already; remove_node({name!r}) first, or "
                    "give this one another name"
                )
            self._check_recoverable(info.node_id, running)
            entries = [self._recovered(item) for item in running]
            node = self._nodes[name] = _Node(accepted=accepted, recovered=entries)
            self._new_nodes.asked(name, node)
            existing = tuple(self._existing(entry) for entry in entries)
            self._outbox.put(replace(info, existing_allocations=existing))

    def _check_recoverable(self, node_id: str, running: Sequence[Running]) -> None:
        seen: set[tuple[str, str]] = set()
        for item in running:
            account = self._accounts.get(item.application)
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
            seen.add((item.application, item.key))

    def _recovered(self, item: Running) -> Entry[L]:
        account = self._accounts[item.application]
        core_key = self._core_key(account, item.key, is_asked_about=False)
        return self._book(account, item.key, item, promise=None, fits=None, core_key=core_key)

    def _existing(self, entry: Entry[L]) -> si.Allocation:
        item = entry.running
        return si.Allocation(
            allocation_key=entry.core_key,
            application_id=item.application,
            partition_name=self.partition,
            node_id=item.node_id,
            resource_per_alloc=si.Resource.parse(item.resources),
            task_group_name=item.group,
            priority=item.priority,
            preemption_policy=si.PreemptionPolicy(allow_preempt_self=item.preemptible),
        )

    def change_node(
        self, node_id: str, action: si.ActionFromRM, state: Literal["draining", "resumed"]
    ) -> None:
        with self._open_books():
            self._node(node_id)
            self._outbox.put(si.NodeInfo(node_id=node_id, action=action))
            self._tell(NodeChanged(node_id=node_id, state=state))

    def remove_node(self, node_id: str) -> None:
        """Its leases are lost when the core says so."""
        with self._open_books():
            self._node(node_id)
            node = self._nodes.pop(node_id)
            node.accepted.fail(NodeRejected(f"node {node_id!r} was removed before it was there"))
            for entry in node.recovered:
                self._drop(entry)
            action = si.ActionFromRM.DECOMISSION
            self._outbox.put(si.NodeInfo(node_id=node_id, action=action))
            self._tell(NodeChanged(node_id=node_id, state="removed"))

    def _node(self, node_id: str) -> None:
        if not isinstance(node_id, str) or node_id not in self._nodes:
            some = ", ".join(sorted(self._nodes)[:5]) or "none"
            raise UnknownName(f"there is no node {node_id!r}; add_node it first (there: {some})")

    # -- applications

    def add_application(
        self,
        request: si.AddApplicationRequest,
        placeholders: Iterable[si.AllocationAsk],
        account: Account[L],
    ) -> None:
        si.check_form(si.ApplicationRequest(rm_id=self.rm_id, new=(request,)))
        with self._open_books():
            if account.id in self._accounts:
                raise Duplicate(
                    f"application: there is one {account.id!r} already; close() it first, or give "
                    "this one another id"
                )
            self._accounts[account.id] = account
            self._new_accounts.asked(account.id, account)
            self._outbox.put(request)
            for ask in placeholders:
                running = Running(
                    application=account.id, key="", node_id="", group=ask.task_group_name
                )
                self._book(
                    account, "", running, promise=None, fits=None, core_key=ask.allocation_key
                )
                self._outbox.put(ask)

    def close_application(self, account: Account[L]) -> None:
        """Take it back with all that it has; its leases are lost at once."""
        if self._is_over:
            return
        with self._lock:
            if account.ended is not None or self._over is not None:
                return
            self._outbox.put(
                si.RemoveApplicationRequest(
                    application_id=account.id, partition_name=self.partition
                )
            )
            account.accepted.fail(ApplicationEnded(f"application {account.id!r} was closed"))
            self._end_account(account, _closed(account.id), "Removed")

    def _end_account(self, account: Account[L], error: CoreError, state: str = "") -> None:
        """Let go of everything that it has; the core keeps nothing of it either."""
        account.ended = error
        if self._accounts.get(account.id) is account:
            del self._accounts[account.id]
        for entry in list(account.by_core_key.values()):
            if entry.stage is _Stage.WAITS:
                self._refuse(entry, anew(error), "withdrawn")
            else:
                self._lose(entry, str(error))
        if state:
            account.state = state
            self._tell(ApplicationChanged(application=account.id, state=state, message=str(error)))

    # -- asks

    def ask(self, account: Account[L], asked: "Sequence[Asked[L]]") -> list[Entry[L]]:
        """Take all or none."""
        asks = tuple(it.ask for it in asked)
        si.check_form(si.AllocationRequest(rm_id=self.rm_id, asks=asks))
        with self._open_books():
            if account.ended is not None:
                raise anew(account.ended)
            for ask in asks:
                self._check_key(account, ask.allocation_key)
            return [self._ask(account, it) for it in asked]

    @staticmethod
    def _check_key(account: Account[L], key: str) -> None:
        entry = account.by_key.get(key)
        if entry is not None:
            raise Duplicate(
                f"ask: {key!r} of {account.id!r} {_standing(entry)}; release or cancel it first, "
                "or give this one another key"
            )

    def _ask(self, account: Account[L], asked: "Asked[L]") -> Entry[L]:
        key = asked.ask.allocation_key
        core_key = self._core_key(account, key, is_asked_about=asked.fits is not None)
        entry = self._book(
            account, key, asked.running, promise=asked.promise, fits=asked.fits, core_key=core_key
        )
        self._past.pop((account.id, key), None)
        same = core_key == key
        self._outbox.put(asked.ask if same else replace(asked.ask, allocation_key=core_key))
        return entry

    def _core_key(self, account: Account[L], key: str, *, is_asked_about: bool) -> str:
        """Return a key that the core will not take for another one."""
        core_key, number = key, 1
        while (
            core_key in account.by_core_key
            or core_key in account.withdrawn
            or core_key in self._fits
            or (is_asked_about and self._live[core_key])
        ):
            number += 1
            core_key = f"{key}~{number}"
        return core_key

    def _book(
        self, account: Account[L], key: str, running: Running, *, promise: Promise[L] | None,
        fits: Fits | None, core_key: str,
    ) -> Entry[L]:  # fmt: skip
        self._asked += 1
        entry = Entry(
            account=account, key=key, core_key=core_key, promise=promise, running=running,
            fits=fits, number=self._asked,
        )  # fmt: skip
        account.by_core_key[core_key] = entry
        if key:
            account.by_key[key] = entry
        if fits is not None:
            self._fits[core_key] = entry
        self._live[core_key] += 1
        return entry

    def _drop(self, entry: Entry[L]) -> None:
        """Forget an ask that is over; its key may be used again."""
        account = entry.account
        entry.stage = _Stage.OVER
        if account.by_core_key.pop(entry.core_key, None) is None:
            return
        if account.by_key.get(entry.key) is entry:
            del account.by_key[entry.key]
        self._fits.pop(entry.core_key, None)
        self._live[entry.core_key] -= 1
        if not self._live[entry.core_key]:
            del self._live[entry.core_key]

    def withdraw(self, entry: Entry[L]) -> None:
        """Its future was cancelled; a lease that it just got is given back."""
        if self._is_over:
            return
        with self._lock:
            if entry.stage is _Stage.WAITS:
                self._drop(entry)
                account = entry.account
                account.withdrawn.add(entry.core_key)
                self._withdrawn.append((self._asked, account, entry.core_key))
                self._outbox.put(
                    si.AllocationAskRelease(
                        partition_name=self.partition,
                        application_id=account.id,
                        allocation_key=entry.core_key,
                        termination_type=si.TerminationType.STOPPED_BY_RM,
                    )
                )
                self._remember(entry, "withdrawn", "its future was cancelled")
            elif entry.stage in {_Stage.HELD, _Stage.WANTED}:
                self.release(entry)

    def release(self, entry: Entry[L]) -> None:
        if self._is_over:
            return
        with self._lock:
            if entry.stage in {_Stage.HELD, _Stage.WANTED}:
                self._give_back(entry)
                self._close_lease(entry, "released", "")

    def _give_back(self, entry: Entry[L]) -> None:
        self._drop(entry)
        self._outbox.put(
            si.AllocationRelease(
                partition_name=self.partition,
                application_id=entry.account.id,
                uuid=entry.uuid,
                allocation_key=entry.core_key,
                termination_type=entry.wanted,
            )
        )

    def _close_lease(self, entry: Entry[L], state: Literal["released", "lost"], why: str) -> None:
        lease = entry.lease
        if lease is None:
            return
        lease.reason = why or lease.reason
        lease.state = state
        self._remember(entry, state, lease.reason or "the program gave it back")
        self._tell(LeaseOver(lease=lease))

    def _lose(self, entry: Entry[L], reason: str) -> None:
        self._drop(entry)
        self._close_lease(entry, "lost", reason)
        if entry.lease is not None:
            self._want_back(entry.lease)

    def _refuse(
        self, entry: Entry[L], error: CoreError, state: Literal["rejected", "withdrawn"]
    ) -> None:
        self._drop(entry)
        if entry.promise is not None:
            entry.promise.fail(error)
            self._remember(entry, state, str(error))
            told = anew(error)
            self._tell(NotPlaced(application=entry.account.id, key=entry.key, error=told))

    def _grace_over(self, entry: Entry[L]) -> None:
        with self._lock:
            if entry.stage is _Stage.WANTED and entry.lease is not None:
                self._give_back(entry)
                late = f"it was not released within {self._grace:g} s"
                self._close_lease(entry, "lost", f"{entry.lease.reason}; {late}")

    # -- what there is to see

    def leases(self, account: Account[L]) -> list[L]:
        with self._lock:
            return [it.lease for it in account.by_key.values() if it.lease is not None]

    def node_ids(self) -> list[str]:
        with self._lock:
            return list(self._nodes)

    def subscribe(self, reader: Subscription[AnyEvent[L]]) -> None:
        with self._open_books():
            self._readers = [weakref.ref(it) for it in (*self._heard(), reader)]

    def leave(self, reader: Subscription[AnyEvent[L]]) -> None:
        with self._lock:
            self._readers = [weakref.ref(it) for it in self._heard() if it is not reader]

    def _tell(self, event: AnyEvent[L]) -> None:
        for reader in self._heard():
            if event.kind in reader.kinds:
                reader.tell(event)

    def _heard(self) -> list[Subscription[AnyEvent[L]]]:
        return [reader for it in self._readers if (reader := it()) is not None]

    def explain(self, application: str, key: str) -> AskStatus:
        """Ask the core where an ask waits; the lock is not held meanwhile."""
        for _ in range(2):
            with self._open_books():
                known, waits_as = self._known(application, key)
            if known is not None:
                return known
            try:
                why = self.core.explain(application, waits_as, partition=self._full_partition)
            except UnknownAsk:
                continue
            if not why.waits:
                # It was placed a moment ago, as one that is not known was sent a moment ago.
                continue
            return AskStatus(
                application=application, key=key, state="waiting", text=str(why), why=why
            )
        text = f"{key} of {application}: it is on its way to the core, or back from it; ask again"
        return AskStatus(application=application, key=key, state="waiting", text=text)

    @property
    def _full_partition(self) -> str:
        return f"[{self.rm_id}]{self.partition or 'default'}"

    def _known(self, application: str, key: str) -> tuple[AskStatus | None, str]:
        """Return what the books say, or as what the core knows the ask that waits."""
        account = self._accounts.get(application)
        entry = None if account is None else account.by_key.get(key)
        if entry is not None and entry.stage is _Stage.WAITS:
            return None, entry.core_key
        if entry is not None:
            return self._status(entry, "placed", f"it runs on {entry.running.node_id}"), ""
        past = self._past.get((application, key))
        if past is None:
            raise UnknownAsk(
                f"nobody asked for {key!r} of {application!r} here, or it is long over"
            )
        return past, ""

    def _status(
        self, entry: Entry[L],
        state: Literal["placed", "rejected", "withdrawn", "released", "lost"], reason: str,
    ) -> AskStatus:  # fmt: skip
        name = entry.account.id
        return AskStatus(
            application=name, key=entry.key, state=state, node_id=entry.running.node_id,
            text=f"{entry.key} of {name}: {state}; {reason}",
        )  # fmt: skip

    def _remember(
        self, entry: Entry[L], state: Literal["rejected", "withdrawn", "released", "lost"],
        reason: str,
    ) -> None:  # fmt: skip
        self._past[entry.account.id, entry.key] = self._status(entry, state, reason)
        if len(self._past) > REMEMBERED_MAX:
            self._past.popitem(last=False)

    # -- what the core says, on its delivery thread

    def update_node(self, response: si.NodeResponse) -> None:
        with self._lock:
            for refused in response.rejected:
                node = self._new_nodes.answered(refused.node_id)
                if node is not None and self._nodes.get(refused.node_id) is node:
                    self._node_rejected(node, refused)
            for accepted in response.accepted:
                node = self._new_nodes.answered(accepted.node_id)
                if node is not None and self._nodes.get(accepted.node_id) is node:
                    self._node_accepted(node, accepted.node_id)
        self.voice.tell("update_node", response)

    def _node_accepted(self, node: _Node[L], node_id: str) -> None:
        leases = [lease for it in node.recovered if (lease := self._hold(it)) is not None]
        node.recovered.clear()
        self._tell(NodeChanged(node_id=node_id, state="accepted"))
        node.accepted.keep(leases)

    def _node_rejected(self, node: _Node[L], refused: si.RejectedNode) -> None:
        del self._nodes[refused.node_id]
        for entry in node.recovered:
            self._drop(entry)
        reason = " ".join(refused.reason.split())
        self._tell(NodeChanged(node_id=refused.node_id, state="rejected", message=reason))
        node.accepted.fail(NodeRejected(f"node {refused.node_id!r} was rejected: {reason}"))

    def update_application(self, response: si.ApplicationResponse) -> None:
        with self._lock:
            for rejected in response.rejected:
                account = self._new_accounts.answered(rejected.application_id)
                if account is not None and account.ended is None:
                    self._application_rejected(account, rejected.reason)
            for accepted in response.accepted:
                account = self._new_accounts.answered(accepted.application_id)
                if account is not None:
                    account.is_known = True
                    account.accepted.keep(account)
            for updated in response.updated:
                account = self._accounts.get(updated.application_id)
                if account is not None and account.is_known:
                    self._application_changed(account, updated)
        self.voice.tell("update_application", response)

    def _application_rejected(self, account: Account[L], reason: str) -> None:
        error = ApplicationRejected(f"application {account.id!r} was rejected: {reason}")
        account.accepted.fail(error)
        self._end_account(account, error, "Rejected")

    def _application_changed(self, account: Account[L], updated: si.UpdatedApplication) -> None:
        account.state = updated.state
        if updated.state in ENDINGS:
            self._end_account(account, _ended(account.id, updated), updated.state)
        else:
            self._tell(
                ApplicationChanged(
                    application=account.id, state=updated.state, message=updated.message
                )
            )

    def update_allocation(self, response: si.AllocationResponse) -> None:
        with self._lock:
            for rejected in response.rejected:
                self._rejected(rejected)
            for rejected_allocation in response.rejected_allocations:
                self._rejected(rejected_allocation)
            for gone in response.released_asks:
                self._ask_gone(gone)
            for release in response.released:
                self._asked_back(release)
            for new in response.new:
                self._placed(new)
        self.voice.tell("update_allocation", response)

    def _entry(self, application_id: str, core_key: str) -> Entry[L] | None:
        account = self._accounts.get(application_id)
        if account is None or not account.is_known:
            return None
        return account.by_core_key.get(core_key)

    def _rejected(self, item: si.RejectedAllocationAsk | si.RejectedAllocation) -> None:
        entry = self._entry(item.application_id, item.allocation_key)
        if entry is None:
            return
        if entry.stage is not _Stage.WAITS:
            # What ran before, and the core will not have.
            self._lose(entry, item.reason)
            return
        self._answered(entry)
        error = AskRejected(
            f"ask {entry.key!r} of {item.application_id!r} was rejected: {item.reason}"
        )
        self._refuse(entry, error, "rejected")

    def _ask_gone(self, gone: si.AllocationAskRelease) -> None:
        entry = self._entry(gone.application_id, gone.allocation_key)
        if entry is not None and entry.stage is _Stage.WAITS:
            why = _in_words(gone.message) or gone.termination_type.name
            error = AskWithdrawn(
                f"the core withdrew ask {entry.key!r} of {gone.application_id!r}: {why}"
            )
            self._refuse(entry, error, "withdrawn")

    def _placed(self, new: si.Allocation) -> None:
        entry = self._entry(new.application_id, new.allocation_key)
        if entry is None or entry.stage is not _Stage.WAITS:
            # It was withdrawn meanwhile, and the core takes it back by itself.
            return
        self._answered(entry)
        entry.uuid = new.uuid
        entry.running = dataclasses.replace(entry.running, node_id=new.node_id)
        self._hold(entry)

    def _hold(self, entry: Entry[L]) -> L | None:
        if entry.account.ended is not None:
            return None
        entry.stage = _Stage.HELD
        if entry.is_placeholder:
            return None
        entry.lease = self._make_lease(entry.running, lambda: self.release(entry))
        self._tell(Placed(lease=entry.lease))
        if entry.promise is not None:
            entry.promise.keep(entry.lease)
        return entry.lease

    def _answered(self, entry: Entry[L]) -> None:
        """An answer to a later ask: the core has heard of every withdrawal before it."""
        while self._withdrawn and self._withdrawn[0][0] < entry.number:
            _, account, core_key = self._withdrawn.popleft()
            account.withdrawn.discard(core_key)

    def _asked_back(self, release: si.AllocationRelease) -> None:
        entry = self._entry(release.application_id, release.allocation_key)
        if entry is None or entry.stage is _Stage.WAITS or entry.uuid not in {"", release.uuid}:
            return
        entry.uuid = release.uuid
        reason = release.message or release.termination_type.name
        if release.termination_type is si.TerminationType.STOPPED_BY_RM:
            self._lose(entry, reason)
        elif entry.is_placeholder:
            entry.wanted = release.termination_type
            self._give_back(entry)
        elif entry.stage is _Stage.HELD and entry.lease is not None:
            entry.stage, entry.wanted = _Stage.WANTED, release.termination_type
            entry.lease.reason, entry.lease.state = reason, "wanted back"
            self._tell(WantedBack(lease=entry.lease))
            self._want_back(entry.lease)
            self._outbox.later(self._grace, lambda: self._grace_over(entry))

    # -- what the core asks

    def answers(self, method: str) -> bool:
        """The core asks of this callback what its program answers, and always where asks may go."""
        return method == "predicates" or self.voice.answers(method)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        if args.allocation_key not in self._fits and not self.voice.answers("predicates"):
            return None
        said: str | None = self.voice.ask("predicates", args, otherwise="the scheduler is closed")
        return said

    def fits_of(self, core_key: str) -> Fits | None:
        entry = self._fits.get(core_key)
        return None if entry is None else entry.fits

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

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        self.voice.tell("send_event", events)


_WORDS: Final = {
    "ResourceReservationTimeout": "there was no room for all of its gang in time",
    "completeApplication": "it had no work",
}
"""What the core says in one word."""


def _in_words(message: str) -> str:
    return _WORDS.get(message, message)


def _closed(application: str) -> ApplicationEnded:
    return ApplicationEnded(
        f"application {application!r} was closed; make another one to ask again"
    )


def _ended(application: str, updated: si.UpdatedApplication) -> ApplicationEnded:
    why = f" ({_in_words(updated.message)})" if updated.message else ""
    remedy = "make another one to ask again"
    if updated.state == "Completed":
        remedy += ", or make it with stays=True if it may idle"
    return ApplicationEnded(f"application {application!r} is {updated.state}{why}; {remedy}")


def _standing(entry: Entry[Any]) -> str:
    if entry.stage is _Stage.WAITS:
        return "waits to be placed" if entry.promise is not None else "is being recovered"
    return f"has a lease on {entry.running.node_id}"
