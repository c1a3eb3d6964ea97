"""The resource managers that are registered at a core: how they come, are lost and leave.

Registering waits for an answer, and anything may happen meanwhile: the same manager registers
again, is lost, leaves. `coming` keeps the registrations that are on their way, in the order in
which RmProxy gets them, so that an answer that was overtaken changes nothing (H-19).
"""

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.config import ExtraConfig, SchedulerConfig, warnings_in
from yunikorn_actors.core.backlog import Backlog
from yunikorn_actors.core.driver import Driver, check_accepted
from yunikorn_actors.core.groups import Resolvers, UserResolutionFailed
from yunikorn_actors.errors import Refused, UnknownResourceManager
from yunikorn_actors.messages.base import RM_PROXY, Message, callback_address
from yunikorn_actors.messages.rm_events import (
    ApplicationsRequested,
    Capabilities,
    ConfigurationRequested,
    RegistrationRequested,
    RequestsHandled,
    RequestsMarked,
    RMLost,
    RMUnregistered,
    UnresolvedUser,
)
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.values.tag_lookup import is_forced


class StandIn(si.ResourceManagerCallback, ABC):
    """A callback that stands in for a program, and has every method whatever that answers."""

    @abstractmethod
    def answers(self, method: str) -> bool:
        """Whether the core is to ask by this method at all."""


# The core asks only for what a program overrides: else every placement would cost a question to a
# method that says yes.
def overrides(callback: si.ResourceManagerCallback, method: str) -> bool:
    if isinstance(callback, StandIn):
        return callback.answers(method)
    return getattr(type(callback), method) is not getattr(si.ResourceManagerCallback, method)


class Registration(NamedTuple):
    """A registered resource manager, as the gateway knows it."""

    callback: str
    """The mailbox of its callback."""
    tells_state: bool
    """Whether its callback overrides `get_state_dump`."""
    backlog: Backlog


class RegisteredManagers:
    def __init__(self, driver: Driver, resolvers: Resolvers, policies: Policies) -> None:
        self._driver = driver
        self._policies = policies
        self.resolvers = resolvers
        self.order = threading.RLock()
        """Held while the registered managers change and while RmProxy is sent their messages.

        So RmProxy gets requests and registrations in the order that callers see: a request that was
        taken is handled. No thread waits while it holds the lock, so a callback may take it too.
        """
        self.registered: dict[str, Registration] = {}
        self.coming: dict[str, str] = {}
        """Callbacks whose registration is not answered yet, each with its resource manager.

        The order is that in which RmProxy gets them. If the same resource manager is lost, leaves
        or registers again before the answer, the entry goes: the answer then changes nothing here.
        """
        self.raised_in: Counter[str] = Counter()
        """How often the callbacks of each resource manager have raised."""
        self._registrations = count(1)
        self.on_handled: Callable[[str, int], None] = _ignore
        """Called with a manager and the number of its requests that were handled."""

    def register(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
        config: SchedulerConfig | None,
    ) -> si.RegisterResourceManagerResponse:
        """Register with a configuration that was read already."""
        extra = ExtraConfig.of(request.extra_config)
        address = callback_address(request.rm_id, next(self._registrations))
        # Before the callback is opened: each registration over a stuck callback would leave one
        # more thread behind.
        self._driver.check_former(request.rm_id)
        # Before the request, as the core may call back before the answer is here.
        self._driver.open_callback(address, callback)
        name = self._driver.name("register")

        def post(reply_to: str) -> None:
            requested = RegistrationRequested(
                request=request,
                config=config,
                callback=address,
                capabilities=_capabilities(callback),
                extra=extra,
                reply_to=reply_to,
            )
            # Posted and noted under one lock, so `coming` has the order of RmProxy's mailbox.
            with self.order:
                self._driver.post(RM_PROXY, requested, name)
                self.coming[address] = request.rm_id

        try:
            # Waits without any lock: a callback that registers another manager must not stop this
            # one.
            check_accepted(self._driver.await_answer(post, name), name)
        except BaseException:
            # Also where Ctrl-C ends the wait: the answer may still come, and must change nothing.
            with self.order:
                self.coming.pop(address, None)
            self._driver.close_callback(address)
            raise
        tells_state = overrides(callback, "get_state_dump")
        with self.order:
            if address in self.coming:
                # Of two registrations at once the later holds at RmProxy, whichever caller runs
                # first from here: the earlier one finds its entry gone.
                # Up to this one and no further: a later registration is still on its way.
                self._overtake(request.rm_id, address)
                # The resolver follows the configuration that was accepted, not the one that was
                # asked for.
                self.resolvers.join(request.rm_id, request.policy_group, config)
                # Callers that wait for room of the former registration go: it takes no more
                # requests.
                self._leave(request.rm_id)
                backlog = Backlog(extra.unhandled_max)
                self.registered[request.rm_id] = Registration(address, tells_state, backlog)
                self._driver.set_up(request.rm_id, extra)
                self._driver.warn(_complaints(request, self._policies))
        return si.RegisterResourceManagerResponse()

    def configure(
        self, request: si.UpdateConfigurationRequest, config: SchedulerConfig | None
    ) -> None:
        """Reload a resource manager under a configuration that was read already."""
        extra = ExtraConfig.of(request.extra_config)
        self._driver.await_acceptance(
            RM_PROXY,
            lambda reply_to: ConfigurationRequested(
                request=request, config=config, extra=extra, reply_to=reply_to
            ),
            "configuration",
        )
        # Behind the acceptance: what is refused changes nothing, the resolver of users included.
        self.resolvers.bring(request.rm_id, config)
        with self._driver.afterwards, self.order:
            registration = self.registered.get(request.rm_id)
            if registration is not None:
                # With a smaller bound callers may have to wait from now on, and the next mark would
                # come with a request that they cannot make.
                if marked := registration.backlog.bound(extra.unhandled_max):
                    self.mark(request.rm_id, registration.callback, marked)
                self._driver.set_up(request.rm_id, extra)
                self._driver.warn(_complaints(request, self._policies))

    def lose(self, rm_id: str) -> None:
        """Suspend its partitions."""
        with self._driver.afterwards, self.order:
            # Inside the lock: of two calls that lose the same manager one finds it unknown.
            self.of(rm_id, "resource_manager_lost")
            self._driver.post(RM_PROXY, RMLost(rm_id=rm_id), self._driver.name("lost"))
            # RmProxy ignores answers to its registrations from here on, so they must change nothing
            # here either.
            self._overtake(rm_id)
            self._leave(rm_id)

    def unregister(self, rm_id: str, by: str = "", reply_to: str = "") -> None:
        """Have everything of a resource manager removed; an answer goes to `reply_to`, if given."""
        message = RMUnregistered(rm_id=rm_id, by=by, reply_to=reply_to)
        self._driver.post(RM_PROXY, message, self._driver.name("unregister"))
        self._overtake(rm_id)
        self._leave(rm_id)
        self.resolvers.leave(rm_id)
        self._driver.set_up(rm_id, ExtraConfig())

    def unregister_lost(self, rm_id: str, by: str) -> None:
        """Remove everything of a resource manager that is away; one that is not ends by itself."""

        def post(reply_to: str) -> None:
            with self.order:
                # One that is registered may place work at any moment: an operator must stop it
                # first.
                if rm_id in self.registered or rm_id in self.coming.values():
                    raise Refused(
                        f"{rm_id} is registered: stop that program first, which ends its work"
                    )
                self.unregister(rm_id, by, reply_to)

        call = self._driver.name("unregister")
        check_accepted(self._driver.await_answer(post, call), call)

    def forget(self) -> None:
        """Forget all of them: another core begins in the place of this one."""
        self.registered.clear()
        self.coming.clear()

    # -- one of them

    def is_registered(self, rm_id: str) -> bool:
        """Whether its requests are taken."""
        return rm_id in self.registered

    def of(self, rm_id: str, what: str) -> Registration:
        self._driver.check_running()
        registration = self.registered.get(rm_id)
        if registration is None:
            raise UnknownResourceManager(
                f'received {what}, but RmID="{rm_id}" not registered: '
                "call register_resource_manager first"
            )
        return registration

    def mark(self, rm_id: str, callback: str, count: int) -> None:
        marked = RequestsMarked(rm_id=rm_id, callback=callback, count=count)
        self._driver.post(RM_PROXY, marked, self._driver.name("mark"))

    def mark_taken(self, rm_id: str) -> None:
        """Have RmProxy report when all that was taken so far is handled."""
        # For one who waits until its requests are handled and sends no more: the next regular mark
        # would never come.
        with self._driver.afterwards, self.order:
            registration = self.registered.get(rm_id)
            if registration is not None:
                self.mark(rm_id, registration.callback, registration.backlog.taken)

    def receive(self, message: Message) -> None:
        """Take what the core reports here; what is for a former registration is ignored."""
        if isinstance(message, RequestsHandled):
            registration = self.registered.get(message.rm_id)
            # The number is of one registration: a former one's would let callers of the new one
            # through.
            if registration is not None and registration.callback == message.callback:
                registration.backlog.handled(message.count)
                self.on_handled(message.rm_id, message.count)

    def with_groups(self, request: si.ApplicationRequest) -> ApplicationsRequested:
        """Look up the groups of each user here, on the caller's thread: a directory may be slow."""
        self._driver.check_running()
        users = self.resolvers.users_of(request.rm_id)
        new = list(request.new)
        unresolved: list[UnresolvedUser] = []
        for position, item in enumerate(new):
            # Asked for each application: a user that is not known fails one of them, not the
            # request.
            try:
                ugi = users.resolve(item.ugi, forced=is_forced(item.tags))
            except UserResolutionFailed as failure:
                unresolved.append(UnresolvedUser(position=position, reason=str(failure)))
            else:
                new[position] = replace(item, ugi=ugi)
        return ApplicationsRequested(
            request=replace(request, new=tuple(new)), unresolved=tuple(unresolved)
        )

    def unhandled(self) -> dict[str, int]:
        """How many requests of each resource manager are not handled yet."""
        registered = sorted(self.registered.copy().items())
        return {rm_id: registration.backlog.unhandled for rm_id, registration in registered}

    def callback_error_counts(self) -> dict[str, int]:
        """How often the callback of each resource manager has raised."""
        return dict(sorted(self.raised_in.copy().items()))

    def _overtake(self, rm_id: str, last: str = "") -> None:
        """Ignore the answers to its registrations up to `last`, or to all of them."""
        for callback in [it for it, manager in self.coming.items() if manager == rm_id]:
            del self.coming[callback]
            if callback == last:
                return

    def _leave(self, rm_id: str) -> None:
        """Refuse its requests from here on; a caller that waits for room is refused as well."""
        registration = self.registered.pop(rm_id, None)
        if registration is not None:
            # Otherwise a caller that waits for room would wait for ever.
            registration.backlog.close()


def _ignore(_rm_id: str, _number: int) -> None:
    """Nobody waits for requests to be handled, but for room in the backlog."""


def _capabilities(callback: si.ResourceManagerCallback) -> Capabilities:
    return Capabilities(
        hears_states=overrides(callback, "update_container_scheduling_state"),
        has_predicates=overrides(callback, "predicates"),
        has_preemption_predicates=overrides(callback, "preemption_predicates"),
    )


def _complaints(
    request: si.RegisterResourceManagerRequest | si.UpdateConfigurationRequest, policies: Policies
) -> Iterator[str]:
    """Name what was taken and counts as if it were not there, or can hardly be meant."""
    for fault in ExtraConfig.faults_of(request.extra_config):
        yield f"extra configuration of {request.rm_id}: {fault}"
    for warning in warnings_in(request.config, policies.names_for(request.config)):
        yield f"configuration of {request.rm_id}: {warning}"
