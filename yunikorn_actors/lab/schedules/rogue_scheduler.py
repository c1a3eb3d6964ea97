"""A Scheduler that proposes what its planner never would.

A planner looks before it proposes, so a check that is missing at the commit shows only where a race
comes in between. Here the Scheduler asks for anything that it can name: work on a node that is
full, drained or gone, a swap with any placeholder, victims of anybody. What is wrong with it, the
oracle for decisions says. Context checks everything again, so it has to refuse that, and once.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from msgspec.structs import replace

from yunikorn_actors.checks.decision_rules import wrongs
from yunikorn_actors.lab.harness import World
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.tapes.tape import Entry
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import CONTEXT, Cause, Envelope
from yunikorn_actors.planning.stages.stage import Resolving
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, Ask, Beneficiary, PreemptionRule
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import (
    AdmitGang,
    Allocate,
    Preempt,
    Proposal,
    Replace,
    Reserve,
    VictimRef,
)
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.ids import NO_PROPOSAL


class _Whim:
    """Who makes such proposals: it takes nothing, so there is nothing to give back."""

    def resolve(self, _proposal_id: int, _fact: Resolving) -> bool:
        """Leave it to the planner to charge what was committed, as for another's decision."""
        return False

    def reject(self, _proposal_id: int) -> None:
        """Lose nothing."""

    def subject_of(self, _proposal_id: int) -> str:
        """Name no queue: the planner proposes what it wants all the same."""
        return ""


# -- what may be named: what the replica of a Scheduler shows


def _asks(state: PartitionState) -> Iterator[tuple[str, Ask]]:
    """Yield what waits as far as the Scheduler knows."""
    for app in state.applications.values():
        for key, ask in app.asks.items():
            if ask.remaining:
                yield f"{key} of {app.id}", ask


def _placings(state: PartitionState) -> Iterator[str]:
    for name, _ in _asks(state):
        yield from (f"to place {name} on {node_id}" for node_id in state.nodes)


def _reservations(state: PartitionState) -> Iterator[str]:
    for name, _ in _asks(state):
        yield from (f"to reserve {node_id} for {name}" for node_id in state.nodes)


def _admissions(state: PartitionState) -> Iterator[str]:
    return (f"to admit {app.id}" for app in state.applications.values() if app.task_groups)


def _swaps(state: PartitionState) -> Iterator[str]:
    for name, ask in _asks(state):
        app = state.applications[ask.spec.application_id]
        for item in app.allocations.values():
            if item.spec.placeholder and not ask.spec.placeholder:
                swap = f"to swap {name} with {item.spec.key}"
                yield from (f"{swap} on {node_id}" for node_id in state.nodes)


def _preemptions(state: PartitionState) -> Iterator[str]:
    for name, _ in _asks(state):
        for app in state.applications.values():
            for item in app.allocations.values():
                yield f"to preempt {item.spec.key} of {app.id} for {name}"


_KINDS: Final = (_placings, _reservations, _admissions, _swaps, _preemptions)
_LOOKS: Final = 20
"""So many wishes are looked at for one that is wrong."""


def offer(world: World, draw: Draw) -> Entry | None:
    """Draw something that is wrong in one way: then one check alone stands against it.

    First what is wrong is drawn, as most of what could be asked for is wrong in the same few ways.
    """
    by_wrong: dict[str, list[str]] = {}
    for _, scheduler in _schedulers(world):
        kinds = [wishes for kind in _KINDS if (wishes := tuple(kind(scheduler.replica)))]
        for _ in range(_LOOKS if kinds else 0):
            wish = draw.one_of(draw.one_of(kinds))
            by_wrong.setdefault(_wrong_with(world, scheduler, wish), []).append(wish)
    ways = tuple(wrong for wrong in by_wrong if wrong) or tuple(by_wrong)
    return Entry("propose", draw.one_of(by_wrong[draw.one_of(ways)])) if ways else None


def _wrong_with(world: World, scheduler: Scheduler, wish: str) -> str:
    """Say what is wrong with it by now; empty if nothing is, or more than one thing."""
    state = world.context.partitions[scheduler.replica.name].state
    try:
        found = {line for fact in _made(scheduler, wish).facts for line in wrongs(state, fact, ())}
    except KeyError:
        return "it is gone"
    # What begins alike, as "G23: node", is reported of one bound.
    bounds = {line.split()[:2][-1] for line in found}
    return "; ".join(sorted(found)) if len(bounds) == 1 else ""


def _schedulers(world: World) -> list[tuple[str, Scheduler]]:
    machines = world.simulator.machines.items()
    return [(address, machine) for address, machine in machines if isinstance(machine, Scheduler)]


# -- from the words to the proposal


class _Made(NamedTuple):
    """A proposal without its id, and the facts that would tell of it."""

    proposal: Proposal
    facts: tuple[f.Fact, ...]


class _Wish:
    """What the words name, in the replica of one Scheduler; KeyError if it does not know it."""

    def __init__(self, replica: PartitionState, words: dict[str, str]) -> None:
        self._replica = replica
        self._words = words
        self.app = replica.applications[words["app"]]
        self.node_id = words.get("node", "")

    @property
    def ask(self) -> Ask:
        return self.app.asks[self._words["key"]]

    @property
    def other(self) -> Allocation:
        """The newest allocation of that key, of the same application if no other one is named."""
        owner = self._replica.applications[self._words.get("owner", self.app.id)]
        named = {item.spec.key: item for item in owner.allocations.values()}
        return named[self._words["other"]]


def _place(wish: _Wish) -> _Made:
    app, ask = wish.app, wish.ask
    proposal = Allocate(
        proposal_id=NO_PROPOSAL,
        application_id=app.id,
        key=ask.spec.key,
        sequence=ask.sequence,
        node_id=wish.node_id,
    )
    fact = f.AllocationCommitted(
        application_id=app.id,
        queue=app.queue.path,
        user=app.spec.user,
        key=ask.spec.key,
        uuid="",
        node_id=wish.node_id,
        resource=ask.spec.resource,
        at_ns=0,
        proposal_id=1,
    )
    return _Made(proposal, (fact,))


def _reserve(wish: _Wish) -> _Made:
    app, ask = wish.app, wish.ask
    proposal = Reserve(
        proposal_id=NO_PROPOSAL,
        application_id=app.id,
        key=ask.spec.key,
        sequence=ask.sequence,
        node_id=wish.node_id,
    )
    fact = f.ReservationMade(
        application_id=app.id,
        key=ask.spec.key,
        node_id=wish.node_id,
        required=bool(ask.spec.required_node),
        resource=ask.spec.resource,
        at_ns=0,
    )
    return _Made(proposal, (fact,))


def _admit(wish: _Wish) -> _Made:
    app = wish.app
    proposal = AdmitGang(proposal_id=NO_PROPOSAL, application_id=app.id, serial=app.serial)
    fact = f.GangAdmitted(
        application_id=app.id, serial=app.serial, queue=app.queue.path, commitment={}, at_ns=0
    )
    return _Made(proposal, (fact,))


def _swap(wish: _Wish) -> _Made:
    app, ask, placeholder = wish.app, wish.ask, wish.other
    crosses = placeholder.node_id != wish.node_id
    proposal = Replace(
        proposal_id=NO_PROPOSAL,
        application_id=app.id,
        key=ask.spec.key,
        sequence=ask.sequence,
        placeholder=placeholder.uuid,
        node_id=wish.node_id,
        crosses=crosses,
    )
    asked_back = f.ReleaseRequested(
        application_id=app.id,
        key=placeholder.spec.key,
        uuid=placeholder.uuid,
        type=TerminationType.PLACEHOLDER_REPLACED,
        message="",
        at_ns=0,
    )
    parked = f.AskParked(
        application_id=app.id,
        key=ask.spec.key,
        resource=ask.spec.resource,
        placeholder=placeholder.uuid,
        node_id=wish.node_id,
        crosses=crosses,
        at_ns=0,
    )
    return _Made(proposal, (asked_back, parked))


def _preempt(wish: _Wish) -> _Made:
    app, ask, victim = wish.app, wish.ask, wish.other
    required = bool(ask.spec.required_node)
    beneficiary = Beneficiary(
        rule=PreemptionRule.REQUIRED_NODE if required else PreemptionRule.GUARANTEE,
        queue=app.queue.path,
        application_id=app.id,
        key=ask.spec.key,
    )
    proposal = Preempt(
        proposal_id=NO_PROPOSAL,
        beneficiary=beneficiary,
        victims=(VictimRef.to(victim),),
        sequence=ask.sequence,
        node_id=victim.node_id,
    )
    fact = f.PreemptionDecided(
        beneficiary=beneficiary,
        node_id=victim.node_id,
        victims=(victim.uuid,),
        max={},
        at_ns=0,
    )
    return _Made(proposal, (fact,))


_ASK: Final = r"(?P<key>\S+) of (?P<app>\S+)"
_MAKES: Final[dict[str, Callable[[_Wish], _Made]]] = {
    rf"to place {_ASK} on (?P<node>\S+)": _place,
    rf"to reserve (?P<node>\S+) for {_ASK}": _reserve,
    r"to admit (?P<app>\S+)": _admit,
    rf"to swap {_ASK} with (?P<other>\S+) on (?P<node>\S+)": _swap,
    rf"to preempt (?P<other>\S+) of (?P<owner>\S+) for {_ASK}": _preempt,
}


def _made(scheduler: Scheduler, what: str) -> _Made:
    words, make = next(
        (found.groupdict(), make)
        for pattern, make in _MAKES.items()
        if (found := re.fullmatch(pattern, what))
    )
    return make(_Wish(scheduler.replica, words))


def propose(world: World, what: str) -> bool:
    """Have the first Scheduler that knows what is named ask for it; False if none does."""
    for address, scheduler in _schedulers(world):
        with suppress(KeyError):
            proposal = _made(scheduler, what).proposal
            own = replace(proposal, proposal_id=scheduler.planner.open_proposals.next_id(_Whim()))
            envelope = Envelope(
                address, scheduler.proposing((own,)), Cause(address, 0), f"propose {what}"
            )
            world.simulator.put((address, CONTEXT), envelope)
            return True
    return False
