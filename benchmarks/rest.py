"""What it costs a core to be looked at: `python -m benchmarks.rest W4 --rounds 3`.

A workload runs alone, with the core's meter, followed by a read side in a process of its own, with
the calls of YuniKorn's pages once a second (dashboard, queues, applications), with its page of
nodes, with metrics, with the live page open (its stream, and its two lists once a second), and with
a simulation once a second, which the read side forks for. Each run has a process of its own, and
who asks has another one, which yields: in life it is on another computer. The modes take turns, so
that a busy computer is busy for all of them, and each is compared with the run alone of its round.
`share` is the processor time of the threads that the core's process has only to be looked at, as a
part of that of the workload, and of a meter the time in which it notes; it needs no other run to be
compared with. The time of Context is that of the processor, so what others do on the computer is
not in it.

The workload `waits` has 10,000 asks, one after the other, at the state where W4 ends. `holds` is
no workload: `benchmarks.holds` says how long each route holds the loop that answers.
"""

import argparse
import gc
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import cycle, islice
from typing import Any, Final, Self

from benchmarks import holds
from benchmarks.asking import CALLS, ask_from_elsewhere
from benchmarks.cli import HOME, RUN_LIMIT_S
from benchmarks.garbage import frozen
from benchmarks.load import Load
from benchmarks.run import Run, measure
from benchmarks.workloads import ASK, WORKLOADS, Flood, Outcome
from yunikorn_actors import SchedulerCore
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.followers import FollowEnded, FollowRequested
from yunikorn_actors.messages.queries import CountsRequested, ExplainRequested, StateDumpRequested
from yunikorn_actors.recording.meter import Gauge
from yunikorn_actors.service.listener import Site, Standing
from yunikorn_actors.service.rest.process import ProcessPart

ALONE: Final = "alone"
HOLDS: Final = "holds"
METERED: Final = "metered"
MODES: Final = (ALONE, METERED, *CALLS)
LOOKS: Final = (CountsRequested, FollowEnded, FollowRequested)
"""Messages to Context that only somebody who looks at it causes."""
CHECKS: Final = (ExplainRequested, StateDumpRequested)
"""Those by which the benchmark checks its result, when all is over."""
LOOKING: Final = ("yunikorn-actors-follower", "yunikorn-actors-rest")
"""How the names of threads begin that serve only those who look."""
CLOCK_READS: Final = 10_000


class Waits(Flood, frozen=True, kw_only=True):
    """A flood, and when all of it is placed one ask after the other; these are timed.

    What the flood has left is frozen for the collector: each of its full collections would take
    longer than all else, and they come as often when nobody looks.
    """

    rounds: int

    def drive(self, load: Load) -> Outcome:
        super().drive(load)
        load.settle()
        with frozen():
            load.begin()
            rotation = cycle(self.cluster.application_ids())
            for number, application_id in enumerate(islice(rotation, self.rounds)):
                load.submit(application_id, (f"{application_id}-then-{number}",), ASK)
                load.receive_all()
                load.release_oldest()
            return Outcome(timing=load.timing())


WORKLOADS_HERE: Final = WORKLOADS | {
    "waits": Waits(cluster=WORKLOADS["W4"].cluster, asks_each=100, rounds=10_000)
}


class Stopwatch(AbstractContextManager["Stopwatch"]):
    """Takes the processor time of each handler of Context, without what the collector takes.

    That works on whichever thread has made the last object, for all of them.
    """

    def __init__(self, core: SchedulerCore) -> None:
        self.worst_ms = 0.0
        self.worst_look_ms = 0.0
        """Of what somebody who looks has asked."""
        self._thread = 0
        self._collecting_s = 0.0
        context: Any = core._actors.by_address[CONTEXT].holder
        context.handle = self._timed(context.handle)
        context.handle_together = self._timed(context.handle_together)

    def __enter__(self) -> Self:
        gc.callbacks.append(self._note_collector)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._note_collector)

    def _timed(self, handle: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
        def timed(message: Message, now_ns: int) -> Any:  # noqa: ANN401 - effects
            self._thread = threading.get_ident()
            begin_s = time.thread_time() - self._collecting_s
            effects = handle(message, now_ns)
            took_ms = (time.thread_time() - self._collecting_s - begin_s) * 1e3
            if not isinstance(message, CHECKS):
                self.worst_ms = max(self.worst_ms, took_ms)
            if isinstance(message, LOOKS):
                self.worst_look_ms = max(self.worst_look_ms, took_ms)
            return effects

        return timed

    def _note_collector(self, phase: str, _: dict[str, int]) -> None:
        if threading.get_ident() == self._thread:
            now_s = time.thread_time()
            self._collecting_s += -now_s if phase == "start" else now_s


def looking_s() -> float:
    """Add up the processor time of the threads that nobody has who is not looked at."""
    return sum(
        time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        for thread in threading.enumerate()
        if thread.name.startswith(LOOKING) and thread.ident is not None
    )


class MeterWatch:
    """Takes the processor time of what a meter notes."""

    def __init__(self) -> None:
        self.calls = 0
        self._total_s = 0.0
        handled, joined = Gauge.handled, Gauge.joined
        self._former = handled, joined
        setattr(Gauge, "handled", self._timed(handled))  # noqa: B010 - in place of a method
        setattr(Gauge, "joined", self._timed(joined))  # noqa: B010 - in place of a method

    def _timed(self, note: Callable[..., None]) -> Callable[..., None]:
        def timed(*arguments: object) -> None:
            begin_s = time.thread_time()
            note(*arguments)
            self._total_s += time.thread_time() - begin_s
            self.calls += 1

        return timed

    def end(self) -> float:
        """Return the sum, without what it takes to read the clock."""
        Gauge.handled, Gauge.joined = self._former  # type: ignore[method-assign]
        begin_s = time.thread_time()
        for _ in range(CLOCK_READS):
            time.thread_time()
        each_s = (time.thread_time() - begin_s) / CLOCK_READS
        return max(0.0, self._total_s - self.calls * each_s)


@contextmanager
def looked_at(core: SchedulerCore, mode: str) -> Iterator[list[float]]:
    """Serve, and have somebody ask for what the mode says; give how long each round took."""
    rounds: list[float] = []
    if mode == METERED:
        core.measure()
    if mode not in CALLS:
        yield rounds
        return
    part = ProcessPart(Site(core, "127.0.0.1:0", Standing()))
    part.start()
    try:
        with ask_from_elsewhere(part.address, mode, rounds):
            yield rounds
    finally:
        part.stop(5.0)


def run(workload: str, mode: str) -> Run:
    with (
        SchedulerCore() as core,
        looked_at(core, mode) as rounds,
        Stopwatch(core) as stopwatch,
    ):
        watch = MeterWatch() if mode == METERED else None
        figures = measure(WORKLOADS_HERE[workload], Load(core))
        share = (watch.end() if watch else looking_s()) / figures["cpu_s"]
    return {
        **figures,
        "looking_share": share,
        "context_worst_ms": stopwatch.worst_ms,
        "look_worst_ms": stopwatch.worst_look_ms,
        "round_s": max(rounds, default=0.0),
    }


def _in_a_child(workload: str, mode: str) -> Run:
    child = subprocess.run(  # noqa: S603 - ourselves
        [sys.executable, "-m", "benchmarks.rest", workload, "--one", mode],
        stdout=subprocess.PIPE, text=True, timeout=RUN_LIMIT_S, check=True, cwd=HOME,
    )  # fmt: skip
    told: Run = json.loads(child.stdout)
    return told


def rounds_of(workload: str, modes: Sequence[str], count: int) -> Iterator[dict[str, Run]]:
    """Make each run; every second round goes backwards, so that no mode is always the later one."""
    for number in range(count):
        order = modes if number % 2 == 0 else modes[::-1]
        yield {mode: _in_a_child(workload, mode) for mode in order}


def lines(found: Sequence[dict[str, Run]], modes: Sequence[str]) -> Iterator[str]:
    """Yield a line for each mode: medians, and the medians of the ratios to the run alone."""
    yield (
        "mode      allocations/s  ratio  CPU us  ratio  share  p50 ms  p99 ms  ratio  worst ms"
        "  Context ms  looks ms  round s"
    )
    for mode in modes:
        runs = [each[mode] for each in found]
        ratios = [_ratios(each[mode], each[ALONE]) for each in found if ALONE in each]
        rate, cpu, p99 = (map(statistics.median, zip(*ratios, strict=True))) if ratios else [1] * 3
        middle = {
            name: statistics.median(it[name] for it in runs)
            for name in ("allocations_per_s", "cpu_us_each")
        }
        latency = {
            name: statistics.median(it["latency_ms"][name] for it in runs)
            for name in ("p50", "p99", "max")
        }
        yield (
            f"{mode:9} {middle['allocations_per_s']:13,.0f} {rate:6.3f} "
            f"{middle['cpu_us_each']:7.1f} {cpu:6.3f} "
            f"{statistics.median(it['looking_share'] for it in runs):6.3f} {latency['p50']:7.2f} "
            f"{latency['p99']:7.2f} {p99:6.2f} {latency['max']:9.1f} "
            f"{max(it['context_worst_ms'] for it in runs):11.1f} "
            f"{max(it['look_worst_ms'] for it in runs):9.2f} "
            f"{max(it['round_s'] for it in runs):8.2f}"
        )


def _ratios(one: Run, alone: Run) -> tuple[float, float, float]:
    return (
        one["allocations_per_s"] / alone["allocations_per_s"],
        one["cpu_us_each"] / alone["cpu_us_each"],
        one["latency_ms"]["p99"] / alone["latency_ms"]["p99"],
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rest", description=__doc__)
    parser.add_argument("workload", choices=(*WORKLOADS_HERE, HOLDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modes", nargs="*", choices=MODES, default=MODES)
    parser.add_argument("--one", choices=MODES, help="make one run in this very process")
    options = parser.parse_args(arguments)
    if options.workload == HOLDS:
        holds.main()
        return
    if options.one:
        print(json.dumps(run(options.workload, options.one)))
        return
    found = list(rounds_of(options.workload, options.modes, options.rounds))
    print(*lines(found, options.modes), sep="\n")


if __name__ == "__main__":
    main()
