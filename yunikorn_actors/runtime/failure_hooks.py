"""Failure hooks: what went wrong reaches the program, by its hook or on standard error.

A failure that goes to a log which is off reaches nobody. So what no sink of the log has taken is
printed, unless the program has a hook for it.
"""

import time
import traceback
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from yunikorn_actors.errors import CoreFailed, anew
from yunikorn_actors.recording.logs import alarm, logger
from yunikorn_actors.values.masking import masked_repr

QUIET_S: Final = 60.0
"""What the same method of the same manager raises is printed once in that time; all are counted."""

_Report = TypeVar("_Report")


class CallbackRaised(NamedTuple):
    """What a callback raised; the core goes on."""

    rm_id: str
    """Of the resource manager whose callback it is."""
    method: str
    """The method that raised, such as `update_allocation`."""
    error: BaseException
    """What it raised."""


OnFailure = Callable[[CoreFailed], object]
OnCallbackError = Callable[[CallbackRaised], object]


class _Printed(NamedTuple):
    at_s: float
    unprinted: int
    """How often it has raised since."""


def gist_of(failure: CoreFailed) -> str:
    """Say on one line what has failed; the log has the messages that led to it."""
    what, _, _ = str(failure).partition("; its last messages:")
    return " ".join(what.split())


class Hooks:
    """Called on a thread of the core, that of the callback or that of the machine that failed."""

    def __init__(
        self, on_failure: OnFailure | None, on_callback_error: OnCallbackError | None
    ) -> None:
        self._on_failure = on_failure
        self._on_callback_error = on_callback_error
        self._printed: dict[tuple[str, str], _Printed] = {}
        """Of each resource manager and method what was printed within the last `QUIET_S`."""

    def failed(self, failure: CoreFailed, error: BaseException | None) -> None:
        is_logged = logger.error("{}", failure, exception=error)
        if self._on_failure is not None:
            # A copy: an exception that is raised again elsewhere would collect the frames of every
            # caller.
            _call("on_failure", self._on_failure, anew(failure))
        elif not is_logged:
            alarm(f"{gist_of(failure)}; the core takes nothing more: start another one")

    def callback_raised(self, address: str, call: str, raised: CallbackRaised) -> None:
        text = f"callback {address} raised on {call}"
        is_logged = logger.error("{}", text, exception=raised.error)
        if self._on_callback_error is not None:
            _call("on_callback_error", self._on_callback_error, raised)
        elif not is_logged:
            self._print(text, raised)

    def _print(self, text: str, raised: CallbackRaised) -> None:
        """One that raises on every call must not bury whatever else is printed."""
        now_s = time.monotonic()
        key = (raised.rm_id, raised.method)
        last = self._printed.get(key)
        if last is not None and now_s - last.at_s < QUIET_S:
            # Callbacks of one manager follow each other on one thread, so nothing is lost here.
            self._printed[key] = last._replace(unprinted=last.unprinted + 1)
            return
        # By then the names of managers that come and go are forgotten.
        recent = {it: p for it, p in self._printed.copy().items() if now_s - p.at_s < QUIET_S}
        self._printed = {**recent, key: _Printed(now_s, 0)}
        before = 0 if last is None else last.unprinted
        more = f", as {before} times since the last line about it" if before else ""
        alarm(_with_traceback(text + more, raised.error))


def _call(name: str, hook: Callable[[_Report], object], report: _Report) -> None:
    """A hook that raises is nobody's but the program's; what it was given must not be lost."""
    try:
        hook(report)
    except BaseException as error:  # noqa: BLE001 - the edge: sys.exit() too is the hook's fault
        alarm(_with_traceback(f"{name} raised, and was given {masked_repr(report)}", error))


def _with_traceback(text: str, error: BaseException) -> str:
    return text + "\n" + "".join(traceback.format_exception(error)).rstrip()
