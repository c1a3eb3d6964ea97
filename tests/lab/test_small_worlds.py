"""Worlds in which a swarm found something wrong, made small: played in order, all oracles judge."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.oracles.run_oracles import all_oracles
from yunikorn_actors.lab.run_schedule import Outcome, play
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.tapes.tape import Tape
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.state.facts import (
    AllocationCommitted,
    AllocationRecovered,
    AllocationsCommitted,
    AskParked,
    AskRemoved,
    Fact,
    PreemptionDecided,
    SwapCompleted,
)


class Small(NamedTuple):
    text: str
    happened: Callable[[Outcome], bool]
    """Whether a run has what it is about."""
    looks: int = 0
    """When what stands beside the core is looked at follows from this number."""


def _facts(outcome: Outcome, kind: type[Fact]) -> list[Fact]:
    messages = [it.message for it in outcome.deliveries if it.mailbox == "event_publisher"]
    return [it for told in messages for it in getattr(told, "facts", ()) if type(it) is kind]


def _some(kind: type[Fact], count: int = 1) -> Callable[[Outcome], bool]:
    return lambda outcome: len(_facts(outcome, kind)) >= count


def _announced_a_report(outcome: Outcome) -> bool:
    messages = [it.message for it in outcome.deliveries]
    told = [it.response for it in messages if isinstance(it, CallUpdateAllocation)]
    return any(new.allocation_key == "b" for it in told for new in it.new)


CASES = {
    "devices that its node does not tell apart are not announced": Small("""\
name: a report names a device of a node that has said nothing of devices
steps:
  - create_node: {id: n1, capacity: {gpu: 2000}}
  - add_app: {id: app-1, queue: root.default}
  - bind: {app: app-1, key: b, node: n1, resource: {gpu: 500},
      tags: {yunikorn-actors/gpu-devices: '0'}}
""", _announced_a_report),
    "a queue stands by what its gate has let in": Small("""\
name: two leaves with gates
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues:
            - {name: b, properties: {application.sort.policy: fcfs}}
            - {name: c, properties: {application.sort.policy: easy}}
settings: {cycle_max: 1}
steps:
  - create_node: {id: n1, capacity: {vcore: 2, gpu: 1}}
  - add_app: {id: app-2, queue: root.b}
  - add_app: {id: app-3, queue: root.c}
  - together:
      - ask: {app: app-3, key: k, resource: {vcore: 1}, count: 2}
      - ask: {app: app-2, key: g, resource: {gpu: 1}}
""", _some(AllocationCommitted, 3)),
    "partitions know the names of their own work": Small("""\
name: work is reported under a name that other work has in another partition
queues:
  partitions:
    - name: default
      queues: [{name: root, submitacl: '*', queues: [{name: a}]}]
    - name: gpu
      queues: [{name: root, submitacl: '*', queues: [{name: b}]}]
steps:
  - create_node: {id: n3, capacity: {memory: 2}}
  - add_app: {id: app-1, queue: root.a}
  - ask: {app: app-1, key: k, resource: {memory: 1}}
  - create_node: {id: n2, partition: gpu}
  - add_app: {id: gpu-1, queue: root.b, partition: gpu}
  - bind: {app: gpu-1, key: other, node: n2, resource: {memory: 1}, uuid: scenario-1,
      partition: gpu}
""", _some(AllocationRecovered)),
    "asks in the order of a policy have a pass": Small("""\
name: the asks of a leaf have an order of their own, and its applications rest
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues:
            - name: b
              properties: {application.sort.policy: largest-first, application.unschedasks.backoff: '1'}
steps:
  - create_node: {id: n1, capacity: {vcore: 2}}
  - add_app: {id: app-1, queue: root.b}
  - ask: {app: app-1, key: k, resource: {vcore: 1}}
  - ask: {app: app-1, key: g, resource: {vcore: 1, gpu: 1}}
""", _some(AllocationCommitted)),
    "the cluster has nothing of what is asked for": Small("""\
name: the largest share of what no node has
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues: [{name: b, properties: {application.sort.policy: largest-first}}]
steps:
  - add_app: {id: app-1, queue: root.b}
  - ask: {app: app-1, key: early, resource: {vcore: 1}}
  - create_node: {id: n1, capacity: {vcore: 2}}
  - add_app: {id: app-2, queue: root.b}
  - ask: {app: app-2, key: g, resource: {vcore: 1, gpu: 1}}
""", _some(AllocationCommitted)),
    "a node that is too full takes nothing from the others": Small("""\
name: a gate, and a node on which more is reported than it has
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues: [{name: b, properties: {application.sort.policy: fcfs}}]
steps:
  - create_node: {id: n1, capacity: {vcore: 1}}
  - create_node: {id: n2, capacity: {vcore: 2}}
  - bind: {key: f, node: n1, resource: {vcore: 2}, tags: {foreign: default}}
  - add_app: {id: app-1, queue: root.b}
  - ask: {app: app-1, key: k, resource: {vcore: 2}}
""", _some(AllocationCommitted)),
    "a node shows what comes to it": Small("""\
name: a member moves to devices of its model, and nobody confirms that its placeholder is gone
rm: {confirm: manual}
steps:
  - create_node: {id: n1, capacity: {gpu: 1000},
      attributes: {yunikorn-actors/gpu-devices: '1', yunikorn-actors/gpu-model: V100}}
  - add_app: {id: app-1, queue: root.default, placeholder_ask: {gpu: 500}}
  - ask: {app: app-1, key: ph, resource: {gpu: 500}, placeholder: true, task_group: tg}
  - create_node: {id: n2, capacity: {gpu: 1000},
      attributes: {yunikorn-actors/gpu-devices: '1', yunikorn-actors/gpu-model: T4}}
  - ask: {app: app-1, key: real, resource: {gpu: 500}, task_group: tg,
      tags: {yunikorn-actors/gpu-model: T4}}
""", _some(AskParked), looks=4),
    "blocked applications stand in a new order": Small("""\
name: the policy of a leaf changes while applications wait for their place
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          properties: {application.sort.priority: disabled}
          queues: [{name: b, properties: {application.sort.policy: fifo}}]
steps:
  - add_app: {id: app-1, queue: root.b}
  - add_app: {id: app-2, queue: root.b}
  - add_app: {id: app-3, queue: root.b}
  - ask: {app: app-1, key: k, resource: {memory: 1}}
  - ask: {app: app-2, key: k2, resource: {vcore: 1}}
  - ask: {app: app-3, key: k3, resource: {vcore: 1}}
  - config:
      queues:
        partitions:
          - name: default
            queues:
              - name: root
                submitacl: '*'
                properties: {application.sort.priority: disabled}
                queues: [{name: b, properties: {application.sort.policy: stateaware}}]
  - config:
      queues:
        partitions:
          - name: default
            queues:
              - name: root
                submitacl: '*'
                properties: {application.sort.priority: disabled}
                queues: [{name: b, properties: {application.sort.policy: dominant-share}}]
  - create_node: {id: n1, capacity: {vcore: 2}}
""", _some(AllocationCommitted, 2)),
    "an application that may start now is let in": Small("""\
name: a gate, and a place that comes free
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues:
            - {name: a, maxapplications: 1, properties: {application.sort.policy: conservative}}
steps:
  - create_node: {id: n2, capacity: {vcore: 2}}
  - add_app: {id: app-1, queue: root.a}
  - ask: {app: app-1, key: k0, resource: {vcore: 1}}
  - add_app: {id: app-2, queue: root.a}
  - ask: {app: app-2, key: k2, resource: {vcore: 1}}
  - remove_app: app-1
""", _some(AllocationCommitted, 2)),
    "what waits no more of an ask that runs": Small("""\
name: one of several is placed, and the others are withdrawn
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues: [{name: a, properties: {application.sort.policy: conservative}}]
steps:
  - create_node: {id: n1, capacity: {vcore: 3}}
  - bind: {key: f, node: n1, resource: {vcore: 2}, tags: {foreign: default}}
  - add_app: {id: app-1, queue: root.a}
  - ask: {app: app-1, key: k, resource: {vcore: 1}, max_allocations: 3}
  - release_ask: {app: app-1, key: k}
""", _some(AskRemoved)),
    "a gang goes that was admitted and has placed nothing": Small("""\
name: a gang is admitted, no node has room for any of it, and it goes
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues: [{name: a, properties: {application.sort.policy: conservative}}, {name: b}]
steps:
  - add_app: {id: app-1, queue: root.b, placeholder_ask: {gpu: 1}}
  - ask: {app: app-1, key: ph, resource: {gpu: 1}, placeholder: true, task_group: tg}
  - remove_app: app-1
""", _some(AskRemoved)),
    "a placeholder ends and its member starts": Small("""\
name: a gang whose leaf admits at once, and a policy that remembers what runs
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues:
            - {name: a, properties: {application.sort.policy: conservative}}
            - {name: b, properties: {gang.admission: immediate}}
steps:
  - create_node: {id: n1, capacity: {vcore: 2}}
  - add_app: {id: app-1, queue: root.b, placeholder_ask: {vcore: 1}}
  - ask: {app: app-1, key: ph, resource: {vcore: 1}, placeholder: true, task_group: tg}
  - ask: {app: app-1, key: real, resource: {vcore: 1}, task_group: tg}
  - remove_app: app-1
""", _some(SwapCompleted)),
    "a gate is asked in the order of what waits": Small("""\
name: of two applications of a leaf with a gate the later one has the more urgent ask
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues: [{name: a, properties: {application.sort.policy: fcfs}}]
steps:
  - add_app: {id: app-1, queue: root.a}
  - add_app: {id: app-2, queue: root.a}
  - ask: {app: app-1, key: low, resource: {vcore: 1}}
  - ask: {app: app-2, key: high, resource: {vcore: 1}, priority: 5}
  - create_node: {id: n1, capacity: {vcore: 1}}
""", _some(AllocationCommitted)),
    "a daemon may run where nothing else may": Small("""\
name: a gate, and an ask for a node that is drained
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues: [{name: b, properties: {application.sort.policy: easy}}]
steps:
  - create_node: {id: n1, capacity: {vcore: 1}}
  - drain_node: n1
  - add_app: {id: app-2, queue: root.b}
  - ask: {app: app-2, key: other, resource: {vcore: 1}}
  - ask: {app: app-2, key: daemon, resource: {vcore: 1}, required_node: n1,
      tags: {yunikorn-actors/runtime: '5'}}
""", _some(AllocationCommitted)),
    "blocked applications and whether priority sorts": Small("""\
name: priority counts no more in a leaf with a policy while applications wait for their place
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues:
            - {name: b, maxapplications: 1, properties: {application.sort.policy: dominant-share}}
steps:
  - create_node: {id: n1, capacity: {vcore: 3}}
  - add_app: {id: app-1, queue: root.b}
  - add_app: {id: app-2, queue: root.b}
  - add_app: {id: app-3, queue: root.b}
  - ask: {app: app-1, key: k, resource: {vcore: 1}}
  - ask: {app: app-2, key: k2, resource: {vcore: 1}}
  - ask: {app: app-3, key: k3, resource: {vcore: 1}}
  - config:
      queues:
        partitions:
          - name: default
            queues:
              - name: root
                submitacl: '*'
                queues:
                  - name: b
                    maxapplications: 1
                    properties:
                      application.sort.policy: dominant-share
                      application.sort.priority: disabled
  - remove_app: app-1
  - remove_app: app-2
""", _some(AllocationCommitted, 3)),
    "a job of several repeats starts when all are placed at once": Small("""\
name: both repeats of an ask are placed in one run
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues: [{name: a, properties: {application.sort.policy: conservative}}]
steps:
  - create_node: {id: n1, capacity: {vcore: 4}}
  - add_app: {id: app-1, queue: root.a}
  - ask: {app: app-1, key: first, resource: {vcore: 1}}
  - ask: {app: app-1, key: second, resource: {vcore: 1}}
  - ask: {app: app-1, key: k, resource: {vcore: 1}, max_allocations: 2}
""", _some(AllocationsCommitted)),
    "work goes alone from now on": Small("""\
name: a daemon waits for what its own application has on its node
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues: [{name: a, properties: {preemption.unit: application}}]
steps:
  - create_node: {id: n1, capacity: {vcore: 1}}
  - add_app: {id: app-1, queue: root.a}
  - ask: {app: app-1, key: work, resource: {vcore: 1}}
  - ask: {app: app-1, key: daemon, resource: {vcore: 1}, required_node: n1}
  - config: {queues: {partitions: [{name: default, queues: [
      {name: root, submitacl: '*', queues: [{name: a}]}]}]}}
""", _some(PreemptionDecided)),
    "others take room while a gate lets in": Small("""\
name: a leaf takes what its neighbour's gate counts on for the first that waits
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: '*'
          queues: [{name: a, properties: {application.sort.policy: easy}}, {name: b}]
steps:
  - create_node: {id: n1, capacity: {vcore: 4}}
  - add_app: {id: app-1, queue: root.a}
  - add_app: {id: app-2, queue: root.b}
  - ask: {app: app-1, key: runs, resource: {vcore: 4}, tags: {yunikorn-actors/runtime: '10'}}
  - ask: {app: app-1, key: head, resource: {vcore: 8}, tags: {yunikorn-actors/runtime: '5'}}
  - ask: {app: app-1, key: long, count: 2, resource: {vcore: 1},
      tags: {yunikorn-actors/runtime: '60'}}
  - ask: {app: app-2, key: other, resource: {vcore: 1}, priority: 1}
  - create_node: {id: n2, capacity: {vcore: 6}}
""", _some(AllocationCommitted, 3)),
}  # fmt: skip


@pytest.mark.parametrize("small", CASES.values(), ids=CASES)
def test_nothing_is_wrong(small: Small) -> None:
    case = parse_case(small.text, "small.yaml")
    tape = Tape(scenario="small.yaml", digest=case.digest)
    outcome = play(case, tape, all_oracles(Draw(small.looks)))
    assert outcome.ok, outcome.violation
    assert small.happened(outcome), "vacuous: it has not come about"
