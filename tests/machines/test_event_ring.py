"""Event records are numbered for ever, the newest are kept, and what is new is pushed in batches.

Worked example: a ring of twenty and thirty records. Records are values, so what was handed out is
never overwritten (R-142).
"""

from collections.abc import Iterator

import pytest
from support import APP, CONFIG, RM, Lab, Recorder

from yunikorn_actors import si
from yunikorn_actors.machines.events import publisher
from yunikorn_actors.machines.events.publisher import EventPublisher, Ring, builders_of
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import EVENT_PUBLISHER
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.queues import QueueSpec
from yunikorn_actors.values.durations import SECOND

CAPACITY = 20


def _removed(number: int) -> f.Fact:
    """A fact of one record."""
    return f.NodeRemoved(node_id=str(number), at_ns=number)


def _resized(number: int) -> f.Fact:
    """A fact of three records."""
    size = {"vcore": number + 1}
    old, new = QueueSpec(leaf=True), QueueSpec(leaf=True, max=size, guaranteed=size)
    return f.QueueReconfigured(path=str(number), old_spec=old, spec=new, at_ns=number)


def _ring(facts: Iterator[f.Fact], capacity: int = CAPACITY) -> tuple[Ring, list[str]]:
    """Fill a ring, and write down what stands under each number."""
    ring, named = Ring(capacity), list[str]()
    for fact in facts:
        builders = builders_of(fact)
        assert len(builders) == ring.take([fact])
        named.extend(_name(builder(fact)) for builder in builders)
    return ring, named


def _name(record: si.EventRecord) -> str:
    return f"{record.object_id} {record.event_change_detail.name}"


def _numbers(ring: Ring, first: int, count: int) -> list[int]:
    return [int(record.object_id) for record in ring.read(first, count)]


@pytest.mark.parametrize(
    ("first", "count", "expected"),
    [
        (15, 10, range(15, 25)),
        (29, 1, range(29, 30)),
        (10, 100, range(10, 30)),
        (12, 3, range(12, 15)),
        (9, 5, range(0)),
        (30, 5, range(0)),
        (10, 0, range(0)),
        (-1, 5, range(0)),
    ],
)
def test_thirty_records_in_a_ring_of_twenty(first: int, count: int, expected: range) -> None:
    ring, _ = _ring(_removed(number) for number in range(30))
    assert list(expected) == _numbers(ring, first, count)
    assert (10, 29) == (ring.lowest_id, ring.highest_id)


def test_a_ring_that_is_not_full() -> None:
    ring, _ = _ring(_removed(number) for number in range(5))
    assert [0, 1, 2, 3, 4] == _numbers(ring, 0, 100)
    assert (0, 4) == (ring.lowest_id, ring.highest_id)


def test_an_empty_ring() -> None:
    ring = Ring(CAPACITY)
    assert ([], 0, 0) == (ring.read(0, 100), ring.lowest_id, ring.highest_id)


def test_every_number_stands_for_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the oldest that is kept is in the middle of a fact, and after a clean-up."""
    monkeypatch.setattr(publisher, "COMPACTION", 7)
    for capacity in (1, 2, 7, CAPACITY):
        kinds = [number * number % 7 < 3 for number in range(150)]
        ring, named = _ring(
            (_removed(n) if one else _resized(n) for n, one in enumerate(kinds)), capacity
        )
        assert (len(named) - capacity, len(named) - 1) == (ring.lowest_id, ring.highest_id)
        assert len(ring._facts) < 2 * capacity + 10
        for first in range(ring.lowest_id - 2, len(named) + 2):
            for count in (0, 1, 2, 5, capacity, 2 * capacity):
                stored = named[first : first + count] if first >= ring.lowest_id else []
                assert stored == [_name(record) for record in ring.read(first, count)]


# -- as a whole


def _small(**settings: int) -> Lab:
    lab = Lab(settings=Settings(**settings))
    lab.settle()
    return lab


def _publisher(lab: Lab) -> EventPublisher:
    publisher = lab.simulator.machines[EVENT_PUBLISHER]
    assert isinstance(publisher, EventPublisher)
    return publisher


def test_a_question_gets_as_many_as_are_stored() -> None:
    lab = _small(event_ring_capacity=5)
    lab.nodes(**{f"n{number}": 1 for number in range(10)})
    lab.settle()
    found = lab.simulator.events()
    # Two queues, and three records for each node: its own two, and the size of the cluster.
    assert (27, 31, 0) == (found.lowest_id, found.highest_id, len(found.records))
    found = lab.simulator.events(27, 100)
    assert ["n8", "root", "n9", "n9", "root"] == [record.object_id for record in found.records]
    assert ["n9"] == [record.object_id for record in lab.simulator.events(29, 1).records]


def test_pushed_every_two_seconds_in_one_batch() -> None:
    batches: list[tuple[int, list[str]]] = []

    class Batches(Recorder):
        def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
            batches.append((lab.simulator.now_ns, [event.object_id for event in events]))

    lab = Lab(rm=Batches())
    start = lab.simulator.now_ns
    lab.advance(1)
    lab.nodes(n1=1)
    lab.advance(2.5)
    lab.nodes(n2=1)
    lab.advance(1)
    lab.nodes(n3=1)
    lab.advance(100)
    waited = [(at_ns - start) / SECOND for at_ns, _ in batches]
    assert [2.0, 5.5] == waited
    assert [
        ["root", "root.default", "n1", "n1", "root"],
        ["n2", "n2", "root", "n3", "n3", "root"],
    ] == [b for _, b in batches]
    everything = [record.object_id for record in lab.simulator.events().records]
    assert [name for _, names in batches for name in names] == everything


def test_each_manager_is_pushed_its_own() -> None:
    lab = _small()
    other = Recorder()
    request = si.RegisterResourceManagerRequest(rm_id="rm-2", config=CONFIG)
    lab.simulator.register_resource_manager(request, other)
    infos = (si.NodeInfo(node_id="theirs", action=si.ActionFromRM.CREATE),)
    lab.simulator.update_node(si.NodeRequest(rm_id="rm-2", nodes=infos))
    lab.nodes(ours=1)
    lab.advance(2)
    assert ["root", "root.default", "ours", "ours", "root"] == [r.object_id for r in lab.rm.records]
    assert ["root", "root.default", "theirs", "theirs"] == [r.object_id for r in other.records]


def test_what_is_too_much_is_counted_and_still_to_be_asked_for() -> None:
    lab = _small(event_push_capacity=3)
    lab.nodes(n1=1, n2=1)
    lab.advance(2)
    assert ["root", "root.default", "n1"] == [record.object_id for record in lab.rm.records]
    assert 5 == _publisher(lab).overflow
    assert 8 == len(lab.simulator.events().records)
    lab.nodes(n3=1)
    lab.advance(2)
    assert ["n3", "n3", "root"] == [record.object_id for record in lab.rm.records[3:]]
    assert 5 == _publisher(lab).overflow


def test_a_lost_manager_is_pushed_nothing() -> None:
    lab = _small()
    lab.submit(APP)
    lab.settle()
    lab.simulator.resource_manager_lost(RM)
    lab.advance(10)
    assert [] == lab.rm.records
    assert APP in [record.object_id for record in lab.simulator.events().records]
