"""Requests that wait are handled together where a schedule says so, and the tape repeats it."""

import pytest

from yunikorn_actors.lab.case import Case, case_of
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import Outcome, explore, play, write
from yunikorn_actors.lab.schedules.faults import Faulty
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.recorded_schedule import Following
from yunikorn_actors.lab.schedules.strategies import Uniform
from yunikorn_actors.lab.schedules.threads import record
from yunikorn_actors.lab.tapes.tape import parse_tape
from yunikorn_actors.lab.tapes.tape_player import TapeWriter
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.scenario.document import parse_scenario

BURST = """
name: three asks at once
steps:
  - create_node: {id: n1, capacity: {vcore: 4}}
  - add_app: {id: app, queue: root.default}
  - ask: {app: app, key: a, resource: {vcore: 1}}
  - ask: {app: app, key: b, resource: {vcore: 1}}
  - ask: {app: app, key: c, resource: {vcore: 1}}
"""
TOGETHER = """
do step 4 after step 3
do step 5 after step 4
freeze context after step 3
thaw context after RMUpdateAllocation(ask c) from rm_proxy to context
join RMUpdateAllocation(ask b) from rm_proxy to context
join RMUpdateAllocation(ask c) from rm_proxy to context
"""


@pytest.fixture
def case() -> Case:
    return case_of(parse_scenario(BURST, "burst.yaml"), "0" * 12)


def joined(deliveries: list[Delivery]) -> list[str]:
    """Return what came to Context, with a mark where it was handled with what came before it."""
    return [
        f"{'+' if it.joined else ''}{type(it.message).__name__}"
        for it in deliveries
        if it.mailbox == CONTEXT
    ]


def test_left_alone_each_is_handled_by_itself(case: Case) -> None:
    assert not any(name.startswith("+") for name in joined(play(case, case.tape()).deliveries))


def test_a_tape_says_what_is_handled_together(case: Case) -> None:
    tape = parse_tape(f"{case.tape().header()}{TOGETHER}")
    outcome = play(case, tape, oracles())
    assert outcome.ok, outcome.violation
    asked = [it for it in joined(outcome.deliveries) if it.endswith("RMUpdateAllocation")]
    assert ["", "+", "+"] == [it.removesuffix("RMUpdateAllocation") for it in asked[:3]]


def faulty(seed: int) -> Faulty:
    draw = Draw(seed)
    return Faulty(Uniform(draw), draw, ("join",), 60)


def test_exploring_comes_to_such_turns_and_each_is_repeated(case: Case) -> None:
    sizes: set[int] = set()
    for seed in range(25):
        outcome = explore(case, faulty(seed), oracles())
        assert outcome.ok, outcome.violation
        tape = write(case, faulty(seed))
        assert tape == parse_tape(str(tape))
        assert outcome.digest() == play(case, tape).digest()
        sizes.add(sum(it.joined for it in outcome.deliveries))
    assert {0, 1} <= sizes


def test_what_was_handled_together_on_threads_is_so_in_the_simulator(case: Case) -> None:
    seen = 0
    for run in range(12):
        recording = record(case, Draw(1, run))
        following = Following(recording.deliveries)
        writer = TapeWriter(following)
        outcome = explore(case, writer, oracles())
        assert (True, "") == (outcome.ok, following.lost)
        on_threads = joined(recording.deliveries)
        assert on_threads == joined(outcome.deliveries)[: len(on_threads)]
        again: Outcome = play(case, case.tape(*writer.written()), oracles())
        assert outcome.digest() == again.digest()
        seen += any(name.startswith("+") for name in on_threads)
    assert seen > 0, "vacuous: on threads nothing was handled together"
