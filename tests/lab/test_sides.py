"""What stands beside the core is judged in every run: a defect there is found, and named."""

import pytest

from yunikorn_actors.domain import image
from yunikorn_actors.lab.draw import Draw
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.oracles import oracles
from yunikorn_actors.lab.play import explore
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.machines.context import lifecycle
from yunikorn_actors.runtime.journal import kept, truth

RUNS = range(1, 41)


def mutant(name: str, where: object, old: str, new: str) -> Mutant:
    return Mutant(name, "", "", where, old, new)  # type: ignore[arg-type] # any function


JOURNAL = (
    mutant(
        "withdrawals are not written",
        kept.Entries.of,
        "type(it.message) not in _UNKEPT",
        "type(it.message) not in _UNKEPT and not any(type(fact).__name__ == 'AskRemoved' "
        "for fact in getattr(it.message, 'facts', ()))",
    ),
    mutant(
        "a snapshot forgets reservations",
        image._node,
        "list(node.reservations.values())",
        "[]",
    ),
    mutant(
        "who is registered is not written",
        kept.Entries.of,
        "self._context.registered if changes else None",
        "None",
    ),
    mutant(
        "timers of applications are not armed again",
        lifecycle.set_timers_again,
        "app.timers.items()",
        "()",
    ),
    mutant(
        "the records of a snapshot are lost",
        truth.Truth.begin_with,
        "self.publisher.handle(told.events, 0)",
        "pass",
    ),
)


def found(numbers: range, kind: str) -> str:
    """Play drawn worlds up to the first in which this is wrong."""
    for number in numbers:
        run = drawn(1, number)
        violation = explore(run.case, run.schedule(), run.checkers()).violation
        if violation is not None and violation.text.startswith(kind):
            return violation.text
    return ""


@pytest.mark.parametrize("planted", JOURNAL, ids=lambda it: it.id)
def test_a_defect_of_the_journal_is_found(planted: Mutant) -> None:
    with planted.applied():
        assert found(RUNS, "journal"), f"not found: {planted.id}"


def test_an_oracle_changes_nothing_of_a_run() -> None:
    for number in range(1, 6):
        run = drawn(1, number)
        bare = explore(run.case, run.schedule()).digest()
        assert bare == explore(run.case, run.schedule(), oracles(Draw(1))).digest()
