"""Cores that end in the middle of a drawn run, and begin again with what their files have."""

from pathlib import Path

import pytest
import ranges

from yunikorn_actors.drivers.simulator.refusal_checks import AgreementChecker
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.journal.writing import Journal
from yunikorn_actors.lab.case import parse_case, read_case
from yunikorn_actors.lab.mutants.corpus import CORPUS
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import explore, play
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.swarm_runs import Plan, played
from yunikorn_actors.lab.swarm.world_parts import RESTART, Wanted
from yunikorn_actors.lab.tapes.tape import parse_tape
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.messages.rm_events import RMNewAllocations, RMUpdateNode
from yunikorn_actors.messages.scheduling import ProposalRejected
from yunikorn_actors.state.proposals import Refusal

RESTARTS = Wanted(only=(RESTART, "several-managers", "runs", "bursts", "waits", "fault-freeze"))
DAEMON = """
name: the core begins again while a daemon waits
steps:
  - create_node: {id: n1, capacity: {vcore: 4}}
  - add_app: {id: app, queue: root.default}
  - ask: {app: app, key: d, resource: {vcore: 1}, tags: {yunikorn.apache.org/requiredNode: n1}}
"""
NODE_IS_LATE = (
    "restart core by 3 after RMUpdateAllocation(ask d) from rm_proxy to context; "
    "hold NodesRequested(create n1) from gateway to rm_proxy #2 until after the end"
)
CONFIRMED = """
name: a placeholder is confirmed by its key after the core has begun again
rm: {confirm: manual}
steps:
  - create_node: {id: n1, capacity: {vcore: 2}}
  - add_app: {id: g, queue: root.default, placeholder_ask: {vcore: 2}}
  - ask: {app: g, key: ph, resource: {vcore: 2}, task_group: tg, placeholder: true}
  - confirm: {app: g, key: ph, type: TIMEOUT}
"""
BEFORE_IT_IS_ANNOUNCED = "restart core by 5 after RMNewAllocations(new ph) from context to rm_proxy"
PAUSED = """
name: a gang becomes a victim before the core begins again, and its planner looks too early
queues:
  partitions:
  - queues:
    - name: root
      submitacl: '*'
      queues:
      - {name: research}
      - {name: serving, properties: {preemption.delay: 1s}, resources: {guaranteed: {gpu: 1}}}
rm: {confirm: manual}
steps:
  - create_node: {id: n1, capacity: {gpu: 4}}
  - add_app: {id: g, queue: root.research, placeholder_ask: {gpu: 4}, style: Hard}
  - ask: {app: g, key: hold, resource: {gpu: 1}, task_group: rank, placeholder: true, count: 4}
  - ask: {app: g, key: a, resource: {gpu: 1}, task_group: rank}
  - add_app: {id: web, queue: root.serving}
  - ask: {app: web, key: w, resource: {gpu: 1}, preemption: {allow_other: true}}
  - advance: 60s
  - confirm: all
  - advance: 60s
  - confirm: all
"""
REFUSED_IN_A_SLICE = """
name: two placements are refused in one slice of long work
queues:
  partitions:
  - name: default
    queues:
    - name: root
      submitacl: '*'
      queues: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}]
settings: {slice_max: 2, inflight_max: 2}
steps:
  - create_node: {id: n1, capacity: {vcore: 4000, memory: 30, gpu: 2000}}
  - add_app: {id: app-1, queue: root.a}
  - add_app: {id: app-2, queue: root.b}
  - add_app: {id: app-3, queue: root.c}
  - add_app: {id: app-4, queue: root.d}
  - add_app: {id: app-5, queue: root.e}
  - ask: {app: app-2, key: fill, resource: {vcore: 1000, gpu: 1000}, count: 4}
  - ask: {app: app-1, key: small, resource: {vcore: 1000, gpu: 400}}
  - advance: 35s
  - ask: {app: app-4, key: claim5, resource: {vcore: 1000, gpu: 700}}
  - ask: {app: app-4, key: claim6, resource: {vcore: 1000, gpu: 1000}}
  - ask: {app: app-2, key: daemon, resource: {vcore: 2000, gpu: 2000}, required_node: n1}
  - advance: 1s
"""
NODE_IS_KEPT_MEANWHILE = (
    "restart core by 501071 after FactsAppended(LongWorkEnded) from context to event_publisher; "
    "restart core by 117970 after step 2; "
    "hold ApplicationsRequested(add app-2) from gateway to rm_proxy #2 until after the end; "
    "flap node n1 after RMUpdateApplication(add app-5) from rm_proxy to context #2; "
    "hold ProposalRejected(NODE_RESERVED) from context to scheduler #2 until after the end"
)
IN_THE_PAUSE = (
    "do step 8 after CallSendEvent(step 0) from rm_proxy to rm-1; "
    "do step 9 after EventPushDue(step 8) from timer to event_publisher; "
    "do step 10 after SendEvents(step 8) from event_publisher to rm_proxy; "
    "restart core by 627761 after step 10"
)
BOUND_AND_FREE = (
    Path(__file__).parents[1]
    / "scenarios/preemption/162-bound-and-free-placeholders-claim-together.yaml"
)
WHILE_AWAITED = "restart core by 884125 after due PlanningDue(step 8) to scheduler"
ON_FILES = {"M264": 2, "M266": 16, "M269": 2}
"""And a world in which each was seen."""


def test_a_core_ends_and_what_its_managers_report_fits_what_it_knows() -> None:
    """And what a core before this one had planned first is forgotten when it begins."""
    known: list[int] = []
    agreement = AgreementChecker()

    class Look:
        def delivered(self, _: Simulator, delivery: Delivery) -> None:
            if isinstance(delivery.message, CoreRestored):
                known.append(len(agreement._first))

    for number in range(1, 9):
        run = drawn(1, number, RESTARTS)
        outcome = explore(run.case, run.schedule(), (Look(), agreement, Look(), *run.checkers()))
        assert outcome.ok, outcome.violation
    planned, forgotten = known[::2], known[1::2]
    assert len(planned) > 5, "vacuous: hardly a core began again"
    assert any(planned), "vacuous: none had planned"
    assert {*forgotten} == {0}


UNCHECKED = Mutant(
    id="unchecked",
    source="",
    wrong="a record of a journal names another one before it than there is",
    where=Journal._write,
    old="self._check = check_of(data)",
    new="pass",
)


def test_journals_write_some_of_them_as_a_core_has_them() -> None:
    with UNCHECKED.applied():
        runs = (drawn(1, number, RESTARTS) for number in range(1, 13))
        assert any(not explore(it.case, it.schedule(), it.checkers()).ok for it in runs)


def test_few_worlds_have_it_and_nothing_else_changes_by_it() -> None:
    pairs = [(drawn(1, it), drawn(1, it, Wanted(without=(RESTART,)))) for it in range(1, 30)]
    assert 0 < sum(one.parts != other.parts for one, other in pairs) < 6
    for one, other in pairs:
        assert one.parts - {RESTART} == other.parts
        assert (one.case, one.strategy, one.order) == (other.case, other.strategy, other.order)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_daemon_is_placed_behind_the_report_of_its_node(topology: TopologyName) -> None:
    case = parse_case(DAEMON, "daemon.yaml", topology)
    outcome = play(case, parse_tape(f"{case.tape().line()}; {NODE_IS_LATE}"), oracles())
    assert outcome.ok, outcome.violation
    sent = [type(it.message) for it in outcome.deliveries]
    assert CoreRestored in sent
    assert sent.index(RMNewAllocations) > len(sent) - sent[::-1].index(RMUpdateNode)


@pytest.mark.parametrize(("id_", "seen_in"), ON_FILES.items())
def test_what_is_wrong_with_the_files_of_a_journal_is_found(id_: str, seen_in: int) -> None:
    (mutant,) = (it for it in CORPUS if it.id == id_)
    plan = Plan(seed=1, wanted=RESTARTS)
    with mutant.applied():
        numbers = ranges.from_(seen_in, range(1, 40))
        found = (played(plan, number).run.violation for number in numbers)
        violation = next((it for it in found if it is not None), None)
    assert violation is not None
    assert violation.text.startswith("journal of a core that ended")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_was_placed_and_never_announced_may_end_by_its_key(topology: TopologyName) -> None:
    """Its manager has asked for it again, and cannot know that it ran and is given back."""
    case = parse_case(CONFIRMED, "confirmed.yaml", topology)
    outcome = play(case, parse_tape(f"{case.tape().line()}; {BEFORE_IT_IS_ANNOUNCED}"), oracles())
    assert any(isinstance(it.message, CoreRestored) for it in outcome.deliveries)
    assert outcome.ok, outcome.violation


def test_a_placeholder_that_is_bound_waits_for_the_next_search_of_its_gang() -> None:
    """It was searched for while the node of one of them was awaited."""
    case = read_case(BOUND_AND_FREE, "proposing")
    tape = f"{case.tape().line()}, steps 0-2 4-6 8-9 11; {WHILE_AWAITED}"
    outcome = play(case, parse_tape(tape), oracles())
    assert any(isinstance(it.message, CoreRestored) for it in outcome.deliveries)
    assert outcome.ok, outcome.violation


def test_a_planner_that_begins_again_has_a_pause_of_its_own() -> None:
    """It searched while a node was awaited; victims could be found long before it began."""
    case = parse_case(PAUSED, "paused.yaml", "proposing")
    outcome = play(case, parse_tape(f"{case.tape().line()}; {IN_THE_PAUSE}"), oracles())
    assert any(isinstance(it.message, CoreRestored) for it in outcome.deliveries)
    assert outcome.ok, outcome.violation


def test_what_a_slice_of_long_work_refuses_counts_until_the_planner_learns_it() -> None:
    """The planner counts the placement that was refused: its ask has to wait for room."""
    case = parse_case(REFUSED_IN_A_SLICE, "refused.yaml", "proposing")
    tape = f"{case.tape().line()}, steps 0 2 12; {NODE_IS_KEPT_MEANWHILE}"
    outcome = play(case, parse_tape(tape), oracles())
    assert outcome.ok, outcome.violation
    refused = [
        it for it in outcome.deliveries
        if isinstance(it.message, ProposalRejected) and it.message.reason is Refusal.NODE_RESERVED
    ]  # fmt: skip
    assert len(refused) == 2, "vacuous: the node was not kept before both were committed"
