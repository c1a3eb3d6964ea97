"""Oracle of RmProxy: what it keeps for each registration, kept a second time from its messages.

- Registered is who was answered so and has not left; a registration of one who left is stopped.
- A resource manager is held back when more than its bound is under way to its callback, and only
  then; marks and handled requests of a former callback mean nothing for the present one.
- An answer that comes in parts is delivered whole, behind its last part; long work has one answer
  of each kind.
- What it takes as asked back is what Context has asked back and was not given.
- Requests of one resource manager come to Context in the order in which they were made.
- Each question has one answer; a no for want of one comes when the callback was silent for its
  time, and not before. Who got a no learns when it is lifted. Victims go as the answer says.
- At rest nothing of this is left. Nobody is held but who is away or behind, no group has a
  configuration that has no member.
"""

from collections import Counter
from collections.abc import Iterator
from typing import (
    Any,
    Final,
)

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.manager_registry import ResourceManager
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import CallRm, InvariantViolation, Machine, Send
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.messages import predicates as p
from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import (
    CALLBACK,
    CONTEXT,
    EVENT_PUBLISHER,
    GATEWAY,
    RM_PROXY,
    TIMER,
    Delivery,
    Message,
    is_manager,
)
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state.facts import PreemptionDecided, VictimMarked
from yunikorn_actors.state.partition import PartitionState

_MARKS: Final = 64
"""So many marks come in one bound."""
_UPDATES: Final = (
    c.CallUpdateAllocation,
    c.CallUpdateApplication,
    c.CallUpdateContainerSchedulingState,
    c.CallUpdateNode,
)
_COUNTED: Final = (*_UPDATES, c.CallSendEvent)
_ANSWERS: Final = (
    rm.RMNewAllocations,
    rm.RMReleaseAllocation,
    rm.RMRejectedAllocationAsk,
    rm.RMApplicationUpdate,
    rm.RMNodeUpdate,
    rm.RMContainerSchedulingState,
)
_LEAVES: Final = (rm.RMLost, rm.RMUnregistered)
_IN_ORDER: Final = (rm.RegistrationRequested, *_LEAVES)
"""They wait while a long request of the same resource manager is translated."""
_QUESTIONS: Final = (p.CheckPredicates, p.CheckPreemptionPredicates)
_CALLS: Final = (c.CallPredicates, c.CallPreemptionPredicates)
_ANSWERED: Final = (p.PredicatesAnswered, p.PreemptionPredicatesAnswered)
_CHECKED: Final = (p.PredicatesChecked, p.PreemptionPredicatesChecked)
_Asked = tuple[str, str, int, int]
_REQUESTS: Final = (rm.AllocationsRequested, rm.ApplicationsRequested, rm.NodesRequested)
_REQUESTS_IN: Final = (rm.RMUpdateAllocation, rm.RMUpdateApplication, rm.RMUpdateNode)
_Request = tuple[str, ...]
"""What names the things that a request is about, in their order."""


class _Registration:
    def __init__(self, callback: str, undelivered_max: int) -> None:
        self.callback = callback
        self.undelivered_max = undelivered_max
        self.sent = self.delivered = 0
        self.marks = 0
        """Marks under way, there or back."""
        self.is_held = False
        self.is_ahead = False
        self.gathered = 0
        """Items of an answer of which more is to come."""


class Proxied(Oracle):
    receivers: Final = frozenset({CALLBACK, CONTEXT, RM_PROXY})

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._coming: dict[str, str] = {}
        self._registered: dict[str, _Registration] = {}
        self._have_left: dict[str, None] = {}
        """Who has left, and has not tried to come back."""
        self._is_behind = False
        """Whether something waits whose effect is not seen when it is delivered."""
        self._open: dict[_Asked, str] = {}
        """Questions without an answer, each with its resource manager."""
        self._callers: dict[int, str] = {}
        """The resource managers of calls, by number."""
        self._deadlines: dict[str, int] = {}
        self._denied: dict[str, dict[str, None]] = {}
        """By resource manager, who got a no since its last request."""
        self._requests: dict[str, list[_Request]] = {}
        """What each has requested and Context has not got; some of it may be dropped."""
        self._offered: dict[_Asked, tuple[str, ...]] = {}
        """The keys of the victims that a question was about, and then those of the answer."""
        self._whole: dict[str, Counter[str]] = {}
        """Of each resource manager the answers of the work that is under way, by their kinds."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        faults: list[str] = []
        if isinstance(delivery.message, CoreRestored):
            self._begin()
        if delivery.mailbox == RM_PROXY and delivery is simulator.last:
            faults.extend(self._handled(simulator, delivery.message))
        elif delivery.mailbox == CONTEXT:
            if isinstance(delivery.message, _REQUESTS_IN):
                faults.extend(self._compare_order(delivery.message))
            if delivery is simulator.last:
                faults.extend(self._compare_parts(simulator))
                faults.extend(self._compare_victims(simulator))
        elif is_manager(delivery.mailbox) and isinstance(delivery.message, _COUNTED):
            for it in self._registered.values():
                it.delivered += it.callback == delivery.mailbox
        if simulator.is_at_rest and not faults:
            faults.extend(self._left(simulator))
        if faults:
            what = type(delivery.message).__name__
            raise InvariantViolation(f"RmProxy after {what}: " + "; ".join(faults))

    # -- one message

    def _handled(self, simulator: Simulator, message: Message) -> Iterator[str]:
        proxy = _proxy(simulator)
        self._is_behind |= isinstance(message, _IN_ORDER) and not proxy.is_at_rest
        calls = [it for it in simulator.effects if isinstance(it, CallRm)]
        sends = [it for it in simulator.effects if isinstance(it, Send)]
        self._take_registration(message)
        if isinstance(message, _REQUESTS):
            asked = self._requests.setdefault(message.request.rm_id, [])
            asked.append(_request_of(message))
        yield from self._take_questions(simulator, message, calls, sends)
        yield from self._compare_answer(message, calls)
        yield from self._compare_flow(message, calls, sends)
        if not self._is_behind:
            yield from self._compare_registered(proxy)
        elif proxy.is_at_rest:
            self._catch_up(proxy)

    def _take_registration(self, message: Message) -> None:
        match message:
            case rm.RegistrationRequested():
                self._coming[message.callback] = message.request.rm_id
                self._have_left.pop(message.request.rm_id, None)
            case rm.RMRegistered():
                # One that nobody knew before may have been asked all the same.
                if self._registered.pop(message.rm_id, None) is not None:
                    self._forget(message.rm_id)
                if self._coming.pop(message.callback, None) is not None:
                    made = _Registration(message.callback, message.extra.undelivered_max)
                    self._registered[message.rm_id] = made
            case rm.RMRegistrationRejected():
                self._coming.pop(message.callback, None)
            case rm.RMLost() | rm.RMUnregistered():
                gone = message.rm_id
                self._coming = {it: rm_id for it, rm_id in self._coming.items() if rm_id != gone}
                if self._registered.pop(gone, None) is not None:
                    self._forget(gone)
                    self._have_left[gone] = None
            case rm.RMConfigUpdated() if message.extra is not None:
                if message.rm_id in self._registered:
                    changed = self._registered[message.rm_id]
                    changed.undelivered_max = message.extra.undelivered_max

    def _forget(self, rm_id: str) -> None:
        """Its callback is gone, and with it what was asked of it."""
        self._denied.pop(rm_id, None)
        self._callers = {it: asked for it, asked in self._callers.items() if asked != rm_id}

    def _compare_registered(self, proxy: RmProxy) -> Iterator[str]:
        if len(proxy.deliveries) != len(self._registered):
            yield self._other_registered(proxy)
            return
        for rm_id, it in self._registered.items():
            kept = proxy.deliveries.get(rm_id)
            if kept is None or kept.callback != it.callback:
                yield self._other_registered(proxy)
                return
            taken = kept.taken_count
            if taken > it.delivered:
                yield f"G28: {rm_id} has taken {it.delivered} responses, and {taken} count"
            if rm_id in proxy.parts and not (it.is_ahead or it.gathered):
                yield f"G28: parts of an answer to a former registration of {rm_id} are kept"

    def _other_registered(self, proxy: RmProxy) -> str:
        theirs = {rm_id: it.callback for rm_id, it in proxy.deliveries.items()}
        mine = {rm_id: it.callback for rm_id, it in self._registered.items()}
        return f"G28: registered are {theirs}, expected {mine}"

    def _catch_up(self, proxy: RmProxy) -> None:
        """What waited has been done: go on from what came of it."""
        self._is_behind = False
        self._coming = dict(proxy.coming)
        for rm_id in [it for it in self._registered if it not in proxy.deliveries]:
            del self._registered[rm_id]
            self._forget(rm_id)

    # -- requests

    def _compare_order(self, message: Message) -> Iterator[str]:
        """Those before it that have not come were dropped, as their registration had ended."""
        rm_id: str = message.rm_id  # type: ignore[attr-defined]
        asked, request = self._requests.get(rm_id, []), _request_in(message)
        if request in asked:
            del asked[: asked.index(request) + 1]
        else:
            yield f"G26: a request of {rm_id} comes out of its order, or twice: {request}"

    # -- answers

    def _compare_parts(self, simulator: Simulator) -> Iterator[str]:
        """What is handled together may be answered in several batches."""
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        is_ahead = False
        for sent in (it.message for it in simulator.effects if isinstance(it, Send)):
            if isinstance(sent, rm.RMPartAhead):
                is_ahead = True
            elif isinstance(sent, _ANSWERS):
                whole = self._whole.setdefault(sent.rm_id, Counter())
                kind = type(sent).__name__
                if isinstance(sent, rm.RMApplicationUpdate) and sent.updated:
                    kind = "states of applications"
                whole[kind] += not (is_ahead or len(simulator.taken) > 1)
                is_ahead = False
                if whole[kind] > 1:
                    yield f"G27: an answer to {sent.rm_id} is told in several: {kind}"
        if not self._whole:
            return
        jobs = context.slices.jobs
        self._whole = {it: whole for it, whole in self._whole.items() if jobs.get(it) is not None}

    def _compare_answer(self, message: Message, calls: list[CallRm]) -> Iterator[str]:
        is_part = isinstance(message, rm.RMPartAhead)
        it = self._registered.get(getattr(message, "rm_id", ""))
        if it is None or not (is_part or isinstance(message, _ANSWERS)):
            return
        made = sum(_size(e.call) for e in calls if isinstance(e.call, _UPDATES))
        it.gathered += _size(message)
        if is_part or it.is_ahead:
            it.is_ahead = is_part
            if made:
                yield "G27: a part of an answer is delivered before the last one"
            return
        if made != it.gathered:
            yield f"G16: of an answer with {it.gathered} items {made} are delivered"
        it.gathered = 0

    # -- how far each is behind

    def _compare_flow(
        self, message: Message, calls: list[CallRm], sends: list[Send]
    ) -> Iterator[str]:
        for rm_id, it in self._registered.items():
            mine = [effect.call for effect in calls if effect.callback == it.callback]
            under_way = it.marks
            sent = sum(isinstance(call, _COUNTED) for call in mine)
            it.sent += sent
            it.marks += sum(isinstance(call, c.CallMark) for call in mine)
            if isinstance(message, rm.ResponsesDelivered) and message.callback == it.callback:
                it.marks -= 1
            for held in (effect.message for effect in sends if effect.to == CONTEXT):
                if isinstance(held, rm.RMHeldBack) and held.rm_id == rm_id:
                    it.is_held = held.held
                    yield from _compare_hold(rm_id, it, message, under_way)
            if sent and not it.is_held and it.sent - it.delivered > it.undelivered_max:
                yield f"G30: {it.sent - it.delivered} responses are under way to {rm_id}, unheeded"
        # That it has left may have to wait itself, behind a long request.
        is_former = isinstance(message, rm.RequestsHandled) and self._is_former(message.callback)
        is_former = is_former and not self._is_behind
        if is_former and not any(effect.to == GATEWAY for effect in sends):
            yield f"G30: requests of a former registration wait: {message}"

    def _is_former(self, callback: str) -> bool:
        return all(it.callback != callback for it in self._registered.values())

    # -- questions

    def _take_questions(
        self, simulator: Simulator, message: Message, calls: list[CallRm], sends: list[Send]
    ) -> Iterator[str]:
        self._note_question(
            message, simulator.now_ns + simulator.topology.settings.predicate_timeout_ns
        )
        for effect in calls:
            if isinstance(effect.call, _CALLS):
                self._callers[effect.call.call_id] = self._who_has(effect.callback)
        for sent in sends:
            if isinstance(sent.message, _CHECKED):
                yield from self._answered(sent, message, simulator.now_ns)
        # A long request may be in work yet.
        requesting = ""
        if isinstance(message, _REQUESTS) and _proxy(simulator).is_at_rest:
            requesting = message.request.rm_id
        yield from self._compare_lifted(requesting, sends)
        if not self._open:
            return
        armed = simulator.timers.dues(RM_PROXY)
        for rm_id in dict.fromkeys(self._open.values()):
            if f"predicate/{rm_id}" not in armed and (TIMER, RM_PROXY) not in simulator.channels:
                yield f"G30: nobody watches whether {rm_id} answers"

    def _who_has(self, callback: str) -> str:
        return next((it for it, kept in self._registered.items() if kept.callback == callback), "")

    def _note_question(self, message: Message, deadline_ns: int) -> None:
        if isinstance(message, _ANSWERED):
            asked = self._callers.pop(message.call_id, None)
            if asked is not None:
                self._deadlines[asked] = deadline_ns
        elif isinstance(message, _QUESTIONS):
            if message.rm_id not in self._open.values():
                self._deadlines[message.rm_id] = deadline_ns
            self._open[_asked(message, message.reply_to)] = message.rm_id
            if isinstance(message, p.CheckPreemptionPredicates):
                keys = message.args.preempt_allocation_keys
                self._offered[_asked(message, message.reply_to)] = keys

    def _compare_victims(self, simulator: Simulator) -> Iterator[str]:
        """Victims beyond those that are needed go where the resource manager wants that."""
        if not self._offered:
            return
        wanted = {asked[1:]: keys for asked, keys in self._offered.items()}
        sends = (it for it in simulator.effects if isinstance(it, Send))
        for sent in (it.message for it in sends if it.to == EVENT_PUBLISHER):
            if not isinstance(sent, FactsAppended):
                continue
            keys = {it.uuid: it for it in sent.facts if isinstance(it, VictimMarked)}
            for fact in sent.facts:
                name = sent.partition, sent.epoch, getattr(fact, "proposal_id", 0)
                if isinstance(fact, PreemptionDecided) and name in wanted:
                    here = [keys[it] for it in fact.victims if keys[it].node_id == fact.node_id]
                    if sorted(it.key for it in here) != sorted(wanted[name]):
                        told = [it.key for it in here]
                        yield f"G12: {told} have to go, and {[*wanted[name]]} were agreed to"

    def _compare_lifted(self, requesting: str, sends: list[Send]) -> Iterator[str]:
        lifted: dict[str, dict[str, None]] = {}
        if requesting in self._registered:
            lifted[requesting] = {}
        for sent in sends:
            if isinstance(sent.message, p.DenialsLifted):
                lifted.setdefault(sent.message.rm_id, {})[sent.to] = None
        for rm_id, askers in lifted.items():
            denied = self._denied.pop(rm_id, {})
            if askers != denied:
                yield f"G30: {[*askers]} learn that {rm_id} refuses no more, expected {[*denied]}"

    def _answered(self, sent: Send, message: Message, now_ns: int) -> Iterator[str]:
        assert isinstance(sent.message, _CHECKED)
        rm_id = self._open.pop(_asked(sent.message, sent.to), None)
        if rm_id is None:
            yield f"G25: a question of {sent.to} is answered twice"
            return
        if isinstance(sent.message, p.PreemptionPredicatesChecked):
            offered = self._offered.pop(_asked(sent.message, sent.to), ())
            if sent.message.response.success:
                last = sent.message.response.index
                self._offered[_asked(sent.message, sent.to)] = offered[: last + 1]
        is_late = isinstance(message, p.PredicateDue)
        if is_late and now_ns < self._deadlines[rm_id]:
            yield f"G30: {rm_id} is taken for silent {self._deadlines[rm_id] - now_ns} ns too early"
        is_cut = isinstance(message, rm.RMRegistered | rm.RMLost | rm.RMUnregistered)
        if not is_cut and not sent.message.is_yes:
            self._denied.setdefault(rm_id, {})[sent.to] = None

    # -- at rest

    def _compare_suspension(
        self, manager: ResourceManager, states: list[PartitionState]
    ) -> Iterator[str]:
        it = self._registered.get(manager.rm_id)
        if manager.is_lost is (it is not None):
            yield f"G28: {manager.rm_id} is {'' if it else 'not '}registered, and counts otherwise"
        is_held = it is None or it.is_held
        for state in states:
            if state.suspended is not is_held:
                yield f"G28: {state.name} is {'' if state.suspended else 'not '}held"

    def _left(self, simulator: Simulator) -> Iterator[str]:
        proxy = _proxy(simulator)
        for rm_id, it in self._registered.items():
            if it.is_held:
                yield f"G30: {rm_id} is held back, and nothing is under way to it"
            if it.gathered:
                yield f"G16: {it.gathered} items of an answer to {rm_id} are not delivered"
        if self._open:
            yield f"G25: questions to {[*dict.fromkeys(self._open.values())]} have no answer"
        yield from self._compare_registry(proxy, simulator.machines[CONTEXT])
        if self._have_left:
            counted = proxy.canonical_state().get("at_context", {})
            for rm_id in self._have_left.keys() & counted.keys():
                yield f"G29: what {rm_id} has at Context is counted, and it has left"
        if proxy.questions.calls:
            yield f"G30: calls that nobody answers are kept: {proxy.questions.calls}"

    def _compare_registry(self, proxy: RmProxy, context: Machine) -> Iterator[str]:
        assert isinstance(context, Context)
        registry = context.registry
        for manager in registry.managers.values():
            group = registry.config_of(manager.policy_group)
            if manager.checksum != group.checksum and not manager.is_leaving:
                yield f"G28: {manager.rm_id} has other queues than its group {manager.policy_group}"
            partitions = [context.partitions[name] for name in manager.partitions]
            yield from self._compare_suspension(manager, [it.state for it in partitions])
            if manager.rm_id in self._registered:
                yield from _compare_asked_back(proxy, manager, partitions)
        for name in registry.configured:
            if not registry.members(name):
                yield f"G28: group {name!r} has a configuration and no members"


def _compare_asked_back(
    proxy: RmProxy, manager: ResourceManager, partitions: list[PartitionContext]
) -> Iterator[str]:
    kept = proxy.deliveries[manager.rm_id].requested_back.uuids
    states = [it.state for it in partitions]
    for uuid in kept:
        owners = [it.applications[it.owners[uuid]] for it in states if uuid in it.owners]
        if not any(it.allocations[uuid].releasing is not None for it in owners):
            yield f"G13: {uuid} is kept as asked back from {manager.rm_id}, and is not"
    for partition, uuid in [(it, uuid) for it in partitions for uuid in it.state.unconfirmed]:
        if uuid not in kept and not partition.awaits(uuid):
            yield f"G13: {uuid} was asked back from {manager.rm_id}, and is not kept as that"


def _compare_hold(
    rm_id: str, it: _Registration, message: Message, marks_under_way: int
) -> Iterator[str]:
    if isinstance(message, rm.ResponsesDelivered) and message.callback != it.callback:
        yield f"G28: what a former callback has taken counts for {rm_id}"
    behind = it.sent - it.delivered
    unmarked = max(1, it.undelivered_max // _MARKS)
    if it.is_held and not marks_under_way and behind + unmarked <= it.undelivered_max:
        yield f"G30: {rm_id} is held back, and {behind} of {it.undelivered_max} are under way to it"


def _request_of(message: Any) -> _Request:  # noqa: ANN401 - one of three
    request = message.request
    match message:
        case rm.AllocationsRequested():
            asks = (it.allocation_key for it in (*request.asks, *request.allocations))
            ends = request.releases or si.AllocationReleasesRequest()
            withdrawn = (f"-{it.allocation_key}" for it in ends.allocation_asks_to_release)
            released = (f"-{it.uuid or it.allocation_key}" for it in ends.allocations_to_release)
            return ("allocations", *asks, *withdrawn, *released)
        case rm.ApplicationsRequested():
            new = (it.application_id for it in request.new)
            return ("applications", *new, *(f"-{it.application_id}" for it in request.remove))
        case _:
            return ("nodes", *(f"{it.node_id} {it.action.name}" for it in request.nodes))


def _request_in(message: Any) -> _Request:  # noqa: ANN401 - one of three
    """Name the same of a request as Context gets it."""
    match message:
        case rm.RMUpdateAllocation():
            withdrawn = (f"-{it.key}" for it in message.ask_releases)
            released = (f"-{it.uuid or it.key}" for it in message.releases)
            return ("allocations", *(it.spec.key for it in message.asks), *withdrawn, *released)
        case rm.RMUpdateApplication():
            new = (it.spec.application_id for it in message.added)
            return ("applications", *new, *(f"-{it.application_id}" for it in message.removed))
        case _:
            return ("nodes", *(f"{it.node_id} {it.action.name}" for it in message.nodes))


def _proxy(simulator: Simulator) -> RmProxy:
    proxy = simulator.machines[RM_PROXY]
    assert isinstance(proxy, RmProxy)
    return proxy


def _asked(it: p.Question | p.Checked, asker: str) -> _Asked:
    return asker, it.partition, it.epoch, it.question_id


def _size(it: Any) -> int:  # noqa: ANN401 - an event, a call or its response
    """Count what is in its lists; a run is as many as it has allocations."""
    if isinstance(it, rm.AnnouncedRun):
        return len(it.uuids)
    whole = getattr(it, "response", it)
    lists = (getattr(whole, name) for name in whole.__struct_fields__)
    return sum(
        _size(item) if isinstance(item, rm.AnnouncedRun) else 1
        for items in lists
        if isinstance(items, tuple)
        for item in items
    )
