"""Each defect in what a resource manager is notified of shows, and no other checker sees it.

One scenario brings about every kind of notification to two resource managers. A defect changes what
goes out of RmProxy, or what Context announces; the truth stays what it is.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
import ranges
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.notice_checks import RecordChecker
from yunikorn_actors.lab.mutants.mutant import Mutant, Target
from yunikorn_actors.machines.context import (
    applications,
    asks,
    batch_commit,
    endings,
    gangs,
    lifecycle,
    nodes,
    releases,
)
from yunikorn_actors.machines.machine import Effect
from yunikorn_actors.machines.rm_proxy.rm_proxy import RmProxy
from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import Message
from yunikorn_actors.scenario.document import parse_scenario
from yunikorn_actors.scenario.drivers import DriverName
from yunikorn_actors.scenario.runner import Outcome, RunOptions, run_scenario

EVERYTHING = """
name: every kind of notification
rm: {confirm: auto}
steps:
  - register: {rm: rm-1}
  - register: {rm: rm-2}
  - create_node: {rm: rm-1, ids: [n1, n2], capacity: {vcore: 8}}
  - create_node: {rm: rm-1, id: n1, capacity: {vcore: 8}}
  - create_node: {rm: rm-2, id: m1, capacity: {vcore: 2}}
  - add_app: {rm: rm-1, id: plain, queue: root.default}
  - add_app: {rm: rm-2, id: other, queue: root.default}
  - add_app: {rm: rm-1, id: plain, queue: root.default}
  - ask: {rm: rm-1, app: plain, key: first, resource: {vcore: 1}, priority: 7, tags: {colour: red}}
  - ask: {rm: rm-2, app: other, key: mine, resource: {vcore: 1}}
  - ask: {rm: rm-1, app: plain, key: run, count: 4, resource: {vcore: 1}}
  - ask: {rm: rm-1, app: nowhere, key: vain, resource: {vcore: 1}}
  - raw: {call: update_allocation, request: {rmID: rm-1, allocations: [
      {allocationKey: later-vain, applicationID: nowhere, resourcePerAlloc: {resources: {vcore: {value: 1}}}},
      {allocationKey: later, applicationID: plain, resourcePerAlloc: {resources: {vcore: {value: 1}}}}]}}
  - ask: {rm: rm-1, app: plain, key: large, resource: {vcore: 99}}
  - release: {rm: rm-1, app: plain, key: first}
  - add_app: {rm: rm-1, id: gang, queue: root.default, placeholder_ask: {vcore: 2}, style: Soft, timeout: 60s}
  - ask: {rm: rm-1, app: gang, key: ph, count: 2, resource: {vcore: 1}, task_group: t, placeholder: true}
  - ask: {rm: rm-1, app: gang, key: real, resource: {vcore: 1}, task_group: t}
  - advance: 61s
  - add_app: {rm: rm-1, id: late, queue: root.default, placeholder_ask: {vcore: 99}, style: Soft, timeout: 30s}
  - ask: {rm: rm-1, app: late, key: fits, resource: {vcore: 1}, task_group: t, placeholder: true}
  - ask: {rm: rm-1, app: late, key: wide, resource: {vcore: 98}, task_group: t, placeholder: true}
  - advance: 31s
  - remove_node: n2
  - config: {queues: {partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: [{name: default}, {name: more}]}]}]}}
  - remove_app: plain
"""
"""`fits` is placed and `wide` is not: after 30 seconds one is asked back and the other withdrawn."""

Calls = list[tuple[str, Message]]
Change = Callable[[str, Any], Calls]


def _run(text: str = EVERYTHING, *, records: bool = True, seeds: range = range(1)) -> Outcome:
    def checkers() -> Any:
        return tuple(it for it in default_checkers() if records or type(it) is not RecordChecker)

    scenario = parse_scenario(text, "everything.yaml")
    return run_scenario(scenario, RunOptions(checkers=checkers, seeds=seeds))


def test_the_core_as_it_is_notifies_as_it_should() -> None:
    assert _run().ok, _run().failures


# -- defects of what goes out


def _allocations(change: Callable[[si.AllocationResponse], Any]) -> Change:
    """Change the answers about allocations; a result of several goes out as several."""

    def changed(rm_id: str, call: Message) -> Calls:
        if not isinstance(call, c.CallUpdateAllocation):
            return [(rm_id, call)]
        response = change(call.response)
        several = response if isinstance(response, list) else [response]
        return [(rm_id, c.CallUpdateAllocation(response=it)) for it in several]

    return changed


def _new(**fields: Any) -> Change:
    return _each("new", lambda item: replace(item, **_given(item, fields)))


def _given(item: Any, fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value(item) if callable(value) else value for name, value in fields.items()}


def _each(field: str, change: Callable[[Any], Any]) -> Change:
    """Change each item of one list of the answers about allocations; None leaves it out."""

    def changed(response: si.AllocationResponse) -> si.AllocationResponse:
        items = (change(it) for it in getattr(response, field))
        return replace(response, **{field: tuple(it for it in items if it is not None)})

    return _allocations(changed)


def _only(kind: type, field: str, change: Callable[[Any], Any]) -> Change:
    """Change each item of one list of any answer; None leaves it out."""

    def changed(rm_id: str, call: Any) -> Calls:
        if not isinstance(call, kind):
            return [(rm_id, call)]
        holder = call.response if hasattr(call, "response") else call
        items = tuple(it for it in map(change, getattr(holder, field)) if it is not None)
        holder = replace(holder, **{field: items})
        return [(rm_id, replace(call, response=holder) if hasattr(call, "response") else holder)]

    return changed


def _twice(kind: type, field: str = "") -> Change:
    def changed(rm_id: str, call: Any) -> Calls:
        is_it = isinstance(call, kind) and (not field or getattr(call.response, field))
        return [(rm_id, call)] * (2 if is_it else 1)

    return changed


def _to_the_other(kind: type, field: str = "") -> Change:
    """What is for the first resource manager goes to the second."""

    def changed(rm_id: str, call: Any) -> Calls:
        is_it = isinstance(call, kind) and (not field or getattr(call.response, field))
        return [("rm-2" if is_it and rm_id == "rm-1" else rm_id, call)]

    return changed


def _turned_round(response: si.AllocationResponse) -> si.AllocationResponse:
    """The nodes of the allocations of one answer in reverse order."""
    nodes = [it.node_id for it in reversed(response.new)]
    new = tuple(replace(it, node_id=to) for it, to in zip(response.new, nodes, strict=True))
    return replace(response, new=new)


def _of_main_form(response: si.AllocationResponse) -> si.AllocationResponse:
    main = tuple(
        si.RejectedAllocationAsk(
            allocation_key=it.allocation_key, application_id=it.application_id, reason=it.reason
        )
        for it in response.rejected_allocations
    )
    return replace(response, rejected=(*response.rejected, *main), rejected_allocations=())


def _of_later_form(response: si.AllocationResponse) -> si.AllocationResponse:
    later = tuple(
        si.AllocationRelease(
            allocation_key=it.allocation_key,
            application_id=it.application_id,
            partition_name=it.partition_name,
            termination_type=it.termination_type,
            message=it.message,
        )
        for it in response.released_asks
    )
    return replace(response, released=(*later, *response.released), released_asks=())


def _late() -> Change:
    """Announcements wait until the next application is answered."""
    kept: Calls = []

    def changed(rm_id: str, call: Any) -> Calls:
        if isinstance(call, c.CallUpdateNode):
            kept.clear()
        if isinstance(call, c.CallUpdateAllocation) and call.response.new:
            kept.append((rm_id, call))
            return []
        if not (isinstance(call, c.CallUpdateApplication) and call.response.accepted):
            return [(rm_id, call)]
        out = [(rm_id, call), *kept]
        kept.clear()
        return out

    return changed


_T = si.TerminationType
_STATE = c.CallUpdateContainerSchedulingState
_APP, _NODE, _ALLOCATION = c.CallUpdateApplication, c.CallUpdateNode, c.CallUpdateAllocation
OUTGOING: dict[str, tuple[Change, str]] = {
    "announced never": (_each("new", lambda _: None), r"allocation .*first of plain"),
    "announced twice": (_twice(_ALLOCATION, "new"), r"G16: rm-\d was notified of allocation .* not owed; .*1 times before"),
    "announced late": (_late(), r"G16: rm-1 was never notified of allocation"),
    "announced to another": (_to_the_other(_ALLOCATION, "new"), r"G16: rm-2 was notified of allocation .* which is owed to rm-1"),
    "wrong node": (_new(node_id="n9"), r"G16: .*first of plain\): node_id is 'n9', expected 'n[12]'"),
    "wrong UUID": (_new(uuid=lambda it: it.uuid + "x"), r"G16: .*allocation core-1x|G16: .*allocation scenario-1x"),
    "wrong key": (_new(allocation_key="k"), r"key is 'k', expected 'first'"),
    "wrong application": (_new(application_id="other"), r"application_id is 'other', expected 'plain'"),
    "wrong partition": (_new(partition_name="p"), r"partition is 'p', expected 'default'"),
    "wrong amount": (_new(resource_per_alloc=si.Resource.of({"vcore": 3})), r"resource is .*3.*, expected .*1"),
    "wrong priority": (_new(priority=0), r"priority is 0, expected 7"),
    "placeholder": (_new(placeholder=False), r"allocation .*ph-0 of gang\): placeholder is False, expected True"),
    "task group": (_new(task_group_name=""), r"ph-0 of gang\): task_group is '', expected 't'"),
    "originator": (_new(originator=True), r"originator is True, expected False"),
    "preemption policy": (_new(preemption_policy=None), r"allow_preempt_other is False, expected True"),
    "tags": (_new(allocation_tags={}), r"tags is {}, expected {'colour': 'red'}"),
    "a run turned round": (_allocations(_turned_round), r"node_id is 'n\d', expected 'n\d'"),
    "released never": (_each("released", lambda _: None), r"G15: rm-1 was never notified of release STOPPED_BY_RM|G15: .* before release"),
    "released twice": (_twice(_ALLOCATION, "released"), r"G15: rm-1 was notified of release STOPPED_BY_RM .* not owed"),
    "wrong type": (_each("released", lambda it: replace(it, termination_type=_T.TIMEOUT)), r"G15: .*type is .*TIMEOUT.*, expected .*STOPPED_BY_RM"),
    "release of another": (_each("released", lambda it: replace(it, allocation_key="k")), r"key is 'k', expected 'first'"),
    "asked back without a reason": (_each("released", lambda it: replace(it, message="")), r"release STOPPED_BY_RM .*: there is no reason"),
    "withdrawn never": (_each("released_asks", lambda _: None), r"withdrawal of wide of late"),
    "withdrawn with a wrong type": (_each("released_asks", lambda it: replace(it, termination_type=_T.STOPPED_BY_RM)), r"G11: .*withdrawal of wide of late: type is .*expected"),
    "withdrawn in the other form": (_allocations(_of_later_form), r"withdrawal of wide of late: later_form is True, expected False"),
    "rejected never": (_each("rejected", lambda _: None), r"G25: rm-1 has asked for vain of nowhere, which neither"),
    "rejected never, later form": (_each("rejected_allocations", lambda _: None), r"G25: rm-1 has asked for later-vain of nowhere"),
    "rejected twice": (_twice(_ALLOCATION, "rejected"), r"G25: .*rejection of vain of nowhere: it was asked for 1 times and rejected 2"),
    "rejected without a reason": (_each("rejected", lambda it: replace(it, reason="")), r"rejection of vain of nowhere: there is no reason"),
    "rejected in the other form": (_allocations(_of_main_form), r"rejection of later-vain of nowhere: it was asked for in the other form"),
    "rejected to another": (_to_the_other(_ALLOCATION, "rejected"), r"G25: rm-2 .*rejection of vain of nowhere: it has not asked"),
    "accepted never": (_only(_APP, "accepted", lambda _: None), r"acceptance of application plain"),
    "accepted twice": (_twice(_APP, "accepted"), r"G25: .*acceptance of application plain.* not owed; .*asked for 1 times and answered 2"),
    "accepted for another": (_to_the_other(_APP, "accepted"), r"G25: rm-2 .*acceptance of application plain, which is owed to rm-1"),
    "accepted into another queue": (_only(_APP, "accepted", lambda it: replace(it, queue="root.x")), r"queue is 'root.x', expected 'root.default'"),
    "application rejected never": (_only(_APP, "rejected", lambda _: None), r"rejection of application plain"),
    "application rejected for nothing": (_only(_APP, "rejected", lambda it: replace(it, reason="no")), r"reason is 'no', expected 'adding application plain"),
    "state never": (_only(_APP, "updated", lambda _: None), r"state Accepted of application"),
    "wrong state": (_only(_APP, "updated", lambda it: replace(it, state="Failed")), r"G21: .*state is 'Failed', expected 'Accepted'"),
    "wrong time of a state": (_only(_APP, "updated", lambda it: replace(it, state_transition_timestamp=1)), r"at_ns is 1, expected"),
    "state of another": (_only(_APP, "updated", lambda it: replace(it, application_id="x")), r"G21: .*of application x, which it is not owed"),
    "node accepted never": (_only(_NODE, "accepted", lambda _: None), r"acceptance of node n1"),
    "node accepted twice": (_twice(_NODE, "accepted"), r"G25: .*acceptance of node n1, which it is not owed"),
    "node accepted for another": (_to_the_other(_NODE, "accepted"), r"G25: rm-2 .*acceptance of node n1, which is owed to rm-1"),
    "node rejected never": (_only(_NODE, "rejected", lambda _: None), r"G25: rm-1 has asked for node n1 2 times, and was answered 1"),
    "node rejected for nothing": (_only(_NODE, "rejected", lambda it: replace(it, reason="")), r"rejection of node n1: there is no reason"),
    "container state never": (_only(_STATE, "requests", lambda _: None), r"container state SCHEDULED of first"),
    "wrong container state": (_only(_STATE, "requests", lambda it: replace(it, state=si.SchedulingState.FAILED)), r"G27: .*state is 'FAILED', expected 'SCHEDULED'"),
    "container state twice": (_twice(_STATE), r"container state SCHEDULED of first of plain, which it is not owed"),
    "container state without a reason": (_only(_STATE, "requests", lambda it: replace(it, reason="")), r"container state FAILED of large of plain: reason is empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTGOING)
def test_a_defect_of_what_goes_out_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, words = OUTGOING[name]
    _change(change, monkeypatch)
    assert _run(records=False).ok, "seen by another checker"
    _must_show(words)


def _change(change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    original = RmProxy._call

    def changed(self: RmProxy, rm_id: str, call: Message) -> list[Effect]:
        return [effect for to, it in change(rm_id, call) for effect in original(self, to, it)]

    monkeypatch.setattr(RmProxy, "_call", changed)


def _must_show(words: str) -> None:
    outcome = _run()
    assert not outcome.ok
    text = str(outcome.failures[0].actual)
    assert re.search(words, text), text


# -- defects of what Context announces, and of the replies that RmProxy gives


def _wrong(where: Target, old: str, new: str) -> Mutant:
    return Mutant(id="", source="", wrong="", where=where, old=old, new=new)


ANNOUNCED: dict[str, tuple[Mutant, str]] = {
    "a swap is never announced": (
        _wrong(gangs.complete_swap, "unit.announce(", "str("),
        r"G27: .*before allocation .*real of gang|G16: .*never notified of .*real of gang",
    ),
    "a swap is announced on the placeholder's node": (
        _wrong(
            gangs.complete_swap,
            "spec=spec,\n            node_id=swap.node_id,",
            "spec=spec,\n            node_id=placeholder.node_id + 'x',",
        ),
        r"G16: .*real of gang\): node_id is 'n\dx', expected 'n\d'",
    ),
    "a swap is announced under the placeholder's UUID": (
        _wrong(
            gangs.complete_swap,
            "uuid=uuid,\n            spec=spec,",
            "uuid=placeholder.uuid,\n            spec=spec,",
        ),
        r"G16: .*real of gang\), which it is not owed",
    ),
    "what is asked back is asked back twice": (
        _wrong(
            endings.request_release,
            "ask_back(unit, allocation, message, type_)",
            "ask_back(unit, allocation, message, type_)\n"
            "    ask_back(unit, allocation, message, type_)",
        ),
        r"G13: .*which it is not owed.*it was released before",
    ),
    "what is asked back is asked back for another reason": (
        _wrong(
            endings.request_release,
            "ask_back(unit, allocation, message, type_)",
            "ask_back(unit, allocation, message, TerminationType.PREEMPTED_BY_SCHEDULER)",
        ),
        r"G13: .*type is .*PREEMPTED_BY_SCHEDULER.*, expected .*PLACEHOLDER_REPLACED",
    ),
    "a confirmation is echoed": (
        _wrong(
            releases._end, "    if type_ in BY_RM:", "    if True:"
        ),
        r"G15: .*release STOPPED_BY_RM of .*, which it is not owed",
    ),
    "a release is not echoed": (
        _wrong(
            releases._end, "    if type_ in BY_RM:", "    if False:"
        ),
        r"release STOPPED_BY_RM of .*first of plain",
    ),
    "what a node takes with it is not announced": (
        _wrong(nodes.remove_node, "announce_end(unit, allocation, f", "str(f"),
        r"G15: .*never notified of release STOPPED_BY_RM",
    ),
    "what an application takes with it is not announced": (
        _wrong(applications.remove_application, "announce_end(unit, allocation, f", "str(f"),
        r"G15: .*never notified of release STOPPED_BY_RM",
    ),
    "a withdrawal is not announced": (
        _wrong(asks.withdraw_ask, "unit.announce(", "str("),
        r"withdrawal of wide of late",
    ),
    "a state is reported that does not follow": (
        _wrong(lifecycle.advance, "_announce_state(unit, app.id, state,", "_announce_state(unit, app.id, app.state.__class__.FAILED,"),
        r"G21: .*state is 'Failed', expected 'Accepted'",
    ),
    "a run is announced with its nodes the wrong way round": (
        _wrong(batch_commit.Batch.commit, "specs=tuple([ask.spec for ask in asks]),\n            node_ids=node_ids", "specs=tuple([ask.spec for ask in asks]),\n            node_ids=node_ids[::-1]"),
        r"G16: .*run-\d of plain\): node_id is 'n\d', expected 'n\d'",
    ),
    "a registration is answered twice": (
        _wrong(RmProxy._on_rm_registered, "return [*former, Send(", "return [Send(to=message.reply_to, message=Accepted()), *former, Send("),
        r"G25: a reply came twice",
    ),
    "a configuration is answered before it holds": (
        _wrong(RmProxy._on_configuration_requested, "return [", "return [Send(to=message.reply_to, message=Accepted()), "),
        r"G25: the configuration of rm-1 was answered before it was decided",
    ),
    "an answer does not wait for its request": (
        _wrong(RmProxy._on_nodes_requested, "return Computation(", "return [] if message.request.rm_id == 'rm-2' else Computation("),
        r"G25: rm-2 has asked for node m1 1 times, and was answered 0 times",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ANNOUNCED)
def test_a_defect_of_what_is_announced_shows(name: str) -> None:
    mutant, words = ANNOUNCED[name]
    with mutant.applied():
        assert _run(records=False).ok, "seen by another checker"
        _must_show(words)


TWO_TURNS = """
name: two asks come one after the other, and nobody waits in between
steps:
  - create_node: {id: n1, capacity: {vcore: 4}}
  - add_app: {id: app, queue: root.default}
  - together:
      - ask: {app: app, key: a, resource: {vcore: 1}}
      - ask: {app: app, key: b, resource: {vcore: 1}}
"""


def test_what_arrives_after_something_that_is_missing_shows_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Long before the core comes to rest."""
    call_rm = RmProxy._call

    def called(self: RmProxy, rm_id: str, call: Any) -> list[Effect]:
        is_first = (
            isinstance(call, c.CallUpdateAllocation) and call.response.new[0].uuid[-2:] == "-1"
        )
        return [] if is_first else call_rm(self, rm_id, call)

    monkeypatch.setattr(RmProxy, "_call", called)
    assert _run(TWO_TURNS, records=False, seeds=range(1, 9)).ok, "seen by another checker"
    failures = [
        str(_run(TWO_TURNS, seeds=range(seed, seed + 1)).failures[0].actual) for seed in range(1, 9)
    ]
    words = r"G27: rm-1 was notified of .*b of app.? before allocation .*a of app"
    assert any(re.search(words, it) for it in failures), failures


NODES = """
name: a node comes
steps:
  - create_node: {id: n1, capacity: {vcore: 1}}
"""


def test_an_answer_before_it_holds_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """RmProxy accepts nodes by itself, and drops what Context says of them."""
    forward, call_rm = RmProxy._forward, RmProxy._call

    def forwarded(self: RmProxy, rm_id: str, event: Message) -> list[Effect]:
        effects = forward(self, rm_id, event)
        if isinstance(event, rm.RMUpdateNode):
            accepted = tuple(
                si.AcceptedNode(node_id=it.node_id)
                for it in event.nodes
                if it.action.name == "CREATE"
            )
            response = si.NodeResponse(accepted=accepted)
            effects.extend(call_rm(self, rm_id, c.CallUpdateNode(response=response)))
        return effects

    def called(self: RmProxy, rm_id: str, call: Message) -> list[Effect]:
        return [] if isinstance(call, c.CallUpdateNode) else call_rm(self, rm_id, call)

    monkeypatch.setattr(RmProxy, "_forward", forwarded)
    monkeypatch.setattr(RmProxy, "_call", called)
    seeds = range(1, 9)
    assert _run(NODES, records=False, seeds=seeds).ok, "seen by another checker"
    outcome = _run(NODES, seeds=seeds)
    assert "acceptance of node n1, which it is not owed" in str(outcome.failures[0].actual)


BY_FACTS = frozenset({"wrong type", "container state twice", "application rejected for nothing"})
"""Only who follows the facts can see these."""
ON_THREADS = [
    name for name in OUTGOING if name not in {"announced late", "a run turned round", *BY_FACTS}
]


@pytest.mark.parametrize(("name", "driver"), ranges.one_each(ON_THREADS, ["threads", "direct"]))
def test_a_defect_shows_in_service(
    name: str, driver: DriverName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody sees the facts, the record is compared with the truth at rest."""
    _change(OUTGOING[name][0], monkeypatch)
    scenario = parse_scenario(EVERYTHING, "everything.yaml")
    outcome = run_scenario(scenario, RunOptions(driver=driver))
    assert not outcome.ok
    assert re.search(r"G\d\d: ", str(outcome.failures[0].actual))
