"""Oracles of what stands beside the core: its journal, its event records, the read side.

Each is fed with exactly what it would get, changes neither a message nor their order, and is
compared with the truth at rest and at moments that are drawn.
"""

from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.cluster_portals import Ported
from yunikorn_actors.lab.surfaces.event_readers import Published, Told
from yunikorn_actors.lab.surfaces.journal_check import Journaled
from yunikorn_actors.lab.surfaces.read_sides import ReadAlong


def sides(draw: Draw) -> tuple[Checker, ...]:
    """Make those that judge one run."""
    return (Journaled(draw), ReadAlong(draw), Ported(draw), Told(), Published(draw))
