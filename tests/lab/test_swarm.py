"""Drawn worlds: a number is a run, every part and every bound occurs, and what is wrong is kept."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from drawn_scripts import drawn_script
from msgspec.structs import replace

from yunikorn_actors.cli import main
from yunikorn_actors.config import parse_config
from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.explore import Budget
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.lab.model.follower import FollowedByModel
from yunikorn_actors.lab.oracles.judges import BY_OPERATORS, MODEL, RECORDING, judges_of
from yunikorn_actors.lab.oracles.walk_oracle import OF_A_WALK
from yunikorn_actors.lab.run_schedule import explore, play
from yunikorn_actors.lab.scenario_documents import written
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm import swarm_runs
from yunikorn_actors.lab.swarm.drawn import Drawn, drawn
from yunikorn_actors.lab.swarm.small_bounds import COUNTS, TIMES, drawn_settings
from yunikorn_actors.lab.swarm.swarm_runs import Plan, Swarm, played
from yunikorn_actors.lab.swarm.world_parts import PARTS, RESTART, NoPart, Wanted
from yunikorn_actors.lab.tapes.tape import THE_END, Entry, parse_tape
from yunikorn_actors.machines import planning_loop
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.scheduling import ProposeAllocations, RunCycle, RunSlice
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.state.allocations import Ask, AskOrder

SLOW = pytest.mark.slow
SOME = range(3, 7)
"""The fifth is judged with its journal and its read side."""


WORLDS = 120


@cache
def drawn_worlds() -> tuple[Drawn, ...]:
    return tuple(drawn(1, number) for number in range(1, WORLDS + 1))


def digests(numbers: range) -> list[str]:
    runs = (drawn(1, number) for number in numbers)
    return [explore(run.case, run.schedule(), run.checkers()).digest() for run in runs]


def test_a_number_is_the_same_run_in_any_process() -> None:
    code = "from test_swarm import SOME, digests\nprint(*digests(SOME))"
    environment = os.environ | {"PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    there = subprocess.run(
        command,
        cwd=Path(__file__).parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    here = digests(SOME)
    assert here == there.stdout.split()
    assert len(set(here)) == len(SOME)


def test_another_seed_has_other_runs() -> None:
    assert drawn(1, 1) == drawn(1, 1)
    assert drawn(1, 1) != drawn(2, 1)


def test_the_text_says_all_of_the_case() -> None:
    for run in drawn_worlds()[:15]:
        case = run.case
        again = parse_case(case.text, case.scenario.file)
        assert again.on(case.topology, case.schedulers) == case


def test_all_queues_are_valid() -> None:
    configs: Counter[str] = Counter()
    for run in drawn_worlds()[:40]:
        case = run.case
        configs[case.scenario.queues] += 1
        for step in case.steps:
            if isinstance(step.step, w.Register | w.Config):
                text = step.step.config if isinstance(step.step, w.Register) else step.step.queues
                configs[text] += bool(text)
    for text in configs:
        parse_config(text)
    assert len(configs) > 40, "vacuous: hardly any queues were drawn"


# -- parts

BASE = ("several-partitions", "gangs", "contests", "predicates")
"""What other parts need to show."""


def test_each_part_is_there_and_is_missing() -> None:
    """In some runs a part is there, in others it is not, and any two are there without a third."""
    runs = [run.parts for run in drawn_worlds()]
    for part in PARTS.keys() - {RESTART}:
        assert 0 < sum(part in run for run in runs) < WORLDS, part
    assert 1 < sum(RESTART in run for run in runs) < 20


@pytest.mark.parametrize("part", PARTS)
def test_each_part_makes_a_difference(part: str) -> None:
    base = tuple(it for it in BASE if it != part)

    def shown(number: int, *parts: str) -> tuple[Any, ...]:
        it = drawn(1, number, Wanted(only=parts))
        text, topology, schedulers = it.case.text, it.case.topology, it.case.schedulers
        return text, topology, schedulers, it.faults, type(it.schedule())

    assert any(shown(number, *base) != shown(number, *base, part) for number in range(1, 40))


def test_parts_can_be_chosen() -> None:
    assert {"gangs"} == drawn(1, 1, Wanted(only=("gangs",))).parts
    for number in SOME:
        assert "gangs" not in drawn(1, number, Wanted(without=("gangs",))).parts
    with pytest.raises(NoPart, match="'gongs' is no part: take some of fused"):
        Wanted(only=("gongs",))


# -- bounds


def test_each_setting_is_drawn_small() -> None:
    """Also one that is new."""
    names = Counter(
        name
        for number in range(100)
        for name in drawn_settings(Draw(1, number), frozenset({"small-bounds", "short-times"}))
    )
    expected = {*COUNTS, *(name.removesuffix("_ns") for name in TIMES)}
    assert expected == names.keys()
    assert set(Settings.__struct_fields__) == {*COUNTS, *TIMES}


BOUNDS = (
    "cycle_max", "inflight_max", "turn_max", "slice_max", "undelivered_max", "history_max",
    "rejected_max", "event_ring_capacity", "event_push_capacity", "managers side by side",
)  # fmt: skip


@SLOW
@pytest.mark.timeout(900)
def test_each_bound_is_passed() -> None:
    report = Swarm(Plan(), Budget(runs=300)).run()
    assert {} == report.violations
    assert set(BOUNDS) <= report.passed.keys()


# -- what is found


@pytest.mark.parametrize(
    ("seed", "runs"), [(7, 10), *(pytest.param(seed, 60, marks=SLOW) for seed in range(1, 5))]
)
@pytest.mark.timeout(900)
def test_the_core_is_sound(seed: int, runs: int) -> None:
    report = Swarm(Plan(seed=seed), Budget(runs=runs)).run()
    assert report.ok, report.violations
    assert report.orders > 0.9 * report.runs
    assert report.judged > 3, "vacuous: the model judged hardly anything"
    assert {"cycle_max", "slice_max", "managers side by side"} <= report.passed.keys()


PLANNED_AMID_LONG_WORK = """
name: a plan arrives in the middle of long work, and is carried out behind it
settings: {slice_max: 1}
steps:
- create_node: {id: n1, capacity: {vcore: 1}}
- add_app: {id: app-1}
- add_app: {id: app-3}
- ask: {app: app-3, key: k0, resource: {vcore: 1}, count: 2}
- ask: {app: app-3, key: d63}
- ask: {app: app-1, key: k64, resource: {vcore: 1}, count: 2}
"""


def test_the_model_knows_what_a_plan_knew_that_had_to_wait() -> None:
    """By then other asks come first, of which the plan did not know."""
    case = parse_case(PLANNED_AMID_LONG_WORK, "amid.yaml")
    late = Entry("hold", "ApplicationsRequested(add app-3) from gateway to rm_proxy", THE_END)
    outcome = play(case, case.tape(late), (FollowedByModel(),))
    assert outcome.ok, outcome.violation
    order = [
        type(it.message) for it in outcome.deliveries
        if it.mailbox == CONTEXT and isinstance(it.message, RunSlice | ProposeAllocations)
    ]  # fmt: skip
    first = order.index(ProposeAllocations)
    assert {RunSlice} == {order[first - 1], order[first + 1]}, "vacuous: it did not have to wait"


def test_a_world_that_is_made_smaller_is_judged_by_its_own_settings() -> None:
    run = next(it for it in map(Plan().drawn, range(1, 100)) if it.is_judged)
    case = parse_case(PLANNED_AMID_LONG_WORK, "amid.yaml")
    assert run.case.scenario.settings != case.scenario.settings, "vacuous"
    checkers = run.checkers()
    play(case, case.tape(), checkers)
    (model,) = (it for it in checkers if isinstance(it, FollowedByModel))
    assert model._follower is not None
    assert case.scenario.settings == model._follower.judge.cluster.settings


def test_what_the_model_judges_comes_about_in_drawn_worlds() -> None:
    checks: Counter[str] = Counter()
    undecided: Counter[str] = Counter()
    for run in islice(filter(lambda it: it.is_judged, map(Plan().drawn, count(1))), 20):
        model = FollowedByModel()
        assert play(run.case, run.case.tape(), (model,)).ok
        assert model._follower is not None
        checks += model._follower.judge.run.checks
        undecided += model._follower.judge.run.undecided
    kinds = ("order", "node", "gang", "swap", "preempt", "victim", "reservation", "quota")
    assert min(checks[kind] for kind in kinds) > 0, f"vacuous: {checks}"
    assert undecided.total() < checks.total() / 100, "hardly anything may be left open"


@pytest.mark.parametrize("order", NODE_ORDERS)
def test_the_model_judges_by_every_node_order(order: str) -> None:
    checks: Counter[str] = Counter()
    for number in range(1, 9):
        script = drawn_script(number)
        for partition in script["queues"]["partitions"]:
            partition["nodesortpolicy"] = {**partition.get("nodesortpolicy", {}), "type": order}
        model, case = FollowedByModel(), parse_case(written(script), "script.yaml")
        assert play(case, case.tape(), (model,)).ok, number
        assert model._follower is not None
        checks += model._follower.judge.run.checks
    assert checks["node"] > 25, "vacuous: hardly any node was chosen among several"


def test_the_model_finds_that_the_least_important_ask_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        Ask, "order", lambda ask: AskOrder(ask.spec.priority, ask.created_ns, ask.sequence)
    )
    assert "by the model, order" in first_wrong(Plan(), range(1, 10))


def first_wrong(plan: Plan, numbers: range) -> str:
    runs = (played(plan, number).run for number in numbers)
    return next((run.violation.text for run in runs if run.violation is not None), "")


def test_a_cycle_cut_short_that_is_not_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_cycle(loop: PlanningLoop, message: RunCycle, now_ns: int) -> list[Any]:
        effects = before(loop, message, now_ns)
        if any(getattr(it, "message", None).__class__.__name__ == "RunCycle" for it in effects):
            loop.cycle_is_coming = False
            return [
                it
                for it in effects
                if getattr(it, "message", None).__class__.__name__ != "RunCycle"
            ]
        return effects

    before = planning_loop.HANDLERS[RunCycle]
    monkeypatch.setitem(planning_loop.HANDLERS, RunCycle, run_cycle)
    plan = Plan(wanted=Wanted(only=("fused", "small-bounds", "runs")))
    assert first_wrong(plan, range(1, 20))


def test_requests_of_two_managers_handled_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def joins(_: Context, first: Message, message: Message) -> bool:
        return type(message) is rm.RMUpdateAllocation and type(first) is rm.RMUpdateAllocation

    monkeypatch.setattr(Context, "joins", joins)
    parts = ("several-managers", "bursts", "fault-join", "rejections", "releases", "withdrawals")
    assert first_wrong(Plan(wanted=Wanted(only=parts)), range(1, 100))


def test_what_is_wrong_is_kept_and_replayed_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bounds = ("--runs", "1", "--no-baseline", "--shrink-seconds", "1s")
    status = main(("lab", "swarm", "--mutant", "M16", "--save", str(tmp_path), "--json", *bounds))
    report = json.loads(capsys.readouterr().out)
    assert 1 == status
    assert not report["ok"]
    assert report["violations"]
    for finding in {it["by_model"]: it for it in report["findings"]}.values():
        options = ["--model"] if finding["by_model"] else []
        command = ["lab", "replay", "--mutant", "M16", *options, "--json", finding["saved"]]
        there = subprocess.run(
            [sys.executable, "-m", "yunikorn_actors", *command],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (1, finding["violation"]) == (
            there.returncode,
            json.loads(there.stdout)["violation"],
        )


@pytest.mark.slow
def test_processes_change_nothing_but_the_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a share of the runs: there are more than one share has."""
    monkeypatch.setattr(swarm_runs, "RUNS_IN_SHARE", 3)
    runs = "8"

    def told(*options: str) -> dict[str, Any]:
        parts = ("--parts", "fused,several-managers,rejections")
        assert main(("lab", "swarm", "--runs", runs, *parts, "--json", *options)) == 0
        report: dict[str, Any] = json.loads(capsys.readouterr().out)
        return {**report, "seconds": 0}

    assert told() == told("--jobs", "2")


def test_the_names_of_parts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("lab", "swarm", "--parts", "list")) == 0
    assert list(PARTS) == capsys.readouterr().out.split()


class _Sometimes(Oracle):
    def __init__(self, plays: Callable[[], bool]) -> None:
        self._is_wrong = plays()

    def at_rest(self, _: World) -> None:
        if self._is_wrong:
            raise InvariantViolation("by what was drawn")


WHOLE = ("lab", "swarm", "--seed", "3", "--first", "5", "--runs", "1")


def test_a_tape_repeats_what_a_side_found_by_what_it_drew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = Draw(0).number(1_000)

    def sides(draw: Draw) -> tuple[Checker, ...]:
        return (_Sometimes(lambda: draw.number(1_000) != usual),)

    monkeypatch.setattr("yunikorn_actors.lab.oracles.run_oracles.sides", sides)
    assert 1 == main((*WHOLE, "--save", str(tmp_path), "--shrink-seconds", "2s"))
    (tape,) = tmp_path.glob("*.tape")
    assert f"yunikorn-actors lab replay {tape}\n" in capsys.readouterr().out
    assert 1 == main(("lab", "replay", str(tape)))
    assert "by what was drawn" in capsys.readouterr().out
    assert 1 == main(("lab", "shrink", str(tape)))


def test_what_its_tape_does_not_repeat_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [True]
    monkeypatch.setattr(
        "yunikorn_actors.lab.oracles.run_oracles.sides",
        lambda _: (_Sometimes(lambda: bool(wrong and wrong.pop())),),
    )
    command = (*WHOLE, "--without", "gangs")
    assert 1 == main((*command, "--save", str(tmp_path), "--shrink-seconds", "2s"))
    again = f"its tape does not repeat it; this does: yunikorn-actors {' '.join(command)}\n"
    assert again in capsys.readouterr().out
    (tape,) = tmp_path.glob("*.tape")
    assert "# to play this tape does not repeat it" in tape.read_text()


def test_a_tape_names_all_that_judged_its_run() -> None:
    named: set[str] = set()
    for run in drawn_worlds():
        tape = parse_tape(str(replace(run.case.tape(), judges=run.judges)))
        assert [*map(type, judges_of(tape))] == [*map(type, run.checkers())]
        named |= {word.partition(" ")[0] for word in tape.judges}
    assert {"core", "sides", RECORDING, BY_OPERATORS, MODEL, OF_A_WALK, "contests"} == named
