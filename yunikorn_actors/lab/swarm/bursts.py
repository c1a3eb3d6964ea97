"""Steps of one `together` begin one right after the other: nothing is delivered between them."""

from yunikorn_actors.drivers.simulator.choosers import Channel
from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.harness import Schedule, World
from yunikorn_actors.lab.tapes.tape import Entry


class Bursts:
    """Follows another schedule, but for the steps that belong together."""

    def __init__(self, schedule: Schedule, case: Case) -> None:
        self._schedule = schedule
        self._following = frozenset(
            step.name
            for before, step in zip(case.steps, case.steps[1:], strict=False)
            if "." in step.label and step.label.split(".")[0] == before.label.split(".")[0]
        )
        self.watched = schedule.watched

    def choose(self, world: World) -> Channel | Entry | None:
        if world.next_step in self._following:
            return Entry("do", world.next_step)
        return self._schedule.choose(world)

    def happened(self, event: str) -> None:
        self._schedule.happened(event)

    def confirmation(self, name: str) -> str:
        return self._schedule.confirmation(name)
