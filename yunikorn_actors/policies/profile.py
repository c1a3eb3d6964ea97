"""What is free when, if everything ends as declared."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice

from yunikorn_actors.policies.inputs import NEVER_NS, Job
from yunikorn_actors.values.resource import Resource


class Profile:
    """A step function of time; what it is given may be taken back."""

    def __init__(
        self, free: Resource, from_ns: int, taken: Iterable[tuple[Resource, int]] = ()
    ) -> None:
        """Begin with what is free then but for these sizes, each until its end."""
        self._times = [from_ns]
        self._free = [dict(free)]
        for size, end_ns in taken:
            self.take(from_ns, end_ns, size)

    def take(self, start_ns: int, end_ns: int, size: Resource, sign: int = 1) -> None:
        """Take so much in between; the sign -1 gives it back."""
        first, last = self._step(start_ns), self._step(end_ns)
        for free in self._free[first:last]:
            for kind, quantity in size.items():
                free[kind] = free.get(kind, 0) - sign * quantity

    def book(self, job: Job, start_ns: int, sign: int = 1) -> None:
        """Take what the job takes if it starts then; the sign -1 gives it back."""
        self.take(start_ns, job.end_ns(start_ns), job.total, sign)

    def reserve(self, job: Job, latest_ns: int = NEVER_NS) -> int:
        """Book the first moment at which the job fits for its run time, or the latest."""
        start_ns = min(latest_ns, self.earliest(job.total, job.runtime_ns))
        self.book(job, start_ns)
        return start_ns

    def _step(self, at_ns: int) -> int:
        """Return the place of the step that begins there; there is one from now on."""
        if at_ns >= NEVER_NS:
            return len(self._times)
        place = bisect_right(self._times, at_ns)
        if place and self._times[place - 1] == at_ns:
            return place - 1
        if not place:
            return 0
        self._times.insert(place, at_ns)
        self._free.insert(place, dict(self._free[place - 1]))
        return place

    def free_at(self, at_ns: int) -> Resource:
        return self._free[max(0, bisect_right(self._times, at_ns) - 1)]

    def earliest(self, size: Resource, runtime_ns: int = 0, from_ns: int = 0) -> int:
        """Return the first moment from which it fits for so long; `NEVER_NS` if there is none."""
        start: int | None = None
        place = max(0, bisect_right(self._times, from_ns) - 1)
        steps = zip(self._times, self._free, strict=True)
        for step_ns, free in islice(steps, place, None):
            at_ns = max(step_ns, from_ns)
            if start is not None and at_ns - start >= runtime_ns:
                return start
            if not fits(size, free):
                start = None
            elif start is None:
                if not runtime_ns:
                    return at_ns
                start = at_ns
        return NEVER_NS if start is None else start


def fits(size: Resource, free: Resource) -> bool:
    return all(quantity <= free.get(kind, 0) for kind, quantity in size.items() if quantity > 0)


def profile_of(free: Resource, now_ns: int, running: Iterable[tuple[Resource, int]]) -> Profile:
    """Begin with what is free now; each of these gives back its size at its end."""
    profile = Profile(free, now_ns)
    for size, end_ns in running:
        profile.take(max(end_ns, now_ns), NEVER_NS, size, -1)
    return profile
