"""Questions that are asked while a drawn run goes on."""

from collections import Counter

import pytest

from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.run_schedule import explore
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.world_parts import Wanted
from yunikorn_actors.machines.context import partitions
from yunikorn_actors.messages.base import Delivery, is_reply
from yunikorn_actors.messages.queries import EventsFound, Explanation, RmDump, StateDump
from yunikorn_actors.planning.why import explain

ASKING = Wanted(only=("fault-query", "fault-fail", "bursts", "waits", "contests", "quotas"))


def _play(number: int) -> tuple[str, list[Delivery]]:
    run = drawn(1, number, ASKING)
    outcome = explore(run.case, run.schedule(), run.checkers())
    return "" if outcome.ok else str(outcome.violation), outcome.deliveries


def test_questions_are_answered_while_all_goes_on() -> None:
    answers: Counter[type] = Counter()
    for number in range(1, 8):
        fault, deliveries = _play(number)
        assert not fault
        answers.update(type(it.message) for it in deliveries if is_reply(it.mailbox))
    kinds = (Explanation, StateDump, EventsFound, RmDump)
    assert all(answers[kind] for kind in kinds), f"vacuous: {answers}"


LOST = Mutant(
    id="lost",
    source="",
    wrong="who asked why an ask waits has no answer when the scheduler fails meanwhile",
    where=partitions.Partitions._succeeded,
    old="*(_asked(partition, it.question) for it in asked),",
    new="",
)
UNTRUE = Mutant(
    id="untrue",
    source="",
    wrong="an ask with repeats is explained as if one of it waited",
    where=explain.why_of,
    old="repeats=record.remaining + record.parked",
    new="repeats=1",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "says"), [(LOST, "questions have no answer"), (UNTRUE, "repeats is 1, expected")]
)
def test_what_is_wrong_with_answers_is_found(mutant: Mutant, says: str) -> None:
    with mutant.applied():
        assert any(says in _play(number)[0] for number in range(1, 60))
