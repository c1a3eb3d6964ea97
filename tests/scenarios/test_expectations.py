"""Each kind of expectation: where it holds, and how it fails."""

from collections.abc import Mapping
from typing import Any

import pytest

from yunikorn_actors.config.yaml_tree import compose
from yunikorn_actors.scenario.expectations import EXPECTATION
from yunikorn_actors.scenario.expected_values import Difference

APP = {
    "state": "Running",
    "queue": "root.a",
    "allocated": {"vcore": 4, "memory": 7},
    "placeholders": {},
    "pending": {},
    "allocations": 2,
    "placeholder_count": 1,
    "reservations": 0,
    "task_groups": {"tg": {"count": 2, "replaced": 1, "timed_out": 0}},
}
QUEUE = {
    "state": "Active",
    "allocated": {"vcore": 4},
    "pending": {},
    "preempting": {},
    "max": {"vcore": 9},
    "guaranteed": {},
    "running_apps": 1,
    "dynamic": False,
}
NODE = {
    "capacity": {"vcore": 4},
    "allocated": {"vcore": 6},
    "available": {"vcore": -2},
    "occupied": {},
    "schedulable": True,
    "allocations": 2,
    "reservations": 0,
}
EVENTS = [
    {"object": "a", "detail": "APP_NEW", "type": "APP", "change": "ADD", "reference": "", "message": ""},
    {"object": "a", "detail": "APP_REJECT", "type": "APP", "change": "SET", "reference": "", "message": "queue is full"},
    {"object": "n1", "detail": "NODE_ALLOC", "type": "NODE", "change": "ADD", "reference": "k", "message": ""},
]  # fmt: skip
VIEWS: dict[str, Any] = {
    "apps": {"app-1": APP},
    "queues": {"root.a": QUEUE},
    "nodes": {"n1": NODE},
    "users": {"bob": {"root.a": {"usage": {"vcore": 4}, "running_apps": 1}}},
    "groups": {"dev": {"root": {"usage": {"vcore": 3}, "running_apps": 2}}},
    "allocations": {
        "k": [{"node": "n1", "placeholder": False, "priority": 3}],
        "twice": [
            {"node": "n1", "placeholder": False, "priority": 0},
            {"node": "n2", "placeholder": False, "priority": 0},
        ],
    },
    "pending": {"app-1": ["a2", "a3"], "app-2": []},
    "rm": {
        "accepted_apps": ["app-1", "app-1", "app-2"],
        "rejected_apps": {"app-3": ["no queue", "wrong user"]},
        "accepted_nodes": ["n1"],
        "rejected_nodes": {},
        "rejected_asks": {"a9": ["no resources"]},
        "new": {"keys": ["k", "twice", "twice"], "applications": {"app-1": 3}},
        "released": [
            {"key": "x", "type": "TIMEOUT"},
            {"key": "x", "type": "STOPPED_BY_RM"},
            {"key": "y", "type": "TIMEOUT"},
        ],
        "released_asks": [],
        "app_states": {"app-1": ["Accepted", "Running"]},
        "container_states": {"a7": "FAILED"},
        "log": ["new k", "released x TIMEOUT", "app app-1 Running"],
    },
    "events": EVENTS,
    "invariants": "hold",
}
VIEWS["any_of"] = VIEWS


def differences(written: str, views: Mapping[str, Any] = VIEWS) -> list[Difference]:
    node = compose(written)
    assert node is not None
    return list(EXPECTATION.differences(EXPECTATION.read(node), views))


@pytest.mark.parametrize(
    "written",
    [
        "{}",
        "apps: {app-1: {}}",
        "apps: {app-1: {state: Running, queue: ROOT.A, allocations: 2, placeholder_count: 1, reservations: 0}}",
        "apps: {app-1: {allocated: {vcore: 4, memory: 7, gpu: 0}, placeholders: {}, pending: {vcore: 0}}}",
        "apps: {app-1: {task_groups: {tg: {count: 2, replaced: 1, timed_out: 0}, other: null}}}",
        'apps: {app-1: {allocations: ">= 2"}}',
        'apps: {app-1: {allocations: "<= 2"}}',
        'apps: {app-1: {allocations: "> 1"}}',
        'apps: {app-1: {allocations: "< 3"}}',
        'apps: {app-1: {allocations: "2..4"}}',
        'apps: {app-1: {allocations: "1..2"}}',
        'apps: {app-1: {allocated: {vcore: ">= 4", memory: "0..7"}}}',
        "apps: {app-2: null}",
        "queues: {root.A: {state: Active, allocated: {vcore: 4}, pending: {}, preempting: {}, max: {vcore: 9}, guaranteed: {}, running_apps: 1, dynamic: false}, root.b: null}",
        "nodes: {n1: {capacity: {vcore: 4}, allocated: {vcore: 6}, available: {vcore: -2}, occupied: {}, schedulable: true, allocations: 2, reservations: 0}, n2: null}",
        'nodes: {n1: {available: {vcore: "< 0"}}}',
        "users: {bob: {ROOT.a: {usage: {vcore: 4}, running_apps: 1}, root.b: {usage: {}, running_apps: 0}, root.c: null}}",
        "users: {ann: {root.a: {usage: {}, running_apps: 0}}, cat: null}",
        "groups: {dev: {root: {usage: {vcore: 3}, running_apps: 2}}, ops: null}",
        "allocations: {k: {node: n1, placeholder: false, priority: 3}, gone: null}",
        "allocations: {k: {node: [n2, n1]}, twice: {node: [n1, n2]}}",
        "pending: {app-1: [a2, a3], app-2: [], app-3: [], app-4: null}",
        "rm: {accepted_apps: [app-2, app-1], accepted_nodes: [n1, n1]}",
        'rm: {rejected_apps: {app-3: "user", app-4: null}, rejected_nodes: {}, rejected_asks: {a9: ""}}',
        "rm: {new: [twice, k]}",
        'rm: {new: {app-1: "2..3", app-2: 0}}',
        "rm: {released: [{key: y, type: TIMEOUT}, {key: x, type: TIMEOUT}, {key: x, type: STOPPED_BY_RM}], released_asks: []}",
        "rm: {released: [{key: x}, {type: TIMEOUT}, {key: x, type: STOPPED_BY_RM}]}",
        "rm: {app_states: {app-1: [Accepted, Running], app-2: []}, container_states: {a7: FAILED, a8: null}}",
        'rm: {log: ["new k", "app app-1 Running"]}',
        "events: [{object: a, detail: APP_NEW}, {object: n1}]",
        "events: [{object: a, detail: APP_REJECT, type: APP, change: SET, message: full}, {reference: k}]",
        "invariants: hold",
        "any_of: [{apps: {app-1: null}}, {apps: {app-1: {state: Running}}, nodes: {n1: {allocations: 2}}}]",
    ],
)  # fmt: skip
def test_what_holds(written: str) -> None:
    assert differences(written) == []


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("apps: {app-1: {state: New, allocations: 2}}", [("apps.app-1.state", "New", "Running")]),
        ("apps: {app-1: {queue: root}}", [("apps.app-1.queue", "root", "root.a")]),
        ("apps: {app-1: {allocated: {vcore: 4}}}", [("apps.app-1.allocated", {"vcore": 4}, APP["allocated"])]),
        ("apps: {app-1: {allocated: {}}}", [("apps.app-1.allocated", {}, APP["allocated"])]),
        ('apps: {app-1: {allocated: {vcore: "> 4", memory: 7}}}', [("apps.app-1.allocated", {"vcore": "> 4", "memory": 7}, APP["allocated"])]),
        ("apps: {app-1: {pending: {vcore: 1}}}", [("apps.app-1.pending", {"vcore": 1}, {})]),
        ("apps: {app-1: {allocations: 1}}", [("apps.app-1.allocations", 1, 2)]),
        ('apps: {app-1: {allocations: ">= 3"}}', [("apps.app-1.allocations", ">= 3", 2)]),
        ('apps: {app-1: {allocations: "<= 1"}}', [("apps.app-1.allocations", "<= 1", 2)]),
        ('apps: {app-1: {allocations: "> 2"}}', [("apps.app-1.allocations", "> 2", 2)]),
        ('apps: {app-1: {allocations: "< 2"}}', [("apps.app-1.allocations", "< 2", 2)]),
        ('apps: {app-1: {allocations: "3..4"}}', [("apps.app-1.allocations", "3..4", 2)]),
        ('apps: {app-1: {allocations: "-4..1"}}', [("apps.app-1.allocations", "-4..1", 2)]),
        ("apps: {app-1: {placeholder_count: 0, reservations: 1}}", [("apps.app-1.placeholder_count", 0, 1), ("apps.app-1.reservations", 1, 0)]),
        ("apps: {app-1: {task_groups: {tg: {replaced: 2}, x: {count: 1}}}}", [("apps.app-1.task_groups.tg.replaced", 2, 1), ("apps.app-1.task_groups.x", {"count": 1}, None)]),
        ("apps: {app-1: null}", [("apps.app-1", None, APP)]),
        ("apps: {app-2: {}}", [("apps.app-2", {}, None)]),
        ('apps: {app-2: {allocated: {vcore: ">= 0"}}}', [("apps.app-2", {"allocated": {"vcore": ">= 0"}}, None)]),
        ("queues: {root.A: {state: Draining, dynamic: true}}", [("queues.root.A.state", "Draining", "Active"), ("queues.root.A.dynamic", True, False)]),
        ("queues: {root.A: null}", [("queues.root.A", None, QUEUE)]),
        ("queues: {root.b: {max: {}}}", [("queues.root.b", {"max": {}}, None)]),
        ("nodes: {n1: {schedulable: false, available: {}}}", [("nodes.n1.schedulable", False, True), ("nodes.n1.available", {}, {"vcore": -2})]),
        ("nodes: {n1: null}", [("nodes.n1", None, NODE)]),
        ("users: {bob: {root.a: {usage: {}, running_apps: 0}}}", [("users.bob.root.a.usage", {}, {"vcore": 4}), ("users.bob.root.a.running_apps", 0, 1)]),
        ("users: {bob: {root.a: null}}", [("users.bob.root.a", None, VIEWS["users"]["bob"]["root.a"])]),
        ("users: {bob: null}", [("users.bob", None, VIEWS["users"]["bob"])]),
        ("users: {ann: {root.a: {running_apps: 1}}}", [("users.ann.root.a.running_apps", 1, 0)]),
        ("groups: {dev: {root: {usage: {vcore: 2}}}}", [("groups.dev.root.usage", {"vcore": 2}, {"vcore": 3})]),
        ("allocations: {k: {node: n2}}", [("allocations.k.node", "n2", "n1")]),
        ("allocations: {k: {node: [n2, n3], priority: 2}}", [("allocations.k.node", ["n2", "n3"], "n1"), ("allocations.k.priority", 2, 3)]),
        ("allocations: {k: {placeholder: true}}", [("allocations.k.placeholder", True, False)]),
        ("allocations: {twice: {node: n1}}", [("allocations.twice.node", "n1", "n2")]),
        ("allocations: {k: null}", [("allocations.k", None, VIEWS["allocations"]["k"])]),
        ("allocations: {gone: {node: n1}}", [("allocations.gone", {"node": "n1"}, None)]),
        ("pending: {app-1: [a3, a2]}", [("pending.app-1", ["a3", "a2"], ["a2", "a3"])]),
        ("pending: {app-1: [a2]}", [("pending.app-1", ["a2"], ["a2", "a3"])]),
        ("pending: {app-1: null}", [("pending.app-1", None, ["a2", "a3"])]),
        ("pending: {app-3: [a1]}", [("pending.app-3", ["a1"], ())]),
        ("rm: {accepted_apps: [app-1]}", [("rm.accepted_apps", ["app-1"], ["app-1", "app-1", "app-2"])]),
        ("rm: {accepted_nodes: []}", [("rm.accepted_nodes", [], ["n1"])]),
        ("rm: {rejected_apps: {app-3: node}}", [("rm.rejected_apps.app-3", "node", ["no queue", "wrong user"])]),
        ('rm: {rejected_apps: {app-9: ""}}', [("rm.rejected_apps.app-9", "", ())]),
        ("rm: {rejected_asks: {a9: null}}", [("rm.rejected_asks.a9", None, ["no resources"])]),
        ("rm: {rejected_asks: {}}", [("rm.rejected_asks", {}, {"a9": ["no resources"]})]),
        ("rm: {new: [k]}", [("rm.new", ["k"], ["k", "twice", "twice"])]),
        ("rm: {new: []}", [("rm.new", [], ["k", "twice", "twice"])]),
        ("rm: {new: {}}", [("rm.new", {}, {"app-1": 3})]),
        ("rm: {new: {app-1: 2, app-2: 1}}", [("rm.new.app-1", 2, 3), ("rm.new.app-2", 1, 0)]),
        ("rm: {released: [{key: x, type: TIMEOUT}]}", [("rm.released", [{"key": "x", "type": "TIMEOUT"}], VIEWS["rm"]["released"])]),
        ("rm: {released: [{key: y}, {key: y}, {key: x}]}", [("rm.released", [{"key": "y"}, {"key": "y"}, {"key": "x"}], VIEWS["rm"]["released"])]),
        ("rm: {released_asks: [{key: x, type: TIMEOUT}]}", [("rm.released_asks", [{"key": "x", "type": "TIMEOUT"}], [])]),
        ("rm: {app_states: {app-1: [Running, Accepted]}}", [("rm.app_states.app-1", ["Running", "Accepted"], ["Accepted", "Running"])]),
        ("rm: {app_states: {app-1: [], app-2: [New]}}", [("rm.app_states.app-1", [], ["Accepted", "Running"]), ("rm.app_states.app-2", ["New"], ())]),
        ("rm: {app_states: {}}", [("rm.app_states", {}, {"app-1": ["Accepted", "Running"]})]),
        ("rm: {container_states: {a7: SKIPPED, a8: FAILED}}", [("rm.container_states.a7", "SKIPPED", "FAILED"), ("rm.container_states.a8", "FAILED", None)]),
        ("rm: {container_states: {a7: null}}", [("rm.container_states.a7", None, "FAILED")]),
        ('rm: {log: ["app app-1 Running", "new k"]}', [("rm.log", ["app app-1 Running", "new k"], VIEWS["rm"]["log"])]),
        ('rm: {log: ["new k", "new k"]}', [("rm.log", ["new k", "new k"], VIEWS["rm"]["log"])]),
        ("rm: {log: []}", [("rm.log", [], VIEWS["rm"]["log"])]),
        ("events: [{object: a, detail: APP_REJECT}, {object: a, detail: APP_NEW}]", [("events", [{"object": "a", "detail": "APP_REJECT"}, {"object": "a", "detail": "APP_NEW"}], ["a APP_NEW", "a APP_REJECT"])]),
        ("events: [{object: n1, reference: j}]", [("events", [{"object": "n1", "reference": "j"}], ["n1 NODE_ALLOC"])]),
        ("events: [{detail: QUEUE_MAX}]", [("events", [{"detail": "QUEUE_MAX"}], ["a APP_NEW", "a APP_REJECT", "n1 NODE_ALLOC"])]),
        ("events: [{object: a, message: empty}]", [("events", [{"object": "a", "message": "empty"}], ["a APP_NEW", "a APP_REJECT"])]),
        ("events: [{object: a, change: REMOVE}]", [("events", [{"object": "a", "change": "REMOVE"}], ["a APP_NEW", "a APP_REJECT"])]),
        ("events: [{object: a, type: NODE}]", [("events", [{"object": "a", "type": "NODE"}], ["a APP_NEW", "a APP_REJECT"])]),
        ("any_of: [{apps: {app-1: {state: New}}}, {nodes: {n1: null}}]", [("any_of.1.apps.app-1.state", "New", "Running"), ("any_of.2.nodes.n1", None, NODE)]),
    ],
)  # fmt: skip
def test_what_does_not_hold(written: str, expected: list[tuple[str, Any, Any]]) -> None:
    assert expected == differences(written)
