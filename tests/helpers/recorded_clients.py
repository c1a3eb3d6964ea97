"""A resource manager in service, drawn from a seed, whose record is kept on its own side.

The record is that of the simulator and of scenarios (`checks/rm_record.py`). What lies between the
core and the client (encoding, streams, windows, a portal with its hosts) is judged with it.
"""

import re
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from random import Random
from typing import Any

from probes import wait_until

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.checks.rm_record import RmRecord
from yunikorn_actors.journal import Kept
from yunikorn_actors.machines.context import Context
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.tags import NODE_PARTITION

_T = si.TerminationType
ASKED_BACK = frozenset({_T.TIMEOUT, _T.PREEMPTED_BY_SCHEDULER, _T.PLACEHOLDER_REPLACED})


class Client(si.ResourceManagerCallback):
    """A resource manager that does anything, with the record of what it was notified of."""

    def __init__(
        self,
        core: si.SchedulerAPI,
        rm_id: str,
        seed: int,
        config: str,
        partitions: tuple[str, ...] = ("default",),
        queues: tuple[str, ...] = ("root.a", "root.b"),
    ) -> None:
        self.rm_id = rm_id
        self.record = RmRecord(rm_id, takes_states=True)
        self.faults: list[str] = []
        self.new: list[si.Allocation] = []
        self.withheld: Callable[[object], bool] = lambda _: False
        """What never comes to the record, as if the connection had lost it."""
        self._random = Random(seed)  # noqa: S311 - no secret
        self._lock = threading.Lock()
        self._asked_back: list[si.AllocationRelease] = []
        self._partitions, self._queues = partitions, queues
        self._core = core
        core.register_resource_manager(
            si.RegisterResourceManagerRequest(rm_id=rm_id, policy_group=rm_id, config=config), self
        )

    def differences(self, contexts: Iterable[tuple[SchedulerCore, Context]]) -> list[str]:
        """Compare the record with what the cores hold of it, while they stand still."""
        with ExitStack() as still:
            states: dict[str, PartitionState] = {}
            for core, context in contexts:
                still.enter_context(core.managers.order)
                own = {
                    name: it for name, it in context.partitions.items() if it.rm_id == self.rm_id
                }
                states.update((name, it.state) for name, it in own.items())
            still.enter_context(self._lock)
            return self.record.differences(states)

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

    def node(self, partition: str, name: str, action: si.ActionFromRM) -> None:
        info = si.NodeInfo(
            node_id=f"{self.rm_id}-{partition}-{name}",
            action=action,
            attributes={NODE_PARTITION: partition},
            schedulable_resource=si.Resource.of({"vcore": 8000}),
        )
        self._request(si.NodeRequest(rm_id=self.rm_id, nodes=(info,)))

    def begin(self) -> None:
        for partition in self._partitions:
            for name in ("n1", "n2"):
                self.node(partition, name, si.ActionFromRM.CREATE)
            for number in range(4):
                new = si.AddApplicationRequest(
                    application_id=f"{partition}-{number}",
                    partition_name=partition,
                    queue_name=self._queues[number % len(self._queues)],
                    ugi=si.UserGroupInformation(user="ann"),
                )
                self._request(si.ApplicationRequest(rm_id=self.rm_id, new=(new,)))

    def move(self) -> None:
        self._random.choice(
            (self._ask, self._ask, self._ask_later, self._release, self._cancel, self._answer,
             self._end, self._report, self._flap)
        )()  # fmt: skip

    def _of_app(self) -> dict[str, str]:
        partition = self._random.choice(self._partitions)
        return {
            "application_id": f"{partition}-{self._random.randrange(5)}",
            "partition_name": partition,
        }

    def _size(self) -> si.Resource:
        return si.Resource.of({"vcore": self._random.randrange(1, 6) * 1000})

    def _key(self) -> str:
        return f"k-{self._random.randrange(20)}"

    def _ask(self) -> None:
        asks = tuple(
            si.AllocationAsk(
                **self._of_app(),
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
            **self._of_app(), allocation_key=self._key(), resource_per_alloc=self._size()
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
                    partition_name=known.partition_name,
                    uuid=known.uuid,
                    allocation_key=known.allocation_key,
                    termination_type=_T.STOPPED_BY_RM,
                )
            )

    def _cancel(self) -> None:
        gone = si.AllocationAskRelease(
            **self._of_app(),
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
            gone = si.RemoveApplicationRequest(**self._of_app())
            self._request(si.ApplicationRequest(rm_id=self.rm_id, remove=(gone,)))

    def _report(self) -> None:
        of_app = self._of_app()
        item = si.Allocation(
            **of_app,
            allocation_key=f"old-{self._random.randrange(99)}",
            resource_per_alloc=si.Resource.of({"vcore": 1000}),
            uuid=f"{self.rm_id}-{self._random.randrange(1 << 30)}",
            node_id=f"{self.rm_id}-{of_app['partition_name']}-n1",
        )
        self._request(si.AllocationRequest(rm_id=self.rm_id, allocations=(item,)))

    def _flap(self) -> None:
        partition = self._random.choice(self._partitions)
        name, again = ("n2", "n3") if self._random.random() < 0.5 else ("n3", "n2")
        self.node(partition, name, si.ActionFromRM.DECOMISSION)
        if self._random.random() < 0.8:
            self.node(partition, again, si.ActionFromRM.CREATE)


def play(clients: list[Client], moves: int, between: Callable[[], None] | None = None) -> None:
    """Have all of them at work at the same time; the first one does more now and then."""

    def act(client: Client) -> None:
        client.begin()
        for number in range(moves):
            client.move()
            if between is not None and client is clients[0] and number % 25 == 24:
                between()

    threads = [threading.Thread(target=act, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def of_cores(*cores: SchedulerCore) -> list[tuple[SchedulerCore, Context]]:
    found = []
    for core in cores:
        machine = core._actors.machines()[CONTEXT]
        context = machine._context if isinstance(machine, Kept) else machine
        assert isinstance(context, Context)
        found.append((core, context))
    return found


def agree_in_the_end(client: Client, *cores: SchedulerCore, but: str = "$^") -> None:
    """What a core has sent may be on its way to the client for a while; `but` is not looked for."""

    def differences() -> list[str]:
        found = client.differences(of_cores(*cores))
        return [it for it in found if not re.match(but, it)]

    try:
        wait_until(lambda: all(it.is_settled() for it in cores) and not differences())
    except AssertionError:
        left = differences()
        assert not left, left
    assert not client.faults, client.faults
    assert client.new, "vacuous: nothing was placed"
