"""The entry of the core: calls become messages.

The gateway checks the form of a request at the call, before anything of it is taken. It also parses
configurations and looks up groups, because a machine reads nothing. Both drivers, threads and
simulator, are behind it; each defines how a message is posted and how an answer is awaited.
"""

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.config import ExtraConfig, SchedulerConfig, parse_config, warnings_in
from yunikorn_actors.core.backlog import Backlog
from yunikorn_actors.core.expected_starts import ExpectedStarts
from yunikorn_actors.core.groups import Lookup, Resolvers, UserResolutionFailed, is_forced
from yunikorn_actors.errors import (
    ConfigError,
    CoreFailed,
    CoreStopped,
    InvalidRequest,
    NoReply,
    Refused,
    UnknownAsk,
    UnknownResourceManager,
)
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    RM_PROXY,
    Message,
    callback_address,
    follower_address,
    stream_address,
)
from yunikorn_actors.messages.event_views import shown_records
from yunikorn_actors.messages.followers import CatchUpRequested, FollowEnded, FollowRequested
from yunikorn_actors.messages.queries import (
    Accepted,
    CountsFound,
    CountsRequested,
    Declined,
    EventsFound,
    EventsRequested,
    EventStreamLeft,
    EventStreamRequested,
    ExplainRequested,
    Explanation,
    RmDump,
    RmDumpRequested,
    StateDump,
    StateDumpRequested,
)
from yunikorn_actors.messages.rm_events import (
    AdminConfigRefused,
    AdminConfigUpdate,
    AdminNodeUpdate,
    AllocationsRequested,
    ApplicationsRequested,
    Capabilities,
    ConfigurationRequested,
    NodesRequested,
    RegistrationRequested,
    RequestsHandled,
    RequestsMarked,
    RMLost,
    RMUnregistered,
    UnresolvedUser,
)
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.planning.why.reasons import (
    EXPLAINED_MAX,
    LOOKS_MAX,
    WaitingAnswer,
    WaitingAsk,
    WaitingQuestion,
    WaitingSum,
    Why,
    alike,
)
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.si.form import check_counts, check_names
from yunikorn_actors.state.dump import DUMP_FORMAT

LONGEST_REASON = 2_000
"""Characters of why a configuration was refused that an event tells: the first faults."""

_Answer = TypeVar("_Answer", bound=Message)
Update = si.AllocationRequest | si.ApplicationRequest | si.NodeRequest
"""What a resource manager sends at any time, and is answered at its callback."""


class StandIn(si.ResourceManagerCallback, ABC):
    """A callback that stands in for a program, and has every method whatever that answers."""

    @abstractmethod
    def answers(self, method: str) -> bool:
        """Whether the core is to ask by this method at all."""


def overrides(callback: si.ResourceManagerCallback, method: str) -> bool:
    if isinstance(callback, StandIn):
        return callback.answers(method)
    return getattr(type(callback), method) is not getattr(si.ResourceManagerCallback, method)


class Follower(Protocol):
    """A read side: it hears how everything stands, then all that becomes true, in order."""

    def receive(self, message: Message) -> None: ...


class Registration(NamedTuple):
    """A registered resource manager, as the gateway knows it."""

    callback: str
    """The mailbox of its callback."""
    tells_state: bool
    """Whether its callback overrides `get_state_dump`."""
    backlog: Backlog


class _Afterwards:
    """In a `with`, outside of every lock: what is called at its end, whatever was raised."""

    def __init__(self, go_on: Callable[[], None]) -> None:
        self._go_on = go_on

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._go_on()


def _joined(parts: Sequence[Sequence[WaitingSum]]) -> Iterable[WaitingSum]:
    """Add up what is in several parts; in each is everything once."""
    if len(parts) == 1:
        return parts[0]
    found: dict[Hashable, WaitingSum] = {}
    for one in chain.from_iterable(parts):
        name = alike(one)
        same = found.get(name)
        found[name] = one if same is None else one.plus(same)
    return found.values()


def waiting_of(answer: Explanation) -> dict[str, Any]:
    """Return what a state dump has about the waiting asks of a partition."""
    return {
        "as_of": answer.as_of,
        "is_complete": answer.is_complete,
        "total": answer.total,
        "causes": answer.causes,
        "asks": msgspec.to_builtins(answer.waiting),
        "rejected": msgspec.to_builtins(answer.rejected),
    }


class UpdateCalls(ABC):
    """The updates of the interface: the form of each is checked, and all go the same way."""

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Make asks, report and release; `update_allocation` of the callback answers."""
        si.check_form(request, si.AllocationRequest)
        self.submit_checked(request)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Add and remove applications; `update_application` of the callback answers."""
        si.check_form(request, si.ApplicationRequest)
        self.submit_checked(request)

    def update_node(self, request: si.NodeRequest) -> None:
        """Add, change, drain and remove nodes; `update_node` of the callback answers."""
        si.check_form(request, si.NodeRequest)
        self.submit_checked(request)

    @abstractmethod
    def submit_checked(self, request: Update) -> None:
        """As the three updates, of a request whose form was checked."""


class Gateway(UpdateCalls):
    """The calls of the scheduler interface, and questions about the state."""

    def __init__(
        self,
        *,
        lookups: Mapping[str, Lookup],
        now_ns: Callable[[], int],
        policies: Policies = NO_POLICIES,
    ) -> None:
        self._policies = policies
        self._now_ns = now_ns
        self._expected: ExpectedStarts | None = None
        self._expected_lock = threading.Lock()
        """Guards it for a moment: nothing that waits for the core is done under it."""
        self._resolvers = Resolvers(lookups, now_ns)
        self._order = threading.RLock()
        """Held while the registered managers change and while RmProxy is sent their messages.

        So RmProxy gets requests and registrations in the order that callers see: a request that was
        taken is handled. No thread waits while it holds the lock, so a callback may take it too.
        """
        self._afterwards = _Afterwards(self._go_on)
        """Around everything that is posted: afterwards a driver handles it."""
        self._registered: dict[str, Registration] = {}
        self._coming: dict[str, str] = {}
        """Callbacks whose registration is not answered yet, each with its resource manager.

        The order is that in which RmProxy gets them. If the same resource manager is lost, leaves
        or registers again before the answer, the entry goes: the answer then changes nothing here.
        """
        self._raised_in: Counter[str] = Counter()
        """How often the callbacks of each resource manager have raised."""
        self._registrations = count(1)
        self._calls = count(1)
        self._streams = count(1)
        self._following: dict[str, None] = {}
        """The addresses of the followers."""

    # -- what a driver provides

    @abstractmethod
    def _post(self, address: str, message: Message, stimulus: str) -> None: ...

    @abstractmethod
    def _go_on(self) -> None:
        """Something was posted: a driver whose machines have no threads handles it now."""

    @abstractmethod
    def _await_answer(self, post: Callable[[str], None], stimulus: str) -> Message:
        """Give `post` a reply address for its question, and wait for the answer."""

    @abstractmethod
    def check_running(self) -> None:
        """Raise CoreStopped or CoreFailed if the core takes no more requests."""

    @abstractmethod
    def _await_room(self, backlog: Backlog) -> None:
        """Wait until the backlog has room; a caller inside a callback never waits."""

    @abstractmethod
    def _set_up(self, rm_id: str, extra: ExtraConfig) -> None:
        """Apply the settings that concern the driver: log level, health checks."""

    @abstractmethod
    def _warn(self, complaints: Iterable[str]) -> None:
        """Log what was taken and has no effect, or can hardly be meant."""

    @abstractmethod
    def _check_former(self, rm_id: str) -> None:
        """Raise CallbackStuck while a former callback does not return from a call."""

    @abstractmethod
    def _open_callback(self, address: str, callback: si.ResourceManagerCallback) -> None: ...

    @abstractmethod
    def _open_follower(self, address: str, follower: Follower) -> None: ...

    @abstractmethod
    def _close_callback(self, address: str) -> None:
        """Deliver nothing to this callback any more; a second call does nothing."""

    # -- the scheduler interface

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
    ) -> si.RegisterResourceManagerResponse:
        """Register, or register again: then everything of the former registration is dropped."""
        si.check_form(request, si.RegisterResourceManagerRequest)
        if not isinstance(callback, si.ResourceManagerCallback):
            raise InvalidRequest(
                f"callback: must be a ResourceManagerCallback, not {type(callback).__name__}; "
                "subclass it and override what you care about"
            )
        self.check_running()
        return self.register_with(request, callback, self._brought(request.config))

    def register_with(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
        config: SchedulerConfig | None,
    ) -> si.RegisterResourceManagerResponse:
        """Register with a configuration that was read already."""
        extra = ExtraConfig.of(request.extra_config)
        address = callback_address(request.rm_id, next(self._registrations))
        self._check_former(request.rm_id)
        self._open_callback(address, callback)
        name = self._name("register")

        def post(reply_to: str) -> None:
            requested = RegistrationRequested(
                request=request,
                config=config,
                callback=address,
                capabilities=self._capabilities(callback),
                extra=extra,
                reply_to=reply_to,
            )
            with self._order:
                self._post(RM_PROXY, requested, name)
                self._coming[address] = request.rm_id

        try:
            _check_accepted(self._await_answer(post, name), name)
        except BaseException:
            with self._order:
                self._coming.pop(address, None)
            self._close_callback(address)
            raise
        tells_state = overrides(callback, "get_state_dump")
        with self._order:
            if address in self._coming:
                self._overtake(request.rm_id, address)
                self._resolvers.join(request.rm_id, request.policy_group, config)
                self._leave(request.rm_id)
                backlog = Backlog(extra.unhandled_max)
                self._registered[request.rm_id] = Registration(address, tells_state, backlog)
                self._set_up(request.rm_id, extra)
                self._warn(self._complaints(request))
        return si.RegisterResourceManagerResponse()

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Reload the configuration; if it is refused nothing has changed.

        A request without a resource manager comes from the administrator. It holds for every policy
        group that brings no configuration of its own.
        """
        si.check_form(request, si.UpdateConfigurationRequest)
        if not request.rm_id:
            self.administer(request.config)
            return
        self._registration(request.rm_id, si.UpdateConfigurationRequest.__name__)
        self.configure_with(request, self._brought(request.config))

    def configure_with(
        self, request: si.UpdateConfigurationRequest, config: SchedulerConfig | None
    ) -> None:
        """Reload a resource manager under a configuration that was read already."""
        extra = ExtraConfig.of(request.extra_config)
        self.await_acceptance(
            RM_PROXY,
            lambda reply_to: ConfigurationRequested(
                request=request, config=config, extra=extra, reply_to=reply_to
            ),
            "configuration",
        )
        self._resolvers.bring(request.rm_id, config)
        with self._afterwards, self._order:
            registration = self._registered.get(request.rm_id)
            if registration is not None:
                if marked := registration.backlog.bound(extra.unhandled_max):
                    self._mark(request.rm_id, registration.callback, marked)
                self._set_up(request.rm_id, extra)
                self._warn(self._complaints(request))

    # -- the life of a resource manager

    def resource_manager_lost(self, rm_id: str) -> None:
        """Suspend its partitions: its work goes on, nothing is decided until it registers again."""
        check_names("resource_manager_lost", rm_id=rm_id)
        with self._afterwards, self._order:
            self._registration(rm_id, "resource_manager_lost")
            self._post(RM_PROXY, RMLost(rm_id=rm_id), self._name("lost"))
            self._overtake(rm_id)
            self._leave(rm_id)

    def unregister_resource_manager(self, rm_id: str) -> None:
        """Remove everything of a resource manager, registered or lost."""
        check_names("unregister_resource_manager", rm_id=rm_id)
        with self._afterwards, self._order:
            self.post_unregistration(rm_id)

    def post_unregistration(self, rm_id: str, by: str = "", reply_to: str = "") -> None:
        """Have everything of a resource manager removed; an answer goes to `reply_to`, if given."""
        message = RMUnregistered(rm_id=rm_id, by=by, reply_to=reply_to)
        self._post(RM_PROXY, message, self._name("unregister"))
        self._overtake(rm_id)
        self._leave(rm_id)
        self._resolvers.leave(rm_id)
        self._set_up(rm_id, ExtraConfig())

    def _overtake(self, rm_id: str, last: str = "") -> None:
        """Ignore the answers to its registrations up to `last`, or to all of them."""
        for callback in [it for it, manager in self._coming.items() if manager == rm_id]:
            del self._coming[callback]
            if callback == last:
                return

    def _leave(self, rm_id: str) -> None:
        """Refuse its requests from here on; a caller that waits for room is refused as well."""
        registration = self._registered.pop(rm_id, None)
        if registration is not None:
            registration.backlog.close()

    # -- questions

    def state_dump(self) -> dict[str, Any]:
        """Return everything that Context knows, at one moment, as plain values.

        Waiting asks and the resource managers' own state are added, each read a moment later.
        """
        dump = self._context_dump()
        return dump | {
            "format": DUMP_FORMAT,
            "waiting": {name: self.waiting_asks(name) for name in dump["partitions"]},
            "rm_diagnostics": self.diagnostics(),
            "unhandled_requests": self.unhandled(),
            "callback_errors": self.callback_error_counts(),
        }

    def unhandled(self) -> dict[str, int]:
        """How many requests of each resource manager are not handled yet."""
        registered = sorted(self._registered.copy().items())
        return {rm_id: registration.backlog.unhandled for rm_id, registration in registered}

    def callback_error_counts(self) -> dict[str, int]:
        """How often the callback of each resource manager has raised."""
        return dict(sorted(self._raised_in.copy().items()))

    def _context_dump(self) -> dict[str, Any]:
        return self._answer(
            StateDump, CONTEXT,
            lambda reply_to: StateDumpRequested(reply_to=reply_to, is_whole=True), "dump",
        ).state  # fmt: skip

    def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        """Say why an ask waits: all that refuses it, and what would change that.

        Of an ask that was placed it says where, of one that was rejected why, for as long as that
        is remembered. An ask that is not known raises UnknownAsk. The partition, by its full name
        such as `[rm-1]default`, need only be named where several have an application of this id.
        """
        names = {"application_id": application_id, "key": key, "partition": partition}
        check_names("explain", optional=("partition",), **names)
        answer = self._explanation(partition, application_id, key)
        if isinstance(answer, Declined):
            raise UnknownAsk(answer.reason)
        if not answer.waiting:
            raise UnknownAsk(
                f"no ask {key} of {application_id} is known: it has ended, was withdrawn or never "
                "came"
            )
        return answer.waiting[0]

    def expected(self, application_id: str = "", *, partition: str = "") -> tuple[Expected, ...]:
        """Return when what waits will start, of an application or of all: places and intervals.

        The first call has a follower of the core begin, which learns from then on how long work
        runs; later calls ask that, and no actor of the core.
        """
        names = {"application_id": application_id, "partition": partition}
        check_names("expected", optional=tuple(names), **names)
        if self._expected is None:
            starts = ExpectedStarts(self._policies, self._now_ns)
            address = self.follow(starts)
            self.catch_up()
            with self._expected_lock:
                is_first = self._expected is None
                self._expected = self._expected or starts
            if not is_first:
                # Two first calls at once: the follower of one of them serves both.
                self.unfollow(address)
        return self._expected.of(application_id, partition)

    def waiting(self, *, partition: str = "") -> tuple[WaitingSum, ...]:
        """Return what waits, added up by cause, queue and size, with the largest sums first.

        The planner keeps these sums, so this is quick however much waits. A queue or a limit that
        refuses stands before the size of the cluster: what waits for NO_NODE or CLUSTER_FULL, and
        has no `required_nodes`, would run on more nodes. The partition, by its full name such as
        `[rm-1]default`, need only be named where there are several.
        """
        check_names("waiting", optional=("partition",), partition=partition)
        parts = [it.sums for _, it in self._parts(partition, WaitingQuestion(sums=True)) if it.sums]
        return tuple(sorted(_joined(parts), key=lambda it: -it.count))

    def waiting_asks(self, partition: str) -> dict[str, Any]:
        """Explain all waiting asks, and the asks that were rejected last.

        A partition may be removed first, then there are none.
        """
        question = WaitingQuestion(by_cause=True, explained=EXPLAINED_MAX, looks=LOOKS_MAX)
        parts = tuple(self._parts(partition, question))
        if not parts:
            return {}
        counted = [part for _, part in parts]
        causes = sum((Counter(part.causes) for part in counted), Counter[str]())
        asks = [why for part in counted for why in part.explained]
        total = sum(part.total for part in counted)
        return waiting_of(
            replace(
                parts[-1][0],
                waiting=tuple(asks),
                is_complete=len(asks) == total,
                total=total,
                causes=dict(sorted(causes.items())),
                rejected=parts[0][0].rejected,
            )
        )

    def count_waiting(self, partition: str, question: WaitingQuestion) -> WaitingAnswer:
        """Count asks that wait, or list them: part after part, so that no handler takes long.

        Between two parts the core decides on, so what changes meanwhile may count twice or never.
        """
        total, causes, asks = 0, Counter[str](), list[WaitingAsk]()
        for _, part in self._parts(partition, question):
            total += part.total
            causes.update(part.causes)
            asks += part.asks
        return WaitingAnswer(total=total, causes=dict(causes), asks=tuple(asks))

    def _parts(
        self, partition: str, question: WaitingQuestion
    ) -> Iterator[tuple[Explanation, WaitingAnswer]]:
        """Yield the parts of an answer; there is none where the partition is not there."""
        is_all = False
        while not is_all:
            answer = self._explanation(partition, "", "", question)
            if isinstance(answer, Declined) or answer.counted is None:
                return
            part = answer.counted
            yield answer, part
            is_all = part.is_all
            question = replace(
                question,
                serial=part.serial,
                place=part.place,
                listed=question.listed - len(part.asks),
                explained=question.explained - len(part.explained),
                looks=max(0, question.looks - part.looks),
            )

    def _explanation(
        self,
        partition: str,
        application_id: str,
        key: str,
        waiting: WaitingQuestion | None = None,
    ) -> Explanation | Declined:
        answer = self._ask(
            CONTEXT,
            lambda reply_to: ExplainRequested(
                partition=partition,
                application_id=application_id,
                key=key,
                reply_to=reply_to,
                waiting=waiting,
                in_units=True,
                with_victims=bool(key),
            ),
            self._name("explain"),
        )
        if not isinstance(answer, Explanation | Declined):
            raise NoReply(f"the core answered {type(answer).__name__} instead of an Explanation")
        return answer

    def diagnostics(self) -> dict[str, Any]:
        """What each resource manager reports of its own state."""
        return {
            rm_id: self._diagnosis(rm_id, tells_state=registration.tells_state)
            for rm_id, registration in sorted(self._registered.copy().items())
        }

    def _diagnosis(self, rm_id: str, *, tells_state: bool) -> Any:  # noqa: ANN401 - any JSON
        if not tells_state:
            return {"empty": "Resource Manager did not register callback"}
        answer = self._answer(
            RmDump,
            RM_PROXY,
            lambda reply_to: RmDumpRequested(rm_id=rm_id, reply_to=reply_to),
            "dump",
        )
        if answer.error:
            return {"Error": answer.error}
        try:
            return msgspec.json.decode(answer.text)
        except (msgspec.MsgspecError, RecursionError) as error:
            return {"Error": f"get_state_dump returned no JSON: {error}"}

    def events(self, first_id: int = 0, count: int = 10_000) -> EventsFound:
        """Event records from this number on, with the range that is stored."""
        check_counts("events", first_id=first_id, count=count)
        found = self._answer(
            EventsFound,
            EVENT_PUBLISHER,
            lambda reply_to: EventsRequested(first_id=first_id, count=count, reply_to=reply_to),
            "events",
        )
        return replace(found, records=shown_records(found.records))

    def counts(self) -> CountsFound:
        """Return the numbers that no fact tells."""
        return self._answer(
            CountsFound, CONTEXT, lambda reply_to: CountsRequested(reply_to=reply_to), "counts"
        )

    def follow(self, follower: Follower) -> str:
        """Send everything that becomes true to this follower; return its address."""
        address = follower_address(next(self._streams))
        self._open_follower(address, follower)
        try:
            self.await_acceptance(
                CONTEXT,
                lambda reply_to: FollowRequested(follower=address, reply_to=reply_to),
                "follow",
            )
        except BaseException:
            self._close_callback(address)
            raise
        self._following[address] = None
        return address

    def catch_up(self) -> None:
        """Wait until all followers have received what is true now.

        A follower that goes meanwhile does not answer. The change is done all the same, so the
        caller does not learn of that.
        """
        for follower in tuple(self._following):
            with suppress(NoReply):
                self._ask(
                    CONTEXT,
                    lambda reply_to, it=follower: CatchUpRequested(follower=it, reply_to=reply_to),  # type: ignore[misc]
                    self._name("catch-up"),
                )

    def unfollow(self, address: str) -> None:
        """Tell it no more; a core that has stopped or failed has closed it already."""
        self._following.pop(address, None)
        self._close_callback(address)
        with suppress(CoreStopped, CoreFailed), self._afterwards:
            self._post(CONTEXT, FollowEnded(follower=address), self._name("follow"))

    def open_stream(self, hearer: si.ResourceManagerCallback, history: int) -> str:
        """Have every record delivered to this callback; return its address."""
        address = stream_address(next(self._streams))
        self._open_callback(address, hearer)
        try:
            self.await_acceptance(
                EVENT_PUBLISHER,
                lambda reply_to: EventStreamRequested(
                    hearer=address, history=history, reply_to=reply_to
                ),
                "stream",
            )
        except BaseException:
            self._close_callback(address)
            raise
        return address

    def _close_stream(self, address: str) -> None:
        """Close a stream; a core that has stopped or failed has closed it already."""
        self._close_callback(address)
        with suppress(CoreStopped, CoreFailed), self._afterwards:
            self._post(EVENT_PUBLISHER, EventStreamLeft(hearer=address), self._name("stream"))

    # -- parts

    def submit_checked(self, request: Update) -> None:
        """Take a request whose form was checked: wait for room, then post it."""
        rm_id, kind = request.rm_id, type(request).__name__
        registration = self._registered.get(rm_id) or self._registration(rm_id, kind)
        message, call = self._message_of(request)
        if registration.backlog.is_full:
            self._await_room(registration.backlog)
        try:
            with self._order:
                # Meanwhile the resource manager may have left, or registered again.
                if self._registered.get(rm_id) is not registration:
                    registration = self._registration(rm_id, kind)
                self._post(RM_PROXY, message, self._name(call))
                if marked := registration.backlog.take():
                    self._mark(rm_id, registration.callback, marked)
        finally:
            self._go_on()

    def _message_of(self, request: Update) -> tuple[Message, str]:
        """Return what RmProxy is sent, and the name of the call."""
        if isinstance(request, si.AllocationRequest):
            return AllocationsRequested(request=request), "allocation"
        if isinstance(request, si.NodeRequest):
            return NodesRequested(request=request), "node"
        return self._with_groups(request), "application"

    def when_room(self, rm_id: str, call: Callable[[], None]) -> None:
        """For who may not wait: call once a request of this manager would not have to."""
        registration = self._registered.get(rm_id)
        if registration is None:
            call()
        else:
            registration.backlog.when_room(call)

    def is_registered(self, rm_id: str) -> bool:
        """Whether its requests are taken."""
        return rm_id in self._registered

    def has_room(self, rm_id: str) -> bool:
        """Whether another request of this resource manager would not wait."""
        registration = self._registered.get(rm_id)
        return registration is None or not registration.backlog.is_full

    def _mark(self, rm_id: str, callback: str, count: int) -> None:
        marked = RequestsMarked(rm_id=rm_id, callback=callback, count=count)
        self._post(RM_PROXY, marked, self._name("mark"))

    def _receive(self, message: Message) -> None:
        """Take a message of the core to the gateway; one for a former registration is ignored."""
        if isinstance(message, RequestsHandled):
            registration = self._registered.get(message.rm_id)
            if registration is not None and registration.callback == message.callback:
                registration.backlog.handled(message.count)

    @property
    def is_administered(self) -> bool:
        """Whether the administrator has brought a configuration."""
        return self._resolvers.is_administered

    def administer(self, text: str, by: str = "") -> None:
        """Load the administrator's configuration; what is refused changes nothing."""
        try:
            config = parse_config(text, self._policies.names_for(text))
        except ConfigError as error:
            self._tell_of_refusal(str(error))
            raise
        self.await_acceptance(
            CONTEXT,
            lambda reply_to: AdminConfigUpdate(config=config, by=by, reply_to=reply_to),
            "configuration",
        )
        self._resolvers.bring_admin(config)
        warned = warnings_in(text, self._policies.names_for(text))
        self._warn(f"configuration of the administrator: {it}" for it in warned)

    def set_drained(self, partition: str, node_id: str, by: str, *, drained: bool) -> None:
        """Let a node take no new work, or take work again; raise Refused if it does so already."""
        self.await_acceptance(
            CONTEXT,
            lambda reply_to: AdminNodeUpdate(
                partition=partition, node_id=node_id, drained=drained, by=by, reply_to=reply_to
            ),
            "node",
        )

    def unregister_lost(self, rm_id: str, by: str) -> None:
        """Remove everything of a resource manager that is away; one that is not ends by itself."""

        def post(reply_to: str) -> None:
            with self._order:
                if rm_id in self._registered or rm_id in self._coming.values():
                    raise Refused(
                        f"{rm_id} is registered: stop that program first, which ends its work"
                    )
                self.post_unregistration(rm_id, by, reply_to)

        call = self._name("unregister")
        _check_accepted(self._await_answer(post, call), call)

    def _tell_of_refusal(self, reason: str) -> None:
        """Record it as an event: the caller that raised it may be far from its readers."""
        with suppress(CoreStopped, CoreFailed), self._afterwards:
            refused = AdminConfigRefused(reason=reason[:LONGEST_REASON])
            self._post(CONTEXT, refused, self._name("configuration"))

    def _registration(self, rm_id: str, what: str) -> Registration:
        self.check_running()
        registration = self._registered.get(rm_id)
        if registration is None:
            raise UnknownResourceManager(
                f'received {what}, but RmID="{rm_id}" not registered: '
                "call register_resource_manager first"
            )
        return registration

    def _with_groups(self, request: si.ApplicationRequest) -> ApplicationsRequested:
        """Look up the groups of each user here, on the caller's thread: a directory may be slow."""
        self.check_running()
        users = self._resolvers.users_of(request.rm_id)
        new = list(request.new)
        unresolved: list[UnresolvedUser] = []
        for position, item in enumerate(new):
            try:
                ugi = users.resolve(item.ugi, forced=is_forced(item.tags))
            except UserResolutionFailed as failure:
                unresolved.append(UnresolvedUser(position=position, reason=str(failure)))
            else:
                new[position] = replace(item, ugi=ugi)
        return ApplicationsRequested(
            request=replace(request, new=tuple(new)), unresolved=tuple(unresolved)
        )

    @staticmethod
    def _capabilities(callback: si.ResourceManagerCallback) -> Capabilities:
        return Capabilities(
            hears_states=overrides(callback, "update_container_scheduling_state"),
            has_predicates=overrides(callback, "predicates"),
            has_preemption_predicates=overrides(callback, "preemption_predicates"),
        )

    def _complaints(
        self, request: si.RegisterResourceManagerRequest | si.UpdateConfigurationRequest
    ) -> Iterator[str]:
        """Name what was taken and counts as if it were not there, or can hardly be meant."""
        for fault in ExtraConfig.faults_of(request.extra_config):
            yield f"extra configuration of {request.rm_id}: {fault}"
        for warning in warnings_in(request.config, self._policies.names_for(request.config)):
            yield f"configuration of {request.rm_id}: {warning}"

    def _brought(self, text: str) -> SchedulerConfig | None:
        """Parse a configuration; with a blank text the resource manager brings none of its own."""
        return parse_config(text, self._policies.names_for(text)) if text.strip() else None

    def _name(self, call: str) -> str:
        return f"{call}-{next(self._calls)}"

    def _answer(
        self, kind: type[_Answer], address: str, question: Callable[[str], Message], call: str
    ) -> _Answer:
        answer = self._ask(address, question, self._name(call))
        if isinstance(answer, Declined):
            raise NoReply(answer.reason)
        if not isinstance(answer, kind):
            raise NoReply(f"the core answered {type(answer).__name__} instead of {kind.__name__}")
        return answer

    def await_acceptance(self, address: str, question: Callable[[str], Message], call: str) -> None:
        """Send a message with the place for its answer, and wait until Context accepts it."""
        name = self._name(call)
        _check_accepted(self._ask(address, question, name), name)

    def _ask(self, address: str, question: Callable[[str], Message], stimulus: str) -> Message:
        """Post the question made for a reply address, and wait for the answer."""
        return self._await_answer(
            lambda reply_to: self._post(address, question(reply_to), stimulus), stimulus
        )


def _check_accepted(answer: Message, call: str) -> None:
    if isinstance(answer, Declined):
        raise Refused(answer.reason)
    if not isinstance(answer, Accepted):
        raise NoReply(f"the core answered {type(answer).__name__} to {call}")
