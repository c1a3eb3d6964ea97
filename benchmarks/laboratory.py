"""How fast the laboratory explores: messages a second, and milliseconds for a drawn world.

`python -m benchmarks.laboratory` plays the cases of the package in drawn orders, with all oracles
of `lab run` and with none, then worlds of `lab swarm` and of the packaged baseline, on one thread.
Each piece is played several times and the quickest counts: whatever else the computer does only
ever adds to it.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

from benchmarks import calibrate
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.baseline import seen_in
from yunikorn_actors.lab.case import PACKAGE, read_case
from yunikorn_actors.lab.explore import Options, Runs
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.swarm.swarm_runs import Plan, played
from yunikorn_actors.lab.workers.process_pool import seldom_collecting

_LENGTH: Final = 100
"""About so many messages a case has."""
_TIMES: Final = 3
"""So often each piece is played."""
_SEED: Final = 3

Judges = Callable[[], tuple[Checker, ...]]
JUDGES: Final[dict[str, Judges]] = {"all oracles": oracles, "unchecked": tuple}


def explored(judges: Judges, runs: int, named: str = "*") -> float:
    """Return how many messages a second are delivered in so many orders of each case."""
    messages, took_s = 0, 0.0
    for file in sorted((PACKAGE / "lab/cases").glob(f"{named}.yaml")):
        case = read_case(file)
        search = Runs(case=case, options=Options(checkers=judges), length=_LENGTH)
        numbers = range(1, runs + 1)
        messages += sum(search.play(number).messages for number in numbers)
        took_s += _quickest_s(lambda: [search.play(number) for number in numbers])  # noqa: B023
    return messages / took_s


def worlds_ms(play: Callable[[int], object], worlds: int) -> list[float]:
    """Return how long each of the first so many worlds takes, to draw it as well."""
    return [1_000 * _quickest_s(lambda: play(number)) for number in range(1, worlds + 1)]  # noqa: B023


def _quickest_s(piece: Callable[[], object]) -> float:
    def took_s() -> float:
        began = time.process_time()
        piece()
        return time.process_time() - began

    return min(took_s() for _ in range(_TIMES))


def lines(runs: int, worlds: int, named: str = "*") -> Iterator[str]:
    for name, judges in JUDGES.items():
        yield f"cases of the package, {name:12}  {explored(judges, runs, named):7,.0f} messages/s"
    plan = Plan(seed=_SEED)
    plays: dict[str, Callable[[int], object]] = {
        f"worlds of lab swarm, seed {_SEED}": lambda number: played(plan, number),
        "worlds of the packaged baseline": seen_in,
    }
    for name, play in plays.items():
        each = worlds_ms(play, worlds)
        yield f"{name:35}  median {median(each):4.0f} ms, mean {sum(each) / len(each):4.0f} ms"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.laboratory", description=__doc__)
    parser.add_argument("--runs", type=int, default=6, help="orders of each case (default: 6)")
    parser.add_argument("--worlds", type=int, default=40, help="of each kind (default: 40)")
    parser.add_argument("--cases", default="*", help="those with such names (default: all)")
    options = parser.parse_args(arguments)
    with seldom_collecting():
        for line in lines(options.runs, options.worlds, options.cases):
            print(line, flush=True)
    print(f"calibration {calibrate.measure():.2f}")


if __name__ == "__main__":
    main()
