"""Users' own code in the laboratory: their callback, their workload, the fixture of pytest."""

import asyncio
import os
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from yunikorn_actors import ResourceManagerCallback, si
from yunikorn_actors.lab import hunt
from yunikorn_actors.lab.explanation import Explainer
from yunikorn_actors.lab.explore import InvalidOptions
from yunikorn_actors.lab.hunt import Lab, NeverHeld, RaceFound, Wishes
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.nondeterminism_guard import Escape
from yunikorn_actors.lab.run_schedule import NotRepeatable
from yunikorn_actors.lab.user_program import Trial
from yunikorn_actors.scenario.document import DEFAULT_QUEUES

PAGE = Path(__file__).parents[2] / "docs/how-to/hunt-a-race.md"
FIXED = (
    (
        "for new in response.new:",
        "for new in (n for n in response.new if n.allocation_key in self._wanted):",
    ),
    ("if gone.allocation_key in self._wanted:", "if True:"),
)


def source_of_the_page() -> str:
    """Return the resource manager of the page, and its workload, without what is done with them."""
    block = PAGE.read_text("utf-8").split("```python\n")[1].split("```")[0]
    return block.split("\n\ntry:")[0]


def page_test() -> str:
    """Return the test with the fixture."""
    return PAGE.read_text("utf-8").split("```python pytest\n")[1].split("```")[0]


def cancels(*changes: tuple[str, str]) -> Callable[[Trial], None]:
    source = source_of_the_page()
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102 - our own page
    workload: Callable[[Trial], None] = names["cancels"]
    return workload


@pytest.fixture(autouse=True)
def _explained_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time would go into the point of no return."""
    monkeypatch.setattr(hunt, "Explainer", partial(Explainer, suffixes=2))


EXPLAINED_IN_SHORT = """\
from functools import partial

from yunikorn_actors.lab import hunt

hunt.Explainer = partial(hunt.Explainer, suffixes=2)
"""


def found(workload: Callable[[Trial], None], **options: Any) -> str:
    with pytest.raises(RaceFound) as caught:
        Lab("t.py::test").explore(workload, **options)
    return str(caught.value)


def test_a_race_in_the_manager_is_found_and_one_entry_is_left() -> None:
    told = found(cancels())
    assert "what runs: job-1 runs on node-1 for the resource manager alone" in told
    assert "the tape, 1 deviation (5 stimuli, " in told
    assert "receives in update_allocation: released job-1 STOPPED_BY_RM" in told


def test_the_tape_repeats_it_and_a_mended_manager_passes(tmp_path: Path) -> None:
    told = found(cancels())
    tape = told.partition("--lab-tape '")[2].rstrip("'")
    wishes = Wishes(tape=tape)
    with pytest.raises(RaceFound, match="job-1 runs on node-1 for the resource manager alone"):
        Lab("t.py::test", wishes).explore(cancels())
    assert 1 == Lab("t.py::test", wishes).explore(cancels(*FIXED)).runs
    with pytest.raises(RaceFound, match=r"--lab-tape \S*\.tape"):
        Lab("t.py::test", Wishes(save=tmp_path)).explore(cancels())
    (kept,) = tmp_path.glob("*.tape")
    with pytest.raises(RaceFound):
        Lab("t.py::test", Wishes(tape=str(kept))).explore(cancels())


def test_a_folder_of_tapes_is_played_by_the_tests_they_are_of(tmp_path: Path) -> None:
    with pytest.raises(RaceFound):
        Lab("t.py::test", Wishes(save=tmp_path)).explore(cancels())
    (kept,) = tmp_path.glob("*.tape")
    (tmp_path / "as-it-is.tape").write_text(kept.read_text().partition("hold")[0])
    wishes = Wishes(tape=str(tmp_path))
    with pytest.raises(RaceFound, match="job-1 runs on node-1 for the resource manager alone"):
        Lab("t.py::test", wishes).explore(cancels())
    assert 2 == Lab("t.py::test", wishes).explore(cancels(*FIXED)).runs
    # What plays nothing says so.
    with pytest.warns(hunt.NotPlayed, match=r"of t\.py::test, and not of t\.py::another: nothing"):
        assert 0 == Lab("t.py::another", wishes).explore(cancels()).runs
    # A test is the same from whichever folder pytest was started.
    with pytest.raises(RaceFound):
        Lab("elsewhere/t.py::test", wishes).explore(cancels())
    # A file is played for the test for which it is given.
    given = Wishes(tape=str(tmp_path / "as-it-is.tape"))
    with pytest.warns(hunt.NotPlayed, match="it is played all the same"):
        assert 1 == Lab("t.py::renamed", given).explore(cancels()).runs


class Careless(ResourceManagerCallback):
    """Does not ask again for what its node takes with it."""

    def __init__(self) -> None:
        self.runs: set[str] = set()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.runs |= {it.uuid for it in response.new}
        self.runs -= {it.uuid for it in response.released}


def asks_once(trial: Trial) -> None:
    manager = Careless()
    trial.eventually("it runs", lambda: bool(manager.runs))
    trial.core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id="me", config=DEFAULT_QUEUES), manager
    )
    room = si.Resource.of({"vcore": 1_000})
    for name in ("n1", "n2"):
        node = si.NodeInfo(node_id=name, action=si.ActionFromRM.CREATE, schedulable_resource=room)
        trial.core.update_node(si.NodeRequest(rm_id="me", nodes=(node,)))
    ugi = si.UserGroupInformation(user="ann")
    app = si.AddApplicationRequest(application_id="app", queue_name="root.default", ugi=ugi)
    trial.core.update_application(si.ApplicationRequest(rm_id="me", new=(app,)))
    ask = si.AllocationAsk(application_id="app", allocation_key="a", resource_ask=room)
    trial.core.update_allocation(si.AllocationRequest(rm_id="me", asks=(ask,)))


def test_a_fault_that_decides_is_named_and_no_race_of_bystanders() -> None:
    told = found(asks_once, faults=("flap",)).splitlines()
    (decides,) = (it for it in told if it.startswith("the point of no return: "))
    assert decides.startswith("the point of no return: flap node n"), decides
    assert not any(it.startswith("the race, at ") for it in told)


@pytest.mark.parametrize(
    ("promise", "complaint"),
    [
        (lambda it: [it.eventually("x", bool) for _ in range(2)], "two promises are called 'x'"),
        (lambda it: [it.always("x", object) for _ in range(2)], "two promises are called 'x'"),
        (lambda it: [it.sometimes("x", bool) for _ in range(2)], "two promises are called 'x'"),
        (lambda it: it.always("x", True), "promise 'x': give a function"),
        (lambda it: it.compare({}), "compare: give a function"),
        (lambda it: it.compare(lambda: ["x"]), "compare: its function must return the node of"),
    ],
)  # fmt: skip
def test_a_promise_that_would_not_be_judged_is_refused(
    promise: Callable[[Trial], object], complaint: str
) -> None:
    def workload(trial: Trial) -> None:
        promise(trial)
        asks_once(trial)

    with pytest.raises((RaceFound, ValueError, TypeError)) as caught:
        Lab("t.py::test").explore(workload, runs=3)
    assert complaint in str(caught.value)


def test_a_tape_is_judged_as_it_was_found() -> None:
    """By what compares the books of both sides, too: the core ignores that a job was cancelled."""
    with BY_ID["M14"].applied():
        told = found(cancels(*FIXED), faults=())
        wrong = "G16: jobs has withdrawn job-1 of batch, and it is there"
        assert wrong in told.partition("\n")[0]
        tape = told.partition("--lab-tape '")[2].rstrip("'")
        with pytest.raises(RaceFound, match=wrong):
            Lab("t.py::test", Wishes(tape=tape)).explore(cancels(*FIXED))


def test_a_mended_manager_is_found_sound_with_faults() -> None:
    report = Lab("t.py::test").explore(cancels(*FIXED), runs=40)
    assert 40 == report.runs
    assert report.orders > 20


class Manager(ResourceManagerCallback):
    """Hears of allocations, and does `act` at each."""

    def __init__(self, core: si.SchedulerAPI, act: Callable[[], object] = lambda: None) -> None:
        self.core = core
        self.act = act
        self.keys: dict[str, None] = {}

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.act()
        for item in response.new:
            self.keys[item.allocation_key] = None

    def start(self, *keys: str) -> None:
        self.core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id="rm"), self)
        node = si.NodeInfo(
            node_id="n",
            action=si.ActionFromRM.CREATE,
            schedulable_resource=si.Resource.parse(vcore=4),
        )
        self.core.update_node(si.NodeRequest(rm_id="rm", nodes=(node,)))
        app = si.AddApplicationRequest(
            application_id="app", ugi=si.UserGroupInformation(user="u"), tags={"namespace": "q"}
        )
        self.core.update_application(si.ApplicationRequest(rm_id="rm", new=(app,)))
        for key in keys:
            ask = si.AllocationAsk(
                application_id="app", allocation_key=key, resource_ask=si.Resource.parse(vcore=1)
            )
            self.core.update_allocation(si.AllocationRequest(rm_id="rm", asks=(ask,)))


def test_promises() -> None:
    def workload(trial: Trial) -> None:
        manager = Manager(trial.core)
        trial.always("b after a", lambda: "a" in manager.keys or "b" not in manager.keys)
        trial.eventually("both run", lambda: len(manager.keys) == 2)
        trial.sometimes("one runs alone", lambda: len(manager.keys) == 1)
        manager.start("a", "b")

    assert 9 == Lab("t").explore(workload, runs=9, faults=()).runs


@pytest.mark.parametrize("promise", ["always", "eventually"])
def test_a_broken_promise_is_named(promise: str) -> None:
    def workload(trial: Trial) -> None:
        manager = Manager(trial.core)
        getattr(trial, promise)("nothing runs", lambda: not manager.keys)
        manager.start("a")

    told = found(workload)
    assert told.startswith(f"{promise} nothing runs: does not hold")
    assert " on proposing\n" in told, "no step is left out"


def test_what_never_comes_is_not_explained_by_the_step_that_is_left_out() -> None:
    def workload(trial: Trial) -> None:
        manager = Manager(trial.core)
        trial.eventually("something runs", lambda: bool(manager.keys))
        manager.start("a", "b")

    told = found(workload, faults=("drain",))
    assert ", without ask b\n  drain node n after " in told


def test_what_the_workload_relies_on_is_left() -> None:
    def workload(trial: Trial) -> None:
        manager = Manager(trial.core)
        manager.start("a", "b")
        assert "a" in manager.keys

    told = found(workload, faults=())
    assert told.startswith("AssertionError")
    assert "the tape, 1 deviation (" in told


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_time_that_cannot_pass_is_refused(seconds: float) -> None:
    told = found(lambda trial: trial.advance(seconds))
    assert f"time does not pass by {seconds} s: give a number from 0 on" in told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"runs": 0}, "0 runs show nothing: explore 1 or more"),
        ({"strategy": "luck"}, "'luck' is no strategy: take some of uniform, pct, "),
        ({"faults": ("flop",)}, "'flop' is no fault: take some of confirm, repeat, "),
        ({"faults": "all"}, "'a' is no fault"),
    ],
)
def test_what_explores_nothing_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOptions, match=said):
        Lab("t").explore(lambda trial: Manager(trial.core).start("a"), **options)


def test_a_race_that_cannot_be_kept_is_told_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    folder = tmp_path / "taken" / "below"
    with pytest.raises(RaceFound) as caught:
        Lab("t.py::test", Wishes(save=folder)).explore(cancels())
    told = str(caught.value)
    assert "pytest t.py::test --lab-tape 'tape 2 of " in told
    assert f"(--lab-save {folder}: the tape cannot be kept there: Not a directory)" in told


def test_what_never_held_is_told() -> None:
    def workload(trial: Trial) -> None:
        manager = Manager(trial.core)
        trial.sometimes("ten run", lambda: len(manager.keys) == 10)
        manager.start("a")

    with pytest.raises(NeverHeld, match="in none of 3 runs: ten run"):
        Lab("t").explore(workload, runs=3)


def test_an_exception_of_a_callback_is_a_finding() -> None:
    def workload(trial: Trial) -> None:
        Manager(trial.core, lambda: {}["gone"]).start("a")

    assert "KeyError('gone') in <lambda> (test_users_code.py:" in found(workload)


def test_time_passes_in_the_run_alone() -> None:
    seen: list[float] = []

    def workload(trial: Trial) -> None:
        before = trial.now
        trial.advance(3600)
        seen.append(trial.now - before)

    Lab("t").explore(workload, runs=1)
    assert {3600.0} == set(seen)


def test_what_differs_from_run_to_run_is_noticed() -> None:
    runs: list[int] = []

    def workload(trial: Trial) -> None:
        runs.append(1)
        Manager(trial.core).start(f"key-{len(runs)}")

    with pytest.raises(NotRepeatable, match=r"AllocationsRequested\(ask key-1\).*\(ask key-2\)"):
        Lab("t").explore(workload)


OUTSIDE: dict[str, tuple[Callable[[], object], str]] = {
    "time.monotonic": (monotonic, "trial.advance"),
    "datetime.now": (lambda: datetime.now(UTC), "trial.advance"),
    "random.choice": (lambda: random.choice("ab"), "random.Random"),  # noqa: S311, TID251
    "random.Random() without a seed": (random.Random, "random.Random"),
    "uuid.uuid4": (lambda: str(uuid.uuid4()), "itertools.count"),  # noqa: TID251
    "threading.Thread.start": (lambda: threading.Thread(target=str).start(), "the callback"),
    "threading.Condition.wait": (lambda: threading.Event().wait(), "wait for ever"),
    "subprocess.Popen": (lambda: subprocess.run(["true"], check=True), "a stand-in"),
    "socket.socket": (lambda: socket.create_connection(("127.0.0.1", 9)), "a stand-in"),
    "asyncio.run": (lambda: asyncio.run(None), "without a loop"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_what_leaves_the_simulation_is_named_with_its_place(what: str) -> None:
    act, remedy = OUTSIDE[what]

    def acts() -> None:
        act()

    def workload(trial: Trial) -> None:
        Manager(trial.core, acts).start("a")

    with pytest.raises(Escape, match=r"test_users_code\.py:\d+: .*") as caught:
        Lab("t").explore(workload)
    assert f"reaches {what}, and the run" in str(caught.value)
    assert remedy in str(caught.value)


def test_everything_is_as_before_afterwards() -> None:
    before = (
        random.Random.seed,
        threading.Thread.start,
        random.SystemRandom.random,
        sys.getprofile(),
    )
    Lab("t").explore(lambda trial: Manager(trial.core).start("a"), runs=2)
    assert before == (
        random.Random.seed, threading.Thread.start, random.SystemRandom.random, sys.getprofile(),
    )  # fmt: skip
    assert monotonic() > 0


def test_another_thread_is_left_alone() -> None:
    seen: list[float] = []
    asked, done = threading.Event(), threading.Event()

    def other() -> None:
        asked.wait(10)
        seen.append(time.monotonic())
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    def acts() -> None:
        asked.set()
        while not done.is_set():
            pass

    Lab("t").explore(lambda trial: Manager(trial.core, acts).start("a"), runs=1)
    thread.join(10)
    assert 1 == len(seen)


def test_the_fixture(tmp_path: Path) -> None:
    """A test that fails prints tape, story and a command; the command fails alike."""
    (tmp_path / "test_jobs.py").write_text(f"{source_of_the_page()}\n\n\n{page_test()}")
    (tmp_path / "conftest.py").write_text(EXPLAINED_IN_SHORT)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "yunikorn_actors.lab.pytest_plugin")
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            (*command, *arguments),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert 1 == done.returncode, done.stdout + done.stderr
        return done.stdout

    told = run("test_jobs.py", "--lab-save", "tapes", "--lab-seed", "2")
    assert "RaceFound: what runs: job-1 runs on node-1 for the resource manager alone" in told
    assert "pytest test_jobs.py::test_cancels --lab-tape tapes/" in told
    (tape,) = (tmp_path / "tapes").glob("*.tape")
    again = run("test_jobs.py::test_cancels", "--lab-tape", str(tape))
    assert "RaceFound: what runs: job-1 runs on node-1 for the resource manager alone" in again
    assert "1 deviation" in again


def test_the_plugin_is_named_in_the_packaging() -> None:
    text = (PAGE.parents[2] / "setup.cfg").read_text("utf-8")
    assert (
        "pytest11 =\n    yunikorn_actors.lab.pytest_plugin = yunikorn_actors.lab.pytest_plugin\n"
        in text
    )
