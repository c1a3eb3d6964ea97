"""Plays drawn runs, and counts what came of them; each violation is handed over as case and tape.

The seed and the number of a run say everything about it, so it does not matter who plays it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.lab.coverage import Coverage
from yunikorn_actors.lab.explore import Budget, Run, run_of
from yunikorn_actors.lab.fan_out import RUNS_IN_SHARE, FanOut
from yunikorn_actors.lab.oracles.judges import judges_of
from yunikorn_actors.lab.oracles.walk_oracle import OF_A_WALK
from yunikorn_actors.lab.run_schedule import Outcome, Violation, explore, play, write
from yunikorn_actors.lab.shrinking.shrink import Effort
from yunikorn_actors.lab.shrinking.shrink_case import CaseShrinker, Failing
from yunikorn_actors.lab.swarm.drawn import Drawn, drawn
from yunikorn_actors.lab.swarm.small_bounds import Passed
from yunikorn_actors.lab.swarm.world_parts import Wanted
from yunikorn_actors.lab.tapes.tape import parse_tape
from yunikorn_actors.lab.tapes.tape_files import keep_case

SHRINK_PLAYS_MAX: Final = 1_000
"""A world may be large: so often one is played at most while it is made smaller."""


class Plan(Struct, frozen=True, kw_only=True):
    """What determines the runs by their numbers."""

    seed: int = 1
    wanted: Wanted = Wanted()
    policies: str = ""
    """MODULE:ATTRIBUTE of those that decide in each world, in place of those that are shipped."""

    def drawn(self, number: int) -> Drawn:
        return drawn(self.seed, number, self.wanted, self.policies)


class Planned(Protocol):
    """What says which run has a number."""

    def drawn(self, number: int) -> Drawn: ...


class Played(Struct, frozen=True, kw_only=True):
    """What came of one run; it can be handed from one process to another."""

    run: Run
    parts: tuple[str, ...]
    passed: tuple[str, ...]
    """The bounds that it came to."""
    is_judged: bool


def played(plan: Planned, number: int) -> Played:
    run = plan.drawn(number)
    passed = Passed(run.case.scenario.settings)
    outcome = explore(run.case, run.schedule(), (*run.checkers(), passed))
    return Played(
        run=run_of(number, outcome, run.case.scenario.settings),
        parts=tuple(sorted(run.parts)),
        passed=tuple(sorted(+passed.counts)),
        is_judged=run.is_judged,
    )


Player = Callable[[Planned, range], Iterator[Played]]


def one_by_one(plan: Planned, numbers: range) -> Iterator[Played]:
    return (played(plan, number) for number in numbers)


class Share(Struct, frozen=True):
    plan: Plan
    numbers: range

    def __str__(self) -> str:
        return f"runs {self.numbers[0]} to {self.numbers[-1]} of seed {self.plan.seed}"


def play_share(share: Share) -> list[Played]:
    """Play in a worker."""
    return [played(share.plan, number) for number in share.numbers]


class FannedOut:
    """A player that has a pool of workers play."""

    def __init__(self, fan_out: FanOut) -> None:
        self._fan_out = fan_out

    def __call__(self, plan: Planned, numbers: range) -> Iterator[Played]:
        assert isinstance(plan, Plan), "a guided search stays in its process"
        shares = (
            Share(plan, numbers[first : first + RUNS_IN_SHARE])
            for first in range(0, len(numbers), RUNS_IN_SHARE)
        )
        for several in self._fan_out.each(play_share, shares):
            yield from several


class Finding(Struct, frozen=True, kw_only=True):
    """A violation, with the case and the tape that repeat it."""

    drawn: Drawn
    violation: Violation
    found: Failing
    """As it was drawn."""
    small: Failing
    outcome: Outcome
    """What the small one gives."""
    repeats: bool
    """Whether that is what was found; if not, only the run as it was drawn shows it."""

    def keep(self, folder: Path) -> Path:
        """Write the scenario file and the tape that is played on it; return the tape's file."""
        why = f"{self.drawn.case.scenario.name}: {self.violation.text}"
        if not self.repeats:
            why += "\nto play this tape does not repeat it: play the run again"
        _, tape = keep_case(folder, self.small.case, self.small.tape, why)
        return tape


class Report(Struct, frozen=True, kw_only=True):
    runs: int
    orders: int
    messages: int
    seconds: float
    judged: int
    """How many runs the model judged."""
    violations: dict[str, int]
    """How many runs were wrong in which way."""
    passed: dict[str, int]
    """How many runs came to which bound."""
    parts: dict[str, int]
    """How many runs had which part."""
    coverage: Coverage
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not self.violations


class Swarm:
    """Counts what was played, so that an interrupted search can still be reported."""

    def __init__(
        self,
        plan: Planned,
        budget: Budget,
        player: Player = one_by_one,
        *,
        first: int = 1,
        shrink_seconds: float | None = None,
        found: Callable[[Finding], None] = lambda _: None,
    ) -> None:
        """`found` hears of the first run that is wrong in some way, as soon as it is small."""
        self._plan = plan
        self._budget = budget
        self._player = player
        self._first = first
        self._shrink_seconds = shrink_seconds
        self._found = found
        self._runs = self._messages = self._judged = 0
        self._orders: set[bytes] = set()
        self._violations = Counter[str]()
        self._passed = Counter[str]()
        self._parts = Counter[str]()
        self._coverage = Coverage()
        self._findings: list[Finding] = []
        self._is_interrupted = False
        """Whether ctrl-C came while something was made small: it is kept as small as it was."""
        self._begun = time.perf_counter()

    def run(self) -> Report:
        for one in self._player(self._plan, range(self._first, self._first + self._budget.runs)):
            self._add(one)
            seconds = self._budget.seconds
            if seconds is not None and time.perf_counter() - self._begun > seconds:
                break
        return self.report()

    def _add(self, one: Played) -> None:
        run = one.run
        self._runs += 1
        self._messages += run.messages
        self._judged += one.is_judged
        self._orders.add(run.order)
        self._passed.update(one.passed)
        self._parts.update(one.parts)
        self._coverage.add(run.tried)
        if run.violation is not None:
            self._violations[run.violation.kind] += 1
            if self._violations[run.violation.kind] == 1:
                self._findings.append(self._finding(run.number, run.violation))
                self._found(self._findings[-1])
                if self._is_interrupted:
                    raise KeyboardInterrupt

    def _finding(self, number: int, violation: Violation) -> Finding:
        """Write down what was played, and make it small."""
        run = self._plan.drawn(number)
        found = Failing(run.case, write(run.case, run.schedule(), run.checkers()))
        effort = Effort(SHRINK_PLAYS_MAX, self._shrink_seconds)
        shrinker = CaseShrinker(found, violation.kind, run.checkers, effort)
        try:
            is_of_world = not violation.kind.startswith(OF_A_WALK)
            small = shrinker.shrink() if is_of_world else found
        except KeyboardInterrupt:
            self._is_interrupted = True
            small = shrinker.best
        tape = replace(small.tape, judges=run.judges)
        outcome = play(small.case, parse_tape(str(tape)), judges_of(tape))
        repeats = outcome.violation is not None and outcome.violation.kind == violation.kind
        return Finding(
            drawn=run,
            violation=outcome.violation if repeats and outcome.violation else violation,
            found=found,
            small=replace(small, tape=tape),
            outcome=outcome,
            repeats=repeats,
        )

    def report(self) -> Report:
        return Report(
            runs=self._runs,
            orders=len(self._orders),
            messages=self._messages,
            seconds=time.perf_counter() - self._begun,
            judged=self._judged,
            violations=dict(self._violations.most_common()),
            passed=dict(sorted(self._passed.items())),
            parts=dict(sorted(self._parts.items())),
            coverage=self._coverage,
            findings=tuple(self._findings),
        )
