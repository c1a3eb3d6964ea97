"""The state of a recorded core at some moment, by running the recording again up to there."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from yunikorn_actors.domain.snapshot import DUMP_FORMAT
from yunikorn_actors.gateway import waiting_of
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.context.partitions import REJECTED_TOLD_MAX
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.queries import ExplainRequested
from yunikorn_actors.trace.fields import Change, changes
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import Rerun
from yunikorn_actors.trace.wanted import Moment

State = dict[str, Any]


def states_at(trace: TraceReader, moments: Sequence[Moment]) -> list[State | None]:
    """Return a state dump for each moment, None if the recording does not come that far.

    It is as `state_dump` of the core would have it after that message; what resource managers say
    of themselves is in no recording. Raises DifferentError where the replay is another run.
    """
    found: list[State | None] = [None] * len(moments)
    rerun = Rerun(trace.header)
    for delivery, _ in rerun.follow(trace):
        for number, moment in enumerate(moments):
            if found[number] is None and moment.is_reached(trace, delivery):
                found[number] = _state(_copied(rerun), delivery.at_ns)
        if None not in found:
            break
    return found


def state_changes(one: State, other: State) -> Iterator[Change]:
    """Yield what is different, but for why asks wait: that follows from the rest."""
    return changes({**one, "waiting": {}}, {**other, "waiting": {}})


def _copied(rerun: Rerun) -> Rerun:
    """Return one that may be settled: more may come to what is being handled as one here."""
    # Not by pickle: it makes new texts, and an encoder omits a default only if it is the very same.
    copied = deepcopy(rerun)
    copied.settle()
    return copied


def _state(rerun: Rerun, now_ns: int) -> State:
    context = rerun.machines[CONTEXT]
    assert isinstance(context, Context)
    waiting = {
        name: _waiting(rerun, partition, now_ns) for name, partition in context.partitions.items()
    }
    return context.canonical_state() | {
        "format": DUMP_FORMAT,
        "waiting": waiting,
        "rm_diagnostics": {},
        "unhandled_requests": {},
        "callback_errors": {},
    }


def _waiting(rerun: Rerun, partition: PartitionContext, now_ns: int) -> dict[str, Any]:
    loop = partition.loop or _loop_of(rerun, partition)
    if loop is None:
        return {}
    question = ExplainRequested(partition=partition.name, application_id="", key="", reply_to="")
    answer = loop.explain(question, now_ns)
    rejected = partition.rejections.newest(REJECTED_TOLD_MAX, now_ns)
    return waiting_of(replace(answer, rejected=rejected))


def _loop_of(rerun: Rerun, partition: PartitionContext) -> PlanningLoop | None:
    """Return the planner of a Scheduler that has begun."""
    scheduler = rerun.machines.get(partition.speaker or "")
    return scheduler.loop if isinstance(scheduler, Scheduler) else None
