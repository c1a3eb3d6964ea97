"""Small worlds, drawn by a seed: two leaves under the policy and one beside them."""

from typing import Final

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.policies.registry import Policies, Policy
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.tags import GPU, GPU_DEVICES, TAG_RUNTIME

RM: Final = "rm-1"
NAME: Final = "mine"
LEAVES: Final = ("root.a", "root.b", "root.other")
STEPS: Final = 40
FEWEST: Final = 3
"""Nothing is taken away where there are fewer."""
_USERS: Final[dict[str, tuple[str, ...]]] = {
    "ann": ("staff",), "bob": ("guests", "others"), "eve": ()
}  # fmt: skip
"""Each with the groups; an application of eve counts in none."""
_CONFIG: Final = """
partitions:
  - name: default
    nodesortpolicy: {type: %(nodes)s}
    queues:
      - name: root
        submitacl: "*"
        limits:
          - {limit: each group, groups: [staff, guests], maxresources: {vcore: 1000}}
        properties: {queue.sort.policy: %(queues)s}
        queues:
          - name: a
            properties: {application.sort.policy: %(applications)s}
            resources: {max: {vcore: 12}}
          - name: b
            properties: {application.sort.policy: %(applications)s, preemption.delay: 1s}
            resources: {guaranteed: {vcore: 4}}
          - name: other
"""


class Manager(si.ResourceManagerCallback):
    """Knows what runs, to end it."""

    def __init__(self) -> None:
        self.running: dict[str, tuple[str, str]] = {}
        self.preempted: list[si.AllocationRelease] = []
        """Those whose end is not confirmed yet."""

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for ended in response.released:
            self.running.pop(ended.uuid, None)
            if ended.termination_type is si.TerminationType.PREEMPTED_BY_SCHEDULER:
                self.preempted.append(ended)
        for new in response.new:
            self.running[new.uuid] = (new.application_id, new.allocation_key)

    def update_application(self, response: si.ApplicationResponse) -> None:
        pass

    def update_node(self, response: si.NodeResponse) -> None:
        pass


class World:
    """One run: what its resource manager does is drawn, what comes of it is up to the policy."""

    def __init__(
        self,
        policy: Policy,
        places: dict[str, str],
        seed: int,
        number: int,
        *,
        preempts: bool,
        ages: bool,
    ) -> None:
        self.draw = Draw(seed, number)
        self.preempts = preempts
        """Only a policy of victims has a use for it."""
        self.ages = ages
        """Its keys go by the time."""
        self.places = places
        topology: TopologyName = ("proposing", "fused")[number % 2]
        self.simulator = Simulator(
            Topology(
                topology, settings=Settings(), instance="core", policies=Policies({NAME: policy})
            ),
            chooser=chooser_of(self.draw.number(1000)),
        )
        self.manager = Manager()
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=_CONFIG % places)
        self.simulator.register_resource_manager(request, self.manager)
        self._numbers = {"app": 0, "ask": 0, "node": 0}
        self._apps: list[tuple[str, bool]] = []
        """Each with whether it is a gang."""
        self._takes_gangs = not self.draw.once_in(3)

    def play(self) -> None:
        for _ in range(2):
            self._add_node()
        if self.preempts:
            self._preempt()
        for _ in range(STEPS):
            self.draw.one_of(_STEPS)(self)
            if not self.draw.once_in(3):
                self.simulator.settle()
            if self.ages:
                self.simulator.advance(self.draw.number(100) * SECOND)
        self.simulator.settle()
        self.simulator.advance(60 * SECOND)

    def _name(self, kind: str) -> str:
        self._numbers[kind] += 1
        return f"{kind}-{self._numbers[kind]}"

    def _add_node(self) -> None:
        draw, size = self.draw, {"vcore": 1 + self.draw.number(8)}
        attributes = {"zone": draw.one_of(("east", "west"))}
        if draw.once_in(3):
            size[GPU], attributes[GPU_DEVICES] = 2000, "2"
        node = si.NodeInfo(
            node_id=self._name("node"),
            action=si.ActionFromRM.CREATE,
            schedulable_resource=si.Resource.of(size),
            attributes=attributes,
        )
        self.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))

    def _remove_node(self) -> None:
        if self._numbers["node"] < FEWEST:
            return
        gone = f"node-{1 + self.draw.number(self._numbers['node'])}"
        node = si.NodeInfo(node_id=gone, action=si.ActionFromRM.DECOMISSION)
        self.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))

    def _submit(self) -> None:
        draw = self.draw
        id_, is_gang = self._name("app"), self._takes_gangs and draw.once_in(4)
        name = draw.one_of(tuple(_USERS))
        user = si.UserGroupInformation(user=name, groups=_USERS[name])
        sized = {"placeholder_ask": si.Resource.of({"vcore": 2})} if is_gang else {}
        app = si.AddApplicationRequest(
            application_id=id_, queue_name=draw.one_of(LEAVES), ugi=user, tags={"team": user.user},
            **sized,  # type: ignore[arg-type]
        )  # fmt: skip
        self.simulator.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
        self._apps.append((id_, is_gang))
        self._ask()

    def _ask(self) -> None:
        draw = self.draw
        if not self._apps:
            return
        id_, is_gang = draw.one_of(self._apps)
        size = {"vcore": 1 if is_gang else 1 + draw.number(4)}
        if not is_gang and draw.once_in(5):
            size[GPU] = draw.one_of((500, 1000))
        tags = {} if draw.once_in(3) else {TAG_RUNTIME: str(draw.whole(1, 600))}
        asks = tuple(
            si.AllocationAsk(
                application_id=id_,
                allocation_key=self._name("ask"),
                resource_ask=si.Resource.of(size),
                max_allocations=1 if is_gang else 1 + draw.number(2),
                priority=draw.number(2),
                tags=tags,
                placeholder=is_gang,
                task_group_name="team" if is_gang else "",
            )
            for _ in range(2 if is_gang else 1 + draw.number(3))
        )
        self.simulator.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))

    def _end(self) -> None:
        if not self.manager.running:
            return
        uuid = self.draw.one_of(sorted(self.manager.running))
        id_, key = self.manager.running[uuid]
        gone = si.AllocationRelease(application_id=id_, allocation_key=key, uuid=uuid)
        releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
        self.simulator.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))

    def _remove(self) -> None:
        if len(self._apps) < FEWEST:
            return
        id_, _ = self._apps.pop(self.draw.number(len(self._apps)))
        gone = (si.RemoveApplicationRequest(application_id=id_),)
        self.simulator.update_application(si.ApplicationRequest(rm_id=RM, remove=gone))

    def _preempt(self) -> None:
        """Fill the nodes with work of one leaf, then have another one take back its share."""
        for user in _USERS:
            self._work("root.other", user, self.draw.whole(1, 4))
        self._work("root.other", "eve", 20)
        self.simulator.settle()
        for user in _USERS:
            self._work("root.b", user, 1)
            for _ in range(2):
                self.simulator.advance(15 * SECOND)
                gone, self.manager.preempted = tuple(self.manager.preempted), []
                releases = si.AllocationReleasesRequest(allocations_to_release=gone)
                self.simulator.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))

    def _work(self, queue: str, user: str, count: int) -> None:
        """Submit work that may be preempted, and for which others may be."""
        id_, runtime = self._name("app"), str(self.draw.whole(1, 600))
        app = si.AddApplicationRequest(
            application_id=id_, queue_name=queue, ugi=si.UserGroupInformation(user=user)
        )
        self.simulator.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
        self._apps.append((id_, False))
        ask = si.AllocationAsk(
            application_id=id_,
            allocation_key=self._name("ask"),
            resource_ask=si.Resource.of({"vcore": 1}),
            max_allocations=count,
            preemption_policy=si.PreemptionPolicy(
                allow_preempt_self=True, allow_preempt_other=True
            ),
            tags={TAG_RUNTIME: runtime},
        )
        self.simulator.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
        self.simulator.advance(SECOND)

    def _wait(self) -> None:
        self.simulator.advance(self.draw.whole(1, 60) * SECOND)

    def _reload(self) -> None:
        """Take the policy away for a moment."""
        others = {"nodes": "fair", "queues": "fair", "applications": "fifo"}
        for places in (others, self.places):
            request = si.UpdateConfigurationRequest(rm_id=RM, config=_CONFIG % places)
            self.simulator.update_configuration(request)


_STEPS: Final = (
    *(World._submit,) * 4, *(World._ask,) * 6, *(World._end,) * 6, *(World._wait,) * 3,
    World._add_node, World._remove_node, World._remove, World._reload,
)  # fmt: skip
