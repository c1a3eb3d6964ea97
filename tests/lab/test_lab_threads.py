"""`yunikorn-actors lab threads`: what fails on real threads is turned into a tape."""

import json
import re
import sys
import threading
from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.lab.case import Case, read_case
from yunikorn_actors.lab.explore import Budget, Options
from yunikorn_actors.lab.run_schedule import explore, play
from yunikorn_actors.lab.schedules import threads
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.recorded_schedule import Following
from yunikorn_actors.lab.schedules.threads import ThreadSearch, record
from yunikorn_actors.machines.context.context import Context
from yunikorn_actors.messages.base import CONTEXT, is_callback, is_outside

PATIENCE_S = 600
RUNS_MAX = 200
MACHINES_FAIL = True
"""Here they are meant to."""


@pytest.fixture
def case(small: str) -> Case:
    return read_case(Path(small))


def search(case: Case, seed: int = 1, seconds: float = PATIENCE_S) -> threads.ThreadReport:
    return ThreadSearch(case, Options(seed=seed, budget=Budget(seconds=seconds))).run()


def orders(case: Case, run: int) -> dict[str, list[str]]:
    """Return what each mailbox got, of a run on threads and of the simulator that followed it."""
    recording = record(case, Draw(1, run))
    assert recording.violation is None
    following = Following(recording.deliveries)
    outcome = explore(case, following, default_checkers())
    assert (True, "") == (outcome.ok, following.lost)
    got: dict[str, list[str]] = {}
    for number, delivery in enumerate((*recording.deliveries, *outcome.deliveries)):
        mailbox = delivery.mailbox
        if not is_outside(mailbox) or is_callback(mailbox):
            side = "threads" if number < len(recording.deliveries) else "simulator"
            got.setdefault(f"{side} {mailbox}", []).append(type(delivery.message).__name__)
    return got


def test_the_simulator_does_what_the_threads_did(case: Case) -> None:
    """Each mailbox gets the same in the same order; the simulator then goes on by itself.

    Threads may do the same several times, so they go on until they have done something else.
    """
    different: set[str] = set()
    for run in range(RUNS_MAX):
        if run >= 4 and len(different) > 1:
            break
        got = orders(case, run)
        for name, told in got.items():
            if name.startswith("threads "):
                followed = got[f"simulator {name.removeprefix('threads ')}"]
                assert told == followed[: len(told)]
        different.add(str(got[f"threads {CONTEXT}"]))
    assert len(different) > 1, "vacuous: the threads did the same each time"


def test_the_interval_of_the_interpreter_is_as_before(case: Case) -> None:
    before = sys.getswitchinterval()
    record(case, Draw(1))
    assert before == sys.getswitchinterval()


@pytest.mark.usefixtures("nodes_unchecked")
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(it, marks=pytest.mark.slow) for it in range(2, 11))]
)
def test_a_race_on_threads_becomes_a_tape(case: Case, seed: int) -> None:
    assert play(case, case.tape(), default_checkers()).ok, "vacuous: it fails in any order"
    finding = search(case, seed).finding
    assert finding is not None
    assert finding.tape is not None, finding.why
    for _ in range(3):
        violation = play(case, finding.tape, default_checkers()).violation
        assert violation == finding.violation


def test_what_the_threads_alone_do_has_no_tape(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says so, and why: this defect asks on which thread it is."""
    handle = Context.handle

    def picky(self: Context, message: object, now_ns: int) -> object:
        if threading.current_thread() is not threading.main_thread():
            raise KeyError("shared")
        return handle(self, message, now_ns)  # type: ignore[arg-type]

    monkeypatch.setattr(Context, "handle", picky)
    finding = search(case).finding
    assert finding is not None
    assert (None, threads.THREADS_ALONE) == (finding.tape, finding.why)
    assert "KeyError" in finding.violation.text


def lab(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(("lab", "threads", *arguments))
    return status, capsys.readouterr().out


def test_the_command(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = lab(capsys, small, "--seconds", "1", "--json")
    report = json.loads(told)
    assert (0, True, 0) == (status, report["ok"], report["lost"])
    assert report["runs"] > 0
    status, told = lab(capsys, small, "--seconds", "1")
    assert 0 == status
    assert re.fullmatch(
        r"ok    a node leaves while work comes \(\d+ runs, \d+ messages, \d+\.\d s\)\n", told
    )


@pytest.mark.usefixtures("nodes_unchecked")
@pytest.mark.slow
def test_the_command_prints_a_tape(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = lab(capsys, small, "--seconds", "600")
    assert 1 == status
    assert told.startswith("FAIL  a node leaves while work comes (")
    assert "on threads\n      by the tape of " in told
