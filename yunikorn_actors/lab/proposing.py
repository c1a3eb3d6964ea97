"""A Scheduler that proposes what its planner never would.

A planner looks before it proposes, so a check that is missing at the commit shows only where a race
comes in between. Here the Scheduler asks for anything that it can name: work on a node that is
full, drained or gone, a swap with any placeholder, victims of anybody. Context checks everything
again, so it has to bear that, and to answer it once.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from yunikorn_actors.domain.allocation import Allocation, Ask
from yunikorn_actors.domain.beneficiary import Beneficiary, PreemptionRule
from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.proposals import (
    AdmitGang,
    Allocate,
    Preempt,
    Proposal,
    Replace,
    Reserve,
    VictimRef,
)
from yunikorn_actors.lab.draw import Draw
from yunikorn_actors.lab.tape import Entry
from yunikorn_actors.lab.world import World
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import CONTEXT, Cause, Envelope
from yunikorn_actors.planning.parts.part import Resolving


class _Whim:
    """Who makes such proposals: it takes nothing, so there is nothing to give back."""

    def resolve(self, _proposal_id: int, _fact: Resolving) -> bool:
        """Leave it to the planner to charge what was committed, as for another's decision."""
        return False

    def reject(self, _proposal_id: int) -> None:
        """Lose nothing."""


# -- what may be named: what the replica of a Scheduler shows


def _asks(state: PartitionState) -> Iterator[tuple[str, Ask]]:
    for app in state.applications.values():
        yield from ((f"{key} of {app.id}", ask) for key, ask in app.asks.items())


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


_KINDS: Final = (_placings, _placings, _reservations, _admissions, _swaps, _preemptions)
"""What gives work to nodes is tried most."""


def offer(world: World, draw: Draw) -> Entry | None:
    """Draw something that a Scheduler could ask for, right or wrong."""
    kind = draw.one_of(_KINDS)
    wishes = [wish for _, scheduler in _schedulers(world) for wish in kind(scheduler.replica)]
    return Entry("propose", draw.one_of(wishes)) if wishes else None


def _schedulers(world: World) -> list[tuple[str, Scheduler]]:
    machines = world.simulator.machines.items()
    return [(address, machine) for address, machine in machines if isinstance(machine, Scheduler)]


# -- from the words to the proposal


class _Wish:
    """What the words name, in the replica of one Scheduler; KeyError if it does not know it."""

    def __init__(self, scheduler: Scheduler, words: dict[str, str]) -> None:
        self._scheduler = scheduler
        self._words = words
        self.app = scheduler.replica.applications[words["app"]]
        self.node_id = words.get("node", "")

    @property
    def ask(self) -> Ask:
        return self.app.asks[self._words["key"]]

    @property
    def other(self) -> Allocation:
        """The newest allocation of that key, of the same application if no other one is named."""
        owner = self._scheduler.replica.applications[self._words.get("owner", self.app.id)]
        named = {item.spec.key: item for item in owner.allocations.values()}
        return named[self._words["other"]]

    def next_id(self) -> int:
        return self._scheduler.planner.desk.next_id(_Whim())


def _place(wish: _Wish) -> Proposal:
    ask = wish.ask
    return Allocate(
        proposal_id=wish.next_id(),
        application_id=wish.app.id,
        key=ask.spec.key,
        sequence=ask.sequence,
        node_id=wish.node_id,
    )


def _reserve(wish: _Wish) -> Proposal:
    ask = wish.ask
    return Reserve(
        proposal_id=wish.next_id(),
        application_id=wish.app.id,
        key=ask.spec.key,
        sequence=ask.sequence,
        node_id=wish.node_id,
    )


def _admit(wish: _Wish) -> Proposal:
    app = wish.app
    return AdmitGang(proposal_id=wish.next_id(), application_id=app.id, serial=app.serial)


def _swap(wish: _Wish) -> Proposal:
    ask, placeholder = wish.ask, wish.other
    return Replace(
        proposal_id=wish.next_id(),
        application_id=wish.app.id,
        key=ask.spec.key,
        sequence=ask.sequence,
        placeholder=placeholder.uuid,
        node_id=wish.node_id,
        crosses=placeholder.node_id != wish.node_id,
    )


def _preempt(wish: _Wish) -> Proposal:
    app, ask, victim = wish.app, wish.ask, wish.other
    required = bool(ask.spec.required_node)
    rule = PreemptionRule.REQUIRED_NODE if required else PreemptionRule.GUARANTEE
    return Preempt(
        proposal_id=wish.next_id(),
        beneficiary=Beneficiary(
            rule=rule, queue=app.queue.path, application_id=app.id, key=ask.spec.key
        ),
        victims=(VictimRef.to(victim),),
        sequence=ask.sequence,
        node_id=victim.node_id,
    )


_ASK: Final = r"(?P<key>\S+) of (?P<app>\S+)"
_MAKES: Final[dict[str, Callable[[_Wish], Proposal]]] = {
    rf"to place {_ASK} on (?P<node>\S+)": _place,
    rf"to reserve (?P<node>\S+) for {_ASK}": _reserve,
    r"to admit (?P<app>\S+)": _admit,
    rf"to swap {_ASK} with (?P<other>\S+) on (?P<node>\S+)": _swap,
    rf"to preempt (?P<other>\S+) of (?P<owner>\S+) for {_ASK}": _preempt,
}


def propose(world: World, what: str) -> None:
    """Have the first Scheduler that knows what is named ask for it; nothing if none does."""
    words, make = next(
        (found.groupdict(), make)
        for pattern, make in _MAKES.items()
        if (found := re.fullmatch(pattern, what))
    )
    for address, scheduler in _schedulers(world):
        with suppress(KeyError):
            message = scheduler.proposing((make(_Wish(scheduler, words)),))
            envelope = Envelope(address, message, Cause(address, 0), f"propose {what}")
            world.simulator._put((address, CONTEXT), envelope)
            return
