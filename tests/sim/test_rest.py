"""A core comes to rest: what Context refused is not proposed again before something is new.

For every kind of proposal there is a story in which it is made. Context is made to refuse all
proposals of that kind on the facts on which they were made, as one would whose rules differ from
those of the planner. The core has to rest all the same.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
import ranges
from msgspec.structs import replace
from support import APP, Lab, Recorder

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator import quiescence as rest
from yunikorn_actors.drivers.simulator.quiescence import NoRest
from yunikorn_actors.drivers.simulator.refusal_checks import RefusalChecker
from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.machines.context import context, partitions
from yunikorn_actors.machines.context.commit import commit_all
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.base import CONTEXT, Cause, Delivery
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.planning.apply_fact import CHANGES
from yunikorn_actors.planning.refusals import Refusals
from yunikorn_actors.scenario.document import Scenario, read_scenario
from yunikorn_actors.scenario.drivers import INSTANCE, ServiceDriver
from yunikorn_actors.scenario.performer import Stage
from yunikorn_actors.scenario.runner import Outcome, RunOptions, run_scenario, steps_of
from yunikorn_actors.scenario.step_structs import Expect
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.proposals import (
    AdmitGang,
    Allocate,
    CancelPlaceholder,
    Preempt,
    Proposal,
    Refusal,
    Replace,
    Reserve,
    Unreserve,
)

SCENARIOS = Path(__file__).parent.parent / "scenarios"
STORIES: list[tuple[type, str]] = [
    (Allocate, "basic/005-first-allocation.yaml"),
    (Allocate, "limits/repeats-up-to-the-limit.yaml"),
    (Allocate, "required-node/015-one-victim-for-each-repeat.yaml"),
    (Reserve, "reservations/001-picky-ask-reserves.yaml"),
    (Reserve, "required-node/002-waits-with-a-reservation.yaml"),
    (Unreserve, "reservations/011-reservation-without-headroom-expires.yaml"),
    (Preempt, "preemption/001-guaranteed-takes-back.yaml"),
    (Preempt, "preemption/012-quota-lowered.yaml"),
    (Preempt, "required-node/003-preempts-on-its-node.yaml"),
    (AdmitGang, "gang/004-held-until-the-queue-has-room.yaml"),
    (Replace, "gang/009-swap-on-the-same-node.yaml"),
    (Replace, "gang/011-swap-on-another-node.yaml"),
    (CancelPlaceholder, "gang/015-real-ask-larger-than-the-placeholder.yaml"),
]
stories = pytest.mark.parametrize(
    ("kind", "name"), STORIES, ids=lambda it: it if isinstance(it, str) else it.__name__
)
ONE = [("proposing", 1), ("fused", 1)]
one = pytest.mark.parametrize("core", ONE)
first = pytest.mark.parametrize("core", ranges.first(ONE, 1))
cores = pytest.mark.parametrize("core", [("proposing", 1), ("proposing", 2), ("fused", 1)])
Commit = Callable[[UnitOfWork, Sequence[Proposal]], Iterator[tuple[Proposal, Refusal]]]


def test_every_kind_of_proposal_has_a_story() -> None:
    assert {kind for kind, _ in STORIES} == set(get_args(Proposal))


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[[type], list[Proposal]]:
    """Have all proposals of a kind refused, and gather them."""

    def refuse(kind: type) -> list[Proposal]:
        gathered: list[Proposal] = []

        def commit(
            unit: UnitOfWork, proposals: Sequence[Proposal]
        ) -> Iterator[tuple[Proposal, Refusal]]:
            for proposal in proposals:
                if isinstance(proposal, kind):
                    gathered.append(proposal)
                    yield proposal, Refusal.NODE_FULL
                else:
                    yield from commit_all(unit, [proposal])

        monkeypatch.setattr(context, "commit_all", commit)
        monkeypatch.setattr(partitions, "commit_all", commit)
        return gathered

    return refuse


def _told(name: str) -> Scenario:
    """Return a story without what it expects, which is not what happens here."""
    read = read_scenario(SCENARIOS / name)
    steps = tuple(step for step in read.steps if not isinstance(step.step, Expect))
    return replace(read, steps=steps)


def _run(name: str, core: tuple[Any, int], **options: Any) -> Outcome:
    topology, schedulers = core
    return run_scenario(
        _told(name),
        RunOptions(
            topology=topology, schedulers=schedulers, checkers=lambda: (RefusalChecker(),), **options
        ),
    )  # fmt: skip


@cores
@stories
def test_what_is_refused_is_not_proposed_again(
    kind: type, name: str, core: tuple[Any, int], refused: Callable[[type], list[Proposal]]
) -> None:
    gathered = refused(kind)
    outcome = _run(name, core)
    assert gathered, "nothing was refused, so nothing is shown"
    assert () == outcome.failures


@cores
@stories
def test_the_checker_sees_what_is_proposed_again(
    kind: type,
    name: str,
    core: tuple[Any, int],
    refused: Callable[[type], list[Proposal]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Refusals, "refuse", lambda *_: False)
    monkeypatch.setattr(rest, "CYCLES_MAX", 50)
    refused(kind)
    outcome = _run(name, core)
    text = " ".join(str(failure.actual) for failure in outcome.failures)
    assert "proposed again though no fact has arrived" in text


@one
def test_the_simulator_names_what_goes_round(
    core: tuple[Any, int],
    refused: Callable[[type], list[Proposal]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Refusals, "refuse", lambda *_: False)
    monkeypatch.setattr(RefusalChecker, "delivered", lambda *_: None)
    refused(Preempt)
    name = "preemption/001-guaranteed-takes-back.yaml"
    (failure,) = _run(name, core, seeds=(3,)).failures
    text = str(failure.actual)
    assert "does not come to rest: 10" in text
    assert "cycles of planning and no fact since virtual time 1767225" in text
    assert "go round: " in text
    assert "RunCycle to " in text
    assert f"{name} --seed 3 --topology {core[0]}" in text


@one
def test_the_laboratory_reports_what_goes_round(
    core: tuple[Any, int],
    refused: Callable[[type], list[Proposal]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Refusals, "refuse", lambda *_: False)
    refused(Preempt)
    case = read_case(SCENARIOS / "preemption/001-guaranteed-takes-back.yaml", core[0])
    bare, checked = play(case, case.tape()), play(case, case.tape(), (RefusalChecker(),))
    assert bare.violation is not None
    assert "NoRest" == bare.violation.kind
    assert checked.violation is not None
    assert "proposed again though no fact has arrived" in checked.violation.text


class Restless(Recorder):
    """Releases what it is given, and asks for something else, from inside the callback."""

    lab: Lab

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        for new in response.new:
            self.lab.release(new.allocation_key)
            self.lab.ask(f"k{self.lab.simulator.delivered}")


def test_messages_that_only_answer_each_other_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core and a resource manager that never has enough keep each other busy."""
    monkeypatch.setattr(rest, "MESSAGES_MAX", 2_000)
    rm = Restless()
    rm.lab = Lab(rm=rm)
    rm.lab.nodes(n1=10)
    rm.lab.submit(APP)
    rm.lab.ask("first")
    with pytest.raises(NoRest, match=r"does not come to rest: 2\d\d\d messages since virtual"):
        rm.lab.settle()


@first
def test_many_cycles_without_a_fact_are_no_loop(
    core: tuple[Any, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More asks than a cycle tries look for victims in vain, each alone of its priority."""
    monkeypatch.setattr(rest, "CYCLES_MAX", 1)
    cycles = _counted(monkeypatch)
    steps = "".join(VAIN.format(number=number) for number in range(300))
    _hold(tmp_path, FULL + "  - together:\n" + steps + "  - advance: 60s\n", core)
    assert max(cycles) > 1, "the bound that work raises was never needed"


@first
def test_many_asks_are_no_loop(core: tuple[Any, int], tmp_path: Path) -> None:
    """20,000 asks, 256 a cycle, of which two in five find no room."""
    text = FULL + "  - ask: {app: b, key: w, resource: {vcore: 1}, count: 20000}\n"
    _hold(tmp_path, text.replace("vcore: 10000}", "vcore: 22000}"), core)


def _hold(folder: Path, text: str, core: tuple[Any, int]) -> None:
    file = folder / "long.yaml"
    file.write_text(text)
    options = RunOptions(topology=core[0], checkers=lambda: (RefusalChecker(),))
    assert () == run_scenario(read_scenario(file), options).failures


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gather how many cycles without a fact followed each other."""
    cycles = [0]
    note = rest.RestWatch.note

    def noting(self: rest.RestWatch, *arguments: Any) -> None:
        note(self, *arguments)
        cycles.append(self._cycles)

    monkeypatch.setattr(rest.RestWatch, "note", noting)
    return cycles


FULL = """
name: long work
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: "*"
          queues:
            - {name: rich, resources: {guaranteed: {vcore: 10}}}
            - {name: poor, resources: {guaranteed: {vcore: 10}}}
steps:
  - create_node: {id: n1, capacity: {vcore: 10000}}
  - add_app: {id: a, queue: root.rich}
  - add_app: {id: b, queue: root.poor}
  - ask: {app: a, key: k, resource: {vcore: 1000}, count: 10}
"""
VAIN = (
    "    - ask: {{app: b, key: w{number}, priority: {number}, resource: {{vcore: 1000}}, "
    "preemption: {{allow_other: true}}}}\n"
)


@pytest.mark.parametrize("driver", ["threads", "direct"])
def test_a_core_in_service_rests(driver: Any, refused: Callable[[type], list[Proposal]]) -> None:
    """On threads a core that goes round keeps a processor busy; here its messages stop."""
    gathered = refused(Preempt)
    scenario = _told("preemption/001-guaranteed-takes-back.yaml")
    topology = Topology("proposing", settings=scenario.settings, instance=INSTANCE)
    service = ServiceDriver(driver=driver, topology=topology, trace=None)
    try:
        stage = Stage(scenario, service, None)
        for step in steps_of(scenario):
            stage.perform(step)
        assert gathered
        handled, refusals = service.core.handled, len(gathered)
        time.sleep(0.2)
        assert (handled, refusals) == (service.core.handled, len(gathered))
    finally:
        service.close()


def test_records_change_nothing_that_a_planner_looks_at() -> None:
    """Of those that the planner follows it takes what to report, not what to decide."""
    records = {kind for kind in get_args(f.Fact) if kind.is_record}
    assert {f.ApplicationCrowded, f.AskShortageChanged, f.PreemptionFailed} >= {
        kind for kind in records if kind in CHANGES
    }
    assert 10 < len(records) < len(get_args(f.Fact)) / 2


def test_what_was_refused_once_is_judged_once() -> None:
    """A cycle that waits behind long work makes no plan when it arrives: what is shown is old."""
    wish = Allocate(proposal_id=1, application_id="app", key="k", sequence=1, node_id="n1")
    cycle = RunCycle(partition="[rm-1]default", epoch=1)
    delivery = Delivery(CONTEXT, 1, CONTEXT, Cause(CONTEXT, 0), "", 0, cycle)
    checker, old = RefusalChecker(), [(wish, Refusal.ASK_GONE)]
    for _ in range(3):
        checker._follow_own("[rm-1]default", old, [], delivery)
    again = [(replace(wish, proposal_id=2), Refusal.ASK_GONE)]
    with pytest.raises(InvariantViolation, match="refused with ASK_GONE and proposed again"):
        checker._follow_own("[rm-1]default", again, [], delivery)
