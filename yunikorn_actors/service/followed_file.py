"""A file that is read again while the service runs, when it has changed.

Once two looks have found the same: so none is read while it is being written. A file that cannot be
read, or is refused, changes nothing.
"""

import stat
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, Generic, TypeVar

from yunikorn_actors.errors import ConfigError
from yunikorn_actors.service.access_policy import Unsafe
from yunikorn_actors.values.masking import masked_str

T = TypeVar("T")
LOOK_S: Final = 0.5


class FollowedFile(ABC, Generic[T]):
    def __init__(self, name: str, first: T) -> None:
        """`name` is that of its thread; `first` is what was read before."""
        self._loaded: T | None = first
        """What was taken last, or refused last: it is not tried again until it changes."""
        self._seen: T | None = first
        """None where nothing could be read; what comes back is taken again."""
        self._is_stopping = False
        self._is_wanted = False
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        self._is_stopping = True
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def reload(self) -> None:
        """Have the file taken soon, whether it has changed or not.

        On the thread that follows it: the caller does not wait for a disk or a large file.
        """
        self._is_wanted = True
        self._woken.set()

    @abstractmethod
    def _read(self) -> T:
        """Read the file; raise OSError, ConfigError or Unsafe where that is impossible."""

    @abstractmethod
    def _take(self, found: T) -> None:
        """Put in force what was read."""

    @abstractmethod
    def _refuse(self, reason: str) -> None:
        """Say why the file is not in force as it stands."""

    def _follow(self) -> None:
        while True:
            self._woken.wait(LOOK_S)
            # Cleared before the look: a request that comes meanwhile wakes the thread again.
            self._woken.clear()
            if self._is_stopping:
                return
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - the edge: no change would be taken any more
                self._seen = self._loaded = None
                self._refuse(masked_str(error))

    def _look(self) -> None:
        is_wanted, self._is_wanted = self._is_wanted, False
        try:
            found = self._read()
        except (OSError, ConfigError, Unsafe) as error:
            # As if nothing was loaded: what comes back is taken, though it may be the same.
            self._seen = self._loaded = None
            self._refuse(getattr(error, "strerror", None) or str(error))
            return
        former, self._seen = self._seen, found
        # Found twice, and not what is in force; or wanted, whatever it is.
        if is_wanted or (found == former and found != self._loaded):
            self._loaded = found
            self._take(found)


def check_no_pipe(path: Path) -> None:
    """Raise OSError for a pipe: opening one would wait for its writer."""
    if stat.S_ISFIFO(path.stat().st_mode):
        raise OSError("it is a pipe: put a file in its place")
