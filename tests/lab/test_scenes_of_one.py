"""Worlds about one thing, and bounds of a second type of resources."""

from collections import Counter
from collections.abc import Sequence

import pytest

from yunikorn_actors.config import parse_config
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import explore
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.reloads import with_second_type
from yunikorn_actors.lab.swarm.scripts import drawn_queues
from yunikorn_actors.lab.swarm.world_parts import OF_ONE, Wanted
from yunikorn_actors.planning.preemption.claimant import Victim
from yunikorn_actors.planning.preemption.gang_packing import Packer, Packing
from yunikorn_actors.state import facts as f

SEVERAL = {
    "one-node": (f.NodeScheduleChanged, f.NodeResized),
    "one-ask": (f.AskReplaced, f.ReservationMade),
    "one-manager": (f.ApplicationAdded, f.ApplicationRemoved),
    "one-swap": (f.AskParked, f.AskReplaced),
    "one-user": (f.ApplicationLinked, f.ApplicationCrowded, f.PartitionConfigured),
    "one-placement": (f.ApplicationAdded, f.ApplicationRejected, f.QueueStateChanged),
    "one-priority": (f.PreemptionDecided, f.AllocationReleased),
    "one-leaf": (f.GangAdmitted, f.ApplicationStateChanged),
    "one-packing": (f.PreemptionDecided, f.AllocationReleased),
}
"""What happens several times to the one thing."""
BESIDE = ("waits", "drained-nodes", "resized-nodes", "lost-nodes", "reservations", "short-times")


@pytest.mark.parametrize("scene", OF_ONE)
def test_much_happens_to_one_thing(scene: str) -> None:
    most = Counter[type]()
    for number in range(1, 13):
        run = drawn(3, number, Wanted(only=(scene, *BESIDE)))
        outcome = explore(run.case, run.schedule(), oracles())
        assert outcome.ok, outcome.violation
        facts = [
            type(fact) for it in outcome.deliveries for fact in getattr(it.message, "facts", ())
        ]
        most |= Counter(facts)
        if all(most[kind] > 1 for kind in SEVERAL[scene]):
            return
    pytest.fail(str([most[it] for it in SEVERAL[scene]]))


def test_placeholders_of_several_sizes_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gangs claim room beside others that go as one: some are packed, with single work or not."""
    packings = list[Packing | None]()
    pack = Packer.pack

    def noted(packer: Packer, gone: Sequence[Victim]) -> Packing | None:
        packings.append(pack(packer, gone))
        return packings[-1]

    monkeypatch.setattr(Packer, "pack", noted)
    for number in range(1, 21):
        run = drawn(5, number, Wanted(only=("one-packing", "waits")))
        outcome = explore(run.case, run.schedule(), oracles())
        assert outcome.ok, outcome.violation
        if {None if it is None else bool(it.singles) for it in packings} == {None, True, False}:
            return
    pytest.fail(f"vacuous: {packings}")


@pytest.mark.parametrize("theme", ["order", "gangs", "preempt", "limits"])
def test_a_tree_with_a_second_type_is_valid(theme: str) -> None:
    bounded = 0
    for number in range(20):
        (whole,), _ = drawn_queues(theme, number, 1)
        changed = with_second_type(Draw(1, number), whole["partitions"][0])
        bounded += "memory" in str(changed["queues"])
        parse_config(str({"partitions": [changed]}))
    assert bounded > 5
