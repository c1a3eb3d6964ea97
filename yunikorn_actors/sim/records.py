"""The checker of what resource managers are notified of: it keeps a record for each registration.

Requests are noted when RmProxy takes them, notifications when they come to the callback, facts
when Context has recorded them. A registration ends when RmProxy stops its callback, because the
resource manager registered again, is lost or leaves; its last requests may stay unanswered.
"""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.checks.rm_record import RmRecord
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation, Send, StopMachine
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    RM_PROXY,
    Delivery,
    Message,
    is_manager,
    is_reply,
    manager_of,
)
from yunikorn_actors.messages.queries import Accepted, Declined
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.rm_calls import (
    CallUpdateAllocation,
    CallUpdateApplication,
    CallUpdateContainerSchedulingState,
    CallUpdateNode,
)
from yunikorn_actors.messages.rm_events import (
    AllocationsRequested,
    ApplicationsRequested,
    ConfigurationRequested,
    NodesRequested,
    RegistrationRequested,
    RMConfigRejected,
    RMConfigUpdated,
    RMLost,
    RMRegistered,
    RMRegistrationRejected,
    RMUnregistered,
)
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.sim.simulator import Simulator


class RecordChecker:
    """Compares what each resource manager has requested and was notified of with the truth."""

    def __init__(self) -> None:
        self._records: dict[str, RmRecord] = {}
        """By address of the callback."""
        self._registrations: dict[str, list[str]] = {}
        """The callbacks of each resource manager; requests belong to the last one."""
        self._meanwhile: dict[str, list[Any]] = {}
        """Requests that were sent while a registration, by its callback, was not decided."""
        self._at_context: dict[str, RmRecord] = {}
        """The record of the registration under which Context works for a resource manager."""
        self._partitions: dict[str, str] = {}
        """The resource managers of the partitions that Context had last."""
        self._restored: dict[str, None] = {}
        """Resource managers that were registered with a core before this one."""
        self._turn = 0
        """Counts what Context does as one; long work is one, in however many slices."""
        self._awaited: dict[str, str] = {}
        """Who waits for a reply, and for which."""
        self._replies: dict[str, str] = {}
        """What Context has decided of that: the reason of a no, or the empty text."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        mailbox, faults = delivery.mailbox, None
        if mailbox == CONTEXT:
            self._follow(simulator, delivery.message)
        elif mailbox == RM_PROXY:
            note = _NOTES.get(type(delivery.message))
            if note is not None:
                note(self, delivery.message)
            for effect in simulator.effects:
                if isinstance(effect, StopMachine):
                    self._records.pop(effect.address, None)
        elif is_manager(mailbox):
            faults = self._notified(mailbox, delivery.message)
        elif is_reply(mailbox):
            faults = self._replied(mailbox, delivery.message)
        if simulator.is_at_rest and not faults:
            faults = self._settled(simulator)
        if faults:
            where = f"after {type(delivery.message).__name__} to {mailbox}"
            raise InvariantViolation(f"{where}: " + "; ".join(faults))

    # -- the truth

    def _follow(self, simulator: Simulator, message: Message) -> None:
        if isinstance(message, CoreRestored):
            managers = message.registered.managers
            self._restored.update((it.registration.rm_id, None) for it in managers)
        for effect in simulator.effects:
            if not isinstance(effect, Send):
                continue
            sent = effect.message
            if effect.to == EVENT_PUBLISHER:
                if isinstance(sent, FactsAppended):
                    record = self._at_context.get(sent.rm_id)
                    if record is not None:
                        record.follow(sent.partition, sent.facts, self._turn)
            elif effect.to == RM_PROXY:
                self._decided(sent)
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        if context.is_at_rest:
            self._turn += 1
        if self._partitions.keys() != context.partitions.keys():
            self._follow_partitions(context)

    def _follow_partitions(self, context: Context) -> None:
        for name, rm_id in self._partitions.items():
            if name not in context.partitions and rm_id in self._at_context:
                self._at_context[rm_id].partition_ended(name)
        self._partitions = {name: it.rm_id for name, it in context.partitions.items()}

    def _decided(self, message: Message) -> None:
        match message:
            case RMRegistered(rm_id=rm_id, callback=callback, reply_to=reply_to):
                self._replies[reply_to] = ""
                if callback in self._records:
                    self._at_context[rm_id] = self._records[callback]
                else:
                    self._at_context.pop(rm_id, None)
            case RMConfigUpdated(reply_to=reply_to):
                self._replies[reply_to] = ""
            case (
                RMRegistrationRejected(reply_to=reply_to, reason=reason)
                | RMConfigRejected(reply_to=reply_to, reason=reason)
            ):
                self._replies[reply_to] = reason

    # -- requests

    def _on_registration(self, message: RegistrationRequested) -> None:
        rm_id, address = message.request.rm_id, message.callback
        self._await(message.reply_to, f"the registration of {rm_id}")
        self._registrations.setdefault(rm_id, []).append(address)
        self._meanwhile[address] = []
        was_restored = rm_id in self._restored
        self._records[address] = RmRecord(
            rm_id,
            takes_states=message.capabilities.hears_states,
            follows_facts=not was_restored,
            was_restored=was_restored,
            others=self._records,
        )

    def _on_configuration(self, message: ConfigurationRequested) -> None:
        self._await(message.reply_to, f"the configuration of {message.request.rm_id}")

    def _await(self, reply_to: str, what: str) -> None:
        """Some send a request and wait for nothing."""
        if is_reply(reply_to):
            self._awaited[reply_to] = what

    def _on_registered(self, message: RMRegistered) -> None:
        """Its former registrations are over."""
        self._meanwhile.pop(message.callback, None)
        addresses = self._registrations.get(message.rm_id, [])
        while addresses and addresses[0] != message.callback:
            addresses.pop(0)

    def _on_registration_rejected(self, message: RMRegistrationRejected) -> None:
        """The former registration goes on; the requests sent in the meantime belong to it."""
        self._records.pop(message.callback, None)
        requests = self._meanwhile.pop(message.callback, [])
        addresses = self._registrations.get(message.rm_id, [])
        if message.callback in addresses:
            addresses.remove(message.callback)
        if addresses:
            for request in requests:
                self._records[addresses[-1]].requested(request)

    def _on_gone(self, message: RMLost | RMUnregistered) -> None:
        """What it requests from now on counts no more; RmProxy may have to do other work first."""
        for address in self._registrations.pop(message.rm_id, []):
            self._meanwhile.pop(address, None)

    def _on_request(
        self, message: AllocationsRequested | ApplicationsRequested | NodesRequested
    ) -> None:
        for address in self._registrations.get(message.request.rm_id, [])[-1:]:
            self._records[address].requested(message.request)
            if address in self._meanwhile:
                self._meanwhile[address].append(message.request)

    # -- notifications

    def _notified(self, address: str, call: Any) -> list[str]:  # noqa: ANN401 - any call of a callback
        kind = type(call)
        if kind not in _ANSWERS:
            return []
        record = self._records.get(address)
        if record is None:
            rm_id = manager_of(address)
            return [
                f"G28: {rm_id} was notified by {kind.__name__} after its registration had ended"
            ]
        if kind is CallUpdateContainerSchedulingState:
            return [fault for it in call.requests for fault in record.notified(it)]
        return record.notified(call.response)

    def _replied(self, address: str, message: Message) -> list[str]:
        """Each registration and each configuration has one reply, and not before it holds."""
        if address not in self._awaited:
            return []
        what = self._awaited[address]
        if not what:
            return ["G25: a reply came twice"]
        self._awaited[address] = ""
        reason = self._replies.pop(address, None)
        if reason is None:
            return [f"G25: {what} was answered before it was decided"]
        if isinstance(message, Declined) and message.reason == reason != "":
            return []
        if isinstance(message, Accepted) and not reason:
            return []
        wanted = f"a rejection: {reason}" if reason else "an acceptance"
        return [f"G25: {what} was answered by {message}, expected {wanted}"]

    # -- at rest

    def _settled(self, simulator: Simulator) -> list[str]:
        faults = [f"G25: {what} was never answered" for what in self._awaited.values() if what]
        self._awaited.clear()
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        for rm_id, addresses in self._registrations.items():
            if addresses:
                record = self._records[addresses[-1]]
                faults.extend(record.settled(_states_of(context, rm_id)))
        return faults

    def differences(self, context: Context) -> list[str]:
        """Compare everything, while nothing is on its way."""
        faults: list[str] = []
        for rm_id, addresses in self._registrations.items():
            states = _states_of(context, rm_id)
            if addresses and not states:
                faults.append(f"G28: {rm_id} is registered, and has no partition")
            if addresses:
                faults.extend(self._records[addresses[-1]].differences(states))
        return faults


def _states_of(context: Context, rm_id: str) -> dict[str, Any]:
    return {name: it.state for name, it in context.partitions.items() if it.rm_id == rm_id}


_NOTES: dict[type, Callable[[RecordChecker, Any], None]] = {
    RegistrationRequested: RecordChecker._on_registration,
    ConfigurationRequested: RecordChecker._on_configuration,
    RMRegistered: RecordChecker._on_registered,
    RMRegistrationRejected: RecordChecker._on_registration_rejected,
    RMLost: RecordChecker._on_gone,
    RMUnregistered: RecordChecker._on_gone,
    AllocationsRequested: RecordChecker._on_request,
    ApplicationsRequested: RecordChecker._on_request,
    NodesRequested: RecordChecker._on_request,
}
_ANSWERS = frozenset(
    {
        CallUpdateAllocation,
        CallUpdateApplication,
        CallUpdateContainerSchedulingState,
        CallUpdateNode,
    }
)
