"""What is raised outside of a handler fails the core or is told: no thread ends of it unnoticed."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from probes import PATIENCE_S, Do, Notebook, probed_core, wait_until

from yunikorn_actors import CoreFailed, SchedulerCore
from yunikorn_actors.drivers.live.clock import RealClock, TimerThread
from yunikorn_actors.drivers.live.dispatcher import Dispatcher
from yunikorn_actors.front.deadlines import Deadlines
from yunikorn_actors.front.futures import CallbackThreads
from yunikorn_actors.machines.machine import SetTimer
from yunikorn_actors.messages.base import Cause, Envelope
from yunikorn_actors.runtime.core_arguments import CoreDriver
from yunikorn_actors.runtime.health_monitor import HealthWatch
from yunikorn_actors.service.followed_file import FollowedFile

OWN = "yunikorn-actors-dispatcher"
DRIVERS: tuple[CoreDriver, ...] = ("threads", "direct")


class MadeUpError(Exception):
    pass


class RaisingClock(RealClock):
    """A clock of the program's own, which raises once it is broken."""

    def __init__(self) -> None:
        super().__init__()
        self.left: float = float("inf")
        """So often it is asked before it raises."""

    def now_ns(self) -> int:
        self.left -= 1
        if self.left < 0:
            raise MadeUpError("the clock")
        return super().now_ns()

    def seconds_until(self, due_ns: int) -> float:
        self.now_ns()
        return super().seconds_until(due_ns)


@pytest.fixture
def clock() -> RaisingClock:
    return RaisingClock()


def is_over(core: SchedulerCore) -> None:
    """It says that it has failed, its books balance, and it is stopped without waiting."""
    wait_until(lambda: core.failure)
    with pytest.raises(CoreFailed):
        core.state_dump()
    actors = core._actors.by_address.values()
    wait_until(lambda: all(it.handled == it.received for it in actors))
    left = [it for it in threading.enumerate() if it.name == OWN]
    core.stop(PATIENCE_S)
    for thread in left:
        thread.join(PATIENCE_S)
    assert not any(it.is_alive() for it in left)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("before", range(3))
def test_a_clock_that_raises_fails_the_core(
    driver: CoreDriver, before: int, clock: RaisingClock, tmp_path: Any
) -> None:
    """With a recording it is asked around each message as well."""
    trace = tmp_path / "trace"
    core = probed_core(Notebook(), driver=driver, clock=clock, trace=trace).start()
    wait_until(core.is_settled)
    clock.left = before
    try:
        with core._afterwards:
            core._post("a", Do(label="1"), "test")
    except MadeUpError:
        # It was the caller who asked it.
        assert not before
        with core._afterwards:
            core._actors.by_address["a"].put(envelope())
    wait_until(lambda: core.failure)
    assert "MadeUpError('the clock')" in str(core.failure)
    clock.left = float("inf")
    is_over(core)


def envelope() -> Envelope:
    return Envelope("gateway", Do(label="2"), Cause("gateway", 1), "test", 0)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_clock_that_raises_when_timers_ask_it_fails_the_core(
    driver: CoreDriver, clock: RaisingClock
) -> None:
    core = probed_core(Notebook(), driver=driver, clock=clock).start()
    wait_until(core.is_settled)
    timer = SetTimer(name="t", due_ns=clock.now_ns() + 10**15, message=Do(label=""))
    with core._afterwards:
        core._post("a", Do(label="1", effects=(timer,)), "test")
    wait_until(core.is_settled)
    clock.left = 0
    core.clock_was_moved()
    wait_until(lambda: core.failure)
    assert "the timers failed: MadeUpError('the clock')" in str(core.failure)
    clock.left = float("inf")
    is_over(core)


class Torn(deque[Any]):
    """A signal of the program raises right after a message was taken out."""

    def __init__(self, kept: deque[Any], error: BaseException) -> None:
        super().__init__(kept)
        self._error = error

    def popleft(self) -> Any:
        super().popleft()
        raise self._error


def torn(core: SchedulerCore, error: BaseException) -> None:
    actor: Any = core._actors.by_address["a"]
    actor.waiting = Torn(actor.waiting, error)


def test_what_is_lost_between_two_messages_fails_the_core() -> None:
    core = probed_core(Notebook()).start()
    torn(core, MadeUpError("a signal"))
    core._post("a", Do(label="lost"), "test")
    core._go_on()
    wait_until(lambda: core.failure)
    assert "a failed between two messages: MadeUpError('a signal')" in str(core.failure)
    is_over(core)


def test_what_a_signal_raises_between_two_messages_reaches_the_caller_who_runs_them() -> None:
    core = probed_core(Notebook(), driver="direct").start()
    torn(core, SystemExit(3))
    with pytest.raises(SystemExit, match="3"), core._afterwards:
        core._post("a", Do(label="lost"), "test")
    assert "a failed between two messages: SystemExit(3)" in str(core.failure)
    is_over(core)


def test_what_is_raised_between_two_messages_is_no_affair_of_another_caller() -> None:
    core = probed_core(Notebook(), driver="direct").start()
    torn(core, MadeUpError("made up"))
    raised: list[BaseException] = []

    def call() -> None:
        try:
            with core._afterwards:
                core._post("a", Do(label="lost"), "test")
        except BaseException as error:  # noqa: BLE001 - it is what the test asks for
            raised.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    caller.join(PATIENCE_S)
    assert not raised
    is_over(core)


class Taken(deque[Any]):
    """What was there is gone when it is taken: the other thread was quicker."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def __bool__(self) -> bool:
        self.looks += 1
        return self.looks == 1

    __len__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("has_hold", [True, False])
def test_a_stop_and_a_handler_that_returns_do_not_take_the_same(has_hold: bool) -> None:
    """A stop that could not wait for the hold drops what waits, and so does who has it."""
    dispatcher = Dispatcher(callers_run=True)
    dispatcher.ready = taken = Taken()  # type: ignore[misc]
    if has_hold:
        dispatcher._hold.acquire()
        dispatcher.close(0.0)
    else:
        dispatcher.go_on()
        assert not dispatcher._hold.locked()
    assert taken.looks


# -- threads beside the machines


def test_timers_say_what_has_ended_them() -> None:
    failed: list[BaseException] = []
    clock = RaisingClock()
    timers = TimerThread(clock, lambda *_: None, failed=failed.append)
    timers.start()
    clock.left = 0
    timers.arm("a", "t", 1, None)  # type: ignore[arg-type]
    timers.join(PATIENCE_S)
    assert [MadeUpError] == [type(it) for it in failed]


def test_health_is_looked_at_again_after_a_look_that_failed(log: StringIO) -> None:
    looks = threading.Semaphore(0)

    def look() -> Any:
        looks.release()
        raise MadeUpError("made up")

    monitor = HealthWatch(look)
    monitor.every(0.001)
    assert all(looks.acquire(timeout=PATIENCE_S) for _ in range(2)), "it has stopped to look"
    monitor.stop()
    monitor.join(PATIENCE_S)
    assert "health check: it failed" in log.getvalue()


class Followed(FollowedFile[str]):
    def __init__(self) -> None:
        super().__init__("yunikorn-actors-test", "")
        self.refused: list[str] = []
        self.taken = threading.Event()

    def _read(self) -> str:
        if not self.refused:
            raise MadeUpError("cannot be read")
        return "text"

    def _take(self, found: str) -> None:
        assert found
        self.taken.set()

    def _refuse(self, reason: str) -> None:
        self.refused.append(reason)


def test_a_file_is_followed_though_a_look_at_it_fails() -> None:
    followed = Followed()
    followed.start()
    followed.reload()
    wait_until(lambda: followed.refused)
    followed.reload()
    assert followed.taken.wait(PATIENCE_S), "no change is taken any more"
    followed.stop(PATIENCE_S)
    assert ["cannot be read"] == followed.refused


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Have no thread started; what is returned makes room for them."""

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        yield patch.undo


def test_done_callbacks_are_called_once_there_is_room_for_a_thread(
    full: Callable[[], None],
) -> None:
    calls, called = CallbackThreads(), list[int]()
    calls.call(lambda: called.append(1))
    full()
    calls.call(lambda: called.append(2))
    wait_until(lambda: len(called) == 2)
    calls.close()
    assert [1, 2] == sorted(called)


def test_deadlines_are_kept_once_there_is_room_for_a_thread(full: Callable[[], None]) -> None:
    passed = threading.Event()
    deadlines = Deadlines(lambda _: passed.set(), lambda _: None)
    record: Any = type("Record", (), {"deadline_s": 0.0})
    with pytest.raises(RuntimeError, match="new thread"):
        deadlines.add([record], "alike")
    full()
    deadlines.add([record], "alike")
    assert passed.wait(PATIENCE_S)
    deadlines.close()
    deadlines.join(PATIENCE_S)
