"""Predicates in the simulator: what is asked, when it is asked again, and what a no leaves behind."""

from collections.abc import Iterable
from typing import Any

import pytest
from picky import Picky
from support import APP, Lab

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.rm_proxy.predicate_calls import Questions
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.predicates import CheckPredicates, PredicateDue, PredicatesAnswered

topologies = pytest.mark.parametrize("topology", TOPOLOGIES)
HOUR_NS = 3_600_000_000_000


def picky_lab(
    topology: TopologyName, *denied: tuple[str, str], **made_with: Any
) -> tuple[Lab, Picky]:
    rm = Picky(*denied)
    lab = Lab(topology=topology, rm=rm, **made_with)
    lab.submit(APP)
    return lab, rm


@topologies
def test_a_resource_manager_without_predicates_is_not_asked(topology: TopologyName) -> None:
    watch = Watch()
    lab = Lab(topology=topology, checkers=(watch,))
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    assert ["a"] == lab.running()
    assert [] == watch.questions


class Watch:
    """Notes the questions on their way to RmProxy."""

    def __init__(self) -> None:
        self.questions: list[CheckPredicates] = []

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        if isinstance(delivery.message, CheckPredicates):
            self.questions.append(delivery.message)


@topologies
def test_each_placement_is_asked_about_once(topology: TopologyName) -> None:
    lab, rm = picky_lab(topology)
    lab.nodes(n1=10)
    lab.ask("a", max_allocations=3)
    lab.ask("b")
    lab.settle()
    assert [("a", "n1", True)] * 3 + [("b", "n1", True)] == rm.asked
    assert ["a", "a", "a", "b"] == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_the_next_best_node_is_tried_and_the_best_one_is_not_asked_again(
    topology: TopologyName,
) -> None:
    lab, rm = picky_lab(topology, ("a", "n1"), ("a", "n2"))
    lab.nodes(n1=10, n2=10, n3=10)
    lab.settle()
    lab.ask("a")
    lab.settle()
    assert [("a", "n1", True), ("a", "n2", True), ("a", "n3", True)] == rm.asked
    assert [("a", "n3")] == lab.rm.told("new")
    assert lab.leftovers() == {}


@topologies
def test_what_is_refused_to_one_ask_is_open_to_its_equal(topology: TopologyName) -> None:
    lab, _ = picky_lab(topology, ("a", "n1"))
    lab.nodes(n1=10)
    lab.ask("a", "b")
    lab.settle()
    assert (["b"], ["a"]) == (lab.running(), lab.waiting())


@topologies
def test_any_request_has_every_no_asked_again(topology: TopologyName) -> None:
    lab, rm = picky_lab(topology, ("a", "n1"), ("b", "n1"))
    lab.nodes(n1=10)
    lab.ask("a", "b")
    lab.settle()
    rm.take_questions()
    lab.node("n1", si.ActionFromRM.UPDATE)
    lab.settle()
    assert [("a", "n1", True), ("b", "n1", True)] == rm.take_questions()
    rm.denied.clear()
    lab.submit("another")
    lab.settle()
    assert ["a", "b"] == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_without_a_request_it_is_tried_again_at_growing_distances(topology: TopologyName) -> None:
    """After 15 s, 30 s, 1, 2 and 4 minutes, then every 5 minutes."""
    lab, rm = picky_lab(topology, ("a", "n1"), settings=Settings(reservation_delay_ns=HOUR_NS))
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    rm.take_questions()
    for distance in (15, 30, 60, 120, 240, 300, 300):
        lab.advance(distance - 0.001)
        assert [] == rm.take_questions()
        lab.advance(0.001)
        assert [("a", "n1", True)] == rm.take_questions()
    rm.denied.clear()
    lab.advance(300)
    assert ["a"] == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_a_request_starts_the_distances_anew(topology: TopologyName) -> None:
    lab, rm = picky_lab(topology, ("a", "n1"), settings=Settings(reservation_delay_ns=HOUR_NS))
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    lab.advance(60)
    lab.submit("another")
    lab.settle()
    rm.take_questions()
    lab.advance(14.999)
    assert [] == rm.take_questions()
    lab.advance(0.001)
    assert [("a", "n1", True)] == rm.take_questions()


@topologies
def test_whether_to_keep_a_node_is_another_question(topology: TopologyName) -> None:
    """Nothing may run on n1 and nothing be kept on n2: n1 is kept, and not used."""

    class Keeper(Picky):
        def predicates(self, args: si.PredicatesArgs) -> str | None:
            super().predicates(args)
            return None if args.allocate == (args.node_id == "n2") else "no"

    rm = Keeper()
    lab = Lab(topology=topology, rm=rm)
    lab.submit(APP)
    lab.nodes(n1=4, n2=4, n3=8)
    lab.ask("f", vcore=3)
    lab.settle()
    lab.ask("g", vcore=3)
    lab.settle()
    assert [("f", "n2")] == lab.rm.told("new")
    rm.take_questions()
    lab.advance(3)
    assert [("g", "n2", False), ("g", "n1", False)] == rm.asked
    assert {"n1": 1, "n2": 0, "n3": 0} == {
        name: len(node.reservations) for name, node in lab.state.nodes.items()
    }
    assert ["g"] == lab.waiting()


@topologies
def test_an_ask_for_one_node_alone(topology: TopologyName) -> None:
    """Its node is kept without a question; to use it needs one."""
    lab, rm = picky_lab(topology, ("d", "n1"))
    lab.nodes(n1=10)
    lab.settle()
    lab.ask("d", tags={si.constants.TAG_REQUIRED_NODE: "n1"})
    lab.settle()
    assert [("d", "n1", True)] == rm.asked
    assert [(APP, "d")] == list(lab.state.nodes["n1"].reservations)
    rm.denied.clear()
    lab.submit("another")
    lab.settle()
    assert ["d"] == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_an_ask_without_predicates_is_placed_without_a_question(topology: TopologyName) -> None:
    """Whatever the manager would say of it; its neighbours are asked about as ever.

    Neither is a reservation for it.
    """
    unasked = {si.constants.TAG_PREDICATES: "false"}
    lab, rm = picky_lab(topology, ("free", "n1"), ("large", "n1"))
    lab.nodes(n1=4)
    lab.ask("free", tags=unasked)
    lab.ask("other")
    lab.settle()
    assert ["free", "other"] == lab.running()
    asked = [("other", "n1", True)]
    assert asked == rm.asked
    lab.nodes(n2=1, n3=1)
    lab.ask("large", vcore=4, tags=unasked)
    lab.settle()
    lab.advance(3)
    assert [(APP, "large")] == list(lab.state.nodes["n1"].reservations)
    assert asked == rm.asked


@topologies
@pytest.mark.parametrize("tags", [{}, {si.constants.TAG_PREDICATES: "false"}])
def test_a_member_without_predicates_is_swapped_without_a_question(
    topology: TopologyName, tags: dict[str, str]
) -> None:
    rm = Picky()
    lab = Lab(topology=topology, rm=rm)
    lab.submit(APP, placeholder_ask=si.Resource.of({"vcore": 1}))
    lab.nodes(n1=4)
    lab.ask("ph", placeholder=True, task_group_name="tg", tags=tags)
    lab.ask("member", task_group_name="tg", tags=tags)
    lab.settle()
    lab.release("ph", termination_type=si.TerminationType.PLACEHOLDER_REPLACED)
    lab.settle()
    assert ["member"] == lab.running()
    asked = [key for key, *_ in rm.asked]
    assert (["ph", "member"] if not tags else []) == asked


@topologies
def test_an_ask_sent_again_is_another_question(topology: TopologyName) -> None:
    lab, rm = picky_lab(topology, ("a", "n1"))
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    rm.denied.clear()
    lab.ask("a", vcore=2)
    lab.settle()
    assert ["a"] == lab.running()
    assert {"vcore": 2} == lab.state.nodes["n1"].allocated


@topologies
def test_questions_are_bounded_by_what_may_be_in_flight(topology: TopologyName) -> None:
    most = 0

    class Counting:
        def delivered(self, _: Simulator, delivery: Delivery) -> None:  # noqa: ARG002
            nonlocal most
            most = max(most, len(lab.planner.model.flights.placements))

    rm = Picky()
    lab = Lab(topology=topology, rm=rm, settings=Settings(inflight_max=5))
    lab.simulator.checkers.add(Counting())
    lab.submit(APP)
    lab.nodes(n1=100)
    lab.ask("a", max_allocations=40)
    lab.settle()
    assert (5, 40) == (most, len(lab.running()))


@topologies
def test_a_lost_resource_manager_keeps_nobody_waiting(topology: TopologyName) -> None:
    lab, _ = picky_lab(topology)
    lab.nodes(n1=10)
    lab.settle()
    lab.ask("a")
    while not any(to.startswith("rm:") for _, to in lab.simulator.channels):
        assert lab.simulator.step()
    lab.simulator.resource_manager_lost("rm-1")
    lab.settle()
    assert [] == lab.keys_in_flight()
    assert {} == lab.planner.model.flights.placements


# -- the questions of RmProxy


def question(number: int) -> CheckPredicates:
    return CheckPredicates(
        rm_id="rm-1",
        partition="p",
        epoch=1,
        question_id=number,
        args=si.PredicatesArgs(allocation_key=f"k{number}", node_id="n1"),
        reply_to="asker",
    )


def said(effects: Iterable[Any]) -> list[str]:
    """Write effects in few words."""
    words: list[str] = []
    for effect in effects:
        match type(effect).__name__:
            case "CallRm":
                words.append(f"call {effect.call.call_id}")
            case "SetTimer":
                words.append(f"due {effect.due_ns}")
            case _:
                reason = getattr(effect.message, "reason", None)
                number = getattr(effect.message, "question_id", "")
                words.append("lifted" if reason is None else f"{number} {reason or 'yes'}")
    return words


def answer(call_id: int, reason: str = "") -> PredicatesAnswered:
    return PredicatesAnswered(call_id=call_id, reason=reason)


def due() -> PredicateDue:
    return PredicateDue(rm_id="rm-1")


LATE = "the resource manager did not answer in time"


def test_each_answer_gives_the_callback_its_second_anew() -> None:
    """Three at once, each takes most of the time that one may: no one is too late."""
    questions = Questions(100)
    assert ["call 1", "due 100"] == said(questions.ask(question(7), "rm", 0))
    assert ["call 2"] == said(questions.ask(question(8), "rm", 0))
    assert ["7 yes"] == said(questions.answered(answer(1), 90))
    assert ["due 190"] == said(questions.due(due(), 100))
    assert ["8 no"] == said(questions.answered(answer(2, "no"), 180))
    assert [] == said(questions.due(due(), 190))


def test_a_callback_that_stands_still_is_given_nothing_more() -> None:
    questions = Questions(100)
    questions.ask(question(7), "rm", 0)
    questions.ask(question(8), "rm", 50)
    assert [f"7 {LATE}", f"8 {LATE}"] == said(questions.due(due(), 100))
    assert ["due 220"] == said(questions.ask(question(9), "rm", 120))
    assert [] == said(questions.answered(answer(1), 130))
    assert ["call 3"] == said(questions.answered(answer(2), 140))
    assert ["9 yes"] == said(questions.answered(answer(3), 150))
    assert 2 == questions.dropped


def test_what_was_held_back_is_refused_in_its_turn() -> None:
    questions = Questions(100)
    questions.ask(question(7), "rm", 0)
    questions.due(due(), 100)
    questions.ask(question(9), "rm", 120)
    assert [f"9 {LATE}"] == said(questions.due(due(), 220))
    assert {"rm-1": []} == questions.canonical_state()["open"]


def test_a_no_is_lifted_once() -> None:
    questions = Questions(100)
    questions.ask(question(7), "rm", 0)
    questions.answered(answer(1, "no"), 10)
    assert ["lifted"] == said(questions.seen("rm-1"))
    assert [] == said(questions.seen("rm-1"))
    questions.ask(question(8), "rm", 20)
    questions.answered(answer(2), 30)
    assert [] == said(questions.seen("rm-1"))


def test_a_callback_that_is_gone_leaves_no_question_open() -> None:
    questions = Questions(100)
    questions.ask(question(7), "rm", 0)
    questions.due(due(), 100)
    questions.ask(question(8), "rm", 110)
    assert ["8 the resource manager is away"] == said(questions.cut("rm-1"))
    assert [] == said(questions.answered(answer(1), 120))
    assert [] == said(questions.due(due(), 210))
    assert ["9 the resource manager is away"] == said(questions.ask(question(9), None, 220))
    assert {} == questions.canonical_state()["open"]
    assert {} == questions.calls


def test_a_no_in_the_name_of_one_that_is_away_holds_until_it_makes_a_request() -> None:
    """What was asked survives where a core has begun again, and its manager comes back to it."""
    questions = Questions(100)
    assert ["7 the resource manager is away"] == said(questions.ask(question(7), None, 0))
    assert ["lifted"] == said(questions.seen("rm-1"))
    assert [] == said(questions.seen("rm-1"))
