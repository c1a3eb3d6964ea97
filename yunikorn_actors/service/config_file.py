"""The administrator's configuration file, followed while the service runs.

One that is refused leaves the former configuration in force. The log says so, the core tells it as
an event, and health checks show it until the file is good again.
"""

from pathlib import Path

from yunikorn_actors.errors import ConfigError, CoreError
from yunikorn_actors.recording.logs import logger
from yunikorn_actors.runtime.config_source import read_file
from yunikorn_actors.service.followed_file import FollowedFile, check_no_pipe
from yunikorn_actors.service.listener import Standing
from yunikorn_actors.service.served import ServedCore


class ConfigFile(FollowedFile[str]):
    def __init__(self, path: Path, core: ServedCore, standing: Standing) -> None:
        super().__init__("yunikorn-actors-config", read_file(path))
        self._path = path
        self._core = core
        self._standing = standing
        standing.follows = str(path)

    def _read(self) -> str:
        check_no_pipe(self._path)
        return read_file(self._path)

    def _take(self, found: str) -> None:
        try:
            self._core.administer(found, f"the file {self._path}")
        except (ConfigError, CoreError) as error:
            self._refuse(str(error))
        else:
            logger.info("configuration {} loaded", self._path)
            self._standing.tell("")

    def _refuse(self, reason: str) -> None:
        if reason != self._standing.configuration_fault:
            logger.warning("configuration {} refused, the former one stays: {}", self._path, reason)
            self._standing.tell(reason)
