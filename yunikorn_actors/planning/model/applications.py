"""Applications that are not finished: the limits that count for them, and their place in order."""

from yunikorn_actors.planning.model.gangs import Gangs
from yunikorn_actors.planning.model.ground import Ground
from yunikorn_actors.planning.model.limits import LimitViews
from yunikorn_actors.planning.model.participants import Participants
from yunikorn_actors.planning.model.views import AppView
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.limits import limits_of


class Applications:
    def __init__(
        self, ground: Ground, limits: LimitViews, gangs: Gangs, participants: Participants
    ) -> None:
        _, self._tree, _, self._wakes = ground
        self._limits = limits
        self._gangs = gangs
        self._participants = participants
        self.views: dict[int, AppView] = {}
        """By serial."""

    def see(self, app: Application) -> AppView:
        leaf = self._tree.queues[app.queue.path]
        view = AppView(app, leaf)
        self.views[app.serial] = leaf.members[app.serial] = view
        self.assign_limits(view)
        return view

    def assign_limits(self, view: AppView) -> None:
        """Find the limits that count for an application; it may move to other lanes."""
        app = view.app
        # It may be linked to another group now, which policies see.
        view.ranked = None
        for ask in view.asks.values():
            if view.leaf.changed is not None:
                view.leaf.changed[ask] = None
        self._tree.leave(view)
        self._participants.let_go(view)
        former = view.limits
        found = limits_of(app.queue, app.spec.user, app.group)
        view.limits = tuple(self._limits.join(limit) for limit in found)
        view.owner = (app.spec.user, app.group) if view.limits else None
        # The new ones are joined before the old are left: a limit that counts as before stays
        # known, with what is in flight below it.
        for limit in former:
            self._limits.part(limit)
            self._participants.wake(limit)
        self._participants.come_back(view)
        if self._wakes.recounts is not None:
            self._wakes.waits_changed(view)
        self._wakes.gang_may_fit()

    def rekey(self, view: AppView) -> None:
        """Its age or what it runs has changed: another application may be the next to start."""
        view.submitted_ns = view.app.submitted_ns
        view.ranked = None
        if view.leaf.changed is not None:
            view.leaf.changed[view] = None
        self._tree.rekey_app(view)
        if view.awaiting_gang is not None:
            self._gangs.follow(view)
        if view.blocked_by is not None:
            self._participants.come_back(view)
        self._participants.wake_others(view)

    def forget(self, view: AppView) -> None:
        # The turn is an entry of the tree, and goes before the application that it points to.
        self._gangs.end_turn(view)
        del self.views[view.app.serial], view.leaf.members[view.app.serial]
        if view.leaf.changed is not None:
            view.leaf.changed[view] = None
        if self._wakes.recounts is not None:
            self._wakes.waits_changed(view)
        self._gangs.forget(view)
        for limit in view.limits:
            self._limits.part(limit)
