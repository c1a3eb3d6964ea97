"""Gangs as the planner sees them: which is admitted, and which member takes which placeholder.

A real ask that its gang holds back is not among the asks that are tried (`AskView.open` is 0); it
comes here instead. A member finds a placeholder of its task group. If it may run on that node, the
swap stays there and needs no room; else the first placeholder is swapped for room on another node.
If no placeholder of the group is large enough, they are given up. A member that finds nothing is
looked at again when a node has changed; its placeholder stays.

A held gang is admitted at its turn in the order of its queue, when the quotas on its path and the
limits of its user and group have room for all of it, beside what is to come of the admitted ones.
Until then one entry stands for all of its placeholders, in whatever lane they are; so a gang is
admitted also where nothing has room for a placeholder of that size.
"""

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from msgspec import Struct

from yunikorn_actors.domain.allocation import Allocation
from yunikorn_actors.domain.gang import (
    Committed,
    commit_room,
    commitment_of,
    is_held,
    refusing_limit,
    refusing_queue,
    unplaced,
    waits_for_swap,
)
from yunikorn_actors.domain.limits import Limit
from yunikorn_actors.domain.proposals import AdmitGang, CancelPlaceholder, Proposal, Replace
from yunikorn_actors.domain.queue import Queue
from yunikorn_actors.domain.resource import Resource, charge, fits_in
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.shape import Shape, Use
from yunikorn_actors.planning.model.views import AppView, AskView

if TYPE_CHECKING:
    from yunikorn_actors.planning.planner import Planner

HeldGang = tuple[tuple[int, int, int], AppView]
Owed = tuple[AppView, str]
"""An application, and the key of its ask."""


class SwapInFlight(Struct):
    """A swap, or the end of a placeholder, on its way to Context."""

    ask: AskView
    placeholder: Allocation
    node: NodeView | None
    """Where room is taken; None on the placeholder's own node, and where nothing is taken."""
    resource: Resource
    is_swap: bool


class Gangs:
    def __init__(self) -> None:
        self.swaps: dict[int, SwapInFlight] = {}
        self.admissions: dict[int, AppView] = {}
        self.room_has_changed = False
        """A held gang may fit now."""
        self._held: list[HeldGang] = []
        """All gangs that wait for admission, by age; those with a lapsed commitment come last."""
        self._lapsed: list[AppView] = []
        """Lapsed gangs that get a turn after all others, in this plan or the next."""
        self._commitments: Commitments | None = None
        """What is still to come of the admitted gangs, computed in this plan."""
        self._looking: dict[int, AppView] = {}
        """Applications with members that may find a placeholder."""
        self._stuck: dict[int, AppView] = {}
        """Applications with members that found none; a change of any node wakes them."""
        self._owed: dict[str, Owed] = {}
        """Asks that lost the node they were moving to, by the placeholder that still stands."""
        self._first: list[Owed] = []
        """Asks whose placeholder is gone: they are tried first with the room that it freed."""

    @property
    def has_work(self) -> bool:
        held = (self.room_has_changed and bool(self._held)) or bool(self._lapsed)
        return held or bool(self._looking) or bool(self._first)

    @property
    def in_flight(self) -> list[int]:
        return [*self.swaps, *self.admissions]

    def is_in_flight(self, proposal_id: int) -> bool:
        return proposal_id in self.swaps or proposal_id in self.admissions

    # -- what has changed

    def look(self, app: AppView) -> None:
        """A member or a placeholder has come."""
        self._stuck.pop(app.app.serial, None)
        self._looking[app.app.serial] = app

    def wake(self) -> None:
        """A node may have more room, or be allowed again."""
        if self._stuck:
            self._looking.update(self._stuck)
            self._stuck.clear()

    def follow(self, app: AppView) -> bool:
        """Take note of what the gang of an application holds back now; whether that changed."""
        record = app.app
        held = app.is_schedulable and not app.is_admitting and is_held(record)
        self._hold(app, held)
        alive = tuple(name for name, group in record.task_groups.items() if group.alive)
        bars = (held, record.waiting_placeholders > app.placing, alive)
        changed = bars != app.bars
        app.bars = bars
        return changed

    def _hold(self, app: AppView, held: bool) -> None:
        entry, key = app.held_gang, (app.app.lapsed_ns, *app.app.age)
        if held and (entry is None or entry[0] != key):
            self._let_go(app)
            app.held_gang = (key, app)
            insort(self._held, app.held_gang)
            self.room_has_changed = True
        elif not held:
            self._let_go(app)

    def look_again(self, app: AppView) -> None:
        """Another placeholder of a held gang has come: it is to be told that it is held."""
        if app.held_gang is not None:
            self.room_has_changed = True

    def _let_go(self, app: AppView) -> None:
        if app.held_gang is not None:
            del self._held[bisect_left(self._held, app.held_gang)]
            app.held_gang = None

    def forget(self, app: AppView) -> None:
        self._let_go(app)
        self._looking.pop(app.app.serial, None)
        self._stuck.pop(app.app.serial, None)

    def offer(self, app: AppView, placeholder: Allocation) -> None:
        """A placeholder may be swapped from now on."""
        group = app.usable.setdefault(placeholder.spec.task_group, {})
        group[placeholder.uuid] = placeholder
        self.look(app)

    def withdraw(self, app: AppView, placeholder: str) -> None:
        """It has been asked back, or is about to be: no member may take it over."""
        for group in app.usable.values():
            group.pop(placeholder, None)

    def owe(self, placeholder: str, app: AppView, key: str) -> None:
        """The ask lost its swap; the placeholder that made room for it is still to go."""
        self._owed[placeholder] = (app, key)

    def repay(self, placeholder: str) -> None:
        """The placeholder is gone."""
        owed = self._owed.pop(placeholder, None)
        if owed is not None:
            self._first.append(owed)

    def try_first(self, ask: AskView) -> None:
        """It is not settled yet whether the ask can use the room that was freed for it."""
        self._first.append((ask.app, ask.ask.spec.key))

    def first_tries(self) -> list[AskView]:
        """Hand out the asks that go before everybody else, each once."""
        owed, self._first = self._first, []
        asks = [app.asks.get(key) for app, key in owed]
        return [ask for ask in asks if ask is not None and ask.open]

    # -- admission

    def offer_turns(self, planner: "Planner") -> None:
        """Let each held gang that fits have a turn in the order of its queue.

        In a plan room only shrinks, so a gang that does not fit now will not fit at its turn.
        A gang with a lapsed commitment comes last; it gets a turn in the order only if no other
        gang fits.
        """
        self._commitments = None
        if not self.room_has_changed:
            return
        self.room_has_changed = False
        held = [app for _, app in self._held]
        self._lapsed = [app for app in held if app.app.lapsed_ns]
        offered = [app for app in held if not app.app.lapsed_ns and self._fits(planner, app)]
        for app in offered:
            planner.give_turn(app)
        # One of them may have a place to start only since the last plan.
        planner.tree.top_up()
        if all(app.entry is None for app in offered):
            self.offer_lapsed(planner)

    def offer_lapsed(self, planner: "Planner") -> bool:
        """Let the next gang whose commitment has lapsed have a turn, if it fits beside the others.

        Says whether one has it. A gang whose application may not start now gets none and delays no
        other.
        """
        while self._lapsed:
            app = self._lapsed.pop(0)
            if app.held_gang is not None and self._fits(planner, app):
                planner.give_turn(app)
                if app.entry is not None:
                    return True
        return False

    def admit(self, planner: "Planner", app: AppView) -> AdmitGang | None:
        """It is the gang's turn: admit it if it fits beside the earlier decisions of this plan."""
        if not self._fits(planner, app) or not self._room(planner).may_start(app):
            return None
        self._room(planner).commit(app, unplaced(app.app))
        proposal_id = planner.next_id()
        self.admissions[proposal_id] = app
        app.is_admitting = True
        planner.follow_gang(app)
        return AdmitGang(proposal_id=proposal_id, application_id=app.app.id, serial=app.app.serial)

    def _fits(self, planner: "Planner", app: AppView) -> bool:
        place = self._room(planner).refusing(app)
        if place is not None:
            planner.findings.note_gang(app, f"no room for the whole gang in {name_of(place)}")
        return place is None

    def _room(self, planner: "Planner") -> "Commitments":
        if self._commitments is None:
            self._commitments = Commitments(planner)
        return self._commitments

    def note_placing(self, app: AppView, amount: Resource) -> None:
        """A placeholder is on its way: so much less is to come of its gang."""
        if self._commitments is not None:
            self._commitments.place(app, amount)

    # -- swaps

    def swap(self, planner: "Planner", limit: int) -> list[Proposal]:
        """Find placeholders for the members that wait for one."""
        proposals: list[Proposal] = []
        for serial, app in tuple(self._looking.items()):
            if len(proposals) >= limit:
                break
            if app.app.waiting_placeholders or not app.is_schedulable:
                del self._looking[serial]
                continue
            found = self._swap_members(planner, app, limit - len(proposals))
            proposals.extend(found)
            if len(proposals) < limit:
                del self._looking[serial]
        return proposals

    def _swap_members(self, planner: "Planner", app: AppView, limit: int) -> list[Proposal]:
        proposals: list[Proposal] = []
        waiting = [ask for ask in app.asks.values() if _is_member(ask)]
        hopeless: dict[tuple[Shape, str], None] = {}
        """No other node has room for these: their equals need not look."""
        for ask in sorted(waiting, key=lambda ask: ask.order):
            for _ in range(ask.ask.remaining - ask.inflight):
                if len(proposals) >= limit:
                    return proposals
                kind = (ask.shape, ask.ask.spec.task_group)
                group = app.usable.get(kind[1])
                if not group:
                    break
                found: list[Proposal] = []
                if kind not in hopeless:
                    found = self._swap_one(planner, ask, group, limit - len(proposals))
                proposals.extend(found)
                if not found:
                    hopeless[kind] = None
                    self._stuck[app.app.serial] = app
                    planner.findings.note_stuck(ask)
                    break
        return proposals

    def _swap_one(
        self, planner: "Planner", ask: AskView, group: dict[str, Allocation], limit: int
    ) -> list[Proposal]:
        large_enough = False
        for placeholder in group.values():
            if fits_in(ask.resource, placeholder.resource):
                large_enough = True
                if _may_stay(ask, placeholder.node_id):
                    return [self._replace(planner, ask, placeholder, None)]
        if not large_enough:
            return [self._cancel(planner, ask, item) for item in tuple(group.values())[:limit]]
        return self._swap_elsewhere(planner, ask, group)

    def _swap_elsewhere(
        self, planner: "Planner", ask: AskView, group: dict[str, Allocation]
    ) -> list[Proposal]:
        """Take the first placeholder that does not stand on the node where there is room."""
        order = ask.app.node_order
        node = planner.nodes.first_other(ask.shape, "", order)
        if node is None:
            return []
        suited = [it for it in group.values() if fits_in(ask.resource, it.resource)]
        for placeholder in suited:
            if placeholder.node_id != node.id:
                return [self._replace(planner, ask, placeholder, node)]
        second = planner.nodes.first_other(ask.shape, node.id, order)
        return [] if second is None else [self._replace(planner, ask, suited[0], second)]

    def _replace(
        self, planner: "Planner", ask: AskView, placeholder: Allocation, node: NodeView | None
    ) -> Replace:
        proposal_id = self._take(planner, ask, placeholder, node, is_swap=True)
        spec = ask.ask.spec
        return Replace(
            proposal_id=proposal_id,
            application_id=spec.application_id,
            key=spec.key,
            sequence=ask.ask.sequence,
            placeholder=placeholder.uuid,
            node_id=placeholder.node_id if node is None else node.id,
            crosses=node is not None,
        )

    def _cancel(
        self, planner: "Planner", ask: AskView, placeholder: Allocation
    ) -> CancelPlaceholder:
        proposal_id = self._take(planner, ask, placeholder, None, is_swap=False)
        spec = ask.ask.spec
        return CancelPlaceholder(
            proposal_id=proposal_id,
            application_id=spec.application_id,
            key=spec.key,
            sequence=ask.ask.sequence,
            placeholder=placeholder.uuid,
        )

    def _take(
        self,
        planner: "Planner",
        ask: AskView,
        placeholder: Allocation,
        node: NodeView | None,
        *,
        is_swap: bool,
    ) -> int:
        proposal_id = planner.next_id()
        self.swaps[proposal_id] = SwapInFlight(ask, placeholder, node, ask.resource, is_swap)
        self.withdraw(ask.app, placeholder.uuid)
        if is_swap:
            ask.inflight += 1
            planner.wait(ask, -1)
            planner.tree.rekey(ask.app.leaf)
        if node is not None:
            planner.nodes.take(node, ask.resource)
        return proposal_id

    # -- what becomes of them

    def settle_admission(self, proposal_id: int) -> None:
        app = self.admissions.pop(proposal_id, None)
        if app is not None:
            app.is_admitting = False

    def settle_swap(self, proposal_id: int) -> SwapInFlight | None:
        return self.swaps.pop(proposal_id, None)

    def reject(self, planner: "Planner", proposal_id: int) -> bool:
        """Context refused, or the resource manager: everything is as before."""
        app = self.admissions.pop(proposal_id, None)
        if app is not None:
            app.is_admitting = False
            self.room_has_changed = True
            planner.follow_gang(app)
            return True
        held = self.swaps.pop(proposal_id, None)
        if held is None:
            return False
        ask, placeholder = held.ask, held.placeholder
        if held.node is not None:
            planner.free_node(held.node, held.resource)
        still_there = ask.app.app.allocations.get(placeholder.uuid) is placeholder
        if still_there and placeholder.may_be_released:
            self.offer(ask.app, placeholder)
        if held.is_swap:
            ask.inflight -= 1
            if not ask.gone:
                planner.resync(ask)
                planner.stale_leaves[ask.app.leaf] = None
        return True


class Commitments:
    """What is to come of the admitted gangs, in one plan: beyond what is allocated or in flight."""

    def __init__(self, planner: "Planner") -> None:
        self._planner = planner
        self._committed: Committed = {}
        self._rest: dict[int, Resource] = {}
        """Of each gang what no placeholder is on its way for, by serial."""
        self._admitted: list[AppView] = []
        for id_ in planner.state.admitted.values():
            self.commit(planner.app_of(id_), commitment_of(planner.state.applications[id_]))
        for app in planner.gangs.admissions.values():
            self.commit(app, unplaced(app.app))
        for held in planner.in_flight.values():
            if held.ask.is_placeholder:
                self.place(held.ask.app, held.resource)

    def commit(self, app: AppView, amount: Resource) -> None:
        self._admitted.append(app)
        self._rest[app.app.serial] = dict(amount)
        commit_room(self._committed, app.app, amount)

    def place(self, app: AppView, amount: Resource) -> None:
        rest = self._rest.get(app.app.serial)
        if rest is not None:
            less = {kind: -min(rest.get(kind, 0), quantity) for kind, quantity in amount.items()}
            charge(rest, less)
            commit_room(self._committed, app.app, less)

    def refusing(self, app: AppView) -> Queue | Limit | None:
        """Return what has no room for the whole gang, if anything."""
        need, queues = unplaced(app.app), self._planner.tree.queues
        return refusing_queue(
            app.app, need, lambda it: queues[it.path].used, self._committed
        ) or refusing_limit(app.app, need, self._planner.used_of, self._committed)

    def may_start(self, app: AppView) -> bool:
        """Whether the application may run beside the admitted gangs that are to run."""
        if _has_its_place(app) or not app.gates():
            return True
        before = [it for it in self._admitted if not _has_its_place(it)]
        return all(
            sum(1 for other in before if gate in other.gates()) < gate.places()
            for gate in app.gates()
        )


def _has_its_place(app: AppView) -> bool:
    """Whether it counts among the running applications already, or will with what is decided."""
    return bool(app.app.allocations or app.app.reservation_count or app.starting)


def name_of(place: Queue | Limit) -> str:
    return f"queue {place.path}" if isinstance(place, Queue) else place.name


def _is_member(ask: AskView) -> bool:
    """Whether it waits for a placeholder."""
    spec = ask.ask.spec
    if spec.placeholder or ask.ask.remaining <= ask.inflight:
        return False
    return waits_for_swap(ask.app.app, spec)


def _may_stay(ask: AskView, node_id: str) -> bool:
    if not ask.ask.spec.may_run_on(node_id):
        return False
    return not ask.shape.is_refused(node_id, Use.KEEPING)
