"""R-077 to R-085: who has to go, for whom, and how often it is said."""

from collections.abc import Callable

import pytest
import ranges
from confirming import Confirming, Victims, confirming_lab, policy
from support import Lab, facts_of

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.planning.model.views import AppView
from yunikorn_actors.planning.preemption.scene import Scene
from yunikorn_actors.planning.preemption.victim_search import Search
from yunikorn_actors.planning.stages import preempt as preempting
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec

REQUIRED = {"yunikorn.apache.org/requiredNode": "n1"}
PUSHY = {"preemption_policy": policy()}


def config(*leaves: str, switches: str = "") -> str:
    below = ", ".join(leaves)
    root = f"{{name: root, submitacl: '*', queues: [{below}]}}"
    return f"partitions: [{{name: default, preemption: {{{switches}}}, queues: [{root}]}}]"


def leaf(name: str, guaranteed: int = 0, properties: str = "preemption.delay: 1s") -> str:
    sizes = f"{{guaranteed: {{vcore: {guaranteed}m}}}}" if guaranteed else "{}"
    return f"{{name: {name}, properties: {{{properties}}}, resources: {sizes}}}"


TWO = config(leaf("rich"), leaf("poor", 4))


def rich_and_poor(seed: int, *, at_once: bool, vcore: int = 4, text: str = TWO) -> Lab:
    """`rich` fills the one node; `poor` has nothing yet."""
    lab = confirming_lab(text, seed=seed, at_once=at_once, checkers=(Victims(),))
    lab.nodes(n1=vcore)
    lab.submit("rich", queue="root.rich")
    lab.submit("poor", queue="root.poor")
    lab.settle()
    lab.ask(*(f"r{number}" for number in range(vcore)), app="rich", **PUSHY)
    lab.settle()
    return lab


def told(lab: Lab) -> list[str]:
    return sorted(key for key, type_ in lab.rm.told("released") if "PREEMPTED" in type_)


class Cycles:
    def __init__(self) -> None:
        self.count = 0

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:  # noqa: ARG002
        self.count += isinstance(delivery.message, RunCycle)


@ranges.seeds(39, first=0)
def test_r077_the_victims_are_asked_back_once(seeds: range) -> None:
    """Cycles go by while the resource manager takes its time; nobody else has to go."""
    for seed in seeds:
        cycles = Cycles()
        lab = confirming_lab(TWO, seed=seed, at_once=False, checkers=(cycles,))
        lab.nodes(n1=4)
        lab.submit("rich", queue="root.rich")
        lab.submit("poor", queue="root.poor")
        lab.settle()
        lab.ask("r0", "r1", "r2", "r3", app="rich", **PUSHY)
        lab.settle()
        lab.ask("p0", app="poor", **PUSHY)
        lab.ask("d0", app="poor", tags=REQUIRED, **PUSHY)
        lab.advance(2)
        asked, before = told(lab), cycles.count
        assert len(asked) >= 1
        for number in range(4):
            lab.nodes(**{f"small{number}": 0})
            lab.advance(20)
        assert cycles.count >= before + 4, "vacuous: nothing was decided meanwhile"
        assert asked == told(lab)
        assert isinstance(lab.rm, Confirming)
        lab.rm.confirm_all()
        lab.settle()
        assert lab.leftovers() == {}


@ranges.seeds(39, first=0)
def test_r078_a_victim_counts_for_one_ask(seeds: range) -> None:
    """Two asks of two queues come of age together, and there are two to go."""
    text = config(leaf("rich"), leaf("poor", 1), leaf("needy", 1))
    for seed in seeds:
        victims = Victims()
        lab = confirming_lab(text, seed=seed, at_once=False, checkers=(victims,))
        lab.nodes(n1=1, n2=1)
        for name in ("rich", "poor", "needy"):
            lab.submit(name, queue=f"root.{name}")
        lab.settle()
        lab.ask("r0", "r1", app="rich")
        lab.settle()
        lab.ask("p", app="poor", **PUSHY)
        lab.ask("q", app="needy", **PUSHY)
        lab.advance(2)
        assert {"p", "q"} == {fact.beneficiary.key for fact in victims.marked}
        assert ["r0", "r1"] == sorted(victims.keys()) == told(lab)
        assert 1 == len({fact.at_ns for fact in victims.marked}), "vacuous: not at one time"


@ranges.seeds(39, first=0)
def test_r080_two_queues_do_not_take_from_each_other_in_turn(seeds: range) -> None:
    text = config(leaf("rich", 2), leaf("poor", 2))
    for seed in seeds:
        lab = rich_and_poor(seed, at_once=True, text=text)
        lab.ask("p0", "p1", "p2", "p3", app="poor", **PUSHY)
        lab.advance(40)
        taken = told(lab)
        assert 2 == len(taken)
        lab.ask("again0", "again1", app="rich", **PUSHY)
        lab.advance(200)
        assert taken == told(lab), "both wait for more than they are guaranteed"
        sizes = [lab.state.queues[path].allocated["vcore"] for path in ("root.rich", "root.poor")]
        assert [2, 2] == sizes
        assert lab.waiting() == ["again0", "again1", "p2", "p3"]


def test_r081_only_real_attempts_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many are not entitled, or not yet; with one attempt in a plan the one that is gets it."""
    attempts: list[str] = []
    look = Search.next

    def counted(search: Search, app: AppView, spec: AskSpec, waiting: Callable[[], int]) -> object:
        attempts.append(spec.key)
        return look(search, app, spec, waiting)

    monkeypatch.setattr(preempting, "ATTEMPTS_MAX", 1)
    monkeypatch.setattr(Search, "next", counted)
    lab = rich_and_poor(0, at_once=True)
    gentle = policy(pushy=False)
    lab.ask(*(f"g{n}" for n in range(50)), app="poor", priority=9, preemption_policy=gentle)
    lab.settle()
    lab.ask("p0", app="poor", **PUSHY)
    lab.advance(3)
    assert ["p0"] == attempts, "vacuous: nothing was attempted"
    assert 1 == len(told(lab))
    assert "p0" in lab.running()


def quota(parent: int, child: int) -> str:
    delay = "quota.preemption.delay: 10s"
    inner = f"{{name: a, properties: {{{delay}}}, resources: {{max: {{vcore: {child}m}}}}}}"
    outer = (
        f"{{name: p, properties: {{{delay}}}, resources: {{max: {{vcore: {parent}m}}}}, "
        f"queues: [{inner}]}}"
    )
    return config(outer, switches="quotapreemptionenabled: true")


class Enforced:
    """Which queues were brought under their maximum, and when."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        for fact in facts_of(simulator, delivery) if delivery.mailbox == CONTEXT else ():
            if isinstance(fact, f.PreemptionDecided):
                self.seen.append((fact.beneficiary.queue, len(fact.victims)))


@ranges.seeds(39, first=0)
def test_r082_r083_a_parent_and_its_child_share_no_victim(seeds: range) -> None:
    """Both are due at the same moment; together they take no more than the larger excess."""
    for seed in seeds:
        enforced = Enforced()
        lab = confirming_lab(quota(9, 9), seed=seed, at_once=False, checkers=(enforced,))
        lab.nodes(n1=20)
        lab.submit("app", queue="root.p.a")
        lab.ask(*(f"k{number}" for number in range(9)), app="app")
        lab.settle()
        lab.configure(quota(6, 5))
        lab.settle()
        assert {"root.p", "root.p.a"} == set(lab.state.quotas)
        assert 1 == len(set(lab.state.quotas.values())), "vacuous: not due together"
        lab.advance(11)
        assert [("root.p", 3), ("root.p.a", 1)] == enforced.seen
        assert 4 == len(told(lab)) == len(set(told(lab)))
        lab.rm.confirm_all()  # type: ignore[attr-defined]
        lab.advance(60)
        assert 5 == lab.state.queues["root.p.a"].allocated["vcore"]
        assert 4 == len(told(lab))


@ranges.seeds(39, first=0)
def test_r084_work_reported_above_a_maximum_starts_the_delay(seeds: range) -> None:
    for seed in seeds:
        lab = confirming_lab(quota(3, 3), seed=seed)
        lab.nodes(n1=20)
        lab.submit("app", queue="root.p.a")
        lab.settle()
        size = si.Resource.of({"vcore": 1})
        lab.report(
            *(
                si.Allocation(
                    application_id="app", allocation_key=f"k{number}", node_id="n1",
                    resource_per_alloc=size,
                )
                for number in range(5)
            )
        )  # fmt: skip
        lab.settle()
        assert 5 == len(lab.running()), "what runs is not refused"
        assert {"root.p", "root.p.a"} == set(lab.state.quotas)
        lab.advance(9)
        assert [] == told(lab)
        lab.advance(2)
        assert 2 == len(told(lab))
        assert 3 == len(lab.running())


def test_r079_the_search_leaves_the_asking_queue_out() -> None:
    """Structure: nothing is locked; its own leaf holds all there is, and nobody has to go."""
    lab = rich_and_poor(1, at_once=True, text=config(leaf("rich"), leaf("poor", 9)))
    lab.release("r0", "r1", "r2", "r3", app="rich")
    lab.settle()
    lab.ask("p0", "p1", "p2", "p3", app="poor")
    lab.settle()
    lab.submit("other", queue="root.poor")
    lab.ask("x", app="other", priority=9, **PUSHY)
    lab.advance(60)
    assert ["p0", "p1", "p2", "p3"] == lab.running(), "vacuous: the leaf is not full"
    assert [] == told(lab)


def test_r085_the_core_goes_on_while_a_victim_is_not_confirmed() -> None:
    """Structure: it waits for no callback, so what a callback holds is no matter."""
    lab = rich_and_poor(2, at_once=False)
    lab.ask("p0", app="poor", **PUSHY)
    lab.advance(2)
    assert 1 == len(told(lab))
    lab.nodes(n2=2)
    lab.ask("late", app="rich")
    lab.settle()
    placed = {item.spec.key for item in lab.state.nodes["n2"].allocations.values()}
    assert {"late", "p0"} == placed
    assert 1 == len(told(lab))


@ranges.seeds(39, first=0)
def test_room_that_is_about_to_be_used_is_not_promised_as_well(seeds: range) -> None:
    """An ask is on its way to the room that was made for it: it uses one, not two."""
    text = config(leaf("rich"), leaf("poor", 6))
    crossed = 0
    for seed in seeds:
        lab = rich_and_poor(seed, at_once=False, text=text)
        lab.ask("p0", app="poor", **PUSHY)
        lab.advance(2)
        lab.rm.confirm_all()  # type: ignore[attr-defined]
        planner = lab.planner
        while not planner.model.flights.serving and lab.simulator.step():
            pass
        crossed += bool(planner.model.flights.serving)
        poor = planner.state.queues["root.poor"]
        assert 1 == Scene(planner.model, (), 0).usage.of(poor)["vcore"]
        lab.settle()
        assert "p0" in lab.running()
    assert len(seeds) == crossed, "vacuous: it was never on its way"
