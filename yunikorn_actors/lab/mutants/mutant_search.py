"""Looks for a mutant: plays small cases with the mistake in force until an oracle speaks up.

The first runs are undisturbed, one of each case. Then deviations are drawn: messages that are held,
and faults. A run that would not touch the mutant is left out, as nothing could be seen in it.

Drawn worlds are another place to look. What is found there is not made small: that takes longer
than to find it, and `lab swarm` does so with the number of the run.
"""

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.lab.fan_out import FanOut, Processes
from yunikorn_actors.lab.mutants.corpus import BY_ID, CORPUS, PLAYED
from yunikorn_actors.lab.mutants.mutant import UNPLAYED, Mutant
from yunikorn_actors.lab.mutants.touching import Watch
from yunikorn_actors.lab.mutants.tries import Tries, Try
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import Outcome, explore
from yunikorn_actors.lab.shrinking.shrink import Shrinker
from yunikorn_actors.lab.swarm.swarm_runs import Plan


class Worlds:
    """The runs of `lab swarm` with a seed: the same for all mutants.

    Each is played once on the core as it is, when it is first asked for. One that is wrong as it is
    touches none: a mutant would be found by what is not its mistake.
    """

    def __init__(self, mutants: Sequence[Mutant], seed: int, runs: int) -> None:
        self._watch = Watch(mutants)
        self._plan = Plan(seed=seed)
        self._runs = runs
        self._touched: list[frozenset[str]] = []

    def __iter__(self) -> Iterator[tuple[int, frozenset[str]]]:
        """Yield the number of each run, and the mutants that make a difference in it."""
        for number in range(1, self._runs + 1):
            if number > len(self._touched):
                self._touched.append(self._watched(number))
            yield number, self._touched[number - 1]

    def _watched(self, number: int) -> frozenset[str]:
        with self._watch.noting() as touched:
            outcome = self.play(number)
        return frozenset(touched) if outcome.ok else frozenset()

    def play(self, number: int) -> Outcome:
        """Play it with what judges it, which asks the core as well."""
        run = self._plan.drawn(number)
        return explore(run.case, run.schedule(), run.checkers())


RUNS_MAX: Final = 3000
"""So many disturbed runs a mutant gets before it counts as not found."""
PLAYS_MAX: Final = 150
"""So many of those that touch it are played with it."""
DEVIATIONS_MAX: Final = 3
STIMULI_MAX: Final = 12
"""A tape above these is not small, and the search goes on for a smaller one."""
FINDINGS_MAX: Final = 8
"""So many failing runs are looked at for a small tape."""
SWARM: Final = "swarm"


class Hunted(Struct, frozen=True, kw_only=True):
    """What came of looking for one mutant."""

    id: str = ""
    found: bool = False
    strategy: str = ""
    run: int = 0
    """The number of the drawn world that shows it, if it was looked for in these."""
    runs: int = 0
    """How many runs were considered."""
    plays: int = 0
    """How many of them touch the mutant, and were played with it."""
    seconds: float = 0.0
    deviations: int = 0
    stimuli: int = 0
    messages: int = 0
    violation: str = ""
    tape: str = ""

    @property
    def is_small(self) -> bool:
        return self.found and self.deviations <= DEVIATIONS_MAX and self.stimuli <= STIMULI_MAX

    def is_better_than(self, other: "Hunted") -> bool:
        sizes = [(not it.found, it.deviations, it.stimuli, it.messages) for it in (self, other)]
        return sizes[0] < sizes[1]


class Hunts(Protocol):
    def hunt(self, mutant: Mutant) -> Hunted: ...


class Hunter:
    """Looks for one of these mutants after the other, in the same runs."""

    def __init__(
        self, seed: int = 1, runs: int = RUNS_MAX, mutants: Sequence[Mutant] = PLAYED
    ) -> None:
        self._tries = Tries(mutants, seed, runs)

    def hunt(self, mutant: Mutant) -> Hunted:
        begun, best, findings = time.perf_counter(), Hunted(), 0
        runs = plays = 0
        for tried in self._tries:
            runs += 1
            if mutant.id not in tried.touched:
                continue
            plays += 1
            with mutant.applied():
                found = self._play(tried)
            findings += found.found
            best = found if found.is_better_than(best) else best
            if best.is_small or findings == FINDINGS_MAX or plays == PLAYS_MAX:
                break
        seconds = time.perf_counter() - begun
        return replace(best, id=mutant.id, runs=runs, plays=plays, seconds=seconds)

    def _play(self, tried: Try) -> Hunted:
        """Play it; what goes wrong is written down and made small."""
        violation = self._tries.play(tried, oracles()).violation
        if violation is None:
            return Hunted()
        shrinker = Shrinker(tried.case, None, oracles)
        tape = shrinker.shrink(self._tries.tape(tried, oracles()))
        outcome = shrinker.play(tape)
        assert outcome.violation is not None, "the tape gives another run than was explored"
        return Hunted(
            found=True,
            strategy=tried.strategy,
            deviations=len(tape.entries),
            stimuli=outcome.stimuli,
            messages=outcome.messages,
            violation=outcome.violation.text,
            tape=tape.line(),
        )


class SwarmHunter:
    """Looks for one of these mutants after the other, in the same drawn worlds."""

    def __init__(self, seed: int, worlds: int, mutants: Sequence[Mutant] = CORPUS) -> None:
        self._worlds = Worlds(mutants, seed, worlds)

    def hunt(self, mutant: Mutant) -> Hunted:
        begun, found, runs, plays = time.perf_counter(), Hunted(), 0, 0
        for number, touched in self._worlds:
            runs += 1
            if mutant.id not in touched:
                continue
            plays += 1
            with mutant.applied():
                outcome = self._worlds.play(number)
            if outcome.violation is not None:
                text = outcome.violation.text
                found = Hunted(found=True, strategy=SWARM, run=number, violation=text)
            if found.found or plays == PLAYS_MAX:
                break
        seconds = time.perf_counter() - begun
        return replace(found, id=mutant.id, runs=runs, plays=plays, seconds=seconds)


# -- several at a time


def hunt_all(
    ids: Sequence[str], seed: int, runs: int, jobs: int = 1, worlds: int = 0
) -> Iterator[Hunted]:
    """Look for these mutants, in so many processes; the results come in the order asked for.

    With a number of worlds they are looked for in these, and not in the cases.
    """
    wanted = tuple(ids)
    quests = (_Quest(seed, runs, worlds, wanted, id_) for id_ in wanted)
    if jobs <= 1:
        yield from map(_hunt, quests)
        return
    with FanOut(Processes(jobs)) as fan_out:
        yield from fan_out.each(_hunt, quests)


class _Quest(NamedTuple):
    seed: int
    runs: int
    worlds: int
    wanted: tuple[str, ...]
    """All that are looked for: to watch for others as well takes longer than to find one."""
    id: str

    def __str__(self) -> str:
        return f"mutant {self.id}"


def _hunt(quest: _Quest) -> Hunted:
    mutant = BY_ID[quest.id]
    if mutant.kind in UNPLAYED and not quest.worlds:
        return Hunted(id=mutant.id)
    return _hunter(quest.seed, quest.runs, quest.worlds, quest.wanted).hunt(mutant)


@lru_cache(maxsize=1)
def _hunter(seed: int, runs: int, worlds: int, wanted: tuple[str, ...]) -> Hunts:
    mutants = [BY_ID[it] for it in wanted]
    if worlds:
        return SwarmHunter(seed, worlds, mutants)
    return Hunter(seed, runs, [it for it in mutants if it.kind not in UNPLAYED])
