"""Oracles of what stands beside the core: its journal, its event records, the read side.

Each is fed with exactly what it would get, changes neither a message nor their order, and is
compared with the truth at rest and at moments that are drawn.
"""

from yunikorn_actors.lab.draw import Draw
from yunikorn_actors.lab.sides.journaled import Journaled
from yunikorn_actors.lab.sides.ported import Ported
from yunikorn_actors.lab.sides.reading import ReadAlong
from yunikorn_actors.lab.sides.telling import Published, Told
from yunikorn_actors.sim.simulator import Checker


def sides(draw: Draw) -> tuple[Checker, ...]:
    """Make those that judge one run."""
    return (Journaled(draw), ReadAlong(draw), Ported(draw), Told(), Published(draw))
