"""The recording of a run, kept in memory as a core would write it, and written where it is read."""

from pathlib import Path
from typing import Any, Final

from yunikorn_actors.lab.harness import LabSimulator
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.recording.recorder import (
    CLOSE_TIMEOUT_S,
    FileRecorder,
    FlightRecorder,
    Recorder,
    TraceSettings,
)
from yunikorn_actors.scenario.drivers import trace_header

FILE: Final = "run.trace"
_IN_MEMORY_BYTES: Final = 1 << 30
_TOOK_NS: Final = (1_000, 250_000, 250_000, 3_000_000)
_WAITED_NS: Final = (0, 40_000, 700_000, 2_000_000)


class _Recorder(Recorder):
    """Keeps in memory what others write into a file."""

    def __init__(self, header: dict[str, Any]) -> None:
        super().__init__(TraceSettings(path=FILE), header)
        self.data = bytearray(self._head(1))
        self.ends: Final = [len(self.data)]
        """Where each record ends, the header among them."""

    def _gather(self, mailbox: str, data: bytes) -> None:  # noqa: ARG002 - one line for all
        self.data += data
        self.ends.append(len(self.data))

    def close(self, footer: dict[str, Any], timeout: float = CLOSE_TIMEOUT_S) -> None:  # noqa: ARG002
        self.data += self._foot(footer)

    @property
    def may_hold_secrets(self) -> bool:
        """Whether something may be written otherwise than it came."""
        return self._is_wary


class KeptRecording:
    """Gathers the messages of a run; with a draw it says as well how long each waited and took.

    In a simulated run nobody measures that, so a core that is asked about it has nothing to say.
    """

    def __init__(self, simulator: LabSimulator, times: Draw | None = None) -> None:
        self.deliveries: Final[list[Delivery]] = []
        """With their times, as they have to be read again."""
        self._times = times
        self._took_ns: dict[str, int] = {}
        """By mailbox, how long it took to handle the last."""
        self._header = trace_header(simulator.topology, 0)
        self._kept = _Recorder(self._header)
        self._footer: dict[str, Any] = {}

    def add(self, delivery: Delivery) -> None:
        if self._times is not None:
            waited_ns = self._times.one_of(_WAITED_NS)
            delivery = delivery._replace(sent_ns=delivery.at_ns - waited_ns)
            if delivery.mailbox in self._took_ns:
                took_ns = self._took_ns[delivery.mailbox]
                self._kept.took(delivery.mailbox, took_ns)
                delivery = delivery._replace(previous_took_ns=took_ns)
            self._took_ns[delivery.mailbox] = self._times.one_of(_TOOK_NS)
        self.deliveries.append(delivery)
        self._kept.add(delivery)

    def end(self, simulator: LabSimulator) -> None:
        """The run is over: here is what its machines have come to."""
        machines = simulator.machines
        states = {it: self._kept.digest_of(machines[it].canonical_state()) for it in machines}
        for mailbox, took_ns in self._took_ns.items():
            self._kept.took(mailbox, took_ns)
        self._footer = {"states": states, "digest": "", "failure": ""}
        self._kept.close(self._footer)

    @property
    def took_ns(self) -> dict[str, int]:
        """How long the last handling of each mailbox took."""
        return self._took_ns

    @property
    def data(self) -> bytes:
        return bytes(self._kept.data)

    @property
    def ends(self) -> list[int]:
        return self._kept.ends

    @property
    def may_hold_secrets(self) -> bool:
        return self._kept.may_hold_secrets

    def write(self, folder: str, draw: Draw) -> Path:
        """Write it in one of the ways in which a core does."""
        path = Path(folder, FILE)
        match draw.number(4):
            case 0:
                self._recorded(FileRecorder(TraceSettings(path=path), self._header))
            case 1:
                self._recorded(FileRecorder(TraceSettings(path=path, compress=True), self._header))
            case 2:
                settings = TraceSettings(path=path, flight_recorder_bytes=_IN_MEMORY_BYTES)
                flight = FlightRecorder(settings, self._header)
                self._add_to(flight)
                # A footer that names a failure has it written, though here the text is empty.
                flight.close(self._footer)
            case _:
                path.write_bytes(self.data)
        return path

    def _recorded(self, recorder: FileRecorder) -> None:
        self._add_to(recorder)
        recorder.close(self._footer)
        if recorder.failure is not None:
            raise recorder.failure

    def _add_to(self, recorder: Recorder) -> None:
        for it in self.deliveries:
            if it.previous_took_ns is not None:
                recorder.took(it.mailbox, it.previous_took_ns)
            recorder.add(it)
        for mailbox, took_ns in self._took_ns.items():
            recorder.took(mailbox, took_ns)
