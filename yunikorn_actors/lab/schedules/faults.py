"""Faults: what goes wrong outside of the core, and in machines that can be replaced.

Each is one entry of a tape. A fault of a resource manager is made of ordinary requests, so the core
must bear it; what a scenario expects does not hold any more then, only what the oracles say.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from yunikorn_actors.drivers.simulator.choosers import Channel
from yunikorn_actors.lab.harness import Schedule, World
from yunikorn_actors.lab.operator_acts import drawn_act
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.rogue_scheduler import offer
from yunikorn_actors.lab.tapes.tape import Entry
from yunikorn_actors.lab.tapes.tape_names import mailbox_name
from yunikorn_actors.lab.tapes.tape_verbs import ids_of, of_kind
from yunikorn_actors.machines.machine import Joining, Replaceable
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.performer import DEFAULT_RM
from yunikorn_actors.state.termination import ASKED_BACK

_FREEZE_MAX: Final = 30
"""The longest time that the mail of a machine is held, in events."""
_SLOW_MAX: Final = 150
"""The same for the callback of a resource manager."""
_EVENTS: Final = 40
"""A number of the event records that there may be by then."""
_ASKED: Final = 6
"""One of the last asks is asked about."""
_QUERIES_MAX: Final = 10
_ACTS_MAX: Final = 15
_RESTARTS: Final = 1_000_000
"""So many ways there are in which the files of a core that ends may be left."""
_TYPES: Final = ("STOPPED_BY_RM", *(type_.name for type_ in sorted(ASKED_BACK)))

RESTART: Final = "restart"
QUERY: Final = "query"
OPERATE: Final = "operate"
_BESIDE: Final = {RESTART, QUERY, OPERATE}
"""What has moments of its own in a run."""

Offer = Callable[[World, Draw], Entry | None]
"""Draws a fault that is possible now."""


def _one(draw: Draw, verb: str, whats: Iterable[str]) -> Entry | None:
    choices = tuple(whats)
    return Entry(verb, draw.one_of(choices)) if choices else None  # type: ignore[arg-type]


def _nodes(world: World) -> Iterable[str]:
    done = (step.step for step in world.done() if isinstance(step.step, w.CreateNode))
    return dict.fromkeys(f"node {id_}" for step in done for id_ in ids_of(step))


def _applications(world: World) -> Iterable[str]:
    done = (step.step for step in world.done() if isinstance(step.step, w.AddApp))
    return dict.fromkeys(f"application {step.id}" for step in done)


def _managers(world: World) -> tuple[str, ...]:
    named = (step.rm or DEFAULT_RM for step in of_kind(world, w.Register))
    return tuple(dict.fromkeys(named))


def _repeat(world: World, draw: Draw) -> Entry | None:
    once = (w.Register, w.Config, w.Advance)
    return _one(
        draw,
        "repeat",
        (step.name for step in world.done() if not isinstance(step.step, once)),
    )


def _drain(world: World, draw: Draw) -> Entry | None:
    return _one(draw, "drain" if draw.chance(0.6) else "open", _nodes(world))


def _fire(world: World, draw: Draw) -> Entry | None:
    return _one(draw, "fire", (*world.timers(), *world.simulator.cancelled))


def _freeze(world: World, draw: Draw) -> Entry | None:
    return _one(
        draw,
        "freeze",
        (
            f"{mailbox_name(address)} for {1 + draw.number(_FREEZE_MAX)}"
            for address in world.simulator.machines
        ),
    )


def _slow(world: World, draw: Draw) -> Entry | None:
    callbacks = map(mailbox_name, world.simulator.callbacks)
    return _one(draw, "freeze", (f"{it} for {1 + draw.number(_SLOW_MAX)}" for it in callbacks))


def _fail(world: World, draw: Draw) -> Entry | None:
    machines = world.simulator.machines
    under_way = (
        world.name_of(queue[0][0])
        for channel, queue in world.channels.items()
        if isinstance(machines.get(channel[1]), Replaceable)
    )
    when = "at" if draw.chance(0.5) else "after"
    return _one(draw, "fail", (f"{when} {name}" for name in under_way))


def _joinable(world: World) -> Iterator[str]:
    """Name the messages that may be handled together with those before them."""
    for channel, queue in world.channels.items():
        machine: object = world.simulator.machines.get(channel[1])
        if len(queue) > 1 and isinstance(machine, Joining):
            for (_, before), (number, envelope) in pairwise(queue):
                first = before.message
                if type(first) in machine.joined and machine.joins(first, envelope.message):
                    yield world.name_of(number)


def _confirm(world: World, draw: Draw) -> Entry | None:
    as_ = f" as {draw.one_of(_TYPES)}" if draw.chance(0.2) else ""
    return _one(draw, "confirm", (f"{name}{as_}" for name in world.unconfirmed()))


def _query(world: World, draw: Draw) -> Entry | None:
    """Ask about asks more often than about anything else: the most happens on the way of that."""
    asks = [(step.key, step.app) for step in of_kind(world, w.AddAsk)]
    names = [f"{draw.one_of((key, f'{key}-{draw.number(3)}'))} of {app}" for key, app in asks]
    whole = ("dump", "counts", f"events from {draw.number(_EVENTS)}", "asks that wait")
    managers = [f"manager {rm_id}" for rm_id in _managers(world)]
    return _one(draw, "query", (*names[-_ASKED:], *whole, "asks that wait", *managers))


FAULTS: Final[dict[str, Offer]] = {
    "confirm": _confirm,
    "repeat": _repeat,
    "flap": lambda world, draw: _one(draw, "flap", _nodes(world)),
    "drain": _drain,
    "shrink": lambda world, draw: _one(draw, "shrink", _nodes(world)),
    "bounce": lambda world, draw: _one(draw, "bounce", _applications(world)),
    "reload": lambda world, draw: _one(
        draw, "reload", (f"queues of {rm_id}" for rm_id in _managers(world))
    ),
    "register": lambda world, draw: _one(
        draw, "register", (f"{rm_id} again" for rm_id in _managers(world))
    ),
    "lose": lambda world, draw: _one(
        draw, "lose", (f"manager {rm_id}" for rm_id in _managers(world))
    ),
    "freeze": _freeze,
    "slow": _slow,
    "fire": _fire,
    "join": lambda world, draw: _one(draw, "join", _joinable(world)),
    "fail": _fail,
    "propose": offer,
    QUERY: _query,
    OPERATE: lambda world, draw: Entry("operate", drawn_act(world, draw)),
    RESTART: lambda _, draw: Entry("restart", f"core by {draw.number(_RESTARTS)}"),
}
"""The faults by name, each with what draws one of its kind."""
USUAL_FAULTS: Final = tuple(kind for kind in FAULTS if kind not in _BESIDE)
"""Those that a case is explored with. No workload need bear that its core ends; questions and
operators are for worlds that are drawn.
"""

_MANNERS: Final = ("", "", "", "later", "later", "twice", "never", "as")
_COUNTS: Final = (1, 1, 2, 3, 5)
"""How many faults a disturbed run has."""
_ENDS: Final = (1, 1, 2)
"""How often the core of a run ends that has this fault."""
_JOINED_SHARE: Final = 0.5
"""So much of what may be joined is, in a run that joins."""
_FAILURES_MAX: Final = 2
"""More failures within a minute stop a core, as they should."""


class Faulty:
    """Has faults happen while another schedule chooses the order.

    Which kinds a run has, how many and when is drawn for each run: runs that are all alike would
    find alike. `length` is how many events an undisturbed run has.
    """

    def __init__(self, schedule: Schedule, draw: Draw, kinds: Sequence[str], length: int) -> None:
        self._schedule = schedule
        self._draw = draw
        others = [kind for kind in kinds if kind not in _BESIDE]
        chosen = tuple(kind for kind in others if draw.chance(0.5))
        if others and not chosen:
            chosen = (draw.one_of(others),)
        self._confirms = "confirm" in chosen
        self._kinds = chosen
        self._waiting: dict[str, None] | None = {} if "join" in chosen else None
        """What was asked whether it joins; None in a run in which nothing does."""
        count = draw.one_of(_COUNTS) if chosen else 0
        self._moments = sorted((draw.number(length) for _ in range(count)), reverse=True)
        ends = draw.one_of(_ENDS) if RESTART in kinds else 0
        self._ends = sorted((draw.number(length) for _ in range(ends)), reverse=True)
        """Moments at which the core ends: a run of which it is a part has one at least."""
        asked = draw.whole(2, _QUERIES_MAX) if QUERY in kinds else 0
        self._queries = sorted((draw.number(length) for _ in range(asked)), reverse=True)
        """Moments at which something is asked; that disturbs nothing, so it is no fault."""
        acts = draw.whole(3, _ACTS_MAX) if OPERATE in kinds else 0
        self._acts = sorted((draw.number(length) for _ in range(acts)), reverse=True)
        """Moments at which an operator does something."""
        self._failures = 0
        self._events = 0
        self.watched = None if {"fail", "join"} & {*chosen} else schedule.watched

    def choose(self, world: World) -> Channel | Entry | None:
        self._events += 1
        if self._waiting is not None:
            joins = self._joining(world, self._waiting)
            if joins is not None:
                return joins
        if self._ends and self._ends[-1] <= self._events:
            self._ends.pop()
            return FAULTS[RESTART](world, self._draw)
        if self._queries and self._queries[-1] <= self._events:
            self._queries.pop()
            return _query(world, self._draw)
        if self._acts and self._acts[-1] <= self._events:
            self._acts.pop()
            return FAULTS[OPERATE](world, self._draw)
        if self._moments and self._moments[-1] <= self._events:
            self._moments.pop()
            fault = self._fault(world)
            if fault is not None:
                return fault
        if world.late and self._draw.chance(0.1):
            return _confirm(world, self._draw)
        return self._schedule.choose(world)

    def _joining(self, world: World, asked: dict[str, None]) -> Entry | None:
        for name in _joinable(world):
            if name not in asked:
                asked[name] = None
                if self._draw.chance(_JOINED_SHARE):
                    return Entry("join", name)
        return None

    def _fault(self, world: World) -> Entry | None:
        kind = self._draw.one_of(self._kinds)
        if kind == "fail":
            self._failures += 1
            if self._failures > _FAILURES_MAX:
                return None
        return FAULTS[kind](world, self._draw)

    def happened(self, event: str) -> None:
        self._schedule.happened(event)

    def confirmation(self, name: str) -> str:
        if not self._confirms:
            return self._schedule.confirmation(name)
        manner = self._draw.one_of(_MANNERS)
        return f"as {self._draw.one_of(_TYPES)}" if manner == "as" else manner
