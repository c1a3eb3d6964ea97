from math import inf

from yunikorn_actors.policies.inputs import Job
from yunikorn_actors.policies.places import ApplicationSeen, Key


class LargestFirst:
    """The largest share of the cluster first; smaller ones go on where that has no room."""

    reads = ("size",)

    def application_key(self, app: ApplicationSeen) -> Key:
        sizes = app.capacity
        shares = (n / sizes[k] if sizes.get(k) else inf for k, n in app.size.items() if n)
        return -max(shares, default=0.0)

    def ask_key(self, ask: Job) -> Key:
        return tuple(sorted((-size for size in ask.total.values()), reverse=False))
