"""Watch the core schedule a small cluster.

A real core runs on threads. The resource manager in the same process invents its nodes and its
work, so no real work runs. The run is recorded, so that it can be studied.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from yunikorn_actors.cli.demo.company import MILLI, Day, draw_day
from yunikorn_actors.cli.demo.display import display_for
from yunikorn_actors.cli.demo.picture import indented
from yunikorn_actors.cli.demo.play import Play, Unexpected
from yunikorn_actors.cli.demo.totals import Books, QueueBook
from yunikorn_actors.errors import CoreError
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.values.durations import SECOND

_HEADS: Final = ("apps", "tasks", "peak vcore", "max", "mean wait")
_GAP: Final = "  "


def report(books: Books) -> list[str]:
    """The table at the end. A parent counts all below it, so all columns but the peak add up."""
    queues = tuple(books.queues.values())
    rows = [_HEADS, *(_cells(queue) for queue in queues)]
    names = ["queue", *(indented(queue) for queue in queues)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    left = max(len(name) for name in names)
    return [
        _GAP.join(
            [f"{name:{left}}", *(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True))]
        )
        for name, row in zip(names, rows, strict=True)
    ]


def _cells(queue: QueueBook) -> tuple[str, ...]:
    return (
        str(queue.applications),
        str(queue.tasks),
        str(queue.peak // MILLI),
        str(queue.room // MILLI),
        f"{queue.mean_wait_ms} ms",
    )


SETTINGS: Final = Settings(completing_timeout_ns=SECOND)
"""An application without work completes soon; else the demo would end with a long silence."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="the day to play (default: %(default)s)"
    )
    parser.add_argument(
        "--topology", choices=TOPOLOGIES, default=TOPOLOGIES[0],
        help="proposing plans on a replica, fused plans where it commits (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--trace", type=Path, default=Path("yunikorn-demo.trace"), metavar="FILE",
        help="where the run is recorded (default: %(default)s)",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    core = SchedulerCore(
        topology=options.topology, settings=SETTINGS, instance="demo", trace=options.trace
    )
    try:
        core.start()
    except OSError as error:
        print(f"{options.trace}: {error.strerror}", file=sys.stderr)
        return 2
    try:
        books = _play(core, draw_day(options.seed))
    except (CoreError, Unexpected) as error:
        print(f"the demo has failed: {error}", file=sys.stderr)
        print(f"all that happened until then is in {options.trace}", file=sys.stderr)
        return 1
    finally:
        core.stop()
    return _close(core, books, options.trace)


def _play(core: SchedulerCore, day: Day) -> Books:
    vcore = sum(machine.vcore for machine in day.machines) // MILLI
    tasks = sum(len(app.tasks) for app in day.applications)
    print(f"{len(day.machines)} nodes, {vcore} vcore;", end=" ")
    print(f"{len(day.applications)} applications, {tasks} tasks\n", flush=True)
    with display_for(sys.stdout) as display:
        return Play(core, day, display).run()


def _close(core: SchedulerCore, books: Books, trace: Path) -> int:
    print()
    for line in report(books):
        print(line)
    if core.trace_failure is not None:
        print(f"the trace {trace} is incomplete: {core.trace_failure}", file=sys.stderr)
        return 1
    print(f"\nevery message of it is recorded in {trace}")
    print(f"look with: yunikorn-actors trace show {trace}")
    return 0
