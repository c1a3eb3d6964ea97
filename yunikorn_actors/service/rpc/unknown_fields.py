"""What the other side says and this one does not know: nothing of it is lost in silence."""

from typing import Final

from yunikorn_actors.recording.logs import logger

LOGGED_MAX: Final = 100
"""Fields that are logged; a field comes with every message, or never."""


class Strangers:
    """Fields that came and are not known here: each is logged once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def tell(self, path: str) -> None:
        if path not in self._logged and len(self._logged) < LOGGED_MAX:
            self._logged.add(path)
            logger.warning(
                "{} is set by the other side and not known to this version: it was ignored", path
            )
