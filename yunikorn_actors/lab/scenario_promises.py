"""Promises of a scenario file: expectations that a run has to keep in any order."""

from collections.abc import Callable
from typing import Any

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.promises import Holds, Promises
from yunikorn_actors.machines.machine import Send
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Message
from yunikorn_actors.messages.queries import (
    EventsFound,
    EventsRequested,
    StateDump,
    StateDumpRequested,
)
from yunikorn_actors.scenario.actual_values import Views
from yunikorn_actors.scenario.document import PROMISES, Scenario
from yunikorn_actors.scenario.expectations import EXPECTATION


def promises_of(scenario: Scenario, look: Callable[[], Views]) -> Promises:
    """Return what a scenario file promises of what one sees at each moment."""
    promises = Promises()
    for kind in PROMISES:
        for name, expected in getattr(scenario, kind).items():
            getattr(promises, kind)[name] = _holds(expected, look)
    return promises


def _holds(expected: dict[str, Any], look: Callable[[], Views]) -> Holds:
    return lambda: not [*EXPECTATION.differences(expected, look())]


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
