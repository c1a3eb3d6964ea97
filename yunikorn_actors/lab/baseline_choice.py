"""Which worlds a baseline is made of: each part of the core is at work in some of them.

Edits of the core are made by program, and it is watched which of them would make a difference in
which world. A world that many touch that few others touch is worth most. What most worlds touch
needs no watching, which makes it cheap.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from yunikorn_actors.drivers.simulator.notice_checks import RecordChecker
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.baseline import drawn_world, play_drawn
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.lab.mutants.edits import Purity, drawn_edits
from yunikorn_actors.lab.mutants.touching import Watch
from yunikorn_actors.lab.observed_run import WHOLE
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.core_inquiries import inquire
from yunikorn_actors.lab.surfaces.journal_files import Ended
from yunikorn_actors.lab.swarm.world_parts import RESTART

DRAWN: Final = 4_000
"""So many worlds are looked at, if nobody says how many."""
_OF_EDITS: Final = 8
"""The seed of which edits are made."""
_ENOUGH: Final = 8
"""An edit that so many worlds have touched is watched for no more."""
_FORGOTTEN_EACH: Final = 20
_WANTED: Final = 6
"""In so many worlds of the baseline each edit should make a difference."""


class Touched(NamedTuple):
    """The edits that would make a difference in a world."""

    number: int
    edits: frozenset[str]


class _Asking(Oracle):
    """Asks at rest what a core can be asked; what else is seen is much alike in all worlds."""

    def at_rest(self, world: World) -> None:
        for _ in inquire(world):
            pass


def touched_in(numbers: Iterable[int]) -> Iterator[Touched]:
    """Play worlds one after another, and watch."""
    watch = Watch(drawn_edits(Draw(_OF_EDITS)), Purity().of)
    counts = Counter[str]()
    for played, number in enumerate(numbers, 1):
        run = drawn_world(number)
        restarts: tuple[Checker, ...] = (RecordChecker(), Ended()) if RESTART in run.parts else ()
        with watch.noting() as touched:
            play_drawn(run, (*restarts, _Asking()))
        counts.update(touched)
        yield Touched(number, frozenset(touched))
        if played % _FORGOTTEN_EACH == 0:
            watch.forget({it for it, count in counts.items() if count >= _ENOUGH})


def chosen(worlds: Iterable[Touched], size: int) -> list[int]:
    """Choose worlds one after another, each the one that adds most to those before it.

    Half of them are such in which all is looked at: what stands beside the core is at work in these
    alone.
    """
    ranked = _ranked({it.number: it.edits for it in worlds})
    whole = [it for it in ranked if it <= WHOLE][: (size + 1) // 2]
    others = [it for it in ranked if it > WHOLE][: size - len(whole)]
    taken = {*whole, *others}
    return [it for it in ranked if it in taken]


def _ranked(drawn: dict[int, frozenset[str]]) -> list[int]:
    """Return the worlds, each before all that add less to those before it."""
    counts = Counter[str]()

    def worth(number: int) -> float:
        return float(sum(0.5 ** counts[it] for it in drawn[number] if counts[it] < _WANTED))

    heap = [(-worth(number), number) for number in drawn]
    heapify(heap)
    found: list[int] = []
    while heap:
        _, number = heappop(heap)
        now = -worth(number)
        # The worth of a world only falls while others are chosen.
        if heap and now > heap[0][0]:
            heappush(heap, (now, number))
            continue
        found.append(number)
        counts.update(drawn[number])
    return found
