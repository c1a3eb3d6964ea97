"""What stands outside of a core and is an actor all the same: callbacks, streams and followers."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from yunikorn_actors import si
from yunikorn_actors.core.entry import Follower
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.messages.base import RM_PROXY, Message
from yunikorn_actors.messages.callbacks import call_back
from yunikorn_actors.messages.followers import CatchUpRequested, ManagerDescribed
from yunikorn_actors.messages.queries import Accepted
from yunikorn_actors.messages.restart import EventsRestored
from yunikorn_actors.messages.scheduling import PartitionSnapshot


class Outsider(ABC):
    """Holds an object outside of the core, which has a thread whatever the machines have."""

    @abstractmethod
    def handle(self, message: Message, now_ns: int) -> list[Effect]: ...


_STAND: Final = frozenset({ManagerDescribed, PartitionSnapshot})


class FollowerHolder(Outsider):
    """A read side: the core goes on without one that raises.

    Two machines tell it how things stand: the records of before come from the event publisher. What
    becomes true meanwhile waits, as its records follow those.
    """

    def __init__(self, follower: Follower, leave: Callable[[Exception], None]) -> None:
        self._follower = follower
        self._leave = leave
        self._has_left = False
        self._waiting: list[Message] | None = []
        """For the records of before; None when those are sent."""

    def handle(self, message: Message, now_ns: int) -> list[Effect]:  # noqa: ARG002
        if self._waiting is None:
            return self._tell(message)
        if type(message) is EventsRestored:
            told, self._waiting = (message, *self._waiting), None
            return [effect for it in told for effect in self._tell(it)]
        if type(message) in _STAND and not self._waiting:
            return self._tell(message)
        self._waiting.append(message)
        return []

    def _tell(self, message: Message) -> list[Effect]:
        if isinstance(message, CatchUpRequested):
            return [Send(to=message.reply_to, message=Accepted())]
        if not self._has_left:
            try:
                self._follower.hear(message)
            except Exception as error:  # noqa: BLE001 - the edge: reported, and called no more
                self._has_left = True
                self._leave(error)
        return []


class CallbackHolder(Outsider):
    """A resource manager's callback: what it raises is its own affair, and is reported as such."""

    def __init__(
        self,
        callback: si.ResourceManagerCallback,
        tell: Callable[[Message, BaseException], None],
    ) -> None:
        self._callback = callback
        self._tell = tell

    def handle(self, message: Message, now_ns: int) -> list[Effect]:  # noqa: ARG002
        try:
            answer, error = call_back(self._callback, message)
        except KeyboardInterrupt as raised:
            # Nobody interrupts a thread; so this one was raised by the callback itself.
            answer, error = None, raised
        if error is not None:
            self._tell(message, error)
        return [] if answer is None else [Send(to=RM_PROXY, message=answer)]
