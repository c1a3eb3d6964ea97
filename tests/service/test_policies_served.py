"""A service names the policies of its queues, and judges a configuration by those that it has."""

from functools import partial
from http import HTTPStatus
from typing import Any

import pytest

pytest.importorskip("aiohttp")
from probes import wait_until
from served import RM, serving

from yunikorn_actors import si
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
