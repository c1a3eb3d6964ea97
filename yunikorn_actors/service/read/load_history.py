"""The load over the last day: what waits, for how long, and how long mailboxes are.

Samples are taken by the server of the read side. They are kept as they are for an hour, and for a
day the largest of each minute, however long a service runs.
"""

from collections import deque
from typing import Any, Final, NamedTuple

from yunikorn_actors.service.read.incremental_answers import Pauses, Steps
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.durations import HOUR, MINUTE, SECOND

SAMPLE_NS: Final = 10 * SECOND
HOURS_MAX: Final = 24
POINTS_MAX: Final = 240
"""No picture shows more; of neighbours the largest is shown."""
PARTITIONS_MAX: Final = 100


class Sample(NamedTuple):
    at_ns: int
    asks: int
    """How many asks wait."""
    oldest_ns: int
    """For how long the one has waited that came first."""
    messages: int
    """In all mailboxes."""
    wait_ns: int
    """How long a message was in a mailbox, on the average since the sample before."""

    def joined(self, other: "Sample") -> "Sample":
        """Take the largest of both, at the time of the later one."""
        return Sample(*map(max, self, other))


class Mailboxes(NamedTuple):
    """What the actors' figures add up to."""

    messages: int = 0
    handled: int = 0
    waited_ns: int = 0

    @classmethod
    def of(cls, answer: Any) -> "Mailboxes":  # noqa: ANN401 - the core's answer
        actors = (answer["metered"] or {}).get("actors", {}).values()
        return cls(
            sum(answer["lengths"].values()),
            sum(it["messages"] for it in actors),
            sum(it["waiting_ns"] for it in actors),
        )

    # Over the time since: an average of all time would show no change.
    def wait_since(self, former: "Mailboxes") -> int:
        handled = self.handled - former.handled
        return (self.waited_ns - former.waited_ns) // handled if handled > 0 else 0


class Course:
    """Of one partition."""

    def __init__(self) -> None:
        self._recent: deque[Sample] = deque(maxlen=HOUR // SAMPLE_NS)
        self._minutes: deque[Sample] = deque(maxlen=HOURS_MAX * HOUR // MINUTE)

    def take(self, sample: Sample) -> None:
        self._recent.append(sample)
        last = self._minutes[-1] if self._minutes else None
        # The largest of a minute: an average would hide a short peak.
        if last is not None and last.at_ns // MINUTE == sample.at_ns // MINUTE:
            self._minutes[-1] = last.joined(sample)
        else:
            self._minutes.append(sample)

    def last(self, hours: int, now_ns: int) -> list[Sample]:
        """Return the samples of so many hours, no more than a picture shows."""
        kept = self._recent if hours == 1 else self._minutes
        begin_ns = now_ns - hours * HOUR
        span_ns = max(1, hours * HOUR // POINTS_MAX)
        points: dict[int, Sample] = {}
        for it in kept:
            if it.at_ns > begin_ns:
                place = (it.at_ns - begin_ns) // span_ns
                points[place] = points[place].joined(it) if place in points else it
        return list(points.values())


class Courses:
    """Of each partition that is there."""

    def __init__(self) -> None:
        self.by_name: dict[str, Course] = {}
        self._former = Mailboxes()

    def take(
        self,
        states: dict[str, PartitionState],
        answer: Any,  # noqa: ANN401 - as above
        now_ns: int,
    ) -> Steps[None]:
        """Look at all asks; nothing is kept before the end, so it may be begun anew."""
        boxes = Mailboxes.of(answer)
        wait_ns = boxes.wait_since(self._former)
        taken: dict[str, Sample] = {}
        for name, state in list(states.items())[:PARTITIONS_MAX]:
            asks, first_ns = yield from _waiting(state, now_ns)
            taken[name] = Sample(now_ns, asks, now_ns - first_ns, boxes.messages, wait_ns)
        # Only now: a question that was cut short is begun anew.
        self._former = boxes
        # Of partitions that have gone nothing is kept.
        self.by_name = {name: self.by_name.get(name, Course()) for name in taken}
        for name, sample in taken.items():
            self.by_name[name].take(sample)


def _waiting(state: PartitionState, now_ns: int) -> Steps[tuple[int, int]]:
    """Count the asks that wait, and find when the first of them came."""
    count, first_ns, pauses = 0, now_ns, Pauses()
    for app in state.applications.values():
        for ask in app.asks.values():
            if ask.remaining:
                count += 1
                first_ns = min(first_ns, ask.created_ns)
            if pauses.due:
                yield
        if pauses.due:
            yield
    return count, first_ns
