"""A policy of the asking leaf says whom to take first, of those that the rules allow."""

import json
from typing import Any

import pytest
from confirming import PREEMPTED, confirming_lab, policy
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.policies import Candidate, Policies

topologies = pytest.mark.parametrize("topology", TOPOLOGIES)


class OldestFirst:
    """The other way round than the core, which takes the newest."""

    def victim_key(self, victim: Candidate, _: int) -> int:
        return victim.started_ns


class OfUser:
    """Work of eve first."""

    def victim_key(self, victim: Candidate, _: int) -> bool:
        return victim.user != "eve"


class LeastLost:
    """What has run for the shortest time, by its size."""

    def victim_key(self, victim: Candidate, now_ns: int) -> int:
        return (now_ns - victim.started_ns) * sum(victim.size.values())


class Raising:
    def victim_key(self, victim: Candidate, _: int) -> int:
        raise RuntimeError(f"do not know {victim.id}")


def config(name: str) -> str:
    owner = {
        "name": "owner",
        "resources": {"guaranteed": {"vcore": "4m"}},
        "properties": {"preemption.delay": "1s", "application.sort.policy": name},
    }
    queues = [owner, {"name": "guests"}]
    root = {"name": "root", "submitacl": "*", "queues": queues}
    return json.dumps({"partitions": [{"name": "default", "queues": [root]}]})


def lab_with(made: Any, topology: TopologyName, name: str = "mine") -> Lab:
    return confirming_lab(config(name), topology=topology, policies=Policies({"mine": made}))


def work(lab: Lab, name: str, key: str, vcore: int = 1, **fields: Any) -> None:
    lab.submit(name, queue="root.guests", **fields)
    lab.ask(key, app=name, vcore=vcore, preemption_policy=policy())
    lab.settle()
    lab.advance(1)


def claim(lab: Lab, vcore: int = 1) -> list[str]:
    lab.submit("owner", queue="root.owner")
    lab.ask("claim", app="owner", vcore=vcore, preemption_policy=policy())
    lab.advance(30)
    assert "claim" in lab.running(), "vacuous: nobody made room"
    return [key for key, how in lab.rm.told("released") if how == PREEMPTED.name]


@topologies
@pytest.mark.parametrize(
    ("made", "name", "gone"),
    [
        (OldestFirst, "fifo", "young"),
        (OldestFirst, "mine", "old"),
        (OfUser, "mine", "middle"),
        (LeastLost, "mine", "young"),
        (Raising, "mine", "young"),
    ],
)
def test_another_victim_goes_because_of_it(
    made: Any, name: str, gone: str, topology: TopologyName
) -> None:
    lab = lab_with(made, topology, name)
    lab.nodes(n=3)
    work(lab, "a", "old")
    work(lab, "b", "middle", user="eve")
    work(lab, "c", "young")
    assert claim(lab) == [gone]


@topologies
def test_it_chooses_among_nodes_whose_victims_are_as_many(topology: TopologyName) -> None:
    for made, gone in ((OldestFirst, ["second"]), (OfUser, ["first"])):
        lab = lab_with(made, topology)
        lab.nodes(b=1)
        work(lab, "b", "second", user="bob")
        lab.nodes(a=1)
        work(lab, "a", "first", user="eve")
        assert claim(lab) == gone


@topologies
def test_what_hurts_more_still_goes_later(topology: TopologyName) -> None:
    """What opted out is no choice of a policy, nor is it how many go."""
    lab = lab_with(OldestFirst, topology)
    lab.nodes(n=4)
    lab.submit("a", queue="root.guests")
    lab.ask("stays", app="a", preemption_policy=policy(willing=False))
    lab.settle()
    work(lab, "b", "young")
    work(lab, "c", "large", vcore=2)
    assert claim(lab, vcore=2) == ["large"]


def gang(lab: Lab, name: str, **fields: Any) -> None:
    size = si.Resource.of({"vcore": 2})
    lab.submit(name, queue="root.guests", placeholder_ask=size,
               gang_scheduling_style="Hard", **fields)  # fmt: skip
    keys = [f"{name}-{number}" for number in (1, 2)]
    lab.ask(*keys, app=name, placeholder=True, task_group_name="team", preemption_policy=policy())
    lab.settle()
    lab.advance(1)


@topologies
@pytest.mark.parametrize(("name", "gone"), [("fifo", "g2"), ("mine", "g1")])
def test_of_whole_gangs_too_as_few_as_will_do(name: str, gone: str, topology: TopologyName) -> None:
    """The core takes the gang that has lost least; the policy that of eve, and not both."""
    lab = lab_with(OfUser, topology, name)
    lab.nodes(n=2, m=2)
    gang(lab, "g1", user="eve")
    gang(lab, "g2")
    assert {key.partition("-")[0] for key in claim(lab)} == {gone}


@topologies
def test_it_is_asked_about_all_of_a_gang_and_never_about_a_part(topology: TopologyName) -> None:
    asked: dict[str, tuple[int, dict[str, int]]] = {}

    class Noting:
        def victim_key(self, victim: Candidate, _: int) -> int:
            asked[victim.id] = (victim.count, dict(victim.size))
            return 0

    lab = lab_with(Noting, topology)
    lab.nodes(n=2, m=2)
    gang(lab, "g1")
    gang(lab, "g2")
    assert len(claim(lab)) == 2
    assert asked == {"g1": (2, {"vcore": 2}), "g2": (2, {"vcore": 2})}


@topologies
def test_one_that_fails_lets_the_core_decide_and_is_named(topology: TopologyName) -> None:
    lab = lab_with(Raising, topology)
    lab.nodes(n=2)
    work(lab, "a", "old")
    work(lab, "b", "young")
    assert claim(lab) == ["young"]
    (line,) = [line for line in lab.simulator.lines if "has failed" in line]
    assert "the policy mine of queue root.owner" in line
    assert "victim_key raised RuntimeError('do not know" in line
