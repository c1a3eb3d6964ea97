"""Gangs in the order of their queue: what a plan has decided already counts in it."""

import pytest
from written import APP, LEAF, Written

from yunikorn_actors.checks.model_audit import audit
from yunikorn_actors.config import LimitConfig
from yunikorn_actors.state.proposals import AdmitGang, Allocate, Proposal

OLD, YOUNG = APP, "app-2"


def keys(proposals: list[Proposal]) -> list[str]:
    """Name what is decided, in order."""
    return [it.key if isinstance(it, Allocate) else type(it).__name__ for it in proposals]


def plan(written: Written, limit: int = 100) -> list[Proposal]:
    proposals = written.planner.plan(limit, written.now_ns)
    assert [] == audit(written.planner)
    return proposals


def ask_placeholder(written: Written, key: str, app: str = APP, **parts: object) -> None:
    written.ask(key, app, **{"vcore": 4, "placeholder": True, "task_group": "g", **parts})


# -- the real asks of an older gang


@pytest.fixture
def written() -> Written:
    """One placeholder of the older gang stands; the second, and its driver, wait."""
    written = Written()
    written.node("n1", vcore=4)
    written.add(OLD, YOUNG, placeholder_ask={"vcore": 8})
    written.admit(OLD)
    written.admit(YOUNG)
    ask_placeholder(written, "ph", repeats=2)
    written.allocate("ph", "n1")
    written.ask("driver", vcore=4)
    ask_placeholder(written, "yph", YOUNG, repeats=2)
    return written


def test_with_its_last_placeholder_a_real_ask_is_tried_at_its_own_turn(written: Written) -> None:
    written.node("n2", vcore=8)
    assert ["ph", "driver"] == keys(plan(written))


def test_when_the_placeholder_is_refused_the_real_ask_waits_again(written: Written) -> None:
    """Nothing is left of the decision: all is decided again, as before."""
    written.node("n2", vcore=8)
    placeholder, driver = plan(written)
    written.planner.reject(placeholder.proposal_id)
    assert [] == audit(written.planner)
    written.planner.reject(driver.proposal_id)
    assert [] == audit(written.planner)
    assert ["ph", "driver"] == keys(plan(written))


def test_a_real_ask_waits_for_the_other_placeholder(written: Written) -> None:
    ask_placeholder(written, "ph-3", vcore=40)
    written.node("n2", vcore=8)
    assert ["ph", "yph"] == keys(plan(written))


def test_a_placeholder_on_its_way_becomes_a_real_ask(written: Written) -> None:
    """It is no placeholder that is on its way any more, and the other one still waits."""
    ask_placeholder(written, "ph-3", vcore=40)
    written.node("n2", vcore=8)
    (first, _) = plan(written)
    written.replace("ph", vcore=4, repeats=2)
    assert [] == audit(written.planner)
    written.planner.reject(first.proposal_id)
    assert [] == audit(written.planner)


# -- what waits, in the tie of fair queues


def test_between_equal_queues_the_real_asks_of_a_gang_count_as_pending() -> None:
    written = Written("root.a", "root.b")
    written.add(OLD, queue="root.a")
    written.add(YOUNG, queue="root.b")
    ask_placeholder(written, "small", OLD, repeats=2, vcore=2)
    ask_placeholder(written, "large", YOUNG, vcore=3)
    written.ask("real", YOUNG, vcore=3)
    written.node("n1", vcore=3)
    assert ["large"] == keys(plan(written))


def test_a_member_counts_as_pending_until_its_swap_is_decided() -> None:
    written = Written()
    written.node("n1", vcore=3)
    written.add(OLD)
    ask_placeholder(written, "ph", vcore=3)
    written.allocate("ph", "n1")
    written.ask("real", vcore=3, task_group="g")
    leaf = written.planner.model.tree.queues[LEAF]
    assert 3 == leaf.waiting
    (swap,) = plan(written)
    assert 0 == leaf.waiting
    written.planner.reject(swap.proposal_id)
    assert 3 == leaf.waiting


# -- admission at the turn of the gang


def test_a_gang_is_not_admitted_into_room_that_an_older_ask_takes() -> None:
    written = Written()
    written.reconfigure(LEAF, max={"vcore": 6})
    written.add(OLD)
    written.add(YOUNG, placeholder_ask={"vcore": 4})
    written.ask("r", vcore=3)
    ask_placeholder(written, "ph", YOUNG, vcore=2, repeats=2)
    written.node("n1", vcore=100)
    assert ["r"] == keys(plan(written))


def test_a_gang_is_admitted_before_a_younger_ask_takes_its_room() -> None:
    """Admission and its first placeholder follow each other, and the turn goes on from there."""
    written = Written()
    written.reconfigure(LEAF, max={"vcore": 6})
    written.add(OLD, placeholder_ask={"vcore": 4})
    written.add(YOUNG)
    ask_placeholder(written, "ph", vcore=2, repeats=2)
    written.ask("r", YOUNG, vcore=3)
    written.node("n1", vcore=100)
    assert ["AdmitGang", "ph", "ph"] == keys(plan(written))


def test_admission_and_all_placeholders_stand_in_one_plan() -> None:
    """Also where the plan may not hold so much otherwise."""
    written = Written()
    written.reconfigure(LEAF, max={"vcore": 6})
    written.add(OLD, placeholder_ask={"vcore": 4})
    ask_placeholder(written, "ph", vcore=2, repeats=2)
    written.node("n1", vcore=100)
    assert ["AdmitGang", "ph", "ph"] == keys(plan(written, limit=1))


def test_a_gang_has_its_turn_where_others_of_its_size_found_no_node() -> None:
    """It is admitted before a younger one, which would take the room of the quota."""
    written = Written()
    written.reconfigure(LEAF, max={"vcore": 6})
    written.add(OLD, "plain", YOUNG, placeholder_ask={"vcore": 6})
    written.node("n1", vcore=2)
    written.ask("p", "plain", vcore=3)
    assert [] == keys(plan(written))
    ask_placeholder(written, "ph", vcore=3, repeats=2)
    ask_placeholder(written, "yph", YOUNG, vcore=2, repeats=3)
    assert ["AdmitGang"] == keys(plan(written))
    assert [OLD] == [app.app.id for app in written.planner.model.flights.admissions.values()]


def test_two_gangs_of_one_plan_do_not_get_the_same_room() -> None:
    """What the first has placed in the plan is not counted twice: the third fits beside it."""
    written = Written()
    written.reconfigure(LEAF, max={"vcore": 9})
    written.add(OLD, YOUNG, placeholder_ask={"vcore": 6})
    written.add("small", placeholder_ask={"vcore": 3})
    ask_placeholder(written, "ph", vcore=3, repeats=2)
    ask_placeholder(written, "yph", YOUNG, vcore=3, repeats=2)
    ask_placeholder(written, "sph", "small", vcore=3)
    written.node("n1", vcore=100)
    assert ["AdmitGang", "ph", "ph", "AdmitGang", "sph"] == keys(plan(written))


def test_a_refused_admission_is_decided_anew() -> None:
    written = Written()
    written.add(OLD, placeholder_ask={"vcore": 4})
    ask_placeholder(written, "ph", vcore=2, repeats=2)
    written.node("n1", vcore=100)
    for proposal in plan(written):
        written.planner.reject(proposal.proposal_id)
        assert [] == audit(written.planner)
    assert ["AdmitGang", "ph", "ph"] == keys(plan(written))


def test_a_gang_that_does_not_fit_bars_nobody() -> None:
    written = Written()
    written.reconfigure(LEAF, max={"vcore": 3})
    written.add(OLD, placeholder_ask={"vcore": 4})
    written.add(YOUNG)
    ask_placeholder(written, "ph", vcore=2, repeats=2)
    written.ask("r", YOUNG, vcore=2)
    written.node("n1", vcore=100)
    assert ["r"] == keys(plan(written))


def test_of_several_placeholders_the_first_in_order_is_tried_first() -> None:
    written = Written()
    written.add(OLD, placeholder_ask={"vcore": 6})
    ask_placeholder(written, "ph", vcore=2)
    ask_placeholder(written, "urgent", vcore=4, priority=3)
    written.node("n1", vcore=100)
    assert ["AdmitGang", "urgent", "ph"] == keys(plan(written))


# -- limits of users and groups


def limit(vcore: int, **names: tuple[str, ...]) -> LimitConfig:
    return LimitConfig(max_resources={"vcore": vcore}, **names)


def of_bob(limits: tuple[LimitConfig, ...], path: str = LEAF) -> Written:
    """Bob has a gang of 4 in the leaf, and runs 2 elsewhere below the same parent."""
    written = Written(LEAF, "root.other")
    written.reconfigure(path, limits=limits)
    written.node("n1", vcore=100)
    written.add("runs", queue="root.other")
    written.ask("x", "runs", vcore=2)
    written.allocate("x", "n1", "runs")
    written.add(OLD, placeholder_ask={"vcore": 4})
    ask_placeholder(written, "ph", vcore=2, repeats=2)
    return written


LIMITS = [
    ((), LEAF, True),
    ((limit(4, users=("bob",)),), LEAF, True),
    ((limit(3, users=("bob",)),), LEAF, False),
    ((limit(6, users=("bob",)),), "root", True),
    ((limit(5, users=("bob",)),), "root", False),
    ((limit(5, users=("*",)),), "root", False),
    ((limit(9, users=("bob",)), limit(5, users=("*",))), "root", True),
    ((limit(5, users=("sue",)),), "root", True),
]


@pytest.mark.parametrize(("limits", "path", "fits"), LIMITS)
def test_a_gang_is_admitted_if_its_user_may_have_all_of_it(
    limits: tuple[LimitConfig, ...], path: str, fits: bool
) -> None:
    found = keys(plan(of_bob(limits, path)))
    assert (["AdmitGang", "ph", "ph"] if fits else []) == found


def test_a_higher_limit_lets_the_gang_be_admitted() -> None:
    written = of_bob((limit(3, users=("bob",)),))
    assert [] == keys(plan(written))
    written.reconfigure(LEAF, limits=(limit(4, users=("bob",)),))
    assert written.planner.has_work
    assert ["AdmitGang", "ph", "ph"] == keys(plan(written))


def test_what_the_user_gives_back_lets_his_gang_be_admitted() -> None:
    written = of_bob((limit(5, users=("bob",)),), "root")
    assert [] == keys(plan(written))
    (uuid,) = written.application("runs").allocations
    written.release(uuid, "runs")
    assert written.planner.has_work
    assert ["AdmitGang", "ph", "ph"] == keys(plan(written))


def test_what_is_to_come_of_one_gang_counts_for_another_of_its_user() -> None:
    """They are in different leaves; only the limit of their user brings them together."""
    written = of_bob((limit(10, users=("bob",)),), "root")
    written.add(YOUNG, queue="root.other", placeholder_ask={"vcore": 5})
    ask_placeholder(written, "yph", YOUNG, vcore=200)
    assert ["AdmitGang", "ph", "ph"] == keys(plan(written))


def test_what_was_recovered_needs_no_more_room() -> None:
    """Bob runs 2 and the recovered placeholder; there has to be room for the other one alone."""
    written = of_bob((limit(6, users=("bob",)),), "root")
    written.recover("back", "n1", vcore=2, placeholder=True, task_group="g")
    assert ["AdmitGang", "ph"] == keys(plan(written))[:2]


# -- commitments that lapse


def lapsed(*apps: str, room: int = 6) -> Written:
    """Each of these gangs of 4 was admitted, and no node held its placeholder."""
    written = Written()
    written.reconfigure(LEAF, max={"vcore": room})
    for app in apps:
        written.add(app, placeholder_ask={"vcore": 4})
        ask_placeholder(written, f"ph-{app}", app)
    for app in apps:
        written.admit(app)
        written.lapse(app)
    return written


def admitted(written: Written) -> list[str]:
    return [it.application_id for it in plan(written) if isinstance(it, AdmitGang)]


def test_a_gang_that_nobody_competes_with_is_admitted_again_at_once() -> None:
    assert [OLD] == admitted(lapsed(OLD))


def test_another_gang_that_fits_goes_before_one_that_has_lapsed() -> None:
    written = lapsed(OLD)
    written.add(YOUNG, placeholder_ask={"vcore": 4})
    ask_placeholder(written, "yph", YOUNG)
    assert [YOUNG] == admitted(written)


def test_one_that_does_not_fit_is_not_waited_for() -> None:
    written = lapsed(OLD)
    written.add(YOUNG, placeholder_ask={"vcore": 7})
    ask_placeholder(written, "yph", YOUNG)
    assert [OLD] == admitted(written)


def test_one_that_may_not_run_is_not_waited_for() -> None:
    written = lapsed(OLD)
    written.queue("root.full", max_applications=1)
    written.node("n1", vcore=1)
    written.add("runs", queue="root.full")
    written.ask("r", "runs", vcore=1)
    written.allocate("r", "n1", "runs")
    written.add(YOUNG, queue="root.full", placeholder_ask={"vcore": 4})
    ask_placeholder(written, "yph", YOUNG)
    assert [OLD] == admitted(written)


def test_one_that_may_start_only_now_goes_before_one_that_has_lapsed() -> None:
    """Its leaf starts one application at a time; the one before it ends as the gang lapses."""
    written = lapsed(OLD)
    written.admit(OLD)
    written.queue("root.next", properties={"application.sort.policy": "stateaware"})
    written.add("first", YOUNG, queue="root.next", placeholder_ask={"vcore": 4})
    written.admit("first")
    ask_placeholder(written, "fph", "first")
    ask_placeholder(written, "yph", YOUNG)
    assert [] == admitted(written)
    written.remove("first")
    written.lapse(OLD)
    assert [YOUNG, OLD] == admitted(written)


def test_of_two_that_have_lapsed_the_first_is_admitted_first() -> None:
    written = lapsed(YOUNG, OLD)
    assert [YOUNG] == admitted(written)


def test_both_are_admitted_where_there_is_room_for_both() -> None:
    assert [YOUNG, OLD] == admitted(lapsed(YOUNG, OLD, room=8))
    written = lapsed(YOUNG, OLD, room=8)
    assert ["AdmitGang"] == keys(plan(written, limit=1))
    assert written.planner.has_work, "the other one would wait for ever"
    assert [OLD] == admitted(written)


def test_what_is_on_its_way_when_the_commitment_lapses_is_refused_and_tried_again() -> None:
    written = Written()
    written.add(OLD, placeholder_ask={"vcore": 4})
    written.admit(OLD)
    ask_placeholder(written, "ph")
    written.node("n1", vcore=4)
    (placeholder,) = plan(written)
    written.lapse(OLD)
    assert [] == plan(written)
    written.planner.reject(placeholder.proposal_id)
    assert written.planner.has_work
    assert ["AdmitGang", "ph"] == keys(plan(written))


def test_others_may_start_when_the_gang_before_them_has_lapsed() -> None:
    written = Written()
    written.reconfigure(LEAF, properties={"application.sort.policy": "stateaware"})
    written.node("n1", vcore=4)
    written.add(OLD, placeholder_ask={"vcore": 40})
    ask_placeholder(written, "ph", vcore=40)
    written.admit(OLD)
    written.add(YOUNG)
    written.ask("r", YOUNG, vcore=1)
    assert [] == plan(written)
    written.reconfigure(
        LEAF, properties={"application.sort.policy": "stateaware"}, max={"vcore": 4}
    )
    assert [] == plan(written)
    written.lapse(OLD)
    assert written.planner.has_work
    assert ["r"] == keys(plan(written))
