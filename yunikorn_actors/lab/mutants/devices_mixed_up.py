"""Defects of devices: taken twice, not given back, shared though they are whole, of any model."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.preemption import device_room
from yunikorn_actors.state import device_fit as of_nodes
from yunikorn_actors.state.facts import allocated as allocation_facts
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.values import devices

DEVICES = (
    Mutant(
        id="M401",
        kind=Kind.PLANNER,
        source="devices of decisions in flight",
        wrong="A plan counts what the replica has free, and not what its decisions have taken.",
        where=NodeView.parts,
        old="if parts is None or not self.coming:",
        new="if True:",
        held_by="tests/races/test_devices.py::test_devices_on_their_way_are_taken",
        unseen="Context refuses what is taken twice, and the plan is made again.",
    ),
    Mutant(
        id="M402",
        source="a report crosses a decision",
        wrong="Context commits the devices that were proposed, whoever has them by now.",
        where=of_nodes.are_free,
        old="and hold(free, devices, amount)",
        new="and bool(devices)",
    ),
    Mutant(
        id="M403",
        source="devices that are not given back",
        wrong="The devices of work that ends stay taken.",
        where=allocation_facts._leave,
        old="    if allocation.devices:\n",
        new="    if allocation.devices and allocation.releasing is not None:\n",
    ),
    Mutant(
        id="M404",
        kind=Kind.GANG,
        source="devices of a swap to another node",
        wrong="A swap that is called off keeps the devices that it held on the other node.",
        where=Node.let_out,
        old="    if incoming.devices:\n",
        new="    if False:\n",
    ),
    Mutant(
        id="M405",
        kind=Kind.PLANNER,
        source="a whole device that is shared",
        wrong="A whole device is taken for idle as long as half of it is free.",
        where=devices.pick,
        old="if part >= WHOLE]",
        new="if part >= WHOLE // 2]",
    ),
    Mutant(
        id="M406",
        kind=Kind.GUARANTEE,
        source="victims in vain",
        wrong="Victims go that free the amount, on several devices, and no device for the ask.",
        where=device_room.targets,
        old="if amount <= 0 or not (parts := _parts_in(room)) or pick(parts, amount) is not None:",
        new="if True:",
    ),
    Mutant(
        id="M407",
        kind=Kind.GANG,
        source="devices of a placeholder",
        wrong="A member that takes a placeholder's place has other devices than that had.",
        where=of_nodes.taken_over,
        old="placeholder.devices[",
        new="tuple(device ^ 1 for device in placeholder.devices)[",
        held_by="tests/races/test_devices.py::test_a_smaller_member_has_one_of_the_whole_devices",
        unseen="Which devices a member has is its own affair, as far as the invariants go.",
    ),
    Mutant(
        id="M408",
        kind=Kind.PLANNER,
        source="a model that nobody asked about",
        wrong="A planner chooses devices of any model.",
        where=NodeView.devices_for,
        old="if not shape.takes_model_of(self.node):",
        new="if False:",
    ),
)
