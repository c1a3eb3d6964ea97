"""The timer thread on a real clock; what it promises beyond that is in the delivery contract."""

import queue
import time

import pytest
from probes import PATIENCE_S, Do

from yunikorn_actors.drivers.live.clock import RealClock, TimerThread
from yunikorn_actors.messages.base import Cause, Envelope

HOUR_NS = 3600 * 10**9
MS = 10**6


class Fired(queue.SimpleQueue[tuple[str, int]]):
    """What was delivered, and when."""

    def __init__(self, clock: RealClock) -> None:
        super().__init__()
        self._clock = clock

    def deliver(self, address: str, envelope: Envelope) -> None:
        message = envelope.message
        assert isinstance(message, Do)
        self.put((f"{address} {message.label}", self._clock.now_ns()))


def envelope(label: str) -> Envelope:
    return Envelope("timer", Do(label=label), Cause("a", 1), "")


def test_no_timer_fires_early() -> None:
    clock = RealClock()
    fired = Fired(clock)
    timers = TimerThread(clock, fired.deliver)
    timers.start()
    start = clock.now_ns()
    due = {f"a {number}": start + number * MS // 2 for number in range(40)}
    for number in range(40):
        timers.arm("a", str(number), due[f"a {number}"], envelope(str(number)))
    heard = dict(fired.get(timeout=PATIENCE_S) for _ in due)
    assert list(due) == list(heard)
    assert all(heard[name] >= due_ns for name, due_ns in due.items())
    timers.stop()
    timers.join(PATIENCE_S)


def test_a_nearer_timer_wakes_a_thread_that_waits_for_a_far_one() -> None:
    clock = RealClock()
    fired = Fired(clock)
    timers = TimerThread(clock, fired.deliver)
    timers.start()
    timers.arm("a", "far", clock.now_ns() + HOUR_NS, envelope("far"))
    timers.arm("a", "near", clock.now_ns() + MS, envelope("near"))
    assert "a near" == fired.get(timeout=PATIENCE_S)[0]
    timers.stop()
    timers.join(PATIENCE_S)


class Looking(RealClock):
    """Counts how often the thread asks how long it may wait."""

    looks = 0

    def seconds_until(self, due_ns: int) -> float:
        self.looks += 1
        return super().seconds_until(due_ns)


def test_a_timer_behind_the_one_that_is_waited_for_wakes_nobody() -> None:
    clock = Looking()
    fired = Fired(clock)
    timers = TimerThread(clock, fired.deliver)
    timers.start()
    timers.arm("a", "first", clock.now_ns() + HOUR_NS, envelope("first"))
    deadline_s = time.monotonic() + PATIENCE_S
    while not clock.looks and time.monotonic() < deadline_s:
        time.sleep(0.001)
    timers.cancel("a", "first")
    # Whoever would be woken has the time to look.
    for number in range(20):
        timers.arm("a", "later", clock.now_ns() + (number + 2) * HOUR_NS, envelope("later"))
        time.sleep(0.001)
        timers.cancel("a", "later")
    assert 1 == clock.looks
    timers.arm("a", "near", clock.now_ns(), envelope("near"))
    assert "a near" == fired.get(timeout=PATIENCE_S)[0]
    timers.stop()
    timers.join(PATIENCE_S)


def test_a_thread_that_has_looked_waits_for_what_was_armed_behind() -> None:
    clock = RealClock()
    fired = Fired(clock)
    timers = TimerThread(clock, fired.deliver)
    timers.start()
    now_ns = clock.now_ns()
    timers.arm("a", "first", now_ns + 20 * MS, envelope("first"))
    timers.arm("a", "second", now_ns + 40 * MS, envelope("second"))
    timers.cancel("a", "first")
    assert "a second" == fired.get(timeout=PATIENCE_S)[0]
    timers.stop()
    timers.join(PATIENCE_S)


@pytest.mark.parametrize("scale", [1, 1000])
def test_a_clock_runs_at_its_scale(scale: int) -> None:
    clock = RealClock(scale)
    now = clock.now_ns()
    assert clock.now_ns() >= now
    assert clock.seconds_until(now + scale * HOUR_NS) == pytest.approx(3600, abs=60)
    assert 0 == clock.seconds_until(now)


def test_a_thread_that_is_stopped_before_it_waits_does_not_wait() -> None:
    clock = RealClock()
    timers = TimerThread(clock, Fired(clock).deliver)
    timers.stop()
    timers.join(PATIENCE_S)
    timers.start()
    timers.join(PATIENCE_S)
    assert not timers._thread.is_alive()


def test_what_is_due_is_followed_by_a_run_and_an_armed_timer_is_not() -> None:
    clock = RealClock()
    fired, ran = Fired(clock), queue.SimpleQueue[str]()
    timers = TimerThread(clock, fired.deliver, lambda: ran.put("ran"))
    timers.start()
    for number in range(20):
        timers.arm("a", "far", clock.now_ns() + (number + 1) * HOUR_NS, envelope("far"))
        time.sleep(0.001)
    timers.wake()
    assert ran.empty()
    timers.arm("a", "near", clock.now_ns(), envelope("near"))
    assert ("a near", "ran") == (fired.get(timeout=PATIENCE_S)[0], ran.get(timeout=PATIENCE_S))
    timers.stop()
    timers.join(PATIENCE_S)
    assert ran.empty()
