"""The state at some moment of a recording, for a simulation to begin with."""

from msgspec import convert

from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.state.snapshot import image_of
from yunikorn_actors.trace.checkpointed_replay import CheckpointedReplay
from yunikorn_actors.trace.checkpoints import Checkpoints
from yunikorn_actors.trace.filters import Moment
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.state_at import copied
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, CoreState

LACKS = (
    "what was under way between actors at that moment: it is as if it had not been sent",
    BEGUN_ANEW,
)


def state_from_trace(
    trace: TraceReader, moment: Moment, checkpoints: Checkpoints | None = None
) -> CoreState | None:
    """Return the state after a message; None if the recording does not come that far."""
    replay = CheckpointedReplay(trace, checkpoints)
    for delivery, _ in replay.follow():
        if moment.is_reached(trace, delivery):
            context = copied(replay.rerun).machines[CONTEXT]
            assert isinstance(context, Context)
            header = trace.header
            return CoreState(
                registered=context.registered,
                images={name: image_of(it.state) for name, it in context.partitions.items()},
                at_ns=delivery.at_ns,
                topology=header.topology,
                schedulers=header.schedulers,
                settings=convert(header.settings, Settings),
                instance=header.instance,
                issued_uuids=context.issued_uuids,
                last_numbers={name: it.last_numbers for name, it in context.partitions.items()},
                lacks=LACKS,
            )
    return None
