"""The cases of the package are sound, and each oracle of a whole run speaks up."""

from collections.abc import Callable
from pathlib import Path

import pytest

from yunikorn_actors.lab.case import Case, case_of, parse_case, read_case
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.oracles.run_oracles import Records, Rest, Zero, oracles
from yunikorn_actors.lab.run_schedule import Outcome, play
from yunikorn_actors.lab.tapes.tape import parse_tape
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation, CallUpdateApplication
from yunikorn_actors.scenario.document import parse_scenario

SCENARIOS = Path(__file__).parents[1] / "scenarios"
CASES = sorted((Path(__file__).parents[2] / "yunikorn_actors" / "lab" / "cases").glob("*.yaml"))


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_case_is_sound(file: Path, topology: str) -> None:
    case = read_case(file, topology)
    outcome = play(case, case.tape(), oracles())
    assert outcome.violation is None
    assert outcome.messages < 200


RUNNING = """
name: one allocation runs, and one ask waits for a node
steps:
  - create_node: {id: n1, capacity: {vcore: 2}}
  - create_node: {id: n2, capacity: {vcore: 1}}
  - add_app: {id: app, queue: root.default}
  - ask: {app: app, key: runs, resource: {vcore: 1}}
  - ask: {app: app, key: waits, resource: {vcore: 2}}
"""


CLAIMED = """
name: a gang that no node can hold has the one place until its commitment lapses
queues:
  partitions:
    - name: default
      queues:
        - name: root
          submitacl: "*"
          LIMITED
          queues: [{name: q QUEUE}]
steps:
  - create_node: {id: n1, capacity: {vcore: 2}}
  - add_app: {id: large, queue: root.q, placeholder_ask: {vcore: 3}}
  - ask: {app: large, key: never, resource: {vcore: 3}, task_group: t, placeholder: true}
  - add_app: {id: small, queue: root.q, placeholder_ask: {vcore: 1}}
  - ask: {app: small, key: waits, resource: {vcore: 1}, task_group: t, placeholder: true}
"""


@pytest.mark.parametrize(
    ("limited", "queue"),
    [("", ", maxapplications: 1"), ("limits: [{users: [test], maxapplications: 1}]", "")],
    ids=["queue", "user"],
)
def test_a_claimed_place_is_a_reason_to_wait(limited: str, queue: str) -> None:
    text = CLAIMED.replace("LIMITED", limited or "adminacl: nobody").replace("QUEUE", queue)
    case = case_of(parse_scenario(text, "claimed.yaml"), "0" * 12)
    assert play(case, case.tape(), oracles()).violation is None


CONFIRMED_IN_TURN = """
name: the end of one placeholder lets the next gang in, whose member takes over another at once
rm: {confirm: manual}
queues: {partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: [{name: q, resources: {max: {vcore: 1m}}}]}]}]}
steps:
  - create_node: {id: n1, capacity: {vcore: 4}}
  - add_app: {id: g1, queue: root.q, placeholder_ask: {vcore: 1}}
  - ask: {app: g1, key: p1, resource: {vcore: 1}, task_group: t, placeholder: true}
  - ask: {app: g1, key: large, resource: {vcore: 2}, task_group: t}
  - add_app: {id: g2, queue: root.q, placeholder_ask: {vcore: 1}}
  - ask: {app: g2, key: p2, resource: {vcore: 1}, task_group: t, placeholder: true}
  - ask: {app: g2, key: member, resource: {vcore: 1}, task_group: t}
"""


def test_in_the_end_everything_is_confirmed() -> None:
    case = case_of(parse_scenario(CONFIRMED_IN_TURN, "in_turn.yaml"), "0" * 12)
    assert play(case, case.tape(), oracles()).violation is None


UNANSWERED = """
name: a question has no answer within its second, so the ask is tried again later
steps:
  - predicate: allow
  - create_node: {id: n1, capacity: {vcore: 2}}
  - add_app: {id: app, queue: root.default}
  - ask: {app: app, key: waits, resource: {vcore: 1}}
  - advance: 5s
"""
HELD = """
tape 2 of unanswered.yaml sha256 000000000000 on fused, steps 0-5
hold PredicatesAnswered(step 4) from rm-1 to rm_proxy until after the end
"""


def test_an_ask_may_wait_until_its_manager_speaks_again() -> None:
    case = case_of(parse_scenario(UNANSWERED, "unanswered.yaml"), "0" * 12)
    assert play(case, parse_tape(HELD), oracles()).violation is None


LOST = """
name: a placeholder times out while its resource manager is lost
steps:
  - create_node: {id: n1, capacity: {vcore: 2}}
  - add_app: {id: gang, queue: root.default, placeholder_ask: {vcore: 4}, timeout: 30s}
  - ask: {app: gang, key: ph, resource: {vcore: 2}, task_group: t, placeholder: true}
  - lose_rm: rm-1
  - advance: 40s
"""


def test_nobody_confirms_while_their_manager_is_lost() -> None:
    case = case_of(parse_scenario(LOST, "lost.yaml"), "0" * 12)
    assert play(case, case.tape(), oracles()).violation is None


def _case() -> Case:
    return case_of(parse_scenario(RUNNING, "running.yaml"), "0" * 12)


def _changed(oracle: type, change: Callable[[World], object], moment: str) -> Outcome:
    """Change the truth behind everybody's back right before an oracle looks."""

    def look(self: object, world: World) -> None:
        change(world)
        getattr(oracle, moment)(self, world)

    case = _case()
    judging = type("Judging", (oracle,), {moment: look})()
    return play(case, case.tape(), (judging,))


def _state(world: World):  # noqa: ANN202 - the truth of the one partition
    (partition,) = world.context.partitions.values()
    return partition.state


def _app(world: World):  # noqa: ANN202 - the one application
    return _state(world).applications["app"]


def _only(world: World):  # noqa: ANN202 - its one allocation
    (allocation,) = _app(world).allocations.values()
    return allocation


CHANGES: list[tuple[type, str, Callable[[World], object], str]] = [
    (Rest, "at_rest", lambda w: setattr(_only(w), "releasing", 1), "G29: runs of app is still to"),
    (Rest, "at_rest", lambda w: _state(w).nodes["n1"].available.update(vcore=2), "G30: waits of"),
    (
        Rest,
        "at_rest",
        lambda w: (_app(w).asks.clear(), _app(w).allocations.clear()),
        "G29: app is Running, and has nothing",
    ),
    (Zero, "drained", lambda w: _state(w).users.update(bob={}), "G29: users are left"),
    (Zero, "drained", lambda w: _state(w).root.pending.update(vcore=1), "root has something pend"),
    (Zero, "drained", lambda w: _state(w).nodes["n1"].allocated.update(vcore=1), "n1 is in use"),
]


@pytest.mark.parametrize(("oracle", "moment", "change", "words"), CHANGES)
def test_an_oracle_speaks_up(
    oracle: type, moment: str, change: Callable[[World], object], words: str
) -> None:
    violation = _changed(oracle, change, moment).violation
    assert violation is not None
    assert words in violation.text


def test_they_have_nothing_to_say_of_a_sound_run() -> None:
    case = _case()
    assert play(case, case.tape(), oracles()).ok


def test_a_withdrawal_that_is_ignored_shows() -> None:
    text = RUNNING + "  - release_ask: {app: app, key: runs}\n"
    case = case_of(parse_scenario(text, "withdrawn.yaml"), "0" * 12)
    assert play(case, case.tape(), oracles()).ok
    with BY_ID["M14"].applied():
        violation = play(case, case.tape(), oracles()).violation
    assert violation is not None
    assert "G16: rm-1 has withdrawn runs of app, and it is there" in violation.text


def test_what_is_ended_without_a_uuid_is_in_nobodys_books() -> None:
    """The core ends it whoever has heard of it, and does not say so to an unasked confirmation."""
    text = RUNNING + "  - confirm: {app: app, key: runs, type: PLACEHOLDER_REPLACED}\n"
    case = case_of(parse_scenario(text, "confirmed.yaml"), "0" * 12)
    assert play(case, case.tape(), oracles()).violation is None


class Corrupting(Oracle):
    """Changes the truth behind everybody's back when the case is over."""

    def __init__(self, change: Callable[[World], object]) -> None:
        self._change = change

    def at_rest(self, world: World) -> None:
        self._change(world)


BEHIND: list[tuple[Callable[[World], object], str]] = [
    (
        lambda w: _state(w).owners.clear(),
        "G16: for rm-1 scenario-1 (runs of app) runs on n1, and the core does not have it",
    ),
    (lambda w: setattr(_only(w), "node_id", "n2"), "not as it is: node_id is 'n1', expected 'n2'"),
    (lambda w: _app(w).asks.pop("waits"), "rm-1 has asked for waits of app, which neither waits"),
    (
        lambda w: (_state(w).owners.clear(), _state(w).applications.clear()),
        "G21: for rm-1 application app is Running, and the",
    ),
    (lambda w: _state(w).nodes.pop("n2"), "rm-1 was notified of node n2, and the core does not"),
    (lambda w: _state(w).nodes.update(n3=_state(w).nodes["n2"]), "G25: the core has node n3, and"),
    (lambda w: w.context.partitions.clear(), "G28: rm-1 is registered, and has no partition"),
]


@pytest.mark.parametrize(("change", "words"), BEHIND)
def test_at_the_end_all_is_compared(change: Callable[[World], object], words: str) -> None:
    case = _case()
    (records,) = (it for it in oracles() if isinstance(it, Records))
    checkers = (records._checker, Corrupting(change), records)
    violation = play(case, case.tape(), checkers).violation
    assert violation is not None
    assert words in violation.text


TWICE = """
tape 2 of 019-placeholder-resized.yaml sha256 691b6975c08f on proposing, steps 0-2 5 7
bounce application gang after FactsAppended(AskAdded real-a) from context to scheduler
repeat step 5 after RMReleaseAllocation(released ph-a PLACEHOLDER_REPLACED) from context to rm_proxy
"""


def test_what_was_ended_before_it_was_heard_of_again_is_not_believed_to_run() -> None:
    """A placeholder is reported once more, and the answer crosses the confirmation of its end."""
    file = SCENARIOS / "gang-disturbances" / "019-placeholder-resized.yaml"
    outcome = play(read_case(file), parse_tape(TWICE), oracles())
    assert outcome.violation is None
    heard = [
        new.uuid
        for delivery in outcome.deliveries
        if isinstance(delivery.message, CallUpdateAllocation)
        for new in delivery.message.response.new
    ]
    assert 2 == heard.count("ph-a-recovered")


CLOSED_BETWEEN = """
name: an application is removed and submitted again, to a queue that is closed by then
steps:
- add_app: {id: app, queue: root.default}
- config: {partitions: [{name: default, queues: [{name: root, queues: [{name: default}]}]}]}
- remove_app: app
- add_app: {id: app, queue: root.default}
"""


def test_an_application_that_was_removed_is_gone_when_it_is_rejected() -> None:
    case = parse_case(CLOSED_BETWEEN, "closed.yaml")
    outcome = play(case, case.tape(), oracles())
    assert outcome.ok, outcome.violation
    messages = (it.message for it in outcome.deliveries)
    answers = [it.response for it in messages if isinstance(it, CallUpdateApplication)]
    assert [True, False] == [bool(it.accepted) for it in answers if it.accepted or it.rejected]


REMOVED_ELSEWHERE = """
name: an application is removed from a partition that it is not in
steps:
- add_app: {id: app, queue: root.default}
- remove_app: {id: app, partition: ghost}
"""


def test_what_is_removed_from_another_partition_stays() -> None:
    case = parse_case(REMOVED_ELSEWHERE, "elsewhere.yaml")
    outcome = play(case, case.tape(), oracles())
    assert outcome.ok, outcome.violation
