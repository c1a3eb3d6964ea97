"""A gang that claims room has all of its victims, or none, whatever became true meanwhile."""

from collections.abc import Callable

import pytest
import ranges
from committing import Driver
from written import Written

from yunikorn_actors.config import parse_config
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.proposals import Preempt, Refusal

RICH, POOR = "root.rich", "root.poor"
DELAY_NS = 1_000_000_000
SECOND_NS = 1_000_000_000


def contest(size: int = 4) -> Written:
    """Single work fills two nodes, and a gang is guaranteed as much as it asks for."""
    made = Written(RICH, POOR)
    text = "partitions: [{name: default, queues: [{name: root}]}]"
    made.record(f.PartitionConfigured(config=parse_config(text).partitions[0]))
    made.reconfigure(POOR, guaranteed={"vcore": size})
    made.node("n1", vcore=size)
    made.node("n2", vcore=size)
    made.add("plain", queue=RICH)
    for number in range(2 * size):
        made.recover(f"p-{number}", f"n{number % 2 + 1}", "plain", vcore=1)
    made.add("gang", queue=POOR, placeholder_ask={"vcore": size}, gang_style="Hard")
    made.ask(
        "hold", "gang", vcore=1, repeats=size, placeholder=True, task_group="g",
        allow_preempt_other=True,
    )  # fmt: skip
    made.admit("gang")
    return made


def driver_of(made: Written) -> Driver:
    settings = Settings(preemption_delay_ns=DELAY_NS)
    return Driver(made, later_ns=3 * DELAY_NS, settings=settings)


def claims(made: Written) -> list[Preempt]:
    made.planner.preemptor.agenda._delay_ns = DELAY_NS
    found = made.planner.plan(1_000, made.now_ns + 2 * DELAY_NS)
    return [it for it in found if isinstance(it, Preempt)]


def uuid_of_victim(proposals: list[Preempt]) -> str:
    return proposals[-1].victims[0].uuid


def release_a_victim(made: Written, proposals: list[Preempt]) -> None:
    made.release(uuid_of_victim(proposals), "plain")


def ask_a_victim_back(made: Written, proposals: list[Preempt]) -> None:
    made.ask_back(uuid_of_victim(proposals), "plain")


def drain_a_node(made: Written, proposals: list[Preempt]) -> None:
    made.schedule(proposals[-1].node_id, drained=True)


def lower_the_guarantee(made: Written, proposals: list[Preempt]) -> None:
    made.reconfigure(POOR, guaranteed={"vcore": len(proposals) - 1})


def give_the_others_a_guarantee(made: Written, proposals: list[Preempt]) -> None:
    made.reconfigure(RICH, guaranteed={"vcore": len(proposals) + 1})


def give_the_others_a_budget(made: Written, proposals: list[Preempt]) -> None:
    made.reconfigure(RICH, properties={"preemption.budget": f"{len(proposals) - 1}/10m"})


def test_the_claim_of_a_gang_is_one() -> None:
    made = contest()
    proposals = claims(made)
    assert 4 == len(proposals)
    assert {proposals[0].proposal_id} == {it.gang for it in proposals}
    facts, refused = driver_of(made).commit_all(list(proposals))
    assert [] == refused
    assert 4 == sum(isinstance(fact, f.VictimMarked) for fact in facts)
    assert 4 == sum(
        kept.repeats for it in made.state.nodes.values() for kept in it.reservations.values()
    )


@pytest.mark.parametrize(
    ("meanwhile", "reason"),
    [
        (release_a_victim, Refusal.VICTIM_GONE),
        (ask_a_victim_back, Refusal.VICTIM_GONE),
        (drain_a_node, Refusal.NODE_DRAINING),
        (lower_the_guarantee, Refusal.PREEMPTION_REFUSED),
        (give_the_others_a_guarantee, Refusal.PREEMPTION_REFUSED),
        (give_the_others_a_budget, Refusal.PREEMPTION_REFUSED),
    ],
)
def test_what_is_refused_for_one_is_refused_for_all(
    meanwhile: Callable[[Written, list[Preempt]], None], reason: Refusal
) -> None:
    made = contest()
    proposals = claims(made)
    meanwhile(made, proposals)
    facts, refused = driver_of(made).commit_all(list(proposals))
    assert [(it.proposal_id, reason) for it in proposals] == refused
    assert not any(isinstance(fact, f.PreemptionDecided | f.VictimMarked) for fact in facts)


def test_a_gang_is_handed_out_whole_beyond_the_bound_of_a_plan() -> None:
    made = contest(6)
    made.planner.preemptor.agenda._delay_ns = DELAY_NS
    found = made.planner.plan(4, made.now_ns + 2 * DELAY_NS)
    assert 6 == len(found)
    assert 1 == len({it.gang for it in found if isinstance(it, Preempt)})
    assert [] == driver_of(made).commit_all(found)[1]


@ranges.seeds(20, usual=3)
def test_nothing_is_refused_that_was_found_on_the_same_facts(seeds: range) -> None:
    for seed in seeds:
        made = contest(seed % 5 + 2)
        assert [] == driver_of(made).commit_all(list(claims(made)))[1]


def test_after_the_first_refusal_nothing_is_claimed_for_a_part() -> None:
    """What was decided together is refused one after the other, and a plan may come between."""
    made = contest()
    first, *others = claims(made)
    made.planner.reject(first.proposal_id)
    assert [] == claims(made), "three of four are on their way still"
    for proposal in others:
        made.planner.reject(proposal.proposal_id)
    again = claims(made)
    assert [again[0].proposal_id] * 4 == [it.gang for it in again]


def test_nothing_is_claimed_for_the_others_while_one_is_to_have_a_node_kept() -> None:
    made = contest()
    made.replace(
        "hold", "gang", vcore=1, repeats=3, placeholder=True, task_group="g",
        allow_preempt_other=True,
    )  # fmt: skip
    made.ask("last", "gang", vcore=1, placeholder=True, task_group="g", allow_preempt_other=True)
    app = made.planner.model.app_of("gang")
    kept = made.planner.reserver._reserve(app.asks["last"], made.planner.model.nodes.views["n1"])
    assert [] == claims(made), "for three of four"
    made.planner.reject(kept.proposal_id)
    assert 4 == len(claims(made))


def test_nothing_goes_where_the_room_of_those_that_only_wait_is_used_meanwhile() -> None:
    """Three of four have free room, and one has a victim: it stays if another takes that room."""
    made = contest()
    for uuid in list(made.application("plain").allocations)[:6:2]:
        made.release(uuid, "plain")
    proposals = claims(made)
    assert [1] == [len(it.victims) for it in proposals], "the others have only to wait"
    (claim,) = proposals
    made.add("other", queue=RICH)
    made.recover("takes", "n1", "other", vcore=2)
    facts, refused = driver_of(made).commit_all([claim])
    assert [(claim.proposal_id, Refusal.NODE_FULL)] == refused
    assert not any(isinstance(fact, f.VictimMarked) for fact in facts)


def test_a_gang_claims_when_its_newest_placeholder_has_waited() -> None:
    """Context refuses an ask that has not waited; what it refuses twice is left alone."""
    made = contest()
    made.replace(
        "hold", "gang", vcore=1, repeats=3, placeholder=True, task_group="g",
        allow_preempt_other=True,
    )  # fmt: skip
    made.ask(
        "late", "gang", vcore=1, placeholder=True, task_group="g", allow_preempt_other=True,
        created_ns=made.now_ns + DELAY_NS,
    )  # fmt: skip
    made.planner.preemptor.agenda._delay_ns = DELAY_NS
    assert [] == made.planner.plan(1_000, made.now_ns + DELAY_NS)
    assert made.planner.preemptor.due_ns <= made.now_ns + 2 * DELAY_NS
    assert 4 == len(claims(made))


def bound(repeats: int = 1, missing: int = 0) -> Written:
    """Single work fills two nodes, and each placeholder of a gang can run on one of them alone."""
    made = Written(RICH, POOR)
    made.node("n1", vcore=repeats)
    made.node("n2", vcore=repeats)
    made.add("plain", queue=RICH)
    for number in range(2 * repeats):
        made.recover(f"p-{number}", f"n{number % 2 + 1}", "plain", vcore=1)
    made.add("gang", queue=POOR, placeholder_ask={"vcore": 2 * repeats + missing})
    for name in ("n1", "n2"):
        made.ask(
            f"on-{name}", "gang", vcore=1, repeats=repeats, placeholder=True, task_group="g",
            allow_preempt_other=True, required_node=name,
        )  # fmt: skip
    made.admit("gang")
    for name in ("n1", "n2"):
        made.reserve(f"on-{name}", name, "gang")
    return made


def use_a_node(made: Written, proposals: list[Preempt]) -> None:
    made.add("other", queue=RICH)
    made.release(uuid_of_victim(proposals), "plain")
    made.recover("takes", proposals[-1].node_id, "other", vcore=1, priority=9)


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_claim_of_placeholders_with_one_node_each_is_one(repeats: int) -> None:
    made = bound(repeats)
    proposals = claims(made)
    assert [repeats, repeats] == [len(it.victims) for it in proposals]
    assert {proposals[0].proposal_id} == {it.gang for it in proposals}
    facts, refused = driver_of(made).commit_all(list(proposals))
    assert [] == refused
    assert 2 * repeats == sum(isinstance(fact, f.VictimMarked) for fact in facts)


@pytest.mark.parametrize(
    ("meanwhile", "claimed"),
    [(release_a_victim, [1]), (ask_a_victim_back, [1]), (use_a_node, [0])],
)
def test_what_is_refused_on_one_node_is_refused_on_all(
    meanwhile: Callable[[Written, list[Preempt]], None], claimed: list[int]
) -> None:
    made = bound()
    proposals = claims(made)
    assert 2 == len(proposals)
    meanwhile(made, proposals)
    facts, refused = driver_of(made).commit_all(list(proposals))
    assert [(it.proposal_id, Refusal.VICTIM_GONE) for it in proposals] == refused
    assert not any(isinstance(fact, f.PreemptionDecided | f.VictimMarked) for fact in facts)
    for proposal in proposals:
        made.planner.reject(proposal.proposal_id)
    # One without victims says that there nobody may go.
    assert claimed == [len(it.victims) for it in claims(made)]


def test_nothing_goes_on_one_node_where_the_room_of_another_is_used_meanwhile() -> None:
    made = bound()
    (uuid, *_) = made.application("plain").allocations
    made.release(uuid, "plain")
    (claim,) = claims(made)
    assert "n2" == claim.node_id
    made.add("other", queue=RICH)
    made.recover("takes", "n1", "other", vcore=1, priority=9)
    facts, refused = driver_of(made).commit_all([claim])
    assert [(claim.proposal_id, Refusal.NODE_FULL)] == refused
    assert not any(isinstance(fact, f.VictimMarked) for fact in facts)


def test_nothing_goes_on_one_node_where_another_has_no_room() -> None:
    made = bound()
    uuid = next(reversed(made.application("plain").allocations))
    made.release(uuid, "plain")
    made.add("other", queue=RICH)
    made.recover("stays", "n2", "other", vcore=1, priority=9)
    # It says that nobody may go.
    assert [("n2", ())] == [(it.node_id, it.victims) for it in claims(made)]


def test_nothing_goes_before_all_placeholders_are_asked_for() -> None:
    claimed, larger = claims(bound()), bound(missing=1)
    facts, refused = driver_of(larger).commit_all(list(claimed))
    assert [(it.proposal_id, Refusal.PREEMPTION_REFUSED) for it in claimed] == refused
    assert not any(isinstance(fact, f.VictimMarked) for fact in facts)
    assert [] == claims(larger)
