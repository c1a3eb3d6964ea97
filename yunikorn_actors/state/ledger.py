"""The ledger: one amount is written into all the books that it belongs to; books open and close.

Books are exact (they never saturate), are changed in place and never replaced.
"""

from yunikorn_actors.state.allocations import Allocation, AskSpec
from yunikorn_actors.state.applications import (
    COUNTS_BY_HOLDING,
    LEAVES_USER_COUNT,
    Application,
    Usage,
)
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.resource import Resource, charge, discharge


def books_of(app: Application, allocation: Allocation) -> tuple[Resource, ...]:
    return app.placeholder_books if allocation.spec.placeholder else app.allocated_books


def waiting(spec: AskSpec, repeats: int) -> Resource:
    """Return what these repeats add to the pending books: exact, as the books are."""
    if repeats == 1:
        return spec.resource
    return {kind: quantity * repeats for kind, quantity in spec.resource.items()}


def write(books: tuple[Resource, ...], amount: Resource) -> None:
    for kind, quantity in amount.items():
        for book in books:
            # A look-up that fails once for each type is cheaper than a question for each amount.
            try:
                book[kind] += quantity
            except KeyError:
                book[kind] = quantity


def strike(books: tuple[Resource, ...], amount: Resource) -> None:
    for kind, quantity in amount.items():
        # A type may be struck that was never written: the books go below zero and the checkers find
        # it (G06).
        for book in books:
            try:
                book[kind] -= quantity
            except KeyError:
                book[kind] = -quantity


def attach(owners: dict[str, dict[str, Usage]], owner: str, queue: Queue) -> tuple[Usage, ...]:
    """Open what an owner uses along a path, or count one more application on it."""
    # Up the tree: a limit on any level counts what is below it.
    by_path = owners.setdefault(owner, {})
    usages = tuple(by_path.setdefault(level.path, Usage()) for level in queue.lineage)
    for usage in usages:
        usage.attached += 1
    return usages


def detach(owners: dict[str, dict[str, Usage]], owner: str, app: Application) -> None:
    """Close what no application is attached to any more."""
    by_path = owners[owner]
    for level in app.queue.lineage:
        usage = by_path[level.path]
        usage.running.pop(app.serial, None)
        # Books close with the last application, so a user that is gone leaves nothing.
        usage.reserving.pop(app.serial, None)
        usage.attached -= 1
        if not usage.attached:
            del by_path[level.path]
    if not by_path:
        del owners[owner]


def count_holding(app: Application) -> None:
    """Note the place that an application takes by allocations or reservations, not by its state.

    Those with a reservation keep their order for as long as it lasts.
    """
    serial, by_holding = app.serial, app.state in COUNTS_BY_HOLDING
    # By holding, or by reservation, and never by both.
    holds = by_holding and bool(app.allocations)
    keeps = by_holding and app.reservation_count > 0 and not holds
    for level in app.queue.lineage:
        # Most queues know no reservation at all, and nobody is to be taken out there.
        if holds or level.allocating:
            _note(level.allocating, serial, counts=holds)
        if keeps or level.reserving:
            _note(level.reserving, serial, counts=keeps)
    keeps = app.reservation_count > 0 and app.state not in LEAVES_USER_COUNT
    for usage in (*app.usages, *app.group_usages):
        if keeps or usage.reserving:
            _note(usage.reserving, serial, counts=keeps and serial not in usage.running)


def forget_holding(app: Application) -> None:
    """Take an application off the places of its queues, whatever it held."""
    for level in app.queue.lineage:
        level.allocating.pop(app.serial, None)
        level.reserving.pop(app.serial, None)


def _note(serials: dict[int, None], serial: int, *, counts: bool) -> None:
    if counts:
        serials[serial] = None
    else:
        serials.pop(serial, None)


def relink(groups: dict[str, dict[str, Usage]], app: Application, group: str) -> None:
    """Move everything an application holds from the books of one group to those of another."""
    counts = app.serial in app.usages[0].running
    charged = (app.allocated, app.placeholders)
    for usage in app.group_usages:
        for amount in charged:
            # What it holds moves with it: the group's usage is the sum over its applications (G24).
            discharge(usage.amounts, amount)
    if app.group:
        detach(groups, app.group, app)
    app.group = group
    app.group_usages = attach(groups, group, app.queue) if group else ()
    for usage in app.group_usages:
        for amount in charged:
            charge(usage.amounts, amount)
        if counts:
            usage.running[app.serial] = None
    count_holding(app)
    app.gather_books()
