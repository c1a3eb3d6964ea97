"""What goes on inside a core is read off its objects, and is the same in each run."""

from collections import deque
from enum import Enum

import pytest

from yunikorn_actors.lab import machine_contents
from yunikorn_actors.lab.baseline import watched
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.slices import Slices


class Colour(Enum):
    RED = 1


class Tool:
    """What is no part of the core."""

    def __init__(self) -> None:
        self.secret = 1


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (3, 3),
        (Colour.RED, "RED"),
        ((1, [2, deque([3])]), [1, [2, [3]]]),
        ({"b": 1, "a": {}}, [("b", 1), ("a", [])]),
        ({"b", "a"}, ["a", "b"]),
        (Tool(), "Tool"),
        (print, "builtin_function_or_method"),
    ],
    ids=lambda it: type(it).__name__,
)
def test_objects_are_read_as_plain_values(value: object, plain: object) -> None:
    assert plain == machine_contents.plain(value)


def test_an_object_that_is_there_twice_is_read_once() -> None:
    own: list[object] = [1]
    own.append(own)
    assert [1, ["that", "list"]] == machine_contents.plain(own)


def test_a_mark_that_no_answer_shows_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    before = watched(1)
    made = PlanningLoop.__init__

    def marked(self: PlanningLoop, *arguments: object, **words: object) -> None:
        made(self, *arguments, **words)  # type: ignore[arg-type]
        self._looked_ns = 1

    monkeypatch.setattr(PlanningLoop, "__init__", marked)
    after = watched(1)
    assert before.outside == after.outside
    assert before.inside != after.inside


def test_runs_after_others_are_the_same_inside() -> None:
    first = watched(2).inside
    watched(3)
    assert [str(it) for it in first] == [str(it) for it in watched(2).inside]


def test_slots_and_attributes_are_read() -> None:
    assert "__slots__" not in vars(Context)
    assert machine_contents.plain(Slices.__new__(Slices))[0] == "Slices"
