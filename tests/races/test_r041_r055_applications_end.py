"""R-041 to R-043, R-046, R-048, R-049, R-052 to R-055, R-109, H-13: applications come and go.

What an application used goes with it, whatever state it leaves from, and it stops counting in every
queue of its path.
"""

import pytest
import ranges
from ganging import (
    PREEMPTED,
    STOPPED,
    TIMED_OUT,
    application,
    ask_members,
    ask_placeholders,
    confirm,
    gang_lab,
    states,
    submit_gang,
    told,
    topologies,
)
from support import AFTER_HISTORY_NS, APP, Lab, labs

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.dump import snapshot

seeded = ranges.seeds(100)
COMPLETING_S = 30
ONE_BELOW_PARENT = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: parent, "
    "maxapplications: 1, queues: [{name: one, maxapplications: 1}, {name: two, maxapplications: 1}]"
    "}]}]}]"
)
BY_NAMESPACE = (
    "partitions: [{name: default, placementrules: [{name: tag, value: namespace, create: true}], "
    "queues: [{name: root, submitacl: '*'}]}]"
)


@seeded
@pytest.mark.parametrize("type_", [STOPPED, TIMED_OUT, PREEMPTED])
def test_r041_r042_the_last_release_meets_the_completing_timer(
    seeds: range,
    type_: si.TerminationType,
) -> None:
    """A release takes it out of every book in one fact, in whichever state it arrives."""
    asked_back = before = 0
    for seed in seeds:
        lab = gang_lab(2, seed=seed)
        ask_members(lab, "real")
        lab.settle()
        confirm(lab, "ph-1")
        lab.settle()
        lab.release("real")
        lab.settle()
        assert ApplicationState.COMPLETING is application(lab).state
        lab.let_timers_fire(COMPLETING_S)
        confirm(lab, "ph-2", type_=type_)
        lab.settle()
        lab.advance(COMPLETING_S)
        fired_first = ("released", "TIMEOUT") in told(lab, "ph-2")
        asked_back += fired_first
        before += not fired_first
        assert "Completed" == states(lab)[-1]
        assert {} == snapshot(lab.state)["queues"]["root"]["allocated"]
        assert lab.leftovers() == {}
    assert min(asked_back, before) > 0, "vacuous: one of them was always first"


@topologies
def test_r046_r047_completed_after_its_time_unless_it_asks_again(topology: TopologyName) -> None:
    lab = Lab(topology=topology)
    lab.nodes(n1=10)
    lab.submit(APP)
    for key in ("a", "b"):
        lab.ask(key)
        lab.settle()
        lab.release(key)
        lab.settle()
        assert ApplicationState.COMPLETING is application(lab).state
        lab.advance(COMPLETING_S - 0.001)
    assert ["Accepted", "Running", "Completing", "Running", "Completing"] == states(lab)
    lab.advance(0.001)
    assert "Completed" == states(lab)[-1]
    assert lab.leftovers() == {}


@topologies
def test_r048_r049_those_that_have_ended_are_known_for_a_while(topology: TopologyName) -> None:
    """With the path of their queue, which may be gone; then they are forgotten."""
    lab = Lab(topology=topology, config=BY_NAMESPACE)
    lab.nodes(n1=10)
    lab.submit(APP, queue="", tags={"namespace": "dev"})
    lab.submit("refused", queue="")
    lab.ask("a")
    lab.settle()
    lab.release("a")
    lab.advance(COMPLETING_S + 11)
    assert "root.dev" not in lab.state.queues, "vacuous: the queue is still there"
    ended = {item["application"]: item for item in snapshot(lab.state)["finished"]}
    assert ("Completed", "root.dev") == (ended[APP]["state"], ended[APP]["queue"])
    assert "Rejected" == ended["refused"]["state"]
    lab.simulator.advance(AFTER_HISTORY_NS)
    assert {} == lab.state.finished
    assert "Expired" == states(lab)[-1]


@seeded
def test_r052_one_that_ends_before_it_ran_stops_counting(seeds: range) -> None:
    """Its only work is released as it starts; the next one may start then."""
    released = withdrawn = 0
    for lab in labs(seeds, config=ONE_BELOW_PARENT):
        lab.nodes(n1=10)
        lab.submit(APP, queue="root.parent.one")
        lab.submit("next", queue="root.parent.two")
        lab.settle()
        lab.ask("a")
        lab.withdraw("a")
        lab.settle()
        released += ("new", "n1") in told(lab, "a")
        withdrawn += not told(lab, "a")
        lab.ask("b", app="next")
        lab.advance(COMPLETING_S)
        assert ["b"] == lab.running()
        assert 1 == lab.state.queues["root.parent"].running_apps
        lab.release("b", app="next")
        lab.advance(COMPLETING_S)
        assert 0 == lab.state.queues["root.parent"].running_apps
        assert lab.leftovers() == {}
    assert min(released, withdrawn) > 0, "vacuous: it always started, or never did"


@topologies
def test_r053_an_accepted_gang_that_holds_something_counts(topology: TopologyName) -> None:
    lab = gang_lab(expected=2, queue="root.parent.one", config=ONE_BELOW_PARENT, topology=topology)
    assert ApplicationState.ACCEPTED is application(lab).state, "vacuous: it runs already"
    lab.submit("next", queue="root.parent.two")
    lab.ask("b", app="next")
    lab.settle()
    assert ["b"] == lab.waiting()
    ask_placeholders(lab, "ph-2")
    lab.settle()
    assert (["Accepted", "Running"], ["b"]) == (states(lab), lab.waiting())
    lab.release("ph-1", "ph-2")
    lab.advance(COMPLETING_S)
    assert ["b"] == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_h13_it_is_removed_while_it_counts_and_has_not_run(topology: TopologyName) -> None:
    lab = gang_lab(expected=2, queue="root.parent.one", config=ONE_BELOW_PARENT, topology=topology)
    levels = ("root", "root.parent", "root.parent.one")
    assert [1, 1, 1] == [len(lab.state.queues[path].allocating) for path in levels], "vacuous"
    lab.submit("next", queue="root.parent.two")
    lab.ask("b", app="next")
    lab.settle()
    assert ["b"] == lab.waiting()
    lab.remove(APP)
    lab.settle()
    assert [0, 0, 0] == [len(lab.state.queues[path].allocating) for path in levels]
    assert ["b"] == lab.running()
    assert lab.leftovers() == {}


@topologies
def test_r054_everything_is_released_of_one_that_never_had_anything(
    topology: TopologyName,
) -> None:
    lab = Lab(topology=topology)
    lab.submit(APP)
    lab.ask("waits", vcore=99)
    lab.settle()
    users = snapshot(lab.state)["users"]
    assert not lab.state.allocation_count, "vacuous: it has something"
    lab.release("")
    lab.settle()
    assert users == snapshot(lab.state)["users"]
    assert (["waits"], []) == (lab.waiting(), lab.rm.told("released"))
    assert lab.leftovers() == {}


@seeded
def test_r055_its_work_is_deleted_before_it_is_accepted(seeds: range) -> None:
    """The release finds nothing; an application without asks stays New and can be removed."""
    unheard = 0
    for lab in labs(seeds):
        lab.submit(APP)
        unheard += not lab.rm.told("application")
        lab.release("k")
        lab.settle()
        assert ApplicationState.NEW is application(lab).state
        assert [("application", APP, "accepted")] == lab.rm.heard
        lab.remove(APP)
        lab.settle()
        assert {} == lab.state.applications
        assert lab.leftovers() == {}
    assert len(seeds) == unheard, "vacuous: it had been accepted"


@topologies
def test_r109_the_quota_comes_with_the_first_application(topology: TopologyName) -> None:
    """It is set before the gang is judged: what is too large is rejected from the first time on."""
    quota = '{"resources": {"vcore": {"value": 3}}}'
    tags = {"namespace": "dev", si.constants.APP_TAG_NAMESPACE_RESOURCE_QUOTA: quota}
    lab = Lab(topology=topology, config=BY_NAMESPACE)
    lab.settle()
    assert "root.dev" not in lab.state.queues, "vacuous: the queue was there before"
    submit_gang(lab, 5, queue="", tags=tags)
    submit_gang(lab, 5, queue="", tags=tags)
    lab.settle()
    reasons = [reason for _, reason in lab.rm.told("application")]
    assert [True, True] == ["larger than max queue allocation" in reason for reason in reasons]
    assert {"vcore": 3} == lab.state.queues["root.dev"].spec.max
    submit_gang(lab, 3, queue="", tags=tags)
    lab.settle()
    assert (APP, "accepted") == lab.rm.told("application")[-1]
    lab.remove(APP)
    lab.advance(11)
    assert "root.dev" not in lab.state.queues
    assert lab.leftovers() == {}
