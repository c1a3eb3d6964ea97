"""Runs of a sound core in which it looked to an oracle as if something were wrong."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.model.follower import FollowedByModel
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.oracles.run_oracles import all_oracles, oracles
from yunikorn_actors.lab.run_schedule import Outcome, play
from yunikorn_actors.lab.tapes.tape import THE_END, Entry
from yunikorn_actors.machines.context.endings import report_unconfirmed
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import RM_PROXY, Message, is_manager
from yunikorn_actors.messages.rm_calls import (
    CallUpdateAllocation,
    CallUpdateApplication,
    CallUpdateContainerSchedulingState,
    CallUpdateNode,
)
from yunikorn_actors.messages.rm_events import (
    RegistrationRequested,
    RMConfigUpdated,
    RMLost,
    RMRegistered,
    RMReleaseAllocation,
)
from yunikorn_actors.messages.scheduling import ConfirmationDue, PlanningDue, ProposalRejected
from yunikorn_actors.state.facts import (
    ConfirmationMissed,
    ForeignAllocationPut,
    PreemptionDecided,
)
from yunikorn_actors.state.proposals import Refusal


class Sound(NamedTuple):
    text: str
    happened: Callable[[list[tuple[str, Message]]], bool]
    """Whether a run has what it is about."""
    held: str = ""
    """What is delivered last."""
    also_held: str = ""
    never_confirmed: str = ""
    """What the resource manager does not give back."""
    frozen_after: str = ""
    """The last that comes to the callback before all else is done."""
    is_judged: bool = False
    """Whether the model of the rules judges it too."""
    topology: TopologyName = "proposing"


def _notified_after_loss(messages: list[tuple[str, Message]]) -> bool:
    lost = next(i for i, (to, it) in enumerate(messages) if to == RM_PROXY and type(it) is RMLost)
    return any(type(it) is CallUpdateAllocation for _, it in messages[lost:])


def _states(messages: list[tuple[str, Message]], key: str) -> list[str]:
    return [
        request.state.name
        for to, it in messages
        if is_manager(to) and isinstance(it, CallUpdateContainerSchedulingState)
        for request in it.requests
        if request.allocation_key == key
    ]


def _reserved_then_scheduled(messages: list[tuple[str, Message]]) -> bool:
    return _states(messages, "k-3")[-2:] == ["RESERVED", "SCHEDULED"]


def _nothing_announced_of(key: str) -> Callable[[list[tuple[str, Message]]], bool]:
    def happened(messages: list[tuple[str, Message]]) -> bool:
        calls = [it for _, it in messages if isinstance(it, CallUpdateAllocation)]
        named = {new.allocation_key for call in calls for new in call.response.new}
        return bool(named) and key not in named

    return happened


def _accepted_and_rejected(messages: list[tuple[str, Message]]) -> bool:
    answers = [it.response for _, it in messages if isinstance(it, CallUpdateApplication)]
    rejected = [i for i, it in enumerate(answers) if it.rejected]
    accepted = [i for i, it in enumerate(answers) if it.accepted]
    return bool(rejected) and bool(accepted) and rejected[0] < accepted[0]


SOUND = {
    "a resource manager is lost behind its own long request": Sound(
        """
name: a resource manager is lost behind its own long request
settings: {slice_max: 1}
steps:
- create_node: {id: n1, capacity: {vcore: 1000}}
- add_app: {id: app-1}
- ask: {app: app-1, key: first}
- ask: {app: app-1, key: run, count: 100}
- lose_rm: rm-1
""",
        _notified_after_loss,
        "AllocationsRequested(ask first) from gateway to rm_proxy",
    ),
    "reported work ends by a release that is not answered": Sound(
        """
name: reported work ends by a release that is not answered
steps:
- create_node: {id: n1, capacity: {vcore: 1}}
- add_app: {id: app-1}
- ask: {app: app-1, key: k, resource: {vcore: 1}, count: 3}
- create_node: {id: n2, allocations: [{key: k-2, app: app-1, resource: {vcore: 1}}]}
- release: {key: k-2, type: PLACEHOLDER_REPLACED}
""",
        _nothing_announced_of("k-2"),
    ),
    "an ask is sent again while its work runs, which then ends unanswered": Sound(
        """
name: an ask is sent again while its work runs, which then ends unanswered
steps:
- add_app: {id: app-3}
- ask: {app: app-3, key: k1, resource: {gpu: 1}}
- create_node: {id: n4, capacity: {gpu: 1}}
- ask: {app: app-3, key: k1, resource: {gpu: 1}}
- release: {key: k1, type: PLACEHOLDER_REPLACED}
""",
        lambda messages: _states(messages, "k1")[-1:] == ["SCHEDULED"],
    ),
    "a partition is left out of the configuration, and comes again": Sound(
        """
name: a partition is left out of the configuration, and comes again
queues: {partitions: [{name: default, queues: []}, {name: gpu, queues: []}]}
steps:
- create_node: {id: n3, partition: gpu}
- add_app: {id: app-1, partition: gpu, queue: root.default}
- ask: {app: app-1, key: k, resource: {vcore: 1}, partition: gpu}
- config: {queues: {partitions: [{name: default, queues: []}]}}
- config: {queues: {partitions: [{name: default, queues: []}, {name: gpu, queues: []}]}}
""",
        lambda messages: sum(type(it) is RMConfigUpdated for _, it in messages) == 2,
    ),
    "what was announced is reported under another name, and refused": Sound(
        """
name: what was announced is reported under another name, and refused
steps:
- create_node: {id: n3, capacity: {vcore: 9}}
- add_app: {id: app-4}
- bind: {app: app-4, key: b8, node: n3, resource: {vcore: 1}}
- release: {app: app-4, key: b8}
- bind: {app: gone, key: b8, node: n3, resource: {vcore: 1}, uuid: b8-recovered}
""",
        lambda messages: any(
            isinstance(it, CallUpdateAllocation) and it.response.rejected_allocations
            for _, it in messages
        ),
    ),
    "free room beside victims is for whom they go": Sound(
        """
name: free room beside victims is for whom they go
steps:
- create_node: {id: n1, capacity: {vcore: 4000}}
- add_app: {id: app-1}
- ask: {app: app-1, key: k0, resource: {vcore: 1000}}
- ask: {app: app-1, key: fill, resource: {vcore: 1000}, count: 2}
- ask: {app: app-1, key: d13, resource: {vcore: 2000}, required_node: n1}
- add_app: {id: app-5}
- ask: {app: app-5, key: d16, resource: {vcore: 1}, required_node: n1}
""",
        lambda messages: sum(type(it) is RMReleaseAllocation for _, it in messages) > 1,
        never_confirmed="fill-1",
        is_judged=True,
    ),
    "a node comes again and is refused, and its work runs": Sound(
        """
name: a node comes again and is refused, and its work runs
rm: {confirm: manual}
steps:
- add_app: {id: app-5}
- create_node: {id: n2, capacity: {vcore: 6000}, allocations: [{key: k, app: app-5, resource: {vcore: 3000}}]}
- ask: {app: app-5, key: k, resource: {vcore: 3000}}
- create_node: {id: n2}
- ask: {app: app-5, key: d, resource: {vcore: 6000}, required_node: n2}
- confirm: all
""",
        lambda messages: any(
            isinstance(it, CallUpdateNode) and it.response.rejected for _, it in messages
        ),
    ),
    "a UUID is reported on two nodes": Sound(
        """
name: a UUID is reported on two nodes
steps:
- add_app: {id: app-1}
- create_node: {id: n1, capacity: {vcore: 2}, allocations: [{key: k, app: app-1, resource: {vcore: 1}}]}
- create_node: {id: n2, capacity: {vcore: 2}, allocations: [{key: k, app: app-1, resource: {vcore: 1}}]}
""",
        lambda messages: sum(isinstance(it, CallUpdateNode) for _, it in messages) == 2,
    ),
    "the next ask that needs a node does not take the room that work goes for": Sound(
        """
name: the next ask that needs a node does not take the room that work goes for
rm: {confirm: manual}
steps:
- create_node: {id: n1, capacity: {vcore: 6}}
- add_app: {id: app-1}
- ask: {app: app-1, key: fill, resource: {vcore: 1}, count: 9}
- ask: {app: app-1, key: k, resource: {vcore: 4}, required_node: n1}
- ask: {app: app-1, key: d, resource: {vcore: 1}, required_node: n1}
- create_node: {id: n2, capacity: {vcore: 3}}
- release: {app: app-1, key: fill-5}
""",
        lambda messages: any(type(it) is RMReleaseAllocation for _, it in messages),
        is_judged=True,
    ),
    "an ask with a reservation is reported to run elsewhere": Sound(
        """
name: an ask with a reservation is reported to run elsewhere
steps:
- create_node: {id: n2, capacity: {vcore: 1000}}
- add_app: {id: app-1}
- ask: {app: app-1, key: k, resource: {vcore: 1000}, count: 4, required_node: n2}
- create_node: {id: n3, allocations: [{key: k-3, app: app-1, resource: {vcore: 1000}}]}
""",
        _reserved_then_scheduled,
    ),
    "an application is rejected, removed and added again": Sound(
        """
name: an application is rejected, removed and added again
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: b}]}]}]}
steps:
- add_app: {id: app-4}
- remove_app: {id: app-4}
- add_app: {id: app-4, queue: root.b}
""",
        _accepted_and_rejected,
        "CallUpdateApplication(rejected app-4) from rm_proxy to rm-1",
    ),
    "reported work ends, is reported once more, and refused": Sound(
        """
name: reported work ends, is reported once more, and refused
steps:
- create_node: {id: n1, capacity: {vcore: 1}}
- add_app: {id: app-2}
- bind: {app: app-2, key: b0, node: n1, resource: {vcore: 1}}
- release: {app: app-2}
- create_node: {id: n3, allocations: [{key: b0, app: app-2, resource: {}}]}
""",
        lambda messages: any(
            isinstance(it, CallUpdateAllocation) and it.response.rejected for _, it in messages
        ),
    ),
    "reported work ends twice, is reported once more, and refused": Sound(
        """
name: reported work ends twice, is reported once more, and refused
steps:
- add_app: {id: app-1}
- create_node: {id: n4, allocations: [{key: k, app: app-1, resource: {vcore: 1}}]}
- remove_app: {id: app-1}
- add_app: {id: app-1}
- bind: {app: app-1, key: k, node: n4, resource: {memory: 1}}
- remove_app: {id: app-1}
- bind: {app: app-1, key: k, node: n5}
""",
        lambda messages: any(
            isinstance(it, CallUpdateAllocation) and it.response.rejected_allocations
            for _, it in messages
        ),
    ),
    "an application goes in slices while its gang is dissolved": Sound(
        """
name: an application goes in slices while its gang is dissolved
settings: {slice_max: 1}
rm: {confirm: manual}
steps:
- create_node: {id: n1, capacity: {vcore: 1}}
- add_app: {id: app-1, placeholder_ask: {vcore: 2}, timeout: 1s}
- ask: {app: app-1, key: ph, resource: {vcore: 1}, placeholder: true, task_group: tg}
- ask: {app: app-1, key: k, resource: {vcore: 1}}
- advance: 1s
- remove_app: app-1
""",
        lambda messages: any(type(it) is RMReleaseAllocation and it.released for _, it in messages),
    ),
    "a partition goes in slices while a gang in it is dissolved": Sound(
        """
name: a partition goes in slices while a gang in it is dissolved
settings: {slice_max: 1}
steps:
- create_node: {id: n1, capacity: {vcore: 1}}
- add_app: {id: app-1}
- ask: {app: app-1, key: ph, resource: {vcore: 1}, placeholder: true, task_group: tg}
- advance: 10m
- lose_rm: rm-1
""",
        lambda messages: any(type(it) is RMReleaseAllocation and it.released for _, it in messages),
    ),
    "a configuration leaves a resource manager no partition": Sound(
        """
name: a configuration leaves a resource manager no partition
steps:
- create_node: {id: n1, capacity: {vcore: 1}}
- config: {queues: {partitions: []}}
""",
        lambda messages: any(type(it) is RMConfigUpdated for _, it in messages),
    ),
    "one that was tried before its victims ran has its turn later": Sound(
        """
name: one that was tried before its victims ran has its turn later
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a}, {name: b, resources: {guaranteed: {vcore: 2}}}]}]}]}
rm: {confirm: manual}
steps:
- create_node: {id: n, capacity: {vcore: 2000}}
- add_app: {id: app-1, queue: root.a}
- add_app: {id: app-2, queue: root.b}
- ask: {app: app-1, key: fill, resource: {vcore: 1000}, count: 2}
- ask: {app: app-2, key: first, resource: {vcore: 2000}}
- add_app: {id: app-4, queue: root.b}
- ask: {app: app-2, key: second, resource: {vcore: 1}}
- advance: 35s
""",
        lambda messages: any(type(it) is RMReleaseAllocation for _, it in messages),
        "FactsAppended(PartitionConfigured) from context to scheduler",
        also_held="FactsAppended(ApplicationAdded app-4) from context to scheduler",
        is_judged=True,
    ),
    "of two that others go for, the room that opens is for the second": Sound(
        """
name: of two that others go for, the room that opens is for the second
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a}, {name: b, resources: {guaranteed: {vcore: 4}}}]}]}]}
steps:
- create_node: {id: n1, capacity: {vcore: 6000}}
- add_app: {id: app-1, queue: root.a}
- add_app: {id: app-2, queue: root.b}
- ask: {app: app-1, key: fill, resource: {vcore: 1000}, count: 5}
- ask: {app: app-2, key: claim, resource: {vcore: 1999}, count: 2}
- advance: 35s
""",
        lambda messages: any(type(it) is RMReleaseAllocation for _, it in messages),
        never_confirmed="fill-3 fill-4",
        is_judged=True,
    ),
    "a gang that was made long ago has the rest of its time": Sound(
        """
name: a gang that was made long ago has the rest of its time
steps:
- add_app: {id: app-1, placeholder_ask: {vcore: 3}, timeout: 10s, tags: {yunikorn.apache.org/creationTime: '1767225596'}}
- create_node: {id: n1, capacity: {vcore: 9}, allocations: [{key: ph, app: app-1, resource: {vcore: 1}, task_group: tg, placeholder: true}]}
- advance: 6s
""",
        lambda messages: any(type(it) is RMReleaseAllocation and it.released for _, it in messages),
        is_judged=True,
    ),
    "placeholders that come behind a gang that failed are another gang": Sound(
        """
name: placeholders that come behind a gang that failed are another gang
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a, resources: {max: {vcore: 5}}}]}]}]}
steps:
- create_node: {id: n1, capacity: {vcore: 1}}
- add_app: {id: app-1, queue: root.a, placeholder_ask: {vcore: 5000}}
- ask: {app: app-1, key: ph, resource: {vcore: 1}, placeholder: true, task_group: tg}
- advance: 20m
- ask: {app: app-1, key: k, resource: {vcore: 1}}
- ask: {app: app-1, key: ph, resource: {vcore: 1}, placeholder: true, task_group: tg}
""",
        lambda messages: _states(messages, "ph")[-1:] == ["SKIPPED"],
        is_judged=True,
    ),
    "a node is kept for who was of age when that was planned": Sound(
        """
name: a node is kept for who was of age when that was planned
steps:
- create_node: {id: n1, capacity: {vcore: 1000}, occupied: {vcore: 2}}
- add_app: {id: app-3}
- add_app: {id: app-4}
- ask: {app: app-4, key: fill, resource: {vcore: 1000}}
- advance: 1s
- ask: {app: app-3, key: claim, resource: {vcore: 999}}
- advance: 3s
""",
        lambda messages: _states(messages, "fill") == ["FAILED", "RESERVED"],
        held="ReportWaiting(claim) from scheduler to context",
        is_judged=True,
    ),
    "victims are sought before more comes free in the same moment": Sound(
        """
name: victims are sought before more comes free in the same moment
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a}, {name: b, queues: [
  {name: x, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 2}}}, {name: y}]}]}]}]}
steps:
- create_node: {id: n1, capacity: {vcore: 4000}}
- add_app: {id: app-1, queue: root.a}
- add_app: {id: app-2, queue: root.b.x}
- add_app: {id: app-3, queue: root.b.y}
- ask: {app: app-3, key: fill, resource: {vcore: 3000}}
- ask: {app: app-2, key: small, resource: {vcore: 1000}}
- ask: {app: app-2, key: claim, resource: {vcore: 1001}}
- advance: 1s
- ask: {app: app-1, key: d, resource: {vcore: 1}, required_node: n1}
""",
        lambda messages: _states(messages, "d")[-1:] == ["SCHEDULED"],
        held="RMApplicationUpdate(app-2 Accepted) from context to rm_proxy",
        is_judged=True,
    ),
    "room that is promised beside another promise is not for who comes first": Sound(
        """
name: room that is promised beside another promise is not for who comes first
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [
  {name: a, resources: {guaranteed: {vcore: 4}}, queues: [
    {name: x, properties: {preemption.delay: 20s}}, {name: y, properties: {preemption.delay: 1s}}]},
  {name: b, resources: {guaranteed: {vcore: 6}, max: {vcore: 7}}, queues: [{name: x, resources: {max: {vcore: 6}}}]}]}]}]}
rm: {confirm: manual}
steps:
- create_node: {id: n1, capacity: {vcore: 4000}}
- create_node: {id: n2, capacity: {vcore: 8000}}
- add_app: {id: app-3, queue: root.b.x, timeout: 2m}
- ask: {app: app-3, key: fill, resource: {vcore: 1000}, count: 7}
- add_app: {id: app-6, queue: root.a.x, timeout: 2m}
- ask: {app: app-6, key: large, resource: {vcore: 6000}, count: 2, preemption: {allow_other: false}}
- advance: 3s
- add_app: {id: app-8, queue: root.a.x}
- ask: {app: app-8, key: k11, resource: {vcore: 3000}, count: 2}
- advance: 61s
- add_app: {id: app-9, queue: root.a.y}
- ask: {app: app-9, key: k13, resource: {vcore: 1000}, count: 2}
- advance: 61s
""",
        lambda messages: "RESERVED" in _states(messages, "k13-0"),
        is_judged=True,
    ),
    "others were tried in vain while a guarantee was met for a moment": Sound(
        """
name: others were tried in vain while a guarantee was met for a moment
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [
  {name: a}, {name: b, queues: [{name: x, resources: {guaranteed: {vcore: 1}}}]}, {name: c}]}]}]}
rm: {confirm: manual}
steps:
- create_node: {id: n1, capacity: {vcore: 1000}}
- create_node: {id: n2, capacity: {vcore: 2000}}
- add_app: {id: app-1, queue: root.a}
- add_app: {id: app-2, queue: root.b.x}
- add_app: {id: app-4, queue: root.c}
- ask: {app: app-4, key: fill, resource: {vcore: 2000}}
- ask: {app: app-1, key: small, resource: {vcore: 1}}
- ask: {app: app-2, key: share, resource: {vcore: 1000}, count: 2, tags: {creationTime: '1'}}
- create_node: {id: n3, capacity: {vcore: 1000}}
- update_node: {id: n1, attributes: {ready: 'false'}}
- remove_node: {id: n3}
""",
        lambda messages: "SCHEDULED" in _states(messages, "share-0"),
        frozen_after="CallUpdateContainerSchedulingState(small) from rm_proxy to rm-1",
        is_judged=True,
    ),
    "a release names a UUID before that is given": Sound(
        """
name: a release names a UUID before that is given
steps:
- add_app: {id: app-2}
- create_node: {id: n3, capacity: {vcore: 5000}}
- ask: {app: app-2, key: k0, resource: {vcore: 1}}
- raw: {call: update_allocation, request: {releases: {allocationsToRelease: [{UUID: scenario-1}]}, rmID: rm-1}}
""",
        lambda messages: any(
            it.response.new and it.response.new[0].uuid == "scenario-1"
            for _, it in messages
            if isinstance(it, CallUpdateAllocation)
        ),
        held="RunCycle(step 3) from scheduler to scheduler",
    ),
    "another core takes what runs without a time for as old as its report": Sound(
        """
name: another core takes what runs without a time for as old as its report
steps:
- create_node: {id: n2}
- bind: {key: f1, node: n2, resource: {memory: 1}, tags: {foreign: default}}
- bind: {key: f2, node: n2, resource: {memory: 1}, tags: {foreign: default, creationTime: '7'}}
- bind: {key: f3, node: n2, resource: {memory: 1}, tags: {foreign: default, creationTime: soon}}
- advance: 1s
""",
        lambda messages: any(
            isinstance(fact, ForeignAllocationPut) and fact.key == "f1"
            for _, it in messages
            for fact in getattr(it, "facts", ())
        ),
    ),
    "a placeholder has a time of its own once that of those before it is up": Sound(
        """
name: a placeholder has a time of its own once that of those before it is up
steps:
- create_node: {id: m, capacity: {vcore: 2, memory: 1}}
- add_app: {id: app-4}
- ask: {app: app-4, key: first, resource: {vcore: 1}, placeholder: true, task_group: tg}
- ask: {app: app-4, key: real, resource: {memory: 1}}
- advance: 1000s
- ask: {app: app-4, key: second, resource: {vcore: 1}, placeholder: true, task_group: tg}
- advance: 899s
- expect: {apps: {app-4: {allocations: 3}}}
""",
        lambda messages: _states(messages, "second")[-1:] == ["SCHEDULED"],
        never_confirmed="first",
        is_judged=True,
    ),
    "the room that victims made on a required node is for whom they went": Sound(
        """
name: the room that victims made on a required node is for whom they went
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a}, {name: b}]}]}]}
rm: {confirm: manual}
steps:
- create_node: {id: n1, capacity: {vcore: 5000}}
- add_app: {id: app-1, queue: root.a}
- add_app: {id: app-2, queue: root.b}
- ask: {app: app-2, key: fill, resource: {vcore: 2000}, count: 2}
- ask: {app: app-2, key: held, resource: {vcore: 2000}, required_node: n1}
- config: {queues: {partitions: [{queues: [{name: root, queues: [
    {name: a}, {name: b, resources: {max: {vcore: 1}}}]}]}]}}
- confirm: {rm: rm-1}
- ask: {app: app-1, key: next, resource: {vcore: 2000}, required_node: n1}
""",
        lambda messages: any(
            isinstance(fact, PreemptionDecided) and fact.beneficiary.key == "next" and fact.victims
            for _, it in messages
            for fact in getattr(it, "facts", ())
        ),
        is_judged=True,
    ),
    "of two promises the first is used where the maximum holds one": Sound(
        """
name: of two promises the first is used where the maximum holds one
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a}, {name: b,
  resources: {guaranteed: {vcore: 2}, max: {vcore: 3}}, properties: {preemption.delay: 1s}}]}]}]}
rm: {confirm: manual}
steps:
- create_node: {id: n1, capacity: {vcore: 2000}}
- create_node: {id: n2, capacity: {vcore: 4000}}
- add_app: {id: app-1, queue: root.a}
- add_app: {id: app-2, queue: root.b}
- bind: {app: app-2, key: b, node: n2, resource: {vcore: 2000}}
- ask: {app: app-1, key: held, resource: {vcore: 3000}, required_node: n2}
- ask: {app: app-1, key: fill, resource: {vcore: 1000}, count: 2}
- ask: {app: app-2, key: share, resource: {vcore: 1000}, count: 2}
- advance: 1s
- remove_app: {id: app-1}
""",
        lambda messages: ["RESERVED", "SCHEDULED"] == _states(messages, "share-0")[-2:],
        is_judged=True,
    ),
    "a swap does not wait for its turn in a leaf that starts one at a time": Sound(
        """
name: a swap does not wait for its turn in a leaf that starts one at a time
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [
  {name: a, properties: {application.sort.policy: stateaware}}]}]}]}
steps:
- create_node: {id: n1, capacity: {vcore: 2}}
- add_app: {id: app-1, queue: root.a}
- ask: {app: app-1, key: held, resource: {vcore: 1}, placeholder: true, task_group: tg}
- add_app: {id: app-2, queue: root.a}
- ask: {app: app-2, key: first, resource: {vcore: 1}}
- ask: {app: app-1, key: member, resource: {vcore: 1}, task_group: tg}
- expect: {apps: {app-1: {state: Starting}, app-2: {state: Starting}}}
""",
        lambda messages: _states(messages, "member")[-1:] == ["SCHEDULED"],
        is_judged=True,
    ),
    "others are sought in vain between two changes of a node": Sound(
        """
name: others are sought in vain between two changes of a node
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [
  {name: b, resources: {guaranteed: {vcore: 1}}},
  {name: c, properties: {preemption.budget: 1/20s}}]}]}]}
steps:
- create_node: {id: n1, capacity: {vcore: 2000}}
- add_app: {id: app-2, queue: root.b}
- add_app: {id: app-3, queue: root.c}
- ask: {app: app-3, key: fill, resource: {vcore: 2000}, count: 2}
- ask: {app: app-2, key: short, resource: {vcore: 1}}
- advance: 35s
- bind: {app: app-3, key: more, node: n1, resource: {vcore: 2000}}
- update_node: {id: n1, capacity: {vcore: 4000}}
""",
        lambda messages: any(type(it) is PlanningDue for _, it in messages),
        held="PlanningDue(step 5) from timer to context",
        is_judged=True,
        topology="fused",
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_it_is_sound(name: str) -> None:
    sound = SOUND[name]
    case = parse_case(sound.text, "sound.yaml", sound.topology)
    held = (sound.held, sound.also_held)
    entries = [Entry("hold", message, THE_END) for message in held if message]
    if sound.frozen_after:
        entries.append(Entry("freeze", "rm-1", sound.frozen_after))
    entries += (Entry("confirm", f"{key} never") for key in sound.never_confirmed.split())
    checkers = (*all_oracles(), FollowedByModel()) if sound.is_judged else all_oracles()
    outcome: Outcome = play(case, case.tape(*entries), checkers)
    assert outcome.ok, outcome.violation
    messages = [(it.mailbox, it.message) for it in outcome.deliveries]
    assert sound.happened(messages), "vacuous"


REFUSED_LATE = """\
name: a plan waited for long work, and the next one still counts what was refused of it
settings: {slice_max: 1}
steps:
- create_node: {id: n3, capacity: {vcore: 4000, memory: 30}}
- add_app: {id: app-1}
- add_app: {id: app-3}
- create_node: {id: n4, capacity: {vcore: 3000}}
- ask: {app: app-3, key: k1, resource: {vcore: 1000}}
- ask: {app: app-1, key: run2, resource: {vcore: 1000}, count: 30}
- release_ask: {app: app-3}
"""


def test_a_plan_may_count_what_was_refused_after_long_work() -> None:
    case = parse_case(REFUSED_LATE, "refused.yaml")
    tape = case.tape(Entry("do", "step 6", "step 5"), Entry("do", "step 7", "step 6"))
    outcome = play(case, tape, (*oracles(), FollowedByModel()))
    assert outcome.ok, outcome.violation
    refused = [it.message for it in outcome.deliveries if isinstance(it.message, ProposalRejected)]
    assert [Refusal.ASK_GONE] == [it.reason for it in refused], "vacuous"


REGISTERED_WHILE_LOST = """\
name: a manager is lost and registers while an earlier registration is under way
steps:
- raw: {call: register_resource_manager, request: {rmID: rm-1}}
- ask: {app: old, key: k, resource: {vcore: 1}}
"""


def test_a_registration_that_a_loss_overtook_is_not_the_last_one() -> None:
    case = parse_case(REGISTERED_WHILE_LOST, "lost.yaml")
    first = "RegistrationRequested(register rm-1 again) from gateway to rm_proxy"
    tape = case.tape(
        Entry("register", "rm-1 again", "step 1"),
        Entry("lose", "manager rm-1", first),
        Entry("register", "rm-1 again", "RMLost(lose manager rm-1) from gateway to rm_proxy"),
        Entry(
            "hold", "RMRegistration(register rm-1 again) from rm_proxy to context", f"{first} #2"
        ),
    )
    outcome = play(case, tape, oracles())
    assert outcome.ok, outcome.violation
    assert not outcome.not_played
    came = [it.message for it in outcome.deliveries if it.mailbox == RM_PROXY]
    kinds = [type(it) for it in came]
    last = len(kinds) - 1 - kinds[::-1].index(RegistrationRequested)
    assert RMLost in kinds[:last], "vacuous"
    assert len([it for it in kinds[last:] if it is RMRegistered]) == 2, "vacuous"


NOT_CONFIRMED = """\
name: a release is confirmed, and the next one is not
rm: {confirm: manual}
steps:
- create_node: {id: n1, capacity: {vcore: 2000}}
- add_app: {id: app-1}
- ask: {app: app-1, key: a, resource: {vcore: 1}, timeout: 1s}
- ask: {app: app-1, key: b, resource: {vcore: 1}, timeout: 2s}
- advance: 1s
- confirm: {app: app-1, key: a, type: TIMEOUT}
- advance: 1s
- add_app: {id: app-2}
"""


def test_a_cancelled_timer_may_come_to_what_another_one_is_due_for() -> None:
    case = parse_case(NOT_CONFIRMED, "confirmed.yaml")
    tape = case.tape(
        Entry("fire", "ConfirmationDue(step 3) to context", "step 8"),
        Entry("fire", "ConfirmationDue(step 4) to context", "step 8"),
    )
    outcome = play(case, tape, all_oracles())
    assert outcome.ok, outcome.violation
    assert not outcome.not_played
    facts = [fact for it in outcome.deliveries for fact in getattr(it.message, "facts", ())]
    due = [it.message for it in outcome.deliveries if isinstance(it.message, ConfirmationDue)]
    assert any(isinstance(it, ConfirmationMissed) for it in facts), "vacuous"
    assert len(due) == 2, "vacuous"


def test_a_cancelled_timer_reports_nothing_before_its_time() -> None:
    case = parse_case(NOT_CONFIRMED, "confirmed.yaml")
    tape = case.tape(Entry("fire", "ConfirmationDue(step 3) to context", "step 8"))
    assert play(case, tape, all_oracles()).ok
    early = "allocation.asked_back_ns + warning_ns > unit.now_ns"
    with Mutant("early", "", "", report_unconfirmed, early, "False").applied():
        violation = play(case, tape, all_oracles()).violation
    assert violation is not None
    assert "that b is not confirmed is reported 600000000000 ns too early" in violation.text
