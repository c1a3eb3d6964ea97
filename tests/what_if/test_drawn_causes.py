"""Clusters in which an ask waits for several things at once: drawn, and each answer is done.

Quotas, limits, fences, offsets, drained nodes, required nodes, gangs and preemption meet as they
are drawn. What is found has to help, less must not, and what one release, one node, one raise or
waiting would do is missed by no search.
"""

import dataclasses
from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.docs.test_would_it_fit import context_of
from tests.what_if.test_more_misfits import POLICY, for_s
from tests.what_if.test_several_causes import _cluster, _less, _topology, asked
from yunikorn_actors import InvalidRequest, si
from yunikorn_actors.config import ConfigError
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import manager_of
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.what_if.changes import Change, Reconfigure
from yunikorn_actors.what_if.core_state import state_of
from yunikorn_actors.what_if.least_change import Option, Wanted, least_changes
from yunikorn_actors.what_if.run import Manager, Run

LEAVES = ("root.team.a", "root.team.b", "root.batch")
USERS = ("ann", "bob", "cid")
GROUPS: tuple[tuple[str, ...], ...] = ((), ("dev",), ("qa",))
NOTHING = Option("none", "")


def _queue(draw: Random, name: str, children: str = "") -> str:
    parts = [f"name: {name}"]
    if draw.random() < (0.3 if children else 0.5):
        parts.append(f"resources: {{max: {{vcore: {draw.randint(2, 8)}}}}}")
    limits = [
        f"{{limit: '', {whose}, maxresources: {{vcore: {draw.randint(3, 6)}}}}}"
        for whose in ("users: [ann]", "groups: [dev]", "users: ['*']")
        if draw.random() < 0.25
    ]
    if limits:
        parts.append(f"limits: [{', '.join(limits)}]")
    properties = [
        text
        for text in ("preemption.policy: fence", "priority.offset: '5'", "preemption.delay: 1s")
        if draw.random() < 0.2
    ]
    if properties and not children:
        parts.append(f"properties: {{{', '.join(properties)}}}")
    return "{" + ", ".join(parts) + (f", queues: [{children}]" if children else "") + "}"


def _arranged(seed: int, topology: TopologyName) -> tuple[Simulator, Wanted]:
    simulator, draw = Simulator(_topology(topology)), Random(seed)  # noqa: S311 - worlds, no secrets
    cluster = _cluster(simulator, simulator.settle, simulator.advance)
    below = f"{_queue(draw, 'a')}, {_queue(draw, 'b')}"
    cluster.queues(f"{_queue(draw, 'team', below)}, {_queue(draw, 'batch')}")
    nodes = [f"node-{number}" for number in range(1, draw.randint(2, 4))]
    cluster.nodes(**{it.replace("-", "_"): draw.choice((2, 3, 4, 6, 8)) * 1_000 for it in nodes})
    if draw.random() < 0.35:
        cluster.drain(draw.choice(nodes))
    for number in range(draw.randint(2, 5)):
        where = {"queue": draw.choice(LEAVES), "user": draw.choice(USERS)}
        cluster.submit(f"app{number}", groups=draw.choice(GROUPS), **where)
        for key in range(draw.randint(1, 3)):
            size = draw.choice((1, 1, 2, 2, 3)) * 1_000
            cluster.ask(f"app{number}", f"k{key}", size, **_declared(draw, nodes))
        if draw.random() < 0.3:
            cluster.pass_time(draw.randint(1, 40))
    return simulator, _question(draw, nodes)


def _declared(draw: Random, nodes: list[str]) -> dict[str, Any]:
    tags = for_s(draw.choice((60, 300, 3600))) if draw.random() < 0.5 else {}
    if draw.random() < 0.15:
        tags = {**tags, si.constants.TAG_REQUIRED_NODE: draw.choice(nodes)}
    fields: dict[str, Any] = {"tags": tags}
    if draw.random() < 0.3:
        fields["priority"] = draw.randint(-2, 5)
    if draw.random() < 0.4:
        fields["preemption_policy"] = POLICY
    if draw.random() < 0.2:
        fields["max_allocations"] = 2
    return fields


def _question(draw: Random, nodes: list[str]) -> Wanted:
    size, is_gang = draw.choice((1, 2, 3, 5)) * 1_000, draw.random() < 0.25
    fields = _declared(draw, nodes)
    if is_gang:
        fields |= {"max_allocations": 3, "placeholder": True, "task_group_name": "tg"}
    new = si.AddApplicationRequest(
        application_id="job", queue_name=draw.choice(LEAVES),
        ugi=si.UserGroupInformation(user=draw.choice(USERS), groups=draw.choice(GROUPS)),
        placeholder_ask=si.Resource.of({"vcore": 3 * size}) if is_gang else None,
    )  # fmt: skip
    ask = si.AllocationAsk(
        application_id="job", allocation_key="task", resource_ask=si.Resource.of({"vcore": size}),
        **fields,
    )  # fmt: skip
    return Wanted((si.ApplicationRequest(new=(new,)), si.AllocationRequest(asks=(ask,))))


def _starts(seed: int, topology: TopologyName, option: Option) -> bool:
    """Do it on a live core, a configuration and what stands alone one after the other."""
    simulator, wanted = _arranged(seed, topology)
    first = [
        Change(it, is_first=not option.is_together or isinstance(it, Reconfigure))  # type: ignore[arg-type]
        for it in option.changes
    ]
    run = Run(simulator, [*first, *(Change(it) for it in wanted.changes)])  # type: ignore[arg-type]
    known = {it.registration.rm_id: it for it in context_of(simulator).registered.managers}
    for address in tuple(simulator.callbacks):
        rm_id = manager_of(address)
        capabilities = known[rm_id].registration.capabilities
        simulator.callbacks[address] = Manager(rm_id, capabilities, run)
    course = run.go(simulator.now_ns + round(option.after_s * SECOND))
    return asked(wanted) <= Counter((it.application, it.key) for it in course.placed)


def _faults(seed: int, topology: TopologyName) -> list[str]:
    simulator, wanted = _arranged(seed, topology)
    state = state_of(simulator)
    found = least_changes(state, wanted)
    if found.fits is not _starts(seed, topology, NOTHING):
        return [f"fits: {found.fits}"]
    if found.fits:
        return []
    faults = []
    for option in found.options:
        if not _starts(seed, topology, option):
            faults.append(f"does not help: {option.text}")
        for less in _less(option):
            try:
                if _starts(seed, topology, less):
                    faults.append(f"less helps: {option.text}: {less.changes}")
            except InvalidRequest:
                # Such as a maximum that would be below what its queue is guaranteed.
                continue
    kinds = " and ".join(it.kind for it in found.options)
    node = si.NodeInfo(
        node_id="large", action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of({"vcore": 1_000_000}),
    )  # fmt: skip
    alone = {
        "node": [Option("", "", (si.NodeRequest(nodes=(node,), rm_id="rm-1"),))],
        "wait": [dataclasses.replace(NOTHING, after_s=100_000)],
        "release": [
            Option("", "", (_release(app["spec"]["application_id"], uuid),))
            for image in state.images.values()
            for app in image["applications"]
            for uuid in app["allocations"]
        ],
    }
    for kind, options in alone.items():
        if kind not in kinds and any(_starts(seed, topology, it) for it in options):
            faults.append(f"missed: {kind}")
    return faults


def _release(application: str, uuid: str) -> si.AllocationRequest:
    gone = si.AllocationRelease(application_id=application, uuid=uuid)
    releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
    return si.AllocationRequest(rm_id="rm-1", releases=releases)


@pytest.mark.parametrize(
    "seeds",
    [
        range(2),
        pytest.param(range(2, 8), marks=pytest.mark.slow),
        *(pytest.param(range(it, it + 24), marks=pytest.mark.slow) for it in range(8, 200, 24)),
    ],
)
def test_what_is_found_helps_and_nothing_simple_is_missed(seeds: range) -> None:
    looked = 0
    for seed in seeds:
        try:
            faults = _faults(seed, TOPOLOGIES[seed % 2])
        except ConfigError:
            # Drawn queues that no core would load.
            continue
        looked += 1
        assert not faults, (seed, faults)
    assert looked > 1
