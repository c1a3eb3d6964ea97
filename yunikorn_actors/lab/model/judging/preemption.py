"""Whether an ask may preempt, whether its victims may go, help, and are the fewest."""

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import Ask, Placed
from yunikorn_actors.lab.model.judging import judged_run, quotas
from yunikorn_actors.lab.model.judging.judged_run import JudgedRun, name_of
from yunikorn_actors.lab.model.rules import ordering, placing, preemption, units, victim_choice
from yunikorn_actors.lab.model.rules.victim_choice import willing
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Beneficiary, PreemptionRule


def check_preemption(run: JudgedRun, fact: f.PreemptionDecided) -> None:
    cluster = run.cluster
    victims = [cluster.placed[uuid] for uuid in fact.victims]
    keys = [placed.spec.key for placed in victims]
    whom = f"{fact.beneficiary.key or fact.beneficiary.queue} has {keys} go"
    _may_all_go(run, fact.beneficiary, victims, whom)
    if fact.beneficiary.rule is PreemptionRule.QUOTA:
        quotas.check_enforced(run, fact.beneficiary.queue, victims, whom)
        return
    ask = cluster.asks[fact.beneficiary.application_id, fact.beneficiary.key]
    if not victims:
        return
    run.must("preempt", preemption.may_preempt(cluster, ask), f"{whom}, but may not preempt")
    for victim in victims:
        may_go = victim_choice.may_go(cluster, ask, victim)
        run.must("victim", may_go, f"{whom}: {victim.spec.key} may not go")
    node = cluster.nodes[fact.node_id]
    if fact.beneficiary.rule is PreemptionRule.GUARANTEE:
        _is_entitled(run, ask, victims, whom)
        before = [it for it in sums.waiting(cluster) if ordering.before(cluster, it, ask)]
        ahead = [it for it in before if preemption.only_waits(cluster, it)]
    else:
        ahead = preemption.took_victims_on(cluster, node, ask)
    placeable = bool(placing.fitting(cluster, ask)) and placing.has_headroom(cluster, ask)
    text = f"{whom}, but could be placed"
    unsure = judged_run.is_new(run, ask) or judged_run.is_for_others(run, ask)
    run.should("preempt", not placeable, text, unsure=unsure)
    run.should("preempt", preemption.makes_room(cluster, ask, node, victims), f"{whom} in vain")
    for victim in victims:
        rest = [p for p in victims if p is not victim]
        if units.is_bound(victim.app, ask) and units.tears(cluster, victim.app, rest):
            # It goes as one with others.
            rest = [p for p in victims if p.app is not victim.app]
        needless = preemption.makes_room(cluster, ask, node, rest)
        text = f"{whom}: {victim.spec.key} need not"
        # Others may take what opens there, have room there and only wait for a quota, or had
        # work go there, and what that left is theirs.
        unsure = node.id in run.plan.let_go
        unsure = unsure or (needless and not preemption.makes_room(cluster, ask, node, rest, ahead))
        run.should("preempt", not needless, text, unsure=unsure)
        _is_next_victim(run, ask, victim, victims, whom)


def _is_entitled(run: JudgedRun, ask: Ask, victims: list[Placed], whom: str) -> None:
    """By a guarantee an ask has others go that took what is owed to its queue, and at its turn."""
    cluster = run.cluster
    run.must("preempt", bool(cluster.config.preemption_enabled), f"{whom}: switched off")
    entitled = victim_choice.is_entitled(cluster, ask, victims)
    run.must("preempt", entitled, f"{whom}, but is not entitled")
    run.must("preempt", preemption.waited_for_preemption(cluster, ask), f"{whom}, too early")
    whole = preemption.claims_all(cluster, ask)
    run.must("preempt", whole, f"{whom}, and claims a part of its gang")
    kept = victim_choice.keeps_guarantee(cluster, ask, victims)
    run.must("victim", kept, f"{whom}: below a guarantee")
    run.must("victim", victim_choice.is_in_budget(cluster, victims), f"{whom}: over a budget")
    for other in sums.waiting(cluster):
        # What can run on one node alone has a rule of its own, in no order with this.
        first = other.app.leaf is ask.app.leaf and not other.spec.required_node
        first = first and ordering.before(cluster, other, ask)
        first = first and preemption.waited_for_preemption(cluster, other)
        first = first and other.vain_at is None
        # What was placed since the last rest may not have run yet when it was tried.
        first = first and preemption.could_preempt(cluster, other, run.last_rest.revision)
        text = f"{whom}, but {name_of(other)} comes first"
        run.should("preempt", not (first and preemption.could_preempt(cluster, other)), text)


def _may_all_go(run: JudgedRun, beneficiary: Beneficiary, victims: list[Placed], whom: str) -> None:
    cluster = run.cluster
    for victim in victims:
        fit = not victim.leaving and not victim.spec.required_node
        run.must("victim", fit, f"{whom}: {victim.spec.key} is bound or on its way")
    asking = cluster.asks.get((beneficiary.application_id, beneficiary.key))
    for app in {id(v.app): v.app for v in victims}.values():
        torn = units.is_bound(app, asking) and units.tears(cluster, app, victims)
        run.must("victim", not torn, f"{whom}: a part of {app.id} stays, which goes as one")


def _is_next_victim(
    run: JudgedRun, ask: Ask, victim: Placed, victims: list[Placed], whom: str
) -> None:
    """Of two that are alike the more willing goes, then the newer one.

    What the same plan has placed does not run yet when it chooses victims.
    """
    cluster = run.cluster
    for other in cluster.placed.values():
        if other.came > run.plan.seen:
            continue
        alike = other.node == victim.node and other.size == victim.size and other not in victims
        alike = (
            alike
            and other.app.leaf is victim.app.leaf
            and victim_choice.may_go(cluster, ask, other)
        )
        if alike and (not ask.spec.required_node or other.spec.priority <= victim.spec.priority):
            parts = units.part(cluster, other), units.part(cluster, victim)
            if not units.are_in_order(ask, *parts):
                continue
            better = willing(other, ask) < willing(victim, ask)
            if parts[0] != parts[1]:
                flags = willing(other, ask)[:2], willing(victim, ask)[:2]
                better = (flags[0], parts[0]) < (flags[1], parts[1])
            elif ask.spec.required_node and other.spec.priority < victim.spec.priority:
                better = willing(other, ask)[:2] <= willing(victim, ask)[:2]
            run.should("victim", not better, f"{whom}, but {other.spec.key} goes before")
