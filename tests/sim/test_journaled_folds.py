"""What policies keep comes back from a journal as if nothing had happened."""

from collections.abc import Mapping
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
from yunikorn_actors.policies import Policies, Policy
from yunikorn_actors.policies.folds import Folds, UnreadPolicies
from yunikorn_actors.policies.inputs import Change, Ended, Started
from yunikorn_actors.policies.places import ApplicationSeen, Key
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import image_of, restore


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


@dataclass
class FailsAtAnEnd(SecondsRun):
    """Cannot bear its second end."""

    ends: int = 0

    def observe(self, fact: Change, now_ns: int) -> None:
        super().observe(fact, now_ns)
        self.ends += isinstance(fact, Ended)
        if self.ends > 1:
            raise RuntimeError(f"the second end, of {len(self.seen)}")


MINE: dict[str, type[SecondsRun]] = {"mine": SecondsRun}
FAILING: dict[str, type[SecondsRun]] = {"mine": FailsAtAnEnd}


class Followed:
    """A journal that is read as it is written; at each entry the core might have been killed."""

    def __init__(self, every: int, policies: Mapping[str, Policy]) -> None:
        self.truth, self.entries, self.kept, self.unread, self.failed = Truth(), 0, 0, 0, 0
        self._every, self._policies = every, policies
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
            made = restored(image, self._policies)
            assert isinstance(partition.state.folds, Folds)
            expected = partition.state.folds.image()
            assert made.image() == expected
            assert made.failed == partition.state.folds.failed
            self.failed += bool(made.failed)
            self.kept += bool(expected)
            self.unread += sum(len(it) > 2 for it in image.get("folds", {}).values())


def restored(image: dict[str, Any], policies: Mapping[str, Policy]) -> Folds:
    made = PartitionState("[rm]default", Folds(Policies(policies)))
    restore(made, image)
    assert isinstance(made.folds, Folds)
    return made.folds


@pytest.mark.parametrize(
    ("policy", "topology"),
    ranges.one_each(["mine", "conservative", "fair-decay"], ["proposing", "fused"]),
)
def test_a_fold_is_what_it_was_wherever_the_core_is_killed(
    topology: TopologyName, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "TALLY_EVERY", 7)
    followed = Followed(every=11, policies=MINE)
    batch = Batch(policy, drawn(3), topology, gangs=False, checkers=(followed,), policies=MINE)
    starts = batch.run()
    assert len(starts) == len(drawn(3))
    assert followed.kept > 20, "a fold had something to keep"
    assert followed.unread > 20, "facts came behind what was noted"


@pytest.mark.parametrize("topology", ranges.first(["proposing", "fused"], 1))
@pytest.mark.slow
def test_a_fold_that_has_failed_stays_so_wherever_the_core_is_killed(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "TALLY_EVERY", 7)
    followed = Followed(every=11, policies=FAILING)
    batch = Batch("mine", drawn(3), topology, gangs=False, checkers=(followed,), policies=FAILING)
    assert len(batch.run()) == len(drawn(3)), "what is built in decides"
    assert followed.kept > followed.failed > 20, "it worked, and then it had failed"


def test_a_fold_that_has_failed_is_tried_again_once_it_is_mended() -> None:
    batch = Batch("mine", drawn(3), "proposing", gangs=False, policies=FAILING)
    batch.run()
    context = batch.core.machines[CONTEXT]
    assert isinstance(context, Context)
    image = image_of(context.partitions["[rm]default"].state)
    same, mended = restored(image, FAILING), restored(image, MINE)
    [(path, (name, what))] = same.failed.items()
    assert (path, name) == ("root.jobs", "mine")
    assert "the second end" in what
    assert not same.by_queue
    assert not mended.failed
    assert isinstance(mended.by_queue["root.jobs"], SecondsRun)
    # Who follows the facts of a core that goes on with it notes what it keeps.
    reader = Folds(UnreadPolicies())
    reader.restore(PartitionState("of nobody"), None)
    reader._restore("root.jobs", *image["folds"]["root.jobs"])
    assert reader.image() == same.image()
    reader.note(mended.image())
    assert reader.image() == mended.image()
    reader.note(same.image())
    assert reader.image() == same.image()


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
