"""Rooms that tell devices apart, where a node reports fewer devices than work there still has."""

import pytest

from yunikorn_actors.planning.preemption.device_room import fits, keep, with_parts
from yunikorn_actors.values.devices import Parts
from yunikorn_actors.values.resource import charge


@pytest.mark.parametrize("freed", ["gpu#1", "gpu#2"])
def test_a_device_that_the_node_has_no_more_is_no_room(freed: str) -> None:
    parts: Parts = [1_000]
    room = dict(with_parts({"gpu": 2_000}, parts))
    charge(room, {"gpu": 1_000, freed: 1_000})
    before = dict(room)
    keep(room, 2_000)
    assert room == before
    assert not fits({"gpu": 2_000}, room)
    keep(room, 1_000)
    assert room == {**before, "gpu#0": 0}


def test_what_comes_free_on_a_node_that_tells_no_devices_apart_is_room() -> None:
    room = dict(with_parts({"gpu": 999}, None))
    charge(room, {"gpu": 1, "gpu#0": 1})
    assert fits({"gpu": 1_000}, room)
