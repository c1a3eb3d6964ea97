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


def without_zeros(value: Any) -> Any:  # noqa: ANN401 - an amount, or anything else
    """Leave out of an amount what there is none of."""
    return {kind: n for kind, n in value.items() if n} if isinstance(value, dict) else value
