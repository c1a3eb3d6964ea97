"""The recovery report: what a manager and one partition have exchanged, as far as it still counts.

A core that died comes back from its journal, or empty. Either way it believes what a resource
manager reports, as after any restart. The portal that spoke with it knows what that report would
be, and makes it in the manager's place, so that the manager need not know of the restart. `recover`
is that report. Its answers, and whatever else the manager has heard before, are no `news`.

What was sent and may not have been handled belongs to the report as well. Additions are part of
what there is. Ends come first, before what may bear the same name anew, and the rest waits until
they are handled: an announcement is then known to be of something before them or behind them.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.service.cluster.split import Request, home_of
from yunikorn_actors.state.applications import FINISHED
from yunikorn_actors.state.termination import ASKED_BACK, TAKES_THE_ASK
from yunikorn_actors.values.tags import NODE_PARTITION, TAG_FOREIGN

Response: TypeAlias = si.AllocationResponse | si.ApplicationResponse | si.NodeResponse
Key: TypeAlias = tuple[str, str]
"""Application and key of an ask."""
R = TypeVar("R", bound=Response)
T = TypeVar("T")
PIECE: Final = 1_000
"""So many items of a report go into one request."""
GONE_WITH_ITS_CORE: Final = "it had ended when the core of its partition was started again"
_CREATES: Final = frozenset({si.ActionFromRM.CREATE, si.ActionFromRM.CREATE_DRAIN})
_DRAINS: Final = {
    si.ActionFromRM.DRAIN_NODE: si.ActionFromRM.CREATE_DRAIN,
    si.ActionFromRM.DRAIN_TO_SCHEDULABLE: si.ActionFromRM.CREATE,
}
_FINISHED: Final = frozenset(it.value for it in FINISHED)
NODE: Final = "node"
APPLICATION: Final = "application"
ASK: Final = "ask"


@dataclass(slots=True)
class Running:
    """An allocation that the manager knows, or will know with its next announcement."""

    item: si.Allocation
    is_notified: bool
    """Whether it needs no announcement any more."""
    asked_back: si.TerminationType | None = None


@dataclass(slots=True)
class End:
    """A request that ends something, kept until it was certainly handled."""

    number: int
    request: Request
    covers: Callable[[si.Allocation], bool]
    of_ask: bool = False
    """What was placed before stays, if the ask was for several."""
    leaving: list[Running] = field(default_factory=list)
    """What ends by it, and the manager has not heard so."""
    heard: dict[str, None] = field(default_factory=dict)
    """The UUIDs of what has ended by it, and the manager has heard so."""
    is_repeated: bool = False
    """Whether a core that has died may have handled it, and taken its answer along."""


class RecoveryReport:
    def __init__(self, rm_id: str, partition: str = "") -> None:
        """What names another partition than this one is refused there, and changes nothing."""
        self._rm_id = rm_id
        self._partition = partition
        self.sent_count = 0
        """Requests of this registration, the report included."""
        self.repeated_ends = 0
        """Those with which the last report begins."""
        self._nodes: dict[str, si.NodeInfo] = {}
        self._applications: dict[str, si.AddApplicationRequest] = {}
        self._asks: dict[Key, si.AllocationAsk | si.Allocation] = {}
        """Those that are not answered in full."""
        self._given: Counter[Key] = Counter()
        """How many allocations of these were announced."""
        self._running: dict[str, dict[str, Running]] = {}
        """By application, then by UUID; by the key where the manager gave no UUID."""
        self._foreign: dict[str, si.Allocation] = {}
        self._ends: deque[End] = deque()
        self._sent_at: dict[tuple[str, ...], int] = {}
        """Which request brought a node, an application or an ask, while an end is awaited."""
        self._due: Counter[tuple[str, str]] = Counter()
        """Answers that the manager waits for, by kind and id of node or application."""
        self._accepted: set[tuple[str, str]] = set()
        self._states: dict[str, str] = {}
        """Of applications, as they were reported last."""

    # -- what is sent

    def sent(self, request: Request) -> None:
        """Note a request on its way to the core."""
        self.sent_count += 1
        _SENT[type(request)](self, request)

    def _sent_nodes(self, request: si.NodeRequest) -> None:
        for info in request.nodes:
            known = self._nodes.get(info.node_id)
            if info.action in _CREATES:
                self._due[NODE, info.node_id] += 1
            if not self._is_of_here(info):
                continue
            if info.action in _CREATES:
                self._sent_at[NODE, info.node_id] = self.sent_count
                if known is None:
                    self._nodes[info.node_id] = replace(info, existing_allocations=())
                    for item in info.existing_allocations:
                        self._report(replace(item, node_id=info.node_id), is_notified=True)
            elif known is not None and info.action is si.ActionFromRM.DECOMISSION:
                del self._nodes[info.node_id]
                self._accepted.discard((NODE, info.node_id))
                self._end(si.NodeRequest(nodes=(info,), rm_id=self._rm_id), _on(info.node_id))
            elif known is not None:
                self._nodes[info.node_id] = _changed(known, info)

    def _sent_applications(self, request: si.ApplicationRequest) -> None:
        for added in request.new:
            self._due[APPLICATION, added.application_id] += 1
            if self._is_of_here(added):
                self._sent_at[APPLICATION, added.application_id] = self.sent_count
                self._applications.setdefault(added.application_id, added)
        for removed in filter(self._is_of_here, request.remove):
            self._drop_application(removed.application_id)
            again = si.ApplicationRequest(remove=(removed,), rm_id=self._rm_id)
            self._end(again, _of(removed.application_id))

    def _is_of_here(self, item: object) -> bool:
        return not self._partition or home_of(self._rm_id, item) == self._partition

    def _drop_application(self, application_id: str) -> None:
        self._applications.pop(application_id, None)
        self._accepted.discard((APPLICATION, application_id))
        self._states.pop(application_id, None)
        self._withdraw(application_id, "")

    def _sent_allocations(self, request: si.AllocationRequest) -> None:
        for ask in filter(self._is_of_here, request.asks):
            self._ask(ask)
        for item in filter(self._is_of_here, request.allocations):
            if TAG_FOREIGN in item.allocation_tags:
                self._foreign[item.allocation_key] = item
            elif item.node_id:
                self._report(item, is_notified=False)
            else:
                self._ask(item)
        if request.releases is not None:
            for it in filter(self._is_of_here, request.releases.allocation_asks_to_release):
                self._release_ask(it)
            for release in filter(self._is_of_here, request.releases.allocations_to_release):
                self._release(release)

    def _ask(self, ask: si.AllocationAsk | si.Allocation) -> None:
        key = (ask.application_id, ask.allocation_key)
        # A new ask of this key: what was given before was of another one.
        if key not in self._asks:
            self._given.pop(key, None)
            self._sent_at[ASK, *key] = self.sent_count
        self._asks[key] = ask

    def _report(self, item: si.Allocation, *, is_notified: bool) -> None:
        known = self._find(item)
        if known is None:
            self._add(Running(item, is_notified))
        else:
            known.item = replace(item, uuid=item.uuid or known.item.uuid)

    def _release_ask(self, release: si.AllocationAskRelease) -> None:
        key = release.allocation_key
        was_open = self._withdraw(release.application_id, key)
        parts = si.AllocationReleasesRequest(allocation_asks_to_release=(release,))
        again = si.AllocationRequest(releases=parts, rm_id=self._rm_id)
        covers = _of(release.application_id, key) if key else _nothing
        self._end(again, covers, of_ask=True, takes=bool(key) and not was_open)

    def _release(self, release: si.AllocationRelease) -> None:
        # Without a key it means what runs alone.
        if (
            release.allocation_key
            and not release.uuid
            and release.termination_type in TAKES_THE_ASK
        ):
            self._withdraw(release.application_id, release.allocation_key)
        if not release.application_id:
            self._foreign.pop(release.allocation_key, None)
        parts = si.AllocationReleasesRequest(allocations_to_release=(release,))
        again = si.AllocationRequest(releases=parts, rm_id=self._rm_id)
        self._end(again, _of_release(release))

    def _withdraw(self, application_id: str, key: str) -> bool:
        """Drop an ask, or all of an application; say whether there was one."""
        if key and application_id:
            return self._asks.pop((application_id, key), None) is not None
        # Without a key all of the application, without an application all of this key.
        named = [
            it for it in self._asks if (key or it[1]) == it[1] and application_id in {"", it[0]}
        ]
        for it in named:
            del self._asks[it]
        return bool(named)

    def _end(
        self,
        request: Request,
        covers: Callable[[si.Allocation], bool],
        *,
        of_ask: bool = False,
        takes: bool = True,
    ) -> None:
        end = End(self.sent_count, request, covers, of_ask)
        if takes:
            end.leaving = [it for it in self._all_running() if covers(it.item)]
            for it in end.leaving:
                self._remove(it)
        self._ends.append(end)

    # -- what is heard

    def handled(self, number: int) -> si.AllocationResponse | None:
        """Note that all requests up to this one were handled; return what follows for the manager.

        What has ended in a core that died, and whose end was never announced, is announced now.
        """
        unnotified: list[si.AllocationRelease] = []
        while self._ends and self._ends[0].number <= number:
            end = self._ends.popleft()
            for it in end.leaving:
                # Asked back before, its end is known; else it would come as a surprise.
                if end.is_repeated and it.asked_back is None:
                    unnotified.append(_ended(it.item))
                elif end.of_ask:
                    # The ask was withdrawn, and what it had placed before goes on.
                    self._add(it)
        # Without an end that is awaited, nobody asks which request brought what.
        if not self._ends:
            self._sent_at.clear()
        return si.AllocationResponse(released=tuple(unnotified)) if unnotified else None

    def news(self, response: R) -> R | None:
        """Return what the manager has not heard yet; None if that is nothing."""
        found: R | None = _RECEIVED[type(response)](self, response)
        return found

    def _received_nodes(self, response: si.NodeResponse) -> si.NodeResponse | None:
        accepted = [it for it in response.accepted if self._is_due(NODE, it.node_id)]
        self._accepted.update((NODE, it.node_id) for it in accepted)
        for it in response.rejected:
            if self._is_absent(NODE, it.node_id):
                self._nodes.pop(it.node_id, None)
        return _left(response, accepted=accepted)

    def _received_applications(self, response: si.ApplicationResponse) -> Response | None:
        accepted = [it for it in response.accepted if self._is_due(APPLICATION, it.application_id)]
        self._accepted.update((APPLICATION, it.application_id) for it in accepted)
        for it in response.rejected:
            if self._is_absent(APPLICATION, it.application_id):
                self._drop_application(it.application_id)
        # One after the other: an application may leave a state and be back in it in one response.
        updated = [it for it in response.updated if self._moves(it)]
        return _left(response, accepted=accepted, updated=updated)

    def _is_absent(self, kind: str, name: str) -> bool:
        """Whether it is not there after this no: answers come in the order of what they answer.

        A no may be about one that was brought twice, and was removed and brought anew since.
        """
        self._is_due(kind, name)
        # More of its name are due: the no may be about one of those.
        return (kind, name) not in self._accepted and (kind, name) not in self._due

    def _moves(self, update: si.UpdatedApplication) -> bool:
        """Whether the manager has not heard of this state; it has now."""
        was = self._states.get(update.application_id)
        if update.state in _FINISHED:
            self._drop_application(update.application_id)
        else:
            self._states[update.application_id] = update.state
        return was != update.state

    def _is_due(self, kind: str, name: str) -> bool:
        """Whether the manager waits for this answer; it has it now."""
        due = self._due[kind, name]
        # Several were asked for under one name; each has its own answer.
        if due > 1:
            self._due[kind, name] = due - 1
        else:
            del self._due[kind, name]
        return due > 0

    def _received_allocations(self, response: si.AllocationResponse) -> Response | None:
        new = [it for it in response.new if self._is_new(it)]
        released = [it for it in response.released if self._is_end(it)]
        for withdrawn in response.released_asks:
            self._withdraw(withdrawn.application_id, withdrawn.allocation_key)
        rejected = [(it.application_id, it.allocation_key) for it in response.rejected]
        rejected += [(it.application_id, it.allocation_key) for it in response.rejected_allocations]
        for key in rejected:
            was_ask = self._asks.pop(key, None) is not None
            own = self._running.get(key[0], {})
            # A report has the manager's UUID; what was announced under this key is no report.
            reports = (
                it for it in own.values() if it.item.allocation_key == key[1] and not it.is_notified
            )
            known = own.get(key[1]) or next(reports, None)
            if known is not None and not was_ask:
                self._remove(known)
        return _left(response, new=new, released=released)

    def _is_new(self, item: si.Allocation) -> bool:
        known = self._find(item)
        if known is not None:
            # Its own report may have no UUID; the announcement brings it, so it is filed anew.
            was_notified, known.is_notified = known.is_notified, True
            self._remove(known)
            known.item = item
            self._add(known)
            return not was_notified
        # It ends by a request that is on its way, and the manager knows that.
        if any(_is(it, item) for end in self._ends for it in end.leaving):
            return False
        if any(item.uuid in end.heard for end in self._ends):
            return True  # One request reported it and ended it: the core announces ends first.
        key = (item.application_id, item.allocation_key)
        self._given[key] += 1
        ask = self._asks.get(key)
        # All of an ask is placed: an ask for several stays until then.
        if ask is None or self._given[key] >= getattr(ask, "max_allocations", 1):
            self._asks.pop(key, None)
            del self._given[key]
        running = Running(item, is_notified=True)
        since = self._since(item)
        # Placed before an end was handled, and covered by that: it ends with it.
        end = next((it for it in self._ends if it.number >= since and it.covers(item)), None)
        if end is None:
            self._add(running)
        else:
            end.leaving.append(running)
        return True

    def _since(self, item: si.Allocation) -> int:
        """Return the request without which it would not be: an end before that does not mean it."""
        brought = (
            (NODE, item.node_id),
            (APPLICATION, item.application_id),
            (ASK, item.application_id, item.allocation_key),
        )
        return max(self._sent_at.get(it, 0) for it in brought)

    def _is_end(self, release: si.AllocationRelease) -> bool:
        """Whether the manager has something that this release is about, and has not heard it."""
        for end in self._ends:
            for it in end.leaving:
                if _is(it, release):
                    # Asked back only: it has not ended yet, and stays among what leaves.
                    if release.termination_type not in ASKED_BACK:
                        end.leaving.remove(it)
                        end.heard[release.uuid] = None
                    return True
        known = self._find(release)
        if known is None:
            # The later form withdraws an ask in these words, which name no UUID.
            return not release.uuid and self._withdraw(
                release.application_id, release.allocation_key
            )
        if release.termination_type not in ASKED_BACK:
            self._remove(known)
            return True
        was, known.asked_back = known.asked_back, release.termination_type
        # What it has reported too late for its gang is asked back without being announced.
        known.is_notified = True
        # Asked back again for another reason is news; for the same one it is not.
        return was is not known.asked_back

    # -- the report

    def recover(self) -> list[Request]:
        """Return what to send to a core that began anew, in this order; it counts as sent."""
        parts: list[Request] = []
        # Repeated first, with numbers of the new channel.
        for end in self._ends:
            parts.append(end.request)
            end.number, end.is_repeated = len(parts), True
        self.repeated_ends = len(parts)
        # Numbers of the former channel mean nothing in the new one.
        self._sent_at.clear()
        # An answer to what has gone since comes no more.
        self._due = Counter(it for it in self._due if it[1] in self._things(it[0]))
        on_node: dict[str, list[si.Allocation]] = {}
        reported: list[si.Allocation] = []
        for it in self._all_running():
            # What was reported in a list is answered: it is announced, or rejected in that form.
            own = on_node.setdefault(it.item.node_id, []) if it.is_notified else reported
            own.append(it.item)
        asks = [it for it in self._asks.values() if isinstance(it, si.AllocationAsk)]
        later = [it for it in self._asks.values() if isinstance(it, si.Allocation)]
        nodes = [
            replace(info, existing_allocations=tuple(on_node.get(id_, ())))
            for id_, info in self._nodes.items()
        ]
        rm_id, foreign = self._rm_id, list(self._foreign.values())
        apps = list(self._applications.values())
        # Applications, nodes, what runs, asks: each needs what comes before it.
        parts += (si.ApplicationRequest(new=it, rm_id=rm_id) for it in _pieces(apps))
        parts += (si.NodeRequest(nodes=it, rm_id=rm_id) for it in _pieces(nodes))
        parts += (
            si.AllocationRequest(allocations=it, rm_id=rm_id)
            for it in _pieces(foreign + reported + later)
        )
        parts += (si.AllocationRequest(asks=it, rm_id=rm_id) for it in _pieces(asks))
        self.sent_count = len(parts)
        return parts

    def _things(self, kind: str) -> dict[str, Any]:
        return self._nodes if kind == NODE else self._applications

    # -- what runs

    def _all_running(self) -> list[Running]:
        return [it for own in self._running.values() for it in own.values()]

    def _find(self, named: si.Allocation | si.AllocationRelease) -> Running | None:
        """By its UUID; by its key where the manager does not know that yet, or the core."""
        own = self._running.get(named.application_id, {})
        return own.get(named.uuid) or own.get(named.allocation_key)

    def _add(self, running: Running) -> None:
        item = running.item
        name = item.uuid or item.allocation_key
        self._running.setdefault(item.application_id, {})[name] = running

    def _remove(self, running: Running) -> None:
        item = running.item
        own = self._running[item.application_id]
        del own[item.uuid or item.allocation_key]
        if not own:
            del self._running[item.application_id]


def _is(running: Running, named: si.Allocation | si.AllocationRelease) -> bool:
    item = running.item
    if item.application_id != named.application_id:
        return False
    return item.uuid == named.uuid if item.uuid else item.allocation_key == named.allocation_key


def _on(node_id: str) -> Callable[[si.Allocation], bool]:
    return lambda item: item.node_id == node_id


def _of(application_id: str, key: str = "") -> Callable[[si.Allocation], bool]:
    return lambda item: (
        application_id in {"", item.application_id} and key in {"", item.allocation_key}
    )


def _of_release(release: si.AllocationRelease) -> Callable[[si.Allocation], bool]:
    if not release.uuid:
        return _of(release.application_id, release.allocation_key)
    return lambda item: (
        item.uuid == release.uuid and release.application_id in {"", item.application_id}
    )


def _nothing(_: si.Allocation) -> bool:
    return False


def _changed(known: si.NodeInfo, change: si.NodeInfo) -> si.NodeInfo:
    """Return how a node is to be created for it to be as it is after this change."""
    if change.action in _DRAINS:
        return replace(known, action=_DRAINS[change.action])
    if change.action is not si.ActionFromRM.UPDATE:
        return known
    said: dict[str, Any] = {
        name: value
        # A change names only what it changes; the rest stays.
        for name in ("attributes", "schedulable_resource", "occupied_resource")
        if (value := getattr(change, name))
    }
    home = known.attributes.get(NODE_PARTITION)
    if home is not None and "attributes" in said:
        said["attributes"] = {**change.attributes, NODE_PARTITION: home}
    return replace(known, **said)


def _ended(item: si.Allocation) -> si.AllocationRelease:
    return si.AllocationRelease(
        partition_name=item.partition_name,
        application_id=item.application_id,
        uuid=item.uuid,
        termination_type=si.TerminationType.STOPPED_BY_RM,
        message=GONE_WITH_ITS_CORE,
        allocation_key=item.allocation_key,
    )


def _left(response: R, **lists: Sequence[object]) -> R | None:
    """Return the response with these lists; None if nothing is left in it."""
    if all(len(kept) == len(getattr(response, name)) for name, kept in lists.items()):
        return response
    left = replace(response, **{name: tuple(kept) for name, kept in lists.items()})
    return left if left != type(response)() else None


def _pieces(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    for start in range(0, len(items), PIECE):
        yield tuple(items[start : start + PIECE])


_SENT: Final[dict[type, Callable[[RecoveryReport, Any], None]]] = {
    si.AllocationRequest: RecoveryReport._sent_allocations,
    si.ApplicationRequest: RecoveryReport._sent_applications,
    si.NodeRequest: RecoveryReport._sent_nodes,
}
_RECEIVED: Final[dict[type, Callable[[RecoveryReport, Any], Any]]] = {
    si.AllocationResponse: RecoveryReport._received_allocations,
    si.ApplicationResponse: RecoveryReport._received_applications,
    si.NodeResponse: RecoveryReport._received_nodes,
}
