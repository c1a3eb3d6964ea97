"""An oracle of questions that are asked while a run goes on: each has one answer, and that is true.

Why an ask waits is judged on what the planner that answers knows, by single asks, allocations and
nodes. A decision of its own may be on its way, which no fact tells; what depends on that is left
alone then.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.machine import InvariantViolation, Send
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages import queries as q
from yunikorn_actors.messages.base import Delivery, Message, is_reply
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.reasons import Cause, Obstacle, Why
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.applications import SCHEDULABLE, Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import fits_in
from yunikorn_actors.values.tags import GPU

_QUESTIONS: Final = (
    q.StateDumpRequested, q.CountsRequested, q.ExplainRequested, q.RmDumpRequested,
    q.EventsRequested,
)  # fmt: skip
_SOUND: Final = frozenset({
    "Consistency of data", "Orphan allocation on node check", "Orphan allocation on app check",
})  # fmt: skip
"""Checks of health that hold at each moment, whatever resource managers report."""


class Questions(Oracle):
    def __init__(self) -> None:
        self._open: dict[str, Message] = {}
        """Questions without an answer, by the address for it."""
        self._answered: dict[str, None] = {}

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        message, mailbox = delivery.message, delivery.mailbox
        faults: Iterable[str] = ()
        if isinstance(message, CoreRestored):
            self._open.clear()
        elif is_reply(mailbox):
            faults = self._reply(mailbox, message)
        elif isinstance(message, _QUESTIONS):
            if message.reply_to not in self._answered:
                self._open[message.reply_to] = message
            if delivery is simulator.last:
                faults = _answers(simulator, delivery)
        found = tuple(faults)
        if found:
            where = f"after {type(message).__name__} to {mailbox}"
            raise InvariantViolation(f"{where}: " + "; ".join(found))

    def _reply(self, address: str, answer: Message) -> Iterator[str]:
        question = self._open.pop(address, None)
        if question is not None:
            self._answered[address] = None
        elif address in self._answered:
            yield f"a question is answered a second time, with {type(answer).__name__}"

    def at_rest(self, _: World) -> None:
        if self._open:
            names = sorted(type(it).__name__ for it in self._open.values())
            raise InvariantViolation(f"at rest: G25: questions have no answer: {', '.join(names)}")


def _answers(simulator: Simulator, delivery: Delivery) -> Iterator[str]:
    machine = simulator.machines.get(delivery.mailbox)
    for effect in simulator.effects:
        answer = effect.message if isinstance(effect, Send) else None
        if isinstance(answer, q.Explanation):
            planner: Planner | None = None
            if isinstance(machine, Scheduler):
                planner = machine.planner
            elif isinstance(machine, Context) and answer.partition in machine.partitions:
                planner = machine.partitions[answer.partition].planner
            question = delivery.message
            if planner is not None and isinstance(question, q.ExplainRequested):
                yield from wrong_explanation(planner, question, answer)
        elif isinstance(answer, q.StateDump):
            assert isinstance(machine, Context)
            yield from _wrong_dump(machine, answer)
        elif isinstance(answer, q.EventsFound):
            assert isinstance(machine, EventPublisher)
            assert isinstance(delivery.message, q.EventsRequested)
            yield from _wrong_events(delivery.message, answer)


def _wrong_dump(context: Context, answer: q.StateDump) -> Iterator[str]:
    shown = answer.state["partitions"]
    if sorted(shown) != sorted(context.partitions):
        yield f"a dump has the partitions {sorted(shown)}"
        return
    for check in health_of(answer.state).checks:
        if not check.succeeded and check.name in _SOUND:
            yield f"a dump is unhealthy: {check.name}: {check.diagnosis}"


def _wrong_events(question: q.EventsRequested, answer: q.EventsFound) -> Iterator[str]:
    if len(answer.records) > question.count:
        yield f"{len(answer.records)} event records answer a question for {question.count}"
    first = max(question.first_id, answer.lowest_id)
    last = min(answer.highest_id, first + question.count - 1)
    wanted = max(0, last - first + 1)
    if answer.records and len(answer.records) != wanted:
        yield f"{len(answer.records)} event records come from {first} on, expected {wanted}"


# -- why asks wait


def wrong_explanation(
    planner: Planner, question: q.ExplainRequested, answer: q.Explanation
) -> Iterator[str]:
    state = planner.state
    if answer.as_of != state.revision or answer.reply_to != question.reply_to:
        yield f"an explanation is of {answer.as_of} for {answer.reply_to}"
    if question.waiting is not None:
        return
    waiting = [
        (app.id, ask.spec.key)
        for app in state.applications.values()
        for ask in app.asks.values()
        if ask.remaining or ask.parked
    ]
    if not question.application_id:
        found = [(it.application_id, it.key) for it in answer.waiting]
        if answer.is_complete and sorted(found) != sorted(waiting):
            yield f"it explains {sorted(found)}, and {sorted(waiting)} wait"
        if answer.total != len(waiting) or sum(answer.causes.values()) != len(waiting):
            yield f"it counts {answer.total} by {answer.causes}, and {len(waiting)} wait"
    for why in answer.waiting:
        if why.obstacle.cause is Cause.REJECTED:
            # It was never taken, which Context remembers, and no planner.
            continue
        for fault in _wrong_why(planner, state, why):
            yield f"why {why.key} of {why.application_id}: {fault}"


def _wrong_why(planner: Planner, state: PartitionState, why: Why) -> Iterator[str]:
    app = state.applications.get(why.application_id)
    ask = None if app is None else app.asks.get(why.key)
    if app is None or ask is None:
        yield "there is no such ask"
        return
    placed = Counter(app.allocations[uuid].node_id for uuid in ask.uuids)
    kept = sorted(
        node.id for node in state.nodes.values() if (app.id, why.key) in node.reservations
    )
    expected = {
        "repeats": ask.remaining + ask.parked,
        "placed": dict(placed),
        "queue": app.queue.path,
        "since_ns": ask.created_ns,
        "reserved": kept,
    }
    for name, value in expected.items():
        found = getattr(why, name)
        found = sorted(found) if name == "reserved" else found
        if found != value:
            yield f"{name} is {found}, expected {value}"
    if (why.obstacle.cause is Cause.PLACED) is bool(ask.remaining or ask.parked):
        yield f"it is {why.obstacle.cause}, and {ask.remaining + ask.parked} wait"
    for obstacle in why.obstacles:
        if not _holds(planner, state, app, ask, obstacle):
            yield f"{obstacle.cause} does not hold: {obstacle.text}"
        if obstacle.cause in _BOUNDS and not planner.unresolved:
            yield from _wrong_bound(state, app, obstacle)


def _holds(
    planner: Planner, state: PartitionState, app: Application, ask: Ask, obstacle: Obstacle
) -> bool:
    match obstacle.cause:
        case Cause.RM_PAUSED:
            return state.decides_nothing
        case Cause.APP_STATE:
            return app.state not in SCHEDULABLE
        case Cause.PARKED:
            return bool(ask.parked)
        case Cause.GANG_HELD:
            return ask.spec.placeholder and not app.is_admitted
        case Cause.BACKING_OFF:
            return any(resting.app is app for resting in planner.backoff.resting)
        case Cause.POLICY:
            return bool(app.queue.properties.application_policy)
        case Cause.NO_NODE:
            return bool(planner.unresolved) or not any(
                node.is_schedulable
                and not node.reservations
                and ask.spec.may_run_on(node.id)
                and fits_in(ask.spec.resource, node.available)
                and GPU not in ask.spec.resource
                for node in state.nodes.values()
            )
        case _:
            return True


_BOUNDS: Final = frozenset({Cause.QUEUE_LIMIT, Cause.CLUSTER_FULL})


def _wrong_bound(state: PartitionState, app: Application, obstacle: Obstacle) -> Iterator[str]:
    queue: Queue | None = state.queues.get(obstacle.where or "root")
    if queue is None or queue not in app.queue.lineage:
        yield f"{obstacle.where} is no queue of it"
        return
    used = _used_in(state, queue)
    most: Mapping[str, int] = state.capacity if queue.parent is None else queue.spec.max or {}
    for kind, amount in obstacle.maximum.items():
        if most.get(kind, 0) != amount:
            yield f"the maximum of {obstacle.where} is {amount} of {kind}, expected {most}"
    for kind, amount in obstacle.used.items():
        if used[kind] != amount:
            yield f"{amount} of {kind} is used in {obstacle.where}, expected {used[kind]}"


def _used_in(state: PartitionState, queue: Queue) -> Counter[str]:
    total: Counter[str] = Counter()
    for app in state.applications.values():
        if queue in app.queue.lineage:
            for item in app.allocations.values():
                total.update(item.resource)
    return total
