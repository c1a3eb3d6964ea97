"""At rest no ask waits that could run, whatever the resource manager refuses meanwhile.

What was refused is set aside until there is news, and what rests on another decision waits for it.
Neither may become a way of sleeping on work that could be done.
"""

from collections.abc import Callable
from itertools import count
from random import Random

import pytest
import ranges
from picky import Picky
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.checks.liveness import stuck
from yunikorn_actors.drivers.simulator.checkers import could_run
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.planning import planner
from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.refusals import Refusals
from yunikorn_actors.planning.stages.denials import Denied
from yunikorn_actors.state.proposals import Allocate, AskRef, Proposal

CONFIG = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
    "{name: a, resources: {guaranteed: {vcore: 6m}}, properties: {preemption.delay: 1s}}, "
    "{name: b}, {name: c, resources: {max: {vcore: 8m}}, maxapplications: 3}]}]}]"
)
TAG = si.constants.APP_TAG_COMPLETING_DISABLE
CORES: list[tuple[TopologyName, int]] = [
    ("proposing", 1),
    ("proposing", 2),
    ("proposing", 3),
    ("fused", 1),
]


class Script:
    """Gangs and plain applications, a resource manager of changing mind, and nodes that change."""

    def __init__(self, seed: int, topology: TopologyName, schedulers: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a repeatable run, no secret
        self._rm = Picky()
        self.lab = Lab(
            seed=seed, topology=topology, schedulers=schedulers, config=CONFIG, rm=self._rm
        )
        self._nodes: list[str] = []
        self._apps: list[tuple[str, bool]] = []
        self._keys: list[tuple[str, str]] = []
        self._numbers = count()
        self._add_node()
        self._submit()

    def play(self) -> None:
        moves: list[tuple[Callable[[], None], int]] = [
            (self._add_node, 3), (self._submit, 3), (self._ask, 5), (self._change_mind, 5),
            (self._release, 3), (self._change_node, 2), (self._let_time_pass, 1),
        ]  # fmt: skip
        names, weights = zip(*moves, strict=True)
        for _ in range(self._random.randint(15, 50)):
            self._random.choices(names, weights)[0]()
            if self._random.random() < 0.6:
                self.lab.settle()
                self._confirm(0.5)
                self.lab.settle()
                self._look()
        for _ in range(20):
            self._confirm(1)
            self.lab.settle()
        self._look()

    def _look(self) -> None:
        def refuses(key: str, node: str) -> bool:
            return (key, node) in self._rm.denied

        waiting = [it for it in stuck(self.lab.state, refuses, TAG) if it.startswith("G30")]
        assert waiting == []
        planners: list[Planner] = [it.planner for it in self.lab.schedulers] or [self.lab.planner]
        if len(planners) == 1:
            assert could_run(planners[0]) == []

    # -- moves

    def _add_node(self) -> None:
        self._nodes.append(f"n{next(self._numbers)}")
        self.lab.nodes(**{self._nodes[-1]: self._random.randint(2, 8)})

    def _submit(self) -> None:
        name, size = f"app-{next(self._numbers)}", self._random.randint(1, 4)
        is_gang = self._random.random() < 0.5
        self._apps.append((name, is_gang))
        gang = {"placeholder_ask": si.Resource.of({"vcore": size})} if is_gang else {}
        self.lab.submit(name, queue=f"root.{self._random.choice('abc')}", **gang)
        for member in range(size if is_gang else 0):
            self._keys.append((name, f"{name}-ph{member}"))
            self.lab.ask(self._keys[-1][1], app=name, placeholder=True, task_group_name="g")

    def _ask(self) -> None:
        name, is_gang = self._random.choice(self._apps)
        self._keys.append((name, f"k{next(self._numbers)}"))
        vcore = self._random.randint(1, 4)
        fields: dict[str, object] = {"priority": self._random.randint(0, 2)}
        if is_gang and self._random.random() < 0.7:
            vcore, fields["task_group_name"] = 1, "g"
        elif self._random.random() < 0.2:
            fields["tags"] = {si.constants.TAG_REQUIRED_NODE: self._random.choice(self._nodes)}
        self.lab.ask(self._keys[-1][1], vcore=vcore, app=name, **fields)

    def _change_mind(self) -> None:
        """A no holds until the next request, so one follows."""
        for _ in range(self._random.randint(1, 4) if self._keys else 0):
            self._rm.denied ^= {(self._random.choice(self._keys)[1], self._pick_node())}
        self.lab.request()

    def _release(self) -> None:
        if self._keys:
            name, key = self._random.choice(self._keys)
            gone = self.lab.release if self._random.random() < 0.7 else self.lab.withdraw
            gone(key, app=name)

    def _change_node(self) -> None:
        node, action = self._pick_node(), si.ActionFromRM
        if self._random.random() < 0.5:
            self.lab.node(node, action.UPDATE, self._random.randint(1, 8))
        else:
            drains = self._random.random() < 0.5
            self.lab.node(node, action.DRAIN_NODE if drains else action.DRAIN_TO_SCHEDULABLE)

    def _let_time_pass(self) -> None:
        self.lab.settle()
        self.lab.advance(self._random.choice((2, 20, 70)))

    def _confirm(self, share: float) -> None:
        for app in (*self.lab.state.applications.values(),):
            for uuid, item in (*app.allocations.items(),):
                if item.releasing is not None and self._random.random() < share:
                    kind = si.TerminationType[item.releasing.name]
                    self.lab.release(item.spec.key, app=app.id, uuid=uuid, termination_type=kind)

    def _pick_node(self) -> str:
        return self._random.choice(self._nodes)


@ranges.seeds(2_000, usual=4)
@pytest.mark.parametrize(("topology", "schedulers"), CORES)
def test_no_ask_waits_that_could_run(topology: TopologyName, schedulers: int, seeds: range) -> None:
    """The checkers of the lab look on: nothing is void and in flight, or proposed in vain."""
    for seed in seeds:
        Script(seed, topology, schedulers).play()


def test_a_no_is_not_lifted_by_a_scheduler_that_did_not_know_of_it() -> None:
    """One learns that what it was refused is allowed; the other was refused it again meanwhile."""
    Script(1975, "proposing", 2).play()
    lab = Lab(schedulers=2)
    lab.nodes(n1=1, n2=1)
    lab.submit("app-1")
    lab.ask("a", app="app-1", vcore=2)
    lab.settle()
    planner = lab.schedulers[0].planner
    ask = planner.model.ask_of("app-1", "a")
    assert ask is not None
    own, told = (
        Denied("app-1", "a", ask.ask.sequence, it, "no", Use.PLACING) for it in ("n1", "n2")
    )
    planner.denials.add(ask, own, 0)
    planner.note_denied(told, 0)
    assert ask.shape.denial is not None
    assert {"n1", "n2"} == ask.shape.denial.refused[Use.PLACING].keys()
    ref = AskRef(application_id="app-1", key="a", sequence=ask.ask.sequence)
    planner.note_lifted((ref,))
    assert ask.shape.denial is not None
    assert {"n1"} == ask.shape.denial.refused[Use.PLACING].keys()
    planner.denials.lift_all()
    assert {ref: None} == planner.denials.lifted
    assert ask.shape.denial is None


@ranges.seeds(500, usual=5)
@pytest.mark.parametrize(("topology", "schedulers"), CORES)
def test_no_ask_waits_where_measuring_takes_several_plans(
    topology: TopologyName, schedulers: int, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "STEPS_IN_ONE", 3)
    for seed in seeds:
        Script(seed, topology, schedulers).play()


def test_what_was_set_aside_beside_another_proposal_is_tried_without_it() -> None:
    """The planner counted on the other, of which Context did not know, and which it refuses, too.

    So it is with a daemon that needs a node about which the resource manager is still asked for
    others: Context sees room there, refuses to look for victims, and then refuses the others.
    """
    lab = Lab()
    lab.submit("app-1")
    lab.ask("daemon", app="app-1")
    lab.settle()
    model = lab.planner.model
    daemon = model.ask_of("app-1", "daemon")
    assert daemon is not None
    refusals = Refusals(model)
    first, second, third = (
        Allocate(proposal_id=number, application_id="app-1", key=key, sequence=1, node_id="n1")
        for number, key in enumerate(("other", "daemon", "later"), start=1)
    )
    refusals.note_made([first])
    refusals.something_arrived()
    refusals.note_made([second])
    refusals.note_sent([second])
    assert refusals.refuse(second.proposal_id, 0)
    refusals.set_aside(daemon)
    refusals.note_made([third])
    refusals.try_again_without(third.proposal_id)
    assert daemon in model.set_aside, "what was made behind it has no part in it"
    refusals.try_again_without(first.proposal_id)
    assert daemon not in model.set_aside


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_repeat_whose_equal_was_refused_is_tried_on_the_facts_of_now(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are asked about while their node is drained; Context refuses the first of them.

    The other one says the same, and is as old: the ask has not been decided on the drained node.
    """
    left_out = 0
    send = Planner.send

    def counted(planner: Planner, proposals: list[Proposal]) -> list[Proposal]:
        nonlocal left_out
        sent = send(planner, proposals)
        left_out += len(proposals) - len(sent)
        return sent

    monkeypatch.setattr(Planner, "send", counted)
    for seed in range(80):
        lab = Lab(seed=seed, topology=topology, rm=Picky())
        lab.nodes(n1=8)
        half = si.Resource.of({"vcore": 4})
        lab.node("n2", si.ActionFromRM.CREATE, 8, occupied_resource=half)
        lab.submit("app-1")
        lab.settle()
        lab.ask("a", app="app-1", vcore=1, max_allocations=2)
        for _ in range(seed % 16):
            lab.simulator.step()
        lab.node("n1", si.ActionFromRM.DRAIN_NODE)
        lab.settle()
        assert len(lab.running()) == 2, seed
    assert left_out, "no answer has come behind a refusal of the same"


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("how", ["withdrawn", "sent again"])
def test_the_last_placeholder_is_cancelled_while_it_is_asked_about(
    topology: TopologyName, how: str
) -> None:
    """Members wait until no placeholder does; the last one is in flight, and never comes."""
    cancelled = 0
    for seed in range(1, 61, 2):
        lab = Lab(seed=seed, topology=topology, rm=Picky())
        lab.nodes(n1=1)
        lab.submit("app-1", placeholder_ask=si.Resource.of({"vcore": 2}))
        lab.settle()
        lab.ask("ph0", "ph1", app="app-1", placeholder=True, task_group_name="g")
        lab.ask("member", app="app-1", task_group_name="g")
        lab.settle()
        lab.nodes(n2=1)
        for _ in range(seed):
            lab.simulator.step()
        if how == "withdrawn":
            lab.withdraw("ph1", app="app-1")
        else:
            lab.ask("ph1", app="app-1", task_group_name="other")
        lab.settle()
        app = lab.state.applications["app-1"]
        assert app.waiting_placeholders or app.asks["member"].parked == 1
        came = [it.spec.key for it in app.allocations.values() if it.spec.placeholder]
        cancelled += came == ["ph0"]
    assert cancelled


def test_a_reservation_whose_place_is_gone_after_a_reload_holds_its_application_back() -> None:
    """The older application has the only place that is left, so this one is not stuck."""
    lab = Lab(config=_places(2))
    lab.nodes(n1=5, n2=5)
    lab.submit("older")
    lab.ask("a", "b", "c", "d", app="older")
    lab.settle()
    lab.submit("kept")
    lab.ask("large", vcore=4, app="kept")
    lab.advance(3)
    lab.configure(_places(1))
    lab.ask("small", app="kept")
    lab.settle()
    app = lab.state.applications["kept"]
    assert app.asks["large"].reserved, "vacuous: nothing is kept for it"
    assert app.asks["small"].remaining
    assert [] == [*stuck(lab.state, lambda *_: False, TAG)]


def _places(most: int) -> str:
    leaf = f"{{name: default, maxapplications: {most}}}"
    return f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', queues: [{leaf}]}}]}}]"
