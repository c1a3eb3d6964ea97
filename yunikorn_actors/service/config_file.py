"""The administrator's configuration file, followed while the service runs.

A file that has changed is loaded, once two looks have found the same: so none is read while it is
being written. One that is refused leaves the former configuration in force. The log says so, the
core tells it as an event, and health checks show it until the file is good again.
"""

import stat
import threading
from pathlib import Path
from typing import Final

from yunikorn_actors.errors import ConfigError, CoreError
from yunikorn_actors.runtime.configuration import read_file
from yunikorn_actors.runtime.logs import logger
from yunikorn_actors.service.part import Standing
from yunikorn_actors.service.served import ServedCore

LOOK_S: Final = 0.5


class ConfigFile:
    def __init__(self, path: Path, core: ServedCore, standing: Standing) -> None:
        self._path = path
        self._core = core
        self._standing = standing
        standing.follows = str(path)
        self._loaded: str | None = read_file(path)
        """What was loaded last, or refused last: it is not tried again until it changes."""
        self._seen: str | None = self._loaded
        """None where nothing could be read; what comes back is loaded again."""
        self._is_stopping = False
        self._is_wanted = False
        self._woken = threading.Event()
        self._thread = threading.Thread(
            target=self._follow, name="yunikorn-actors-config", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        self._is_stopping = True
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def reload(self) -> None:
        """Have the file loaded soon, whether it has changed or not.

        On the thread that follows it: whoever asks does not wait for a disk or a large file.
        """
        self._is_wanted = True
        self._woken.set()

    def _follow(self) -> None:
        while True:
            self._woken.wait(LOOK_S)
            self._woken.clear()
            if self._is_stopping:
                return
            self._look()

    def _look(self) -> None:
        is_wanted, self._is_wanted = self._is_wanted, False
        try:
            text = self._read()
        except (OSError, ConfigError) as error:
            self._seen = self._loaded = None
            self._refuse(getattr(error, "strerror", None) or str(error))
            return
        former, self._seen = self._seen, text
        if is_wanted or (text == former != self._loaded):
            self._load(text)

    def _read(self) -> str:
        # To open a pipe is to wait for its writer.
        if stat.S_ISFIFO(self._path.stat().st_mode):
            raise OSError("it is a pipe: put a file in its place")
        return read_file(self._path)

    def _load(self, text: str) -> None:
        self._loaded = text
        try:
            self._core._administer(text, f"the file {self._path}")
        except (ConfigError, CoreError) as error:
            self._refuse(str(error))
        else:
            logger.info("configuration {} loaded", self._path)
            self._standing.tell("")

    def _refuse(self, reason: str) -> None:
        if reason != self._standing.configuration_fault:
            logger.warning("configuration {} refused, the former one stays: {}", self._path, reason)
            self._standing.tell(reason)
