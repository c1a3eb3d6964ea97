"""R-068 to R-076: who keeps which node, and who gives way."""

from collections import Counter

import ranges
from support import APP, CONFIG, Lab, report
from watching import Kept

from yunikorn_actors import si
from yunikorn_actors.state.reserved_nodes import WAIT_NS
from yunikorn_actors.values.durations import SECOND

OLD = {si.constants.TAG_CREATION_TIME: "1"}


def on(node: str) -> dict[str, str]:
    return {si.constants.TAG_REQUIRED_NODE: node}


def full(seed: int, config: str = CONFIG, **nodes: int) -> tuple[Lab, Kept]:
    """Nodes that are full but for one cpu each, with `fills-NODE` on them, and an empty small one.

    So the cluster has room for a large ask, and no node of it has.
    """
    kept = Kept()
    lab = Lab(seed=seed, config=config, checkers=(kept,))
    lab.submit(APP, "other")
    lab.nodes(**nodes, spare=3)
    for name, vcore in nodes.items():
        lab.ask(f"fills-{name}", vcore=vcore - 1, app="other", tags=on(name))
    lab.settle()
    return lab, kept


@ranges.seeds(60)
def test_r068_nodes_whose_names_begin_alike(seeds: range) -> None:
    """What is kept is node-1; node-10 is as open as before, and the reverse."""
    for seed in seeds:
        for large, other in (("node-1", "node-10"), ("node-10", "node-1")):
            kept = Kept()
            lab = Lab(seed=seed, checkers=(kept,))
            lab.submit(APP, "other")
            lab.nodes(**{large: 6, other: 5})
            lab.ask("fills", vcore=5, app="other", tags=on(large))
            lab.settle()
            lab.ask("large", vcore=6, tags=OLD)
            lab.settle()
            assert kept.made == 1
            assert [node.id for node in lab.state.nodes.values() if node.reservations] == [large]
            kept_before = kept.made
            lab.ask("one", "two")
            lab.settle()
            assert kept_before == kept.made - kept.dropped.total() == 1, "it was kept all the while"
            assert set(lab.running()) >= {"one", "two"}
            assert not lab.state.nodes[other].reservations


def test_r068_a_node_that_shrinks_below_the_ask_is_kept_for_it_no_more() -> None:
    lab, kept = full(1, n1=6, n2=5, n3=5)
    lab.ask("large", vcore=6, tags=OLD)
    lab.settle()
    assert ["n1"] == [node.id for node in lab.state.nodes.values() if node.reservations]
    lab.node("n1", si.ActionFromRM.UPDATE, 5)
    lab.settle()
    assert [] == [node.id for node in lab.state.nodes.values() if node.reservations]
    assert (1, 1) == (kept.made, kept.dropped.total())


@ranges.seeds(60)
def test_r069_room_appears_while_the_reservation_is_on_its_way(seeds: range) -> None:
    """Placed in the usual pass or in the reserved one: the reservation goes with it."""
    reserved = never = 0
    for seed in seeds:
        lab, kept = full(seed, n1=4)
        lab.ask("daemon", vcore=4, tags=on("n1"))
        lab.release("fills-n1", app="other")
        lab.settle()
        assert (lab.running(), lab.state.reservation_count) == (["daemon"], 0)
        reserved += kept.made
        never += not kept.made
    assert reserved > 0 < never, "vacuous: the room always came before, or always after"


@ranges.seeds(60)
def test_r070_reserved_here_and_placed_there(seeds: range) -> None:
    elsewhere = 0
    for seed in seeds:
        lab, kept = full(seed, n1=4)
        lab.ask("large", vcore=4, tags=OLD)
        lab.settle()
        assert lab.state.reservation_count == 1
        assert ["n1"] == [n.id for n in lab.state.nodes.values() if n.reservations]
        lab.nodes(n2=4)
        lab.release("fills-n1", app="other")
        lab.settle()
        assert lab.running() == ["large"]
        assert lab.state.reservation_count == 0
        charged = [n.id for n in lab.state.nodes.values() if n.allocated.get("vcore")]
        elsewhere += charged == ["n2"]
        assert [node for _, node in lab.rm.told("new")[1:]] == charged
        assert kept.made == kept.dropped.total() == 1
        assert lab.leftovers() == {}
    assert elsewhere > 0, "vacuous: it was never placed on another node than the one kept"


@ranges.seeds(60)
def test_r070_each_repeat_that_is_placed_elsewhere_ends_a_reservation(seeds: range) -> None:
    """An ask goes first everywhere as often as it has reservations, not as often as it waits."""
    for seed in seeds:
        lab, kept = full(seed, n1=4, n2=4)
        lab.ask("large", vcore=4, max_allocations=4, tags=OLD)
        lab.settle()
        assert lab.state.reservation_count == 2
        lab.nodes(n3=4)
        lab.settle()
        assert "large" in lab.running()
        assert kept.dropped == {"allocated on another node": 1}
        assert lab.state.reservation_count == 2, "another repeat has had the node kept since"


@ranges.seeds(60)
def test_r071_r072_those_that_can_run_here_alone_stand_side_by_side(seeds: range) -> None:
    displaced = 0
    for seed in seeds:
        lab, kept = full(seed, n1=4)
        lab.ask("large", vcore=4, tags=OLD)
        lab.settle()
        assert [(APP, "large")] == list(lab.state.nodes["n1"].reservations), "it was there first"
        lab.ask("daemon-1", "daemon-2", vcore=2, tags=on("n1"))
        lab.settle()
        held = lab.state.nodes["n1"].reservations
        assert sorted(key for _, key in held) == ["daemon-1", "daemon-2"]
        displaced += kept.dropped["a required-node ask needs the node"]
        lab.release("fills-n1", app="other")
        lab.settle()
        assert lab.running() == ["daemon-1", "daemon-2"]
    assert displaced == len(seeds)


@ranges.seeds(60)
def test_r073_asks_that_cannot_run_never_keep_every_node(seeds: range) -> None:
    """However many wait: two nodes are kept, and what is small goes on."""
    for seed in seeds:
        lab, kept = full(seed, **{f"n{number}": 4 for number in range(1, 7)})
        lab.ask(*[f"large-{number}" for number in range(9)], vcore=4, tags=OLD)
        lab.settle()
        assert lab.state.reservation_count == 2
        assert 9 == len(lab.waiting()), "more wait than nodes may be kept"
        lab.ask(*[f"small-{number}" for number in range(4)], app="other")
        lab.settle()
        assert sum(key.startswith("small") for key in lab.running()) == 4
        assert kept.made >= 2


def kept_and_then_refused(seed: int, limits: str = "") -> tuple[Lab, Kept]:
    """`large` has n1 kept, when `taker` of another application leaves it no room in its queue.

    Or, under the limit of one application, no place to start: there `taker` is reported, for the
    place is not free. The nodes are full all the while, with work of another queue and user.
    """
    size = "" if limits else "resources: {max: {vcore: 6m}}"
    tight = f"{{name: default}}, {{name: tight, {limits or size}}}"
    kept = Kept()
    config = CONFIG.replace("{name: default}", tight)
    lab = Lab(seed=seed, config=config, checkers=(kept,))
    lab.submit("filler", user="ann")
    lab.submit(APP, "other", queue="root.tight")
    lab.nodes(n1=8, n2=8, spare=3)
    for node in ("n1", "n2"):
        lab.ask(f"fills-{node}", vcore=7, app="filler", tags=on(node))
    lab.settle()
    lab.ask("large", vcore=5, tags=OLD)
    lab.settle()
    assert [(APP, "large")] == list(lab.state.nodes["n1"].reservations)
    lab.ask("taker", vcore=2, app="other")
    lab.settle()
    if limits:
        assert "taker" in lab.waiting(), "the reservation takes the place"
        lab.report(report("taker", "spare", 2, app="other"))
        lab.settle()
    assert "taker" in lab.running()
    return lab, kept


@ranges.seeds(60)
def test_r074_no_headroom_for_too_long(seeds: range) -> None:
    """The node is given up after a while; the headroom may come back just then."""
    given_up = Counter[bool]()
    for seed in seeds:
        lab, kept = kept_and_then_refused(seed)
        lab.let_timers_fire(WAIT_NS / SECOND - 10)
        lab.settle()
        assert lab.state.reservation_count == 1
        lab.let_timers_fire(20)
        for _ in range(seed % 5):
            lab.simulator.step()
        lab.release("taker", app="other")
        lab.settle()
        given_up[kept.dropped.total() > 0] += 1
        assert lab.state.reservation_count == 1, "there is headroom again: it was kept, or again"
        assert kept.made == 1 + kept.dropped.total()
        lab.release("fills-n1", "fills-n2", app="filler")
        lab.settle()
        assert (lab.running(), lab.state.reservation_count) == (["large"], 0)
        assert lab.leftovers() == {}
    assert given_up[True], "vacuous: no node was ever given up"


@ranges.seeds(60)
def test_r075_no_node_is_touched_without_headroom(seeds: range) -> None:
    """A reserved ask whose queue is full waits, although its node has room."""
    for seed in seeds:
        lab, kept = kept_and_then_refused(seed)
        lab.release("fills-n1", app="filler")
        lab.settle()
        node = lab.state.nodes["n1"]
        assert (8, [(APP, "large")]) == (node.available["vcore"], list(node.reservations))
        assert ["fills-n2", "taker"] == lab.running()
        assert not lab.races.refusals, "it was not even proposed"
        lab.release("taker", app="other")
        lab.settle()
        assert ["fills-n2", "large"] == lab.running()
        assert kept.made == kept.dropped.total() == 1
        assert lab.leftovers() == {}


@ranges.seeds(60)
def test_r076_a_reservation_starts_no_application_too_many(seeds: range) -> None:
    """The user may run one application; his first has a node kept as work of his second comes."""
    for seed in seeds:
        lab, kept = kept_and_then_refused(
            seed, "limits: [{limit: one, users: [bob], maxapplications: 1}]"
        )
        lab.release("fills-n1", app="filler")
        lab.settle()
        node = lab.state.nodes["n1"]
        assert (8, [(APP, "large")]) == (node.available["vcore"], list(node.reservations))
        assert ["fills-n2", "taker"] == lab.running()
        assert not lab.races.refusals, "it was not even proposed"
        lab.release("taker", app="other")
        lab.settle()
        assert ["fills-n2", "large"] == lab.running()
        assert kept.made == kept.dropped.total() == 1
