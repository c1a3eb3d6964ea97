"""A mistyped word of a tape is refused at its place, or it is a name that just does not occur."""

import re
from pathlib import Path
from string import ascii_letters

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab.case import PACKAGE, Case, parse_case, read_case
from yunikorn_actors.lab.explore import Options, Runs
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import events_in, play
from yunikorn_actors.lab.schedules.faults import FAULTS
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.tapes.tape import TapeError, parse_tape
from yunikorn_actors.lab.tapes.tape_player import TapePlayer

TEXT = """\
name: one job
rm: {confirm: manual}
steps:
  - create_node: {id: n1, capacity: {vcore: 4000}}
  - add_app: {id: app-1, queue: root.default}
  - ask: {app: app-1, key: k, resource: {vcore: 1000}}
  - remove_node: n1
"""
NEW = "RMNewAllocations(new k) from context to rm_proxy"
CALL = "CallUpdateAllocation(new k) from rm_proxy to rm-1"
ENTRIES = (
    f"hold {NEW} until after step 4",
    f"hold {CALL} until after the end",
    "hold AllocationsRequested(ask k) from gateway to rm_proxy until after step 4 waits",
    f"do step 4 after {NEW}",
    "repeat step 3 after step 3",
    "fire ConfirmationDue(default) to context after step 4",
    "fire PlanningDue(step 3) to scheduler after due PlanningDue(step 3) to scheduler",
    "confirm k twice",
    "confirm k never",
    "confirm k as STOPPED_BY_RM",
    "confirm k as TIMEOUT after step 4",
    "confirm k after step 4",
    "flap node n1 after the start",
    "drain node n1 after flap node n1 waits",
    "open node n1 after step 3",
    "shrink node n1 after step 3",
    "bounce application app-1 after step 3",
    "reload queues of rm-1 after step 3",
    "register rm-1 again after step 3",
    "lose manager rm-1 after step 3",
    "freeze scheduler after step 3",
    "freeze context for 3 after step 3",
    "thaw rm_proxy after step 3",
    f"join {NEW}",
    f"fail at {NEW}",
    f"fail after {NEW}",
    "propose to place k of app-1 on n1 after step 3",
    "propose to reserve n1 for k of app-1 after step 3",
    "propose to admit app-1 after step 3",
    "propose to swap k of app-1 with k on n1 after step 3",
    "propose to preempt k of app-1 for k of app-1 after step 3",
)
_FREE = re.compile(r"k|n1|app-1|rm-1|gateway|\d+")
"""Names from outside. What a callback sends may come from any name, where mostly the gateway is."""


@pytest.fixture(scope="module")
def case() -> Case:
    return parse_case(TEXT, "one.yaml")


def mistyped(draw: Draw, word: str) -> str:
    """Return the word with one or two letters more, less, changed or swapped."""
    typed = word
    while typed == word:
        for _ in range(1 + draw.number(2)):
            at = draw.number(len(typed) + 1)
            before, one, other, rest = (
                typed[:at],
                typed[at : at + 1],
                typed[at + 1 : at + 2],
                typed[at + 2 :],
            )
            typed = before + draw.one_of(
                (
                    draw.one_of(ascii_letters) + one + other + rest,
                    other + rest,
                    draw.one_of(ascii_letters) + other + rest,
                    other + one + rest,
                )
            )
    return typed


def is_free(entry: str, at: int) -> bool:
    """Whether a name from outside stands there, or in what a message is about, or a mailbox."""
    is_about = entry.count("(", 0, at) > entry.count(")", 0, at)
    is_mailbox = entry.startswith(("freeze ", "thaw ")) and at == entry.index(" ") + 1
    return is_about or is_mailbox


def complaint(case: Case, entry: str) -> str:
    """Play a tape of this entry; return why it is refused, or what of it was not played."""
    try:
        outcome = play(case, parse_tape(f"{case.tape().header()}\n{entry}", "it"), oracles())
    except TapeError as error:
        return str(error)
    assert outcome.ok, (entry, outcome.violation)
    return "; ".join(outcome.not_played)


@pytest.mark.parametrize("typos", [2, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_mistyped_word_is_refused_or_does_not_occur(case: Case, entry: str, typos: int) -> None:
    draw = Draw(1, ENTRIES.index(entry))
    assert not complaint(case, entry).startswith("it:")
    for found in re.finditer(r"[\w-]+", entry):
        for _ in range(typos):
            word = mistyped(draw, found[0])
            typed = entry[: found.start()] + word + entry[found.end() :]
            said = complaint(case, typed)
            if _FREE.fullmatch(found[0]) or is_free(entry, found.start()):
                assert said or word.isdecimal(), typed
            else:
                assert re.match(r"it:2: |tape of one\.yaml: there is no step ", said), (typed, said)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("hodl X(y) from a to b until after step 1", "unknown word 'hodl': write one of hold, do,"),
        ("confirm k as STOPED_BY_RM", "'STOPED_BY_RM' is no kind of release; did you mean STOPPED_BY_RM"),
        ("confirm k", "does not say how: twice, never, as TYPE, or after EVENT"),
        ("confirm k twice after step 3", "'twice' and 'after' exclude each other"),
        ("confirm k twise", "('twise'; did you mean twice"),
        ("do step 4 after nonsense waits", "is no event"),
        ("do step 4 after the ned", "('ned'; did you mean"),
        ("freeze context for x after step 3", "is not understood: write freeze MAILBOX after EVENT"),
        (f"join {NEW.replace('RMNew', 'RMNwe')}", "is no type of message; did you mean RMNewAllocations"),
        (f"join {NEW.replace('rm_proxy', 'rm_prxy')}", "'rm_prxy' is no machine; did you mean rm_proxy"),
        (f"join {NEW.replace('context', 'contxt')}", "'contxt' is no machine; did you mean context"),
        (f"join {CALL.replace('rm_proxy', 'rm_prxy')}", "'rm_prxy' is no machine"),
        ("fire PlaningDue(x) to scheduler after step 3", "is no timer; did you mean PlanningDue"),
        ("fire RunCycle(x) to scheduler after step 3", "'RunCycle' is no timer"),
        ("do step 4 after due PlanningDue(x) to schedular", "'schedular' is no machine; did you mean scheduler"),
        ("flap nod n1 after step 3", "('nod'; did you mean node"),
    ],
)  # fmt: skip
def test_the_nearest_word_is_named(
    case: Case, entry: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tape = f"{case.tape().header()}; {entry}"
    with pytest.raises(TapeError, match=re.escape(said)) as caught:
        parse_tape(tape, "it")
    assert str(caught.value).startswith("it:1: ")
    for action in ("replay", "explain", "shrink"):
        assert main(["lab", action, tape]) == 2
        assert said in capsys.readouterr().err


class _Hears(TapePlayer):
    """Wants to hear the names of all messages."""

    def __init__(self, case: Case) -> None:
        super().__init__(case.tape())
        self.watched = None


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "lab" / "cases").glob("*.yaml")), ids=lambda it: it.stem
)
def test_every_name_of_a_run_is_understood(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = read_case(path)
    monkeypatch.setattr("yunikorn_actors.lab.run_schedule.TapePlayer", lambda _tape: _Hears(case))
    events = events_in(case, case.tape())
    assert len(events) > 20
    for event in dict.fromkeys(events):
        parse_tape(f"{case.tape().header()}; freeze context after {event}")


@pytest.mark.parametrize("number", range(1, 20, 2))
def test_every_tape_that_is_written_is_understood(number: int) -> None:
    case = read_case(PACKAGE / "lab" / "cases" / "recovery.yaml")
    tape = Runs(case=case, options=Options(faults=tuple(FAULTS)), length=80).tape(number)
    assert tape.entries
    assert parse_tape(tape.line()) == tape
