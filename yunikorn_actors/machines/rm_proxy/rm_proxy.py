"""RmProxy: the resource managers' side of the core.

On the way in it turns requests of the scheduler interface into RM events with full partition names;
on the way out it turns RM events into responses with the resource manager's own names. It refuses
nothing on substance, which is Context's business. A request that overtook the end of its resource
manager is dropped here, because the gateway could not know.
"""

from collections.abc import Callable, Generator
from functools import partial
from itertools import chain
from typing import Any

from yunikorn_actors import si
from yunikorn_actors.machines.machine import Effect, Send, StopMachine
from yunikorn_actors.machines.rm_proxy.asked_back import RequestedBack
from yunikorn_actors.machines.rm_proxy.flow_control import Deliveries, ManagerTurns
from yunikorn_actors.machines.rm_proxy.predicate_calls import Diagnoses, Questions
from yunikorn_actors.machines.rm_proxy.translation import (
    accepted_application,
    allocation_update,
    allocations,
    container_state,
    items_of,
    joined,
    new_application,
    node_items,
    pieces_of,
    rejected_application,
    release_out,
    updated_application,
    withdrawal,
    withdrawn_release,
)
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.slices import LOOKED_AT_IN_ONE, Computation, Slices, gathered
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import GATEWAY, RM_PROXY, Message
from yunikorn_actors.messages.queries import (
    Accepted,
    Declined,
    RmDumpAnswered,
    RmDumpDue,
    RmDumpRequested,
)
from yunikorn_actors.messages.rm_calls import (
    CallSendEvent,
    CallUpdateAllocation,
    CallUpdateApplication,
    CallUpdateContainerSchedulingState,
    CallUpdateNode,
)
from yunikorn_actors.messages.scheduling import RunSlice
from yunikorn_actors.values.ids import partition_name


class Parts:
    """The parts of one answer that have come: calls of one kind, whose lists are joined."""

    def __init__(self) -> None:
        self.is_ahead = False
        """Whether more follow behind the next part."""
        self._calls: list[Any] = []

    def add(self, call: Message) -> None:
        self._calls.append(call)

    def together(self) -> Message:
        first: Any = self._calls[0]
        # Calls about allocations, applications and nodes wrap a response; others hold their lists
        # themselves.
        whole: Message = (
            type(first)(response=_joined([call.response for call in self._calls]))
            if hasattr(first, "response")
            else _joined(self._calls)
        )
        return whole


def _joined(parts: list[Any]) -> Any:  # noqa: ANN401 - a call, or its response
    # By the fields that are tuples, so that a new list of a response needs no line here.
    names = [it for it in parts[0].__struct_fields__ if isinstance(getattr(parts[0], it), tuple)]
    lists = {name: tuple(chain.from_iterable(getattr(it, name) for it in parts)) for name in names}
    return type(parts[0])(**lists)


Handled = list[Effect] | Computation
"""What a handler did, or what it is about to do in one slice or several."""
_Translation = Generator[int, None, list[Effect]]


class RmProxy:
    """A handler for each message, in both directions; translating and asking are other modules'."""

    def __init__(self, *, settings: Settings) -> None:
        self.deliveries: dict[str, Deliveries] = {}
        """Registered resource managers, each with what is delivered to its callback."""
        self.coming: dict[str, str] = {}
        """Callbacks whose registration is at Context, each with its resource manager.

        One that is lost or leaves meanwhile is not registered by an answer that was on its way.
        """
        self.parts: dict[str, Parts] = {}
        """Of answers that come in several messages."""
        self.turns = ManagerTurns(settings.turn_max)
        self._slices = Slices(RM_PROXY, settings.slice_max)
        """Requests that are long to translate, in order for each resource manager."""
        # One that fits is translated at once: a job for each request would cost more than most
        # requests do.
        self._at_once_max = LOOKED_AT_IN_ONE * settings.slice_max
        """A request about allocations with no more items fits in one slice."""
        self.questions = Questions(settings.predicate_timeout_ns)
        self._diagnoses = Diagnoses(settings.predicate_timeout_ns)
        self.dropped = 0

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        kind = type(message)
        handler, slices = HANDLERS[kind], self._slices
        # One look where nothing is under way, which is nearly always; then the order is that of
        # arrival anyway.
        if slices.jobs and kind in _ORDER_KEYS:
            # It may have to wait.
            return slices.do(_ORDER_KEYS[kind](message), partial(handler, self, message), now_ns)
        handled = handler(self, message, now_ns)
        return (
            handled
            if isinstance(handled, list)
            else slices.begin(_ORDER_KEYS[kind](message), handled)
        )

    @property
    def is_at_rest(self) -> bool:
        """Whether no request is being translated."""
        return not self._slices.jobs

    def canonical_state(self) -> dict[str, Any]:
        return {
            "deliveries": {
                rm_id: deliveries.canonical_state()
                for rm_id, deliveries in sorted(self.deliveries.items())
            },
            "coming": dict(sorted(self.coming.items())),
            "dropped": self.dropped,
            **self.turns.canonical_state(),
            # Only where there are any: digests of older recordings have no such keys.
            **({"parts": sorted(self.parts)} if self.parts else {}),
            **({} if self.is_at_rest else {"long_work": self._slices.canonical_state()}),
            "questions": self.questions.canonical_state(),
            "diagnoses": self._diagnoses.canonical_state(),
        }

    # -- registration

    def _on_registration_requested(self, message: rm.RegistrationRequested, _: int) -> list[Effect]:
        request = message.request
        # By callback: a second registration may be on its way before the first is answered (H-19).
        self.coming[message.callback] = request.rm_id
        registration = rm.RMRegistration(
            rm_id=request.rm_id,
            version=request.version,
            policy_group=request.policy_group,
            build_info=dict(request.build_info),
            config=message.config,
            extra_config=dict(request.extra_config),
            extra=message.extra,
            callback=message.callback,
            capabilities=message.capabilities,
            reply_to=message.reply_to,
        )
        # Behind the requests that its former life has sent: Context gets them in the caller's
        # order.
        return self._send(request.rm_id, registration)

    def _on_rm_registered(self, message: rm.RMRegistered, _: int) -> list[Effect]:
        # The former life is cut before the new one is known, so nothing of it is delivered to that.
        former = self._cut(message.rm_id)
        # It was lost, or has left, while Context registered it: the callback is stopped, and the
        # caller has its answer.
        if self.coming.pop(message.callback, None) is None:
            gone = StopMachine(address=message.callback)
            return [*former, gone, Send(to=message.reply_to, message=Accepted())]
        self.deliveries[message.rm_id] = Deliveries(
            message.rm_id, message.callback, message.extra.undelivered_max
        )
        return [*former, Send(to=message.reply_to, message=Accepted())]

    def _on_rm_registration_rejected(
        self, message: rm.RMRegistrationRejected, _: int
    ) -> list[Effect]:
        """Nothing has changed: a former life, if there is one, goes on."""
        rm_id = self.coming.pop(message.callback, None)
        # Nothing of it is left: what counts its turns would be a leak. A former life, or another
        # registration on its way, still needs them.
        if rm_id is not None and rm_id not in {*self.deliveries, *self.coming.values()}:
            self.turns.forget(rm_id)
        return [
            StopMachine(address=message.callback),
            Send(to=message.reply_to, message=Declined(reason=message.reason)),
        ]

    def _on_rm_gone(self, message: rm.RMLost | rm.RMUnregistered, _: int) -> list[Effect]:
        """Forget a manager that has gone, and its registrations that were not handled yet."""
        rm_id = message.rm_id
        for callback in [it for it, manager in self.coming.items() if manager == rm_id]:
            del self.coming[callback]
        # Behind whatever of its requests still waits for its turn: Context gets all in the order in
        # which the caller made them.
        return [*self._cut(rm_id), *self._send(rm_id, message)]

    def _cut(self, rm_id: str) -> list[Effect]:
        """Nothing more is delivered to it."""
        deliveries = self.deliveries.pop(rm_id, None)
        self.parts.pop(rm_id, None)
        # Never registered: no callback of it is known.
        if deliveries is None:
            return []
        return [
            # First, so that nothing that follows reaches it.
            StopMachine(address=deliveries.callback),
            *self.questions.cut(rm_id),
            *self._diagnoses.cut(deliveries.callback),
            *deliveries.cut(),
        ]

    # -- requests

    def _on_run_slice(self, _: RunSlice, now_ns: int) -> list[Effect]:
        return self._slices.go_on(now_ns)

    def _on_allocations_requested(self, message: rm.AllocationsRequested, _: int) -> Handled:
        request = message.request
        rm_id = request.rm_id
        # The gateway let it in before the manager was gone. It is dropped, and the mark behind it
        # counts it as handled all the same.
        if rm_id not in self.deliveries:
            self.dropped += 1
            return []
        requested_back = self.deliveries[rm_id].requested_back
        # In one slice, which is what nearly every request needs.
        if items_of(request) <= self._at_once_max:
            event = allocation_update(request, requested_back)
            # Nearly never has any node been refused.
            lifted = self.questions.seen(rm_id) if self.questions.refused else ()
            return [*lifted, *self._send(rm_id, event)]
        # Releases are read in the order of the request: each takes something out of
        # `requested_back`.
        return Computation(self._translate_in_pieces(request, requested_back))

    def _translate_in_pieces(
        self, request: si.AllocationRequest, requested_back: RequestedBack
    ) -> _Translation:
        pieces: list[rm.RMUpdateAllocation] = []
        for piece in pieces_of(request, LOOKED_AT_IN_ONE):
            pieces.append(allocation_update(piece, requested_back))
            yield 1
        # Joined again: Context gets one message for one request, however many slices it took.
        return self._forward(request.rm_id, joined(request.rm_id, pieces))

    def _on_applications_requested(self, message: rm.ApplicationsRequested, _: int) -> Handled:
        return Computation(self._translate_applications(message))

    def _translate_applications(self, message: rm.ApplicationsRequested) -> _Translation:
        request = message.request
        # By position: several items of a request may have the same id.
        reasons = {item.position: item.reason for item in message.unresolved}
        added = yield from gathered(
            new_application(request.rm_id, item, reasons.get(position, ""))
            for position, item in enumerate(request.new)
        )
        removed = yield from gathered(
            rm.OldApplication(
                partition=partition_name(request.rm_id, item.partition_name),
                application_id=item.application_id,
            )
            for item in request.remove
        )
        event = rm.RMUpdateApplication(
            rm_id=request.rm_id, added=tuple(added), removed=tuple(removed)
        )
        return self._forward(request.rm_id, event)

    def _on_nodes_requested(self, message: rm.NodesRequested, _: int) -> Handled:
        return Computation(self._translate_nodes(message.request))

    def _translate_nodes(self, request: si.NodeRequest) -> _Translation:
        nodes = []
        for item in node_items(request.rm_id, request.nodes):
            nodes.append(item)
            # Its running work is only translated here: so many allocations are as much as one item.
            yield 1 + len(item.allocations) // LOOKED_AT_IN_ONE
        event = rm.RMUpdateNode(rm_id=request.rm_id, nodes=tuple(nodes))
        return self._forward(request.rm_id, event)

    def _on_configuration_requested(
        self, message: rm.ConfigurationRequested, _: int
    ) -> list[Effect]:
        request = message.request
        event = rm.RMConfigUpdate(
            rm_id=request.rm_id,
            policy_group=request.policy_group,
            config=message.config,
            extra_config=dict(request.extra_config),
            extra=message.extra,
            reply_to=message.reply_to,
        )
        # A configuration is a request as well.
        return [*self.questions.seen(request.rm_id), *self._send(request.rm_id, event)]

    def _on_requests_marked(self, message: rm.RequestsMarked, _: int) -> list[Effect]:
        """Whether or not they were dropped: the gateway counts them all."""
        # Through the turns, so that it comes behind the requests it counts.
        return self._send(message.rm_id, message)

    def _on_requests_handled(self, message: rm.RequestsHandled, _: int) -> list[Effect]:
        """They count until their answers are delivered; a former callback gets no more."""
        deliveries = self.deliveries.get(message.rm_id)
        # The present callback may be another: the count of the former must reach its callers all
        # the same.
        if deliveries is None or deliveries.callback != message.callback:
            return [Send(to=GATEWAY, message=message)]
        return deliveries.handled(message.count)

    def _forward(self, rm_id: str, event: Message) -> list[Effect]:
        if rm_id not in self.deliveries:
            self.dropped += 1
            return []
        # Before the request: what was refused may be asked again by the time that it is handled.
        return [*self.questions.seen(rm_id), *self._send(rm_id, event)]

    def _send(self, rm_id: str, message: Message) -> list[Effect]:
        # Alone, or the first: nobody else waits at Context.
        return self.turns.send(rm_id, message, alone=len(self.deliveries) <= 1)

    def _on_turn_handled(self, message: rm.TurnHandled, _: int) -> list[Effect]:
        return self.turns.handled(message.rm_id)

    # -- questions about placements

    def _on_question(
        self, message: p.CheckPredicates | p.CheckPreemptionPredicates, now_ns: int
    ) -> list[Effect]:
        return self.questions.ask(message, self._callback(message.rm_id), now_ns)

    def _callback(self, rm_id: str) -> str | None:
        deliveries = self.deliveries.get(rm_id)
        return None if deliveries is None else deliveries.callback

    def _on_answer(
        self, message: p.PredicatesAnswered | p.PreemptionPredicatesAnswered, now_ns: int
    ) -> list[Effect]:
        return self.questions.answered(message, now_ns)

    def _on_predicate_due(self, message: p.PredicateDue, now_ns: int) -> list[Effect]:
        return self.questions.due(message, now_ns)

    # -- what it says of its own state

    def _on_rm_dump_requested(self, message: RmDumpRequested, now_ns: int) -> list[Effect]:
        callback = self._callback(message.rm_id)
        return self._diagnoses.ask(message.reply_to, callback, now_ns)

    def _on_rm_dump_answered(self, message: RmDumpAnswered, _: int) -> list[Effect]:
        return self._diagnoses.answered(message)

    def _on_rm_dump_due(self, message: RmDumpDue, _: int) -> list[Effect]:
        return self._diagnoses.due(message)

    # -- answers

    def _on_rm_config_updated(self, message: rm.RMConfigUpdated, _: int) -> list[Effect]:
        deliveries = self.deliveries.get(message.rm_id)
        # A configuration may lower the bound.
        effects: list[Effect] = []
        if deliveries is not None and message.extra is not None:
            effects.extend(deliveries.bound(message.extra.undelivered_max))
        return [*effects, Send(to=message.reply_to, message=Accepted())]

    def _on_rm_config_rejected(self, message: rm.RMConfigRejected, _: int) -> list[Effect]:
        return [Send(to=message.reply_to, message=Declined(reason=message.reason))]

    def _on_rm_new_allocations(self, message: rm.RMNewAllocations, _: int) -> list[Effect]:
        response = si.AllocationResponse(new=tuple(allocations(message)))
        # One response for all: the callback is called as often as Context answers, not once each
        # allocation.
        return self._call(message.rm_id, CallUpdateAllocation(response=response))

    def _on_rm_release_allocation(self, message: rm.RMReleaseAllocation, _: int) -> list[Effect]:
        deliveries = self.deliveries.get(message.rm_id)
        if deliveries is not None:
            # Noted before the callback can answer: what it gives back is told from what it ends by
            # its own wish by this alone.
            deliveries.requested_back.announce(message.released)
        released = tuple(map(release_out, message.released))
        # The earlier form has a list for withdrawn asks, the later form one list for all releases.
        if not message.withdrawn:
            response = si.AllocationResponse(released=released)
            return self._call(message.rm_id, CallUpdateAllocation(response=response))
        withdrawn = tuple(withdrawal(item) for item in message.withdrawn if not item.later_form)
        later = tuple(withdrawn_release(item) for item in message.withdrawn if item.later_form)
        response = si.AllocationResponse(released=(*later, *released), released_asks=withdrawn)
        return self._call(message.rm_id, CallUpdateAllocation(response=response))

    def _on_rm_given_back_unasked(self, message: rm.RMGivenBackUnasked, _: int) -> list[Effect]:
        deliveries = self.deliveries.get(message.rm_id)
        if deliveries is not None:
            # The core has ended them before its request went out; a confirmation will not come.
            deliveries.requested_back.forget(message.uuids)
        return []

    def _on_rm_rejected_allocation_ask(
        self, message: rm.RMRejectedAllocationAsk, _: int
    ) -> list[Effect]:
        """Each is answered in the form in which it was asked."""
        response = si.AllocationResponse(
            rejected=tuple(
                si.RejectedAllocationAsk(
                    allocation_key=item.key, application_id=item.application_id, reason=item.reason
                )
                for item in message.rejected
                if not item.later_form
            ),
            rejected_allocations=tuple(
                si.RejectedAllocation(
                    allocation_key=item.key, application_id=item.application_id, reason=item.reason
                )
                for item in message.rejected
                if item.later_form
            ),
        )
        return self._call(message.rm_id, CallUpdateAllocation(response=response))

    def _on_rm_application_update(self, message: rm.RMApplicationUpdate, _: int) -> list[Effect]:
        response = si.ApplicationResponse(
            rejected=tuple(map(rejected_application, message.rejected)),
            accepted=tuple(map(accepted_application, message.accepted)),
            updated=tuple(map(updated_application, message.updated)),
        )
        return self._call(message.rm_id, CallUpdateApplication(response=response))

    def _on_rm_node_update(self, message: rm.RMNodeUpdate, _: int) -> list[Effect]:
        response = si.NodeResponse(
            rejected=tuple(
                si.RejectedNode(node_id=item.id, reason=item.reason) for item in message.rejected
            ),
            accepted=tuple(si.AcceptedNode(node_id=id_) for id_ in message.accepted),
        )
        return self._call(message.rm_id, CallUpdateNode(response=response))

    def _on_rm_container_scheduling_state(
        self, message: rm.RMContainerSchedulingState, _: int
    ) -> list[Effect]:
        requests = tuple(container_state(item) for item in message.states)
        return self._call(message.rm_id, CallUpdateContainerSchedulingState(requests=requests))

    def _on_send_events(self, message: rm.SendEvents, _: int) -> list[Effect]:
        deliveries = self.deliveries.get(message.rm_id)
        call = CallSendEvent(events=message.events)
        return [] if deliveries is None else deliveries.deliver(call)

    def _on_rm_part_ahead(self, message: rm.RMPartAhead, _: int) -> list[Effect]:
        # Of a manager that has gone meanwhile nothing is kept: its answer is not delivered either.
        if message.rm_id in self.deliveries:
            self.parts.setdefault(message.rm_id, Parts()).is_ahead = True
        return []

    def _call(self, rm_id: str, call: Message) -> list[Effect]:
        """Deliver what Context answers, when all parts of it are there."""
        # In the answer of Context each part but the last has a mark in front.
        if self.parts:
            parts = self.parts.get(rm_id)
            if parts is not None:
                parts.add(call)
                if parts.is_ahead:
                    parts.is_ahead = False
                    return []
                del self.parts[rm_id]
                call = parts.together()
        deliveries = self.deliveries.get(rm_id)
        return [] if deliveries is None else deliveries.deliver(call)

    def _on_responses_delivered(self, message: rm.ResponsesDelivered, _: int) -> list[Effect]:
        """A former callback may still have a mark on its way."""
        deliveries = self.deliveries.get(message.rm_id)
        if deliveries is None or deliveries.callback != message.callback:
            return []
        return deliveries.taken(message.count)


HANDLERS: dict[type, Callable[[RmProxy, Any, int], Handled]] = {
    rm.RegistrationRequested: RmProxy._on_registration_requested,
    rm.RMLost: RmProxy._on_rm_gone,
    rm.RMUnregistered: RmProxy._on_rm_gone,
    rm.AllocationsRequested: RmProxy._on_allocations_requested,
    rm.ApplicationsRequested: RmProxy._on_applications_requested,
    rm.NodesRequested: RmProxy._on_nodes_requested,
    rm.ConfigurationRequested: RmProxy._on_configuration_requested,
    rm.RequestsMarked: RmProxy._on_requests_marked,
    rm.ResponsesDelivered: RmProxy._on_responses_delivered,
    rm.RequestsHandled: RmProxy._on_requests_handled,
    RunSlice: RmProxy._on_run_slice,
    rm.TurnHandled: RmProxy._on_turn_handled,
    rm.RMRegistered: RmProxy._on_rm_registered,
    rm.RMRegistrationRejected: RmProxy._on_rm_registration_rejected,
    rm.RMConfigUpdated: RmProxy._on_rm_config_updated,
    rm.RMConfigRejected: RmProxy._on_rm_config_rejected,
    rm.RMPartAhead: RmProxy._on_rm_part_ahead,
    rm.RMNewAllocations: RmProxy._on_rm_new_allocations,
    rm.RMReleaseAllocation: RmProxy._on_rm_release_allocation,
    rm.RMGivenBackUnasked: RmProxy._on_rm_given_back_unasked,
    rm.RMRejectedAllocationAsk: RmProxy._on_rm_rejected_allocation_ask,
    rm.RMApplicationUpdate: RmProxy._on_rm_application_update,
    rm.RMNodeUpdate: RmProxy._on_rm_node_update,
    rm.RMContainerSchedulingState: RmProxy._on_rm_container_scheduling_state,
    rm.SendEvents: RmProxy._on_send_events,
    p.CheckPredicates: RmProxy._on_question,
    p.CheckPreemptionPredicates: RmProxy._on_question,
    p.PredicatesAnswered: RmProxy._on_answer,
    p.PreemptionPredicatesAnswered: RmProxy._on_answer,
    p.PredicateDue: RmProxy._on_predicate_due,
    RmDumpRequested: RmProxy._on_rm_dump_requested,
    RmDumpAnswered: RmProxy._on_rm_dump_answered,
    RmDumpDue: RmProxy._on_rm_dump_due,
}


def _of_request(message: Any) -> str:  # noqa: ANN401 - it has one
    rm_id: str = message.request.rm_id
    return rm_id


def _of_manager(message: Any) -> str:  # noqa: ANN401 - it has one
    rm_id: str = message.rm_id
    return rm_id


_ORDER_KEYS: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys(
        (
            rm.RegistrationRequested,
            rm.AllocationsRequested,
            rm.ApplicationsRequested,
            rm.NodesRequested,
            rm.ConfigurationRequested,
        ),
        _of_request,
    ),
    **dict.fromkeys((rm.RMLost, rm.RMUnregistered, rm.RequestsMarked), _of_manager),
}
"""Whose request each message is: it waits behind a long one of the same resource manager.

All others are no part of that order: they come from Context, from callbacks and from timers.
"""
