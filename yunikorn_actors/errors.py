"""What a call to the core may raise, each worded for the caller."""

from yunikorn_actors.domain.config import ConfigError
from yunikorn_actors.si import InvalidRequest


class CoreError(Exception):
    """The base of what the core itself has to say to a caller."""


class UnknownResourceManager(CoreError, LookupError):  # noqa: N818
    """The request names a resource manager that is not registered."""


class UnknownAsk(CoreError, LookupError):  # noqa: N818
    """The question names an application that is not there, or an ask that does not wait."""


class Refused(CoreError, ValueError):  # noqa: N818
    """A registration or a configuration was refused; nothing has changed."""


class CoreStopped(CoreError, RuntimeError):  # noqa: N818
    """The core was stopped, or not started yet."""


class CoreFailed(CoreError, RuntimeError):  # noqa: N818
    """The core contradicted itself and has stopped scheduling; the first failure is the cause."""


class CallbackStuck(CoreError, RuntimeError):  # noqa: N818
    """A former callback of the resource manager has not returned from a call."""


class NoReply(CoreError, TimeoutError):  # noqa: N818
    """The core did not answer in time."""


class WouldBlock(CoreError, RuntimeError):  # noqa: N818
    """A call that waits for the core was made from inside the core."""


def anew(failure: CoreFailed) -> CoreFailed:
    """Make one for each who is told: they must not share one traceback."""
    told = CoreFailed(*failure.args)
    told.__cause__ = failure.__cause__
    return told


__all__ = [
    "CallbackStuck",
    "ConfigError",
    "CoreError",
    "CoreFailed",
    "CoreStopped",
    "InvalidRequest",
    "NoReply",
    "Refused",
    "UnknownAsk",
    "UnknownResourceManager",
    "WouldBlock",
]
