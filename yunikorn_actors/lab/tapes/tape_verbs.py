"""What an entry of a tape does to the world, apart from holding a message: one row for each verb.

A resource manager that misbehaves makes ordinary requests, as steps that the case does not have.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from yunikorn_actors.checks.notices import Placed
from yunikorn_actors.drivers.simulator.notice_checks import RecordChecker
from yunikorn_actors.lab.case import EVENTS_MAX, CaseStep
from yunikorn_actors.lab.harness import World
from yunikorn_actors.lab.operator_acts import operate
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.rogue_scheduler import propose
from yunikorn_actors.lab.surfaces.journal_files import Ended
from yunikorn_actors.lab.tapes.tape import Verb
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY, Message
from yunikorn_actors.messages.queries import (
    CountsRequested,
    EventsRequested,
    ExplainRequested,
    RmDumpRequested,
    StateDumpRequested,
)
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.performer import DEFAULT_RM
from yunikorn_actors.values.ids import partition_name

_S = TypeVar("_S", bound=w.Step)
_M = TypeVar("_M", bound=w.ManagerStep)
_STAY_AWAY: Final = 4
"""One resource manager in so many does not come back when the core does."""
_ASKS_FIRST: Final = 3
"""One in so many asks before it reports its nodes."""
_EVENTS_READ: Final = 5
_ASKED_AGAIN: Final = 4
"""So many of the last asks are made again after a restart."""

Act = Callable[[World, str], bool]
"""Returns whether anything came of it."""


def last_of(world: World, kind: type[_S], id_: str) -> _S | None:
    """Return the last step of this kind about a node, an application or a resource manager."""
    found = [step for step in of_kind(world, kind) if id_ in ids_of(step)]
    return found[-1] if found else None


def of_kind(world: World, kind: type[_S]) -> Iterator[_S]:
    return (step.step for step in world.steps if isinstance(step.step, kind))


def ids_of(step: w.Step) -> tuple[str, ...]:
    match step:
        case w.CreateNode():
            return step.names()
        case w.AddApp():
            return (step.id,)
        case w.Register() | w.Config():
            return (step.rm,)
        case _:
            return ()


def _perform(world: World, entry: str, *steps: w.Step) -> None:
    for step in steps:
        written = w.WrittenStep(number=0, line=0, name=entry, step=step)
        world.perform(CaseStep(entry, written), entry)


# -- nodes


def _node(what: str) -> str:
    return what.removeprefix("node ")


def _about_node(verb: str, make: Callable[[Any, str], tuple[w.Step, ...]]) -> Act:
    """Do something to a node that the case creates."""

    def act(world: World, what: str) -> bool:
        id_ = _node(what)
        created = last_of(world, w.CreateNode, id_)
        if created is None:
            return False
        _perform(world, f"{verb} {what}", *make(created, id_))
        return True

    return act


def _flap(created: w.CreateNode, id_: str) -> tuple[w.Step, ...]:
    """Remove it and bring it back at once, empty."""
    gone = w.RemoveNode(id=id_, rm=created.rm, partition=created.partition)
    return (gone, replace(created, id=id_, ids=(), count=None, allocations=()))


def _shrink(created: w.CreateNode, id_: str) -> tuple[w.Step, ...]:
    """Halve it; work that runs on it stays."""
    half = {kind: amount // 2 for kind, amount in (created.capacity or {}).items()}
    return (w.UpdateNode(id=id_, capacity=half, rm=created.rm, partition=created.partition),)


def _drain(created: w.CreateNode, id_: str) -> tuple[w.Step, ...]:
    return (w.DrainNode(id=id_, rm=created.rm, partition=created.partition),)


def _open(created: w.CreateNode, id_: str) -> tuple[w.Step, ...]:
    return (w.UndrainNode(id=id_, rm=created.rm, partition=created.partition),)


# -- applications, queues, registrations


def _bounce(world: World, what: str) -> bool:
    """Remove an application and add it again at once, under its name."""
    added = last_of(world, w.AddApp, what.removeprefix("application "))
    if added is None:
        return False
    gone = w.RemoveApp(id=added.id, rm=added.rm, partition=added.partition)
    _perform(world, f"bounce {what}", gone, added)
    return True


def _is_known(world: World, rm_id: str) -> bool:
    """Whether a step registers this resource manager."""
    return any((step.rm or DEFAULT_RM) == rm_id for step in of_kind(world, w.Register))


def _reload(world: World, what: str) -> bool:
    """Send the configuration once more that is in force."""
    rm_id = what.removeprefix("queues of ")
    if not _is_known(world, rm_id):
        return False
    queues = world.queues_of(rm_id)
    _perform(world, f"reload {what}", w.Config(rm=rm_id, queues=queues))
    return True


def _register(world: World, what: str) -> bool:
    """Register again: the core forgets everything of the former registration."""
    rm_id = what.removesuffix(" again")
    if not _is_known(world, rm_id):
        return False
    _perform(world, f"register {what}", w.Register(rm=rm_id, config=world.queues_of(rm_id)))
    return True


def _lose(world: World, what: str) -> bool:
    """Its connection breaks, whatever is under way; if it is not registered nothing comes of it."""
    rm_id = what.removeprefix("manager ")
    if not _is_known(world, rm_id):
        return False
    _perform(world, f"lose {what}", w.LoseRm(id=rm_id))
    return True


def _restart(world: World, what: str) -> bool:
    """The core ends, another goes on with its journal; managers register with it and report."""
    ended, records = world.checker(Ended), world.checker(RecordChecker)
    if ended is None or records is None:
        return False
    draw = Draw(int(what.removeprefix("core by ")))
    running = records.running()
    world.begin_again(ended.truth(draw))
    for rm_id, placed in running.items():
        # One that does not come at once may come by a step of the case.
        if not draw.once_in(_STAY_AWAY):
            again = w.Register(rm=rm_id, config=world.queues_of(rm_id))
            asks, nodes = _asks_again(world, rm_id), _report(world, placed, rm_id)
            # What was asked for and placed is told of by its node, which may come behind the ask.
            order = (asks, nodes) if draw.once_in(_ASKS_FIRST) else (nodes, asks)
            steps = chain(_applications_again(world, rm_id), *order)
            _perform(world, f"restart {what}", again, *steps)
    return True


def _own(world: World, rm_id: str, kind: type[_M]) -> Iterator[_M]:
    done = (it.step for it in world.done() if isinstance(it.step, kind))
    return (it for it in done if (it.rm or DEFAULT_RM) == rm_id)


def _applications_again(world: World, rm_id: str) -> list[w.AddApp]:
    return [*{it.id: it for it in _own(world, rm_id, w.AddApp)}.values()]


def _asks_again(world: World, rm_id: str) -> list[w.AddAsk]:
    return [*_own(world, rm_id, w.AddAsk)][-_ASKED_AGAIN:]


def _report(world: World, placed: list[Placed], rm_id: str) -> Iterator[w.Step]:
    """Yield the nodes of a resource manager with the work that it knows to run there."""
    nodes = {id_: it for it in _own(world, rm_id, w.CreateNode) for id_ in it.names()}
    for id_, node in nodes.items():
        partition = partition_name(rm_id, node.partition)
        work = tuple(
            w.Running(
                key=it.key, app=it.application_id, resource=it.resource, uuid=it.uuid,
                task_group=it.task_group, placeholder=it.placeholder, priority=it.priority,
                tags=it.tags,
            )
            for it in placed
            if it.node_id == id_ and partition_name(rm_id, it.partition) == partition
        )  # fmt: skip
        yield replace(node, id=id_, ids=(), count=None, allocations=work)


def _freeze(world: World, what: str) -> bool:
    """Hold the mail of a machine: for so many events, or until it thaws."""
    mailbox, _, events = what.partition(" for ")
    world.frozen[mailbox] = int(events or EVENTS_MAX)
    return mailbox in world.mailboxes()


def _thaw(world: World, mailbox: str) -> bool:
    return world.frozen.pop(mailbox, None) is not None


def _join(world: World, message: str) -> bool:
    world.simulator.joining[message] = None
    return True


def _fail(world: World, what: str) -> bool:
    when, _, message = what.partition(" ")
    world.simulator.failing[message] = when == "after"
    return True


def _query(world: World, what: str) -> bool:
    """Ask something, and do not wait for the answer."""
    one, _, other = what.rpartition(" ")
    asked: dict[str, tuple[str, Callable[[str], Message]]] = {
        "dump": (CONTEXT, lambda to: StateDumpRequested(reply_to=to)),
        "counts": (CONTEXT, lambda to: CountsRequested(reply_to=to)),
        "events from": (
            EVENT_PUBLISHER,
            lambda to: EventsRequested(first_id=int(other), count=_EVENTS_READ, reply_to=to),
        ),
        "manager": (RM_PROXY, lambda to: RmDumpRequested(rm_id=other, reply_to=to)),
        "asks that": (CONTEXT, lambda to: _why("", "", to)),
    }
    key = one.removesuffix(" of")
    address, make = asked.get(one or what) or (CONTEXT, lambda to: _why(other, key, to))
    world.simulator.question(address, make, f"query {what}")
    return True


def _why(application_id: str, key: str, reply_to: str) -> ExplainRequested:
    return ExplainRequested(partition="", application_id=application_id, key=key, reply_to=reply_to)


ACTS: Final[dict[Verb, Act]] = {
    "do": lambda world, what: world.do(what),
    "repeat": lambda world, what: world.again(what),
    "fire": World.fire,
    "confirm": World.confirm_now,
    "flap": _about_node("flap", _flap),
    "drain": _about_node("drain", _drain),
    "open": _about_node("open", _open),
    "shrink": _about_node("shrink", _shrink),
    "bounce": _bounce,
    "reload": _reload,
    "register": _register,
    "restart": _restart,
    "lose": _lose,
    "freeze": _freeze,
    "thaw": _thaw,
    "join": _join,
    "fail": _fail,
    "propose": propose,
    "query": _query,
    "operate": operate,
}
