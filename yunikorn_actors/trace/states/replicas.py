"""What the partitions of a recorded run are like, from their facts, as a scheduler has it."""

from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.partition import PartitionState


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
