"""What it costs to ask a recording: processor time and peak of memory of each command.

`python -m benchmarks.questions --applications 3000` records applications that come and go on a
cluster which is nearly full, with a gang among every ten, and asks each question in a process of
its own; then it asks some in one process, of one recording opened in Python. `--keep FILE` keeps
the recording, or takes it if it is there.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import yunikorn_actors.trace
from yunikorn_actors import SchedulerCore, TraceSettings, si
from yunikorn_actors.trace.read import TraceReader

RM = "rm-1"
CONFIG = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
)
NODES = 50
LIVING = 40
"""Applications at a time."""
TASKS = 10
GANG = 10
"""One in so many is a gang."""
SIZE = si.Resource.of({"vcore": 1, "memory": 4})


class Manager(si.ResourceManagerCallback):
    """Confirms that placeholders are gone."""

    def __init__(self) -> None:
        self.gone: deque[si.AllocationRelease] = deque()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.gone.extend(
            it
            for it in response.released
            if it.termination_type is si.TerminationType.PLACEHOLDER_REPLACED
        )


class Town:
    """Applications come, run and go, one step at a time."""

    def __init__(self, core: SchedulerCore, manager: Manager) -> None:
        self._core = core
        self._manager = manager
        self._born = 0
        self._living: deque[str] = deque()
        core.register_resource_manager(
            si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG), self._manager
        )
        size = si.Resource.of({"vcore": 7, "memory": 64})
        create = si.ActionFromRM.CREATE
        for number in range(NODES):
            node = si.NodeInfo(
                node_id=f"node-{number:02}", action=create, schedulable_resource=size
            )
            core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))

    def live(self) -> None:
        """One application more, and one fewer if there are enough."""
        name, is_gang = f"app-{self._born}", self._born % GANG == 0
        self._born += 1
        new = si.AddApplicationRequest(
            application_id=name, queue_name="root.a",
            ugi=si.UserGroupInformation(user=f"user-{self._born % 7}"),
            placeholder_ask=si.Resource.of({"vcore": TASKS}) if is_gang else None,
        )  # fmt: skip
        self._core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
        if is_gang:
            self._ask(name, "holder", placeholder=True)
        self._ask(name, "task", in_gang=is_gang)
        self._living.append(name)
        while self._manager.gone:
            self._release((self._manager.gone.popleft(),))
        if len(self._living) > LIVING:
            self._end(self._living.popleft())

    def _ask(
        self, name: str, kind: str, *, placeholder: bool = False, in_gang: bool = False
    ) -> None:
        for number in range(TASKS):
            ask = si.AllocationAsk(
                application_id=name, allocation_key=f"{name}-{kind}-{number}", resource_ask=SIZE,
                placeholder=placeholder, task_group_name="team" if placeholder or in_gang else "",
            )  # fmt: skip
            self._core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))

    def _end(self, name: str) -> None:
        for number in range(TASKS):
            key = f"{name}-task-{number}"
            self._release((si.AllocationRelease(application_id=name, allocation_key=key),))
        gone = si.RemoveApplicationRequest(application_id=name)
        self._core.update_application(si.ApplicationRequest(rm_id=RM, remove=(gone,)))

    def _release(self, gone: tuple[si.AllocationRelease, ...]) -> None:
        releases = si.AllocationReleasesRequest(allocations_to_release=gone)
        self._core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))


def record(path: Path, applications: int) -> None:
    with SchedulerCore(driver="direct", trace=TraceSettings(path=path)) as core:
        town = Town(core, Manager())
        for _ in range(applications):
            town.live()


class Cost(NamedTuple):
    """What one command took."""

    question: str
    seconds: float
    cpu_s: float
    peak_mib: float
    status: int


def questions(path: Path, applications: int) -> Iterator[tuple[str, list[str]]]:
    """Ask about things in the middle of the recording; what is asked again is of another life."""
    one, other = (f"app-{applications * part // 10}-task-3" for part in (5, 6))
    file = str(path)
    yield "show", ["show", file]
    yield "stats", ["stats", file]
    yield "story", ["story", file, one]
    yield "story of another", ["story", file, other]
    yield "why", ["why", file, one]
    yield "why of another", ["why", file, other]
    yield "view", ["view", file, "--why", "none", "-o", os.devnull]
    yield "replay", ["replay", file]
    yield "diff", ["diff", file, file]


def in_python(path: Path, applications: int) -> Iterator[Cost]:
    """Ask one recording several questions in this very process, which has the peak of all."""
    recording = yunikorn_actors.trace.open(path)
    keys = (f"app-{applications * part // 10}-task-3" for part in (5, 6, 2))
    last = f"{9 * recording.stats().messages // 10}"
    asked: list[tuple[str, Callable[[], object]]] = [(f"at {last}", lambda: recording.at(last))]
    asked += [(f"why {key}", partial(recording.why, key)) for key in keys]
    for name, question in asked:
        begin, cpu_s = time.perf_counter(), time.process_time()
        status = 0 if question() else 1
        yield Cost(
            question=name,
            seconds=time.perf_counter() - begin,
            cpu_s=time.process_time() - cpu_s,
            peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            status=status,
        )


def ask(name: str, arguments: Sequence[str]) -> Cost:
    """Run the command in a process of its own, which alone has the peak of its memory."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "yunikorn_actors", "trace", *arguments]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - ourselves
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Cost(
        question=name,
        seconds=time.perf_counter() - begin,
        cpu_s=used.ru_utime + used.ru_stime,
        peak_mib=used.ru_maxrss / 1024,
        status=child.returncode,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    with _recording(options) as path:
        with TraceReader(path) as trace:
            messages = sum(1 for _ in trace)
        print(f"{messages:,} messages, {path.stat().st_size / 2**20:,.0f} MiB")
        print(f"{'question':<18} {'s':>8} {'cpu s':>8} {'MiB':>6}")
        for name, question in questions(path, options.applications):
            if not options.only or name.split()[0] in options.only:
                _print(ask(name, question))
        if not options.only or "python" in options.only:
            for cost in in_python(path, options.applications):
                _print(cost)


def _print(it: Cost) -> None:
    failed = f"  status {it.status}" if it.status else ""
    figures = f"{it.seconds:>8.1f} {it.cpu_s:>8.1f} {it.peak_mib:>6.0f}"
    print(f"{it.question:<18} {figures}{failed}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("--applications", type=int, default=3_000, help="how many there are")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="the recording")
    parser.add_argument("--only", nargs="*", metavar="QUESTION", help="ask only these")
    return parser


@contextmanager
def _recording(options: argparse.Namespace) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="questions-") as folder:
        path = options.keep or Path(folder, "run.trace")
        if not path.exists():
            record(path, options.applications)
        yield path


if __name__ == "__main__":
    main()
