"""Every scenario file of this folder in the simulator, and every third one in service as well.

On threads and direct the clock stands and moves with `advance`. One file for each kind of timer runs on a real
clock as well.
"""

from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import ranges
from msgspec.structs import replace
from probes import wait_until

from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.messages.base import Envelope, Message
from yunikorn_actors.messages.codec import MESSAGE_TYPES
from yunikorn_actors.runtime.scheduler_core import CoreDriver
from yunikorn_actors.scenario.document import Scenario, read_scenario
from yunikorn_actors.scenario.drivers import INSTANCE, ServiceDriver
from yunikorn_actors.scenario.performer import Stage
from yunikorn_actors.scenario.runner import RunOptions, run_scenario, steps_of

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.yaml"))


def _name(parameter: Path | str) -> str:
    return parameter if isinstance(parameter, str) else str(parameter.relative_to(HERE))


one_topology_each = pytest.mark.parametrize(
    ("file", "topology"), ranges.one_each(FILES, TOPOLOGIES), ids=_name
)
one_driver_each = pytest.mark.parametrize(
    ("file", "driver"), ranges.one_each(FILES, get_args(CoreDriver), step=3), ids=_name
)


def test_there_are_files() -> None:
    assert {"basic", "nodes"} <= {file.parent.name for file in FILES}


@cache
def read(file: Path) -> Scenario:
    return read_scenario(file)


@one_topology_each
@ranges.seeds(50, usual=1)
def test_every_interleaving_holds(file: Path, topology: TopologyName, seeds: range) -> None:
    """First in, first out is the order of the driver `direct` below."""
    outcome = run_scenario(read(file), RunOptions(topology=topology, seeds=seeds))
    expected = ((), None, True, len(seeds))
    assert expected == (outcome.failures, outcome.error, outcome.ok, outcome.runs)


@pytest.mark.parametrize(
    ("file", "topology"), ranges.one_each(FILES, TOPOLOGIES, step=8), ids=_name
)
def test_every_file_holds_in_the_smallest_slices(file: Path, topology: TopologyName) -> None:
    """Whatever is more than one item goes on in a message of its own."""
    whole = read(file)
    scenario = replace(whole, settings=replace(whole.settings, slice_max=1))
    outcome = run_scenario(scenario, RunOptions(topology=topology, seeds=(1,)))
    assert ((), None, True) == (outcome.failures, outcome.error, outcome.ok)


@one_driver_each
def test_every_file_holds_in_service(file: Path, driver: CoreDriver) -> None:
    outcome = run_scenario(read(file), RunOptions(driver=driver))
    expected = ((), None, True, 1)
    assert expected == (outcome.failures, outcome.error, outcome.ok, outcome.runs)
    assert outcome.messages > 0


ON_A_REAL_CLOCK = {
    "ApplicationTimerDue allocation": ("preemption/055-timed-out-room-is-promised-once.yaml", 100),
    "ApplicationTimerDue commitment": ("gang-edges/lapsed-gang-is-admitted-again.yaml", 1_000),
    "ApplicationTimerDue execution": ("applications/017-failing-when-its-manager-leaves.yaml", 100),
    "ApplicationTimerDue placeholder": ("gang-edges/resuming-count.yaml", 100),
    "ApplicationTimerDue state": ("gang-disturbances/019-placeholder-resized.yaml", 100),
    "ConfirmationDue": ("health/004-silent-resource-manager.yaml", 1_000),
    "HistoryExpiryDue": ("applications/019-forgotten-after-its-time.yaml", 1_000_000),
    "EventPushDue": ("limits/013-told-after-a-reload.yaml", 100),
    "PlanningDue": ("health/003-everything-drains-to-zero.yaml", 100),
    "QueueCleaningDue": ("queues/019-user-rule.yaml", 100),
    "RMPartitionsRemove": ("recovery/011-away-for-too-long.yaml", 1_000),
}
"""A kind of timer, a file in which it fires, and how much faster than the world the clock runs."""
BY_THE_SECOND = {"PredicateDue", "RmDumpDue"}
"""What a callback may take is a second of the world at any scale: tests/drivers/test_predicates.py
and test_diagnostics.py."""


AFTER_A_RESTART = {"ReturnDue"}
"""No file has a core that starts again: tests/runtime/test_journal.py."""


def test_every_kind_of_timer_is_here() -> None:
    fire = {name for name in MESSAGE_TYPES if name.endswith("Due")} | {"RMPartitionsRemove"}
    assert fire == BY_THE_SECOND | AFTER_A_RESTART | {kind.split()[0] for kind in ON_A_REAL_CLOCK}


@pytest.mark.parametrize("kind", ON_A_REAL_CLOCK)
def test_each_kind_of_timer_fires_on_a_real_clock(kind: str) -> None:
    """What the file expects is not asked: on a slow computer its steps take too much time."""
    name, time_scale = ON_A_REAL_CLOCK[kind]
    scenario = read_scenario(HERE / name)
    topology = Topology("proposing", settings=scenario.settings, instance=INSTANCE)
    driver = ServiceDriver(driver="threads", topology=topology, trace=None, time_scale=time_scale)
    fired: dict[str, None] = {}
    deliver = driver.core._timers._deliver

    def listen(address: str, envelope: Envelope) -> object:
        fired[_kind(envelope.message)] = None
        return deliver(address, envelope)

    driver.core._timers._deliver = listen
    try:
        stage = Stage(scenario, driver, None)
        for step in steps_of(scenario):
            stage.perform(step)
        wait_until(lambda: kind in fired)
    finally:
        driver.close()


def _kind(message: Message) -> str:
    kind, _, _ = getattr(message, "kind", "").partition(":")
    return f"{type(message).__name__} {kind}".rstrip()
