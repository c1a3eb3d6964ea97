"""Whether a change of the code is one of behaviour: `python -m tests.frozen write|compare FILE`.

Before a move or a rename `write` notes a digest of each of many runs and outputs, and `compare`
names those that are different after it: every scenario file in both topologies with a few seeds,
drawn scripts, tapes of the laboratory's cases, public names with their signatures, what commands
print of a recording, and the page of REST. Recordings of former versions are kept in `formats`.
"""

import argparse
import contextlib
import hashlib
import inspect
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yunikorn_actors
from tests.helpers.drawn_scripts import drawn_script
from yunikorn_actors import si
from yunikorn_actors.cli import main as command
from yunikorn_actors.lab.case import read_case
from yunikorn_actors.lab.explore import Options, Runs
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.scenario.document import parse_scenario, read_scenario
from yunikorn_actors.scenario.runner import RunOptions, run_scenario

TESTS = Path(__file__).parent
CASES = Path(yunikorn_actors.__file__).parent / "lab" / "cases"
RECORDING = TESTS / "formats" / "trace-2.msgpack"
QUESTIONS = (
    "show --json", "stats --json", "refusals --json", "draw", "query --json %s", "story --json job",
    "chain --json context/20", "chain --json --down context/20", "path --json task-0", "at context/20",
    "why task-5", "replay", "export --to jsonl", "export --to perfetto",
)  # fmt: skip
TABLES = "select * from message limit 50"
Row = tuple[str, str]


def scenarios(folders: list[Path], seeds: int) -> Iterator[Row]:
    for folder in folders:
        for file in sorted(folder.rglob("*.yaml")):
            scenario = read_scenario(file)
            for topology in TOPOLOGIES:
                for seed in range(seeds):
                    options = RunOptions(seeds=(seed,), topology=topology)
                    name = f"{folder.name}/{file.relative_to(folder)} {topology} {seed}"
                    yield name, str(run_scenario(scenario, options).digest)


def scripts(number: int) -> Iterator[Row]:
    for seed in range(1, number + 1):
        scenario = parse_scenario(json.dumps(drawn_script(seed)), "script.yaml")
        for topology in TOPOLOGIES:
            options = RunOptions(seeds=(seed,), topology=topology)
            yield f"script {seed} {topology}", str(run_scenario(scenario, options).digest)


def tapes(number: int) -> Iterator[Row]:
    for file in sorted(CASES.rglob("*.yaml")):
        for topology in TOPOLOGIES:
            runs = Runs(case=read_case(file, topology), options=Options())
            for run in range(number):
                yield f"tape {file.stem} {topology} {run}", runs.play(run).order.hex()


def names() -> Iterator[Row]:
    for front in (yunikorn_actors, si):
        for name in front.__all__:
            found = getattr(front, name)
            yield f"{front.__name__}.{name}", _signature(found)
            if isinstance(found, type):
                for member in sorted(it for it in dir(found) if not it.startswith("_")):
                    yield f"{name}.{member}", _signature(getattr(found, member))


def _signature(found: object) -> str:
    try:
        # A type is the same one in whatever module it stands.
        return re.sub(r"\byunikorn_actors\.[a-z_.]+\.(?=[A-Z])", "", str(inspect.signature(found)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return type(found).__name__


def outputs() -> Iterator[Row]:
    for question in QUESTIONS:
        verb, *rest = question.split()
        words = [TABLES if word == "%s" else word for word in rest]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status: object = command(["trace", verb, str(RECORDING), *words])
            except SystemExit as ended:
                status = ended.code
        yield f"trace {question}", f"{status} {_digest(out.getvalue() + err.getvalue())}"


def openapi() -> Iterator[Row]:
    page = TESTS.parent / "docs" / "reference" / "openapi.json"
    if page.exists():
        yield "openapi.json", _digest(page.read_text("utf-8"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def rows(options: argparse.Namespace) -> Iterator[Row]:
    yield from names()
    yield from outputs()
    yield from openapi()
    yield from scenarios([TESTS / "scenarios", *options.scenarios], options.seeds)
    yield from scripts(options.scripts)
    yield from tapes(options.tapes)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.frozen", description=__doc__)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--scenarios", type=Path, nargs="*", default=[], help="further folders")
    parser.add_argument("--seeds", type=int, default=3, help="of each scenario file (3)")
    parser.add_argument("--scripts", type=int, default=200, help="how many (200)")
    parser.add_argument("--tapes", type=int, default=4, help="runs of each case (4)")
    options = parser.parse_args(arguments)
    now = dict(rows(options))
    if options.action == "write":
        options.file.write_text(json.dumps(now, indent=0))
        sys.stdout.write(f"{len(now)} digests written\n")
        return 0
    before = json.loads(options.file.read_text())
    different = [name for name in before | now if before.get(name) != now.get(name)]
    for name in different:
        sys.stdout.write(f"{name}: {before.get(name, 'new')} -> {now.get(name, 'gone')}\n")
    sys.stdout.write(f"{len(before)} digests, {len(different)} different\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
