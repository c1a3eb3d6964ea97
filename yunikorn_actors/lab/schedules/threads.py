"""Runs a case on real threads, disturbed as much as Python lets us, and makes a tape of what fails.

The interpreter changes threads all the time, and each machine pauses now and then before it handles
a message. The run is recorded and then followed in the simulator, where the checkers look after
every message: what they find happened on the threads as well, and the tape of it is played again.
"""

import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from yunikorn_actors.errors import UnknownResourceManager
from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.explore import Options
from yunikorn_actors.lab.run_schedule import Violation, explore, violation_of
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.recorded_schedule import Following
from yunikorn_actors.lab.shrinking.shrink import Shrinker
from yunikorn_actors.lab.tapes.tape import Tape
from yunikorn_actors.lab.tapes.tape_player import TapeWriter
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.recording.recorder import Recorder
from yunikorn_actors.runtime.switch_interval import short_turns
from yunikorn_actors.scenario.drivers import ServiceDriver
from yunikorn_actors.scenario.performer import Stage
from yunikorn_actors.trace.read import TraceReader

SWITCH_S: Final = 1e-6
"""After so long another thread may run; Python's own interval is 5,000 times as long."""
PAUSES_S: Final = (0.0, 0.0001, 0.0005, 0.002)
PAUSING: Final = (0.05, 0.2, 0.5)
"""How often a machine pauses before a message; each run draws one."""
SETTLING: Final = (0.1, 0.5, 0.9)
"""How often a step waits until all is quiet; each run draws one."""
PLAYS: Final = 3
"""So often a tape has to repeat a violation."""

THREADS_ALONE: Final = (
    "the simulator delivers the same and nothing fails, so it takes the threads themselves: "
    "something is shared between machines, or between callbacks"
)
NO_REPEAT: Final = (
    "the simulator finds it as it follows the recording, and the tape does not repeat it"
)


class Recording(Struct, frozen=True, kw_only=True):
    deliveries: list[Delivery]
    violation: Violation | None
    """What raised on the threads themselves."""


class ThreadFinding(Struct, frozen=True, kw_only=True):
    run: int
    violation: Violation
    tape: Tape | None
    why: str
    """Why there is no tape; empty if there is one."""


class ThreadReport(Struct, frozen=True, kw_only=True):
    case: Case
    runs: int
    messages: int
    lost: int
    """How many recordings the simulator could not follow to their end."""
    first_lost: str
    seconds: float
    finding: ThreadFinding | None = None


class ThreadSearch:
    """Counts what was run, so that an interrupted search still has a report."""

    def __init__(self, case: Case, options: Options) -> None:
        self.case = case
        self._options = options
        self._runs = self._messages = self._lost = 0
        self._first_lost = ""
        self._begun = time.perf_counter()

    def run(self) -> ThreadReport:
        """Run until something is wrong or the time is over."""
        seconds = self._options.budget.seconds
        while seconds is None or time.perf_counter() - self._begun < seconds:
            recording = record(self.case, Draw(self._options.seed, self._runs))
            self._runs += 1
            self._messages += len(recording.deliveries)
            finding = self._judge(recording)
            if finding is not None:
                return self.report(finding)
        return self.report(None)

    def _judge(self, recording: Recording) -> ThreadFinding | None:
        """Follow the recording with all checkers."""
        case, checkers = self.case, self._options.checkers
        following = Following(recording.deliveries)
        writer = TapeWriter(following)
        found = explore(case, writer, checkers()).violation
        if following.lost:
            self._lost += 1
            self._first_lost = self._first_lost or following.lost
        if found is None and recording.violation is None:
            return None
        if found is None:
            lost = f"the simulator does not come to {following.lost}"
            return self._finding(
                recording.violation, None, lost if following.lost else THREADS_ALONE
            )
        tape = case.tape(*writer.written())
        shrinker = Shrinker(case, found.kind, checkers)
        if not all(shrinker.fails(tape) for _ in range(PLAYS)):
            return self._finding(found, None, NO_REPEAT)
        tape = shrinker.shrink(tape) if self._options.shrinks else tape
        return self._finding(shrinker.play(tape).violation, tape, "")

    def _finding(self, violation: Violation | None, tape: Tape | None, why: str) -> ThreadFinding:
        assert violation is not None
        return ThreadFinding(run=self._runs, violation=violation, tape=tape, why=why)

    def report(self, finding: ThreadFinding | None) -> ThreadReport:
        return ThreadReport(
            case=self.case,
            runs=self._runs,
            messages=self._messages,
            lost=self._lost,
            first_lost=self._first_lost,
            seconds=time.perf_counter() - self._begun,
            finding=finding,
        )


def record(case: Case, draw: Draw) -> Recording:
    """Run the case once on threads; return what was delivered, and what raised there."""
    with tempfile.TemporaryDirectory(prefix="yunikorn-actors-lab-") as folder:
        path = Path(folder) / "run.trace"
        violation: Violation | None = None
        with short_turns(SWITCH_S):
            driver = _driver(case, path, draw)
            try:
                _perform(case, driver, draw)
            except Exception as error:  # noqa: BLE001 - whatever a run raises is what was looked for
                violation = violation_of(error)
            finally:
                driver.close()
        with TraceReader(path) as trace:
            return Recording(deliveries=list(trace), violation=violation)


def _driver(case: Case, path: Path, draw: Draw) -> ServiceDriver:
    driver = ServiceDriver(driver="threads", topology=case.built(), trace=path)
    inside = driver.core.inside
    assert inside.recorder is not None
    inside.recorder = _Pausing(inside.recorder, draw)
    return driver


def _perform(case: Case, driver: ServiceDriver, draw: Draw) -> None:
    stage = Stage(case.scenario, driver, None)
    settling = draw.one_of(SETTLING)
    for step in case.steps:
        with suppress(UnknownResourceManager):
            stage.act(step.written)
        if draw.chance(settling):
            driver.settle()
    driver.settle()
    for manager in stage.managers():
        with suppress(UnknownResourceManager):
            manager.confirm_all()
    driver.settle()
    driver.check()


class _Pausing(Recorder):
    """Has the thread of a machine pause before it records a message and handles it."""

    def __init__(self, recorder: Recorder, draw: Draw) -> None:
        # Not another recorder: it only stands before the one that writes.
        self.path = recorder.path
        self.failure = None
        self._recorder = recorder
        self._draw = draw
        self._share = draw.one_of(PAUSING)

    def add(self, delivery: Delivery) -> None:
        if self._draw.chance(self._share):
            time.sleep(self._draw.one_of(PAUSES_S))
        self._recorder.add(delivery)

    def took(self, mailbox: str, took_ns: int) -> None:
        self._recorder.took(mailbox, took_ns)

    def digest_of(self, state: dict[str, Any]) -> str:
        return self._recorder.digest_of(state)

    def _gather(self, mailbox: str, data: bytes) -> None:
        self._recorder._gather(mailbox, data)

    def close(self, footer: dict[str, Any], timeout: float = 30.0) -> None:
        self._recorder.close(footer, timeout)
        self.failure = self._recorder.failure
