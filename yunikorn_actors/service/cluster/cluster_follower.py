"""A follower of all partitions: what each core reports to its followers, brought together.

A resource manager is registered with several cores, each of which knows one partition of its
configuration. Towards a read side it is one manager, with all of them.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from yunikorn_actors.core.driver import Follower
from yunikorn_actors.errors import CoreError
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.codec import decoded
from yunikorn_actors.messages.followers import ManagerDescribed, ManagerLeft
from yunikorn_actors.messages.restart import EventsRestored
from yunikorn_actors.messages.scheduling import FactsAppended, PartitionClosed, PartitionSnapshot
from yunikorn_actors.recording.logs import logger
from yunikorn_actors.service.cluster.manager_channel import PAUSE_S, Far, HostAway, reach
from yunikorn_actors.service.cluster.partition_host import ChannelGone
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.values.ids import manager_of_partition

CATCH_UP_S: Final = 10.0
"""Nobody waits longer for a host that is not heard; what was changed there is changed."""


class Managers:
    """The resource managers as the cores describe them, each with all its partitions."""

    def __init__(self, partitions: Sequence[str]) -> None:
        self._partitions = partitions
        self._described: dict[str, dict[str, ManagerDescribed]] = {}

    def described(self, partition: str, message: ManagerDescribed) -> Message:
        own = self._described.setdefault(message.rm_id, {})
        own[partition] = message
        return self._together(own)

    def left(self, partition: str, rm_id: str) -> Message | None:
        """One core has it no more; None if it was not there."""
        own = self._described.get(rm_id, {})
        if own.pop(partition, None) is None:
            return None
        if own:
            return self._together(own)
        del self._described[rm_id]
        return ManagerLeft(rm_id=rm_id)

    def at(self, partition: str) -> list[str]:
        return [rm_id for rm_id, own in self._described.items() if partition in own]

    def _together(self, own: Mapping[str, ManagerDescribed]) -> ManagerDescribed:
        # In the order of the partitions, so that the description does not depend on who came first.
        described = [own[it] for it in self._partitions if it in own]
        first = described[0]
        partitions = tuple(part for it in described for part in it.config.partitions)
        return replace(first, config=replace(first.config, partitions=partitions))


class Following:
    """Passes the messages of all hosts to one follower, on one thread for each host."""

    def __init__(self, follower: Follower, hosts: Mapping[str, Far]) -> None:
        self._follower = follower
        self._hosts = hosts
        self._managers = Managers(tuple(hosts))
        self._epochs: dict[str, dict[str, int]] = {it: {} for it in hosts}
        """Of the partitions that are open, by host and full name."""
        self._newest_ns: dict[str, int] = dict.fromkeys(hosts, 0)
        """Of each host the time of the last message that was passed on."""
        self._received: dict[str, tuple[str, int]] = {}
        """Of each host the channel from which it is read, and the last entry that was passed on."""
        self._turn = threading.Condition()
        self._over: Final = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._receive_all,
                args=(partition, far),
                name=f"yunikorn-actors-follow-{partition}",
                daemon=True,
            )
            for partition, far in hosts.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def catch_up(self, partition: str) -> None:
        """Wait until the follower has received all that is true at this host now.

        A host that was never reached has sent nothing that could be old.
        """
        with self._turn:
            channel, _ = self._received.get(partition, ("", 0))
        if channel:
            with suppress(CoreError):
                # What the host has now, and then wait until that number was passed on.
                last: int = reach(self._hosts[partition], "last_entry", channel)
                with self._turn:
                    self._turn.wait_for(lambda: self._is_past(partition, channel, last), CATCH_UP_S)

    def _is_past(self, partition: str, channel: str, last: int) -> bool:
        # Another channel means that everything was sent anew.
        now, heard = self._received[partition]
        return self._over.is_set() or now != channel or heard >= last

    def end(self) -> None:
        """Tell nothing more; the hosts find out by themselves."""
        with self._turn:
            self._over.set()
            self._turn.notify_all()

    def _receive_all(self, partition: str, far: Far) -> None:
        channel, acknowledged = "", 0
        while not self._over.is_set():
            try:
                if not channel:
                    # Channel first, then everything that the host says, and then what changes.
                    channel, acknowledged = reach(far, "follow"), 0
                    self._note_received(partition, channel, acknowledged)
                    self._in_turn(lambda: self._close_all(partition))
                for number, kind, payload in reach(far, "entries", channel, acknowledged):
                    message = decoded(kind, Raw(payload))
                    self._in_turn(lambda it=message: self._tell(partition, it))  # type: ignore[misc]
                    # Only now: an answer that is lost brings it once more.
                    acknowledged = number
                self._note_received(partition, channel, acknowledged)
            except HostAway:
                # Away: the engine starts it again, and then its channel is new.
                self._over.wait(PAUSE_S)
            except ChannelGone:
                # Its life has ended, so all of it is read anew.
                channel = ""
            except Exception as error:  # noqa: BLE001 - the edge: its read side would stand still
                # Whatever it was, following again shows everything as it is.
                logger.error("partition {} is followed anew", partition, exception=error)
                channel = ""
                self._over.wait(PAUSE_S)

    def _note_received(self, partition: str, channel: str, number: int) -> None:
        with self._turn:
            self._received[partition] = (channel, number)
            self._turn.notify_all()

    def _in_turn(self, tell: Callable[[], None]) -> None:
        with self._turn:
            if not self._over.is_set():
                tell()

    def _close_all(self, partition: str) -> None:
        """A host is followed anew: what it had, and has no more, would stay for ever."""
        for rm_id in self._managers.at(partition):
            self._tell(partition, ManagerLeft(rm_id=rm_id))
        for name, epoch in list(self._epochs[partition].items()):
            rm_id = manager_of_partition(name)
            self._tell(partition, PartitionClosed(rm_id=rm_id, partition=name, epoch=epoch))

    def _unknown(self, partition: str, message: EventsRestored) -> EventsRestored:
        """Of a host that is followed anew most records are there already."""
        newest_ns = self._newest_ns[partition]
        facts = tuple(it for it in message.facts if _time_of(it) > newest_ns)
        self._note_times(partition, facts)
        return replace(message, facts=facts)

    def _note_times(self, partition: str, facts: Iterable[Fact]) -> None:
        newest_ns = max(map(_time_of, facts), default=0)
        self._newest_ns[partition] = max(self._newest_ns[partition], newest_ns)

    def _tell(self, partition: str, message: Message) -> None:
        notice: Message | None = message
        match message:
            case ManagerDescribed():
                notice = self._managers.described(partition, message)
            case ManagerLeft():
                notice = self._managers.left(partition, message.rm_id)
            case PartitionSnapshot():
                self._epochs[partition][message.partition] = message.epoch
            case FactsAppended():
                self._epochs[partition][message.partition] = message.epoch
                self._note_times(partition, message.facts)
            case EventsRestored():
                notice = self._unknown(partition, message)
            case PartitionClosed():
                self._epochs[partition].pop(message.partition, None)
        if notice is not None:
            self._follower.receive(notice)


def _time_of(fact: Fact) -> int:
    """A fact without a time has no record either."""
    at_ns: int = getattr(fact, "at_ns", 0)
    return at_ns
