"""R-036: the resource manager withdraws an ask while the decision to allocate it is on its way.

Whichever is first wins: either nobody hears of the allocation, or it is announced and released.
The race must have happened, or the test has shown nothing; and a core that commits without looking
at the ask must be caught.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest
import ranges
from msgspec.structs import replace
from support import APP, PARTITION, Lab, facts_of

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.context import asks, commit, context
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import CONTEXT, Delivery, scheduler_address
from yunikorn_actors.messages.rm_events import AnnouncedAllocation, AskItem
from yunikorn_actors.messages.scheduling import ProposalRejected
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.proposals import Allocate, Refusal

seeded = ranges.seeds(2_000, usual=25)
SEEDS_FOR_A_BUG = 200


class CancelledInFlight:
    """Notes proposals for an ask that Context has removed.

    Some were on their way at the moment of the removal, others were made on a view that did not
    show it yet.
    """

    def __init__(self) -> None:
        self.overtaken: set[int] = set()
        """On their way when the fact was recorded."""
        self.refused: set[int] = set()

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, ProposalRejected) and message.reason is Refusal.ASK_GONE:
            self.refused.add(message.proposal_id)
        elif delivery.mailbox == CONTEXT:
            removed = [
                (fact.application_id, fact.key)
                for fact in facts_of(simulator, delivery)
                if isinstance(fact, f.AskRemoved)
            ]
            self.overtaken.update(_in_flight_of(simulator, removed))


def _in_flight_of(simulator: Simulator, asks: list[tuple[str, str]]) -> list[int]:
    scheduler = simulator.machines.get(scheduler_address(PARTITION, 1))
    if not isinstance(scheduler, Scheduler):
        return []
    return [
        proposal_id
        for proposal_id, held in scheduler.planner.model.flights.placements.items()
        if (held.ask.ask.spec.application_id, held.ask.ask.spec.key) in asks
    ]


def cancel_one_of_three(lab: Lab) -> None:
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.settle()
    lab.ask("a", "b", "c")
    lab.withdraw("b")
    lab.settle()


@seeded
def test_whichever_is_first_wins(seeds: range) -> None:
    overtaken = refused = 0
    for seed in seeds:
        watcher = CancelledInFlight()
        lab = Lab(seed=seed, checkers=(watcher,))
        cancel_one_of_three(lab)
        assert lab.running() == ["a", "c"]
        assert lab.waiting() == []
        told = [line for line in lab.rm.heard if line[1] == "b"]
        assert told in ([], [("new", "b", "n1"), ("released", "b", "STOPPED_BY_RM")])
        assert watcher.overtaken <= watcher.refused
        overtaken += len(watcher.overtaken)
        refused += len(watcher.refused)
    assert overtaken > 0, "vacuous: no ask was withdrawn while its proposal was on its way"
    assert refused > overtaken, "vacuous: no proposal was made after its ask was withdrawn"


@ranges.seeds(200)
def test_fused_has_nothing_on_its_way(seeds: range) -> None:
    for seed in seeds:
        watcher = CancelledInFlight()
        lab = Lab(seed=seed, topology="fused", checkers=(watcher,))
        cancel_one_of_three(lab)
        assert lab.running() == ["a", "c"]
        assert (set(), set(), {}) == (watcher.overtaken, watcher.refused, lab.races.refusals)


# -- planted bugs: a commit that does not look whether the ask is still there

Commit: TypeAlias = Callable[[UnitOfWork, Allocate], Refusal | None]
sound_commit: Commit = commit.commit


class StaleMemory:
    """Asks as they came; it never hears that one was withdrawn."""

    def __init__(self) -> None:
        self.specs: dict[str, AskSpec] = {}

    def take_from(self, unit: UnitOfWork, items: Sequence[AskItem], place: int) -> int:
        self.specs.update((item.spec.key, item.spec) for item in items)
        return asks.take_from(unit, items, place)

    def announce_only(self, unit: UnitOfWork, proposal: Allocate) -> Refusal | None:
        """Tell the resource manager what stands in no book."""
        refusal = sound_commit(unit, proposal)
        if refusal is Refusal.ASK_GONE:
            self._announce(unit, proposal, unit.partition.uuids.next())
            return None
        return refusal

    def announce_and_refuse(self, unit: UnitOfWork, proposal: Allocate) -> Refusal | None:
        """Refuse the proposal, and announce it all the same."""
        refusal = sound_commit(unit, proposal)
        if refusal is Refusal.ASK_GONE:
            self._announce(unit, proposal, unit.partition.uuids.next())
        return refusal

    def resurrect(self, unit: UnitOfWork, proposal: Allocate) -> Refusal | None:
        """Put the withdrawn ask back, so that every book agrees with the allocation."""
        refusal = sound_commit(unit, proposal)
        if refusal is not Refusal.ASK_GONE:
            return refusal
        spec, now_ns = self.specs[proposal.key], unit.now_ns
        sequence = unit.partition.next_sequence()
        added = f.AskAdded(spec=spec, created_ns=now_ns, sequence=sequence, at_ns=now_ns)
        unit.record(added)
        return sound_commit(unit, replace(proposal, sequence=sequence))

    def _announce(self, unit: UnitOfWork, proposal: Allocate, uuid: str) -> None:
        new = AnnouncedAllocation(
            partition=unit.partition.name,
            uuid=uuid,
            spec=self.specs[proposal.key],
            node_id=proposal.node_id,
        )
        unit.announce(new)


BUGS: dict[str, tuple[Callable[[StaleMemory], Commit], tuple[type[Exception], ...]]] = {
    "announced only": (lambda memory: memory.announce_only, (InvariantViolation,)),
    "resurrected": (lambda memory: memory.resurrect, (InvariantViolation,)),
    # The books are sound; only the resource manager's own list of what runs gives it away.
    "announced and refused": (
        lambda memory: memory.announce_and_refuse,
        (InvariantViolation, AssertionError),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_core_that_commits_a_withdrawn_ask_is_caught(
    bug: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    plant, symptoms = BUGS[bug]
    memory = StaleMemory()
    monkeypatch.setattr(context, "take_from", memory.take_from)
    monkeypatch.setattr(commit, "commit", plant(memory))
    found = next((seed for seed in range(1, SEEDS_FOR_A_BUG + 1) if _fails(seed, symptoms)), None)
    record_property("seed", found)
    assert found is not None, f"{SEEDS_FOR_A_BUG} seeds did not show the planted bug"


def _fails(seed: int, symptoms: tuple[type[Exception], ...]) -> bool:
    try:
        lab = Lab(seed=seed)
        cancel_one_of_three(lab)
        lab.running()
    except symptoms:
        return True
    return False
