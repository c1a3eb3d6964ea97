"""The actual values, in the shape in which scenarios write expectations.

Each view is made when it is first used, from the state of the core, its events, or what the
resource manager got. Views show the first resource manager and its partition `default` only;
without such a partition they are empty.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Protocol

from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.scenario.resource_manager import SimulatedResourceManager
from yunikorn_actors.values.ids import partition_name

_NO_PARTITION: Final[dict[str, Any]] = {
    "applications": {}, "finished": [], "queues": {}, "nodes": {}, "users": {},
}  # fmt: skip
_NOTHING_HELD: Final[dict[str, Any]] = {
    "allocated": {}, "placeholders": {}, "pending": {}, "allocations": 0, "placeholder_count": 0,
    "reservations": 0, "task_groups": {},
}  # fmt: skip


class Seen(Protocol):
    """What views are made from: a core, or something that answers like one."""

    def state_dump(self) -> dict[str, Any]: ...

    def events(self, first_id: int, count: int) -> EventsFound: ...


class Views:
    """The views by name; `any_of` gives all of them."""

    def __init__(self, core: Seen, rm: SimulatedResourceManager) -> None:
        self._core = core
        self._rm = rm
        self.partition_name = partition_name(rm.rm_id, "")
        """The partition that is shown."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - each view has its own shape
        return _VIEWS[name](self)

    @cached_property
    def _partition(self) -> dict[str, Any]:
        partitions: dict[str, dict[str, Any]] = self._core.state_dump()["partitions"]
        return _NO_PARTITION | partitions.get(self.partition_name, {})

    @cached_property
    def apps(self) -> dict[str, Any]:
        """Applications by id: the living one, or else the last that ended and was not removed.

        A rejected application never ran, so it is shown only if there is no other of its id.
        """
        by_weight = sorted(self._partition["finished"], key=lambda app: app["state"] != "Rejected")
        ended = {
            app["application"]: {"state": app["state"], "queue": app["queue"], **_NOTHING_HELD}
            for app in by_weight
            if not self._rm.has_removed(self.partition_name, app["application"])
        }
        living = {id_: _living(app) for id_, app in self._partition["applications"].items()}
        return ended | living

    @cached_property
    def queues(self) -> dict[str, Any]:
        return {path.lower(): queue for path, queue in self._partition["queues"].items()}

    @cached_property
    def nodes(self) -> dict[str, Any]:
        return {
            id_: node
            | {"allocations": len(node["allocations"]), "reservations": len(node["reservations"])}
            for id_, node in self._partition["nodes"].items()
        }

    @cached_property
    def allocations(self) -> dict[str, Any]:
        """Allocations by key; an ask with repeats has several."""
        by_key: dict[str, list[dict[str, Any]]] = {}
        for app in self._partition["applications"].values():
            for item in app["allocations"]:
                by_key.setdefault(item["key"], []).append(item)
        return by_key

    @cached_property
    def pending(self) -> dict[str, Any]:
        return {
            id_: [ask["key"] for ask in app["asks"]]
            for id_, app in self._partition["applications"].items()
        }

    def tracked(self, kind: str) -> dict[str, Any]:
        """Usage of users or groups by queue; a name without usage is left out."""
        return {
            name: {path.lower(): usage for path, usage in by_path.items()}
            for name, by_path in self._partition.get(kind, {}).items()
            if by_path
        }

    @cached_property
    def rm(self) -> dict[str, Any]:
        return self._rm.view()

    @cached_property
    def events(self) -> list[dict[str, str]]:
        found = self._core.events(0, Settings().event_ring_capacity)
        return [
            {
                "object": record.object_id,
                "detail": record.event_change_detail.name,
                "type": record.type.name,
                "change": record.event_change_type.name,
                "reference": record.reference_id,
                "message": record.message,
            }
            for record in found.records
        ]


def _living(app: dict[str, Any]) -> dict[str, Any]:
    allocations = app["allocations"]
    return app | {
        "allocations": len(allocations),
        "placeholder_count": sum(item["placeholder"] for item in allocations),
    }


_VIEWS: Final[dict[str, Callable[[Views], Any]]] = {
    "apps": lambda views: views.apps,
    "queues": lambda views: views.queues,
    "nodes": lambda views: views.nodes,
    "users": lambda views: views.tracked("users"),
    "groups": lambda views: views.tracked("groups"),
    "allocations": lambda views: views.allocations,
    "pending": lambda views: views.pending,
    "rm": lambda views: views.rm,
    "events": lambda views: views.events,
    "invariants": lambda _: "hold",
    "any_of": lambda views: views,
}
