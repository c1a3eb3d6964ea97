"""What a resource manager may get wrong, and what it hears then.

Form is refused at the call, by an exception, with nothing taken. Substance is refused item by item,
each exactly once and with a reason. A release of nothing is no error. Nothing else may happen: no
other exception, no contradiction in the core, no change by what was refused.
"""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support import APP, RM, Outcome, with_everything

from yunikorn_actors import si
from yunikorn_actors.errors import ConfigError, Refused
from yunikorn_actors.values.resource import INT64_MAX, INT64_MIN

TOO_LONG, HUGE = "x" * 1025, "x" * 1_000_000
INT32_MAX = 2**31 - 1


# -- values, sound most of the time


def _mostly(*sound: Any, broken: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """One value in forty is broken, so that most requests get past the door."""
    weight = 39 * len(broken) // len(sound) + 1
    return st.sampled_from((*sound * weight, *broken))


def _names(*sound: str) -> st.SearchStrategy[Any]:
    return _mostly(*sound, broken=(None, 7, "", b"bytes", TOO_LONG, HUGE, "\ud800", ("x",)))


def _numbers(*sound: int) -> st.SearchStrategy[Any]:
    return _mostly(*sound, broken=(INT64_MAX + 1, INT64_MIN - 1, 1.5, "1", None, True))


def _of(kind: type, *always: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Leave fields out now and then, but not those."""
    required = {name: fields.pop(name) for name in always}
    return st.fixed_dictionaries(required, optional=fields).map(lambda given: kind(**given))


def _several(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One to three, in a tuple; a list is not what the interface takes."""
    makers = st.sampled_from([tuple] * 60 + [list])
    return st.builds(
        lambda make, items: make(items), makers, st.lists(item, min_size=1, max_size=3)
    )


_APPS = _names(*[APP] * 9, "done", "ghost", "x" * 1024)
_KEYS = _names("runs", "waits", "new", "end")
_NODES = _names("n1", "n2", "ghost")
_PARTITIONS = _names(*["default", "[rm-1]default"] * 5, "ghost")
_FLAGS = _mostly(True, False, broken=(1, None, "yes"))
_TAGS = st.dictionaries(st.sampled_from(["creationTime", "k", ""]), _names("1", "-1", "soon"))
_AMOUNTS = st.dictionaries(
    st.sampled_from(["vcore", "memory", "gpu"]),
    _of(si.Quantity, value=_numbers(*[1, 2, 3] * 4, 0, -1, INT64_MAX, INT64_MIN)),
    max_size=2,
)
_RESOURCES = st.integers(0, 9).flatmap(
    lambda n: _mostly(None, broken=({}, 7)) if n == 5 else _of(si.Resource, resources=_AMOUNTS)
)
_TYPES = _mostly(*si.TerminationType, broken=(9, "STOPPED_BY_RM", None))
_POLICIES = st.none() | _of(si.PreemptionPolicy, allow_preempt_self=_FLAGS)

_ASKS = _of(
    si.AllocationAsk,
    "allocation_key",
    "application_id",
    "resource_ask",
    allocation_key=_KEYS,
    application_id=_APPS,
    partition_name=_PARTITIONS,
    resource_ask=_RESOURCES,
    max_allocations=_numbers(*[1, 2, 50] * 4, 0, -1),
    priority=_numbers(0, 9, INT32_MAX, -INT32_MAX - 1),
    execution_timeout_milli_seconds=_numbers(0, 5, -5, INT64_MAX),
    tags=_TAGS,
    task_group_name=_names("group"),
    placeholder=_FLAGS,
    originator=_FLAGS,
    preemption_policy=_POLICIES,
)
_REPORTS = _of(
    si.Allocation,
    "allocation_key",
    "application_id",
    "resource_per_alloc",
    allocation_key=_KEYS,
    application_id=_APPS,
    partition_name=_PARTITIONS,
    resource_per_alloc=_RESOURCES,
    node_id=_NODES,
    allocation_tags=_TAGS | st.just({si.constants.TAG_FOREIGN: "default"}),
    priority=_numbers(0, 1),
    placeholder=_FLAGS,
)
_ASK_RELEASES = _of(
    si.AllocationAskRelease,
    "application_id",
    allocation_key=_KEYS,
    application_id=_APPS,
    partition_name=_PARTITIONS,
    termination_type=_TYPES,
)
_RELEASES = _of(
    si.AllocationRelease,
    "application_id",
    allocation_key=_KEYS,
    application_id=_APPS,
    partition_name=_PARTITIONS,
    uuid=_names("core-1", "core-2", "ghost"),
    termination_type=_TYPES,
)
_MANAGERS = _names(*[RM] * 20, "rm-ghost")
_ALLOCATION_REQUESTS = _of(
    si.AllocationRequest,
    asks=_several(_ASKS),
    allocations=_several(_REPORTS),
    releases=st.none()
    | _of(
        si.AllocationReleasesRequest,
        allocations_to_release=_several(_RELEASES),
        allocation_asks_to_release=_several(_ASK_RELEASES),
    ),
)
_APPLICATIONS = _of(
    si.AddApplicationRequest,
    "application_id",
    "ugi",
    application_id=_names(APP, "done", "new-1", "new-2"),
    queue_name=_names("root.default", "root", "root.ghost", "..", "ROOT.Default"),
    partition_name=_PARTITIONS,
    ugi=st.none()
    | _of(si.UserGroupInformation, user=_names("bob", "a b", "1"), groups=_several(_names("g"))),
    tags=_TAGS,
    execution_timeout_milli_seconds=_numbers(0, 5, -5, INT64_MAX),
    placeholder_ask=_RESOURCES,
    gang_scheduling_style=_names("Hard", "Soft", "nonsense"),
)
_APPLICATION_REQUESTS = _of(
    si.ApplicationRequest,
    new=_several(_APPLICATIONS),
    remove=_several(
        _of(
            si.RemoveApplicationRequest,
            "application_id",
            application_id=_APPS,
            partition_name=_PARTITIONS,
        )
    ),
)
_NODE_REQUESTS = _of(
    si.NodeRequest,
    nodes=_several(
        _of(
            si.NodeInfo,
            "node_id",
            "action",
            node_id=_NODES,
            action=_mostly(*si.ActionFromRM, broken=(1, 99, None)),
            attributes=st.dictionaries(
                st.sampled_from(["ready", si.constants.NODE_PARTITION, "rack"]),
                _names("false", "default", "ghost"),
            ),
            schedulable_resource=_RESOURCES,
            occupied_resource=_RESOURCES,
            existing_allocations=_several(_REPORTS),
        )
    ),
)


# -- what must come of them


def _is_refused_amount(resource: si.Resource | None) -> bool:
    amounts = {} if resource is None else resource.amounts()
    return not any(amounts.values()) or min(amounts.values()) < 0


def _is_refused_ask(item: si.AllocationAsk) -> bool:
    return (
        item.partition_name == "ghost"
        or item.application_id != APP
        or _is_refused_amount(item.resource_ask)
        or item.max_allocations < 1
    )


def _is_refused_report(item: si.Allocation) -> bool:
    has_ghost = item.partition_name == "ghost" or item.node_id in {"n2", "ghost"}
    if si.constants.TAG_FOREIGN in item.allocation_tags:
        amounts = {} if item.resource_per_alloc is None else item.resource_per_alloc.amounts()
        return has_ghost or not item.node_id or min(amounts.values(), default=0) < 0
    return has_ghost or item.application_id != APP or _is_refused_amount(item.resource_per_alloc)


@given(request=_ALLOCATION_REQUESTS, rm_id=_MANAGERS)
def test_allocation_requests(request: Any, rm_id: Any) -> None:
    lab = with_everything()
    request = _with(request, rm_id)
    outcome = Outcome(lab, lambda: lab.simulator.update_allocation(request))
    if outcome.error is None:
        refused = [
            *(item.allocation_key for item in request.asks if _is_refused_ask(item)),
            *(item.allocation_key for item in request.allocations if _is_refused_report(item)),
        ]
        assert Counter(refused) == outcome.answers("rejected")
        if len(refused) == len(request.asks + request.allocations) and not request.releases:
            assert not outcome.has_changed


@given(request=_APPLICATION_REQUESTS, rm_id=_MANAGERS)
def test_application_requests(request: Any, rm_id: Any) -> None:
    lab = with_everything()
    request = _with(request, rm_id)
    outcome = Outcome(lab, lambda: lab.simulator.update_application(request))
    if outcome.error is None:
        assert Counter(i.application_id for i in request.new) == outcome.answers("application")


@given(request=_NODE_REQUESTS, rm_id=_MANAGERS)
def test_node_requests(request: Any, rm_id: Any) -> None:
    creates = (si.ActionFromRM.CREATE, si.ActionFromRM.CREATE_DRAIN)
    lab = with_everything()
    request = _with(request, rm_id)
    outcome = Outcome(lab, lambda: lab.simulator.update_node(request))
    if outcome.error is None:
        asked = Counter(info.node_id for info in request.nodes if info.action in creates)
        assert asked == outcome.answers("node")


_TEXTS = _mostly(
    "",
    "partitions: [{name: default, queues: [{name: root}]}]",
    "partitions: [{name: other, queues: [{name: root}]}]",
    "partitions: [{name: default, queues: [{name: root, queues: [{name: a}, {name: A}]}]}]",
    "partitions: [{name: default, queues: [{name: root, resources: {max: {vcore: -1}}}]}]",
    "partitions: nonsense",
    "{",
    "\x00",
    broken=(None, 7, b"text", "\ud800", "x" * (4 * 1024 * 1024 + 1)),
)
_EXTRA = st.dictionaries(st.sampled_from(["rm.pausedTimeout", "k"]), _names("1s", "soon", "-1s"))


@given(text=_TEXTS, group=_names("", "default"), extra=_EXTRA, rm_id=_MANAGERS)
def test_configurations(text: Any, group: Any, extra: Any, rm_id: Any) -> None:
    lab = with_everything()
    request = si.UpdateConfigurationRequest(
        rm_id=rm_id, policy_group=group, config=text, extra_config=extra
    )
    Outcome(lab, lambda: lab.simulator.update_configuration(request), ConfigError, Refused)


@given(text=_TEXTS, group=_names("", "default"), extra=_EXTRA, rm_id=_MANAGERS)
def test_registrations(text: Any, group: Any, extra: Any, rm_id: Any) -> None:
    lab = with_everything()
    request = si.RegisterResourceManagerRequest(
        rm_id=rm_id, policy_group=group, config=text, extra_config=extra, build_info=extra
    )

    def register() -> None:
        lab.simulator.register_resource_manager(request, si.ResourceManagerCallback())

    Outcome(lab, register, ConfigError, Refused)


def _with(request: Any, rm_id: Any) -> Any:
    fields = {name: getattr(request, name) for name in request.__struct_fields__}
    return type(request)(**{**fields, "rm_id": rm_id})
