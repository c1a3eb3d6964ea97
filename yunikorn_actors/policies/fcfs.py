from yunikorn_actors.policies.inputs import Hold, Job
from yunikorn_actors.policies.places import ApplicationSeen, Key, Pool


class Fcfs:
    """First come, first served, strictly: nobody passes the first that has no room."""

    def application_key(self, app: ApplicationSeen) -> Key:
        return app.submitted_ns

    def may_start(self, job: Job, pool: Pool) -> Hold | None:
        if not pool.held:
            return None
        return Hold(f"{pool.held[0].id} has no room, and {job.id} comes behind it")
