"""The checker of notifications: what each resource manager was sent, against the truth.

It keeps a record for each registration. Requests are noted when RmProxy takes them, notifications
when they come to the callback, facts when Context has recorded them.
"""

from functools import partial
from typing import (
    Any,
    Final,
)

from yunikorn_actors.checks.notices import Placed
from yunikorn_actors.checks.registrations import NOTED, Registrations
from yunikorn_actors.checks.rm_comparison import States
from yunikorn_actors.checks.rm_record import RmRecord
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation, Send, StopMachine
from yunikorn_actors.messages.base import (
    CALLBACK,
    CONTEXT,
    EVENT_PUBLISHER,
    REPLY,
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
    ConfigurationRequested,
    RegistrationRequested,
    RMConfigRejected,
    RMConfigUpdated,
    RMRegistered,
    RMRegistrationRejected,
)
from yunikorn_actors.messages.scheduling import FactsAppended, RunSlice


class RecordChecker:
    """Compares what each resource manager has requested and was notified of with the truth."""

    receivers: Final = frozenset({CALLBACK, CONTEXT, REPLY, RM_PROXY})

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        """Know nothing: a core that begins again answers nothing that another was asked."""
        self._registrations = Registrations(follows_facts=True)
        self._at_context: dict[str, RmRecord] = {}
        """The record of the registration under which Context works for a resource manager."""
        self._partitions: dict[str, str] = {}
        """The resource managers of the partitions that Context had last."""
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
            if type(delivery.message) in _NOTED:
                self._note(delivery.message)
                for effect in simulator.effects:
                    if isinstance(effect, StopMachine):
                        self._registrations.stopped(effect.address)
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
        # The former core's promises are kept by reports, not by answers.
        if isinstance(message, CoreRestored):
            self._begin()
            self._registrations.restored(
                it.registration.rm_id for it in message.registered.managers
            )
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
        # In the middle of long work the facts of several slices belong to one turn.
        if context.is_at_rest:
            self._turn += 1
        if self._partitions.keys() != context.partitions.keys():
            self._follow_partitions(context)

    def _follow_partitions(self, context: Context) -> None:
        for name, rm_id in self._partitions.items():
            # What a partition owed goes with it: nobody is notified about a partition that is gone.
            if name not in context.partitions and rm_id in self._at_context:
                self._at_context[rm_id].partition_ended(name)
        self._partitions = {name: it.rm_id for name, it in context.partitions.items()}

    def _decided(self, message: Message) -> None:
        match message:
            case RMRegistered(rm_id=rm_id, callback=callback, reply_to=reply_to):
                self._replies[reply_to] = ""
                # Accepted by Context under this callback: facts from here on are owed to this
                # registration.
                record = self._registrations.records.get(callback)
                if record is None:
                    self._at_context.pop(rm_id, None)
                else:
                    self._at_context[rm_id] = record
            case RMConfigUpdated(reply_to=reply_to):
                self._replies[reply_to] = ""
            case (
                RMRegistrationRejected(reply_to=reply_to, reason=reason)
                | RMConfigRejected(reply_to=reply_to, reason=reason)
            ):
                self._replies[reply_to] = reason

    # -- requests

    def _note(self, message: Message) -> None:
        self._registrations.sent(message)
        match message:
            case RegistrationRequested():
                self._await(message.reply_to, f"the registration of {message.request.rm_id}")
            case ConfigurationRequested():
                self._await(message.reply_to, f"the configuration of {message.request.rm_id}")
            case RMRegistered(rm_id=rm_id, callback=callback):
                self._registrations.registered(rm_id, callback)
            case RMRegistrationRejected(rm_id=rm_id, callback=callback):
                self._registrations.refused(rm_id, callback)

    def _await(self, reply_to: str, what: str) -> None:
        """Some send a request and wait for nothing."""
        if is_reply(reply_to):
            self._awaited[reply_to] = what

    # -- notifications

    def _notified(self, address: str, call: Any) -> list[str]:  # noqa: ANN401 - any call of a callback
        kind = type(call)
        if kind not in _ANSWERS:
            return []
        record = self._registrations.records.get(address)
        # The former registration was cut at RmProxy before the new one was known (H-19).
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
        # Emptied and not removed, so that a second reply is found.
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

    def running(self) -> dict[str, list[Placed]]:
        """Return what each registered resource manager knows to run."""
        return {it.rm_id: [*it.running.values()] for it in self._registrations.current()}

    # -- at rest

    def _settled(self, simulator: Simulator) -> list[str]:
        # At rest nothing is on its way any more: what was not answered never will be.
        faults = [f"G25: {what} was never answered" for what in self._awaited.values() if what]
        self._awaited.clear()
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        for record in self._registrations.current():
            faults.extend(record.settled(states_of(context, record.rm_id)))
        return faults

    def differences(self, context: Context) -> list[str]:
        """Compare everything, while nothing is on its way."""
        return self._registrations.differences(partial(states_of, context))


def states_of(context: Context, rm_id: str) -> States:
    return {name: it.state for name, it in context.partitions.items() if it.rm_id == rm_id}


_NOTED = NOTED | {RMRegistered, RMRegistrationRejected, RunSlice}
"""Messages to RmProxy that bring a request, or by which a registration begins or ends."""
_ANSWERS = frozenset(
    {
        CallUpdateAllocation,
        CallUpdateApplication,
        CallUpdateContainerSchedulingState,
        CallUpdateNode,
    }
)
