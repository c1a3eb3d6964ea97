"""Runs of asks: what a request brings of one size for one application is recorded at once.

Only asks that would be added without anything else happening are gathered: the first of an
application may wake it, the first placeholder bars others, a known key replaces what was asked
before. Those, and whatever may be rejected, are taken by themselves.
"""

from collections.abc import Sequence

from yunikorn_actors.machines.context import batch_commit as runs
from yunikorn_actors.machines.context.asks import refused_amounts, take_item, takes_more
from yunikorn_actors.machines.context.unit_of_work import Turn
from yunikorn_actors.messages.rm_events import AskItem
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.applications import Application

ADDED_IN_ONE = 4
"""So many asks of a run are as much work as one item."""


def take_from(turn: Turn, items: Sequence[AskItem], place: int) -> int:
    """Take the ask or report there, of this partition, or a run that begins with it.

    Return how many were taken.
    """
    # The first is taken by itself: most requests have no other.
    run = _gather(turn, items, place) if place else []
    if len(run) > 1:
        _add(turn, run)
        return len(run)
    take_item(turn, items[place])
    return 1


def _gather(turn: Turn, items: Sequence[AskItem], start: int) -> list[AskSpec]:
    """Return the asks from there on that may be added at once."""
    first, partition = items[start].spec, items[start].partition
    app = turn.state.applications.get(first.application_id)
    if app is None or not takes_more(app, first) or refused_amounts(first) is not None:
        return []
    run: dict[str, AskSpec] = {}
    for item in items[start : start + runs.LONGEST]:
        spec = item.spec
        if spec.key in run or not _is_plain(app, item) or not _is_alike(spec, first):
            break
        if item.partition != partition:
            break
        run[spec.key] = spec
    return list(run.values())


def _is_plain(app: Application, item: AskItem) -> bool:
    """It is a new ask, and may run anywhere."""
    spec = item.spec
    return not (
        item.node_id or item.uuid or item.foreign or spec.required_node or spec.key in app.asks
    )


def _is_alike(spec: AskSpec, first: AskSpec) -> bool:
    return (
        spec.application_id == first.application_id
        and (spec.resource is first.resource or spec.resource == first.resource)
        and spec.placeholder is first.placeholder
        and spec.max_allocations > 0
    )


def _add(turn: Turn, specs: list[AskSpec]) -> None:
    application_id, partition = specs[0].application_id, turn.partition
    if partition.rejections:
        for spec in specs:
            partition.rejections.forget(application_id, spec.key)
    turn.record(
        f.AsksAdded(
            application_id=application_id,
            specs=tuple(specs),
            first_sequence=partition.take_sequences(len(specs)),
            at_ns=turn.now_ns,
        )
    )
