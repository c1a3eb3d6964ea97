"""All that a core can be asked at rest, and what its operators may do then."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

from yunikorn_actors.config import parse_config
from yunikorn_actors.config.diff import config_changes
from yunikorn_actors.config.policy_names import PolicyNames
from yunikorn_actors.errors import CoreError, InvalidRequest
from yunikorn_actors.lab.harness import LabSimulator, World
from yunikorn_actors.planning.reasons import Cause, WaitingQuestion, Why
from yunikorn_actors.scenario.step_structs import Config, Register
from yunikorn_actors.si import (
    ActionFromRM,
    EventRecord,
    NodeInfo,
    NodeRequest,
    Resource,
    ResourceManagerCallback,
)
from yunikorn_actors.state.partition import PartitionState

Answer = tuple[str, Any]
_ASKS_MAX: Final = 5
"""So many asks of a partition are explained each."""
_RANGES: Final = ((0, 5), (1, 10_000), (7, 3), (10_000, 5))
_QUESTIONS: Final = (
    WaitingQuestion(by_cause=True, listed=3),
    WaitingQuestion(text="a", listed=5),
    WaitingQuestion(text="k1", listed=5),
    WaitingQuestion(cause=Cause.QUEUE_LIMIT, listed=2),
    WaitingQuestion(cause=Cause.NO_NODE, listed=2),
)
_HISTORIES: Final = (2, 0, 1_000, -1)
"""So many records each stream is to begin with; a resource manager may allow one stream only."""
_WHO: Final = "ann"
_BROKEN: Final = "partitions: [{name: default, queues: [{name: other}]}]"


class _Reader(ResourceManagerCallback):
    """Reads event records along."""

    def __init__(self) -> None:
        self.received: list[EventRecord] = []

    def send_event(self, events: tuple[EventRecord, ...]) -> None:
        self.received += events


def tried(ask: Callable[..., Any], *arguments: object, **words: object) -> Any:  # noqa: ANN401
    """Return the answer, or the words of the refusal."""
    try:
        return ask(*arguments, **words)
    except (CoreError, InvalidRequest) as error:
        return repr(error)


def inquire(world: World) -> Iterator[Answer]:
    """Ask everything once; nothing is changed by it."""
    core = world.simulator
    yield "how much was counted", core.questions.counts()
    for name, dumped in core.state_dump().items():
        if name == "partitions":
            for partition, state in dumped.items():
                yield from ((f"the dump of {partition}, {it}", state[it]) for it in state)
        else:
            yield f"the dump, {name}", dumped
    yield "what resource managers say of themselves", core.questions.diagnostics()
    for first, count in _RANGES:
        yield f"{count} event records from {first} on", tried(core.events, first, count)
    for name, it in tuple(world.context.partitions.items()):
        yield from _of_partition(core, name, it.state)


def _of_partition(core: LabSimulator, name: str, state: PartitionState) -> Iterator[Answer]:
    asks = [(app.id, key) for app in state.applications.values() for key in app.asks]
    for app, key in (*asks[:_ASKS_MAX], ("nobody", "nothing")):
        why = tried(core.explain, app, key, partition=name)
        yield f"why {key} of {app} waits", why
        if isinstance(why, Why):
            yield f"why {key} of {app} waits, in words", why.report()
    yield f"what waits in {name}", core.questions.waiting_asks(name)
    yield f"what waits in {name}, added up", tried(core.waiting, partition=name)
    yield f"when it starts in {name}", tried(core.expected, partition=name)
    for question in _QUESTIONS:
        yield f"asks of {name} by {question}", core.questions.count_waiting(name, question)


def operate(world: World) -> Iterator[Answer]:
    """Do what an administrator may do, each act twice: the second time it is refused."""
    core = world.simulator
    readers = [_Reader() for _ in _HISTORIES]
    for reader, history in zip(readers, _HISTORIES, strict=True):
        yield (
            f"a stream with {history} records from before",
            tried(core.followers.open_stream, reader, history),
        )
    for name, it in tuple(world.context.partitions.items()):
        for node in (*tuple(it.state.nodes)[:2], "nowhere"):
            for drained in (True, True, False, False):
                what = f"drained={drained} for {node} of {name}"
                yield what, tried(core.operator.set_drained, name, node, _WHO, drained=drained)
        yield f"unregister {it.rm_id}", tried(core.operator.unregister_lost, it.rm_id, _WHO)
    texts = _configurations(world)
    names = core.topology.policies.names
    for one, other in pairwise(texts):
        yield "how configurations differ", tried(_differences, one, other, names)
    for text in (*texts[-1:], _BROKEN, *texts[:1]):
        yield "an administrator's configuration", tried(core.administer, text, _WHO)
    core.settle()
    yield "what the streams got", [it.received for it in readers]


def leave(world: World) -> Iterator[Answer]:
    """Have each resource manager leave, behind a node that is refused; say what stays of it."""
    core = world.simulator
    negative = NodeInfo(
        node_id="refused",
        action=ActionFromRM.CREATE,
        schedulable_resource=Resource.of({"vcore": -1}),
    )
    for rm_id in sorted({it.rm_id for it in world.context.partitions.values()}):
        request = NodeRequest(rm_id=rm_id, nodes=(negative,))
        yield f"a node of {rm_id} that is refused", tried(core.update_node, request)
        core.settle()
        yield "how much is counted with it", core.questions.counts()
        yield f"{rm_id} leaves", tried(core.unregister_resource_manager, rm_id)
        core.settle()
        yield f"how much is counted without {rm_id}", core.questions.counts()


def _differences(one: str, other: str, names: PolicyNames) -> tuple[Any, ...]:
    return tuple(config_changes(parse_config(one, names), parse_config(other, names)))


def _configurations(world: World) -> list[str]:
    """Return all that resource managers have sent, each once."""
    steps = (it.step for it in world.done())
    sent = (
        step.queues if isinstance(step, Config) else step.config
        for step in steps
        if isinstance(step, Config | Register)
    )
    return [*dict.fromkeys((world.case.scenario.queues, *(it for it in sent if it)))]
