"""One policy of ten lines makes the same decisions wherever a core runs.

`docs/how-to/run-one-policy-everywhere.md` has one more, and it is run in a service there.
"""

import asyncio
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ranges

from yunikorn_actors import (
    AsyncScheduler,
    AsyncSchedulerCore,
    InvalidRequest,
    Scheduler,
    SchedulerCore,
)
from yunikorn_actors.cli import main
from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.policies import loading
from yunikorn_actors.runtime.core_arguments import CoreDriver
from yunikorn_actors.state.facts import AllocationCommitted
from yunikorn_actors.trace.read import TraceReader

POLICY = """\
class LongestFirst:
    reads = ("runtime_ns",)

    def application_key(self, app):
        return -app.runtime_ns

    def score(self, node, shape):
        return -int(node.id[1:])

MINE = {"longest-first": LongestFirst}
"""
QUEUES = """\
partitions:
  - name: default
    nodesortpolicy: {type: longest-first}
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: jobs, properties: {application.sort.policy: longest-first}}]
"""
RUNTIMES = (20, 60, 10, 50, 40, 30)
FILLERS = (0, 1, 2)
DECIDED = [
    "f on n3", "f on n2", "f on n1",
    "app-1 on n3", "app-3 on n2", "app-4 on n1", "app-5 on n3", "app-0 on n2", "app-2 on n1",
]  # fmt: skip
"""The fillers by the scores; then, as they end one by one, the longest of those that wait."""


def _steps() -> Iterator[str]:
    yield from (f"create_node: {{id: n{number}, capacity: {{vcore: 1}}}}" for number in (1, 2, 3))
    yield "add_app: {id: f, queue: root.jobs}"
    for number in FILLERS:
        yield f"ask: {{app: f, key: f{number}, resource: {{vcore: 1}}}}"
    for number, runtime in enumerate(RUNTIMES):
        yield f"add_app: {{id: app-{number}, queue: root.jobs}}"
        tags = f"{{yunikorn-actors/runtime: '{runtime}'}}"
        yield f"ask: {{app: app-{number}, key: k{number}, resource: {{vcore: 1}}, tags: {tags}}}"
    yield from (f"release: {{app: f, key: f{number}}}" for number in FILLERS)
    yield from (f"release: {{app: app-{number}, key: k{number}}}" for number in (1, 3, 4))


SCENARIO = (
    "name: the longest first\npolicies: POLICIES\nqueues:\n"
    + "".join(f"  {line}\n" for line in QUEUES.splitlines())
    + "steps:\n"
    + "".join(f"  - {step}\n" for step in _steps())
)


@dataclass
class Written:
    scenario: Path
    plain: Path
    """The same without the policies."""
    trace: Path


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    monkeypatch.chdir(tmp_path)
    Path("ten_lines.py").write_text(POLICY, "utf-8")
    files = Written(*(tmp_path / it for it in ("own.yaml", "plain.yaml", "run.trace")))
    files.scenario.write_text(
        SCENARIO.replace("POLICIES", "{longest-first: ten_lines:LongestFirst}")
    )
    files.plain.write_text(SCENARIO.replace("policies: POLICIES\n", ""))
    yield files
    sys.modules.pop("ten_lines", None)
    loading.policies_at.cache_clear()


def _decided(deliveries: Iterable[Delivery]) -> list[str]:
    facts = {
        fact.uuid: f"{fact.application_id} on {fact.node_id}"
        for it in deliveries
        if isinstance(it.message, FactsAppended)
        for fact in it.message.facts
        if isinstance(fact, AllocationCommitted)
    }
    return [*facts.values()]


def _recorded(path: Path) -> list[str]:
    with TraceReader(path) as trace:
        return _decided(trace)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("driver", ["sim", "threads", "direct"])
@pytest.mark.parametrize("named", ["in the file", "beside it"])
def test_in_scenarios_and_replay(
    written: Written,
    capsys: pytest.CaptureFixture[str],
    topology: TopologyName,
    driver: str,
    named: str,
) -> None:
    given = ("--policies", "ten_lines:MINE")
    file = (written.scenario,) if named == "in the file" else (written.plain, *given)
    options = ("--topology", topology, "--driver", driver, "--trace", str(written.trace))
    assert 0 == main(["scenario", "run", *map(str, file), *options]), capsys.readouterr().out
    assert DECIDED == _recorded(written.trace)
    assert 0 == main(["trace", "replay", str(written.trace), *given])
    assert "identical" in capsys.readouterr().out
    if driver == "sim":
        first = _digest(capsys, *file, "--topology", topology)
        assert first == _digest(capsys, *file, "--topology", topology)


def _digest(capsys: pytest.CaptureFixture[str], *options: Any) -> str:
    capsys.readouterr()
    assert 0 == main(["scenario", "run", *map(str, options), "--json"])
    found = re.search(r'"digest": "(\w+)"', capsys.readouterr().out)
    assert found
    return found[1]


@pytest.mark.parametrize("topology", ranges.first(TOPOLOGIES, 1))
def test_in_the_laboratory(
    written: Written, capsys: pytest.CaptureFixture[str], topology: TopologyName
) -> None:
    named = read_case(written.scenario).on(topology)
    beside = read_case(written.plain).on(topology, 1, "ten_lines:MINE")
    for case in (named, beside):
        outcome = play(case, case.tape())
        assert outcome.ok
        assert DECIDED == _decided(outcome.deliveries)
    options = ("--topology", topology, "--runs", "3", "--faults", "none")
    status = main(["lab", "run", str(written.scenario), *options])
    assert 0 == status, capsys.readouterr().out
    jobs = ("--policies", "ten_lines:MINE", "--jobs", "2")
    status = main(["lab", "run", str(written.plain), *options, *jobs])
    assert 0 == status, capsys.readouterr().out


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("driver", ["threads", "direct"])
def test_in_a_program(driver: CoreDriver, topology: TopologyName) -> None:
    made: dict[str, Any] = {}
    exec(POLICY, made)  # noqa: S102 - it is the text above
    if topology == "proposing" and driver == "threads":
        with Scheduler(QUEUES, policies=made["MINE"]) as s:
            assert DECIDED == list(_by_a_program(s))
    core = SchedulerCore(driver=driver, topology=topology, policies=made["MINE"])
    with Scheduler(QUEUES, core=core) as s:
        assert DECIDED == list(_by_a_program(s))


def test_on_an_event_loop() -> None:
    made: dict[str, Any] = {}
    exec(POLICY, made)  # noqa: S102 - it is the text above

    async def program(s: AsyncScheduler) -> list[str]:
        async with s:
            await s.add_node("n2", vcore=1)
            apps = [
                await s.application(f"app-{number}", queue="root.jobs", user="ann")
                for number in range(3)
            ]
            first = await apps[0].ask("k", vcore=1, runtime=1)
            short = apps[1].ask("k", vcore=1, runtime=1)
            long = apps[2].ask("k", vcore=1, runtime=2)
            first.release()
            await asyncio.wait_for(asyncio.shield(long), 10)
            assert not short.done()
            await s.configure(QUEUES)
            return [*s.applications]

    own = AsyncSchedulerCore(policies=made["MINE"])
    assert 3 == len(asyncio.run(program(AsyncScheduler(QUEUES, policies=made["MINE"]))))
    assert 3 == len(asyncio.run(program(AsyncScheduler(QUEUES, core=own))))


def test_policies_beside_a_core_of_ones_own_are_refused() -> None:
    made: dict[str, Any] = {}
    exec(POLICY, made)  # noqa: S102 - it is the text above
    core = SchedulerCore(policies=made["MINE"])
    for make in (
        lambda: Scheduler(QUEUES, core=core, policies=made["MINE"]),
        lambda: AsyncScheduler(core=AsyncSchedulerCore(), policies=made["MINE"]),
    ):
        with pytest.raises(InvalidRequest, match="those of your core decide; give them to it"):
            make()


def _by_a_program(s: Any) -> Iterator[str]:
    """Do the same as the scenario."""
    for number in (1, 2, 3):
        s.add_node(f"n{number}", vcore=1)
    filler = s.application("f", queue="root.jobs", user="ann")
    held = []
    for number in FILLERS:
        held.append(filler.ask(f"f{number}", vcore=1).result(10))
        yield f"f on {held[-1].node_id}"
    waiting = {}
    for number, runtime in enumerate(RUNTIMES):
        app = s.application(f"app-{number}", queue="root.jobs", user="ann")
        waiting[app.id] = app.ask(f"k{number}", vcore=1, runtime=runtime)
    while waiting:
        held.pop(0).release()
        name, lease = _next(waiting)
        del waiting[name]
        held.append(lease)
        yield f"{name} on {lease.node_id}"


def _next(waiting: dict[str, Any]) -> tuple[str, Any]:
    for _ in range(400):
        for name, future in waiting.items():
            with suppress(TimeoutError):
                return name, future.result(0.01)
    raise AssertionError(f"none of {', '.join(waiting)} starts")
