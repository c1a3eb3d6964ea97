"""What a resource manager still has to report after the core was restarted.

The core comes back with all that it had decided. Its resource managers may have missed the last of
it, or may have lost something in the meantime. So everything that is charged is *awaited*: nodes
take no work until they are reported, and an allocation that is not reported in time is dropped, and
its end announced. What is reported is known already: it keeps its UUID and is charged once.
"""

from collections.abc import Iterable

from yunikorn_actors.state.allocations import Allocation, Ask
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState


class Awaited:
    """The applications and allocations that are known and were not reported yet.

    Nodes have a mark of their own in the state (`Node.awaited`), because schedulers must not use
    them.
    """

    def __init__(self, state: PartitionState) -> None:
        self._nodes = state.nodes
        # By serial: an application that was submitted again under its id is another life, and new.
        self._applications = {app.id: app.serial for app in state.applications.values()}
        self._uuids = dict.fromkeys(state.owners)
        self._wanted: dict[str, None] = {}

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(id_ for id_, node in self._nodes.items() if node.awaited)

    @property
    def uuids(self) -> tuple[str, ...]:
        return tuple(self._uuids)

    def has_allocation(self, uuid: str) -> bool:
        return uuid in self._uuids

    # Pops: a second report of the same life is a duplicate application, and rejected as such.
    def takes_application(self, app: Application) -> bool:
        """Whether this life of it is awaited; it is not from now on."""
        return self._applications.pop(app.id, None) == app.serial

    def takes_allocation(self, uuid: str) -> bool:
        """Whether this allocation is awaited; it is not from now on."""
        # The values are None, so None is "was awaited" and the default means "was not".
        return self._uuids.pop(uuid, "") is None

    def find(self, allocations: Iterable[Allocation], uuid: str, node_id: str) -> str:
        """Return the one of these that a report means; the empty text if there is none."""
        for it in allocations:
            # Without a UUID any awaited allocation of this ask on that node will do: they are
            # alike.
            if it.uuid in self._uuids and it.node_id == node_id and uuid in {"", it.uuid}:
                return it.uuid
        return ""

    # Remembered even if the node is awaited still: `take_wanted` comes back to it with the report.
    def note_wanted(self, ask: Ask) -> None:
        """Its resource manager has asked for it again, so it does not know that it was placed."""
        self._wanted.update(dict.fromkeys(uuid for uuid in ask.uuids if uuid in self._uuids))

    @property
    def wanted(self) -> tuple[str, ...]:
        """What was asked for again and was not reported yet."""
        return tuple(uuid for uuid in self._wanted if uuid in self._uuids)

    def is_wanted(self, uuid: str) -> bool:
        return uuid in self._wanted

    def unreported(self, app: Application, ask: Ask) -> list[Allocation]:
        """Return the allocations of an ask whose node was reported without them."""
        return [
            app.allocations[uuid]
            for uuid in ask.uuids
            # A node that is awaited itself says nothing yet about its work.
            if uuid in self._uuids and not self._nodes[app.allocations[uuid].node_id].awaited
        ]
