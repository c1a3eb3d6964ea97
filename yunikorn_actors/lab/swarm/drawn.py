"""Draws a run whole: a world as a case, faults and an order, all from its number."""

from typing import Final

import yaml
from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.choosers import Channel
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.case import Case, case_of, digest_of
from yunikorn_actors.lab.harness import Schedule, World
from yunikorn_actors.lab.oracles.judges import (
    BY_OPERATORS,
    CORE,
    MODEL,
    RECORDING,
    contests_drawn,
    judged_by,
    sides_drawn,
    walk_drawn,
)
from yunikorn_actors.lab.scenario_documents import written
from yunikorn_actors.lab.schedules.faults import Faulty
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.strategies import STRATEGIES, SYSTEMATIC, Lot, schedules_of
from yunikorn_actors.lab.surfaces.replay_check import UNLIKE_MACHINES
from yunikorn_actors.lab.swarm import deciding_policies
from yunikorn_actors.lab.swarm.world_parts import (
    ALL,
    OPERATORS,
    UNKNOWN_TO_MODEL,
    Wanted,
    drawn_parts,
    faults_among,
    with_last_parts,
    with_later_parts,
    with_operators,
    with_restart,
)
from yunikorn_actors.lab.swarm.world_scripts import script_of
from yunikorn_actors.lab.tapes.tape import Entry
from yunikorn_actors.scenario.document import scenario_of


class Bursts:
    """Follows another schedule, but for the steps that belong together."""

    def __init__(self, schedule: Schedule, case: Case) -> None:
        self._schedule = schedule
        self._following = frozenset(
            step.name
            for before, step in zip(case.steps, case.steps[1:], strict=False)
            if "." in step.label and step.label.split(".")[0] == before.label.split(".")[0]
        )
        self.watched = schedule.watched

    def choose(self, world: World) -> Channel | Entry | None:
        if world.next_step in self._following:
            return Entry("do", world.next_step)
        return self._schedule.choose(world)

    def happened(self, event: str) -> None:
        self._schedule.happened(event)

    def confirmation(self, name: str) -> str:
        return self._schedule.confirmation(name)


_STRATEGIES: Final = ("uniform", "uniform", "pct", "pos", "delay")
_MESSAGES_OF_STEP: Final = 12
"""About so many messages come of a step; strategies want to know how long a run is."""
_WHOLE: Final = 5
"""One run in so many is judged with its journal and its read side as well."""
_RECORDED: Final = 8
"""One run in so many is recorded as well, and its recording run again."""
_WITH_A_WALK: Final = 14
"""Beside one run in so many another core is walked through: what no world comes to."""
_WITH_CONTESTS: Final = 6
"""And beside one in so many victims are looked for in small partitions of their own."""
_DEPTH: Final = 3
_SEEDS: Final = 1 << 32


class Drawn(Struct, frozen=True, kw_only=True):
    """A run that can be played; it is plain data, and the text of its case says all of the case."""

    seed: int
    number: int
    parts: frozenset[str]
    case: Case
    strategy: str
    order: int
    """What the order and the faults are drawn from."""

    @property
    def faults(self) -> tuple[str, ...]:
        return faults_among(self.parts)

    @property
    def is_judged(self) -> bool:
        """Whether the model of the rules can follow it."""
        return not self.parts & UNKNOWN_TO_MODEL

    @property
    def judges(self) -> tuple[str, ...]:
        """Name what judges it: the oracles, and the model if it can."""
        # Journal and read side are as dear as all else together, so they are in some of the runs.
        is_whole = self.number % _WHOLE == 0
        judges: tuple[str, ...] = (sides_drawn(self.number, self.order) if is_whole else CORE,)
        is_recorded = self.number % _RECORDED == 0 and not UNLIKE_MACHINES & {*self.faults}
        if is_recorded and not is_whole:
            # Oracles of a whole run open streams of their own, which are in no recording.
            judges += (RECORDING,)
        if OPERATORS in self.parts:
            judges += (BY_OPERATORS,)
        if self.number % _WITH_A_WALK == 0:
            judges += (walk_drawn(self.number, self.order),)
        if self.number % _WITH_CONTESTS == 1:
            judges += (contests_drawn(self.number, self.order),)
        return (*judges, MODEL) if self.is_judged else judges

    def checkers(self) -> tuple[Checker, ...]:
        """Make what judges one run of it."""
        return judged_by(self.judges)

    def schedule(self) -> Schedule:
        """Make the schedule; it serves one run."""
        draw = Draw(0, self.order)
        length = _MESSAGES_OF_STEP * len(self.case.steps)
        number = self.number
        if self.strategy in SYSTEMATIC:
            number = draw.number(schedules_of(self.strategy, length, _DEPTH) or 1)
        lot = Lot(number, draw, length, _DEPTH)
        schedule = STRATEGIES[self.strategy](lot)
        if self.faults:
            schedule = Faulty(schedule, draw, self.faults, length)
        return Bursts(schedule, self.case) if "bursts" in self.parts else schedule


def _case(text: str, file: str) -> Case:
    """Read as `parse_case` does, and faster: there are no faults to be named by their place."""
    root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert root is not None
    return replace(case_of(scenario_of(root, file), digest_of(text)), text=text)


def drawn(seed: int, number: int, wanted: Wanted = ALL, policies: str = "") -> Drawn:
    """Draw the run that has this number."""
    draw = Draw(seed, number)
    parts = drawn_parts(draw, wanted)
    parts = with_later_parts(Draw(seed + _SEEDS, number), parts, wanted)
    parts = with_operators(Draw(seed + 2 * _SEEDS, number), parts, wanted)
    parts = with_last_parts(Draw(seed + 3 * _SEEDS, number), parts, wanted)
    if policies:
        parts |= {"policies"}
    elif "own-policies" in parts:
        policies = deciding_policies.WHERE
    script = script_of(draw, parts, policies, f"run {number} of seed {seed}")
    is_fused = "fused" in parts and "several-schedulers" not in parts
    schedulers = draw.whole(2, 3) if "several-schedulers" in parts else 1
    case = _case(written(script), f"swarm-{seed}-{number}.yaml")
    strategy, order = draw.one_of(_STRATEGIES), draw.number(_SEEDS)
    return Drawn(
        seed=seed,
        number=number,
        parts=with_restart(draw, parts, wanted),
        case=case.on("fused" if is_fused else "proposing", schedulers),
        strategy=strategy,
        order=order,
    )
