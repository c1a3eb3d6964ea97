"""Whether the way of each item that a resource manager is told of begins where it should.

It is judged by the requests and the facts themselves, not by what the tools say is in a message.
"""

from collections import Counter
from collections.abc import Iterable

from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import (
    TIMER,
    Delivery,
    Message,
    is_manager,
    is_outside,
    manager_of,
)
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.messages.scheduling import RunSlice
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.origins.item_origins import Origin, origins
from yunikorn_actors.trace.origins.items import Item, Part, items_in
from yunikorn_actors.trace.origins.message_parts import facts_of, texts_in
from yunikorn_actors.trace.origins.origin_queries import InMemory

OF_ALL = (rm.ConfigurationRequested, rm.RegistrationRequested, rm.RMLost, rm.RMUnregistered)
"""What is about all that a resource manager has, and names none of it."""


class _Run:
    """What the facts say of allocations: for what each was asked back, and where it was."""

    def __init__(self, deliveries: Iterable[Delivery]) -> None:
        self.reasons: dict[str, set[str]] = {}
        self.nodes: dict[str, set[str]] = {}
        """Of each allocation, by its UUID, and of all that an application had, by its id."""
        for delivery in deliveries:
            if isinstance(delivery.message, CallUpdateAllocation):
                for new in delivery.message.response.new:
                    for name in (new.uuid, new.application_id):
                        self.nodes.setdefault(name, set()).add(new.node_id)
            for fact in facts_of(delivery.message):
                match fact:
                    case f.VictimMarked(uuid=uuid, beneficiary=whom):
                        self.reasons.setdefault(uuid, set()).update((whom.key, whom.queue))
                    case f.AskParked(placeholder=uuid) | f.PlaceholderCancelled(placeholder=uuid):
                        self.reasons.setdefault(uuid, set()).add(fact.key)


def _brings(message: Message) -> dict[tuple[str, str], int]:
    """Return the asks that a request brings, and how many allocations each wants."""
    match message:
        case rm.AllocationsRequested(request=request):
            asks = {(it.application_id, it.allocation_key): it for it in request.asks}
            wanted = {name: it.max_allocations for name, it in asks.items()}
            return wanted | {
                (it.application_id, it.allocation_key): 1 for it in request.allocations
            }
        case rm.NodesRequested(request=request):
            reported = (it for node in request.nodes for it in node.existing_allocations)
            return {(it.application_id, it.allocation_key): 1 for it in reported}
    return {}


def _ends(message: Message, item: Item) -> bool:
    if not isinstance(message, rm.AllocationsRequested) or message.request.releases is None:
        return False
    whom = message.request.releases
    of_asks = ((it.application_id, it.allocation_key, "") for it in whom.allocation_asks_to_release)
    of_work = (
        (it.application_id, it.allocation_key, it.uuid) for it in whom.allocations_to_release
    )
    return any(
        item.uuid == uuid
        if uuid and item.uuid
        else id_ in {"", item.application_id} and key in {"", item.key}
        for id_, key, uuid in (*of_asks, *of_work)
    )


def faults(deliveries: list[Delivery], seen: Counter[str], every: int = 1) -> list[str]:
    """Follow each item, or every so manieth, and say which of the ways begin at a stranger."""
    recorded, run = InMemory(deliveries), _Run(deliveries)
    placed: dict[tuple[str, int, str, str], str] = {}
    # Where a lane was busy, which of two requests for one key came to something is not recorded.
    are_told_apart = not any(isinstance(it.message, RunSlice) for it in deliveries)
    found, told = [], 0
    for delivery in deliveries:
        items = items_in(delivery.message) if is_manager(delivery.mailbox) else []
        for item in items:
            told += 1
            if told % every:
                continue
            way = origins(recorded, delivery, item)
            _count(seen, way, item, run)
            why = _fault(way, item, run)
            if not why and are_told_apart:
                why = _twice(way, delivery, item, placed)
            if why:
                root = way[0].delivery
                found.append(
                    f"{delivery.mailbox}/{delivery.step}: {item} {why}: "
                    f"{type(root.message).__name__} {root.mailbox}/{root.step}"
                )
    return found


def _count(seen: Counter[str], way: list[Origin], item: Item, run: _Run) -> None:
    root = way[0].delivery
    seen[item.part.name] += 1
    seen["together"] += any(it.together > 1 for it in way)
    seen["asked back"] += item.part is Part.END and item.uuid in run.reasons
    seen["timer"] += root.sender == TIMER
    seen["restart"] += isinstance(root.message, CoreRestored)


def _fault(way: list[Origin], item: Item, run: _Run) -> str:
    root, told = way[0].delivery, way[-1].delivery
    message = root.message
    if isinstance(message, CoreRestored):
        return "" if item.names & set(texts_in(message)) else "was not there at the restart"
    if not (root.sender == TIMER or is_outside(root.sender)):
        return "begins inside"
    rm_id = getattr(getattr(message, "request", message), "rm_id", "")
    if rm_id not in {"", manager_of(told.mailbox)}:
        return "begins at another manager"
    if item.part is Part.ASK:
        is_own = (item.application_id, item.key) in _brings(message)
        return "" if is_own else "begins at what did not ask for it"
    names = set(texts_in(message))
    reasons = run.reasons.get(item.uuid, set())
    if item.part is Part.END and isinstance(message, rm.AllocationsRequested):
        is_own = _ends(message, item) or (item.application_id, item.key) in _brings(message)
        return "" if is_own or names & reasons else "begins at what did not end it"
    # When a node goes, its last allocation may take an application into another state.
    of_nodes = run.nodes.get(item.uuid or item.application_id, set())
    near = {item.key, item.uuid, item.application_id, *of_nodes} - {""}
    is_near = names & (near | reasons) or isinstance(message, OF_ALL)
    return "" if is_near else "begins at a stranger"


def _twice(
    way: list[Origin], told: Delivery, item: Item, placed: dict[tuple[str, int, str, str], str]
) -> str:
    """Two placements do not come of one ask, unless it wants several."""
    root = way[0].delivery
    is_new = isinstance(told.message, CallUpdateAllocation) and item.part is Part.ASK
    if not is_new or not item.uuid:
        return ""
    name = (item.application_id, item.key)
    first = placed.setdefault((root.mailbox, root.step, *name), item.uuid)
    is_once = first == item.uuid or _brings(root.message).get(name, 2) > 1
    return "" if is_once else "begins where another placement does"
