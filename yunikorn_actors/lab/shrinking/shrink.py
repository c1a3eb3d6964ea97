"""Makes a failing tape small: fewest deviations, then fewest steps, then fewest messages.

Whatever is left out, the tape must still fail in the same way; that is tried out each time.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.oracles.promises import is_promise
from yunikorn_actors.lab.run_schedule import Outcome, as_played, events_in, play, steps_of
from yunikorn_actors.lab.shrinking.shrink_document import minimal
from yunikorn_actors.lab.tapes.tape import THE_END, Entry, Tape

PLAYS_MAX: Final = 3_000
"""So often something is played at most while it is made smaller."""
PLAYS_STUCK_MAX: Final = 30
"""The same where a play that fails takes long, as it has no end of its own."""


class Effort:
    """Counts plays. With an end in time the result depends on the machine, else it does not."""

    def __init__(self, plays: int = PLAYS_MAX, seconds: float | None = None) -> None:
        self._plays_max = plays
        self._until = None if seconds is None else time.monotonic() + seconds
        self.plays = 0

    def allows(self, plays: int) -> bool:
        """Whether there may be so many more plays."""
        is_over = self._until is not None and time.monotonic() > self._until
        return not is_over and self.plays + plays <= self._plays_max

    def spend(self) -> bool:
        """Count one more play; False if it may not be."""
        if not self.allows(1):
            return False
        self.plays += 1
        return True


class Shrinker:
    def __init__(
        self,
        case: Case,
        kind: str | None,
        checkers: Callable[[], tuple[Checker, ...]],
        effort: Effort | None = None,
    ) -> None:
        """Without a kind any failure will do: where it is known that all have one cause."""
        self._case = case
        self._kind = kind
        self._checkers = checkers
        self._needs_deviation = False
        """Whether what is left of the steps has to go well undisturbed."""
        self._effort = effort or Effort()
        self.best: Tape | None = None
        """The smallest tape so far, for a caller that interrupts this."""

    def shrink(self, tape: Tape) -> Tape:
        """Return a smaller tape that fails alike, and cannot be made smaller by one part.

        A promise that is broken undisturbed is so by the steps as they are: fewer of them would
        break it for want of a step.
        """
        if tape.steps is not None:
            tape = replace(tape, steps=_unless_all(self._case, tape.steps))
        self.best = tape
        undisturbed = replace(tape, entries=())
        fails_undisturbed = self._misses_steps and self._fails(undisturbed)
        if fails_undisturbed and is_promise(self._kind):
            self.best = undisturbed
            return as_played(self._case, undisturbed)
        self._needs_deviation = self._misses_steps and not fails_undisturbed
        before = None
        while before != tape:
            before = tape
            tape = self._with_fewer_entries(tape)
            tape = self._with_fewer_steps(tape)
            tape = self._with_plainer_entries(tape)
            tape = self._with_other_moments(tape)
        return as_played(self._case, tape)

    def fails(self, tape: Tape) -> bool:
        """Whether the tape fails as the first one did, and not for want of a step."""
        if self._needs_deviation and not self._effort.allows(2):
            # Without a play left for the second question its answer would be no.
            return False
        if not self._fails(tape):
            return False
        if self._needs_deviation and self._fails(replace(tape, entries=())):
            return False
        self.best = tape
        return True

    @property
    def _misses_steps(self) -> bool:
        """Whether it may fail for want of a step: nothing comes of it, or code relies on it."""
        return self._case.workload is not None or is_promise(self._kind)

    def _fails(self, tape: Tape) -> bool:
        if not self._effort.spend():
            return False
        outcome = self.play(tape)
        if is_promise(self._kind) and not outcome.keeps_order:
            # To ask before the application is there would break it in another way.
            return False
        return outcome.violation is not None and self._kind in {None, outcome.violation.kind}

    def play(self, tape: Tape) -> Outcome:
        return play(self._case, tape, self._checkers())

    def _with_fewer_entries(self, tape: Tape) -> Tape:
        entries = minimal(tape.entries, lambda left: self.fails(replace(tape, entries=left)))
        return replace(tape, entries=entries)

    def _with_fewer_steps(self, tape: Tape) -> Tape:
        steps = steps_of(self._case, tape)
        left = minimal(steps, lambda left: self.fails(with_steps(self._case, tape, steps, left)))
        return with_steps(self._case, tape, steps, left)

    def _with_plainer_entries(self, tape: Tape) -> Tape:
        """Hold to the end what may be held that long: it says that no event is meant."""
        for index, entry in enumerate(tape.entries):
            if entry.verb == "hold" and entry.after != THE_END:
                plainer = _put(tape.entries, index, replace(entry, after=THE_END))
                if self.fails(replace(tape, entries=plainer)):
                    tape = replace(tape, entries=plainer)
        return tape

    def _with_other_moments(self, tape: Tape) -> Tape:
        """Leave out an entry that others only came after: something else may be their moment."""
        if len(tape.entries) == 1:
            return tape
        for left_out in range(len(tape.entries)):
            entries = (*tape.entries[:left_out], *tape.entries[left_out + 1 :])
            events = events_in(self._case, replace(tape, entries=entries))
            for moved in _at_other_moments(entries, dict.fromkeys(events)):
                if self.fails(replace(tape, entries=moved)):
                    return replace(tape, entries=moved)
        return tape


def with_steps(case: Case, tape: Tape, steps: tuple[str, ...], left: tuple[str, ...]) -> Tape:
    """Leave out all but some of the steps, and what the tape does with those that are left out."""
    gone = dict.fromkeys(step for step in steps if step not in left)
    entries = tuple(it for it in tape.entries if it.what.removeprefix("step ") not in gone)
    if case.workload is not None:
        return replace(tape, entries=entries, without=(*tape.without, *gone))
    return replace(tape, entries=entries, steps=_unless_all(case, left))


def _unless_all(case: Case, steps: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the steps; None for all of them."""
    return None if steps == tuple(step.label for step in case.steps) else steps


def _at_other_moments(
    entries: tuple[Entry, ...], moments: Iterable[str]
) -> Iterator[tuple[Entry, ...]]:
    """Move what is done, one at a time, to each of these moments."""
    for index, entry in enumerate(entries):
        if entry.after and entry.verb != "hold":
            yield from (_put(entries, index, replace(entry, after=after)) for after in moments)


def _put(entries: tuple[Entry, ...], index: int, entry: Entry) -> tuple[Entry, ...]:
    return (*entries[:index], entry, *entries[index + 1 :])
