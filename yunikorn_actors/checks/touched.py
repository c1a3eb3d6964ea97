"""Which applications and nodes some facts are about: nothing else of a partition changes by them.

Facts that come by the thousand name them. Those that change queues, limits or the size of nodes are
rare and reach far: after them everything is looked at.
"""

from collections.abc import Iterable

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.facts.fact import Names

Touched = tuple[Names, Names]
"""Ids of applications and of nodes; both may be gone by now."""


def touched_by(facts: Iterable[f.Fact]) -> Touched | None:
    """Return what the facts are about; None if one of them reaches further."""
    apps: Names = {}
    nodes: Names = {}
    return (apps, nodes) if all(fact.touches(apps, nodes) for fact in facts) else None
