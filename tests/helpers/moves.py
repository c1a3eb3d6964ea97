"""What a resource manager may say, drawn at random: sense and nonsense alike.

A move is a plain value, so a whole run can be drawn, shrunk, printed and played twice. It names
what it means by numbers where a name depends on the run ("the fifth allocation you heard of"), and
by the few names below otherwise, so that moves meet each other.
"""

from typing import Any, NamedTuple

from configurations import BAD_CONFIGS, CONFIGS
from hypothesis import strategies as st

from yunikorn_actors import si

RMS = ("rm-1", "rm-2")
NODES = ("n1", "n2", "n3")
APPS = ("app-1", "app-2", "app-3", "app-4")
AGAINST = ("withdraw", "grow", "remove", "drain", "shrink", "decommission", "lose")
KEYS = tuple("abcdefghijkl")


class Move(NamedTuple):
    rm: str
    what: str
    said: dict[str, Any]


QUEUES = (
    "root.default",
    "root.default",
    "root.limited",
    "root.fair",
    "root.aware",
    "root.busy.one",
    "root.busy.two",
    "root.users.bob",
    "root.new.leaf",
    "root.busy",
    "root.@recovery@",
    "default",
    "",
    "root..x",
)

# -- parts of requests

_configs = st.sampled_from((*CONFIGS, *CONFIGS[:5], *BAD_CONFIGS))
_picks = st.integers(0, 5)
_rms = st.sampled_from((RMS[0],) * 5 + RMS[1:])
_nodes = st.sampled_from(NODES)
_apps = st.sampled_from((*APPS, "ghost"))
_keys = st.sampled_from(KEYS)
_partitions = st.sampled_from(("",) * 12 + ("default", "other", "nowhere"))
_types = st.sampled_from(si.TerminationType)
_amounts = st.sampled_from(
    (
        *({"vcore": vcore} for vcore in (1, 1, 2, 3, 5, 9)),
        {"vcore": 2, "memory": 10},
        {"memory": 20},
        {"vcore": 1, "gpu": 1},
        {"vcore": 1, "memory": 0},
        {"vcore": 0},
        {},
        {"vcore": -1},
        {"vcore": 2**62},
    )
)
_capacities = st.sampled_from(
    (
        {"vcore": 10},
        {"vcore": 10, "memory": 100},
        {"vcore": 3, "memory": 30},
        {"vcore": 4, "gpu": 2},
        {"vcore": 0, "memory": 50},
        {},
        {"vcore": -1},
    )
)
_attributes = st.sampled_from(
    (
        *({} for _ in range(6)),
        {"ready": "false"},
        {"ready": "true"},
        {"rack": "r1"},
        {si.constants.NODE_PARTITION: "other"},
        {si.constants.NODE_PARTITION: "nowhere"},
    )
)
_resources = _amounts.map(si.Resource.of)
_repeats = st.sampled_from((1,) * 6 + (2, 3, 0, -1))
_timeouts = st.sampled_from((0,) * 6 + (1, 4_999, 30_000, -1))
_ask_tags = st.sampled_from(
    (
        *({} for _ in range(6)),
        {si.constants.TAG_CREATION_TIME: "1767225000"},
        {si.constants.TAG_CREATION_TIME: "soon"},
        {si.constants.TAG_ALLOW_PREEMPTION: "false"},
        *({si.constants.TAG_REQUIRED_NODE: node} for node in (*NODES, "ghost")),
    )
)
_app_tags = st.sampled_from(
    (
        *({} for _ in range(6)),
        {si.constants.APP_TAG_CREATE_FORCE: "true"},
        {si.constants.APP_TAG_STATE_AWARE_DISABLE: "yes"},
        {"namespace": "dev"},
        {"namespace": "dev", si.constants.APP_TAG_NAMESPACE_RESOURCE_MAX_APPS: "1"},
        {
            "namespace": "ops",
            si.constants.APP_TAG_NAMESPACE_RESOURCE_QUOTA: '{"resources": {"vcore": {"value": 3}}}',
        },
    )
)
_uuids = st.sampled_from(("", "", "", "core-3", "core-40", "core-x", "old-1", "old-2"))
_BOTH = ((False, True), (True, True), (True, False))
_users = st.sampled_from(("bob", "bob", "alice", "", "not a name"))


def _few(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, min_size=1, max_size=3).map(tuple)


_task_groups = st.sampled_from(("", "", "", "team", "crew"))
_placeholders = st.sampled_from((False, False, True))
_gangs = st.sampled_from((None, None, None, {"vcore": 2}, {"vcore": 4}, {"vcore": -1}, {}))
_asks = st.builds(
    si.AllocationAsk,
    allocation_key=_keys,
    application_id=_apps,
    partition_name=_partitions,
    resource_ask=_resources,
    max_allocations=_repeats,
    priority=st.sampled_from((0, 0, 0, 5, -3)),
    execution_timeout_milli_seconds=_timeouts,
    tags=_ask_tags,
    task_group_name=_task_groups,
    placeholder=_placeholders,
    preemption_policy=st.sampled_from(
        (
            None,
            None,
            *(si.PreemptionPolicy(allow_preempt_self=x, allow_preempt_other=y) for x, y in _BOTH),
        )
    ),
)
_reports = st.builds(
    si.Allocation,
    allocation_key=_keys,
    application_id=_apps,
    partition_name=_partitions,
    resource_per_alloc=_resources,
    node_id=st.sampled_from(("", "", *NODES, "ghost")),
    allocation_tags=_ask_tags,
    uuid=_uuids,
    task_group_name=_task_groups,
    placeholder=_placeholders,
)
_foreign = st.builds(
    si.Allocation,
    allocation_key=st.sampled_from(("f1", "f2", "f3")),
    partition_name=_partitions,
    resource_per_alloc=_resources,
    node_id=st.sampled_from(("", *NODES, *NODES, "ghost")),
    allocation_tags=st.just({si.constants.TAG_FOREIGN: si.constants.FOREIGN_DEFAULT}),
)
_existing = st.builds(
    si.Allocation,
    allocation_key=_keys,
    application_id=_apps,
    resource_per_alloc=_resources,
    uuid=_uuids,
    task_group_name=_task_groups,
    placeholder=_placeholders,
)
_node_infos = st.builds(
    si.NodeInfo,
    node_id=_nodes,
    action=st.sampled_from((*si.ActionFromRM, *(si.ActionFromRM.CREATE,) * 4)),
    attributes=_attributes,
    schedulable_resource=st.none() | _capacities.map(si.Resource.of),
    occupied_resource=st.none() | st.none() | _capacities.map(si.Resource.of),
    existing_allocations=st.just(()) | st.just(()) | _few(_existing),
)


def _amount_or_none(amounts: dict[str, int] | None) -> si.Resource | None:
    return None if amounts is None else si.Resource.of(amounts)


_applications = st.builds(
    si.AddApplicationRequest,
    application_id=st.sampled_from(APPS),
    queue_name=st.sampled_from(QUEUES),
    partition_name=_partitions,
    ugi=_users.map(lambda user: si.UserGroupInformation(user=user)),
    tags=_app_tags,
    execution_timeout_milli_seconds=_timeouts,
    placeholder_ask=_gangs.map(_amount_or_none),
    gang_scheduling_style=st.sampled_from(("", "Hard", "soft")),
)
_removals = st.builds(si.RemoveApplicationRequest, application_id=_apps, partition_name=_partitions)
_releases = st.builds(
    si.AllocationRelease,
    application_id=st.sampled_from(("", *APPS, "ghost")),
    allocation_key=st.sampled_from(("", *KEYS, "f1")),
    partition_name=_partitions,
    termination_type=_types,
)
_ask_releases = st.builds(
    si.AllocationAskRelease,
    application_id=st.sampled_from(("", *APPS, "ghost")),
    allocation_key=st.sampled_from(("", *KEYS)),
    partition_name=_partitions,
    termination_type=_types,
)

# -- moves

_seconds = st.sampled_from((0.001, 0.9, 2.5, 5, 9.99, 10, 29.9, 31, 61, 299, 301, 3600, 260_000))
_small_node = si.Resource.of({"vcore": 5, "memory": 80})
_plain_node = st.builds(
    si.NodeInfo,
    node_id=_nodes,
    action=st.just(si.ActionFromRM.CREATE),
    schedulable_resource=st.just(_small_node),
)
_plain_application = st.builds(
    si.AddApplicationRequest,
    application_id=st.sampled_from(APPS),
    queue_name=st.sampled_from(QUEUES[:7]),
    ugi=st.just(si.UserGroupInformation(user="bob")),
)
_plain_ask = st.builds(
    si.AllocationAsk,
    allocation_key=_keys,
    application_id=st.sampled_from(APPS),
    resource_ask=st.sampled_from((1, 2, 3)).map(lambda vcore: si.Resource.of({"vcore": vcore})),
    preemption_policy=st.sampled_from((None, si.PreemptionPolicy(allow_preempt_other=True))),
    execution_timeout_milli_seconds=_timeouts,
)

_WHAT: dict[str, tuple[int, dict[str, st.SearchStrategy[Any]]]] = {
    "step": (10, {"times": st.integers(0, 6)}),
    "register": (
        1,
        {
            "config": st.sampled_from((*CONFIGS, *CONFIGS[:2])),
            "group": st.sampled_from(("", "", "second")),
            "hears_states": st.booleans(),
        },
    ),
    "come_back": (3, {}),
    "lose": (1, {}),
    "unregister": (1, {}),
    "reload": (2, {"config": _configs}),
    "administer": (1, {"config": _configs}),
    "nodes": (6, {"nodes": _few(_node_infos | _plain_node)}),
    "applications": (
        4,
        {
            "new": st.just(()) | _few(_applications | _plain_application),
            "remove": st.just(()) | st.just(()) | _few(_removals),
        },
    ),
    "asks": (24, {"asks": _few(_asks | _plain_ask)}),
    "rush": (
        8,
        {
            "asks": _few(_plain_ask),
            "steps": st.integers(0, 8),
            "against": st.sampled_from(AGAINST),
            "node": _nodes,
        },
    ),
    "gang": (
        6,
        {
            "app": st.sampled_from(APPS),
            "members": st.lists(st.integers(1, 3), min_size=1, max_size=2),
            "between": st.integers(0, 12),
            "steps": st.integers(0, 12),
            "against": st.sampled_from((*AGAINST, "")),
            "node": _nodes,
        },
    ),
    "linger": (4, {"ask": _plain_ask, "seconds": st.sampled_from((30, 30, 31))}),
    "reports": (4, {"allocations": _few(_reports | _foreign)}),
    "release": (3, {"releases": _few(_releases), "asks": st.just(()) | _few(_ask_releases)}),
    "release_heard": (6, {"pick": _picks, "type": _types}),
    "report_heard": (3, {"pick": _picks, "node": _nodes, "amount": _resources}),
    "confirm": (4, {"pick": _picks, "type": st.none() | _types}),
    "settle": (2, {}),
    "fire": (3, {"seconds": _seconds}),
    "advance": (4, {"seconds": _seconds}),
}


def _move(what: str) -> st.SearchStrategy[Move]:
    rms = st.sampled_from((RMS[1], RMS[1], RMS[0])) if what in _ENDS else _rms
    return st.builds(Move, rm=rms, what=st.just(what), said=st.fixed_dictionaries(_WHAT[what][1]))


_ENDS = frozenset({"register", "lose", "unregister"})
_any_move = st.sampled_from([what for what, (weight, _) in _WHAT.items() for _ in range(weight)])


_PRELUDE = (
    Move(RMS[0], "register", {"config": CONFIGS[0], "group": "", "hears_states": True}),
    Move(
        RMS[0],
        "nodes",
        {
            "nodes": tuple(
                si.NodeInfo(
                    node_id=node,
                    action=si.ActionFromRM.CREATE,
                    schedulable_resource=_small_node,
                )
                for node in NODES[:2]
            )
        },
    ),
    Move(
        RMS[0],
        "applications",
        {
            "new": tuple(
                si.AddApplicationRequest(
                    application_id=app,
                    queue_name=queue,
                    ugi=si.UserGroupInformation(user="bob"),
                )
                for app, queue in zip(APPS, QUEUES[1:], strict=False)
            )
        },
    ),
)


def scripts(longest: int) -> st.SearchStrategy[list[Move]]:
    """Draw a run: a small cluster with applications, then anything."""
    moves = st.lists(_any_move.flatmap(_move), min_size=longest // 3, max_size=longest)
    return moves.map(lambda drawn: [*_PRELUDE, *drawn])
