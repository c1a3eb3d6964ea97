"""Back pressure on threads: towards a slow callback, and towards a caller who is too fast."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from looping import Gate
from probes import PATIENCE_S, add_nodes, wait_until
from support import APP, CONFIG, RM, Recorder, ask

from yunikorn_actors import CoreError, CoreStopped, SchedulerCore, UnknownResourceManager, si
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.rm_events import RequestsMarked
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

MOST = 6


class Sluggish(Recorder):
    """Stays in its first allocation until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.is_inside = threading.Event()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.is_inside.set()
        assert self.go.wait(PATIENCE_S)
        super().update_allocation(response)


def register(core: SchedulerCore, rm: Recorder, **extra: str) -> None:
    names = {"undelivered": "rm.maxUndelivered", "unhandled": "rm.maxUnhandled"}
    request = si.RegisterResourceManagerRequest(
        rm_id=RM, config=CONFIG, extra_config={names[name]: text for name, text in extra.items()}
    )
    core.register_resource_manager(request, rm)


def submit(core: SchedulerCore, name: str = APP) -> None:
    ugi = si.UserGroupInformation(user="bob")
    new = si.AddApplicationRequest(application_id=name, queue_name="root.default", ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))


def ask_for(core: SchedulerCore, key: str) -> None:
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask(key),)))


def partition(core: SchedulerCore) -> dict[str, object]:
    state: dict[str, object] = core.state_dump()["partitions"]["[rm-1]default"]
    return state


def decided_or_held(core: SchedulerCore, allocations: int) -> bool:
    state = partition(core)
    return state["held"] is True or state["allocations"] == allocations


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_slow_callback_is_waited_for_and_loses_nothing(
    topology: TopologyName, tmp_path: Path
) -> None:
    trace = tmp_path / "run.trace"
    keys = [f"k{number}" for number in range(10 * MOST)]
    rm = Sluggish()
    with SchedulerCore(topology=topology, trace=trace) as core:
        register(core, rm, undelivered=str(MOST))
        add_nodes(core, *(f"n{number}" for number in range(10)))
        submit(core)
        for number, key in enumerate(keys, start=1):
            ask_for(core, key)
            wait_until(partial(decided_or_held, core, number))
        held = partition(core)
        assert held["held"], "vacuous: it was never too far behind"
        assert held["allocations"] != len(keys)
        rm.go.set()
        wait_until(lambda: len(rm.told("new")) == len(keys))
        wait_until(core.is_settled)
        assert not partition(core)["held"]
    assert sorted(keys) == sorted(key for key, _ in rm.told("new"))
    with TraceReader(trace) as reader:
        assert replay(reader).difference is None


class Fast(threading.Thread):
    """Talks without a pause."""

    def __init__(self, core: SchedulerCore, count: int) -> None:
        super().__init__(daemon=True)
        self._core = core
        self._count = count
        self.said = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            for number in range(self._count):
                ask_for(self._core, f"k{number}")
                self.said += 1
        except CoreError as error:
            self.error = error


def closed(core: SchedulerCore) -> Gate:
    shell = core._actors.by_address[CONTEXT]
    shell.holder = gate = Gate(shell.holder)
    return gate


def test_a_caller_who_is_too_far_ahead_waits() -> None:
    rm = Recorder()
    with SchedulerCore() as core:
        register(core, rm, unhandled=str(MOST))
        wait_until(core.is_settled)
        gate = closed(core)
        caller = Fast(core, 5 * MOST)
        caller.start()
        wait_until(lambda: caller.said == MOST + 1)
        caller.join(0.05)
        assert caller.is_alive()
        assert caller.said == MOST + 1
        gate.let_go()
        caller.join(PATIENCE_S)
        assert caller.said == 5 * MOST
        wait_until(lambda: len(rm.told("rejected")) == 5 * MOST)


def waiting(core: SchedulerCore) -> int:
    """How many messages wait in mailboxes."""
    shells = core._actors._known
    return sum(shell.received - shell.handled for shell in shells)


def test_refusals_that_nobody_takes_hold_up_the_caller() -> None:
    """They are answered, and count as unhandled until the answers have been taken."""
    rm = Sluggish()
    with SchedulerCore() as core:
        register(core, rm, unhandled=str(MOST))
        caller = Fast(core, 50 * MOST)
        caller.start()
        wait_until(lambda: caller.said == MOST + 1)
        wait_until(lambda: core.state_dump()["partitions"])
        caller.join(0.05)
        assert caller.is_alive()
        assert caller.said == MOST + 1
        assert waiting(core) <= 3 * MOST
        rm.go.set()
        caller.join(PATIENCE_S)
        assert caller.said == 50 * MOST
        wait_until(lambda: len(rm.told("rejected")) == 50 * MOST)


CUTS: dict[str, Callable[[SchedulerCore], None]] = {
    "registered anew": lambda core: register(core, Recorder(), unhandled=str(MOST)),
    "lost": lambda core: core.resource_manager_lost(RM),
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_what_a_former_callback_has_not_taken_counts_no_more(
    cut: Callable[[SchedulerCore], None],
) -> None:
    rm = Sluggish()
    with SchedulerCore() as core:
        register(core, rm, unhandled=str(MOST))
        caller = Fast(core, 2 * MOST)
        caller.start()
        wait_until(lambda: caller.said == MOST + 1)
        cut(core)
        caller.join(PATIENCE_S)
        assert not caller.is_alive()
        rm.go.set()


ENDS: dict[str, tuple[Callable[[SchedulerCore], None], type[CoreError]]] = {
    "stopped": (lambda core: core.stop(0.1), CoreStopped),
    "lost": (lambda core: core.resource_manager_lost(RM), UnknownResourceManager),
    "unregistered": (
        lambda core: core.unregister_resource_manager(RM),
        UnknownResourceManager,
    ),
}


@pytest.mark.parametrize(("end", "error"), ENDS.values(), ids=ENDS)
def test_a_caller_who_waits_is_let_go_at_the_end(
    end: Callable[[SchedulerCore], None], error: type[CoreError]
) -> None:
    """And is told why: nothing that was not taken looks as if it had been."""
    with SchedulerCore() as core:
        register(core, Recorder(), unhandled=str(MOST))
        wait_until(core.is_settled)
        gate = closed(core)
        caller = Fast(core, MOST + 2)
        caller.start()
        wait_until(lambda: caller.said == MOST + 1)
        end(core)
        caller.join(PATIENCE_S)
        assert not caller.is_alive()
        assert type(caller.error) is error
        assert caller.said == MOST + 1
        gate.let_go()


class Interrupted(SchedulerCore):
    """A handler of signals calls the core in the middle of a call."""

    is_interrupted = False

    def _post(self, address: str, message: Message, stimulus: str) -> None:
        if not isinstance(message, RequestsMarked) or self.is_interrupted:
            super()._post(address, message, stimulus)
            return
        self.is_interrupted = True
        for number in range(MOST):
            ask_for(self, f"handler {number}")
        super()._post(address, message, stimulus)
        wait_until(self.is_settled)


def test_a_mark_that_was_overtaken_takes_nothing_back() -> None:
    """Marks of the handler are sent before that of the call which it interrupted."""
    with Interrupted() as core:
        register(core, Recorder(), unhandled="1")
        caller = Fast(core, 3)
        caller.start()
        caller.join(PATIENCE_S)
        assert core.is_interrupted
        assert not caller.is_alive()


class Chatty(Recorder):
    """Says more than it may, from inside the callback."""

    def __init__(self, core: SchedulerCore) -> None:
        super().__init__()
        self._core = core
        self.said = 0

    def update_node(self, response: si.NodeResponse) -> None:
        for number in range(5 * MOST):
            ask_for(self._core, f"k{number}")
            self.said += 1
        super().update_node(response)


def test_a_callback_never_waits() -> None:
    with SchedulerCore() as core:
        rm = Chatty(core)
        register(core, rm, unhandled="1")
        add_nodes(core, "n1")
        wait_until(lambda: rm.said > 0)
        gate = closed(core)
        wait_until(lambda: rm.told("node"))
        assert rm.said == 5 * MOST
        gate.let_go()
        wait_until(lambda: len(rm.told("rejected")) == 5 * MOST)
