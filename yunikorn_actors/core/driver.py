"""What a driver, threads or simulator, provides for the calls of a core.

The parts of the entry hold this record of functions: they post messages and wait for answers, and
know nothing else of what runs the machines.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from yunikorn_actors import si
from yunikorn_actors.config import ExtraConfig
from yunikorn_actors.errors import NoReply, Refused
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.queries import Accepted, Declined

_Answer = TypeVar("_Answer", bound=Message)


class Follower(Protocol):
    """A read side: it receives a snapshot of everything, then each fact, in order."""

    def receive(self, message: Message) -> None: ...


class Afterwards:
    """A `with` block outside of every lock; at its end a function is called, whatever was raised.

    The function lets the driver handle what was posted. Called under a lock it could run machines
    that need that very lock.
    """

    def __init__(self, go_on: Callable[[], None]) -> None:
        self._go_on = go_on

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._go_on()


@dataclass(frozen=True)
class Driver:
    """The functions that `Gateway` hands to its parts, one for each method of a driver.

    `post` is `Gateway._post`, and so on. Two classes have them: `SchedulerCore` on the dispatcher,
    and `Simulator` in virtual time.
    """

    post: Callable[[str, Message, str], None]
    """Put a message into a mailbox, under the name of the call that causes it."""
    afterwards: Afterwards
    """Around everything that is posted: afterwards a driver handles it."""
    name: Callable[[str], str]
    """Name one call of a kind."""
    await_answer: Callable[[Callable[[str], None], str], Message]
    """Give a function a reply address for its question, and wait for the answer."""
    check_running: Callable[[], None]
    """Raise CoreStopped or CoreFailed if the core takes no more requests."""
    check_former: Callable[[str], None]
    """Raise CallbackStuck while a former callback does not return from a call."""
    open_callback: Callable[[str, si.ResourceManagerCallback], None]
    open_follower: Callable[[str, Follower], None]
    close_callback: Callable[[str], None]
    """Deliver nothing to this callback any more; a second call does nothing."""
    set_up: Callable[[str, ExtraConfig], None]
    """Apply the settings that concern the driver: log level, health checks."""
    warn: Callable[[Iterable[str]], None]
    """Log what was taken and has no effect, or can hardly be meant."""

    def ask(self, address: str, question: Callable[[str], Message], name: str) -> Message:
        """Post the question made for a reply address, and wait for the answer."""
        return self.await_answer(lambda to: self.post(address, question(to), name), name)

    def answer(
        self, kind: type[_Answer], address: str, question: Callable[[str], Message], call: str
    ) -> _Answer:
        """As `ask`, for a question that has one kind of answer."""
        answer = self.ask(address, question, self.name(call))
        if isinstance(answer, Declined):
            raise NoReply(answer.reason)
        if not isinstance(answer, kind):
            raise NoReply(
                f"the core answered {type(answer).__name__} instead of {kind.__name__}: call again"
            )
        return answer

    def await_acceptance(self, address: str, question: Callable[[str], Message], call: str) -> None:
        """Send a message with the address for its answer, and wait until the core accepts it."""
        name = self.name(call)
        check_accepted(self.ask(address, question, name), name)


def check_accepted(answer: Message, call: str) -> None:
    if isinstance(answer, Declined):
        raise Refused(answer.reason)
    if not isinstance(answer, Accepted):
        raise NoReply(f"the core answered {type(answer).__name__} to {call}")
