"""Why asks wait, answered by the planner of their partition."""

from yunikorn_actors.messages.queries import ExplainRequested, Explanation
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.reasons import EXPLAINED_MAX
from yunikorn_actors.planning.why.explain import Found, explain, explain_all
from yunikorn_actors.planning.why.inquiry import FULL, IN_BASE_UNITS
from yunikorn_actors.planning.why.preempting import with_victims
from yunikorn_actors.planning.why.waiting_counts import count_waiting


def explanation(
    planner: Planner, epoch: int, message: ExplainRequested, now_ns: int
) -> Explanation:
    if message.waiting is not None:
        question = message.waiting
        sums = planner.waiting_sums
        return Explanation(
            partition=planner.state.name,
            epoch=epoch,
            reply_to=message.reply_to,
            as_of=planner.state.revision,
            waiting=(),
            is_complete=True,
            counted=(
                sums.part(question) if question.sums else count_waiting(planner, question, now_ns)
            ),
        )
    found = _found(planner, message, now_ns)
    return Explanation(
        partition=planner.state.name,
        epoch=epoch,
        reply_to=message.reply_to,
        as_of=planner.state.revision,
        waiting=tuple(found.asks),
        is_complete=len(found.asks) == found.total,
        total=found.total,
        causes=found.causes,
    )


def _found(planner: Planner, message: ExplainRequested, now_ns: int) -> Found:
    words = FULL if message.in_units else IN_BASE_UNITS
    if not message.application_id:
        return explain_all(planner, EXPLAINED_MAX, now_ns, words)
    why = explain(planner, message.application_id, message.key, now_ns, words)
    if why is not None and message.with_victims:
        why = with_victims(planner, why, now_ns)
    return Found([], 0, {}) if why is None else Found([why], 1, {why.obstacle.cause.value: 1})
