"""What the core has asked a resource manager to give back: by this a confirmation is recognised.

A confirmation comes as any release does. Its termination type is no sure sign: some resource
managers confirm with `STOPPED_BY_RM`, whatever was asked. RmProxy sees both the request and the
answer, so it keeps what was asked until it is answered (ADR 36). The type decides only where
nothing is kept: a type that only a request of the core has is a confirmation, for the second time,
by mistake, or from before the resource manager registered anew.

What is kept ends with the allocation: each end of one is either a release that comes in or an
announcement that goes out.
"""

from yunikorn_actors import si
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.state.termination import ASKED_BACK, TerminationType
from yunikorn_actors.values.ids import partition_name

_Holder = tuple[str, str]
"""The full name of a partition, and the id of an application."""


class RequestedBack:
    """What one registration of a resource manager was asked for and has not given back."""

    def __init__(self) -> None:
        # Three levels: a release may name an application, a key in it, or one UUID.
        self._of: dict[_Holder, dict[str, dict[str, TerminationType]]] = {}
        """By application, key and UUID."""
        self._owners: dict[str, tuple[_Holder, str]] = {}
        """Of each UUID its application, and its key."""

    @property
    def uuids(self) -> list[str]:
        """What has not been given back."""
        return list(self._owners)

    def announce(self, items: tuple[rm.AnnouncedRelease | rm.AskedBack, ...]) -> None:
        """Keep what is asked for; what has ended is not asked for any more."""
        for item in items:
            if type(item) is rm.AskedBack:
                holder = (item.partition, item.application_id)
                keys = self._of.get(holder)
                if keys is None:
                    keys = self._of[holder] = {}
                uuids = keys.get(item.key)
                # Nearly always the only one of its key.
                if uuids is None:
                    keys[item.key] = {item.uuid: item.type}
                else:
                    uuids[item.uuid] = item.type
                self._owners[item.uuid] = holder, item.key
            elif self._owners:
                # It ended in another way: a confirmation that still comes is one for nothing.
                self._drop(item.uuid)

    def forget(self, uuids: tuple[str, ...]) -> None:
        """These were given back before the request for them went out."""
        for uuid in uuids:
            self._drop(uuid)

    def release_in(self, rm_id: str, item: si.AllocationRelease) -> rm.Released:
        """Tell whether a release is a wish, or confirms a release of the core."""
        partition = partition_name(rm_id, item.partition_name)
        asked = self._take(partition, item) if self._owners else None
        # Nothing was asked. All of an application is a wish in any case, as no request is ever
        # about all.
        if asked is None and (item.termination_type not in ASKED_BACK or _means_all(item)):
            return rm.ReleaseItem(
                partition=partition,
                application_id=item.application_id,
                uuid=item.uuid,
                key=item.allocation_key,
                type=item.termination_type,
            )
        return rm.GivenBack(
            partition=partition,
            application_id=item.application_id,
            uuid=item.uuid,
            key=item.allocation_key,
            type=item.termination_type,
            asked=asked,
        )

    def _take(self, partition: str, item: si.AllocationRelease) -> TerminationType | None:
        """Take it off the books, and return why it was asked back.

        The release of a whole application is a wish of the manager, though it also gives back
        what was asked for.
        """
        if item.uuid:
            return self._drop(item.uuid) if self._names_owner(partition, item) else None
        asked: TerminationType | None = None
        for holder in self._holders(partition, item.application_id):
            keys = self._of[holder]
            # Several allocations under one key: the last reason stands for all, as all of them are
            # given back.
            meant = [item.allocation_key] if item.allocation_key else list(keys)
            for uuid in [uuid for key in meant for uuid in keys.get(key, ())]:
                asked = self._drop(uuid)
        return asked if item.allocation_key else None

    def _names_owner(self, partition: str, item: si.AllocationRelease) -> bool:
        """Whether the UUID is that of something that was asked for, of this application."""
        owner = self._owners.get(item.uuid)
        if owner is None:
            return False
        (own_partition, application_id), _ = owner
        return own_partition == partition and item.application_id in {"", application_id}

    def _holders(self, partition: str, application_id: str) -> list[_Holder]:
        """Return the applications that have something asked back; without an id, all of them."""
        if not application_id:
            return [holder for holder in self._of if holder[0] == partition]
        holder = (partition, application_id)
        return [holder] if holder in self._of else []

    def _drop(self, uuid: str) -> TerminationType | None:
        owner = self._owners.pop(uuid, None)
        if owner is None:
            return None
        holder, key = owner
        keys = self._of[holder]
        # Empty levels go, or an application that is long gone would keep its names here.
        uuids = keys[key]
        type_ = uuids.pop(uuid)
        if not uuids:
            del keys[key]
            if not keys:
                del self._of[holder]
        return type_


def _means_all(item: si.AllocationRelease) -> bool:
    return not item.uuid and not item.allocation_key
