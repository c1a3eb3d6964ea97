from yunikorn_actors.policies.fcfs import Fcfs
from yunikorn_actors.policies.inputs import Job
from yunikorn_actors.policies.places import ApplicationSeen, Key


class Sjf(Fcfs):
    """The shortest declared run time first, strictly: nobody passes the first without room."""

    reads = ("runtime_ns",)

    def application_key(self, app: ApplicationSeen) -> Key:
        return app.runtime_ns

    def ask_key(self, ask: Job) -> Key:
        return ask.runtime_ns
