"""A callback with a say in who goes, on threads: it may be slow, and its run can be run again."""

import threading
from pathlib import Path

import pytest
from confirming import PREEMPTED, policy
from probes import has_refusals, wait_until
from support import RM, Recorder, ask

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.drivers.live.clock import RealClock
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

CONFIG = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: rich}, "
    "{name: poor, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 4m}}}]}]}]"
)
topologies = pytest.mark.parametrize("topology", TOPOLOGIES)


class Slow(Recorder):
    """Stays in the first question until it is let go; agrees to all, and confirms."""

    def __init__(self, core: SchedulerCore) -> None:
        super().__init__()
        self._core = core
        self.asked: list[str] = []
        self.is_in = threading.Event()
        self.let_go = threading.Event()

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse:
        self.asked.append(args.node_id)
        if len(self.asked) == 1:
            self.is_in.set()
            self.let_go.wait(60)
        return si.PreemptionPredicatesResponse(success=True, index=args.start_index)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        gone = tuple(item for item in response.released if item.termination_type is PREEMPTED)
        if gone:
            releases = si.AllocationReleasesRequest(allocations_to_release=gone)
            self._core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))


def preempting(core: SchedulerCore) -> Slow:
    """`rich` fills the one node, `poor` wants it, and the question is out."""
    rm = Slow(core)
    core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG), rm)
    ugi = si.UserGroupInformation(user="bob")
    new = tuple(
        si.AddApplicationRequest(application_id=name, queue_name=f"root.{name}", ugi=ugi)
        for name in ("rich", "poor")
    )
    core.update_application(si.ApplicationRequest(rm_id=RM, new=new))
    size = si.Resource.of({"vcore": 4})
    create = si.ActionFromRM.CREATE
    node = si.NodeInfo(node_id="n1", action=create, schedulable_resource=size)
    core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask("r", 4, app="rich"),)))
    wait_until(lambda: rm.running)
    asks = (ask("p", 4, app="poor", preemption_policy=policy()),)
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))
    assert rm.is_in.wait(60)
    return rm


@topologies
def test_what_was_agreed_to_comes_about_and_can_be_run_again(
    topology: TopologyName, tmp_path: Path
) -> None:
    path = tmp_path / "run.trace"
    with SchedulerCore(topology=topology, clock=RealClock(10), trace=path) as core:
        rm = preempting(core)
        rm.let_go.set()
        wait_until(lambda: ["p"] == list(rm.running.values()))
        assert ["n1"] == rm.asked
    with TraceReader(path) as trace:
        assert replay(trace).difference is None


@topologies
def test_no_answer_within_a_second_is_a_no(topology: TopologyName) -> None:
    with SchedulerCore(topology=topology, clock=RealClock(10)) as core:
        rm = preempting(core)
        wait_until(lambda: has_refusals(core))
        rm.let_go.set()
        wait_until(core.is_settled)
        assert ["r"] == list(rm.running.values()), "it answered too late"
        core.update_allocation(si.AllocationRequest(rm_id=RM))
        wait_until(lambda: ["p"] == list(rm.running.values()))
        assert ["n1", "n1"] == rm.asked
