"""What a client in another process was notified of is the truth, at rest and in its own record.

The record is that of the simulator and of scenarios (`checks/rm_record.py`), kept on the client's
side of the connection: what the service's encoding, streams and windows do lies in between.
"""

import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

pytest.importorskip("grpc")
from fronting import quick_core
from probes import wait_until

from yunikorn_actors import RemoteCore, SchedulerCore, si
from yunikorn_actors.checks.rm_record import RmRecord
from yunikorn_actors.machines.context import Context
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.service.serving import Serving

_T = si.TerminationType
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
ASKED_BACK = frozenset({_T.TIMEOUT, _T.PREEMPTED_BY_SCHEDULER, _T.PLACEHOLDER_REPLACED})


class Client(si.ResourceManagerCallback):
    """A resource manager on its connection, with its record."""

    def __init__(self, address: str, rm_id: str, seed: int) -> None:
        self.rm_id = rm_id
        self.record = RmRecord(rm_id, takes_states=True)
        self.faults: list[str] = []
        self.new: list[si.Allocation] = []
        self.withheld: Callable[[object], bool] = lambda _: False
        """What never comes to the record, as if the connection had lost it."""
        self._random = Random(seed)  # noqa: S311 - no secret
        self._lock = threading.Lock()
        self._asked_back: list[si.AllocationRelease] = []
        self._core = RemoteCore(address).start()
        self._core.register_resource_manager(
            si.RegisterResourceManagerRequest(rm_id=rm_id, policy_group=rm_id, config=CONFIG), self
        )

    def close(self) -> None:
        self._core.stop()

    def _notified(self, response: object) -> None:
        if self.withheld(response):
            return
        with self._lock:
            self.faults.extend(self.record.notified(response))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._notified(response)
        with self._lock:
            self.new.extend(response.new)
            back = (it for it in response.released if it.termination_type in ASKED_BACK)
            self._asked_back.extend(back)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._notified(response)

    def update_node(self, response: si.NodeResponse) -> None:
        self._notified(response)

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self._notified(request)

    # -- requests

    def _request(self, request: Any) -> None:
        with self._lock:
            self.record.requested(request)
        send = {
            si.NodeRequest: self._core.update_node,
            si.ApplicationRequest: self._core.update_application,
            si.AllocationRequest: self._core.update_allocation,
        }
        send[type(request)](request)

    def node(self, name: str, action: si.ActionFromRM, vcore: int = 8) -> None:
        size = si.Resource.of({"vcore": vcore * 1000})
        info = si.NodeInfo(node_id=f"{self.rm_id}-{name}", action=action, schedulable_resource=size)
        self._request(si.NodeRequest(rm_id=self.rm_id, nodes=(info,)))

    def begin(self) -> None:
        for name in ("n1", "n2"):
            self.node(name, si.ActionFromRM.CREATE)
        for number in range(4):
            self.add(f"app-{number}", f"root.{'ab'[number % 2]}")

    def add(self, name: str, queue: str, **more: Any) -> None:
        new = si.AddApplicationRequest(
            application_id=name, queue_name=queue, ugi=si.UserGroupInformation(user="ann"), **more
        )
        self._request(si.ApplicationRequest(rm_id=self.rm_id, new=(new,)))

    def move(self) -> None:
        self._random.choice(
            (self._ask, self._ask, self._ask_later, self._release, self._cancel, self._answer,
             self._end, self._report, self._flap)
        )()  # fmt: skip

    def _app(self) -> str:
        return f"app-{self._random.randrange(5)}"

    def _size(self) -> si.Resource:
        return si.Resource.of({"vcore": self._random.randrange(1, 6) * 1000})

    def _key(self) -> str:
        return f"k-{self._random.randrange(20)}"

    def _ask(self) -> None:
        asks = tuple(
            si.AllocationAsk(
                application_id=self._app(),
                allocation_key=self._key(),
                resource_ask=self._size(),
                priority=self._random.randrange(3),
                preemption_policy=si.PreemptionPolicy(
                    allow_preempt_self=True, allow_preempt_other=self._random.random() < 0.5
                ),
            )
            for _ in range(self._random.randrange(1, 4))
        )
        self._request(si.AllocationRequest(rm_id=self.rm_id, asks=asks))

    def _ask_later(self) -> None:
        item = si.Allocation(
            allocation_key=self._key(), application_id=self._app(), resource_per_alloc=self._size()
        )
        self._request(si.AllocationRequest(rm_id=self.rm_id, allocations=(item,)))

    def _releases(self, *items: si.AllocationRelease) -> None:
        releases = si.AllocationReleasesRequest(allocations_to_release=items)
        self._request(si.AllocationRequest(rm_id=self.rm_id, releases=releases))

    def _release(self) -> None:
        with self._lock:
            known = self._random.choice(self.new) if self.new else None
        if known is not None:
            self._releases(
                si.AllocationRelease(
                    application_id=known.application_id,
                    uuid=known.uuid,
                    allocation_key=known.allocation_key,
                    termination_type=_T.STOPPED_BY_RM,
                )
            )

    def _cancel(self) -> None:
        gone = si.AllocationAskRelease(
            application_id=self._app(),
            allocation_key=self._key(),
            termination_type=_T.STOPPED_BY_RM,
        )
        releases = si.AllocationReleasesRequest(allocation_asks_to_release=(gone,))
        self._request(si.AllocationRequest(rm_id=self.rm_id, releases=releases))

    def _answer(self) -> None:
        with self._lock:
            asked_back, self._asked_back = self._asked_back, []
        if asked_back:
            self._releases(*asked_back)

    def _end(self) -> None:
        if self._random.random() < 0.2:
            gone = si.RemoveApplicationRequest(application_id=self._app())
            self._request(si.ApplicationRequest(rm_id=self.rm_id, remove=(gone,)))

    def _report(self) -> None:
        item = si.Allocation(
            allocation_key=f"old-{self._random.randrange(99)}",
            application_id=self._app(),
            resource_per_alloc=si.Resource.of({"vcore": 1000}),
            uuid=f"{self.rm_id}-{self._random.randrange(1 << 30)}",
            node_id=f"{self.rm_id}-n1",
        )
        self._request(si.AllocationRequest(rm_id=self.rm_id, allocations=(item,)))

    def _flap(self) -> None:
        name, again = ("n2", "n3") if self._random.random() < 0.5 else ("n3", "n2")
        self.node(name, si.ActionFromRM.DECOMISSION)
        if self._random.random() < 0.8:
            self.node(again, si.ActionFromRM.CREATE)


class Site:
    def __init__(self, core: SchedulerCore, address: str) -> None:
        self._core = core
        self._address = address
        self.clients: list[Client] = []

    def client(self, rm_id: str, seed: int) -> Client:
        client = Client(self._address, rm_id, seed)
        self.clients.append(client)
        return client

    def differences(self, client: Client) -> list[str]:
        """Compare its record with what the core holds of it, while the core stands still."""
        with self._core._order:
            context = self._core._shells.machines()[CONTEXT]
            assert isinstance(context, Context)
            states = {
                name: it.state
                for name, it in context.partitions.items()
                if it.rm_id == client.rm_id
            }
            with client._lock:
                return client.record.differences(states)

    def agrees(self, client: Client) -> bool:
        """What the core has sent may still be on its way to the client."""
        return self._core.is_settled() and not self.differences(client)


@pytest.fixture
def site(serve: Callable[..., Serving]) -> Iterator[Site]:
    core = quick_core(reservation_delay_ns=1_000_000, preemption_delay_ns=1_000_000)
    site = Site(core, serve(core).parts["grpc"].address)
    yield site
    for client in site.clients:
        client.close()


def play(clients: list[Client], moves: int) -> None:
    def act(client: Client) -> None:
        client.begin()
        for _ in range(moves):
            client.move()

    threads = [threading.Thread(target=act, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(it, marks=pytest.mark.slow) for it in range(2, 30))]
)
def test_at_rest_the_records_of_clients_are_the_truth(site: Site, seed: int) -> None:
    clients = [site.client(f"rm-{number}", 10 * seed + number) for number in range(3)]
    play(clients, 120)
    for client in clients:
        try:
            wait_until(lambda client=client: site.agrees(client))
        except AssertionError:
            assert [] == site.differences(client)
        assert [] == client.faults
        assert client.new, "vacuous: nothing was placed"


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
        if lost or not LOST[what](response):
            return False
        lost.append(response)
        return True

    client.withheld = withhold
    play([client], 60)
    wait_until(lambda: bool(lost))
    wait_until(site._core.is_settled)
    wait_until(lambda: bool(site.differences(client) or client.faults))
