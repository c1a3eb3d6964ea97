"""What a run leaves behind: a digest of all that was delivered, and a trace of it."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from recordings import records

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.queries import Accepted
from yunikorn_actors.messages.rm_events import ApplicationsRequested
from yunikorn_actors.scenario.document import parse_scenario
from yunikorn_actors.scenario.drivers import INSTANCE, SimulatorDriver
from yunikorn_actors.scenario.runner import Outcome, RunOptions, run_scenario
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay
from yunikorn_actors.trace.text.show import Look, show

BUSY = """\
name: a small race
steps:
  - create_node: {id: n1, capacity: {vcore: 10}}
  - together:
    - add_app: {id: a, queue: root.default}
    - add_app: {id: b, queue: root.default}
    - ask: {app: a, key: k, count: 3, resource: {vcore: 1}}
  - advance: 5s
"""


def run(**options: Any) -> Outcome:
    return run_scenario(parse_scenario(BUSY, "busy.yaml"), RunOptions(**options))


class ObjectsToApplications:
    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:  # noqa: ARG002
        if isinstance(delivery.message, ApplicationsRequested):
            raise InvariantViolation("no")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_seed_has_one_digest(topology: TopologyName) -> None:
    seeds = range(12)
    first, second = (
        [run(seeds=(seed,), topology=topology).digest for seed in seeds] for _ in range(2)
    )
    assert first == second
    assert len(set(first)) > 1


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_trace_of_a_simulated_run(tmp_path: Path, topology: TopologyName) -> None:
    path = tmp_path / "run.trace"
    outcome = run(seeds=(3,), topology=topology, trace=path)
    header, *deliveries, footer = records(path)
    expected = ("header", topology, "sim", 3, "scenario", 1_767_225_600_000_000_000)
    assert expected == tuple(
        header[key] for key in ("record", "topology", "driver", "seed", "instance", "start_ns")
    )
    assert {"delivery"} == {record["record"] for record in deliveries}
    assert outcome.messages == len(deliveries)
    assert ("footer", outcome.digest) == (footer["record"], footer["digest"])
    assert {"context", "event_publisher", "rm_proxy"} <= footer["states"].keys()


def test_the_trace_of_a_run_that_fails_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    outcome = run(trace=path, checkers=lambda: (ObjectsToApplications(),))
    *_, last, footer = records(path)
    assert ("ApplicationsRequested", outcome.digest) == (last["type"], footer["digest"])
    assert "InvariantViolation" in footer["failure"]
    assert {} == footer["states"]


def test_the_message_that_breaks_a_machine_is_in_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    driver = SimulatorDriver(
        topology=Topology("proposing", settings=Settings(), instance=INSTANCE),
        seed=0,
        trace=path,
        checkers=(),
    )
    driver.core._post(CONTEXT, Accepted(), "test")
    driver.core._go_on()
    with pytest.raises(KeyError):
        driver.settle()
    driver.close()
    *_, last, footer = records(path)
    assert ("Accepted", CONTEXT) == (last["type"], last["mailbox"])
    assert footer["failure"].startswith("KeyError(")
    with TraceReader(path) as trace:
        outcome = replay(trace)
    assert outcome.difference is None
    assert "context/1 fails on Accepted" in outcome.failures[0]
    shown = StringIO()
    with TraceReader(path) as trace:
        show(trace, shown, FilterOptions(), Look())
    assert "1 messages; the run failed: KeyError(" in shown.getvalue()


def test_the_trace_of_a_run_on_threads(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    outcome = run(driver="threads", trace=path)
    header, *_, footer = records(path)
    assert ("threads", "footer", None) == (header["driver"], footer["record"], outcome.digest)


def test_every_run_of_a_range_leaves_the_trace_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    run(seeds=(1, 2), trace=path)
    header, *_ = records(path)
    assert 2 == header["seed"]


def test_a_disk_that_is_full_is_told() -> None:
    with pytest.raises(OSError, match="No space left"):
        run(trace=Path("/dev/full"))
