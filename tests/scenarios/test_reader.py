"""Reading scenario files: what is taken, and how a refusal names the place."""

from pathlib import Path
from typing import Any

import pytest

from yunikorn_actors import si
from yunikorn_actors.config import parse_config
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.document import (
    Scenario,
    ScenarioError,
    parse_scenario,
    read_scenario,
)
from yunikorn_actors.values.durations import MINUTE, SECOND


def scenario(*steps: str, head: str = "name: test") -> Scenario:
    lines = "".join(f"  - {step}\n" for step in steps)
    return parse_scenario(f"{head}\nsteps:\n{lines}", "file.yaml")


def only_step(step: str) -> w.Step:
    return scenario(step).steps[0].step


def refusal(source: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(source, "file.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("", "file.yaml:1: the file is empty; write at least `name` and `steps`"),
        ("- a\n", "file.yaml:1: a list where a mapping is expected"),
        ("steps: [advance: 1s]\n", "file.yaml:1: 'name' is missing"),
        ("name: x\n", "file.yaml:1: 'steps' is missing"),
        ("name: x\nsteps: []\n", "file.yaml:2: steps: the list is empty; write a list of steps"),
        ("name: x\nsteps: 4\n", "file.yaml:2: steps: '4' where a list of steps is expected"),
        ("name: |\n  a\n  b\nsteps: [advance: 1s]\n", "file.yaml:1: name: a name is one line"),
        (
            "name: x\nstep: []\n",
            "file.yaml:2: unknown key 'step'; allowed: about, always, eventually, format, name, policies, queues, rm, settings, sometimes, steps",
        ),
        ("name: x\nname: y\n", "file.yaml:2: duplicate key 'name'; keep one of the two"),
        ("name: x\n[a]: y\n", "file.yaml:2: a list where a single text as the key is expected"),
        ("name: &a x\n", "file.yaml:1: anchors and aliases are not allowed (write the value out)"),
        (
            "name: x\nsteps: [\n",
            "file.yaml:3: no YAML: expected the node content, but found '<stream end>' (correct the syntax)",
        ),
        (
            "name: x\nrm: {confirm: never}\n",
            "file.yaml:2: rm: confirm: unknown word 'never'; allowed: auto, manual",
        ),
        ("name: x\nqueues: {}\n", "file.yaml:2: queues: a configuration must hold 'partitions'"),
        (
            "name: x\nsettings:\n  completing_timeout: soon\n",
            "file.yaml:3: settings: completing_timeout: 'soon' where a duration such as 200ms, 5s or 1h30m is expected",
        ),
        (
            "name: x\nsettings: {completing_timeout: 0s}\n",
            "file.yaml:2: settings: Settings.completing_timeout_ns: 0 is not allowed: give a duration above 0 such as '30s' or '1h30m', or nanoseconds from 1 to 9223372036854775807",
        ),
        (
            "name: x\nsettings: {completing: 5s}\n",
            "file.yaml:2: settings: unknown key 'completing'; allowed: completing_timeout, cycle_max, event_push, event_push_capacity, event_ring_capacity, history, history_max, inflight_max, paused_timeout, placeholder_timeout, predicate_timeout, preemption_delay, queue_cleaning, rejected_max, reservation_delay, slice_max, starting_timeout, turn_max",
        ),
    ],
)
def test_documents_that_are_refused(source: str, text: str) -> None:
    assert text == refusal(source)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("asks: {}", "unknown step 'asks'; allowed: add_app, advance, ask, bind, config, confirm, create_node, drain_node, expect, lose_rm, predicate, raw, register, release, release_ask, remove_app, remove_node, together, undrain_node, unregister, update_node"),
        ("{ask: {}, bind: {}}", "a step has exactly one key, not 2"),
        ("ask", "'ask' where a mapping is expected"),
        ("ask: {app: a, key: k, sise: 2}", "ask: unknown key 'sise'; allowed: app, count, key, max_allocations, originator, partition, placeholder, preemption, priority, required_node, resource, rm, tags, task_group, timeout"),
        ("ask: {app: a}", "ask: 'key' is missing"),
        ("ask: {app: a, key: }", "ask: key: '' where a text is expected"),
        ("ask: {app: a, key: [k]}", "ask: key: a list where a text is expected"),
        ("ask: {app: a, key: k, count: two}", "ask: count: 'two' where a whole number is expected"),
        ("ask: {app: a, key: k, count: '2'}", "ask: count: '2' where a whole number is expected"),
        ("ask: {app: a, key: k, count: 010}", "ask: count: '010' where a whole number is expected"),
        ("ask: {app: a, key: k, placeholder: 1}", "ask: placeholder: '1' where true or false is expected"),
        ("ask: {app: a, key: k, resource: {vcore: 1.5}}", "ask: resource: vcore: '1.5' where a whole number is expected"),
        ("ask: {app: a, key: k, timeout: -5s}", "ask: timeout: '-5s' where a duration such as 200ms, 5s or 1h30m is expected"),
        ("add_app: {id: a, style: soft}", "add_app: style: unknown word 'soft'; allowed: Hard, Soft"),
        ("add_app: {id: a, groups: dev}", "add_app: groups: 'dev' where a list is expected"),
        ("create_node: {capacity: {vcore: 1}}", "create_node: name the nodes by `id`, by `id` with `count`, or by `ids`"),
        ("create_node: {id: n1, ids: [n2]}", "create_node: name the nodes by `id`, by `id` with `count`, or by `ids`"),
        ("create_node: {ids: [n2], count: 2}", "create_node: name the nodes by `id`, by `id` with `count`, or by `ids`"),
        ("create_node: {id: n, allocations: [{key: a, app: b}]}", "create_node: allocations: item 1: 'resource' is missing"),
        ("remove_node: {node: n1}", "remove_node: unknown key 'node'; allowed: id, partition, rm"),
        ("release: {app: a, type: STOPPED}", "release: type: unknown word 'STOPPED'; allowed: PLACEHOLDER_REPLACED, PREEMPTED_BY_SCHEDULER, SCHEDULING_FAILED_ON_RM, STOPPED_BY_RM, TIMEOUT, UNKNOWN_TERMINATION_TYPE"),
        ("confirm: {app: a, key: k}", "confirm: 'type' is missing"),
        ("bind: {key: k, node: n}", "bind: 'app' is missing; only work with the tag 'foreign' has none"),
        ("release: {type: TIMEOUT}", "release: 'app' is missing; only with a 'key' it may be left out"),
        ("confirm: some", "confirm: unknown word 'some'; allowed: all"),
        ("config: {queues: {}}", "config: queues: a configuration must hold 'partitions'"),
        ("config: {}", "config: a configuration must hold 'partitions'"),
        ("raw: {call: drop, request: {}}", "raw: call: unknown word 'drop'; allowed: register_resource_manager, update_allocation, update_application, update_configuration, update_node"),
        ("raw: {call: update_node, request: {rmID: !!int x}}", "raw: request: cannot be written as JSON: invalid literal for int() with base 10: 'x'"),
        ("create_node: {id: n, draining: !!bool x}", "create_node: draining: 'x' where true or false is expected"),
        ("predicate: deny", "predicate: unknown word 'deny'; allowed: allow"),
        ("advance: 5", "advance: '5' where a duration such as 200ms, 5s or 1h30m is expected"),
        ("together: [advance: 5s]", "together: step 1: unknown step 'advance'; allowed: add_app, ask, bind, config, confirm, create_node, drain_node, lose_rm, predicate, raw, register, release, release_ask, remove_app, remove_node, undrain_node, unregister, update_node"),
        ("expect: {app: {}}", "expect: unknown key 'app'; allowed: allocations, any_of, apps, events, groups, invariants, nodes, pending, queues, rm, users"),
        ("expect: {apps: {a: {stat: New}}}", "expect: apps: a: unknown key 'stat'; allowed: allocated, allocations, pending, placeholder_count, placeholders, queue, reservations, state, task_groups"),
        ("expect: {apps: {a: {allocations: many}}}", "expect: apps: a: allocations: 'many' where a whole number or a comparison such as \">= 3\" or \"2..4\" is expected"),
        ("expect: {apps: {a: {allocations: 4..2}}}", "expect: apps: a: allocations: '4..2' where a whole number or a comparison such as \">= 3\" or \"2..4\" is expected"),
        ("expect: {rm: {released: [{key: a, type: GONE}]}}", "expect: rm: released: item 1: type: unknown word 'GONE'; allowed: PLACEHOLDER_REPLACED, PREEMPTED_BY_SCHEDULER, SCHEDULING_FAILED_ON_RM, STOPPED_BY_RM, TIMEOUT, UNKNOWN_TERMINATION_TYPE"),
        ("expect: {any_of: []}", "expect: any_of: an empty list, so no alternative can hold"),
        ("expect: {invariants: maybe}", "expect: invariants: unknown word 'maybe'; allowed: hold"),
    ],
)  # fmt: skip
def test_steps_that_are_refused(step: str, text: str) -> None:
    source = f"name: x\nsteps:\n  - advance: 1s\n  - {step}\n"
    assert f"file.yaml:4: steps: step 2: {text}" == refusal(source)


def test_a_fault_inside_a_block_has_the_line_of_its_value() -> None:
    source = "name: x\nsteps:\n  - ask:\n      app: a\n      key: k\n      resource:\n        vcore: 2m\n"
    text = "file.yaml:7: steps: step 1: ask: resource: vcore: '2m' where a whole number is expected"
    assert text == refusal(source)


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_text("name: x\n#" + "x" * 4 * 1024 * 1024)
    with pytest.raises(ScenarioError) as caught:
        read_scenario(file)
    assert f"{file}:1: text larger than 4194304 bytes (make it smaller)" == str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9\n")
    for name, why in (("none.yaml", "No such file"), ("latin.yaml", "line 1 is not UTF-8")):
        with pytest.raises(ScenarioError, match=why):
            read_scenario(tmp_path / name)


def test_a_document_with_everything() -> None:
    head = (
        "name: all of it\nabout: >\n  more\n  of it\nrm: {confirm: manual}\n"
        "settings: {completing_timeout: 80s, reservation_delay: 200ms, placeholder_timeout: 1m30s}\n"
        "queues: {partitions: [{name: default, queues: [{name: root}]}]}"
    )
    read = scenario("advance: 5m1s", head=head)
    settings = Settings(
        completing_timeout_ns=80 * SECOND,
        reservation_delay_ns=SECOND // 5,
        placeholder_timeout_ns=90 * SECOND,
    )
    assert ("all of it", "manual", settings) == (read.name, read.confirmation, read.settings)
    step = w.Advance(duration_ns=5 * MINUTE + SECOND)
    assert (w.WrittenStep(number=1, line=9, name="advance", step=step),) == read.steps


@pytest.mark.parametrize("field", Settings.__struct_fields__)
def test_every_setting_can_be_written(field: str) -> None:
    value = "3s" if field.endswith("_ns") else "3"
    read = scenario(
        "advance: 1s", head=f"name: x\nsettings: {{{field.removesuffix('_ns')}: {value}}}"
    )
    assert Settings(**{field: 3 * SECOND if field.endswith("_ns") else 3}) == read.settings


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("register: {}", w.Register()),
        ("register: {extra: {rm.maxUndelivered: '5'}}", w.Register(extra={"rm.maxUndelivered": "5"})),
        ("drain_node: n1", w.DrainNode(id="n1")),
        ("confirm: {rm: rm-2}", w.ConfirmAll(rm="rm-2")),
        ("undrain_node: {id: n1, rm: rm-2, partition: p}", w.UndrainNode(id="n1", rm="rm-2", partition="p")),
        ("remove_app: 007", w.RemoveApp(id="007")),
        ("lose_rm: rm-1", w.LoseRm(id="rm-1")),
        ("unregister: rm-1", w.Unregister(id="rm-1")),
        ("confirm: all", w.ConfirmAll()),
        ("confirm: {app: a, key: k, type: TIMEOUT}", w.Confirm(app="a", key="k", type=si.TerminationType.TIMEOUT)),
        ("release: {app: a}", w.Release(app="a", type=si.TerminationType.STOPPED_BY_RM)),
        ("predicate: allow", w.Predicate()),
        ("predicate: {deny: [{key: a*, node: n1}]}", w.Predicate(deny=(w.Denied(key="a*", node="n1"),))),
        ("predicate: {deny: [{raises: true}], victims: 2}", w.Predicate(deny=(w.Denied(raises=True),), victims=2)),
        ("ask: {app: a, key: 1, resource: {vcore: +2}, preemption: {allow_self: no}}", w.AddAsk(app="a", key="1", resource={"vcore": 2}, preemption=w.Preemption(allow_self=False))),
        ("raw: {call: update_node, request: {rmID: 1, nodes: [{x: null}], y: 2020-01-01}}", w.Raw(call="update_node", request=b'{"rmID": 1, "nodes": [{"x": null}], "y": "2020-01-01"}')),
    ],
)  # fmt: skip
def test_steps_that_are_read(step: str, expected: w.Step) -> None:
    assert expected == only_step(step)


@pytest.mark.parametrize(
    ("step", "names"),
    [
        ("create_node: {id: n1}", ("n1",)),
        ("create_node: {id: n, count: 3}", ("n-0", "n-1", "n-2")),
        ("create_node: {ids: [a, b]}", ("a", "b")),
    ],
)
def test_names_of_created_nodes(step: str, names: tuple[str, ...]) -> None:
    read = only_step(step)
    assert isinstance(read, w.CreateNode)
    assert names == read.names()


def test_a_configuration_comes_out_as_it_was_written() -> None:
    queues = '{name: a, submitacl: "*", resources: {max: {vcore: 500m, memory: 10, gpu: "8"}, guaranteed: {memory: 4}}}'
    step = only_step(
        f"config: {{partitions: [{{name: default, queues: [{{name: root, queues: [{queues}]}}]}}]}}"
    )
    assert isinstance(step, w.Config)
    leaf = parse_config(step.queues).partitions[0].root.children[0]
    amounts: tuple[Any, ...] = ({"vcore": 500, "memory": 10, "gpu": 8}, {"memory": 4})
    assert ("a", *amounts) == (leaf.name, leaf.max, leaf.guaranteed)


def test_a_configuration_with_the_error_it_must_cause() -> None:
    step = only_step("config: {queues: {partitions: []}, expect_error: limit, rm: rm-2}")
    assert w.Config(queues="{partitions: []}\n", expect_error="limit", rm="rm-2") == step
