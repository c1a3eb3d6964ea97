"""`Simulate` of the extension: what the read side of a service says would happen, then happens."""

import asyncio
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
import ranges
from probes import wait_until
from support import RM

from tests.simulated_served import BEGUN, DOORS, SEEN, TURNS, served_differences
from tests.what_if.test_change_checks import REFUSED
from tests.what_if.test_simulate import CONFIG as ITS_CONFIG
from tests.what_if.test_simulate import asks, node
from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.errors import Refused
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.scenario.change_steps import parse_changes
from yunikorn_actors.service import service
from yunikorn_actors.service.aio import AsyncRemoteCore
from yunikorn_actors.service.listener import Part
from yunikorn_actors.service.remote import RemoteCore
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.service.rest.in_process import RestPart
from yunikorn_actors.service.rpc.grpc_server import RpcPart
from yunikorn_actors.service.service import Serving
from yunikorn_actors.values.durations import SECOND

ANY = "127.0.0.1:0"
Started = tuple[str, str, str]
"""An application, a key and a node."""
CONFIG = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: a, resources: {max: {vcore: %s}}}
    - {name: b, limits: [{users: ["*"], maxresources: {vcore: %s}}]}
"""


@pytest.fixture(
    params=ranges.first([True, False], 1), ids=["in a process of its own", "in this process"]
)
def serving(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """With REST in the process of the core, or as a service has it."""
    if not request.param:
        makers: dict[str, type[Part]] = {"REST": RestPart, "gRPC": RpcPart}
        monkeypatch.setattr(service, "maker_of", lambda kind: makers[kind.title])
    with serving_both("proposing") as it:
        yield it


def serving_both(topology: TopologyName) -> Serving:
    # Without reservations: a node is kept for what has waited so long, and here time is not the same.
    core = SchedulerCore(topology=topology, settings=Settings(reservation_delay_ns=3_600 * SECOND))
    return Serving(core, {"rest": ANY, "grpc": ANY})


class World:
    """A resource manager with a few nodes and much that it wants, all of it drawn."""

    def __init__(self, core: RemoteCore, number: int, is_settled: Callable[[], bool]) -> None:
        self._core, self._draw = core, Random(number)  # noqa: S311
        self.rm_id = f"rm-{number}"
        self._partition = f"[{self.rm_id}]default"
        self._is_settled = is_settled
        quotas = tuple(self._draw.randint(2, 12) for _ in "ab")
        request = si.RegisterResourceManagerRequest(
            rm_id=self.rm_id, policy_group=self.rm_id, config=CONFIG % quotas
        )
        core.register_resource_manager(request, si.ResourceManagerCallback())
        steps = self._nodes("n", self._draw.randint(1, 3))
        for app in ("first", "second"):
            steps += [self._app(app), *self._asks(app)]
        for step in steps:
            self._make(step)

    def _nodes(self, name: str, count: int) -> list[dict[str, Any]]:
        vcores = (1_000 * self._draw.randint(1, 6) for _ in range(count))
        return [
            {"create_node": {"id": f"{name}{n}", "capacity": {"vcore": vcore}}}
            for n, vcore in enumerate(vcores)
        ]

    def _app(self, name: str) -> dict[str, Any]:
        queue, user = self._draw.choice(("root.a", "root.b")), self._draw.choice(("ann", "bob"))
        return {"add_app": {"id": name, "queue": queue, "user": user, "groups": [user]}}

    def _asks(self, app: str) -> list[dict[str, Any]]:
        return [
            {
                "ask": {
                    "app": app, "key": f"{app}-{n}", "priority": self._draw.randint(0, 2),
                    "resource": {"vcore": 500 * self._draw.randint(1, 6)},
                }
            }
            for n in range(self._draw.randint(1, 5))
        ]  # fmt: skip

    def changes(self) -> list[dict[str, Any]]:
        drained = [{"drain_node": "n0"}] if self._draw.random() < 0.3 else []
        late = self._nodes("late", self._draw.randint(0, 2))
        return [*drained, *late, self._app("third"), *self._asks("third")]

    def _make(self, step: dict[str, Any]) -> None:
        """Make the request, and wait until all that it leads to has happened."""
        ((name, written),) = step.items()
        calls = {
            si.NodeRequest: self._core.update_node,
            si.ApplicationRequest: self._core.update_application,
            si.AllocationRequest: self._core.update_allocation,
        }
        (change,) = parse_changes(self._text([step]), "drawn")
        calls[type(change.request)](change.request)  # type: ignore[index, arg-type]
        wait_until(lambda: self._is_taken(name, written) and self._is_settled())

    def _is_taken(self, name: str, step: Any) -> bool:
        nodes, apps = self.part()["nodes"], self.part()["applications"]
        if name == "drain_node":
            return bool(nodes[step]["drained"])
        if name == "ask":
            app = apps[step["app"]]
            return any(it["key"] == step["key"] for it in (*app["asks"], *app["allocations"]))
        return step["id"] in (nodes if name == "create_node" else apps)

    def _text(self, steps: list[dict[str, Any]]) -> str:
        """Write them with a second between two, so that each is made when all is at rest."""
        named = [{name: _of(self.rm_id, it)} for step in steps for name, it in step.items()]
        return json.dumps([it for step in named for it in (step, {"advance": "1s"})])

    def part(self) -> dict[str, Any]:
        return self._core.state_dump()["partitions"][self._partition]  # type: ignore[no-any-return]

    def running(self) -> set[Started]:
        return {
            (id_, it["key"], it["node"])
            for id_, app in self.part()["applications"].items()
            for it in app["allocations"]
        }

    def simulated_then_done(self) -> tuple[set[Started], set[Started]]:
        steps, before, revision = self.changes(), self.running(), self.part()["revision"]
        found: dict[str, Any] = {}

        def is_of_now() -> bool:
            until = float(len(steps))
            found.update(self._core.simulate_steps(self._text(steps), until=until, compare=False))
            return found["answer"]["revisions"].get(self._partition) == revision

        wait_until(is_of_now)
        for step in steps:
            self._make(step)
        placed = found["answer"]["course"]["placed"]
        started = {(it["application"], it["key"], it["node"]) for it in placed}
        return started, self.running() - before


def _of(rm_id: str, step: Any) -> Any:
    return {"id": step, "rm": rm_id} if isinstance(step, str) else {**step, "rm": rm_id}


def test_what_is_simulated_happens(serving: Serving) -> None:
    with RemoteCore(serving.parts["grpc"].address) as core:
        started = 0
        for number in range(3):
            world = World(core, number, serving.core.is_settled)
            simulated, done = world.simulated_then_done()
            assert simulated == done
            started += len(done)
        assert started


def test_what_is_no_question(serving: Serving) -> None:
    with RemoteCore(serving.parts["grpc"].address) as core:
        with pytest.raises(Refused, match="steps 1:1: step 1: unknown step 'drain'"):
            core.simulate_steps("- drain: n1")
        with pytest.raises(Refused, match="steps 1:1: step 1: drain_node: no resource manager"):
            core.simulate_steps("- drain_node: nope")
        with pytest.raises(Refused, match="until: must be seconds"):
            core.simulate_steps(until=-1.0)
        with pytest.raises(Refused, match="name an ask that is to start"):
            core.simulate_steps(least=True)
        with pytest.raises(Refused, match="within: must be seconds from 0"):
            core.simulate_steps(least=True, within=-1)
        with pytest.raises(Refused, match="ask app/k: it neither waits nor"):
            core.simulate_steps(least=True, waiting=[("app", "k")])


def test_a_program_on_an_event_loop_asks_as_well(serving: Serving) -> None:
    async def asked() -> Any:
        async with AsyncRemoteCore(serving.parts["grpc"].address) as core:
            return await core.simulate_steps(until=0)

    assert asyncio.run(asked())["fits"]


def test_a_service_without_a_read_side() -> None:
    with (
        Serving(SchedulerCore(), {"grpc": ANY}) as it,
        RemoteCore(it.parts["grpc"].address) as core,
        pytest.raises(Refused, match="this service has no read side, which answers it: serve REST"),
    ):
        core.simulate_steps()


@pytest.mark.slow
def test_what_would_change_nothing_is_refused_by_grpc_and_rest() -> None:
    """In the words of a core in virtual time, with the place and the remedy."""
    with serving_both("proposing") as it, RemoteCore(it.parts["grpc"].address) as core:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=ITS_CONFIG)
        core.register_resource_manager(request, si.ResourceManagerCallback())
        core.update_node(node("n1", 4_000))
        core.update_node(node("n2", 4_000))
        ugi = si.UserGroupInformation(user="ann", groups=("staff",))
        app = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ugi)
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
        core.update_allocation(asks("1", "2"))
        apps = "[rm-1]default"
        wait_until(lambda: _running(core.state_dump()["partitions"][apps]) == 2)
        client = Client(it.parts["rest"].address)
        for step, words in REFUSED.items():
            place = f"steps 1:1: step 1: {step.partition(':')[0]}: "
            with pytest.raises(Refused) as found:
                core.simulate_steps(f"- {step}")
            assert place in str(found.value)
            assert words in str(found.value)
            body = json.dumps({"steps": [f"- {step}"]}).encode()
            with pytest.raises(Refused) as asked:
                client.post("ws", "v1", "x", "simulate", body=body)
            assert place in str(asked.value)
            assert words in str(asked.value)


def _running(part: Any) -> int:
    return sum(len(app["allocations"]) for app in part["applications"].values())


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_worlds_of_the_laboratory(door: str) -> None:
    """Gangs, limits, preemption, timeouts and what else is drawn, with a clock that stands."""
    SEEN.clear()
    for number in range(30):
        assert not served_differences(20_26, number, TOPOLOGIES[number % 2], door), number
    assert SEEN["placed"] > 30
    assert SEEN["ended"] > 10
    assert len(TURNS) + BEGUN.total() < 4


@pytest.mark.slow
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_many_worlds(topology: TopologyName) -> None:
    with serving_both(topology) as it, RemoteCore(it.parts["grpc"].address) as core:
        started = 0
        for number in range(100):
            world = World(core, number, it.core.is_settled)
            simulated, done = world.simulated_then_done()
            assert simulated == done, number
            started += len(done)
            core.unregister_resource_manager(world.rm_id)
        assert started > 100
