"""A tape is text: it is printed and read back, and a bad one says what is wrong with it and where."""

from pathlib import Path

import pytest
import ranges

from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.harness import Schedule
from yunikorn_actors.lab.mutants.tries import Held, cases
from yunikorn_actors.lab.run_schedule import explore, play, write
from yunikorn_actors.lab.schedules.faults import FAULTS, Faulty
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.strategies import Uniform
from yunikorn_actors.lab.tapes.tape import Tape, TapeError, parse_tape
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

SCENARIOS = Path(__file__).parents[1] / "scenarios"
HEADER = "tape 2 of a.yaml sha256 0123456789ab on proposing"
CONFIRM = "RMUpdateAllocation(confirm ph-a) from rm_proxy to context"
ENTRIES = (
    f"hold {CONFIRM} until after step 9",
    f"hold {CONFIRM} #2 until after the end",
    f"hold {CONFIRM} until after step 8 waits",
    f"hold {CONFIRM} until after due EventPushDue(step 0) to event_publisher #2",
    "do step 5.2 after the start",
    "do step cancel job-1 #2 after step ask job-1",
    "do step return after step pass 2s #3",
    "hold RunCycle(step ask a) from scheduler to scheduler until after step ask a waits",
    f"repeat step 7 after {CONFIRM}",
    "fire ApplicationTimerDue(gang placeholder) to context after step 3",
    "confirm ph-a twice",
    "confirm ph-a #2 as STOPPED_BY_RM",
    "confirm ph-a after step 4",
    "flap node n1 after step 4",
    "bounce application gang after step 4",
    "reload queues of rm-1 after step 4",
    "register rm-1 again after step 4",
    "freeze scheduler after step 4",
    "thaw scheduler after step 5",
    "fail at RunCycle(step 4) from scheduler to scheduler",
    "propose to place a-0 of app on n1 after step 4",
    "propose to reserve n1 for a-0 of app after step 4",
    "propose to admit gang after step 4",
    "propose to swap m-0 of gang with ph-0 on n1 after step 4",
    "propose to preempt a-0 of app for b-0 of other after step 4",
)


def test_a_tape_is_printed_and_read_back() -> None:
    text = "\n".join((f"{HEADER}, steps 1-4 6 7.2 8", *ENTRIES))
    tape = parse_tape(text)
    assert text == str(tape)
    assert ("1", "2", "3", "4", "6", "7.2", "8") == tape.steps
    assert tape == parse_tape(tape.line())
    assert ENTRIES == tuple(map(str, tape.entries))


def test_remarks_and_explanations_are_for_the_reader() -> None:
    told = f"# why\n{HEADER}\n\n  do step 5 (remove_node n1) after step 4 (ask a gang)\n# more\n"
    assert f"{HEADER}\ndo step 5 after step 4" == str(parse_tape(told))


def test_any_file_name_survives() -> None:
    tape = Tape(scenario="dir; of/a file;\n.yaml", digest="0123456789ab")
    assert tape == parse_tape(tape.line())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the tape is empty"),
        ("hold it", ":1: 'hold it' is no header: write 'tape 2 of FILE"),
        (HEADER.replace("tape 2", "tape 3"), ":1: the tape is of format 3, this version plays"),
        (
            HEADER.replace("proposing", "flat"),
            ":1: unknown topology 'flat': choose one of proposing, fused",
        ),
        (f"{HEADER}, steps 1-x", ":1: '1-x' is no step"),
        (f"{HEADER}, steps 5-2", ":1: '5-2' is no step"),
        (f"{HEADER}\n\nhodl {CONFIRM}", ":3: unknown word 'hodl': write one of hold, do,"),
        (f"{HEADER}\nhold {CONFIRM}", ":2: 'hold RMUpdate"),
        (f"{HEADER}\nhold {CONFIRM} until after breakfast", ":2: 'breakfast' is no event"),
        (f"{HEADER}\ndo step five after step 4", "write do step STEP after EVENT"),
        (f"{HEADER}; freeze after step 4", "write freeze MAILBOX after EVENT"),
        (f"{HEADER}; propose to place a-0 after step 4", "write propose to place KEY of APP on"),
        ("x" * 1_000_001, "more than 1000000 characters"),
    ],
)
def test_a_bad_tape_names_the_place_and_the_remedy(text: str, said: str) -> None:
    with pytest.raises(TapeError) as caught:
        parse_tape(text, "my.tape")
    assert str(caught.value).startswith("my.tape")
    assert said in str(caught.value)


def test_several_schedulers_stand_on_the_tape() -> None:
    text = f"{HEADER} with 2 schedulers, steps 1-4"
    tape = parse_tape(text)
    assert (2, ("1", "2", "3", "4")) == (tape.schedulers, tape.steps)
    assert text == str(tape)
    with pytest.raises(TapeError, match=r":1: fused has no room for several schedulers"):
        parse_tape(text.replace("proposing", "fused"))


def test_a_tape_of_another_case_is_refused() -> None:
    case = read_case(SCENARIOS / "basic" / "006-release-and-completion.yaml")
    with pytest.raises(TapeError, match="there is no step 99 to play"):
        play(case, parse_tape(f"{HEADER}; do step 99 after the start"))


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("folder", ["gang-disturbances", "recovery"])
def test_what_a_strategy_chose_is_a_tape_that_gives_the_same_run(
    folder: str, topology: TopologyName
) -> None:
    disturbed = 0
    for file in sorted((SCENARIOS / folder).glob("*.yaml"))[::16]:
        case = read_case(file, topology)
        undisturbed = play(case, case.tape())
        assert undisturbed.ok, undisturbed.violation
        for run in range(4):
            outcome = explore(case, Uniform(Draw(1, run)))
            tape = write(case, Uniform(Draw(1, run)))
            assert tape == parse_tape(str(case.explained(tape)))
            assert outcome.digest() == play(case, tape).digest()
            disturbed += outcome.order() != undisturbed.order()
    assert disturbed > 3, "vacuous: hardly anything was disturbed"


@pytest.mark.parametrize("seed", ranges.first([0, 9], 1))
def test_what_waits_for_a_step_or_for_time_is_on_the_tape(seed: int) -> None:
    """Messages that a schedule keeps back while the case and the time go on."""

    def held() -> Schedule:
        draw = Draw(7, seed)
        schedule = Held(draw, 60, 3)
        return Faulty(schedule, draw, tuple(FAULTS), 60) if seed else schedule

    for case in cases():
        tape = write(case, held())
        assert explore(case, held()).digest() == play(case, tape).digest(), str(tape)
