"""Container states: how asks are doing, sent on change if the resource manager wants them."""

from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.messages.rm_events import ContainerState
from yunikorn_actors.state.allocations import Ask, WaitingState


def report_state(unit: UnitOfWork, ask: Ask, state: WaitingState, reason: str = "") -> None:
    if unit.partition.hears_states and ask.reported is not state:
        spec = ask.spec
        unit.announce(
            ContainerState(
                application_id=spec.application_id, key=spec.key, state=state, reason=reason
            )
        )
