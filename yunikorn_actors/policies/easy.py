from yunikorn_actors.policies.fcfs import Fcfs
from yunikorn_actors.policies.jobs import NEVER_NS, Hold, Job
from yunikorn_actors.policies.places import Pool


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
        return Hold(f"it would delay {head.id}, which is before it and has no room")
