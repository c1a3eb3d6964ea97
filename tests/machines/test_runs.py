"""Runs: what is committed at once is what would be committed one after the other."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from committing import Driver, Refused
from drawn_scripts import drawn_script
from support import APP, Lab, facts_of
from written import LEAF, Written

from yunikorn_actors import si
from yunikorn_actors.cli import main
from yunikorn_actors.config import LimitConfig
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.scenario_documents import Document, written
from yunikorn_actors.machines.context import commit
from yunikorn_actors.machines.events.publisher import Ring
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery, is_callback
from yunikorn_actors.scenario.document import parse_scenario
from yunikorn_actors.scenario.runner import RunOptions, run_scenario
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.proposals import Allocate, Proposal, Refusal

OTHER = "root.other"
ONE = si.Resource.of({"vcore": 1})
WORLDS = 45


def _parts(facts: list[f.Fact]) -> list[f.Fact]:
    return [part for fact in facts for part in f.parts_of(fact)]


def _drawn(dice: Random) -> tuple[Written, list[Proposal]]:
    """A state, and proposals that were made on others: many of them do not hold any more."""
    world = Written(LEAF, OTHER)
    for queue in (LEAF, OTHER):
        limit = LimitConfig(users=("bob",), max_resources={"vcore": dice.randint(3, 12)})
        world.reconfigure(
            queue,
            max=dice.choice((None, {"vcore": dice.randint(4, 14)})),
            limits=dice.choice(((), (limit,))),
        )
    for node in ("n1", "n2", "n3"):
        world.node(node, vcore=dice.randint(4, 12))
    wanted: list[tuple[str, str, int]] = []
    for number in range(4):
        app = f"app-{number}"
        world.add(app, queue=dice.choice((LEAF, OTHER)), user=dice.choice(("bob", "ann")))
        world.recover(f"{app}-r", "n1", app, vcore=1)
        if dice.random() < 0.9:
            world.move(app, ApplicationState.RUNNING)
        for key in range(5):
            name, node = f"{app}-{key}", "n1" if dice.random() < 0.1 else ""
            repeats = dice.choice((1, 1, 3))
            vcore = dice.choice((1, 1, 1, 2))
            world.ask(name, app, vcore=vcore, repeats=repeats, required_node=node)
            sequence = world.application(app).asks[name].sequence
            wanted += [(app, name, sequence)] * dice.choice((1, repeats))
    if dice.random() < 0.2:
        world.schedule("n2", drained=True)
    proposals: list[Proposal] = []
    while wanted:
        app, key, sequence = wanted.pop(int(dice.random() * len(wanted)))
        node = dice.choice(("n1", "n2", "n2", "n3", "n3", "gone" if dice.random() < 0.1 else "n3"))
        sequence += dice.random() < 0.05
        proposals.append(
            Allocate(
                proposal_id=len(proposals) + 1,
                application_id=app,
                key=key,
                sequence=sequence,
                node_id=node,
            )
        )
    return world, proposals


def _committed(seed: int) -> tuple[list[f.Fact], list[Refused], Any]:
    world, proposals = _drawn(Random(seed))  # noqa: S311 - a repeatable draw
    facts, refused = Driver(world, settings=Settings()).commit_all(proposals)
    return facts, refused, snapshot(world.state)


def test_a_run_is_what_one_after_the_other_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    met: Counter[str] = Counter()
    for seed in range(WORLDS):
        facts, refused, state = _committed(seed)
        with monkeypatch.context() as cut:
            cut.setattr(commit, "LONGEST_BATCH", 1)
            singly, also_refused, same_state = _committed(seed)
        assert singly == _parts(singly), "cut to one, there is no run"
        assert singly == _parts(facts)
        assert also_refused == refused
        assert same_state == state, "the revision, too: a run counts as its parts"
        met.update(type(fact).__name__ for fact in facts)
        met.update(reason.value for _, reason in refused)
    assert met["AllocationsCommitted"] > WORLDS
    for reason in (Refusal.QUEUE_LIMIT, Refusal.USER_LIMIT, Refusal.NODE_FULL, Refusal.ASK_GONE):
        assert met[reason.value] > 5, f"vacuous: hardly anything was refused for {reason}"


class _Notes:
    """What was decided, in order, and what the resource manager heard."""

    def __init__(self) -> None:
        self.decided: list[f.Fact] = []
        self.heard: list[object] = []
        self.runs: Counter[type] = Counter()

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT:
            facts = facts_of(simulator, delivery)
            self.runs.update(type(fact) for fact in facts)
            self.decided += _parts(facts)
        elif is_callback(delivery.mailbox):
            self.heard.append(delivery.message)


def _with_bursts(script: Document) -> Document:
    """Each application asks for some of one size when there is room, so that runs are made."""
    apps = [step["add_app"]["id"] for step in script["steps"] if "add_app" in step]
    room = {"create_node": {"id": "large", "capacity": {"vcore": 40_000, "memory": 100}}}
    bursts = [
        {"ask": {"app": app, "key": f"{app}-{burst}", "resource": {"vcore": 1000}, "count": 4}}
        for burst in ("once", "again")
        for app in apps
    ]
    return {**script, "steps": [*script["steps"], room, *bursts]}


def _noted(number: int, topology: TopologyName) -> _Notes:
    notes = _Notes()
    scenario = parse_scenario(written(_with_bursts(drawn_script(number))), "script.yaml")
    options = RunOptions(seeds=(number,), topology=topology, checkers=lambda: (notes,))
    assert not run_scenario(scenario, options).failures
    return notes


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_runs_change_no_decision(topology: TopologyName, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over drawn scripts, which have every policy: the facts, their order, and what is told."""
    met: Counter[type] = Counter()
    for number in range(1, 8):
        notes = _noted(number, topology)
        with monkeypatch.context() as cut:
            cut.setattr(commit, "LONGEST_BATCH", 1)
            singly = _noted(number, topology)
        assert singly.decided == notes.decided, number
        assert singly.heard == notes.heard, number
        met += notes.runs
    assert min(met[f.AllocationsCommitted], met[f.AsksAdded]) > 10, "vacuous: hardly any run"


def _drawn_item(dice: Random, position: int) -> si.AllocationAsk:
    """Often one of a kind with those before it; else one that is taken by itself, or rejected."""
    fields: dict[str, Any] = {}
    if dice.random() < 0.2:
        odd: tuple[dict[str, Any], ...] = (
            {"application_id": dice.choice(("app-2", "gone", "new"))},
            {"resource_ask": si.Resource.of({"vcore": dice.choice((0, -1, 2))})},
            {"max_allocations": dice.choice((0, 2))},
            {"allocation_key": dice.choice(("k0", "k1")), "max_allocations": dice.choice((2, 3))},
            {"placeholder": True, "task_group_name": "g"},
            {"tags": {si.constants.TAG_REQUIRED_NODE: "n1"}},
            {"tags": {"creationTime": "1767225500"}},
            {"partition_name": "other"},
        )
        fields = dice.choice(odd)
    plain = {"application_id": APP, "allocation_key": f"k{position}", "resource_ask": ONE}
    return si.AllocationAsk(**{**plain, **fields})


def _asked(seed: int) -> _Notes:
    dice, notes = Random(seed), _Notes()  # noqa: S311 - a repeatable draw
    lab = Lab(topology=TOPOLOGIES[seed % 2], checkers=(notes,))
    lab.nodes(n1=8)
    lab.submit(APP, "app-2", "new")
    for request in range(3):
        items = [_drawn_item(dice, 10 * request + number) for number in range(10)]
        lab.request(asks=tuple(items))
        lab.settle()
    return notes


def test_a_request_is_taken_as_one_ask_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    met: Counter[str] = Counter()
    for seed in range(30):
        notes = _asked(seed)
        with monkeypatch.context() as cut:
            cut.setattr(commit, "LONGEST_BATCH", 1)
            singly = _asked(seed)
        assert singly.decided == notes.decided, seed
        assert singly.heard == notes.heard, seed
        met.update(kind.__name__ for kind in notes.runs.elements())
    assert met["AsksAdded"] > 30
    assert met["AskReplaced"] > 3, "vacuous: hardly a key came twice"


def _gang(topology: TopologyName) -> tuple[list[list[str]], _Notes]:
    """More placeholders than the gang has to have: it runs before the last of them."""
    noted, notes = _Facts(), _Notes()
    lab = Lab(topology=topology, checkers=(noted, notes))
    lab.nodes(n1=4, n2=4)
    lab.submit(APP, placeholder_ask=si.Resource.of({"vcore": 5}))
    names = [f"p{number}" for number in range(7)]
    lab.ask(*names, placeholder=True, task_group_name="g")
    lab.settle()
    assert names == lab.running()
    return [list(run.keys) for run in noted.runs], notes


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_placeholders_are_placed_in_a_run_that_ends_with_the_gang(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, notes = _gang(topology)
    monkeypatch.setattr(commit, "LONGEST_BATCH", 1)
    none, singly = _gang(topology)
    assert [["p1", "p2", "p3", "p4"], ["p5", "p6"]] == keys
    assert [] == none
    assert singly.decided == notes.decided
    assert singly.heard == notes.heard


# -- what a run is, and what ends it


def _lab(topology: TopologyName = "fused", **fields: Any) -> Lab:
    """Two applications that run already; with the first allocation each is told to run."""
    lab = Lab(topology=topology, **fields)
    lab.nodes(n1=20, n2=20)
    lab.submit(APP, "app-2")
    for app in (APP, "app-2"):
        lab.ask(f"{app}-first", app=app)
    lab.settle()
    return lab


class _Facts:
    def __init__(self) -> None:
        self.runs: list[f.AllocationsCommitted] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT:
            facts = facts_of(simulator, delivery)
            self.runs += [fact for fact in facts if isinstance(fact, f.AllocationsCommitted)]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_plan_of_equal_asks_is_one_fact_and_one_announcement(topology: TopologyName) -> None:
    noted = _Facts()
    lab = _lab(topology, checkers=(noted,))
    lab.ask("a", "b", "c")
    lab.ask("d", app="app-2")
    lab.settle()
    (run,) = noted.runs
    assert ("a", "b", "c", "d") == run.keys
    assert [APP, "app-2"] == [charged.application_id for charged in run.charged]
    assert (0, 0, 0, 1) == run.members
    assert ["a", "b", "c", "d"] == [key for key, _ in lab.rm.told("new")][-4:]
    assert lab.running() == sorted([f"{APP}-first", "app-2-first", "a", "b", "c", "d"])


def _larger(lab: Lab) -> None:
    lab.request(asks=tuple(_ask(key, vcore) for key, vcore in (("a", 1), ("b", 2), ("c", 1))))


def _with_timeout(lab: Lab) -> None:
    fields = ({}, {"execution_timeout_milli_seconds": 1000}, {})
    lab.request(asks=tuple(_ask(key, 1, **more) for key, more in zip("abc", fields, strict=True)))


def _with_required_node(lab: Lab) -> None:
    fields: tuple[dict[str, Any], ...]
    fields = ({}, {"tags": {si.constants.TAG_REQUIRED_NODE: "n2"}}, {})
    lab.request(asks=tuple(_ask(key, 1, **more) for key, more in zip("abc", fields, strict=True)))


def _ask(key: str, vcore: int, **fields: Any) -> si.AllocationAsk:
    amount = si.Resource.of({"vcore": vcore})
    return si.AllocationAsk(application_id=APP, allocation_key=key, resource_ask=amount, **fields)


@pytest.mark.parametrize("request_", [_larger, _with_timeout, _with_required_node])
def test_an_ask_of_another_kind_is_committed_by_itself(request_: Callable[[Lab], None]) -> None:
    noted = _Facts()
    lab = _lab(checkers=(noted,))
    request_(lab)
    lab.settle()
    assert {"a", "b", "c"} <= set(lab.running())
    assert all("b" not in run.keys for run in noted.runs)


def test_a_trace_shows_a_run_and_finds_what_is_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.trace"
    script = {
        "name": "a run",
        "steps": [
            {"create_node": {"id": "n1", "capacity": {"vcore": 20_000}}},
            {"add_app": {"id": APP}},
            {"ask": {"app": APP, "key": "first", "resource": {"vcore": 1000}}},
            {"advance": "1s"},
            {"ask": {"app": APP, "key": "k", "resource": {"vcore": 1000}, "count": 6}},
        ],
    }
    scenario = tmp_path / "run.yaml"
    scenario.write_text(written(script))
    assert main(["scenario", "run", str(scenario), "--trace", str(path)]) == 0
    capsys.readouterr()
    assert main(["trace", "show", str(path), "--type", "FactsAppended"]) == 0
    shown = capsys.readouterr().out
    assert f"AllocationsCommitted 6 of {APP} vcore=1000 each: k-0 -> n1, k-1 -> n1" in shown
    assert main(["trace", "show", str(path), "--about", "k-5"]) == 0
    shown = capsys.readouterr().out
    assert f"AllocationCommitted {APP} k-5 -> n1 vcore=1000" in shown
    assert "and 5 about others" in shown
    assert main(["trace", "replay", str(path)]) == 0


def test_a_run_has_the_records_of_its_parts() -> None:
    noted = _Facts()
    lab = _lab(checkers=(noted,))
    lab.ask("a", "b")
    lab.settle()
    whole, singly = Ring(100), Ring(100)
    (run,) = noted.runs
    assert whole.take([run]) == singly.take(run.parts())
    assert whole.read(3, 4) == singly.read(3, 4)
    assert whole.read(0, 100) == singly.read(0, 100)
