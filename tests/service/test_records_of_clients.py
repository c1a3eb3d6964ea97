"""What a client in another process was notified of is the truth, at rest and in its own record."""

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("grpc")
from fronting import quick_core
from probes import wait_until
from recorded_clients import Client, agree_in_the_end, of_cores, play

from yunikorn_actors import RemoteCore, SchedulerCore, si
from yunikorn_actors.service.service import Serving

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: a, resources: {max: {vcore: 6}}}
          - {name: b, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1ms}}
"""


class Site:
    def __init__(self, core: SchedulerCore, address: str) -> None:
        self.core = core
        self._address = address
        self._opened: list[RemoteCore] = []

    def client(self, rm_id: str, seed: int) -> Client:
        self._opened.append(RemoteCore(self._address).start())
        return Client(self._opened[-1], rm_id, seed, CONFIG)

    def close(self) -> None:
        for it in self._opened:
            it.stop()


@pytest.fixture
def site(serve: Callable[..., Serving]) -> Iterator[Site]:
    core = quick_core(reservation_delay_ns=1_000_000, preemption_delay_ns=1_000_000)
    site = Site(core, serve(core).parts["grpc"].address)
    yield site
    site.close()


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(it, marks=pytest.mark.slow) for it in range(2, 30))]
)
def test_at_rest_the_records_of_clients_are_the_truth(site: Site, seed: int) -> None:
    clients = [site.client(f"rm-{number}", 10 * seed + number) for number in range(3)]
    play(clients, 120)
    for client in clients:
        agree_in_the_end(client, site.core)


LOST = {
    "an allocation": lambda it: isinstance(it, si.AllocationResponse) and it.new,
    "a release": lambda it: isinstance(it, si.AllocationResponse) and it.released,
    "a rejection": lambda it: isinstance(it, si.AllocationResponse) and it.rejected,
    "an application": lambda it: isinstance(it, si.ApplicationResponse) and it.accepted,
    "a node": lambda it: isinstance(it, si.NodeResponse) and it.accepted,
}


@pytest.mark.parametrize("what", LOST)
def test_what_is_lost_on_the_way_shows(site: Site, what: str) -> None:
    client = site.client("rm-1", 7)
    lost = []

    def withhold(response: object) -> bool:
        # Each of this kind: what becomes of the first alone may be settled by what follows.
        if not LOST[what](response):
            return False
        lost.append(response)
        return True

    client.withheld = withhold
    play([client], 60)
    wait_until(lambda: bool(lost))
    wait_until(site.core.is_settled)
    wait_until(lambda: bool(client.differences(of_cores(site.core)) or client.faults))
