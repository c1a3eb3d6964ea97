"""A question is out at the resource manager while what it is about goes away or changes.

The answer finds the world as it is: a yes is checked again at the commit, a no gives back what the
question held, and nothing that was held outlives it. H-10: the answer may be another one every time. The same
holds of the question who may go for an ask.
"""

from collections import Counter
from collections.abc import Callable

import pytest
import ranges
from confirming import Confirming, confirming_lab, policy
from support import APP, Lab, Recorder, ask, labs

from yunikorn_actors import si

seeded = ranges.seeds(150)


class Fickle(Recorder):
    """Gives another answer every time."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: Counter[bool] = Counter()

    def predicates(self, args: si.PredicatesArgs) -> str | None:  # noqa: ARG002 - it does not care
        is_no = self.answers.total() % 2 == 0
        self.answers[is_no] += 1
        return "not this time" if is_no else None


class Willing(Recorder):
    def predicates(self, args: si.PredicatesArgs) -> str | None:  # noqa: ARG002 - it does not care
        return None


def _asking(seed: int, rm: Recorder) -> Lab:
    lab = Lab(seed=seed, rm=rm)
    lab.submit(APP)
    lab.nodes(n1=2, n2=2)
    lab.settle()
    return lab


@seeded
def test_the_ask_is_withdrawn_while_its_question_is_out(seeds: range) -> None:
    met = 0
    for seed in seeds:
        lab = _asking(seed, Willing())
        lab.ask("a", "b")
        lab.withdraw("a")
        lab.settle()
        met += lab.races.refusals["ASK_GONE"]
        assert {} == lab.planner.model.flights.placements
        assert "b" in lab.running()
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: no yes ever came for an ask that was gone"


@seeded
def test_the_node_leaves_while_the_question_about_it_is_out(seeds: range) -> None:
    met = 0
    for seed in seeds:
        lab = _asking(seed, Willing())
        lab.ask("a", vcore=2)
        lab.decommission("n1")
        lab.settle()
        met += lab.races.refusals["NODE_GONE"]
        assert {} == lab.planner.model.flights.placements
        ended = [key for key, _ in lab.rm.told("released")]
        assert ["a"] == [*lab.running(), *ended]
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: no yes ever came for a node that was gone"


@seeded
def test_a_fickle_resource_manager_and_everything_at_once(seeds: range) -> None:
    answers: Counter[bool] = Counter()
    for lab in labs(seeds, rm=Fickle()):
        rm = Fickle()
        lab.register(rm)
        lab.submit(APP, "other")
        lab.nodes(n1=2, n2=2, n3=1)
        lab.ask("a", "b", "c")
        lab.request(asks=(ask("d", 2, app="other"),))
        lab.withdraw("b")
        lab.decommission("n2")
        lab.nodes(n4=2)
        lab.settle()
        lab.advance(20)
        assert {} == lab.planner.model.flights.placements
        assert {} == lab.planner.reserver.in_flight
        assert set(lab.running()) | set(lab.waiting()) <= {"a", "b", "c", "d"}
        answers.update(rm.answers)
        assert lab.leftovers() == {}
    assert min(answers[True], answers[False]) > len(seeds), "vacuous: it was hardly asked"


@seeded
def test_registered_again_while_questions_are_out(seeds: range) -> None:
    """Answers of the former life reach nobody, and the new one starts with nothing in flight."""
    met = 0
    for seed in seeds:
        lab = _asking(seed, Willing())
        lab.ask("a", "b")
        lab.register(Willing())
        met += lab.simulator.state_dump()["issued_uuids"] == 0
        lab.submit(APP)
        lab.nodes(n1=2)
        lab.ask("c")
        lab.settle()
        assert ["c"] == lab.running()
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: everything had been answered before"


# -- who may go

CONFIG = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: rich}, "
    "{name: poor, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 4m}}}]}]}]"
)


class Agreeing(Confirming):
    """Agrees to all, once it has done what it is to do in the middle of the first question."""

    def __init__(self, meanwhile: Callable[[Lab], None]) -> None:
        super().__init__()
        self._meanwhile = meanwhile
        self.asked = 0

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse:
        self.asked += 1
        if self.asked == 1:
            self._meanwhile(self.lab)
        return si.PreemptionPredicatesResponse(success=True, index=args.start_index)


MEANWHILE: dict[str, tuple[str, Callable[[Lab], None]]] = {
    "victim ends": ("VICTIM_GONE", lambda lab: lab.release("r1", app="rich")),
    "ask withdrawn": ("ASK_GONE", lambda lab: lab.withdraw("p", app="poor")),
    "node leaves": ("VICTIM_GONE", lambda lab: lab.decommission("n1")),
    "node drained": ("NODE_DRAINING", lambda lab: lab.node("n1", si.ActionFromRM.DRAIN_NODE)),
}


@pytest.mark.parametrize(("refusal", "meanwhile"), MEANWHILE.values(), ids=MEANWHILE)
@ranges.seeds(39)
def test_something_goes_while_it_is_asked_who_may(
    refusal: str, meanwhile: Callable[[Lab], None], seeds: range
) -> None:
    """Nobody is told to go for a decision that does not hold any more, and nothing is kept."""
    met = 0
    for seed in seeds:
        rm = Agreeing(meanwhile)
        lab = confirming_lab(CONFIG, seed=seed, rm=rm)
        lab.nodes(n1=4)
        lab.submit("rich", queue="root.rich")
        lab.submit("poor", queue="root.poor")
        lab.settle()
        lab.ask("r0", app="rich", vcore=2)
        lab.advance(0.1)
        lab.ask("r1", app="rich", vcore=2)
        lab.ask("p", app="poor", vcore=3, preemption_policy=policy())
        lab.advance(2)
        met += lab.races.refusals[refusal]
        assert {} == lab.planner.preemptor.decisions.in_flight
        lab.advance(30)
        assert {} == lab.planner.preemptor.decisions.in_flight
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: every yes came in time"
