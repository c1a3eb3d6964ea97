# ruff: noqa: INP001 - a script beside the pages that it is for
"""Ways to wait, each set up in a small cluster: `generate.py` writes what `explain` says.

A situation is a function that is given a cluster and returns whom to ask about. It runs on every
driver, so the tests ask the same of the core on threads.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from yunikorn_actors import ResourceManagerCallback, si
from yunikorn_actors.core.entry import Gateway

RM: Final = "rm-1"
ZONE: Final = "is in another zone"
Whom = tuple[str, str]


class Choosy(ResourceManagerCallback):
    """Refuses what is named `choosy...` everywhere."""

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return ZONE if args.allocation_key.startswith("choosy") else None


class Cluster:
    """A resource manager with queues of its own, in few words; amounts are of vcore alone."""

    def __init__(
        self, core: Gateway, rest: Callable[[], None], pass_time: Callable[[int], None]
    ) -> None:
        """`rest` runs the core until nothing is under way; time passes in seconds."""
        self.core = core
        self.rest = rest
        self.pass_time = pass_time

    def queues(self, text: str, partition: str = "") -> None:
        """Register with these queues below the root."""
        root = f"{{name: root, submitacl: '*', queues: [{text}]}}"
        config = f"partitions: [{{name: default, queues: [{root}]{partition}}}]"
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=config)
        self.core.register_resource_manager(request, Choosy())

    def nodes(self, **sizes: int) -> None:
        for name, size in sizes.items():
            amount = si.Resource.of({"vcore": size})
            self._node(name.replace("_", "-"), si.ActionFromRM.CREATE, schedulable_resource=amount)

    def drain(self, node: str) -> None:
        self._node(node, si.ActionFromRM.DRAIN_NODE)

    def _node(self, name: str, action: si.ActionFromRM, **fields: Any) -> None:  # noqa: ANN401 - of the interface
        info = si.NodeInfo(node_id=name, action=action, **fields)
        self.core.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))
        self.rest()

    def submit(self, *names: str, queue: str = "root.batch", **fields: Any) -> None:  # noqa: ANN401 - of the interface
        groups = fields.pop("groups", ())
        ugi = si.UserGroupInformation(user=fields.pop("user", "ann"), groups=groups)
        new = tuple(
            si.AddApplicationRequest(application_id=name, queue_name=queue, ugi=ugi, **fields)
            for name in names
        )
        self.core.update_application(si.ApplicationRequest(rm_id=RM, new=new))
        self.rest()

    def ask(self, app: str, key: str, vcore: int, **fields: Any) -> Whom:  # noqa: ANN401 - as above
        size = si.Resource.of(fields.pop("size", {"vcore": vcore}))
        ask = si.AllocationAsk(application_id=app, allocation_key=key, resource_ask=size, **fields)
        self.core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
        self.rest()
        return app, key

    def release(self, app: str, key: str) -> None:
        gone = si.AllocationRelease(application_id=app, allocation_key=key)
        releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
        self.core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
        self.rest()


class Situation(NamedTuple):
    what: str
    arrange: Callable[[Cluster], Whom]


def _quota(cluster: Cluster) -> Whom:
    cluster.queues("{name: batch, resources: {max: {vcore: 6}}}")
    cluster.nodes(node_1=8_000)
    cluster.submit("job")
    cluster.ask("job", "first", 5_000)
    return cluster.ask("job", "second", 2_000)


def _too_large(cluster: Cluster) -> Whom:
    cluster.queues("{name: batch, resources: {max: {vcore: 6}}}")
    cluster.nodes(node_1=8_000)
    cluster.submit("job")
    return cluster.ask("job", "large", 7_000)


def _parent(cluster: Cluster) -> Whom:
    cluster.queues(
        "{name: team, resources: {max: {vcore: 6}}, queues: [{name: etl}, {name: adhoc}]}"
    )
    cluster.nodes(node_1=8_000)
    cluster.submit("nightly", queue="root.team.etl")
    cluster.submit("job", queue="root.team.adhoc")
    cluster.ask("nightly", "load", 5_000)
    return cluster.ask("job", "task", 2_000)


def _user(cluster: Cluster) -> Whom:
    cluster.queues("{name: batch, limits: [{limit: '', users: [ann], maxresources: {vcore: 4}}]}")
    cluster.nodes(node_1=8_000)
    cluster.submit("job")
    cluster.ask("job", "first", 3_000)
    return cluster.ask("job", "second", 2_000)


def _group(cluster: Cluster) -> Whom:
    cluster.queues("{name: batch, limits: [{limit: '', groups: [dev], maxresources: {vcore: 4}}]}")
    cluster.nodes(node_1=8_000)
    cluster.submit("job", groups=("dev",))
    cluster.submit("other", user="bob", groups=("dev",))
    cluster.ask("other", "first", 3_000)
    return cluster.ask("job", "task", 2_000)


def _no_node(cluster: Cluster) -> Whom:
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=4_000, node_2=6_000)
    cluster.submit("job")
    return cluster.ask("job", "large", 7_000)


def _no_type(cluster: Cluster) -> Whom:
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=4_000)
    cluster.submit("job")
    return cluster.ask("job", "train", 0, size={"vcore": 1_000, "nvidia.com/gpu": 1})


def _predicates(cluster: Cluster) -> Whom:
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=4_000, node_2=4_000)
    cluster.submit("job")
    return cluster.ask("job", "choosy", 1_000)


def _required(cluster: Cluster) -> Whom:
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=4_000, node_2=4_000)
    cluster.submit("job")
    tags = {si.constants.TAG_REQUIRED_NODE: "node-1"}
    cluster.ask("job", "first", 3_000, tags=tags)
    return cluster.ask("job", "agent", 2_000, tags=tags)


def _gang(cluster: Cluster) -> Whom:
    """What is said of a member is the cause of its placeholder."""
    cluster.queues("{name: batch, resources: {max: {vcore: 6}}}")
    cluster.nodes(node_1=8_000)
    cluster.submit("job")
    cluster.ask("job", "first", 4_000)
    cluster.submit("gang", placeholder_ask=si.Resource.of({"vcore": 4_000}))
    group = {"task_group_name": "workers"}
    for key in ("hold-1", "hold-2"):
        cluster.ask("gang", key, 2_000, placeholder=True, **group)
    return cluster.ask("gang", "worker-1", 2_000, **group)


def _run_limit(cluster: Cluster) -> Whom:
    cluster.queues("{name: batch, maxapplications: 2}")
    cluster.nodes(node_1=8_000)
    cluster.submit("etl-1", "etl-2", "etl-3")
    for app in ("etl-1", "etl-2"):
        cluster.ask(app, "task", 1_000)
    return cluster.ask("etl-3", "task", 1_000)


def _drained(cluster: Cluster) -> Whom:
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=4_000, node_2=4_000)
    cluster.drain("node-1")
    cluster.submit("job")
    cluster.ask("job", "first", 3_000)
    return cluster.ask("job", "second", 2_000)


def _back_off(cluster: Cluster) -> Whom:
    properties = "application.unschedasks.backoff: '2', application.unschedasks.backoff.delay: 30s"
    cluster.queues(f"{{name: batch, properties: {{{properties}}}}}")
    cluster.nodes(node_1=4_000, node_2=4_000)
    cluster.submit("job")
    cluster.ask("job", "first", 3_000)
    cluster.ask("job", "large-1", 5_000)
    cluster.ask("job", "large-2", 5_000)
    return cluster.ask("job", "small", 1_000)


def _ended(cluster: Cluster) -> Whom:
    """An application that idles is Completed, and its next ask is rejected."""
    cluster.queues("{name: batch}")
    cluster.nodes(node_1=4_000)
    cluster.submit("job")
    cluster.ask("job", "first", 1_000)
    cluster.release("job", "first")
    cluster.pass_time(31)
    return cluster.ask("job", "second", 1_000)


SITUATIONS: Final = (
    Situation("the queue is full", _quota),
    Situation("larger than its queue", _too_large),
    Situation("a parent queue is full", _parent),
    Situation("the limit of its user", _user),
    Situation("the limit of a group", _group),
    Situation("larger than every node", _no_node),
    Situation("a type that no node has", _no_type),
    Situation("predicates", _predicates),
    Situation("a required node, and its reservation", _required),
    Situation("a gang that awaits admission", _gang),
    Situation("the maximum of running applications", _run_limit),
    Situation("a drained node", _drained),
    Situation("the back-off", _back_off),
    Situation("an application that has ended", _ended),
)
