"""Recorded runs: of the simulator, of threads, and written by hand."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pytest

import yunikorn_actors.drivers.live.dispatcher
from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.core.entry import Gateway
from yunikorn_actors.drivers.live.clock import RealClock
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS, Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import CONTEXT, RM_PROXY, Cause, Delivery, Message
from yunikorn_actors.recording.recorder import FileRecorder, TraceSettings
from yunikorn_actors.runtime.scheduler_core import CoreDriver
from yunikorn_actors.values.durations import SECOND

RM = "rm-1"
CONFIG = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
INSTANCE = "core"
SUBMITTERS = 3
ASKS = 40
NEVER_RELEASED = 3
TOGETHER = 8
WAIT_S = 20.0


# -- what a resource manager says


class Silent(si.ResourceManagerCallback):
    """Hears everything and does nothing."""


def register(core: Gateway) -> None:
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
    core.register_resource_manager(request, Silent())


def node(core: Gateway, name: str, action: si.ActionFromRM, vcore: int | None = None) -> None:
    size = None if vcore is None else si.Resource.of({"vcore": vcore})
    info = si.NodeInfo(node_id=name, action=action, schedulable_resource=size)
    core.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))


def submit(core: Gateway, name: str) -> None:
    ugi = si.UserGroupInformation(user="bob")
    new = si.AddApplicationRequest(application_id=name, queue_name="root.default", ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))


def remove(core: Gateway, name: str) -> None:
    gone = si.RemoveApplicationRequest(application_id=name)
    core.update_application(si.ApplicationRequest(rm_id=RM, remove=(gone,)))


def ask(core: Gateway, app: str, *keys: str, vcore: int = 1) -> None:
    amount = si.Resource.of({"vcore": vcore})
    asks = tuple(
        si.AllocationAsk(application_id=app, allocation_key=key, resource_ask=amount)
        for key in keys
    )
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))


def release(core: Gateway, app: str, *keys: str) -> None:
    gone = tuple(si.AllocationRelease(application_id=app, allocation_key=key) for key in keys)
    releases = si.AllocationReleasesRequest(allocations_to_release=gone)
    core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))


# -- runs


class Tape:
    """Stands among the checkers of a simulated run and records what is delivered."""

    def __init__(self, path: Path, topology: TopologyName, seed: int, **fields: Any) -> None:
        head = header(topology=topology, seed=seed, **fields)
        self.recorder = FileRecorder(TraceSettings(path=path), head)
        self.messages = 0

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:  # noqa: ARG002
        self.recorder.add(delivery)
        self.messages += 1

    def end(self, simulator: Simulator) -> None:
        states = simulator.states()
        digests = {name: self.recorder.digest_of(it) for name, it in states.items()}
        self.recorder.close({"states": digests})


def simulate(path: Path, topology: TopologyName = "proposing", seed: int = 0) -> Path:
    """A life of a cluster: work comes and goes, nodes too, timers fire, questions are asked."""
    tape = Tape(path, topology, seed)
    core = Simulator(
        Topology(topology, settings=Settings(), instance=INSTANCE),
        chooser=chooser_of(seed),
        checkers=(tape,),
    )
    register(core)
    node(core, "n1", si.ActionFromRM.CREATE, 8)
    node(core, "n2", si.ActionFromRM.CREATE, 4)
    submit(core, "app-1")
    submit(core, "app-2")
    ask(core, "app-1", "a", "b", "c", vcore=3)
    ask(core, "app-2", "d", "e")
    core.settle()
    release(core, "app-1", "a")
    ask(core, "nobody", "f")
    node(core, "n2", si.ActionFromRM.DECOMISSION)
    core.settle()
    remove(core, "app-2")
    core.advance(60 * SECOND)
    release(core, "app-1", "b", "c")
    core.advance(60 * SECOND)
    core.state_dump()
    core.events()
    register(core)
    node(core, "n1", si.ActionFromRM.CREATE, 2)
    core.settle()
    tape.end(core)
    return path


def handled_together(core: SchedulerCore, request: Callable[[], None]) -> None:
    """Have Context handle the messages of a request together, however fast or slow the threads are.

    The machines stand still until all of it waits for RmProxy, whose slice then takes all of it.
    """
    dispatcher = core._dispatcher
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yunikorn_actors.drivers.live.dispatcher, "SLICE_NS", int(WAIT_S * SECOND))
        with dispatcher._hold:
            request()
        dispatcher.go_on()
        _await(core.is_settled)


def in_service(
    path: Path,
    topology: TopologyName = "proposing",
    driver: CoreDriver = "threads",
    schedulers: int = 1,
) -> Path:
    """Several threads submit at the same time; the clock is fast, so that timers fire.

    Some of it is handled together for certain; by themselves the threads may always be in time.
    """
    clock = RealClock(100)
    with SchedulerCore(
        driver=driver, topology=topology, schedulers=schedulers, trace=path, clock=clock
    ) as core:
        register(core)
        for number in range(4):
            node(core, f"n{number}", si.ActionFromRM.CREATE, 5)
        submit(core, "app-together")
        handled_together(core, lambda: _submit_together(core))
        round_ = threading.Barrier(SUBMITTERS)
        threads = [
            threading.Thread(target=_submit_much, args=(core, f"app-{number}", round_))
            for number in range(SUBMITTERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pushed_ns = core.clock.now_ns() + 2 * Settings().event_push_ns
        _await(lambda: core.is_settled() and core.clock.now_ns() > pushed_ns)
        core.state_dump()
    return path


def _submit_together(core: SchedulerCore) -> None:
    for number in range(TOGETHER):
        ask(core, "app-together", f"together-{number}")
        release(core, "app-together", f"together-{number - 1}")


def _submit_much(core: SchedulerCore, app: str, round_: threading.Barrier) -> None:
    """Wait for the others before each request, so that all of them come at the same time."""
    submit(core, app)
    for number in range(ASKS):
        round_.wait(WAIT_S)
        ask(core, app, f"{app}-{number}")
        release(core, app, f"{app}-{number - NEVER_RELEASED}")


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the core did not come to rest"
        time.sleep(0.005)


# -- files


def header(**fields: Any) -> dict[str, Any]:
    return {
        "topology": "proposing",
        "driver": "sim",
        "seed": 0,
        "instance": INSTANCE,
        "settings": msgspec.to_builtins(Settings()),
        "start_ns": EPOCH_NS,
        **fields,
    }


def write(path: Path, *messages: Message, whole: bool = True, **fields: Any) -> Path:
    """Write a trace by hand: each message goes from RmProxy to Context, on its own behalf."""
    recorder = FileRecorder(TraceSettings(path=path), header(**fields))
    for number, message in enumerate(messages, start=1):
        recorder.add(_delivery(number, message))
    recorder.close({"states": {}})
    if not whole:
        footer = msgspec.msgpack.encode({"record": "footer", "states": {}})
        path.write_bytes(path.read_bytes().removesuffix(footer))
    return path


def _delivery(number: int, message: Message) -> Delivery:
    cause = Cause(RM_PROXY, number + 1)
    at_ns = EPOCH_NS + number * 1_500_000
    return Delivery(CONTEXT, number, RM_PROXY, cause, f"node-{number}", at_ns, message)


def records(path: Path) -> list[dict[str, Any]]:
    """All records as plain values."""
    with path.open("rb") as file:
        return list(msgpack.Unpacker(file))


def rewrite(path: Path, changed: list[dict[str, Any]]) -> None:
    path.write_bytes(b"".join(msgspec.msgpack.encode(record) for record in changed))
