"""Plays one schedule of a case, and says how it ended."""

import hashlib
import re
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.harness import Schedule, World
from yunikorn_actors.lab.model.judging.judged_run import Difference
from yunikorn_actors.lab.oracles.promises import Broken
from yunikorn_actors.lab.tapes.tape import Entry, Tape
from yunikorn_actors.lab.tapes.tape_names import mailbox_name, topics
from yunikorn_actors.lab.tapes.tape_player import Listening, TapePlayer, TapeWriter
from yunikorn_actors.lab.tapes.tape_verbs import ACTS
from yunikorn_actors.lab.user_program import Exits, Looping, TrialWorld
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.codec import TraceDigest
from yunikorn_actors.messages.scheduling import ProposalRejected, ProposeAllocations


class NamedViolation(InvariantViolation):
    """A violation that says itself of which kind it is: its text differs from run to run."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind: Final = kind


STUCK: Final = "stuck"
"""The kind of failure of a program that has no end: each run that fails so takes long."""
_ID: Final = re.compile(r"\bG\d\d\b")
_NUMBER: Final = re.compile(r"\d+")
"""Of one kind are violations that differ in how many, as those of a small case and a large one."""


class NotRepeatable(CoreError, RuntimeError):
    """Two runs of one schedule differ, so nothing that is found could be found again."""


class Violation(Struct, frozen=True, kw_only=True):
    """What was wrong with a run."""

    text: str
    kind: str
    """Two runs fail alike if this is the same: the id of an invariant, or what raised where."""


class Outcome(Struct, frozen=True, kw_only=True):
    violation: Violation | None
    messages: int
    length: int
    """How many messages were delivered while the schedule chose; what follows tidies up."""
    stimuli: int
    """Calls, answers and timers that came from outside."""
    deliveries: list[Delivery] = field(default_factory=list)
    held: dict[str, bool] = field(default_factory=dict)
    """What is to hold sometimes, each with whether it has."""
    unjudged: frozenset[str] = frozenset()
    """What is to hold always, and is of objects that were never there."""
    not_played: tuple[str, ...] = ()
    """What the tape says and the run did not have, each with the reason."""
    keeps_order: bool = True
    """Whether the steps were done in the order in which they are written."""

    @property
    def ok(self) -> bool:
        return self.violation is None

    @property
    def proposed(self) -> int:
        """How many decisions the schedulers proposed."""
        messages = (it.message for it in self.deliveries)
        return sum(len(it.proposals) for it in messages if isinstance(it, ProposeAllocations))

    @property
    def refused(self) -> int:
        """How many of them came too late, or were wrong otherwise."""
        return sum(isinstance(it.message, ProposalRejected) for it in self.deliveries)

    def shrunk(self, found: Tape, left: Tape) -> str:
        """Say for people with how many deviations it was found, and how many are left."""
        stimuli = "1 stimulus" if self.stimuli == 1 else f"{self.stimuli} stimuli"
        return (
            f"with {_counted(len(found.entries), 'deviation')}, shrunk to {len(left.entries)} "
            f"({stimuli}, {_counted(self.messages, 'message')})"
        )

    def order(self) -> bytes:
        """Return a digest of who got which type of message from whom, in which order."""
        told = (f"{it.mailbox} {it.sender} {type(it.message).__name__}" for it in self.deliveries)
        return hashlib.sha256("\n".join(told).encode()).digest()[:16]

    def digest(self) -> str:
        """Return a digest of all deliveries and everything in them."""
        digest = TraceDigest()
        for delivery in self.deliveries:
            digest.add(delivery)
        return digest.hex()


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def play(case: Case, tape: Tape, checkers: tuple[Checker, ...] = ()) -> Outcome:
    """Play a tape; raise TapeError if it does not fit the case.

    What the checkers get to see is this one run, so they have to be new.
    """
    player = TapePlayer(tape)
    return run_tape(world_of(case, player, tape, checkers), tape, player)


def run_tape(world: World, tape: Tape, player: TapePlayer) -> Outcome:
    """Play a tape in a new world; its outcome says what of the tape did not come about."""
    outcome = run(world)
    absent = _not_played(world, tape, player, has_failed=not outcome.ok)
    return replace(outcome, not_played=tuple(absent))


def _not_played(world: World, tape: Tape, player: TapePlayer, *, has_failed: bool) -> Iterator[str]:
    program = world if isinstance(world, TrialWorld) else None
    steps = {step.label for step in program.made} if program else set()
    begun = dict(program.begun) if program else {}
    for label in tape.without:
        if label not in steps:
            yield f"without {label}: there was no such step"
    for entry in tape.entries:
        if why := player.absent(entry, world, has_failed=has_failed):
            yield f"{entry}: {why}"
        elif entry in world.in_vain:
            yield f"{entry}: there was nothing to do it to"
        elif entry.verb == "do" and begun.get(entry.what, entry.what) != entry.what:
            yield f"{entry}: the program did {begun[entry.what]} then"


def explore(case: Case, schedule: Schedule, checkers: tuple[Checker, ...] = ()) -> Outcome:
    """Let a schedule choose."""
    return run(world_of(case, schedule, case.tape(), checkers))


def write(case: Case, schedule: Schedule, checkers: tuple[Checker, ...] = ()) -> Tape:
    """Let a schedule choose, and write down what it chose."""
    writer = TapeWriter(schedule)
    world = world_of(case, writer, case.tape(), checkers)
    run(world)
    return case.tape(*as_begun(writer.written(), world))


def events_in(case: Case, tape: Tape) -> list[str]:
    """Name all that happens when a tape is played, in its order."""
    listening = Listening(TapePlayer(tape))
    run(world_of(case, listening, tape))
    return listening.events


def world_of(
    case: Case, schedule: Schedule, tape: Tape, checkers: tuple[Checker, ...] = ()
) -> World:
    """Make the world in which the case goes on: by what the tape leaves of it."""
    case = case.on(tape.topology, tape.schedulers, tape.policies)
    if case.workload is None:
        return World(case, schedule, case.left(tape), ACTS, checkers)
    return TrialWorld(case, schedule, frozenset(tape.without), ACTS, checkers)


def steps_of(case: Case, tape: Tape) -> tuple[str, ...]:
    """Return the steps that the tape leaves; those of a program show only when it runs."""
    world = world_of(case, TapePlayer(tape), tape)
    if isinstance(world, TrialWorld):
        run(world)
        return tuple(step.label for step in world.done())
    return tuple(step.label for step in case.left(tape))


def as_played(case: Case, tape: Tape) -> Tape:
    """Name the steps of a program as they come, and leave out only those that would come."""
    world = world_of(case, TapePlayer(tape), tape)
    if not isinstance(world, TrialWorld):
        return tape
    run(world)
    without = tuple(step.label for step in world.made if step.label in tape.without)
    return replace(tape, entries=as_begun(tape.entries, world), without=without)


def as_begun(entries: tuple[Entry, ...], world: World) -> tuple[Entry, ...]:
    """Name the steps that entries begin by what the program did then: it shows only in the run."""
    if not isinstance(world, TrialWorld):
        return entries
    begun: dict[str, deque[str]] = {}
    for wanted, name in world.begun:
        begun.setdefault(wanted, deque()).append(name)
    return tuple(
        replace(entry, what=begun[entry.what].popleft())
        if entry.verb == "do" and begun.get(entry.what)
        else entry
        for entry in entries
    )


def run(world: World) -> Outcome:
    """Play a new world to its end; whatever goes wrong in it is its outcome."""
    violation: Violation | None = None
    try:
        world.run()
    except Exception as error:  # noqa: BLE001 - whatever a run raises is what was looked for
        violation = violation_of(error)
    return Outcome(
        violation=violation,
        messages=world.simulator.delivered,
        length=world.length or world.simulator.delivered,
        stimuli=world.stimuli,
        deliveries=world.deliveries,
        held=world.promises.held,
        unjudged=frozenset(world.promises.unjudged),
        keeps_order=world.keeps_order,
    )


def violation_of(error: Exception) -> Violation:
    """Name an error; one that the core did not expect also by where it was raised."""
    if isinstance(error, Exits):
        return _raised(error.__cause__ or error)
    if isinstance(error, Broken):
        return Violation(text=str(error), kind=error.promise)
    if isinstance(error, Difference):
        return Violation(text=f"by the model, {error}", kind=f"model, {error.kind}")
    if isinstance(error, NamedViolation):
        return Violation(text=str(error), kind=error.kind)
    if isinstance(error, InvariantViolation):
        found = _ID.search(str(error))
        kind = found[0] if found else _NUMBER.sub("N", str(error))
        return Violation(text=str(error), kind=kind)
    if isinstance(error, CoreError):
        return Violation(text=str(error), kind=type(error).__name__)
    if isinstance(error, Looping):
        return Violation(text=str(error), kind=STUCK)
    return _raised(error)


def _raised(error: BaseException) -> Violation:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} in {frame.name}"
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    return Violation(text=f"{error!r} in {frame.name} ({place})", kind=where)


def compare(first: Sequence[Delivery], second: Sequence[Delivery]) -> None:
    """Raise NotRepeatable with the first message in which two runs differ."""
    for number, (one, other) in enumerate(zip_longest(first, second), 1):
        if one != other:
            raise NotRepeatable(
                f"two runs of one schedule differ from message {number} on: {_shown(one)}, then "
                f"{_shown(other)}: something in the code is not determined by what it is told, as "
                "id(), or a value that is kept from run to run"
            )


def _shown(delivery: Delivery | None) -> str:
    if delivery is None:
        return "the end"
    about = ", ".join(topics(delivery.message))
    return f"{type(delivery.message).__name__}({about}) to {mailbox_name(delivery.mailbox)}"
