"""What a resource manager is asked before work is preempted: the victims and further candidates.

The victims that the preemptor picked are needed for the room. A resource manager may need more than
room, so it is also offered the rest of the node, as far as the rules allow; it decides how far down
this list to preempt.
"""

from collections.abc import Iterator
from typing import NamedTuple

from yunikorn_actors.planning.preemption import required_node as required
from yunikorn_actors.planning.preemption.claimant import Claimant, candidates_on, victims_of
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import ExpectedUsage
from yunikorn_actors.planning.preemption.victim_units import Units
from yunikorn_actors.state.allocations import Allocation, PreemptionRule
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import Preempt, VictimRef


class Offer(NamedTuple):
    keys: tuple[str, ...]
    """Keys on the node, the needed victims first; empty if no victim is there."""
    start: int
    """The position of the last needed victim."""
    further: tuple[VictimRef, ...]


def offer_of(state: PartitionState, proposal: Preempt, now_ns: int) -> Offer:
    picked = [
        state.applications[ref.application_id].allocations[ref.uuid] for ref in proposal.victims
    ]
    keys = [item.spec.key for item in picked if item.node_id == proposal.node_id]
    further = tuple(_further(state, proposal, picked, now_ns)) if keys else ()
    return Offer(
        keys=(*keys, *(item.spec.key for item in further)),
        start=len(keys) - 1,
        further=tuple(map(VictimRef.to, further)),
    )


def _further(
    state: PartitionState, proposal: Preempt, picked: list[Allocation], now_ns: int
) -> Iterator[Allocation]:
    """In the order in which Context will check them: after all that were picked."""
    beneficiary, node = proposal.beneficiary, state.nodes[proposal.node_id]
    app = state.applications[beneficiary.application_id]
    spec = app.asks[beneficiary.key].spec
    if beneficiary.rule is PreemptionRule.REQUIRED_NODE:
        yield from (item for item in required.candidates(state, node, spec) if item not in picked)
        return
    claimant = Claimant(state, ExpectedUsage(), Throttle(state, now_ns), app.queue, spec)
    units = Units(frozenset(allocation.uuid for allocation in picked))
    for victim in victims_of(state, picked):
        claimant.take(victim)
    for victim in candidates_on(state, node, claimant, units):
        if victim.allocations[0] not in picked and claimant.may_take(victim):
            claimant.take(victim)
            yield from victim.allocations
