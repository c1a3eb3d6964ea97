"""What the readers of both kinds of state dumps share."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from yunikorn_actors.values.close_names import first_few
from yunikorn_actors.values.resource import Resource

PREEMPTION: Final = (
    "preemption policies: what runs may be preempted, and what waits preempts nothing of others"
)
PREDICATES: Final = "whether resource managers have predicates: none is asked"
_LEFT: Final = ("Failing", "Resuming")
"""States whose way out no dump says: what is asked back, and when."""
_TIMES: Final = {"submitted_ns", "allocated_ns", "created_ns"}


class DumpPath:
    """What of a dump is being read, for the words of an error."""

    def __init__(self) -> None:
        self.name = ""

    def at(self, *parts: object) -> None:
        """Name it by its kinds and names in turn."""
        words = map(str, parts)
        self.name = ", ".join(
            f"{kind} {name}".strip() for kind, name in zip(words, words, strict=True)
        )


def amounts(given: Mapping[str, Any] | None) -> Resource:
    """Read amounts, of which none may be below 0."""
    found = {name: whole(name, it) for name, it in (given or {}).items()}
    for kind, amount in found.items():
        if amount < 0:
            raise ValueError(f"{kind} is below 0: {amount}")
    return found


def whole(name: str, value: Any) -> int:  # noqa: ANN401 - of a dump
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = None
    if number is None or (isinstance(value, float) and value != number):
        raise ValueError(f"{name} is no whole number: {value!r:.80}")
    return number


def times_in(value: Any) -> Iterator[int]:  # noqa: ANN401 - a part of a dump or of an image
    """Yield the times at which something had happened."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            if name in _TIMES and below:
                yield below
            else:
                yield from times_in(below)
    elif isinstance(value, list):
        match value:
            case [int(changed_ns), str()]:
                # An entry of what states an application was in.
                yield changed_ns
            case _:
                for below in value:
                    yield from times_in(below)


def left_states(states: Mapping[str, str]) -> Iterator[str]:
    """Name applications that begin in another state than they are in."""
    for state in _LEFT:
        names = [id_ for id_, it in states.items() if it == state]
        if names:
            listed = first_few(names)
            yield f"how far {listed} came while {state}: they go on as if they were not"
