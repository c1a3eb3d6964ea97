"""What a journal tells makes the same core again, whatever happens in it.

Random workloads are followed entry by entry, each with a tally. Now and then the state goes through
a snapshot, as bytes, and the entries go on from there.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from moves import Move, scripts
from msgspec import msgpack
from playing import Player
from searching import Run

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.journal import journaled_context as kept
from yunikorn_actors.journal.restored_state import Entry, Truth, stored_entry
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Delivery
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.snapshot import image_of

pytestmark = pytest.mark.timeout(1800)
"""To make a run that failed as short as can be."""
EVERY = 25
"""So many entries are between two snapshots."""


class Followed:
    """A journal that is read as soon as it is written."""

    def __init__(self, simulator: Simulator) -> None:
        """Follow from here on; what has happened was a snapshot."""
        simulator.settle()
        self.entries = 0
        self._truth = Truth()
        context, publisher = simulator.machines[CONTEXT], simulator.machines[EVENT_PUBLISHER]
        assert isinstance(context, Context)
        assert isinstance(publisher, EventPublisher)
        told = CoreRestored(
            registered=context.registered,
            images={name: image_of(it.state) for name, it in context.partitions.items()},
            events=publisher.remembered(),
        )
        self._truth.begin_with(told)
        simulator.checkers.add(self)
        self._of: kept.Entries | None = None

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        # Of those that were handled as one, the last brings the effects of all.
        if delivery.mailbox != CONTEXT or delivery is not simulator.last:
            return
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        if self._of is None:
            self._of = kept.Entries(context)
        entry = self._of.of(simulator.taken, simulator.effects, delivery.at_ns)
        if entry is not None:
            self._append(entry)
            if self.entries % EVERY == 0:
                self._compare(context)

    def _append(self, entry: Entry) -> None:
        self._truth.take(stored_entry(memoryview(encode(entry))))
        self.entries += 1

    def _compare(self, context: Context) -> None:
        made = {name: state for (name, _), state in self._truth.states.items()}
        for name, partition in context.partitions.items():
            assert snapshot(partition.state) == snapshot(made[name])
        told = msgpack.decode(msgpack.encode(self._truth.as_message()), type=CoreRestored)
        again = Truth()
        again.begin_with(told)
        assert self._truth.digest() == again.digest()
        self._truth = again


@pytest.mark.parametrize(
    ("examples", "runs"), [(8, 15), pytest.param(400, 1_000, marks=pytest.mark.slow)]
)
def test_random_workloads(examples: int, runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "TALLY_EVERY", 0)
    entries = 0

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @seed(5)
    @given(scripts(60), st.sampled_from(TOPOLOGIES), st.integers(0, 2**32 - 1), st.booleans())
    def play(script: list[Move], topology: TopologyName, number: int, at_once: bool) -> None:
        nonlocal entries
        player = Player(topology, number, confirms_at_once=at_once)
        followed = Followed(player.simulator)
        for move in script:
            player.play(move)
        player.take_everything_back()
        entries += followed.entries

    play()
    for number in range(1, runs + 1):
        run = Run(number, preempts=bool(number % 2))
        followed = Followed(run.lab.simulator)
        run.play()
        entries += followed.entries
    assert entries > 4 * EVERY, "vacuous: no state went through a snapshot"
