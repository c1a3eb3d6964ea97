"""A question is out at the resource manager while what it is about goes away or changes.

The answer finds the world as it is: a yes is checked again at the commit, a no gives back what the
question held, and nothing that was held outlives it. H-10: the answer may be another one every time.
"""

from collections import Counter

from support import APP, Lab, Recorder, ask, labs

from yunikorn_actors import si

SEEDS = 150


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


def test_the_ask_is_withdrawn_while_its_question_is_out() -> None:
    met = 0
    for seed in range(1, SEEDS + 1):
        lab = _asking(seed, Willing())
        lab.ask("a", "b")
        lab.withdraw("a")
        lab.settle()
        met += lab.races.refusals["ASK_GONE"]
        assert {} == lab.planner.in_flight
        assert "b" in lab.running()
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: no yes ever came for an ask that was gone"


def test_the_node_leaves_while_the_question_about_it_is_out() -> None:
    met = 0
    for seed in range(1, SEEDS + 1):
        lab = _asking(seed, Willing())
        lab.ask("a", vcore=2)
        lab.decommission("n1")
        lab.settle()
        met += lab.races.refusals["NODE_GONE"]
        assert {} == lab.planner.in_flight
        ended = [key for key, _ in lab.rm.told("released")]
        assert ["a"] == [*lab.running(), *ended]
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: no yes ever came for a node that was gone"


def test_a_fickle_resource_manager_and_everything_at_once() -> None:
    answers: Counter[bool] = Counter()
    for lab in labs(SEEDS, rm=Fickle()):
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
        assert {} == lab.planner.in_flight
        assert {} == lab.planner.reserver.in_flight
        assert set(lab.running()) | set(lab.waiting()) <= {"a", "b", "c", "d"}
        answers.update(rm.answers)
        assert lab.leftovers() == {}
    assert min(answers[True], answers[False]) > SEEDS, "vacuous: it was hardly asked"


def test_registered_again_while_questions_are_out() -> None:
    """Answers of the former life reach nobody, and the new one starts with nothing in flight."""
    met = 0
    for seed in range(1, SEEDS + 1):
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
