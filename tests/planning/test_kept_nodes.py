"""Nodes that are kept for what only waits there: when another ask has them, and what that costs."""

from collections import Counter

import pytest
from confirming import Victims, confirming_lab, policy
from support import Lab

from yunikorn_actors.planning.preemption.victim_search import Search

PUSHY = {"preemption_policy": policy()}


def kept_nodes(count: int, guaranteed: int, *, checkers: tuple[Victims, ...] = ()) -> Lab:
    """On each node `long` leaves 1, and each is kept for an ask of `wide` that wants 2."""
    text = (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*',"
        " properties: {reservation.max.nodes.percent: 100}, queues: ["
        "{name: batch}, {name: web, properties: {preemption.delay: 30s},"
        f" resources: {{guaranteed: {{vcore: {guaranteed}m}}}}}}]}}]}}]"
    )
    lab = confirming_lab(text, checkers=checkers)
    lab.nodes(**{f"n{number}": 4 for number in range(count)})
    lab.submit("long", queue="root.batch")
    lab.submit("wide", queue="root.batch")
    lab.submit("web", queue="root.web")
    lab.settle()
    lab.ask(*(f"l{number}" for number in range(count)), app="long", vcore=3, priority=9)
    lab.settle()
    lab.ask(*(f"w{number}" for number in range(count)), app="wide", vcore=2)
    lab.advance(10)
    return lab


def looks(monkeypatch: pytest.MonkeyPatch, nodes: int, asks: int) -> int:
    """Count how often a node is worked out until all asks of `web` run on nodes that are kept."""
    counted = Counter[str]()
    look = Search._solve

    def counting(search: Search, node_id: str) -> object:
        counted["nodes"] += 1
        return look(search, node_id)

    lab = kept_nodes(nodes, guaranteed=asks)
    kept = sum(bool(node.reservations) for node in lab.state.nodes.values())
    assert kept == nodes, "vacuous: nodes are kept for nobody"
    with monkeypatch.context() as patch:
        patch.setattr(Search, "_solve", counting)
        lab.ask(*(f"p{number}" for number in range(asks)), app="web", priority=5, **PUSHY)
        lab.advance(120)
    assert asks == sum(key.startswith("p") for key in lab.running())
    return counted["nodes"]


def test_asks_that_displace_do_not_look_at_all_nodes_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, many = looks(monkeypatch, 40, 1), looks(monkeypatch, 40, 20)
    assert many <= one + 20 * 4


def test_a_node_that_is_kept_for_an_application_is_found_behind_an_ask_of_another() -> None:
    """Both asks are of one search: what the first leaves alone is still there for the second."""
    victims = Victims()
    lab = kept_nodes(5, guaranteed=4, checkers=(victims,))
    lab.withdraw("w0", app="wide")
    lab.submit("own", queue="root.web")
    lab.settle()
    lab.ask("two", app="own", vcore=2, preemption_policy=policy(pushy=False))
    lab.advance(10)
    lab.nodes(small=1, tiny=1)
    lab.ask("s1", "s2", app="long", **PUSHY)
    lab.settle()
    kept = [name for node in lab.state.nodes.values() for name, _ in node.reservations]
    assert sorted(kept) == ["own", *["wide"] * 4], "vacuous: nothing is kept for the application"
    lab.ask("other", app="web", priority=5, **PUSHY)
    lab.ask("one", app="own", priority=5, **PUSHY)
    lab.advance(60)
    assert {"other", "one"} <= {*lab.running()}
    assert len(victims.keys()) == 1
    assert lab.waiting() == ["two", "w1", "w2", "w3", "w4"]
