"""All mutants.

M01 to M24 are bugs of schedulers that are widely known. Those from M100 on are slips of the kind
that reviews miss; those from M200 on were planted when all notices were recorded, worlds were drawn
and coverage was measured. Those from M300 on are of a set whose author had not read the
laboratory: they had not been seen, and each stands for a class that is judged since. Those from
M401 on are about devices, those from M501 on about the throttle and the units of preemption,
those from M651 on about operators, slow readers and recordings.
"""

from typing import Final, NamedTuple

from yunikorn_actors.lab.mutants.applications import APPLICATIONS
from yunikorn_actors.lab.mutants.bounds_reached import BOUNDS
from yunikorn_actors.lab.mutants.cluster_channels import CLUSTER
from yunikorn_actors.lab.mutants.devices_mixed_up import DEVICES
from yunikorn_actors.lab.mutants.event_records import EVENT_RECORDS
from yunikorn_actors.lab.mutants.gangs import GANGS
from yunikorn_actors.lab.mutants.gate_checks import GATES
from yunikorn_actors.lab.mutants.journal import JOURNAL
from yunikorn_actors.lab.mutants.machines import MACHINES
from yunikorn_actors.lab.mutants.managers_mixed_up import MANAGERS
from yunikorn_actors.lab.mutants.mutant import UNPLAYED
from yunikorn_actors.lab.mutants.nodes import NODES
from yunikorn_actors.lab.mutants.plans import PLANS
from yunikorn_actors.lab.mutants.preemption import PREEMPTION
from yunikorn_actors.lab.mutants.quota_boundaries import QUOTAS
from yunikorn_actors.lab.mutants.read_side import READ_SIDE
from yunikorn_actors.lab.mutants.wrong_notices import NOTICES
from yunikorn_actors.lab.mutants.wrong_operations import OPERATIONS
from yunikorn_actors.lab.mutants.wrong_requests import REQUESTS
from yunikorn_actors.lab.mutants.wrong_timers import TIMERS

_BY_PART: Final = (*GANGS, *APPLICATIONS, *NODES, *GATES, *MACHINES)
_BY_KIND: Final = (
    *NOTICES,
    *BOUNDS,
    *MANAGERS,
    *QUOTAS,
    *TIMERS,
    *PLANS,
    *REQUESTS,
    *JOURNAL,
    *EVENT_RECORDS,
    *READ_SIDE,
    *CLUSTER,
    *DEVICES,
    *PREEMPTION,
    *OPERATIONS,
)
CORPUS: Final = tuple(
    sorted((*_BY_PART, *_BY_KIND), key=lambda mutant: (len(mutant.id), mutant.id))
)
PLAYED: Final = tuple(mutant for mutant in CORPUS if mutant.kind not in UNPLAYED)
"""Those that a run of a case may show."""
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
