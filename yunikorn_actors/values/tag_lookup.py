"""How tags are read: their names ignore case, and a switch is on as the original reads it."""

from collections.abc import Mapping
from typing import Final

from yunikorn_actors.values.tags import APP_TAG_CREATE_FORCE

_YES: Final = frozenset({"1", "t", "T", "true", "True", "TRUE"})


def tag_of(tags: Mapping[str, str], name: str) -> str:
    """Look a tag up; the names of tags ignore case."""
    if not tags:
        return ""
    wanted = name.lower()
    return next((value for tag, value in tags.items() if tag.lower() == wanted), "")


def is_switched_on(tags: Mapping[str, str], name: str) -> bool:
    return tag_of(tags, name) in _YES


def is_forced(tags: Mapping[str, str]) -> bool:
    """Whether an application must be accepted because its work runs already."""
    return is_switched_on(tags, APP_TAG_CREATE_FORCE)
