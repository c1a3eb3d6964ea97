"""Preemption in Context: every victim is checked again, then all are marked, or none.

A victim that another reason has asked back meanwhile is refused (G12, H-23): no victim goes in vain
and no mark is taken back. The resource manager gets all victims in one message; each stays charged
until it is confirmed. The ask gets an earmark: room of its size on that node is promised to it, and
what is promised on a node is there or on its way (G18). So an ask needs no victims of its own where
the victims of others free more than enough.
"""

from collections.abc import Callable, Sequence

from yunikorn_actors.machines.context.endings import request_release
from yunikorn_actors.machines.context.gangs import check_room, note_admission
from yunikorn_actors.machines.context.reservations import keep_for
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.planning.preemption import quota
from yunikorn_actors.planning.preemption import required_node as required
from yunikorn_actors.planning.preemption.claimant import (
    Claimant,
    Victim,
    earmarks_of,
    has_claim_for_all,
    has_only_to_wait,
    is_limited_by_promises,
    is_usable,
    room_on,
    to_claim_of,
    victims_of,
)
from yunikorn_actors.planning.preemption.device_room import fits, freed, keep, with_parts
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import ExpectedUsage, delay_of, is_movable
from yunikorn_actors.planning.preemption.victim_units import (
    goes_as_one,
    is_set_to_go_as_one,
    may_go_together,
    units_among,
)
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, Ask, AskSpec, Beneficiary, PreemptionRule
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.eligibility import check_application, check_limits, check_open
from yunikorn_actors.state.gangs import awaits_admission, is_all_there, without_earmarks
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.preemption import expected, staying
from yunikorn_actors.state.proposals import Preempt, Refusal
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import amount_of
from yunikorn_actors.values.resource import Resource, charge, discharge, fits_in

# The words of the Go core, for which tools may look.
_MESSAGES = {
    PreemptionRule.GUARANTEE: "preempting allocations to free up resources to run ask: {key}",
    PreemptionRule.REQUIRED_NODE: (
        "preempting allocations to free up resources to run daemon set ask: {key}"
    ),
    PreemptionRule.QUOTA: "preempting allocations to enforce new max quota for queue : {queue}",
}


class Decided:
    """The part of one decision that was checked already: it counts as if it had happened."""

    def __init__(
        self, state: PartitionState, now_ns: int, settings: Settings, *, is_of_one: bool = False
    ) -> None:
        self.state = state
        self.now_ns = now_ns
        self.settings = settings
        self._is_of_one = is_of_one
        """Nothing comes behind it that would count on this."""
        self.usage = ExpectedUsage()
        self.throttle = Throttle(state, now_ns)
        self.taken: dict[str, None] = {}
        self.promised: dict[str, list[Resource]] = {}
        """Room of each node."""
        self.claimed: Resource = {}
        """All of that room: it is of one application."""
        self.repeats: dict[str, int] = {}
        """Of each ask, by its key."""

    def note(self, claimant: Claimant, proposal: Preempt, victims: Sequence[Victim]) -> None:
        if self._is_of_one:
            return
        for victim in victims:
            # The claimant's own books: the next proposal of the gang finds them gone from its
            # queue.
            claimant.take(victim)
            self.taken.update(dict.fromkeys(it.uuid for it in victim.allocations))
        self._promise(proposal, claimant.wanted, 1)

    def note_bound(self, proposal: Preempt, ask: Ask, victims: Sequence[Allocation]) -> None:
        """All repeats that wait have room on their node."""
        if self._is_of_one:
            return
        for victim in victims:
            leaf = self.state.applications[victim.spec.application_id].queue
            self.usage.take(leaf, victim.resource)
            self.throttle.take(leaf, 1)
            self.taken[victim.uuid] = None
        self._promise(proposal, ask.spec.resource, ask.remaining)

    def _promise(self, proposal: Preempt, wanted: Resource, repeats: int) -> None:
        key = proposal.beneficiary.key
        for _ in range(repeats):
            # A node may be the place of several placeholders of the gang, each with its size.
            self.promised.setdefault(proposal.node_id, []).append(wanted)
            charge(self.claimed, wanted)
        self.repeats[key] = self.repeats.get(key, 0) + repeats

    def leave_on(self, node: Node, room: Resource) -> None:
        """Take out of the room of a node what is promised there."""
        for wanted in self.promised.get(node.id, ()):
            discharge(room, wanted)
            keep(room, amount_of(wanted))


def check_preempt(
    state: PartitionState, proposal: Preempt, now_ns: int, settings: Settings
) -> Refusal | None:
    """Say why these may not be preempted."""
    return _check(proposal, Decided(state, now_ns, settings, is_of_one=True))


def check_together(
    state: PartitionState, proposals: Sequence[Preempt], now_ns: int, settings: Settings
) -> Refusal | None:
    """Say why these may not be preempted for a gang, each after those before it."""
    # All proposals for one gang are of one application, and each is checked as if those before it
    # had happened.
    decided = Decided(state, now_ns, settings)
    refusal = next(filter(None, (_check(it, decided) for it in proposals)), None)
    # Without any victim nothing is lost if a placeholder finds no room: it waits like any ask.
    if refusal is None and any(it.victims for it in proposals):
        refusal = _check_the_others(proposals[0].beneficiary, decided)
    return refusal or _check_admission(proposals[0].beneficiary, decided)


def _check_admission(beneficiary: Beneficiary, decided: Decided) -> Refusal | None:
    """A gang that awaits its admission has room in queues and limits when all of this is done."""
    state = decided.state
    app = state.applications[beneficiary.application_id]
    if not awaits_admission(app):
        return None
    return check_room(state, app, without_earmarks(decided.usage.of), decided.claimed)


def _check(proposal: Preempt, decided: Decided) -> Refusal | None:
    if decided.state.suspended:
        return Refusal.RM_PAUSED
    victims = _victims(decided.state, proposal)
    # What goes for another placeholder of the gang makes room once (G12).
    if victims is None or any(it.uuid in decided.taken for it in victims):
        return Refusal.VICTIM_GONE
    return _CHECKS[proposal.beneficiary.rule](proposal, victims, decided)


def _check_the_others(beneficiary: Beneficiary, decided: Decided) -> Refusal | None:
    """Check the rest of a gang: all asks are there, and undecided ones have room as well (G31).

    Their room was free, so they had only to wait. Another scheduler may have used it since.
    """
    state = decided.state
    app = state.applications[beneficiary.application_id]
    # A placeholder that has not come yet would need room that nobody has counted.
    if not is_all_there(app):
        return Refusal.PREEMPTION_REFUSED
    for ask in app.asks.values():
        spec = ask.spec
        if not spec.placeholder or not ask.remaining:
            continue
        if spec.required_node:
            # It can run there alone, so the room on other nodes is nothing to it.
            if not decided.repeats.get(spec.key) and not _has_room_on_its_node(ask, decided):
                return Refusal.NODE_FULL
            continue
        # Repeats with an earmark, and those of this decision, have their place.
        left = ask.remaining - earmarks_of(state, ask) - decided.repeats.get(spec.key, 0)
        if left > 0:
            for node in state.nodes.values():
                room = _room_beside(node, decided) if is_usable(state, node, spec) else {}
                while left > 0 and fits(spec.resource, room):
                    discharge(room, spec.resource)
                    keep(room, amount_of(spec.resource))
                    left -= 1
        if left > 0:
            return Refusal.NODE_FULL
    return None


def _room_beside(node: Node, decided: Decided) -> Resource:
    """Return what is free or comes free on a node beside all that is promised there."""
    room = room_on(node, with_parts(node.available, node.parts), decided.taken)
    decided.leave_on(node, room)
    return room


def _has_room_on_its_node(ask: Ask, decided: Decided) -> bool:
    """Whether a placeholder that requires its node has room there, free or coming."""
    state, spec = decided.state, ask.spec
    node = state.nodes.get(spec.required_node)
    if node is None or check_open(node, spec) is not None:
        return False
    # Its victims go already: the room is on its way, by an earlier decision.
    if required.is_dying_for(node, required.beneficiary_of(state, spec)):
        return True
    return _fit(spec.resource, ask.remaining, _room_on_its_node(node, spec, decided))


def _room_on_its_node(node: Node, spec: AskSpec, decided: Decided) -> Resource:
    room = required.room_left_for(decided.state, node, spec, with_parts(node.available, node.parts))
    for uuid in decided.taken:
        if (allocation := node.allocations.get(uuid)) is not None:
            charge(room, freed(allocation))
    decided.leave_on(node, room)
    return room


def _fit(wanted: Resource, repeats: int, room: Resource) -> bool:
    for _ in range(repeats):
        if not fits(wanted, room):
            return False
        # One after the other, as each takes devices of its own out of the room.
        discharge(room, wanted)
        keep(room, amount_of(wanted))
    return True


def _victims(state: PartitionState, proposal: Preempt) -> tuple[Allocation, ...] | None:
    """Return all of them, or None if one is gone, on its way out, or named twice."""
    found: dict[str, Allocation] = {}
    for ref in proposal.victims:
        app = state.applications.get(ref.application_id)
        allocation = None if app is None else app.allocations.get(ref.uuid)
        # Twice the same victim would free its room twice.
        if allocation is None or not allocation.may_be_released or ref.uuid in found:
            return None
        found[ref.uuid] = allocation
    return tuple(found.values())


def _ask_of(state: PartitionState, proposal: Preempt) -> tuple[Application, Ask] | None:
    beneficiary = proposal.beneficiary
    app = state.applications.get(beneficiary.application_id)
    ask = None if app is None else app.asks.get(beneficiary.key)
    # Another ask has this key now, or all its repeats have found a place.
    if app is None or ask is None or ask.sequence != proposal.sequence or not ask.remaining:
        return None
    # The queue is what the decision was weighed for; an application in another queue is another
    # beneficiary.
    return (app, ask) if beneficiary.queue == app.queue.path else None


def _check_eligible(app: Application, ask: Ask, decided: Decided) -> Refusal | None:
    """No victims for an ask that something else than room would hold back afterwards.

    Its user may have no room left when all earmarks are used.
    """
    state, resource = decided.state, dict(ask.spec.resource)
    # Everything claimed so far counts as used by the same user.
    charge(resource, decided.claimed)
    # What goes for a gang that awaits its admission admits it.
    claims = ask.spec.placeholder and not ask.spec.required_node
    refusal = check_application(state, app, ask, is_admitting=claims)
    refusal = refusal or check_limits(app, resource)
    if refusal is None and is_limited_by_promises(state, app, resource):
        return Refusal.USER_LIMIT
    return refusal


def _check_guarantee(
    proposal: Preempt, victims: tuple[Allocation, ...], decided: Decided
) -> Refusal | None:
    state = decided.state
    found = _ask_of(state, proposal)
    if found is None:
        return Refusal.ASK_GONE
    app, ask = found
    spec = ask.spec
    # Each repeat may have one earmark: with all of them promised nothing more goes for it.
    if earmarks_of(state, ask) + decided.repeats.get(spec.key, 0) >= ask.remaining:
        return Refusal.ASK_GONE
    refusal = _check_eligible(app, ask, decided)
    node = state.nodes.get(proposal.node_id)
    if refusal is not None or node is None:
        return refusal or Refusal.NODE_GONE
    # Open, not reserved for others, right devices: what a placement would need apart from room.
    if not is_usable(state, node, spec):
        return Refusal.NODE_RESERVED if node.is_schedulable else Refusal.NODE_DRAINING
    delay_ns = delay_of(app.queue, decided.settings.preemption_delay_ns)
    enabled = state.config is not None and state.config.preemption_enabled
    # With others of its gang it may have room for which nothing more goes.
    allowed = (spec.allow_preempt_other or not victims) and not spec.required_node
    # The delay counts from the creation, so that an ask that was sent again does not begin anew.
    if not enabled or not allowed or decided.now_ns < ask.created_ns + delay_ns:
        return Refusal.PREEMPTION_REFUSED
    claimant = Claimant(state, decided.usage, decided.throttle, app.queue, spec)
    chosen = victims_of(state, victims, decided.taken)
    refusal = _check_victims(claimant, victims, chosen, decided)
    # Victims for a part of a gang would go in vain (G31).
    if (victims or awaits_admission(app)) and _claims_a_part(state, app, spec):
        refusal = Refusal.PREEMPTION_REFUSED
    refusal = refusal or _check_room(node, spec, victims, decided)
    if refusal is None:
        decided.note(claimant, proposal, chosen)
    return refusal


def _claims_a_part(state: PartitionState, app: Application, spec: AskSpec) -> bool:
    """Whether it is of a gang that may not claim all that it needs (G31)."""
    if not spec.placeholder or not app.spec.is_gang:
        return False
    return not has_claim_for_all(app, expected(app.queue), to_claim_of(state, app))


def _check_room(
    node: Node, spec: AskSpec, victims: tuple[Allocation, ...], decided: Decided
) -> Refusal | None:
    """Check that the room is there or comes, beside what is promised.

    An ask that could be placed there as things are claims nothing.
    """
    room = _room_beside(node, decided)
    for item in victims:
        if item.node_id == node.id:
            charge(room, freed(item))
    if not fits(spec.resource, room):
        return Refusal.NODE_FULL
    # Victims, or a promise made in this very decision, are the reason for a claim.
    if victims or node.id in decided.promised:
        return None
    free = with_parts(node.available, node.parts)
    # Free room needs no claim: the planner places the ask, and an earmark would keep others out for
    # nothing.
    return Refusal.PREEMPTION_REFUSED if has_only_to_wait(node, free, spec) else None


def _check_victims(
    claimant: Claimant,
    victims: tuple[Allocation, ...],
    chosen: Sequence[Victim],
    decided: Decided,
) -> Refusal | None:
    # A hard gang goes whole or not at all (G32).
    if not _go_as_one(victims, goes_as_one, decided):
        return Refusal.PREEMPTION_REFUSED
    # Twice, for the right word: refused by a maximum, or because the queue may not take this at
    # all.
    if claimant.may_have(chosen, quotas=True):
        return None
    return Refusal.QUEUE_LIMIT if claimant.may_have(chosen) else Refusal.PREEMPTION_REFUSED


def _go_as_one(
    victims: tuple[Allocation, ...],
    does: Callable[[Application], bool],
    decided: Decided,
) -> bool:
    """Whether of each application that goes as one the unit goes, and no part of it."""
    for id_ in dict.fromkeys(it.spec.application_id for it in victims):
        app = decided.state.applications[id_]
        if does(app) and not may_go_together(app, {it.uuid for it in victims}, decided.taken):
            return False
    return True


def _check_required(
    proposal: Preempt, victims: tuple[Allocation, ...], decided: Decided
) -> Refusal | None:
    state = decided.state
    found = _ask_of(state, proposal)
    if found is None:
        return Refusal.ASK_GONE
    refusal = _check_eligible(*found, decided)
    if refusal is not None:
        return refusal
    spec = found[1].spec
    # One repeat, and what others of its gang claim in this decision.
    together = dict(spec.resource)
    charge(together, decided.claimed)
    own = {spec.key, *decided.repeats}
    if required.is_refused_beside(state, found[0], together, own, {}):
        return Refusal.QUEUE_LIMIT
    node = state.nodes.get(proposal.node_id)
    if node is None:
        return Refusal.NODE_GONE
    refusal = check_open(node, spec)
    # A drain and the reservations of others do not count for a required node. That it is awaited
    # since a restart does.
    if refusal is not None:
        return refusal
    # A required node is reserved before any work goes for it.
    if (spec.application_id, spec.key) not in node.reservations:
        return Refusal.RESERVATION_GONE
    allowed = spec.required_node == node.id and spec.allow_preempt_other
    if not allowed or required.is_dying_for(node, proposal.beneficiary):
        return Refusal.PREEMPTION_REFUSED
    # A placeholder of a gang stands for all its repeats; a plain daemon asks one by one.
    repeats = found[1].remaining if proposal.gang else 1
    refusal = _check_room_on(node, spec, victims, decided, repeats)
    if refusal is None:
        decided.note_bound(proposal, found[1], victims)
    return refusal


def _check_room_on(
    node: Node,
    spec: AskSpec,
    victims: tuple[Allocation, ...],
    decided: Decided,
    repeats: int,
) -> Refusal | None:
    room = _room_on_its_node(node, spec, decided)
    if not victims:
        # The report that no work may go holds only where there is no room either.
        return Refusal.PREEMPTION_REFUSED if fits(spec.resource, room) else None
    if not _go_as_one(victims, is_set_to_go_as_one, decided):
        return Refusal.PREEMPTION_REFUSED
    here = {it.spec.application_id for it in victims if it.node_id == node.id}
    for allocation in victims:
        app = decided.state.applications[allocation.spec.application_id]
        if allocation.node_id == node.id:
            charge(room, freed(allocation))
        elif app.id not in here or not is_set_to_go_as_one(app):
            # A victim elsewhere goes only along with one here that cannot go without it.
            return Refusal.PREEMPTION_REFUSED
        # What goes as one may have parts that are of no use by themselves.
        allows = required.may_go_along if is_set_to_go_as_one(app) else required.may_be_victim
        if required.would_end_itself(app, spec) or not allows(allocation, spec):
            return Refusal.PREEMPTION_REFUSED
    return None if _fit(spec.resource, repeats, room) else Refusal.NODE_FULL


def _check_quota(
    proposal: Preempt, victims: tuple[Allocation, ...], decided: Decided
) -> Refusal | None:
    state, now_ns = decided.state, decided.now_ns
    queue = state.queues.get(proposal.beneficiary.queue)
    enabled = state.config is not None and state.config.quota_preemption_enabled
    # A quota is enforced once for each time it was armed, and not before its time; the default is
    # one that never comes.
    if queue is None or not enabled or state.quotas.get(queue.path, now_ns + 1) > now_ns:
        return Refusal.PREEMPTION_REFUSED
    # What stays is counted: whatever is on its way out has left the queue for this rule.
    usage = ExpectedUsage(staying)
    plan = quota.plan_of(queue, usage)
    total: Resource = {}
    if not _go_as_one(victims, is_set_to_go_as_one, decided):
        return Refusal.PREEMPTION_REFUSED
    for unit in units_among(state.applications, victims):
        # The units that go together are formed anew from the victims named, so a half of one is
        # found.
        leaf = state.applications[unit[0].spec.application_id].queue
        resource = quota.together(unit)
        charge(total, {kind: resource.get(kind, 0) for kind in plan})
        # A unit goes because some of it frees what is above the maximum; the rest goes along.
        of_use = any(quota.may_be_victim(it, plan) for it in unit)
        allowed = of_use and queue in leaf.lineage and all(map(is_movable, unit))
        if not allowed or not quota.keeps_guarantees(queue, leaf, resource, plan, usage):
            return Refusal.PREEMPTION_REFUSED
        # Each unit is weighed after those before it have left.
        usage.take(leaf, resource)
    # No more than the plan: a victim too many is one that could have stayed.
    return None if fits_in(total, plan) else Refusal.PREEMPTION_REFUSED


_Check = Callable[[Preempt, tuple[Allocation, ...], Decided], Refusal | None]
_CHECKS: dict[PreemptionRule, _Check] = {
    PreemptionRule.GUARANTEE: _check_guarantee,
    PreemptionRule.REQUIRED_NODE: _check_required,
    PreemptionRule.QUOTA: _check_quota,
}


# -- what follows


def preempt(unit: UnitOfWork, proposal: Preempt) -> Refusal | None:
    # A single one of a gang is a gang of one: its admission is checked as well.
    if proposal.gang:
        return preempt_together(unit, (proposal,))
    refusal = check_preempt(unit.state, proposal, unit.now_ns, unit.settings)
    if refusal is None:
        _admit(unit, proposal.beneficiary)
        _carry_out(unit, proposal)
    return refusal


def preempt_together(unit: UnitOfWork, proposals: Sequence[Preempt]) -> Refusal | None:
    """Carry out all that was decided for a gang, or nothing of it (G31)."""
    # All checks before the first fact: a refused decision leaves nothing behind.
    refusal = check_together(unit.state, proposals, unit.now_ns, unit.settings)
    if refusal is None:
        _admit(unit, proposals[0].beneficiary)
    if refusal is None:
        for proposal in proposals:
            _carry_out(unit, proposal)
    return refusal


def _admit(unit: UnitOfWork, beneficiary: Beneficiary) -> None:
    """Admit the gang for which victims go, before any node is kept for it (G23)."""
    app = unit.state.applications.get(beneficiary.application_id)
    if app is not None and awaits_admission(app):
        note_admission(unit, app, claims=True)


def _carry_out(unit: UnitOfWork, proposal: Preempt) -> None:
    state, beneficiary = unit.state, proposal.beneficiary
    # An empty decision is the report that a required node has no victim, and changes no book.
    if beneficiary.rule is PreemptionRule.REQUIRED_NODE and not proposal.victims:
        _report_hopeless(unit, proposal)
        return
    enforced = beneficiary.rule is PreemptionRule.QUOTA
    # The decision before the marks: it resolves the proposal, and the marks then change what the
    # planner no longer counts as on its way.
    unit.record(
        f.PreemptionDecided(
            beneficiary=beneficiary,
            node_id=proposal.node_id,
            victims=tuple(ref.uuid for ref in proposal.victims),
            max=state.queues[beneficiary.queue].spec.max or {} if enforced else {},
            at_ns=unit.now_ns,
            proposal_id=proposal.proposal_id,
        )
    )
    # None of them has gone meanwhile: they were checked in this very handler.
    for allocation in _victims(state, proposal) or ():
        _mark(unit, allocation, beneficiary)
    # The earmark last: promised is only what is there or on its way out (G18).
    if beneficiary.rule is PreemptionRule.GUARANTEE:
        app = state.applications[beneficiary.application_id]
        keep_for(unit, app, app.asks[beneficiary.key], state.nodes[proposal.node_id])


def _report_hopeless(unit: UnitOfWork, proposal: Preempt) -> None:
    unit.record(
        f.PreemptionFailed(
            application_id=proposal.beneficiary.application_id,
            key=proposal.beneficiary.key,
            node_id=proposal.node_id,
            at_ns=unit.now_ns,
            proposal_id=proposal.proposal_id,
        )
    )


def _mark(unit: UnitOfWork, allocation: Allocation, beneficiary: Beneficiary) -> None:
    app = unit.state.applications[allocation.spec.application_id]
    unit.record(
        f.VictimMarked(
            application_id=app.id,
            queue=app.queue.path,
            key=allocation.spec.key,
            uuid=allocation.uuid,
            node_id=allocation.node_id,
            resource=allocation.resource,
            beneficiary=beneficiary,
            at_ns=unit.now_ns,
        )
    )
    message = _MESSAGES[beneficiary.rule].format(key=beneficiary.key, queue=beneficiary.queue)
    type_ = TerminationType.PREEMPTED_BY_SCHEDULER
    request_release(unit, allocation, type_, message)
