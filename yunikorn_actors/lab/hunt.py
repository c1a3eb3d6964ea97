"""The laboratory for users' own code: explores a workload, and tells of a race as a test does."""

import hashlib
import inspect
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.lab.case import DIGITS, Case
from yunikorn_actors.lab.explanation import Explainer, explanation_lines
from yunikorn_actors.lab.explore import Budget, Finding, Options, Report, Search, run_of
from yunikorn_actors.lab.narrative import narrative_of, not_played_lines
from yunikorn_actors.lab.nondeterminism_guard import Escape
from yunikorn_actors.lab.run_schedule import STUCK, compare, play, run
from yunikorn_actors.lab.tapes.old_tapes import is_numbered, with_names
from yunikorn_actors.lab.tapes.tape import Tape
from yunikorn_actors.lab.tapes.tape_files import keep, kept, read_tape
from yunikorn_actors.lab.tapes.tape_player import TapePlayer
from yunikorn_actors.lab.tapes.tape_verbs import ACTS
from yunikorn_actors.lab.user_program import Trial, TrialWorld
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.scenario.document import DEFAULT_QUEUES, Scenario

FAIR_FAULTS: Final = ("flap", "drain", "shrink", "reload", "freeze", "fire", "join", "fail")
"""Faults that no resource manager makes itself: it has to bear them as the core does."""

EVENTS_MIN: Final = 2_000
LONGER_MAX: Final = 50
"""A run that is so many times as long as the undisturbed one counts as one that never ends."""


class RaceFound(AssertionError):
    """A schedule under which something is wrong; the text says what, how and how to repeat it."""


class NeverHeld(AssertionError):
    """What is to hold sometimes did not hold in any run: nobody tried it."""


class NotPlayed(UserWarning):
    """A tape says what the run did not have: it may not show any more what it was kept for."""


class Wishes(Struct, frozen=True, kw_only=True):
    """What the command line wants of all explorations; None leaves it to the test."""

    runs: int | None = None
    """How many schedules to try."""
    seed: int | None = None
    """What the schedules are drawn from."""
    tape: str | None = None
    """Play this tape, and nothing else."""
    save: Path | None = None
    """A folder for the tapes that fail."""


class Lab:
    """What a test explores with. `name` is that of the test, as a command line has it."""

    def __init__(self, name: str, wishes: Wishes | None = None) -> None:
        self.name = name
        self._wishes = Wishes() if wishes is None else wishes

    def explore(
        self,
        workload: Callable[[Trial], None],
        *,
        runs: int = Budget().runs,
        seed: int = Options().seed,
        strategy: str = Options().strategy,
        faults: Sequence[str] = FAIR_FAULTS,
        settings: Settings | None = None,
        topology: TopologyName = "proposing",
    ) -> Report:
        """Run a workload under many schedules; raise RaceFound with the first that goes wrong."""
        __tracebackhide__ = True
        case = self._rehearsed(workload, settings or Settings(), topology)
        if self._wishes.tape is not None:
            return self._replay(case, self._wishes.tape)
        options = Options(
            strategy=strategy,
            seed=seed if self._wishes.seed is None else self._wishes.seed,
            faults=tuple(faults),
            budget=Budget(runs=runs if self._wishes.runs is None else self._wishes.runs),
        )
        report = Search(case, options).run()
        if report.finding is not None:
            self._fail(case, report.finding)
        if report.never_held:
            raise NeverHeld(f"in none of {report.runs} runs: {', '.join(report.never_held)}")
        return report

    # -- parts

    def _rehearsed(
        self, function: Callable[[Trial], None], settings: Settings, topology: TopologyName
    ) -> Case:
        """Play it twice as it is: its steps get known, and whether it can be repeated."""
        scenario = Scenario(
            file=self.name, name=function.__name__, queues=DEFAULT_QUEUES, settings=settings,
            confirmation="manual", steps=(),
        )  # fmt: skip
        case = Case(
            scenario=scenario, digest=_digest(function), topology=topology, steps=(),
            workload=function,
        )  # fmt: skip
        world = TrialWorld(case, TapePlayer(case.tape()), frozenset(), ACTS)
        violation = run(world).violation
        if violation is not None and violation.kind == Escape.__name__:
            raise Escape(violation.text)
        length = world.turns if world.turns < case.events_max else 0
        events_max = min(case.events_max, max(EVENTS_MIN, LONGER_MAX * length))
        case = replace(case, steps=tuple(world.made), events_max=events_max)
        if violation is None or violation.kind != STUCK:
            # What real time has ended is at another message each time.
            compare(world.deliveries, play(case, case.tape()).deliveries)
        return case

    def _replay(self, case: Case, wanted: str) -> Report:
        """Play a tape; of a folder those that are of this test."""
        __tracebackhide__ = True
        search = Search(case, Options())
        names = [*kept(wanted)]
        tapes = [read_tape(it) for it in names]
        own = [it for it in tapes if is_same_test(it.scenario, self.name)]
        if not own:
            others = ", ".join(dict.fromkeys(it.scenario for it in tapes)) or "no test"
            so = "it is played all the same" if names == [wanted] else "nothing is played"
            text = f"{wanted:.200}: of {others}, and not of {self.name}: {so}"
            warnings.warn(text, NotPlayed, stacklevel=3)
        for number, tape in enumerate(tapes if names == [wanted] else own):
            named = with_names(case, tape) if is_numbered(tape) else tape
            outcome = play(case, named, Options().checkers())
            if outcome.violation is not None:
                raise RaceFound(narrative_of(case, named, outcome))
            if outcome.not_played:
                lines = "\n".join(not_played_lines(outcome))
                warnings.warn(f"{named.header()}\n{lines}", NotPlayed, stacklevel=3)
            search.add(run_of(number, outcome, case.scenario.settings))
        return search.report()

    def _fail(self, case: Case, finding: Finding) -> None:
        __tracebackhide__ = True  # what pytest leaves out: a finding is long, and already printed
        tape = finding.tape
        why = explanation_lines(Explainer(case, tape).explain())
        how = f"found in run {finding.run}; to repeat it:"
        command = f"pytest {quote(self.name)} --lab-tape"
        again = self._again(tape, command)
        what = narrative_of(case, tape, finding.outcome)
        raise RaceFound("\n".join((what, "", *why, "", how, *again)))

    def _again(self, tape: Tape, command: str) -> tuple[str, ...]:
        """Say how to play it again: from the file in which it is kept, if it can be."""
        folder = self._wishes.save
        if folder is None:
            return (f"{command} {quote(tape.line())}",)
        try:
            return (f"{command} {quote(str(keep(folder, tape)))}",)
        except OSError as error:
            no_file = f"(--lab-save {folder}: the tape cannot be kept there: {error.strerror})"
            return f"{command} {quote(tape.line())}", no_file


def is_same_test(one: str, other: str) -> bool:
    """Whether both name one test, from whichever folder pytest was started."""
    files, tests = zip(*(it.partition("::")[::2] for it in (one, other)), strict=True)
    parts = [Path(it).parts for it in files]
    common = min(map(len, parts))
    return tests[0] == tests[1] and parts[0][-common:] == parts[1][-common:]


def _digest(function: Callable[[Trial], None]) -> str:
    """Return a digest of the source, by which a tape shows what it was made for."""
    try:
        source = inspect.getsource(function)
    except OSError:
        source = function.__qualname__
    return hashlib.sha256(source.encode()).hexdigest()[:DIGITS]
