"""An oracle of the answers about waiting asks: each answer agrees with the others.

Programs, pages and people ask in different ways why work waits: about one ask, about all, counted
by cause, added up by queue and size, and about who would go for it. Each way is worked out apart.
At rest all of them are asked, and have to tell the same; and what they name has to be what single
asks, allocations and nodes make.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import (
    Final,
)

from msgspec.structs import replace

from yunikorn_actors.checks.decision_rules import overfills
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.lab.oracles.question_oracle import wrong_explanation
from yunikorn_actors.lab.oracles.replanning_oracle import is_still_to_come, planner_at_work
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.planning_loop import explanation
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.queries import ExplainRequested, Explanation
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.reasons import (
    Cause,
    Preempting,
    WaitingAnswer,
    WaitingQuestion,
    Why,
)
from yunikorn_actors.state.partition import PartitionState

_ONE_IN: Final = 3
"""So many rests are passed for one that is judged."""
_ASKS_MAX: Final = 30
"""Where more asks wait, they are alike, and more of them show nothing new."""
_VICTIMS_ASKED_MAX: Final = 4
_PARTS_MAX: Final = 50

_Sums = Counter[tuple[str, tuple[tuple[str, int], ...]]]


class Waiting(Oracle):
    receivers: Final = frozenset[str]()

    def __init__(self, one_in: int = _ONE_IN) -> None:
        self._one_in = one_in
        self._rests = 0

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if not simulator.is_at_rest:
            return
        self._rests += 1
        if self._rests % self._one_in:
            return
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        for partition in context.partitions.values():
            planner = planner_at_work(simulator, partition)
            if planner is None or is_still_to_come(simulator, partition):
                continue
            found = tuple(_wrong(planner, simulator.now_ns))
            if found:
                where = f"after {type(delivery.message).__name__} to {delivery.mailbox}, at rest"
                raise InvariantViolation(f"{where}: {'; '.join(found)}")


def _wrong(planner: Planner, now_ns: int) -> Iterator[str]:
    def ask(question: ExplainRequested) -> Explanation:
        return explanation(planner, 0, question, now_ns)

    state = planner.state
    waiting = [it for app in state.applications.values() for it in app.asks.values() if it.is_open]
    if not waiting or len(waiting) > _ASKS_MAX:
        return
    about_all = _request(state)
    whole = ask(about_all)
    yield from wrong_explanation(planner, about_all, whole)
    yield from _wrong_places(state, whole.waiting)
    yield from _wrong_report(whole.waiting)
    yield from _wrong_counts(ask, about_all, whole)
    yield from _wrong_sums(ask, about_all, state)
    if not planner.unresolved:
        for why in whole.waiting:
            yield from _wrong_cause(state, why)
    for why in whole.waiting[:_VICTIMS_ASKED_MAX]:
        one = replace(about_all, application_id=why.application_id, key=why.key)
        (same,) = ask(replace(one, in_units=False)).waiting
        if same.obstacle.cause is not why.obstacle.cause or same.position != why.position:
            yield f"{why.key}: asked alone it is {same.obstacle.cause} at {same.position}"
        (full,) = ask(replace(one, with_victims=True)).waiting
        if full.preempting is not None:
            yield from _wrong_victims(state, full, full.preempting)


def _request(state: PartitionState) -> ExplainRequested:
    return ExplainRequested(partition=state.name, application_id="", key="", reply_to="oracle")


# -- the answers about each


def _wrong_places(state: PartitionState, waiting: tuple[Why, ...]) -> Iterator[str]:
    """Those that wait in one queue stand in a line, each at a place of its own."""
    lines: dict[str, list[Why]] = {}
    for why in waiting:
        if why.position:
            lines.setdefault(why.queue, []).append(why)
    for path, line in lines.items():
        places = sorted(why.position for why in line)
        most = max(why.waiting for why in line)
        if len(set(places)) < len(places) or places[-1] > most:
            yield f"those that wait in {path} are at {places} of {most}"
        open_there = sum(
            bool(ask.remaining)
            for app in state.applications.values()
            if app.queue.path == path
            for ask in app.asks.values()
        )
        if most > open_there:
            yield f"{most} wait in {path}, expected {open_there} at most"


def _wrong_report(waiting: tuple[Why, ...]) -> Iterator[str]:
    """The report says what the fields say."""
    for why in waiting:
        report = why.report()
        told = (why.key, why.application_id, why.obstacle.text, *(it.text for it in why.behind))
        missing = [text for text in told if text not in report]
        if missing or why.reason not in str(why):
            yield f"the report of {why.key} does not tell {missing}"


def _wrong_cause(state: PartitionState, why: Why) -> Iterator[str]:
    """A quota is named where it refuses, and not where it has room."""
    app = state.applications[why.application_id]
    ask = app.asks[why.key]
    causes = {it.cause for it in why.obstacles}
    if not ask.remaining or causes & {Cause.ON_ITS_WAY, Cause.PARKED, Cause.RM_PAUSED}:
        return
    if any(any(level.earmarked.values()) for level in app.queue.lineage):
        return
    broken = [line for line in overfills(state, app, ask) if "applications" not in line]
    broken += [
        f"no node has any {kind}"
        for kind, n in ask.spec.resource.items()
        if n > 0 and kind not in state.capacity
    ]
    if Cause.NEXT in causes and broken:
        yield f"{why.key} is to be placed next, and {'; '.join(broken)}"
    refusing = causes & {Cause.QUEUE_LIMIT, Cause.CLUSTER_FULL, Cause.USER_LIMIT}
    if refusing and not broken:
        yield f"{why.key} waits for {sorted(refusing)}, and each of them has room"


def _wrong_victims(state: PartitionState, why: Why, its: Preempting) -> Iterator[str]:
    """Each victim runs and is named once; all other work that runs has a reason why it stays."""
    allocated = [it for app in state.applications.values() for it in app.allocations.values()]
    running = {(it.spec.application_id, it.spec.key): it for it in allocated}
    named = [(it.application_id, it.key) for it in its.goes]
    total = len(allocated)
    for one in its.goes:
        item = running.get((one.application_id, one.key))
        if item is None:
            yield f"{one.key} goes for {why.key}, and does not run"
        elif one.priority != item.spec.priority or one.queue != (
            state.applications[one.application_id].queue.path
        ):
            yield f"{one.key} goes for {why.key}, and is described as another"
    if its.cost is not None and its.cost.allocations != len(named):
        yield f"{len(named)} go for {why.key}, and it costs {its.cost.allocations}"
    if its.against and sum(its.against.values()) + len(named) != total:
        yield f"of {total} {named} go for {why.key}, and {its.against} stays"
    whom = (why.application_id, _asking(state, why))
    going = sorted(
        item.spec.key
        for item in allocated
        if item.beneficiary is not None
        and (item.beneficiary.application_id, item.beneficiary.key) == whom
    )
    if sorted(set(its.victims)) != sorted(set(going)) and its.victims:
        yield f"{its.victims} go for {why.key}, expected {going}"
    if its.victims and sorted(it.key for it in its.goes) != going:
        yield f"{named} are named for {why.key}, and {going} go"


def _asking(state: PartitionState, why: Why) -> str:
    """Return the key for which work goes: of a member behind placeholders the next of these."""
    app = state.applications[why.application_id]
    waiting = [it.spec.key for it in app.waiting_asks() if it.spec.placeholder]
    return waiting[0] if waiting and not app.asks[why.key].spec.placeholder else why.key


# -- what is counted


def _wrong_counts(
    ask: Callable[[ExplainRequested], Explanation], about_all: ExplainRequested, whole: Explanation
) -> Iterator[str]:
    question = WaitingQuestion(by_cause=True, listed=_ASKS_MAX, explained=2, looks=1_000)
    parts = list(_parts(ask, about_all, question))
    causes: Counter[str] = Counter()
    for part in parts:
        causes.update(part.causes)
    told = {(it.application_id, it.key): it.obstacle.cause for it in whole.waiting}
    listed = {(it.application_id, it.key): it.cause for part in parts for it in part.asks}
    if listed.keys() != told.keys() or causes != Counter(listed.values()):
        yield f"counted by cause {dict(causes)} wait, listed {listed}, explained {whole.causes}"
    for one, cause in listed.items():
        # Nodes are looked at for what is explained alone: without that nothing is seen to refuse,
        # or a gate behind them, where somebody before it has ended the pass for all.
        is_behind = cause is Cause.POLICY and told.get(one) is Cause.NO_NODE
        if told.get(one) is not cause and cause is not Cause.NEXT and not is_behind:
            yield f"{one} is listed as {cause}, and explained as {told.get(one)}"
    for part in parts:
        for why in part.explained:
            if told.get((why.application_id, why.key)) is not why.obstacle.cause:
                yield f"{why.key} is explained in a list as {why.obstacle.cause}"
    some = next(iter(whole.waiting))
    for few, expected in (
        (WaitingQuestion(cause=some.obstacle.cause), causes[some.obstacle.cause]),
        (WaitingQuestion(), whole.total),
        (
            WaitingQuestion(text=some.key.upper()),
            sum(some.key.lower() in it.key.lower() for it in whole.waiting),
        ),
    ):
        total = sum(part.total for part in _parts(ask, about_all, few))
        if total < expected or (not few.text and total != expected):
            yield f"{total} answer {few}, expected {expected}"


def _wrong_sums(
    ask: Callable[[ExplainRequested], Explanation],
    about_all: ExplainRequested,
    state: PartitionState,
) -> Iterator[str]:
    expected: _Sums = Counter()
    for app in state.applications.values():
        for it in app.asks.values():
            size = tuple(sorted((kind, n) for kind, n in it.spec.resource.items() if n))
            expected[app.queue.path, size] += it.remaining
    found: _Sums = Counter()
    for part in _parts(ask, about_all, WaitingQuestion(sums=True)):
        for sum_ in part.sums:
            size = tuple(sorted((kind, n) for kind, n in sum_.size.items() if n))
            found[sum_.queue, size] += sum_.count
    if +found != +expected:
        yield f"the sums of what waits are {dict(+found)}, expected {dict(+expected)}"


def _parts(
    ask: Callable[[ExplainRequested], Explanation],
    about_all: ExplainRequested,
    question: WaitingQuestion,
) -> Iterator[WaitingAnswer]:
    """Ask for one part after the other, as programs do."""
    for _ in range(_PARTS_MAX):
        answer = ask(replace(about_all, waiting=question)).counted
        assert answer is not None
        yield answer
        if answer.is_all:
            return
        question = replace(question, serial=answer.serial, place=answer.place)
    raise InvariantViolation(f"{_PARTS_MAX} parts do not answer {question}")
