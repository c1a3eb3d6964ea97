"""A core that is ended at some moment, and another that gets its truth, as bytes."""

from msgspec import msgpack
from msgspec.structs import replace
from support import CONFIG, Lab, Races, Recorder

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.scheduling import FactsMissed
from yunikorn_actors.state.snapshot import image_of

MANY_BYTES = 2**20


def truth_of(lab: Lab) -> CoreRestored:
    publisher = lab.simulator.machines[EVENT_PUBLISHER]
    assert isinstance(publisher, EventPublisher)
    # What is on its way to the publisher would be lost; a journal has it.
    known = tuple(
        FactsMissed(partition=name, epoch=it.epoch, revision=it.state.revision)
        for name, it in lab.context.partitions.items()
    )
    message = CoreRestored(
        registered=lab.context.registered,
        images={name: image_of(it.state) for name, it in lab.context.partitions.items()},
        events=replace(publisher.remembered(MANY_BYTES), known=known),
    )
    return msgpack.decode(msgpack.encode(message), type=CoreRestored)


class Restarted(Lab):
    """A core that goes on with the truth of another."""

    def __init__(
        self, former: Lab, topology: TopologyName, settings: Settings | None = None
    ) -> None:
        self.seed = former.seed
        self.races = Races()
        self.simulator = Simulator(
            Topology(topology, settings=settings or Settings(), instance="again"),
            checkers=(*default_checkers(), self.races),
        )
        self.simulator.now_ns = former.simulator.now_ns
        self.rm = Recorder()
        self.rm.running = dict(former.rm.running)
        self.simulator._post(CONTEXT, truth_of(former), "restart")
        self.settle()

    def come_back(self, config: str = CONFIG) -> None:
        """Register again; the manager still knows what it runs, and hears anew."""
        rm = Recorder()
        rm.running = self.rm.running
        self.register(rm, config)
        self.settle()

    def report_node(self, name: str, *running: si.Allocation, vcore: int = 4) -> None:
        self.node(name, si.ActionFromRM.CREATE, vcore, existing_allocations=running)
        self.settle()
