"""What policies keep comes back from a journal as if nothing had happened."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import ranges
from msgspec import msgpack

from tests.helpers.batch_jobs import Batch, drawn
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.journal import journaled_context as kept
from yunikorn_actors.journal.restored_state import Truth, stored_entry
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.policies import Policies
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.inputs import Change, Ended, Started
from yunikorn_actors.policies.places import ApplicationSeen, Key
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import restore


@dataclass
class SecondsRun:
    """Whose work has run least, by what it has seen itself: it follows from no state at the end."""

    reads = ("state",)
    begun: dict[str, int] = field(default_factory=dict)
    ran_ns: dict[str, int] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def application_key(self, app: ApplicationSeen) -> Key:
        return self.ran_ns.get(app.user, 0)

    def observe(self, fact: Change, now_ns: int) -> None:
        self.seen.append(type(fact).__name__)
        if isinstance(fact, Started):
            self.begun[fact.job.id] = now_ns
        elif isinstance(fact, Ended):
            passed_ns = now_ns - self.begun.pop(fact.job.id, now_ns)
            self.ran_ns[fact.job.user] = self.ran_ns.get(fact.job.user, 0) + passed_ns


MINE = {"mine": SecondsRun}


class Followed:
    """A journal that is read as it is written; at each entry the core might have been killed."""

    def __init__(self, every: int) -> None:
        self.truth, self.entries, self.kept, self.unread = Truth(), 0, 0, 0
        self._every = every
        self._of: kept.Entries | None = None

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        self._of = self._of or kept.Entries(context)
        entry = self._of.of(simulator.taken, simulator.effects, delivery.at_ns)
        if entry is None:
            return
        self.truth.take(stored_entry(memoryview(encode(entry))))
        self.entries += 1
        told = msgpack.decode(msgpack.encode(self.truth.as_message()), type=CoreRestored)
        if self.entries % self._every == 0:
            # The entries after a snapshot go on from it.
            again = Truth()
            again.begin_with(told)
            assert again.digest() == self.truth.digest()
            self.truth = again
        for name, partition in context.partitions.items():
            image = told.images[name]
            made = PartitionState(name, Folds(Policies(MINE)))
            restore(made, image)
            assert made.folds is not None
            assert partition.state.folds is not None
            expected = partition.state.folds.image()
            assert made.folds.image() == expected
            self.kept += bool(expected)
            self.unread += sum(len(it) > 2 for it in image.get("folds", {}).values())


@pytest.mark.parametrize(
    ("policy", "topology"),
    ranges.one_each(["mine", "conservative", "fair-decay"], ["proposing", "fused"]),
)
def test_a_fold_is_what_it_was_wherever_the_core_is_killed(
    topology: TopologyName, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "TALLY_EVERY", 7)
    followed = Followed(every=11)
    batch = Batch(policy, drawn(3), topology, gangs=False, checkers=(followed,), policies=MINE)
    starts = batch.run()
    assert len(starts) == len(drawn(3))
    assert followed.kept > 20, "a fold had something to keep"
    assert followed.unread > 20, "facts came behind what was noted"


def test_a_fold_is_part_of_the_state() -> None:
    batch = Batch("mine", drawn(3), "proposing", gangs=False, policies=MINE)
    batch.run()
    states: list[dict[str, Any]] = [it.canonical_state() for it in batch.core.machines.values()]
    [in_context] = [it["folds"]["[rm]default"] for it in states if "partitions" in it]
    [in_scheduler] = [it["folds"] for it in states if "replica" in it]
    assert in_context == in_scheduler
    assert "SecondsRun" not in in_context
    name, kept_of_it = in_context["root.jobs"]
    assert name == "mine"
    assert kept_of_it["ran_ns"]["ann"] > 0
