from msgspec.structs import replace

from yunikorn_actors.policies.fcfs import Fcfs
from yunikorn_actors.policies.inputs import Hold, Job
from yunikorn_actors.policies.places import Pool
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import add


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
