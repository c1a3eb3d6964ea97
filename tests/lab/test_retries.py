"""Programs whose calls depend on what they have heard, or that do not come to an end."""

import json
import re
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from runpy import run_path

import pytest
from msgspec.structs import replace

from yunikorn_actors import ResourceManagerCallback, si
from yunikorn_actors.lab import hunt, watchdog
from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.explanation import Explainer, explanation_lines
from yunikorn_actors.lab.explore import Options, Runs
from yunikorn_actors.lab.hunt import FAIR_FAULTS, Lab, RaceFound, Wishes
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.tapes.old_tapes import is_numbered, with_names
from yunikorn_actors.lab.tapes.tape import TAPE_FORMAT, parse_tape
from yunikorn_actors.lab.user_program import Trial
from yunikorn_actors.machines.settings import Settings

FORMATS = Path(__file__).parents[1] / "formats"
PROGRAM = run_path(str(FORMATS / "program.py"))
Jobs = PROGRAM["Jobs"]
Workload = Callable[[Trial], None]


@pytest.fixture(autouse=True)
def _explained_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunt, "Explainer", partial(Explainer, suffixes=2))


def case_of(workload: Workload) -> Case:
    return Lab("t")._rehearsed(workload, Settings(), "proposing")


def retries(trial: Trial) -> None:
    """Ask again under another key what does not run yet; the first one is then forgotten."""
    jobs = Jobs(trial.core)
    known: dict[str, str] = {}
    trial.compare(lambda: {it.uuid: it.node_id for key, it in jobs.running.items() if key in known})
    jobs.start()
    for number in range(4):
        key = f"job.{number}"
        known.clear()
        known[key] = key
        jobs.ask(key)
        if key in jobs.running:
            break
        trial.advance(0.5 * 2**number)


def found(workload: Workload, name: str = "t", wishes: Wishes | None = None) -> str:
    with pytest.raises(RaceFound) as caught:
        Lab(name, wishes).explore(workload, faults=())
    return str(caught.value)


def test_a_retry_that_its_rehearsal_did_not_need_is_found_small_and_repeated() -> None:
    rehearsed = {step.label for step in case_of(retries).steps}
    assert "ask job.1" not in rehearsed, "vacuous: it always asks again"
    told = found(retries)
    assert "job.0 runs on n1 for the core alone" in told
    assert "the tape, 1 deviation (" in told
    tape = told.partition("--lab-tape '")[2].rstrip("'")
    again = found(retries, wishes=Wishes(tape=tape))
    assert told.partition("\n\nthe race")[0] == again
    assert "receives from the program: ask job.0" in again


@pytest.mark.parametrize("strategy", ["uniform", "pct", "pos"])
@pytest.mark.parametrize("workload", [retries, PROGRAM["jobs"]])
def test_what_was_explored_is_written_as_it_was(workload: Workload, strategy: str) -> None:
    case = case_of(workload)
    runs = Runs(case=case, options=Options(strategy=strategy, faults=FAIR_FAULTS, seed=3))
    runs = replace(runs, length=runs.play(0).length)
    others = 0
    rehearsed = {step.label for step in case.steps}
    for number in range(1, 5):
        tape = runs.tape(number)
        outcome = runs._outcome(number)
        assert outcome.digest() == play(case, parse_tape(tape.line()), oracles()).digest()
        done = {it.what.removeprefix("step ") for it in tape.entries if it.verb == "do"}
        others += bool(done - rehearsed)
    assert others, "vacuous: no run makes other calls than the rehearsal"


@pytest.mark.parametrize(
    ("number", "kept"),
    [
        (number, kept)
        for number in range(1, TAPE_FORMAT + 1)
        for kept in json.loads((FORMATS / f"tapes-{number}.json").read_text())
    ],
)
def test_a_kept_tape_is_played_as_it_was(number: int, kept: dict[str, str]) -> None:
    case = case_of(PROGRAM["jobs"])
    tape = parse_tape(kept["tape"])
    assert is_numbered(tape) == (number == 1)
    if number == 1:
        tape = with_names(case, tape)
        assert not is_numbered(tape)
    outcome = play(case, parse_tape(tape.line()), oracles())
    assert outcome.violation is not None
    assert kept["order"] == outcome.order().hex()
    assert kept["violation"] == outcome.violation.text.partition(" in jobs (")[0]


# -- programs that do not come to an end


def ends(act: Callable[[Trial], None]) -> Workload:
    def workload(trial: Trial) -> None:
        jobs = Jobs(trial.core)
        jobs.start()
        jobs.ask("a")
        if "a" not in jobs.running:
            act(trial)

    return workload


def loops(_: Trial) -> None:
    while True:
        try:
            while True:
                pass
        except Exception:  # noqa: BLE001, S112 - a program may be like that
            continue


def waits_for_itself(_: Trial) -> None:
    lock = threading.Lock()
    with lock, lock:
        pass


@pytest.mark.parametrize("act", [loops, pytest.param(waits_for_itself, marks=pytest.mark.slow)])
def test_a_program_that_is_stuck_is_ended_with_its_place(
    act: Callable[[Trial], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "STUCK_S", 0.4)
    told = found(ends(act))
    first = act.__code__.co_firstlineno
    line = re.match(
        rf"\S*test_retries\.py:(\d+): {act.__name__} does not go on, and makes no call\n", told
    )
    assert line is not None, told
    assert first < int(line[1]) <= first + 6
    assert "the tape, 1 deviation (" in told
    assert "\nthe race, at " in told or "the nearest passing run" in told


def asks_for_ever(trial: Trial) -> None:
    trial.core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id="me"), ResourceManagerCallback()
    )
    while True:
        ask = si.AllocationAsk(application_id="app", allocation_key="k")
        trial.core.update_allocation(si.AllocationRequest(rm_id="me", asks=(ask,)))


def test_a_program_that_makes_calls_for_ever_from_the_beginning_is_told_as_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Real time ends it at another message each time: it can be repeated all the same."""
    monkeypatch.setattr(watchdog, "STUCK_S", 0.4)
    monkeypatch.setattr(hunt, "Case", partial(Case, events_max=200))
    told = found(asks_for_ever)
    assert re.match(r"the program is not over after \d+ events|\S*: asks_for_ever does not", told)


@pytest.mark.slow
def test_another_thread_explores_and_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Main, another, main: what another thread does leaves the signals of the main one alone."""
    monkeypatch.setattr(watchdog, "STUCK_S", 1.0)
    usual = signal.getsignal(signal.SIGINT)
    told: list[str] = []
    assert "loops does not go on, and makes no call" in found(ends(loops))
    thread = threading.Thread(target=lambda: told.append(found(retries)), daemon=True)
    thread.start()
    thread.join()
    assert "loops does not go on, and makes no call" in found(ends(loops))
    assert signal.getsignal(signal.SIGINT) is usual
    assert "job.0 runs on n1 for the core alone" in told[0]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "SystemExit(3) in act"),
        (KeyboardInterrupt(), "KeyboardInterrupt() in act"),
        (GeneratorExit(), "GeneratorExit() in act"),
        (pytest.fail.Exception("no a"), "no a in act"),
    ],
)
def test_what_would_end_the_process_is_a_finding(error: BaseException, said: str) -> None:
    def act(_: Trial) -> None:
        raise error

    told = found(ends(act))
    assert told.startswith(said)
    assert "the tape, 1 deviation (" in told


def test_a_test_that_is_skipped_is_no_finding() -> None:
    with pytest.raises(pytest.skip.Exception):
        Lab("t").explore(ends(lambda _: pytest.skip("not here")))


@pytest.mark.slow
def test_ctrl_c_is_no_finding() -> None:
    with pytest.raises(KeyboardInterrupt):
        Lab("t").explore(ends(lambda _: interrupted()))


def interrupted() -> None:
    signal.raise_signal(signal.SIGINT)


def test_calls_without_end_are_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunt, "EVENTS_MIN", 500)
    monkeypatch.setattr(hunt, "LONGER_MAX", 10)

    def act(trial: Trial) -> None:
        while True:
            trial.advance(1)

    told = found(ends(act))
    assert "the program is not over after " in told
    assert " events: the last step is advance 1s #" in told


def test_time_does_not_pass_in_a_callback() -> None:
    def workload(trial: Trial) -> None:
        jobs = Jobs(trial.core)
        jobs.update_allocation = lambda _: trial.advance(1)
        jobs.start()
        jobs.ask("a")

    assert "WouldBlock" in found(workload) or "time passes between" in found(workload)


# -- the culprit


def withdraws(trial: Trial) -> None:
    """End a job right away: an announcement that is late starts it all the same."""
    jobs = Jobs(trial.core)
    trial.compare(lambda: {it.uuid: it.node_id for it in jobs.running.values()})
    jobs.start()
    jobs.ask("a")
    jobs.end("a")


@pytest.mark.parametrize(
    ("held", "is_named"),
    [
        ("CallUpdateApplication(app Accepted) from rm_proxy to jobs", True),
        ("CallUpdateAllocation(new a) from rm_proxy to jobs", False),
    ],
)
def test_what_is_held_behind_another_message_is_named(held: str, is_named: bool) -> None:
    """The update of the application stands at the head of the channel; the allocation matters."""
    case = case_of(withdraws)
    entry = f"hold {held} until after the end"
    tape = parse_tape(f"{case.tape().header()}; {entry}")
    explained = Explainer(case, tape, suffixes=2).explain()
    assert explained.outcome.violation is not None, "vacuous: nothing is wrong"
    announced = "CallUpdateAllocation(new a) from rm_proxy to jobs"
    assert [announced] * is_named == [it.message for it in explained.culprits]
    assert explained.race is not None
    assert (explained.race.first, explained.race.second) == ("step cancel a", announced)
    lines = "\n".join(explanation_lines(explained))
    assert is_named == (f"the culprit, behind {held}:\n  {announced}\n" in lines)
    assert f"the nearest passing run is without: {entry}" in lines
    assert explained == Explainer(case, tape, suffixes=2).explain()
