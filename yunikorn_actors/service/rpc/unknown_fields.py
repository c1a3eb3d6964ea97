"""What the other side says and this one does not know: nothing of it is lost in silence."""

from typing import Final

from yunikorn_actors.recording.logs import logger

TOLD_MAX: Final = 100
"""Fields that are logged; a field comes with every message, or never."""


class Strangers:
    """Fields that came and are not known here: each is logged once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, path: str) -> None:
        if path not in self._told and len(self._told) < TOLD_MAX:
            self._told.add(path)
            logger.warning(
                "{} is set by the other side and not known to this version: it was ignored", path
            )
