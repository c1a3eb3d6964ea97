"""Where two values differ first, in a few words."""

from typing import Any, Final

from msgspec import to_builtins

from yunikorn_actors.trace.fields import change_line, changes

_SHOWN: Final = 300


def differing(one: Any, other: Any) -> str:  # noqa: ANN401 - values of any kind
    """Say where one differs from the other; empty where it does not."""
    if one == other:
        return ""
    found = next(changes(to_builtins(one), to_builtins(other)), None)
    return "" if found is None else change_line(found).strip()[:_SHOWN]
