"""What waits in a leaf with a gate is sorted once, and not for each pass."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pytest

from tests.helpers.batch_jobs import CONFIG, Batch, drawn
from yunikorn_actors import ResourceManagerCallback, VirtualCore, si
from yunikorn_actors.machines.context import Context
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.planning.model.waiting_jobs import WaitingJobs
from yunikorn_actors.policies import Ended, Hold, Started
from yunikorn_actors.policies.inputs import Change


class Behind:
    """A gate with an order that goes by what waits and what runs."""

    reads = ("size", "runtime_ns", "used")

    def application_key(self, app: Any) -> Any:
        return app.used.get("vcore", 0), app.size.get("vcore", 0), -app.runtime_ns

    def may_start(self, _: Any, pool: Any) -> Hold | None:
        return Hold("behind") if len(pool.held) > 1 else None


@dataclass
class Alternating(Behind):
    """Its keys are others whenever something has started or ended."""

    reads = ("state",)
    number: int = 0
    running: dict[str, int] = field(default_factory=dict)

    def application_key(self, app: Any) -> Any:
        return self.number % 3 * app.submitted_ns % 5

    def observe(self, fact: Change, _: int) -> None:
        self.number += isinstance(fact, Started | Ended)


class Compared(Batch):
    """Compares the order that is kept with one that is made anew, in each second."""

    compared = 0

    def _look(self, now: int | None = None) -> None:
        super()._look(now)
        context = self.core.machines[CONTEXT]
        assert isinstance(context, Context)
        (partition,) = context.partitions.values()
        assert partition.planner is not None
        for leaf, kept in partition.planner.gatekeeper.waiting.items():
            kept.refresh()
            found = [(it.order, it.subject) for it in kept.in_order]
            wanted = [(it.order, it.subject) for it in WaitingJobs(leaf).in_order]
            assert found == wanted
            self.compared += len(found)


@pytest.mark.parametrize(
    ("policy", "gangs"), [("behind", False), ("behind", True), ("alternating", False)]
)
def test_the_order_that_is_kept_is_the_order_made_anew(policy: str, gangs: bool) -> None:
    policies = {"behind": Behind, "alternating": Alternating}
    batch = Compared(policy, drawn(4, 9), "fused", gangs=gangs, policies=policies)
    assert len(batch.run()) == len(batch.jobs)
    assert batch.compared > len(batch.jobs)


class Cluster(ResourceManagerCallback):
    pass


def calls_of_an_arrival(waiting: int) -> int:
    """Count the calls of functions in which one ask more comes to a queue where so many wait."""
    calls = Counter[str]()

    def count(_: FrameType, event: str, __: object) -> None:
        calls[event] += 1

    with VirtualCore(quiet=True, topology="fused") as core:
        core.register_resource_manager(
            si.RegisterResourceManagerRequest(rm_id="rm", config=CONFIG % "fcfs"), Cluster()
        )
        node = si.NodeInfo(
            node_id="n",
            action=si.ActionFromRM.CREATE,
            schedulable_resource=si.Resource.of({"vcore": 2}),
        )
        core.update_node(si.NodeRequest(rm_id="rm", nodes=(node,)))
        for number in range(waiting + 1):
            app = si.AddApplicationRequest(
                application_id=f"app-{number}",
                queue_name="root.jobs",
                ugi=si.UserGroupInformation(user="ann"),
            )
            core.update_application(si.ApplicationRequest(rm_id="rm", new=(app,)))
            ask = si.AllocationAsk(
                application_id=f"app-{number}",
                allocation_key="work",
                resource_ask=si.Resource.of({"vcore": 2 if number else 1}),
            )
            core.update_allocation(si.AllocationRequest(rm_id="rm", asks=(ask,)))
            if number < waiting:
                core.run_until_idle()
        sys.setprofile(count)
        try:
            core.run_until_idle()
        finally:
            sys.setprofile(None)
    return calls["call"]


def test_what_waits_for_room_costs_nothing_when_another_one_comes() -> None:
    few, many = calls_of_an_arrival(20), calls_of_an_arrival(60)
    assert many <= few + 10
