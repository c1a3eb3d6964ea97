"""Why an ask waits, answered by the planner of its partition."""

from yunikorn_actors.messages.queries import ExplainRequested, Explanation
from yunikorn_actors.planning.explain import explain, explain_all
from yunikorn_actors.planning.planner import Planner

EXPLAINED_MAX = 1_000
"""Asks of one partition that are explained at once: the handler stays short."""


def explanation(planner: Planner, epoch: int, message: ExplainRequested) -> Explanation:
    if message.application_id:
        why = explain(planner, message.application_id, message.key)
        found, is_complete = [] if why is None else [why], True
    else:
        found = explain_all(planner, EXPLAINED_MAX + 1)
        is_complete = len(found) <= EXPLAINED_MAX
    return Explanation(
        partition=planner.state.name,
        epoch=epoch,
        reply_to=message.reply_to,
        as_of=planner.state.revision,
        waiting=tuple(found[:EXPLAINED_MAX]),
        is_complete=is_complete,
    )
