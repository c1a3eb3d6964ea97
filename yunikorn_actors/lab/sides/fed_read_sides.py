"""Read sides that a run feeds as its core would.

Context sends them what it sends to any follower; it is taken from the effects, so no message more
is under way and the order stays what the schedule chose.
"""

from collections.abc import Iterable

from yunikorn_actors.lab.harness import LabSimulator
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Message, reply_address
from yunikorn_actors.messages.followers import FollowEnded, FollowRequested, HistoryRequested
from yunikorn_actors.service.read.read_model import ReadSide

Told = tuple[ReadSide, Message]


class FedReadSides:
    def __init__(self) -> None:
        self.context: Context | None = None
        """The one that they follow."""
        self.sides: dict[str, ReadSide] = {}
        """By their addresses."""

    def leave(self) -> None:
        self.context = None

    def begin(self, simulator: LabSimulator) -> bool:
        """Follow the Context that there is now; False where that has to wait."""
        if (CONTEXT, EVENT_PUBLISHER) in simulator.channels:
            # The records that the event publisher has end where the next facts begin.
            return False
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        self.context = context
        self.sides.clear()
        return True

    def follow(self, simulator: LabSimulator, address: str) -> list[Told]:
        """Have Context tell how everything stands, and the event publisher what there was."""
        assert self.context is not None
        publisher = simulator.machines.get(EVENT_PUBLISHER)
        if publisher is None or (CONTEXT, EVENT_PUBLISHER) in simulator.channels:
            return []
        if address in self.sides:
            self.context.handle(FollowEnded(follower=address), simulator.now_ns)
        settings = simulator.topology.settings
        side = ReadSide(settings=settings, instance="lab", start_ns=simulator.now_ns)
        self.sides[address] = side
        simulator.overheard[address] = None
        asked = FollowRequested(follower=address, reply_to=reply_address(0))
        history = HistoryRequested(follower=address)
        stand = self.context.handle(asked, simulator.now_ns)
        return self.tell([*stand, *publisher.handle(history, simulator.now_ns)], simulator.now_ns)

    def tell(self, effects: Iterable[Effect], now_ns: int) -> list[Told]:
        """Hand on what is sent to read sides, and return what they have taken."""
        told: list[Told] = []
        for effect in effects:
            if isinstance(effect, Send) and effect.to in self.sides:
                side = self.sides[effect.to]
                side.handle(effect.message, now_ns)
                told.append((side, effect.message))
        return told
