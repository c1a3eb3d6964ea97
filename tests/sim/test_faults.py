"""Machines that hold no truth fail at any message, and nothing that counts is different for it.

Runs of the files about gangs that are disturbed; a fault strikes at a message that is drawn from
the number of the run. `FAULT_FILES` names further folders.
"""

import os
from collections import Counter
from pathlib import Path

import pytest
import ranges
from faults import Killer, PlantedFault

from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.scenario.runner import Outcome, RunOptions, run_file
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

pytestmark = pytest.mark.timeout(7200)
"""For a long run."""
FOLDERS = (
    Path(__file__).parents[1] / "scenarios" / "gang-disturbances",
    *map(Path, filter(None, os.environ.get("FAULT_FILES", "").split(os.pathsep))),
)
FILES = tuple(file for folder in FOLDERS for file in sorted(folder.rglob("*.yaml")))


def run(number: int, killer: Killer, trace: Path | None = None) -> Outcome:
    topology = TOPOLOGIES[number // len(FILES) % 2]
    return run_of(FILES[number % len(FILES)], number, topology, killer, trace)


def run_of(
    file: Path, seed: int, topology: TopologyName, killer: Killer, trace: Path | None = None
) -> Outcome:
    options = RunOptions(
        seeds=(seed,),
        topology=topology,
        checkers=lambda: (*default_checkers(), killer),
        replaced_for=(PlantedFault,),
        trace=trace,
    )
    return run_file(file, options)


@ranges.seeds(999, first=0, usual=6)
def test_files_hold_whatever_fails(tmp_path: Path, seeds: range) -> None:
    """And what was recorded is replayed, though nothing fails there any more."""
    path = tmp_path / "a.trace"
    killed: Counter[str] = Counter()
    faults: list[str] = []
    for number in seeds:
        watching = Killer()
        assert run(number, watching).ok
        draw = Draw(number)
        killer = Killer(1 + draw.number(watching.handled), late=bool(draw.number(2)))
        outcome = run(number, killer, path)
        assert 1 == len(killer.killed), f"vacuous: nothing failed in run {number}"
        killed.update(killer.killed)
        with TraceReader(path) as trace:
            difference = replay(trace).difference
        assert difference is None, f"run {number}: {killer.killed}: {difference}"
        if not outcome.ok:
            faults.append(f"run {number}: {outcome.name}: {killer.killed}: {outcome.failures}")
    assert not faults, "\n".join(faults)
    assert {"Scheduler", "EventPublisher"} == {name.split()[0] for name in killed}


@pytest.mark.parametrize("late", ranges.first([True, False], 1))
def test_who_lost_its_node_is_first_whenever_the_planner_fails(*, late: bool) -> None:
    """The member stands before a more important ask when its placeholder frees its quota."""
    file = FOLDERS[0] / "quota-of-a-lost-swap.yaml"
    watching = Killer()
    assert run_of(file, 0, "proposing", watching).ok
    for position in range(1, watching.handled + 1):
        killer = Killer(position, late=late)
        outcome = run_of(file, 0, "proposing", killer)
        assert killer.killed, f"vacuous: nothing failed at {position}"
        assert not outcome.failures, (position, killer.killed)
