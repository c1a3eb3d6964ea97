"""Small worlds in which an oracle found something that was right: each is sound."""

import pytest

from yunikorn_actors.lab.case import digest_of, parse_case
from yunikorn_actors.lab.oracles.judges import CORE, MODEL, judged_by
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.tapes.tape import parse_tape

LEAVES_DURING_LONG_WORK = (
    """\
name: a resource manager leaves while its request is long to translate
settings: {slice_max: 1}
steps:
- register: {rm: rm-1, extra: {rm.maxUnhandled: '1'}}
- create_node: {id: n3}
- create_node: {id: m, count: 2}
- lose_rm: rm-1
""",
    """\
hold RMUpdateNode(create n3) from rm_proxy to context until after the end
hold RunSlice(step 3) from rm_proxy to rm_proxy until after the end
""",
)
OLDER_ONE_WAITS_FOR_ITS_PLACEHOLDER = (
    """\
name: an older application of the leaf waits until its placeholder is confirmed
queues:
  partitions:
  - queues:
    - name: root
      submitacl: '*'
      queues:
      - {name: a, properties: {application.sort.policy: stateaware}}
rm: {confirm: manual}
steps:
- create_node: {id: n1, capacity: {vcore: 1, memory: 1}}
- add_app: {id: app-3, queue: root.a}
- ask: {app: app-3, key: app-3-ph, resource: {vcore: 1}, placeholder: true, task_group: tg}
- add_app: {id: app-4, queue: root.a}
- ask: {app: app-3, key: g13, resource: {memory: 1}, task_group: tg}
- advance: 8s
- ask: {app: app-4, key: g16, resource: {memory: 1}, tags: {creationTime: '1767225605'}}
""",
    "",
)
RESERVED_WHILE_ITS_GANG_ENDS = (
    """\
name: a gang ends in slices, and its placeholder has a reservation until it goes
settings: {slice_max: 1}
steps:
- add_app: {id: app-1, placeholder_ask: {gpu: 1}}
- create_node:
    id: n1
    capacity: {gpu: 9}
    allocations:
    - {key: g1, app: app-1, resource: {gpu: 1}}
    - {key: g2, app: app-1, resource: {gpu: 1}}
- create_node: {id: n2, capacity: {gpu: 2}}
- ask: {app: app-1, key: ph, resource: {gpu: 9}, placeholder: true, task_group: tg}
- ask: {app: app-1, key: g2, resource: {vcore: 1}, max_allocations: 2}
- advance: 3s
- expect: {apps: {app-1: {reservations: 1}}}
- register: {}
""",
    "",
)
"""The model follows no manager that registers again."""
REFUSED_BESIDE_OTHERS = (
    """\
name: a plan counts what was refused beside others, as the refusal is under way
rm: {confirm: manual}
queues:
  partitions:
  - queues:
    - name: root
      submitacl: '*'
      queues:
      - {name: one, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 2}}}
      - {name: two, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 2}}}
      - {name: wide, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 4}}}
steps:
- create_node: {id: n1, capacity: {vcore: 8000}}
- add_app: {id: a, queue: root.one}
- add_app: {id: b, queue: root.two}
- ask: {app: a, key: a1, count: 2, resource: {vcore: 2000}, preemption: {allow_other: true}}
- ask: {app: b, key: b1, count: 2, resource: {vcore: 2000}, preemption: {allow_other: true}}
- add_app: {id: c, queue: root.wide}
- ask: {app: c, key: c1, resource: {vcore: 4000}, preemption: {allow_other: true}}
- advance: 20s
- confirm: {app: a, key: a1-1, type: PREEMPTED_BY_SCHEDULER}
""",
    """\
hold FactsAppended(ApplicationStateChanged a) from context to scheduler until after the end
hold FactsAppended(ApplicationStateChanged c) from context to scheduler until after the end
hold ProposalRejected(ASK_GONE) from context to scheduler until after the end
""",
)
A_RESTARTED_CORE_PROMISES_ANEW = (
    """\
name: what was promised by a queue that is conservative is worked out anew after a restart
queues:
  partitions:
  - queues:
    - name: root
      submitacl: '*'
      queues:
      - {name: a, queues: [{name: y, properties: {application.sort.policy: conservative}}]}
steps:
- create_node: {id: n2, capacity: {memory: 2}}
- register: {}
- raw: {call: register_resource_manager, request: {rmID: rm-2}}
- register: {}
- add_app: {id: app-2, queue: root.a.y}
- ask: {app: app-2, key: k2, count: 2, resource: {memory: 1}}
- remove_node: {id: n2}
- register: {rm: rm-2}
- create_node: {rm: rm-2, id: n1}
""",
    "restart core by 612429 after CallUpdateNode(accepted n1) from rm_proxy to rm-2#5\n",
)
A_PART_OF_NO_USE_GOES_WITH_ITS_GANG = (
    """\
name: a hard gang goes whole, and a part that frees nothing of what is wanted with it
queues:
  partitions:
  - queues:
    - name: root
      submitacl: '*'
      queues:
      - {name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {memory: 3}}}
      - {name: b}
steps:
- create_node: {id: n1, capacity: {vcore: 1, memory: 3}}
- add_app: {id: claims, queue: root.a}
- add_app: {id: gang, queue: root.b, style: Hard, placeholder_ask: {memory: 1}}
- ask: {app: gang, key: ph, resource: {memory: 1}, task_group: tg, placeholder: true}
- ask: {app: gang, key: aside, resource: {vcore: 1}}
- ask: {app: claims, key: k, resource: {memory: 3}}
- advance: 1s
- expect: {rm: {released: [{key: ph}, {key: aside}]}}
""",
    "",
)


@pytest.mark.parametrize(
    ("world", "judges"),
    [
        (LEAVES_DURING_LONG_WORK, (CORE, MODEL)),
        (OLDER_ONE_WAITS_FOR_ITS_PLACEHOLDER, (CORE, MODEL)),
        (RESERVED_WHILE_ITS_GANG_ENDS, (CORE,)),
        (REFUSED_BESIDE_OTHERS, (CORE,)),
        (A_RESTARTED_CORE_PROMISES_ANEW, (CORE,)),
        (A_PART_OF_NO_USE_GOES_WITH_ITS_GANG, (CORE, MODEL)),
    ],
    ids=["leaves", "older", "reserved", "refused", "restarted", "of no use"],
)
def test_what_is_right_is_no_finding(world: tuple[str, str], judges: tuple[str, ...]) -> None:
    text, entries = world
    tape = parse_tape(f"tape 2 of world.yaml sha256 {digest_of(text)} on proposing\n{entries}")
    outcome = play(parse_case(text, "world.yaml"), tape, judged_by(judges))
    assert outcome.ok, outcome.violation
    assert outcome.messages > 10
