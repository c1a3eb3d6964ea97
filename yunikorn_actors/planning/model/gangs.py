"""Gangs in the planner: what they hold back, and their placeholders that may be swapped.

A real ask that its gang holds back is not among the asks that are tried (`AskView.open` is 0). A
gang may await its admission; one entry, its turn, may stand for all its placeholders.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable

from yunikorn_actors.planning.model.asks import Asks
from yunikorn_actors.planning.model.participants import Participants
from yunikorn_actors.planning.model.tree import ModelParts, rekey
from yunikorn_actors.planning.model.views import AppView, AskView
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.gangs import awaits_admission

AwaitingGang = tuple[tuple[int, int, int], AppView]


class Gangs:
    def __init__(self, model_parts: ModelParts, asks: Asks, participants: Participants) -> None:
        self._shapes, self._tree, _, self._requeue = model_parts
        self._asks = asks
        self._participants = participants
        self.awaiting: list[AwaitingGang] = []
        """All gangs that wait for admission, by age; those with a lapsed commitment come last."""

    def follow(self, app: AppView) -> None:
        """Let the asks of a gang take part anew: what the gang holds back may have changed."""
        did_await = app.awaiting_gang is not None
        if app.leaf.changed is not None:
            app.leaf.changed[app] = None
        # Only where something changed: each placement of a placeholder comes this way.
        if self._read_bars(app):
            for ask in tuple(app.asks.values()):
                self._asks.resync(ask)
            self._requeue.amounts_changed(app.leaf)
        if app.awaiting_gang is not None and not did_await:
            # It no longer wants to start, so others may.
            self._participants.wake_others(app)
        # Its first placeholder may be another now, and the turn stands where that stands.
        # Ended and given anew, as an entry is found by its key.
        if app.turn is not None:
            self.end_turn(app)
            if app.awaiting_gang is not None:
                self.give_turn(app)

    def follow_placing(self, app: AppView) -> None:
        """One placeholder more is on its way, or less: that matters where it is the last."""
        are_left = app.app.waiting_placeholders > app.placing
        if app.turn is not None or app.bars[1] is not are_left:
            self.follow(app)

    def _read_bars(self, app: AppView) -> bool:
        """Take note of what the gang of an application holds back now; whether that changed."""
        record = app.app
        # Its admission in flight counts as done: the placeholders behind it are planned already.
        awaits = not app.is_admitting and awaits_admission(record)
        self._await(app, awaits=awaits and app.is_schedulable)
        alive = tuple(name for name, group in record.task_groups.items() if group.alive)
        # In every state, as `Asks` reads it: asks also come while the gang is being dissolved.
        bars = (awaits, record.waiting_placeholders > app.placing, alive)
        changed = bars != app.bars
        app.bars = bars
        return changed

    def _await(self, app: AppView, *, awaits: bool) -> None:
        # Lapsed ones behind the others, then by age.
        entry, key = app.awaiting_gang, (app.app.lapsed_ns, *app.app.age)
        if awaits and (entry is None or entry[0] != key):
            # The old entry first: it is found by the key under which it was filed.
            self._let_go(app)
            app.awaiting_gang = (key, app)
            insort(self.awaiting, app.awaiting_gang)
            app.leaf.held[app] = None
            self._requeue.gang_may_fit()
        elif not awaits:
            self._let_go(app)
        if awaits and app.leaf.is_entitled:
            # It has no entry, so no ask of it says that it may claim.
            created_ns = min(it.created_ns for it in app.app.waiting_asks() if it.spec.placeholder)
            self._requeue.may_preempt(app.leaf, created_ns)

    def _let_go(self, app: AppView) -> None:
        if app.awaiting_gang is not None:
            del self.awaiting[bisect_left(self.awaiting, app.awaiting_gang)]
            app.awaiting_gang = None
            del app.leaf.held[app]

    def forget(self, app: AppView) -> None:
        self._let_go(app)
        gangs = self._requeue.gangs
        gangs.looking.pop(app.app.serial, None)
        gangs.stuck.pop(app.app.serial, None)

    # -- turns

    def give_turn(self, app: AppView) -> None:
        """Let a gang that awaits admission stand where its first placeholder would stand."""
        waiting = [ask for ask in app.asks.values() if ask.is_placeholder and ask.waiting]
        if app.turn is None and waiting:
            first = min(waiting, key=lambda ask: ask.order)
            # No shape of a real ask: nothing of it is tried but the admission.
            app.turn = AskView(app, first.ask, self._shapes.turns, {}, first.order, open=1)
            self._tree.add_ask(app.turn)
            rekey(app.leaf)

    def end_turn(self, app: AppView) -> None:
        if app.turn is not None:
            self._tree.drop_ask(app.turn)
            app.turn = None
            rekey(app.leaf)

    # -- placeholders

    def placeholders_came(self, app: AppView, uuids: Iterable[str]) -> None:
        for uuid in uuids:
            self.offer(app, app.app.allocations[uuid])
        self._requeue.gang_may_fit()
        self.follow(app)

    def waits_for_fewer(self, app: AppView) -> None:
        """An ask was withdrawn or sent again: if it was the last placeholder, members may swap.

        An ask in flight does not change what the gang holds back, so `follow` need not see it.
        """
        if app.usable and not app.app.waiting_placeholders:
            self._requeue.member_came(app)

    def placeholder_went(self, app: AppView, uuid: str) -> None:
        self.withdraw(app, uuid)
        self.follow(app)
        # Its swap was called off for the sake of its node: the room is for this ask.
        key = app.app.owed.get(uuid)
        if key is not None:
            self._requeue.goes_first((app, key))

    def offer(self, app: AppView, placeholder: Allocation) -> None:
        """A placeholder may be swapped from now on."""
        group = app.usable.setdefault(placeholder.spec.task_group, {})
        group[placeholder.uuid] = placeholder
        self._requeue.member_came(app)

    def withdraw(self, app: AppView, placeholder: str) -> None:
        """It has been asked back, or is about to be: no member may take it over."""
        for group in app.usable.values():
            group.pop(placeholder, None)

    def recall(self, app: AppView) -> None:
        """Try first what a former planner may not have tried: asks whose placeholder is gone."""
        for placeholder, key in app.app.owed.items():
            if placeholder not in app.app.allocations:
                self._requeue.goes_first((app, key))
