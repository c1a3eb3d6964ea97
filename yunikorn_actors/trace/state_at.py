"""The state of a recorded core at some moment, by running the recording replay up to there."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import convert
from msgspec.structs import replace

from yunikorn_actors.core.questions import waiting_of
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.context.partitions import REJECTED_TOLD_MAX
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.queries import ExplainRequested
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.recording.packed import packed, unpacked
from yunikorn_actors.state.dump import DUMP_FORMAT
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.trace.checkpointed_replay import Checkpoint, CheckpointedReplay, Checkpoints
from yunikorn_actors.trace.fields import Change, changes
from yunikorn_actors.trace.filters import Moment
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import Rerun
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, CoreState, loop_of, state_of_context

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
    """Say from where to where a recording goes, where it has no such place as was asked for."""
    with TraceReader(path) as trace:
        last_ns, first = trace.header.start_ns, 0
        for head in trace.heads():
            last_ns, first = max(last_ns, head.at_ns), first or trace.number
            number = trace.number
        if not first:
            return "the recording has no messages"
        after_s = (last_ns - trace.header.start_ns) / SECOND
        return (
            f"the recording has no such place: its first message is record {first}, its last one "
            f"record {number}, {after_s:g}s after the start"
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
    loop = loop_of(rerun.machines, partition)
    if loop is None:
        return {}
    question = ExplainRequested(
        partition=partition.name, application_id="", key="", reply_to="", in_units=True
    )
    answer = loop.explain(question, now_ns)
    rejected = partition.rejections.newest(REJECTED_TOLD_MAX, now_ns)
    return waiting_of(replace(answer, rejected=rejected))


class Replicas:
    """Facts go to several receivers; here they count when the first of them gets them."""

    def __init__(self) -> None:
        self.states: dict[tuple[str, int], PartitionState | None] = {}
        """Of each life of a partition; None where facts are missing, or contradict each other."""

    def take(self, message: Message) -> PartitionState | None:
        """Return the state that new facts lead to; None if there are none, or it is not known."""
        if not isinstance(message, FactsAppended):
            return None
        life = (message.partition, message.epoch)
        state = self.states.setdefault(life, PartitionState(message.partition))
        if state is None or message.first_revision <= state.revision:
            return None
        self.states[life] = state = _followed(state, message)
        return state


def _followed(state: PartitionState, message: FactsAppended) -> PartitionState | None:
    if message.first_revision != state.revision + 1:
        return None
    try:
        for fact in message.facts:
            apply(state, fact)
    except Exception:  # noqa: BLE001 - a recording comes from anywhere
        return None
    return state


LACKS = (
    "what was under way between actors at that moment: it is as if it had not been sent",
    BEGUN_ANEW,
)


def state_from_trace(trace: TraceReader, moment: Moment | None = None) -> CoreState | None:
    """Return the state at a time, or after a message; None if the recording does not come that far.

    Without a moment it is that of the end.
    """
    at_ns: int | None = None
    if moment is not None and moment.after_ns is not None:
        at_ns = trace.header.start_ns + moment.after_ns
        moment = _last_before(trace.path, moment)
    replay = CheckpointedReplay(trace)
    last_ns: int | None = None
    for delivery, _ in replay.follow():
        if moment is None:
            last_ns = max(delivery.at_ns, last_ns or 0)
        elif moment.is_reached(trace, delivery):
            return _core_state(trace, replay, max(at_ns or 0, delivery.at_ns))
    return None if last_ns is None else _core_state(trace, replay, last_ns)


def _last_before(path: Path, moment: Moment) -> Moment:
    """Return the last message before a time has passed: the state stays as it is up to there.

    Where no message is so early, or the recording does not come that far, it is the time itself.
    """
    last, is_far = None, False
    after_ns = moment.after_ns or 0
    with TraceReader(path) as trace:
        for head in trace.heads():
            passed_ns = head.at_ns - trace.header.start_ns
            is_far |= passed_ns >= after_ns
            if passed_ns > after_ns:
                break
            last = trace.number
    return Moment(record=last) if is_far and last is not None else moment


def _core_state(trace: TraceReader, replay: CheckpointedReplay, at_ns: int) -> CoreState:
    context = copied(replay.rerun).machines[CONTEXT]
    assert isinstance(context, Context)
    header = trace.header
    topology = Topology(
        header.topology, settings=convert(header.settings, Settings), instance=header.instance,
        schedulers=header.schedulers,
    )  # fmt: skip
    return state_of_context(context, topology, at_ns, LACKS)
