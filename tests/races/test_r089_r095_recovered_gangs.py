"""R-089 to R-092, R-095: a resource manager comes back with a gang in the middle of its life.

The core knows nothing of the former life but what it is told, in whatever order. Placeholders that
run count towards their gang and never as work that has begun.
"""

from itertools import permutations
from typing import Any

import pytest
from ganging import (
    GROUP,
    Manager,
    application,
    ask_members,
    ask_placeholders,
    confirm,
    counts,
    states,
    submit_gang,
    swapped,
    told,
    topologies,
)
from support import Lab, ask, report

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.state.dump import snapshot


def _standing(key: str, **fields: Any) -> si.Allocation:
    return report(key, "n1", task_group_name=GROUP, placeholder=True, **fields)


def _restarted(topology: TopologyName, expected: int) -> Lab:
    lab = Lab(rm=Manager(), topology=topology)
    lab.nodes(n1=10)
    submit_gang(lab, expected)
    lab.settle()
    return lab


@topologies
def test_r090_some_run_and_some_wait(topology: TopologyName) -> None:
    """Nothing has begun: the members wait until the gang is complete."""
    lab = _restarted(topology, 52)
    lab.report(_standing("ph-1"), _standing("ph-2"))
    ask_placeholders(lab, "late", vcore=50)
    ask_members(lab, "real")
    lab.settle()
    assert ["late", "real"] == lab.waiting(), "vacuous: nothing of the gang waits"
    assert (["Accepted"], {}) == (states(lab), application(lab).swaps)
    lab.nodes(n2=50)
    lab.settle()
    assert ["Accepted", "Running"] == states(lab)
    assert "ph-1" == swapped(lab)
    confirm(lab, "ph-1")
    lab.settle()
    assert ["late", "ph-2", "real"] == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_r092_those_that_run_make_the_gang_complete(topology: TopologyName) -> None:
    lab = _restarted(topology, 2)
    lab.report(_standing("ph-1"))
    lab.settle()
    assert ["Accepted"] == states(lab), "vacuous: it was complete without the second one"
    lab.report(_standing("ph-2"))
    lab.settle()
    assert ["Accepted", "Running"] == states(lab)
    assert (2, 0, 0) == counts(lab)
    assert lab.leftovers() == {}


@topologies
def test_r089_placeholders_come_again_for_a_gang_that_was_over(topology: TopologyName) -> None:
    """Real work runs already; what is asked for too much is held for no longer than its time."""
    lab = _restarted(topology, 1)
    lab.report(report("real", "n1", task_group_name=GROUP))
    ask_placeholders(lab, "ph-1")
    lab.settle()
    assert (["ph-1", "real"], "Running") == (lab.running(), states(lab)[-1])
    lab.advance(60)
    assert ("released", "TIMEOUT") == told(lab, "ph-1")[-1], "vacuous: it was not held"
    confirm(lab, "ph-1", type_=si.TerminationType.TIMEOUT)
    lab.settle()
    assert (["real"], "Running") == (lab.running(), states(lab)[-1])
    assert lab.leftovers() == {}


STORY: dict[str, dict[str, Any]] = {
    "standing": {"allocations": (_standing("ph-1"), _standing("ph-2"))},
    "member": {"asks": (ask("real", task_group_name=GROUP),)},
    "driver": {"allocations": (report("driver", "n1", originator=True),)},
}


@topologies
@pytest.mark.parametrize("order", tuple(permutations(STORY)), ids="-".join)
def test_r091_the_groups_are_known_from_what_is_reported(
    topology: TopologyName, order: tuple[str, ...]
) -> None:
    """Whatever comes first, the member finds a placeholder, or ran before one was told of."""
    lab = _restarted(topology, 2)
    for name in order:
        lab.request(**STORY[name])
        lab.settle()
    comes_late = order.index("member") > order.index("standing")
    assert comes_late is bool(application(lab).swaps)
    assert comes_late is not bool(told(lab, "real"))
    assert (2, 0, 0) == counts(lab)
    if comes_late:
        confirm(lab, swapped(lab))
        lab.settle()
    assert "real" in lab.running()
    assert "Running" == states(lab)[-1]
    assert lab.leftovers() == {}


@topologies
@pytest.mark.parametrize("driver_first", [False, True])
def test_r095_a_placeholder_is_never_the_first_task(
    topology: TopologyName, driver_first: bool
) -> None:
    """Not even where the resource manager calls it that."""
    lab = _restarted(topology, 2)
    items = (_standing("ph-1", originator=True), report("driver", "n1", originator=True))
    for item in reversed(items) if driver_first else items:
        lab.report(item)
    lab.settle()
    first = {item.spec.key: item.spec.originator for item in application(lab).allocations.values()}
    assert {"ph-1": False, "driver": True} == first
    keys = [item["key"] for item in snapshot(lab.state)["applications"]["app-1"]["allocations"]]
    assert {"ph-1", "driver"} == set(keys)
    assert lab.leftovers() == {}
