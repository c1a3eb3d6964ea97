"""Policies that fail now and then: each is sound until it meets what it cannot bear.

What each cannot bear follows from what it is asked about alone, so a run is the same each time, and
several planners come to it by themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from yunikorn_actors.policies.inputs import Change, Ended, Hold, Job
from yunikorn_actors.policies.places import ApplicationSeen, Key, NodeSeen, Pool
from yunikorn_actors.values.resource import Resource

WHERE: Final = f"{__name__}:POLICIES"
WHERE_FOLDS: Final = f"{__name__}:FOLDS"
_LARGE: Final = 2
"""Of a CPU: more of it in one job, or on a node, is too much for them."""


class RaisesForOrder:
    """Cannot bear an application that has come second."""

    def application_key(self, app: ApplicationSeen) -> Key:
        if app.id.endswith("2"):
            raise RuntimeError("no key for this one")
        return app.id


class MixesKeys:
    """Has keys of which one cannot be compared with another."""

    def application_key(self, app: ApplicationSeen) -> Any:  # noqa: ANN401 - that is wrong with it
        return app.id if app.id.endswith("3") else 1


class RaisesAtGate:
    """Holds nobody, and cannot bear large jobs."""

    def may_start(self, job: Job, _: Pool) -> Hold | None:
        if job.size.get("vcore", 0) > _LARGE * 1000:
            raise ZeroDivisionError("too large")
        return None


class NoNumber:
    """Gives a node of which much is free no number."""

    def score(self, node: NodeSeen, _: Resource) -> float:
        return float("nan") if node.free.get("vcore", 0) > _LARGE * 1000 else 1.0


@dataclass
class RaisesAtFact:
    """Counts what has ended in its queues, and cannot bear the second."""

    reads = ("state",)
    ended: dict[str, int] = field(default_factory=dict)

    def application_key(self, app: ApplicationSeen) -> Key:
        return self.ended.get(app.user, 0)

    def observe(self, fact: Change, _: int) -> None:
        if isinstance(fact, Ended):
            self.ended[fact.job.user] = self.ended.get(fact.job.user, 0) + 1
            if sum(self.ended.values()) > 1:
                raise RuntimeError("one end too many")


POLICIES: Final[Mapping[str, Any]] = {
    "fails-at-order": RaisesForOrder,
    "fails-at-comparing": MixesKeys,
    "fails-at-gate": RaisesAtGate,
    "fails-at-score": NoNumber,
}
FOLDS: Final[Mapping[str, Any]] = {"fails-at-fact": RaisesAtFact}
NAMES: Final = frozenset([*POLICIES, *FOLDS])
