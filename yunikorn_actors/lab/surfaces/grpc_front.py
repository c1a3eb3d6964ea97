"""The front door to a core that is served by gRPC, in the same process and by loopback.

What is on its way to the core and back is counted: a program there goes on when nothing is,
as it does at the other doors. Its connection may break in the middle: a front that comes back has
to have all that it had.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self

from yunikorn_actors import si
from yunikorn_actors.errors import NoReply
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.front_walk import (
    PATIENCE_S,
    QUEUES,
    Front,
    LoopedProgram,
    LoopFront,
)
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.service import aio, breaks, connect
from yunikorn_actors.service.access_policy import Access
from yunikorn_actors.service.remote import RemoteCore
from yunikorn_actors.service.rpc import link, managers
from yunikorn_actors.service.rpc.conversation import Conversation
from yunikorn_actors.service.rpc.messages import Told
from yunikorn_actors.service.rpc.outgoing import Item, Outlet
from yunikorn_actors.service.service import Serving

_ADDRESS: Final = "127.0.0.1:0"
_TOKEN: Final = "token-of-the-laboratory"  # noqa: S105 - nobody else is served
_BREAKS_EACH: Final = 12
"""One call in so many comes when the connection has just broken, where it may break."""
_DELAY_S: Final = 0.002
"""After a break the first attempt comes so soon."""
_POLL_S: Final = 0.0005


class _Counted:
    """Items of answers and questions: how many were put, and how many were taken."""

    def __init__(self) -> None:
        self.put = self.received = 0


_COUNTED: Final = _Counted()


class _Outlet(Outlet):
    def _put(self, item: Item) -> None:
        _COUNTED.put += 1
        super()._put(item)


class _Conversation(Conversation):
    def _receive(self, message: Told) -> None:
        super()._receive(message)
        _COUNTED.received += message.registered is None


class _Core(SchedulerCore):
    taken = 0
    """How many requests came, whatever became of them."""

    def submit_checked(self, request: Any) -> None:  # noqa: ANN401 - one of the requests
        try:
            super().submit_checked(request)
        finally:
            self.taken += 1


class _Remote(RemoteCore):
    asked = 0

    def submit_checked(self, request: Any) -> None:  # noqa: ANN401 - one of the requests
        self.asked += 1
        super().submit_checked(request)

    def break_connection(self) -> Callable[[], bool]:
        """Break it as a network does; return what says whether there is another one."""
        link = self._link
        assert link is not None
        link.close()
        return lambda: self._link is not link


_IN_PLACE: Final[tuple[tuple[Any, str, type[Any]], ...]] = (
    (managers, "Outlet", _Outlet),
    (link, "Conversation", _Conversation),
    (connect, "RemoteCore", _Remote),
    (connect, "Scheduler", Front),
    (aio, "RemoteCore", _Remote),
    (aio, "AsyncScheduler", LoopFront),
)
"""Which of whose names stand for what counts."""


@contextmanager
def _counting() -> Iterator[None]:
    former = [(vars(module), name, vars(module)[name]) for module, name, _ in _IN_PLACE]
    try:
        for module, name, counts in _IN_PLACE:
            vars(module)[name] = counts
        _COUNTED.put = _COUNTED.received = 0
        yield
    finally:
        for space, name, value in former:
            space[name] = value


class _Served:
    """A core in service, and what its program and its door have in common."""

    scheduler: Any
    """What `connect` or `connect_async` has made."""

    def __init__(self, arguments: Mapping[str, Any], breaking: Draw | None) -> None:
        """`breaking`: its connection breaks now and then, and is made again."""
        self.core: Final = _Core(**arguments)
        self.breaks = 0
        """How often the connection has broken."""
        self._breaking = breaking
        self._counting = _counting()
        self._serving = Serving(self.core, {"grpc": _ADDRESS}, access=Access(token=_TOKEN))

    def _begin(self) -> str:
        """Serve it; return the address."""
        self._counting.__enter__()
        self._serving.start()
        return self._serving.parts["grpc"].address

    def _end(self) -> None:
        self._serving.stop()
        self._counting.__exit__(None, None, None)

    def _break(self) -> None:
        """Break the connection now and then, and wait until it is made again and all is said."""
        if self._breaking is None or not self._breaking.once_in(_BREAKS_EACH):
            return
        self.breaks += 1
        former, breaks.FIRST_DELAY_S = breaks.FIRST_DELAY_S, _DELAY_S  # type: ignore[misc]
        try:
            self._wait_until(self.scheduler.plain_core.break_connection())
            self._wait_until(lambda: self.scheduler.connection.state == "connected")
            self._wait_until(lambda: self.is_settled and self.core.is_settled())
        finally:
            breaks.FIRST_DELAY_S = former  # type: ignore[misc]

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > deadline:
                raise NoReply("the connection is not made again")
            time.sleep(_POLL_S)

    @property
    def is_settled(self) -> bool:
        return (
            self.scheduler.is_settled
            and self.scheduler.plain_core.asked == self.core.taken
            and _COUNTED.put == _COUNTED.received
        )


class ServedDoor(_Served):
    """`connect`: a service of the same process has the core."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        callback: si.ResourceManagerCallback,
        breaking: Draw | None = None,
    ) -> None:
        super().__init__(arguments, breaking)
        self._callback = callback

    def __enter__(self) -> Self:
        try:
            address = self._begin()
            self.scheduler = connect.connect(
                address, QUEUES, token=_TOKEN, callback=self._callback
            ).start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.scheduler.close()
        finally:
            self._end()

    def do(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call returns
        self._break()
        return call()

    def events(self) -> Callable[[], list[Any]]:
        events = self.scheduler.events()

        def ended() -> list[Any]:
            events.close()
            return [*events]

        return ended


class ServedLoopDoor(_Served):
    """`connect_async`: the same for a program on a loop."""

    def __init__(
        self, arguments: Mapping[str, Any], _: object, breaking: Draw | None = None
    ) -> None:
        """A callback on a loop receives no responses, so the program has none."""
        super().__init__(arguments, breaking)
        self._looped: LoopedProgram | None = None

    def __enter__(self) -> Self:
        try:
            address = self._begin()
            self.scheduler = aio.connect_async(address, QUEUES, token=lambda: _TOKEN)
            self._looped = LoopedProgram(self.scheduler)
            self._looped.begin()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        assert self._looped is not None
        try:
            self._looped.end()
        finally:
            self._end()

    def do(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call returns
        assert self._looped is not None
        self._break()
        return self._looped.do(call)

    def events(self) -> Callable[[], list[Any]]:
        assert self._looped is not None
        return self._looped.events()

    @property
    def is_settled(self) -> bool:
        assert self._looped is not None
        self._looped.go_on()
        return super().is_settled
