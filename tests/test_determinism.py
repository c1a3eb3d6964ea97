"""One seed, one run: whatever the hash seed of the process, and however often.

As a program this file makes the run and prints what came of it; as a test it compares several such
programs. A difference is told with the first delivery that differs, not with two digests.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from support import RM, Lab, Recorder

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.codec import TraceDigest, canonical, record_of, state_digest

SEED = 5
HASH_SEEDS = ("0", "1", "42")
PATIENCE_S = 100
CONFIG = """
partitions:
  - name: default
    nodesortpolicy: {type: binpacking}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: fifo, properties: {application.sort.policy: fifo}}
          - {name: fair, resources: {max: {vcore: 9m, memory: 40}}}
          - name: parent
            queues:
              - {name: first, resources: {guaranteed: {vcore: 3m}}}
              - {name: second, maxapplications: 2}
"""
QUEUES = ("root.fifo", "root.fair", "root.parent.first", "root.parent.second")
TAGS = {f"example.com/tag-{number}": "x" * number for number in range(9)}


class Run(Struct, frozen=True, kw_only=True):
    """What came of one run."""

    trace: str
    states: dict[str, str]
    deliveries: list[str]


class Listener:
    """Stands among the checkers and writes down every delivery."""

    def __init__(self) -> None:
        self.digest = TraceDigest()
        self.deliveries: list[str] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:  # noqa: ARG002
        self.digest.add(delivery)
        content = sha256(canonical(record_of(delivery))).hexdigest()[:16]
        kind = type(delivery.message).__name__
        self.deliveries.append(f"{delivery.mailbox} {delivery.step}: {kind} {content}")


def run(topology: TopologyName, seed: int) -> Run:
    listener = Listener()
    lab = Lab(seed=seed, topology=topology, config=CONFIG, checkers=(listener,))
    _submit(lab)
    _disturb(lab, Random(7))  # noqa: S311 - a repeatable one, no secret
    _come_and_go(lab)
    lab.advance(600)
    lab.simulator.state_dump()
    lab.simulator.events()
    states = {address: state_digest(state) for address, state in lab.simulator.states().items()}
    return Run(trace=listener.digest.hex(), states=states, deliveries=listener.deliveries)


def _submit(lab: Lab) -> None:
    """Eight applications of three users want more than six nodes have."""
    lab.nodes(n1=4, n2=4, n3=8, n4=8)
    for number in range(2):
        attributes = {"zone": str(number), "rack": "r", "kind": "k"}
        lab.node(f"a{number}", si.ActionFromRM.CREATE, 6, attributes=attributes)
    for number in range(8):
        user = f"user-{number % 3}"
        lab.submit(f"app-{number}", queue=QUEUES[number % 4], user=user, tags=TAGS)
        keys = [f"{number}-{ask}" for ask in range(7)]
        lab.ask(*keys, vcore=1 + number % 3, app=f"app-{number}", priority=number % 2, tags=TAGS)


def _disturb(lab: Lab, random: Random) -> None:
    """Releases, withdrawals and nodes that drain, each racing with the decisions about the rest."""
    for round_ in range(12):
        app = f"app-{round_ % 8}"
        for _ in range(int(random.random() * 40)):
            lab.simulator.step()
        lab.release(f"{round_ % 8}-{round_ % 7}", app=app)
        lab.withdraw(f"{round_ % 8}-6", app=app)
        lab.ask(f"more-{round_}", app=app, vcore=2)
    lab.node("n1", si.ActionFromRM.DRAIN_NODE)
    lab.node("n4", si.ActionFromRM.DECOMISSION)
    lab.remove("app-3")
    lab.ask("of nobody", app="no such application")
    lab.settle()


def _come_and_go(lab: Lab) -> None:
    """Another configuration, a second resource manager, and the first one once more."""
    lab.configure(CONFIG.replace("vcore: 9m", "vcore: 12m"))
    _register(lab, "rm-2", CONFIG.replace("binpacking", "fair"))
    lab.advance(35)
    _register(lab, RM, CONFIG)
    _submit(lab)
    lab.settle()


def _register(lab: Lab, rm_id: str, config: str) -> None:
    request = si.RegisterResourceManagerRequest(
        rm_id=rm_id, policy_group=rm_id, config=config, build_info=TAGS
    )
    lab.simulator.register_resource_manager(request, Recorder())


def first_difference(expected: Run, actual: Run) -> str | None:
    """Name the first delivery that differs, or else the states that do."""
    pairs = zip(expected.deliveries, actual.deliveries, strict=False)
    for number, (one, other) in enumerate(pairs, start=1):
        if one != other:
            return f"delivery {number}: {one!r} became {other!r}"
    if len(expected.deliveries) != len(actual.deliveries):
        return f"{len(expected.deliveries)} deliveries became {len(actual.deliveries)}"
    names = sorted(expected.states.keys() | actual.states.keys())
    states = [name for name in names if expected.states.get(name) != actual.states.get(name)]
    if states:
        return f"all deliveries are equal, and the states differ of {', '.join(states)}"
    return None if expected.trace == actual.trace else "the digests of equal deliveries differ"


def run_all() -> dict[str, Run]:
    return {topology: run(topology, SEED) for topology in TOPOLOGIES}


class Report(Struct, frozen=True, kw_only=True):
    """What a process tells: its runs, and the order of a set, which the hash seed decides."""

    runs: dict[str, Run]
    set_order: list[str]


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return run_all()


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    processes = [
        subprocess.Popen(
            [sys.executable, __file__],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            stdout=subprocess.PIPE,
        )
        for hash_seed in HASH_SEEDS
    ]
    printed = [process.communicate(timeout=PATIENCE_S)[0] for process in processes]
    return [msgspec.json.decode(text, type=Report) for text in printed]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_run_does_not_depend_on_the_hash_seed(
    topology: TopologyName, runs: dict[str, Run], reports: list[Report]
) -> None:
    assert len(HASH_SEEDS) == len({tuple(report.set_order) for report in reports})
    for report in reports:
        assert first_difference(runs[topology], report.runs[topology]) is None


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_run_can_be_repeated(topology: TopologyName, runs: dict[str, Run]) -> None:
    assert first_difference(runs[topology], run(topology, SEED)) is None


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_another_seed_is_another_run(topology: TopologyName, runs: dict[str, Run]) -> None:
    other = run(topology, SEED + 1)
    assert first_difference(runs[topology], other) is not None
    assert runs[topology].trace != other.trace


def test_the_run_is_worth_comparing(runs: dict[str, Run]) -> None:
    """It is long, and the races that a seed decides do take place in it."""
    kinds = [line.split()[2] for line in runs["proposing"].deliveries]
    assert len(kinds) > 300
    for kind in ("ProposalRejected", "RMReleaseAllocation", "RMRejectedAllocationAsk"):
        assert kind in kinds
    assert ["context", "event_publisher", "rm_proxy"] == sorted(runs["fused"].states)


CHANGES: dict[str, tuple[Callable[[Run], dict[str, Any]], str | None]] = {
    "nothing": (lambda _: {}, None),
    "a delivery": (
        lambda run: {"deliveries": [*run.deliveries[:2], "x", *run.deliveries[3:]]},
        "delivery 3: 'c' became 'x'",
    ),
    "the end": (lambda run: {"deliveries": run.deliveries[:-1]}, "4 deliveries became 3"),
    "a state": (
        lambda run: {"states": {**run.states, "context": "changed"}},
        "all deliveries are equal, and the states differ of context",
    ),
    "the digest": (lambda _: {"trace": "changed"}, "the digests of equal deliveries differ"),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_the_first_difference_is_told(
    change: Callable[[Run], dict[str, Any]], expected: str | None
) -> None:
    one = Run(trace="t", states={"context": "s"}, deliveries=list("abcd"))
    assert expected == first_difference(one, msgspec.structs.replace(one, **change(one)))


if __name__ == "__main__":
    sys.stdout.buffer.write(
        msgspec.json.encode(Report(runs=run_all(), set_order=list(frozenset(TAGS))))
    )
