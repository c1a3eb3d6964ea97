"""How long others wait while long work is done: `python -m benchmarks.slices`.

For each operation a core with two resource managers is filled. Then the long work of the first is
started, and the second asks for one small allocation after the other until that is done. Told are
its longest wait, from the call to the callback, and the longest handler of any machine in processor
time, which the other load of the computer does not touch. `--whole` does all in one slice: what it
was before there were slices. `--served` collects garbage as `yunikorn-actors serve` does.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any, Final, NamedTuple

from benchmarks.garbage import frozen
from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.drivers.live.actors import Actor, Outsider
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import Envelope
from yunikorn_actors.runtime.switch_interval import short_turns
from yunikorn_actors.values.garbage import BriefCollections

LONG_RM: Final = "long"
OTHER_RM: Final = "other"
APP: Final = "app"
IN_ONE: Final = 500
PATIENCE_S: Final = 900
CONFIG: Final = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [%s]}]}]"
)
LEAF: Final = "{name: work}"
WHOLE: Final = 2**62


class Longest:
    """The longest handler of the machines, in processor time of its thread."""

    def __init__(self) -> None:
        self.ns = 0
        self.what = ""

    @contextmanager
    def watched(self) -> Iterator[None]:
        deliver = Actor.deliver

        def timed(actor: Actor, envelope: Envelope) -> None:
            begin = time.thread_time_ns()
            try:
                deliver(actor, envelope)
            finally:
                took = time.thread_time_ns() - begin
                if took > self.ns and not isinstance(actor.holder, Outsider):
                    self.ns = took
                    self.what = f"{type(envelope.message).__name__} to {actor.address}"

        Actor.deliver = timed  # type: ignore[method-assign,assignment]
        try:
            yield
        finally:
            Actor.deliver = deliver  # type: ignore[method-assign]


class Heard(si.ResourceManagerCallback):
    def __init__(self) -> None:
        self.has_new = Event()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        if response.new:
            self.has_new.set()


class Operation(NamedTuple):
    asks: int
    act: Callable[[SchedulerCore], object]
    queues: int = 0


def _remove(core: SchedulerCore) -> None:
    gone = (si.RemoveApplicationRequest(application_id=APP),)
    core.update_application(si.ApplicationRequest(rm_id=LONG_RM, remove=gone))


def _reload(core: SchedulerCore) -> None:
    leaves = [LEAF, *(f"{{name: q{number}}}" for number in range(10_000))]
    config = CONFIG % ", ".join(leaves)
    core.update_configuration(si.UpdateConfigurationRequest(rm_id=LONG_RM, config=config))


def _lose(core: SchedulerCore) -> None:
    """Its time is short, and then all of it is removed."""
    core.resource_manager_lost(LONG_RM)
    time.sleep(2)


OPERATIONS: Final = {
    "unregister, 50,000 asks": Operation(
        50_000, lambda core: core.unregister_resource_manager(LONG_RM)
    ),
    "unregister, 1,000,000 asks": Operation(
        1_000_000, lambda core: core.unregister_resource_manager(LONG_RM)
    ),
    "application removed, 100,000 asks": Operation(100_000, _remove),
    "reload, 10,000 queues": Operation(0, _reload),
    "lost, 50,000 asks": Operation(50_000, _lose),
    "clean slate, 50,000 asks": Operation(50_000, lambda core: _register(core, LONG_RM, Heard())),
    "100,000 asks in one request": Operation(0, lambda core: _ask(core, LONG_RM, 100_000, 100_000)),
}


def _register(core: SchedulerCore, rm_id: str, heard: Heard) -> None:
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(
            rm_id=rm_id,
            policy_group=rm_id,
            config=CONFIG % LEAF,
            extra_config={"rm.pausedTimeout": "1s"},
        ),
        heard,
    )


def _ask(core: SchedulerCore, rm_id: str, count: int, in_one: int, vcore: int = 10**9) -> None:
    size = si.Resource.of({"vcore": vcore})
    for start in range(0, count, in_one):
        asks = tuple(
            si.AllocationAsk(application_id=APP, allocation_key=f"k{number}", resource_ask=size)
            for number in range(start, min(count, start + in_one))
        )
        core.update_allocation(si.AllocationRequest(rm_id=rm_id, asks=asks))


def _fill(core: SchedulerCore, rm_id: str, heard: Heard) -> None:
    _register(core, rm_id, heard)
    node = si.NodeInfo(
        node_id="n",
        action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of({"vcore": 10**8}),
    )
    core.update_node(si.NodeRequest(rm_id=rm_id, nodes=(node,)))
    ugi = si.UserGroupInformation(user="ann")
    new = si.AddApplicationRequest(application_id=APP, queue_name="root.work", ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=rm_id, new=(new,)))


def _settle(core: SchedulerCore) -> None:
    until = time.monotonic() + PATIENCE_S
    while not core.is_settled():
        if time.monotonic() > until:
            raise TimeoutError("the core does not come to rest")
        time.sleep(0.05)


class Result(NamedTuple):
    took_s: float
    waits_ms: list[float]
    longest_ms: float
    longest: str


def measure(operation: Operation, topology: TopologyName, slice_max: int) -> Result:
    longest = Longest()
    settings = Settings(slice_max=slice_max)
    core = SchedulerCore(topology=topology, settings=settings)
    with longest.watched(), core:
        _fill(core, LONG_RM, Heard())
        heard = Heard()
        _fill(core, OTHER_RM, heard)
        _ask(core, LONG_RM, operation.asks, IN_ONE)
        _settle(core)
        with frozen():
            longest.ns = 0
            work = Thread(target=operation.act, args=(core,))
            begin = time.perf_counter()
            work.start()
            waits: list[float] = []
            number = 0
            while work.is_alive() or not core.is_settled():
                heard.has_new.clear()
                asked = time.perf_counter()
                size = si.Resource.of({"vcore": 1})
                asks = (
                    si.AllocationAsk(
                        application_id=APP, allocation_key=f"small{number}", resource_ask=size
                    ),
                )
                core.update_allocation(si.AllocationRequest(rm_id=OTHER_RM, asks=asks))
                heard.has_new.wait(PATIENCE_S)
                waits.append(1000 * (time.perf_counter() - asked))
                number += 1
                time.sleep(0.002)
            took = time.perf_counter() - begin
    return Result(took, sorted(waits), longest.ns / 1e6, longest.what)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slices", description=__doc__)
    parser.add_argument("operations", nargs="*", metavar="OPERATION", help="a part of its name")
    parser.add_argument("--topology", choices=TOPOLOGIES, default="proposing")
    parser.add_argument("--served", action="store_true", help="in a process set up as by `serve`")
    parser.add_argument("--whole", action="store_true", help="do all in one slice")
    options: Any = parser.parse_args(arguments)
    print(f"{'operation':36}{'took':>8}{'p50':>9}{'p99':>9}{'worst':>11}  longest handler, CPU")
    for name, operation in OPERATIONS.items():
        if options.operations and not any(it in name for it in options.operations):
            continue
        slice_max = WHOLE if options.whole else Settings().slice_max
        with ExitStack() as served:
            if options.served:
                served.enter_context(BriefCollections())
                served.enter_context(short_turns())
            result = measure(operation, options.topology, slice_max)
        waits = result.waits_ms
        p99 = waits[int(0.99 * (len(waits) - 1))]
        print(
            f"{name:36}{result.took_s:6.1f} s{waits[len(waits) // 2]:6.1f} ms{p99:6.1f} ms"
            f"{waits[-1]:8.1f} ms  {result.longest_ms:.1f} ms: {result.longest}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
