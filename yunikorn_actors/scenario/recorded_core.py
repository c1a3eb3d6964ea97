"""A core in service that keeps a record for each resource manager, and compares it with the truth.

Requests are noted in the order in which RmProxy gets them, notifications before the callback has
them. On threads nobody sees when a fact comes about, so the record is compared while nothing is on
its way, and what is wrong with a single notification is kept until then.
"""

from functools import partial
from typing import Any, Protocol

from yunikorn_actors import si
from yunikorn_actors.checks.registrations import Registrations
from yunikorn_actors.core.registered_managers import StandIn, overrides
from yunikorn_actors.drivers.simulator.notice_checks import states_of
from yunikorn_actors.machines.context import Context
from yunikorn_actors.messages.base import CONTEXT, RM_PROXY, Message
from yunikorn_actors.runtime.scheduler_core import SchedulerCore


class RecordedCore(SchedulerCore):
    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - those of a core
        super().__init__(**options)
        self._records = Registrations()
        self._faults: list[str] = []

    def faults(self) -> list[str]:
        """Return what is wrong with what was notified; ask for it while nothing is on its way."""
        with self.managers.order:
            context = self._actors.machines()[CONTEXT]
            assert isinstance(context, Context)
            faults, self._faults = self._faults, []
            self._records.forget_former()
            return [*faults, *self._records.differences(partial(states_of, context))]

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
    ) -> si.RegisterResourceManagerResponse:
        recorded = Recorded(self, callback) if _is_callback(callback) else callback
        try:
            response = super().register_resource_manager(request, recorded)
        except BaseException:
            with self.managers.order:
                self._records.refused(request.rm_id, getattr(recorded, "address", ""))
            raise
        with self.managers.order:
            self._records.registered(request.rm_id, getattr(recorded, "address", ""))
        return response

    def notified(self, address: str, response: object) -> None:
        """Note what arrives at a callback; one of a former registration may still get something."""
        with self.managers.order:
            record = self._records.records.get(address)
            if record is not None:
                self._faults.extend(record.notified(response))

    def _post(self, address: str, message: Message, stimulus: str) -> None:
        if address == RM_PROXY:
            # Callers of some requests hold no lock, and callbacks come on threads of their own.
            with self.managers.order:
                self._records.sent(message)
        super()._post(address, message, stimulus)

    def _open_callback(self, address: str, callback: si.ResourceManagerCallback) -> None:
        if isinstance(callback, Recorded):
            callback.address = address
        super()._open_callback(address, callback)


class Notes(Protocol):
    """What keeps the records."""

    def notified(self, address: str, response: object) -> None: ...


class Recorded(StandIn):
    """Stands in front of the callback of one registration."""

    def __init__(self, core: Notes, callback: si.ResourceManagerCallback) -> None:
        self.address = ""
        self.callback = callback
        self._core = core

    def answers(self, method: str) -> bool:
        return overrides(self.callback, method)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._core.notified(self.address, response)
        self.callback.update_allocation(response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._core.notified(self.address, response)
        self.callback.update_application(response)

    def update_node(self, response: si.NodeResponse) -> None:
        self._core.notified(self.address, response)
        self.callback.update_node(response)

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self._core.notified(self.address, request)
        self.callback.update_container_scheduling_state(request)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return self.callback.predicates(args)

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        return self.callback.preemption_predicates(args)

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        self.callback.send_event(events)

    def get_state_dump(self) -> str:
        return self.callback.get_state_dump()


def _is_callback(callback: object) -> bool:
    return isinstance(callback, si.ResourceManagerCallback)
