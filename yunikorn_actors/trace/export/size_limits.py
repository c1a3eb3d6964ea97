"""How much a picture takes before nobody can read it."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from yunikorn_actors.trace.export.timeline import Step
from yunikorn_actors.trace.read import TraceError, TraceReader

_REMEDY: Final = "narrow it down, with --about, --stimulus, --mailbox, --type, --from or --until"


class TooMuchError(TraceError):
    """More is wanted than the format takes."""


class Limit(NamedTuple):
    what: str
    messages: int

    def of(self, trace: TraceReader, steps: Iterator[Step]) -> Iterator[Step]:
        """Pass on what is taken; raise TooMuchError as soon as it is too much."""
        wanted = 0
        for step in steps:
            wanted += step.is_wanted
            if wanted > self.messages:
                raise TooMuchError(
                    f"{trace.path}: {self.what} takes {self.messages} messages, and more are "
                    f"wanted; {_REMEDY}"
                )
            yield step
