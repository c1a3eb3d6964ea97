"""All mutants. M01 to M24 are bugs of schedulers that are widely known; the others follow."""

from typing import Final, NamedTuple

from yunikorn_actors.lab.mutants.applications import APPLICATIONS
from yunikorn_actors.lab.mutants.gangs import GANGS
from yunikorn_actors.lab.mutants.gates import GATES
from yunikorn_actors.lab.mutants.machines import MACHINES
from yunikorn_actors.lab.mutants.nodes import NODES

CORPUS: Final = tuple(
    sorted((*GANGS, *APPLICATIONS, *NODES, *GATES, *MACHINES), key=lambda mutant: mutant.id)
)
BY_ID: Final = {mutant.id: mutant for mutant in CORPUS}


class Inexpressible(NamedTuple):
    """A bug that no order of messages can bring about here."""

    why: str
    instead: str
    """The mutant about the same two parts, where what one sends crosses what the other does."""


INEXPRESSIBLE: Final = {
    "M02": Inexpressible(
        "R-061: a node leaves in one handler, so nobody sees the cluster shrink before its work",
        instead="M61",
    ),
    "M18": Inexpressible(
        "R-141: nothing is called after a stop; a driver drops what is sent to nobody",
        instead="M67",
    ),
    "M21": Inexpressible(
        "R-057: no lock is held while another is wanted; a machine only sends", instead="M62"
    ),
    "M22": Inexpressible("R-044: as M21; what ends is told by a message", instead="M66"),
    "M23": Inexpressible(
        "R-045: as M21; one machine holds partition and applications", instead="M63"
    ),
    "M24": Inexpressible(
        "R-106: as M21; a call from inside the core that would wait raises WouldBlock",
        instead="M76",
    ),
}
"""Bugs of that list that no order of messages can bring about here, each with the reason."""
