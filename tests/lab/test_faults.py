"""Faults happen, are written on the tape, and the core bears all of them."""

from collections import Counter
from pathlib import Path

import pytest
import ranges

from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.lab.case import Case, case_of, read_case
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import explore, play, write
from yunikorn_actors.lab.schedules.faults import FAULTS, Faulty
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.strategies import Uniform
from yunikorn_actors.lab.tapes.tape import Tape, parse_tape
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.scheduling import ProposalRejected
from yunikorn_actors.scenario.document import parse_scenario

SCENARIOS = Path(__file__).parents[1] / "scenarios"
SWAP = SCENARIOS / "gang-timeouts" / "010-all-swapped-in-time.yaml"
EVENTS = 90
"""About so many has a run."""


def faulty(seed: int, *kinds: str) -> Faulty:
    draw = Draw(seed)
    return Faulty(Uniform(draw), draw, kinds or tuple(FAULTS), EVENTS)


def disturbed(case: Case, *entries: str) -> list[Delivery]:
    tape = parse_tape("\n".join((case.tape().header(), *entries)))
    outcome = play(case, tape, default_checkers())
    assert outcome.ok, outcome.violation
    return outcome.deliveries


def requests(deliveries: list[Delivery]) -> list[str]:
    """Return what came to RmProxy from outside, up to the end of the case."""
    return [
        it.stimulus
        for it in deliveries
        if it.mailbox == "rm_proxy" and isinstance(it.message, rm.NodesRequested)
    ]


def confirmations(deliveries: list[Delivery]) -> list[str]:
    return [
        item.termination_type.name
        for it in deliveries
        if isinstance(it.message, rm.AllocationsRequested)
        and it.message.request.releases is not None
        for item in it.message.request.releases.allocations_to_release
    ]


@pytest.mark.parametrize("topology", ranges.first(TOPOLOGIES, 1))
def test_a_run_with_faults_is_a_tape_that_gives_the_same_run(topology: str) -> None:
    verbs: Counter[str] = Counter()
    frozen: Counter[str] = Counter()
    files = sorted((SCENARIOS / "gang-disturbances").glob("*.yaml"))
    for number, file in enumerate(files[::5]):
        case = read_case(file, "fused" if topology == "fused" else "proposing")
        for seed in range(5 * number, 5 * number + 5):
            outcome = explore(case, faulty(seed))
            tape = write(case, faulty(seed))
            assert outcome.digest() == play(case, parse_tape(str(tape))).digest()
            verbs.update(entry.verb for entry in tape.entries)
            frozen.update(it.what.split()[0] for it in tape.entries if it.verb == "freeze")
    # Only a Scheduler proposes, and this topology has none. A callback that is slow is frozen.
    missing = {"confirm", "slow", *(() if topology == "proposing" else ("propose",))}
    assert frozen.keys() > {"rm-1"}
    assert {*FAULTS, "hold", "do", "open", "thaw"} - missing <= verbs.keys()


def test_confirmations_go_wrong_in_every_way() -> None:
    case = read_case(SWAP)
    manners: Counter[str] = Counter()
    for seed in range(40):
        tape = write(case, faulty(seed, "confirm"))
        assert explore(case, faulty(seed, "confirm")).digest() == play(case, tape).digest()
        manners.update(
            "late" if entry.after else entry.what.split(maxsplit=1)[1].split()[0]
            for entry in tape.entries
            if entry.verb == "confirm"
        )
    assert {"late", "twice", "never", "as"} == manners.keys()


@pytest.mark.parametrize(
    ("entry", "sent"),
    [
        ("confirm ph-0 twice", ["PLACEHOLDER_REPLACED"] * 2),
        ("confirm ph-0 never", []),
        ("confirm ph-0 as TIMEOUT", ["TIMEOUT"]),
        ("confirm ph-0 after the end", ["PLACEHOLDER_REPLACED"]),
    ],
)
def test_a_confirmation_is_sent_as_the_tape_says(entry: str, sent: list[str]) -> None:
    case = read_case(SWAP)
    usual = confirmations(disturbed(case))
    assert ["PLACEHOLDER_REPLACED"] * 2 == usual, "vacuous: nothing was swapped"
    assert sorted([*sent, "PLACEHOLDER_REPLACED"]) == sorted(confirmations(disturbed(case, entry)))


def test_a_node_flaps_drains_and_shrinks() -> None:
    case = read_case(SWAP)
    usual = requests(disturbed(case))
    for entry, times in (("flap node n1", 2), ("drain node n1", 1), ("shrink node n1", 1)):
        told = requests(disturbed(case, f"{entry} after step 3"))
        assert sorted([*usual, *[entry] * times]) == sorted(told)


def test_a_machine_fails_and_is_replaced() -> None:
    case = read_case(SWAP)
    fails = "RunCycle(step 3) from scheduler to scheduler"
    for when in ("at", "after"):
        mailboxes = {it.mailbox for it in disturbed(case, f"fail {when} {fails}")}
        assert any(mailbox.endswith("#1.1") for mailbox in mailboxes), "no successor"


def test_mail_is_held_for_a_while() -> None:
    case = read_case(SWAP)
    frozen = disturbed(case, "freeze scheduler after step 2", "thaw scheduler after step 4")
    told = next(
        n
        for n, it in enumerate(frozen)
        if it.mailbox.startswith("scheduler") and "step 2" in it.stimulus
    )
    asked = next(n for n, it in enumerate(frozen) if "step 3" in it.stimulus)
    assert asked < told, "the scheduler heard of the application before the next step began"


def test_a_timer_fires_early_and_after_its_end() -> None:
    case = read_case(SCENARIOS / "applications" / "004-revived-while-completing.yaml")
    timers: Counter[str] = Counter()
    for seed in range(30):
        tape = write(case, faulty(seed, "fire"))
        timers.update(entry.what for entry in tape.entries if entry.verb == "fire")
    early = next(name for name in timers if name.startswith("ApplicationTimerDue("))
    fired = disturbed(case, f"fire {early} after step 3", f"fire {early} after step 5")
    assert any(type(it.message).__name__ == "ApplicationTimerDue" for it in fired)


WRONG = """
name: a full node, a drained one, a gang that is admitted, and work of which none may be taken back
steps:
  - create_node: {ids: [full, drained], capacity: {vcore: 2}}
  - add_app: {id: app, queue: root.default}
  - ask: {app: app, key: runs, count: 2, resource: {vcore: 2}}
  - release: {app: app, key: runs-0}
  - drain_node: drained
  - ask: {app: app, key: waits, resource: {vcore: 2}}
  - add_app: {id: gang, queue: root.default, placeholder_ask: {vcore: 9}, timeout: 60s}
  - ask: {app: gang, key: ph, resource: {vcore: 9}, task_group: g, placeholder: true}
  - advance: 1s
"""


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ("to place waits of app on full", "NODE_FULL"),
        ("to place waits of app on drained", "NODE_DRAINING"),
        ("to admit gang", "GANG_HELD"),
        ("to reserve full for waits of app", "RESERVATION_LIMIT"),
        ("to preempt runs-1 of app for waits of app", "PREEMPTION_REFUSED"),
    ],
)
def test_a_scheduler_proposes_wrongly_and_is_refused(wish: str, reason: str) -> None:
    case = case_of(parse_scenario(WRONG, "wrong.yaml"), "0" * 12)
    told = disturbed(case, f"propose {wish} after step 9")
    refused = [it.message.reason for it in told if isinstance(it.message, ProposalRejected)]
    assert [reason] == refused


def test_a_proposal_of_what_nobody_knows_does_nothing() -> None:
    case = case_of(parse_scenario(WRONG, "wrong.yaml"), "0" * 12)
    usual = disturbed(case)
    for wish in ("to place it of app on full", "to admit nobody"):
        assert usual == disturbed(case, f"propose {wish} after step 9")


def test_a_check_that_is_missing_at_the_commit_shows() -> None:
    case = case_of(parse_scenario(WRONG, "wrong.yaml"), "0" * 12)
    entry = "propose to place waits of app on drained after step 9"
    tape = parse_tape("\n".join((case.tape().header(), entry)))
    with BY_ID["M62"].applied():
        assert play(case, case.tape(), default_checkers()).ok
        violation = play(case, tape, default_checkers()).violation
    assert violation is not None
    assert "G22: node drained takes no work" in violation.text


RECOVERED = """
name: a member takes over a placeholder that was reported with its node
steps:
  - add_app: {id: g, queue: root.default, placeholder_ask: {vcore: 1}}
  - create_node: {id: n1, capacity: {vcore: 1}, allocations: [{key: p, app: g, resource: {vcore: 1}, task_group: t, placeholder: true}]}
  - ask: {app: g, key: r, resource: {vcore: 1}, task_group: t}
"""


def test_of_two_registrations_at_once_the_later_one_counts() -> None:
    """The first is answered last, and its resource manager must not take the other's place."""
    case = case_of(parse_scenario(RECOVERED, "recovered.yaml"), "0" * 12)
    entry = "register rm-1 again after RMRegistered(step 0) from context to rm_proxy"
    tape = parse_tape("\n".join((case.tape().header(), entry)))
    assert play(case, tape, oracles()).violation is None


def test_tapes_of_all_faults_keep_their_header() -> None:
    tape = write(read_case(SWAP), faulty(1))
    assert isinstance(tape, Tape)
    assert tape == parse_tape(tape.line())
