"""Requests that wait are handled together, and nobody can tell but by the number of calls.

The same requests are handled one by one and together, first in, first out. All that follows from
them must be the same: what is told about each application, in its order, and the state at the end.
"""

from collections import defaultdict
from random import Random
from typing import Any

import pytest
import ranges
from support import CONFIG, RM, ask, report

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.choosers import Fifo
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.unit_of_work import Answer, Answers
from yunikorn_actors.machines.machine import Joining
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.values.durations import SECOND

APPS = ("app-1", "app-2", "gang")
QUOTAS = """
partitions:
- name: default
  preemption: {enabled: true, quotapreemptionenabled: true}
  queues:
  - name: root
    submitacl: '*'
    queues:
    - {name: default, resources: {max: {vcore: 12}}, properties: {quota.preemption.delay: 30s}}
"""
STOPPED, CONFIRMED = (
    si.TerminationType.STOPPED_BY_RM,
    si.TerminationType.PLACEHOLDER_REPLACED,
)


class Together(Fifo):
    """First in, first out; how many requests are handled as one is drawn."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a repeatable run, no secret

    def joins(self) -> bool:
        return self._random.random() < 0.8


class ByApplication(si.ResourceManagerCallback):
    """What was told about each application, in its order; it hears container states, too."""

    def __init__(self) -> None:
        self.told: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self.calls = 0
        self.uuids: list[tuple[str, str, str]] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.calls += 1
        for refused in response.rejected:
            self.told[refused.application_id].append(("rejected", refused.allocation_key))
        # Two lists of one response: they have no order among each other.
        for report_refused in response.rejected_allocations:
            told = self.told[f"{report_refused.application_id} in the later form"]
            told.append(("rejected", report_refused.allocation_key))
        for ask_gone in response.released_asks:
            self.told[ask_gone.application_id].append(("withdrawn", ask_gone.allocation_key))
        for gone in response.released:
            self.told[gone.application_id].append(("released", gone.uuid, gone.termination_type))
        for new in response.new:
            self.told[new.application_id].append(("new", new.allocation_key, new.uuid, new.node_id))
            self.uuids.append((new.application_id, new.allocation_key, new.uuid))

    def update_application(self, response: si.ApplicationResponse) -> None:
        for update in response.updated:
            self.told[update.application_id].append(("state", update.state, update.message))

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        told = ("container", request.allocation_key, request.state, request.reason)
        self.told[request.application_id].append(told)


class Joined:
    """Counts messages that were handled together with the one before them."""

    def __init__(self) -> None:
        self.count = 0

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        if delivery.joined:
            assert delivery.mailbox == CONTEXT
            self.count += 1


class Run:
    def __init__(self, topology: TopologyName, chooser: Fifo, config: str) -> None:
        self.joined, self.rm = Joined(), ByApplication()
        self.core = Simulator(
            Topology(topology, settings=Settings(), instance="core"),
            chooser=chooser,
            checkers=(*default_checkers(), self.joined),
        )
        registration = si.RegisterResourceManagerRequest(rm_id=RM, config=config)
        self.core.register_resource_manager(registration, self.rm)
        size, create = si.Resource.of({"vcore": 8}), si.ActionFromRM.CREATE
        nodes = [
            si.NodeInfo(node_id=name, action=create, schedulable_resource=size)
            for name in ("n1", "n2")
        ]
        self.core.update_node(si.NodeRequest(rm_id=RM, nodes=tuple(nodes)))
        self._submit()

    def _submit(self) -> None:
        ugi = si.UserGroupInformation(user="bob")
        ask_all = si.Resource.of({"vcore": 3})
        new = [
            si.AddApplicationRequest(
                application_id=name,
                queue_name="root.default",
                ugi=ugi,
                placeholder_ask=ask_all if name == "gang" else None,
            )
            for name in APPS
        ]
        self.core.update_application(si.ApplicationRequest(rm_id=RM, new=tuple(new)))
        self.core.settle()

    def play(self, seed: int) -> None:
        """Send bursts of requests; what they name depends on what was told before the burst."""
        random = Random(seed)  # noqa: S311 - as above
        for number in range(12):
            for each in range(int(1 + random.random() * 6)):
                self.core.update_allocation(self._request(random, f"{number}-{each}"))
            self.core.settle()
            if random.random() < 0.3:
                self.core.advance(int(random.random() * 40) * SECOND)
                self._submit()

    def _request(self, random: Random, name: str) -> si.AllocationRequest:
        asks, reports, gone, asks_gone = [], [], [], []
        for part in range(int(1 + random.random() * 2)):
            app = _one_of(random, (*APPS, APPS[0], "nobody"))
            key = _one_of(random, (f"{name}-{part}", f"{name}-{part}", "often"))
            uuid = _one_of(random, self.rm.uuids)[2] if self.rm.uuids else ""
            vcore = _one_of(random, (1, 1, 2, 3, 9))
            match int(random.random() * 9):
                case 0 | 1 | 2:
                    asks.append(self._ask(app, key, vcore))
                case 3:
                    reports.append(report(key, "n1", vcore, app=app, uuid=f"uuid-{key}"))
                case 4:
                    asks_gone.append(
                        si.AllocationAskRelease(application_id=app, allocation_key="often")
                    )
                case 5:
                    gone.append(_release(app, termination_type=CONFIRMED, uuid=uuid))
                case 6:
                    gone.append(_release(app, allocation_key="often"))
                case 7 if random.random() < 0.3:
                    gone.append(_release(app))
                case _:
                    gone.append(_release(app, uuid=uuid))
        releases = si.AllocationReleasesRequest(
            allocations_to_release=tuple(gone), allocation_asks_to_release=tuple(asks_gone)
        )
        return si.AllocationRequest(
            rm_id=RM, asks=tuple(asks), allocations=tuple(reports), releases=releases
        )

    @staticmethod
    def _ask(app: str, key: str, vcore: int) -> si.AllocationAsk:
        if app != "gang":
            return ask(key, vcore, app=app)
        placeholder = key.endswith("0")
        return ask(key, 1, app=app, task_group_name="team", placeholder=placeholder)


def _release(app: str, **fields: Any) -> si.AllocationRelease:
    return si.AllocationRelease(application_id=app, **{"termination_type": STOPPED, **fields})


def _one_of(random: Random, choices: Any) -> Any:
    return choices[int(random.random() * len(choices))]


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("config", [CONFIG, QUOTAS], ids=["plain", "quotas"])
@ranges.seeds(200, usual=3)
def test_joined_is_as_one_by_one(seeds: range, config: str, topology: TopologyName) -> None:
    joined = fewer = 0
    for seed in seeds:
        alone, together = Run(topology, Fifo(), config), Run(topology, Together(seed), config)
        for run in (alone, together):
            run.play(seed)
        assert alone.rm.told == together.rm.told
        assert alone.core.states()[CONTEXT] == together.core.states()[CONTEXT]
        assert alone.joined.count == 0
        joined += together.joined.count
        fewer += alone.rm.calls - together.rm.calls
    assert joined > 10 * len(seeds), "vacuous: hardly anything was handled together"
    assert fewer > 0, "nothing was told together"


# -- what is told


def _answer(random: Random) -> Answer:
    app = _one_of(random, ("app-1", "app-2"))
    key = str(int(random.random() * 100))
    kind = int(random.random() * 3)
    if kind == 0:
        return rm.RejectedAsk(application_id=app, key=key, reason="no", later_form=False)
    if kind == 1:
        return rm.AnnouncedRelease(
            partition="p", application_id=app, uuid=key, key=key, type=STOPPED, message=""
        )
    return rm.AnnouncedWithdrawal(
        partition="p", application_id=app, key=key, type=STOPPED, message="", later_form=False
    )


def _flat(answers: Answers) -> dict[str, list[str]]:
    told: defaultdict[str, list[str]] = defaultdict(list)
    for message in answers.messages(RM):
        match message:
            case rm.RMRejectedAllocationAsk(rejected=rejected):
                found: tuple[Any, ...] = rejected
            case rm.RMReleaseAllocation(withdrawn=withdrawn, released=released):
                found = (*withdrawn, *released)
        for item in found:
            told[item.application_id].append(f"{type(item).__name__} {item.key}")
    return told


@pytest.mark.parametrize("seed", range(50))
def test_what_is_told_about_an_application_keeps_its_order(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - as above
    alone: defaultdict[str, list[str]] = defaultdict(list)
    together, calls = Answers(), 0
    for _ in range(6):
        one = Answers()
        for _ in range(int(random.random() * 4)):
            answer = _answer(random)
            one.add(answer)
            together.add(answer)
        together.end_request()
        calls += len(one.messages(RM))
        for app, told in _flat(one).items():
            alone[app].extend(told)
    assert alone == _flat(together)
    assert len(together.messages(RM)) <= calls


def test_what_does_not_disturb_an_order_is_told_at_once() -> None:
    answers = Answers()
    for app in ("app-1", "app-2", "app-1"):
        answers.add(
            rm.AnnouncedRelease(
                partition="p", application_id=app, uuid=app, key=app, type=STOPPED, message=""
            )
        )
        answers.end_request()
    (message,) = answers.messages(RM)
    assert isinstance(message, rm.RMReleaseAllocation)
    assert ["app-1", "app-2", "app-1"] == [item.uuid for item in message.released]


def test_it_is_quick_to_see_that_a_machine_joins_nothing() -> None:
    """For a protocol or an ABC Python runs code of its own at each message, to find it out."""
    assert {type} == {type(kind) for kind in (Joining, Context, RmProxy)}
    assert not isinstance(RmProxy(settings=Settings()), Joining)
