"""A fault that kills a machine in a simulated run, at a message that was drawn."""

from typing import Any

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.machine import Effect, Replaceable
from yunikorn_actors.messages.base import Delivery, Message


class PlantedFault(Exception):
    """What a machine raises for no reason of its own."""


class Killer:
    """Listens, and has machines that can be replaced fail at these of their messages, counted up.

    A machine dies of a message that it has not looked at, or (`late`) of one that has changed it
    already and of which nobody is to hear.
    """

    def __init__(self, *positions: int, late: bool = False) -> None:
        self.positions = positions
        self.late = late
        self.handled = 0
        self.killed: list[str] = []
        """Of what each of them died."""

    def delivered(self, simulator: Simulator, _: Delivery) -> None:
        for machine in simulator.machines.values():
            if isinstance(machine, Replaceable) and "handle" not in vars(machine):
                self._watch(machine)

    def _watch(self, machine: Any) -> None:
        handle = machine.handle

        def handle_or_fail(message: Message, now_ns: int) -> list[Effect]:
            self.handled += 1
            if self.handled not in self.positions:
                effects: list[Effect] = handle(message, now_ns)
                return effects
            if self.late:
                handle(message, now_ns)
            self.killed.append(f"{type(machine).__name__} of {type(message).__name__}")
            raise PlantedFault(self.killed[-1])

        machine.handle = handle_or_fail
