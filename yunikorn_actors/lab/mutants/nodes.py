"""Defects of nodes and of the room that is kept on them."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.machines.context import asks, nodes, reservations
from yunikorn_actors.planning import apply_fact as follow
from yunikorn_actors.planning.stages import allocate as placing
from yunikorn_actors.state import facts as f
from yunikorn_actors.state import reserved_nodes as reserving
from yunikorn_actors.state.facts import nodes as node_facts

NODES = (
    Mutant(
        id="M09",
        source="R-070 YUNIKORN-2978",
        wrong="An ask that is placed on another node than its reserved one keeps the reservation.",
        where=reservations.drop_used_reservation,
        old="if kept is not None:",
        new="if kept == node_id:",
    ),
    Mutant(
        id="M15",
        kind=Kind.NOT_NOTIFIED,
        source="R-067 YUNIKORN-3374",
        wrong="Nobody tells the resource manager that work went with its node.",
        where=nodes.remove_node,
        old='        announce_end(unit, allocation, f"Node {node.id} Removed")\n',
        new="",
    ),
    Mutant(
        id="M52",
        source="R-064 YUNIKORN-1448",
        wrong="A reservation outlives its node.",
        where=nodes.remove_node,
        old="for kept in (yield from drawn_off(node.reservations.values())):",
        new="for kept in ():",
        held_by="tests/races/test_r058_h07_nodes_of_a_swap.py::test_h07_the_node_leaves_with_a_swap_and_with_a_victim",
        unseen="A node has to leave while it is kept for an ask; few runs bring that about.",
    ),
    Mutant(
        id="M53",
        source="H-17",
        wrong="A reservation outlives its ask.",
        where=asks.remove_ask,
        old='    drop_of_ask(unit, ask, "the ask is gone")\n',
        new='    if not ask.reserved:\n        drop_of_ask(unit, ask, "the ask is gone")\n',
    ),
    Mutant(
        id="M54",
        source="R-072 YUNIKORN-1398",
        wrong="A node that a daemon set needs stays reserved for an ask that could go elsewhere.",
        where=reservations.displace,
        old="    drop_of_node(",
        new="    return\n    drop_of_node(",
        held_by="tests/races/test_r068_r073_reservations.py::test_r071_r072_those_that_can_run_here_alone_stand_side_by_side",
        unseen="A daemon has to come to a node that is kept for others; few runs bring that about.",
    ),
    Mutant(
        id="M55",
        source="R-037 YUNIKORN-287",
        wrong="A cancelled reservation is taken off the count of the partition twice.",
        where=f.ReservationDropped.change,
        old="state.reservation_count -= 1",
        new="state.reservation_count -= 1 + (self.reason == 'the ask is gone')",
    ),
    Mutant(
        id="M56",
        source="R-068 YUNIKORN-1092",
        wrong="A node that shrank stays reserved for an ask that is larger.",
        where=reservations.drop_of_size,
        old="not fits_in(ask.spec.resource, capacity) or ",
        new="",
        held_by="tests/races/test_r068_r073_reservations.py::test_r068_a_node_that_shrinks_below_the_ask_is_kept_for_it_no_more",
        unseen="A node has to shrink below an ask that it is kept for; few runs bring that about.",
    ),
    Mutant(
        id="M57",
        source="H-20",
        wrong="Foreign work outlives its node.",
        where=f.NodeRemoved.change,
        old="        del state.foreign[key]",
        new="        pass",
    ),
    Mutant(
        id="M58",
        source="R-003 YUNIKORN-1712",
        wrong="The room of a resized allocation is not given back to its node.",
        where=f.AllocationResized.change,
        old="    charge(node.available, allocation.resource)\n",
        new="",
    ),
    Mutant(
        id="M59",
        kind=Kind.QUOTA,
        source="R-063 YUNIKORN-2796",
        wrong="A resource type that left with its last node is a maximum of zero.",
        where=node_facts._drop_capacity,
        old="if not state.capacity[kind]:",
        new="if False:",
    ),
    Mutant(
        id="M60",
        source="R-067 with a proposal on its way",
        wrong="A decision for a node that came back under its name is taken for settled there.",
        where=placing.Placer.resolve,
        old="if is_same and self._model.nodes.knows(flight.node):",
        new="if is_same:",
    ),
    Mutant(
        id="M61",
        source="R-061",
        wrong="Asks are not tried again when a node takes work again.",
        where=follow._on_node_changed,
        old="    _resize_node(",
        new=(
            "    if not isinstance(fact, f.NodeScheduleChanged) or fact.drained:\n"
            "        _resize_node("
        ),
    ),
    Mutant(
        id="M10",
        kind=Kind.BOUND,
        source="R-073 YUNIKORN-3092",
        wrong="Any number of nodes may be kept for asks that only wait.",
        where=reserving.kept_count,
        old="for node in nodes)",
        new="for node in nodes) and 1",
    ),
    Mutant(
        id="M73",
        source="H-33 with promises",
        wrong="Promises outlive the room of a node that shrank.",
        where=nodes._update,
        old="        drop_overpromised(unit, node)\n",
        new="        if not node.reservations:\n            drop_overpromised(unit, node)\n",
    ),
    Mutant(
        id="M74",
        source="R-071 with promises",
        wrong="A node is promised to an ask while it stays kept for another.",
        where=reservations.keep_for,
        old="if item.is_ordinary:",
        new="if False:",
    ),
)
