"""The state of a recorded core at some moment, by running the recording replay up to there."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from yunikorn_actors.core.questions import waiting_of
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.context.partitions import REJECTED_TOLD_MAX
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.queries import ExplainRequested
from yunikorn_actors.recording.packed import packed, unpacked
from yunikorn_actors.state.dump import DUMP_FORMAT
from yunikorn_actors.trace.checkpointed_replay import CheckpointedReplay
from yunikorn_actors.trace.checkpoints import Checkpoint, Checkpoints
from yunikorn_actors.trace.fields import Change, changes
from yunikorn_actors.trace.filters import Moment
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import Rerun
from yunikorn_actors.values.durations import SECOND

State = dict[str, Any]
_OF_THE_MOMENT: Final = {"at_ns": 0, "waiting": {}}


def states_at(
    trace: TraceReader, moments: Sequence[Moment], checkpoints: Checkpoints | None = None
) -> list[State | None]:
    """Return a state dump for each moment, None if the recording does not come that far.

    It is as `state_dump` of the core would have it after that message; what resource managers say
    of themselves is in no recording. Raises DifferentError where the replay is another run.
    """
    found: list[State | None] = [None] * len(moments)
    replay = CheckpointedReplay(
        trace,
        checkpoints,
        lambda checkpoint: not any(_is_passed(it, trace, checkpoint) for it in moments),
    )
    for delivery, _ in replay.follow():
        for number, moment in enumerate(moments):
            if found[number] is None and moment.is_reached(trace, delivery):
                found[number] = _state(copied(replay.rerun), delivery.at_ns)
        if None not in found:
            break
    return found


def state_changes(one: State, other: State) -> Iterator[Change]:
    """Yield what is different, but for the moments, and for why asks wait: that follows."""
    return changes({**one, **_OF_THE_MOMENT}, {**other, **_OF_THE_MOMENT})


def reach_of(path: Path) -> str:
    """Say how far a recording comes, where less than was asked for."""
    with TraceReader(path) as trace:
        last_ns = trace.header.start_ns
        for head in trace.heads():
            last_ns = max(last_ns, head.at_ns)
            number = trace.number
        if not trace.messages:
            return "the recording has no messages"
        after_s = (last_ns - trace.header.start_ns) / SECOND
        return (
            "the recording does not come that far: its last message is record "
            f"{number}, {after_s:g}s after the start"
        )


def _is_passed(moment: Moment, trace: TraceReader, checkpoint: Checkpoint) -> bool:
    """Whether it was reached at the checkpoint, or before it."""
    if moment.after_ns is not None:
        return checkpoint.latest_ns - trace.header.start_ns >= moment.after_ns
    if moment.step is not None:
        return checkpoint.steps.get(moment.step.mailbox, 0) >= moment.step.step
    return moment.record is None or checkpoint.record >= moment.record


def copied(rerun: Rerun) -> Rerun:
    """Return one that may be settled: more may come to what is being handled as one here."""
    copied: Rerun = unpacked(packed(rerun))
    copied.settle()
    return copied


def _state(rerun: Rerun, now_ns: int) -> State:
    context = rerun.machines[CONTEXT]
    assert isinstance(context, Context)
    waiting = {
        name: _waiting(rerun, partition, now_ns) for name, partition in context.partitions.items()
    }
    return context.whole_state(now_ns) | {
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
    question = ExplainRequested(
        partition=partition.name, application_id="", key="", reply_to="", in_units=True
    )
    answer = loop.explain(question, now_ns)
    rejected = partition.rejections.newest(REJECTED_TOLD_MAX, now_ns)
    return waiting_of(replace(answer, rejected=rejected))


def _loop_of(rerun: Rerun, partition: PartitionContext) -> PlanningLoop | None:
    """Return the planner of a Scheduler that has begun."""
    scheduler = rerun.machines.get(partition.planning or "")
    return scheduler.loop if isinstance(scheduler, Scheduler) else None
