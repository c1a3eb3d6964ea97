"""An asynchronous core under test: what a resource manager says, and gates that hold machines.

No test depends on how long something takes: a slow part is stopped at a gate until the test opens
it. A call that blocked the loop would stop the test there.
"""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from typing import Any

from yunikorn_actors import AsyncSchedulerCore, si
from yunikorn_actors.machines.machine import Effect, Machine
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.queries import Accepted
from yunikorn_actors.runtime.responses import KINDS, Kind, Responses

CONFIG = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
TICKS = 100
PATIENCE_S = 60.0


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run the test on an event loop of its own."""

    def run(**fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**fixtures), PATIENCE_S))

    run.__name__ = test.__name__
    run.__signature__ = inspect.signature(test)
    return run


# -- what a resource manager says


async def register(
    core: AsyncSchedulerCore,
    rm_id: str = "rm-1",
    config: str = CONFIG,
    wants: Collection[Kind] = KINDS,
) -> Responses:
    request = si.RegisterResourceManagerRequest(rm_id=rm_id, policy_group=rm_id, config=config)
    return await core.register_resource_manager(request, wants=wants)


def node_request(name: str, rm_id: str = "rm-1") -> si.NodeRequest:
    info = si.NodeInfo(
        node_id=name,
        action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of({"vcore": 10}),
    )
    return si.NodeRequest(rm_id=rm_id, nodes=(info,))


def app_request(name: str, rm_id: str = "rm-1") -> si.ApplicationRequest:
    ugi = si.UserGroupInformation(user="bob")
    new = si.AddApplicationRequest(application_id=name, queue_name="root.default", ugi=ugi)
    return si.ApplicationRequest(rm_id=rm_id, new=(new,))


def ask_request(*keys: str) -> si.AllocationRequest:
    amount = si.Resource.of({"vcore": 1})
    asks = tuple(
        si.AllocationAsk(application_id="app", allocation_key=key, resource_ask=amount)
        for key in keys
    )
    return si.AllocationRequest(rm_id="rm-1", asks=asks)


def release_request(item: si.Allocation) -> si.AllocationRequest:
    gone = si.AllocationRelease(application_id="app", uuid=item.uuid)
    releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
    return si.AllocationRequest(rm_id="rm-1", releases=releases)


def accepted_nodes(response: si.NodeResponse) -> list[str]:
    return [node.node_id for node in response.accepted]


# -- what a test does to a core


class Gate:
    """Holds everything that is sent to a machine until it is let go."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._open = threading.Event()

    def let_go(self) -> None:
        self._open.set()

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        assert self._open.wait(PATIENCE_S)
        return self._machine.handle(message, now_ns)

    def canonical_state(self) -> dict[str, Any]:
        return self._machine.canonical_state()


def gated(core: AsyncSchedulerCore, address: str = CONTEXT) -> Gate:
    shell = core._core._actors.by_address[address]
    shell.holder = gate = Gate(shell.holder)
    return gate


def break_down(core: AsyncSchedulerCore) -> None:
    """Send Context what it has no handler for."""
    core._core._post(CONTEXT, Accepted(), "test")
    core._core._go_on()


async def tick(times: int = TICKS) -> int:
    """Count how often the loop comes round."""
    ticks = 0
    for _ in range(times):
        await asyncio.sleep(0)
        ticks += 1
    return ticks


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - threads make it true, and they set no event
        await asyncio.sleep(0.001)


async def outcome(call: Awaitable[object]) -> object:
    try:
        return await call
    except Exception as error:  # noqa: BLE001 - it is what the test asks for
        return type(error)


async def take_all(stream: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in stream]
