"""A pool of processors and its jobs by the rules of batch systems, second by second.

At one instant: all ends, then all arrivals, then one pass. Ties end with the order of arrival. It
shares nothing with the core.
"""

from typing import NamedTuple


class Job(NamedTuple):
    submit: int
    number: int
    run: int
    size: int
    declared: int


class Pool:
    def __init__(self, policy: str, jobs: list[Job], size: int) -> None:
        self.policy, self.jobs, self.size = policy, sorted(jobs), size
        self.starts: dict[Job, int] = {}
        self.kept: dict[Job, int] = {}
        """Reservations of those that wait, of `conservative`."""

    def run(self) -> dict[int, int]:
        now = 0
        while len(self.starts) < len(self.jobs):
            if any(start + job.run == now for job, start in self.starts.items()):
                for job in list(self.kept):
                    former = self.kept.pop(job)
                    self.kept[job] = min(former, self.earliest(job, now))
                self.kept = dict(sorted(self.kept.items()))
            for job in [it for it in self.jobs if it.submit == now]:
                self.kept[job] = self.earliest(job, now)
            for job in self.chosen(now):
                self.starts[job] = now
                del self.kept[job]
            now += 1
        return {job.number: start for job, start in self.starts.items()}

    def used(self, at: int, now: int) -> int:
        """What runs then, as declared; what has ended by now is known.

        What runs longer than declared counts as if it ended now.
        """
        runs = self.running(now)
        return sum(it.size for it in runs if self.starts[it] + it.declared > at)

    def running(self, now: int) -> list[Job]:
        return [it for it, start in self.starts.items() if start + it.run > now]

    def earliest(self, job: Job, now: int) -> int:
        def fits(at: int) -> bool:
            kept = [it for it, start in self.kept.items() if start <= at < start + it.declared]
            return self.used(at, now) + sum(it.size for it in kept) + job.size <= self.size

        at = now
        while not all(map(fits, range(at, at + job.declared))):
            at += 1
        return at

    def chosen(self, now: int) -> list[Job]:
        if self.policy == "conservative":
            return [job for job, start in self.kept.items() if start == now]
        by_time = (lambda it: (it.declared, it)) if self.policy == "sjf" else (lambda it: (0, it))
        found: list[Job] = []
        head, shadow, extra = None, 0, 0
        free = self.size - sum(it.size for it in self.running(now))
        for job in sorted(self.kept, key=by_time):
            may = head is None or (
                self.policy == "easy" and (now + job.declared <= shadow or job.size <= extra)
            )
            if job.size <= free and may:
                found.append(job)
                free -= job.size
                extra -= job.size if head is not None and now + job.declared > shadow else 0
            elif head is None:
                head, shadow = job, now
                while (left := self.left(shadow, now, found)) < job.size:
                    shadow += 1
                extra = left - job.size
        return found

    def left(self, at: int, now: int, found: list[Job]) -> int:
        """What is free then, if these start now."""
        ours = sum(it.size for it in found if now + it.declared > at)
        return self.size - self.used(at, now) - ours
