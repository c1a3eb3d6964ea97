"""Ten thousand streams and connections at one time: who behaves is served, and nothing piles up."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("grpc")
from calling import PATIENCE_S, SCHEDULER, Caller, application, asks, node
from commands import Running, held, starting
from probes import wait_until
from raw_http2 import PREFACE, Hoarder

from yunikorn_actors import si

MANY = 10_000
TALKERS = 900
"""Connections with streams: nearly as many as are let in."""
STREAMS = 10
"""Of each of them."""
SPARE = 500
"""Descriptors that the test itself needs."""
MB = 1 << 20
MEMORY_MAX = 1 << 19
"""Kilobytes that may come on."""
THREADS_MAX = 40

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def running() -> Iterator[Running]:
    """A service of its own process, with as many descriptors as the system lets it have."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    try:
        with starting() as start:
            yield start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def half_open(stack: ExitStack, address: str, number: int) -> None:
    """A connection that says nothing, or no more than what it speaks."""
    host, _, port = address.rpartition(":")
    connection = stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))
    if number % 2:
        try:
            connection.sendall(PREFACE)
        except OSError:  # it was closed at once, for there are too many
            return


def talker(stack: ExitStack, address: str) -> None:
    """A connection with streams of which each has begun a message."""
    hoarder = stack.enter_context(Hoarder(address, PATIENCE_S))
    for stream in range(1, 2 * STREAMS, 2):
        hoarder.call(stream, f"{SCHEDULER}/UpdateAllocation")
        hoarder.send(stream, 1_000, of=MB)


def test_ten_thousand_streams_and_connections_harm_nobody(running: Running) -> None:
    address, pid = running.address, running.process.pid
    most = min(MANY, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE)
    with Caller(address) as caller:
        caller.register("rm-1")
        nodes = caller.nodes().say(node("rm-1"))
        assert nodes.hear(si.NodeResponse).accepted
        applications = caller.applications().say(application("rm-1"))
        assert applications.hear(si.ApplicationResponse).accepted
        allocations = caller.allocations()
        before = held(pid)
        with ExitStack() as crowd:
            for _ in range(TALKERS):
                talker(crowd, address)
            for number in range(most - TALKERS):
                half_open(crowd, address, number)
            told = allocations.say(asks("rm-1", "a")).hear(si.AllocationResponse)
            assert ["a"] == [it.allocation_key for it in told.new]
            during = held(pid)
            assert during.memory - before.memory < MEMORY_MAX
            assert during.threads - before.threads < THREADS_MAX
        wait_until(lambda: held(pid).descriptors < SPARE)
        told = allocations.say(asks("rm-1", "b")).hear(si.AllocationResponse)
        assert ["b"] == [it.allocation_key for it in told.new]
