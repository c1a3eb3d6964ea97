"""The last reason that a recording gives is the one that the core gave when the recording ended.

A recording may end anywhere: each is looked at where the run ended, and cut off at random records.
What was handled together is one step, and is not cut in two: a core that has handled all of it
knows more than its first part tells. Nor is it cut where the token of schedulers is on its way:
then none says why, and the last answer stands.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import ranges
from drawn_scripts import drawn_script

from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.simulator import Checker, Simulator
from yunikorn_actors.lab.scenario_documents import written
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.reasons import Cause, Why
from yunikorn_actors.planning.why.explain import explain
from yunikorn_actors.scenario.document import Scenario, parse_scenario, read_scenario
from yunikorn_actors.scenario.runner import RunOptions, run_scenario
from yunikorn_actors.trace.causes import why_of
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.tables import wait_rows

SCENARIOS = Path(__file__).parents[1] / "scenarios"
FILES = sorted(SCENARIOS.rglob("*.yaml"))
EVERY = 40
"""In the usual run one file of so many is looked at."""
USUAL = FILES[::EVERY]
CUTS = 2
SCRIPTS = 2

Named = tuple[str, str, str]
"""A partition, an application and the key of an ask."""
ON_ITS_WAY = (Cause.ON_ITS_WAY.value, "a node has been chosen")


class Difference(NamedTuple):
    file: str
    record: int
    ask: Named
    live: tuple[str, str]
    recorded: tuple[str, str] | None


class Live:
    """What the planners said of all that waited, after some of the messages."""

    def __init__(self, asked: Collection[int] = ()) -> None:
        self.after: dict[int, dict[Named, Why]] = {0: {}}
        self.messages = 0
        self.cuts: set[int] = set()
        """Where a step ends, and each partition has a planner that knows."""
        self._asked = asked
        self._planning: dict[str, Scheduler] = {}
        """Of each partition the scheduler that was the last to know."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        machine = simulator.machines.get(delivery.mailbox)
        if isinstance(machine, Scheduler) and machine.loop.knows_why and machine.replica.revision:
            self._planning[machine.replica.name] = machine
        if delivery.joined:
            self.cuts.discard(self.messages)
        self.messages += 1
        if all(it.loop.knows_why for it in self._planning.values()):
            self.cuts.add(self.messages)
        if self.messages in self._asked:
            self.after[self.messages] = dict(self._waiting(simulator))

    def _waiting(self, simulator: Simulator) -> Iterator[tuple[Named, Why]]:
        for name, planner in self._planners(simulator):
            for app in planner.state.applications.values():
                for key in (it.spec.key for it in app.asks.values() if it.is_open):
                    why = explain(planner, app.id, key, simulator.now_ns)
                    assert why is not None
                    yield (name, app.id, key), why

    def _planners(self, simulator: Simulator) -> Iterator[tuple[str, Planner]]:
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        for partition in context.partitions.values():
            scheduler = self._planning.get(partition.name)
            if partition.planner is not None:
                yield partition.name, partition.planner
            elif scheduler is not None and scheduler in simulator.machines.values():
                yield partition.name, scheduler.planner


def differences(
    path: Path, scenario: Scenario, topology: TopologyName, seed: int, schedulers: int = 1
) -> Iterator[Difference | Cause]:
    """Yield where the recording says something else; where it does not, what both say."""

    def run(checkers: tuple[Checker, ...], trace: Path | None = None) -> None:
        options = RunOptions(
            seeds=(seed,), topology=topology, schedulers=schedulers, trace=trace,
            checkers=lambda: checkers,
        )  # fmt: skip
        run_scenario(scenario, options)

    first = Live()
    run((*default_checkers(), first), path)
    with TraceReader(path) as trace:
        written_ = [trace.raw_header, *trace.raw()]
    last = len(written_) - 2
    draw = Random(seed)  # noqa: S311 - a repeatable draw, no secret
    cuts = sorted(first.cuts - {last})
    records = (last, *(draw.choices(cuts, k=CUTS) if cuts else ()))
    # All that waits is explained where it is compared, and not after each of thousands of messages.
    live = Live(records)
    run((live,))
    assert live.messages == last, "the same run has as many messages"
    for record in records:
        if record < last:
            path.write_bytes(b"".join(written_[: record + 1]))
        told = _told(path, live.after[record])
        for ask, why in live.after[record].items():
            said = (why.decisive.cause.value, why.decisive.text)
            found = told.get(ask)
            # Of several schedulers two may know at a cut: one plans, and decisions of another are on
            # their way. At the end it is one.
            may_differ = schedulers > 1 and record < last
            is_same = found == said or (may_differ and found == ON_ITS_WAY)
            different = Difference(scenario.name, record, ask, said, found)
            yield why.decisive.cause if is_same else different


def _told(path: Path, asks: Iterable[Named]) -> dict[Named, tuple[str, str]]:
    """As the command tells it, in JSON: the last line of each."""
    answer = why_of(path, {f"{app}/{key}" for _, app, key in asks}).grouped()
    assert answer.difference is None
    return {_named(row): (row["cause"], row["text"]) for row in wait_rows(answer)}


def _named(row: dict[str, Any]) -> Named:
    return row["partition"], row["application_id"], row["key"]


def check(found: Iterable[Difference | Cause], causes: set[Cause]) -> None:
    seen = list(found)
    assert [] == [it for it in seen if isinstance(it, Difference)]
    counted = Counter(it for it in seen if isinstance(it, Cause))
    assert causes <= counted.keys(), f"vacuous: {counted}"


REST = pytest.param(
    [it for it in FILES if it not in USUAL],
    id="rest",
    marks=[pytest.mark.slow, pytest.mark.timeout(1800)],
)


@pytest.mark.parametrize("files", [pytest.param(USUAL, id="usual"), REST])
@pytest.mark.parametrize(
    ("topology", "schedulers"),
    [
        ("proposing", 2),
        pytest.param("proposing", 1, marks=pytest.mark.slow),
        pytest.param("fused", 1, marks=pytest.mark.slow),
    ],
)
def test_of_each_scenario(
    tmp_path: Path, files: list[Path], topology: TopologyName, schedulers: int
) -> None:
    check(
        (
            it
            for seed, file in enumerate(files)
            for it in differences(
                tmp_path / "a.trace", read_scenario(file), topology, seed, schedulers
            )
        ),
        {Cause.CLUSTER_FULL, Cause.NO_NODE},
    )


@ranges.seeds(200, usual=SCRIPTS)
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_of_scripts_drawn_at_random(tmp_path: Path, seeds: range, topology: TopologyName) -> None:
    check(
        (
            it
            for number in seeds
            for it in differences(
                tmp_path / "a.trace",
                parse_scenario(written(drawn_script(number)), "drawn.yaml"),
                topology,
                number,
            )
        ),
        {Cause.CLUSTER_FULL, Cause.QUEUE_LIMIT, Cause.GANG_WAITS},
    )
