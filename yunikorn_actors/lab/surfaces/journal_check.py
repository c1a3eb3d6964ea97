"""The journal of a run: kept in memory, read as the next core reads it, compared with the truth.

Entries are noted, encoded and framed as on a disk. To read them makes the state again, and now and
then that goes through a snapshot. A core that is killed leaves what stands there at that moment, so
each moment between two messages is one at which it may be compared.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import msgpack
from msgspec.structs import replace

from yunikorn_actors.checks.equality import are_alike
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.journal.frames import check_of, framed, frames_in
from yunikorn_actors.journal.journaled_context import Entries
from yunikorn_actors.journal.restored_state import (
    Entry,
    Truth,
    WrongReplay,
    follows,
    stored_entry,
    tally_of,
)
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.first_difference import differing
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.machine import InvariantViolation, Machine, SetTimer
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Delivery
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.facts import SchedulingHeld
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import image_of

_FOLDED_AFTER: Final = 60
"""At most so many entries are between two snapshots."""
_LOOKS: Final = (5, 20, 80)
"""One entry in so many is a moment at which all is compared."""
_OF_NEXT_CORE: Final = ("paused/", "return/", "planning/")
"""Timers of the absence of a resource manager, and of planning, which begins anew."""
_RECORDS_MAX: Final = 1_000


class Journaled(Oracle):
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._often = draw.one_of(_LOOKS)
        self._context: Context | None = None
        self._publisher: Machine | None = None
        self._is_whole = True
        """Whether the event publisher is the first one: what waits for one that fails is lost."""

    def _begin(self, context: Context, publisher: Machine) -> None:
        self._context, self._publisher = context, publisher
        self._entries = Entries(context)
        self._truth = Truth()
        self._data = bytearray()
        self._check = self._follows = 0
        self._until_fold = self._draw.whole(1, _FOLDED_AFTER)

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        if context is not self._context:
            self._begin(context, simulator.machines[EVENT_PUBLISHER])
            if isinstance(delivery.message, CoreRestored):
                self._truth.begin_with(stored(delivery.message))
        entry = self._entries.of(simulator.taken, simulator.effects, delivery.at_ns)
        if entry is None:
            return
        if not self._draw.number(self._often):
            tallies = {
                name: tally_of(it.state, it.epoch) for name, it in context.partitions.items()
            }
            entry = replace(entry, tallies=tallies, folds=context.folds())
        record = framed(encode(replace(entry, follows=self._check)))
        self._check = check_of(record)
        self._data += record
        if entry.tallies:
            self._look(simulator, f"after {type(delivery.message).__name__}")

    def at_rest(self, world: World) -> None:
        self._look_around(world.simulator, "at rest")
        if self._context is not None:
            faults = [*self._unrefused(self._context, world.simulator.now_ns), *self._forgetting()]
            if faults:
                raise InvariantViolation("journal at rest: " + "; ".join(faults))

    def drained(self, world: World) -> None:
        self._look_around(world.simulator, "in the end")

    def _look_around(self, simulator: Simulator, when: str) -> None:
        if self._context is not None:
            self._look(simulator, when)
            self._until_fold = 0
            self._look(simulator, f"{when}, from a snapshot")

    def _look(self, simulator: Simulator, when: str) -> None:
        try:
            self._read()
        except WrongReplay as wrong:
            raise InvariantViolation(f"journal {when}: {wrong}") from wrong
        faults = [*self._differences(simulator)]
        if faults:
            raise InvariantViolation(f"journal {when}: " + "; ".join(faults))

    # -- reading

    def _read(self) -> None:
        """Read what was written since it was read last."""
        data, self._data = bytes(self._data), bytearray()
        check = self._follows
        for frame in frames_in(data, len(data)):
            if follows(frame.payload) != check:
                raise WrongReplay("an entry does not follow the one before it")
            check = frame.check
            self._truth.take(stored_entry(frame.payload))
            self._until_fold -= 1
        self._follows = check
        if self._until_fold <= 0:
            self._fold()

    def _fold(self) -> None:
        """Have the state go through a snapshot, as bytes."""
        self._until_fold = self._draw.whole(1, _FOLDED_AFTER)
        made = Truth()
        made.begin_with(stored(self._truth.as_message()))
        if made.digest() != self._truth.digest():
            raise WrongReplay("a snapshot does not make the state that it was written from")
        self._truth = made

    # -- what the next core must refuse, or may forget

    def _again(self) -> Truth:
        """Make the truth once more: it will be spoilt."""
        made = Truth()
        made.begin_with(stored(self._truth.as_message()))
        return made

    def _unrefused(self, core: Context, now_ns: int) -> Iterator[str]:
        """What another core had, or facts out of their row, were written by a faulty one."""
        # One for all: what refuses them has not taken anything of them.
        made = self._again()
        for name, it in core.partitions.items():
            tally = tally_of(it.state, it.epoch)
            for word in ("nodes", "applications", "allocations"):
                wrong = replace(tally, **{word: getattr(tally, word) + 1})
                yield from _taken(made, Entry(at_ns=now_ns, tallies={name: wrong}), word)
            for revision in (it.state.revision, it.state.revision + 2):
                facts = FactsAppended(
                    rm_id=it.rm_id, partition=name, epoch=it.epoch, first_revision=revision,
                    facts=(SchedulingHeld(held=False, behind=False, at_ns=now_ns),),
                )  # fmt: skip
                issued = ((FactsAppended.__name__, facts),)
                entry = Entry(at_ns=now_ns, issued=issued)
                yield from _taken(made, entry, f"revision {revision}")

    def _forgetting(self) -> Iterator[str]:
        """Where it has no room for all applications that have ended, the newest stay."""
        for life, truth in self._truth.states.items():
            sizes = {serial: len(encode(app)) for serial, app in truth.finished.items()}
            kept = [*sizes][len(sizes) // 2 :]
            made = self._again()
            made.forget(sum(sizes[it] for it in kept))
            left = [*made.states[life].finished]
            if left != kept:
                yield f"of {life[0]} it keeps {left} of {[*sizes]}"

    # -- comparing

    def _differences(self, simulator: Simulator) -> Iterator[str]:
        assert self._context is not None
        faults = [*of_core(self._truth, self._context)]
        yield from faults
        if faults:
            return
        if simulator.is_at_rest:
            yield from self._of_records(simulator.machines[EVENT_PUBLISHER])
            yield from self._of_timers(simulator)

    def _of_records(self, publisher: Machine) -> Iterator[str]:
        self._is_whole = self._is_whole and publisher is self._publisher
        if not self._is_whole:
            return
        assert isinstance(publisher, EventPublisher)
        here, there = self._truth.publisher.ring, publisher.ring
        if here.next_id != there.next_id:
            yield f"it has {here.next_id} event records, and the core {there.next_id}"
            return
        first = max(here.lowest_id, there.lowest_id, there.next_id - _RECORDS_MAX)
        if here.read(first, _RECORDS_MAX) != there.read(first, _RECORDS_MAX):
            yield "its event records are others than those of the core"

    def _of_timers(self, simulator: Simulator) -> Iterator[str]:
        """Have another core begin, and look at what it arms."""
        again = simulator.topology.first_machines()[CONTEXT]
        effects = again.handle(stored(self._truth.as_message()), simulator.now_ns)
        made = {it.name: it.due_ns for it in effects if isinstance(it, SetTimer)}
        lives = [f"/{name}#{epoch}" for name, epoch in self._truth.states]
        for name, due_ns in simulator.timers.dues(CONTEXT).items():
            if name.startswith(_OF_NEXT_CORE) or not any(life in name for life in lives):
                # One of a partition that has gone does nothing when it is due.
                continue
            if name.startswith("clean/") and not self._is_to_be_cleaned(name):
                continue
            if name not in made:
                yield f"the next core does not arm {name}"
            elif made[name] != due_ns and not name.startswith(("clean/", "confirm/")):
                yield f"the next core arms {name} for {made[name]}, and it is due at {due_ns}"

    def _is_to_be_cleaned(self, timer: str) -> bool:
        """Whether the timer has something to do: its queue may be gone, or in use again."""
        for (name, epoch), state in self._truth.states.items():
            queue = state.queues.get(timer.removeprefix(f"clean/{name}#{epoch}/"))
            if queue is not None:
                return queue.is_to_be_cleaned
        return False


def _taken(made: Truth, entry: Entry, what: str) -> Iterator[str]:
    try:
        made.take(stored_entry(memoryview(encode(entry))))
    except WrongReplay:
        return
    yield f"a record with another {what} is taken"


def of_core(made: Truth, core: Context) -> Iterator[str]:
    """Say in what the truth that was read differs from that of the core."""
    theirs = {(name, it.epoch): it.state for name, it in core.partitions.items()}
    if made.registered != core.registered:
        yield f"it has {differing(made.registered, core.registered)} of who is registered"
    if made.states.keys() != theirs.keys():
        yield f"it has the partitions {[*made.states]}, and the core {[*theirs]}"
        return
    for life, state in theirs.items():
        yield from _of_partition(life[0], made.states[life], state)


def _of_partition(name: str, made: PartitionState, truth: PartitionState) -> Iterator[str]:
    if are_alike(truth, made):
        return
    ours, theirs = image_of(made), image_of(truth)
    kept = ours.pop("folds", None)
    if isinstance(truth.folds, Folds):
        # What came behind the last note is observed by the core that goes on with it.
        again = Folds(truth.folds.policies)
        again.restore(made, kept)
        ours["folds"], theirs["folds"] = again.image(), truth.folds.image()
    found = differing(snapshot(made), snapshot(truth)) or differing(ours, theirs)
    if found:
        yield f"of {name} it has {found}"


def stored(told: CoreRestored) -> CoreRestored:
    return msgpack.decode(encode(told), type=CoreRestored)
