"""Where the ways of items begin when several managers, slices, schedulers and restarts meet."""

import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
import ranges
from drawn_scripts import drawn_script
from msgspec.structs import replace
from probes import wait_until
from recorded_workloads import deliveries_of
from recordings import node, submit
from ways import faults

from benchmarks.load import Load
from benchmarks.run import measure
from benchmarks.workloads import WORKLOADS
from yunikorn_actors import SchedulerCore, Settings, TraceSettings, si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import (
    CONTEXT,
    GATEWAY,
    RM_PROXY,
    Cause,
    Delivery,
    Message,
    is_manager,
)
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.scheduling import RunSlice
from yunikorn_actors.runtime.scheduler_core import CoreDriver
from yunikorn_actors.scenario.document import parse_scenario
from yunikorn_actors.scenario.runner import RunOptions, run_scenario
from yunikorn_actors.trace.origins.item_origins import origins
from yunikorn_actors.trace.origins.items import Part, items_in
from yunikorn_actors.trace.origins.origin_queries import InMemory

CONFIG = """
partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]
"""
SHAPES: list[tuple[TopologyName, int]] = [("proposing", 1), ("fused", 1), ("proposing", 2)]
DRIVERS: list[CoreDriver] = ["direct", "threads"]
APPLICATIONS = tuple(f"app-{number}" for number in range(3))
"""All managers use the same ids."""
NODES = ("n0", "n1", "n2")


class Manager(si.ResourceManagerCallback):
    def __init__(self, core: SchedulerCore, rm_id: str, seed: int) -> None:
        self._core, self._rm_id, self._random = core, rm_id, Random(seed)  # noqa: S311

    def register(self) -> None:
        request = si.RegisterResourceManagerRequest(
            rm_id=self._rm_id, config=CONFIG, policy_group=self._rm_id
        )
        self._core.register_resource_manager(request, self)
        nodes = tuple(
            si.NodeInfo(
                node_id=name,
                action=si.ActionFromRM.CREATE,
                schedulable_resource=si.Resource.of({"vcore": 6}),
            )
            for name in NODES
        )
        self._core.update_node(si.NodeRequest(rm_id=self._rm_id, nodes=nodes))

    def work(self, steps: int = 60) -> None:
        for step in range(steps):
            if step % 6 == 5:
                time.sleep(0.003)  # So that threads place some of it before more is asked for.
            if step == steps // 2:
                wait_until(self._core.is_settled)  # And if they have no time: so some of it ends.
            kind, app = self._random.randrange(10), self._random.choice(APPLICATIONS)
            if kind < 6:
                self._ask(app)
            elif kind < 9:
                self._release(app)
            else:
                self.submit(app, is_there=True)

    def submit(self, app: str, *, is_there: bool = False) -> None:
        if is_there:
            gone = (si.RemoveApplicationRequest(application_id=app),)
            self._core.update_application(si.ApplicationRequest(rm_id=self._rm_id, remove=gone))
        ugi = si.UserGroupInformation(user="bob")
        new = si.AddApplicationRequest(application_id=app, queue_name="root.default", ugi=ugi)
        self._core.update_application(si.ApplicationRequest(rm_id=self._rm_id, new=(new,)))

    def lose_node(self) -> None:
        info = si.NodeInfo(node_id="n1", action=si.ActionFromRM.DECOMISSION)
        self._core.update_node(si.NodeRequest(rm_id=self._rm_id, nodes=(info,)))

    def _ask(self, app: str) -> None:
        asks = tuple(
            si.AllocationAsk(
                application_id=app,
                allocation_key=f"k{self._random.randrange(8)}",
                resource_ask=si.Resource.of({"vcore": self._random.choice((1, 2))}),
            )
            for _ in range(self._random.randrange(1, 4))
        )
        self._core.update_allocation(si.AllocationRequest(rm_id=self._rm_id, asks=asks))

    def _release(self, app: str) -> None:
        key = f"k{self._random.randrange(8)}"
        gone = (si.AllocationRelease(application_id=app, allocation_key=key),)
        releases = si.AllocationReleasesRequest(allocations_to_release=gone)
        self._core.update_allocation(si.AllocationRequest(rm_id=self._rm_id, releases=releases))


def session(
    path: Path, shape: tuple[TopologyName, int], driver: CoreDriver, seed: int,
    *, slice_max: int = 100, managers: int = 2, journal: Path | None = None, is_second: bool = False,
) -> list[Delivery]:  # fmt: skip
    """Record managers that work at the same time; in the end one loses a node, and one leaves."""
    topology, schedulers = shape
    with SchedulerCore(
        topology=topology, schedulers=schedulers, driver=driver, journal=journal,
        trace=TraceSettings(path=path), settings=Settings(slice_max=slice_max),
    ) as core:  # fmt: skip
        names = [f"rm-{number}" for number in range(1, managers + 1)]
        crew = [Manager(core, name, 100 * seed + n) for n, name in enumerate(names)]
        for manager in crew:
            manager.register()
            for app in () if is_second else APPLICATIONS:
                manager.submit(app)
        threads = [threading.Thread(target=manager.work) for manager in crew]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(core.is_settled)
        if journal is None or is_second:
            crew[0].lose_node()
            core.unregister_resource_manager(names[-1])
            wait_until(core.is_settled)
    return deliveries_of(path)


SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", SEEDS)
def test_ids_that_two_managers_share(
    seed: int, shape: tuple[TopologyName, int], driver: CoreDriver, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    deliveries = session(tmp_path / "a.trace", shape, driver, seed)
    assert [] == faults(deliveries, seen)
    assert seen["ASK"] > 10
    assert seen["END"] > 10


@pytest.mark.parametrize(("shape", "driver"), ranges.one_each(SHAPES, DRIVERS))
@pytest.mark.parametrize("managers", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_work_in_slices_that_goes_on_after_a_restart(
    seed: int, managers: int, shape: tuple[TopologyName, int], driver: CoreDriver, tmp_path: Path
) -> None:
    """What is told of work from before the restart begins at what ended it, or at the restart."""
    for is_second in (False, True):
        seen: Counter[str] = Counter()
        deliveries = session(
            tmp_path / f"{is_second}.trace", shape, driver, seed, slice_max=1,
            managers=managers, journal=tmp_path / "journal", is_second=is_second,
        )  # fmt: skip
        assert any(isinstance(it.message, RunSlice) for it in deliveries), "vacuous: no slices"
        assert is_second is any(isinstance(it.message, CoreRestored) for it in deliveries)
        assert [] == faults(deliveries, seen)
        assert seen["END"] > 0


def test_a_request_that_waited_for_a_slice_of_rm_proxy_is_found_by_its_application() -> None:
    """Behind a long request RmProxy sends it on in a slice, which names nothing of it."""
    release = si.AllocationRelease(application_id="app", partition_name="default")
    request = si.AllocationRequest(
        rm_id="rm-1", releases=si.AllocationReleasesRequest(allocations_to_release=(release,))
    )
    removal = si.ApplicationRequest(
        rm_id="rm-1", remove=(si.RemoveApplicationRequest(application_id="app"),)
    )
    end = rm.AnnouncedRelease(
        partition="[rm-1]default", application_id="app", uuid="u-1", key="k",
        type=si.TerminationType.STOPPED_BY_RM, message="",
    )  # fmt: skip
    released = rm.RMUpdateAllocation(
        rm_id="rm-1", releases=(rm.ReleaseItem(partition="[rm-1]default", application_id="app"),)
    )
    outside, slice_ = Cause(GATEWAY, 0), Cause(RM_PROXY, 3)
    deliveries = [
        delivered(RM_PROXY, 1, GATEWAY, outside, rm.AllocationsRequested(request=request)),
        delivered(RM_PROXY, 2, GATEWAY, outside, rm.ApplicationsRequested(request=removal)),
        delivered(RM_PROXY, 3, RM_PROXY, Cause(RM_PROXY, 2), RunSlice()),
        delivered(CONTEXT, 5, RM_PROXY, slice_, released),
        delivered(
            RM_PROXY, 4, CONTEXT, Cause(CONTEXT, 5),
            rm.RMReleaseAllocation(rm_id="rm-1", released=(end,)),
        ),
    ]  # fmt: skip
    (item,) = items_in(deliveries[-1].message)
    way = origins(InMemory(deliveries), deliveries[-1], item)
    assert [deliveries[0], deliveries[3], deliveries[4]] == [it.delivery for it in way]


def delivered(mailbox: str, step: int, sender: str, cause: Cause, message: Message) -> Delivery:
    return Delivery(mailbox, step, sender, cause, "request-1", step, message)


def test_an_ask_from_before_a_restart_begins_at_the_restart(tmp_path: Path) -> None:
    def asked(core: SchedulerCore) -> None:
        manager = Manager(core, "rm-1", 1)
        request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=CONFIG)
        core.register_resource_manager(request, manager)

    journal = tmp_path / "journal"
    with SchedulerCore(journal=journal, driver="direct") as core:
        asked(core)
        submit(core, "app")
        size = si.Resource.of({"vcore": 1})
        ask = si.AllocationAsk(application_id="app", allocation_key="k", resource_ask=size)
        core.update_allocation(si.AllocationRequest(rm_id="rm-1", asks=(ask,)))
        wait_until(core.is_settled)
    path = tmp_path / "again.trace"
    with SchedulerCore(journal=journal, driver="direct", trace=path) as core:
        asked(core)
        node(core, "n1", si.ActionFromRM.CREATE, 4)
        core.update_application(
            si.ApplicationRequest(
                rm_id="rm-1", remove=(si.RemoveApplicationRequest(application_id="app"),)
            )
        )
        wait_until(core.is_settled)
    seen: Counter[str] = Counter()
    assert [] == faults(deliveries_of(path), seen)
    assert seen["ASK"] + seen["END"], "vacuous: nothing was told"


# -- large ones


class Kept:
    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:  # noqa: ARG002
        self.deliveries.append(delivery)


LOWERED = """
name: the maximum of a queue is lowered, and a node comes while its time runs
queues: {partitions: [{name: default, preemption: {quotapreemptionenabled: true}, queues: [{name: root, submitacl: '*', queues: [{name: a, properties: {quota.preemption.delay: 10s}, resources: {max: {vcore: 4}}}]}]}]}
steps:
  - create_node: {id: n1, capacity: {vcore: 4000}}
  - add_app: {id: app, queue: root.a}
  - ask: {app: app, key: k, count: 4, resource: {vcore: 1000}}
  - advance: 1s
  - config: {partitions: [{name: default, preemption: {quotapreemptionenabled: true}, queues: [{name: root, submitacl: '*', queues: [{name: a, properties: {quota.preemption.delay: 10s}, resources: {max: {vcore: 3}}}]}]}]}
  - advance: 1s
  - create_node: {id: n2, capacity: {vcore: 4000}}
  - ask: {app: app, key: waits, resource: {vcore: 1000}}
  - advance: 20s
"""


@pytest.mark.parametrize("shape", SHAPES)
def test_work_that_goes_for_a_quota_goes_for_what_exceeded_it(
    shape: tuple[TopologyName, int],
) -> None:
    topology, schedulers = shape
    kept = Kept()
    options = RunOptions(topology=topology, schedulers=schedulers, checkers=lambda: (kept,))
    run_scenario(parse_scenario(LOWERED, "lowered.yaml"), options)
    ends = [
        (it, item)
        for it in kept.deliveries
        if is_manager(it.mailbox)
        for item in items_in(it.message)
        if item.part is Part.END
    ]
    assert len(ends) == 1
    roots = [origins(InMemory(kept.deliveries), *end)[0].delivery.message for end in ends]
    assert [rm.ConfigurationRequested] == [type(it) for it in roots]


@pytest.mark.parametrize(
    "numbers", [(31, 49, 89, *range(1413, 1419)), pytest.param(range(500), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_drawn_scripts(numbers: Sequence[int], shape: tuple[TopologyName, int]) -> None:
    topology, schedulers = shape
    seen: Counter[str] = Counter()
    for number in numbers:
        scenario = parse_scenario(json.dumps(drawn_script(number)), "script.yaml")
        if number % 3 == 1:
            settings = replace(scenario.settings, slice_max=1)
            scenario = replace(scenario, settings=settings)
        kept = Kept()
        options = RunOptions(
            seeds=(number,), topology=topology, schedulers=schedulers,
            checkers=lambda kept=kept: (kept,),
        )  # fmt: skip
        run_scenario(scenario, options)
        assert [] == faults(kept.deliveries, seen), f"script {number}"
    assert seen["ASK"] > 100


@pytest.mark.slow
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("name", ["W5", "W6"])
def test_workloads_in_their_full_size(name: str, topology: TopologyName, tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    with SchedulerCore(topology=topology, trace=TraceSettings(path=path)) as core:
        measure(WORKLOADS[name], Load(core))
    seen: Counter[str] = Counter()
    assert [] == faults(deliveries_of(path), seen)
    assert seen["ASK"] >= 10_000
