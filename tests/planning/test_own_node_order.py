"""An application may choose the order of nodes for itself; everybody else keeps the partition's."""

from functools import cache
from random import Random

import pytest
import ranges
from written import APP, Written

from yunikorn_actors.config.node_order import NODE_ORDERS

POLICIES = tuple(NODE_ORDERS)


def _cluster(policy: str, seed: int) -> Written:
    """More nodes than one run holds, many of them equal, some full, some closed."""
    dice = Random(seed)  # noqa: S311 - a seed, no secret
    written = Written()
    written.node_order(policy)
    nodes = []
    for number in range(230):
        used = {"vcore": int(dice.random() * 11)} if dice.random() < 0.5 else {}
        nodes.append(written.node_added(f"n{number:03}", used, vcore=10, memory=10))
    written.record(*nodes)
    for number in range(0, 230, 17):
        written.schedule(f"n{number:03}", drained=True)
    return written


def _decides(written: Written, app: str) -> list[str]:
    return [node for name, _, node in written.decide() if name == app]


@cache
def _all_in_it(policy: str, seed: int) -> list[str]:
    written = _cluster(policy, seed)
    written.add(APP)
    written.ask("a", repeats=150, vcore=2, memory=1)
    return _decides(written, APP)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("chosen", POLICIES)
@ranges.each("seed", 4, usual=1)
def test_it_has_the_nodes_that_the_policy_would_give(policy: str, chosen: str, seed: int) -> None:
    own = _cluster(policy, seed)
    own.add(APP, tags={"Node.Sort.Policy": chosen})
    own.ask("a", repeats=150, vcore=2, memory=1)
    expected = _all_in_it(chosen, seed)
    assert 150 == len(expected)
    assert expected == _decides(own, APP)


def test_another_application_is_not_moved_by_it() -> None:
    written = Written()
    written.node("full", {"vcore": 5}, vcore=10)
    written.node("wide", vcore=10)
    written.add(APP, tags={"node.sort.policy": "binpacking"})
    written.add("other")
    written.ask("a", vcore=1)
    written.ask("b", "other", vcore=1)
    assert [(APP, "a", "full"), ("other", "b", "wide")] == written.decide()


@pytest.mark.parametrize("tag", ["", "random", "FAIR"])
def test_what_is_no_policy_counts_as_none(tag: str) -> None:
    written = Written()
    written.node("full", {"vcore": 5}, vcore=10)
    written.node("wide", vcore=10)
    written.node_order("binpacking")
    written.add(APP, tags={"node.sort.policy": tag})
    written.ask("a", vcore=1)
    assert [(APP, "a", "full")] == written.decide()


def test_a_reload_of_the_partitions_order_leaves_it_its_own() -> None:
    written = Written()
    written.node("full", {"vcore": 5}, vcore=10)
    written.node("wide", vcore=10)
    written.add(APP, tags={"node.sort.policy": "fair"})
    written.ask("a", vcore=1)
    assert [(APP, "a", "wide")] == written.decide()
    written.node_order("binpacking")
    assert [(APP, "a", "wide")] == written.decide()
