"""The errors that a call to the core may raise."""

from typing import TypeVar

from yunikorn_actors.config import ConfigError
from yunikorn_actors.machines.settings import InvalidSetting, InvalidTopology
from yunikorn_actors.si import InvalidRequest
from yunikorn_actors.values.quantity import QuantityError

_Error = TypeVar("_Error", bound="CoreError")


class CoreError(Exception):
    """The base of the errors that the core itself raises."""


class UnknownResourceManager(CoreError, LookupError):
    """The request names a resource manager that is not registered."""


class UnknownAsk(CoreError, LookupError):
    """Nobody knows the application or the ask: it has ended, was withdrawn or never came."""


class Refused(CoreError, ValueError):
    """A registration or a configuration was refused; nothing has changed."""


class CoreStopped(CoreError, RuntimeError):
    """The core was stopped, was not started yet, or is the copy in a forked process."""


class CoreFailed(CoreError, RuntimeError):
    """The core contradicted itself and has stopped scheduling; the first failure is the cause."""


class ConnectionLost(CoreError, ConnectionError):
    """The core is in another process, which cannot be reached, or has ended the conversation."""


class Replaced(ConnectionLost):
    """Another program has registered at the service under the same id, and has taken the place."""


class JournalError(CoreError, OSError):
    """The journal of a core belongs to another one, is damaged, or cannot be written any more."""


class CallbackStuck(CoreError, RuntimeError):
    """A former callback of the resource manager has not returned from a call."""


class NoReply(CoreError, TimeoutError):
    """The core did not answer in time."""


class ResponsesLost(CoreError, RuntimeError):
    """Responses of a kind that nobody took were dropped; an iterator of that kind says how many."""


class WouldBlock(CoreError, RuntimeError):
    """A call that waits for the core was made from inside the core."""


# -- of the front


class LeaseLost(CoreError, RuntimeError):
    """The lease of a function was preempted, or lost with its node, before it had returned."""


class ConfigWarning(UserWarning):
    """A configuration says what is legal and can hardly be meant, such as an unknown property."""


class SchedulerClosed(CoreStopped):
    """The scheduler was closed, or was not started yet; what it kept is over."""


class Duplicate(CoreError, ValueError):
    """There is a node, an application or an ask of this name already."""


class UnknownName(CoreError, KeyError):
    """There is no node, application or ask of this name."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NodeRejected(CoreError, ValueError):
    """The core refused a node; nothing of it was taken."""


class ApplicationRejected(CoreError, ValueError):
    """The core refused an application: its queue, its user or its gang will not do."""


class QueueNotFound(ApplicationRejected):
    """No placement rule places the application, and it did not allow `root.default` instead."""

    def __init__(self, text: str = "", queues: tuple[str, ...] = ()) -> None:
        # Both are arguments, so that a copy and a pickle have them.
        super().__init__(text, queues)
        self.queues = queues
        """Those that would take the application, at most 100."""

    def __str__(self) -> str:
        return str(self.args[0])


class ApplicationEnded(CoreError, RuntimeError):
    """The application was closed, is Completed or has failed: it takes no more asks."""


class AskRejected(CoreError, ValueError):
    """The core refused an ask, and why."""


class AskWithdrawn(CoreError, RuntimeError):
    """The core took an ask back before it was placed, as when a hard gang did not come together."""


class DeadlinePassed(AskWithdrawn, TimeoutError):
    """An ask was not placed by its deadline and waits no longer; the text says what it lacked."""


class StillWaiting(CoreError, TimeoutError):
    """The result of an ask did not come in time: it goes on waiting, and the text says for what."""


def anew(failure: _Error) -> _Error:
    """Make a copy for each caller: two callers must not share one traceback."""
    again = type(failure)(*failure.args)
    again.__cause__ = failure.__cause__
    return again


__all__ = [
    "ApplicationEnded",
    "ApplicationRejected",
    "AskRejected",
    "AskWithdrawn",
    "CallbackStuck",
    "ConfigError",
    "ConfigWarning",
    "ConnectionLost",
    "CoreError",
    "CoreFailed",
    "CoreStopped",
    "DeadlinePassed",
    "Duplicate",
    "InvalidRequest",
    "InvalidSetting",
    "InvalidTopology",
    "JournalError",
    "LeaseLost",
    "NoReply",
    "NodeRejected",
    "QuantityError",
    "QueueNotFound",
    "Refused",
    "Replaced",
    "ResponsesLost",
    "SchedulerClosed",
    "StillWaiting",
    "UnknownAsk",
    "UnknownName",
    "UnknownResourceManager",
    "WouldBlock",
]
