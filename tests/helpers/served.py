"""A core in service, in a state that has something for every page, and a plain client."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from probes import wait_until

from yunikorn_actors import SchedulerCore, Settings, si
from yunikorn_actors.service.listener import Part, Site, Standing
from yunikorn_actors.service.rest.in_process import RestPart
from yunikorn_actors.service.rest.request_guard import Guard

RM = "rm-1"
P = "/ws/v1/partition/default"
MS = 1_000_000
G = 1 << 30
CONFIG = """\
partitions:
  - name: default
    placementrules:
      - name: provided
        create: false
        filter: {type: allow, users: [ann, bob]}
      - {name: tag, value: namespace, create: true, parent: {name: fixed, value: root.dev}}
    nodesortpolicy: {type: fair, resourceweights: {vcore: 2, memory: 1}}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: prod
            maxapplications: 10
            properties: {priority.offset: "5", preemption.delay: 1ms}
            resources: {max: {vcore: 16}, guaranteed: {vcore: 6}}
            limits:
              - {limit: ops, groups: [ops], maxresources: {vcore: 12}, maxapplications: 5}
              - {limit: ann, users: [ann], maxresources: {vcore: 12}}
          - name: dev
            parent: true
            childtemplate: {maxapplications: 3, resources: {max: {vcore: 4}}}
            queues:
              - {name: batch, resources: {max: {vcore: 6}}, properties: {preemption.policy: fence}}
"""
ANN = si.UserGroupInformation(user="ann", groups=("ops",))
BOB = si.UserGroupInformation(user="bob", groups=("dev",))
SETTINGS = Settings(
    completing_timeout_ns=50 * MS, reservation_delay_ns=MS, preemption_delay_ns=MS,
    event_push_ns=MS,
)  # fmt: skip


class Confirming(si.ResourceManagerCallback):
    """Confirms all that the core takes back, but for what it is told to keep."""

    def __init__(self, core: SchedulerCore) -> None:
        self._core = core
        self.accepted: set[str] = set()
        self.states: dict[str, str] = {}
        self.new: dict[str, si.Allocation] = {}
        self.kept: list[si.AllocationRelease] = []
        self.keeps = False

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.accepted.update(item.application_id for item in response.accepted)
        self.states.update((item.application_id, item.state) for item in response.updated)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.new.update((item.allocation_key, item) for item in response.new)
        for item in response.released:
            if item.termination_type is si.TerminationType.STOPPED_BY_RM:
                continue
            if self.keeps:
                self.kept.append(item)
            else:
                self.confirm(item)

    def confirm(self, item: si.AllocationRelease) -> None:
        releases = si.AllocationReleasesRequest(allocations_to_release=(item,))
        self._core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        """Hear it: a resource manager that does has the reasons worked out."""


class Response(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served(NamedTuple):
    core: SchedulerCore
    rm: Confirming
    part: Part

    def ask(
        self, path: str, *, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> Response:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        connection = http.client.HTTPConnection(self.part.address, timeout=60)
        try:
            connection.request(method, path, body=body, headers=named)
            response = connection.getresponse()
            return Response(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        response = self.ask(path)
        assert response.status == 200, response
        return response.json

    def settle(self) -> None:
        wait_until(self.core.is_settled)

    # -- what a resource manager does

    def nodes(self, *nodes: si.NodeInfo) -> None:
        self.core.update_node(si.NodeRequest(rm_id=RM, nodes=nodes))
        self.settle()

    def application(self, id_: str, queue: str, ugi: si.UserGroupInformation, **more: Any) -> None:
        new = si.AddApplicationRequest(application_id=id_, queue_name=queue, ugi=ugi, **more)
        self.core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
        self.settle()

    def asks(self, app: str, *keys: str, vcore: int = 1000, **more: Any) -> None:
        tags = {"kubernetes.io/meta/namespace": "ns"}
        size = si.Resource.of({"vcore": vcore, "memory": G})
        asks = tuple(
            si.AllocationAsk(
                application_id=app,
                allocation_key=key,
                resource_ask=size,
                tags=tags | {"kubernetes.io/meta/podName": key},
                **more,
            )
            for key in keys
        )
        self.core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))
        self.settle()

    def foreign(self, key: str, node: str, kind: str) -> None:
        item = si.Allocation(
            allocation_key=key,
            allocation_tags={"foreign": kind},
            node_id=node,
            resource_per_alloc=si.Resource.of({"vcore": 100, "memory": G}),
        )
        self.core.update_allocation(si.AllocationRequest(rm_id=RM, allocations=(item,)))
        self.settle()

    def release(self, app: str, key: str) -> None:
        item = si.AllocationRelease(
            application_id=app,
            allocation_key=key,
            termination_type=si.TerminationType.STOPPED_BY_RM,
        )
        self.rm.confirm(item)
        self.settle()


def node(name: str, vcore: int = 8000) -> si.NodeInfo:
    return si.NodeInfo(
        node_id=name,
        action=si.ActionFromRM.CREATE,
        attributes={
            "si/hostname": f"host-{name}",
            "si/rackname": "/rack",
            "si/instance-type": "m5",
        },
        schedulable_resource=si.Resource.of({"vcore": vcore, "memory": 64 * G, "pods": 110}),
    )


@contextmanager
def serving(
    guard: Guard | None = None, make: type[RestPart] = RestPart, **options: Any
) -> Iterator[Served]:
    with SchedulerCore(settings=SETTINGS, **options) as core:
        part = make(Site(core, "127.0.0.1:0", Standing()), guard)
        part.start()
        try:
            yield Served(core, Confirming(core), part)
        finally:
            part.stop(5.0)


def register(served: Served) -> None:
    served.core.register_resource_manager(
        si.RegisterResourceManagerRequest(
            rm_id=RM,
            version="1",
            config=CONFIG,
            build_info={"buildVersion": "latest", "buildDate": "2026"},
            extra_config={"log.level": "INFO", "api-token": "hidden"},
        ),
        served.rm,
    )
    served.settle()


def live(served: Served) -> None:
    """A gang with a swap, preemption, a reservation, foreign work, rejected and completed ones."""
    register(served)
    served.nodes(node("n1"), node("n2"))
    served.foreign("proxy", "n1", "static")
    served.foreign("other", "n2", "default")
    _gang(served)
    served.application("app-lost", "root.nowhere", ANN)
    served.application("app-done", "root.prod", ANN)
    served.asks("app-done", "done-0")
    served.release("app-done", "done-0")
    served.application("app-etl", "root.dev.batch", BOB, tags={"namespace": "ns"})
    served.asks("app-etl", *(f"etl-{n}" for n in range(7)))
    _preemption(served)
    wait_until(lambda: served.rm.states.get("app-done") == "Completed")
    served.settle()


def _gang(served: Served) -> None:
    group = si.Resource.of({"vcore": 3000, "memory": 3 * G})
    served.application("app-gang", "root.prod", ANN, placeholder_ask=group)
    served.asks("app-gang", "ph-0", "ph-1", "ph-2", placeholder=True, task_group_name="tg")
    wait_until(lambda: len(served.rm.new) == 3)
    served.asks("app-gang", "real-0", task_group_name="tg")
    wait_until(lambda: "real-0" in served.rm.new)


def _preemption(served: Served) -> None:
    """A queue below its guarantee takes back what one without any has; it waits for that."""
    served.application("app-hog", "", BOB, tags={"namespace": "hogs"})
    served.asks("app-hog", *(f"hog-{n}" for n in range(4)))
    served.rm.keeps = True
    served.application("app-need", "root.prod", ANN)
    policy = si.PreemptionPolicy(allow_preempt_other=True)
    served.asks("app-need", "need-0", vcore=3000, preemption_policy=policy, priority=7)
    wait_until(lambda: served.rm.kept)
