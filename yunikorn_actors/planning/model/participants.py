"""Participants: which applications take part in a plan, because they have a place or may take one.

A queue, or a limit of a user or group, may bound how many applications run; those for which there
is no place are blocked until there may be one. A decision in flight takes a place for an
application that does not run yet (R-052, R-053).
"""

from yunikorn_actors.planning.model.in_flight import Place
from yunikorn_actors.planning.model.tree import BlockedApps, ModelParts
from yunikorn_actors.planning.model.views import AppEntry, AppView, Gate, Holder
from yunikorn_actors.state.applications import ApplicationState


class Participants:
    def __init__(self, model_parts: ModelParts) -> None:
        self._shapes, self._tree, self._reserved_nodes, self._requeue = model_parts
        self._blocked = self._tree.blocked.by

    # -- decisions in flight

    def start(self, app: AppView) -> None:
        """A decision in flight makes the application count as running, if it does not yet."""
        # Others have their place already, or none that counts.
        if app.app.state is ApplicationState.ACCEPTED:
            app.starting += 1
            # By serial and not by number: several decisions for one application take one place.
            for level in app.leaf.application_limits:
                level.starting[app.app.serial] = None

    def take(self, app: AppView) -> Place:
        """A node is to be reserved for the application, or victims are to be preempted for it."""
        self.start(app)
        for limit in app.limits:
            limit.take(app, {})
        return Place(app, app.limits)

    def resolve(self, place: Place) -> None:
        """From now on the application counts by its reservation, or not at all."""
        for limit in place.limits:
            limit.resolve(place.app, {})
            self.wake(limit)
        self.started(place.app)

    def started(self, app: AppView) -> None:
        """A decision is resolved that took a place for it, if it did not run before."""
        if not app.starting:
            return
        app.starting -= 1
        # Whether a gang may start depends on who else is about to.
        self._requeue.gang_may_fit()
        if not app.starting:
            self.counts_itself(app)

    def counts_itself(self, app: AppView) -> None:
        """It runs, or has nothing in flight any more: it counts by its state alone."""
        app.starting = 0
        for level in app.leaf.lineage:
            level.starting.pop(app.app.serial, None)
            self.wake_blocked(level)

    # -- applications that wait

    def hold(self, app: AppView, holder: Holder) -> None:
        """A maximum of running applications is reached, or the application has to rest."""
        # Out of the order first: an entry is found by the key that it has now.
        self._tree.leave(app)
        self._tree.blocked.add(app, holder)
        if self._requeue.recounts is not None:
            self._requeue.waits_changed(app)
        self._requeue.run_limit_changed(app)

    def let_go(self, app: AppView) -> None:
        if app.blocked_by is not None:
            self._tree.blocked.discard(app)
            if self._requeue.recounts is not None:
                self._requeue.waits_changed(app)
            self._requeue.run_limit_changed(app)

    def come_back(self, app: AppView) -> None:
        """Let it take part again; its waiting asks may be entitled to preempt."""
        self.let_go(app)
        # It stands nowhere yet, so nothing else would tell the preemptor of it.
        if app.awaiting_gang is not None and app.leaf.is_entitled:
            # It has no entry yet, but may claim.
            self._requeue.may_preempt(app.leaf, 0)
        if app.entry is None:
            self._tree.enter(app)
            self._resume(app)

    def _resume(self, app: AppView) -> None:
        if app.entry is not None and app.leaf.is_entitled:
            for shape in app.piles:
                self._requeue.lane_resumed(app.leaf.lanes[shape, app.owner])

    def wake(self, gate: Gate) -> None:
        """The queue or the limit may have more room, or a place."""
        if gate in self._tree.waiters:
            self._tree.wake_waiters(gate)
        self.wake_blocked(gate)

    def wake_blocked(self, gate: Gate) -> None:
        """There may be a place for another application, or for one with a reservation."""
        # If only applications with a reservation may have got a place, nobody is woken. But the
        # mark makes a plan run, and that tries them first.
        if gate in self._blocked or gate.reserving:
            self._requeue.places[gate] = None

    def wake_others(self, app: AppView) -> None:
        """What this application wants or holds has changed: others may start now."""
        # Without a bound nobody waits for a start.
        is_bounded = bool(app.leaf.application_limits or app.limits)
        some_wait = is_bounded and bool(self._shapes.waiting)
        self._requeue.starts_changed(for_nodes=some_wait or bool(self._reserved_nodes))
        for level in app.leaf.application_limits:
            self.wake_blocked(level)
        for limit in app.limits:
            # A limit that nobody is a member of has no one waiting.
            if limit.members:
                self.wake(limit)

    def top_up(self) -> bool:
        """Wake as many blocked applications as there are places, in the order of their leaf.

        An application that is woken and not placed leaves its place to the next. So this is called
        again until none is left or every place is taken. Says whether any was woken.
        """
        loose = self._requeue.places
        for gate in tuple(loose):
            blocked = self._blocked.get(gate)
            if blocked is None:
                # The last application that waited here is gone, and its user's books with it.
                del loose[gate]
                continue
            # Those with a place before those without: they take none from the others.
            woken = self._wake_with_place(gate, blocked)
            places, lists = gate.places(), tuple(blocked.leaves.values())
            woken += sum(self._wake_first(gate, entries, places) for entries in lists)
            if not woken:
                del loose[gate]
        return bool(loose)

    def _wake_with_place(self, gate: Gate, blocked: BlockedApps) -> int:
        """An application with a place needs no other; return how many woke."""
        with_one = [app for serial in gate.with_place if (app := blocked.apps.get(serial))]
        # The gate is asked again: a reload may have taken the place away.
        free = [app for app in with_one if gate.may_start(app)]
        for app in free:
            self.come_back(app)
        return len(free)

    def _wake_first(self, gate: Gate, entries: list[AppEntry], places: int) -> bool:
        """Wake the first of a leaf; applications with nothing to try take no place."""
        before = len(entries)
        # In order, and never past the first that may not start.
        while places > 0 and entries and gate.may_start(entries[0][1]):
            app = entries[0][1]
            self.come_back(app)
            self._requeue.look_into_app(app)
            # All its lanes may be closed: then it is not tried, and would keep a place for nothing.
            lanes = app.leaf.lanes
            if app.entry is not None and any(lanes[s, app.owner].is_open for s in app.piles):
                places -= 1
        return len(entries) < before
