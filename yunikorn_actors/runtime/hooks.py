"""What has gone wrong reaches the program: by its hook, else as a line on standard error.

A failure is seen by nobody if it goes to a log that is off. So whatever no sink of the log has
taken is printed, unless the program has a hook for it.
"""

import traceback
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from yunikorn_actors.errors import CoreFailed, anew
from yunikorn_actors.runtime.logs import alarm, logger

_Report = TypeVar("_Report")


class CallbackRaised(NamedTuple):
    """What a callback raised; the core goes on."""

    rm_id: str
    method: str
    error: BaseException


OnFailure = Callable[[CoreFailed], object]
OnCallbackError = Callable[[CallbackRaised], object]


class Hooks:
    """Called on a thread of the core, that of the callback or that of the machine that failed."""

    def __init__(
        self, on_failure: OnFailure | None, on_callback_error: OnCallbackError | None
    ) -> None:
        self._on_failure = on_failure
        self._on_callback_error = on_callback_error

    def failed(self, failure: CoreFailed, error: BaseException | None) -> None:
        is_logged = logger.error("{}", failure, exception=error or False)
        if self._on_failure is not None:
            _call("on_failure", self._on_failure, anew(failure))
        elif not is_logged:
            what, _, _ = str(failure).partition("; its last messages:")
            alarm(f"{' '.join(what.split())}; the core takes nothing more: start another one")

    def callback_raised(self, address: str, call: str, raised: CallbackRaised) -> None:
        text = f"callback {address} raised on {call}"
        is_logged = logger.error("{}", text, exception=raised.error)
        if self._on_callback_error is not None:
            _call("on_callback_error", self._on_callback_error, raised)
        elif not is_logged:
            alarm(_with_traceback(text, raised.error))


def _call(name: str, hook: Callable[[_Report], object], report: _Report) -> None:
    """A hook that raises is nobody's but the program's; what it was given must not be lost."""
    try:
        hook(report)
    except BaseException as error:  # noqa: BLE001 - the edge: sys.exit() too is the hook's fault
        alarm(_with_traceback(f"{name} raised, and was given {report!r}", error))


def _with_traceback(text: str, error: BaseException) -> str:
    return text + "\n" + "".join(traceback.format_exception(error)).rstrip()
