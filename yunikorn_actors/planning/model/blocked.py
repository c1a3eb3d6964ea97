"""Applications blocked by a run limit, for each queue or limit, in the order of their leaf.

When there are free places, the first applications of each leaf are woken: which leaf comes first
shows only when they are tried.
"""

from bisect import bisect_left, insort

from yunikorn_actors.planning.model.views import AppEntry, AppView, Holder, QueueView


class BlockedApps:
    __slots__ = ("apps", "leaves")

    def __init__(self) -> None:
        self.apps: dict[int, AppView] = {}
        """By serial."""
        self.leaves: dict[QueueView, list[AppEntry]] = {}

    def __bool__(self) -> bool:
        return bool(self.leaves)

    def add(self, app: AppView) -> None:
        self.apps[app.app.serial] = app
        # The key is kept with the entry: it is found by the key under which it was filed.
        app.blocked_entry = (app.blocked_key(), app)
        insort(self.leaves.setdefault(app.leaf, []), app.blocked_entry)

    def sort_anew(self, leaf: QueueView) -> None:
        entries = self.leaves.get(leaf, [])
        for app in [app for _, app in entries]:
            app.blocked_entry = (app.blocked_key(), app)
        entries[:] = sorted(app.blocked_entry for _, app in entries if app.blocked_entry)

    def discard(self, app: AppView) -> None:
        del self.apps[app.app.serial]
        entries = self.leaves[app.leaf]
        assert app.blocked_entry is not None
        del entries[bisect_left(entries, app.blocked_entry)]
        app.blocked_entry = None
        if not entries:
            del self.leaves[app.leaf]


class Blocked:
    """Applications that do not take part, by the queue, limit or back-off that blocks them."""

    def __init__(self) -> None:
        self.by: dict[Holder, BlockedApps] = {}

    def add(self, app: AppView, holder: Holder) -> None:
        app.blocked_by = holder
        blocked = self.by.get(holder)
        if blocked is None:
            blocked = self.by[holder] = BlockedApps()
        blocked.add(app)

    def discard(self, app: AppView) -> None:
        holder = app.blocked_by
        assert holder is not None
        app.blocked_by = None
        blocked = self.by[holder]
        blocked.discard(app)
        if not blocked:
            del self.by[holder]

    def rekey(self, app: AppView) -> None:
        """Give an application its new place among the blocked: its rank may have changed."""
        holder = app.blocked_by
        if holder is not None:
            self.discard(app)
            self.add(app, holder)

    def sort_anew(self, leaf: QueueView) -> None:
        """Its applications have keys of another kind now: one of each among the others is no order.

        So all of them move before the next one is searched.
        """
        for blocked in self.by.values():
            blocked.sort_anew(leaf)
