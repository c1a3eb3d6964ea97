"""Several schedulers plan for one partition: what both decide is committed once.

The checkers look after every message, and at rest each replica is the truth and each scheduler has
nothing left to decide. That the schedulers were in each other's way is asserted everywhere.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import ranges
from faults import Killer, PlantedFault
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from listening import Listening
from moves import Move, scripts
from playing import Player
from searching import Run
from support import APP, PARTITION, Lab, Races

from yunikorn_actors import si
from yunikorn_actors.domain.proposals import Refusal
from yunikorn_actors.domain.snapshot import snapshot
from yunikorn_actors.messages.base import Delivery, scheduler_address
from yunikorn_actors.messages.scheduling import ReportWaiting
from yunikorn_actors.scenario.runner import RunOptions, run_file
from yunikorn_actors.sim.checkers import default_checkers
from yunikorn_actors.sim.simulator import Simulator

SCENARIOS = Path(__file__).parents[1] / "scenarios"
FILES = sorted(SCENARIOS.rglob("*.yaml"))
EVERY = 20
"""In the usual run one file of so many is run, and with two schedules."""
LOST = {Refusal.ASK_GONE, Refusal.ASK_PARKED, Refusal.GANG_HELD, Refusal.VICTIM_GONE}
"""What both decided: an ask placed or parked, a gang admitted, victims chosen."""
IN_THE_VERY_PLAN = {"026-first-when-its-application-may-start.yaml"}
"""These files expect who comes first in one plan. A scheduler whose proposal came too late keeps room for
it until Context refuses it; until then its plans may place a smaller ask first."""


# -- scenario files


@pytest.mark.parametrize(
    ("files", "seeds", "schedulers"),
    [
        pytest.param(FILES[::EVERY], (0, 3), 2, id="usual"),
        pytest.param(FILES, range(6), 2, id="two", marks=pytest.mark.slow),
        pytest.param(FILES, range(3), 3, id="three", marks=pytest.mark.slow),
    ],
)
def test_every_scenario_holds(files: list[Path], seeds: range, schedulers: int) -> None:
    """All that they expect, not only what is checked in any order."""
    races = Races()
    options = RunOptions(
        schedulers=schedulers, seeds=seeds, checkers=lambda: (*default_checkers(), races)
    )
    failed = [(file.name, it.failures) for file in files if not (it := run_file(file, options)).ok]
    assert [] == [it for it in failed if it[0] not in IN_THE_VERY_PLAN]
    assert LOST <= set(races.refusals), "vacuous: they never decided the same"


# -- random orders


@ranges.seeds(2_000, usual=8)
@pytest.mark.parametrize("preempts", [False, True], ids=["gangs", "with preemption"])
def test_no_order_breaks_anything(preempts: bool, seeds: range) -> None:
    refusals: Counter[str] = Counter()
    for number in seeds:
        run = Run(number, preempts=preempts, schedulers=2)
        run.play()
        refusals += run.lab.races.refusals
    assert {Refusal.ASK_GONE, Refusal.GANG_HELD, Refusal.ASK_PARKED} <= set(refusals)
    if preempts:
        assert Refusal.VICTIM_GONE in refusals


@ranges.examples(8, 1_000)
def test_whatever_the_resource_manager_says(examples: int) -> None:
    refusals: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @seed(1)
    @given(scripts(60), st.integers(0, 2**32 - 1), st.sampled_from((2, 3)), st.booleans())
    def play(script: list[Move], number: int, schedulers: int, at_once: bool) -> None:
        nonlocal refusals
        player = Player("proposing", number, schedulers=schedulers, confirms_at_once=at_once)
        for move in script:
            player.play(move)
        player.take_everything_back()
        assert {} == player.leftovers()
        assert [] == player.simulator.callback_errors
        refusals += player.races.refusals

    play()
    assert refusals[Refusal.ASK_GONE] > examples


# -- what both decide


def equal_schedulers(lab: Lab) -> None:
    for scheduler in lab.schedulers:
        assert snapshot(lab.state) == snapshot(scheduler.replica)
        assert [] == scheduler.planner.unresolved


def test_one_ask_is_placed_once_and_one_proposal_refused_for_each() -> None:
    """First in, first out both decide the same: this is the price."""
    lab = Lab(schedulers=2)
    lab.nodes(n1=50, n2=50)
    lab.submit(APP)
    lab.settle()
    lab.ask(*(f"a{number}" for number in range(60)))
    lab.settle()
    assert sorted(f"a{number}" for number in range(60)) == lab.running()
    assert {Refusal.ASK_GONE: 60} == lab.races.refusals
    equal_schedulers(lab)
    assert {} == lab.leftovers()


class Reports:
    """Who reported, and what became of it."""

    def __init__(self) -> None:
        self.senders: Counter[str] = Counter()

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        if isinstance(delivery.message, ReportWaiting):
            self.senders[delivery.sender] += 1


@pytest.mark.parametrize("number", range(6))
def test_a_state_is_told_once(number: int) -> None:
    """Both find out that an ask waits, and why; one of them tells, also when it was replaced."""
    reports, killer = Reports(), Killer(5)
    lab = Lab(
        seed=number, schedulers=2, rm=Listening(), checkers=(reports, killer),
        replaced_for=(PlantedFault,),
    )  # fmt: skip
    lab.nodes(n1=3)
    lab.submit(APP)
    lab.ask("a", "b", "c", "d")
    lab.ask("large", vcore=99)
    lab.settle()
    lab.release("a")
    lab.ask("e")
    lab.settle()
    assert 1 == len(killer.killed), "vacuous: nothing failed"
    told: dict[str, list[str]] = {}
    for key, state in lab.rm.told("container"):
        told.setdefault(key, []).append(state)
    repeated = {key: it for key, it in told.items() if any(x == y for x, y in pairwise(it))}
    assert {} == repeated
    assert "FAILED" in told["large"]
    muted = scheduler_address(PARTITION, 1, 1)
    assert reports.senders, "vacuous: nobody reported"
    assert muted not in reports.senders
    equal_schedulers(lab)


def test_one_of_them_answers() -> None:
    lab = Lab(schedulers=3)
    lab.nodes(n1=4)
    lab.submit(APP)
    lab.ask("large", vcore=9)
    lab.settle()
    assert "large" == lab.simulator.explain(APP, "large").key
    assert {} == lab.partition.explaining


# -- one of them fails


def kill(lab: Lab, address: str) -> None:
    machine: Any = lab.simulator.machines[address]

    def fail(*_: object) -> None:
        raise PlantedFault(address)

    machine.handle = fail


@pytest.mark.parametrize("place", [0, 1])
def test_the_place_of_one_that_fails_is_taken(place: int) -> None:
    """Whichever it is: the others go on meanwhile, and questions are answered once."""
    lab = Lab(schedulers=2, replaced_for=(PlantedFault,))
    lab.nodes(n1=4)
    lab.submit(APP)
    lab.ask("large", vcore=9)
    lab.settle()
    first, second = lab.partition.schedulers.values()
    kill(lab, (first, second)[place])
    lab.ask("a")
    assert "large" == lab.simulator.explain(APP, "large").key
    lab.settle()
    heirs = list(lab.partition.schedulers.values())
    assert [0, 1, 2] == sorted({*lab.partition.schedulers, place}), "numbers are never given again"
    assert (first, second)[1 - place] == heirs[1 - place]
    assert (first, second)[place] not in lab.simulator.machines
    assert [True, False] == [scheduler.speaks for scheduler in lab.schedulers]
    lab.node("n1", si.ActionFromRM.UPDATE, 10)
    lab.settle()
    assert ["a", "large"] == lab.running()
    equal_schedulers(lab)
    assert {} == lab.leftovers()


@pytest.mark.parametrize("late", [False, True])
def test_nothing_is_lost_whichever_message_one_fails_at(late: bool) -> None:
    wanted = sorted(f"a{number}" for number in range(8))
    position = 0
    while True:
        position += 3
        killer = Killer(position, late=late)
        lab = Lab(seed=2, schedulers=2, checkers=(killer,), replaced_for=(PlantedFault,))
        lab.nodes(n1=6, n2=6)
        lab.submit(APP)
        lab.ask(*wanted[:4])
        lab.settle()
        lab.ask(*wanted[4:])
        lab.settle()
        if not killer.killed:
            break
        assert wanted == lab.running(), killer.killed
        equal_schedulers(lab)
        assert {} == lab.leftovers()
    assert position > 30, "vacuous: hardly a message was a last one"


# -- predicates


class Choosy(Listening):
    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[tuple[str, str]] = Counter()

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        self.asked[args.allocation_key, args.node_id] += 1
        return "not here" if args.node_id == "n1" else None


@pytest.mark.parametrize("number", range(6))
def test_each_asks_for_itself_and_an_ask_is_placed_once(number: int) -> None:
    rm = Choosy()
    lab = Lab(seed=number, schedulers=2, rm=rm)
    lab.nodes(n1=4, n2=4)
    lab.submit(APP)
    lab.ask("a", "b", "c")
    lab.settle()
    assert ["a", "b", "c"] == lab.running()
    assert {"n2"} == {node for _, node in rm.told("new")}
    assert max(rm.asked.values()) <= 2, "more often than there are schedulers"
    assert lab.races.refusals, "vacuous: both had a yes for the same ask"
    equal_schedulers(lab)
    assert {} == lab.leftovers()
