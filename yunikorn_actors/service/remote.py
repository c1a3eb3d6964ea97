"""A core in another process, with the calls of `SchedulerCore`."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar

import msgspec

from yunikorn_actors import si
from yunikorn_actors.config import parse_config
from yunikorn_actors.config.policy_names import ANY_NAMES
from yunikorn_actors.core.entry import Update, UpdateCalls
from yunikorn_actors.errors import (
    ConnectionLost,
    CoreError,
    CoreStopped,
    InvalidRequest,
    UnknownResourceManager,
    WouldBlock,
    anew,
)
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.planning.reasons import WaitingSum, Why
from yunikorn_actors.runtime.core_api import ScopedCore
from yunikorn_actors.runtime.core_arguments import check_forms, read_timeout
from yunikorn_actors.runtime.event_streams import EventStreams, Feed
from yunikorn_actors.runtime.failure_hooks import CallbackRaised, Hooks, OnCallbackError
from yunikorn_actors.service.address import Trust, parted
from yunikorn_actors.service.breaks import FOR_GOOD, SentEndings, backoff
from yunikorn_actors.service.rpc import messages as m
from yunikorn_actors.si.form import check_counts, check_names
from yunikorn_actors.si.wire import SiMessage
from yunikorn_actors.version import extra_command

if TYPE_CHECKING:
    from yunikorn_actors.service.rpc.conversation import Conversation
    from yunikorn_actors.service.rpc.link import Link

M = TypeVar("M", bound=SiMessage)
Token: TypeAlias = str | Callable[[], str]
"""What the service wants to be shown, or who knows it: asked for each connection."""


class RemoteCore(UpdateCalls, EventStreams, ScopedCore):
    """A core that is served elsewhere: make it with an address, `start` it or enter it, register.

    Its calls are those of `SchedulerCore`, and raise what those raise; `ConnectionLost` comes if
    the service cannot be reached, refuses the token, or ends the conversation. From then on this
    one is over: make another and register again. `connect` does that by itself.
    """

    def __init__(
        self,
        address: str,
        *,
        token: Token = "",
        ca: str | Path | None = None,
        cert: str | Path | None = None,
        key: str | Path | None = None,
        wait: float = 0.0,
        on_callback_error: OnCallbackError | None = None,
    ) -> None:
        """`address` is `HOST:PORT`; `ca` names the file of the certificate to trust, for TLS.

        `cert` and `key` name the files of the program's own certificate, where the service wants
        one (`serve --tls-client-ca`). `token` may be a function that returns it. For `wait` seconds
        `start` tries again if no service answers.
        """
        files = {"ca": ca, "cert": cert, "key": key}
        check_forms(address=address, on_callback_error=on_callback_error, **files)
        if not callable(token):
            check_forms(token=token)
        self._wait_s = read_timeout("wait", wait)
        if (cert is None) is not (key is None) or (cert is not None and ca is None):
            raise InvalidRequest("cert: belongs together with key and ca: give all three")
        if parted(address) is None:
            raise InvalidRequest(f"address: must be HOST:PORT, not {address!r:.100}")
        self.address: Final = address
        # Made when it connects: the token may change until then.
        self._make_link = partial(_link, address, token, Trust(ca, cert, key))
        self._hooks = Hooks(None, on_callback_error)
        self._failure: CoreError | None = None
        self._lock = threading.RLock()
        """Guards the conversations, and whether this is over."""
        self._conversations: dict[str, "Conversation"] = {}
        self._replaced: set["Conversation | None"] = set()
        """Another registration follows these: that they end is no loss."""
        self._feeds: list[Feed] = []
        self._link: "Link | None" = None
        self._is_stopped = False
        self.when_over: list[Callable[[], None]] = []
        self.away: CoreError | None = None
        """Why there is no connection now, though there will be one again."""
        self.when_away: Callable[[CoreError], None] | None = None
        """Called when the connection has broken; without it that is the end."""
        self.sent = SentEndings()
        self.default_config: str | None = None
        """A configuration for a service without one: that of its administrator goes before it."""

    @property
    def failure(self) -> CoreError | None:
        """Why it takes nothing more, None while it does."""
        return self._failure

    # -- life

    def start(self) -> Self:
        """Connect; raise ConnectionLost if nobody answers there."""
        with self._lock:
            if self._is_stopped or self._link is not None:
                raise CoreStopped("a connection is started once: make another one")
            self._link = self._make_link()
        deadline = time.monotonic() + self._wait_s
        delays = backoff()
        try:
            while True:
                try:
                    self._link.open()
                    break
                except ConnectionLost:
                    delay = next(delays)
                    # The next attempt would come too late: the last error is what is raised.
                    if time.monotonic() + delay >= deadline:
                        raise
                    time.sleep(delay)
                # A new link: a channel that has failed keeps its failure for a while.
                self._connect_anew()
        except BaseException:
            self.stop()
            raise
        return self

    def _connect_anew(self) -> "Link":
        """Take another connection in place of the present one; nothing is registered on it."""
        with self._lock:
            if self._is_stopped:
                raise CoreStopped("the connection was closed: make another one")
            former, self._link = self._link, self._make_link()
        if former is not None:
            former.close()
        return self._link

    def stop(self, timeout: float = 5.0) -> None:
        """Unregister the manager that was registered here, and disconnect; the core goes on.

        To leave the work of a resource manager to its next life call `resource_manager_lost`
        before.
        """
        deadline = time.monotonic() + read_timeout("stop", timeout)
        with self._lock:
            was_stopped, self._is_stopped = self._is_stopped, True
            left = list(self._conversations.values())
            self._conversations.clear()
        if was_stopped:
            return
        for conversation in left:
            self._leave(conversation, deadline)
        self._end()
        if self._link is not None:
            self._link.close()

    def _leave(self, conversation: "Conversation", deadline: float) -> None:
        conversation.end()
        # After a failure nobody is there to be asked.
        if self._failure is None:
            try:
                name = m.ResourceManager(rm_id=conversation.rm_id)
                self._ask("Unregister", name, m.Done, max(0.1, deadline - time.monotonic()))
            except CoreError as error:
                self._failure = self._failure or error
        conversation.join(max(0.0, deadline - time.monotonic()))

    def _end(self) -> None:
        for feed in tuple(self._feeds):
            feed.end(self._failure)
        for tell in tuple(self.when_over):
            tell()

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
                f"callback: must be a ResourceManagerCallback, not {type(callback).__name__}"
            )
        _check_config(request.config)
        self._check_may_wait("register_resource_manager")
        self.check_running()
        assert self._link is not None
        link = self._link
        # If it is accepted the other side ends the former conversation; if not, that goes on.
        with self._lock:
            former = self._conversations.get(request.rm_id)
            self._replaced.add(former)
        try:
            conversation = link.register(
                request, callback, self._callback_raised, self._lost,
                config_is_default=request.config == self.default_config,
            )  # fmt: skip
        except BaseException:
            self._replaced.discard(former)
            self._look_whether_lost(former)
            raise
        with self._lock:
            is_stopped = self._is_stopped
            if not is_stopped:
                self._conversations[request.rm_id] = conversation
                self.away = None
            self._replaced.discard(former)
        if former is not None:
            former.end()
        # Stopped while it was registering: nothing of it may stay.
        if is_stopped:
            conversation.end()
            raise CoreStopped("the connection was closed: make another one")
        self._look_whether_lost(conversation)
        return si.RegisterResourceManagerResponse()

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Reload the configuration; if it is refused nothing has changed."""
        si.check_form(request, si.UpdateConfigurationRequest)
        _check_config(request.config)
        self._ask("UpdateConfiguration", request, m.Done)

    def submit_checked(self, request: Update) -> None:
        """Send a request whose form was checked."""
        self.check_running()
        # Noted first: if the connection breaks now, it has to be sent again.
        self.sent.note(request)
        said = _said(request)
        conversation = self._conversation_of(request.rm_id)
        # One that was ended here is replaced by another, and then that takes it.
        while not conversation.say(said):
            if conversation.lost is not None:
                raise self._error_of(conversation.lost)
            # It was ended here: there is another one, or none any more.
            conversation = self._conversation_of(request.rm_id)

    def _conversation_of(self, rm_id: str) -> "Conversation":
        # Under the lock: one that is lost goes in one step with what is to be raised for it.
        with self._lock:
            self.check_running()
            conversation = self._conversations.get(rm_id)
            if conversation is None:
                self._check_there()
                raise UnknownResourceManager(
                    f"{rm_id!r} is not registered here: call register_resource_manager first"
                )
            return conversation

    def has_room(self, rm_id: str) -> bool:  # noqa: ARG002 - as the core in this process
        """No: it is not known here how much the other side will still take."""
        return False

    # -- the life of a resource manager

    def resource_manager_lost(self, rm_id: str) -> None:
        """Suspend its partitions: its work goes on, nothing is decided until it registers again."""
        check_names("resource_manager_lost", rm_id=rm_id)
        with self._lock:
            conversation = self._conversations.pop(rm_id, None)
        if conversation is None:
            raise UnknownResourceManager(
                f"{rm_id!r} is not registered here: call register_resource_manager first"
            )
        conversation.end()

    def unregister_resource_manager(self, rm_id: str) -> None:
        """Remove everything of a resource manager, registered or lost."""
        check_names("unregister_resource_manager", rm_id=rm_id)
        with self._lock:
            conversation = self._conversations.pop(rm_id, None)
        if conversation is not None:
            conversation.end()
        self._ask("Unregister", m.ResourceManager(rm_id=rm_id), m.Done)

    # -- questions

    def state_dump(self) -> dict[str, Any]:
        """Return everything that the core knows, as plain values; see `SchedulerCore`."""
        self._check_may_wait("state_dump")
        stream = self._open().open_stream("StateDump", m.StateDumpRequest(), m.Piece)
        pieces = [piece.json for piece in stream.answers]
        dump: dict[str, Any] = json.loads(b"".join(pieces))
        return dump

    def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        """Say why an ask waits; see `SchedulerCore`."""
        names = {"application_id": application_id, "key": key, "partition": partition}
        check_names("explain", optional=("partition",), **names)
        question = m.Question(
            application_id=application_id, allocation_key=key, partition=partition
        )
        return msgspec.json.decode(self._ask("Explain", question, m.Explanation).json, type=Why)

    def waiting(self, *, partition: str = "") -> tuple[WaitingSum, ...]:
        """Return what waits, added up by cause, queue and size; see `SchedulerCore`."""
        check_names("waiting", optional=("partition",), partition=partition)
        answer = self._ask("Explain", m.Question(partition=partition), m.Explanation)
        return msgspec.json.decode(answer.json, type=tuple[WaitingSum, ...])

    def expected(self, application_id: str = "", *, partition: str = "") -> tuple[Expected, ...]:
        """Return when what waits will start, of an application or of all; see `SchedulerCore`."""
        names = {"application_id": application_id, "partition": partition}
        check_names("expected", optional=tuple(names), **names)
        question = m.Question(application_id=application_id, partition=partition)
        answer = self._ask("Expected", question, m.Explanation)
        return msgspec.json.decode(answer.json, type=tuple[Expected, ...])

    def simulate_steps(
        self,
        *steps: str,
        until: float | None = None,
        compare: bool = True,
        least: bool = False,
        within: float = 0.0,
        waiting: Sequence[tuple[str, str]] = (),
    ) -> dict[str, Any]:
        """Say what would happen with these steps, in YAML; the read side of the service answers.

        With `least` it looks for the least changes that let what is asked for start `within` so
        many seconds, or `waiting` asks, each by its application and key. Returns the `answer`, its
        `lines` for people, and whether all of it `fits`.
        """
        question = {
            "steps": steps, "until": until, "compare": compare, "least": least, "within": within,
            "waiting": tuple(waiting),
        }  # fmt: skip
        asked = m.Simulation(json=json.dumps(question))
        found: dict[str, Any] = json.loads(self._ask("Simulate", asked, m.Explanation, 60.0).json)
        return found

    def events(self, first_id: int = 0, count: int = 10_000) -> EventsFound:
        """Event records from this number on, with the range that is stored."""
        check_counts("events", first_id=first_id, count=count)
        found = self._ask("Events", m.EventsRequest(first_id=first_id, count=count), m.EventsFound)
        return EventsFound(
            records=found.records[:count], lowest_id=found.lowest_id, highest_id=found.highest_id
        )

    def open_feed(self, feed: Feed, history: int) -> Callable[[], None]:
        """Feed it event records from now on; what is returned ends that."""
        self._check_may_wait("event_stream")
        request = m.EventStreamRequest(history=max(0, history))
        stream = self._open().open_stream("EventStream", request, m.Records)
        # The first message says that it is open; from there on nothing is missed.
        if next(stream.answers, None) is None:
            raise CoreStopped(f"the service at {self.address} is being stopped: connect again")
        self._feeds.append(feed)
        fill = partial(self._fill, feed, stream.answers)
        try:
            threading.Thread(target=fill, name="yunikorn-actors-events", daemon=True).start()
        except BaseException:
            # Too many threads: nobody would read it, and the service counts it.
            self._feeds.remove(feed)
            stream.cancel()
            raise

        def close() -> None:
            # In this order: what the cancelled call then says is no loss.
            feed.end()
            stream.cancel()

        return close

    def _fill(self, feed: Feed, records: Iterator[m.Records]) -> None:
        try:
            # What the service could not keep is counted with what was lost here.
            for told in records:
                feed.overflow += told.missed
                feed.send_event(told.records)
            feed.end()
        except CoreStopped:
            feed.end()
        except CoreError as error:
            feed.end(error)
        finally:
            self._feeds.remove(feed)

    # -- parts

    def _open(self) -> "Link":
        self.check_running()
        self._check_there()
        assert self._link is not None
        return self._link

    def _check_there(self) -> None:
        """Raise where the service is away, though it may come back."""
        if self.away is not None:
            raise anew(self.away)

    def _ask(
        self, method: str, message: SiMessage, kind: type[M], timeout: float | None = None
    ) -> M:
        """Also while it is being stopped: to unregister."""
        self._check_may_wait(method)
        if self._link is None:
            self.check_running()
        self._check_there()
        assert self._link is not None
        try:
            return self._link.ask(method, message, kind, timeout)
        except ConnectionLost as error:
            if self.when_away is None:
                raise
            raise self._broken() from error

    def _broken(self) -> ConnectionLost:
        """Say what a program is to do whose connection is made again by itself."""
        return ConnectionLost(
            f"the connection to the service at {self.address} has broken, and is made again by "
            "itself: make the call again, or look at connection"
        )

    def _error_of(self, lost: CoreError) -> CoreError:
        """Return what a call raises when the conversation was lost by this."""
        is_made_again = self.when_away is not None and not isinstance(lost, FOR_GOOD)
        return self._broken() if is_made_again and isinstance(lost, ConnectionLost) else anew(lost)

    def _look_whether_lost(self, conversation: "Conversation | None") -> None:
        """One that was not in its place yet, or about to be replaced, may have ended meanwhile."""
        if conversation is not None and conversation.lost is not None:
            self._lost(conversation, conversation.lost)

    def _lost(self, conversation: "Conversation", error: CoreError) -> None:
        """Called on the thread of a conversation that the other side has ended."""
        with self._lock:
            is_current = self._conversations.get(conversation.rm_id) is conversation
            if not is_current or conversation in self._replaced:
                return
            del self._conversations[conversation.rm_id]
            error = self._error_of(error)
            comes_back = self.when_away is not None and not isinstance(error, FOR_GOOD)
            if comes_back:
                self.away = error
            else:
                self._failure = self._failure or error
        # Without the lock: what is called here may take it.
        if comes_back and self.when_away is not None:
            self.when_away(error)
        else:
            self.fail(error)

    def fail(self, error: CoreError) -> None:
        """It does not come back any more."""
        with self._lock:
            self._failure = self._failure or error
        self._end()

    def _callback_raised(self, raised: CallbackRaised) -> None:
        self._hooks.callback_raised(raised.rm_id, raised.method, raised)

    def check_sound(self) -> None:
        """Raise what the core has failed with, if it has."""
        if self._failure is not None:
            raise anew(self._failure)

    def check_running(self) -> None:
        """Raise if the core takes nothing more."""
        self.check_sound()
        if self._link is None:
            raise CoreStopped("not connected: use it in a `with` block, or call start()")
        if self._is_stopped:
            raise CoreStopped("the connection was closed: make another one")

    def is_inside(self) -> bool:
        """Whether this is a thread of the core, which may not wait for it."""
        return any(it.is_mine for it in tuple(self._conversations.values()))

    def _check_may_wait(self, what: str) -> None:
        if self.is_inside():
            raise WouldBlock(
                f"{what} waits for the core and was called from inside a callback: call it from "
                "another thread, or after the callback has returned"
            )


def _said(request: Update) -> m.Said:
    match request:
        case si.AllocationRequest():
            return m.Said(allocations=request)
        case si.ApplicationRequest():
            return m.Said(applications=request)
        case si.NodeRequest():
            return m.Said(nodes=request)


def _check_config(text: str) -> None:
    """Refuse here what the core would refuse, with every fault and its line."""
    if text.strip():
        # Any name passes: only the service knows its policies.
        parse_config(text, ANY_NAMES)


def _link(address: str, token: Token, trust: Trust) -> "Link":
    try:
        from yunikorn_actors.service.rpc.link import Link  # noqa: PLC0415 - what the extra brings
    except ModuleNotFoundError as error:
        raise ConnectionLost(
            f"a core elsewhere needs the package {error.name}, which is not installed; "
            f"{extra_command('grpc')}"
        ) from error
    return Link(address, token() if callable(token) else token, trust)
