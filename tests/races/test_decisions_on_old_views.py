"""What a decision was based on changes while it is on its way: sizes, limits, capacities.

Everything is checked again at the commit, against the truth of that moment.
"""

import ranges
from support import APP, QUEUE, Lab, ask, facts_of, labs, limited

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.state import facts as f

seeded = ranges.seeds(250)


class Replaced:
    """Notes asks that were replaced, and which of them had a proposal on its way."""

    lab: Lab

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.in_flight = 0

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != CONTEXT:
            return
        for fact in facts_of(simulator, delivery):
            if isinstance(fact, f.AskReplaced):
                self.keys.append(fact.spec.key)
                self.in_flight += fact.spec.key in self.lab.keys_in_flight()


def _lab(seed: int) -> tuple[Lab, Replaced]:
    watcher = Replaced()
    watcher.lab = lab = Lab(seed=seed, checkers=(watcher,))
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.settle()
    return lab, watcher


@ranges.seeds(250, usual=25)
def test_an_ask_is_sent_again_with_another_size(seeds: range) -> None:
    """The commit takes the size of that moment; what is allocated keeps the size it has."""
    met = 0
    for seed in seeds:
        lab, replaced = _lab(seed)
        lab.ask("a", vcore=2)
        lab.ask("a", vcore=5)
        lab.settle()
        size = 5 if replaced.keys else 2
        assert lab.running() == ["a"]
        assert {"vcore": size} == lab.state.nodes["n1"].allocated
        assert {"vcore": size} == lab.state.queues[QUEUE].allocated
        assert lab.leftovers() == {}
        met += replaced.in_flight
    assert met > 0, "vacuous: no ask was sent again while its proposal was on its way"


@seeded
def test_an_ask_grows_beyond_its_node(seeds: range) -> None:
    lost = 0
    for seed in seeds:
        lab, replaced = _lab(seed)
        lab.ask("a", vcore=2)
        lab.ask("a", vcore=11)
        lab.settle()
        assert (lab.running(), lab.waiting()) == ([], ["a"]) if replaced.keys else (["a"], [])
        lost += lab.races.refusals["NODE_FULL"]
        lab.nodes(n2=11)
        lab.settle()
        assert lab.running() == ["a"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal was made for the smaller size"


@seeded
def test_repeats_are_asked_away(seeds: range) -> None:
    """Fewer allocations are wanted than are on their way."""
    lost = 0
    for seed in seeds:
        lab, replaced = _lab(seed)
        lab.ask("a", max_allocations=4)
        lab.ask("a", max_allocations=1)
        lab.settle()
        assert lab.waiting() == []
        assert len(lab.running()) in ({1, 2, 3} if replaced.keys else {1, 2, 3, 4})
        lost += lab.races.refusals["ASK_GONE"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no repeat was asked away while its proposal was on its way"


@seeded
def test_a_reload_lowers_the_limit(seeds: range) -> None:
    """What runs stays, above the limit if need be; nothing new is committed beyond it."""
    lost = 0
    for lab in labs(seeds, config=limited(10)):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a", "b", "c", vcore=3)
        lab.configure(limited(4))
        lab.settle()
        assert sorted(lab.running() + lab.waiting()) == ["a", "b", "c"]
        assert lab.running()
        lost += lab.races.refusals["QUEUE_LIMIT"]
        lab.configure(limited(10))
        lab.settle()
        assert lab.running() == ["a", "b", "c"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal was on its way when the limit fell"


@seeded
def test_a_node_shrinks(seeds: range) -> None:
    lost = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a", "b", "c", vcore=3)
        lab.node("n1", si.ActionFromRM.UPDATE, 4)
        lab.settle()
        assert sorted(lab.running() + lab.waiting()) == ["a", "b", "c"]
        assert lab.running()
        lost += lab.races.refusals["NODE_FULL"]
        lab.node("n1", si.ActionFromRM.UPDATE, 9)
        lab.settle()
        assert lab.running() == ["a", "b", "c"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal was on its way when the node shrank"


@seeded
def test_the_resource_manager_places_it_elsewhere(seeds: range) -> None:
    """A report that the ask runs already beats the proposal for another node."""
    lost = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10, n2=10)
        lab.settle()
        lab.ask("a")
        lab.report(
            si.Allocation(
                allocation_key="a",
                application_id=APP,
                node_id="n2",
                resource_per_alloc=si.Resource.of({"vcore": 1}),
            )
        )
        lab.settle()
        assert lab.running() == ["a"]
        lost += lab.races.refusals["ASK_GONE"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no report met a proposal"


@seeded
def test_r107_h27_two_asks_for_the_last_room_of_a_queue(seeds: range) -> None:
    """An allocation that the resource manager placed takes the room that was proposed."""
    lost = 0
    for lab in labs(seeds, config=limited(3)):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a", vcore=2)
        lab.request(allocations=(), asks=(ask("b", 2),))
        lab.report(
            si.Allocation(
                allocation_key="c",
                application_id=APP,
                node_id="n1",
                resource_per_alloc=si.Resource.of({"vcore": 2}),
            )
        )
        lab.settle()
        lost += lab.races.refusals["QUEUE_LIMIT"]
        assert "c" in lab.running()
        assert sorted(lab.running() + lab.waiting()) == ["a", "b", "c"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no report took the room of a proposal"
