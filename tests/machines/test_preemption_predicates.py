"""A resource manager with preemption predicates: its questions, and what its answers change."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from confirming import PREEMPTED, Confirming, confirming_lab, policy
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.predicates import CheckPredicates, CheckPreemptionPredicates
from yunikorn_actors.planning.why.explain import explain

topologies = pytest.mark.parametrize("topology", TOPOLOGIES)
PUSHY = {"preemption_policy": policy()}
Response = si.PreemptionPredicatesResponse | None
Verdict = Callable[[si.PreemptionPredicatesArgs], Response]


def config(*, rich: str = "{}", switches: str = "enabled: true", properties: str = "{}") -> str:
    return (
        f"partitions: [{{name: default, preemption: {{{switches}}}, queues: ["
        "{name: root, submitacl: '*', queues: ["
        f"{{name: rich, resources: {rich}, properties: {properties}}}, "
        "{name: poor, properties: {preemption.delay: 1s}, "
        "resources: {guaranteed: {vcore: 4m}}}]}]}]"
    )


def as_asked(args: si.PreemptionPredicatesArgs) -> Response:
    return si.PreemptionPredicatesResponse(success=True, index=args.start_index)


def up_to(index: int) -> Verdict:
    return lambda _: si.PreemptionPredicatesResponse(success=True, index=index)


def never(_: si.PreemptionPredicatesArgs) -> Response:
    return si.PreemptionPredicatesResponse(success=False, index=7)


def unlike(node: str) -> Verdict:
    return lambda args: never(args) if args.node_id == node else as_asked(args)


class Judge(Confirming):
    def __init__(self, verdict: Verdict = as_asked) -> None:
        super().__init__()
        self.verdict = verdict
        self.asked: list[si.PreemptionPredicatesArgs] = []

    def preemption_predicates(self, args: si.PreemptionPredicatesArgs) -> Response:
        self.asked.append(args)
        return self.verdict(args)

    def nodes_asked(self) -> list[str]:
        return [args.node_id for args in self.asked]


class Both(Judge):
    """Refuses placements on nodes as well."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.placements: list[tuple[str, str, bool]] = []

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        self.placements.append((args.allocation_key, args.node_id, args.allocate))
        is_refused = args.allocation_key.startswith("p") and args.node_id in self.refused
        return "no" if is_refused else None


def full(
    topology: TopologyName, rm: Confirming, text: str = "", *checkers: Any, **nodes: int
) -> Lab:
    """`rich` fills every node, the first one first, the newest last."""
    lab = confirming_lab(text or config(), topology=topology, rm=rm, checkers=checkers)
    lab.submit("rich", queue="root.rich")
    lab.submit("poor", queue="root.poor")
    lab.settle()
    for name, size in (nodes or {"n1": 4}).items():
        lab.nodes(**{name: size})
        for number in range(size):
            lab.ask(f"{name}-{number}", app="rich", **PUSHY)
            lab.advance(0.1)
    return lab


def victims(lab: Lab) -> list[str]:
    return [key for key, type_ in lab.rm.told("released") if type_ == PREEMPTED.name]


class Watch:
    def __init__(self) -> None:
        self.questions = 0

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        kinds = (CheckPreemptionPredicates, CheckPredicates)
        self.questions += isinstance(delivery.message, kinds)


@topologies
def test_one_that_does_not_override_it_is_not_asked(topology: TopologyName) -> None:
    watch = Watch()
    lab = full(topology, Confirming(), config(), watch)
    lab.ask("p", app="poor", **PUSHY)
    lab.advance(2)
    assert (["n1-3"], 0) == (victims(lab), watch.questions)
    assert "p" in lab.running()


@topologies
def test_it_is_asked_with_all_who_might_go_in_order(topology: TopologyName) -> None:
    rm = Judge()
    lab = full(topology, rm)
    lab.ask("p", app="poor", vcore=2, **PUSHY)
    lab.advance(2)
    question = si.PreemptionPredicatesArgs(
        allocation_key="p",
        node_id="n1",
        preempt_allocation_keys=("n1-3", "n1-2", "n1-1", "n1-0"),
        start_index=1,
    )
    assert [question] == rm.asked
    assert ["n1-3", "n1-2"] == victims(lab)
    assert ["n1-0", "n1-1", "p"] == lab.running()
    assert lab.leftovers() == {}


@topologies
@pytest.mark.parametrize(("index", "count"), [(-5, 2), (0, 2), (1, 2), (2, 3), (3, 4)])
def test_as_many_go_as_it_says_and_as_there_has_to_be_room(
    index: int, count: int, topology: TopologyName
) -> None:
    lab = full(topology, Judge(up_to(index)))
    lab.ask("p", app="poor", vcore=2, **PUSHY)
    lab.advance(2)
    assert ["n1-3", "n1-2", "n1-1", "n1-0"][:count] == victims(lab)
    assert "p" in lab.running()
    assert lab.leftovers() == {}


@topologies
def test_nobody_is_offered_whom_a_guarantee_protects(topology: TopologyName) -> None:
    rm = Judge()
    lab = full(topology, rm, config(rich="{guaranteed: {vcore: 2m}}"))
    lab.ask("p", app="poor", **PUSHY)
    lab.advance(2)
    assert [("n1-3", "n1-2")] == [args.preempt_allocation_keys for args in rm.asked]


@topologies
def test_after_a_no_the_next_node_is_tried(topology: TopologyName) -> None:
    rm = Judge(unlike("n1"))
    lab = full(topology, rm, n1=2, n2=2)
    lab.ask("p", app="poor", **PUSHY)
    lab.advance(2)
    assert (["n1", "n2"], ["n2-1"]) == (rm.nodes_asked(), victims(lab))
    assert ("p", "n2") in rm.told("new")
    assert lab.leftovers() == {}


def _raise(_: si.PreemptionPredicatesArgs) -> Response:
    raise ValueError("what?")


def _exit(_: si.PreemptionPredicatesArgs) -> Response:
    raise SystemExit("enough")


def _answer(value: Any) -> Verdict:
    return lambda _: value


YES = si.PreemptionPredicatesResponse
NOES: dict[str, Verdict] = {
    "no": never,
    "an exception": _raise,
    "an exit": _exit,
    "no answer": _answer(None),
    "an answer of another kind": _answer(value=True),
    "an index that names nobody": up_to(4),
    "an index of no number": _answer(YES(success=True, index="1")),  # type: ignore[arg-type]
    "an index too big for the wire": up_to(2**70),
}


@topologies
@pytest.mark.parametrize("verdict", NOES.values(), ids=NOES)
def test_nobody_goes_without_a_yes(verdict: Verdict, topology: TopologyName) -> None:
    rm = Judge(verdict)
    lab = full(topology, rm)
    lab.ask("p", app="poor", **PUSHY)
    lab.advance(10)
    assert (["n1"], []) == (rm.nodes_asked(), victims(lab))
    assert ["p"] == lab.waiting()
    why = explain(lab.planner, "poor", "p", 0)
    assert why is not None
    assert why.preempting is not None
    assert why.preempting.text == "its resource manager refuses n1, whatever is preempted there"
    assert {} == lab.planner.preemptor.decisions.in_flight
    rm.verdict = as_asked
    lab.submit("another")
    lab.advance(16)
    assert (["n1", "n1"], ["n1-3"]) == (rm.nodes_asked(), victims(lab))
    assert lab.leftovers() == {}


@topologies
def test_without_a_request_it_is_asked_again_at_growing_distances(topology: TopologyName) -> None:
    rm = Judge(never)
    lab = full(topology, rm)
    lab.ask("p", app="poor", **PUSHY)
    asked_at: list[int] = []
    for second in range(1, 120):
        lab.advance(1)
        asked_at.extend([second] * (len(rm.asked) - len(asked_at)))
    assert 4 == len(asked_at), asked_at
    distances = [later - earlier for earlier, later in pairwise(asked_at)]
    assert distances == sorted(distances)
    assert 15 <= distances[0] < distances[-1]


@topologies
def test_an_ask_for_one_node_alone_asks_too(topology: TopologyName) -> None:
    rm = Judge(never)
    lab = full(topology, rm)
    lab.ask("d", app="poor", vcore=2, tags={si.constants.TAG_REQUIRED_NODE: "n1"}, **PUSHY)
    lab.advance(5)
    assert [(("n1-3", "n1-2", "n1-1", "n1-0"), 1)] == [
        (args.preempt_allocation_keys, args.start_index) for args in rm.asked
    ]
    assert [] == victims(lab)
    rm.verdict = up_to(2)
    lab.submit("another")
    lab.settle()
    assert ["n1-3", "n1-2", "n1-1"] == victims(lab)
    assert ["d", "n1-0"] == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_to_enforce_a_quota_nobody_is_asked(topology: TopologyName) -> None:
    switches, properties = "quotapreemptionenabled: true", "{quota.preemption.delay: 1s}"
    rm = Judge(never)
    lab = full(topology, rm, config(switches=switches, properties=properties))
    lowered = config(rich="{max: {vcore: 2m}}", switches=switches, properties=properties)
    lab.configure(lowered)
    lab.advance(2)
    assert (2, []) == (len(victims(lab)), rm.asked)


@topologies
def test_nobody_goes_where_the_ask_is_refused_anyway(topology: TopologyName) -> None:
    """n0 has room and is refused, so the ask does not wait for it: on n1 somebody goes."""
    rm = Both("n0")
    lab = full(topology, rm, n1=2)
    lab.nodes(n0=1)
    lab.ask("p", app="poor", **PUSHY)
    lab.advance(3)
    assert ("p", "n0", True) == rm.placements[2], "vacuous: it was not refused first"
    assert (["n1"], ["n1-1"]) == (rm.nodes_asked(), victims(lab))
    assert ("p", "n1") in rm.told("new")


@topologies
def test_where_others_go_elsewhere_alone_the_question_is_a_plain_one(
    topology: TopologyName,
) -> None:
    """The maximum of the parent is what lacks, and n0 has room."""
    rm = Both("n9")
    text = (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
        "{name: top, resources: {max: {vcore: 2m}}, queues: [{name: rich}, "
        "{name: poor, properties: {preemption.delay: 1s}, "
        "resources: {guaranteed: {vcore: 1m}}}]}]}]}]"
    )
    lab = confirming_lab(text, topology=topology, rm=rm)
    lab.submit("rich", queue="root.top.rich")
    lab.submit("poor", queue="root.top.poor")
    lab.nodes(n1=2)
    lab.ask("r0", "r1", app="rich", **PUSHY)
    lab.settle()
    lab.nodes(n0=1)
    lab.ask("p", app="poor", **PUSHY)
    lab.advance(2)
    assert [] == rm.asked
    assert [("p", "n0", True)] * 2 == rm.placements[2:], "once to preempt, once to run"
    assert 1 == len(victims(lab))
    assert ("p", "n0") in rm.told("new")
