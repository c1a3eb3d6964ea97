"""Run drawn scripts under the judge: `python -m tests.differential --scripts 20000 --seed 1`.

Prints one line that sums up, and each difference as a scenario file that is as small as it gets.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from differential.runs import bounded, judged, kind_of, shrunk
from differential.scripts import drawn_script
from yunikorn_actors.lab.scenario_documents import Document, written
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

PORTION = 50


class Found(NamedTuple):
    number: int
    topology: TopologyName
    seed: int
    difference: str


class Portion(NamedTuple):
    runs: int
    checks: Counter[str]
    undecided: Counter[str]
    found: list[Found]


def run_portion(numbers: range, topologies: tuple[TopologyName, ...]) -> Portion:
    portion = Portion(len(numbers) * len(topologies), Counter(), Counter(), [])
    for number in numbers:
        script = drawn_script(number)
        for topology in topologies:
            verdict = judged(script, topology, seed_of(number))
            portion.checks.update(verdict.checks)
            portion.undecided.update(verdict.undecided)
            if verdict.difference:
                seed = seed_of(number)
                portion.found.append(Found(number, topology, seed, verdict.difference))
    return portion


def seed_of(number: int) -> int:
    """Every second script runs in plain order, so that most decisions can be judged."""
    return number if number % 2 else 0


def small(found: Found) -> Document:
    """Make the script small that shows a difference of this kind."""
    kind = kind_of(found.difference)
    return shrunk(
        drawn_script(found.number),
        lambda script: kind_of(judged(script, found.topology, found.seed).difference) == kind,
    )


def portions(scripts: int, first: int) -> Iterator[range]:
    for start in range(first, first + scripts, PORTION):
        yield range(start, min(start + PORTION, first + scripts))


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    topologies: tuple[TopologyName, ...] = (options.topology,) if options.topology else TOPOLOGIES
    checks: Counter[str] = Counter()
    undecided: Counter[str] = Counter()
    runs, found, shown = 0, 0, Counter[str]()
    with ProcessPoolExecutor(options.jobs) as pool:
        parts = portions(options.scripts, options.seed)
        for portion in pool.map(run_portion, parts, _same(topologies)):
            runs += portion.runs
            checks += portion.checks
            undecided += portion.undecided
            for item in portion.found:
                found += 1
                shown[kind_of(item.difference)] += 1
                if shown[kind_of(item.difference)] <= options.show:
                    _show(item, options.save)
    share = 100 * undecided.total() / max(1, checks.total())
    _tell(
        f"{options.scripts} scripts, {runs} runs, {checks.total()} checks, "
        f"{undecided.total()} undecided ({share:.2f} %), {found} differences"
    )
    for kind, times in shown.most_common():
        _tell(f"  {times} x {kind}")
    return 1 if found else 0


def _tell(text: str) -> None:
    sys.stdout.write(text + "\n")


def _same(topologies: tuple[TopologyName, ...]) -> Iterator[tuple[TopologyName, ...]]:
    while True:
        yield topologies


def _show(found: Found, folder: Path | None) -> None:
    script = {
        "name": f"script {found.number} on {found.topology}, seed {found.seed}",
        **bounded(small(found), found.seed),
    }
    text = f"# {found.difference}\n{written(script)}"
    if folder is None:
        _tell(text)
        return
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{found.number}-{found.topology}.yaml"
    (folder / name).write_text(text)
    _tell(f"{folder / name}: {found.difference}")


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--scripts", type=int, default=300, help="how many scripts (300)")
    parser.add_argument("--seed", type=int, default=1, help="number of the first script (1)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--topology", choices=TOPOLOGIES, help="both unless given")
    parser.add_argument("--show", type=int, default=1, help="differences of one kind to show (1)")
    parser.add_argument("--save", type=Path, help="folder for the scenario files, else printed")
    options: argparse.Namespace = parser.parse_args(arguments)
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
