"""Preemption as part of an explanation: what was tried for a waiting ask, and what comes next."""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.model.views import AppView, AskView
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.preemption.agenda import PAUSE_NS
from yunikorn_actors.planning.preemption.claimant import Claimant, earmarks_of
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import ExpectedUsage, bounds_of
from yunikorn_actors.planning.reasons import Preempting, Why
from yunikorn_actors.planning.why.victim_objections import (
    OfGuarantee,
    OfQuota,
    OfRequiredNode,
    against,
    cost,
    goes,
)
from yunikorn_actors.state.allocations import Allocation, Beneficiary, PreemptionRule
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.gangs import is_all_there, waits_for_swap
from yunikorn_actors.values.durations import NEVER_NS, duration_of


def next_placeholder(app: AppView) -> AskView | None:
    """Return the placeholder that is tried next."""
    for it in app.app.waiting_asks():
        if it.spec.placeholder:
            return app.asks[it.spec.key]
    return None


def asks_on_behalf_of(
    ask: AskView, next_of: Callable[[AppView], AskView | None] = next_placeholder
) -> AskView:
    """While placeholders of a gang wait, victims are looked for on their behalf alone."""
    behind = not ask.ask.spec.placeholder and ask.app.app.waiting_placeholders
    return (next_of(ask.app) if behind else None) or ask


def account_of(planner: Planner, ask: AskView) -> Preempting:
    # On its way already: what could stand against it is past.
    going = _going_for(planner, ask)
    if going:
        text = "victims are preempted for it; their end is not confirmed yet"
        return Preempting(text=text, victims=tuple(it.spec.key for it in going))
    # Promised: the room is on its way, so nothing more has to go.
    if earmarks_of(planner.state, ask.ask):
        nodes = ", ".join(dict.fromkeys(ask.ask.reserved))
        return Preempting(text=f"it has an earmark: room that comes free on {nodes} is for it")
    objection = _objection(planner, ask)
    if objection is not None:
        return Preempting(text=objection)
    # Refused there whatever goes, so no victim is sought until the denial ends.
    denial = ask.shape.denial
    if denial is not None and denial.refused[Use.PREEMPTING]:
        nodes = ", ".join(denial.refused[Use.PREEMPTING])
        text = f"its resource manager refuses {nodes}, whatever is preempted there"
        return Preempting(text=text, next_ns=denial.due_ns)
    # A search in vain is repeated after a change; a budget ends by itself.
    if ask.tried is not None:
        tried = ask.tried
        ends = tried.again_ns < NEVER_NS
        until = ", or when a budget or a cooldown of those that run ends" if ends else ""
        return Preempting(
            text=f"no victims were found for it; the search is repeated after a change{until}",
            tried_ns=tried.at_ns,
            next_ns=max(tried.at_ns + PAUSE_NS, tried.again_ns if ends else 0),
        )
    if ask.shape.required_node:
        return Preempting(text="victims are looked for whenever its node changes")
    due_ns = ask.ask.created_ns + planner.preemptor.agenda.delay_of(ask.app.leaf)
    return Preempting(text="no victims have been looked for yet", next_ns=due_ns)


def _beneficiary_of(ask: AskView) -> Beneficiary:
    spec, queue = ask.ask.spec, ask.app.leaf.queue.path
    rule = PreemptionRule.REQUIRED_NODE if spec.required_node else PreemptionRule.GUARANTEE
    return Beneficiary(rule=rule, queue=queue, application_id=spec.application_id, key=spec.key)


def _going_for(planner: Planner, ask: AskView) -> tuple[Allocation, ...]:
    """Return the victims that have been asked back for it."""
    beneficiary = _beneficiary_of(ask)
    # Nothing is being preempted anywhere: a walk over all nodes would find nothing.
    if not any(planner.state.root.preempting.values()):
        return ()
    return tuple(
        item
        for node in planner.state.nodes.values()
        for item in node.allocations.values()
        if item.beneficiary == beneficiary
    )


# -- who goes, or would


def with_victims(planner: Planner, why: Why, now_ns: int) -> Why:
    """Add the victims that go or would go for a waiting ask; for a victim, its beneficiary."""
    app = planner.model.app_of(why.application_id)
    ask = app.asks.get(why.key)
    if why.preempting is not None and ask is not None:
        asking = asks_on_behalf_of(ask)
        return replace(why, preempting=_with_goes(planner, asking, why.preempting, now_ns))
    record = app.app.asks[why.key]
    # Asked back, and still here until its resource manager confirms.
    victims = [it for it in map(app.app.allocations.get, record.uuids) if it and it.beneficiary]
    if not victims:
        return why
    return replace(why, preempting=account_of_victim(planner, app.app, victims[0], now_ns))


def _with_goes(planner: Planner, ask: AskView, preempting: Preempting, now_ns: int) -> Preempting:
    """Search as if the time had come, and keep nothing of it."""
    state = planner.state
    going = _going_for(planner, ask) if preempting.victims else ()
    if not going:
        # What stands against it lets nobody go, so no search is made.
        if _objection(planner, ask) is not None:
            return preempting
        going = planner.preemptor.would_go(ask, now_ns)
    lost = cost(state, going, now_ns)
    others = _against(planner, _beneficiary_of(ask), going, now_ns)
    return replace(preempting, goes=goes(state, going, now_ns), cost=lost, against=others)


def _against(
    planner: Planner, whom: Beneficiary, going: Iterable[Allocation], now_ns: int
) -> dict[str, int]:
    """Judge as things were before these went: without them gone, and the ask without its room."""
    state, named = planner.state, [it.uuid for it in going]
    usage, throttle = ExpectedUsage(), Throttle(state, now_ns)
    gone = [it for it in going if it.beneficiary is not None]
    # As it was before: counted as there, and its budget not spent.
    for it in gone:
        leaf = state.applications[it.spec.application_id].queue
        usage.add(leaf, it.resource)
        throttle.give_back(leaf, 1)
    if whom.rule is PreemptionRule.QUOTA:
        queue = state.queues.get(whom.queue)
        return {} if queue is None else against(state, OfQuota(queue, usage), named)
    app = state.applications.get(whom.application_id)
    ask = None if app is None else app.asks.get(whom.key)
    if app is None or ask is None:
        return {}
    spec = ask.spec
    if whom.rule is PreemptionRule.REQUIRED_NODE:
        return against(state, OfRequiredNode(spec), named)
    # The ask was counted with its room when its victims went: it is judged without that.
    if gone:
        usage.take(app.queue, spec.resource)
    claimant = Claimant(state, usage, throttle, app.queue, spec)
    return against(state, OfGuarantee(state, claimant, throttle), named)


def account_of_victim(
    planner: Planner, app: Application, victim: Allocation, now_ns: int
) -> Preempting:
    """Say for whom the victim goes, by which rule, what goes with it, and why others stay."""
    whom, state = victim.beneficiary, planner.state
    assert whom is not None
    # What goes with it: a whole application, or several allocations for one ask.
    with_it = [it for it in app.allocations.values() if it.beneficiary == whom]
    text = f"it is preempted for the quota of {whom.queue}"
    if whom.rule is not PreemptionRule.QUOTA:
        ask = f"{whom.key} of {whom.application_id} in {whom.queue}"
        text = f"it is preempted for {ask}, by the rule of the {whom.rule.value}"
    left_ns = victim.asked_back_ns + victim.grace_ns - now_ns
    if left_ns > 0:
        text += f"; it has {duration_of(left_ns)} to end"
    return Preempting(
        text=text,
        goes=goes(state, with_it, now_ns),
        cost=cost(state, with_it, now_ns),
        rule=whom.rule.value,
        for_queue=whom.queue,
        for_application_id=whom.application_id,
        for_key=whom.key,
        against=_against(planner, whom, with_it, now_ns),
    )


def _objection(planner: Planner, ask: AskView) -> str | None:
    spec, config = ask.ask.spec, planner.state.config
    if not spec.allow_preempt_other:
        return "its policy forbids to preempt others for it"
    if not spec.placeholder and waits_for_swap(ask.app.app, spec):
        return "it takes over a placeholder of its gang, so nothing goes for it"
    if ask.app in planner.backoff.resting:
        return "its application rests; victims are looked for when that is over"
    if planner.preemptor.is_held_back(ask):
        return "something else than room holds it back, so nothing goes for it"
    # Guarantees and policies do not count for an ask that can run on one node alone.
    if spec.required_node:
        return None
    if config is None or not config.preemption_enabled:
        return "preemption is switched off in its partition"
    if not bounds_of(ask.app.leaf.queue, spec.resource):
        return "its queue has no guarantee of what it asks for"
    return _objection_to_gang(planner, ask)


def _objection_to_gang(planner: Planner, ask: AskView) -> str | None:
    if not (ask.is_placeholder and ask.app.app.spec.is_gang):
        return None
    if not is_all_there(ask.app.app):
        return "nothing goes for a gang before all its placeholders are asked for"
    if not planner.preemptor.may_claim(ask.app):
        return "its guarantee, or a limit of its user, does not cover all placeholders that wait"
    return None
