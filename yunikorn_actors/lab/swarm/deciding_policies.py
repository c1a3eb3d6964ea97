"""Policies as users write them: together they have each method, and are sound.

What is shipped orders no queues and no victims, goes by no time, and reads little of what it is
given. So what the core makes of such methods, and of what these read, shows in no world of theirs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from yunikorn_actors.policies.inputs import Candidate, Change, Ended, Hold, Job, Left, Started
from yunikorn_actors.policies.places import ApplicationSeen, Key, NodeSeen, Pool, QueueSeen
from yunikorn_actors.values.devices import WHOLE, Devices, Parts, amount_of
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import Resource

WHERE: Final = f"{__name__}:POLICIES"
_FIVE_SECONDS_NS: Final = 5 * SECOND
_FEW: Final = 3
_SMALL: Final = 1000
"""What asks for no more vcore is let through, however many run."""


class Aging:
    """Goes by the time, and by all that is said of an application."""

    reads = ("priority", "waited_ns", "size", "runtime_ns")
    every_s = 2

    def application_key(self, app: ApplicationSeen) -> Key:
        aged = app.priority + app.waited_ns // _FIVE_SECONDS_NS
        said = f"{app.queue}{app.user}{app.group}{sorted(app.tags.items())}"
        return -aged, app.size.get("vcore", 0), min(app.runtime_ns, 1 << 62), said

    def victim_key(self, victim: Candidate, now_ns: int) -> Key:
        return victim.priority, (now_ns - victim.started_ns) * victim.count, victim.id


class LargestAskFirst:
    """Whose share is small comes first, and there what asks for the most."""

    reads = ("used",)

    def application_key(self, app: ApplicationSeen) -> Key:
        due = app.guaranteed.get("vcore", 0) or app.capacity.get("vcore", 0) or 1
        return app.used.get("vcore", 0) / due

    def ask_key(self, ask: Job) -> Key:
        return -ask.total.get("vcore", 0), ask.submitted_ns

    def victim_key(self, victim: Candidate, _: int) -> Key:
        return min(victim.end_ns, 1 << 62), victim.size.get("vcore", 0), victim.queue, victim.user


@dataclass
class FewAtATime:
    """Lets so many run of each queue at once, and remembers which these are."""

    reads = ("state",)
    running: dict[str, str] = field(default_factory=dict)
    left: int = 0

    def application_key(self, app: ApplicationSeen) -> Key:
        return app.id in self.running.values(), self.left % 2, app.submitted_ns

    def may_start(self, job: Job, pool: Pool) -> Hold | None:
        if len(pool.running) < _FEW or job.size.get("vcore", 0) <= _SMALL:
            return None
        if any(pool.fits_beside(job, it, pool.now_ns) for it in pool.held[:1]):
            return None
        return Hold("enough runs", until_ns=pool.now_ns + _FIVE_SECONDS_NS, ends_pass=job.count > 1)

    def observe(self, fact: Change, _: int) -> None:
        match fact:
            case Started(job):
                self.running[job.id] = job.application_id
            case Ended(job):
                self.running.pop(job.id, None)
            case Left():
                self.left += 1


class LeastUsedQueue:
    def queue_key(self, queue: QueueSeen) -> Key:
        shares = [queue.used.get(kind, 0) / due for kind, due in queue.due.items() if due]
        return max(shares, default=0.0), bool(queue.guaranteed), -queue.position, queue.path


class ZoneFirst:
    """Fills one zone first, and takes the last devices first."""

    def score(self, node: NodeSeen, shape: Resource) -> float:
        is_far = node.attributes.get("zone") != "a"
        rest = node.free.get("vcore", 0) - shape.get("vcore", 0)
        return 1e6 * is_far + rest / max(1, node.capacity.get("vcore", 0)) + len(node.model)

    def devices(self, _: NodeSeen, shape: Resource, free: Parts) -> Devices | None:
        amount = amount_of(shape)
        fitting = [index for index, part in enumerate(free) if part >= amount]
        return (fitting[-1],) if 0 < amount < WHOLE and fitting else None


POLICIES: Final[Mapping[str, Any]] = {
    "aging": Aging,
    "largest-ask": LargestAskFirst,
    "few-at-a-time": FewAtATime,
    "least-used": LeastUsedQueue,
    "zone-first": ZoneFirst,
}
