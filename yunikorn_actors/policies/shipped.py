"""The policies that come with the package and keep nothing of their own, a few lines each."""

from math import inf
from typing import Final

from msgspec.structs import replace

from yunikorn_actors.policies.inputs import Hold, Job
from yunikorn_actors.policies.places import ApplicationSeen, Key, NodeSeen, Pool
from yunikorn_actors.values.devices import WHOLE, amount_of
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import Resource, add
from yunikorn_actors.values.tags import CPU


class Fcfs:
    """First come, first served, strictly: nobody passes the first that has no room."""

    def application_key(self, app: ApplicationSeen) -> Key:
        return app.submitted_ns

    def may_start(self, job: Job, pool: Pool) -> Hold | None:
        head = pool.held[0] if pool.held else job
        if head is job:
            return None
        return Hold(f"{head.id} has no room, and nobody passes it", ends_pass=True)


class Sjf(Fcfs):
    """The shortest declared run time first, strictly: nobody passes the first without room."""

    reads = ("runtime_ns",)

    def application_key(self, app: ApplicationSeen) -> Key:
        return app.runtime_ns

    def ask_key(self, ask: Job) -> Key:
        return ask.runtime_ns


class Easy(Fcfs):
    """Who does not delay the first without room may pass it, by the declared run times."""

    def may_start(self, job: Job, pool: Pool) -> Hold | None:
        if not pool.held:
            return None
        head = pool.held[0]
        shadow_ns, end_ns = pool.earliest(head), pool.end_of(job)
        ends_before = end_ns <= shadow_ns and end_ns < NEVER_NS
        if ends_before or pool.fits_beside(job, head, shadow_ns):
            return None
        # What ends later than declared makes no event, and the turn of the first moves with time.
        both_ns = pool.earliest(replace(head, size=add(head.total, job.total), count=1))
        until_ns = both_ns if both_ns < NEVER_NS else 0
        return Hold(f"it would delay {head.id}, which is before it and has no room", until_ns)


class LargestFirst:
    """The largest share of the cluster first; smaller ones go on where that has no room."""

    reads = ("size",)

    def application_key(self, app: ApplicationSeen) -> Key:
        sizes = app.capacity
        shares = (n / sizes[k] if sizes.get(k) else inf for k, n in app.size.items() if n)
        return -max(shares, default=0.0)

    def ask_key(self, ask: Job) -> Key:
        return tuple(sorted((-size for size in ask.total.values()), reverse=False))


class DominantShare:
    """Who uses the smallest share of the cluster, by the type of which that share is largest."""

    reads = ("used",)

    def application_key(self, app: ApplicationSeen) -> Key:
        sizes = app.capacity
        shares = (used / sizes[kind] for kind, used in app.used.items() if sizes.get(kind))
        return max(shares, default=0.0)


BEST: Final = 100


class BestFit:
    """Takes the node with the least left, in equal parts of cpus and devices."""

    def __init__(self, vcore: int = 128_000, gpu: int = 8 * WHOLE) -> None:
        self._vcore, self._gpu = vcore, gpu
        """What the largest node has."""

    def score(self, node: NodeSeen, shape: Resource) -> float:
        vcore = (node.free.get(CPU, 0) - shape.get(CPU, 0)) / self._vcore
        gpu = (amount_of(node.free) - amount_of(shape)) / self._gpu
        return -int(BEST * (1 - (0.5 * vcore + 0.5 * gpu)))
