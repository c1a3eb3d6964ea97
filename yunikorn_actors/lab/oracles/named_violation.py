"""A violation that says itself of which kind it is: its text differs from run to run."""

from typing import Final

from yunikorn_actors.machines.machine import InvariantViolation


class NamedViolation(InvariantViolation):
    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind: Final = kind
