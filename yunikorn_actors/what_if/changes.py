"""What is changed before time goes on, each as the request that would really be made."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.config import QueueConfig, SchedulerConfig, TemplateConfig
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.messages.restart import KnownManager
from yunikorn_actors.values.ids import (
    DEFAULT_PARTITION,
    manager_of_partition,
    partition_name,
    short_partition_name,
)
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.what_if.core_state import context_of

Request = (
    si.AllocationRequest | si.ApplicationRequest | si.NodeRequest | si.UpdateConfigurationRequest
)


class Reconfigure(Struct, frozen=True, kw_only=True):
    """A change of one queue in the configuration that is in force, or of a limit there."""

    queue: str
    """Its path."""
    max: Mapping[str, int] = {}
    """New maxima in base units; types that are not named keep theirs."""
    max_applications: int | None = None
    guaranteed: Mapping[str, int] = {}
    properties: Mapping[str, str] = {}
    """Such as `application.sort.policy`."""
    user: str = ""
    """`max` and `max_applications` are then those of this user's limit in the queue."""
    group: str = ""
    """Likewise of a group."""
    template: bool = False
    """The values are then those of queues that placement creates below it from then on."""
    partition: str = DEFAULT_PARTITION
    rm_id: str = ""


R = TypeVar("R", bound=Request | Reconfigure)
Q = TypeVar("Q", QueueConfig, TemplateConfig)


@dataclass(frozen=True, slots=True)
class Change:
    """A request, and how long after the beginning it is made.

    Without a resource manager in it, it is made by the one that registered first.
    """

    request: Request | Reconfigure
    after_s: float = 0.0
    where: str = ""
    """The place where it is written; without it, it is called by its number."""
    is_first: bool = False
    """The core decides by it before the next change of the same moment is made."""


def carry_out(simulator: Simulator, request: Request | Reconfigure) -> None:
    """Make the request; what it leads to is still to be handled."""
    request = named(request, context_of(simulator).registered.managers)
    if isinstance(request, Reconfigure):
        _reconfigure(simulator, request)
    else:
        _CALLS[type(request)](simulator, request)


def named(request: R, managers: Sequence[KnownManager]) -> R:
    """Return it with its resource manager, the first one where it names none."""
    known = [it.registration.rm_id for it in managers]
    if not known:
        raise InvalidRequest("no resource manager is registered in this state: register one before")
    rm_id = request.rm_id or known[0]
    if rm_id not in known:
        raise InvalidRequest(
            f"rm_id: {rm_id!r} is not registered in this state; there is {', '.join(known)}"
        )
    return replace(request, rm_id=rm_id)


def asks_in(requests: Iterable[Request | Reconfigure]) -> Iterator[tuple[str, si.AllocationAsk]]:
    """Yield the asks of requests that name their resource manager, each with its partition."""
    for request in requests:
        if isinstance(request, si.AllocationRequest):
            for ask in request.asks:
                yield partition_name(request.rm_id, ask.partition_name), ask


def released(
    partition: str,
    application: str,
    key: str = "",
    uuid: str = "",
    why: int = si.TerminationType.STOPPED_BY_RM,
) -> si.AllocationRequest:
    """Release an allocation, all of an ask, or without either an application with all it asks."""
    whose: Any = {
        "partition_name": short_partition_name(partition), "application_id": application,
        "termination_type": si.TerminationType(why),
    }  # fmt: skip
    one = si.AllocationRelease(allocation_key=key, uuid=uuid, **whose)
    asks = () if key else (si.AllocationAskRelease(**whose),)
    return si.AllocationRequest(
        rm_id=manager_of_partition(partition),
        releases=si.AllocationReleasesRequest(
            allocations_to_release=(one,), allocation_asks_to_release=asks
        ),
    )


_CALLS: Final[dict[type, Callable[[Simulator, Any], None]]] = {
    si.AllocationRequest: Simulator.update_allocation,
    si.ApplicationRequest: Simulator.update_application,
    si.NodeRequest: Simulator.update_node,
    si.UpdateConfigurationRequest: Simulator.update_configuration,
}


# -- the configuration in force, changed


def _reconfigure(simulator: Simulator, change: Reconfigure) -> None:
    managers = context_of(simulator).registered.managers
    known = next(it for it in managers if it.registration.rm_id == change.rm_id)
    group = known.registration.policy_group
    config = changed(context_of(simulator).config_of(group), change)
    request = si.UpdateConfigurationRequest(
        rm_id=change.rm_id,
        policy_group=group,
        extra_config=known.registration.extra_config,
    )
    simulator.managers.configure(request, config)


def changed(config: SchedulerConfig, change: Reconfigure) -> SchedulerConfig:
    """Return the configuration with one queue changed."""
    parts = {it.name: it for it in config.partitions}
    if change.partition not in parts:
        raise InvalidRequest(
            f"partition: {change.partition!r} is not configured; there is {', '.join(parts)}"
        )
    part = parts[change.partition]
    names = change.queue.lower().split(".")
    if names[0] != part.root.name:
        raise _no_queue(change.queue, (part.root,))
    parts[part.name] = replace(part, root=_queue(part.root, names[1:], change))
    checksum = sha256(f"{config.checksum} {change!r}".encode()).hexdigest().upper()
    return SchedulerConfig(partitions=tuple(parts.values()), checksum=checksum)


def _queue(config: QueueConfig, names: list[str], change: Reconfigure) -> QueueConfig:
    if not names and change.template:
        if config.is_leaf:
            raise InvalidRequest(
                f"queue: {change.queue} is a leaf, so nothing is made by a template there: name a "
                "queue above it"
            )
        return replace(config, template=_sized(config.template or TemplateConfig(), change))
    if not names:
        return _limited(config, change) if change.user or change.group else _sized(config, change)
    below = {it.name: it for it in config.children}
    if names[0] not in below:
        raise _no_queue(change.queue, config.children)
    below[names[0]] = _queue(below[names[0]], names[1:], change)
    return replace(config, children=tuple(below.values()))


def _no_queue(path: str, known: tuple[QueueConfig, ...]) -> InvalidRequest:
    names = ", ".join(it.name for it in known) or "none"
    return InvalidRequest(f"queue: {path!r} is not configured; the queues there are: {names}")


def _sized(config: Q, change: Reconfigure) -> Q:
    return replace(
        config,
        max=_merged(config.max, change.max),
        guaranteed=_merged(config.guaranteed, change.guaranteed),
        max_applications=_or(change.max_applications, config.max_applications),
        properties={**config.properties, **change.properties},
    )


def _limited(config: QueueConfig, change: Reconfigure) -> QueueConfig:
    """Change the limit that names the user or group, or the one that is for all."""
    limits = list(config.limits)
    for wanted in (change.user or change.group, "*"):
        for place, limit in enumerate(limits):
            if wanted in (limit.users if change.user else limit.groups):
                limits[place] = replace(
                    limit,
                    max_resources=_merged(limit.max_resources, change.max),
                    max_applications=_or(change.max_applications, limit.max_applications),
                )
                return replace(config, limits=tuple(limits))
    raise InvalidRequest(
        f"queue: {change.queue} has no limit for {change.user or change.group}: name the queue "
        "that has it"
    )


def _merged(present: Resource | None, given: Mapping[str, int]) -> Resource | None:
    return {**(present or {}), **given} if given else present


def _or(given: int | None, present: int) -> int:
    return present if given is None else given
