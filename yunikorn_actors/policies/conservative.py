from dataclasses import dataclass, field

from yunikorn_actors.policies import inputs
from yunikorn_actors.policies.inputs import Hold, Job
from yunikorn_actors.policies.places import Pool
from yunikorn_actors.policies.profile import Profile
from yunikorn_actors.policies.shipped import Fcfs
from yunikorn_actors.values.resource import Resource


@dataclass
class Conservative(Fcfs):
    """Each job has a reservation in time from its arrival on; nobody delays that of another."""

    now_ns: int = 0
    capacity: Resource = field(default_factory=dict)
    running: dict[str, tuple[Resource, int]] = field(default_factory=dict)
    waiting: dict[str, tuple[Job, int]] = field(default_factory=dict)
    new: list[Job] = field(default_factory=list)  # What ends at the same moment comes before them.
    is_stale: bool = False

    def observe(self, fact: inputs.Change, now_ns: int) -> None:
        if now_ns > self.now_ns:
            self._settle()
            self.now_ns = now_ns
        match fact:
            case inputs.Arrived(job):
                self.new.append(job)
            case inputs.Started(job):
                self._settle()
                self.waiting.pop(job.id, None)
                self.running[job.id] = (job.total, job.end_ns(now_ns))
            case inputs.Ended(job) | inputs.Left(job):
                ended, left = self.running.pop(job.id, None), self.waiting.pop(job.id, None)
                self.is_stale |= (ended or left) is not None
                self.new = [it for it in self.new if it.id != job.id]
            case inputs.Sized(capacity):
                self.capacity, self.is_stale = capacity, True

    def may_start(self, job: Job, pool: Pool) -> Hold | None:
        self._settle()
        _, start_ns = self.waiting.get(job.id, (job, 0))
        if start_ns <= pool.now_ns:
            return None
        in_s = (start_ns - pool.now_ns) / 1e9
        return Hold(f"it would delay a job before it; its own turn is in {in_s:.0f} s", start_ns)

    def _settle(self) -> None:
        if not (self.new or self.is_stale):
            return
        profile = Profile(self.capacity, self.now_ns, self.running.values())
        booked = [(job, max(at_ns, self.now_ns)) for job, at_ns in self.waiting.values()]
        for job, at_ns in booked:
            profile.book(job, at_ns)
        for job, at_ns in booked if self.is_stale else ():  # To an earlier moment, never a later.
            self.waiting[job.id] = (job, profile.move_up(job, at_ns))
        for job in self.new:
            self.waiting[job.id] = (job, profile.reserve(job))
        self.new, self.is_stale = [], False
