"""Rooms that tell devices apart, where a node reports fewer devices than work there still has."""

from yunikorn_actors.planning.preemption.device_room import fits, keep
from yunikorn_actors.values.resource import Resource


def test_a_device_that_the_node_has_no_more_is_no_room() -> None:
    room: Resource = {"gpu": 3_000, "gpu#0": 1_000, "gpu#2": 1_000}
    before = dict(room)
    keep(room, 2_000)
    assert room == before
    assert not fits({"gpu": 2_000}, room)
    keep(room, 1_000)
    assert room == {**before, "gpu#0": 0}
