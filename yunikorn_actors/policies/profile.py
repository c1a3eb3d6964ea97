"""What is free when, if everything ends as declared."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import islice

from yunikorn_actors.policies.inputs import Job
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import Resource

Wanted = tuple[tuple[str, int], ...]


class Profile:
    """A step function of time; what it is given may be taken back."""

    def __init__(
        self, free: Resource, from_ns: int, taken: Iterable[tuple[Resource, int]] = ()
    ) -> None:
        """Begin with what is free then but for these sizes, each until its end."""
        self._times = [from_ns]
        self._free = [dict(free)]
        self._vain: dict[Wanted, tuple[int, int]] = {}
        """Of a size the run time for which nothing was found that ends by that moment."""
        for size, end_ns in taken:
            self.take(from_ns, end_ns, size)

    def take(self, start_ns: int, end_ns: int, size: Resource, sign: int = 1) -> None:
        """Take so much in between; the sign -1 gives it back."""
        self._vain.clear()
        first, last = self._step(start_ns), self._step(end_ns)
        for kind, quantity in size.items():
            for free in self._free[first:last]:
                free[kind] = free.get(kind, 0) - sign * quantity

    def book(self, job: Job, start_ns: int, sign: int = 1) -> None:
        """Take what the job takes if it starts then; the sign -1 gives it back."""
        self.take(start_ns, job.end_ns(start_ns), job.total, sign)

    def reserve(self, job: Job, latest_ns: int = NEVER_NS) -> int:
        """Book the first moment at which the job fits for its run time, or the latest."""
        start_ns = min(latest_ns, self.earliest(job.total, job.runtime_ns))
        self.book(job, start_ns)
        return start_ns

    def move_up(self, job: Job, start_ns: int) -> int:
        """Move the booking of a job to the first moment with room for it, if that is earlier."""
        found_ns = self._earlier(job, start_ns)
        if found_ns < start_ns:
            vain = dict(self._vain)
            self.book(job, start_ns, -1)
            self.book(job, found_ns)
            # Only behind this moment something is free that was not.
            freed_ns = max(start_ns, job.end_ns(found_ns))
            self._vain = {
                size: (run_ns, min(to_ns, freed_ns)) for size, (run_ns, to_ns) in vain.items()
            }
        return found_ns

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
        wanted = _wanted(size)
        start: int | None = None
        place = max(0, bisect_right(self._times, from_ns) - 1)
        steps = zip(self._times, self._free, strict=True)
        for step_ns, free in islice(steps, place, None):
            at_ns = max(step_ns, from_ns)
            if start is not None and at_ns - start >= runtime_ns:
                return start
            if not _has(free, wanted):
                start = None
            elif start is None:
                if not runtime_ns:
                    return at_ns
                start = at_ns
        return NEVER_NS if start is None else start

    def _earlier(self, job: Job, start_ns: int) -> int:
        """Return the first moment at which a job fits that is booked for this one.

        Its own room is free for it. Of many jobs most stay where they are: what was looked for in
        vain for one is not looked for again for those of its size that run as long or longer.
        """
        wanted, runtime_ns, times = _wanted(job.total), job.runtime_ns, self._times
        last = bisect_left(times, start_ns)
        run_ns, to_ns = self._vain.get(wanted, (NEVER_NS, 0))
        if run_ns > runtime_ns or to_ns < start_ns:
            begun: int | None = None
            for place in range(last):
                if not _has(self._free[place], wanted):
                    begun = None
                    continue
                if begun is None:
                    begun = times[place]
                end_ns = times[place + 1] if place + 1 < len(times) else NEVER_NS
                if min(end_ns, start_ns) - begun >= runtime_ns:
                    return begun
            self._vain[wanted] = (runtime_ns, start_ns)
        return self._just_before(wanted, runtime_ns, start_ns, last)

    def _just_before(self, wanted: Wanted, runtime_ns: int, start_ns: int, last: int) -> int:
        """Return the first moment from which it fits up to its own room; it ends in that."""
        found_ns = start_ns
        for place in range(last - 1, -1, -1):
            if not _has(self._free[place], wanted):
                break
            found_ns = self._times[place]
        # Where the cluster has shrunk not even its own room is there.
        end = bisect_left(self._times, found_ns + runtime_ns)
        lacks = any(free.get(kind, 0) < 0 for free in self._free[last:end] for kind, _ in wanted)
        return start_ns if lacks else found_ns


def _wanted(size: Resource) -> Wanted:
    return tuple([item for item in size.items() if item[1] > 0])


def _has(free: Resource, wanted: Wanted) -> bool:
    for kind, quantity in wanted:  # noqa: SIM110 - a generator would cost more than the loop
        if quantity > free.get(kind, 0):
            return False
    return True


def profile_of(free: Resource, now_ns: int, running: Iterable[tuple[Resource, int]]) -> Profile:
    """Begin with what is free now; each of these gives back its size at its end."""
    profile = Profile(free, now_ns)
    for size, end_ns in running:
        profile.take(max(end_ns, now_ns), NEVER_NS, size, -1)
    return profile
