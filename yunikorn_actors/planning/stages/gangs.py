"""Gangs in a plan: which gang is admitted, and which member takes which placeholder.

A gang is admitted at its turn in the order of its queue, when the quotas on its path and the limits
of its user and group have room for all of it, beside what is to come of the admitted ones. Until
then one entry stands for all of its placeholders, in whatever lane they are; so a gang is admitted
also where nothing has room for a placeholder of that size.

A member finds a placeholder of its task group. If it may run on that node, the swap stays there and
needs no room; else the first placeholder is swapped for room on another node. If no placeholder of
the group is large enough, they are given up. A member that finds nothing is looked at again when a
node has changed; its placeholder stays.
"""

from collections.abc import Callable

from yunikorn_actors.planning.model.in_flight import SwapInFlight
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.shape import Shape, Use
from yunikorn_actors.planning.model.tree import rekey
from yunikorn_actors.planning.model.views import AppView, AskView, QueueView
from yunikorn_actors.planning.stages.stage import OpenProposals, Resolving
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.device_fit import has_devices
from yunikorn_actors.state.gangs import (
    Committed,
    commit_room,
    commitment_of,
    refusing_admission,
    unplaced,
    waits_for_swap,
    without_earmarks,
)
from yunikorn_actors.state.limits import Limit
from yunikorn_actors.state.proposals import AdmitGang, CancelPlaceholder, Proposal, Replace
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.resource import Resource, charge, fits_in


class Admitter:
    def __init__(self, model: Model, open_proposals: OpenProposals) -> None:
        self._model = model
        self._open_proposals = open_proposals
        self._findings = open_proposals.findings
        self._marks = model.requeue.gangs
        self._in_flight = model.flights.admissions
        self.lapsed: list[AppView] = []
        """Lapsed gangs that get a turn after all others, in this plan or the next."""
        self.commitments: Commitments | None = None
        """What the admitted gangs have not placed yet, computed in this plan."""

    def plan(self, _now_ns: int, _room: int) -> list[Proposal]:
        """Let each gang that awaits admission and fits have a turn in the order of its queue.

        In a plan room only shrinks, so a gang that does not fit now will not fit at its turn.
        A gang with a lapsed commitment comes last; it gets a turn in the order only if no other
        gang fits: one that is blocked now may be woken for a place later in this plan.
        """
        # Facts have come since the last plan, so commitments are added up anew.
        self.commitments = None
        # Taken away before it is acted on: what comes meanwhile marks it again.
        if self._marks.room_has_changed:
            self._marks.room_has_changed = False
            if self._model.gangs.awaiting:
                self._offer_turns()
            else:
                self.lapsed = []
        return []

    def _offer_turns(self) -> None:
        model = self._model
        # In a leaf with a gate a gang comes up where the gate lets it in.
        awaiting = [app for _, app in model.gangs.awaiting if app.leaf.decider.gate is None]
        self.lapsed = [app for app in awaiting if app.app.lapsed_ns]
        for app in self.lapsed:
            # With a turn from an earlier plan it would take a place that another gang waits for.
            model.gangs.end_turn(app)
        offered = [app for app in awaiting if not app.app.lapsed_ns and self._fits(app)]
        starting: dict[QueueView, None] = {}
        for app in offered:
            # Given to all that fit one by one. Together they may not fit: who comes first at its
            # turn has the room, and the others are asked again then. But a younger gang of a
            # stateaware leaf would be held up by the older one from its admission on, whatever
            # was kept or preempted for it.
            if not _starts_one_by_one(app):
                model.gangs.give_turn(app)
            elif app.leaf in starting:
                model.gangs.end_turn(app)
            else:
                model.gangs.give_turn(app)
                if all(limit.may_start(app) for limit in app.limits):
                    starting[app.leaf] = None
        # One of them may have a place to start only since the last plan.
        model.participants.top_up()
        # A lapsed gang is offered only where no other one fits.
        if not offered:
            self.offer_lapsed()

    def offer_lapsed(self) -> bool:
        """Let the next gang whose commitment has lapsed have a turn, if it fits beside the others.

        Says whether one has it. A gang whose application may not start now gets none and delays no
        other.
        """
        while self.lapsed:
            # Taken off in any case: one that does not fit now is offered again by the next change.
            app = self.lapsed.pop(0)
            if app.awaiting_gang is not None and self._fits(app):
                self._model.gangs.give_turn(app)
                # Without an entry its application may not start: the next one is offered.
                if app.entry is not None:
                    return True
        return False

    def admit(self, app: AppView) -> AdmitGang | None:
        """It is the gang's turn: admit it if it fits beside the earlier decisions of this plan."""
        # Asked again: since it got its turn, older asks may have taken the room or the place.
        if not self.may_admit(app):
            return None
        if app in self._model.set_aside:
            return None
        # Counted at once, so that the next gang of this plan finds less room.
        self._room().commit(app, unplaced(app.app))
        proposal_id = self._open_proposals.next_id(self)
        self._in_flight[proposal_id] = app
        app.is_admitting = True
        self._model.gangs.follow(app)
        return AdmitGang(proposal_id=proposal_id, application_id=app.app.id, serial=app.app.serial)

    def may_admit(self, app: AppView) -> bool:
        """Whether it would be admitted if its turn came now."""
        return self._fits(app) and self._room().may_start(app)

    def _fits(self, app: AppView) -> bool:
        place = self._room().refusing(app)
        if place is not None:
            self._findings.note_gang(app, f"no room for the whole gang in {name_of(place)}")
        return place is None

    def _room(self) -> "Commitments":
        # Made once and kept for this plan; `_catch_up` brings it up to date.
        if self.commitments is None:
            self.commitments = Commitments(self._model)
        return self.commitments

    def refusing_claim(
        self, app: AppView, expected: Callable[[Queue], Resource]
    ) -> Queue | Limit | None:
        """Return what has no room for a gang when all that was decided has happened."""
        return self._room().refusing_claim(app, expected)

    def note_placing(self, app: AppView, amount: Resource) -> None:
        """Note that a placeholder is on its way: its amount is no longer committed to its gang."""
        if self.commitments is not None:
            self.commitments.place(app, amount)

    def subject_of(self, proposal_id: int) -> AppView:
        return self._in_flight[proposal_id]

    def resolve(self, proposal_id: int, _: Resolving) -> bool:
        self._in_flight.pop(proposal_id).is_admitting = False
        return True

    def reject(self, proposal_id: int) -> None:
        app = self._in_flight.pop(proposal_id)
        app.is_admitting = False
        # A gang that is not admitted leaves its room to another one.
        self._model.requeue.gang_may_fit()
        self._model.gangs.follow(app)


class Swapper:
    def __init__(self, model: Model, open_proposals: OpenProposals) -> None:
        self._model = model
        self._open_proposals = open_proposals
        self._findings = open_proposals.findings
        self._marks = model.requeue.gangs
        self._in_flight = model.flights.swaps

    def plan(self, _now_ns: int, room: int) -> list[Proposal]:
        """Find a placeholder for each member that waits for one."""
        looking = self._marks.looking
        proposals: list[Proposal] = []
        # A copy: finding a placeholder may take a gang out of the list.
        for serial, app in tuple(looking.items()):
            if len(proposals) >= room:
                break
            # Members wait until no placeholder of the gang is pending; the last one wakes them.
            if app.app.waiting_placeholders or not app.is_schedulable:
                del looking[serial]
                continue
            found = self._swap_members(app, room - len(proposals))
            proposals.extend(found)
            # Less waits in its queue now. No member looks at the order, so once is enough.
            rekey(app.leaf)
            # Cut short by the number of decisions: it stays, and is looked at in the next plan.
            if len(proposals) < room:
                del looking[serial]
        return proposals

    def _swap_members(self, app: AppView, limit: int) -> list[Proposal]:
        proposals: list[Proposal] = []
        aside = self._model.set_aside
        waiting = [ask for ask in app.asks.values() if _is_member(ask) and ask not in aside]
        hopeless: dict[tuple[Shape, str], None] = {}
        """No other node has room for these: their equals need not look."""
        # In the order in which they would be placed, so that a member is not overtaken.
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
                    found = self._swap_one(ask, group, limit - len(proposals))
                proposals.extend(found)
                if not found:
                    hopeless[kind] = None
                    # Only a change of a node helps it: until then it is looked at no more.
                    self._marks.stuck[app.app.serial] = app
                    self._findings.note_stuck(ask)
                    break
        return proposals

    def _swap_one(self, ask: AskView, group: dict[str, Allocation], limit: int) -> list[Proposal]:
        large_enough = False
        for placeholder in group.values():
            # Its own node first: such a swap needs no room anywhere.
            if fits_in(ask.resource, placeholder.resource):
                large_enough = True
                if self._may_stay(ask, placeholder.node_id):
                    return [self._replace(ask, placeholder, None)]
        # A member that is larger than every placeholder cannot swap: it is scheduled like any other
        # ask, and the placeholders make room for that.
        if not large_enough:
            return [self._cancel(ask, item) for item in tuple(group.values())[:limit]]
        return self._swap_elsewhere(ask, group)

    def _may_stay(self, ask: AskView, node_id: str) -> bool:
        spec = ask.ask.spec
        if not spec.may_run_on(node_id) or ask.shape.is_refused(node_id, Use.KEEPING):
            return False
        # Its devices are of the same node, which must have such.
        if not ask.shape.devices:
            return True
        return has_devices(self._model.state.nodes[node_id], spec)

    def _swap_elsewhere(self, ask: AskView, group: dict[str, Allocation]) -> list[Proposal]:
        """Take the first placeholder that does not stand on the node where there is room."""
        order = ask.app.node_order
        node = self._model.nodes.first_fit(ask.shape, order)
        if node is None or (ask.shape.required_node and not self._model.may_use(ask, node)):
            return []
        suited = [it for it in group.values() if fits_in(ask.resource, it.resource)]
        # The other node is never that of the placeholder: there it was refused (H-10).
        for placeholder in suited:
            if placeholder.node_id != node.id:
                return [self._replace(ask, placeholder, node)]
        # The only placeholder large enough stands on that node: another node is asked for.
        second = self._model.nodes.first_other(ask.shape, node.id, order)
        return [] if second is None else [self._replace(ask, suited[0], second)]

    def _replace(self, ask: AskView, placeholder: Allocation, node: NodeView | None) -> Replace:
        proposal_id = self._take(ask, placeholder, node, is_swap=True)
        spec, devices = ask.ask.spec, self._in_flight[proposal_id].devices
        return Replace(
            proposal_id=proposal_id,
            application_id=spec.application_id,
            key=spec.key,
            sequence=ask.ask.sequence,
            placeholder=placeholder.uuid,
            node_id=placeholder.node_id if node is None else node.id,
            crosses=node is not None,
            devices=devices,
        )

    def _cancel(self, ask: AskView, placeholder: Allocation) -> CancelPlaceholder:
        proposal_id = self._take(ask, placeholder, None, is_swap=False)
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
        ask: AskView,
        placeholder: Allocation,
        node: NodeView | None,
        *,
        is_swap: bool,
    ) -> int:
        proposal_id = self._open_proposals.next_id(self)
        devices: Devices = ()
        if node is not None and ask.shape.devices:
            devices = self._model.take_devices(ask, node)
        self._in_flight[proposal_id] = SwapInFlight(
            ask, placeholder, node, ask.resource, is_swap, devices
        )
        # At once, so that no second member takes the same placeholder (G10).
        self._model.gangs.withdraw(ask.app, placeholder.uuid)
        if is_swap:
            ask.inflight += 1
            self._model.asks.wait(ask, -1)
        if node is not None:
            # Room on another node is taken now; the placeholder keeps its own until it is gone.
            self._model.nodes.take(node, ask.resource)
        return proposal_id

    # -- the outcomes

    def subject_of(self, proposal_id: int) -> AskView:
        return self._in_flight[proposal_id].ask

    def resolve(self, proposal_id: int, _: Resolving) -> bool:
        self._take_out(proposal_id)
        return True

    def _take_out(self, proposal_id: int) -> SwapInFlight:
        flight = self._in_flight.pop(proposal_id)
        if flight.is_swap:
            flight.ask.inflight -= 1
        if flight.node is not None:
            if flight.devices:
                self._model.nodes.give_devices_back(flight.node, flight.devices, flight.resource)
            self._model.amounts.free_node(flight.node, flight.resource)
        return flight

    def reject(self, proposal_id: int) -> None:
        flight, model = self._take_out(proposal_id), self._model
        ask, placeholder = flight.ask, flight.placeholder
        # In the meantime it may have gone, or been asked back for another reason.
        still_there = ask.app.app.allocations.get(placeholder.uuid) is placeholder
        if still_there and placeholder.may_be_released:
            model.gangs.offer(ask.app, placeholder)
            # The preemptor may have counted on its room.
            model.requeue.work_changed(model.nodes.views[placeholder.node_id])
        if flight.is_swap and not ask.gone:
            model.asks.resync(ask)
            model.requeue.amounts_changed(ask.app.leaf)


class Commitments:
    """What admitted gangs still need, in one plan: neither allocated nor in flight."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._committed: Committed = {}
        self._rest: dict[int, Resource] = {}
        """Of each gang what no placeholder is on its way for, by serial."""
        self._admitted: list[AppView] = []
        self._placing: dict[AppView, Resource] = {}
        """Placeholders on their way that are not taken off yet: a gang has many at a time."""
        # Facts came: admitted gangs, and what of them is still to come.
        for id_ in model.state.admitted.values():
            self.commit(model.app_of(id_), commitment_of(model.state.applications[id_]))
        for app in model.flights.admissions.values():
            self.commit(app, unplaced(app.app))
        # What is placed now is no longer to come, or the gang would be counted twice.
        for flight in model.flights.placements.values():
            if flight.ask.is_placeholder:
                self.place(flight.ask.app, flight.resource)

    def commit(self, app: AppView, amount: Resource) -> None:
        self._catch_up()
        self._admitted.append(app)
        self._rest[app.app.serial] = dict(amount)
        commit_room(self._committed, app.app, amount)

    def place(self, app: AppView, amount: Resource) -> None:
        # One whose commitment lapsed has none, so there is nothing to take off.
        if app.app.serial in self._rest:
            charge(self._placing.setdefault(app, {}), amount)

    def _catch_up(self) -> None:
        for app, amount in self._placing.items():
            rest = self._rest[app.app.serial]
            # No more than is left: a placeholder may be larger than what was promised for it.
            less = {kind: -min(rest.get(kind, 0), quantity) for kind, quantity in amount.items()}
            charge(rest, less)
            commit_room(self._committed, app.app, less)
        self._placing.clear()

    def refusing(self, app: AppView) -> Queue | Limit | None:
        """Return what has no room for the whole gang, if anything."""
        self._catch_up()
        model = self._model
        queues = model.tree.queues
        return refusing_admission(
            app.app, self._committed, lambda it: queues[it.path].used, model.used_of
        )

    def refusing_claim(
        self, app: AppView, expected: Callable[[Queue], Resource]
    ) -> Queue | Limit | None:
        """As `refusing`, when all that was decided has happened."""
        self._catch_up()
        return refusing_admission(
            app.app, self._committed, without_earmarks(expected), self._model.used_of
        )

    def in_place(self, place: Queue | Limit) -> Resource:
        """Return what the admitted gangs there still need."""
        self._catch_up()
        return self._committed.get(place.path if isinstance(place, Queue) else place.key, {})

    def may_start(self, app: AppView) -> bool:
        """Whether the application may run beside the admitted gangs that are to run."""
        # It counts already, so it takes no further place.
        if _has_its_place(app) or not app.gates():
            return True
        before = [it for it in self._admitted if not _has_its_place(it)]
        return all(
            gate.counts(app)
            # Gates that count it let it in; of the others the admitted gangs come first.
            or sum(gate in it.gates() and not gate.counts(it) for it in before) < gate.places()
            for gate in app.gates()
        )


def _has_its_place(app: AppView) -> bool:
    """Whether it counts among the running applications already, or will with what is decided."""
    return bool(app.app.allocations or app.app.reservation_count or app.starting)


def _starts_one_by_one(app: AppView) -> bool:
    return app.leaf.is_stateaware and app.app.state is ApplicationState.ACCEPTED


def name_of(place: Queue | Limit) -> str:
    return f"queue {place.path}" if isinstance(place, Queue) else place.name


def _is_member(ask: AskView) -> bool:
    """Whether it waits for a placeholder."""
    spec = ask.ask.spec
    if spec.placeholder or ask.ask.remaining <= ask.inflight:
        return False
    return waits_for_swap(ask.app.app, spec)
