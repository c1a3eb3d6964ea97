"""The rules of room, over small numbers that meet often and the ends of int64."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn_actors.state.gates import Places, has_room, room_left, shortfall
from yunikorn_actors.state.queues import Queue, QueueSpec
from yunikorn_actors.values.resource import INT64_MAX, Resource, charge

KINDS = st.sampled_from(["g", "m", "v"])
AMOUNTS = st.dictionaries(KINDS, st.integers(0, 5) | st.just(INT64_MAX))
SIZES = st.none() | AMOUNTS


@given(SIZES, AMOUNTS, AMOUNTS, st.booleans())
def test_there_is_room_exactly_where_nothing_is_short(
    sizes: Resource | None, used: Resource, wanted: Resource, is_cluster: bool
) -> None:
    short = shortfall(sizes, used, wanted.items(), is_cluster)
    assert has_room(sizes, used, wanted.items(), is_cluster) is not bool(short)


@given(SIZES, AMOUNTS, AMOUNTS, st.booleans())
def test_what_is_short_is_what_has_to_come(
    sizes: Resource | None, used: Resource, wanted: Resource, is_cluster: bool
) -> None:
    short = shortfall(sizes, used, wanted.items(), is_cluster)
    larger = None if sizes is None else dict(sizes)
    if larger is not None:
        charge(larger, short)
    if INT64_MAX not in short.values():
        assert has_room(larger, used, wanted.items(), is_cluster)
    for kind in short:
        assert larger is not None
        smaller = larger | {kind: larger[kind] - 1}
        assert not has_room(smaller, used, wanted.items())


@given(SIZES, AMOUNTS, KINDS)
def test_what_is_left_fits_and_no_more(sizes: Resource | None, used: Resource, kind: str) -> None:
    left = room_left(sizes, used)
    assert (kind in left) is (kind in (sizes or {}))
    if kind in left:
        assert has_room(sizes, used, [(kind, max(0, left[kind]))])
        assert not has_room(sizes, used, [(kind, max(0, left[kind]) + 1)])


@pytest.mark.parametrize("quantity", [0, -1])
def test_to_want_nothing_fits_where_more_than_all_is_used(quantity: int) -> None:
    assert has_room({"v": 1}, {"v": 2}, [("v", quantity)])
    assert has_room({}, {}, [("v", quantity)], True)


def test_the_cluster_has_nothing_of_a_type_that_it_does_not_name() -> None:
    assert has_room({"m": 1}, {}, [("v", 1)])
    assert not has_room({"m": 1}, {}, [("v", 1)], True)
    assert shortfall({"m": 1}, {}, [("v", 1)], True) == {"v": 1}


def test_a_quota_is_less_what_is_promised_to_others() -> None:
    queue = Queue("root", QueueSpec(leaf=True, max={"v": 10, "m": 10}), None)
    queue.earmarked.update(v=4, g=2)
    assert queue.quota() == {"v": 6, "m": 10}
    assert queue.quota({"v": 3}) == {"v": 9, "m": 10}


def test_without_a_max_there_is_no_quota_whatever_is_promised() -> None:
    queue = Queue("root", QueueSpec(leaf=True), None)
    queue.earmarked.update(v=4)
    assert queue.quota() is None


SERIALS = st.integers(1, 6)
LINE = st.lists(SERIALS, unique=True)


@given(st.integers(0, 4), st.integers(0, 4), LINE, LINE, LINE, SERIALS)
def test_no_more_start_than_there_are_places(
    most: int,
    running: int,
    having: list[int],
    reserving: list[int],
    starting: list[int],
    serial: int,
) -> None:
    kept = dict.fromkeys(s for s in reserving if s not in having)
    places = Places(most, running + len(having), dict.fromkeys(having), kept)
    others = [s for s in starting if s != serial]
    if serial in having or not most:
        assert places.may_start(serial, starting)
        return
    before = list(kept)[: list(kept).index(serial)] if serial in kept else [*kept, *others]
    if places.may_start(serial, starting):
        assert running + len({*having, *before}) < most or places.free(others) > 0
    else:
        assert running + len({*having, *kept, *others}) >= most


@given(st.integers(1, 4), LINE, LINE, LINE)
def test_the_free_places_are_those_that_nobody_has_or_waits_to_take(
    most: int, having: list[int], reserving: list[int], starting: list[int]
) -> None:
    kept = dict.fromkeys(s for s in reserving if s not in having)
    places = Places(most, len(having), dict.fromkeys(having), kept)
    assert places.free(starting) == most - len({*having, *reserving, *starting})
