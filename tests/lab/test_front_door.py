"""A walk at the front door is the same each time, and shows what the front does otherwise."""

import pytest

from yunikorn_actors.errors import NoReply
from yunikorn_actors.front.asks import Asks
from yunikorn_actors.front.nodes import Nodes
from yunikorn_actors.lab.observed_run import Observation
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces import front_walk
from yunikorn_actors.lab.surfaces.front_walk import EVENTS, Heard, walk
from yunikorn_actors.lab.swarm.small_constants import OF_PROGRAMS, made_small

RUN = 7


def walked(run: int = RUN) -> list[bytes]:
    try:
        return [Observation(*it).digest() for it in walk(Draw(5, run), with_functions=True)]
    except NoReply:
        return []


def test_it_is_the_same_each_time() -> None:
    assert walked() == walked()


def test_much_is_tried_and_seen() -> None:
    heard: list[Heard] = [
        it
        for has_functions in (False, True)
        for run in range(1, 19)
        for it in walk(Draw(5, run), with_functions=has_functions)
    ]
    text = " ".join(str(it) for it in heard)
    for words in (
        "held>", "lost,", "'waits'", "cancelled", "InvalidRequest", "UnknownName", "ConfigError",
        "ZeroDivisionError", "call-1 of pool1", "ApplicationChanged", "NodeChanged", "Placed(", "WantedBack(", "LeaseOver(",
        "DeadlinePassed", "it was not released within 0.001 s",
    ):  # fmt: skip
        assert words in text


def test_bounds_of_a_program_are_reached() -> None:
    heard: list[Heard] = []
    for run in range(8):
        with made_small(Draw(4, run), OF_PROGRAMS):
            heard += walk(Draw(5, run))
    assert any("lost: " in it for what, events in heard if what == EVENTS for it in events)


@pytest.mark.parametrize(("of", "name"), [(Nodes, "leases_on"), (Asks, "withdraw")])
def test_what_a_front_does_otherwise_is_seen(
    monkeypatch: pytest.MonkeyPatch, of: type, name: str
) -> None:
    for run in range(1, 21):
        before = walked(run)
        with monkeypatch.context() as patch:
            patch.setattr(of, name, lambda *_, **__: [])
            patch.setattr(front_walk, "PATIENCE_S", 10.0)
            if before != walked(run):
                return
    pytest.fail("all is seen as before")
