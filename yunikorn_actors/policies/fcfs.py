from yunikorn_actors.policies.inputs import Hold, Job
from yunikorn_actors.policies.places import ApplicationSeen, Key, Pool


class Fcfs:
    """First come, first served, strictly: nobody passes the first that has no room."""

    def application_key(self, app: ApplicationSeen) -> Key:
        return app.submitted_ns

    def may_start(self, job: Job, pool: Pool) -> Hold | None:
        head = pool.held[0] if pool.held else job
        if head is job:
            return None
        return Hold(f"{head.id} has no room, and nobody passes it", ends_pass=True)
