"""What decides in one queue: its policy, and what is built in where that has no say.

A policy that raises, or gives keys that do not compare, stops nobody. What is built in decides in
its place from then on, until the queue is configured anew.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, cast

from msgspec import Struct

from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.policies.built_in import APPLICATION_ORDERS, QUEUE_ORDERS
from yunikorn_actors.policies.folds import Folds, job_of_ask, policy_name
from yunikorn_actors.policies.guard import tried
from yunikorn_actors.policies.jobs import Hold, Job
from yunikorn_actors.policies.places import (
    ApplicationOrder,
    AsksOrder,
    DeviceChoice,
    Fold,
    Gate,
    Key,
    NodeScore,
    NodeSeen,
    Pool,
    QueueOrder,
)
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.state.allocations import Ask, AskOrder
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.devices import Devices, Parts
from yunikorn_actors.values.resource import Resource

NODES: Final = ""
"""Where the nodes are sorted: of no queue."""
_FAILED: Final = (1,)
"""Behind all keys of a policy, which begin with 0."""


class Shown(Protocol):
    """An application or a queue; what is built in reads it as it is, because it is trusted."""

    @property
    def seen(self) -> Any: ...  # noqa: ANN401 - what a policy may see of it


class KeyedOrder(Struct, frozen=True, order=True):
    """`AskOrder` with the key of a policy behind the priority; no leaf has both."""

    negated_priority: int
    rank: Any
    created_ns: int
    sequence: int

    @property
    def priority(self) -> int:
        return -self.negated_priority


class Deciders:
    """Makes what decides in each queue, and knows whose policy has failed."""

    def __init__(self, policies: Policies, folds: Folds | None) -> None:
        self._policies = policies
        self._folds = folds
        self.failed: dict[tuple[str, str], str] = {}
        """The policies that have failed, by queue and name, and how."""
        self._seen: set[str] = set()
        """Queues whose fold is known to have failed."""
        self.gated: dict[Any, None] = {}
        """The views of leaves with a gate."""
        self.moving: dict[Any, None] = {}
        """The views of leaves in which keys change with more than what an application uses."""
        self.news: dict[str, str] = {}
        """Those of them that have not been dealt with."""

    def of(self, queue: Queue) -> "Decider":
        name = policy_name(queue)
        policy = None
        if self.has_policy(queue):
            policy = None if self._folds is None else self._folds.by_queue.get(queue.path)
            policy = policy or self._policies.make(name)
        return Decider(queue, policy, self)

    def score_of(self, name: str) -> Callable[[NodeSeen, Resource], float] | None:
        """Return what the policy of this name says of a node; None if there is no such one."""
        policy = None if name in NODE_ORDERS else self._policies.make(name)
        if not isinstance(policy, NodeScore):
            return None

        def score(node: NodeSeen, shape: Resource) -> float:
            given, fault = tried("score", lambda: float(policy.score(node, shape)))
            if given is not None and given == given:  # noqa: PLR0124 - NaN has no place
                return given
            self.fail(NODES, name, fault or "score is NaN, which has no place in an order")
            return 0.0

        return score

    def devices_of(self, name: str) -> Callable[[NodeSeen, Resource, Parts], Devices | None] | None:
        """Return what chooses devices where the policy of this name does."""
        policy = None if name in NODE_ORDERS else self._policies.make(name)
        if not isinstance(policy, DeviceChoice):
            return None

        def devices(node: NodeSeen, shape: Resource, free: Parts) -> Devices | None:
            chosen, fault = tried("devices", lambda: policy.devices(node, shape, free))
            if fault:
                self.fail(NODES, name, fault)
            return chosen

        return devices

    def has_policy(self, queue: Queue) -> bool:
        name = policy_name(queue)
        return bool(name) and (queue.path, name) not in self.failed

    def fail(self, path: str, name: str, what: str) -> None:
        if (path, name) not in self.failed:
            self.failed[path, name] = self.news[path] = f"{name}: {what}"

    @property
    def has_news(self) -> bool:
        """Whether a policy has failed that still decides."""
        folds = self._folds
        return bool(self.news) or (folds is not None and not folds.failed.keys() <= self._seen)

    def look_at_folds(self, queues: Mapping[str, Queue]) -> None:
        """One that has raised while it was given a fact decides nothing any more."""
        for path, what in () if self._folds is None else self._folds.failed.items():
            if path in queues:
                self._seen.add(path)
                self.fail(path, policy_name(queues[path]), what)


class Decider:
    """The policy of one queue."""

    def __init__(self, queue: Queue, policy: Any, deciders: Deciders) -> None:  # noqa: ANN401
        properties = queue.properties
        self._path, self._name, self._deciders = queue.path, policy_name(queue), deciders
        self.policy = policy
        built_in: Any = APPLICATION_ORDERS[properties.application_sort_policy]()
        self._kinds: dict[str, object] = {}
        """Of the keys that each of its methods gives: those of one have to compare."""
        self.rank: Callable[[Any], Key] = built_in.application_key
        """Of an application among those of its leaf."""
        of_queues: Any = QUEUE_ORDERS[properties.queue_sort_policy]()
        self.queue_rank: Callable[[Any], Key] = of_queues.queue_key
        """Of a queue among its siblings, if this is their parent."""
        self.reads: frozenset[str] = frozenset(getattr(built_in, "reads", ()))
        if isinstance(policy, ApplicationOrder):
            self.rank = self._application_rank
            self.reads = frozenset(getattr(policy, "reads", ()))
        if isinstance(policy, QueueOrder):
            self.queue_rank = self._queue_rank
        self.moves = isinstance(policy, ApplicationOrder) and bool(self.reads - {"used"})
        self.gate = policy if isinstance(policy, Gate) else None
        self.is_fold = isinstance(policy, Fold)
        self.orders_asks = isinstance(policy, AsksOrder)

    def order_of(self, app: Application, ask: Ask) -> AskOrder:
        if not self.orders_asks:
            return ask.order()
        key = self._checked("ask_key", job_of_ask(app, ask))
        keyed = KeyedOrder(-ask.spec.priority, key, ask.created_ns, ask.sequence)
        return cast(AskOrder, keyed)

    def _application_rank(self, app: Shown) -> Key:
        return self._checked("application_key", app.seen)

    def _queue_rank(self, queue: Shown) -> Key:
        return self._checked("queue_key", queue.seen)

    def _checked(self, method: str, subject: object) -> Key:
        """Return a key that compares with all others of this queue, whatever the policy gives."""

        def call() -> tuple[Key, object]:
            key = getattr(self.policy, method)(subject)
            return key, _kind_of(key)

        given, fault = tried(method, call)
        if given is None:
            self._deciders.fail(self._path, self._name, fault)
            return _FAILED
        key, kind = given
        if kind != self._kinds.setdefault(method, kind):
            what = f"{method} gives keys that do not compare: {key!r:.100}"
            self._deciders.fail(self._path, self._name, what)
            return _FAILED
        return (0, key)

    def ask_gate(self, gate: Gate, job: Job, pool: Pool) -> Hold | None:
        """Ask whether it may start; a gate that fails lets everybody."""
        answer: object
        answer, fault = tried("may_start", lambda: gate.may_start(job, pool))
        if fault:
            self._deciders.fail(self._path, self._name, fault)
            return None
        if answer is not None and not isinstance(answer, Hold):
            self._deciders.fail(
                self._path, self._name, f"may_start returned {answer!r:.100}, which is no Hold"
            )
            return None
        return answer


def _kind_of(key: object) -> object:
    """Tell keys that compare from others; raises ValueError for what compares with nothing."""
    if isinstance(key, int | float):
        if key != key:  # noqa: PLR0124 - NaN alone is not equal to itself
            raise ValueError("the key is NaN, which has no place in an order")
        return "number"
    if isinstance(key, str):
        return "text"
    if isinstance(key, tuple):
        kinds = tuple(map(_kind_of, key))
        return ("numbers",) if set(kinds) <= {"number"} else kinds
    raise ValueError(f"the key is {key!r:.100}: give a number, a text, or a tuple of such")
