"""R-118, R-119, R-121 to R-124: what users and groups have in use, while limits come and go.

Reloads race with decisions on their way; the ledgers are checked after every message.
"""

import pytest
import ranges
from support import APP, QUEUE, RM, Lab, facts_of, labs

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationState

seeded = ranges.seeds(80)


def config(*limits: str, leaf: str = "name: default", more: str = "") -> str:
    listed = ", ".join(limits)
    return (
        "partitions: [{name: default, "
        f"{more}queues: [{{name: root, submitacl: '*', queues: [{{{leaf}, limits: [{listed}]}}]}}]}}]"
    )


def limit(who: str, vcore: int) -> str:
    return f"{{limit: drawn, {who}, maxresources: {{vcore: {vcore}m}}}}"


class Reloads:
    """Counts reloads that found decisions on their way."""

    def __init__(self) -> None:
        self.met = 0
        self.lab: Lab | None = None

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if self.lab is not None and delivery.mailbox == CONTEXT:
            facts = facts_of(simulator, delivery)
            reloaded = any(isinstance(fact, f.QueueReconfigured) for fact in facts)
            self.met += reloaded and bool(self.lab.planner.model.flights.placements)


def with_groups(seed: int, text: str, *groups: str) -> tuple[Lab, Reloads]:
    reloads = Reloads()
    lab = Lab(seed=seed, config=text, checkers=(reloads,))
    reloads.lab = lab
    lab.nodes(n1=10)
    ugi = si.UserGroupInformation(user="bob", groups=groups)
    new = si.AddApplicationRequest(application_id=APP, queue_name="root.default", ugi=ugi)
    lab.simulator.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
    lab.settle()
    return lab, reloads


def used(lab: Lab, group: str) -> int:
    return lab.state.groups[group]["root.default"].amounts.get("vcore", 0)


@seeded
def test_r118_the_group_of_an_application_is_decided_once(seeds: range) -> None:
    met = 0
    for seed in seeds:
        lab, reloads = with_groups(seed, config(limit("groups: [g1]", 9)), "g2", "g1")
        lab.ask("a", "b", vcore=2)
        lab.settle()
        lab.ask("c", vcore=2)
        lab.configure(config(limit("groups: [g2]", 9), limit("groups: [g1]", 9)))
        lab.release("a")
        lab.settle()
        assert list(lab.state.groups) == ["g1"]
        assert used(lab, "g1") == 2 * len(lab.running()) == 4
        met += reloads.met
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: no decision was on its way during a reload"


@seeded
def test_r119_a_limit_outlives_what_it_limits(seeds: range) -> None:
    """Usage falls to nothing and the limits are applied again: they hold as before."""
    met = 0
    for seed in seeds:
        text = config(limit("groups: [g1]", 2))
        lab, reloads = with_groups(seed, text, "g1")
        lab.ask("a", vcore=2)
        lab.settle()
        lab.release("a")
        lab.ask("b", "c", vcore=2)
        lab.configure(text.replace("submitacl: '*'", "submitacl: 'bob'"))
        lab.settle()
        assert len(lab.running()) == len(lab.waiting()) == 1
        assert used(lab, "g1") == 2
        met += reloads.met
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: no decision was on its way during a reload"


@seeded
def test_r121_what_users_had_in_a_dynamic_queue_goes_with_it(seeds: range) -> None:
    rules = "placementrules: [{name: user, create: true}], "
    on_their_way = 0
    for lab in labs(seeds, config=config(more=rules)):
        lab.nodes(n1=10)
        lab.submit(APP, user="ann")
        lab.settle()
        lab.ask("a", "b")
        lab.remove(APP)
        lab.settle()
        on_their_way += lab.races.refusals.total()
        lab.advance(11)
        assert "root.ann" not in lab.state.queues
        assert lab.state.users == {}
    assert on_their_way > 0, "vacuous: nothing was on its way when the application went"


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_r121_what_a_user_had_goes_with_an_application_that_fails(topology: TopologyName) -> None:
    lab = Lab(topology=topology)
    lab.nodes(n1=4)
    lab.submit(
        APP,
        placeholder_ask=si.Resource.of({"vcore": 4}),
        execution_timeout_milli_seconds=1000,
        gang_scheduling_style="Hard",
    )
    lab.settle()
    lab.ask("stands", placeholder=True, task_group_name="workers")
    lab.ask("waits", vcore=4, placeholder=True, task_group_name="workers")
    lab.settle()
    lab.advance(2)
    assert ApplicationState.FAILING is lab.state.applications[APP].state, "vacuous: it lives"
    lab.remove(APP)
    lab.settle()
    assert lab.state.users == {}


@seeded
def test_r122_a_group_whose_limit_is_removed_counts_nobody(seeds: range) -> None:
    met = 0
    for seed in seeds:
        lab, reloads = with_groups(seed, config(limit("groups: [g1]", 9)), "g1")
        lab.ask("a", vcore=2)
        lab.settle()
        lab.ask("b", vcore=2)
        lab.configure(config(limit("users: [ann]", 9)))
        lab.release("a")
        lab.settle()
        assert lab.state.groups == {}
        assert lab.running() == ["b"]
        met += reloads.met
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: no decision was on its way during a reload"


@seeded
def test_r122_a_group_that_is_limited_elsewhere_counts_there_alone(seeds: range) -> None:
    """Both queues lead to the root, where the group has one book: what left it is struck there."""
    met = 0
    named = limit("groups: [g1]", 9)
    text = config(named).replace("]}]}]}]", f"]}}, {{name: second, limits: [{named}]}}]}}]}}]")
    for seed in seeds:
        lab, reloads = with_groups(seed, text, "g1")
        ugi = si.UserGroupInformation(user="ann", groups=("g1",))
        new = si.AddApplicationRequest(application_id="o", queue_name="root.second", ugi=ugi)
        lab.simulator.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
        lab.ask("a", vcore=2)
        lab.ask("other", vcore=3, app="o")
        lab.settle()
        assert lab.state.groups["g1"]["root"].amounts == {"vcore": 5}
        lab.ask("b", vcore=2)
        lab.configure(text.replace(named, "", 1))
        lab.settle()
        assert lab.state.groups["g1"]["root"].amounts == {"vcore": 3}
        assert lab.running() == ["a", "b", "other"]
        met += reloads.met
        assert lab.leftovers() == {}
    assert met > 0, "vacuous: no decision was on its way during a reload"


@seeded
def test_r123_a_wildcard_limit_on_the_root_is_for_each_user(seeds: range) -> None:
    everybody = limit("users: ['*']", 2)
    text = config().replace("{name: root, ", f"{{name: root, limits: [{everybody}], ")
    for lab in labs(seeds, config=text):
        lab.nodes(n1=10)
        lab.submit(APP, user="ann")
        lab.submit("other", user="bob")
        lab.ask("a-1", "a-2", "a-3")
        lab.ask("b-1", "b-2", "b-3", app="other")
        lab.settle()
        assert [key[0] for key in lab.running()] == ["a", "a", "b", "b"]
        assert len(lab.waiting()) == 2
        assert lab.state.nodes["n1"].available["vcore"] == 6, "it is not for want of room"
        lanes = lab.planner.model.tree.queues[QUEUE].lanes.values()
        refusing = [lane.refused_by.name for lane in lanes if lane.refused_by is not None]
        assert sorted(refusing) == ["limit of user ann in root", "limit of user bob in root"]
        lab.release(min(lab.running()))
        lab.settle()
        assert [key[0] for key in lab.running()] == ["a", "a", "b", "b"]
        assert [key[0] for key in lab.waiting()] == ["b"], "what one gave back the other one left"


@seeded
def test_r124_a_limit_that_falls_refuses_before_anything_is_charged(seeds: range) -> None:
    lost = 0
    for lab in labs(seeds, config=config(limit("users: [bob]", 9))):
        lab.nodes(n1=10)
        lab.submit(APP)
        lab.settle()
        lab.ask("a", "b", "c", vcore=2)
        lab.configure(config(limit("users: [bob]", 3)))
        lab.settle()
        committed = lab.state.nodes["n1"].allocated.get("vcore", 0)
        assert (
            committed == lab.state.users["bob"]["root"].amounts["vcore"] == 2 * len(lab.running())
        )
        lost += lab.races.refusals["USER_LIMIT"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no decision lost against the new limit"
