"""The ways to run a scenario: in virtual time on one thread, and on a core in service.

In service, on threads or direct, the clock stands still, and moves from timer to timer when the
scenario advances. So no timer fires because a computer is slow, and the core is at rest exactly
when no message is under way. With a scale the clock runs, that much faster than real time; then the
core counts as at rest when no message was under way for a while.
"""

import time
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from yunikorn_actors.core.entry import Gateway
from yunikorn_actors.drivers.live.clock import RealClock, StandingClock
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.quiescence import NoRest
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS, Checker, Simulator
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.codec import TraceDigest
from yunikorn_actors.recording.recorder import FileRecorder, TraceSettings
from yunikorn_actors.runtime.core_arguments import CoreDriver
from yunikorn_actors.scenario.recorded_core import RecordedCore

DriverName = Literal["sim", "threads", "direct"]

INSTANCE: Final = "scenario"
"""A part of every UUID: the same in each run, so that runs can be compared."""
QUIET_S: Final = 0.02
REST_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 0.0005


class Report(NamedTuple):
    messages: int
    virtual_ns: int
    digest: str | None
    """Of all deliveries in their order; None in service, where the order is different each time."""


class Played(Protocol):
    """A core on which steps are performed."""

    @property
    def core(self) -> Gateway: ...

    def settle(self) -> None: ...

    def advance(self, duration_ns: int) -> None: ...


class Driver(Played, Protocol):
    def check(self) -> None:
        """Raise InvariantViolation if, at rest, a resource manager knows something else."""
        ...

    def report(self) -> Report: ...

    def close(self) -> None: ...


class SimulatorDriver:
    def __init__(
        self, *, topology: Topology, seed: int, trace: Path | None, checkers: tuple[Checker, ...],
        replaced_for: tuple[type[Exception], ...] = (),
    ) -> None:  # fmt: skip
        self._digest = TraceDigest()
        self._recorder = (
            None
            if trace is None
            else FileRecorder(TraceSettings(path=trace), trace_header(topology, seed))
        )
        recording = () if self._recorder is None else (self._recorder.add,)
        self.core = Simulator(
            topology,
            chooser=chooser_of(seed),
            checkers=checkers,
            recorders=(*recording, self._digest.add),
            replaced_for=replaced_for,
        )

    def settle(self) -> None:
        self.core.settle()
        if self.core.callback_errors:
            raise self.core.callback_errors[0]

    def advance(self, duration_ns: int) -> None:
        self.core.advance(duration_ns)

    def check(self) -> None:
        """Do nothing: the checkers look after each message."""

    def report(self) -> Report:
        return Report(self.core.delivered, self.core.now_ns - EPOCH_NS, self._digest.hex())

    def close(self) -> None:
        """End the trace; raise if it could not be written in full."""
        if self._recorder is None:
            return
        footer: dict[str, Any] = {"states": {}, "digest": self._digest.hex()}
        if self.core.failure is None:
            states = self.core.states().items()
            footer["states"] = {
                address: self._recorder.digest_of(state) for address, state in states
            }
        else:
            footer["failure"] = repr(self.core.failure)
        self._recorder.close(footer)
        if self._recorder.failure is not None:
            raise self._recorder.failure


class ServiceDriver:
    def __init__(
        self, *, driver: CoreDriver, topology: Topology, trace: Path | None,
        time_scale: int | None = None,
    ) -> None:  # fmt: skip
        """Let the clock stand still, or with a scale run faster than real time."""
        self._standing = StandingClock(EPOCH_NS) if time_scale is None else None
        self._time_scale = time_scale or 1
        self.core = RecordedCore(
            driver=driver, topology=topology.name, settings=topology.settings,
            schedulers=topology.schedulers, instance=topology.instance, trace=trace,
            policies=topology.policies.given,
            clock=self._standing or RealClock(self._time_scale),
        )  # fmt: skip
        self.core.start()
        self._start_ns = self.core.clock.now_ns()

    def settle(self) -> None:
        """Wait until no message is under way, those to callbacks included."""
        deadline = time.monotonic() + REST_TIMEOUT_S
        quiet_s = QUIET_S if self._standing is None else 0.0
        quiet_since: float | None = None
        while True:
            if self.core.failure is not None or self.core.inside.survived:
                # A scenario fails with any machine, also with one that the core would replace.
                raise self.core.failure or self.core.inside.survived[0]
            now = time.monotonic()
            if not self.core.is_settled():
                quiet_since = None
            elif quiet_since is None:
                quiet_since = now
            if quiet_since is not None and now - quiet_since >= quiet_s:
                return
            if now > deadline:
                raise NoRest(
                    f"no rest within {REST_TIMEOUT_S:.0f} s: messages keep coming, or a handler "
                    "or callback does not return"
                )
            time.sleep(_POLL_S)

    def advance(self, duration_ns: int) -> None:
        if self._standing is None:
            time.sleep(duration_ns / self._time_scale / 1e9)
            return
        end_ns = self._standing.now_ns() + duration_ns
        while (due_ns := self.core.next_due_ns) is not None and due_ns <= end_ns:
            self._move_to(self._standing, due_ns)
            self.settle()
        self._move_to(self._standing, end_ns)

    def _move_to(self, clock: StandingClock, now_ns: int) -> None:
        clock.move_to(now_ns)
        self.core.clock_was_moved()

    def check(self) -> None:
        # With a clock that runs nobody knows whether the core is at rest.
        faults = self.core.faults() if self._standing is not None else []
        if faults:
            raise InvariantViolation("at rest: " + "; ".join(faults))

    def report(self) -> Report:
        return Report(self.core.handled, self.core.clock.now_ns() - self._start_ns, None)

    def close(self) -> None:
        self.core.stop()


def trace_header(topology: Topology, seed: int) -> dict[str, Any]:
    return topology.described() | {"driver": "sim", "seed": seed, "start_ns": EPOCH_NS}
