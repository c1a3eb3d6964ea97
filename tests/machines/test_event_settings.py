"""What a resource manager may wish of its events, at registration and at any time later."""

import pytest
from support import APP, CONFIG, RM, Lab, Recorder

from yunikorn_actors import si
from yunikorn_actors.machines.events.publisher import EventPublisher, Ring
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import EVENT_PUBLISHER
from yunikorn_actors.state import facts as f


def filled(count: int, capacity: int) -> Ring:
    ring = Ring(capacity)
    for number in range(count):
        fact = f.NodeRemoved(node_id=str(number), at_ns=number)
        ring.take([fact])
    return ring


def numbers(ring: Ring, first: int, count: int) -> list[int]:
    return [int(record.object_id) for record in ring.read(first, count)]


def publisher(lab: Lab) -> EventPublisher:
    machine = lab.simulator.machines[EVENT_PUBLISHER]
    assert isinstance(machine, EventPublisher)
    return machine


def register(lab: Lab, rm_id: str = RM, **extra: str) -> Recorder:
    rm = Recorder()
    request = si.RegisterResourceManagerRequest(
        rm_id=rm_id, config=CONFIG, extra_config=_keys(extra)
    )
    lab.simulator.register_resource_manager(request, rm)
    return rm


def update(lab: Lab, **extra: str) -> None:
    request = si.UpdateConfigurationRequest(rm_id=RM, config=CONFIG, extra_config=_keys(extra))
    lab.simulator.update_configuration(request)
    lab.settle()


def _keys(extra: dict[str, str]) -> dict[str, str]:
    return {f"event.{name}": text for name, text in extra.items()}


@pytest.mark.parametrize(
    ("capacity", "stored"), [(6, range(24, 30)), (20, range(10, 30)), (50, range(10, 30))]
)
def test_another_size_keeps_the_newest(capacity: int, stored: range) -> None:
    ring = filled(30, 20)
    ring.resize(capacity)
    assert list(stored) == numbers(ring, ring.lowest_id, 100)
    assert (stored[0], 29) == (ring.lowest_id, ring.highest_id)


def test_what_was_overwritten_does_not_come_back() -> None:
    ring = filled(30, 20)
    ring.resize(6)
    ring.resize(20)
    assert list(range(24, 30)) == numbers(ring, 24, 100)
    assert [] == numbers(ring, 23, 100)


def test_the_size_of_the_ring() -> None:
    lab = Lab(settings=Settings(event_ring_capacity=50))
    assert 50 == publisher(lab).ring.capacity
    update(lab, ringBufferCapacity="3")
    lab.nodes(n1=1, n2=1, n3=1)
    lab.settle()
    found = lab.simulator.events()
    assert found.highest_id - found.lowest_id + 1 == 3
    update(lab)
    assert 50 == publisher(lab).ring.capacity


def test_the_ring_has_the_size_that_the_most_demanding_one_wishes() -> None:
    lab = Lab(settings=Settings(event_ring_capacity=50))
    update(lab, ringBufferCapacity="3")
    register(lab, "rm-2", ringBufferCapacity="9")
    lab.settle()
    assert 9 == publisher(lab).ring.capacity
    lab.simulator.unregister_resource_manager("rm-2")
    lab.settle()
    assert 3 == publisher(lab).ring.capacity


def test_nothing_is_recorded_while_tracking_is_off() -> None:
    lab = Lab()
    rm = register(lab, trackingEnabled="false")
    lab.settle()
    before = lab.simulator.events()
    lab.nodes(n1=1)
    lab.submit(APP)
    lab.advance(10)
    assert before == lab.simulator.events(), "what is stored stays"
    assert [] == rm.records
    update(lab, trackingEnabled="true")
    lab.nodes(n2=1)
    lab.advance(10)
    assert ["n2", "n2", "root"] == [record.object_id for record in rm.records]


def test_one_that_is_off_silences_nobody_else() -> None:
    lab = Lab()
    update(lab, trackingEnabled="0")
    other = register(lab, "rm-2")
    lab.advance(10)
    assert ["root", "root.default"] == [record.object_id for record in other.records]


def test_how_many_wait_for_a_push() -> None:
    lab = Lab()
    lab.advance(10)
    update(lab, requestCapacity="2")
    lab.rm.records.clear()
    lab.nodes(n1=1, n2=1)
    lab.settle()
    update(lab, requestCapacity="100")
    lab.advance(10)
    assert 2 == len(lab.rm.records), "another size holds from the next push on"
    assert 4 == publisher(lab).overflow
    lab.nodes(n3=1, n4=1)
    lab.advance(10)
    assert 8 == len(lab.rm.records)


def test_a_refused_update_changes_none_of_it() -> None:
    lab = Lab()
    request = si.UpdateConfigurationRequest(
        rm_id=RM, policy_group="x", extra_config=_keys({"ringBufferCapacity": "3"})
    )
    with pytest.raises(ValueError, match="policy group"):
        lab.simulator.update_configuration(request)
    lab.settle()
    assert Settings().event_ring_capacity == publisher(lab).ring.capacity
