"""The health monitor: a thread that checks a core now and then, while a caller wishes it.

Each check is a state dump, which Context makes between two messages; so it is made only where
somebody has asked for it.
"""

import threading
from collections.abc import Callable
from functools import partial

from yunikorn_actors.checks.health_checks import Health
from yunikorn_actors.errors import CoreFailed, CoreStopped, NoReply
from yunikorn_actors.recording.logs import logger


class HealthWatch:
    def __init__(self, look: Callable[[], Health]) -> None:
        self._look = look
        self._condition = threading.Condition()
        """Guards the wish and the end; the thread waits here between two looks."""
        self._seconds: float | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None

    def every(self, seconds: float | None) -> None:
        """Look that often from now on; None for not at all."""
        with self._condition:
            # After a stop no thread is started: nobody would join it.
            if seconds == self._seconds or self._stopping:
                return
            self._seconds = seconds
            self._condition.notify()
            if self._thread is None:
                # With the first wish, as most cores are never looked at; made here, as for timers.
                thread = threading.Thread(
                    target=self._run, name="yunikorn-actors-health", daemon=True
                )
                thread.start()
                self._thread = thread

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            self._condition.notify()

    def join(self, timeout: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._condition:
                seconds = self._seconds
                # Waits for the interval, or for a change of the wish, whichever comes first.
                changed = self._condition.wait_for(partial(self._has_changed, seconds), seconds)
                if self._stopping:
                    return
            # A change of the interval is no reason to look: the time begins anew.
            if not changed and not self._tell():
                return

    def _has_changed(self, seconds: float | None) -> bool:
        """Whether there is no more to wait for; it may have come before the waiting began."""
        return self._stopping or self._seconds != seconds

    def _tell(self) -> bool:
        """Say what was found; False where there is nothing to look at any more."""
        try:
            health = self._look()
        except NoReply as error:
            # The core was busy for longer than a question waits: it is asked again the next time.
            logger.warning("health check: {}", error)
            return True
        except (CoreStopped, CoreFailed):
            return False
        except Exception as error:  # noqa: BLE001 - the edge: nothing would be looked at any more
            logger.error("health check: it failed", exception=error)
            return True
        if health.healthy:
            logger.debug("health check: healthy")
            return True
        found = [
            f"{check.name}: {check.diagnosis}" for check in health.checks if not check.succeeded
        ]
        logger.warning("health check: NOT healthy: {}", "; ".join(found))
        return True
