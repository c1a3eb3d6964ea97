"""Who exists, at which address, and what each is made with."""

from collections.abc import Callable
from typing import Any, Literal, get_args

from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.machine import Machine
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY

TopologyName = Literal["proposing", "fused"]
TOPOLOGIES: tuple[TopologyName, ...] = get_args(TopologyName)


class Topology:
    """Builds machines; `fused` has no Scheduler, its Context plans by itself."""

    def __init__(self, name: TopologyName, *, settings: Settings, instance: str) -> None:
        if name not in TOPOLOGIES:
            raise ValueError(f"unknown topology {name!r}: choose one of {', '.join(TOPOLOGIES)}")
        self.name = name
        self.settings = settings
        self.instance = instance
        self._kinds: dict[str, Callable[..., Machine]] = {
            "scheduler": self._scheduler,
            "event_publisher": self._event_publisher,
        }

    def first_machines(self) -> dict[str, Machine]:
        """Return those that exist from the start."""
        return {
            RM_PROXY: RmProxy(settings=self.settings),
            CONTEXT: Context(settings=self.settings, topology=self.name, instance=self.instance),
            EVENT_PUBLISHER: self._event_publisher(),
        }

    def build(self, kind: str, arguments: dict[str, Any]) -> Machine:
        """Make the machine that a StartMachine effect names."""
        return self._kinds[kind](**arguments)

    def _scheduler(self, **arguments: Any) -> Scheduler:  # noqa: ANN401 - as its own
        return Scheduler(**arguments, settings=self.settings)

    def _event_publisher(self, **arguments: Any) -> EventPublisher:  # noqa: ANN401 - as its own
        return EventPublisher(**arguments, settings=self.settings)
