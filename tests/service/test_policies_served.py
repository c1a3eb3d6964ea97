"""A service names the policies of its queues, and judges and simulates by those that it has."""

import json
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

import pytest

pytest.importorskip("aiohttp")
from probes import wait_until
from served import ANN, RM, Served, node, serving

from yunikorn_actors import si
from yunikorn_actors.cli import main
from yunikorn_actors.policies import Started
from yunikorn_actors.policies.loading import loaded_from, places_of
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.service.rest.in_process import RestPart
from yunikorn_actors.service.rest.process import ProcessPart

QUEUES = """\
partitions:
- name: default
  nodesortpolicy: {type: own}
  queues:
  - name: root
    submitacl: "*"
    properties: {queue.sort.policy: own}
    queues:
    - {name: own, properties: {application.sort.policy: own}}
    - {name: shipped, properties: {application.sort.policy: sjf}}
    - {name: built-in, properties: {application.sort.policy: fair}}
"""


class Own:
    def application_key(self, app: Any) -> Any:
        return app.id

    def queue_key(self, queue: Any) -> Any:
        return queue.path

    def score(self, node: Any, shape: Any) -> float:  # noqa: ARG002 - as it is called
        return 0


@pytest.mark.parametrize("part", [RestPart, lambda site, _: ProcessPart(site)])
def test_queues_and_a_configuration(part: Any) -> None:
    with serving(make=part, policies={"own": Own}) as served:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=QUEUES)
        served.core.register_resource_manager(request, served.rm)
        served.settle()
        judge = partial(served.ask, "/ws/v1/validate-conf", method="POST")
        assert {"allowed": True} == judge(body=QUEUES.encode()).json
        answer = judge(body=QUEUES.replace("sort.policy: own", "sort.policy: owm").encode()).json
        assert not answer["allowed"]
        assert "'owm' is no value for it" in answer["reason"]
        address = "/ws/v1/partition/default/queues"
        wait_until(lambda: served.ask(address).status == HTTPStatus.OK)
        tree = served.get(address)
        below = {it["queuename"]: it["sortingPolicy"] for it in tree["children"]}
        assert "own" == tree["sortingPolicy"]
        assert {"root.own": "own", "root.shipped": "sjf", "root.built-in": "fair"} == below


class LastNode:
    """Prefers the node whose name comes last, where the built-in orders take the first."""

    def score(self, node: Any, shape: Any) -> float:  # noqa: ARG002 - as it is called
        return -ord(node.id[-1])


@dataclass
class Remembers:
    """Who has had something started comes last: it goes by what it was shown before."""

    started: dict[str, int] = field(default_factory=dict)

    def observe(self, fact: Any, now_ns: int) -> None:  # noqa: ARG002 - as it is called
        if isinstance(fact, Started):
            app = fact.job.application_id
            self.started[app] = self.started.get(app, 0) + 1

    def application_key(self, app: Any) -> Any:
        return self.started.get(app.id, 0)


ONE_LEAF = """\
partitions:
- name: default
  nodesortpolicy: {type: %s}
  queues:
  - name: root
    submitacl: "*"
    queues: [{name: leaf, properties: {application.sort.policy: %s}}]
"""
BESIDE = pytest.mark.parametrize("part", [RestPart, lambda site, _: ProcessPart(site)])


def _begin(served: Served, nodes: str = "fair", leaf: str = "fifo") -> None:
    config = ONE_LEAF % (nodes, leaf)
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=config)
    served.core.register_resource_manager(request, served.rm)
    served.nodes(node("n1"), node("n2"))
    served.application("app-1", "root.leaf", ANN)
    served.application("app-2", "root.leaf", ANN)
    served.settle()


def _simulated(served: Served, *steps: str) -> Any:
    truth = {name: it["revision"] for name, it in served.core.state_dump()["partitions"].items()}
    wait_until(lambda: truth == served.get("/ws/v1/x/mailboxes")["revisions"])
    body = json.dumps({"steps": steps, "until": 0}).encode()
    return served.ask("/ws/v1/x/simulate", method="POST", body=body)


ASK = "- ask: {app: %s, key: late, resource: {vcore: %d}}"


@BESIDE
def test_a_policy_of_the_service_decides_in_a_simulation(part: Any) -> None:
    with serving(make=part, policies={"last": LastNode}) as served:
        _begin(served, nodes="last")
        found = _simulated(served, ASK % ("app-1", 1000)).json
        assert ["n2"] == [it["node"] for it in found["answer"]["course"]["placed"]]
        served.asks("app-1", "late", vcore=1000)
        assert served.core.explain("app-1", "late").placed == {"n2": 1}


@BESIDE
def test_a_simulation_goes_by_what_a_policy_was_shown(part: Any) -> None:
    with serving(make=part, policies={"remembers": Remembers}) as served:
        _begin(served, leaf="remembers")
        served.asks("app-1", "first", vcore=1000)
        wait_until(lambda: "first" in served.rm.new)
        found = _simulated(served, ASK % ("app-1", 6000), ASK % ("app-2", 6000)).json
        placed = [it["application"] for it in found["answer"]["course"]["placed"]]
        assert placed == ["app-2", "app-1"]


def test_a_policy_that_cannot_be_loaded_is_said_with_the_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Local(LastNode):
        pass

    given = {"here": Local, "last": LastNode}
    with serving(make=lambda site, _: ProcessPart(site), policies=given) as served:  # type: ignore[arg-type]
        _begin(served, nodes="last")
        assert _simulated(served, ASK % ("app-1", 1000)).status == HTTPStatus.OK
        update = si.UpdateConfigurationRequest(rm_id=RM, config=ONE_LEAF % ("here", "fifo"))
        served.core.update_configuration(update)
        served.settle()
        refused = _simulated(served, ASK % ("app-1", 1000))
        assert refused.status == HTTPStatus.CONFLICT
        assert (
            main(["simulate", "--ask", "queue=root.leaf,cpu=1", "--server", served.part.address])
            == 2
        )
        said = capsys.readouterr().err
        assert "policy 'here' decides here, and what simulates cannot load it" in said
        assert "have it stand at the top of a module that Python finds" in said


def test_where_policies_are_loaded_from_again() -> None:
    given = Policies({"last": LastNode, "made": partial(LastNode)})
    last, made = places_of(given)
    assert (last.place, made.place) == (f"{__name__}:LastNode", "")
    policies, faults = loaded_from([last, made])
    assert policies.given == {"last": LastNode}
    assert faults == {"made": "no module has it under the name of its class"}
    _, faults = loaded_from([last._replace(digest="other")])
    assert "was changed since" in faults["last"]
    _, faults = loaded_from([last._replace(place=f"{__name__}:Gone")])
    assert "Gone" in faults["last"]
