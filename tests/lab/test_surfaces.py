"""What stands beside the core is judged in every run: a defect there is found, and named."""

from pathlib import Path

import pytest
import ranges

from yunikorn_actors.cli import main
from yunikorn_actors.journal import journaled_context as kept
from yunikorn_actors.journal import restored_state as truth
from yunikorn_actors.lab.case import parse_case, read_case
from yunikorn_actors.lab.mutants.event_records import EVENT_RECORDS
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.oracles.run_oracles import all_oracles
from yunikorn_actors.lab.run_schedule import explore, play
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces import read_sides
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.world_parts import Wanted
from yunikorn_actors.lab.tapes.tape import Entry
from yunikorn_actors.machines.context import lifecycle
from yunikorn_actors.messages.base import RM_PROXY
from yunikorn_actors.messages.rm_events import (
    ApplicationsRequested,
    RegistrationRequested,
    RMRegistered,
)
from yunikorn_actors.service.cluster import recovery_report as report
from yunikorn_actors.service.cluster import split
from yunikorn_actors.service.cluster.recovery_report import RecoveryReport
from yunikorn_actors.service.read import applications, nodes
from yunikorn_actors.service.read import owner_usage as usage
from yunikorn_actors.service.read.projection import Notes
from yunikorn_actors.service.read.queues import Queues
from yunikorn_actors.service.read.read_model import History
from yunikorn_actors.service.read.replica import Book, EventCounts
from yunikorn_actors.state import dump as snapshot
from yunikorn_actors.state import snapshot as image
from yunikorn_actors.state.facts import AllocationRecovered, AllocationReleased, ReservationMade

RUNS = range(1, 41)


def mutant(name: str, where: object, old: str, new: str) -> Mutant:
    return Mutant(name, "", "", where, old, new)  # type: ignore[arg-type] # any function


JOURNAL = (
    mutant(
        "withdrawals are not written",
        kept.Entries.of,
        "type(it.message) not in _UNKEPT",
        "type(it.message) not in _UNKEPT and not any(type(fact).__name__ == 'AskRemoved' "
        "for fact in getattr(it.message, 'facts', ()))",
    ),
    mutant(
        "a snapshot forgets reservations",
        image._node,
        "list(node.reservations.values())",
        "[]",
    ),
    mutant(
        "who is registered is not written",
        kept.Entries.of,
        "self._context.registered if changes else None",
        "None",
    ),
    mutant(
        "timers of applications are not armed again",
        lifecycle.set_timers_again,
        "app.timers.items()",
        "()",
    ),
    mutant(
        "the records of a snapshot are lost",
        truth.Truth.begin_with,
        "self.publisher.handle(restored.events, 0)",
        "pass",
    ),
)
READ = (
    mutant(
        "releases are not counted",
        EventCounts.note,
        "_COUNTED.get(type(fact))",
        "None if type(fact).__name__ == 'AllocationReleased' else _COUNTED.get(type(fact))",
    ),
    mutant(
        "a late read side has no replica",
        Book.restore,
        "restore(self.state, image)",
        "self.state.revision = image['revision']",
    ),
    mutant("a log outlives its ask", Notes._settle, "note.asks.pop(key, None)", "pass"),
    mutant(
        "samples are taken a minute late",
        History.catch_up,
        "while self._due_ns <= now_ns",
        "while self._due_ns < now_ns - MINUTE",
    ),
    mutant(
        "a queue shows what is allocated as what waits",
        Queues._own,
        "used(queue.pending)",
        "used(queue.allocated)",
    ),
    mutant("groups have nothing in use", usage._shows, "ROOT in paths", "False"),
    mutant(
        "what is left of a queue passes over those above it",
        Queues._headroom,
        "in queue.lineage:",
        "in queue.lineage[:1]:",
    ),
    mutant(
        "a fence hides no priority",
        Queues._raise,
        "0 if properties.priority_fence else priority",
        "priority",
    ),
    mutant(
        "a group shows the limits of a user of its name",
        usage._Tree._limit,
        "limits.for_group(self._owner) if self._of_group else limits.for_user(self._owner)",
        "limits.for_user(self._owner)",
    ),
    mutant(
        "all that was asked back is dumped as preempted",
        snapshot._queue,
        '"preempting": _amounts(queue.preempting)',
        '"preempting": _amounts(queue.leaving)',
    ),
    mutant("an ask shows no node", applications.request, "spec.required_node,", '"",'),
    mutant("foreign work is not shown", nodes.node, "it.foreign.values()", "()"),
)


WITH = {
    "a snapshot forgets reservations": ("reservations", "waits"),
    "a node that was drained comes back open": ("drained-nodes",),
    "a group shows the limits of a user of its name": ("limits", "one-rush"),
    "a fence hides no priority": ("priorities", "large"),
    "an ask shows no node": ("required-nodes", "large"),
    "all that was asked back is dumped as preempted": ("gangs", "manual-confirmations", "waits"),
    "foreign work is not shown": ("foreign-work", "large"),
    "M322": ("extra-configuration", "reloads"),
    "M323": ("resized-nodes", "foreign-work"),
}
"""The parts of worlds in which some of them are looked for."""


def found(numbers: range, kind: str | tuple[str, ...], planted: str) -> str:
    """Play drawn worlds up to the first in which this is wrong."""
    wanted = Wanted(only=WITH.get(planted, ()))
    for number in numbers:
        run = drawn(1, number, wanted)
        violation = explore(run.case, run.schedule(), all_oracles(Draw(number))).violation
        if violation is not None and violation.text.startswith(kind):
            return violation.text
    return ""


@pytest.mark.parametrize("planted", JOURNAL, ids=lambda it: it.id)
def test_a_defect_of_the_journal_is_found(planted: Mutant) -> None:
    with planted.applied():
        assert found(RUNS, "journal", planted.id), f"not found: {planted.id}"


@pytest.mark.parametrize("planted", ranges.first(READ, 4), ids=lambda it: it.id)
def test_a_defect_of_the_read_side_is_found(planted: Mutant) -> None:
    with planted.applied():
        assert found(RUNS, ("read side", "late read side"), planted.id), f"not found: {planted.id}"


@pytest.mark.parametrize("planted", ranges.first(EVENT_RECORDS, 2), ids=lambda it: it.id)
def test_a_defect_of_event_records_is_found(planted: Mutant) -> None:
    told = ("G28: event records", "G30: event publisher")
    with planted.applied():
        assert found(RUNS, told, planted.id), f"not found: {planted.id}"


def test_an_oracle_changes_nothing_of_a_run() -> None:
    for number in range(1, 6):
        run = drawn(1, number)
        bare = explore(run.case, run.schedule()).digest()
        assert bare == explore(run.case, run.schedule(), all_oracles(Draw(1))).digest()


WISHES = """\
name: a resource manager that wants no event records, and then some
settings: {slice_max: 1}
steps:
  - register: {rm: rm-1, extra: {event.trackingEnabled: 'false'}}
  - create_node: {rm: rm-1, id: n1, capacity: {vcore: 4}}
  - config: {rm: rm-1, extra: {event.trackingEnabled: 'true'}, queues: {partitions: [
      {name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]}}
"""


def test_a_reader_numbers_event_records_as_the_core_does() -> None:
    """Facts of the registration itself are told under the wishes that came with it."""
    case = parse_case(WISHES, "wishes.yaml")
    assert play(case, case.tape(), all_oracles()).violation is None


BOUND = """\
name: a fact without a record comes first, then another bound of what waits for a push
settings: {slice_max: 1}
steps:
- advance: 2s
- ask: {app: app-8, key: k6, count: 2}
- config:
    queues:
      partitions:
      - queues: []
    extra: {event.requestCapacity: '1'}
"""


def test_the_bound_of_a_push_is_that_of_its_first_record() -> None:
    case = parse_case(BOUND, "bound.yaml")
    outcome = play(case, case.tape(), all_oracles())
    assert outcome.ok, outcome.violation


FORGOTTEN = """\
name: two applications are rejected in one request, and the history has room for one
settings: {history_max: 1}
steps:
  - raw: {call: update_application, request: {rmID: rm-1, new: [
      {applicationID: a, queueName: root.none.x}, {applicationID: b, queueName: root.none.x}]}}
"""


def test_what_the_history_forgot_at_once_is_not_missed() -> None:
    case = parse_case(FORGOTTEN, "forgotten.yaml")
    outcome = play(case, case.tape(), all_oracles())
    assert outcome.ok, outcome.violation


LATE = Path(__file__).parents[1] / "scenarios/gang-disturbances"


@pytest.mark.parametrize("word", ["asked-for", "reported"])
def test_what_is_asked_back_without_being_announced_is_no_news_later(word: str) -> None:
    case = read_case(LATE / f"placeholder-{word}-while-the-gang-resumes.yaml")
    outcome = play(case, case.tape(), all_oracles(Draw(1)))
    assert outcome.ok, outcome.violation


ALONE = "name: an application\nsteps:\n- add_app: {id: app-1}\n"


def test_what_they_find_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "alone.yaml"
    file.write_text(ALONE)
    tape = read_case(file).tape().line()
    (planted,) = (it for it in CLUSTER if it.id == "applications are left out of the report")
    with planted.applied():
        assert 1 == main(("lab", "explain", tape))
    assert "it does not have app-1" in capsys.readouterr().out


BROUGHT_AND_ENDED = """\
name: one request reports work and ends it
steps:
- create_node: {id: n1, capacity: {vcore: 1000}}
- add_app: {id: app-1}
- raw: {call: update_allocation, request: {rmID: rm-1, allocations: [{allocationKey: b, nodeID: n1,
    applicationID: app-1, resourcePerAlloc: {resources: {vcore: {value: 1}}}}],
    releases: {allocationAsksToRelease: [{allocationKey: b}]}}}
"""


def test_what_came_and_went_in_one_request_was_not_seen() -> None:
    case = parse_case(BROUGHT_AND_ENDED, "ended.yaml")
    outcome = play(case, case.tape(), all_oracles(Draw(1)))
    assert outcome.ok, outcome.violation
    facts = [fact for it in outcome.deliveries for fact in getattr(it.message, "facts", ())]
    assert any(isinstance(fact, AllocationReleased) for fact in facts), "vacuous"


MOVED = """\
name: in one request a node goes, and another one reports what ran there
steps:
- add_app: {id: app-1}
- create_node: {id: n1, allocations: [{key: a, app: app-1, resource: {vcore: 1}}]}
- raw: {call: update_node, request: {rmID: rm-1, nodes: [{nodeID: n1, action: 4}, {nodeID: n2,
    action: 1, existingAllocations: [{allocationKey: a, UUID: a-recovered, applicationID: app-1,
    resourcePerAlloc: {resources: {vcore: {value: 1}}}}]}]}}
"""


def test_what_went_and_came_again_in_one_request_was_not_seen() -> None:
    case = parse_case(MOVED, "moved.yaml")
    outcome = play(case, case.tape(), all_oracles(Draw(1)))
    assert outcome.ok, outcome.violation
    facts = [fact for it in outcome.deliveries for fact in getattr(it.message, "facts", ())]
    places = {it.node_id for it in facts if isinstance(it, AllocationRecovered)}
    assert {"n1", "n2"} == places, "vacuous"


MANY = f"""\
name: the answer about an application of very many asks is made in steps
steps:
- add_app: {{id: app-1}}
- ask: {{app: app-1, key: a, count: {applications.ASKS_AT_ONCE + 1}, resource: {{vcore: 1}}}}
"""


def test_an_answer_that_is_made_in_steps_is_judged() -> None:
    case = parse_case(MANY, "many.yaml")
    outcome = play(case, case.tape(), all_oracles(Draw(1)))
    assert outcome.ok, outcome.violation
    with mutant("priority", applications._large, "max(highest, ask.spec.priority)", "7").applied():
        outcome = play(case, case.tape(), all_oracles(Draw(1)))
    assert outcome.violation is not None
    assert "maxRequestPriority" in outcome.violation.text


REGISTERED_ANEW = """\
name: an application comes again while its manager registers anew
steps:
- raw: {call: register_resource_manager, request: {rmID: rm-1}}
- add_app: {id: app-3}
"""


def test_what_is_said_while_a_manager_registers_anew_belongs_to_its_new_life() -> None:
    case = parse_case(REGISTERED_ANEW, "anew.yaml")
    asked = "ApplicationsRequested(add app-3) from gateway to rm_proxy"
    tape = case.tape(
        Entry("register", "rm-1 again", "step 2"), Entry("bounce", "application app-3", asked)
    )
    outcome = play(case, tape, all_oracles())
    assert outcome.ok, outcome.violation
    assert not outcome.not_played
    came = [type(it.message) for it in outcome.deliveries if it.mailbox == RM_PROXY]
    again = len(came) - came[::-1].index(RegistrationRequested)
    assert ApplicationsRequested in came[again : came.index(RMRegistered, again)], "vacuous"


ENDED_AND_BEGUN = """\
name: a partition ends and begins anew in one step
steps:
- add_app: {id: app-1}
- add_app: {id: app-2}
- register: {}
- add_app: {id: app-1}
- register: {}
- add_app: {id: app-2}
"""


def test_facts_of_a_former_life_are_not_repeated_behind_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repeated = list[str]()
    again = read_sides._tell_again
    monkeypatch.setattr(read_sides, "_TWICE", 1)
    monkeypatch.setattr(
        read_sides, "_tell_again", lambda *it: (repeated.append(it[1].partition), again(*it))
    )
    case = parse_case(ENDED_AND_BEGUN, "anew.yaml")
    outcome = play(case, case.tape(), all_oracles(Draw(1)))
    assert outcome.ok, outcome.violation
    assert repeated, "vacuous"


OF_TWO_QUEUES = """\
name: who has a place by a reservation has had work in another queue
queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a, queues: [{name: x}, {name: y}]}]}]}]}
steps:
- create_node: {id: n1, capacity: {vcore: 3000}, occupied: {vcore: 1}}
- add_app: {id: app-1, queue: root.a.x, user: bob, timeout: 1s}
- add_app: {id: app-2, queue: root.a.y, user: bob}
- ask: {app: app-2, key: k, resource: {vcore: 3000}}
- bind: {app: app-1, key: b, node: n1, resource: {vcore: 1}}
- advance: 5s
"""


def test_places_have_no_order_among_queues() -> None:
    case = parse_case(OF_TWO_QUEUES, "places.yaml")
    outcome = play(case, case.tape(), all_oracles(Draw(1)))
    assert outcome.ok, outcome.violation
    facts = [fact for it in outcome.deliveries for fact in getattr(it.message, "facts", ())]
    assert any(isinstance(fact, ReservationMade) for fact in facts), "vacuous"


CLUSTER = (
    mutant(
        "a node that was drained comes back open",
        report._changed,
        "if change.action in _DRAINS:",
        "if False:",
    ),
    mutant(
        "what was to end is left out of the report",
        RecoveryReport.recover,
        "        parts.append(end.request)\n",
        "",
    ),
    mutant(
        "applications are left out of the report",
        RecoveryReport.recover,
        "apps = list(self._applications.values())",
        "apps = []",
    ),
    mutant(
        "a state is told once, and not when it is back",
        RecoveryReport._moves,
        "was != update.state",
        "was is None",
    ),
    mutant(
        "each item is said to the first partition",
        split.split,
        "name if name in homes else homes[0]",
        "homes[0]",
    ),
)


@pytest.mark.parametrize("planted", ranges.first(CLUSTER, 2), ids=lambda it: it.id)
def test_a_defect_of_a_portal_is_found(planted: Mutant) -> None:
    with planted.applied():
        assert found(RUNS, "portal", planted.id), f"not found: {planted.id}"
