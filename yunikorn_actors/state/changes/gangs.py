"""How facts about gangs and swaps change a partition."""

from msgspec.structs import replace

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.gangs import is_incomplete
from yunikorn_actors.state.ledger import strike, write
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import leaving_books
from yunikorn_actors.state.swap import Incoming, Swap
from yunikorn_actors.values.resource import charge, discharge


def gang_admitted(state: PartitionState, fact: f.GangAdmitted) -> None:
    app = state.applications[fact.application_id]
    app.is_admitted = True
    app.lapsed_ns = 0
    state.admitted[app.serial] = app.id


def gang_lapsed(state: PartitionState, fact: f.GangLapsed) -> None:
    """It is as before its admission, but other gangs come first."""
    app = state.applications[fact.application_id]
    forget_gang(state, app)
    app.is_admitted = False
    app.lapsed_ns = fact.at_ns


def forget_gang(state: PartitionState, app: Application) -> None:
    """Nothing more of it is to come: it has no commitment."""
    state.admitted.pop(app.serial, None)


def forget_complete_gang(state: PartitionState, app: Application) -> None:
    if app.serial in state.admitted and not is_incomplete(app):
        forget_gang(state, app)


def dissolve_gang(state: PartitionState, app: Application) -> None:
    """The gang has failed to come together; placeholders that come later are another gang."""
    forget_gang(state, app)
    app.is_admitted = False
    app.lapsed_ns = 0
    app.placed = {}
    app.spared = {}


def ask_parked(state: PartitionState, fact: f.AskParked) -> None:
    app = state.applications[fact.application_id]
    ask = app.asks[fact.key]
    ask.remaining -= 1
    ask.parked += 1
    strike(app.pending_books, fact.resource)
    app.swaps[fact.placeholder] = Swap(
        placeholder=fact.placeholder, key=fact.key, node_id=fact.node_id, crosses=fact.crosses
    )
    if fact.crosses:
        incoming = Incoming(application_id=app.id, resource=fact.resource, devices=fact.devices)
        take_in(state.nodes[fact.node_id], fact.placeholder, incoming)
        app.allocations[fact.placeholder].is_moving = True


def ask_unparked(state: PartitionState, fact: f.AskUnparked) -> None:
    app = state.applications[fact.application_id]
    swap = app.swaps.pop(fact.placeholder)
    ask = app.asks[swap.key]
    ask.remaining += 1
    ask.parked -= 1
    write(app.pending_books, fact.resource)
    if swap.crosses:
        let_out(state.nodes[swap.node_id], fact.placeholder)
    placeholder = app.allocations[fact.placeholder]
    placeholder.is_moving = False
    if fact.frees:
        placeholder.is_left_over = True
        write(leaving_books(app, placeholder), placeholder.resource)
    elif fact.crosses:
        _owe(app, swap)


def _owe(app: Application, swap: Swap) -> None:
    """Remember for which ask the placeholder ends, and forget asks that are done."""
    is_open = {key for key, ask in app.asks.items() if ask.is_open}
    app.owed = {uuid: key for uuid, key in app.owed.items() if key in is_open}
    app.owed[swap.placeholder] = swap.key


def placeholder_cancelled(state: PartitionState, fact: f.PlaceholderCancelled) -> None:
    """The release that follows changes the books; the gang still needs the member that is larger.

    That release spares what it frees, as of any placeholder that was not needed.
    """
    discharge(state.applications[fact.application_id].spared, fact.placeholder_resource)


def resize_incoming(state: PartitionState, app: Application, spec: AskSpec) -> None:
    """What a parked ask holds on another node follows its size."""
    for swap in app.swaps.values():
        if swap.key == spec.key and swap.crosses:
            node = state.nodes[swap.node_id]
            incoming = node.incoming[swap.placeholder]
            let_out(node, swap.placeholder)
            take_in(node, swap.placeholder, replace(incoming, resource=spec.resource))


def take_in(node: Node, placeholder: str, incoming: Incoming) -> None:
    node.incoming[placeholder] = incoming
    charge(node.allocated, incoming.resource)
    discharge(node.available, incoming.resource)
    if incoming.devices:
        node.take_devices(incoming.devices, incoming.resource)


def let_out(node: Node, placeholder: str) -> None:
    incoming = node.incoming.pop(placeholder)
    discharge(node.allocated, incoming.resource)
    charge(node.available, incoming.resource)
    if incoming.devices:
        node.give_devices_back(incoming.devices, incoming.resource)
