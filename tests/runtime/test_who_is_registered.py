"""Calls that change who is registered, two at once: both see the same order, and so does the core.

A resource manager that was accepted has its requests handled; another one gets an error at the call.
With the smallest switch interval the two threads take turns at nearly every step.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Any

import pytest
from probes import PATIENCE_S, add_nodes, register, wait_until
from support import RM, Recorder

from yunikorn_actors import SchedulerCore, UnknownResourceManager, si
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.messages.base import RM_PROXY

TRIES = 60
"""At this number each of the two orders was always seen."""
TRIES_MAX = 2_000
LATE_S = 0.0001
LATENESSES = 20
"""A registration does much before it is sent: the other call must be able to come after that."""


def _lose(core: SchedulerCore, _: Recorder) -> None:
    core.resource_manager_lost(RM)


def _leave(core: SchedulerCore, _: Recorder) -> None:
    core.unregister_resource_manager(RM)


CALLS: dict[str, Callable[[SchedulerCore, Recorder], None]] = {
    "register": register,
    "lose": _lose,
    "leave": _leave,
}
PAIRS = list(combinations_with_replacement(CALLS, 2))


@pytest.fixture
def _many_turns() -> Iterator[None]:
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(former)


def _at_once(
    core: SchedulerCore, calls: tuple[str, str], voices: list[Recorder], late_s: float
) -> list[str]:
    """Make both calls, the second a little late; return those that were refused."""
    barrier, refused = threading.Barrier(2), list[str]()

    def make(name: str, voice: Recorder) -> None:
        barrier.wait(PATIENCE_S)
        if voice is voices[1]:
            time.sleep(late_s)
        try:
            CALLS[name](core, voice)
        except UnknownResourceManager:
            refused.append(name)

    threads = [threading.Thread(target=make, args=it) for it in zip(calls, voices, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    return refused


def _outcome(core: SchedulerCore, voices: list[Recorder]) -> str:
    """Say who is registered; the gateway, RmProxy and Context must be of one mind."""
    try:
        add_nodes(core, "n1")
    except UnknownResourceManager:
        wait_until(core.is_settled)
        assert not _proxy(core).deliveries
        manager = core.state_dump()["managers"].get(RM, {"state": "gone"})
        assert manager["state"] in {"Paused", "gone"}
        return str(manager["state"])
    wait_until(core.is_settled)
    heard = [number for number, voice in enumerate(voices) if voice.told("node")]
    assert len(heard) == 1, f"taken without an error, and heard of by {heard}"
    assert core.state_dump()["managers"][RM]["state"] == "Running"
    return f"registered by {heard[0]}"


def _proxy(core: SchedulerCore) -> RmProxy:
    machine: Any = core._actors.machines()[RM_PROXY]
    assert isinstance(machine, RmProxy)
    return machine


def _both_orders(calls: tuple[str, str]) -> set[str]:
    """How the outcome of each order looks."""
    match calls:
        case ("register", "register"):
            return {"registered by 0", "registered by 1"}
        case ("register", "lose"):
            return {"registered by 0", "Paused"}
        case ("register", "leave"):
            return {"registered by 0", "gone"}
        case ("lose", "leave"):
            return {"gone", "gone, lose refused"}
        case ("lose", "lose"):
            return {"Paused, lose refused"}
        case _:
            return {"gone"}


@pytest.mark.usefixtures("_many_turns")
@pytest.mark.parametrize("calls", PAIRS, ids=" and ".join)
def test_two_at_once(calls: tuple[str, str]) -> None:
    seen: set[str] = set()
    with SchedulerCore() as core:
        for attempt in range(TRIES_MAX):
            if attempt >= TRIES and seen == _both_orders(calls):
                return
            register(core, Recorder())
            voices = [Recorder(), Recorder()]
            refused = _at_once(core, calls, voices, attempt % LATENESSES * LATE_S)
            outcome = _outcome(core, voices)
            seen.add(", ".join([outcome, *(f"{name} refused" for name in refused)]))
            assert seen <= _both_orders(calls)
    assert seen == _both_orders(calls), "vacuous: one of the orders never came"


def test_nothing_is_kept_of_managers_that_have_left() -> None:
    """Names may be ever new: a service would grow by each of them."""
    with SchedulerCore() as core:
        for number in range(3):
            wishes = {"log.level": "DEBUG"} if number else {}
            request = si.RegisterResourceManagerRequest(rm_id=f"rm-{number}", extra_config=wishes)
            core.register_resource_manager(request, Recorder())
        assert {"rm-1", "rm-2"} == set(core._extras)
        for number in range(3):
            core.unregister_resource_manager(f"rm-{number}")
        wait_until(core.is_settled)
        assert {} == core._extras
