"""Asks that take part in planning, and how many repeats of each may be tried."""

from collections.abc import Iterable

from yunikorn_actors.planning.model.shape import Shape
from yunikorn_actors.planning.model.tree import ModelParts
from yunikorn_actors.planning.model.views import AppView, AskView
from yunikorn_actors.policies.folds import is_part_of_gang
from yunikorn_actors.state.allocations import Ask
from yunikorn_actors.state.gangs import waits_for_gang


class Asks:
    def __init__(self, model_parts: ModelParts) -> None:
        self._shapes, self._tree, self._reserved_nodes, self._requeue = model_parts
        self.set_aside: dict[AskView | AppView | str, None] = {}
        """Those for which Context refused a proposal that was made on these facts."""

    def watch(self, app: AppView, asks: Iterable[Ask]) -> None:
        """Watch asks of one size, which are new; the amounts that wait are written once."""
        shape: Shape | None = None
        # Read once: a request brings hundreds of asks of one size.
        decider, changed = app.leaf.decider, app.leaf.changed
        # Neither a gang nor a gate: then every repeat may be tried.
        is_bound = bool(app.app.task_groups or decider.gate)
        views = []
        repeats = 0
        for ask in asks:
            spec = ask.spec
            if shape is None:
                shape = self._shapes.of(spec)
            order = decider.order_of(app.app, ask) if decider.orders_asks else ask.order()
            view = AskView(app, ask, shape, spec.resource, order, spec.placeholder)
            app.asks[spec.key] = view
            view.waiting = ask.remaining
            if changed is not None:
                changed[view] = None
            repeats += ask.remaining
            views.append(view)
        if shape is not None:
            kind = (shape, view.is_placeholder)
            # Before any takes part: an application of which nothing waits has no key of a policy.
            app.waits[kind] = app.waits.get(kind, 0) + repeats
            if self._requeue.recounts is not None:
                self._requeue.waits_changed(app, kind)
            total = repeats * shape.total
            # Ties between queues of equal shares are broken by what waits below them.
            for level in app.leaf.lineage:
                level.waiting += total
        for view in views:
            may_run = view.waiting
            if not is_bound or (may_run := self._allowed(view, may_run)):
                self._open(view, may_run)
        self._requeue.amounts_changed(app.leaf)

    def unwatch(self, view: AskView) -> None:
        if view.open or view.waiting:
            self.withdraw(view)
            if view.is_placeholder and view.app.app.spec.is_gang:
                self._requeue.claim_changed()
        # A decision in flight still has this view: its owner must not let the ask wait again.
        view.gone = True
        self.set_aside.pop(view, None)
        self._shapes.forget_reserved(view)
        if view.app.leaf.changed is not None:
            view.app.leaf.changed[view] = None
        del view.app.asks[view.ask.spec.key]

    def withdraw(self, view: AskView) -> None:
        """Nothing of the ask as it is takes part, or waits."""
        # First this: its application may be given another place by what still waits of it.
        if view.waiting:
            self.wait(view, -view.waiting)
        if view.open:
            self.shut(view, view.open)

    def forget_if_done(self, ask: AskView) -> None:
        """Fewer repeats of it wait; forget it if none is left."""
        if not ask.ask.remaining and not ask.inflight:
            self.unwatch(ask)

    def resync_or_forget(self, ask: AskView) -> None:
        if ask.ask.remaining or ask.inflight:
            self.resync(ask)
        else:
            self.unwatch(ask)

    def resync(self, ask: AskView) -> None:
        """Let the repeats take part that wait, are not in flight, and no gang holds back."""
        waiting = wanted = max(0, ask.ask.remaining - ask.inflight)
        if ask.app.leaf.changed is not None:
            ask.app.leaf.changed[ask] = None
        # Counted though its gang holds it back: it is the pending amount of the queue all the same.
        if waiting != ask.waiting:
            self.wait(ask, waiting - ask.waiting)
        if wanted and (ask.app.app.task_groups or ask.app.leaf.decider.gate):
            wanted = self._allowed(ask, wanted)
        if self.set_aside and ask in self.set_aside:
            wanted = 0
        # Only the difference moves: an ask that stays open keeps its place.
        repeats = wanted - ask.open
        if repeats > 0:
            self._open(ask, repeats)
        elif repeats < 0:
            self.shut(ask, -repeats)

    def _allowed(self, ask: AskView, repeats: int) -> int:
        """Count those of the repeats that neither their gang nor the gate of their leaf bars."""
        if self._is_barred(ask):
            return 0
        is_free = ask.app.leaf.decider.gate is None or is_part_of_gang(ask.app.app, ask.ask.spec)
        return repeats if is_free else int(ask.is_let_in)

    def _is_barred(self, ask: AskView) -> bool:
        spec, app = ask.ask.spec, ask.app
        barred = waits_for_gang(app.app, spec, app.placing, is_admitting=app.is_admitting)
        # For the swapper: a real ask that its gang holds back may find a placeholder.
        if barred and not spec.placeholder:
            self._requeue.member_came(app)
        return barred

    def wait(self, ask: AskView, repeats: int) -> None:
        """Count more waiting repeats (fewer if negative), whether their gang holds them or not."""
        ask.waiting += repeats
        if ask.app.leaf.changed is not None:
            ask.app.leaf.changed[ask] = None
        app, kind = ask.app, (ask.shape, ask.is_placeholder)
        waits = app.waits.get(kind, 0) + repeats
        if waits:
            app.waits[kind] = waits
        else:
            del app.waits[kind]
        if self._requeue.recounts is not None:
            self._requeue.waits_changed(app, kind)
        total = repeats * ask.shape.total
        for level in app.leaf.lineage:
            level.waiting += total

    def _open(self, ask: AskView, repeats: int) -> None:
        was_open = ask.open > 0
        ask.open += repeats
        opens, kind = ask.app.opens, (ask.shape, ask.is_placeholder)
        opens[kind] = opens.get(kind, 0) + repeats
        if self._requeue.recounts is not None:
            self._requeue.waits_changed(ask.app, kind)
        if was_open:
            return
        leaf, requeue = ask.app.leaf, self._requeue
        # Only ever earlier: which ask is the oldest is found out when one is to have a node kept.
        ask.shape.oldest_ns = min(ask.shape.oldest_ns, ask.ask.created_ns)
        self._tree.add_ask(ask)
        # What it can try first may have changed the pass over its asks.
        if leaf.queue.properties.backoff_count:
            requeue.pass_changed(ask.app)
        if leaf.is_entitled:
            requeue.may_preempt(leaf, ask.ask.created_ns)
        if ask.shape.waits_for_node or (self._reserved_nodes and leaf.is_stateaware):
            requeue.ask_may_reserve()
        requeue.look_into(ask)

    def shut(self, ask: AskView, repeats: int) -> None:
        ask.open -= repeats
        opens, kind = ask.app.opens, (ask.shape, ask.is_placeholder)
        opens[kind] -= repeats
        if not opens[kind]:
            del opens[kind]
        if self._requeue.recounts is not None:
            self._requeue.waits_changed(ask.app, kind)
        if not ask.open:
            self._tree.drop_ask(ask)

    def keep_required(self, ask: AskView) -> None:
        """If its one node is not reserved for the repeats that wait, try these again."""
        node_id = ask.shape.required_node
        if node_id and ask.open and not ask.keeping and node_id not in ask.ask.reserved:
            self._tree.wake_required(node_id)
