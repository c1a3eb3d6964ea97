"""Promises of a scenario file: expectations that a run has to keep in any order."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.oracles.promises import DOES_NOT_HOLD, Fault, Holds, Promises
from yunikorn_actors.machines.machine import Send
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Message
from yunikorn_actors.messages.queries import (
    EventsFound,
    EventsRequested,
    StateDump,
    StateDumpRequested,
)
from yunikorn_actors.scenario.actual_values import Views
from yunikorn_actors.scenario.document import Scenario
from yunikorn_actors.scenario.expectations import EXPECTATION, OBJECTS
from yunikorn_actors.scenario.expected_values import Difference

_Expected: TypeAlias = dict[str, Any]


def promises_of(
    scenario: Scenario, look: Callable[[], Views], life: Callable[[Views], int | None]
) -> Promises:
    """Return what a scenario file promises of what one sees at each moment.

    `life` returns the epoch of the partition that the views show, or None where it is not there.
    """
    promises = Promises()
    for name, expected in scenario.always.items():
        promises.unjudged.add(name)
        found = partial(promises.unjudged.discard, name)
        promises.always[name] = _Always(expected, look, life, found)
    for name, expected in scenario.sometimes.items():
        promises.sometimes[name] = _holds(expected, look)
    for name, expected in scenario.eventually.items():
        promises.eventually[name] = _fault(expected, look)
    return promises


def _holds(expected: _Expected, look: Callable[[], Views]) -> Holds:
    return lambda: not [*EXPECTATION.differences(expected, look())]


def _fault(expected: _Expected, look: Callable[[], Views]) -> Fault:
    return lambda: _text(EXPECTATION.differences(expected, look()))


def _text(differences: Iterable[Difference]) -> str:
    """Say of each value what was expected and what was found."""
    found = [f"{it.path}: expected {it.expected}, found {it.actual}" for it in differences]
    return f"{DOES_NOT_HOLD} ({'; '.join(found)})" if found else ""


class _Always:
    """Judges what a file says of an object from the moment on at which there is one.

    The first message of a run comes before anything that the file brings. Once an object was there,
    its absence counts, too: a promise that forgot it could not be broken by losing it. A partition
    whose manager leaves or registers anew begins again with nothing.
    """

    def __init__(
        self,
        expected: _Expected,
        look: Callable[[], Views],
        life: Callable[[Views], int | None],
        found: Callable[[], None],
    ) -> None:
        """`found` is called where something is judged."""
        self._found = found
        self._expected = expected
        self._look = look
        self._life = life
        self._epoch: int | None = None
        self._seen: set[tuple[str, ...]] = set()

    def __call__(self) -> str:
        views = self._look()
        epoch = self._life(views)
        if epoch != self._epoch:
            self._epoch = epoch
            self._seen.clear()
        judged = self._judged(self._expected, views)
        if _says_something(judged):
            self._found()
        return _text(EXPECTATION.differences(judged, views))

    def _judged(self, expected: _Expected, views: Views) -> _Expected:
        """Leave out what is said of objects that have not been there."""
        judged = dict(expected)
        for view in OBJECTS.keys() & expected.keys():
            fold = OBJECTS[view]
            judged[view] = {
                name: self._parts(view, name, value, views[view].get(fold(name)))
                for name, value in expected[view].items()
                if value is None or self._was_there((view, name), fold(name) in views[view])
            }
        if "any_of" in expected:
            judged["any_of"] = [self._judged(it, views) for it in expected["any_of"]]
        return judged

    def _parts(self, view: str, name: str, value: Any, actual: Any) -> Any:  # noqa: ANN401 - of any view
        if view != "apps" or not value or "task_groups" not in value:
            return value
        there = {} if actual is None else actual["task_groups"]
        groups = {
            group: wanted
            for group, wanted in value["task_groups"].items()
            if wanted is None or self._was_there((view, name, group), group in there)
        }
        return value | {"task_groups": groups}

    def _was_there(self, object_: tuple[str, ...], is_there: bool) -> bool:
        if is_there:
            self._seen.add(object_)
        return object_ in self._seen


def _says_something(judged: _Expected) -> bool:
    """Whether it expects anything; an alternative that does not lets all of them hold."""
    others = {view: value for view, value in judged.items() if view != "any_of"}
    either = judged.get("any_of", ())
    return any(others.values()) or (bool(either) and all(map(_says_something, either)))


class Glimpse:
    """Answers as the core would, and without a message: looking changes nothing in a run."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def state_dump(self) -> dict[str, Any]:
        answer = self._ask(CONTEXT, StateDumpRequested(reply_to=""))
        assert isinstance(answer, StateDump)
        return answer.state

    def events(self, first_id: int, count: int) -> EventsFound:
        question = EventsRequested(first_id=first_id, count=count, reply_to="")
        answer = self._ask(EVENT_PUBLISHER, question)
        assert isinstance(answer, EventsFound)
        return answer

    def _ask(self, address: str, question: Message) -> Message:
        simulator = self._simulator
        (effect,) = simulator.machines[address].handle(question, simulator.now_ns)
        assert isinstance(effect, Send)
        return effect.message
