"""What a reader counts over time, seen by looking at the truth after every message.

Nothing here knows facts: what has come and gone follows from what there was and what there is.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from yunikorn_actors.machines.context import Context
from yunikorn_actors.service.read.projection import AppNote
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.durations import MINUTE

_SAMPLES: Final = 1_440
"""A day of minutes."""
_NOTHING: Final = AppNote()
_ENDS: Final = {"Completed": "completed", "Failed": "failed", "Rejected": "rejected"}


class _Life:
    """What was seen of one life of a partition."""

    def __init__(self) -> None:
        self.revision = -1
        self.placed: dict[str, str] = {}
        """By UUID, the queue."""
        self.active: dict[int, str] = {}
        """By serial, the queue."""
        self.ended: dict[int, None] = {}
        self.newest = 0
        """The highest serial that was seen."""
        self.peaks: dict[int, dict[str, int]] = {}
        self.nodes: dict[str, None] = {}


class Seen:
    def __init__(self) -> None:
        self._lives: dict[tuple[str, int], _Life] = {}
        self._at_first: Counter[str] = Counter()
        """Allocations by queue when this began."""
        self._placed: Counter[str] = Counter()
        self._ended: Counter[tuple[str, str]] = Counter()
        self._unknown_ends = 0
        """Applications that ended and were forgotten in one go, or with their partition."""
        self._submitted = 0
        self._nodes_gone = 0
        self._is_exact = True
        """Whether nothing could come and go in one go, as where messages are handled together."""
        self._running = self._containers = 0
        self._samples: list[tuple[int, int, int]] = []
        self._due_ns = 0

    def begin(self, context: Context, now_ns: int) -> None:
        self._due_ns = now_ns + MINUTE
        self.look(context, now_ns, is_one=True)
        self._at_first = self._in_queues()
        self._placed.clear()
        self._ended.clear()
        self._submitted = self._nodes_gone = self._unknown_ends = 0

    def _in_queues(self) -> Counter[str]:
        return Counter(queue for life in self._lives.values() for queue in life.placed.values())

    def look(self, context: Context, now_ns: int, *, is_one: bool) -> None:
        """Look at the truth after a message, or after more that was handled as one."""
        self.catch_up(now_ns)
        self._is_exact = self._is_exact and is_one
        lives = {(name, it.epoch): it.state for name, it in context.partitions.items()}
        for key in [key for key in self._lives if key not in lives]:
            gone = self._lives.pop(key)
            self._unknown_ends += len(gone.active)
            self._nodes_gone += len(gone.nodes)
        for key, state in lives.items():
            life = self._lives.setdefault(key, _Life())
            if life.revision != state.revision:
                life.revision = state.revision
                self._look_at(life, state)
        self._running = sum(it.root.running_apps for it in lives.values() if it.queues)
        self._containers = sum(len(life.placed) for life in self._lives.values())

    def catch_up(self, now_ns: int) -> None:
        """Take the samples of the minutes that are over, before anything changes."""
        while self._due_ns <= now_ns:
            self._samples.append((self._due_ns, self._running, self._containers))
            self._due_ns += MINUTE
        del self._samples[:-_SAMPLES]

    def _look_at(self, life: _Life, state: PartitionState) -> None:
        placed, active = dict[str, str](), dict[int, str]()
        for app in state.applications.values():
            active[app.serial] = app.queue.path
            placed.update(dict.fromkeys(app.allocations, app.queue.path))
            peak = life.peaks.setdefault(app.serial, {})
            for book in (app.allocated, app.placeholders):
                for kind, amount in book.items():
                    peak[kind] = max(amount, peak.get(kind, 0))
        self._placed.update(queue for uuid, queue in placed.items() if uuid not in life.placed)
        new = active.keys() - life.active.keys()
        self._submitted += len(new)
        for serial, ended in state.finished.items():
            if serial not in life.ended and serial not in life.active:
                # It came and ended in one go: a rejection is one fact.
                self._submitted += ended.state.value != "Rejected"
            if serial not in life.ended and ended.state.value in _ENDS:
                queue = (
                    ""
                    if serial not in life.active and ended.state.value == "Rejected"
                    else ended.queue
                )
                self._ended[queue, _ENDS[ended.state.value]] += 1
        self._unknown_ends += sum(
            serial not in active and serial not in state.finished for serial in life.active
        )
        known = active.keys() | state.finished.keys()
        newest = max(known, default=life.newest)
        # A small history may have forgotten what was rejected in the same message.
        self._unknown_ends += sum(it not in known for it in range(life.newest + 1, newest + 1))
        life.newest = newest
        self._nodes_gone += len(life.nodes.keys() - state.nodes.keys())
        life.placed, life.active = placed, active
        life.ended = dict.fromkeys(state.finished)
        life.nodes = dict.fromkeys(state.nodes)
        for serial in [it for it in life.peaks if it not in active and it not in state.finished]:
            del life.peaks[serial]

    # -- comparing

    def differences(self, side: ReadSide, context: Context) -> Iterator[str]:
        yield from self._of_event_counts(side)
        if [tuple(it) for it in side.history.samples] != self._samples:
            found = [*side.history.samples][-3:]
            yield f"its history ends with {found}, expected {self._samples[-3:]}"
        for name, partition in context.partitions.items():
            yield from self._of_notes(side.books[name], self._lives[name, partition.epoch])

    def _of_event_counts(self, side: ReadSide) -> Iterator[str]:
        counted, stands = side.event_counts, self._in_queues()
        for queue in {**counted.allocated, **counted.released, **stands}:
            came, went = counted.allocated[queue], counted.released[queue]
            if self._at_first[queue] + came - went != stands[queue]:
                yield (
                    f"it counts {came} allocations that came to {queue} and {went} that went, and "
                    f"{stands[queue]} are there"
                )
            if came < self._placed[queue] or (self._is_exact and came != self._placed[queue]):
                yield f"it counts {came} allocations of {queue}, and {self._placed[queue]} came"
        if counted.nodes_removed < self._nodes_gone:
            yield f"it counts {counted.nodes_removed} nodes that went, and {self._nodes_gone} did"
        for key, count in self._ended.items():
            if not count <= counted.ended[key] <= count + self._unknown_ends:
                yield f"it counts {counted.ended[key]} applications {key}, and {count} ended so"
        if counted.submitted["new"] < self._submitted:
            yield f"it counts {counted.submitted['new']} applications, and {self._submitted} came"

    def _of_notes(self, book: Book, life: _Life) -> Iterator[str]:
        state, notes = book.state, book.notes
        for serial in notes.apps:
            if serial not in life.active and serial not in state.finished:
                yield f"it keeps a note of application {serial}, which has gone"
        for uuid in notes.requested:
            if uuid not in life.placed:
                yield f"it keeps when {uuid} was asked for, which has gone"
        for app in state.applications.values():
            noted = notes.apps.get(app.serial, _NOTHING)
            yield from _of_application(app, noted, life.peaks[app.serial])


def _of_application(app: Application, noted: AppNote, peaks: dict[str, int]) -> Iterator[str]:
    for kind, amount in peaks.items():
        peak = noted.peak.get(kind, 0)
        if peak < amount:
            yield f"it has a peak of {peak} {kind} of {app.id}, which had {amount}"
    waiting = {key: ask for key, ask in app.asks.items() if ask.is_open}
    for key in noted.asks:
        if key not in waiting:
            yield f"it keeps a log of {key} of {app.id}, which waits no more"
    for key, ask in waiting.items():
        if ask.shortage is not GateKind.NONE and not getattr(noted.asks.get(key), "log", None):
            yield f"it does not say why {key} of {app.id} waits"
