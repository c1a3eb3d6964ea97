"""What a resource manager has requested and was notified of, compared with the truth.

A resource manager knows nothing but that, so neither does its record. Three rules hold:

- Each request has the answers that it is owed: once, in the form in which it was made, and with
  what was requested in them (G25).
- Each notification suits what was requested and notified before it (G13 to G16, G27); where the
  facts of the truth can be followed, it is what they owe (`checks/owed.py`).
- When nothing is on its way, what the record holds and what the truth holds are the same, in both
  directions and field by field (G16, G28).

A rule that is broken is described by its invariant, the resource manager, the thing, and both
values.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from yunikorn_actors import si
from yunikorn_actors.checks.node_reports import NEW, described
from yunikorn_actors.checks.notices import (
    ApplicationAccepted,
    ApplicationIs,
    ApplicationRefused,
    AskIs,
    Ended,
    NodeAccepted,
    Notice,
    Placed,
    Thing,
    Withdrawn,
    difference,
    ended_in,
    placed_by,
    placed_in,
    without_devices,
)
from yunikorn_actors.checks.owed import Owed
from yunikorn_actors.state.allocations import Allocation, WaitingState
from yunikorn_actors.state.applications import FINISHED, Application, ApplicationState
from yunikorn_actors.state.facts import AdministratorActed, Fact
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.termination import ASKED_BACK, TerminationType
from yunikorn_actors.values.ids import partition_name, short_partition_name
from yunikorn_actors.values.tags import NODE_PARTITION, TAG_FOREIGN

_T = TerminationType
_CREATES: Final = frozenset({si.ActionFromRM.CREATE, si.ActionFromRM.CREATE_DRAIN})
_DRAINS: Final = {
    si.ActionFromRM.DRAIN_NODE: True,
    si.ActionFromRM.DRAIN_TO_SCHEDULABLE: False,
}
"""Other words mean nothing."""
_BY_WISH: Final = frozenset(
    {_T.UNKNOWN_TERMINATION_TYPE, _T.STOPPED_BY_RM, _T.SCHEDULING_FAILED_ON_RM}
)
"""Releases of these types are echoed; the others confirm what the core has asked back."""
_TAKES_THE_ASK: Final = _BY_WISH | {_T.PREEMPTED_BY_SCHEDULER}
"""By key, such a release means what waits of the ask as well."""
_FINAL: Final = frozenset(state.value for state in FINISHED)
_ENDING: Final = _FINAL | {ApplicationState.FAILING.value}

Name = tuple[str, str, str]
"""Partition, application and key of an ask."""
States = Mapping[str, PartitionState]
"""The partitions of the resource manager, by their full names."""


class _Wanted(NamedTuple):
    """What an ask or a report says of an allocation, but for its size."""

    priority: int
    task_group: str
    placeholder: bool
    originator: bool
    allow_preempt_self: bool
    allow_preempt_other: bool
    tags: dict[str, str]


class _Requested:
    """All that was requested under one key."""

    __slots__ = (
        "by_list", "by_node", "is_repeated", "later", "main", "nodes", "rejected_later",
        "rejected_main", "sizes", "was_placed", "ways",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ways: list[_Wanted] = []
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

    def note(self, way: _Wanted, size: dict[str, int]) -> None:
        if not self.ways or self.ways[-1] != way:
            self.ways.append(way)
        if not self.sizes or self.sizes[-1] != size:
            self.sizes.append(size)


class _Application:
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
        while self.unanswered and not self.unanswered[0]:
            self.unanswered.popleft()
            self.is_there = False


class _Node:
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
        said = described(before, _amounts(capacity), _amounts(occupied), info.attributes or None)
        self.now = said or self.now


class _Touched:
    """Things that were requested or notified since the last comparison."""

    __slots__ = ("applications", "asks", "nodes", "uuids")

    def __init__(self) -> None:
        self.uuids: dict[str, None] = {}
        self.asks: dict[Name, None] = {}
        self.applications: dict[str, None] = {}
        self.nodes: dict[str, None] = {}


class RmRecord:
    """The record of one registration of a resource manager."""

    def __init__(
        self,
        rm_id: str,
        *,
        takes_states: bool = False,
        follows_facts: bool = False,
        was_restored: bool = False,
        others: Mapping[str, "RmRecord"] = MappingProxyType({}),
    ) -> None:
        """With `follows_facts` every notification has to be owed by a fact given to `follow`.

        A resource manager of a core that was restored is not notified again of what it knew. What
        is not owed may be owed to one of the others.
        """
        self.rm_id = rm_id
        self.owed: Owed | None = None
        if follows_facts:
            self.owed = Owed(rm_id, self, takes_states=takes_states)
        self._takes_states = takes_states
        self._others = others
        self.running: dict[str, Placed] = {}
        """What it was notified of, or reported, and has not ended."""
        self._was_restored = was_restored
        self._asks: dict[Name, _Requested] = {}
        self._partitions_of: dict[tuple[str, str], tuple[str, ...]] = {}
        """By application and key: an answer does not name the partition."""
        self._wanted: dict[Name, None] = {}
        """Asks of which something has to be heard, or that wait."""
        self._taken_back: dict[Name, None] = {}
        """Asks that it has withdrawn by their key, and not made again since."""
        self._applications: dict[str, _Application] = {}
        self._nodes: dict[str, _Node] = {}
        self._states: dict[tuple[str, str], str] = {}
        """Of asks, by application and key: the container state that was notified last."""
        self._placed: dict[str, list[str]] = {}
        """The nodes on which each UUID was announced."""
        self._by_report: dict[str, None] = {}
        """UUIDs that run because it reported them, whatever was announced and has ended before."""
        self._reports: dict[str, list[str]] = {}
        """On which nodes each UUID was reported: it runs where a report was taken first."""
        self._misnamed: Counter[str] = Counter()
        """Reports under another name than that under which the UUID runs."""
        self._ends: dict[str, list[TerminationType]] = {}
        """By UUID, the releases that were notified."""
        self._given_back: dict[str, None] = {}
        """What it ended by UUID and has not reported since; to announce it then changes nothing."""
        self._ended_by_name: dict[Name, None] = {}
        """What it ended by name, also what is on its way; application and key may be empty."""
        self._guessed: dict[str, None] = {}
        """UUIDs that it has ended before it could know of them."""
        self._wished: dict[Name | str, None] = {}
        """What may end because it has asked for it at some time: UUIDs, and names as above."""
        self._ended_first: dict[str, None] = {}
        """What one request has reported and ended: its end comes before its announcement."""
        self._unsure: dict[str, None] = {}
        """UUIDs that such a release may have meant, and of whose end it is not notified."""
        self._unsure_asks: dict[Name, None] = {}
        """Asks that went with their partition, if they were not meant for the next one."""
        self._touched = _Touched()

    # -- the truth as it comes about

    def follow(self, partition: str, facts: Iterable[Fact], turn: int) -> None:
        """Take in facts that Context recorded in this turn."""
        if self.owed is not None:
            self.owed.follow(partition, facts, turn)
        for fact in facts:
            if isinstance(fact, AdministratorActed) and fact.node_id in self._nodes:
                self._nodes[fact.node_id].is_operated |= True

    def partition_ended(self, partition: str) -> None:
        """A configuration does without it, and all that was in it goes without an answer.

        What was requested meanwhile may be meant for one that comes again under this name.
        """
        for node in self._nodes.values():
            node.is_gone |= node.partition == partition
        for name in self._asks:
            if name[0] == partition:
                self._unsure_asks[name] = None
        for app in self._applications.values():
            app.is_unsure |= partition in app.partitions

    def owner_of(self, thing: Thing) -> str:
        """Name another resource manager to which this is owed; empty if none is."""
        for other in self._others.values():
            if other is not self and other.owed is not None and other.owed.owes(thing):
                return other.rm_id
        return ""

    def is_announced(self, partition: str, application_id: str, key: str) -> bool | None:
        """Whether work that it reported is announced to it; None if it was reported both ways."""
        asked = self._asks.get((partition, application_id, key))
        if asked is None or asked.by_list is asked.by_node:
            return None
        return asked.by_list

    # -- what it requests

    def requested(self, request: object) -> None:
        """Note a request, in the moment in which it is sent."""
        note = _REQUESTS.get(type(request))
        if note is not None:
            note(self, request)

    def _request_applications(self, request: si.ApplicationRequest) -> None:
        for new in request.new:
            app = self._application(new.application_id)
            app.request(is_added=True)
            app.partitions[partition_name(self.rm_id, new.partition_name)] = None
        for old in request.remove:
            id_ = old.application_id
            partition = partition_name(self.rm_id, old.partition_name)
            self._wished[partition, id_, ""] = None
            self._want_no_more(partition, id_, "")
            known = self._applications.get(id_)
            # In another partition there is nothing to remove.
            if known is not None and partition in known.partitions:
                self._application(id_).request(is_added=False)

    def _request_nodes(self, request: si.NodeRequest) -> None:
        for info in request.nodes:
            partition = partition_name(self.rm_id, info.attributes.get(NODE_PARTITION, ""))
            if info.action in _CREATES:
                node = self._node(info.node_id)
                node.requested += 1
                node.partition = partition
                node.is_gone = node.requested > 1
                node.describe(info, is_new=True)
                drained = info.action is si.ActionFromRM.CREATE_DRAIN
                node.now = node.now._replace(drained=drained)
                for item in info.existing_allocations:
                    self._report(partition, item, info.node_id)
                    if item.uuid:
                        node.reported.append(item.uuid)
            elif info.node_id in self._nodes:
                self._about_node(self._node(info.node_id), partition, info)

    def _about_node(self, node: _Node, partition: str, info: si.NodeInfo) -> None:
        if info.action is si.ActionFromRM.DECOMISSION:
            node.is_gone = node.was_removed = True
        elif partition == node.partition and info.action is si.ActionFromRM.UPDATE:
            node.describe(info, is_new=False)
        elif partition == node.partition and info.action in _DRAINS:
            node.now = node.now._replace(drained=_DRAINS[info.action])

    def _request_configuration(self, _: object) -> None:
        """A partition that leaves takes its nodes with it, and nobody is notified of that."""
        if self.owed is not None:
            # Who follows the facts says which partition has ended.
            return
        for id_, node in self._nodes.items():
            node.is_gone = True
            self._touched.nodes[id_] = None

    def _request_allocations(self, request: si.AllocationRequest) -> None:
        rm_id = self.rm_id
        for ask in request.asks:
            name = (
                partition_name(rm_id, ask.partition_name), ask.application_id, ask.allocation_key,
            )  # fmt: skip
            is_placeholder = ask.placeholder and bool(ask.task_group_name)
            asked = self._asked(name)
            asked.main += 1
            self._ask(
                name, asked, ask.resource_ask, ask.max_allocations,
                _Wanted(
                    ask.priority, ask.task_group_name, is_placeholder,
                    ask.originator and not is_placeholder,
                    *_preemption(ask.preemption_policy, ask.tags), without_devices(ask.tags),
                ),
            )  # fmt: skip
        for item in request.allocations:
            partition = partition_name(rm_id, item.partition_name)
            if TAG_FOREIGN in item.allocation_tags:
                self._asked((partition, item.application_id, item.allocation_key)).later += 1
            elif item.node_id:
                self._report(partition, item, "")
            else:
                name = (partition, item.application_id, item.allocation_key)
                asked = self._asked(name)
                asked.later += 1
                self._ask(name, asked, item.resource_per_alloc, 1, _wanted(item))
        releases = request.releases
        if releases is not None:
            for gone in releases.allocation_asks_to_release:
                partition = partition_name(rm_id, gone.partition_name)
                app_id, key = gone.application_id, gone.allocation_key
                self._want_no_more(partition, app_id, key)
                if key:
                    self._wished[partition, app_id, key] = None
                if app_id and key:
                    self._taken_back[partition, app_id, key] = None
                    self._touched.asks[partition, app_id, key] = None
            for end in releases.allocations_to_release:
                self._release(end)

    def _ask(
        self, name: Name, asked: _Requested, size: si.Resource | None, repeats: int, way: _Wanted
    ) -> None:
        asked.note(way, {} if size is None else size.amounts())
        asked.is_repeated |= repeats > 1
        # With repeats a resource manager cannot know how many are left to place.
        if not (asked.is_repeated and asked.was_placed):
            self._wanted[name] = None
            self._touched.asks[name] = None

    def _report(self, partition: str, item: si.Allocation, node_id: str) -> None:
        """Note work that runs; with its node it is in the main form, and is not announced."""
        name = (partition, item.application_id, item.allocation_key)
        asked = self._asked(name)
        resource = item.resource_per_alloc
        asked.note(_wanted(item), {} if resource is None else resource.amounts())
        if node_id:
            asked.main += 1
            asked.by_node = True
        else:
            asked.later += 1
            asked.by_list = True
            asked.nodes[item.node_id] = None
        self._touched.asks[name] = None
        if item.uuid:
            uuid = item.uuid
            placed = placed_in(item)._replace(
                node_id=node_id or item.node_id, partition=short_partition_name(partition)
            )
            running = self.running.get(uuid)
            self._reports.setdefault(uuid, []).append(placed.node_id)
            self._given_back.pop(uuid, None)
            if running is None:
                self._by_report[uuid] = None
            if running is None or running[1:4] == placed[1:4]:
                self.running[uuid] = placed
            elif running.partition == placed.partition and not self._is_wished(running, running):
                # A UUID that runs under another name is refused; each partition knows its own.
                self._misnamed[uuid] += 1
            self._touched.uuids[uuid] = None

    def _release(self, end: si.AllocationRelease) -> None:
        partition, key = partition_name(self.rm_id, end.partition_name), end.allocation_key
        by_wish = end.termination_type in _BY_WISH
        self._wished[end.uuid or (partition, end.application_id, key)] = None
        if key and not end.uuid and end.termination_type in _TAKES_THE_ASK:
            self._want_no_more(partition, end.application_id, key)
        if not end.uuid:
            name = (partition, end.application_id, key)
            self._ended_by_name[name] = None
            if not by_wish:
                mine = (it for it, item in self.running.items() if self._is_of(name, item))
                self._unsure.update(dict.fromkeys(mine))
                self._ended_unanswered(partition, end.application_id, key)
            return
        running = self.running.get(end.uuid)
        if running is not None and not self._is_of((partition, end.application_id, ""), running):
            return
        if running is None and end.uuid not in self._placed and end.uuid not in self._reports:
            # It cannot know that name: what has it, if anything has, is given back or not.
            self._guessed[end.uuid] = None
            return
        self._given_back[end.uuid] = None
        self._touched.uuids[end.uuid] = None
        if not by_wish:
            self.running.pop(end.uuid, None)
            # If it was asked for again while it ran, that changed nothing.
            named = end if running is None else running
            app_id, key = named.application_id, key if running is None else running.key
            self._wanted.pop((partition, app_id, key), None)

    def _ended_unanswered(self, partition: str, application_id: str, key: str) -> None:
        """What is known to have run may have ended: nothing is heard of that.

        To have asked for it again while it ran, or to have reported it, changes nothing. A core
        that was restored may have placed it before it was asked again, and announced it to nobody.
        """
        for name in tuple(self._wanted):
            asked = self._asks[name]
            has_run = asked.was_placed or asked.by_node or asked.by_list or self._was_restored
            if has_run and _means((partition, application_id, key), name):
                del self._wanted[name]

    def _is_of(self, name: Name, item: Placed) -> bool:
        """Whether an allocation is one of those that a request means; it need not name all."""
        return _means(
            name, (partition_name(self.rm_id, item.partition), item.application_id, item.key)
        )

    def _want_no_more(self, partition: str, application_id: str, key: str) -> None:
        if application_id and key:
            self._wanted.pop((partition, application_id, key), None)
            return
        for name in tuple(self._wanted):
            if _means((partition, application_id, key), name):
                del self._wanted[name]

    def _asked(self, name: Name) -> _Requested:
        asked = self._asks.get(name)
        self._taken_back.pop(name, None)
        if asked is None:
            asked = self._asks[name] = _Requested()
            if self._was_restored:
                # What it has asked a core before this one for may be announced before it asks.
                asked.was_placed = any(self._is_of(name, it) for it in self.running.values())
            partition, application_id, key = name
            partitions = self._partitions_of.get((application_id, key), ())
            self._partitions_of[application_id, key] = (*partitions, partition)
        return asked

    def _application(self, id_: str) -> _Application:
        self._touched.applications[id_] = None
        app = self._applications.get(id_)
        if app is None:
            app = self._applications[id_] = _Application()
        return app

    def _node(self, id_: str) -> _Node:
        self._touched.nodes[id_] = None
        node = self._nodes.get(id_)
        if node is None:
            node = self._nodes[id_] = _Node()
        return node

    # -- what it is notified of

    def notified(self, response: object) -> list[str]:
        """Note what arrives at the callback, and return what is wrong with it."""
        note = _RESPONSES.get(type(response))
        return [] if note is None else note(self, response)

    def _fault(self, invariant: str, notice: Notice, wrong: str) -> str:
        return f"{invariant}: {self.rm_id} was notified of {notice.what}: {wrong}"

    def _unasked(self, notice: Notice, faults: list[str]) -> None:
        """What it has asked a core before this one for may be answered by this one."""
        if not self._was_restored:
            faults.append(self._fault("G16", notice, "it has not asked for that"))

    def _notify_allocations(self, response: si.AllocationResponse) -> list[str]:
        faults: list[str] = []
        for refused in response.rejected:
            faults.extend(self._rejected(refused, later_form=False))
        for later in response.rejected_allocations:
            faults.extend(self._rejected(later, later_form=True))
        for gone in response.released_asks:
            notice = Withdrawn(
                gone.allocation_key, gone.application_id, gone.partition_name,
                gone.termination_type, gone.message, later_form=False,
            )  # fmt: skip
            faults.extend(self._withdrawn(notice))
        for release in response.released:
            if release.uuid:
                faults.extend(self._ended(ended_in(release)))
            else:
                notice = Withdrawn(
                    release.allocation_key, release.application_id, release.partition_name,
                    release.termination_type, release.message, later_form=True,
                )  # fmt: skip
                faults.extend(self._withdrawn(notice))
        for item in response.new:
            faults.extend(self._new(placed_in(item)))
        return faults

    def _new(self, notice: Placed) -> list[str]:
        faults = [] if self.owed is None else self.owed.take(notice)
        uuid, app_id, key = notice.uuid, notice.application_id, notice.key
        name = (partition_name(self.rm_id, notice.partition), app_id, key)
        asked = self._asks.get(name)
        if asked is None:
            self._unasked(notice, faults)
        else:
            asked.was_placed = True
            # A core before this one may have been asked in another way.
            wrong = "" if self._was_restored else _unlike(notice, asked)
            if wrong:
                faults.append(self._fault("G16", notice, wrong))
        announced = self._placed.setdefault(uuid, [])
        before = len(announced)
        announced.append(notice.node_id)
        if before >= self._lives(uuid):
            faults.append(self._fault("G16", notice, f"it was announced {before} times before"))
        app = self._applications.get(app_id)
        if not self._was_restored and (app is None or not app.accepted):
            faults.append(self._fault("G27", notice, f"{app_id} was not accepted before"))
        # A core that was restored knows the node and takes work that is reported there first.
        is_reported = self._was_restored and asked is not None and notice.node_id in asked.nodes
        if notice.node_id not in self._nodes and not is_reported and not faults:
            faults.append(self._fault("G16", notice, f"node {notice.node_id} is none of its own"))
        self._wanted.pop(name, None)
        self._by_report.pop(uuid, None)
        self._touched.uuids[uuid] = self._touched.asks[name] = None
        if uuid in self._ended_first:
            del self._ended_first[uuid]
        elif uuid not in self._given_back:
            self.running[uuid] = notice
            was_named = any(self._is_of(it, notice) for it in self._ended_by_name)
            if was_named or uuid in self._guessed:
                self._unsure[uuid] = None
        return faults

    def _ended(self, notice: Ended) -> list[str]:
        """An allocation is asked back once at most in each of its lives, and then stopped (G13)."""
        faults = [] if self.owed is None else self.owed.take(notice)
        uuid, type_ = notice.uuid, notice.type
        ends = self._ends.setdefault(uuid, [])
        ends.append(type_)
        if not notice.message:
            faults.append(self._fault(notice.invariant, notice, "there is no reason"))
        if not _may_follow(ends, self._lives(uuid)):
            invariant = "G13" if type_ in ASKED_BACK else "G15"
            before = ", ".join(it.name for it in ends[:-1])
            faults.append(self._fault(invariant, notice, f"it was released before: {before}"))
        running = self.running.get(uuid)
        if (
            type_ is _T.STOPPED_BY_RM
            and running is not None
            and not self._is_wished(notice, running)
        ):
            faults.append(self._fault("G15", notice, "it has not ended that, nor removed its node"))
        if running is not None and self._lives(uuid) == 1:
            was = (running.key, running.application_id, running.partition)
            if was != notice[1:4]:
                faults.append(self._fault("G16", notice, f"it was announced as {was}"))
        if type_ is _T.STOPPED_BY_RM:
            self.running.pop(uuid, None)
            if ends.count(_T.STOPPED_BY_RM) > len(self._placed.get(uuid, ())):
                self._ended_first[uuid] = None
            partition = partition_name(self.rm_id, notice.partition)
            self._wanted.pop((partition, notice.application_id, notice.key), None)
        self._touched.uuids[uuid] = None
        return faults

    def _is_wished(self, item: Ended | Placed, running: Placed) -> bool:
        """Whether it has ended this by name, or what it is a part of, as far as the facts tell."""
        partition, app_id = partition_name(self.rm_id, item.partition), item.application_id
        names = (app_id, item.key), (app_id, ""), ("", item.key), ("", "")
        # Of what was announced and several reports the core goes by one.
        uuid = item.uuid
        places = (running.node_id, *self._placed.get(uuid, ()), *self._reports.get(uuid, ()))
        nodes = [self._nodes.get(it) for it in places]
        return (
            self.owed is None
            or (partition, app_id) in self.owed.removed
            or item.uuid in self._wished
            or any(node is None or node.was_removed for node in nodes)
            or any((partition, *it) in self._wished for it in names)
        )

    def _lives(self, uuid: str) -> int:
        return 1 + len(self._reports.get(uuid, ()))

    def _withdrawn(self, notice: Withdrawn) -> list[str]:
        faults = [] if self.owed is None else self.owed.take(notice)
        name = (
            partition_name(self.rm_id, notice.partition), notice.application_id, notice.key,
        )  # fmt: skip
        asked = self._asks.get(name)
        if asked is None:
            self._unasked(notice, faults)
        elif not (asked.later if notice.later_form else asked.main):
            faults.append(self._fault("G25", notice, "it was asked for in the other form"))
        if notice.type is not _T.TIMEOUT:
            faults.append(self._fault("G11", notice, f"type is {notice.type.name}, not TIMEOUT"))
        self._wanted.pop(name, None)
        return faults

    def _rejected(
        self, item: si.RejectedAllocationAsk | si.RejectedAllocation, *, later_form: bool
    ) -> list[str]:
        """An answer does not name the partition, so it counts for all that have such an ask."""
        app_id, key = item.application_id, item.allocation_key
        what = f"G25: {self.rm_id} was notified of the rejection of {key} of {app_id}"
        names = [(it, app_id, key) for it in self._partitions_of.get((app_id, key), ())]
        if not names:
            return [f"{what}: it has not asked for that"]
        faults = [] if item.reason else [f"{what}: there is no reason"]
        requested = rejected = 0
        for name in names:
            asked = self._asks[name]
            requested += asked.later if later_form else asked.main
            if later_form:
                asked.rejected_later += 1
                rejected = max(rejected, asked.rejected_later)
            else:
                asked.rejected_main += 1
                rejected = max(rejected, asked.rejected_main)
            if name in self._wanted:
                del self._wanted[name]
            self._touched.asks[name] = None
        if not requested:
            faults.append(f"{what}: it was asked for in the other form")
        elif rejected > requested:
            faults.append(f"{what}: it was asked for {requested} times and rejected {rejected}")
        for uuid, placed in tuple(self.running.items()) if any(map(self._is_report, names)) else ():
            # What was refused does not run, unless it did before it was reported.
            is_it = placed.key == key and placed.application_id == app_id
            if is_it and uuid in self._by_report:
                del self.running[uuid]
        return faults

    def _is_report(self, name: Name) -> bool:
        asked = self._asks[name]
        return asked.by_list or asked.by_node

    def _notify_applications(self, response: si.ApplicationResponse) -> list[str]:
        faults: list[str] = []
        for refused in response.rejected:
            faults.extend(self._application_answered(
                ApplicationRefused(refused.application_id, refused.reason)
            ))  # fmt: skip
        for accepted in response.accepted:
            faults.extend(self._application_answered(
                ApplicationAccepted(
                    accepted.application_id, accepted.queue, accepted.by_last_resort
                )
            ))  # fmt: skip
        for item in response.updated:
            notice = ApplicationIs(
                item.application_id, item.state, item.state_transition_timestamp, item.message
            )
            faults.extend(self._application_is(notice))
        return faults

    def _application_answered(self, notice: ApplicationAccepted | ApplicationRefused) -> list[str]:
        faults = [] if self.owed is None else self.owed.take(notice)
        app = self._application(notice.application_id)
        app.answer(is_accepted=isinstance(notice, ApplicationAccepted))
        if isinstance(notice, ApplicationAccepted):
            app.queue, app.state, app.at_ns = notice.queue, ApplicationState.NEW.value, 0
        answered = app.accepted + app.rejected
        if answered > app.requested:
            wrong = f"it was asked for {app.requested} times and answered {answered}"
            faults.append(self._fault("G25", notice, wrong))
        return faults

    def _application_is(self, notice: ApplicationIs) -> list[str]:
        faults = [] if self.owed is None else self.owed.take(notice)
        id_ = notice.application_id
        app = self._application(id_)
        if not self._was_restored and not app.accepted + app.rejected:
            faults.append(self._fault("G27", notice, f"{id_} was not answered before"))
        app.state, app.at_ns = notice.state, notice.at_ns
        if notice.state in _ENDING:
            # It takes no asks any more: those that wait have gone with it, or are rejected.
            for partition in app.partitions:
                self._want_no_more(partition, id_, "")
        return faults

    def _notify_nodes(self, response: si.NodeResponse) -> list[str]:
        faults: list[str] = []
        for refused in response.rejected:
            node = self._node(refused.node_id)
            node.rejected += 1
            # Whether what came with it was taken depends on which of several it was.
            node.is_gone = node.is_gone or node.requested > 1 or not node.accepted
            for uuid in node.reported:
                if uuid in self._by_report:
                    self.running.pop(uuid, None)
            if not refused.reason:
                what = f"the rejection of node {refused.node_id}"
                faults.append(f"G25: {self.rm_id} was notified of {what}: there is no reason")
            faults.extend(self._node_answered(refused.node_id, node))
        for accepted in response.accepted:
            if self.owed is not None:
                faults.extend(self.owed.take(NodeAccepted(accepted.node_id)))
            node = self._node(accepted.node_id)
            node.accepted += 1
            faults.extend(self._node_answered(accepted.node_id, node))
        return faults

    def _node_answered(self, id_: str, node: _Node) -> list[str]:
        answered = node.accepted + node.rejected
        if answered <= node.requested:
            return []
        what = f"it was asked for {node.requested} times and answered {answered}"
        return [f"G25: {self.rm_id} was notified of an answer to node {id_}: {what}"]

    def _notify_state(self, request: si.UpdateContainerSchedulingStateRequest) -> list[str]:
        notice = AskIs(
            request.application_id, request.allocation_key, request.state.name, request.reason
        )
        faults = [] if self.owed is None else self.owed.take(notice)
        name = (notice.application_id, notice.key)
        if name not in self._partitions_of:
            self._unasked(notice, faults)
        elif not notice.reason and notice.state != WaitingState.SCHEDULED.value:
            faults.append(self._fault("G27", notice, "there is no reason"))
        self._touched.asks.update(((it, *name), None) for it in self._partitions_of.get(name, ()))
        self._states[name] = notice.state
        return faults

    # -- the record and the truth, when nothing is on its way

    def settled(self, states: States) -> list[str]:
        """Compare what has been touched since the last time."""
        faults = [] if self.owed is None else self.owed.missing()
        touched, self._touched = self._touched, _Touched()
        if self.owed is not None:
            touched.uuids.update(dict.fromkeys(self.owed.placed))
            self.owed.placed.clear()
        faults.extend(
            self._compared(states, touched.uuids, touched.asks, touched.applications, touched.nodes)
        )
        return faults

    def differences(self, states: States) -> list[str]:
        """Compare all that either of the two holds."""
        faults = [] if self.owed is None else self.owed.missing()
        uuids = dict.fromkeys(self.running)
        asks = dict.fromkeys(self._wanted)
        nodes = dict.fromkeys(self._nodes)
        for name, state in states.items():
            uuids.update(dict.fromkeys(state.owners))
            nodes.update(dict.fromkeys(state.nodes))
            asks.update(
                dict.fromkeys(
                    (name, id_, k) for id_, a in state.applications.items() for k in a.asks
                )
            )
        apps = dict.fromkeys(self._applications)
        faults.extend(self._compared(states, uuids, asks, apps, nodes))
        return faults

    def _compared(
        self,
        states: States,
        uuids: Iterable[str],
        asks: Iterable[Name],
        apps: Iterable[str],
        nodes: Iterable[str],
    ) -> Iterator[str]:
        for uuid in uuids:
            yield from self._compare_allocation(states, uuid)
        for name in asks:
            yield from self._compare_ask(states, name)
        for id_ in apps:
            yield from self._compare_application(states, id_)
        for id_ in nodes:
            yield from self._compare_node(states, id_)

    def _compare_allocation(self, states: States, uuid: str) -> Iterator[str]:
        known, found = self.running.get(uuid), _find(states, uuid)
        if found is None:
            if known is not None and uuid not in self._unsure:
                yield (
                    f"G16: for {self.rm_id} {uuid} ({known.key} of {known.application_id}) "
                    f"runs on {known.node_id}, and the core does not have it"
                )
            return
        partition, allocation = found
        name = (partition, allocation.spec.application_id, allocation.spec.key)
        asked = self._asks.get(name)
        what = f"{uuid} ({allocation.spec.key} of {allocation.spec.application_id})"
        if known is None:
            if self._was_restored or (asked is not None and (asked.by_node or asked.by_list)):
                # It need not know the name of what it has reported.
                return
            yield (
                f"G16: the core has {what} on {allocation.node_id}, and {self.rm_id} was not "
                "notified of it"
            )
        elif uuid in self._placed:
            truth = placed_by(
                partition,
                uuid,
                allocation.spec,
                allocation.node_id,
                allocation.resource,
                allocation.devices,
            )
            if asked is not None and truth.resource in asked.sizes:
                # It may have reported another size since, and knows of which devices.
                devices = known.devices if len(asked.sizes) > 1 else truth.devices
                truth = truth._replace(resource=known.resource, devices=devices)
            wrong = difference(known, truth)
            if wrong and self._lives(uuid) - self._misnamed[uuid] == 1:
                yield f"G16: {self.rm_id} was notified of {what}, and not as it is: {wrong}"
        elif self._was_restored:
            # A report to a core before this one may have named another node.
            return
        elif allocation.node_id not in self._reports.get(uuid, [known.node_id]):
            yield (
                f"G16: {self.rm_id} has reported {what} on {known.node_id}, and the core has it on "
                f"{allocation.node_id}"
            )

    def _compare_ask(self, states: States, name: Name) -> Iterator[str]:
        partition, id_, key = name
        state = states.get(partition)
        if state is None or name in self._unsure_asks:
            return
        app = state.applications.get(id_)
        ask = None if app is None else app.asks.get(key)
        if ask is None:
            if name in self._wanted:
                yield (
                    f"G25: {self.rm_id} has asked for {key} of {id_}, which neither waits nor "
                    "runs, and was not notified of it"
                )
            return
        asked = self._asks.get(name)
        if asked is None:
            if not self._was_restored:
                yield f"G16: the core has the ask {key} of {id_}, and {self.rm_id} has not asked"
            return
        if name in self._taken_back and ask.spec.max_allocations == 1:
            yield f"G16: {self.rm_id} has withdrawn {key} of {id_}, and it is there"
        elif ask.remaining and ask.spec.max_allocations == 1 and not self._is_wanted(name):
            yield f"G16: {self.rm_id} does not want {key} of {id_} any more, and it waits"
        if self._takes_states:
            yield from self._compare_container_state(name, asked, ask.reported)

    def _compare_container_state(
        self, name: Name, asked: _Requested, reported: WaitingState
    ) -> Iterator[str]:
        _, id_, key = name
        if reported is WaitingState.UNREPORTED or self._was_restored:
            return
        if asked.by_node or asked.by_list or len(self._partitions_of[id_, key]) > 1:
            # What it has reported as running is not always announced as scheduled.
            return
        notified = self._states.get((id_, key), "none")
        if notified != reported.value:
            yield (
                f"G27: {self.rm_id} was notified last of container state {notified} of {key} of "
                f"{id_}, and it is {reported.value}"
            )

    def _is_wanted(self, name: Name) -> bool:
        asked = self._asks[name]
        if len(self._partitions_of[name[1:]]) > 1:
            # Which of them was rejected, nobody can know.
            return True
        return (
            name in self._wanted
            or asked.was_placed
            or asked.by_list
            or asked.by_node
            # Asked for again, and only that was rejected.
            or asked.main + asked.later > asked.rejected_main + asked.rejected_later
        )

    def _compare_application(self, states: States, id_: str) -> Iterator[str]:
        known = self._applications[id_]
        answered = known.accepted + known.rejected
        if answered != known.requested:
            yield (
                f"G25: {self.rm_id} has asked for application {id_} {known.requested} times, and "
                f"was answered {answered} times"
            )
        if len(known.partitions) != 1 or known.is_unsure:
            return
        state = states.get(next(iter(known.partitions)))
        if state is None:
            return
        app = state.applications.get(id_)
        if app is None:
            if known.accepted and not known.is_gone and known.state not in _ENDING:
                yield (
                    f"G21: for {self.rm_id} application {id_} is {known.state}, and the core does "
                    "not have it"
                )
            return
        if not self._was_restored:
            yield from self._compare_states(known, app)

    def _compare_states(self, known: _Application, app: Application) -> Iterator[str]:
        id_ = app.id
        if known.is_gone:
            yield f"G28: {self.rm_id} has removed application {id_}, and it is there"
        if known.state != app.state.value:
            yield (
                f"G21: {self.rm_id} was notified last of state {known.state} of application {id_}, "
                f"and it is {app.state.value}"
            )
        elif known.at_ns and known.at_ns != (at_ns := app.state_log.entries[-1].at_ns):
            yield (
                f"G21: {self.rm_id} was notified of state {known.state} of application {id_} at "
                f"{known.at_ns}, and it came into that at {at_ns}"
            )
        if known.queue and known.queue != app.queue.path:
            yield (
                f"G25: {self.rm_id} was notified of queue {known.queue} of application {id_}, and "
                f"it is in {app.queue.path}"
            )

    def _compare_node(self, states: States, id_: str) -> Iterator[str]:
        known = self._nodes.get(id_)
        if known is not None and known.accepted + known.rejected != known.requested:
            yield (
                f"G25: {self.rm_id} has asked for node {id_} {known.requested} times, and was "
                f"answered {known.accepted + known.rejected} times"
            )
        is_there = any(id_ in state.nodes for state in states.values())
        if self.owed is not None and known is not None:
            yield from self._compare_report(states, id_, known)
        if is_there and not self._was_restored and (known is None or not known.accepted):
            yield f"G25: the core has node {id_}, and {self.rm_id} was not notified of it"
        if known is None or is_there or known.is_gone or not known.accepted:
            return
        if known.partition in states:
            yield f"G25: {self.rm_id} was notified of node {id_}, and the core does not have it"

    def _compare_report(self, states: States, id_: str, known: _Node) -> Iterator[str]:
        """Of a node that an operator has drained it is not known who was last."""
        state = states.get(known.partition)
        node = None if state is None else state.nodes.get(id_)
        if node is None or known.is_gone or not known.accepted:
            return
        now = known.now._replace(drained=node.drained) if known.is_operated else known.now
        for wrong in now.differences(node):
            yield f"G01: of {id_}, which {self.rm_id} has reported, {wrong}"


def _amounts(resource: si.Resource | None) -> dict[str, int] | None:
    return None if resource is None else resource.amounts()


def _means(request: Name, name: Name) -> bool:
    """Whether a request means this; it need not name the application and the key."""
    partition, application_id, key = request
    return name[0] == partition and application_id in {"", name[1]} and key in {"", name[2]}


def _find(states: States, uuid: str) -> tuple[str, Allocation] | None:
    for name, state in states.items():
        app = state.applications.get(state.owners.get(uuid, ""))
        allocation = None if app is None else app.allocations.get(uuid)
        if allocation is not None:
            return name, allocation
    return None


def _wanted(item: si.Allocation) -> _Wanted:
    is_placeholder = item.placeholder and bool(item.task_group_name)
    return _Wanted(
        item.priority, item.task_group_name, is_placeholder,
        item.originator and not is_placeholder,
        *_preemption(item.preemption_policy, item.allocation_tags),
        without_devices(item.allocation_tags),
    )  # fmt: skip


def _preemption(policy: si.PreemptionPolicy | None, tags: dict[str, str]) -> tuple[bool, bool]:
    """Without a policy work may be preempted unless its tag forbids that, and preempts nothing."""
    if policy is not None:
        return policy.allow_preempt_self, policy.allow_preempt_other
    return tags.get(si.constants.TAG_ALLOW_PREEMPTION, "").lower() != "false", False


def _unlike(notice: Placed, asked: _Requested) -> str:
    """Say in what an announcement differs from all that was requested under its key."""
    way = _Wanted(*notice[7:])
    if way not in asked.ways:
        last = asked.ways[-1]
        for name, has, wanted in zip(way._fields, way, last, strict=True):
            if has != wanted:
                return f"{name} is {has!r}, requested {wanted!r}"
    if notice.resource not in asked.sizes:
        return f"resource is {notice.resource}, requested {asked.sizes[-1]}"
    return ""


def _may_follow(ends: list[TerminationType], lives: int) -> bool:
    asked_back = sum(1 for type_ in ends if type_ in ASKED_BACK)
    stopped = len(ends) - asked_back
    in_order = lives > 1 or not stopped or ends[-1] is _T.STOPPED_BY_RM
    return max(asked_back, stopped) <= lives and in_order


_REQUESTS: dict[type, Callable[[RmRecord, Any], None]] = {
    si.AllocationRequest: RmRecord._request_allocations,
    si.ApplicationRequest: RmRecord._request_applications,
    si.NodeRequest: RmRecord._request_nodes,
    si.UpdateConfigurationRequest: RmRecord._request_configuration,
}
_RESPONSES: dict[type, Callable[[RmRecord, Any], list[str]]] = {
    si.AllocationResponse: RmRecord._notify_allocations,
    si.ApplicationResponse: RmRecord._notify_applications,
    si.NodeResponse: RmRecord._notify_nodes,
    si.UpdateContainerSchedulingStateRequest: RmRecord._notify_state,
}
