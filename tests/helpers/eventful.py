"""A small cluster of which events tell, and what may happen to it."""

from collections.abc import Callable

from listening import Listening
from support import APP, CONFIG, QUEUE, RM, Lab

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TopologyName

_T = si.TerminationType
TEAM = si.UserGroupInformation(user="bob", groups=("team",))


def root_with(leaf: str, settings: str = "") -> str:
    return CONFIG.replace("{name: default}", leaf).replace(
        "name: default,", f"name: default, {settings}", 1
    )


LIMITED = root_with(
    "{name: default, limits: [{limit: a, users: [bob], maxresources: {vcore: 9m}}, "
    "{limit: b, groups: [team], maxresources: {vcore: 9m}}]}"
)
ONE_AT_A_TIME = root_with("{name: default, maxapplications: 1}")
ONE_OF_BOB = root_with("{name: default, limits: [{limit: a, users: [bob], maxapplications: 1}]}")
TO_CONFIRM = frozenset({_T.TIMEOUT, _T.PREEMPTED_BY_SCHEDULER, _T.PLACEHOLDER_REPLACED})


class Obliging(Listening):
    """Confirms what the core takes back; hears container states, so that those are worked out."""

    lab: Lab

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        for item in response.released:
            if item.termination_type in TO_CONFIRM:
                self.lab.release(
                    item.allocation_key,
                    app=item.application_id,
                    termination_type=item.termination_type,
                )


def lab_of(config: str, topology: TopologyName) -> Lab:
    rm = Obliging()
    rm.lab = lab = Lab(config=config, topology=topology, rm=rm)
    lab.nodes(n1=10)
    lab.simulator.update_application(
        si.ApplicationRequest(
            rm_id=RM,
            new=(si.AddApplicationRequest(application_id=APP, queue_name=QUEUE, ugi=TEAM),),
        )
    )
    lab.settle()
    return lab


def a_life(lab: Lab) -> None:
    lab.ask("a", vcore=2)
    lab.settle()
    lab.release("a", termination_type=_T.STOPPED_BY_RM)
    lab.advance(30)


def reloaded(to: str) -> Callable[[Lab], None]:
    return lambda lab: lab.configure(to)
