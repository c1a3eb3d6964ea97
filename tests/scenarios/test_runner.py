"""Running scenarios: where a run ends, what a failure says, what is compared with what."""

import threading
from pathlib import Path
from typing import Any, get_args

import pytest

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.quiescence import NoRest
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.errors import CoreFailed
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.rm_events import ApplicationsRequested
from yunikorn_actors.scenario import drivers
from yunikorn_actors.scenario.document import DEFAULT_QUEUES, Scenario, parse_scenario
from yunikorn_actors.scenario.drivers import DriverName, ServiceDriver, SimulatorDriver
from yunikorn_actors.scenario.runner import Outcome, RunOptions, run_file, run_scenario

NODE = "create_node: {id: n1, capacity: {vcore: 10}}"
APP = "add_app: {id: app-1, queue: root.default}"
ASK = "ask: {app: app-1, key: a1, resource: {vcore: 1}}"
RACE = "together: [add_app: {id: a, queue: root.default}, add_app: {id: b, queue: root.default}]"
IN_ORDER = 'expect: {rm: {log: ["accepted_app a", "accepted_app b"]}}'
BAD_QUEUES = "{partitions: [{name: default, queues: [{name: root, queues: [{name: a, resources: {max: {vcore: x}}}]}]}]}"


def scenario(*steps: str, head: str = "name: test") -> Scenario:
    lines = "".join(f"  - {step}\n" for step in steps)
    return parse_scenario(f"{head}\nsteps:\n{lines}", "the file.yaml")


def run(*steps: str, head: str = "name: test", **options: Any) -> Outcome:
    return run_scenario(scenario(*steps, head=head), RunOptions(**options))


def failures(outcome: Outcome) -> list[tuple[int, int, str, Any, Any]]:
    return [(it.step, it.line, it.path, it.expected, it.actual) for it in outcome.failures]


# --- where a run ends -----------------------------------------------------------------------------


def test_a_run_that_holds() -> None:
    outcome = run(NODE, APP, ASK, "advance: 1500ms", "expect: {apps: {app-1: {state: Running}}}")
    expected = (True, "test", "the file.yaml", 0, (), 1, 1500.0, None)
    assert expected == (
        outcome.ok, outcome.name, outcome.file, outcome.seed, outcome.failures, outcome.runs,
        outcome.virtual_ms, outcome.error,
    )  # fmt: skip
    assert outcome.messages > 10
    assert outcome.wall_ms > 0


def test_a_run_ends_with_all_failures_of_the_first_step_that_has_any() -> None:
    outcome = run(
        APP,
        "expect: {apps: {app-1: {state: New}}}",
        "expect: {apps: {app-1: {state: Running, allocations: 1}}, nodes: {n1: {}}}",
        "expect: {apps: {app-1: null}}",
    )
    assert [
        (3, 5, "apps.app-1.state", "Running", "New"),
        (3, 5, "apps.app-1.allocations", 1, 0),
        (3, 5, "nodes.n1", {}, None),
    ] == failures(outcome)
    assert not outcome.ok


def test_a_range_of_seeds_ends_with_the_first_that_fails() -> None:
    race = scenario(RACE, IN_ORDER)
    alone = [run_scenario(race, RunOptions(seeds=(seed,))).ok for seed in range(20)]
    first = alone.index(False)
    outcome = run_scenario(race, RunOptions(seeds=range(20)))
    assert first > 0
    assert (first, first + 1, False) == (outcome.seed, outcome.runs, outcome.ok)


def test_a_range_of_seeds_that_holds_gives_the_last_one() -> None:
    outcome = run(RACE, "expect: {rm: {accepted_apps: [a, b]}}", seeds=range(3, 9))
    assert (8, 6, True) == (outcome.seed, outcome.runs, outcome.ok)


def test_a_file_that_cannot_be_read() -> None:
    outcome = run_file(Path("none.yaml"), RunOptions())
    assert outcome.error is not None
    assert outcome.error.startswith("none.yaml: cannot be read:")
    assert (False, 0) == (outcome.ok, outcome.runs)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "path", "expected", "actual"),
    [
        (f"config: {BAD_QUEUES}", "config", "accepted", "invalid quantity"),
        (f"config: {{queues: {BAD_QUEUES}, expect_error: limit}}", "config.expect_error", "limit", "invalid quantity"),
        ("config: {queues: {partitions: [{name: default, queues: [{name: root}]}]}, expect_error: ''}", "config.expect_error", "", "accepted"),
        (f"register: {{rm: rm-2, config: {BAD_QUEUES}}}", "register", "accepted", "invalid quantity"),
        ("register: {expect_error: twice}", "register.expect_error", "twice", "accepted"),
        ("raw: {call: update_node, request: {rmID: rm-1, nodes: 4}}", "raw", "accepted", "NodeRequest: Expected `array`, got `int` - at `$.nodes`"),
        ("raw: {call: update_node, request: {rmID: rm-1}, expect_error: x}", "raw.expect_error", "x", "accepted"),
        ("remove_app: {id: a, rm: rm-9}", "remove_app", "accepted", 'RmID="rm-9" not registered'),
        ("confirm: {app: a, key: k, type: TIMEOUT, rm: rm-9}", "confirm", "accepted", "'rm-9' is not registered"),
        ("lose_rm: rm-9", "lose_rm", "accepted", 'RmID="rm-9" not registered'),
        (f"create_node: {{id: n, capacity: {{vcore: {2**63}}}}}", "create_node", "accepted", "NodeRequest.nodes[0].schedulable_resource"),
        ("together: [remove_app: a, remove_app: {id: a, rm: rm-9}]", "remove_app", "accepted", "not registered"),
    ],
)  # fmt: skip
def test_refusals_that_fail(step: str, path: str, expected: str, actual: str) -> None:
    (failure,) = run(NODE, step).failures
    assert (2, path, expected) == (failure.step, failure.path, failure.expected)
    assert actual in failure.actual


@pytest.mark.parametrize(
    "step",
    [
        f"config: {{queues: {BAD_QUEUES}, expect_error: invalid quantity}}",
        f"register: {{rm: rm-2, config: {BAD_QUEUES}, expect_error: ''}}",
        "raw: {call: update_allocation, request: {rmID: rm-1, asks: [{}]}, expect_error: allocation_key}",
        "raw: {call: update_application, request: {rmID: rm-9}, expect_error: not registered}",
        "raw: {call: update_configuration, request: {rmID: rm-1, config: 5}, expect_error: UpdateConfigurationRequest}",
        "raw: {call: register_resource_manager, request: {}, expect_error: rm_id}",
        "raw: {call: update_node, request: {rmId: rm-1}, expect_error: unknown field}",
    ],
)  # fmt: skip
def test_refusals_that_are_expected(step: str) -> None:
    assert failures(run(NODE, step, "expect: {nodes: {n1: {}}}")) == []


def test_a_raw_request_is_taken_like_any_other() -> None:
    outcome = run(
        "raw: {call: update_node, request: {rmID: rm-1, nodes: [{nodeID: n1, action: 1, schedulableResource: {resources: {vcore: {value: 7}}}}]}}",
        "raw: {call: register_resource_manager, request: {rmID: rm-2, config: 'partitions: [{name: p, queues: [{name: root}]}]'}}",
        "create_node: {id: n2, rm: rm-2, partition: p}",
        "expect: {nodes: {n1: {capacity: {vcore: 7}}, n2: null}, rm: {accepted_nodes: [n1]}}",
    )
    assert failures(outcome) == []


def test_a_bad_configuration_of_the_file_fails_as_step_0() -> None:
    (failure,) = run(NODE, head=f"name: x\nqueues: {BAD_QUEUES}").failures
    assert (0, 1, "register") == (failure.step, failure.line, failure.path)


# --- resource managers ----------------------------------------------------------------------------


def test_registering_again_starts_with_an_empty_view() -> None:
    outcome = run(
        NODE,
        "expect: {rm: {accepted_nodes: [n1], log: [accepted_node n1]}, nodes: {n1: {}}}",
        "register: {rm: rm-1}",
        "expect: {rm: {accepted_nodes: [], log: []}, nodes: {n1: null}}",
        APP,
        "expect: {rm: {accepted_apps: [app-1]}}",
    )
    assert failures(outcome) == []


def test_a_refused_registration_leaves_the_former_one_alone() -> None:
    again = f"register: {{config: {BAD_QUEUES}, expect_error: quantity}}"
    outcome = run(NODE, again, APP, "expect: {rm: {accepted_nodes: [n1], accepted_apps: [app-1]}}")
    assert failures(outcome) == []


def test_without_any_registration_everything_is_missing() -> None:
    refused = f"register: {{config: {BAD_QUEUES}, expect_error: quantity}}"
    views = (
        "apps: {a: null}, queues: {root: null}, users: {u: null}, pending: {a: []}, rm: {log: []}"
    )
    assert failures(run(refused, f"expect: {{{views}, events: []}}")) == []


def test_only_the_first_resource_manager_and_its_default_partition_are_looked_at() -> None:
    config = "{partitions: [{name: default, queues: [{name: root}]}, {name: gpu, queues: [{name: root}]}]}"
    outcome = run(
        f"register: {{config: {config}}}",
        "register: {rm: rm-2}",
        "create_node: {id: n2, rm: rm-2}",
        "create_node: {id: g1, partition: gpu}",
        "create_node: {id: n1}",
        "drain_node: {id: g1, partition: gpu}",
        "expect: {nodes: {n1: {schedulable: true}, n2: null, g1: null}, rm: {accepted_nodes: [n1, g1]}}",
    )
    assert failures(outcome) == []


def test_one_that_leaves_takes_everything_with_it() -> None:
    gone = "expect: {nodes: {n1: null}, queues: {root: null}, apps: {app-1: null}}"
    assert failures(run(NODE, APP, "unregister: rm-1", gone)) == []
    assert failures(run(NODE, "lose_rm: rm-1", "expect: {nodes: {n1: {}}}")) == []


TIMED = (NODE, APP, "ask: {app: app-1, key: a1, resource: {vcore: 1}, timeout: 5s}", "advance: 6s")
HELD, GIVEN_BACK = (
    f"expect: {{nodes: {{n1: {{allocations: {number}}}}}, rm: {{released: [{{key: a1, type: TIMEOUT}}]}}}}"
    for number in (1, 0)
)


@pytest.mark.parametrize("confirm", ["all", "{app: app-1, key: a1, type: TIMEOUT}"])
def test_in_manual_mode_nothing_is_confirmed_before_a_step_says_so(confirm: str) -> None:
    steps = (*TIMED, HELD, f"confirm: {confirm}", GIVEN_BACK, "confirm: all", GIVEN_BACK)
    assert failures(run(*steps, head="name: x\nrm: {confirm: manual}")) == []


@pytest.mark.parametrize("driver", get_args(DriverName))
def test_in_auto_mode_everything_is_confirmed_at_once(driver: str) -> None:
    assert failures(run(*TIMED, GIVEN_BACK, driver=driver)) == []


# --- what requests say ----------------------------------------------------------------------------


def test_nodes_and_asks_in_numbers() -> None:
    outcome = run(
        "create_node: {id: n, count: 2, capacity: {vcore: 2}}",
        "create_node: {ids: [x, y], capacity: {vcore: 1}, draining: true, occupied: {vcore: 1}}",
        APP,
        "ask: {app: app-1, key: a, count: 3, resource: {vcore: 1}}",
        "expect: {nodes: {n-0: {}, n-1: {}, x: {schedulable: false, available: {}}, y: {occupied: {vcore: 1}}}, allocations: {a-0: {}, a-1: {}, a-2: {}, a: null}}",
        "undrain_node: x",
        "update_node: {id: x, occupied: {}, capacity: {vcore: 5}}",
        "remove_node: y",
        "expect: {nodes: {x: {schedulable: true, available: {vcore: 5}}, y: null}}",
    )
    assert failures(outcome) == []


def test_recovered_allocations_are_known_by_a_uuid_made_of_their_key() -> None:
    outcome = run(
        APP,
        "create_node: {id: n1, capacity: {vcore: 9}, allocations: [{key: a, app: app-1, resource: {vcore: 2}, priority: 3}]}",
        "bind: {app: app-1, key: b, node: n1, resource: {vcore: 3}}",
        "bind: {app: app-1, key: c, node: n9, resource: {vcore: 3}}",
        "expect: {allocations: {a: {node: n1, priority: 3}, b: {node: n1}, c: null}, rm: {rejected_asks: {c: ''}, new: [b]}}",
        "raw: {call: update_allocation, request: {rmID: rm-1, releases: {allocationsToRelease: [{UUID: a-recovered, applicationID: app-1, terminationType: 1}]}}}",
        "release: {app: app-1}",
        "expect: {rm: {released: [{key: a, type: STOPPED_BY_RM}, {key: b, type: STOPPED_BY_RM}], released_asks: []}}",
    )
    assert failures(outcome) == []


def test_asks_are_withdrawn_by_key_or_all_at_once() -> None:
    outcome = run(
        APP,
        "ask: {app: app-1, key: a, count: 3, resource: {vcore: 1}}",
        "release_ask: {app: app-1, key: a-1}",
        "expect: {pending: {app-1: [a-0, a-2]}}",
        "release_ask: {app: app-1}",
        "expect: {pending: {app-1: []}, rm: {released_asks: []}}",
    )
    assert failures(outcome) == []


def test_applications_that_ended_are_shown_until_they_are_removed() -> None:
    outcome = run(
        NODE,
        APP,
        ASK,
        "release: {app: app-1, key: a1}",
        "advance: 1m",
        "add_app: {id: lost, queue: root.nowhere.to.go, user: '%'}",
        "expect: {apps: {app-1: {state: Completed, queue: root.default, allocated: {}, allocations: 0}, lost: {state: Rejected}}}",
        "remove_app: app-1",
        "expect: {apps: {app-1: null, lost: {}}}",
        APP,
        "expect: {apps: {app-1: {state: New}}}",
    )
    assert failures(outcome) == []


def test_settings_of_the_file_are_those_of_the_core() -> None:
    head = "name: x\nsettings: {completing_timeout: 80s}"
    steps = (NODE, APP, ASK, "release: {app: app-1, key: a1}", "advance: 79s")
    waiting, over = "{apps: {app-1: {state: Completing}}}", "{apps: {app-1: {state: Completed}}}"
    outcome = run(*steps, f"expect: {waiting}", "advance: 1s", f"expect: {over}", head=head)
    assert failures(outcome) == []


# --- invariants -----------------------------------------------------------------------------------


class ObjectsTo:
    """Objects to an application, in one way or another."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:  # noqa: ARG002
        if isinstance(delivery.message, ApplicationsRequested):
            raise self._error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InvariantViolation("two and two is five"), "two and two is five; repeat: "),
        (KeyError("k"), "KeyError('k') in delivered (test_runner.py:"),
    ],
)
def test_what_a_checker_raises_is_a_failure_with_the_line_that_repeats_it(
    error: Exception, text: str
) -> None:
    outcome = run(NODE, APP, seeds=(5,), topology="fused", checkers=lambda: (ObjectsTo(error),))
    (failure,) = outcome.failures
    assert (2, "invariants", "hold") == (failure.step, failure.path, failure.expected)
    assert failure.actual.startswith(text)
    command = "yunikorn-actors scenario run 'the file.yaml' --seed 5 --topology fused"
    assert failure.actual.endswith(f"; repeat: {command}")


class BreaksAtNodes(si.ResourceManagerCallback):
    def update_node(self, response: si.NodeResponse) -> None:
        raise ValueError(response.accepted[0].node_id)


class WaitsAtNodes(si.ResourceManagerCallback):
    def __init__(self) -> None:
        self.go_on = threading.Event()

    def update_node(self, response: si.NodeResponse) -> None:  # noqa: ARG002
        self.go_on.wait(10)


def topology(name: TopologyName) -> Topology:
    return Topology(name, settings=Settings(), instance=drivers.INSTANCE)


def create_node(core: si.SchedulerAPI, callback: si.ResourceManagerCallback) -> None:
    request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=DEFAULT_QUEUES)
    core.register_resource_manager(request, callback)
    node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE)
    core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(node,)))


def test_an_error_in_a_callback_of_the_simulator_does_not_pass_unseen() -> None:
    driver = SimulatorDriver(topology=topology("proposing"), seed=0, trace=None, checkers=())
    create_node(driver.core, BreaksAtNodes())
    with pytest.raises(ValueError, match="n1"):
        driver.settle()


def test_a_core_that_has_failed_does_not_come_to_rest() -> None:
    driver = ServiceDriver(driver="threads", topology=topology("fused"), trace=None, time_scale=1)
    driver.core.failure = CoreFailed("context failed")
    try:
        with pytest.raises(CoreFailed, match="context failed"):
            driver.settle()
    finally:
        driver.close()


def test_no_rest_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "REST_TIMEOUT_S", 0.2)
    driver = ServiceDriver(
        driver="threads", topology=topology("proposing"), trace=None, time_scale=1
    )
    callback = WaitsAtNodes()
    try:
        create_node(driver.core, callback)
        with pytest.raises(NoRest, match="no rest within"):
            driver.settle()
    finally:
        callback.go_on.set()
        driver.close()
