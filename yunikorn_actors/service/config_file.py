"""The administrator's configuration file, followed while the service runs.

A file that has changed is loaded; one that is refused leaves the former configuration in force. The
log says so, the core tells it as an event, and health checks show it until the file is good again.
"""

import threading
from pathlib import Path
from typing import Final

from yunikorn_actors.errors import ConfigError, CoreError
from yunikorn_actors.runtime.configuration import read_file
from yunikorn_actors.runtime.logs import logger
from yunikorn_actors.service.part import Standing
from yunikorn_actors.service.served import ServedCore

LOOK_S: Final = 1.0


class ConfigFile:
    def __init__(self, path: Path, core: ServedCore, standing: Standing) -> None:
        self._path = path
        self._core = core
        self._standing = standing
        standing.follows = str(path)
        self._loaded = read_file(path)
        """What was loaded last, or refused last: it is not tried again until it changes."""
        self._lock = threading.Lock()
        """A signal and a look may come together."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._follow, name="yunikorn-actors-config", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def reload(self) -> None:
        """Load the file, whether it has changed or not."""
        with self._lock:
            try:
                self._load(read_file(self._path))
            except (OSError, ConfigError) as error:
                self._refuse(str(error))

    def _follow(self) -> None:
        while not self._stopping.wait(LOOK_S):
            with self._lock:
                try:
                    text = read_file(self._path)
                except (OSError, ConfigError) as error:
                    self._refuse(str(error))
                    continue
                if text != self._loaded:
                    self._load(text)

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
