"""A recording as a Python object: what the `trace` commands print, as values."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.policies.registry import Policy
from yunikorn_actors.trace.causes import Waits, why_of
from yunikorn_actors.trace.chain import Link, downwards, upwards
from yunikorn_actors.trace.checkpointed_replay import Checkpoints
from yunikorn_actors.trace.compare_runs import Comparison, compare
from yunikorn_actors.trace.filters import FilterOptions, moment_of
from yunikorn_actors.trace.path import Way, path_of
from yunikorn_actors.trace.read import Footer, Header, TraceReader
from yunikorn_actors.trace.refused import RefusalGroup, grouped
from yunikorn_actors.trace.replay import ReplayOutcome, replay
from yunikorn_actors.trace.state_at import states_at
from yunikorn_actors.trace.stats import Stats, stats
from yunikorn_actors.trace.story import StoryLine, story
from yunikorn_actors.trace.text.summary import message_summary
from yunikorn_actors.trace.view.objects import WhyOf
from yunikorn_actors.trace.view.run_data import Shown
from yunikorn_actors.trace.view.run_page import page


class Recording:
    """A recorded run. Iterate over it for its messages; each question reads the file anew.

    `why` and `at` run the messages again. The first of them leaves checkpoints in memory, so the
    next begins at the last one before what it is asked about. The file may still grow: an answer is
    about what is there when the question is asked. Raises
    TraceError where the file is damaged, and DifferentError from `why` and `at` where this version
    of the core does something else than was recorded.
    """

    def __init__(self, path: str | Path, policies: Mapping[str, Policy] | None = None) -> None:
        """`path` is the file, the newest of several, or the folder of a recording.

        `policies` are those of your own that the run was given: `why`, `at` and `replay` ask them.
        """
        self.file, self._policies = Path(path), policies
        with TraceReader(self.file) as trace:
            self.header: Header = trace.header
            """What the run was started with."""
        self._checkpoints = Checkpoints()

    def __iter__(self) -> Iterator[Delivery]:
        """Yield the messages in the order of recording."""
        with TraceReader(self.file) as trace:
            yield from trace

    @property
    def footer(self) -> Footer | None:
        """How the run ended; None if the recording has no end."""
        with TraceReader(self.file) as trace:
            for _ in trace:
                pass
            return trace.footer

    def story(self, name: str) -> list[StoryLine]:
        """Return the life of an application, ask, allocation, node, queue or user."""
        return story(self.file, name)[1]

    def path(self, key: str) -> Way:
        """Return where the time of an ask went, from the call to the callback."""
        return path_of(self.file, key)

    def why(self, key: str, application_id: str = "") -> tuple[Waits, ...]:
        """Return why an ask waited, from when to when; one answer for each ask with this key."""
        name = f"{application_id}/{key}" if application_id else key
        answer = why_of(self.file, (name,), self._checkpoints, policies=self._policies).grouped()
        if answer.difference is not None:
            raise answer.difference
        return answer.waits

    def at(self, place: str | int) -> dict[str, Any] | None:
        """Return the state after a message: a record's number, `context/751`, or a time (`3s`).

        None if the recording does not come that far.
        """
        with TraceReader(self.file, policies=self._policies) as trace:
            return states_at(trace, [moment_of(str(place))], self._checkpoints)[0]

    def chain(self, step: str, *, down: bool = False) -> list[Link]:
        """Return what led to a step such as `context/751`, or what came of it."""
        mailbox, _, number = step.rpartition("/")
        at = Cause(mailbox, int(number))
        return downwards(at, self.file) if down else upwards(at, self.file)

    def refusals(self) -> list[RefusalGroup]:
        """Return what was refused, grouped by the reason."""
        with TraceReader(self.file) as trace:
            return grouped(iter(trace))

    def stats(self) -> Stats:
        """Return how many messages there were, how long they waited and how long they took."""
        with TraceReader(self.file) as trace:
            return stats(trace, FilterOptions())

    def diff(self, other: Self | str | Path) -> Comparison:
        """Return where this run and another one part, and what was different in the end."""
        return compare(self.file, other.file if isinstance(other, Recording) else Path(other))

    def view(self, out: str | Path, other: Self | str | Path | None = None) -> None:
        """Write a page for a browser that shows this run, or this one above another one."""
        files = [self.file]
        if other is not None:
            files.append(other.file if isinstance(other, Recording) else Path(other))
        shown = [Shown(file.absolute().name, file) for file in files]
        made = page(shown, FilterOptions(), WhyOf.FILTERED)
        # As a recording, it is for its owner.
        Path(out).touch(mode=0o600)
        Path(out).write_text(made.text, "utf-8")

    def replay(self) -> ReplayOutcome:
        """Run the recorded messages through the core again, and compare all effects."""
        with TraceReader(self.file, policies=self._policies) as trace:
            return replay(trace)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the messages as flat maps, for a table: `pandas.DataFrame(recording.rows())`."""
        start_ns = self.header.start_ns
        for it in self:
            yield {
                "mailbox": it.mailbox,
                "step": it.step,
                "sender": it.sender,
                "cause": f"{it.cause.mailbox}/{it.cause.step}",
                "stimulus": it.stimulus,
                "at_ms": (it.at_ns - start_ns) / 1e6,
                "waited_ms": None if it.sent_ns is None else (it.at_ns - it.sent_ns) / 1e6,
                "type": type_name(it.message),
                "text": message_summary(it.message),
            }


def open(  # noqa: A001 - as in gzip, zipfile
    path: str | Path, policies: Mapping[str, Policy] | None = None
) -> Recording:
    """Open a recorded run; raise TraceError if the file is none."""
    return Recording(path, policies)
