"""When asks that wait will start: the place is the planner's, and nine of ten intervals hold."""

import random
from collections.abc import Iterator
from heapq import heappop, heappush

import pytest
from drawn_scripts import drawn_script

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS, Simulator
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.lab.scenario_documents import written
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.planning.expected import Expectations, Expected
from yunikorn_actors.planning.why.inquiry import Line
from yunikorn_actors.policies.registry import NO_POLICIES
from yunikorn_actors.runtime.virtual_core import VirtualCore
from yunikorn_actors.scenario.document import parse_scenario
from yunikorn_actors.scenario.runner import RunOptions, run_scenario
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.tags import TAG_REQUIRED_NODE, TAG_RUNTIME

SECOND = 10**9
RM = "rm-1"
CONFIG = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: a, properties: {application.sort.policy: %s}}
    - {name: b, resources: {max: {vcore: 2}}}
"""


# -- the place


class Places:
    """Compares with the planner who is next, and who is behind whom, whenever a core is at rest."""

    def __init__(self) -> None:
        self.compared = self.left_out = 0
        self.different: list[object] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:  # noqa: ARG002
        if not simulator.is_at_rest:
            return
        for state, loop in _loops(simulator):
            expectations = Expectations(NO_POLICIES)
            for _ in expectations.refresh(state, simulator.now_ns):
                pass
            for leaf in loop.planner.model.tree.queues.values():
                if any(app.awaiting_gang for app in leaf.members.values()):
                    # Whether a gang takes part in the order before it is admitted is the planner's.
                    self.left_out += 1
                    continue
                line = Line(leaf)
                for app in leaf.members.values():
                    asks = [it for it in app.asks.values() if it.ask.remaining]
                    found = {it: expectations.by_ask[app.app.id, it.ask.spec.key] for it in asks}
                    self.compared += line.total > 1
                    # One pass tries all of an application, and what it is given moves its turn.
                    ranked = sorted(asks, key=line.place_of)
                    is_next = (
                        bool(asks) and line.place_of(ranked[0]) == 1 and not leaf.is_stateaware
                    )
                    if (
                        ranked != sorted(asks, key=lambda it: found[it].position)
                        or (is_next and found[ranked[0]].position != 1)
                        or {it.waiting for it in found.values()} - {line.total}
                    ):
                        self.different.append((leaf.queue.path, app.app.id, found.values()))


def _loops(simulator: Simulator) -> Iterator[tuple[PartitionState, PlanningLoop]]:
    context = simulator.machines[CONTEXT]
    assert isinstance(context, Context)
    for partition in context.partitions.values():
        if partition.loop is not None:
            yield partition.state, partition.loop
    for machine in simulator.machines.values():
        if isinstance(machine, Scheduler):
            yield machine.replica, machine.loop


@pytest.mark.parametrize("topology", ["fused", "proposing"])
@pytest.mark.parametrize(
    "numbers",
    [range(3), pytest.param(range(3, 300), marks=(pytest.mark.slow, pytest.mark.timeout(900)))],
    ids=["few", "many"],
)
@pytest.mark.parametrize(
    "instead",
    # The key of the last reads what an application has.
    [("", ""), ("application.sort.policy: fair", "application.sort.policy: dominant-share")],
    ids=["built-in", "own"],
)
def test_the_place_is_that_of_the_planner(
    numbers: range, instead: tuple[str, str], topology: TopologyName
) -> None:
    places = Places()
    for number in numbers:
        text = written(drawn_script(number)).replace(*instead)
        scenario = parse_scenario(text, "drawn.yaml")
        run_scenario(scenario, RunOptions(topology=topology, checkers=lambda: (places,)))
        assert (number, []) == (number, places.different[:3])
    assert places.compared > 50


SIZE = si.Resource.of({"vcore": 100})
MINUTE = 60 * SECOND


class Starts(si.ResourceManagerCallback):
    """Notes the order in which asks start for the first time."""

    def __init__(self) -> None:
        self.keys: dict[str, None] = {}
        self.placed = 0

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.placed += len(response.new)
        self.keys.update((it.allocation_key, None) for it in response.new)


def with_room_for_one_after_the_other(number: int, topology: TopologyName) -> tuple[str, ...]:
    """Return the policy, whether the order mattered, and the keys as expected and as started."""
    draw = random.Random(number)  # noqa: S311 - no secret
    policy = ("fifo", "fair", "stateaware")[number % 3]
    priority = draw.choice(("enabled", "disabled"))
    properties = f"{{application.sort.policy: {policy}, application.sort.priority: {priority}}}"
    config = (CONFIG % policy).replace(f"{{application.sort.policy: {policy}}}", properties)
    core, starts = VirtualCore(topology=topology).start(), Starts()
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id=RM, config=config), starts
    )
    names = [f"app-{it}" for it in range(draw.randint(2, 4))]
    repeats = 0
    for name in names:
        ugi = si.UserGroupInformation(user="ann")
        new = si.AddApplicationRequest(application_id=name, queue_name="root.a", ugi=ugi)
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
        core.advance_to(core.now_ns + SECOND)
    asks = []
    for place in range(draw.randint(3, 9)):
        count = draw.choice((1, 1, 2, 3))
        repeats += count
        asks.append(
            si.AllocationAsk(
                application_id=draw.choice(names),
                allocation_key=f"k{place}",
                resource_ask=SIZE,
                max_allocations=count,
                priority=draw.choice((0, 0, 5, 9)),
            )
        )
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=tuple(asks)))
    core.run_until_idle()
    expected = [it.key for it in sorted(core.expected(), key=lambda it: it.position)]
    for place in range(repeats):
        node = si.NodeInfo(
            node_id=f"n{place}", action=si.ActionFromRM.CREATE, schedulable_resource=SIZE
        )
        core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
        core.advance_to(core.now_ns + SECOND)
        if starts.placed == place:
            # Somebody is starting, and wants no more; by then that is over.
            core.advance_to(core.now_ns + 6 * MINUTE)
    assert len(starts.keys) == len(asks), "vacuous: not all of it has started"
    return policy, " ".join(expected), " ".join(starts.keys)


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_the_place_is_the_order_in_which_asks_start_one_after_the_other(
    topology: TopologyName,
) -> None:
    for number in range(60):
        policy, expected, started = with_room_for_one_after_the_other(number, topology)
        assert (number, policy, expected) == (number, policy, started)


# -- the interval


def held_back(
    topology: TopologyName, queue: str, *, other: str = "second", **fields: str
) -> Expected:
    """Return what is expected of an ask behind one that runs for 3000 s on the first node."""
    config = f"{{name: root, submitacl: '*', queues: [{{name: a, {queue}}}]}}"
    core = VirtualCore(topology=topology).start()
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(
            rm_id=RM, config=f"partitions: [{{name: default, queues: [{config}]}}]"
        ),
        si.ResourceManagerCallback(),
    )
    ugi = si.UserGroupInformation(user="ann")
    for name in dict.fromkeys(("first", other)):
        new = si.AddApplicationRequest(application_id=name, queue_name="root.a", ugi=ugi)
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
    for name, app in (("n1", "first"), ("n2", other)):
        node = si.NodeInfo(node_id=name, action=si.ActionFromRM.CREATE, schedulable_resource=SIZE)
        core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
        tags = {TAG_RUNTIME: "3000", **(fields if name == "n2" else {})}
        ask = si.AllocationAsk(
            application_id=app, allocation_key=name, resource_ask=SIZE, tags=tags
        )
        core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
        core.run_until_idle()
    (found,) = core.expected()
    assert found.key == "n2", "vacuous: it does not wait"
    return found


@pytest.mark.parametrize("topology", ["fused", "proposing"])
@pytest.mark.parametrize(
    "queue",
    [
        "maxapplications: 1",
        "limits: [{users: [ann], maxapplications: 1}]",
        "properties: {application.sort.policy: stateaware}",
    ],
)
def test_nothing_is_said_of_the_time_of_what_may_not_run_yet(
    queue: str, topology: TopologyName
) -> None:
    found = held_back(topology, queue)
    assert (found.position, found.earliest_ns, found.latest_ns) == (1, None, None)


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_what_requires_a_node_waits_for_room_there(topology: TopologyName) -> None:
    found = held_back(topology, "", other="first", **{TAG_REQUIRED_NODE: "n1"})
    assert found.likely_ns is not None
    assert 2_900 * SECOND < found.likely_ns - EPOCH_NS < 3_200 * SECOND


class Jobs(si.ResourceManagerCallback):
    """Jobs of a random load: each is an application that is removed after its run time."""

    def __init__(self, *, seed: int, policy: str, declares: bool) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a load, no secret
        self.declares = declares
        self.core = VirtualCore(topology="fused", quiet=True, start_ns=SECOND).start()
        self.runs: dict[str, int] = {}
        self.ends: list[tuple[int, str]] = []
        self.first: dict[str, Expected] = {}
        self.judged: list[tuple[Expected, int]] = []
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG % policy)
        self.core.register_resource_manager(request, self)
        size = si.Resource.of({"vcore": 10_000})
        node = si.NodeInfo(
            node_id="n", action=si.ActionFromRM.CREATE, schedulable_resource=size
        )  # fmt: skip
        self.core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
        self.core.expected()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for new in response.new:
            id_ = new.application_id
            heappush(self.ends, (self.core.now_ns + self.runs[id_], id_))
            if id_ in self.first:
                self.judged.append((self.first.pop(id_), self.core.now_ns))

    def play(self, count: int) -> None:
        for number in range(count):
            self._pass(self.core.now_ns + round(self.random.expovariate(1 / 105) * SECOND))
            self.submit(f"j{number}", self.random.choice(("root.a", "root.a", "root.b")))
        self._pass(2**62)

    def _pass(self, until_ns: int) -> None:
        while self.ends and self.ends[0][0] <= until_ns:
            end_ns, id_ = heappop(self.ends)
            self.core.advance_to(max(end_ns, self.core.now_ns))
            gone = si.RemoveApplicationRequest(application_id=id_)
            self.core.update_application(si.ApplicationRequest(rm_id=RM, remove=(gone,)))
            self.core.run_until_idle()
        if until_ns < 2**62:
            self.core.advance_to(max(until_ns, self.core.now_ns))

    def submit(self, id_: str, queue: str) -> None:
        draw = self.random
        declared_s = draw.choice((60, 600, 3600))
        user = draw.choice(("ann", "bob", "cid"))
        share = {"ann": 0.9, "bob": 0.3, "cid": draw.random()}[user]
        self.runs[id_] = round(max(1, declared_s * share * draw.uniform(0.8, 1.1)) * SECOND)
        ugi = si.UserGroupInformation(user=user)
        new = si.AddApplicationRequest(application_id=id_, queue_name=queue, ugi=ugi)
        ask = si.AllocationAsk(
            application_id=id_,
            allocation_key=id_,
            resource_ask=si.Resource.of({"vcore": draw.choice((500, 1000, 2000))}),
            tags={TAG_RUNTIME: str(declared_s)} if self.declares else {},
        )
        self.core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
        self.core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
        self.core.run_until_idle()
        for it in self.core.expected(id_):
            self.first[id_] = it


@pytest.mark.parametrize(
    ("policy", "seed", "count"),
    [
        ("fcfs", 7, 120),
        *(
            pytest.param(policy, seed, 2000, marks=(pytest.mark.slow, pytest.mark.timeout(900)))
            for policy in ("fifo", "fcfs", "easy", "sjf")
            for seed in range(3)
        ),
    ],
)
def test_nine_of_ten_intervals_hold(policy: str, seed: int, count: int) -> None:
    jobs = Jobs(seed=seed, policy=policy, declares=True)
    jobs.play(count)
    waited = [(it, start) for it, start in jobs.judged if it.latest_ns is not None]
    held = sum((it.earliest_ns or 0) <= start <= (it.latest_ns or 0) for it, start in waited)
    assert len(waited) > count // 5
    assert 0.85 <= held / len(waited) <= 0.96


def test_runs_of_the_past_stand_for_what_declares_nothing() -> None:
    jobs = Jobs(seed=3, policy="fifo", declares=False)
    jobs.play(40)
    assert jobs.judged
    assert jobs.judged[0][0].latest_ns is None
    assert jobs.judged[-1][0].latest_ns is not None


def test_what_never_fits_has_a_place_and_no_interval() -> None:
    jobs = Jobs(seed=0, policy="fifo", declares=True)
    new = si.AddApplicationRequest(
        application_id="x", queue_name="root.b", ugi=si.UserGroupInformation(user="ann")
    )
    jobs.core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
    size = si.Resource.of({"vcore": 3000})
    ask = si.AllocationAsk(
        application_id="x", allocation_key="k", resource_ask=size, tags={TAG_RUNTIME: "5"}
    )
    jobs.core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
    jobs.core.run_until_idle()
    (found,) = jobs.core.expected("x")
    assert (1, 1, None, "root.b") == (
        found.position, found.waiting, found.latest_ns, found.queue,
    )  # fmt: skip
    assert () == jobs.core.expected("nobody")
    with pytest.raises(InvalidRequest, match="partition"):
        jobs.core.expected(partition=5)  # type: ignore[arg-type]


def test_what_waits_starts_no_earlier_than_now_while_nothing_happens() -> None:
    """What runs longer than declared says nothing: that its end has passed does."""
    with VirtualCore() as core:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG % "fifo")
        core.register_resource_manager(request, si.ResourceManagerCallback())
        room = si.Resource.of({"vcore": 2_000})
        node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE, schedulable_resource=room)
        core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
        ugi = si.UserGroupInformation(user="ann")
        app = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ugi)
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
        asks = tuple(
            si.AllocationAsk(
                application_id="app", allocation_key=key, resource_ask=room,
                tags={TAG_RUNTIME: "60"},
            )
            for key in ("runs", "waits")
        )  # fmt: skip
        core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))
        core.run_until_idle()
        began_ns, latest = core.now_ns, list[int]()
        for after_s in (0, 30, 59, 61, 120, 600, 3_600):
            core.advance_to(began_ns + after_s * SECOND)
            (found,) = core.expected("app")
            assert found.earliest_ns is not None
            assert found.likely_ns is not None
            assert found.latest_ns is not None
            assert core.now_ns <= found.earliest_ns <= found.likely_ns <= found.latest_ns
            latest.append(found.latest_ns)
        # As if it ended soon; not as was planned an hour ago.
        assert latest[-1] > core.now_ns + 60 * SECOND


def waiting_in(policy: str, *asks: tuple[str, str, int, int, str]) -> VirtualCore:
    """Applications in a queue of this order, each with one ask: queue, key, size, repeats, seconds.

    The node has four.
    """
    core = VirtualCore().start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG % policy)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    with_node(core, "n1")
    with_asks(core, *asks)
    return core


def with_node(core: VirtualCore, node_id: str) -> None:
    room = si.Resource.of({"vcore": 4_000})
    node = si.NodeInfo(node_id=node_id, action=si.ActionFromRM.CREATE, schedulable_resource=room)
    core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))


def with_asks(core: VirtualCore, *asks: tuple[str, str, int, int, str], **tags: str) -> None:
    ugi = si.UserGroupInformation(user="ann")
    for queue, key, size, repeats, run_s in asks:
        app = si.AddApplicationRequest(application_id=key, queue_name=queue, ugi=ugi)
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
        ask = si.AllocationAsk(
            application_id=key, allocation_key=key, resource_ask=si.Resource.of({"vcore": size}),
            max_allocations=repeats, tags={TAG_RUNTIME: run_s, **tags},
        )  # fmt: skip
        core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
        core.run_until_idle()


def likely_s(core: VirtualCore, key: str) -> float | None:
    (found,) = core.expected(key)
    return None if found.likely_ns is None else (found.likely_ns - core.now_ns) / SECOND


@pytest.mark.parametrize(
    ("run_s", "repeats", "first", "behind"),
    [("100", 2, 100, 150), ("100", 3, 100, 150), ("500", 2, 100, 200)],
)
def test_an_ask_starts_with_its_first_repeat(
    run_s: str, repeats: int, first: float, behind: float
) -> None:
    """All repeats together need not fit at once; those behind them wait for the last."""
    core = waiting_in(
        "fifo", ("root.a", "r1", 2_000, 1, "100"), ("root.a", "r2", 2_000, 1, run_s),
        ("root.a", "x", 2_000, repeats, "50"), ("root.a", "y", 2_000, 1, "50"),
    )  # fmt: skip
    assert likely_s(core, "x") == pytest.approx(first, abs=4)
    assert likely_s(core, "y") == pytest.approx(behind, abs=8)


@pytest.mark.parametrize("policy", ["fcfs", "sjf", "fifo"])
def test_nothing_is_said_of_what_may_not_pass_one_that_never_fits(policy: str) -> None:
    core = waiting_in(
        policy, ("root.a", "r", 2_000, 1, "100"), ("root.a", "big", 9_000, 1, "10"),
        ("root.a", "small", 3_000, 1, "50"),
    )  # fmt: skip
    assert likely_s(core, "big") is None
    core.advance_to(core.now_ns + 50 * SECOND)
    expected = likely_s(core, "small")
    done(core, "r")
    core.advance_to(core.now_ns + 900 * SECOND)
    assert (expected is None) == core.explain("small", "small").waits == (policy != "fifo")


def test_what_no_single_node_could_hold_has_no_interval() -> None:
    """Though all of them together have room for it."""
    core = waiting_in("fifo", ("root.a", "r1", 4_000, 1, "100"))
    with_node(core, "n2")
    with_asks(core, ("root.a", "r2", 4_000, 1, "100"), ("root.a", "wide", 5_000, 1, "10"))
    with_asks(core, ("root.a", "bound", 1_000, 1, "10"), **{si.constants.TAG_REQUIRED_NODE: "n3"})
    with_asks(core, ("root.a", "last", 1_000, 1, "10"))
    core.advance_to(core.now_ns + 50 * SECOND)
    assert (None, None) == (likely_s(core, "wide"), likely_s(core, "bound"))
    assert likely_s(core, "last") is not None


def done(core: VirtualCore, key: str) -> None:
    release = si.AllocationRelease(application_id=key, allocation_key=key)
    releases = si.AllocationReleasesRequest(allocations_to_release=(release,))
    core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
    core.run_until_idle()
