"""Of what was preempted a recording says for whom, by which rule, and what stood against others."""

from pathlib import Path

import pytest

from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.scenario.document import read_scenario
from yunikorn_actors.scenario.runner import RunOptions, run_scenario
from yunikorn_actors.trace.causes import Answer, named, why
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.tables import wait_lines

SCENARIO = """
name: one gang goes, another is too important, a queue needs what it has
rm: {confirm: manual}
queues:
  partitions:
  - name: default
    queues:
    - name: root
      submitacl: "*"
      queues:
      - {name: research, properties: {preemption.grace: 30s}}
      - {name: safe, resources: {guaranteed: {gpu: 9}}}
      - {name: serving, properties: {preemption.delay: 1s}, resources: {guaranteed: {gpu: 2}}}
steps:
- create_node: {id: n1, capacity: {gpu: 8}}
- add_app: {id: one, queue: root.research, placeholder_ask: {gpu: 3}, style: Hard}
- ask: {app: one, key: one-hold, count: 3, resource: {gpu: 1}, task_group: rank, placeholder: true}
- ask: {app: one, key: one, count: 3, resource: {gpu: 1}, task_group: rank}
- confirm: all
- add_app: {id: two, queue: root.research, placeholder_ask: {gpu: 3}, style: Hard}
- ask: {app: two, key: two-hold, count: 3, resource: {gpu: 1}, task_group: rank, placeholder: true}
- ask: {app: two, key: two, count: 3, resource: {gpu: 1}, task_group: rank, priority: 7}
- confirm: all
- add_app: {id: s, queue: root.safe}
- ask: {app: s, key: s, count: 2, resource: {gpu: 1}}
- advance: 60s
- add_app: {id: web, queue: root.serving}
- ask: {app: web, key: w, count: 2, resource: {gpu: 1}, preemption: {allow_other: true}}
- advance: 5s
- confirm: all
- ask: {app: one, key: one-2, resource: {gpu: 1}, task_group: rank}
- advance: 5s
"""


@pytest.fixture(params=TOPOLOGIES)
def trace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    topology: TopologyName = request.param
    file, path = tmp_path / "s.yaml", tmp_path / "s.trace"
    file.write_text(SCENARIO)
    outcome = run_scenario(read_scenario(file), RunOptions(topology=topology, trace=path))
    assert outcome.ok, outcome
    return path


def _of(path: Path, key: str) -> Answer:
    with TraceReader(path) as reader:
        return why(reader, named({key}))


def test_a_victim_says_for_whom_it_went_and_what_stood_against_others(trace: Path) -> None:
    lines = [" ".join(line.split()) for line in wait_lines(_of(trace, "one-1").grouped())]
    start = next(number for number, line in enumerate(lines) if "preempted" in line)
    assert (
        "61.000 it is preempted for w-0 of web in root.serving, by the rule of the guarantee; "
        "it has 30 s to end allocation-18"
    ) == lines[start]
    assert [
        "it goes with its whole application",
        "cost: 3 allocations, 1 whole applications",
        "against 3 others: more important",
        "against 2 others: needed for a guarantee of its queue",
    ] == lines[start + 1 :]


def test_what_did_not_go_says_nothing_of_it(trace: Path) -> None:
    (waits,) = _of(trace, "two-1").waits
    assert "PREEMPTED" not in {it.cause for it in waits.periods}


def test_the_time_that_it_waited_does_not_count_what_ran(trace: Path) -> None:
    (waits,) = _of(trace, "one-1").waits
    assert ["PLACED", "PREEMPTED"] == [it.cause for it in waits.periods[-2:]]
    assert 0 == waits.spent().at_ns
