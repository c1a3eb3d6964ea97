"""Every driver, with probes; and with both topologies where that matters."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from probes import DirectLab, Lab, SimulatorLab, ThreadsLab

from yunikorn_actors.machines.topology import TOPOLOGIES

LABS: dict[str, Callable[..., Lab]] = {
    "threads": ThreadsLab,
    "direct": DirectLab,
    "simulator": partial(SimulatorLab, seed=0),
    "simulator, seed 5": partial(SimulatorLab, seed=5),
}


@pytest.fixture(params=LABS)
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    lab = LABS[request.param]("proposing")
    yield lab
    lab.close()


@pytest.fixture(params=[(lab, topology) for lab in LABS for topology in TOPOLOGIES], ids=", ".join)
def every_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    name, topology = request.param
    lab = LABS[name](topology)
    yield lab
    lab.close()
