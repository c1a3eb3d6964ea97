"""A fact is complete: what is missing of one is listed, with the place where it is written.

What a fact changes, says and whether operators look for it stands with its class. What the
planner and the event publisher make of it stands in their rooms. So a fact without a row there is
one that was forgotten, unless it is named here with the reason.
"""

from typing import Any, get_args

import pytest

from yunikorn_actors.machines.events.publisher import COUNTS
from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.planning.apply_fact import CHANGES
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.facts.fact import NAMES
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.trace.view.run_data import marks_in

NOT_PLANNED_FOR = {
    "the planner has decided it, and knows it as its own proposal": {f.PreemptionDecided},
    "the marks of victims stand in the replica, and the fact above has them all": {f.VictimMarked},
    "the sum has followed from the nodes": {f.ClusterResized},
    "the planner asks the replica before each plan": {
        f.SchedulingHeld, f.LongWorkStarted, f.LongWorkEnded,
    },
    "a queue that drains takes no new applications, and those that it has go on": {
        f.QueueStateChanged
    },
    "what is not due any more is not looked for": {f.QuotaPreemptionCleared},
}  # fmt: skip
"""Facts that can change a decision, and have no row in `planning/apply_fact.py` all the same."""

WITHOUT_EVENT = {
    "YuniKorn has no event of it: it is seen when the allocation ends": {f.ReleaseRequested},
    "what operators see of a gang is its placeholders and its swaps": {
        f.GangAdmitted, f.AskParked, f.AskUnparked,
    },
    "its attributes stand in the description of the node": {f.NodeAttributesReplaced},
    "the preemption that follows has an event": {f.QuotaPreemptionArmed, f.QuotaPreemptionCleared},
    "the change of each queue has an event": {f.PartitionConfigured},
    "bookkeeping of Context": {
        f.ApplicationForgotten, f.TimerArmed, f.TimerCancelled, f.LongWorkStarted, f.LongWorkEnded,
    },
}  # fmt: skip
"""Facts that operators do not see among the events."""


FACTS = get_args(f.Fact)
WITH_EVENT = frozenset(kind for kind in FACTS if COUNTS.get(kind, 1))


def excused(table: dict[str, set[Any]], kind: type) -> bool:
    return any(kind in facts for facts in table.values())


def lacking(kind: type[f.Base]) -> list[str]:
    """List what is still to be written for a fact, and where."""
    own, fields = vars(kind), kind.__struct_fields__
    its_module = f"{kind.__module__.replace('.', '/')}.py"
    has = {
        f"{its_module}: `change`": "change" in own,
        f"{its_module}: `in_words`": "in_words" in own or bool(NAMES.intersection(fields)),
        "planning/apply_fact.py: a row in CHANGES": (
            kind.is_record or kind in CHANGES or excused(NOT_PLANNED_FOR, kind)
        ),
        "machines/events: a row in FIXED or CHOSEN": (
            kind in WITH_EVENT or excused(WITHOUT_EVENT, kind)
        ),
    }
    return [what for what, is_there in has.items() if not is_there]


@pytest.mark.parametrize("kind", FACTS, ids=lambda kind: kind.__name__)
def test_nothing_is_missing_of_a_fact(kind: type[f.Base]) -> None:
    assert [] == lacking(kind), f"docs/how-to/add-a-fact.md says how {kind.__name__} gets them"


def test_what_is_missing_is_listed_with_its_place() -> None:
    class Forgotten(f.Base, frozen=True, kw_only=True):
        at_ns: int

    places = [what.rpartition(": ")[2] for what in lacking(Forgotten)]
    assert [
        "`change`", "`in_words`", "a row in CHANGES", "a row in FIXED or CHOSEN",
    ] == places  # fmt: skip


def test_no_excuse_is_out_of_date() -> None:
    """What has the row, or is a mere record, needs no reason for having none."""

    def named(table: dict[str, set[Any]]) -> set[Any]:
        return set().union(*table.values())

    assert set() == named(NOT_PLANNED_FOR) & CHANGES.keys()
    assert set() == {kind for kind in named(NOT_PLANNED_FOR) if kind.is_record}
    assert set() == named(WITHOUT_EVENT) & WITH_EVENT


# -- incidents


def test_incidents_are_marked_in_the_picture_of_a_run() -> None:
    """Timeouts and losses by their facts; what was refused is marked where it is refused."""
    facts = (
        f.SchedulingHeld(held=True, at_ns=1),
        f.SchedulingHeld(held=False, at_ns=2),
        f.MachineReplaced(machine="Scheduler", failure="KeyError: 'x'", at_ns=3),
        f.ConfigurationRefused(reason="no root", at_ns=4),
        f.AskRemoved(
            application_id="a", key="k", resource={}, type=TerminationType.TIMEOUT, at_ns=5
        ),
        f.AskRemoved(
            application_id="a", key="k", resource={}, type=TerminationType.STOPPED_BY_RM, at_ns=6
        ),
    )
    message = FactsAppended(partition="p", epoch=1, rm_id="rm-1", first_revision=1, facts=facts)
    cause = Cause("Context", 1)
    delivery = Delivery("EventPublisher", 1, "Context", cause, "rm-1#1", 7, message)
    assert [
        ("lost", "SchedulingHeld suspended"),
        ("lost", "MachineReplaced Scheduler: KeyError: 'x'"),
        ("timeout", "AskRemoved a k TIMEOUT"),
    ] == [tuple(mark) for mark in marks_in(delivery, facts)]


def test_what_can_be_an_incident_has_a_time() -> None:
    incidents = [kind for kind in FACTS if "incidents" in vars(kind)]
    assert len(incidents) > 10
    assert [] == [kind for kind in incidents if "at_ns" not in kind.__struct_fields__]
