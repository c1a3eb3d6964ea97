"""Every scenario file of this folder, on both topologies, in the simulator and on threads."""

from pathlib import Path

import pytest

from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.scenario.runner import RunOptions, run_file

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.yaml"))
SEEDS = range(6)

files = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HERE)))
topologies = pytest.mark.parametrize("topology", TOPOLOGIES)


def test_there_are_files() -> None:
    assert {"basic", "nodes"} <= {file.parent.name for file in FILES}


@files
@topologies
def test_every_interleaving_holds(file: Path, topology: TopologyName) -> None:
    outcome = run_file(file, RunOptions(topology=topology, seeds=SEEDS))
    expected = ((), None, True, len(SEEDS))
    assert expected == (outcome.failures, outcome.error, outcome.ok, outcome.runs)


@files
def test_every_file_holds_on_threads(file: Path) -> None:
    outcome = run_file(file, RunOptions(driver="threads"))
    expected = ((), None, True, 1)
    assert expected == (outcome.failures, outcome.error, outcome.ok, outcome.runs)
    assert outcome.messages > 0
