"""Portals of a run: what a cluster keeps of each resource manager, so that a core may die.

A portal notes what a resource manager says and hears. From that it would report to a core that
began anew, in the manager's place. Here that is done at rest: another core gets the report, and
then has to have what the first one has; of its answers only what is new may reach the manager.

A name that is used twice, or ends without its UUID, may mean several things while it is under way:
from there on only nodes are compared.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.harness import LabSimulator, Oracle, World
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.first_difference import without_zeros
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import CONTEXT, RM_PROXY, Delivery, is_manager
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.service.cluster.portal import merged
from yunikorn_actors.service.cluster.recovery_report import RecoveryReport, Response
from yunikorn_actors.service.cluster.split import Request, home_of, names_in, split
from yunikorn_actors.state.allocations import ForeignAllocation
from yunikorn_actors.state.applications import Application, ApplicationState
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.ids import partition_name
from yunikorn_actors.values.tags import TAG_CREATION_TIME

_LOOKS: Final = (4, 16, 64)
"""One rest in so many is a moment at which the core could die."""
_RESPONSES: Final = (c.CallUpdateAllocation, c.CallUpdateApplication, c.CallUpdateNode)
_REQUESTS: Final = (rm.AllocationsRequested, rm.ApplicationsRequested, rm.NodesRequested)
_CREATES: Final = frozenset({si.ActionFromRM.CREATE, si.ActionFromRM.CREATE_DRAIN})
_LEAVES: Final = frozenset(
    {ApplicationState.FAILING, ApplicationState.RESUMING, ApplicationState.COMPLETING}
)
"""States in which another core need not have the application, or has it in another state."""


class _Portal:
    """What is kept of one registration."""

    def __init__(
        self, request: si.RegisterResourceManagerRequest, callback: str, policies: Policies
    ) -> None:
        self.rm_id = request.rm_id
        self.request = request
        self.callback = callback
        self.homes = names_in(request.config, policies)
        self.report = RecoveryReport(request.rm_id)
        self.ends: list[si.SiMessage] = []
        """What ends something and was not handled yet."""
        self.is_plain = True
        """Whether each name was used once, nothing was refused, and no UUID was guessed."""
        self._used: dict[tuple[str, str], None] = {}
        self._reported: dict[str, None] = {}
        self.uuids: dict[str, None] = {}
        """All that it was notified of, or has reported."""

    @property
    def is_alone(self) -> bool:
        """Whether it has one partition: of several, answers do not say which they are about."""
        return len(self.homes) == 1

    def sent(self, request: Request) -> Iterator[str]:
        parts = split(request, self.homes)
        yield from _wrong_parts(request, parts, self.homes)
        if self.is_alone:
            self.report.sent(request)
            self.uuids.update((it.uuid, None) for it in _reports_in(request))
            self.is_plain &= all(it in self.uuids for it in _uuids_in(request))
            self.ends.extend(_ends_in(request))
            if isinstance(request, si.AllocationRequest):
                self._reported.update((it.uuid, None) for it in request.allocations if it.uuid)
            for name in _names_in(request):
                self.is_plain &= name not in self._used and "" not in name
                self._used[name] = None

    def received(self, response: Response) -> Iterator[str]:
        if self.is_alone:
            self.uuids.update((it.uuid, None) for it in getattr(response, "new", ()))
            news = self.report.news(response)
            self.is_plain &= not response.rejected
            self.is_plain &= not getattr(response, "rejected_allocations", ())
            if self.is_plain and isinstance(response, si.ApplicationResponse) and news != response:
                yield f"of {response} only {news} is news to {self.rm_id}"
            if self.is_plain and isinstance(response, si.AllocationResponse):
                heard = news if isinstance(news, si.AllocationResponse) else si.AllocationResponse()
                # What it has reported itself need not be announced if it ends it at once.
                kept = {it.uuid for it in heard.new} | self._reported.keys()
                if heard.released != response.released or any(
                    it.uuid not in kept for it in response.new
                ):
                    yield f"of {response} only {news} is news to {self.rm_id}"

    def rest(self) -> Iterator[str]:
        """All requests have been handled, and their answers have come."""
        unnotified = self.report.handled(self.report.sent_count)
        if unnotified is not None:
            yield f"{self.rm_id} was not told of {unnotified}, and no core has died"
        self.ends.clear()

    def lost_ends(self) -> Iterator[str]:
        """What would be missing in the report if the core died now."""
        if self.is_alone and self.ends:
            told = [it for request in deepcopy(self.report).recover() for it in _ends_in(request)]
            yield from (f"the report leaves out {it}" for it in self.ends if it not in told)


class Ported(Oracle):
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._often = draw.one_of(_LOOKS)
        self._portals: dict[str, _Portal] = {}
        """By resource manager."""
        self._coming: dict[str, _Portal] = {}
        """By callback: those that register. What is sent meanwhile is for the new life."""
        self._has_begun_again = False
        """Whether the core knows of its journal what no portal of this run has seen."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        assert isinstance(simulator, LabSimulator)
        message, faults = delivery.message, list[str]()
        if delivery.mailbox == RM_PROXY or isinstance(message, CoreRestored):
            self._register(message, simulator.topology.policies)
            if isinstance(message, _REQUESTS):
                faults.extend(self._send(message.request))
        elif is_manager(delivery.mailbox) and isinstance(message, _RESPONSES):
            for portal in self._portals.values():
                if portal.callback == delivery.mailbox:
                    faults.extend(portal.received(message.response))
        if simulator.is_at_rest:
            for portal in self._portals.values():
                faults.extend(portal.rest())
            if not faults and not self._draw.number(self._often):
                faults.extend(self._die(simulator))
        if isinstance(message, rm.AdminNodeUpdate | rm.AdminConfigUpdate):
            # What an operator does is in no report.
            self._portals.clear()
            self._coming.clear()
        _fail(f"after {type(message).__name__}", faults)

    def _send(self, request: Request) -> Iterator[str]:
        for portal in (*self._portals.values(), *self._coming.values()):
            if portal.rm_id == request.rm_id:
                yield from portal.sent(request)
                yield from portal.lost_ends()

    def at_rest(self, world: World) -> None:
        _fail("at rest", [*self._die(world.simulator), *_wrong_together(self._draw)])

    def _register(self, message: Any, policies: Policies) -> None:  # noqa: ANN401 - any message
        match message:
            case rm.RegistrationRequested():
                portal = _Portal(message.request, message.callback, policies)
                self._coming[message.callback] = portal
            case rm.RMRegistered():
                registered = self._coming.pop(message.callback, None)
                self._portals.pop(message.rm_id, None)
                if registered is not None and not self._has_begun_again:
                    self._portals[message.rm_id] = registered
            case rm.RMRegistrationRejected():
                self._coming.pop(message.callback, None)
            case rm.RMLost() | rm.RMUnregistered() | rm.ConfigurationRequested() | CoreRestored():
                # With other queues another core may refuse what this one has.
                self._has_begun_again |= isinstance(message, CoreRestored)
                self._portals.clear()
                self._coming.clear()

    # -- another core

    def _die(self, simulator: LabSimulator) -> Iterator[str]:
        context = simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        for portal in self._portals.values():
            name = partition_name(portal.rm_id, portal.homes[0]) if portal.is_alone else ""
            if name in context.partitions:
                heir = _Heir(simulator, portal)
                yield from heir.differences(context.partitions[name].state)


class _Heir(si.ResourceManagerCallback):
    """Another core, which has the report of a portal, and the manager behind that."""

    def __init__(self, simulator: LabSimulator, portal: _Portal) -> None:
        self._portal = portal
        self._report_after_restart = deepcopy(portal.report)
        self.refused: dict[str, None] = {}
        """Applications and nodes that this core does not take."""
        self.announced: list[si.Allocation] = []
        policies = simulator.topology.policies
        built = Topology(
            "fused", settings=simulator.topology.settings, instance="heir", policies=policies
        )
        core = Simulator(built)
        core.now_ns = simulator.now_ns
        core.register_resource_manager(portal.request, self)
        for request in self._report_after_restart.recover():
            match request:
                case si.ApplicationRequest():
                    core.update_application(request)
                case si.NodeRequest():
                    core.update_node(request)
                case _:
                    core.update_allocation(request)
        core.settle()
        context = core.machines[CONTEXT]
        assert isinstance(context, Context)
        (self._state,) = (it.state for it in context.partitions.values())

    def update_allocation(self, response: si.AllocationResponse) -> None:
        news = self._report_after_restart.news(response)
        if news is not None:
            self.announced.extend(news.new)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.refused.update((it.application_id, None) for it in response.rejected)
        self._report_after_restart.news(response)

    def update_node(self, response: si.NodeResponse) -> None:
        self.refused.update((it.node_id, None) for it in response.rejected)
        self._report_after_restart.news(response)

    # -- comparing

    def differences(self, truth: PartitionState) -> Iterator[str]:
        whose, state = self._portal.rm_id, self._state
        if self._portal.is_plain:
            for item in self.announced:
                if item.uuid in truth.owners:
                    yield f"{item.allocation_key} is announced to {whose} once more"
        nodes = {it: node for it, node in truth.nodes.items() if it not in self.refused}
        if nodes.keys() != state.nodes.keys():
            yield f"of {whose} it has the nodes {[*state.nodes]}, and not {[*nodes]}"
            return
        for id_, node in nodes.items():
            heir = state.nodes[id_]
            for word in ("capacity", "occupied_reported", "drained"):
                mine, its = getattr(node, word), getattr(heir, word)
                if without_zeros(mine) != without_zeros(its):
                    yield f"{id_} has {word} {its} in it, and not {mine}"
        if self._portal.is_plain:
            yield from self._of_work(truth)

    def _of_work(self, truth: PartitionState) -> Iterator[str]:
        state = self._state
        mine, its = _foreign_work(truth), _foreign_work(state)
        if mine != its:
            yield f"it has the foreign work {its}, and not {mine}"
        for uuid, id_ in state.owners.items():
            if uuid in self._portal.uuids and uuid not in truth.owners:
                yield f"it has {uuid} of {id_}, which has ended"
        for app in truth.applications.values():
            if app.state not in _LEAVES and app.id not in self.refused:
                yield from self._of_application(app)

    def _of_application(self, app: Application) -> Iterator[str]:
        heir = self._state.applications.get(app.id)
        if heir is None:
            yield f"it does not have {app.id}, which is {app.state.value}"
            return
        for uuid, item in app.allocations.items():
            if item.node_id in self.refused or item.releasing is not None:
                continue
            found = heir.allocations.get(uuid)
            if found is None or found.node_id != item.node_id:
                yield f"it does not have {item.spec.key} of {app.id} on {item.node_id}"
        placed = {it.spec.key for it in heir.allocations.values()}
        for key, ask in app.asks.items():
            if ask.remaining and key not in heir.asks and key not in placed:
                yield f"it was not asked for {key} of {app.id}"


def _foreign_work(state: PartitionState) -> dict[str, ForeignAllocation]:
    """Return what others run there; without a time from its manager it is as old as its report."""
    return {
        key: item if _is_dated(item) else replace(item, created_ns=0)
        for key, item in state.foreign.items()
    }


def _is_dated(item: ForeignAllocation) -> bool:
    return item.tags.get(TAG_CREATION_TIME) == str(item.created_ns // SECOND)


def _wrong_together(draw: Draw) -> Iterator[str]:
    """Bring drawn answers of several cores together: sums, the worst, whether all are well."""
    several = [
        {
            "running": draw.number(9),
            "worst_ns": draw.number(9),
            "is_well": draw.once_in(2),
            "counts": [draw.number(9), draw.number(9)],
            "partitions": {f"p{number}": {"nodes": draw.number(9)}, "all": draw.number(9)},
            "names": [f"n{number}"],
        }
        for number in range(draw.whole(2, 4))
    ]

    def of(word: str) -> list[Any]:
        return [it[word] for it in several]

    parts = {name: it for one in of("partitions") for name, it in one.items()}
    wanted = {
        "running": sum(of("running")),
        "worst_ns": max(of("worst_ns")),
        "is_well": all(of("is_well")),
        "counts": [sum(column) for column in zip(*of("counts"), strict=True)],
        "partitions": {**parts, "all": sum(it["all"] for it in of("partitions"))},
        "names": [name for names in of("names") for name in names],
    }
    found = merged(several)
    if found != wanted:
        yield f"the answers {several} together are {found}, expected {wanted}"


def _ends_in(request: Request) -> Iterator[si.SiMessage]:
    """Yield what ends something by name."""
    match request:
        case si.ApplicationRequest():
            yield from request.remove
        case si.AllocationRequest() if request.releases is not None:
            yield from request.releases.allocation_asks_to_release
            yield from request.releases.allocations_to_release


def _reports_in(request: Request) -> Iterator[si.Allocation]:
    match request:
        case si.NodeRequest():
            yield from (it for node in request.nodes for it in node.existing_allocations)
        case si.AllocationRequest():
            yield from request.allocations


def _uuids_in(request: Request) -> Iterator[str]:
    """Yield the UUIDs that are released."""
    if isinstance(request, si.AllocationRequest) and request.releases is not None:
        yield from (it.uuid for it in request.releases.allocations_to_release if it.uuid)


def _names_in(request: Request) -> Iterator[tuple[str, str]]:
    """Yield what is named, by its application; an empty text stands for a name that is left out."""
    match request:
        case si.ApplicationRequest():
            yield from (("application", it.application_id) for it in request.new)
        case si.NodeRequest():
            for node in request.nodes:
                if node.action in _CREATES:
                    yield "node", node.node_id
                for item in node.existing_allocations:
                    yield item.application_id, item.allocation_key
        case si.AllocationRequest():
            asked: tuple[Any, ...] = (*request.asks, *request.allocations)
            for it in asked:
                yield it.application_id or "foreign", it.allocation_key
            if request.releases is not None:
                ends = request.releases.allocations_to_release
                yield from ((it.uuid, it.uuid) for it in ends if not it.uuid)


def _wrong_parts(
    request: Request, parts: dict[str, Request], homes: tuple[str, ...]
) -> Iterator[str]:
    """Each item has to be in one part, that of its partition; of none here, in the first."""
    whole = [*_items_in(request)]
    found = [(home, it) for home, part in parts.items() for it in _items_in(part)]
    if len(found) != len(whole):
        yield f"of {len(whole)} items of a request {len(found)} are in its parts"
    for home, it in found:
        named = home_of(request.rm_id, it)
        wanted = named if named in homes else homes[0]
        if home != wanted:
            yield f"what belongs to {wanted} is said to {home}: {it}"


def _items_in(request: Request) -> Iterator[Any]:
    match request:
        case si.ApplicationRequest():
            yield from (*request.new, *request.remove)
        case si.NodeRequest():
            yield from request.nodes
        case si.AllocationRequest():
            yield from (*request.asks, *request.allocations)
            yield from _ends_in(request)


def _fail(when: str, faults: list[str]) -> None:
    if faults:
        raise InvariantViolation(f"portal {when}: " + "; ".join(faults))
