"""Schedules that explore: each is made for one run, from the number of the run."""

from typing import Final

from yunikorn_actors.lab.draw import Draw
from yunikorn_actors.lab.tape import Entry
from yunikorn_actors.lab.world import World
from yunikorn_actors.sim.choosers import Channel

_HASTE: Final = (0.0, 0.03, 0.1, 0.3)
"""How often the case goes on before all is quiet; each run draws one."""


class Uniform:
    """Every channel has the same chance."""

    watched: frozenset[str] | None = frozenset()

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._haste = draw.one_of(_HASTE)

    def choose(self, world: World) -> Channel | Entry | None:
        channels = tuple(world.deliverable())
        if not channels:
            return None
        if world.next_step and self._draw.chance(self._haste):
            return Entry("do", world.next_step)
        return self._draw.one_of(channels)

    def happened(self, event: str) -> None:
        """Choose without looking back."""

    def confirmation(self, _: str) -> str:
        return ""
