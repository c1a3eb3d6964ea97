"""Drawn worlds in which mutants are looked for, and which mutants each of them would touch."""

from collections.abc import Iterator, Sequence

from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.mutants.touching import Watch
from yunikorn_actors.lab.run_schedule import Outcome, explore
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
