"""The recording of a run, as a core writes it: read again, it has to lead to the same.

Machines share nothing, so what each was sent is the whole run: fresh ones that are sent the same
have to do the same and end in the same state. What is sent in their place by a fault that plays one
of them, and a timer that a fault fires before it is due, are in no run of theirs.
"""

from pathlib import Path
from typing import Any, Final

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.lab.sides.temporary_folder import temporary_folder
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.recording.recorder import CLOSE_TIMEOUT_S, Recorder, TraceSettings
from yunikorn_actors.scenario.drivers import trace_header
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

UNLIKE_MACHINES: Final = frozenset({"propose", "fire", "restart"})
"""Faults of whose runs no recording can be run again."""
_FILE: Final = "run.trace"


class _Kept(Recorder):
    """Keeps in memory what others write into a file."""

    def __init__(self, header: dict[str, Any]) -> None:
        super().__init__(TraceSettings(path=_FILE), header)
        self.data = bytearray(self._head(1))

    def _gather(self, mailbox: str, data: bytes) -> None:  # noqa: ARG002 - one line for all
        self.data += data

    def close(self, footer: dict[str, Any], timeout: float = CLOSE_TIMEOUT_S) -> None:  # noqa: ARG002
        self.data += self._foot(footer)


class Replayed(Oracle):
    def __init__(self) -> None:
        self._recorder: _Kept | None = None

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if self._recorder is None:
            self._recorder = _Kept(trace_header(simulator.topology, 0))
        self._recorder.add(delivery)

    def drained(self, world: World) -> None:
        recorder, machines = self._recorder, world.simulator.machines
        assert recorder is not None
        states = {it: recorder.digest_of(machines[it].canonical_state()) for it in machines}
        recorder.close({"states": states, "digest": "", "failure": ""})
        with temporary_folder() as folder:
            path = Path(folder, _FILE)
            path.write_bytes(recorder.data)
            with TraceReader(path, policies=world.simulator.topology.policies.given) as trace:
                found = replay(trace).difference
        if found is not None:
            where = f"{found.mailbox}/{found.step} {found.what}"
            raise InvariantViolation(f"the recording, run again: {where} {'; '.join(found.fields)}")
