"""A program at the front door: what it asks for, what it gets, and what it hears of.

It is drawn as worlds are. The core works on the caller's thread and its clock stands still, so what
comes of a call is there when the core is at rest, and a walk is the same each time. The same
program can be at each front door: what it sees has to be equal.
"""

import asyncio
import inspect
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from math import ceil
from typing import Any, Final, Protocol, Self

from yunikorn_actors import si
from yunikorn_actors.drivers.live.clock import StandingClock
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.errors import CoreError, NoReply, ResponsesLost
from yunikorn_actors.front.aio import AsyncScheduler
from yunikorn_actors.front.application import Application
from yunikorn_actors.front.blocking import Scheduler
from yunikorn_actors.front.lease import BaseLease, Lease, Running
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.runtime.aio import AsyncSchedulerCore
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.values.durations import HOUR, SECOND
from yunikorn_actors.what_if.changes import Reconfigure

Heard = tuple[str, Any]
DUMP: Final = "the dump"
EVENTS: Final = "events"
HEARD: Final = "what the callback of the program heard"
_STEPS: Final = (10, 25)
PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.0002
_SOON_S: Final = 0.1
_WAITED_FOR: Final = re.compile(r"(at its deadline, [0-9.]+ s): [^\"]*")
_ROUNDS: Final = 3
"""What comes on a loop leaves more to it: so many rounds at a time."""
QUEUES: Final = """
partitions:
- name: default
  queues:
  - name: root
    queues:
    - name: batch
      submitacl: "*"
      resources: {max: {vcore: 8}}
      limits: [{limit: each, users: ["*"], maxresources: {vcore: 6}}]
    - name: sure
      submitacl: "*"
      resources: {guaranteed: {vcore: 4}}
      properties: {preemption.delay: 1s}
    - name: first
      submitacl: "*"
      maxapplications: 1
      properties: {application.sort.policy: easy}
    - name: spare
      submitacl: "*"
      properties: {preemption.grace: 50s}
    - name: brief
      submitacl: "*"
      properties: {preemption.grace: 1ms}
    - name: closed
      submitacl: bob
"""
_LOWER: Final = QUEUES.replace("max: {vcore: 8}", "max: {vcore: 7}")
_LEAVES: Final = ("batch", "batch", "sure", "first", "closed", "nowhere")
_GANGS: Final[tuple[dict[str, Any] | None, ...]] = (
    None, None, None, None,
    {"driver": {"vcore": 1}, "executor": {"count": 2, "vcore": 2}},
    {
        "executor": {"count": 2, "vcore": 1, "priority": 3, "tags": {"a": "1"}},
        "driver": {"vcore": 1, "preemptible": False},
    },
    {"executor": {"count": 3, "vcore": 1, "tags": {"b": "1"}, "may_preempt": False}},
)  # fmt: skip
_SIZES: Final[tuple[dict[str, Any], ...]] = (
    {"vcore": 1}, {"vcore": 1}, {"vcore": 2}, {"vcore": "500m"}, {"vcore": 1, "memory": "1G"},
    {"vcore": 1, "gpu": 1}, {"gpu": 0.5}, {"vcore": 12}, {"resources": {"pods": 1}}, {},
)  # fmt: skip
_MANNERS: Final[tuple[dict[str, Any], ...]] = (
    {}, {}, {}, {"count": 3}, {"count": 2, "spread": "zone"}, {"where": {"zone": "a"}},
    {"apart_from": "db"}, {"priority": 5}, {"required_node": "n1"}, {"preemptible": False},
    {"may_preempt": False}, {"runtime": 20}, {"tags": {"colour": "red"}}, {"originator": True},
    {"fits": lambda node: node != "n1"}, {"deadline": "1h"}, {"group": "executor"},
    {"where": {"zone": "c"}}, {"gpu_model": "A|B"},
)  # fmt: skip
_TREATED: Final[tuple[dict[str, Any], ...]] = (
    {}, {}, {}, {"tags": {"b": "2"}}, {"priority": 2, "may_preempt": False}, {"fallback": True},
    {"timeout": "5m"}, {"stays": True}, {"preemptible": False, "tags": {"a": "0"}},
    {"groups": ["dev"]},
)  # fmt: skip
"""What an application says of itself and of its asks."""
_NODES: Final[tuple[dict[str, Any], ...]] = (
    {"vcore": 4, "memory": "16G"}, {"vcore": 6, "attributes": {"zone": "a"}},
    {"vcore": 3, "attributes": {"zone": "b"}}, {"vcore": 8, "gpus": 2, "gpu_model": "A"},
)  # fmt: skip


class Door(Protocol):
    """One way in which a program comes to a scheduler."""

    @property
    def scheduler(self) -> Any:  # noqa: ANN401 - a `Scheduler`, or what has the same calls
        ...

    @property
    def core(self) -> SchedulerCore:
        """Where the requests come to in the end."""
        ...

    def do(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call returns
        """Make a call of the scheduler, and wait where that has to be awaited."""
        ...

    def events(self) -> Callable[[], list[Any]]:
        """Follow all events; return what ends that and hands them out."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether nothing is on its way between the program and the core."""
        ...


Doors = Callable[[Mapping[str, Any], si.ResourceManagerCallback], AbstractContextManager[Door]]
"""Makes one with a core that has these arguments."""


class Front(Scheduler):
    @property
    def is_settled(self) -> bool:
        """Whether all that was called for is sent."""
        return self._operations.session.outbox.is_settled

    @property
    def plain_core(self) -> Any:  # noqa: ANN401 - of the class that the program gave
        return self._operations.session.core


class LoopFront(AsyncScheduler):
    @property
    def is_settled(self) -> bool:
        """Whether all that was called for is sent."""
        return self._operations.session.outbox.is_settled

    @property
    def plain_core(self) -> Any:  # noqa: ANN401 - of the class that the program gave
        return self._operations.session.core


class OnThreads:
    """`Scheduler`, on the thread of the program."""

    def __init__(self, arguments: Mapping[str, Any], callback: si.ResourceManagerCallback) -> None:
        self.core: Final = SchedulerCore(**arguments)
        self.scheduler: Final = Front(QUEUES, core=self.core, callback=callback)

    def __enter__(self) -> Self:
        self.scheduler.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.scheduler.close()

    def do(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call returns
        return call()

    def events(self) -> Callable[[], list[Any]]:
        events = self.scheduler.events()

        def ended() -> list[Any]:
            events.close()
            found: list[Any] = []
            while True:
                try:
                    found.append(next(events))
                except StopIteration:
                    return found
                except ResponsesLost as lost:
                    found.append(lost)

        return ended

    @property
    def is_settled(self) -> bool:
        return self.scheduler.is_settled


class LoopedProgram:
    """A program on a loop, which runs while a call is made, and when it is asked to."""

    def __init__(self, scheduler: "LoopFront") -> None:
        self._loop = asyncio.new_event_loop()
        # A program that ends has no use for what its futures raise then.
        self._loop.set_exception_handler(lambda *_: None)
        self._scheduler = scheduler

    def begin(self) -> None:
        self._loop.run_until_complete(self._scheduler.start())

    def end(self) -> None:
        self._loop.run_until_complete(self._scheduler.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def do(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call returns
        async def done() -> Any:  # noqa: ANN401
            found = call()
            return await found if inspect.iscoroutine(found) else found

        return self._loop.run_until_complete(done())

    def events(self) -> Callable[[], list[Any]]:
        events = self.do(self._scheduler.events)

        async def ended() -> list[Any]:
            events.close()
            return [it async for it in events]

        return lambda: self._loop.run_until_complete(ended())

    def go_on(self) -> None:
        """Have done what was left to the loop by now, and what that leaves to it."""
        for _ in range(_ROUNDS):
            self._loop.run_until_complete(asyncio.sleep(0))


class OnLoop:
    """`AsyncScheduler`: a loop runs while a call is made, and while nothing is settled."""

    def __init__(self, arguments: Mapping[str, Any], _: si.ResourceManagerCallback) -> None:
        """A callback on a loop hears no responses, so the program has none."""
        self.scheduler: Final = LoopFront(QUEUES, core=AsyncSchedulerCore(**arguments))
        self.core: Final = self.scheduler.plain_core
        self._looped = LoopedProgram(self.scheduler)

    def __enter__(self) -> Self:
        self._looped.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self._looped.end()

    def do(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call returns
        return self._looped.do(call)

    def events(self) -> Callable[[], list[Any]]:
        return self._looped.events()

    @property
    def is_settled(self) -> bool:
        self._looped.go_on()
        return self.scheduler.is_settled


def walk(
    draw: Draw, door: Doors = OnThreads, *, with_functions: bool = False, is_plain: bool = False
) -> Iterator[Heard]:
    """Make a core and a program, and yield what the program sees.

    `with_functions`: it has executors, and applications that contend for room. What comes at once
    there may come to two doors in another order. `is_plain`: no time passes, and there are
    no gangs. Where a connection breaks, what is under way there begins anew, and which placeholder
    goes first may be another one.
    """
    topology = "fused" if with_functions and draw.once_in(2) else "proposing"
    arguments = {
        "topology": topology, "driver": "direct", "instance": "front",
        "clock": StandingClock(EPOCH_NS), "settings": Settings(predicate_timeout_ns=HOUR),
    }  # fmt: skip
    raw = _RawAsked() if with_functions else _Raw()
    with door(arguments, raw) as opened:
        program = _Program(draw, opened, raw, with_functions=with_functions, is_plain=is_plain)
        events = opened.events()
        yield from program.begin()
        for _ in range(draw.whole(*_STEPS)):
            yield from program.step()
        yield from program.end()
        yield EVENTS, [f"{getattr(it, 'kind', 'lost')}: {_steady(it)}" for it in events()]


class _Raw(si.ResourceManagerCallback):
    """Hears what the front has heard."""

    def __init__(self) -> None:
        self.received: list[Any] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.received.append(response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.received.append(response)

    def update_node(self, response: si.NodeResponse) -> None:
        self.received.append(response)


class _RawAsked(_Raw):
    """Is asked who goes as well, which no callback on a loop is."""

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        is_no = args.node_id == "n2"
        return si.PreemptionPredicatesResponse(success=not is_no, index=args.start_index)

    def get_state_dump(self) -> str:
        return f'{{"received": {len(self.received)}}}'


class _Program:
    def __init__(
        self, draw: Draw, door: Door, raw: _Raw, *, with_functions: bool, is_plain: bool
    ) -> None:
        self._draw, self._has_functions, self._is_plain = draw, with_functions, is_plain
        self._core = door.core
        self._door = door
        self._do = door.do
        self._raw = raw
        self._scheduler: Final = door.scheduler
        self._apps: list[Application] = []
        self._futures: dict[str, Future[Any]] = {}
        self._pools: dict[str, Any] = {}
        """Executors, by the ids of their applications."""
        self._begun: list[str] = []
        """The functions of executors that have begun."""
        self._may_go_on: dict[str, threading.Event] = {}
        """When each of them may go on: what it releases comes to a core at rest."""
        self._deadline = 0.0
        self._steps: tuple[Callable[[], Any], ...] = (
            *(self._ask,) * 8, *(self._release,) * 3, *(self._application,) * 2, self._cancel,
            self._close, self._node, self._change_node, self._change_node, self._look_at_nodes,
            self._explain, self._explain, *(() if is_plain else (self._wait,) * 2),
            self._configure, self._simulate,
        )  # fmt: skip
        if with_functions:
            self._steps += (
                *(self._submit,) * 4, self._make_pool, self._shut, self._contend, self._contend,
                self._return, self._return, self._look_at_leases, self._miss_a_deadline,
            )  # fmt: skip

    def begin(self) -> Iterator[Heard]:
        has_pool = self._has_functions and self._draw.once_in(2)
        executor = (self._make_pool, self._submit) if has_pool else ()
        for first in (self._node, self._node, self._application, self._application, *executor):
            yield from self._seen(first)

    def step(self) -> Iterator[Heard]:
        yield from self._seen(self._draw.one_of(self._steps))

    def end(self) -> Iterator[Heard]:
        for app in self._apps:
            yield f"{app!r}", (app.state, app.queue, [_shown(it) for it in app.leases])
        yield "futures in the end", {key: _outcome(it) for key, it in self._futures.items()}
        yield HEARD, self._raw.received
        dump = self._core.state_dump()
        for partition in dump["partitions"].values():
            # How many facts there were depends on how many requests were sent together.
            partition["revision"] = 0
        yield DUMP, dump

    def _seen(self, step: Callable[[], Any]) -> Iterator[Heard]:
        try:
            found = step()
        except (CoreError, ValueError, LookupError, RuntimeError) as error:
            found = repr(error)
        self._settle()
        yield step.__name__, found
        yield "applications", [repr(app) for app in self._apps]
        yield "futures", {key: _outcome(it) for key, it in self._futures.items()}

    def _settle(self) -> None:
        """Wait until nothing is under way; functions of executors go on one after the other."""
        self._deadline = time.monotonic() + PATIENCE_S
        while True:
            # What the core has answered last may have the front send something.
            self._wait_until(lambda: self._door.is_settled and self._core.is_settled())
            self._wait_until(lambda: not any(map(_is_nearly_lost, self._leases())))
            self._wait_until(lambda: self._door.is_settled and len(self._at_work()) >= self._held())
            begun = self._at_work()
            if not begun:
                return
            self._may_go_on[begun[0]].set()
            self._wait_until(self._futures[begun[0]].done)

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            if time.monotonic() > self._deadline:
                raise NoReply("the core does not come to rest")
            # The outbox has to come to its lock, and a loop goes on while it is asked.
            time.sleep(_POLL_S)
            _ = self._door.is_settled

    def _held(self) -> int:
        """Count the leases of functions."""
        apps = self._scheduler.applications
        return sum(len(apps[name].leases) for name in self._pools if name in apps)

    def _at_work(self) -> list[str]:
        """Return what has begun and is not over; a function that lost its lease may end."""
        for key in self._begun:
            if self._futures[key].done():
                self._may_go_on[key].set()
        return sorted(key for key in self._begun if not self._futures[key].done())

    # -- what it does

    def _make_pool(self) -> None:
        """Make an executor; there is room for one function of all at a time."""
        name = f"pool{len(self._pools) + 1}"
        words = {"user": self._draw.one_of(("ann", "bob")), "queue": "root.batch", "vcore": 5}

        def made() -> Any:  # noqa: ANN401 - of threads, or of a loop
            pool = self._scheduler.executor(name=name, **words)
            return pool.start() if hasattr(pool, "start") else pool

        self._pools[name] = self._do(made)

    def _submit(self) -> None:
        draw, name = self._draw, self._draw.one_of(sorted(self._pools) or ["pool1"])
        key, number = f"{name} call {len(self._futures)}", draw.whole(-1, 5)

        def divided() -> float:
            self._begun.append(key)
            self._may_go_on[key].wait(PATIENCE_S)
            return 10 / number

        words: dict[str, Any] = draw.one_of(
            ({}, {}, {"priority": 1}, {"vcore": 4}, {"memory": "1G"})
        )
        self._may_go_on[key] = threading.Event()
        self._futures[key] = self._do(lambda: self._pools[name].submit(divided, **words))

    def _shut(self) -> None:
        """Those that wait are withdrawn: an end behind them would be on another thread."""
        pool = self._pools[self._draw.one_of(sorted(self._pools) or ["pool1"])]
        self._do(lambda: pool.shutdown(wait=False, cancel_futures=True))

    def _node(self) -> Any:  # noqa: ANN401 - plain values
        name = f"n{len(self._scheduler.nodes) + 1}"
        words = self._draw.one_of(_NODES)
        return [*map(_shown, self._do(lambda: self._scheduler.add_node(name, **words)))]

    def _application(self) -> None:
        draw, name = self._draw, f"app{self._draw.whole(1, 6)}"
        gang = draw.one_of(_GANGS[:1] if self._is_plain else _GANGS)
        words = {
            "queue": f"root.{draw.one_of(_LEAVES)}", "user": draw.one_of(("ann", "bob")),
            "gang": gang, "gang_style": draw.one_of(("Soft", "Hard")), **draw.one_of(_TREATED),
        }  # fmt: skip
        self._apps.append(self._do(lambda: self._scheduler.application(name, **words)))

    def _ask(self) -> None:
        draw, app = self._draw, self._draw.one_of(self._apps)
        key, manner = f"k{draw.whole(1, 12)}", draw.one_of(_MANNERS)
        words = {**draw.one_of(_SIZES), **manner}
        asked = self._do(lambda: app.ask(key, **words))
        for number, future in enumerate(asked if isinstance(asked, list) else [asked]):
            self._futures[f"{app.id} {key} {number}"] = future

    def _contend(self) -> None:
        """Have one application take all room, and one with a guarantee ask for some of it."""
        free = sum(node.free.get("vcore", 0) // 1000 for node in self._scheduler.nodes.values())
        taking = self._draw.one_of(("batch", "spare", "spare", "brief"))
        # What is lost at once comes one after the other, and is given back in one request or more.
        wanted = ("sure", "bob", 1, 1) if taking == "brief" else ("sure", "bob", 2, 2)
        for leaf, user, count, size in ((taking, "ann", max(1, free), 1), wanted):
            app = self._stand_in(f"of-{leaf}", f"root.{leaf}", user)
            for _ in range(count):
                self._ask_alone(app, f"k{self._draw.whole(1, 60)}", size)
                # Those that wait to be sent may go in one request, or in two.
                self._settle()
        self._wait()

    def _miss_a_deadline(self) -> None:
        """Ask for more than there ever is, and wait until that is withdrawn."""
        app, key = self._draw.one_of(self._apps), f"late{len(self._futures)}"
        future = self._do(lambda: app.ask(key, vcore=99, deadline=_SOON_S))
        self._futures[f"{app.id} {key} 0"] = future
        self._deadline = time.monotonic() + PATIENCE_S
        self._wait_until(future.done)

    def _stand_in(self, name: str, queue: str, user: str) -> Application:
        found: Application = self._do(
            lambda: self._scheduler.application(name, queue=queue, user=user)
        )
        self._apps += [] if found in self._apps else [found]
        return found

    def _ask_alone(self, app: Application, key: str, vcore: int) -> None:
        self._futures[f"{app.id} {key} 0"] = self._do(lambda: app.ask(key, vcore=vcore))

    def _leases(self) -> list[Lease]:
        return [lease for app in self._apps for lease in app.leases]

    def _release(self) -> str:
        leases = self._leases()
        if not leases:
            return ""
        lease = self._draw.one_of(leases)
        self._do(lease.release)
        return f"{lease!r} {lease.lost}"

    def _cancel(self) -> bool:
        futures = [*self._futures.values()]
        if not futures:
            return False
        future = self._draw.one_of(futures)
        # A second time this is a yes on threads and a no on a loop, as futures are there.
        return self._do(future.cancel) or future.cancelled()

    def _return(self) -> Any:  # noqa: ANN401 - plain values
        """Add a node on which work runs already, now and then such as nobody may have."""
        draw, app = self._draw, self._draw.one_of(self._apps)
        name = f"n{draw.whole(4, 9)}"
        running = [
            Running(
                application=draw.one_of((*(app.id,) * 6, "nobody")), key=f"k{draw.whole(1, 15)}",
                node_id=draw.one_of((*(name,) * 6, "n1")), resources={"vcore": number},
                preemptible=draw.once_in(2),
            )
            for number in range(1, draw.whole(2, 3))
        ]  # fmt: skip
        words = draw.one_of(_NODES)
        return [
            *map(_shown, self._do(lambda: self._scheduler.add_node(name, running=running, **words)))
        ]

    def _look_at_leases(self) -> Any:  # noqa: ANN401 - plain values
        return [
            (_shown(it), _tens(it.seconds_left), it.wanted_back.is_set(), repr(it.running))
            for it in self._leases()
        ]

    def _close(self) -> None:
        self._do(self._draw.one_of(self._apps).close)

    def _change_node(self) -> None:
        draw = self._draw
        name, scheduler = f"n{draw.whole(1, 3)}", self._scheduler
        acts: tuple[Callable[[], Any], ...] = (
            lambda: scheduler.drain(name),
            lambda: scheduler.resume(name),
            lambda: scheduler.remove_node(name),
            lambda: scheduler.nodes[name].resize(vcore=draw.whole(1, 8)),
        )
        self._do(draw.one_of(acts))

    def _look_at_nodes(self) -> Any:  # noqa: ANN401 - plain values
        return {
            name: (node.capacity, node.used, node.free, dict(node.attributes), node.drained,
                   [*map(_shown, node.leases)], node.idle_since is None, repr(node))
            for name, node in self._scheduler.nodes.items()
        }  # fmt: skip

    def _explain(self) -> Any:  # noqa: ANN401 - plain values
        app, _, key = self._draw.one_of([*self._futures] or ["app1 k1"]).partition(" ")
        key = key.partition(" ")[0]
        status = self._do(lambda: self._scheduler.explain(app, key))
        return _steady(status), repr(self._do(self._scheduler.waiting))

    def _wait(self) -> None:
        core, clock = self._core, self._core.clock
        assert isinstance(clock, StandingClock)
        end_ns = clock.now_ns() + self._draw.one_of((1, 5, 30, 600)) * SECOND
        while (due_ns := core.next_due_ns) is not None and due_ns <= end_ns:
            clock.move_to(due_ns)
            core.clock_was_moved()
            self._settle()
        clock.move_to(end_ns)
        core.clock_was_moved()

    def _configure(self) -> None:
        queues = self._draw.one_of((QUEUES, _LOWER, "partitions: 3"))
        self._do(lambda: self._scheduler.configure(queues))

    def _simulate(self) -> str:
        changed = Reconfigure(queue="root.batch", max={"vcore": 20_000})
        answer = self._do(lambda: self._scheduler.simulate(changed, until=60.0))
        return repr(answer.course.placed)


def _outcome(future: Future[Any]) -> str:
    if future.cancelled():
        return "cancelled"
    if not future.done():
        return "waits"
    error = future.exception()
    if error is not None:
        return _steady(error)
    found = future.result()
    return _shown(found) if isinstance(found, BaseLease) else repr(found)


def _steady(thing: object) -> str:
    """Write it without what an ask waited for at its deadline: perhaps for the core, on its way."""
    return _WAITED_FOR.sub(r"\1", repr(thing))


def _is_nearly_lost(lease: BaseLease) -> bool:
    left_s = lease.seconds_left
    return left_s is not None and left_s < 1


def _tens(seconds: float | None) -> int | None:
    """Count tens of seconds, those that have begun: the computer takes some of the last one."""
    return None if seconds is None else ceil(seconds / 10)


def _shown(lease: BaseLease) -> str:
    return f"{lease!r} {dict(lease.resources)} {lease.devices} {lease.lost}"
