"""What must hold of changes before they are simulated, at every door.

A core takes no notice of a node, a key or an application that it does not know. In an answer that
would look as if the change had no effect. So a change that names what is neither in the state nor
brought by a change before it is refused, and so is one that no core would carry out. What depends
on the rules of the state, such as an access list, is part of the answer: the core says it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import asdict
from msgspec.structs import replace as with_fields

from yunikorn_actors import si
from yunikorn_actors.config import ConfigError, SchedulerConfig, parse_config, warnings_in
from yunikorn_actors.config.changed import new_faults
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.policies.inputs import declared_ns
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.values.close_names import there_is
from yunikorn_actors.values.durations import LONGEST_S
from yunikorn_actors.values.ids import partition_name, short_partition_name
from yunikorn_actors.values.tags import NODE_PARTITION, TAG_FOREIGN, TAG_RUNTIME
from yunikorn_actors.what_if.bounds import Submission, bounds_at
from yunikorn_actors.what_if.changes import Change, Reconfigure, Request, changed, named
from yunikorn_actors.what_if.core_state import CoreState

_Release = si.AllocationRelease | si.AllocationAskRelease
_A: Final = si.ActionFromRM
_NEW: Final = (_A.CREATE, _A.CREATE_DRAIN)
_DRAINED: Final = {_A.DRAIN_NODE: True, _A.DRAIN_TO_SCHEDULABLE: False}
"""Whether a node is drained after such an action."""


def checked(
    changes: Sequence[Change],
    state: CoreState,
    policies: Policies,
    *,
    until_s: float | None = None,
) -> tuple[list[Change], list[str]]:
    """Return them as they are to be made, and what is to be known of them.

    Each names its resource manager then. Raises InvalidRequest with the place of what is wrong,
    and MissingPolicy where one that decided in the state is not among `policies`.
    """
    policies.compare(state.policies, "the state that this begins with")
    check = _Check(state, policies)
    ready: list[Change] = []
    for _, together in groupby(changes, lambda it: it.after_s):
        moment = list(together)
        for change in moment:
            try:
                if until_s is not None and change.after_s > until_s:
                    late = f"it is made after {change.after_s:g} s, behind until={until_s:g}"
                    raise _fault("", late, "raise until, or make it sooner")
                ready.append(check.ready(change))
            except (InvalidRequest, ConfigError) as error:
                raise InvalidRequest(f"{change.where}: {_worded(error)}") from None
        check.end_moment()
    managers = state.registered.managers
    if len(managers) > 1 and not all(it.request.rm_id for it in changes):
        first = managers[0].registration.rm_id
        check.notes.append(f"changes that name no resource manager are made by {first}, the first")
    return ready, check.notes


def _fault(what: str, problem: str, remedy: str) -> InvalidRequest:
    return InvalidRequest(f"{what}: {problem}: {remedy}" if what else f"{problem}: {remedy}")


def _worded(error: ValueError) -> str:
    if not isinstance(error, ConfigError):
        return str(error)
    return f"the configuration cannot be loaded: {error.faults[0]}"


class _Part:
    """The names of a partition that a change may use."""

    def __init__(self, image: Mapping[str, Any]) -> None:
        self.nodes: dict[str, bool] = {it["node_id"]: it["drained"] for it in image["nodes"]}
        """Whether each is drained."""
        self.apps: dict[str, Mapping[str, Any]] = {
            it["spec"]["application_id"]: it for it in image["applications"]
        }
        """A change may have brought them: then they have nothing yet."""
        self._keys = {"": dict.fromkeys(it["key"] for it in image["foreign"])}
        """In their order, as they are listed: that of a set is another one in each process."""
        self._gone: set[str] = set()

    def keys(self, app: str) -> dict[str, None]:
        """Return the keys of what an application asks for and runs; what is foreign has none."""
        if app not in self._keys:
            # What runs has an ask of its key.
            self._keys[app] = dict.fromkeys(self.apps.get(app, _NOTHING)["asks"])
        return self._keys[app]

    def all_keys(self) -> list[dict[str, None]]:
        return [self.keys(it) for it in ("", *self.apps)]

    def runs(self, ask: si.AllocationAsk) -> bool:
        """Whether nothing of an ask with this key waits in the state, and as many of it run."""
        known = self.apps[ask.application_id]["asks"].get(ask.allocation_key)
        if known is None or ask.allocation_key not in self.keys(ask.application_id):
            return False
        # It may be as it is, and not as plain values.
        it = to_builtins(known)
        return not (it["remaining"] or it["parked"]) and ask.max_allocations <= it["taken"]

    def remove(self, app: str) -> None:
        del self.apps[app]
        self._keys[app] = {}

    def end(self, uuid: str, app: str) -> bool:
        """Whether an allocation is there to be ended; then it is not there once more."""
        apps = [self.apps[app]] if app else self.apps.values()
        is_there = uuid not in self._gone and any(uuid in it["allocations"] for it in apps)
        self._gone.add(uuid)
        return is_there


_NOTHING: Final[Mapping[str, Any]] = {"asks": {}, "allocations": {}}
_EMPTY: Final[Mapping[str, Any]] = {"nodes": (), "applications": (), "foreign": ()}


class _Check:
    def __init__(self, state: CoreState, policies: Policies) -> None:
        self._state, self._policies = state, policies
        self._managers = {it.registration.rm_id: it for it in state.registered.managers}
        self._parts = {name: _Part(image) for name, image in state.images.items()}
        self._configs: dict[str, SchedulerConfig] = {}
        """By policy group, what changes make of it."""
        self._unchanged: dict[str, tuple[Change, SchedulerConfig]] = {}
        """By policy group, before the changes of this moment, which count together."""
        self.notes: list[str] = []

    def ready(self, change: Change) -> Change:
        request = named(change.request, self._state.registered.managers)
        if self._state.is_away(self._managers[request.rm_id]):
            raise _fault(
                f"resource manager {request.rm_id}",
                "it is away, so it makes no change",
                "leave the changes out, or ask once it is back",
            )
        change = replace(change, request=request)
        if not isinstance(request, Reconfigure):
            si.check_form(request, type(request))
        _CHECKS[type(request)](self, change, request)
        return change

    def _part(self, rm_id: str, partition: str) -> _Part:
        name = partition_name(rm_id, partition)
        if name not in self._parts:
            own = [short_partition_name(it) for it in self._parts if it.startswith(f"[{rm_id}]")]
            raise _fault("partition", f"{partition!r} is not there", there_is(partition, own))
        return self._parts[name]

    # -- nodes

    def nodes(self, _: Change, request: si.NodeRequest) -> None:
        _some(request.nodes, "nodes")
        for node in request.nodes:
            part = self._part(request.rm_id, node.attributes.get(NODE_PARTITION, ""))
            what = f"node {node.node_id}"
            room = node.schedulable_resource
            _not_negative(what, room, node.occupied_resource)
            if node.action in _NEW:
                if room is None or not any(room.amounts().values()):
                    raise _fault(what, "it has no capacity", "write its capacity")
                for it in node.existing_allocations:
                    part.keys(it.application_id)[it.allocation_key] = None
                part.nodes.setdefault(node.node_id, node.action is _A.CREATE_DRAIN)
                continue
            _known(what, node.node_id, part.nodes)
            if node.action is _A.DECOMISSION:
                del part.nodes[node.node_id]
            if (drained := _DRAINED.get(node.action)) is not None:
                if part.nodes[node.node_id] is drained:
                    problem = "it is drained already" if drained else "it is not drained"
                    raise _fault(what, problem, "leave this change out, or name another node")
                part.nodes[node.node_id] = drained
            is_empty = room is None and node.occupied_resource is None
            if node.action is _A.UPDATE and is_empty and not node.attributes:
                raise _fault(what, "nothing of it is changed", "write its new capacity")

    # -- applications

    def applications(self, _: Change, request: si.ApplicationRequest) -> None:
        _some((*request.new, *request.remove), "applications")
        for new in request.new:
            apps = self._part(request.rm_id, new.partition_name).apps
            apps.setdefault(new.application_id, _NOTHING)
        for gone in request.remove:
            part = self._part(request.rm_id, gone.partition_name)
            _known(f"application {gone.application_id}", gone.application_id, part.apps)
            part.remove(gone.application_id)

    # -- asks, allocations, releases

    def allocations(self, change: Change, request: si.AllocationRequest) -> None:
        releases = request.releases or si.AllocationReleasesRequest()
        ended: tuple[_Release, ...] = (
            *releases.allocations_to_release,
            *releases.allocation_asks_to_release,
        )
        _some((*request.asks, *request.allocations, *ended), "asks")
        for ask in request.asks:
            part = self._part(request.rm_id, ask.partition_name)
            what = f"ask {ask.application_id}/{ask.allocation_key}"
            _known(what, ask.application_id, part.apps, "its application")
            _check_ask(what, ask)
            if not change.after_s and part.runs(ask):
                problem = "it runs already, so the core would take no notice of it"
                raise _fault(what, problem, "give it another key, or release it before")
            part.keys(ask.application_id)[ask.allocation_key] = None
        for it in request.allocations:
            part = self._part(request.rm_id, it.partition_name)
            what = f"allocation {it.application_id}/{it.allocation_key}"
            if TAG_FOREIGN not in it.allocation_tags:
                _known(what, it.application_id, part.apps, "its application")
            _known(what, it.node_id, part.nodes, "its node")
            _not_negative(what, it.resource_per_alloc)
            part.keys(it.application_id)[it.allocation_key] = None
        for gone in ended:
            _release(self._part(request.rm_id, gone.partition_name), gone)

    # -- configurations

    def configuration(self, change: Change, request: si.UpdateConfigurationRequest) -> None:
        config, text = self._state.registered.admin or parse_config(""), request.config
        if text.strip():
            names = with_fields(self._policies.names_for(text), is_closed=True)
            self.notes += (f"{change.where}: {it}" for it in warnings_in(text, names))
            config = parse_config(text, names)
        group = self._managers[request.rm_id].registration.policy_group
        self._configs[group] = config
        self._unchanged.pop(group, None)
        own = f"[{request.rm_id}]"
        wanted = [partition_name(request.rm_id, it.name) for it in config.partitions]
        others = {it: part for it, part in self._parts.items() if not it.startswith(own)}
        self._parts = others | {it: self._parts.get(it) or _Part(_EMPTY) for it in wanted}

    def reconfigured(self, change: Change, request: Reconfigure) -> None:
        _check_reconfigure(request)
        group = self._managers[request.rm_id].registration.policy_group
        config = self._configs.get(group) or self._state.config_of(group)
        self._unchanged.setdefault(group, (change, config))
        config = self._configs[group] = changed(config, request)
        name = request.user or request.group
        partition = partition_name(request.rm_id, request.partition)
        place = Submission(partition, request.queue, request.user, (), request.group)
        for whose in dict.fromkeys(
            it.whose
            for it in bounds_at(config, place)
            if it.queue == request.queue.lower() and (it.user if request.user else it.group)
        ):
            if name and whose != f" of {name}":
                self.notes.append(f"{change.where}: it changes the limit{whose}, which they share")

    def end_moment(self) -> None:
        """Check what the changes of one moment make of a configuration: they count together."""
        for group, (change, before) in self._unchanged.items():
            names = with_fields(self._policies.names, is_closed=True)
            for it in new_faults(before, self._configs[group], names):
                raise InvalidRequest(f"{change.where}: {it.path}: {it.what} ({it.remedy})")
        self._unchanged.clear()


_CHECKS: Final[dict[type, Callable[[_Check, Change, Any], None]]] = {
    si.NodeRequest: _Check.nodes,
    si.ApplicationRequest: _Check.applications,
    si.AllocationRequest: _Check.allocations,
    si.UpdateConfigurationRequest: _Check.configuration,
    Reconfigure: _Check.reconfigured,
}


def _some(items: Sequence[object], what: str) -> None:
    if not items:
        raise _fault(what, "it names none", "name one at least")


def _known(what: str, name: str, known: Collection[str], noun: str = "") -> None:
    if name not in known:
        problem = f"{noun} {name!r} is not there" if noun else "it is not there"
        raise _fault(
            what, problem, f"bring it by a change before, or name another; {there_is(name, known)}"
        )


def _not_negative(what: str, *given: si.Resource | Mapping[str, int] | None) -> None:
    for it in given:
        amounts = it.amounts() if isinstance(it, si.Resource) else it or {}
        for kind, amount in amounts.items():
            if amount < 0:
                raise _fault(what, f"{kind} is negative: {amount}", "write 0 or more")


def _check_ask(what: str, ask: si.AllocationAsk) -> None:
    _not_negative(what, ask.resource_ask)
    if ask.resource_ask is None or not any(ask.resource_ask.amounts().values()):
        raise _fault(what, "it asks for nothing", "write an amount above 0")
    if ask.max_allocations < 1:
        raise _fault(what, f"it repeats {ask.max_allocations} times", "write 1 or more")
    runtime = ask.tags.get(TAG_RUNTIME)
    if runtime is not None and declared_ns(runtime) is None:
        problem = f"tag {TAG_RUNTIME}: {runtime!r} is no number of seconds"
        raise _fault(what, problem, "write one, such as 600")


def _release(part: _Part, gone: _Release) -> None:
    """Check that it is there; what is released is not there to be released once more."""
    app, key, uuid = gone.application_id, gone.allocation_key, getattr(gone, "uuid", "")
    what = f"release of {'/'.join(it for it in (app, uuid or key) if it)}"
    if app:
        _known(what, app, part.apps, "its application")
    if uuid:
        if not part.end(uuid, app):
            raise _fault(what, "no allocation has this uuid", "name it by its application and key")
        return
    named = [part.keys(app)] if app else part.all_keys()
    if key:
        _known(what, key, [it for keys in named for it in keys], "the key")
    for keys in named:
        for gone_key in [key] if key else [*keys]:
            keys.pop(gone_key, None)


def _check_reconfigure(request: Reconfigure) -> None:
    what = f"queue {request.queue}"
    try:
        convert(asdict(request), Reconfigure)
    except ValidationError as error:
        raise _fault(what, str(error), "write it as that, amounts in base units") from None
    applications = {"max_applications": request.max_applications or 0}
    _not_negative(what, request.max, request.guaranteed, applications)
    limited = request.user or request.group
    if limited and request.template:
        raise _fault(what, "a template has no limits", "leave out whose limit it is, or template")
    if request.user and request.group:
        raise _fault(what, "a limit is of a user or of a group", "name one of the two")
    if limited and (request.guaranteed or request.properties):
        raise _fault(
            what, f"the limit of {limited} has neither guaranteed nor properties", "leave them out"
        )
    given = (request.max, request.guaranteed, request.properties)
    if not any(given) and request.max_applications is None:
        remedy = "give max, guaranteed, max_applications or properties"
        raise _fault(what, "nothing of it is changed", remedy)


def in_order(given: Iterable[Change | Request | Reconfigure]) -> list[Change]:
    """Put them in the order of their times; raise InvalidRequest for what is no change."""
    found = []
    for number, one in enumerate(given, 1):
        change = one if isinstance(one, Change) else Change(one)
        where = change.where or f"change {number}"
        if type(change.request) not in _CHECKS:
            raise InvalidRequest(
                f"{where}: must be a request of the interface, Reconfigure or Change, not "
                f"{type(change.request).__name__}"
            )
        check_seconds(f"{where}: after_s", change.after_s)
        found.append(replace(change, where=where))
    return sorted(found, key=lambda it: it.after_s)


def check_seconds(what: str, value: object) -> None:
    """Refuse what is no time from the beginning on."""
    if not (isinstance(value, int | float) and 0 <= value <= LONGEST_S):
        raise InvalidRequest(f"{what}: must be seconds from 0 to {LONGEST_S:.0e}, not {value!r}")
