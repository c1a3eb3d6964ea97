"""The entry of the core: calls become messages.

The gateway checks the form of a request at the call, before anything of it is taken. It also parses
configurations and looks up groups, because a machine does no I/O. Both drivers, threads and
simulator, are behind it; each defines how a message is posted and how an answer is awaited.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

from yunikorn_actors import si
from yunikorn_actors.config import ExtraConfig, SchedulerConfig, parse_config, warnings_in
from yunikorn_actors.core.backlog import Backlog
from yunikorn_actors.core.driver import Afterwards, Driver, Follower
from yunikorn_actors.core.following import Followers
from yunikorn_actors.core.groups import Lookup, Resolvers
from yunikorn_actors.core.questions import Questions
from yunikorn_actors.core.registered_managers import RegisteredManagers
from yunikorn_actors.errors import ConfigError, CoreFailed, CoreStopped, InvalidRequest
from yunikorn_actors.messages.base import CONTEXT, RM_PROXY, Message
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.messages.rm_events import (
    AdminConfigRefused,
    AdminConfigUpdate,
    AdminNodeUpdate,
    AllocationsRequested,
    NodesRequested,
)
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.planning.reasons import WaitingSum, Why
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.si.form import check_names

# Operator calls: a configuration is loaded, a node drained, a lost resource manager removed.

LONGEST_REASON = 2_000
"""Characters of why a configuration was refused that an event tells: the first faults."""


class OperatorCalls:
    def __init__(self, driver: Driver, managers: RegisteredManagers, policies: Policies) -> None:
        self._driver = driver
        self._managers = managers
        self._policies = policies

    def configure(self, text: str, by: str) -> None:
        """Load the administrator's configuration; what is refused changes nothing."""
        try:
            config = parse_config(text, self._policies.names_for(text))
        except ConfigError as error:
            # Refused before the core has heard of it, so it is recorded by a message of its own.
            self._tell_of_refusal(str(error))
            raise
        self._driver.await_acceptance(
            CONTEXT,
            lambda reply_to: AdminConfigUpdate(config=config, by=by, reply_to=reply_to),
            "configuration",
        )
        # Behind the acceptance, as in `RegisteredManagers.configure`.
        self._managers.resolvers.bring_admin(config)
        warned = warnings_in(text, self._policies.names_for(text))
        self._driver.warn(f"configuration of the administrator: {it}" for it in warned)

    def _tell_of_refusal(self, reason: str) -> None:
        """Record a refusal as an event, because readers of events may be far from the caller."""
        with suppress(CoreStopped, CoreFailed), self._driver.afterwards:
            refused = AdminConfigRefused(reason=reason[:LONGEST_REASON])
            self._driver.post(CONTEXT, refused, self._driver.name("configuration"))

    def set_drained(self, partition: str, node_id: str, by: str, *, drained: bool) -> None:
        """Let a node take no new work, or take work again; raise Refused if it does so already."""
        self._driver.await_acceptance(
            CONTEXT,
            lambda reply_to: AdminNodeUpdate(
                partition=partition, node_id=node_id, drained=drained, by=by, reply_to=reply_to
            ),
            "node",
        )

    def unregister_lost(self, rm_id: str, by: str) -> None:
        """Remove everything of a resource manager that is away; one that is not ends by itself."""
        self._managers.unregister_lost(rm_id, by)


Update = si.AllocationRequest | si.ApplicationRequest | si.NodeRequest
"""What a resource manager sends at any time, and is answered at its callback."""


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


def _say_nothing(_complaints: Iterable[str]) -> None:
    """There is no log."""


def _as_it_is(dump: dict[str, Any]) -> dict[str, Any]:
    return dump


class Gateway(UpdateCalls):
    """The calls of the scheduler interface, and what embedders ask.

    Calls of other parts of the product are grouped by subject: `managers`, `questions`,
    `followers`, `operator`.
    """

    def __init__(
        self,
        lookups: Mapping[str, Lookup],
        now_ns: Callable[[], int],
        policies: Policies = NO_POLICIES,
        *,
        warn: Callable[[Iterable[str]], None] = _say_nothing,
        complete: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is,
    ) -> None:
        """`warn` logs what can hardly be meant; `complete` adds to a dump what a driver knows."""
        self._policies = policies
        self._calls = count(1)
        self._afterwards = Afterwards(self._go_on)
        """Around everything that is posted: afterwards a driver handles it."""
        self.driver = driver = Driver(
            post=self._post,
            afterwards=self._afterwards,
            name=self._name,
            await_answer=self._await_answer,
            check_running=self.check_running,
            check_former=self._check_former,
            open_callback=self._open_callback,
            open_follower=self._open_follower,
            close_callback=self._close_callback,
            set_up=self._set_up,
            warn=warn,
        )
        self.managers = RegisteredManagers(driver, Resolvers(lookups, now_ns), policies)
        self.followers = Followers(driver)
        self.operator = OperatorCalls(driver, self.managers, policies)
        self.questions = Questions(
            driver,
            self.managers,
            self.followers,
            policies=policies,
            now_ns=now_ns,
            complete=complete,
        )

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
        # Before the configuration is parsed: a core that has stopped says so, and not that a text
        # has a fault.
        self.check_running()
        config = read_if_any(request.config, self._policies)
        return self.managers.register(request, callback, config)

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Reload the configuration; if it is refused nothing has changed.

        A request without a resource manager comes from the administrator. It holds for every policy
        group that brings no configuration of its own.
        """
        si.check_form(request, si.UpdateConfigurationRequest)
        if not request.rm_id:
            self.administer(request.config)
            return
        # Checked before the text, as above: only a registered manager may bring one.
        self.managers.of(request.rm_id, si.UpdateConfigurationRequest.__name__)
        self.managers.configure(request, read_if_any(request.config, self._policies))

    # -- the life of a resource manager

    def resource_manager_lost(self, rm_id: str) -> None:
        """Suspend its partitions: its work goes on, nothing is decided until it registers again."""
        check_names("resource_manager_lost", rm_id=rm_id)
        self.managers.lose(rm_id)

    def unregister_resource_manager(self, rm_id: str) -> None:
        """Remove everything of a resource manager, registered or lost."""
        check_names("unregister_resource_manager", rm_id=rm_id)
        # Under `order`, as every change of who is registered: a request taken before this goes out
        # before it.
        with self._afterwards, self.managers.order:
            self.managers.unregister(rm_id)

    def has_room(self, rm_id: str) -> bool:
        """Whether another request of this resource manager would not wait."""
        registration = self.managers.registered.get(rm_id)
        return registration is None or not registration.backlog.is_full

    def when_room(self, rm_id: str, call: Callable[[], None]) -> None:
        """For who may not wait: call once a request of this manager would not have to."""
        registration = self.managers.registered.get(rm_id)
        if registration is None:
            call()
        else:
            registration.backlog.when_room(call)

    # -- questions

    def state_dump(self) -> dict[str, Any]:
        """Return everything that Context knows, at one moment, as plain values.

        Waiting asks and the resource managers' own state are added, each read a moment later.
        """
        return self.questions.state_dump()

    def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        """Say why an ask waits: all that refuses it, and what would change that.

        Of an ask that was placed it says where, of one that was rejected why, for as long as that
        is remembered. An ask that is not known raises UnknownAsk. The partition, by its full name
        such as `[rm-1]default`, need only be named where several have an application of this id.
        """
        return self.questions.explain(application_id, key, partition=partition)

    def expected(self, application_id: str = "", *, partition: str = "") -> tuple[Expected, ...]:
        """Return when what waits will start, of an application or of all: places and intervals.

        The first call has a follower of the core begin, which learns from then on how long work
        runs; later calls ask that, and no actor of the core.
        """
        return self.questions.expected(application_id, partition=partition)

    def waiting(self, *, partition: str = "") -> tuple[WaitingSum, ...]:
        """Return what waits, added up by cause, queue and size, with the largest sums first.

        The planner keeps these sums, so this is quick however much waits. A queue or a limit that
        refuses stands before the size of the cluster: what waits for NO_NODE or CLUSTER_FULL, and
        has no `required_nodes`, would run on more nodes. The partition, by its full name such as
        `[rm-1]default`, need only be named where there are several.
        """
        return self.questions.waiting(partition=partition)

    def events(self, first_id: int = 0, count: int = 10_000) -> EventsFound:
        """Event records from this number on, with the range that is stored."""
        return self.questions.events(first_id, count)

    # -- updates

    def submit_checked(self, request: Update) -> None:
        """Take a request whose form was checked: wait for room, then post it."""
        rm_id, kind = request.rm_id, type(request).__name__
        # A look without the lock first: an unknown manager is refused by `of`, with the remedy.
        registration = self.managers.registered.get(rm_id) or self.managers.of(rm_id, kind)
        # Before the wait, as the look-up of groups may take its time, and outside of the lock,
        # which nobody may hold while waiting.
        message, call = _message_of(request, self.managers)
        # A call inside a callback never waits here, see `_await_room` of the drivers.
        if registration.backlog.is_full:
            self._await_room(registration.backlog)
        try:
            with self.managers.order:
                # Meanwhile the resource manager may have left, or registered again.
                if self.managers.registered.get(rm_id) is not registration:
                    registration = self.managers.of(rm_id, kind)
                # Posted and counted under one lock: RmProxy gets requests in the order in which
                # callers see them taken, and a mark behind the requests that it counts (R-126,
                #
                self._post(RM_PROXY, message, self._name(call))
                if marked := registration.backlog.take():
                    self.managers.mark(rm_id, registration.callback, marked)
        finally:
            # Also if something was raised: what was posted before must be handled.
            self._go_on()

    # -- the administrator

    @property
    def is_administered(self) -> bool:
        """Whether the administrator has brought a configuration."""
        return self.managers.resolvers.is_administered

    def administer(self, text: str, by: str = "") -> None:
        """Load the administrator's configuration; what is refused changes nothing."""
        self.operator.configure(text, by)

    # -- parts

    def _name(self, call: str) -> str:
        return f"{call}-{next(self._calls)}"


def _message_of(request: Update, managers: RegisteredManagers) -> tuple[Message, str]:
    """Return what RmProxy is sent, and the name of the call."""
    if isinstance(request, si.AllocationRequest):
        return AllocationsRequested(request=request), "allocation"
    if isinstance(request, si.NodeRequest):
        return NodesRequested(request=request), "node"
    return managers.with_groups(request), "application"


def read_if_any(text: str, policies: Policies) -> SchedulerConfig | None:
    """Parse a configuration; with a blank text the resource manager brings none of its own."""
    return parse_config(text, policies.names_for(text)) if text.strip() else None
