"""Asks that wait, in the order in which they would be tried."""

from collections.abc import Callable, Iterator

from yunikorn_actors.planning.model.views import AppView, AskView, ChildKey, Lane, QueueView
from yunikorn_actors.state.allocations import AskOrder


def waiting_below(
    queue: QueueView, counts: Callable[[Lane], bool]
) -> Iterator[tuple[Lane, AskView]]:
    """Yield the asks of all lanes that count, of this queue and below."""
    yield from waiting_in(queue, counts)
    for child in sorted(queue.below, key=QueueView.key):
        yield from waiting_below(child, counts)


def waiting_in(leaf: QueueView, counts: Callable[[Lane], bool]) -> Iterator[tuple[Lane, AskView]]:
    lanes = [lane for lane in leaf.lanes.values() if counts(lane)]
    apps = {app.app.serial: app for lane in lanes for _, app in lane.apps}
    for app in sorted(apps.values(), key=_rank):
        mine = [
            (lane, ask)
            for lane in lanes
            if lane.owner == app.owner
            for ask in app.piles.get(lane.shape, ())
        ]
        yield from sorted(mine, key=_order)


def place_of(leaf: QueueView) -> tuple[ChildKey, ...]:
    """Rank a leaf among all leaves."""
    return tuple(level.key() for level in reversed(leaf.lineage[:-1]))


def rank_of(ask: AskView) -> tuple[object, ...]:
    """Rank an ask among all of its leaf."""
    return (_rank(ask.app), ask.order)


def _rank(app: AppView) -> tuple[object, ...]:
    assert app.entry is not None
    return app.entry[0]


def _order(item: tuple[Lane, AskView]) -> AskOrder:
    return item[1].order
