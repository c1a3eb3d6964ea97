"""Events say when the resource manager refuses every node that has room for an ask."""

import pytest
from support import APP, Lab, Recorder

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

pytestmark = pytest.mark.parametrize("topology", TOPOLOGIES)


class Refusing(Recorder):
    """Refuses every node, for one of two reasons."""

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return "zone" if args.node_id == "n2" else "arch"


def _lab(topology: TopologyName) -> Lab:
    lab = Lab(topology=topology, rm=Refusing())
    lab.nodes(n1=10, n2=10, n3=10)
    lab.submit(APP)
    lab.settle()
    return lab


def _told(lab: Lab) -> list[tuple[str, str, str]]:
    return [
        (it.object_id, it.reference_id, it.message)
        for it in lab.simulator.events().records
        if it.message.startswith("Unschedulable")
        and it.type is si.EventType.REQUEST
        and it.event_change_detail is si.ChangeDetail.DETAILS_NONE
    ]


TOLD = ("a", APP, "Unschedulable request 'a': arch (2x); zone (1x)")


def test_all_reasons_are_told_at_once(topology: TopologyName) -> None:
    lab = _lab(topology)
    lab.ask("a")
    lab.settle()
    assert [TOLD] == _told(lab)


def test_not_more_than_once_in_fifteen_seconds(topology: TopologyName) -> None:
    """However often the nodes are asked about again: each request starts anew."""
    lab = _lab(topology)
    lab.ask("a")
    lab.settle()
    for number in range(14):
        lab.advance(1)
        lab.nodes(**{f"m{number}": 0})
        lab.settle()
    assert [TOLD] == _told(lab)
    lab.advance(60)
    assert [TOLD, TOLD] == _told(lab)[:2]
    assert len(_told(lab)) <= 5


def test_each_ask_by_itself(topology: TopologyName) -> None:
    lab = _lab(topology)
    lab.ask("a", "b")
    lab.settle()
    assert ["a", "b"] == sorted(key for key, _, _ in _told(lab))
