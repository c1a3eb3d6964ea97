"""The recording of a run, as a core writes it: read again, it has to lead to the same.

Machines share nothing, so what each was sent is the whole run: fresh ones that are sent the same
have to do the same and end in the same state. What is sent in their place by a fault that plays one
of them, and a timer that a fault fires before it is due, are in no run of theirs. What else can be
asked of a recording has to be what stands in its messages.
"""

from typing import Final

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import LabSimulator, Oracle, World
from yunikorn_actors.lab.oracles.recording_oracle import wrong_answers
from yunikorn_actors.lab.run_schedule import NamedViolation
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.kept_recording import KeptRecording
from yunikorn_actors.lab.surfaces.temporary_folder import temporary_folder
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

UNLIKE_MACHINES: Final = frozenset({"propose", "fire", "restart"})
"""Faults of whose runs no recording can be run again."""
_OF_TIMES: Final = 8
"""The seed of how long messages waited and took."""
_OF_QUESTIONS: Final = 9


class Replayed(Oracle):
    def __init__(self) -> None:
        self._recording: KeptRecording | None = None

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if self._recording is None:
            assert isinstance(simulator, LabSimulator)
            self._recording = KeptRecording(simulator, Draw(_OF_TIMES))
        self._recording.add(delivery)

    def drained(self, world: World) -> None:
        kept = self._recording
        assert kept is not None
        kept.end(world.simulator)
        # A tape names no draw for it; runs differ in how long they are.
        draw = Draw(_OF_QUESTIONS, len(kept.deliveries))
        policies = world.simulator.topology.policies.given
        with temporary_folder() as folder:
            path = kept.write(folder, draw)
            with TraceReader(path, policies=policies) as trace:
                found = replay(trace).difference
            if found is not None:
                where = f"{found.mailbox}/{found.step} {found.what}"
                raise InvariantViolation(
                    f"the recording, run again: {where} {'; '.join(found.fields)}"
                )
            faults = [*wrong_answers(kept, path, draw, policies)]
        if faults:
            kind = f"recording, {faults[0].partition(':')[0]}"
            raise NamedViolation(kind, f"the recording, asked: {'; '.join(faults)}")
