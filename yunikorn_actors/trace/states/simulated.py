"""The state at some moment of a recording, for a simulation to begin with."""

from pathlib import Path

from msgspec import convert

from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.state.snapshot import image_of
from yunikorn_actors.trace.checkpointed_replay import CheckpointedReplay
from yunikorn_actors.trace.filters import Moment
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.states.state_at import copied
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, CoreState

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
            return _state(trace, replay, max(at_ns or 0, delivery.at_ns))
    return None if last_ns is None else _state(trace, replay, last_ns)


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


def _state(trace: TraceReader, replay: CheckpointedReplay, at_ns: int) -> CoreState:
    context = copied(replay.rerun).machines[CONTEXT]
    assert isinstance(context, Context)
    header = trace.header
    return CoreState(
        registered=context.registered,
        images={name: image_of(it.state) for name, it in context.partitions.items()},
        at_ns=at_ns,
        topology=header.topology,
        schedulers=header.schedulers,
        settings=convert(header.settings, Settings),
        instance=header.instance,
        issued_uuids=context.issued_uuids,
        last_numbers={name: it.last_numbers for name, it in context.partitions.items()},
        lacks=LACKS,
    )
