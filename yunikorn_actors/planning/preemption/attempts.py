"""Whether victims may be preempted for a waiting ask: what was tried, and what comes next."""

from yunikorn_actors.planning.model.shape import Use
from yunikorn_actors.planning.model.views import AskView
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.preemption.preemptor_ask import earmarks_of
from yunikorn_actors.planning.preemption.schedule import PAUSE_NS
from yunikorn_actors.planning.preemption.victim_rules import bounds_of
from yunikorn_actors.planning.why.reasons import Preempting
from yunikorn_actors.state.beneficiary import Beneficiary, PreemptionRule


def account_of(planner: Planner, ask: AskView) -> Preempting:
    going = _going_for(planner, ask)
    if going:
        text = "victims are preempted for it; their end is not confirmed yet"
        return Preempting(text=text, victims=going)
    if earmarks_of(planner.state, ask.ask):
        nodes = ", ".join(dict.fromkeys(ask.ask.reserved))
        return Preempting(text=f"it has an earmark: room that comes free on {nodes} is for it")
    objection = _objection(planner, ask)
    if objection is not None:
        return Preempting(text=objection)
    denial = ask.shape.denial
    if denial is not None and denial.refused[Use.PREEMPTING]:
        nodes = ", ".join(denial.refused[Use.PREEMPTING])
        text = f"its resource manager refuses {nodes}, whatever is preempted there"
        return Preempting(text=text, next_ns=denial.due_ns)
    if ask.tried is not None:
        tried_ns = ask.tried.at_ns
        return Preempting(
            text="no victims were found for it; the search is repeated after a change",
            tried_ns=tried_ns,
            next_ns=tried_ns + PAUSE_NS,
        )
    if ask.shape.required_node:
        return Preempting(text="victims are looked for whenever its node changes")
    due_ns = ask.ask.created_ns + planner.preemptor.agenda.delay_of(ask.app.leaf)
    return Preempting(text="no victims have been looked for yet", next_ns=due_ns)


def _going_for(planner: Planner, ask: AskView) -> tuple[str, ...]:
    spec, queue = ask.ask.spec, ask.app.leaf.queue.path
    rule = PreemptionRule.REQUIRED_NODE if spec.required_node else PreemptionRule.GUARANTEE
    whom = Beneficiary(rule=rule, queue=queue, application_id=spec.application_id, key=spec.key)
    if not any(planner.state.root.preempting.values()):
        return ()
    return tuple(
        item.spec.key
        for node in planner.state.nodes.values()
        for item in node.allocations.values()
        if item.beneficiary == whom
    )


def _objection(planner: Planner, ask: AskView) -> str | None:
    spec, config = ask.ask.spec, planner.state.config
    if not spec.allow_preempt_other:
        return "its policy forbids to preempt others for it"
    if spec.required_node:
        return None
    if config is None or not config.preemption_enabled:
        return "preemption is switched off in its partition"
    if not bounds_of(ask.app.leaf.queue, spec.resource):
        return "its queue has no guarantee of what it asks for"
    return None
