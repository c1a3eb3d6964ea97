# ruff: noqa: INP001 - a script beside the pages that it is for
"""Ten ways not to fit, each set up in a small cluster, with the least changes that help.

A situation is given a cluster and returns what is wanted: `generate.py` writes what is found, and
the tests do each change on a core and look whether it was right.
"""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from yunikorn_actors import si
from yunikorn_actors.what_if.least_change import Wanted

HELPERS: Final = runpy.run_path(str(Path(__file__).parent / "situations.py"))
Cluster = HELPERS["Cluster"]


class Misfit(NamedTuple):
    what: str
    arrange: Callable[[Any], Wanted]


def for_s(seconds: int) -> dict[str, str]:
    return {si.constants.TAG_RUNTIME: str(seconds)}


def waiting(*asks: tuple[str, str]) -> Wanted:
    return Wanted((), asks)


def _quota(cluster: Any) -> Wanted:  # noqa: ANN401 - a Cluster
    cluster.queues("{name: batch, resources: {max: {vcore: 6}}}")
    cluster.nodes(node_1=16_000)
    cluster.submit("nightly", "job")
    cluster.ask("nightly", "load", 5_000, tags=for_s(600))
    return waiting(cluster.ask("job", "task", 2_000))


def _user_limit(cluster: Any) -> Wanted:  # noqa: ANN401
    cluster.queues("{name: batch, limits: [{limit: '', users: [ann], maxresources: {vcore: 4}}]}")
    cluster.nodes(node_1=16_000)
    cluster.submit("nightly", "job")
    cluster.ask("nightly", "load", 3_000, tags=for_s(600))
    return waiting(cluster.ask("job", "task", 2_000))


def _fragmentation(cluster: Any) -> Wanted:  # noqa: ANN401
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=4_000, node_2=4_000)
    cluster.submit("web", "job")
    cluster.ask("web", "one", 3_000, tags=for_s(900))
    cluster.ask("web", "two", 3_000, tags=for_s(600))
    return waiting(cluster.ask("job", "task", 2_000))


def _gang_too_large(cluster: Any) -> Wanted:  # noqa: ANN401
    cluster.queues("{name: batch, resources: {max: {vcore: 6}}}")
    cluster.nodes(node_1=16_000)
    return _gang("gang", 4)


def _gang(name: str, size: int) -> Wanted:
    one = si.Resource.of({"vcore": 2_000})
    whole = si.Resource.of({"vcore": 2_000 * size})
    new = si.AddApplicationRequest(
        application_id=name,
        queue_name="root.batch",
        ugi=si.UserGroupInformation(user="ann"),
        placeholder_ask=whole,
    )
    ask = si.AllocationAsk(
        application_id=name, allocation_key="hold", resource_ask=one, max_allocations=size,
        task_group_name="workers", placeholder=True,
    )  # fmt: skip
    return Wanted((si.ApplicationRequest(new=(new,)), si.AllocationRequest(asks=(ask,))))


def _gang_behind_a_gang(cluster: Any) -> Wanted:  # noqa: ANN401
    """The first gang is admitted, and its last member finds no node."""
    cluster.queues("{name: batch, resources: {max: {vcore: 10}}}")
    cluster.nodes(node_1=6_000)
    cluster.submit("first", placeholder_ask=si.Resource.of({"vcore": 8_000}))
    for key in ("hold-1", "hold-2", "hold-3", "hold-4"):
        cluster.ask("first", key, 2_000, placeholder=True, task_group_name="workers")
    return _gang("second", 2)


def _preemption(cluster: Any) -> Wanted:  # noqa: ANN401
    cluster.queues("{name: batch}, {name: prod, resources: {guaranteed: {vcore: 4}}}")
    cluster.nodes(node_1=8_000)
    cluster.submit("nightly")
    cluster.submit("job", queue="root.prod")
    policy = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)
    for key in ("one", "two", "three", "four"):
        cluster.ask("nightly", key, 2_000, tags=for_s(3600), preemption_policy=policy)
    return waiting(cluster.ask("job", "task", 2_000, preemption_policy=policy))


def _required_node(cluster: Any) -> Wanted:  # noqa: ANN401
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=4_000, node_2=4_000)
    cluster.submit("nightly", "job")
    only = {si.constants.TAG_REQUIRED_NODE: "node-1"}
    cluster.ask("nightly", "load", 3_000, tags=only | for_s(600))
    return waiting(cluster.ask("job", "agent", 2_000, tags=only))


def _drained_node(cluster: Any) -> Wanted:  # noqa: ANN401
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=4_000, node_2=4_000)
    cluster.drain("node-1")
    cluster.submit("nightly", "job")
    cluster.ask("nightly", "load", 3_000, tags=for_s(600))
    return waiting(cluster.ask("job", "task", 2_000))


def _reservation(cluster: Any) -> Wanted:  # noqa: ANN401
    """What is free on the larger node is kept for an older ask that needs more of it."""
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=6_000, node_2=4_000)
    cluster.submit("nightly", "large", "job")
    only = [{si.constants.TAG_REQUIRED_NODE: node} | for_s(600) for node in ("node-1", "node-2")]
    cluster.ask("nightly", "one", 3_000, tags=only[0])
    cluster.ask("nightly", "two", 3_000, tags=only[1])
    cluster.ask("large", "whole", 4_000, tags=for_s(600))
    cluster.pass_time(10)
    return waiting(cluster.ask("job", "task", 2_000))


def _priorities(cluster: Any) -> Wanted:  # noqa: ANN401
    """What waits with a higher priority goes first, and takes the room that comes free."""
    cluster.queues("{name: batch, resources: {max: {vcore: 4}}}")
    cluster.nodes(node_1=16_000)
    cluster.submit("nightly", "urgent", "job")
    cluster.ask("nightly", "load", 4_000, tags=for_s(600))
    wanted = cluster.ask("job", "task", 4_000)
    cluster.ask("urgent", "task", 4_000, priority=10, tags=for_s(300))
    return waiting(wanted)


MISFITS: Final = (
    Misfit("a quota is used up", _quota),
    Misfit("the limit of its user is used up", _user_limit),
    Misfit("there is room, in pieces", _fragmentation),
    Misfit("a gang is larger than its queue", _gang_too_large),
    Misfit("a gang waits behind a gang", _gang_behind_a_gang),
    Misfit("it has to preempt", _preemption),
    Misfit("the node that it requires is full", _required_node),
    Misfit("a node is drained", _drained_node),
    Misfit("the room is kept for another ask", _reservation),
    Misfit("others have a higher priority", _priorities),
)
