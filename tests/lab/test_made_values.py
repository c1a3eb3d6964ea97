"""Values that are drawn by types, calls that are made with them, messages that machines are sent again."""

from collections.abc import Iterator
from itertools import count

import pytest
from msgspec.structs import asdict

from yunikorn_actors.config.properties import PREEMPTION_POLICY, handed_down
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces import made_calls
from yunikorn_actors.lab.surfaces.late_messages import LateMessages
from yunikorn_actors.lab.surfaces.made_calls import _outcome
from yunikorn_actors.lab.surfaces.made_calls import made_calls as calls
from yunikorn_actors.lab.surfaces.made_values import CannotMake, Values, hints_of
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.values import quantity


def _ask(values: Values) -> AskSpec:
    made = values.make(AskSpec)
    assert isinstance(made, AskSpec)
    return made


def test_a_value_is_made_of_what_its_type_names() -> None:
    made = [_ask(Values(Draw(1, number))) for number in range(40)]
    assert {it.resource == {} for it in made} == {True, False}
    assert {it.placeholder for it in made} == {True, False}


def test_what_was_shown_is_there_again_and_changed_in_one_place() -> None:
    values = Values(Draw(1))
    known = _ask(values)
    values.show(known)
    changed = [it for it in (values.changed(known) for _ in range(60)) if it != known]
    places = {
        name for it in changed for name, part in asdict(it).items() if part != getattr(known, name)
    }
    assert len(places) > 5
    assert any(_ask(values) is known for _ in range(20))


def test_a_function_is_asked_about_what_it_looks_for() -> None:
    values, of = Values(Draw(1)), hints_of(handed_down)
    of = {name: of[name] for name in ("key", "value")}
    keys = [values.arguments(handed_down, of)[0][0] for _ in range(60)]
    assert PREEMPTION_POLICY in keys


def test_of_other_types_nothing_is_made() -> None:
    with pytest.raises(CannotMake):
        Values(Draw(1)).make(Iterator)


def test_a_call_that_goes_round_for_ever_is_given_up() -> None:
    def endless() -> None:
        while True:
            pass

    assert _outcome(endless, [], {}) == "_Endless"
    assert _outcome(count, [], {}) == [*range(20)], "more of it than anybody looks at"


class _Repeats:
    """A machine that sends what it is sent, and refuses each third message."""

    def __init__(self) -> None:
        self.handled = 0

    def handle(self, message: Message, _: int) -> list[Effect]:
        self.handled += 1
        if self.handled % 3 == 0:
            raise ValueError("odd")
        return [Send(to="rm:rm-1", message=message)]


def test_copies_of_machines_are_sent_again_what_was_sent() -> None:
    late, machine = LateMessages(Draw(1)), _Repeats()
    late.note(CONTEXT, RunCycle(partition="[rm-1]default", epoch=1))
    late.copy({CONTEXT: machine}, 0)  # type: ignore[dict-item] # no more of a machine is asked for
    said = [it for what, value in late.answers() if "late messages" in what for it in value]
    assert machine.handled == 0
    assert any("fails" in it for it in said)
    assert any("[rm-1]default" in it for it in said)


def test_a_slip_in_a_text_for_people_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    only = [it for it in made_calls._calls() if it.name == "values.quantity.compared"]
    assert len(only) == 1
    monkeypatch.setattr(made_calls, "_calls", lambda: only)

    def called() -> list[object]:
        values = Values(Draw(1))
        values.show({"memory": 3 << 30 | 1, "vcore": 1500})
        return [it for number in range(100) for it in calls(values, Draw(2, number))]

    before = called()
    with Mutant("slip", "", "", quantity.compared, "one != other", "True").applied():
        assert called() != before
    assert called() == before
