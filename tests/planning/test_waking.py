"""Nothing that Context would commit waits for ever: what may start next is tried again in time."""

import pytest
from support import APP, Lab, Recorder, report

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import could_run
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.planning.stages.allocate import Placer
from yunikorn_actors.state.facts import Fact

pytestmark = pytest.mark.parametrize("topology", TOPOLOGIES)


def config_with(leaf: str = "", root: str = "") -> str:
    return (
        f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*'{root}, "
        f"queues: [{{name: default{leaf}}}]}}]}}]"
    )


def lab_of(topology: TopologyName, config: str, vcore: int) -> Lab:
    lab = Lab(topology=topology, config=config)
    lab.nodes(n1=vcore)
    lab.submit("app-1", "app-2")
    lab.settle()
    return lab


AWARE = config_with(", properties: {application.sort.policy: stateaware}")


def test_an_application_that_becomes_the_oldest(topology: TopologyName) -> None:
    lab = lab_of(topology, AWARE, 4)
    lab.ask("big", vcore=50, app="app-1")
    lab.settle()
    lab.ask("k", app="app-2")
    lab.settle()
    assert lab.running() == []
    lab.ask("old", app="app-2", tags={si.constants.TAG_CREATION_TIME: "50"})
    lab.settle()
    assert could_run(lab.planner) == []
    assert sorted(lab.running()) == ["k", "old"]


def test_the_oldest_runs_out_of_asks_while_accepted(topology: TopologyName) -> None:
    lab = lab_of(topology, AWARE, 4)
    lab.ask("p", app="app-1", placeholder=True, task_group_name="g")
    lab.settle()
    lab.ask("big", vcore=50, app="app-1")
    lab.settle()
    lab.ask("k", app="app-2")
    lab.settle()
    assert lab.running() == ["p"]
    lab.withdraw("big", app="app-1")
    lab.settle()
    assert could_run(lab.planner) == []
    assert sorted(lab.running()) == ["k", "p"]


def test_work_recovered_by_force_under_a_limit(topology: TopologyName) -> None:
    limit = ", limits: [{limit: one, users: [bob], maxapplications: 1}]"
    lab = lab_of(topology, config_with(root=limit), 9)
    lab.ask("b", app="app-2")
    lab.settle()
    lab.ask("c", app="app-1")
    lab.settle()
    assert lab.running() == ["b"]
    lab.report(report("r", "n1", 1, app="app-1"))
    lab.settle()
    assert could_run(lab.planner) == []
    assert sorted(lab.running()) == ["b", "c", "r"]


def test_a_recovered_placeholder_starts_its_application(topology: TopologyName) -> None:
    lab = lab_of(topology, config_with(", maxapplications: 1"), 9)
    lab.ask("a", app="app-1")
    lab.settle()
    lab.ask("b", app="app-2")
    lab.settle()
    lab.report(report("r", "n1", 1, app="app-2", placeholder=True, task_group_name="g"))
    lab.settle()
    assert could_run(lab.planner) == []


def test_a_node_comes_back_while_a_proposal_is_on_its_way(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that charged the former node must not believe that the new one is empty."""
    overtaken = []
    resolve = Placer.resolve

    def counted(placer: Placer, proposal_id: int, fact: Fact) -> bool:
        is_charged = resolve(placer, proposal_id, fact)
        if not is_charged:
            overtaken.append(fact)
        return is_charged

    monkeypatch.setattr(Placer, "resolve", counted)
    for seed in range(60):
        lab = Lab(seed=seed, topology=topology)
        lab.nodes(n1=4)
        lab.submit(APP)
        lab.settle()
        lab.ask("k", vcore=3)
        lab.decommission("n1")
        lab.nodes(n1=4)
        lab.settle()
        lab.nodes(n2=4)
        lab.ask("more", vcore=3)
        lab.settle()
        assert could_run(lab.planner) == []
    assert bool(overtaken) == (topology == "proposing")


def test_what_no_node_holds_is_told(topology: TopologyName) -> None:
    """A cycle that places nothing has found something all the same."""
    heard: list[tuple[str, str]] = []

    class Listener(Recorder):
        def update_container_scheduling_state(
            self, request: si.UpdateContainerSchedulingStateRequest
        ) -> None:
            heard.append((request.allocation_key, request.state.name))

    lab = Lab(topology=topology, rm=Listener())
    lab.nodes(n1=1)
    lab.submit(APP)
    lab.settle()
    lab.ask("k", vcore=5)
    lab.settle()
    assert heard == [("k", "FAILED")]


def test_shapes_that_nobody_asks_for_are_forgotten(topology: TopologyName) -> None:
    """They would be looked at whenever a node has more room."""
    lab = lab_of(topology, config_with(), 4)
    lab.nodes(**{f"n{number}": 4 for number in range(2, 40)})
    keys = [f"k{number}" for number in range(50)]
    for number, key in enumerate(keys):
        lab.ask(key, vcore=5 + number)
    lab.settle()
    assert len(lab.planner.model.shapes.known) == len(keys)
    lab.withdraw(*keys, app="app-1")
    lab.settle()
    assert (lab.planner.model.shapes.known, lab.planner.model.shapes.waiting) == ({}, {})


def test_everybody_of_a_user_goes_while_one_of_them_was_to_be_woken(topology: TopologyName) -> None:
    """The limit has a place again, and nobody left whose books say so."""
    limit = ", limits: [{limit: one, users: [bob], maxapplications: 1}]"
    lab = lab_of(topology, config_with(root=limit), 9)
    lab.ask("a", app="app-1")
    lab.ask("b", app="app-2")
    lab.settle()
    assert (["a"], ["b"]) == (lab.running(), lab.waiting())
    lab.remove("app-1", "app-2")
    lab.settle()
    assert {} == lab.leftovers()
