"""The side of a resource manager in a conversation: requests go out, and the core speaks.

Items are sent in order by gRPC's own thread. What the core sends is received on one thread, which
calls the callback, one call at a time and in order, as a core in this process does it.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

import grpc
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.core.registered_managers import overrides
from yunikorn_actors.errors import ConnectionLost, CoreError, UnknownResourceManager
from yunikorn_actors.messages.callbacks import preemption_of, reason_of, state_of
from yunikorn_actors.runtime.failure_hooks import CallbackRaised
from yunikorn_actors.service.rpc.messages import (
    Answer,
    Grace,
    Kind,
    Opening,
    Placement,
    Records,
    Said,
    StateDumpRequest,
    Told,
    Verdict,
)
from yunikorn_actors.service.rpc.outgoing import ANSWERS, QUESTIONS
from yunikorn_actors.service.rpc.protobuf import UnknownFields, codec
from yunikorn_actors.si.wire import SiMessage
from yunikorn_actors.values.masking import masked_repr

ROOM: Final = 1_000
"""Requests that may wait to be sent; then the sender of another one waits."""


class Errors(Protocol):
    """What gRPC raises, as errors of ours."""

    def error_of(self, raised: Any) -> Exception: ...  # noqa: ANN401 - as `statuses` has it

    def end_of(self, raised: Any) -> Exception: ...  # noqa: ANN401


Raised: TypeAlias = Callable[[CallbackRaised], None]
Over: TypeAlias = Callable[["Conversation", CoreError], None]


class Outgoing(Iterator[bytes]):
    """What is to be sent; gRPC takes it when the other side has room."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._kept: deque[bytes] = deque()
        self._is_closed = False

    def put(self, data: bytes, *, waits: bool) -> bool:
        """Return whether it was taken: nothing is, once this is closed."""
        with self._changed:
            # Bounded, so that a program that is faster than the service waits here.
            while waits and len(self._kept) >= ROOM and not self._is_closed:
                self._changed.wait()
            if self._is_closed:
                return False
            self._kept.append(data)
            self._changed.notify_all()
            return True

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            # What was not sent is reported again, so nothing of it may still go out.
            self._kept.clear()
            self._changed.notify_all()

    def __next__(self) -> bytes:
        with self._changed:
            while not self._kept and not self._is_closed:
                self._changed.wait()
            if self._is_closed:
                raise StopIteration
            # A sender may wait for this very place.
            self._changed.notify_all()
            return self._kept.popleft()


class Conversation:
    """One registration, from this side."""

    def __init__(
        self,
        rm_id: str,
        callback: si.ResourceManagerCallback,
        raised: Raised,
        over: Over,
        errors: Errors,
    ) -> None:
        """`over` is called when it ends without having been ended here; `errors` say why."""
        self.rm_id: Final = rm_id
        self.lost: CoreError | None = None
        """Why it has ended, unless it was ended here; known before anything is refused."""
        self._callback = callback
        self._raised = raised
        self._over = over
        self._errors = errors
        self._outgoing = Outgoing()
        self._opened: Future[None] = Future()
        self._is_ended = False
        self._unknown_fields = UnknownFields()
        self._thread = threading.Thread(
            target=self._receive_all, name=f"yunikorn-actors-{rm_id}", daemon=True
        )

    # -- on any thread

    def open(
        self,
        call: Callable[[Iterator[bytes]], Any],
        request: si.RegisterResourceManagerRequest,
        timeout: float,
        *,
        config_is_default: bool = False,
    ) -> None:
        """Register; raise what the core has against it."""
        opening = Opening(
            hears=hears(self._callback), registration=request, config_is_default=config_is_default
        )
        # The first message of all, so it is put before the call begins.
        self._outgoing.put(codec(Said).encode(Said(opening=opening)), waits=False)
        self._call = call(self._outgoing)
        try:
            self._thread.start()
            self._opened.result(timeout)
        except BaseException:
            self.end()
            raise

    def say(self, said: Said) -> bool:
        """Send it after what was sent before; wait for room, but never inside the callback.

        Returns False if this has ended: what is said then reaches nobody.
        """
        # Inside the callback there is nobody else who would read what makes room.
        return self._outgoing.put(codec(Said).encode(said), waits=not self.is_mine)

    @property
    def is_mine(self) -> bool:
        """Whether this is the thread that calls the callback."""
        return threading.current_thread() is self._thread

    def end(self) -> None:
        self._is_ended = True
        # First, so that the thread of gRPC finds nothing more to send.
        self._outgoing.close()
        self._call.cancel()

    def join(self, timeout: float) -> None:
        if not self.is_mine:
            self._thread.join(timeout)

    # -- on its thread

    def _receive_all(self) -> None:
        # Ended without an error: so this resource manager was unregistered.
        error: Exception = UnknownResourceManager(
            f"the service has unregistered {self.rm_id}: connect anew if that was a mistake"
        )
        try:
            for data in self._call:
                self._receive(codec(Told).decode(data, self._unknown_fields.tell))
        except grpc.RpcError as raised:
            is_opened = self._opened.done()
            # Under way, an error means something else than at the beginning.
            error = (self._errors.end_of if is_opened else self._errors.error_of)(raised)
        except Exception as raised:  # noqa: BLE001 - the edge: nobody would learn that it has ended
            error = ConnectionLost(
                f"what the service has sent to {self.rm_id} cannot be read: "
                f"{masked_repr(raised)}; see that both are of one version"
            )
            self._call.cancel()
        lost = error if isinstance(error, CoreError) else ConnectionLost(str(error))
        if not self._is_ended:
            # Known before anything is refused: a sender looks here for the reason.
            self.lost = lost
        self._outgoing.close()
        if not self._opened.done():
            self._opened.set_exception(error)
        elif not self._is_ended:
            self._over(self, lost)

    def _receive(self, message: Told) -> None:
        if message.registered is not None:
            self._opened.set_result(None)
        for field, (method, notify) in _METHODS.items():
            value = getattr(message, field)
            if field == "applications" and value is not None:
                value = placed(value, message.placements)
            if field == "allocations" and message.graces:
                value = with_graces(value, message.graces)
            if value is not None:
                self._call_back(method, partial(notify, self._callback, value), message.number)

    def _call_back(self, method: str, notify: Callable[[], Answer], number: int) -> None:
        """Make a call; what it raises is the program's own affair, and is reported as such."""
        try:
            answer = codec(Said).encode(Said(answer=replace(notify(), number=number)))
        except BaseException as error:  # noqa: BLE001 - the edge: sys.exit() too is the callback's
            self._raised(CallbackRaised(self.rm_id, method, error))
            failure = f"{method} raised {masked_repr(error)}"
            answer = codec(Said).encode(Said(answer=Answer(number=number, failure=failure)))
        # What comes without a number is no question, so nothing is answered.
        if number:
            self._outgoing.put(answer, waits=False)


# -- what comes, and the method that takes it


def hears(callback: si.ResourceManagerCallback) -> tuple[Kind, ...]:
    """What is to come for this callback."""
    wanted = {**QUESTIONS, "send_event": Kind.EVENTS}
    asked = (kind for method, kind in wanted.items() if overrides(callback, method))
    # Answers come in any case; the rest only to a callback that overrides its method.
    return (*sorted(ANSWERS), *asked)


def placed(
    response: si.ApplicationResponse, placements: tuple[Placement, ...]
) -> si.ApplicationResponse:
    """Give each application its queue, as a core in this process does; an older service has none.

    An id may stand in both lists, and several times in one that was rejected.
    """
    queues = {it.application_id: it for it in placements if it.queue}
    offered = {it.application_id: it.queues for it in placements if it.queues}
    none = Placement()
    return replace(
        response,
        accepted=tuple(
            replace(it, queue=where.queue, by_last_resort=where.by_last_resort)
            for it in response.accepted
            for where in (queues.get(it.application_id, none),)
        ),
        rejected=tuple(
            replace(it, queues=offered.get(it.application_id, ())) for it in response.rejected
        ),
    )


def with_graces(
    response: si.AllocationResponse, graces: tuple[Grace, ...]
) -> si.AllocationResponse:
    """Give each victim the time that it has to end, as a core in this process does."""
    by_uuid = {it.uuid: it.milliseconds for it in graces}
    released = (replace(it, grace_ms=by_uuid.get(it.uuid, 0)) for it in response.released)
    return replace(response, released=tuple(released))


Notify: TypeAlias = Callable[[si.ResourceManagerCallback, Any], Answer]


def _notifying(method: str) -> tuple[str, Notify]:
    """Tell it by this method, which answers nothing."""

    def notify(callback: si.ResourceManagerCallback, value: SiMessage) -> Answer:
        getattr(callback, method)(value)
        return Answer()

    return method, notify


def _predicates(callback: si.ResourceManagerCallback, args: si.PredicatesArgs) -> Answer:
    return Answer(verdict=Verdict(reason=reason_of(callback, args)))


def _preemption(callback: si.ResourceManagerCallback, args: si.PreemptionPredicatesArgs) -> Answer:
    return Answer(preemption=preemption_of(callback, args))


def _state(callback: si.ResourceManagerCallback, _: StateDumpRequest) -> Answer:
    text, error = state_of(callback)
    return Answer(failure=error) if error else Answer(state=text)


def _events(callback: si.ResourceManagerCallback, message: Records) -> Answer:
    callback.send_event(message.records)
    return Answer()


_METHODS: Final[dict[str, tuple[str, Notify]]] = {
    "allocations": _notifying("update_allocation"),
    "applications": _notifying("update_application"),
    "nodes": _notifying("update_node"),
    "container_state": _notifying("update_container_scheduling_state"),
    "predicates": ("predicates", _predicates),
    "preemption_predicates": ("preemption_predicates", _preemption),
    "state": ("get_state_dump", _state),
    "events": ("send_event", _events),
}
"""By the field of Told."""
