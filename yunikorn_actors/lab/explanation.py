"""Explains a failing tape: when all is lost, where a passing run departs, which messages race.

- The point of no return: for each prefix of the run the share of random continuations that fail.
- The nearest passing run: the same tape with one entry left out.
- The culprit: a message that is held holds what is behind it in its channel. The hold is moved
  along the channel; the last message with which the run still fails is the one that matters.
- The race: two messages of one mailbox that come in the other order in the passing run. For users'
  own code a step is an event of their callback, too: both change the same resource manager.
"""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.choosers import Channel
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.harness import Schedule, World
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import STUCK, Outcome, run, run_tape, world_of
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.strategies import Uniform
from yunikorn_actors.lab.tapes.tape import Entry, Tape
from yunikorn_actors.lab.tapes.tape_player import Listening, TapePlayer
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY
from yunikorn_actors.recording.recorder import FileRecorder, TraceSettings
from yunikorn_actors.scenario.drivers import trace_header

SUFFIXES: Final = 20
"""So often a prefix is continued at random."""
POINTS: Final = 8
"""So many prefixes make the curve, and those around the point of no return."""
BEHIND_MAX: Final = 16
"""So many messages behind one that is held are tried."""

MESSAGE: Final = re.compile(r"(?P<what>\w+\(.*\)) from (?P<sender>\S.*) to (?P<to>\S.*?)(?: #\d+)?")
_MACHINES: Final = frozenset({CONTEXT, EVENT_PUBLISHER, RM_PROXY, "caller"})
"""Mailboxes that are no callback; those of Schedulers are neither."""
_WAITS: Final = re.compile(r" waits(?: #\d+)?$")


class Point(Struct, frozen=True, kw_only=True):
    events: int
    """The length of the prefix."""
    share: float
    """How many of its continuations fail."""


class Race(Struct, frozen=True, kw_only=True):
    mailbox: str
    first: str
    """What came first in the failing run, and second in the passing one."""
    second: str


class Culprit(Struct, frozen=True, kw_only=True):
    """What matters of the messages that one entry holds."""

    held: Entry
    message: str


class Divergence(Struct, frozen=True, kw_only=True):
    """Where the nearest passing run departs."""

    left_out: Entry
    """The tape without this entry passes."""
    alike: int
    """The number of events before."""
    here: str
    there: str


class Explanation(Struct, frozen=True, kw_only=True):
    case: Case
    tape: Tape
    outcome: Outcome
    events: tuple[str, ...]
    curve: tuple[Point, ...]
    no_return: int | None
    """After so many events every continuation fails; None if only the last message decides."""
    deciding: Entry | None
    """What the tape does just before the last of these events, if it does something there."""
    divergence: Divergence | None
    race: Race | None
    culprits: tuple[Culprit, ...] = ()
    """Where they are not the messages that the tape names."""


class Explainer:
    def __init__(
        self,
        case: Case,
        tape: Tape,
        *,
        checkers: Callable[[], tuple[Checker, ...]] = oracles,
        suffixes: int = SUFFIXES,
    ) -> None:
        self._case = case
        self._tape = tape
        self._checkers = checkers
        self._suffixes = suffixes
        self._shares: dict[int, float] = {}
        self._kind = ""
        self._done: list[tuple[int, Entry]] = []
        """What the tape did in the last run that was played, each after how many events."""

    def explain(self) -> Explanation:
        """Play the tape, its prefixes and its neighbours."""
        outcome, events = self._played(self._tape)
        done = dict(self._done)
        self._kind = "" if outcome.violation is None else outcome.violation.kind
        if self._kind == STUCK:
            self._suffixes = 0
        no_return = self._no_return(len(events)) if self._suffixes else None
        curve = self._curve(no_return) if self._suffixes else ()
        deciding = done.get(no_return - 1) if no_return else None
        turning = events[no_return - 1] if no_return and deciding is None else ""
        divergence, race = self._compared(self._tape, events, turning)
        culprits = self._culprits() if self._kind and self._kind != STUCK else ()
        if culprits:
            pointed = self._tape
            for it in culprits:
                pointed = _moved(pointed, it)
            _, race = self._compared(pointed, self._played(pointed)[1], turning)
        return Explanation(
            case=self._case, tape=self._tape, outcome=outcome, events=events,
            curve=curve, no_return=no_return, deciding=deciding,
            divergence=divergence, race=race, culprits=culprits,
        )  # fmt: skip

    def _played(self, tape: Tape) -> tuple[Outcome, tuple[str, ...]]:
        player = TapePlayer(tape)
        listening = _Noting(player)
        world = world_of(self._case, listening, tape, self._checkers())
        outcome = run_tape(world, tape, player)
        self._done = listening.done
        return outcome, (*listening.events, *listening.fatal)

    def _run(self, tape: Tape, schedule: Schedule) -> Outcome:
        return run(world_of(self._case, schedule, tape, self._checkers()))

    # -- the point of no return

    def _share(self, events: int) -> float:
        """Return how many of the random continuations of a prefix fail alike."""
        if events not in self._shares:
            failed = sum(self._fails(events, number) for number in range(self._suffixes))
            self._shares[events] = failed / self._suffixes
        return self._shares[events]

    def _fails(self, events: int, number: int) -> bool:
        schedule = _Prefix(TapePlayer(self._tape), events, Uniform(Draw(events, number)))
        violation = self._run(self._tape, schedule).violation
        return violation is not None and violation.kind == self._kind

    def _no_return(self, length: int) -> int | None:
        """Return the shortest prefix that always fails, as all longer ones do that were tried.

        Some twenty continuations of a prefix may fail by chance: so it is behind each that passed.
        """
        for number in range(POINTS):
            self._share(number * length // (POINTS - 1))
        if self._share(length) < 1:
            return None
        while True:
            low = max((it for it, share in self._shares.items() if share < 1), default=-1)
            high = min(it for it in self._shares if it > low)
            if high - low <= 1:
                return high
            self._share((low + high) // 2)

    def _curve(self, no_return: int | None) -> tuple[Point, ...]:
        if no_return:
            self._share(no_return - 1)
        shares = sorted(self._shares.items())
        return tuple(Point(events=events, share=share) for events, share in shares)

    # -- the culprit

    def _culprits(self) -> tuple[Culprit, ...]:
        """Move each hold along its channel as far as the run fails alike, the others as moved."""
        tape, culprits = self._tape, []
        for entry in self._tape.entries:
            if entry.verb != "hold" or self._fails_alike(_without(tape, entry)):
                continue
            behind = self._behind(tape, entry.what)[:BEHIND_MAX]
            moves = (Culprit(held=entry, message=message) for message in behind)
            failing = [it for it in moves if self._fails_alike(_moved(tape, it))]
            if failing:
                tape = _moved(tape, failing[-1])
                culprits.append(failing[-1])
        return tuple(culprits)

    def _fails_alike(self, tape: Tape) -> bool:
        violation = self._run(tape, TapePlayer(tape)).violation
        return violation is not None and violation.kind == self._kind

    def _behind(self, tape: Tape, message: str) -> list[str]:
        """Return what is sent behind a message in its channel, delivered by the end or not."""
        listening = Listening(TapePlayer(tape))
        world = world_of(self._case, listening, tape, self._checkers())
        run(world)
        sent = dict.fromkeys((*listening.events, *world.simulator.names.values()))
        channel = [it for it in sent if _channel(it) == _channel(message)]
        return channel[channel.index(message) + 1 :] if message in channel else []

    # -- the nearest passing run

    def _compared(
        self, tape: Tape, events: tuple[str, ...], turning: str
    ) -> tuple[Divergence | None, Race | None]:
        nearest: tuple[Divergence, tuple[str, ...]] | None = None
        for entry in tape.entries:
            outcome, others = self._played(_without(tape, entry))
            alike = _alike(events, others)
            if outcome.ok and (nearest is None or alike > nearest[0].alike):
                here, there = _at(events, alike), _at(others, alike)
                nearest = (
                    Divergence(left_out=entry, alike=alike, here=here, there=there),
                    others,
                )
        if nearest is None:
            return None, None
        is_users = self._case.workload is not None
        left_out = nearest[0].left_out
        suspects = (left_out.what, turning)
        # Behind a fault much comes in another order: that is a race if it is about a suspect.
        is_fault = left_out.verb != "hold"
        race = race_of(events, nearest[1], suspects, steps=is_users, of_suspects=is_fault)
        return nearest[0], race


class _Noting(Listening):
    """Notes as well what a tape does, each after how many events."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule)
        self.done: list[tuple[int, Entry]] = []

    def choose(self, world: World) -> Channel | Entry | None:
        choice = super().choose(world)
        if isinstance(choice, Entry):
            self.done.append((len(self.events), choice))
        return choice


def _without(tape: Tape, entry: Entry) -> Tape:
    return replace(tape, entries=tuple(it for it in tape.entries if it is not entry))


def _moved(tape: Tape, to: Culprit) -> Tape:
    """Hold the culprit instead, and not what is before it."""
    moved = replace(to.held, what=to.message)
    return replace(tape, entries=tuple(moved if it is to.held else it for it in tape.entries))


def _channel(event: str) -> tuple[str, str] | None:
    found = MESSAGE.fullmatch(event)
    return None if found is None else (found["sender"], found["to"])


def _alike(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    both = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))


def _at(events: tuple[str, ...], index: int) -> str:
    return events[index] if index < len(events) else "the end"


def race_of(
    failing: tuple[str, ...],
    passing: tuple[str, ...],
    suspects: tuple[str, ...],
    *,
    steps: bool = False,
    of_suspects: bool = False,
) -> Race | None:
    """Find two events of one mailbox in opposite orders; rather suspects, then the earliest.

    With `of_suspects` one of them has to be one.

    Steps of a program are compared by their place among the steps: it may do something else there.
    """
    same = dict(zip(_steps_in(failing), _steps_in(passing), strict=False)) if steps else {}
    found: list[tuple[int, int, int, Race]] = []
    for mailbox, names in _by_mailbox(failing, steps=steps).items():
        index_of = {name: index for index, name in enumerate(passing)}
        places = {name: index_of.get(same.get(name, name)) for _, name in names}
        known = [(index, name, at) for index, name in names if (at := places[name]) is not None]
        for number, (second_index, second, second_at) in enumerate(known):
            for first_index, first, first_at in known[:number]:
                if first_at > second_at:
                    race = Race(mailbox=mailbox, first=first, second=second)
                    others = sum(1 for suspect in suspects if suspect not in {first, second})
                    if others < len(suspects) or not of_suspects:
                        found.append((others, second_index, -first_index, race))
    return min(found, key=lambda it: it[:3])[3] if found else None


def _by_mailbox(events: tuple[str, ...], *, steps: bool) -> dict[str, list[tuple[int, str]]]:
    """Return the events of each mailbox in their order, with their places in the whole."""
    boxes: dict[str, list[tuple[int, str]]] = {}
    for index, name in enumerate(events):
        found = MESSAGE.fullmatch(name)
        if found is not None:
            boxes.setdefault(found["to"], []).append((index, name))
    if steps:
        steps_in = dict.fromkeys(_steps_in(events))
        done = [(index, name) for index, name in enumerate(events) if name in steps_in]
        for mailbox, names in boxes.items():
            if not _is_machine(mailbox):
                names[:] = sorted((*names, *done))
    return boxes


def _steps_in(events: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in events if name.startswith("step ") and not _WAITS.search(name))


def _is_machine(mailbox: str) -> bool:
    return mailbox.startswith("scheduler") or mailbox in _MACHINES


class _Prefix:
    """Follows a schedule up to a number of events, and then another."""

    watched: frozenset[str] | None = None

    def __init__(self, schedule: Schedule, events: int, then: Schedule) -> None:
        self._schedule = schedule if events else then
        self._left = events
        self._then = then

    def choose(self, world: World) -> Channel | Entry | None:
        return self._schedule.choose(world)

    def happened(self, event: str) -> None:
        self._schedule.happened(event)
        self._left -= 1
        if not self._left:
            self._schedule = self._then

    def confirmation(self, name: str) -> str:
        return self._schedule.confirmation(name)


# -- in words


def explanation_lines(it: Explanation) -> Iterator[str]:
    """Say it in English."""
    steps = {step.name: step.explained() for step in it.case.steps}

    def shown(event: str) -> str:
        return steps.get(event, event)

    if it.race is not None:
        yield f"the race, at {it.race.mailbox}:"
        yield f"  {shown(it.race.first)}"
        yield "  comes before"
        yield f"  {shown(it.race.second)}"
        yield "  and in the nearest passing run after it"
    for culprit in it.culprits:
        yield f"the culprit, behind {culprit.held.what}:"
        yield f"  {culprit.message}"
        yield "  holding this one alone fails as well; what is behind it does not matter"
    if it.divergence is not None:
        yield f"the nearest passing run is without: {_entry(it, it.divergence.left_out)}"
        yield f"  after {it.divergence.alike} events alike"
        yield f"  here:  {shown(it.divergence.here)}"
        yield f"  there: {shown(it.divergence.there)}"
    yield from _no_return_lines(it, shown)


def _entry(it: Explanation, entry: Entry) -> Entry:
    return it.case.explained(replace(it.tape, entries=(entry,))).entries[0]


def _no_return_lines(it: Explanation, shown: Callable[[str], str]) -> Iterator[str]:
    if not it.curve:
        return
    if it.no_return is None:
        yield "the point of no return: the last message; before it some continuation passes"
    elif it.no_return == 0:
        yield "the point of no return: the start; every order fails"
    else:
        event = shown(it.events[it.no_return - 1])
        at = f"event {it.no_return} of {len(it.events)}"
        what = at if it.deciding is None else f"{_entry(it, it.deciding)}, before {at}"
        yield f"the point of no return: {what}, {event}"
    yield "  failing continuations by events played:"
    for point in it.curve:
        yield f"  {point.events:5} {point.share:4.0%} {'#' * round(20 * point.share)}".rstrip()


# -- as a drawing

_DRAWN_MAX: Final = 60


def mermaid(it: Explanation) -> str:
    """Draw the run as a sequence diagram of Mermaid, with a note at both ends of the race."""
    steps = {step.name: step.explained() for step in it.case.steps}
    columns: dict[str, str] = {"the program": "p0"}
    lines: list[str] = []

    def column(name: str) -> str:
        return columns.setdefault(name, f"p{len(columns)}")

    racing = {} if it.race is None else {it.race.first: "first", it.race.second: "second"}
    left_out = max(0, len(it.events) - _DRAWN_MAX)
    if left_out:
        lines.append(f"    Note over p0: {left_out} events before")
    for event in it.events[left_out:]:
        found, end = MESSAGE.fullmatch(event), "p0"
        if found is None:
            lines.append(f"    Note over p0: {_plain(steps.get(event, event))}")
        else:
            start, end = column(found["sender"]), column(found["to"])
            lines.append(f"    {start}->>{end}: {_plain(found['what'])}")
        if event in racing:
            lines.append(f"    Note over {end}: {racing[event]} of the race")
    heads = (f"    participant {short} as {_plain(name)}" for name, short in columns.items())
    return "\n".join(("sequenceDiagram", *heads, *lines)) + "\n"


def _plain(text: str) -> str:
    """Leave out what Mermaid takes for its own: ends of statements, comments, marks."""
    return re.sub(r"[;#<>{}%]", " ", text)


# -- as a trace


def save_trace(it: Explanation, path: Path) -> None:
    """Write the run as a trace file, which the commands for traces show and draw."""
    built = it.case.on(it.tape.topology, it.tape.schedulers, it.tape.policies).built()
    recorder = FileRecorder(TraceSettings(path=path), trace_header(built, 0))
    for delivery in it.outcome.deliveries:
        recorder.add(delivery)
    failure = "" if it.outcome.violation is None else it.outcome.violation.text
    recorder.close({"states": {}, "digest": it.outcome.digest(), "failure": failure})
    if recorder.failure is not None:
        raise recorder.failure
