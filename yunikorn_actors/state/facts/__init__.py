"""Facts: what is true from now on, in one partition.

Context records, numbers and applies them; every replica applies the same facts in the same order
and is equal. A fact can be understood by itself, so that a reader without a replica (the event
publisher, a person) needs no other; sums are worked out by `apply`. Times are given, never read.
What a fact says and what it changes stand together, in a module for each part of the state.
"""

from collections.abc import Collection, Iterable

from yunikorn_actors.state.facts.allocated import *
from yunikorn_actors.state.facts.applications import *
from yunikorn_actors.state.facts.asks import *
from yunikorn_actors.state.facts.fact import Base as Base
from yunikorn_actors.state.facts.fact import Incident as Incident
from yunikorn_actors.state.facts.fact import IncidentKind as IncidentKind
from yunikorn_actors.state.facts.gangs import *
from yunikorn_actors.state.facts.nodes import *
from yunikorn_actors.state.facts.preemption import *
from yunikorn_actors.state.facts.queues import *
from yunikorn_actors.state.partition import PartitionState

Fact = (
    AllocationFact
    | ApplicationFact
    | AskFact
    | GangFact
    | NodeFact
    | PreemptionFact
    | QueueFact
    | ReservationFact
)


def apply(state: PartitionState, fact: Fact) -> None:
    """Apply a fact to a state: nothing else changes it.

    It checks nothing: Context has checked before it recorded the fact, and every holder of a
    `PartitionState` (Context, the replica of a scheduler, a replay) goes through the same code.
    """
    state.revision += 1
    fact.change(state)
    # What policies keep is part of the state: it follows the same facts.
    folds = state.folds
    if folds is not None and (folds.by_queue or type(fact) in folds.makes):
        folds.observe(state, fact)


Run = AllocationsCommitted | AsksAdded
"""Stands for as many facts as it has parts, and counts as that many revisions."""
_RUNS = (AllocationsCommitted, AsksAdded)


def parts_of(fact: Fact) -> Iterable[Fact]:
    """Say a run one by one; any other fact is its only part."""
    return fact.parts() if isinstance(fact, _RUNS) else (fact,)


def revisions_of(facts: Collection[Fact]) -> int:
    """Count the revisions that these facts make: one for each part."""
    count = len(facts)
    for fact in facts:
        if isinstance(fact, _RUNS):
            count += fact.count - 1
    return count
