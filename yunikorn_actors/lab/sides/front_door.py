"""A program at the front door: what it asks for, what it gets, and what it hears of.

It is drawn as worlds are. The core works on the caller's thread and its clock stands still, so what
comes of a call is there when the core is at rest, and a walk is the same each time.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Final

from yunikorn_actors import si
from yunikorn_actors.drivers.live.clock import StandingClock
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.errors import CoreError, NoReply
from yunikorn_actors.front.application import Application
from yunikorn_actors.front.blocking import Scheduler
from yunikorn_actors.front.lease import Lease
from yunikorn_actors.lab.random_draw import Draw
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.what_if.changes import Reconfigure

Heard = tuple[str, Any]
_STEPS: Final = (10, 25)
_SECOND: Final = 1_000_000_000
_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.0002
_QUEUES: Final = """
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
    - name: closed
      submitacl: bob
"""
_LOWER: Final = _QUEUES.replace("max: {vcore: 8}", "max: {vcore: 7}")
_LEAVES: Final = ("batch", "batch", "sure", "first", "closed", "nowhere")
_GANGS: Final[tuple[dict[str, Any] | None, ...]] = (
    None, None, None, None,
    {"driver": {"vcore": 1}, "executor": {"count": 2, "vcore": 2}},
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
_NODES: Final[tuple[dict[str, Any], ...]] = (
    {"vcore": 4, "memory": "16G"}, {"vcore": 6, "attributes": {"zone": "a"}},
    {"vcore": 3, "attributes": {"zone": "b"}}, {"vcore": 8, "gpus": 2, "gpu_model": "A"},
)  # fmt: skip


def walk(draw: Draw) -> Iterator[Heard]:
    """Make a core and a program, and yield what the program sees."""
    core = SchedulerCore(
        driver="direct", instance="front", clock=StandingClock(EPOCH_NS),
        settings=Settings(predicate_timeout_ns=3600 * _SECOND),
    )  # fmt: skip
    program = _Program(draw, core)
    with program.scheduler:
        events = program.scheduler.events()
        yield from program.begin()
        for _ in range(draw.whole(*_STEPS)):
            yield from program.step()
        yield from program.end()
        events.close()
        yield "events", [f"{event.kind}: {event!r}" for event in events]


class _Raw(si.ResourceManagerCallback):
    """Hears what the front has heard."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.heard.append(response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.heard.append(response)

    def update_node(self, response: si.NodeResponse) -> None:
        self.heard.append(response)


class _Front(Scheduler):
    @property
    def is_settled(self) -> bool:
        """Whether all that was called for is sent."""
        return self._operations.session.outbox.is_settled


class _Program:
    def __init__(self, draw: Draw, core: SchedulerCore) -> None:
        self._draw = draw
        self._core = core
        self._raw = _Raw()
        self.scheduler: Final = _Front(_QUEUES, core=core, callback=self._raw)
        self._apps: list[Application] = []
        self._futures: dict[str, Future[Lease]] = {}
        self._steps: tuple[Callable[[], Any], ...] = (
            *(self._ask,) * 8, *(self._release,) * 3, *(self._application,) * 2, self._cancel,
            self._close, self._node, self._change_node, self._change_node, self._look_at_nodes,
            self._explain, self._explain, self._wait, self._wait, self._configure, self._simulate,
        )  # fmt: skip

    def begin(self) -> Iterator[Heard]:
        for first in (self._node, self._node, self._application, self._application):
            yield from self._seen(first)

    def step(self) -> Iterator[Heard]:
        yield from self._seen(self._draw.one_of(self._steps))

    def end(self) -> Iterator[Heard]:
        for app in self._apps:
            yield f"{app!r}", (app.state, app.queue, [_shown(it) for it in app.leases])
        yield "what the callback of the program heard", self._raw.heard
        yield "the dump", self._core.state_dump()

    def _seen(self, step: Callable[[], Any]) -> Iterator[Heard]:
        try:
            found = step()
        except (CoreError, ValueError, LookupError) as error:
            found = repr(error)
        self._settle()
        yield step.__name__, found
        yield "applications", [repr(app) for app in self._apps]
        yield "futures", {key: _outcome(it) for key, it in self._futures.items()}

    def _settle(self) -> None:
        front, core = self.scheduler, self._core
        deadline = time.monotonic() + _PATIENCE_S
        # What the core has answered last may have the front send something.
        while not (front.is_settled and core.is_settled() and front.is_settled):
            if time.monotonic() > deadline:
                raise NoReply("the core does not come to rest")
            # The outbox has to come to its lock.
            time.sleep(_POLL_S)

    # -- what it does

    def _node(self) -> Any:  # noqa: ANN401 - plain values
        name = f"n{len(self.scheduler.nodes) + 1}"
        return [*map(_shown, self.scheduler.add_node(name, **self._draw.one_of(_NODES)))]

    def _application(self) -> None:
        draw, name = self._draw, f"app{self._draw.whole(1, 6)}"
        gang = draw.one_of(_GANGS)
        app = self.scheduler.application(
            name, queue=f"root.{draw.one_of(_LEAVES)}", user=draw.one_of(("ann", "bob")),
            gang=gang, gang_style=draw.one_of(("Soft", "Hard")),
        )  # fmt: skip
        self._apps.append(app)

    def _ask(self) -> None:
        draw, app = self._draw, self._draw.one_of(self._apps)
        key, manner = f"k{draw.whole(1, 12)}", draw.one_of(_MANNERS)
        asked = app.ask(key, **draw.one_of(_SIZES), **manner)
        for number, future in enumerate(asked if isinstance(asked, list) else [asked]):
            self._futures[f"{app.id} {key} {number}"] = future

    def _leases(self) -> list[Lease]:
        return [lease for app in self._apps for lease in app.leases]

    def _release(self) -> str:
        leases = self._leases()
        if not leases:
            return ""
        lease = self._draw.one_of(leases)
        lease.release()
        return f"{lease!r} {lease.lost}"

    def _cancel(self) -> bool:
        futures = [*self._futures.values()]
        return bool(futures) and self._draw.one_of(futures).cancel()

    def _close(self) -> None:
        self._draw.one_of(self._apps).close()

    def _change_node(self) -> None:
        draw = self._draw
        name, scheduler = f"n{draw.whole(1, 3)}", self.scheduler
        acts: tuple[Callable[[], Any], ...] = (
            lambda: scheduler.drain(name),
            lambda: scheduler.resume(name),
            lambda: scheduler.remove_node(name),
            lambda: scheduler.nodes[name].resize(vcore=draw.whole(1, 8)),
        )
        draw.one_of(acts)()

    def _look_at_nodes(self) -> Any:  # noqa: ANN401 - plain values
        return {
            name: (node.capacity, node.used, node.free, dict(node.attributes), node.drained,
                   [*map(_shown, node.leases)], node.idle_since is None, repr(node))
            for name, node in self.scheduler.nodes.items()
        }  # fmt: skip

    def _explain(self) -> Any:  # noqa: ANN401 - plain values
        app, _, key = self._draw.one_of([*self._futures] or ["app1 k1"]).partition(" ")
        key = key.partition(" ")[0]
        return repr(self.scheduler.explain(app, key)), repr(self.scheduler.waiting())

    def _wait(self) -> None:
        core, clock = self._core, self._core.clock
        assert isinstance(clock, StandingClock)
        end_ns = clock.now_ns() + self._draw.one_of((1, 5, 30, 600)) * _SECOND
        while (due_ns := core.next_due_ns) is not None and due_ns <= end_ns:
            clock.move_to(due_ns)
            core.clock_was_moved()
            self._settle()
        clock.move_to(end_ns)
        core.clock_was_moved()

    def _configure(self) -> None:
        self.scheduler.configure(self._draw.one_of((_QUEUES, _LOWER, "partitions: 3")))

    def _simulate(self) -> str:
        changed = Reconfigure(queue="root.batch", max={"vcore": 20})
        return repr(self.scheduler.simulate(changed, until=60.0).course.placed)


def _outcome(future: Future[Lease]) -> str:
    if future.cancelled():
        return "cancelled"
    if not future.done():
        return "waits"
    error = future.exception()
    return repr(error) if error is not None else _shown(future.result())


def _shown(lease: Lease) -> str:
    return f"{lease!r} {dict(lease.resources)} {lease.devices} {lease.lost}"
