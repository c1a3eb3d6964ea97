"""Plays many schedules of a case, up to the first violation, and hands it over as a tape.

The number of a run says everything about it, and what comes of the runs is put together in the
order of their numbers: it does not matter who plays them, and when.
"""

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.coverage import Coverage, Tried, tried_in
from yunikorn_actors.lab.harness import Schedule
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import (
    STUCK,
    Outcome,
    Violation,
    compare,
    explore,
    play,
    write,
)
from yunikorn_actors.lab.schedules.faults import FAULTS, Faulty
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.strategies import (
    EXHAUSTIVE,
    STRATEGIES,
    SYSTEMATIC,
    Lot,
    schedules_of,
)
from yunikorn_actors.lab.schedules.systematic import Descents
from yunikorn_actors.lab.shrinking.shrink import PLAYS_MAX, PLAYS_STUCK_MAX, Effort, Shrinker
from yunikorn_actors.lab.tapes.tape import Tape
from yunikorn_actors.machines.settings import Settings

DEVIATIONS_MAX: Final = 2
STIMULI_MAX: Final = 12
"""A tape above these is not small, and exploring goes on for a smaller one."""
FINDINGS_MAX: Final = 5
"""So many failing runs are looked at for a small tape."""


class InvalidOptions(CoreError, ValueError):
    """Nothing can be explored like that."""


class Budget(Struct, frozen=True, kw_only=True):
    runs: int = 200
    seconds: float | None = None
    """Where it is given, exploring ends after this time whatever the number of runs."""
    until_covered: bool = False
    """Whether exploring ends when more runs would hardly try a new order."""

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise InvalidOptions(f"{self.runs} runs show nothing: explore 1 or more")


class Options(Struct, frozen=True, kw_only=True):
    strategy: str = "uniform"
    depth: int = 2
    """Of `pct`: how many events have to come in a certain order; of `delay`: delays at most."""
    seed: int = 1
    budget: Budget = Budget()
    faults: tuple[str, ...] = ()
    """The kinds that may happen, in every second run."""
    shrinks: bool = True
    shrink_seconds: float | None = None
    """After this time a tape is handed over as small as it is by then."""
    plays_twice: bool = False
    """Whether each run is repeated, and has to be the same."""
    checkers: Callable[[], tuple[Checker, ...]] = oracles
    """Makes what judges one run."""

    def __post_init__(self) -> None:
        _check(self.strategy, "strategy", (*STRATEGIES, EXHAUSTIVE))
        for fault in self.faults:
            _check(fault, "fault", FAULTS)


def _check(word: str, what: str, known: Iterable[str]) -> None:
    if word not in known:
        raise InvalidOptions(f"{word!r:.40} is no {what}: take some of {', '.join(known)}")


class Run(Struct, frozen=True, kw_only=True):
    """The outcome of one run; plain data, so that processes can exchange it."""

    number: int
    """0 is the run in which nothing was disturbed."""
    messages: int
    length: int
    order: bytes
    """A digest of what was delivered, in which order."""
    tried: Tried
    proposed: int
    refused: int
    held: dict[str, bool]
    """What is to hold sometimes, each with whether it has."""
    unjudged: frozenset[str] = frozenset()
    """What is to hold always, and is of objects that were never there."""
    violation: Violation | None
    tape: Tape | None = None
    """What was played; None where the number says it."""


def run_of(number: int, outcome: Outcome, settings: Settings) -> Run:
    return Run(
        number=number,
        messages=outcome.messages,
        length=outcome.length,
        order=outcome.order(),
        tried=tried_in(outcome.deliveries, settings),
        proposed=outcome.proposed,
        refused=outcome.refused,
        held=outcome.held,
        unjudged=outcome.unjudged,
        violation=outcome.violation,
    )


class Runs(Struct, frozen=True, kw_only=True):
    """The runs of a case by their numbers: a number gives the same run wherever it is played."""

    case: Case
    options: Options
    length: int = 1
    """How many messages the undisturbed run has while there is a choice."""

    @property
    def total(self) -> int | None:
        """How many there are; None where they are drawn, so that there is no end."""
        return schedules_of(self.options.strategy, self.length, self.options.depth)

    def play(self, number: int) -> Run:
        outcome = self._outcome(number)
        if self.options.plays_twice:
            compare(outcome.deliveries, self._outcome(number).deliveries)
        return run_of(number, outcome, self.case.scenario.settings)

    def _outcome(self, number: int) -> Outcome:
        checkers = self.options.checkers()
        if number:
            return explore(self.case, self._schedule(number), checkers)
        return play(self.case, self.case.tape(), checkers)

    def tape(self, number: int) -> Tape:
        """Write down what is played."""
        if not number:
            return self.case.tape()
        return write(self.case, self._schedule(number), self.options.checkers())

    def _schedule(self, number: int) -> Schedule:
        options, draw = self.options, Draw(self.options.seed, number)
        lot = Lot(number, draw, self.length, options.depth)
        schedule = STRATEGIES[options.strategy](lot)
        if options.faults and number % 2 and options.strategy not in SYSTEMATIC:
            return Faulty(schedule, draw, options.faults, self.length)
        return schedule


Player = Callable[[Runs, range], Iterator[Run]]
"""Plays the runs with these numbers, and hands over what came of them in that order."""


def one_by_one(runs: Runs, numbers: range) -> Iterator[Run]:
    return map(runs.play, numbers)


class Finding(Struct, frozen=True, kw_only=True):
    """A violation, and the tape that repeats it."""

    run: int
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
    proposed: int
    refused: int
    """How many of the proposals the core refused: the price of several schedulers."""
    never_held: tuple[str, ...]
    """What is to hold sometimes, and did in no run."""
    never_judged: tuple[str, ...]
    """What is to hold always, and could not have been broken in any run."""
    seconds: float
    coverage: Coverage
    exhausted: str = ""
    """What was played completely; empty if more could be played."""
    finding: Finding | None = None

    @property
    def ok(self) -> bool:
        return self.finding is None and not (self.never_held or self.never_judged)


class Search:
    """Counts what was played, so that an interrupted search still has a report."""

    def __init__(self, case: Case, options: Options, player: Player = one_by_one) -> None:
        self.case = case
        self.finding: Finding | None = None
        self._options = options
        self._player = player
        self._descents = Descents(case, options.checkers)
        self._runs = Runs(case=case, options=options)
        self._count = 0
        self._messages = self._proposed = self._refused = 0
        self._orders: set[bytes] = set()
        self._held: dict[str, bool] = {}
        self._unjudged: frozenset[str] | None = None
        self._coverage = Coverage()
        self._findings = 0
        self._failed: Run | None = None
        """The first run that failed: reported whether it was made small or not."""
        self._shrinker: Shrinker | None = None
        """What makes a tape small, or has."""
        self._begun = time.perf_counter()

    def run(self) -> Report:
        """Play until something is wrong or the budget is spent.

        Whatever was played beyond the run after which it ends is forgotten.
        """
        with closing(self._played()) as played:
            for run in played:
                self.add(run)
                if self._is_enough():
                    break
        return self.report()

    def _played(self) -> Generator[Run]:
        """Play the undisturbed run first: the others need its length."""
        numbers = range(self._options.budget.runs)
        for number in numbers[:1]:
            undisturbed = self._runs.play(number)
            self._runs = replace(self._runs, length=max(1, undisturbed.length))
            yield undisturbed
        if self._options.strategy == EXHAUSTIVE:
            yield from self._descended(iter(numbers[1:]))
        else:
            yield from self._player(self._runs, numbers[1 : self._runs.total])

    def _descended(self, numbers: Iterator[int]) -> Iterator[Run]:
        """Play what follows from the runs before, so nobody else can play it."""
        descents, case, checkers = self._descents, self.case, self._options.checkers
        while not descents.is_exhausted and (number := next(numbers, None)) is not None:
            outcome = descents.play()
            if outcome is None:
                continue
            if self._options.plays_twice:
                compare(outcome.deliveries, explore(case, descents.again(), checkers()).deliveries)
            found = write(case, descents.again(), checkers()) if outcome.violation else None
            yield replace(run_of(number, outcome, case.scenario.settings), tape=found)

    def add(self, run: Run) -> None:
        self._count += 1
        self._messages += run.messages
        self._proposed += run.proposed
        self._refused += run.refused
        for name, held in run.held.items():
            self._held[name] = held or self._held.get(name, False)
        known = run.unjudged if self._unjudged is None else self._unjudged
        self._unjudged = known & run.unjudged
        self._orders.add(run.order)
        self._coverage.add(run.tried)
        if run.violation is not None:
            self._failed = self._failed or run
            self._keep(self._finding(run, shrinks=self._options.shrinks))

    def _keep(self, finding: Finding) -> None:
        """Keep the finding with the smallest tape: one more race is often easier to read."""
        self._findings += 1
        if self.finding is None or finding.size < self.finding.size:
            self.finding = finding

    def _is_enough(self) -> bool:
        budget, finding = self._options.budget, self.finding
        if budget.seconds is not None and time.perf_counter() - self._begun > budget.seconds:
            return True
        if budget.until_covered and self._coverage.is_enough:
            return True
        return finding is not None and (finding.is_small or self._findings >= FINDINGS_MAX)

    def _finding(self, run: Run, *, shrinks: bool) -> Finding:
        """Write down what was played, and make it small; the small tape is played once more."""
        assert run.violation is not None
        found = run.tape or self._runs.tape(run.number)
        plays = PLAYS_STUCK_MAX if run.violation.kind == STUCK else PLAYS_MAX
        effort = Effort(plays, self._options.shrink_seconds)
        shrinker = Shrinker(self.case, run.violation.kind, self._options.checkers, effort)
        if shrinks:
            self._shrinker = shrinker
            tape = shrinker.shrink(found)
        else:
            tape = (self._shrinker and self._shrinker.best) or found
        outcome = shrinker.play(tape)
        assert outcome.violation is not None, "the tape gives another run than was explored"
        return Finding(
            run=run.number, violation=outcome.violation, tape=tape, found=found, outcome=outcome
        )

    def report(self) -> Report:
        if self.finding is None and self._failed is not None:
            # Interrupted while its tape was made small: it is as small as it was by then.
            self.finding = self._finding(self._failed, shrinks=False)
        return Report(
            case=self.case,
            runs=self._count,
            orders=len(self._orders),
            messages=self._messages,
            proposed=self._proposed,
            refused=self._refused,
            never_held=tuple(name for name, held in self._held.items() if not held),
            never_judged=tuple(sorted(self._unjudged or ())),
            seconds=time.perf_counter() - self._begun,
            coverage=self._coverage,
            exhausted=self._exhausted(),
            finding=self.finding,
        )

    def _exhausted(self) -> str:
        descents = self._descents
        if descents.is_exhausted and self.finding is None:
            return f"{descents.states} states, in {descents.orders} orders that differ in a mailbox"
        if self._runs.total is None or self._count < self._runs.total:
            return ""
        depth, length = self._options.depth, self._runs.length
        return f"all schedules of at most {depth} delays among the first {length} messages"
