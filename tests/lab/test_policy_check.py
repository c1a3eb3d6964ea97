"""The check of policies: what it says of bad ones, and that good ones pass."""

import gc
import itertools
import os
import random
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

import pytest
import ranges
from msgspec import Struct

from yunikorn_actors.lab.policy_check import check, check_policy
from yunikorn_actors.lab.policy_check.check import WORLDS
from yunikorn_actors.policies import Arrived, Ended, Hold, Started
from yunikorn_actors.policies.built_in import APPLICATION_ORDERS, QUEUE_ORDERS
from yunikorn_actors.policies.registry import SHIPPED
from yunikorn_actors.policies.shipped import Easy

BAD: dict[str, tuple[Any, str, str]] = {}
"""By what is wrong: the policy, the kind of the finding, and some of its words."""


def bad(kind: str, words: str) -> Any:
    def keep(policy: Any) -> Any:
        BAD[policy.__name__] = (policy, kind, words)
        return policy

    return keep


@bad("clock", "Clock.application_key: reaches time.time")
class Clock:
    def application_key(self, _: Any) -> float:
        return time.time()  # noqa: TID251 - it is what is named


@bad("clock", "reaches time.monotonic")
class ClockByName:
    def application_key(self, _: Any) -> float:
        return monotonic()


@bad("clock", "reaches datetime.now")
class Date:
    def may_start(self, *_: Any) -> Hold | None:
        return Hold("it is night") if datetime.now().hour > 25 else None  # noqa: DTZ005


@bad("raises", "application_key: raised KeyError('guests')")
class SomeGroups:
    def application_key(self, app: Any) -> int:
        return {"": 2, "staff": 1}[app.group]


@bad("dice", "reaches random.random")
class Dice:
    def application_key(self, _: Any) -> float:
        return random.random()  # noqa: S311


SEEDED = random.Random(7)  # noqa: S311


@bad("dice", "random")
class SeededDice:
    def application_key(self, _: Any) -> float:
        return SEEDED.random()


@bad("key", "keys of two forms do not compare")
class NotTotal:
    def application_key(self, app: Any) -> object:
        return app.user if app.user == "ann" else 7


@bad("key", "it is NaN")
class NotANumber:
    def score(self, *_: Any) -> float:
        return float("nan")


@bad("key", "give None or a Hold")
class HoldsByText:
    def may_start(self, *_: Any) -> Any:
        return "no"


@bad("reads", "reads used, which is undeclared")
class Undeclared:
    def application_key(self, app: Any) -> int:
        return sum(app.used.values())


@bad("reads", "goes by what the policy keeps, and `state` is undeclared")
@dataclass
class UndeclaredState:
    started: dict[str, int] = field(default_factory=dict)

    def application_key(self, app: Any) -> int:
        return self.started.get(app.user, 0)

    def observe(self, fact: Any, _: int) -> None:
        if isinstance(fact, Started):
            self.started[fact.job.user] = self.started.get(fact.job.user, 0) + 1


@bad("answers", "is not asked again when that changes")
@dataclass
class AskByState:
    seen: int = 0

    def ask_key(self, _: Any) -> int:
        return self.seen

    def observe(self, *_: Any) -> None:
        self.seen += 1


@bad("raises", "raised KeyError('nothing')")
class Raising:
    def application_key(self, app: Any) -> int:
        return int(app.tags["nothing"])


@bad("raises", "raised SystemExit(3)")
class Exiting:
    def queue_key(self, _: Any) -> int:
        sys.exit(3)


@bad("slow", "is slow (")
class Slow:
    def application_key(self, _: Any) -> int:
        return sum(number * number for number in range(60_000))


@bad("mutates", "changes what it is given")
class Mutating:
    def ask_key(self, ask: Any) -> int:
        ask.size["vcore"] = 0
        return 0


@bad("mutates", "changes what it is given")
class MutatingTheNode:
    def score(self, node: Any, _: Any) -> float:
        node.free.clear()
        return 0.0


@bad("mutates", "changes what it is given (held)")
class MutatingThePool:
    def may_start(self, _: Any, pool: Any) -> None:
        pool.held.clear()


@bad("mutates", "changes what it is given (rank)")
class Setting:
    def application_key(self, app: Any) -> int:
        app.rank = 1
        return 0


@bad("outside", "reaches builtins.open")
class Reading:
    def score(self, *_: Any) -> float:
        with open(__file__) as file:  # noqa: PTH123 - it is what is named
            return float(len(file.read()))


@bad("outside", "reaches os._Environ")
class Environment:
    def application_key(self, _: Any) -> str:
        return os.environ.get("HOME", "")


@bad("outside", "reaches posix.getpid")
class Process:
    def application_key(self, _: Any) -> int:
        return os.getpid()


@bad("outside", "reaches socket.socket")
class Socket:
    def application_key(self, _: Any) -> int:
        return socket.socket().fileno()


@bad("outside", "reaches builtins.print")
class Printing:
    def application_key(self, app: Any) -> int:
        print(app.id)  # noqa: T201
        return 0


@bad("outside", "reaches")
class Threads:
    def application_key(self, _: Any) -> int:
        threading.Thread(target=gc.collect).start()
        return 0


@bad("outside", "reaches gc.get_objects")
class Collecting:
    def application_key(self, _: Any) -> int:
        return len(gc.get_objects())


@bad("type", "and no class")
class NoClass:
    """Stands for its instance below."""


BAD["NoClass"] = (7, *BAD["NoClass"][1:])


@bad("type", "cannot be made without arguments")
class Needing:
    def __init__(self, weight: int) -> None:
        self.weight = weight

    def application_key(self, _: Any) -> int:
        return self.weight


@bad("type", "reads is ('usage',)")
class ReadsWhatIsNot:
    reads = ("usage",)

    def application_key(self, _: Any) -> int:
        return 0


@bad("type", "it decides nothing")
class Nothing:
    pass


@bad("type", "a node score is given no facts")
@dataclass
class ScoringFold:
    seen: int = 0

    def score(self, *_: Any) -> float:
        return float(self.seen)

    def observe(self, *_: Any) -> None:
        self.seen += 1


@bad("shape", "did you mean application_key?")
class Misspelt:
    def aplication_key(self, _: Any) -> int:
        return 0


@bad("shape", "cannot be called as may_start(self, job, pool)")
class OneParameter:
    def may_start(self, _: Any) -> None:
        return None


@bad("shape", "is written with `async def`")
class Async:
    async def application_key(self, _: Any) -> int:
        return 0


@bad("shape", "is a generator")
class Generator:
    def application_key(self, _: Any) -> Any:
        yield 0


@bad("shape", "and no method")
class Number:
    application_key = 7


@bad("fold", "what it keeps has no types")
class PlainFold:
    def application_key(self, _: Any) -> int:
        return 0

    def observe(self, *_: Any) -> None:
        pass


@bad("fold", "cannot be written down")
@dataclass
class KeepsALock:
    lock: Any = field(default_factory=threading.Lock)

    def application_key(self, _: Any) -> int:
        return 0

    def observe(self, *_: Any) -> None:
        pass


@bad("fold", "is another when it is read again")
@dataclass
class KeepsWithoutType:
    jobs: dict = field(default_factory=dict)  # type: ignore[type-arg]

    def application_key(self, _: Any) -> int:
        return 0

    def observe(self, fact: Any, _: int) -> None:
        self.jobs[str(len(self.jobs))] = fact


@bad("state", "changes what the policy keeps")
class Counting:
    def __init__(self) -> None:
        self.calls = 0

    def application_key(self, _: Any) -> int:
        self.calls += 1
        return 0


NUMBERS = itertools.count()


@bad("shared", "calls change NUMBERS")
class CountingOutside:
    def application_key(self, _: Any) -> int:
        return next(NUMBERS) * 0


@bad("shared", "calls change AcrossQueues.seen")
class AcrossQueues:
    """Decides in one queue by what it has seen in another."""

    seen: ClassVar[dict[str, int]] = {}

    def application_key(self, app: Any) -> int:
        return self.seen.setdefault(app.user, 1)


@bad("shared", "calls change a default of DefaultArgument.application_key")
class DefaultArgument:
    def application_key(self, app: Any, seen: dict[str, int] = {}) -> int:  # noqa: B006
        return seen.setdefault(app.user, 1)


@bad("answers", "changes while its facts do not")
class Identity:
    def application_key(self, app: Any) -> int:
        return id(app)


@bad("answers", "a replica keeps another thing than the truth")
@dataclass
class DifferentReplicas:
    reads = ("state",)
    kept: int = 0

    def application_key(self, _: Any) -> int:
        return self.kept

    def observe(self, *_: Any) -> None:
        self.kept = id(self)


@bad("elsewhere", "looks at _model, which leads out of its queue")
class AnotherQueue:
    def may_start(self, _: Any, pool: Any) -> None:
        return pool._model.apps and None


@bad("elsewhere", "looks for siblings")
class Siblings:
    def queue_key(self, queue: Any) -> int:
        return len(queue.siblings)


@bad("slow", "may_start: grows with the square of what waits")
class EachForEach:
    def may_start(self, _: Any, pool: Any) -> Hold | None:
        worse = sum(it.priority < other.priority for it in pool.held for other in pool.held)
        return Hold("behind") if worse < 0 else None


@bad("slow", "observe: grows with the square of what waits")
@dataclass
class RanksAnew:
    waiting: dict[str, int] = field(default_factory=dict)

    def may_start(self, _: Any, __: Any) -> None:
        return None

    def observe(self, fact: Any, _: int) -> None:
        if isinstance(fact, Arrived):
            self.waiting[fact.job.id] = 0
        for name in self.waiting:
            self.waiting[name] = sum(other < name for other in self.waiting)


RARE = ("NotTotal", "SomeGroups")
"""Not seen in each world."""


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named_with_class_line_and_remedy(name: str) -> None:
    policy, kind, words = BAD[name]
    report = check_policy(policy, worlds=3 if name in RARE else 1)
    found = [it for it in report.findings if it.kind == kind]
    assert [it for it in found if words in it.text], report.text
    assert not report.is_good
    for finding in report.findings:
        assert finding.remedy in finding.text
        file, line, what = finding.place.split(":")[:3]
        if isinstance(policy, type):
            assert Path(file).name == Path(__file__).name
            assert what.strip().startswith(name)
            assert _is_of(policy, int(line))


def _is_of(policy: type, line: int) -> bool:
    import inspect  # noqa: PLC0415

    lines, first = inspect.getsourcelines(policy)
    return first <= line < first + len(lines)


def test_one_that_hangs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn_actors.lab.policy_check.watched.CALL_S", 0.05)

    class Hanging:
        def application_key(self, _: Any) -> int:
            while True:
                pass

    report = check_policy(Hanging, worlds=1)
    assert ["hangs"] == [finding.kind for finding in report.findings]


# -- good ones


class Inherits(Easy):
    reads = ("size",)

    def application_key(self, app: Any) -> Any:
        return (super().application_key(app), len(app.size))


class KeepsInAStruct(Struct):
    running: dict[str, int] = {}
    reads: ClassVar = ("state",)

    def application_key(self, app: Any) -> int:
        return self.running.get(app.user, 0)

    def observe(self, fact: Any, _: int) -> None:
        match fact:
            case Started(job):
                self.running[job.user] = self.running.get(job.user, 0) + 1
            case Ended(job):
                self.running[job.user] -= 1


class TuplesOfAnyLength:
    reads = ("used",)

    def application_key(self, app: Any) -> Any:
        return tuple(sorted(app.used.values()))


class ByZone:
    def score(self, node: Any, shape: Any) -> float:
        return node.attributes["zone"] == "east" and shape["vcore"] / node.capacity["vcore"]


class Weighted:
    def __init__(self, weight: int = 2) -> None:
        self.weight = weight

    def ask_key(self, ask: Any) -> int:
        return -self.weight * int(ask.count)


class Behind:
    def may_start(self, job: Any, pool: Any) -> Hold | None:
        if not pool.held or pool.fits_beside(job, pool.held[0], pool.now_ns):
            return None
        return Hold("it comes behind", pool.now_ns + 10**9)


class LooksAtAll:
    """Of all that is held, each once."""

    def may_start(self, job: Any, pool: Any) -> Hold | None:
        before = sum(it.priority > job.priority for it in pool.held)
        return Hold(f"{before} come before") if before else None


GOOD = {
    **SHIPPED,
    **{name.value: order for name, order in APPLICATION_ORDERS.items()},
    **{f"{name.value} of queues": order for name, order in QUEUE_ORDERS.items()},
    **{
        it.__name__: it
        for it in (Inherits, KeepsInAStruct, TuplesOfAnyLength, ByZone, Behind, LooksAtAll)
    },
    "Weighted": partial(Weighted, 5),
}


HASHED = ("KeepsInAStruct", "TuplesOfAnyLength", "Weighted")
"""One that keeps something, one of texts, and one that another process does not find by its name."""


@pytest.mark.parametrize("name", GOOD)
def test_a_good_one_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process, where hashes are others, is the same for all: it is begun for a few."""
    if name not in HASHED:
        monkeypatch.setattr(check, "_compare_processes", lambda *_: None)
    report = check_policy(GOOD[name], worlds=1, seed=3)
    assert report.is_good, report.text
    assert report.costs, "vacuous: nothing was called"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", GOOD)
def test_a_good_one_passes_in_all_worlds(name: str, seed: int) -> None:
    report = check_policy(GOOD[name], worlds=WORLDS, seed=seed)
    assert report.is_good, report.text


# -- the command and the fixture

TEN = """import random, time


class Hashing:
    def application_key(self, app):
        return hash(app.user)


class Longest:
    reads = ("runtime_ns",)

    def application_key(self, app):
        return -app.runtime_ns


WEIGHTS = 7
ALL = {"longest": Longest}
"""


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "yunikorn_actors", "policy", "check", *words]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


def test_the_command_names_each_and_its_status_is_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TEN)
    done = command(tmp_path, "mine:Hashing", "mine:WEIGHTS", "--worlds", "2")
    assert done.returncode == 1, done.stderr
    assert "mine.py:5: Hashing.application_key: gives another answer in another proc" in done.stdout
    assert "mine.py:16: WEIGHTS: it is 7, and no class: give a class" in done.stdout


def test_the_command_passes_a_good_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TEN)
    done = command(tmp_path, "mine:Longest", "mine:ALL", "--worlds", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Longest: no fault in 2 worlds\n" in done.stdout


class VictimsByClock:
    def victim_key(self, _victim: Any, _: int) -> int:
        return time.monotonic_ns()


class VictimsRaising:
    def victim_key(self, victim: Any, _: int) -> int:
        raise KeyError(victim.id)


class VictimsNaN:
    def victim_key(self, _victim: Any, _: int) -> float:
        return float("nan")


class VictimsMutating:
    def victim_key(self, victim: Any, _: int) -> int:
        victim.size["vcore"] = 0
        return 0


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        (VictimsByClock, "reaches time.monotonic_ns"),
        (VictimsRaising, "raised KeyError"),
        (VictimsNaN, "is not total: it is NaN"),
        (VictimsMutating, "changes what it is given"),
    ],
)
def test_an_order_of_victims_is_asked_in_each_world(policy: Any, found: str) -> None:
    report = check_policy(policy, worlds=1)
    assert f"{policy.__name__}.victim_key: {found}" in report.text


def test_a_good_order_of_victims_has_no_fault() -> None:
    class Newest:
        def victim_key(self, victim: Any, _: int) -> int:
            return -int(victim.started_ns)

    report = check_policy(Newest)
    assert report.is_good, report.text
    assert "Newest.victim_key: " in report.text


@pytest.mark.parametrize(
    "name", ranges.first(["mine:Other", "nowhere:Longest", "mine", ":", "mine:"], 2)
)
def test_what_cannot_be_found_is_a_mistake_in_the_question(name: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TEN)
    done = command(tmp_path, name)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("yunikorn-actors policy check: error: ")


def test_the_fixture_fails_a_test_of_a_bad_one(check_policy: Any) -> None:
    with pytest.raises(AssertionError, match=r"Clock\.application_key: reaches time\.time"):
        check_policy(Clock, worlds=1)
    assert check_policy(Weighted, worlds=1).is_good


def test_what_the_collector_calls_is_not_of_the_policy() -> None:
    """Hypothesis measures each collection, and those come at any moment."""
    times: list[float] = []

    def measure(_phase: str, _info: dict[str, int]) -> None:
        times.append(time.perf_counter())

    class Smallest:
        def application_key(self, app: Any) -> tuple[str, ...]:
            # Containers, so that the collector has a reason to come.
            return tuple(str([it]) for it in app.id)

    before = gc.get_threshold()
    gc.callbacks.append(measure)
    gc.set_threshold(1, 1, 1)
    try:
        report = check_policy(Smallest, worlds=2)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(measure)
    assert times, "vacuous: nothing was collected"
    assert report.is_good, report.text
