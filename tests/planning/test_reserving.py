"""Which node is kept for whom."""

import pytest
from written import APP, Written

from yunikorn_actors.config import parse_config
from yunikorn_actors.planning.stages.reserve import Reserved
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.proposals import Reserve

AGE_NS = 1_000


def reserving(**nodes: dict[str, int]) -> Written:
    """An application with nodes on which so much is free of 10 each."""
    written = Written(reservation_delay_ns=AGE_NS)
    for name, free in nodes.items():
        occupied = {kind: 10 - size for kind, size in free.items()}
        written.node(name, occupied, vcore=10, memory=10)
    written.add(APP)
    return written


def kept(written: Written, later_ns: int = 2 * AGE_NS) -> list[tuple[str, str]]:
    proposals = written.planner.plan(99, written.now_ns + later_ns)
    return [(p.key, p.node_id) for p in proposals if isinstance(p, Reserve)]


@pytest.mark.parametrize(
    ("nodes", "best"),
    [
        ({"n1": {"vcore": 1, "memory": 10}, "n2": {"vcore": 3, "memory": 0}}, "n2"),
        ({"n1": {"vcore": 3, "memory": 10}, "n2": {"vcore": 1, "memory": 0}}, "n2"),
        ({"n1": {"vcore": 3, "memory": 1}, "n2": {"vcore": 1, "memory": 1}}, "n1"),
        ({"n1": {"vcore": 0, "memory": 5}, "n2": {"vcore": 0, "memory": 0}}, "n2"),
        ({"n2": {"vcore": 0, "memory": 0}, "n1": {"vcore": 0, "memory": 0}}, "n1"),
    ],
)
def test_the_node_with_the_least_left_over_is_kept(
    nodes: dict[str, dict[str, int]], best: str
) -> None:
    """What the ask does not take of what is free counts, not what is missing."""
    written = reserving(**nodes)
    written.ask("a", vcore=4)
    assert [("a", best)] == kept(written)


def test_nodes_that_changed_are_graded_anew() -> None:
    """A list of all nodes serves for many questions, and never answers with an old one."""
    written = reserving(**{f"n{number}": {"vcore": 1, "memory": number} for number in range(1, 9)})
    written.ask("a", vcore=4, memory=1)
    assert [("a", "n1")] == kept(written)
    written.planner.reject(next(iter(written.planner.reserver.in_flight)))
    written.resize_node("n1", {"vcore": 9, "memory": 0}, vcore=10, memory=10)
    assert [("a", "n2")] == kept(written)
    written.planner.reject(next(iter(written.planner.reserver.in_flight)))
    written.resize_node("n7", {"vcore": 9, "memory": 9}, vcore=10, memory=10)
    assert [("a", "n7")] == kept(written)


def test_what_no_node_could_ever_hold_is_asked_again_when_a_node_changes() -> None:
    written = reserving(n1={"vcore": 1, "memory": 10})
    written.ask("a", vcore=40)
    assert [] == kept(written)
    assert [] == kept(written)
    written.node("n2", {"vcore": 40}, vcore=40)
    assert [("a", "n2")] == kept(written)


def test_the_young_wait_until_they_are_of_age() -> None:
    """However old those of the same size were that have gone."""
    written = reserving(n1={"vcore": 1, "memory": 10})
    written.ask("old", vcore=4, created_ns=1)
    written.withdraw("old")
    written.ask("young", vcore=4)
    assert [] == kept(written, later_ns=0)
    due_ns = written.planner.reserver.due_ns
    assert due_ns == written.planner.model.ask_of(APP, "young").ask.created_ns + AGE_NS + 1
    assert [("young", "n1")] == kept(written)


def test_headroom_that_comes_back() -> None:
    written = reserving(n1={"vcore": 1, "memory": 10}, n2={"vcore": 4, "memory": 10})
    written.reconfigure("root.default", max={"vcore": 6})
    written.ask("a", vcore=5)
    assert [] == [proposal.key for proposal in written.plan()]
    written.ask("other", vcore=3)
    uuid = written.allocate("other", "n2")
    assert [] == kept(written)
    written.release(uuid)
    assert [("a", "n2")] == kept(written)


def waiting_for_a_node() -> Written:
    """Two asks with a node kept for each, one of another queue without, and room for none."""
    written = reserving(n1={"vcore": 1}, n2={"vcore": 1})
    written.queue("root.other")
    written.add("hasty", queue="root.other")
    for key, node in (("older", "n1"), ("urgent", "n2")):
        written.ask(key, vcore=5, priority=int(key == "urgent"))
        written.reserve(key, node)
    written.ask("rival", "hasty", vcore=5, priority=9)
    assert [] == keys_of(written)
    return written


def keys_of(written: Written) -> list[str]:
    return [key for _, key, _ in written.decide()]


def test_those_with_a_reservation_go_first_on_other_nodes_in_their_order() -> None:
    written = waiting_for_a_node()
    written.node("n3", vcore=10)
    assert ["urgent", "older"] == keys_of(written)
    assert ["urgent", "older"] == keys_of(written), "what was refused comes first again"
    written.node("n4", vcore=9)
    assert ["urgent", "older", "rival"] == keys_of(written)


def test_a_reservation_without_headroom_holds_up_nobody_elsewhere() -> None:
    written = waiting_for_a_node()
    written.reconfigure("root.default", max={"vcore": 4})
    written.node("n3", vcore=6)
    assert ["rival"] == keys_of(written)
    written.reconfigure("root.default", max={"vcore": 9})
    assert ["urgent"] == keys_of(written)


def test_only_what_a_node_may_have_room_for_is_tried_elsewhere() -> None:
    """However many nodes are kept, it costs nothing until a node has room."""
    written = waiting_for_a_node()
    reserved, roused = Reserved(written.planner.model), written.planner.requeue.reserving.shapes
    assert (None, {}) == (reserved.first_elsewhere(), roused)
    written.node("n3", vcore=4)
    assert {} == roused
    written.node("n4", vcore=5)
    assert ["urgent"] == keys_of(written)


def test_an_ask_preempts_when_the_reservation_that_it_was_to_have_is_off() -> None:
    """Its time to preempt comes while that is on its way: then it was never looked at again."""
    written = Written("root.rich", "root.poor", reservation_delay_ns=AGE_NS)
    config = parse_config("partitions: [{name: default, queues: [{name: root}]}]")
    written.record(f.PartitionConfigured(config=config.partitions[0]))
    written.reconfigure("root.poor", guaranteed={"vcore": 4})
    written.add("r", queue="root.rich")
    for node in ("n1", "n2"):
        written.node(node, vcore=4)
        written.recover(f"r-{node}", node, "r", vcore=2)
    written.add("p", queue="root.poor")
    written.ask("p", "p", vcore=4, allow_preempt_other=True)
    agenda = written.planner.preemptor.agenda
    agenda._delay_ns = 10 * AGE_NS
    (reserve,) = written.planner.plan(99, written.now_ns + 2 * AGE_NS)
    assert isinstance(reserve, Reserve)
    assert [] == written.planner.plan(99, written.now_ns + 20 * AGE_NS)
    written.planner.reject(reserve.proposal_id)
    found = written.planner.plan(99, written.now_ns + 20 * AGE_NS)
    assert ["Preempt"] == [type(it).__name__ for it in found]
