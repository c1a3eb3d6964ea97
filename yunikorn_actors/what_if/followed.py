"""A state from what a follower hears: so the core's own threads work out nothing for it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from yunikorn_actors.core.entry import Gateway
from yunikorn_actors.machines.context.partition_context import Uuids
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.followers import ManagerDescribed
from yunikorn_actors.messages.restart import KnownManager, Registered
from yunikorn_actors.messages.rm_events import RMRegistration
from yunikorn_actors.messages.scheduling import PartitionSnapshot
from yunikorn_actors.what_if.core_state import BEGUN_ANEW, REGISTERED, CoreState

_SAME: Final = (*REGISTERED, "extra", "capabilities")


def state_of_replicas(
    managers: Iterable[ManagerDescribed],
    images: Mapping[str, tuple[int, dict[str, Any]]],
    topology: Topology,
    at_ns: int,
) -> CoreState:
    """Make it of the resource managers, and of each partition's epoch and image by full name.

    The topology has the instance of the core: of victims that are alike otherwise the UUID decides.
    """
    described = list(managers)
    known = tuple(
        KnownManager(
            registration=RMRegistration(
                config=None, callback="", reply_to="", **{name: getattr(it, name) for name in _SAME}
            ),
            checksum=it.config.checksum,
            epochs={
                name: epoch
                for name, (epoch, _) in images.items()
                if name.startswith(f"[{it.rm_id}]")
            },
        )
        for it in described
    )
    return CoreState(
        registered=Registered(
            managers=known,
            brought={it.policy_group: it.config for it in described},
            last_epoch=max((epoch for epoch, _ in images.values()), default=0),
        ),
        images={name: image for name, (_, image) in images.items()},
        at_ns=at_ns,
        settings=topology.settings,
        topology=topology.name,
        schedulers=topology.schedulers,
        instance=topology.instance,
        issued_uuids=_issued(topology.instance, images),
        lacks=(BEGUN_ANEW,),
    )


def _issued(instance: str, images: Mapping[str, tuple[int, dict[str, Any]]]) -> int:
    """Return how many UUIDs it has given at least."""
    uuids = Uuids(instance)
    for _, image in images.values():
        for app in image["applications"]:
            for uuid in app["allocations"]:
                uuids.avoid(uuid)
    return uuids.issued


def state_of_core(core: Gateway, topology: Topology, at_ns: int) -> CoreState:
    """Return the state of a core that is followed for it."""
    taken = Snapshots.of(core)
    return state_of_replicas(taken.managers.values(), taken.images, topology, at_ns)


class Snapshots:
    """Keeps the first description of each manager and partition, and nothing that follows."""

    def __init__(self) -> None:
        self.managers: dict[str, ManagerDescribed] = {}
        self.images: dict[str, tuple[int, dict[str, Any]]] = {}

    def receive(self, message: Message) -> None:
        if isinstance(message, ManagerDescribed):
            self.managers.setdefault(message.rm_id, message)
        elif isinstance(message, PartitionSnapshot):
            self.images.setdefault(message.partition, (message.epoch, message.image))

    @classmethod
    def of(cls, core: Gateway) -> "Snapshots":
        """Follow a core until all of its partitions have been described."""
        taken = cls()
        address = core.followers.follow(taken, lasts=False)
        try:
            core.followers.catch_up(address)
        finally:
            core.followers.unfollow(address)
        return taken
