"""Applications that one queue or limit holds back, for each leaf in the order of the leaf.

When there are places, the first applications of each leaf are woken, because which leaf goes first
is known only when they are tried.
"""

from bisect import bisect_left, insort

from yunikorn_actors.planning.model.views import AppEntry, AppView, Holder, QueueView


class Held:
    __slots__ = ("apps", "leaves")

    def __init__(self) -> None:
        self.apps: dict[int, AppView] = {}
        """By serial."""
        self.leaves: dict[QueueView, list[AppEntry]] = {}

    def __bool__(self) -> bool:
        return bool(self.leaves)

    def add(self, app: AppView) -> None:
        self.apps[app.app.serial] = app
        app.held_entry = (app.held_key(), app)
        insort(self.leaves.setdefault(app.leaf, []), app.held_entry)

    def discard(self, app: AppView) -> None:
        del self.apps[app.app.serial]
        entries = self.leaves[app.leaf]
        assert app.held_entry is not None
        del entries[bisect_left(entries, app.held_entry)]
        app.held_entry = None
        if not entries:
            del self.leaves[app.leaf]


class HeldBack:
    """Applications that do not take part, by what keeps them."""

    def __init__(self) -> None:
        self.by: dict[Holder, Held] = {}

    def add(self, app: AppView, holder: Holder) -> None:
        app.held_by = holder
        held = self.by.get(holder)
        if held is None:
            held = self.by[holder] = Held()
        held.add(app)

    def discard(self, app: AppView) -> None:
        holder = app.held_by
        assert holder is not None
        app.held_by = None
        held = self.by[holder]
        held.discard(app)
        if not held:
            del self.by[holder]

    def rekey(self, app: AppView) -> None:
        """Its rank may be another now; so is its place among those held back."""
        holder = app.held_by
        if holder is not None:
            self.discard(app)
            self.add(app, holder)
