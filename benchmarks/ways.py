"""How long the ways of single events are, and how far changes go: `python -m benchmarks.ways`.

Each way is measured on a warm core with nothing else to do, on all threads, from the call until
everything is quiet again: how many of the package's files and functions it passes, how many calls
it makes, how many messages the machines handle, and how often the next call is on another thread.
The counts depend on nothing but the code, so they are the same on any computer, but for what a
thread finds in its mailbox at once: the median of several turns is printed. With `--driver direct`
one thread does all of it, and they are the same each time.

Behind that: for ten kinds of changes, how many files of the package name a thing of that kind.
"""

import argparse
import gc
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median_low
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import yunikorn_actors
from yunikorn_actors import Application, Lease, Scheduler, SchedulerCore, si
from yunikorn_actors.drivers.live import dispatcher
from yunikorn_actors.drivers.live.actors import Actor
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.state.termination import ASKED_BACK

PACKAGE: Final = str(Path(yunikorn_actors.__file__).parent)
WARM_UP: Final = 20
TURNS: Final = 9
QUIET_S: Final = {"threads": 0.05, "direct": 0.002}
"""Nothing is under way any more when no call was made for so long."""
NEVER_NS: Final = 10**15
RM: Final = "rm-1"
QUEUES: Final = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: work, properties: {application.sort.policy: fifo}}
    - {name: lender, properties: {preemption.delay: 1ms}}
    - {name: owner, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1ms}}
"""


CHANGES: Final = {
    "a field of an ask that planning reads": "gpu_model",
    "a field of an application": "gang_style",
    "a fact with an event": "QueueStateChanged",
    "an operator's act": "undrain",
    "a rule of preemption": "fence",
    "a refusal": "NODE_KEPT",
    "a question to a recording": "why_of",
    "a property of queues": "preemption_delay_ns",
    "an order of nodes": "binpacking",
    "a message between machines": "EventPushDue",
}
"""Kinds of changes, and a name of something that was one, and as far as possible nothing else."""


def files_naming(word: str) -> int:
    """Count the files of the package with this word."""
    named = re.compile(rf"\b{word}\b")
    files = Path(PACKAGE).rglob("*.py")
    return sum(bool(named.search(it.read_text("utf-8"))) for it in files)


class Way(NamedTuple):
    """What one event costs in code that runs."""

    files: int
    functions: int
    calls: int
    messages: int
    changes: int
    """How often the next call was made on another thread than the one before."""


class Meter:
    """Counts on every thread that begins after it was installed."""

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._is_counting = False
        self._calls: list[tuple[CodeType, int]] = []
        self._last = 0.0

    @contextmanager
    def installed(self) -> Iterator[None]:
        # What the collector would end of others is none of the way.
        was_enabled = gc.isenabled()
        gc.disable()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            if was_enabled:
                gc.enable()

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        self._last = time.monotonic()
        if self._is_counting:
            self._calls.append((frame.f_code, threading.get_ident()))

    def settle(self) -> None:
        while time.monotonic() - self._last < self._quiet_s:
            time.sleep(self._quiet_s / 5)

    def measure(self, act: Callable[[], object]) -> Way:
        self.settle()
        self._calls.clear()
        self._is_counting = True
        act()
        self.settle()
        self._is_counting = False
        codes = [code for code, _ in self._calls]
        threads = [thread for _, thread in self._calls]
        return Way(
            files=len({code.co_filename for code in codes}),
            functions=len(set(codes)),
            calls=len(codes),
            messages=codes.count(Actor.deliver.__code__),
            changes=sum(one != other for one, other in pairwise(threads)),
        )


def _between(turns: Sequence[Way]) -> Way:
    return Way(*(median_low(column) for column in zip(*turns, strict=True)))


class Stage(si.ResourceManagerCallback):
    """A resource manager that confirms at once, and remembers what runs."""

    def __init__(self, core: SchedulerCore) -> None:
        self.core = core
        self.running: dict[str, si.Allocation] = {}
        self._changed = threading.Condition()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        with self._changed:
            self.running.update((it.allocation_key, it) for it in response.new)
            for gone in response.released:
                self.running.pop(gone.allocation_key, None)
            self._changed.notify_all()
        confirmed = [it for it in response.released if it.termination_type in ASKED_BACK]
        if confirmed:
            self.core.update_allocation(_releases(confirmed))

    def wait(self, holds: Callable[[], bool]) -> None:
        with self._changed:
            if not self._changed.wait_for(holds, timeout=30):
                raise SystemExit(f"still not there after 30 s; running: {sorted(self.running)}")


def _releases(items: Sequence[si.AllocationRelease]) -> si.AllocationRequest:
    releases = si.AllocationReleasesRequest(allocations_to_release=tuple(items))
    return si.AllocationRequest(rm_id=RM, releases=releases)


def _ask(
    key: str,
    app: str = "app",
    *,
    task_group: str = "",
    placeholder: bool = False,
    policy: si.PreemptionPolicy | None = None,
) -> si.AllocationRequest:
    ask = si.AllocationAsk(
        allocation_key=key,
        application_id=app,
        resource_ask=si.Resource.of({"vcore": 1000}),
        task_group_name=task_group,
        placeholder=placeholder,
        preemption_policy=policy,
    )
    return si.AllocationRequest(rm_id=RM, asks=(ask,))


class Ways:
    """The ways, each on a core of its own; an act returns when its effect has come back."""

    def __init__(self, meter: Meter, topology: TopologyName, driver: str, turns: int) -> None:
        self._meter = meter
        self._options: dict[str, Any] = {"topology": topology, "driver": driver}
        self._turns = turns

    def all(self) -> Iterator[tuple[str, Way]]:
        yield from self._front()
        yield from self._core()
        yield "swap of a placeholder", self._swap()
        yield "preemption", self._preemption()

    def _turn_by_turn(self, act: Callable[[int], object], undo: Callable[[int], object]) -> Way:
        """Measure an act; what it made is undone outside of the measurement."""
        found = []
        for number in range(WARM_UP + self._turns):
            if number < WARM_UP:
                act(number)
            else:
                found.append(self._meter.measure(lambda number=number: act(number)))  # type: ignore[misc]
            self._meter.settle()
            undo(number)
        return _between(found)

    def _front(self) -> Iterator[tuple[str, Way]]:
        with Scheduler(core=SchedulerCore(**self._options)) as scheduler:
            scheduler.add_node("node-1", vcore=64)
            busy, idle = (scheduler.application(it, user="ann") for it in ("busy", "idle"))
            # As below: an application without work reports a change of its state as well.
            stays = busy.ask("stays", vcore=1).result(timeout=30)
            yield from self._asked_and_released(
                busy, "front door: ask(...).result()", "front door: lease.release()"
            )
            yield from self._asked_and_released(
                idle, "front door: first ask of an idle application", "front door: its last release"
            )
            stays.release()

    def _asked_and_released(
        self, app: Application, asked: str, released: str
    ) -> Iterator[tuple[str, Way]]:
        leases: list[Lease] = []

        def ask(number: int) -> None:
            leases.append(app.ask(f"k{number}", vcore=1).result(timeout=30))

        def release(_: int) -> None:
            leases.pop().release()

        yield asked, self._turn_by_turn(ask, release)
        ask(-1)
        yield released, self._turn_by_turn(release, ask)

    @contextmanager
    def _stage(self, nodes: int = 1) -> Iterator[Stage]:
        core = SchedulerCore(**self._options)
        stage = Stage(core)
        with core:
            request = si.RegisterResourceManagerRequest(rm_id=RM, policy_group=RM, config=QUEUES)
            core.register_resource_manager(request, stage)
            capacity = si.Resource.of({"vcore": 8000})
            infos = tuple(
                si.NodeInfo(
                    node_id=f"node-{number}",
                    action=si.ActionFromRM.CREATE,
                    schedulable_resource=capacity,
                )
                for number in range(nodes)
            )
            core.update_node(si.NodeRequest(rm_id=RM, nodes=infos))
            yield stage

    def _core(self) -> Iterator[tuple[str, Way]]:
        with self._stage() as stage:
            _add(stage.core, "app", "root.work")

            def ask(number: int) -> None:
                stage.core.update_allocation(_ask(f"k{number}"))
                stage.wait(lambda: f"k{number}" in stage.running)

            def release(_: int) -> None:
                _release_all(stage)

            # Something stays, so that the application does not complete meanwhile.
            stage.core.update_allocation(_ask("stays"))
            yield "core: an ask", self._turn_by_turn(ask, release)
            ask(-1)
            yield "core: a release", self._turn_by_turn(release, ask)

    def _swap(self) -> Way:
        with self._stage() as stage:

            def prepare(number: int) -> None:
                app = f"gang-{number}"
                _add(stage.core, app, "root.work", si.Resource.of({"vcore": 1000}))
                stage.core.update_allocation(
                    _ask(f"{app}-ph", app, task_group="tg", placeholder=True)
                )
                stage.wait(lambda: f"{app}-ph" in stage.running)

            def swap(number: int) -> None:
                app = f"gang-{number}"
                stage.core.update_allocation(_ask(f"{app}-member", app, task_group="tg"))
                stage.wait(lambda: f"{app}-member" in stage.running)

            def undo(number: int) -> None:
                _remove(stage, f"gang-{number}")
                prepare(number + 1)

            prepare(0)
            return self._turn_by_turn(swap, undo)

    def _preemption(self) -> Way:
        with self._stage() as stage:
            policy = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)

            def prepare(number: int) -> None:
                _add(stage.core, f"lender-{number}", "root.lender")
                _add(stage.core, f"owner-{number}", "root.owner")
                for part in range(8):
                    ask = _ask(f"l{number}-{part}", f"lender-{number}")
                    stage.core.update_allocation(ask)
                stage.wait(lambda: len(stage.running) == 8)

            def preempt(number: int) -> None:
                key = f"o{number}"
                ask = _ask(key, f"owner-{number}", policy=policy)
                stage.core.update_allocation(ask)
                stage.wait(lambda: key in stage.running)

            def undo(number: int) -> None:
                _remove(stage, f"lender-{number}")
                _remove(stage, f"owner-{number}")
                prepare(number + 1)

            prepare(0)
            return self._turn_by_turn(preempt, undo)


def _add(core: SchedulerCore, app: str, queue: str, gang: si.Resource | None = None) -> None:
    new = si.AddApplicationRequest(
        application_id=app,
        queue_name=queue,
        ugi=si.UserGroupInformation(user="ann"),
        placeholder_ask=gang,
    )
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))


def _remove(stage: Stage, app: str) -> None:
    old = si.RemoveApplicationRequest(application_id=app)
    stage.core.update_application(si.ApplicationRequest(rm_id=RM, remove=(old,)))
    stage.wait(lambda: all(it.application_id != app for it in stage.running.values()))


def _release_all(stage: Stage) -> None:
    ends = [
        si.AllocationRelease(
            application_id=it.application_id,
            uuid=it.uuid,
            allocation_key=it.allocation_key,
            termination_type=si.TerminationType.STOPPED_BY_RM,
        )
        for it in stage.running.values()
        if it.allocation_key != "stays"
    ]
    stage.core.update_allocation(_releases(ends))
    stage.wait(lambda: not stage.running.keys() - {"stays"})


def ways(topology: TopologyName, driver: str, turns: int = TURNS) -> Iterator[tuple[str, Way]]:
    meter = Meter(QUIET_S[driver])
    # No way depends on how fast this computer is: what goes outside is handed over at the end.
    with meter.installed(), patch.object(dispatcher, "SLICE_NS", NEVER_NS):
        yield from Ways(meter, topology, driver, turns).all()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ways", description=__doc__)
    parser.add_argument("--topology", choices=TOPOLOGIES, default="proposing")
    parser.add_argument("--driver", choices=("threads", "direct"), default="threads")
    parser.add_argument("--turns", type=int, default=TURNS, help="of each; the median is printed")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    if not given.json:
        print(f"{'way':46}" + "".join(f"{name:>10}" for name in Way._fields))
    for name, way in ways(given.topology, given.driver, given.turns):
        found[name] = way._asdict()
        if not given.json:
            print(f"{name:46}" + "".join(f"{figure:10}" for figure in way), flush=True)
    if not given.json:
        print(f"\n{'change':44}{'like':>24}{'files':>10}")
    for name, like in CHANGES.items():
        found[name] = {"files": files_naming(like)}
        if not given.json:
            print(f"{name:44}{like:>24}{found[name]['files']:10}")
    if given.json:
        print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
