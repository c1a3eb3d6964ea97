"""A resource manager that comes and goes, over and over: what the service holds stays the same."""

import threading

import pytest

pytest.importorskip("grpc")
from calling import EXTENSION, Caller, application, asks, node
from commands import held, starting
from probes import wait_until

from yunikorn_actors import si
from yunikorn_actors.service.rpc import messages as m

RM = "rm-1"
ASKS = 20
MEMORY_MAX = 32 << 10
"""Kilobytes that may come on, once the book of events is full: allocators keep some."""


def live(address: str, life: int) -> None:
    """Come, have work placed, and go: by a word, or without one."""
    keys = [f"ask-{life}-{n}" for n in range(ASKS)]
    with Caller(address) as caller:
        caller.register(RM, event_ringBufferCapacity="1000")
        assert caller.nodes().say(node(RM)).hear(si.NodeResponse).accepted
        assert caller.applications().say(application(RM)).hear(si.ApplicationResponse).accepted
        allocations = caller.allocations().say(asks(RM, *keys))
        placed: set[str] = set()
        while len(placed) < ASKS:
            told = allocations.hear(si.AllocationResponse)
            placed.update(it.allocation_key for it in told.new)
        if life % 3 == 0:
            caller.call(f"{EXTENSION}/Unregister", m.ResourceManager(rm_id=RM))


@pytest.mark.parametrize(
    "lives", [15, pytest.param(5_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_what_the_service_holds_stays_the_same(lives: int) -> None:
    with starting() as start:
        running = start(rest=True)
        assert running.process.stderr is not None
        threading.Thread(target=running.process.stderr.read, daemon=True).start()
        for life in range(lives // 3):
            live(running.address, life)
        before = held(running.process.pid)
        for life in range(lives // 3, lives):
            live(running.address, life)
        # One more or less may be on its way out, then as now.
        wait_until(lambda: held(running.process.pid).threads <= before.threads + 2)
        wait_until(lambda: held(running.process.pid).descriptors <= before.descriptors + 1)
        assert held(running.process.pid).memory - before.memory < MEMORY_MAX
