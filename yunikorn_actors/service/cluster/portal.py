"""The portal of a cluster: to the parts of a service it is a core, of all partitions.

It keeps nothing that must outlive it. Each resource manager has a channel to each partition of its
configuration; one that registers again, here or at another portal, begins anew, as with any core.
"""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial, reduce
from typing import Any, Final, NoReturn, Self, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.core.driver import Follower
from yunikorn_actors.drivers.live.clock import Clock, RealClock
from yunikorn_actors.errors import (
    CoreError,
    CoreFailed,
    CoreStopped,
    Refused,
    UnknownAsk,
    UnknownResourceManager,
)
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.planning.reasons import WaitingSum, Why
from yunikorn_actors.runtime.event_streams import Feed
from yunikorn_actors.service.cluster.cluster_follower import Following
from yunikorn_actors.service.cluster.manager_channel import Far, ManagerChannel, reach
from yunikorn_actors.service.cluster.partition_host import BEGINNING
from yunikorn_actors.service.cluster.split import Request, config_for, names_in, split
from yunikorn_actors.values.ids import short_partition_name

# Answers of several cores as one: numbers add up, lists are joined, the rest stays apart.

GREATEST: Final = frozenset({"worst_ns", "format", "as_of"})
"""Fields of which the greatest counts, not the sum."""
COUNTS: Final = "counts"
"""Field with a histogram: its numbers are added place by place."""


def merged(answers: Sequence[Any]) -> Any:  # noqa: ANN401 - plain values
    return reduce(lambda a, b: _both("", a, b), answers)


def _both(name: str, one: Any, other: Any) -> Any:  # noqa: ANN401 - plain values
    # A part that knows nothing adds nothing.
    match one, other:
        case None, _:
            return other
        case _, None:
            return one
        case bool(), bool():
            return one and other
        # After truth values, which are numbers in Python as well.
        case int() | float(), int() | float():
            return max(one, other) if name in GREATEST else one + other
        case Mapping(), Mapping():
            # What only one of them has is kept: a partition may have what others have not.
            return {
                key: _both(key, one[key], other[key])
                if key in one and key in other
                else one.get(key, other.get(key))
                for key in {**one, **other}
            }
        case (list() | tuple(), list() | tuple()) if name == COUNTS:
            return [a + b for a, b in zip(one, other, strict=True)]
        case list() | tuple(), list() | tuple():
            return [*one, *other]
    return one or other


AT_A_TIME: Final = 32
"""Calls of hosts that are under way together."""
NO_EVENTS: Final = (
    "event records are numbered by partition, and a cluster has several: "
    "ask REST for them, /ws/v1/events/batch has those of all partitions"
)
T = TypeVar("T")


class ClusterCore:
    def __init__(self, config: str, engine: Callable[[tuple[str, ...]], Mapping[str, Far]]) -> None:
        """`config` names the partitions; `engine` finds or starts the host of each, by name."""
        self.clock: Final[Clock] = RealClock()
        self.failure: CoreFailed | None = None
        self.topology = Topology("proposing", settings=Settings(), instance=os.urandom(4).hex())
        self.when_over: list[Callable[[], None]] = []
        self._config = config
        self._partitions: Final = names_in(config)
        self._engine = engine
        self._hosts: Mapping[str, Far] = {}
        self._lock = threading.RLock()
        """Guards the managers, and the state."""
        self._managers: dict[str, dict[str, ManagerChannel]] = {}
        """By resource manager and partition."""
        self.followers: Final = ClusterFollowers(self.check_running, self._on_all)
        self._state = "new"
        self._pool = ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="yunikorn-actors-portal")

    # -- life

    def start(self) -> Self:
        """Reach the hosts, and bring them the configuration."""
        with self._lock:
            if self._state != "new":
                raise CoreStopped("a portal is started once: make another one")
            self._state = "running"
        self._hosts = self.followers.hosts = self._engine(self._partitions)
        self._on_all(self._configure)
        return self

    def stop(self, timeout: float = 5.0) -> None:
        """Leave: resource managers are lost to the hosts, which go on."""
        with self._lock:
            # Taken out first, so that nothing goes to a host while it ends.
            was, self._state = self._state, "stopped"
            managers, self._managers = self._managers, {}
        if was != "running":
            return
        # Followers first: a read side must not hear of managers that leave one by one.
        self.followers.end()
        for tell in tuple(self.when_over):
            tell()
        self._end_manager_channels(
            (it for manager_channels in managers.values() for it in manager_channels.values()),
            timeout,
        )
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _end_manager_channels(
        self, manager_channels: Iterable[ManagerChannel], timeout: float | None = None
    ) -> None:
        losing = [self._pool.submit(_lose, it) for it in manager_channels]
        # A host that does not answer in time finds out by itself (see `SILENT_S`).
        for it in losing:
            with suppress(TimeoutError):
                it.result(timeout)

    def _configure(self, partition: str, by: str = BEGINNING) -> None:
        """Bring a host what the administrator says of its partition."""
        config = self._config_of(partition)
        if config:
            reach(self._hosts[partition], "configure", config, by)

    def _begin(self, partition: str) -> None:
        """Bring it to a host that began anew, and so has none."""
        config = self._config_of(partition)
        if config:
            reach(self._hosts[partition], "begin_with", config)

    def _config_of(self, partition: str) -> str:
        with self._lock:
            config = self._config
        return config_for(config, partition) if config.strip() else ""

    def is_settled(self) -> bool:
        """Whether every request has been handled."""
        with self._lock:
            return all(
                it.is_quiet
                for manager_channels in self._managers.values()
                for it in manager_channels.values()
            )

    def check_running(self) -> None:
        if self._state != "running":
            raise CoreStopped(f"the portal is {self._state}")

    # -- the scheduler interface

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
    ) -> si.RegisterResourceManagerResponse:
        """Register with each partition; where one refuses, it is registered with none."""
        si.check_form(request, si.RegisterResourceManagerRequest)
        self.check_running()
        # One callback at a time over all partitions, as at one core.
        turn = threading.Lock()
        manager_channels = {
            partition: ManagerChannel(
                partition,
                self._hosts[partition],
                replace(request, config=config),
                callback,
                turn,
                partial(self._begin, partition),
            )
            for partition, config in self._configs(request.config).items()
        }
        # A former registration ends before the new one begins.
        for former in self._leave(request.rm_id):
            former.leave_to_another(_left(request.rm_id))
        try:
            # All at the same time, or registering would take as long as all hosts together.
            self._on_all(lambda partition: manager_channels[partition].open(), manager_channels)
        except CoreError:
            # Refused by one: taken back from the others.
            for partition in manager_channels:
                with suppress(CoreError):
                    self._hosts[partition].call("unregister", request.rm_id)
            raise
        for partition in self._hosts.keys() - manager_channels.keys():
            # It may have had this one before, here or at another portal.
            with suppress(CoreError):
                self._hosts[partition].call("unregister", request.rm_id)
        with self._lock:
            self._managers[request.rm_id] = manager_channels
        for manager_channel in manager_channels.values():
            manager_channel.start()
        return si.RegisterResourceManagerResponse()

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Make asks, report and release; `update_allocation` of the callback answers."""
        self._send(request, si.AllocationRequest)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Add and remove applications; `update_application` of the callback answers."""
        self._send(request, si.ApplicationRequest)

    def update_node(self, request: si.NodeRequest) -> None:
        """Add, change, drain and remove nodes; `update_node` of the callback answers."""
        self._send(request, si.NodeRequest)

    def _send(self, request: Request, kind: type[Request]) -> None:
        si.check_form(request, kind)
        self.check_running()
        manager_channels = self._manager_channels(request.rm_id)
        for manager_channel in manager_channels.values():
            manager_channel.check()
        for partition, part in split(request, manager_channels).items():
            manager_channels[partition].send(part)

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Reload the configuration of each partition; none may come or go."""
        si.check_form(request, si.UpdateConfigurationRequest)
        self.check_running()
        if not request.rm_id:
            self.administer(request.config)
            return
        configs, manager_channels = (
            self._configs(request.config),
            self._manager_channels(request.rm_id),
        )
        if configs.keys() != manager_channels.keys():
            raise Refused(_other_partitions(manager_channels, configs))
        self._on_all(
            lambda it: manager_channels[it].configure(replace(request, config=configs[it])),
            manager_channels,
        )

    @property
    def is_administered(self) -> bool:
        """Whether the administrator has brought a configuration."""
        return bool(self._config.strip())

    def administer(self, text: str, by: str = "") -> None:
        """Take the administrator's configuration; if one core refuses it, no core gets it."""
        self.check_running()
        names = names_in(text)
        # The portal does not make or remove hosts while it runs.
        if set(names) != set(self._partitions):
            raise Refused(_other_partitions(self._partitions, names))
        with self._lock:
            former, self._config = self._config, text
        try:
            self._on_all(partial(self._configure, by=by))
        except BaseException:
            # Taken back everywhere: some hosts may have the new one already.
            with self._lock:
                self._config = former
            with suppress(CoreError):
                self._on_all(self._configure)
            raise

    def _configs(self, text: str) -> dict[str, str]:
        """Return the configuration of each partition; a blank one is of all that are here."""
        if not text.strip():
            return dict.fromkeys(self._partitions, "")
        names = names_in(text)
        if not set(names) <= set(self._partitions):
            raise Refused(_other_partitions(self._partitions, names))
        return {name: config_for(text, name) for name in names}

    # -- the life of a resource manager

    def resource_manager_lost(self, rm_id: str) -> None:
        """Suspend its partitions: its work goes on, nothing is decided until it registers again."""
        self._manager_channels(rm_id)
        for manager_channel in self._leave(rm_id):
            manager_channel.end(_left(rm_id))
            self._pool.submit(_lose, manager_channel)

    def unregister_resource_manager(self, rm_id: str) -> None:
        """Remove everything of a resource manager, registered or lost."""
        for manager_channel in self._leave(rm_id):
            manager_channel.end(_left(rm_id))
        for host in self._hosts.values():
            self._pool.submit(host.call, "unregister", rm_id)

    def _leave(self, rm_id: str) -> tuple[ManagerChannel, ...]:
        with self._lock:
            return tuple(self._managers.pop(rm_id, {}).values())

    def _manager_channels(self, rm_id: str) -> Mapping[str, ManagerChannel]:
        with self._lock:
            manager_channels = self._managers.get(rm_id)
        if manager_channels is None:
            raise _left(rm_id)
        return manager_channels

    def has_room(self, rm_id: str) -> bool:
        with self._lock:
            manager_channels = self._managers.get(rm_id, {})
        return not any(it.backlog.is_full for it in manager_channels.values())

    def when_room(self, rm_id: str, call: Callable[[], None]) -> None:
        with self._lock:
            manager_channels = self._managers.get(rm_id, {})
        full = next((it for it in manager_channels.values() if it.backlog.is_full), None)
        if full is None:
            call()
        else:
            full.backlog.when_room(call)

    # -- questions

    def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        """Say why an ask waits; the partition need not be named where one alone knows the ask."""
        names = [short_partition_name(partition)] if partition else list(self._partitions)
        unknown = UnknownAsk(f"failed to find partition {partition}")
        for name in names:
            if name in self._hosts:
                try:
                    why: Why = self._hosts[name].call("explain", application_id, key, partition)
                except UnknownAsk as error:
                    unknown = error
                else:
                    return why
        raise unknown

    def waiting(self, *, partition: str = "") -> tuple[WaitingSum, ...]:
        """Return what waits in a partition, added up; unnamed it is the first."""
        name = short_partition_name(partition) if partition else next(iter(self._partitions), "")
        if name not in self._hosts:
            return ()
        sums: tuple[WaitingSum, ...] = self._hosts[name].call("waiting", partition)
        return sums

    def expected(self, application_id: str = "", *, partition: str = "") -> tuple[Expected, ...]:
        """Return when what waits will start, of a partition or of all."""
        names = [short_partition_name(partition)] if partition else list(self._partitions)
        asked = [self._hosts[it] for it in names if it in self._hosts]
        found = [it.call("expected", application_id, partition) for it in asked]
        return tuple([it for part in found for it in part])

    def state_dump(self) -> dict[str, Any]:
        """Return everything that the cores know, each at a moment of its own."""
        found: dict[str, Any] = merged(self.on_each("state_dump"))
        return found

    def on_each(self, method: str, *arguments: object) -> list[Any]:
        """Call every host; return the answers in the order of the partitions."""
        self.check_running()
        return self._on_all(lambda it: self._hosts[it].call(method, *arguments))

    def ask_host(self, partition: str, *question: str) -> Any:  # noqa: ANN401 - plain values
        return self._hosts[partition].call("ask", *question)

    @property
    def partitions(self) -> tuple[str, ...]:
        return self._partitions

    def events(self, first_id: int = 0, count: int = 10_000) -> EventsFound:
        """Refuse: there is no one order of event records."""
        del first_id, count
        raise Refused(NO_EVENTS)

    def open_feed(self, feed: Feed, history: int) -> NoReturn:
        del feed, history
        raise Refused(NO_EVENTS)

    # -- for a read side

    def measure(self) -> None:
        """Each host does so by itself."""

    # -- parts

    def _on_all(self, work: Callable[[str], T], partitions: Iterable[str] | None = None) -> list[T]:
        """Do this for all partitions at the same time; raise the first error of them."""
        names = self._partitions if partitions is None else partitions
        # All at a time; the answers are in the order of the partitions.
        under_way = [self._pool.submit(work, it) for it in names]
        return [it.result() for it in under_way]


class ClusterFollowers:
    """Read sides that follow all partitions."""

    def __init__(
        self,
        check_running: Callable[[], None],
        on_all: Callable[[Callable[[str], None]], object],
    ) -> None:
        self._check_running = check_running
        self._on_all = on_all
        self._lock = threading.Lock()
        self._following: dict[str, Following] = {}
        self.hosts: Mapping[str, Far] = {}

    def follow(self, follower: Follower) -> str:
        self._check_running()
        following = Following(follower, self.hosts)
        address = os.urandom(8).hex()
        with self._lock:
            self._following[address] = following
        following.start()
        return address

    def catch_up(self) -> None:
        """Wait until all followers have received what is true now."""
        with self._lock:
            followings = tuple(self._following.values())
        for following in followings:
            self._on_all(following.catch_up)

    def unfollow(self, address: str) -> None:
        with self._lock:
            following = self._following.pop(address, None)
        if following is not None:
            following.end()

    def end(self) -> None:
        with self._lock:
            followings, self._following = self._following, {}
        for following in followings.values():
            following.end()


def _lose(manager_channel: ManagerChannel) -> None:
    """A host that is away begins anew, and then has nobody to be lost."""
    manager_channel.end(CoreStopped("the portal was stopped"))
    with suppress(CoreError):
        manager_channel.lose()


def _left(rm_id: str) -> UnknownResourceManager:
    return UnknownResourceManager(
        f'RmID="{rm_id}" is not registered here: call register_resource_manager first'
    )


def _other_partitions(here: Iterable[str], named: Iterable[str]) -> str:
    return (
        f"this cluster has the partitions {', '.join(here)}, and the configuration "
        f"{', '.join(named)}: partitions come and go with `--config` at a start"
    )
