"""A program that makes the calls of a core itself: one in virtual time, and one on an event loop.

It is drawn as worlds are, and makes all calls that a core has, in any order and often in vain. What
comes of a call is there before the next one, so a walk is the same each time.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, Final, Protocol

from yunikorn_actors import si
from yunikorn_actors.drivers.live.clock import StandingClock
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.errors import CoreError, NoReply
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.front_walk import QUEUES
from yunikorn_actors.runtime.aio import AsyncSchedulerCore
from yunikorn_actors.runtime.async_callback import AsyncResourceManagerCallback
from yunikorn_actors.runtime.responses import KINDS, Responses
from yunikorn_actors.runtime.virtual_core import VirtualCore
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.what_if.changes import Change, Reconfigure

Heard = tuple[str, Any]
_STEPS: Final = (15, 40)
_ROUNDS_MAX: Final = 20_000
_QUIET_ROUNDS: Final = 3
_LOWER: Final = QUEUES.replace("max: {vcore: 8}", "max: {vcore: 7}")
_TEXTS: Final = (QUEUES, QUEUES, QUEUES, _LOWER, _LOWER, "partitions: 3", "")
_FIRST: Final = "rm"
_LEAVING: Final = ("lost", "leave")
_MANAGERS: Final = (*(_FIRST,) * 14, "other", "other", "nobody")
_SIZES: Final[tuple[dict[str, Any], ...]] = (
    {"vcore": 1}, {"vcore": 1}, {"vcore": 2}, {"vcore": "500m"}, {"vcore": 9}, {},
)  # fmt: skip
_LEAVES: Final = ("batch", "batch", "sure", "first", "closed", "nowhere")
_WANTS: Final[tuple[tuple[Any, ...], ...]] = (
    *(KINDS,) * 8, ("allocation", "node"), ("allocation",), (), ("alocation",),
)  # fmt: skip


class Program(si.ResourceManagerCallback):
    """Answers in one way or another, and keeps what it is told."""

    def __init__(self, draw: Draw) -> None:
        self.refuses = draw.one_of(("", "", "n1", "n2"))
        self.dump: Any = draw.one_of(('{"well": true}', "none", "", 5))
        self.is_odd = draw.once_in(3)
        """Whether it raises now and then, or answers what is no answer."""
        self.received: list[Any] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.received.append(response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.received.append(response)

    def update_node(self, response: si.NodeResponse) -> None:
        self.received.append(response)

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        self.received.append(events)

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.received.append(request)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        if self.is_odd and args.node_id == "n3":
            raise ValueError("odd")
        odd: Any = 5
        if self.is_odd and args.node_id == "n2":
            return odd  # type: ignore[no-any-return] # what nobody should
        return "not there" if args.node_id == self.refuses else None

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        if self.is_odd:
            return None
        index = min(args.start_index, len(args.preempt_allocation_keys) - 1)
        return si.PreemptionPredicatesResponse(success=True, index=index)

    def get_state_dump(self) -> str:
        if self.is_odd and not self.dump:
            raise ValueError("odd")
        return self.dump  # type: ignore[no-any-return] # as it was drawn


class _OnLoop(AsyncResourceManagerCallback):
    """The same answers, some of which are awaited."""

    def __init__(self, program: Program) -> None:
        self._program = program

    async def predicates(self, args: si.PredicatesArgs) -> str | None:
        await asyncio.sleep(0)
        return self._program.predicates(args)

    def get_state_dump(self) -> str:
        return self._program.get_state_dump()

    async def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self._program.received.append(request)


class Requests:
    """Draws requests of the interface, about few things each."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._is_first = True
        self._apps: list[str] = []
        self._keys: list[tuple[str, str]] = []

    def _one(self, known: list[Any], otherwise: Any) -> Any:  # noqa: ANN401 - of the kind of these
        """Mostly one that was named before."""
        return self._draw.one_of(known) if known and not self._draw.once_in(8) else otherwise

    def name(self) -> tuple[str, str]:
        """Draw an ask: its application, and its key."""
        draw = self._draw
        found: tuple[str, str] = self._one(
            self._keys, (f"app{draw.whole(1, 4)}", f"k{draw.whole(1, 8)}")
        )
        return found

    def registration(self) -> si.RegisterResourceManagerRequest:
        draw, whose = self._draw, self._draw.one_of(_MANAGERS)
        if self._is_first:
            whose = _FIRST
        text = QUEUES if self._is_first else draw.one_of(_TEXTS)
        self._is_first = False
        extra = {"event.ringBufferCapacity": draw.one_of(("5", "100"))} if draw.once_in(3) else {}
        return si.RegisterResourceManagerRequest(
            rm_id=whose, version="1", policy_group=whose, config=text,
            extra_config=extra,
        )  # fmt: skip

    def configuration(self) -> si.UpdateConfigurationRequest:
        whose = self._draw.one_of(_MANAGERS)
        return si.UpdateConfigurationRequest(
            rm_id=whose, policy_group=whose, config=self._draw.one_of(_TEXTS)
        )

    def beginning(self) -> tuple[si.NodeRequest, si.ApplicationRequest, si.AllocationRequest]:
        """Return what makes something run: a node, an application, and asks."""
        self._apps, self._keys = ["app1", "app1"], [("app1", "k1"), ("app1", "k2")]
        size = si.Resource.parse({"vcore": 8})
        node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE, schedulable_resource=size)
        app = si.AddApplicationRequest(
            application_id="app1", queue_name=f"root.{self._draw.one_of(_LEAVES[:4])}",
            partition_name="default", ugi=si.UserGroupInformation(user="ann"),
        )  # fmt: skip
        asks = tuple(
            si.AllocationAsk(
                allocation_key=key, application_id=app, partition_name="default",
                resource_ask=si.Resource.parse(self._draw.one_of(_SIZES[:4])),
            )
            for app, key in self._keys
        )  # fmt: skip
        return (
            si.NodeRequest(nodes=(node,), rm_id=_FIRST),
            si.ApplicationRequest(new=(app,), rm_id=_FIRST),
            si.AllocationRequest(asks=asks, rm_id=_FIRST),
        )

    def node(self) -> si.NodeRequest:
        draw = self._draw
        action = draw.one_of((*(si.ActionFromRM.CREATE,) * 6, *si.ActionFromRM))
        info = si.NodeInfo(
            node_id=f"n{draw.whole(1, 3)}", action=action,
            schedulable_resource=si.Resource.parse({"vcore": draw.one_of((2, 4, 4, 8))}),
        )  # fmt: skip
        return si.NodeRequest(nodes=(info,), rm_id=draw.one_of(_MANAGERS))

    def application(self) -> si.ApplicationRequest:
        draw, whose = self._draw, f"app{self._draw.whole(1, 4)}"
        if draw.once_in(6):
            gone = si.RemoveApplicationRequest(application_id=whose, partition_name="default")
            return si.ApplicationRequest(remove=(gone,), rm_id=draw.one_of(_MANAGERS))
        self._apps.append(whose)
        new = si.AddApplicationRequest(
            application_id=whose, queue_name=f"root.{draw.one_of(_LEAVES)}",
            partition_name="default",
            ugi=si.UserGroupInformation(user=draw.one_of(("ann", "bob")), groups=("dev",)),
        )  # fmt: skip
        return si.ApplicationRequest(new=(new,), rm_id=draw.one_of(_MANAGERS))

    def ask(self) -> si.AllocationRequest:
        draw = self._draw
        app, key = self._one(self._apps, f"app{draw.whole(1, 4)}"), f"k{draw.whole(1, 8)}"
        self._keys.append((app, key))
        ask = si.AllocationAsk(
            allocation_key=key, application_id=app,
            partition_name="default", resource_ask=si.Resource.parse(draw.one_of(_SIZES)),
            max_allocations=draw.one_of((1, 1, 2, 0)), priority=draw.one_of((0, 0, 1)),
        )  # fmt: skip
        return si.AllocationRequest(asks=(ask,), rm_id=draw.one_of(_MANAGERS))

    def release(self) -> si.AllocationRequest:
        draw, (app, key) = self._draw, self.name()
        names: dict[str, Any] = {
            "partition_name": "default",
            "application_id": app,
            "allocation_key": key,
        }
        if draw.once_in(3):
            withdrawn = si.AllocationAskRelease(**names)
            releases = si.AllocationReleasesRequest(allocation_asks_to_release=(withdrawn,))
        else:
            ended = si.AllocationRelease(**names, termination_type=si.TerminationType.STOPPED_BY_RM)
            releases = si.AllocationReleasesRequest(allocations_to_release=(ended,))
        return si.AllocationRequest(releases=releases, rm_id=draw.one_of(_MANAGERS))


class _Driven(Protocol):
    """A core and what makes its calls."""

    @property
    def core(self) -> Any: ...  # noqa: ANN401 - one whose calls return, or have to be awaited

    @property
    def requests(self) -> Requests: ...

    def do(self, call: Callable[[], Any]) -> Any: ...  # noqa: ANN401 - whatever it returns

    def register(self) -> Any: ...  # noqa: ANN401 - what the registration gave

    def heard(self) -> Any: ...  # noqa: ANN401 - whatever came

    def wait(self, seconds: int) -> None: ...

    def end(self) -> Iterator[Heard]: ...


def walk_virtual(draw: Draw) -> Iterator[Heard]:
    """Make the calls of a core in virtual time."""
    yield from _walk(draw, _Virtual(draw))


def walk_awaited(draw: Draw) -> Iterator[Heard]:
    """Make the calls of a core that are awaited, and iterate over what it says."""
    driven = _Awaited(draw)
    try:
        yield from _walk(draw, driven)
    finally:
        driven.close()


def _walk(draw: Draw, driven: _Driven) -> Iterator[Heard]:
    core, do, requests = driven.core, driven.do, driven.requests
    node, app, asks = requests.beginning()
    first = (
        driven.register,
        lambda: do(lambda: core.update_node(node)),
        lambda: do(lambda: core.update_application(app)),
        lambda: do(lambda: core.update_allocation(asks)),
    )
    calls: dict[str, tuple[int, Callable[[], Any]]] = {
        "register": (1, driven.register),
        "node": (3, lambda: do(lambda: core.update_node(requests.node()))),
        "application": (3, lambda: do(lambda: core.update_application(requests.application()))),
        "ask": (8, lambda: do(lambda: core.update_allocation(requests.ask()))),
        "release": (3, lambda: do(lambda: core.update_allocation(requests.release()))),
        "configure": (1, lambda: do(lambda: core.update_configuration(requests.configuration()))),
        "lost": (1, lambda: do(lambda: core.resource_manager_lost(draw.one_of(_MANAGERS)))),
        "leave": (1, lambda: do(lambda: core.unregister_resource_manager(draw.one_of(_MANAGERS)))),
        "explain": (
            2,
            lambda: repr(do(lambda: core.explain(*requests.name()))),
        ),
        "expected": (1, lambda: do(core.expected)),
        "waiting": (1, lambda: do(core.waiting)),
        "events": (1, lambda: do(lambda: core.events(draw.whole(0, 9), draw.one_of((0, 3, 99))))),
        "simulate": (1, lambda: _simulated(do, draw, core)),
        "wait": (3, lambda: driven.wait(draw.one_of((0, 1, 5, 60, 4000)))),
    }
    names = [name for name, (share, _) in calls.items() for _ in range(share)]
    for call in first:
        yield "begins", _tried(call)
        yield "heard", driven.heard()
    name = ""
    for _ in range(draw.whole(*_STEPS)):
        # Little happens while nobody is there.
        name = "register" if name in _LEAVING and not draw.once_in(3) else draw.one_of(names)
        yield name, _tried(calls[name][1])
        yield "heard", driven.heard()
    yield "dump", _tried(lambda: do(core.state_dump))
    yield from driven.end()


def _simulated(do: Callable[..., Any], draw: Draw, core: Any) -> Any:  # noqa: ANN401
    changed = Reconfigure(queue="root.batch", max={"vcore": draw.one_of((1000, 20_000))})
    change = Change(changed, draw.one_of((0.0, 2.0)))
    return do(lambda: core.simulate(change, until=draw.one_of((5.0, 60.0)))).course.placed


def _tried(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - what it returns, or the refusal
    try:
        return call()
    except (CoreError, ValueError, LookupError) as error:
        return f"{type(error).__name__}: {error}"


class _Virtual:
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.requests: Final = Requests(draw)
        self._program = Program(draw)
        self.core: Final = VirtualCore(
            topology=draw.one_of(("proposing", "fused")), seed=draw.one_of((0, 0, 7)),
            quiet=draw.once_in(4), digest=True,
        )  # fmt: skip
        self.core.start()
        self._stream = self.core.event_stream(draw.one_of((0, 3)))

    def do(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
        found = call()
        if not self._draw.once_in(4):
            self.core.run_until_idle()
        return found

    def register(self) -> Any:  # noqa: ANN401 - plain values
        request = self.requests.registration()
        return self.do(lambda: self.core.register_resource_manager(request, self._program))

    def heard(self) -> Any:  # noqa: ANN401 - plain values
        received, self._program.received = self._program.received, []
        return received, [*self._stream], self.core.next_event_ns, self.core.handled

    def wait(self, seconds: int) -> None:
        draw, core = self._draw, self.core
        if draw.once_in(3) and core.next_event_ns is not None:
            core.advance_to(core.next_event_ns)
        elif draw.once_in(6):
            core.advance_to(core.now_ns - 1)
        else:
            core.advance_to(core.now_ns + seconds * SECOND)

    def end(self) -> Iterator[Heard]:
        yield "digest", self.core.digest
        self.core.stop()
        yield "after its end", _tried(self.core.waiting)


class _Awaited:
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.requests: Final = Requests(draw)
        self._program = Program(draw)
        self._loop = asyncio.new_event_loop()
        self._clock = StandingClock(EPOCH_NS)
        self.core: Final = AsyncSchedulerCore(
            driver="direct", instance="walk", clock=self._clock,
            on_callback_error=lambda *what: self._program.received.append(repr(what)),
        )  # fmt: skip
        self._run(self.core.start())
        self._streams: dict[str, AsyncIterator[Any]] = {}
        self._awaited: dict[str, asyncio.Task[Any]] = {}
        self._handles: list[Responses] = []
        """Kept: a handle that nobody has is one that nobody listens to."""

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401
        return self._loop.run_until_complete(coroutine)

    def do(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
        async def done() -> Any:  # noqa: ANN401
            found = call()
            return await found if inspect.isawaitable(found) else found

        try:
            return self._run(done())
        finally:
            self._settle()

    def _settle(self) -> None:
        quiet = 0
        for _ in range(_ROUNDS_MAX):
            self._run(asyncio.sleep(0 if self.core.is_settled() else 0.0002))
            quiet = quiet + 1 if self.core.is_settled() else 0
            if quiet > _QUIET_ROUNDS:
                return
        raise NoReply("the core does not come to rest")

    def register(self) -> None:
        request, wants = self.requests.registration(), self._draw.one_of(_WANTS)
        callback = _OnLoop(self._program) if self._draw.once_in(2) else None
        handle: Responses = self.do(
            lambda: self.core.register_resource_manager(request, callback, wants=wants)
        )
        self._handles.append(handle)
        name = f"{request.rm_id} {len(self._handles)}"
        if self._draw.once_in(2):
            self._streams[f"{name} all"] = handle.responses()
            return
        for kind in ("allocations", "applications", "nodes", "events"):
            with suppress(CoreError, ValueError):
                self._streams[f"{name} {kind}"] = getattr(handle, kind)()

    def heard(self) -> Any:  # noqa: ANN401 - plain values
        """Take all that has come, of each stream; one that has ended says so."""
        found: dict[str, list[Any]] = {}
        for name in [*self._streams]:
            taken = found.setdefault(name, [])
            while name in self._streams:
                task = self._awaited.pop(name, None) or self._loop.create_task(
                    anext(self._streams[name])  # type: ignore[arg-type]
                )
                self._run(asyncio.wait((task,), timeout=0))
                if not task.done():
                    self._run(asyncio.sleep(0))
                if not task.done():
                    self._awaited[name] = task
                    break
                try:
                    taken.append(task.result())
                except StopAsyncIteration:
                    del self._streams[name]
                    taken.append("its end")
                except CoreError as error:
                    taken.append(repr(error))
        received, self._program.received = self._program.received, []
        return {name: it for name, it in found.items() if it}, received

    def wait(self, seconds: int) -> None:
        core, clock = self.core, self._clock
        end_ns = clock.now_ns() + seconds * SECOND
        while (due_ns := core.next_due_ns) is not None and due_ns <= end_ns:
            clock.move_to(due_ns)
            core.clock_was_moved()
            self._settle()
        clock.move_to(end_ns)
        core.clock_was_moved()
        self._settle()

    def end(self) -> Iterator[Heard]:
        self._run(self.core.stop())
        self._run(asyncio.sleep(0))
        yield "after its end", self.heard()

    def close(self) -> None:
        for task in self._awaited.values():
            task.cancel()
        self._run(self.core.stop())
        self._run(self._loop.shutdown_default_executor())
        self._loop.close()
