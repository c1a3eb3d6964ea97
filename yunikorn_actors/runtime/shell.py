"""The one actor class: a thread around a machine, or around a resource manager's callback.

A shell takes envelopes in order, hands each message to what it holds, and lets the system carry out
the effects. It counts what it has sent and handled, each number written by this thread alone: that
is how a settled system is recognised without a lock on any path.
"""

import queue
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import pykka

from yunikorn_actors import si
from yunikorn_actors.machines.machine import Effect, Machine
from yunikorn_actors.messages.base import Cause, Delivery, Envelope, Message
from yunikorn_actors.messages.callbacks import call_back
from yunikorn_actors.runtime.logs import logger

if TYPE_CHECKING:
    from yunikorn_actors.runtime.system import SchedulerCore

STORY_LENGTH = 30


class CallbackHolder:
    """A resource manager's callback: what it raises is its own affair, and is logged for it."""

    def __init__(self, address: str, callback: si.ResourceManagerCallback) -> None:
        self._address = address
        self._callback = callback

    def handle(self, message: Message, now_ns: int) -> list[Effect]:  # noqa: ARG002
        try:
            call_back(self._callback, message)
        except Exception:  # noqa: BLE001 - one resource manager's fault must not hurt another
            logger.opt(exception=True).error(
                "callback {} raised on {}", self._address, type(message).__name__
            )
        return []


class Shell(pykka.ThreadingActor):
    use_daemon_thread = True

    def __init__(
        self, system: "SchedulerCore", address: str, holder: "Machine | CallbackHolder"
    ) -> None:
        super().__init__()
        self.address = address
        self.holder = holder
        self.sent = 0
        self.handled = 0
        self.deaf = False
        """Once set, messages are counted and not handled."""
        self.thread: threading.Thread | None = None
        self.at: tuple[Cause, str] | None = None
        self.story: deque[tuple[str, type[Message], str]] = deque(maxlen=STORY_LENGTH)
        """The last messages, told when something goes wrong."""
        self._system = system
        self._step = 0

    @staticmethod
    def _create_actor_inbox() -> Any:  # noqa: ANN401 - pykka's protocol, which is private
        return queue.SimpleQueue()

    def on_start(self) -> None:
        self.thread = threading.current_thread()
        self.thread.name = f"yunikorn-actors-{self.address}"

    def on_receive(self, message: Envelope) -> None:
        if not self.deaf:
            self._take(message)
        self.handled += 1

    def _take(self, envelope: Envelope) -> None:
        system = self._system
        self._step += 1
        self.story.append((envelope.sender, type(envelope.message), envelope.stimulus))
        now_ns = system.clock.now_ns()
        cause = Cause(self.address, self._step)
        self.at = (cause, envelope.stimulus)
        try:
            if system.recorder is not None:
                system.recorder.add(
                    Delivery(
                        self.address,
                        self._step,
                        envelope.sender,
                        envelope.cause,
                        envelope.stimulus,
                        now_ns,
                        envelope.message,
                    )
                )
            for effect in self.holder.handle(envelope.message, now_ns):
                system.carry_out(self, effect)
        except Exception as error:  # noqa: BLE001 - the edge: the first failure is kept, all stop
            system.fail(self, envelope, error)
        finally:
            self.at = None

    def on_stop(self) -> None:
        """What is left in the mailbox will never be handled; the books must still balance."""
        while not self.actor_inbox.empty():
            self.actor_inbox.get()
            self.handled += 1
