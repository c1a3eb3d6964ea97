"""The recording of a core that runs: opened with its header, closed with the final states."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from yunikorn_actors.drivers.live.actors import Actor
from yunikorn_actors.errors import CoreFailed
from yunikorn_actors.machines.machine import Machine
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.recording.recorder import FlightRecorder, Recorder, TraceSettings, recorder_of

TRACE_TIMEOUT_S = 1.0
"""A disk has that long at least, whatever a callback has used up of the time to stop."""


class CoreTrace:
    def __init__(self, trace: str | Path | TraceSettings | None) -> None:
        self._settings = TraceSettings(path=trace) if isinstance(trace, str | Path) else trace
        self._recorder: Recorder | None = None

    def open(self, topology: Topology, driver: str, start_ns: int, config: str) -> Recorder | None:
        """Begin to record, where the core was made with a trace."""
        if self._settings is not None:
            of_run = {
                "driver": driver,
                "seed": None,
                "start_ns": start_ns,
                "config_digest": hashlib.sha256(config.encode()).hexdigest() if config else "",
            }
            self._recorder = recorder_of(self._settings, topology.described() | of_run)
        return self._recorder

    @property
    def failure(self) -> OSError | None:
        return None if self._recorder is None else self._recorder.failure

    @property
    def flight_recorder(self) -> FlightRecorder | None:
        return self._recorder if isinstance(self._recorder, FlightRecorder) else None

    def save(self, path: Path) -> None:
        if self.flight_recorder is None:
            raise TypeError(
                "the core has no flight recorder: make it with trace=TraceSettings(path=..., "
                "flight_recorder_bytes=...)"
            )
        self.flight_recorder.save(path)

    def close(
        self,
        failure: CoreFailed | None,
        machines: Mapping[str, Machine],
        left: Iterable[Actor],
        deadline: float,
    ) -> None:
        """Write the footer: the states in which the machines ended.

        A machine that failed, or that is still at work, is left out: its state may be half changed.
        """
        if self._recorder is None:
            return
        footer: dict[str, Any] = {"states": {}}
        if failure is not None:
            footer["failure"] = str(failure)
        else:
            at_work = {actor.address for actor in left}
            footer["states"] = {
                address: self._recorder.digest_of(machine.canonical_state())
                for address, machine in machines.items()
                if address not in at_work
            }
        self._recorder.close(footer, max(TRACE_TIMEOUT_S, deadline - time.monotonic()))
