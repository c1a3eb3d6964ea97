"""The topology: which machines exist, at which address, and what each is made with."""

from collections.abc import Callable
from typing import Any, Final, Literal, get_args

from msgspec import to_builtins

from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.machine import Machine
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.settings import InvalidTopology, Settings
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY
from yunikorn_actors.policies.registry import NO_POLICIES, Policies

TopologyName = Literal["proposing", "fused"]
TOPOLOGIES: tuple[TopologyName, ...] = get_args(TopologyName)
SCHEDULERS_MAX: Final = 64


def check_topology(name: str, schedulers: object) -> None:
    if name not in TOPOLOGIES:
        raise InvalidTopology(f"unknown topology {name!r}: choose one of {', '.join(TOPOLOGIES)}")
    # True is an int as well, and no number that anyone means.
    if type(schedulers) is not int or not 0 < schedulers <= SCHEDULERS_MAX:
        raise InvalidTopology(
            f"{schedulers!r:.100} schedulers for a partition are not allowed: give a whole number "
            f"from 1 to {SCHEDULERS_MAX}"
        )
    if name == "fused" and schedulers > 1:
        raise InvalidTopology(
            "fused has no room for several schedulers: there Context plans by itself, on the truth "
            'that it alone may change; take topology "proposing"'
        )


class Topology:
    """Builds machines; in `fused` there is no Scheduler, as Context plans by itself."""

    def __init__(
        self,
        name: TopologyName,
        *,
        settings: Settings,
        instance: str,
        schedulers: int = 1,
        policies: Policies = NO_POLICIES,
    ) -> None:
        """`schedulers` is how many of them plan for each partition."""
        check_topology(name, schedulers)
        self.policies = policies
        self.name = name
        self.schedulers = schedulers
        self.settings = settings
        self.instance = instance
        # By name: effects and recordings name a kind, not a class.
        self._kinds: dict[str, Callable[..., Machine]] = {
            "scheduler": self._scheduler,
            "event_publisher": self._event_publisher,
        }

    def described(self) -> dict[str, Any]:
        """Return what a trace has to tell for the same machines to be built again."""
        described = {
            "topology": self.name,
            "schedulers": self.schedulers,
            "instance": self.instance,
            "settings": to_builtins(self.settings),
        }
        # Only where there are policies: headers of older recordings have no such key.
        if self.policies.digests:
            described["policies"] = self.policies.digests
        return described

    def first_machines(self) -> dict[str, Machine]:
        """Return those that exist from the start."""
        return {
            RM_PROXY: RmProxy(settings=self.settings),
            CONTEXT: Context(
                settings=self.settings,
                schedulers=0 if self.name == "fused" else self.schedulers,
                instance=self.instance,
                policies=self.policies,
            ),
            EVENT_PUBLISHER: self._event_publisher(),
        }

    def build(self, kind: str, arguments: dict[str, Any]) -> Machine:
        """Make the machine that a StartMachine effect names."""
        return self._kinds[kind](**arguments)

    def _scheduler(self, **arguments: Any) -> Scheduler:  # noqa: ANN401 - as its own
        return Scheduler(**arguments, settings=self.settings, policies=self.policies)

    def _event_publisher(self, **arguments: Any) -> EventPublisher:  # noqa: ANN401 - as its own
        return EventPublisher(**arguments, settings=self.settings)
