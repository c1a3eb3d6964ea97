"""How the cost of a call grows with what waits, counted in steps of the interpreter.

A clock would say it of this computer at this moment. A call may look at all that waits; it may not
look at all of it for each of it.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, Final

from yunikorn_actors.lab.policy_check.findings import Findings
from yunikorn_actors.policies.guard import tried
from yunikorn_actors.policies.inputs import Arrived, Job, Running, Sized, Started
from yunikorn_actors.policies.profile import profile_of
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import Resource, add, fits_in
from yunikorn_actors.values.tags import CPU

WAITING: Final = (32, 64)
MOST: Final = 3.0
"""Twice as many that wait cost about twice as much, where a call looks at each; four times, where
it looks at all for each."""
_CAPACITY: Final = 32
_PACKAGE: Final = str(Path(__file__).parents[2])


class _Pool:
    """What a gate sees of a leaf in which the first few run and the others wait."""

    queue = "root.jobs"
    now_ns = 1_000 * SECOND

    def __init__(self, waiting: int) -> None:
        ends = range(1, _CAPACITY + 1)
        self.running = [Running({CPU: 1}, self.now_ns + at * SECOND) for at in ends]
        self.waiting = [_job(at) for at in range(waiting)]
        self.held: list[Job] = []
        self._future = profile_of(
            {CPU: 4}, self.now_ns, [(it.size, it.end_ns) for it in self.running]
        )

    def end_of(self, job: Job) -> int:
        return job.end_ns(self.now_ns)

    def earliest(self, job: Job) -> int:
        return self._future.earliest(job.total)

    def fits_beside(self, job: Job, other: Job, at_ns: int) -> bool:
        return fits_in(add(job.total, other.total), self._future.free_at(at_ns))


def _job(at: int) -> Job:
    return Job(
        id=f"app-{at}/work",
        application_id=f"app-{at}",
        queue=_Pool.queue,
        user=f"user-{at % 5}",
        group=f"group-{at % 3}",
        size={CPU: 1 + at % 7},
        runtime_ns=(1 + at * 13 % 17) * SECOND,
        submitted_ns=(_CAPACITY + at) * SECOND,
        priority=at % 2,
    )


def name_growing(make: Callable[[], Any], findings: Findings) -> None:
    """Name the methods whose calls cost four times as much where twice as many jobs wait."""
    few, many = (_steps_of(make(), number) for number in WAITING)
    for method, steps in many.items():
        if steps > MOST * few.get(method, steps):
            what = (
                f"{method} grows with the square of what waits ({few[method]:,} steps where "
                f"{WAITING[0]} jobs wait, {steps:,} where {WAITING[1]} do)"
            )
            findings.add("slow", what, method)


def _steps_of(policy: Any, waiting: int) -> dict[str, int]:  # noqa: ANN401 - it has what it has
    """Count the steps of the last call of each method; one that raises is named elsewhere."""
    pool, found = _Pool(waiting), dict[str, int]()
    counted = _Steps(policy)
    if hasattr(policy, "observe"):
        for fact, at_ns in _facts(pool):
            found["observe"] = counted.of(policy.observe, fact, at_ns)
    if hasattr(policy, "may_start"):
        first = counted.of(policy.may_start, pool.waiting[0], pool)
        pool.held = pool.waiting[:-1]
        found["may_start"] = max(first, counted.of(policy.may_start, pool.waiting[-1], pool))
    if hasattr(policy, "application_key"):
        found["application_key"] = counted.of(policy.application_key, _seen(pool.waiting[-1]))
    return found


def _facts(pool: _Pool) -> Iterator[tuple[Any, int]]:
    yield Sized({CPU: _CAPACITY}), 0
    for at in range(-_CAPACITY, 0):
        yield Started(_job(at)), (_CAPACITY + at) * SECOND
    for job in pool.waiting:
        yield Arrived(job), job.submitted_ns


def _seen(job: Job) -> SimpleNamespace:
    nothing: Resource = {}
    return SimpleNamespace(
        id=job.application_id, queue=job.queue, user=job.user, group=job.group, tags={},
        submitted_ns=job.submitted_ns, guaranteed=nothing, capacity={CPU: _CAPACITY}, used=nothing,
        runtime_ns=job.runtime_ns, size=job.size,
    )  # fmt: skip


class _Steps:
    """Counts what the interpreter does for a policy, but for what this package does for it."""

    def __init__(self, policy: object) -> None:
        self._own, _ = tried("its file", lambda: inspect.getsourcefile(type(policy)))
        self._steps = 0

    def of(self, method: Callable[..., Any], *given: object) -> int:
        self._steps, before = 0, sys.gettrace()
        sys.settrace(self._enter)
        try:
            tried("a call", lambda: method(*given))
        finally:
            sys.settrace(before)
        return self._steps

    def _enter(self, frame: FrameType, _: str, __: object) -> Any:  # noqa: ANN401 - of the same kind
        file = frame.f_code.co_filename
        if file.startswith(_PACKAGE) and file != self._own:
            return None
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, _: FrameType, event: str, __: object) -> Any:  # noqa: ANN401 - as above
        self._steps += event == "opcode"
        return self._step
