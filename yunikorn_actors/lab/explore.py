"""Plays many schedules of a case, up to the first violation, and hands it over as a tape."""

import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.coverage import Coverage
from yunikorn_actors.lab.draw import Draw
from yunikorn_actors.lab.faults import Faulty
from yunikorn_actors.lab.oracles import oracles
from yunikorn_actors.lab.play import Outcome, Violation, explore, play, write
from yunikorn_actors.lab.shrink import Shrinker
from yunikorn_actors.lab.strategies import Uniform
from yunikorn_actors.lab.tape import Tape
from yunikorn_actors.lab.world import Schedule
from yunikorn_actors.sim.simulator import Checker

STRATEGIES: Final[dict[str, Callable[[Draw, int], Schedule]]] = {
    "uniform": lambda draw, _: Uniform(draw)
}
"""Each makes the schedule of one run, which may have about so many events."""


DEVIATIONS_MAX: Final = 2
STIMULI_MAX: Final = 12
"""A tape above these is not small, and exploring goes on for a smaller one."""
FINDINGS_MAX: Final = 5
"""So many failing runs are looked at for a small tape."""


class Budget(Struct, frozen=True, kw_only=True):
    runs: int = 200
    seconds: float | None = None
    """Where it is given, exploring ends after this time whatever the number of runs."""
    until_covered: bool = False
    """Whether exploring ends when more runs would hardly try a new order."""


class Options(Struct, frozen=True, kw_only=True):
    strategy: str = "uniform"
    seed: int = 1
    budget: Budget = Budget()
    faults: tuple[str, ...] = ()
    """The kinds that may happen, in every second run."""
    shrinks: bool = True
    checkers: Callable[[], tuple[Checker, ...]] = oracles
    """Makes what judges one run."""


class Finding(Struct, frozen=True, kw_only=True):
    """A violation, and the tape that repeats it."""

    run: int
    """0 is the run in which nothing was disturbed."""
    violation: Violation
    tape: Tape
    found: Tape
    """The tape as it was found, before it was made small."""
    outcome: Outcome
    """What the small tape gives."""

    @property
    def size(self) -> tuple[int, int, int]:
        return (len(self.tape.entries), self.outcome.stimuli, self.outcome.messages)

    @property
    def is_small(self) -> bool:
        """Whether a reader can hold it in mind."""
        return len(self.tape.entries) <= DEVIATIONS_MAX and self.outcome.stimuli <= STIMULI_MAX


class Report(Struct, frozen=True, kw_only=True):
    case: Case
    runs: int
    orders: int
    """How many of the runs delivered in different orders."""
    messages: int
    seconds: float
    coverage: Coverage
    finding: Finding | None = None


class Search:
    """Counts what was played, so that an interrupted search can still be told of."""

    def __init__(self, case: Case, options: Options) -> None:
        self.case = case
        self._options = options
        self._orders: set[bytes] = set()
        self._runs = 0
        self._messages = 0
        self._length = 1
        self._findings = 0
        self._coverage = Coverage()
        self.finding: Finding | None = None
        self._begun = time.perf_counter()

    def run(self) -> Report:
        """Play until something is wrong or the budget is spent; the first run is undisturbed."""
        seconds = self._options.budget.seconds
        for number in range(self._options.budget.runs):
            if seconds is not None and time.perf_counter() - self._begun > seconds:
                break
            outcome = self._play(number)
            if outcome.violation is not None:
                self._keep(self._finding(number, outcome.violation))
            if self._is_enough():
                break
        return self.report()

    def _keep(self, finding: Finding) -> None:
        """Keep the finding with the smallest tape: one more race is often easier to read."""
        self._findings += 1
        if self.finding is None or finding.size < self.finding.size:
            self.finding = finding

    def _is_enough(self) -> bool:
        if self._options.budget.until_covered and self._coverage.is_enough:
            return True
        finding = self.finding
        return finding is not None and (finding.is_small or self._findings >= FINDINGS_MAX)

    def _play(self, number: int) -> Outcome:
        if number == 0:
            outcome = play(self.case, self.case.tape(), self._options.checkers())
            self._length = max(1, outcome.messages)
        else:
            outcome = explore(self.case, self._schedule(number), self._options.checkers())
        self._runs += 1
        self._messages += outcome.messages
        self._orders.add(outcome.order())
        self._coverage.add(outcome.deliveries)
        return outcome

    def _schedule(self, number: int) -> Schedule:
        """Make the schedule of a run; the same number gives the same schedule."""
        options, draw = self._options, Draw(self._options.seed, number)
        schedule = STRATEGIES[options.strategy](draw, self._length)
        if options.faults and number % 2:
            return Faulty(schedule, draw, options.faults, self._length)
        return schedule

    def _finding(self, number: int, violation: Violation) -> Finding:
        """Write down what was played, and make it small; the small tape is played once more."""
        found = self.case.tape()
        if number:
            found = write(self.case, self._schedule(number), self._options.checkers())
        shrinker = Shrinker(self.case, violation.kind, self._options.checkers)
        tape = shrinker.shrink(found) if self._options.shrinks else found
        outcome = shrinker.play(tape)
        assert outcome.violation is not None, "the tape gives another run than was explored"
        return Finding(
            run=number, violation=outcome.violation, tape=tape, found=found, outcome=outcome
        )

    def report(self) -> Report:
        return Report(
            case=self.case,
            runs=self._runs,
            orders=len(self._orders),
            messages=self._messages,
            seconds=time.perf_counter() - self._begun,
            coverage=self._coverage,
            finding=self.finding,
        )
