from dataclasses import dataclass, field

from yunikorn_actors.policies.inputs import Change, Ended, Sized, Started
from yunikorn_actors.policies.places import ApplicationSeen, Key
from yunikorn_actors.values.durations import HOUR

HALF_LIFE_NS = 24 * HOUR


@dataclass
class FairDecay:
    """Whose user has used the least of the cluster, where what was used long ago counts less.

    A use counts half after a day. What counts is the dominant share of the cluster times seconds.
    """

    reads = ("state",)
    now_ns: int = 0
    capacity: dict[str, int] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)

    def application_key(self, app: ApplicationSeen) -> Key:
        return self.used.get(app.user, 0.0)

    def observe(self, fact: Change, now_ns: int) -> None:
        self._let_time_pass(now_ns)
        match fact:
            case Sized(capacity):
                self.capacity = capacity
            case Started(job):
                parts = (n / self.capacity[k] for k, n in job.total.items() if self.capacity.get(k))
                self.shares[job.id] = share = max(parts, default=0.0)
                self.rates[job.user] = self.rates.get(job.user, 0.0) + share
            case Ended(job):
                self.rates[job.user] = self.rates.get(job.user, 0.0) - self.shares.pop(job.id, 0.0)

    def _let_time_pass(self, now_ns: int) -> None:
        passed_ns, self.now_ns = max(0, now_ns - self.now_ns), now_ns
        left = 0.5 ** (passed_ns / HALF_LIFE_NS)
        for user in self.used.keys() | self.rates.keys():
            new = self.rates.get(user, 0.0) * passed_ns / 1e9
            self.used[user] = left * self.used.get(user, 0.0) + new
