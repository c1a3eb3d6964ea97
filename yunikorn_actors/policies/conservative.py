from dataclasses import dataclass, field

from yunikorn_actors.policies.fcfs import Fcfs
from yunikorn_actors.policies.jobs import Arrived, Change, Ended, Hold, Job, Left, Sized, Started
from yunikorn_actors.policies.places import Pool
from yunikorn_actors.policies.profile import Profile
from yunikorn_actors.values.resource import Resource


@dataclass
class Conservative(Fcfs):
    """Each job has a reservation in time from its arrival on; nobody delays that of another.

    When something ends before it was to, one pass in the order of arrival moves each reservation to
    the earliest moment, never to a later one.
    """

    now_ns: int = 0
    capacity: Resource = field(default_factory=dict)
    running: dict[str, tuple[Resource, int]] = field(default_factory=dict)
    waiting: dict[str, tuple[Job, int]] = field(default_factory=dict)
    """Each with the moment of its reservation, in the order of arrival."""
    new: list[Job] = field(default_factory=list)
    """Those that came at this moment: what ends at the same moment comes before them."""
    is_stale: bool = False

    def observe(self, fact: Change, now_ns: int) -> None:
        if now_ns > self.now_ns:
            self._settle()
            self.now_ns = now_ns
        match fact:
            case Arrived(job):
                self.new.append(job)
            case Started(job):
                self._settle()
                self.waiting.pop(job.id, None)
                self.running[job.id] = (job.total, job.end_ns(now_ns))
            case Ended(job) | Left(job):
                ended, left = self.running.pop(job.id, None), self.waiting.pop(job.id, None)
                self.is_stale |= (ended or left) is not None
                self.new = [it for it in self.new if it.id != job.id]
            case Sized(capacity):
                self.capacity, self.is_stale = capacity, True

    def may_start(self, job: Job, pool: Pool) -> Hold | None:
        self._settle()
        start_ns = self.waiting[job.id][1] if job.id in self.waiting else 0
        if start_ns <= pool.now_ns:
            return None
        in_s = (start_ns - pool.now_ns) / 1e9
        return Hold(f"it would delay a job before it; its own turn is in {in_s:.0f} s", start_ns)

    def _settle(self) -> None:
        """First move each to the earliest moment, if anything has come free; then who is new."""
        if not (self.new or self.is_stale):
            return
        profile = Profile(self.capacity, self.now_ns)
        for size, end_ns in self.running.values():
            profile.take(self.now_ns, end_ns, size)
        for job, start_ns in self.waiting.values():
            _reserve(profile, job, max(start_ns, self.now_ns))
        for job, start_ns in tuple(self.waiting.values()) if self.is_stale else ():
            _reserve(profile, job, max(start_ns, self.now_ns), -1)
            earliest_ns = profile.earliest(job.total, job.runtime_ns)
            self.waiting[job.id] = (job, min(earliest_ns, max(start_ns, self.now_ns)))
            _reserve(profile, *self.waiting[job.id])
        for job in self.new:
            self.waiting[job.id] = (job, profile.earliest(job.total, job.runtime_ns))
            _reserve(profile, *self.waiting[job.id])
        self.new, self.is_stale = [], False


def _reserve(profile: Profile, job: Job, start_ns: int, sign: int = 1) -> None:
    profile.take(start_ns, job.end_ns(start_ns), job.total, sign)
