"""All mutants. M01 to M24 are bugs of schedulers that are widely known; the others follow."""

from typing import Final

from yunikorn_actors.lab.mutants.applications import APPLICATIONS
from yunikorn_actors.lab.mutants.gangs import GANGS
from yunikorn_actors.lab.mutants.gates import GATES
from yunikorn_actors.lab.mutants.machines import MACHINES
from yunikorn_actors.lab.mutants.nodes import NODES

CORPUS: Final = tuple(
    sorted((*GANGS, *APPLICATIONS, *NODES, *GATES, *MACHINES), key=lambda mutant: mutant.id)
)
BY_ID: Final = {mutant.id: mutant for mutant in CORPUS}
INEXPRESSIBLE: Final = {
    "M02": "R-061: a node leaves in one handler, so nobody sees the cluster shrink before its work",
    "M18": "R-141: nothing is called after a stop; a driver drops what is sent to nobody",
    "M21": "R-057: no lock is held while another is wanted; a machine only sends",
    "M22": "R-044: as M21; what ends is told by a message",
    "M23": "R-045: as M21; one machine holds partition and applications",
    "M24": "R-106: as M21; a call from inside the core that would wait raises WouldBlock",
}
"""Bugs of that list that no order of messages can bring about here, each with the reason."""
