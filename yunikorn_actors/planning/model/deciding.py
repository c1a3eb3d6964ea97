"""Deciders: what decides in one queue, its policy or the built-in order where that has none.

A policy that raises, or gives keys that do not compare, stops nobody: the built-in order decides in
its place from then on, until the queue names another policy.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from math import isnan
from typing import Any, Final, Protocol, cast

from msgspec import Struct

from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.policies.built_in import APPLICATION_ORDERS, QUEUE_ORDERS
from yunikorn_actors.policies.folds import Folds, candidate_of, job_of_ask, policy_name
from yunikorn_actors.policies.guard import (
    NUMBER,
    Kind,
    common_kind,
    devices_of,
    hold_of,
    key_of,
    kind_of,
    score_of,
    shown,
    tried,
)
from yunikorn_actors.policies.inputs import Hold, Job
from yunikorn_actors.policies.places import (
    ApplicationOrder,
    AsksOrder,
    DeviceChoice,
    Fold,
    Gate,
    Key,
    NodeScore,
    NodeSeen,
    OwnDevices,
    OwnScore,
    Pool,
    QueueOrder,
    VictimOrder,
)
from yunikorn_actors.policies.registry import Policies, methods_of, reads_of, step_of
from yunikorn_actors.state.allocations import Allocation, Ask, AskOrder
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.devices import Devices, Parts
from yunikorn_actors.values.resource import Resource

NODES: Final = ""
"""Where the nodes are sorted: of no queue."""
_LAST: Final = (1,)
"""Behind all keys of a policy, which begin with 0."""


class Shown(Protocol):
    """What a decider may see: an application or a queue; built-in orders read it as it is."""

    @property
    def seen(self) -> Any: ...  # noqa: ANN401 - what a policy may see of it


class ShownApplication(Shown, Protocol):
    ranked: "tuple[Decider, Key] | None"
    """Its key, and who gave it."""
    waits: dict[Any, int]
    """What waits of it, by kind."""


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
        self.watch = policies.watch
        self._folds = folds
        self.failed: dict[str, tuple[str, str]] = {}
        """By queue the policy that has failed there, and how."""
        self.gated: dict[Any, None] = {}
        """The views of leaves with a gate."""
        self.moving: dict[Any, None] = {}
        """The views of leaves in which keys change with more than what an application uses."""
        self.timed: dict[Any, None] = {}
        """The views of leaves in which keys go by the time."""
        self.news: dict[str, tuple[str, str]] = {}
        """Those of them that have not been dealt with."""
        self.raised: dict[str, tuple[str, str]] = {} if folds is None else folds.failed
        """The same of those that raised while they were given a fact."""

    def of(self, queue: Queue) -> "Decider":
        name, policy = policy_name(queue), None
        if self.has_policy(queue) and queue.path not in self.raised:
            # A policy with a fold is the one that the state keeps: facts have shaped it.
            policy = None if self._folds is None else self._folds.by_queue.get(queue.path)
            if policy is None:
                policy = self._made(queue.path, name)
        return Decider(queue, policy, self)

    def of_nodes(self, name: str) -> tuple[OwnScore | None, OwnDevices | None]:
        """Return what the policy of this name says of a node, and which devices it chooses."""
        if not self._may_decide(NODES, name) or name in NODE_ORDERS:
            return None, None
        policy = self._made(NODES, name)
        decider = NodesDecider(name, policy, self)
        return (
            decider.score if isinstance(policy, NodeScore) else None,
            decider.devices if isinstance(policy, DeviceChoice) else None,
        )

    def _made(self, path: str, name: str) -> Any:  # noqa: ANN401 - it has the methods it has
        policy, fault = tried("making it", lambda: self._policies.make(name))
        _, unread = tried("reads", step_of, policy)
        _, unknown = tried("reading its methods", methods_of, policy)
        if fault or unread or unknown:
            self.fail(path, name, fault or unread or unknown)
            return None
        return policy

    def has_policy(self, queue: Queue) -> bool:
        return self._may_decide(queue.path, policy_name(queue))

    def _may_decide(self, path: str, name: str) -> bool:
        """Whether a policy has not failed there; it may decide again if another was named since."""
        failed, _ = self.failed.get(path, (name, ""))
        if failed != name:
            del self.failed[path]
        return bool(name) and path not in self.failed

    def fail(self, path: str, name: str, what: str) -> None:
        # The first failure is reported; what follows is the same policy failing again.
        if path not in self.failed:
            self.failed[path] = self.news[path] = (name, what)

    @property
    def has_news(self) -> bool:
        """Whether a policy has failed that still decides."""
        return bool(self.news) or any(
            self.failed.get(path) != failed for path, failed in self.raised.items()
        )

    def look_at_folds(self, queues: Mapping[str, Queue]) -> None:
        """One that has raised while it was given a fact decides nothing any more."""
        for path, (name, what) in self.raised.items():
            if path in queues:
                # A failure while it was given a fact counts, whatever it had failed with before.
                self.failed.pop(path, None)
                self.fail(path, name, what)


class NodesDecider:
    """The policy of the nodes of a partition."""

    def __init__(self, name: str, policy: Any, deciders: Deciders) -> None:  # noqa: ANN401
        self._name, self._policy, self._deciders = name, policy, deciders
        self._watch = deciders.watch
        self._score: Any = getattr(policy, "score", None)

    def score(self, node: NodeSeen, shape: Resource) -> float:
        given, fault = self._watch(NODES, self._name, "score", self._score, node, shape)
        # Most give just that, and it needs no call of others to look at it.
        # `nan` compares with nothing: it would leave the order undefined.
        if type(given) is float and not isnan(given):
            return given
        number = None
        if not fault:
            number, fault = tried("score", score_of, given)
        if number is None:
            self._deciders.fail(NODES, self._name, fault)
            # All nodes are equal to it from here on; `replace_failed` puts the built-in order back.
            return 0.0
        return number

    def devices(self, node: NodeSeen, shape: Resource, free: Parts) -> Devices | None:
        chosen, fault = self._watch(
            NODES,
            self._name,
            "devices",
            lambda: devices_of(self._policy.devices(node, shape, free)),
        )
        if fault:
            self._deciders.fail(NODES, self._name, fault)
        return chosen


class Decider:
    """The policy of one queue."""

    def __init__(self, queue: Queue, policy: Any, deciders: Deciders) -> None:  # noqa: ANN401
        properties = queue.properties
        self._path, self._name, self._deciders = queue.path, policy_name(queue), deciders
        self.policy = policy
        built_in: Any = APPLICATION_ORDERS[properties.application_sort_policy]()
        self._kinds: dict[str, Kind] = {}
        """Of the keys that each of its methods gives: those of one have to compare."""
        self._watch = deciders.watch
        self._methods: dict[str, Callable[..., Any]] = {}
        self.rank: Callable[[Any], Key] = built_in.application_key
        """Of an application among those of its leaf."""
        of_queues: Any = QUEUE_ORDERS[properties.queue_sort_policy]()
        self.queue_rank: Callable[[Any], Key] = of_queues.queue_key
        """Of a queue among its siblings, if this is their parent."""
        self.reads: frozenset[str] = frozenset(getattr(built_in, "reads", ()))
        # Everything off until a policy says otherwise: hardly any queue has one.
        self.ranks_by_policy = self.moves = False
        self.is_fold = self.orders_asks = self.ranks_victims = False
        self.step_ns = 0
        """The time after which all keys may differ, though nothing has happened."""
        self.gate: Gate | None = None
        # Hardly any queue has one, and to look for methods costs more than all the rest.
        if policy is not None:
            self._read(policy)

    def _read(self, policy: Any) -> None:  # noqa: ANN401 - it has the methods it has
        """Take over what the policy decides: everything that it has a method for."""
        self._methods = methods_of(policy)
        if isinstance(policy, ApplicationOrder):
            self.rank, self.ranks_by_policy = self._application_rank, True
            self.reads = reads_of(policy)
            self.moves = bool(self.reads - {"used"})
            # More than what is used: such keys have to be looked at after other facts, too.
            self.step_ns = step_of(policy)
        if isinstance(policy, QueueOrder):
            self.queue_rank = self._queue_rank
        self.goes_by_state = self.moves and "state" in self.reads
        """All keys may be others whenever the policy was given a fact."""
        self.gate = policy if isinstance(policy, Gate) else None
        self.is_fold = isinstance(policy, Fold)
        self.orders_asks = isinstance(policy, AsksOrder)
        self.ranks_victims = isinstance(policy, VictimOrder)

    def order_of(self, app: Application, ask: Ask) -> AskOrder:
        if not self.orders_asks:
            return ask.order()
        key = self._checked("ask_key", job_of_ask(app, ask))
        keyed = KeyedOrder(-ask.spec.priority, key, ask.created_ns, ask.sequence)
        return cast(AskOrder, keyed)

    def _application_rank(self, app: ShownApplication) -> Key:
        """Ask once where the key reads nothing that changes."""
        if self.reads:
            # Of what waits alone: a key may divide by its size. It has no turn until something
            # waits again, and is keyed again then.
            return self._checked("application_key", app.seen) if app.waits else _LAST
        if app.ranked is None or app.ranked[0] is not self:
            app.ranked = self, self._checked("application_key", app.seen)
        return app.ranked[1]

    def _queue_rank(self, queue: Shown) -> Key:
        return self._checked("queue_key", queue.seen)

    def _checked(self, method: str, *subject: object) -> Key:
        """Return a key that compares with all others of this queue, whatever the policy gives."""
        key, fault = self._watch(self._path, self._name, method, self._methods[method], *subject)
        # Most keys are plain numbers, and it needs no call of others to look at one.
        is_plain = type(key) is int or (type(key) is float and not isnan(key))
        # Numbers compare with numbers: nothing more to check.
        if is_plain and self._kinds.get(method) == NUMBER:
            return (0, key)
        if not fault:
            key, fault = tried(method, key_of, key)
        if not fault:
            kind = kind_of(key)
            # All keys of one method have to compare, or the order would depend on who is compared
            # first.
            common = common_kind(self._kinds.get(method, kind), kind)
            if common is None:
                fault = f"{method} gives keys that do not compare: {shown(key, 100)}"
            else:
                self._kinds[method] = common
        if fault:
            self._deciders.fail(self._path, self._name, fault)
            # Behind all others, so that it stays sorted until the built-in order takes over.
            return _LAST
        return (0, key)

    def victim_rank(self, app: Application, victims: Sequence[Allocation], now_ns: int) -> Key:
        """Of what would go together, among all that an ask of this leaf may preempt."""
        return self._checked("victim_key", candidate_of(app, victims), now_ns)

    def ask_gate(self, gate: Gate, job: Job, pool: Pool) -> Hold | None:
        """Ask whether it may start; a gate that fails lets everybody."""
        answer, fault = self._deciders.watch(
            self._path, self._name, "may_start", lambda: hold_of(gate.may_start(job, pool))
        )
        if fault:
            self._deciders.fail(self._path, self._name, fault)
        return answer

    def gate_of_pass(self) -> Gate | None:
        """Return a gate for one pass, a copy that a fold may change freely; None if the fold fails.

        Only facts change the gate that is kept.
        """
        gate = self.gate
        # Without a fold a gate has no state that a pass could change.
        if gate is None or not self.is_fold:
            return gate
        copied, fault = self._deciders.watch(
            self._path, self._name, "copying it", lambda: deepcopy(gate)
        )
        if fault:
            self._deciders.fail(self._path, self._name, fault)
        return copied
