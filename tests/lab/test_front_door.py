"""A walk at the front door is the same each time, and shows what the front does otherwise."""

from typing import Any

import msgspec
import pytest

from yunikorn_actors.front.aio import AsyncScheduler
from yunikorn_actors.front.asks import Asks
from yunikorn_actors.front.nodes import Nodes
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.sides.front_door import DUMP, HEARD, Doors, Heard, OnLoop, walk
from yunikorn_actors.lab.sights import Sight

RUN = 7
WALKS = 12


def walked(run: int = RUN) -> list[bytes]:
    return [Sight(*it).digest() for it in walk(Draw(5, run), with_functions=True)]


def test_it_is_the_same_each_time() -> None:
    assert walked() == walked()


def test_much_is_tried_and_seen() -> None:
    heard: list[Heard] = [
        it
        for has_functions in (False, True)
        for run in range(1, 9)
        for it in walk(Draw(5, run), with_functions=has_functions)
    ]
    text = " ".join(str(it) for it in heard)
    for words in (
        "held>", "lost,", "'waits'", "cancelled", "InvalidRequest", "UnknownName", "ConfigError",
        "ZeroDivisionError", "call-1 of pool1", "ApplicationChanged", "NodeChanged", "Placed(", "WantedBack(", "LeaseOver(",
    ):  # fmt: skip
        assert words in text


def different(number: int, door: Doors, *unlike: str) -> list[tuple[str, Any, Any]]:
    """Return what a program sees at another door that it does not see at the first one."""
    draw = (Draw(5, number), Draw(5, number))
    both = zip(walk(draw[0]), walk(draw[1], door), strict=True)
    seen = ((what, plain(one), plain(other)) for (what, one), (_, other) in both)
    return [it for it in seen if it[0] not in unlike and it[1] != it[2]]


def plain(value: Any) -> str:
    """Leave out what the calls of a loop are named by, and the order of what has none."""
    return msgspec.json.encode(value, order="deterministic").decode().replace("Async", "")


def test_a_program_on_a_loop_sees_the_same() -> None:
    # How many requests came together is not the same where a thread sends them; that shows in how
    # often the state has changed. A callback on a loop hears no responses.
    seen = [different(number, OnLoop, HEARD, DUMP) for number in range(WALKS)]
    assert not any(seen), next(filter(None, seen))


def test_a_program_of_a_service_sees_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("grpc")
    from doors import served  # noqa: PLC0415 - it needs that

    # The service of this test has no read side, which would answer.
    door = served(monkeypatch)
    seen = [different(number, door, "_simulate") for number in range(WALKS)]
    assert not any(seen), next(filter(None, seen))


@pytest.mark.parametrize(("of", "name"), [(Nodes, "leases_on"), (Asks, "withdraw")])
def test_what_a_front_does_otherwise_is_seen(
    monkeypatch: pytest.MonkeyPatch, of: type, name: str
) -> None:
    before = [walked(run) for run in range(1, 9)]
    monkeypatch.setattr(of, name, lambda *_, **__: [])
    assert before != [walked(run) for run in range(1, 9)]


def test_what_one_door_does_otherwise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsyncScheduler, "drain", lambda *_: None)
    assert any(different(number, OnLoop, HEARD, DUMP) for number in range(WALKS))
