"""R-035, R-037 to R-040: asks that are decided, cancelled or sent again, and nothing else with them."""

from typing import Any

import pytest
import ranges
from ganging import states, told, topologies
from support import APP, Lab, facts_of, labs

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.state import facts as f

seeded = ranges.seeds(150)
OLD = {si.constants.TAG_CREATION_TIME: "1700000000"}
OLDER = {si.constants.TAG_CREATION_TIME: "1600000000"}


class Removals:
    """Notes which decisions were on their way whenever an ask was removed."""

    lab: Lab

    def __init__(self) -> None:
        self.in_flight: list[str] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT:
            facts = facts_of(simulator, delivery)
            if any(isinstance(fact, f.AskRemoved) for fact in facts):
                self.in_flight.extend(self.lab.keys_in_flight())


@seeded
def test_r035_a_decision_on_its_way_is_no_idleness(seeds: range) -> None:
    """The only other ask goes while the last one is decided and not committed."""
    met = 0
    for seed in seeds:
        removals = Removals()
        lab = removals.lab = Lab(seed=seed, checkers=(removals,))
        lab.nodes(n1=1)
        lab.submit(APP)
        lab.ask("large", vcore=99)
        lab.settle()
        lab.ask("a")
        lab.withdraw("large")
        lab.settle()
        assert ["Accepted", "Running"] == states(lab)
        assert ["a"] == lab.running()
        met += "a" in removals.in_flight
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: nothing was on its way when the other ask went"


def _reserved(seed: int) -> Lab:
    """Keep n1 for `one` and n2, which alone is large enough, for `two`."""
    lab = Lab(seed=seed)
    lab.nodes(n1=4, n2=6, n3=3, n4=3)
    lab.submit(APP, "other")
    for node in ("n1", "n2"):
        lab.ask(f"on {node}", vcore=3, app="other", tags={si.constants.TAG_REQUIRED_NODE: node})
    lab.settle()
    lab.ask("two", vcore=6, tags=OLD)
    lab.settle()
    lab.ask("one", vcore=4, tags=OLD)
    lab.settle()
    kept = [[key for _, key in node.reservations] for node in lab.state.nodes.values()]
    assert [["one"], ["two"], [], []] == kept, "vacuous: nothing is reserved"
    return lab


@seeded
def test_r037_a_reserved_ask_is_cancelled_while_it_is_allocated(seeds: range) -> None:
    """Its own reservation goes, once, and the other one stays."""
    allocated = cancelled = 0
    for seed in seeds:
        lab = _reserved(seed)
        lab.release("on n1", app="other")
        lab.withdraw("one")
        lab.settle()
        assert 1 == lab.state.reservation_count
        assert [(APP, "two")] == list(lab.state.nodes["n2"].reservations)
        heard = told(lab, "one")
        assert heard in ([], [("new", "n1"), ("released", "STOPPED_BY_RM")])
        allocated += bool(heard)
        cancelled += lab.races.refusals["ASK_GONE"]
        assert lab.leftovers() == {}
    assert allocated > 0, "vacuous: it was never allocated"
    assert cancelled > 0, "vacuous: it was never on its way"


@topologies
@pytest.mark.parametrize("gone", ["a", "b", "c"])
def test_r038_one_of_several_equals_is_cancelled(topology: TopologyName, gone: str) -> None:
    lab = Lab(topology=topology)
    lab.submit(APP)
    lab.ask("a", "b", "c", tags=OLD)
    lab.settle()
    orders = [ask.order() for ask in lab.state.applications[APP].waiting_asks()]
    ranks = {(order.priority, order.created_ns) for order in orders}
    assert (1, 3) == (len(ranks), len(lab.waiting())), "vacuous: they are not equal"
    lab.withdraw(gone)
    lab.nodes(n1=10)
    lab.settle()
    assert sorted({"a", "b", "c"} - {gone}) == lab.running()
    assert [] == told(lab, gone)
    assert lab.leftovers() == {}


@topologies
@pytest.mark.parametrize("tags", [OLDER, {}], ids=["older", "none"])
def test_r039_an_ask_never_changes_its_age(topology: TopologyName, tags: dict[str, str]) -> None:
    lab = Lab(topology=topology)
    lab.submit(APP)
    lab.ask("k", max_allocations=2, tags=OLD)
    lab.settle()
    ages = [_age(lab)]
    lab.ask("k", vcore=2, max_allocations=2, tags=tags)
    lab.settle()
    assert {"vcore": 4} == lab.state.applications[APP].pending, "vacuous: it was not sent again"
    ages.append(_age(lab))
    lab.nodes(n1=3)
    lab.settle()
    assert (["k"], ["k"]) == (lab.running(), lab.waiting())
    ages.append(_age(lab))
    lab.node("n1", si.ActionFromRM.UPDATE, 4)
    lab.settle()
    assert ["k", "k"] == lab.running()
    assert [1_700_000_000 * 10**9] * 4 == [*ages, _age(lab)]
    assert lab.leftovers() == {}


def _age(lab: Lab) -> int:
    return lab.state.applications[APP].asks["k"].created_ns


ENDS: dict[str, dict[str, Any]] = {
    "stopped": {"termination_type": si.TerminationType.STOPPED_BY_RM},
    "unknown": {"termination_type": si.TerminationType.UNKNOWN_TERMINATION_TYPE},
    "timeout": {"termination_type": si.TerminationType.TIMEOUT},
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_r040_the_ask_ends_with_its_allocation(end: dict[str, Any]) -> None:
    """One release is enough; nothing of finished work piles up."""
    for lab in labs(20):
        lab.nodes(n1=10)
        lab.submit(APP)
        lab.ask("a", "b", "c")
        lab.settle()
        assert {"a", "b", "c"} == set(lab.state.applications[APP].asks), "vacuous: no record"
        lab.release("a", "b", **end)
        lab.settle()
        assert {"c"} == set(lab.state.applications[APP].asks)
        assert {"vcore": 1} == lab.state.nodes["n1"].allocated
        assert lab.leftovers() == {}
