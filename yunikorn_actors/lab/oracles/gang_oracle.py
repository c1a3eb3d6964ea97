"""No victim goes for a gang unless all its placeholders have room, free or coming (G31).

Judged when everything that was decided together is written down, from what each node has and what
leaves it, and not by the search that found the victims.
"""

from collections.abc import Iterator
from typing import Final

from yunikorn_actors.drivers.simulator.checkers import facts_in
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.facts import PreemptionDecided
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.values.resource import Resource, charge, discharge, fits_in


class GangsClaimWhole(Oracle):
    receivers: Final = frozenset({CONTEXT})

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        for name, facts in facts_in(simulator.effects).items():
            partition = context.partitions.get(name)
            claims = {
                fact.beneficiary.application_id
                for fact in facts
                if isinstance(fact, PreemptionDecided) and fact.victims and fact.beneficiary.key
            }
            if partition is None:
                continue
            for id_ in sorted(claims):
                app = partition.state.applications.get(id_)
                if app is None or _is_asked_about(partition, app):
                    continue
                faults = [*_without_room(app, partition.state.nodes)]
                if faults:
                    raise InvariantViolation("; ".join(faults))


def _is_asked_about(partition: PartitionContext, app: Application) -> bool:
    """Whether its resource manager is asked about victims for it, for one ask at a time."""
    may_be_asked = partition.capabilities
    return may_be_asked.has_preemption_predicates or (
        may_be_asked.has_predicates
        and any(it.spec.placeholder and it.spec.has_predicates for it in app.asks.values())
    )


def _without_room(app: Application, nodes: dict[str, Node]) -> Iterator[str]:
    """Name placeholders that wait and have no room, when others go for some of them."""
    waiting = [ask for ask in app.asks.values() if ask.spec.placeholder and ask.remaining]
    if not app.spec.is_gang or not any(_is_claimed(nodes, ask.spec) for ask in waiting):
        return
    missing = dict(app.spec.placeholder_ask)
    discharge(missing, app.placed)
    discharge(missing, app.reported)
    for ask in waiting:
        discharge(missing, {it: n * ask.remaining for it, n in ask.spec.resource.items()})
    if any(n > 0 for n in missing.values()):
        yield f"G31: others go for {app.id}, and not all of its placeholders are asked for"
    rooms = {id_: _room_on(node) for id_, node in nodes.items() if node.is_schedulable}
    bound = [ask for ask in waiting if ask.spec.required_node]
    for ask in bound:
        spec = ask.spec
        node = nodes.get(spec.required_node)
        room = {} if node is None else rooms.setdefault(node.id, _room_on(node))
        for _ in range(ask.remaining):
            if not fits_in(spec.resource, room):
                yield f"G31: others go for {app.id}, and {spec.key} of it has no room on its node"
            discharge(room, spec.resource)
    others = [ask for ask in waiting if not ask.spec.required_node]
    for ask in sorted(others, key=lambda ask: sum(ask.spec.resource.values()), reverse=True):
        wanted, holder = ask.spec.resource, (app.id, ask.spec.key)
        promised = sum(
            kept.repeats
            for node in nodes.values()
            if (kept := node.reservations.get(holder)) is not None and kept.earmark is not None
        )
        for _ in range(ask.remaining - promised):
            room = next((it for it in rooms.values() if fits_in(wanted, it)), {})
            if not room:
                yield f"G31: others go for {app.id}, and {ask.spec.key} of it has no room"
            discharge(room, wanted)


def _is_claimed(nodes: dict[str, Node], spec: AskSpec) -> bool:
    return any(
        it.beneficiary is not None
        and (it.beneficiary.application_id, it.beneficiary.key) == (spec.application_id, spec.key)
        for node in nodes.values()
        for it in node.allocations.values()
    )


def _room_on(node: Node) -> Resource:
    """Return what is free or leaves the node, beside what is promised to others."""
    room = dict(node.available)
    for item in node.allocations.values():
        if item.releasing is not None:
            charge(room, item.resource)
    discharge(room, node.promised)
    return room
