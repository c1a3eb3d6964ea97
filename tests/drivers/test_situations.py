"""The situations of the page on `explain`: what is said is numbers too, and a driver has no say."""

import runpy
from typing import Any

import pytest
from pages import REPOSITORY
from probes import Lab

from yunikorn_actors.planning.reasons import Why

SCRIPT = runpy.run_path(str(REPOSITORY / "docs/situations.py"))
SITUATIONS = {situation.what: situation.arrange for situation in SCRIPT["SITUATIONS"]}
SECOND = 10**9


def _full(cause: str, where: str, wanted: int, used: int, maximum: int) -> dict[str, Any]:
    amounts = {"wanted": wanted, "used": used, "maximum": maximum, "lacks": used + wanted - maximum}
    return {
        "cause": cause,
        "where": where,
        "never": wanted > maximum,
        **{name: {"vcore": amount} for name, amount in amounts.items()},
    }


TOLD: dict[str, dict[str, Any]] = {
    "the queue is full": _full("QUEUE_LIMIT", "root.batch", 2_000, 5_000, 6_000),
    "larger than its queue": _full("QUEUE_LIMIT", "root.batch", 7_000, 0, 6_000),
    "a parent queue is full": _full("QUEUE_LIMIT", "root.team", 2_000, 5_000, 6_000),
    "the limit of its user": _full("USER_LIMIT", "root.batch", 2_000, 3_000, 4_000),
    "the limit of a group": _full("USER_LIMIT", "root.batch", 2_000, 3_000, 4_000),
    "larger than every node": {
        "cause": "NO_NODE", "never": True, "nodes": {"TOO_SMALL": 2}, "exhausted": {"vcore": 2},
        "without": {"TOO_SMALL": 2}, "wanted": {"vcore": 7_000},
    },
    "a type that no node has": {
        "cause": "CLUSTER_FULL", "never": True, "lacks": {"nvidia.com/gpu": 1},
        "wanted": {"vcore": 1_000, "nvidia.com/gpu": 1},
        "maximum": {"vcore": 4_000, "nvidia.com/gpu": 0},
    },
    "predicates": {
        "cause": "PREDICATES", "never": False, "nodes": {"REFUSED": 2}, "left_ns": 15 * SECOND,
        "refusals": {"is in another zone": 2},
    },
    "a required node, and its reservation": _full("NODE_KEPT", "node-1", 2_000, 3_000, 4_000),
    "a gang that awaits admission": {"cause": "GANG_WAITS", "where": "workers", "never": False},
    "the maximum of running applications": {
        "cause": "APP_LIMIT", "where": "root.batch", "running": 2, "running_max": 2,
        "holders": ("etl-1", "etl-2"),
    },
    "a drained node": {
        "cause": "NO_NODE", "never": False, "nodes": {"NO_WORK": 1, "FULL": 1},
        "without": {"NO_WORK": 1, "FULL": 1}, "exhausted": {"vcore": 1},
    },
    "the back-off": {"cause": "BACKING_OFF", "left_ns": 30 * SECOND},
    "an application that has ended": {"cause": "REJECTED", "never": False},
}  # fmt: skip


def _arrange(lab: Lab, what: str) -> Why:
    def pass_time(seconds: int) -> None:
        lab.pass_time(lab.now_ns + seconds * SECOND)
        lab.rest()

    whom = SITUATIONS[what](SCRIPT["Cluster"](lab.core, lab.rest, pass_time))
    return lab.core.explain(*whom)


def test_each_has_its_numbers_here() -> None:
    assert list(SITUATIONS) == list(TOLD)


@pytest.mark.parametrize("what", TOLD)
def test_what_is_said_is_numbers_too(every_lab: Lab, what: str) -> None:
    why = _arrange(every_lab, what)
    assert TOLD[what] == {name: getattr(why.obstacle, name) for name in TOLD[what]}
    assert why.obstacle is why.decisive
    assert why.waits is (what != "an application that has ended")


def test_a_gang_names_the_placeholder_that_is_next(every_lab: Lab) -> None:
    why = _arrange(every_lab, "a gang that awaits admission")
    gang = why.obstacle.gang
    assert gang is not None
    assert (0, 2, "hold-1", "GANG_HELD") == (gang.placed, gang.size, gang.member, gang.cause)
    held = every_lab.core.explain("gang", "hold-2").obstacle
    assert _full("GANG_HELD", "root.batch", 4_000, 4_000, 6_000) == {
        name: getattr(held, name)
        for name in ("cause", "where", "never", "wanted", "used", "maximum", "lacks")
    }


def test_its_place_in_the_queue(every_lab: Lab) -> None:
    why = _arrange(every_lab, "the back-off")
    assert ("root.batch", 3, 3, 2) == (why.queue, why.position, why.waiting, why.nodes_with_room)
    first = every_lab.core.explain("job", "large-1")
    assert (1, 3, 0) == (first.position, first.waiting, first.nodes_with_room)
    assert ["BACKING_OFF", "NO_NODE"] == [it.cause for it in first.obstacles]
    assert "NO_NODE" == first.decisive.cause, "the rest will end, and the node is still too small"
