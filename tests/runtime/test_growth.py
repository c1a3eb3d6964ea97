"""What comes and goes leaves nothing: registrations, refusals, callers."""

import gc
import threading
import weakref

import pykka
import pytest
from probes import PATIENCE_S, Notebook, add_nodes, probed_core, register, wait_until
from support import CONFIG, Recorder

from yunikorn_actors import CoreError, CoreStopped, NoReply, Refused, SchedulerCore, si
from yunikorn_actors.drivers.live.actors import Actor
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import EVENT_PUBLISHER, RM_PROXY
from yunikorn_actors.runtime import scheduler_core as system

TIMES = 200
SLACK = 3
"""Those of the last registration that have ended are still known."""


def sizes(core: SchedulerCore) -> tuple[int, int, int, int]:
    shells = core._actors
    return (
        len(shells._known),
        len(shells.by_address),
        threading.active_count(),
        len(pykka.ActorRegistry.get_by_class(Actor)),
    )


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_registering_again_and_again_leaves_nothing(topology: TopologyName) -> None:
    with SchedulerCore(topology=topology) as core:
        callbacks: list[weakref.ref[Recorder]] = []
        register(core, Recorder())
        wait_until(core.is_settled)
        before, handled = sizes(core), core.handled
        for number in range(TIMES):
            rm = Recorder()
            callbacks.append(weakref.ref(rm))
            register(core, rm)
            add_nodes(core, f"n{number}")
        wait_until(lambda: core.is_settled() and threading.active_count() == before[2])
        assert core.handled > handled + 5 * TIMES
        handled = core.handled
        core._actors._forget_ended()
        assert handled == core.handled
        # Those that have ended are forgotten when another one starts.
        register(core, rm)
        wait_until(lambda: core.is_settled() and threading.active_count() == before[2])
        assert all(now - then <= SLACK for now, then in zip(sizes(core), before, strict=True))
        gc.collect()
        assert len([callback for callback in callbacks if callback() is not None]) <= SLACK


def test_a_registration_without_an_answer_leaves_no_callback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(system, "REPLY_TIMEOUT_S", 0.0)
    with probed_core(Notebook(), replaced=(RM_PROXY,)) as core:
        before = sizes(core)
        for _ in range(20):
            with pytest.raises(NoReply):
                register(core, Recorder())
        wait_until(lambda: sizes(core)[1:] == before[1:])


def test_a_refused_registration_leaves_no_callback() -> None:
    """Of one policy group, with another configuration than the others."""
    other = CONFIG.replace("name: default}]", "name: other}]")
    with SchedulerCore() as core:
        register(core, Recorder())
        wait_until(core.is_settled)
        before = sizes(core)
        for _ in range(20):
            request = si.RegisterResourceManagerRequest(rm_id="rm-2", config=other)
            with pytest.raises(Refused):
                core.register_resource_manager(request, Recorder())
        wait_until(lambda: sizes(core)[1:] == before[1:])


def test_whoever_was_answered_leaves_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does whoever has given up."""
    with probed_core(Notebook(), replaced=(EVENT_PUBLISHER,)) as core:
        register(core, Recorder())
        for _ in range(20):
            core.state_dump()
        monkeypatch.setattr(system, "REPLY_TIMEOUT_S", 0.0)
        with pytest.raises(NoReply):
            core.events()
        assert core._replies._slots == {}


def test_many_callers_at_once() -> None:
    callers, times = 8, 50
    rm = Recorder()
    with SchedulerCore() as core:
        register(core, rm)

        def call(caller: int) -> None:
            for number in range(times):
                add_nodes(core, f"{caller}-{number}")
                if number % 10 == 0:
                    core.state_dump()

        _run([threading.Thread(target=call, args=(caller,)) for caller in range(callers)])
        wait_until(lambda: len(rm.told("node")) == callers * times)
        wait_until(core.is_settled)
    names = [name for name, _ in rm.told("node")]
    for caller in range(callers):
        expected = [f"{caller}-{number}" for number in range(times)]
        assert expected == [name for name in names if name.startswith(f"{caller}-")]


def test_callers_of_a_core_that_is_stopped_meanwhile() -> None:
    """Each call is taken, or raises CoreStopped; nobody waits for ever."""
    for _ in range(10):
        core = SchedulerCore().start()
        register(core, Recorder())
        raised: list[type[BaseException]] = []
        calling = threading.Semaphore(0)

        def call(
            core: SchedulerCore = core,
            raised: list[type[BaseException]] = raised,
            calling: threading.Semaphore = calling,
        ) -> None:
            try:
                while True:
                    add_nodes(core, "n1")
                    core.state_dump()
                    register(core, Recorder(), f"rm-{threading.get_ident()}")
                    calling.release()
            except CoreError as error:
                raised.append(type(error))

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert calling.acquire(timeout=PATIENCE_S)
        core.stop(PATIENCE_S)
        for thread in threads:
            thread.join(PATIENCE_S)
        assert [CoreStopped] * 4 == raised


def _run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
