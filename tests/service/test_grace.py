"""A client of a service learns how long a victim of preemption has to end, too."""

from collections.abc import Callable

import pytest

pytest.importorskip("grpc")
from probes import wait_until

from yunikorn_actors import RemoteCore, si
from yunikorn_actors.service.service import Serving

QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: rich, properties: {preemption.grace: 30s}}
    - {name: poor, properties: {preemption.delay: 100ms}, resources: {guaranteed: {vcore: 1}}}
"""
RICH, POOR = "rich", "poor"


class Heard(si.ResourceManagerCallback):
    def __init__(self) -> None:
        self.released: list[si.AllocationRelease] = []
        self.new = 0

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.released += response.released
        self.new += len(response.new)


def test_a_client_learns_how_long_a_victim_has(serve: Callable[..., Serving]) -> None:
    rm = Heard()
    one = si.Resource.of({"vcore": 1000})
    pushy = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)

    def ask(app: str) -> si.AllocationRequest:
        item = si.AllocationAsk(
            allocation_key=app, application_id=app, resource_ask=one, preemption_policy=pushy
        )
        return si.AllocationRequest(rm_id="rm-1", asks=(item,))

    with RemoteCore(serve().parts["grpc"].address) as core:
        registration = si.RegisterResourceManagerRequest(rm_id="rm-1", config=QUEUES)
        core.register_resource_manager(registration, rm)
        node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE, schedulable_resource=one)
        core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(node,)))
        new = tuple(
            si.AddApplicationRequest(
                application_id=name,
                queue_name=f"root.{name}",
                ugi=si.UserGroupInformation(user="ann"),
            )
            for name in (RICH, POOR)
        )
        core.update_application(si.ApplicationRequest(rm_id="rm-1", new=new))
        core.update_allocation(ask(RICH))
        wait_until(lambda: 1 == rm.new)
        core.update_allocation(ask(POOR))
        wait_until(lambda: bool(rm.released))
        (victim,) = rm.released
        assert 30_000 == victim.grace_ms
        assert victim.message.endswith("; it has 30 s to end")
        # What it heard is its confirmation.
        releases = si.AllocationReleasesRequest(allocations_to_release=(victim,))
        core.update_allocation(si.AllocationRequest(rm_id="rm-1", releases=releases))
        wait_until(lambda: 2 == rm.new)
