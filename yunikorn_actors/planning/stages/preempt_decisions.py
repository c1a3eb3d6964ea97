"""Decisions of the preemptor that Context has not answered: put in flight, and taken out.

What is on its way counts for every search as if it had happened, so that no two decisions count on
the same room or the same victim.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.views import AppView, AskView, QueueView
from yunikorn_actors.planning.preemption.agenda import Agenda
from yunikorn_actors.planning.preemption.required_node import Bound
from yunikorn_actors.planning.preemption.scene import Flight, Scene
from yunikorn_actors.planning.stages.stage import OpenProposals, Resolving
from yunikorn_actors.state.allocations import Allocation, AskSpec, Beneficiary, PreemptionRule
from yunikorn_actors.state.proposals import Preempt, VictimRef


class Decisions:
    """The owner of the proposals of preemption."""

    def __init__(self, model: Model, open_proposals: OpenProposals, agenda: Agenda) -> None:
        self._model = model
        self._open_proposals = open_proposals
        self._marks = model.requeue.preempting
        self._agenda = agenda
        self.in_flight: dict[int, Flight] = {}
        self._claiming: dict[AskView, int] = {}
        """Repeats of each ask whose victims are about to go."""
        self.asks_about_places = self.asks_about_victims = False
        """The resource manager is asked first: until it answers, nothing counts on the result."""

    def scene(self, now_ns: int, *, is_trial: bool = False) -> Scene:
        scene = Scene(self._model, self.in_flight.values(), now_ns, self.is_asked_about)
        scene.is_trial = is_trial
        # A trial is never handed out, so no node has to close behind it.
        return scene

    def is_asked_about(self, spec: AskSpec) -> bool:
        """Whether the resource manager is asked before anything goes for this ask."""
        return self.asks_about_victims or (self.asks_about_places and spec.has_predicates)

    def is_gang_asked_about(self, app: AppView) -> bool:
        return any(
            ask.is_placeholder and ask.waiting and self.is_asked_about(ask.ask.spec)
            for ask in app.asks.values()
        )

    def awaits_answer_in(self, leaf: QueueView) -> bool:
        """Whether the resource manager is asked about an ask of the leaf."""
        return any(
            it.ask is not None and it.ask.app.leaf is leaf and self.is_asked_about(it.ask.ask.spec)
            for it in self.in_flight.values()
        )

    def is_about_to_wait(self, ask: AskView) -> bool:
        """Whether a reservation for it that only waits is on its way, made or given up."""
        return ask.keeping > self._claiming.get(ask, 0)

    def is_enforced(self, path: str) -> bool:
        # Also of an ancestor or a descendant: what goes for one changes the other.
        for flight in self.in_flight.values():
            other = flight.beneficiary
            if other.rule is PreemptionRule.QUOTA and _are_on_one_path(path, other.queue):
                return True
        return False

    # -- into flight

    def propose(
        self,
        rule: PreemptionRule,
        path: str,
        victims: tuple[Allocation, ...],
        ask: AskView | None = None,
        node: NodeView | None = None,
        gang: int | None = 0,
    ) -> Preempt:
        """Put a decision in flight; a gang of None begins with this one."""
        spec = None if ask is None else ask.ask.spec
        beneficiary = Beneficiary(
            rule=rule,
            queue=path,
            application_id="" if spec is None else spec.application_id,
            key="" if spec is None else spec.key,
        )
        refs = tuple(map(VictimRef.to, victims))
        proposal_id = self._open_proposals.next_id(self)
        resource = {} if ask is None else ask.resource
        place = None if ask is None else self._model.participants.take(ask.app)
        # What its application would take if it were placed: several decisions may take one place.
        self.in_flight[proposal_id] = Flight(beneficiary, refs, ask, node, resource, place)
        if ask is not None:
            ask.keeping += 1
            self._claim(ask, 1)
            if ask.app.awaiting_gang is not None:
                # What goes for a gang admits it.
                self._model.flights.admissions[proposal_id] = ask.app
                ask.app.is_admitting = True
                self._model.gangs.follow(ask.app)
        if node is not None:
            # The node looks the same until Context answers: nothing else counts on its room.
            node.keeping += 1
            self._model.amounts.refresh_node(node)
        return Preempt(
            proposal_id=proposal_id,
            beneficiary=beneficiary,
            victims=refs,
            sequence=0 if ask is None else ask.ask.sequence,
            node_id="" if node is None else node.id,
            # The first of a gang has its own id as the number of the gang.
            gang=proposal_id if gang is None else gang,
        )

    def propose_for_bound(self, app: AppView, bound: list[Bound]) -> Iterator[Preempt]:
        gang: int | None = None
        for it in bound:
            if it.victims:
                proposal = self.propose(
                    PreemptionRule.REQUIRED_NODE,
                    app.leaf.queue.path,
                    it.victims,
                    app.asks[it.key],
                    self._model.nodes.views[it.node_id],
                    # A resource manager that is asked first answers for one of them at a time.
                    0 if self.is_gang_asked_about(app) else gang,
                )
                gang = proposal.gang
                yield proposal

    def extend(self, proposal: Preempt, further: tuple[VictimRef, ...]) -> Preempt:
        """Add victims that the resource manager asked for to a proposal that is not sent yet."""
        victims = (*proposal.victims, *further)
        # From here on every scene counts the further victims, too.
        self.in_flight[proposal.proposal_id].victims = victims
        return replace(proposal, victims=victims)

    def _claim(self, ask: AskView, repeats: int) -> None:
        self._claiming[ask] = self._claiming.get(ask, 0) + repeats
        if not self._claiming[ask]:
            del self._claiming[ask]

    # -- out of it

    def subject_of(self, proposal_id: int) -> AskView | str:
        flight = self.in_flight[proposal_id]
        return flight.beneficiary.queue if flight.ask is None else flight.ask

    def resolve(self, proposal_id: int, _: Resolving | None = None) -> bool:
        self._take_out(proposal_id)
        return True

    def reject(self, proposal_id: int) -> None:
        """Look again as soon as the newer facts are here."""
        flight = self._take_out(proposal_id)
        self._model.requeue.try_full_again()
        if flight.node is not None and flight.beneficiary.rule is PreemptionRule.REQUIRED_NODE:
            # Another node of its gang may have refused it, and that is the one that changes.
            self._agenda.kept_back[flight.node.id] = None
        # Without the pause of 15 s: the attempt was not in vain, only its view was old (H-23).
        if flight.ask is not None and not flight.ask.gone:
            self._agenda.retry(flight.ask.app.leaf)

    def _take_out(self, proposal_id: int) -> Flight:
        flight, model = self.in_flight.pop(proposal_id), self._model
        # No longer on its way: whether the gang was admitted shows in the replica.
        admitted = model.flights.admissions.pop(proposal_id, None)
        if admitted is not None:
            admitted.is_admitting = False
            model.gangs.follow(admitted)
        if flight.ask is not None:
            flight.ask.keeping -= 1
            self._claim(flight.ask, -1)
            # While this was on its way its node was not reserved anew; that may be due now.
            model.asks.keep_required(flight.ask)
        if flight.place is not None:
            model.participants.resolve(flight.place)
        # Of a node that has gone nothing is on its way any more.
        if flight.node is not None and model.nodes.knows(flight.node):
            flight.node.keeping -= 1
            model.amounts.refresh_node(flight.node)
        # Whatever became of it, who found no room beside it may find some now.
        self._marks.is_stale = self._marks.was_freed = True
        return flight


def _are_on_one_path(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
