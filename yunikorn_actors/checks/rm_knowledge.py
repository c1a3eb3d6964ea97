"""The knowledge of a resource manager: all that it has requested and was notified of."""

from collections import Counter, deque
from typing import Final, NamedTuple

from yunikorn_actors import si
from yunikorn_actors.checks.notices import Ended, Placed
from yunikorn_actors.checks.owed import Owed
from yunikorn_actors.state.applications import FINISHED, ApplicationState
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import DEVICES_MAX, WHOLE
from yunikorn_actors.values.ids import partition_name
from yunikorn_actors.values.resource import pruned
from yunikorn_actors.values.tags import GPU, GPU_DEVICES, NODE_PARTITION, NODE_READY_ATTRIBUTE

# The node as its resource manager has reported it, in the words of the interface (G01).
#
# The rule is written once more than in the core, in the plainest way: what a report does not name
# stays, one that is not sound changes nothing, and a node never changes its partition.

_READY: Final = {"true": True, "false": False}
_Amounts = dict[str, int]


class NodeReport(NamedTuple):
    capacity: _Amounts
    occupied: _Amounts
    attributes: dict[str, str]
    drained: bool
    ready: bool

    def differences(self, node: Node) -> list[str]:
        """Say in which words the node is otherwise."""
        truth = of_node(node)
        pairs = zip(self._fields, self, truth, strict=True)
        return [f"{word} is {is_}, reported {said}" for word, said, is_ in pairs if said != is_]


NEW: Final = NodeReport({}, {}, {}, drained=False, ready=True)


def of_node(node: Node) -> NodeReport:
    return NodeReport(
        pruned(node.capacity), pruned(node.occupied_reported), node.attributes, node.drained,
        node.ready,
    )  # fmt: skip


def described(
    before: NodeReport | None,
    capacity: _Amounts | None,
    occupied: _Amounts | None,
    attributes: dict[str, str] | None,
) -> NodeReport | None:
    """Take in what a report says; without anything before it the node comes with it."""
    known = before or NEW
    # Not sound: the report counts for nothing, so the node stays as it was.
    if min([0, *(capacity or {}).values(), *(occupied or {}).values()]) < 0:
        return before
    size = known.capacity if capacity is None else pruned(capacity)
    # The partition is an attribute that no later report changes.
    own = {it: text for it, text in known.attributes.items() if it == NODE_PARTITION}
    now = known.attributes if attributes is None else {**attributes, **own}
    if not _agree(now, size):
        return before
    return known._replace(
        capacity=size,
        occupied=known.occupied if occupied is None else pruned(occupied),
        attributes=now,
        # Another word than true or false says nothing.
        ready=_READY.get((attributes or {}).get(NODE_READY_ATTRIBUTE, "").lower(), known.ready),
    )


def _agree(attributes: dict[str, str], capacity: _Amounts) -> bool:
    """Whether a node has a thousand of its devices for each that it tells of, if of any."""
    text = attributes.get(GPU_DEVICES)
    if text is None:
        return True
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(DEVICES_MAX))
    return is_number and capacity.get(GPU, 0) == int(text) * WHOLE


_FINAL: Final = frozenset(state.value for state in FINISHED)
ENDING: Final = _FINAL | {ApplicationState.FAILING.value}
Name = tuple[str, str, str]
"""Partition, application and key of an ask."""


class Wanted(NamedTuple):
    """What an ask or a report says of an allocation, but for its size."""

    priority: int
    task_group: str
    placeholder: bool
    originator: bool
    allow_preempt_self: bool
    allow_preempt_other: bool
    tags: dict[str, str]


class Requested:
    """All that was requested under one key."""

    __slots__ = (
        "by_list", "by_node", "is_repeated", "later", "main", "nodes", "rejected_later",
        "rejected_main", "sizes", "was_placed", "ways",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ways: list[Wanted] = []
        self.sizes: list[dict[str, int]] = []
        self.main = self.later = 0
        """How often it was requested in each form of the interface."""
        self.rejected_main = self.rejected_later = 0
        self.by_list = self.by_node = False
        """Whether it was reported as running, and in which form."""
        self.nodes: dict[str, None] = {}
        """On which it was reported in the later form."""
        self.is_repeated = False
        self.was_placed = False

    def note(self, way: Wanted, size: dict[str, int]) -> None:
        # Only the last one of its kind: asking for the same again says nothing new.
        if not self.ways or self.ways[-1] != way:
            self.ways.append(way)
        if not self.sizes or self.sizes[-1] != size:
            self.sizes.append(size)


class ApplicationKnown:
    __slots__ = (
        "accepted", "at_ns", "is_there", "is_unsure", "partitions", "queue", "rejected",
        "requested", "state", "unanswered",
    )  # fmt: skip

    def __init__(self) -> None:
        self.requested = self.accepted = self.rejected = 0
        self.partitions: dict[str, None] = {}
        self.queue = ""
        self.state = ApplicationState.NEW.value
        """Of which it was notified last."""
        self.at_ns = 0
        """When it came into that."""
        self.is_there = False
        """After what was answered: accepted, and not removed since."""
        self.is_unsure = False
        """Its partition has ended meanwhile."""
        self.unanswered: deque[bool] = deque()
        """Whether it was added or removed, from the first addition that is not answered yet."""

    @property
    def is_gone(self) -> bool:
        return not (self.is_there or self.unanswered)

    def request(self, *, is_added: bool) -> None:
        self.requested += is_added
        # Before any addition that is unanswered, a removal counts at once.
        if is_added or self.unanswered:
            self.unanswered.append(is_added)
        else:
            self.is_there = False

    def answer(self, *, is_accepted: bool) -> None:
        """Answers come in the order of the additions; a removal counts behind those before it."""
        self.accepted += is_accepted
        self.rejected += not is_accepted
        if self.unanswered:
            self.unanswered.popleft()
        self.is_there |= is_accepted
        # Removals behind the answered addition take it away again.
        while self.unanswered and not self.unanswered[0]:
            self.unanswered.popleft()
            self.is_there = False


class NodeKnown:
    __slots__ = (
        "accepted", "is_gone", "is_operated", "now", "partition", "rejected", "reported",
        "requested", "was_removed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.requested = self.accepted = self.rejected = 0
        self.now = NEW
        """What it is by all reports."""
        self.is_operated = False
        """Whether an operator has drained it, or let it work again, perhaps after any report."""
        self.was_removed = False
        self.partition = ""
        self.is_gone = False
        """It was removed, or may have been: there is nothing to compare."""
        self.reported: list[str] = []
        """UUIDs that came with it."""

    def describe(self, info: si.NodeInfo, *, is_new: bool) -> None:
        """Take in what a report says of it; what it does not name stays."""
        before = None if is_new else self.now
        capacity, occupied = info.schedulable_resource, info.occupied_resource
        said = described(
            before, amounts_in(capacity), amounts_in(occupied), info.attributes or None
        )
        self.now = said or self.now


class Touched:
    """Things that were requested or notified since the last comparison."""

    __slots__ = ("applications", "asks", "nodes", "uuids")

    def __init__(self) -> None:
        self.uuids: dict[str, None] = {}
        self.asks: dict[Name, None] = {}
        self.applications: dict[str, None] = {}
        self.nodes: dict[str, None] = {}


def amounts_in(resource: si.Resource | None) -> dict[str, int] | None:
    return None if resource is None else resource.amounts()


def means(request: Name, name: Name) -> bool:
    """Whether a request means this; it need not name the application and the key."""
    partition, application_id, key = request
    return name[0] == partition and application_id in {"", name[1]} and key in {"", name[2]}


class RmKnowledge:
    """What one registration of a resource manager can know, and nothing else.

    Requests are noted in the moment in which they are sent (`rm_requests`), notifications as they
    arrive (`rm_notifications`); `rm_comparison` compares it with the truth.
    """

    def __init__(self, rm_id: str, *, takes_states: bool, was_restored: bool) -> None:
        self.rm_id = rm_id
        self.owed: Owed | None = None
        """Made from the facts, where these are followed."""
        self.takes_states = takes_states
        self.was_restored = was_restored
        self.running: dict[str, Placed] = {}
        """What it was notified of, or reported, and has not ended."""
        self.asks: dict[Name, Requested] = {}
        self.partitions_of: dict[tuple[str, str], tuple[str, ...]] = {}
        """By application and key: an answer does not name the partition."""
        self.wanted: dict[Name, None] = {}
        """Asks of which something has to be heard, or that wait."""
        self.taken_back: dict[Name, None] = {}
        """Asks that it has withdrawn by their key, and not made again since."""
        self.applications: dict[str, ApplicationKnown] = {}
        self.nodes: dict[str, NodeKnown] = {}
        self.states: dict[tuple[str, str], str] = {}
        """Of asks, by application and key: the container state that was notified last."""
        self.placed: dict[str, list[str]] = {}
        """The nodes on which each UUID was announced."""
        self.by_report: dict[str, None] = {}
        """UUIDs that run because it reported them, whatever was announced and has ended before."""
        self.reports: dict[str, list[str]] = {}
        """On which nodes each UUID was reported: it runs where a report was taken first."""
        self.misnamed: Counter[str] = Counter()
        """Reports under another name than that under which the UUID runs."""
        self.ends: dict[str, list[TerminationType]] = {}
        """By UUID, the releases that were notified."""
        self.given_back: dict[str, None] = {}
        """What it ended by UUID and has not reported since; to announce it then changes nothing."""
        self.ended_by_name: dict[Name, None] = {}
        """What it ended by name, also what is on its way; application and key may be empty."""
        self.guessed: dict[str, None] = {}
        """UUIDs that it has ended before it could know of them."""
        self.wished: dict[Name | str, None] = {}
        """What may end because it has asked for it at some time: UUIDs, and names as above."""
        self.ended_first: dict[str, None] = {}
        """What one request has reported and ended: its end comes before its announcement."""
        self.unsure: dict[str, None] = {}
        """UUIDs that such a release may have meant, and of whose end it is not notified."""
        self.unsure_asks: dict[Name, None] = {}
        """Asks that went with their partition, if they were not meant for the next one."""
        self.touched = Touched()

    def is_of(self, name: Name, item: Placed) -> bool:
        """Whether a request means this allocation; a request may leave names out."""
        return means(
            name, (partition_name(self.rm_id, item.partition), item.application_id, item.key)
        )

    def want_no_more(self, partition: str, application_id: str, key: str) -> None:
        if application_id and key:
            self.wanted.pop((partition, application_id, key), None)
            return
        for name in tuple(self.wanted):
            if means((partition, application_id, key), name):
                del self.wanted[name]

    def requested(self, name: Name) -> Requested:
        asked = self.asks.get(name)
        # Asked for again, it is wanted again.
        self.taken_back.pop(name, None)
        if asked is None:
            asked = self.asks[name] = Requested()
            if self.was_restored:
                # What it has asked a core before this one for may be announced before it asks.
                asked.was_placed = any(self.is_of(name, it) for it in self.running.values())
            partition, application_id, key = name
            partitions = self.partitions_of.get((application_id, key), ())
            self.partitions_of[application_id, key] = (*partitions, partition)
        return asked

    def application(self, id_: str) -> ApplicationKnown:
        self.touched.applications[id_] = None
        app = self.applications.get(id_)
        if app is None:
            app = self.applications[id_] = ApplicationKnown()
        return app

    def node(self, id_: str) -> NodeKnown:
        self.touched.nodes[id_] = None
        node = self.nodes.get(id_)
        if node is None:
            node = self.nodes[id_] = NodeKnown()
        return node

    def is_wished(self, item: Ended | Placed, running: Placed) -> bool:
        """Whether it has ended this by name, or what it is a part of, as far as the facts tell."""
        partition, app_id = partition_name(self.rm_id, item.partition), item.application_id
        names = (app_id, item.key), (app_id, ""), ("", item.key), ("", "")
        # Of what was announced and several reports the core goes by one.
        uuid = item.uuid
        places = (running.node_id, *self.placed.get(uuid, ()), *self.reports.get(uuid, ()))
        nodes = [self.nodes.get(it) for it in places]
        return (
            self.owed is None
            or (partition, app_id) in self.owed.removed
            or item.uuid in self.wished
            or any(node is None or node.was_removed for node in nodes)
            or any((partition, *it) in self.wished for it in names)
        )

    def lives(self, uuid: str) -> int:
        return 1 + len(self.reports.get(uuid, ()))
