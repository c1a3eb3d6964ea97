"""A folder for what a run writes and reads again, in memory where there is such a place."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder of its own in there


def temporary_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None)
