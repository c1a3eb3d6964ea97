"""The checks of who is to go: each reason to refuse, alone, and nothing else to be said."""

from collections.abc import Callable

import pytest
from committing import Driver
from msgspec.structs import replace
from written import Written

from yunikorn_actors.config import LimitConfig, parse_config
from yunikorn_actors.machines.context.preemption import check_preempt
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Ask, Beneficiary, PreemptionRule
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.proposals import Preempt, Refusal, VictimRef
from yunikorn_actors.values.durations import SECOND

RICH, POOR = "root.rich", "root.poor"
TAKER = "taker"
DELAY_NS = 30 * SECOND
STATEAWARE = {"application.sort.policy": "stateaware"}
Change = Callable[[Written], object]


@pytest.fixture
def written() -> Written:
    """`rich` fills n1 but for 1, and `poor`, which is guaranteed 4, wants 2 there."""
    written = Written(RICH, POOR)
    configure(written)
    guarantee(written, POOR, 4)
    written.node("n1", vcore=4)
    written.add("giver", queue=RICH)
    for key in ("v1", "v2", "v3"):
        written.ask(key, "giver", vcore=1)
        written.allocate(key, "n1", "giver")
    written.add(TAKER, queue=POOR)
    written.ask("p", TAKER, vcore=2, allow_preempt_other=True)
    return written


def want_the_node(written: Written) -> None:
    written.ask("d", TAKER, vcore=2, allow_preempt_other=True, required_node="n1")
    written.reserve("d", "n1", TAKER)


def configure(written: Written, switches: str = "") -> None:
    text = f"partitions: [{{name: default, preemption: {{{switches}}}, queues: [{{name: root}}]}}]"
    written.record(f.PartitionConfigured(config=parse_config(text).partitions[0]))


def guarantee(written: Written, path: str, vcore: int) -> None:
    written.reconfigure(path, guaranteed={"vcore": vcore})


def proposal_for(written: Written, key: str) -> Preempt:
    required = PreemptionRule.REQUIRED_NODE
    rule = required if key == "d" else PreemptionRule.GUARANTEE
    app = written.application(TAKER)
    return Preempt(
        proposal_id=1,
        beneficiary=Beneficiary(rule=rule, queue=POOR, application_id=TAKER, key=key),
        victims=(VictimRef(application_id="giver", uuid=uuid_of(written, "v3")),),
        sequence=app.asks[key].sequence,
        node_id="n1",
    )


def uuid_of(written: Written, key: str, giver: str = "giver") -> str:
    (uuid,) = written.application(giver).asks[key].uuids
    return uuid


def checked(written: Written, proposal: Preempt) -> Refusal | None:
    now_ns = written.now_ns + 2 * DELAY_NS
    return check_preempt(written.state, proposal, now_ns, Settings(preemption_delay_ns=DELAY_NS))


def _fail(written: Written) -> None:
    written.ask_back(written.recover("r", "n1", TAKER, vcore=0), TAKER)
    written.move(TAKER, ApplicationState.FAILING)


def _give_up(written: Written) -> None:
    written.record(
        f.ReservationDropped(
            application_id=TAKER,
            key="d",
            node_id="n1",
            reason="",
            resource={"vcore": 2},
            at_ns=written.now_ns,
        )
    )


def _wait_for_placeholders(written: Written) -> None:
    if "d" in written.application(TAKER).asks:
        _give_up(written)
    written.ask("ph", TAKER, vcore=1, placeholder=True, task_group="g")


def _run_another(written: Written) -> None:
    written.reconfigure(POOR, guaranteed={"vcore": 4}, max_applications=1)
    written.add("other", queue=POOR)
    written.move("other", ApplicationState.RUNNING)


def _start_another(written: Written) -> None:
    written.reconfigure(POOR, guaranteed={"vcore": 4}, properties=STATEAWARE)
    written.add("other", queue=POOR)
    written.move("other", ApplicationState.STARTING)


def _limit_user(written: Written) -> None:
    limit = LimitConfig(users=("bob",), max_resources={"vcore": 1})
    written.reconfigure(POOR, guaranteed={"vcore": 4}, limits=(limit,))


def _limit_applications_of_user(written: Written) -> None:
    limit = LimitConfig(users=("bob",), max_applications=1)
    written.reconfigure(POOR, guaranteed={"vcore": 4}, limits=(limit,))
    written.add("other", queue=POOR)
    written.ask("o", "other", vcore=0)
    written.allocate("o", "n1", "other")


def _forbid(written: Written) -> None:
    for key, ask in written.application(TAKER).asks.items():
        node_id = ask.spec.required_node
        written.replace(key, TAKER, vcore=2, allow_preempt_other=False, required_node=node_id)


def _ask_again(written: Written) -> None:
    """Under the same key, and the same is true of it but for who it is."""
    requires = "d" in written.application(TAKER).asks
    if requires:
        _give_up(written)
        written.withdraw("d", TAKER)
        want_the_node(written)
    else:
        written.withdraw("p", TAKER)
        written.ask("p", TAKER, vcore=2, allow_preempt_other=True)


def _remove_taker(written: Written) -> None:
    if "d" in written.application(TAKER).asks:
        _give_up(written)
    written.remove(TAKER)


def _place(written: Written) -> None:
    _give_up(written)
    written.resize_node("n1", vcore=6)
    written.allocate("d", "n1", TAKER)


def _keep_for_a_daemon(written: Written) -> None:
    written.ask("d2", "giver", vcore=1, required_node="n1")
    written.reserve("d2", "n1", "giver")


FOR_AN_ASK: list[tuple[str, Refusal, Change]] = [
    ("victim gone", Refusal.VICTIM_GONE, lambda w: w.release(uuid_of(w, "v3"), "giver")),
    ("victim asked back", Refusal.VICTIM_GONE, lambda w: w.ask_back(uuid_of(w, "v3"), "giver")),
    ("its application removed", Refusal.VICTIM_GONE, lambda w: w.remove("giver")),
    ("application removed", Refusal.ASK_GONE, _remove_taker),
    ("asked again under its key", Refusal.ASK_GONE, _ask_again),
    ("failing", Refusal.APP_STATE, _fail),
    ("its gang is pending", Refusal.GANG_HELD, _wait_for_placeholders),
    ("limit of the leaf", Refusal.APP_LIMIT, _run_another),
    ("applications of the user", Refusal.APP_LIMIT, _limit_applications_of_user),
    ("another one starts", Refusal.STATEAWARE_BUSY, _start_another),
    ("limit of the user", Refusal.USER_LIMIT, _limit_user),
    ("its policy", Refusal.PREEMPTION_REFUSED, _forbid),
    ("more foreign work", Refusal.NODE_FULL, lambda w: w.foreign("f", "n1", vcore=1)),
    (
        "paused resource manager",
        Refusal.RM_PAUSED,
        lambda w: w.record(f.SchedulingHeld(held=True, at_ns=w.now_ns)),
    ),
]
FOR_A_GUARANTEE: list[tuple[str, Refusal, Change]] = [
    ("ask cancelled", Refusal.ASK_GONE, lambda w: w.withdraw("p", TAKER)),
    ("node of a daemon", Refusal.NODE_RESERVED, _keep_for_a_daemon),
    ("drained node", Refusal.NODE_DRAINING, lambda w: w.schedule("n1", drained=True)),
    ("switched off", Refusal.PREEMPTION_REFUSED, lambda w: configure(w, "enabled: false")),
    ("nothing guaranteed", Refusal.PREEMPTION_REFUSED, lambda w: guarantee(w, POOR, 0)),
    ("guarantee used up", Refusal.PREEMPTION_REFUSED, lambda w: guarantee(w, POOR, 1)),
    ("guarantee of the giver", Refusal.PREEMPTION_REFUSED, lambda w: guarantee(w, RICH, 3)),
    (
        "leaf that gives nothing",
        Refusal.PREEMPTION_REFUSED,
        lambda w: w.reconfigure(RICH, properties={"preemption.policy": "disabled"}),
    ),
    (
        "longer delay",
        Refusal.PREEMPTION_REFUSED,
        lambda w: w.reconfigure(
            POOR, guaranteed={"vcore": 4}, properties={"preemption.delay": "2h"}
        ),
    ),
]
FOR_A_NODE: list[tuple[str, Refusal, Change]] = [
    ("reservation gone", Refusal.RESERVATION_GONE, _give_up),
    ("placed meanwhile", Refusal.ASK_GONE, _place),
]


def _ids(cases: list[tuple[str, Refusal, Change]]) -> list[str]:
    return [case[0] for case in cases]


def _refused(written: Written, key: str, expected: Refusal, change: Change) -> None:
    if key == "d":
        want_the_node(written)
    proposal = proposal_for(written, key)
    assert checked(written, proposal) is None
    change(written)
    assert expected is checked(written, proposal)


@pytest.mark.parametrize("key", ["p", "d"])
@pytest.mark.parametrize(("expected", "change"), [c[1:] for c in FOR_AN_ASK], ids=_ids(FOR_AN_ASK))
def test_one_reason_to_refuse(
    expected: Refusal, change: Change, written: Written, key: str
) -> None:
    _refused(written, key, expected, change)


@pytest.mark.parametrize(
    ("expected", "change"), [c[1:] for c in FOR_A_GUARANTEE], ids=_ids(FOR_A_GUARANTEE)
)
def test_one_reason_to_refuse_a_guarantee(
    expected: Refusal, change: Change, written: Written
) -> None:
    _refused(written, "p", expected, change)


@pytest.mark.parametrize(("expected", "change"), [c[1:] for c in FOR_A_NODE], ids=_ids(FOR_A_NODE))
def test_one_reason_to_refuse_a_required_node(
    expected: Refusal, change: Change, written: Written
) -> None:
    _refused(written, "d", expected, change)


# -- wrong on purpose: proposals that no planner would make, all the way through commit


class Preempting(Driver):
    def ask(self, *keys: str, vcore: int = 1, repeats: int = 1) -> None:
        for key in keys:
            self.written.ask(key, TAKER, vcore=vcore, repeats=repeats, allow_preempt_other=True)

    def preempt(
        self,
        key: str,
        *victims: str,
        node: str = "n1",
        taker: str = TAKER,
        giver: str = "giver",
        rule: PreemptionRule = PreemptionRule.GUARANTEE,
    ) -> Refusal | None:
        """Have these go for an ask of the taker."""
        app = self.written.application(taker)
        beneficiary = Beneficiary(rule=rule, queue=app.queue.path, application_id=taker, key=key)
        made = Preempt(
            proposal_id=1,
            beneficiary=beneficiary,
            victims=self._refs(giver, victims),
            sequence=app.asks[key].sequence,
            node_id=node,
        )
        return self.commit(made)

    def require(self, *victims: str, key: str = "d", giver: str = "giver") -> Refusal | None:
        """Have these go for an ask that requires its node."""
        return self.preempt(key, *victims, giver=giver, rule=PreemptionRule.REQUIRED_NODE)

    def enforce(self, path: str, *victims: str, giver: str = "giver") -> Refusal | None:
        """Have these go because their queue is above its maximum."""
        beneficiary = Beneficiary(rule=PreemptionRule.QUOTA, queue=path)
        return self.commit(
            Preempt(proposal_id=1, beneficiary=beneficiary, victims=self._refs(giver, victims))
        )

    def _refs(self, giver: str, keys: tuple[str, ...]) -> tuple[VictimRef, ...]:
        return tuple(
            VictimRef(application_id=giver, uuid=uuid_of(self.written, key, giver)) for key in keys
        )


@pytest.fixture
def driver(written: Written) -> Preempting:
    settings = Settings(preemption_delay_ns=DELAY_NS)
    return Preempting(written, later_ns=2 * DELAY_NS, settings=settings)


@pytest.mark.parametrize(("guaranteed", "expected"), [(3, None), (2, Refusal.PREEMPTION_REFUSED)])
def test_what_was_promised_counts_for_the_guarantee_of_the_taker(
    driver: Preempting, guaranteed: int, expected: Refusal | None
) -> None:
    guarantee(driver.written, POOR, guaranteed)
    driver.ask("q")
    assert driver.preempt("p", "v3") is None
    assert expected is driver.preempt("q", "v2")


@pytest.mark.parametrize(
    ("promised", "expected"), [(True, None), (False, Refusal.PREEMPTION_REFUSED)]
)
def test_what_was_promised_counts_for_the_guarantee_of_the_giver(
    driver: Preempting, *, promised: bool, expected: Refusal | None
) -> None:
    """What is on its way to a queue is as good as there: it may give as much of what runs."""
    written = driver.written
    guarantee(written, RICH, 3)
    written.node("n2", vcore=1)
    if promised:
        written.ask("o", "giver", vcore=1)
        written.reserve("o", "n2", "giver", promises=True)
    assert expected is driver.preempt("p", "v3")


def _preempt_sibling(driver: Preempting, going: int) -> Refusal | None:
    """Four of `b` run on n2; so many of them are to go for an ask of its sibling `a`."""
    written = driver.written
    written.add("b", queue="root.p.b")
    written.add("a", queue="root.p.a")
    for number in range(4):
        written.ask(f"b{number}", "b", vcore=1)
        written.allocate(f"b{number}", "n2", "b")
    written.ask("a", "a", vcore=2, allow_preempt_other=True)
    victims = (f"b{number}" for number in range(going))
    return driver.preempt("a", *victims, node="n2", taker="a", giver="b")


def _share_a_guarantee(written: Written, vcore: int) -> None:
    """Both live on the guarantee of their parent."""
    written.queue("root.p", leaf=False)
    written.queue("root.p.a")
    written.queue("root.p.b")
    guarantee(written, "root.p", vcore)
    guarantee(written, "root.p.b", 1)
    written.node("n2", vcore=4)


@pytest.mark.parametrize(("going", "expected"), [(2, None), (1, Refusal.PREEMPTION_REFUSED)])
def test_an_ask_stays_within_the_guarantee_that_it_lives_on(
    driver: Preempting, going: int, expected: Refusal | None
) -> None:
    """Its parent uses exactly its guarantee, which is shared anew: as much goes as comes."""
    _share_a_guarantee(driver.written, 4)
    assert expected is _preempt_sibling(driver, going)


@pytest.mark.parametrize("going", [2, 3])
def test_a_queue_above_its_guarantee_claims_nothing(driver: Preempting, going: int) -> None:
    """Its parent uses four of three: victims below it would not mend that."""
    _share_a_guarantee(driver.written, 3)
    assert _preempt_sibling(driver, going) is Refusal.PREEMPTION_REFUSED


@pytest.mark.parametrize(("most", "expected"), [(3, None), (2, Refusal.PREEMPTION_REFUSED)])
def test_what_was_promised_counts_for_a_quota_when_others_are_to_go(
    driver: Preempting, most: int, expected: Refusal | None
) -> None:
    driver.written.reconfigure(POOR, guaranteed={"vcore": 4}, max={"vcore": most})
    driver.ask("q")
    assert driver.preempt("p", "v3") is None
    assert expected is driver.preempt("q", "v2")


@pytest.mark.parametrize(("most", "expected"), [(3, None), (2, Refusal.QUEUE_LIMIT)])
def test_what_was_promised_counts_for_a_quota_when_another_is_placed(
    driver: Preempting, most: int, expected: Refusal | None
) -> None:
    driver.written.reconfigure(POOR, guaranteed={"vcore": 4}, max={"vcore": most})
    driver.written.node("n2", vcore=4)
    driver.ask("o")
    assert driver.preempt("p", "v3") is None
    assert expected is driver.allocate("o", "n2", TAKER)


def test_its_own_promise_stands_in_nobodys_way(driver: Preempting) -> None:
    driver.written.reconfigure(POOR, guaranteed={"vcore": 4}, max={"vcore": 2})
    driver.written.node("n2", vcore=4)
    assert driver.preempt("p", "v3") is None
    assert driver.allocate("p", "n2", TAKER) is None
    assert {} == driver.written.state.nodes["n1"].reservations


@pytest.mark.parametrize(("most", "expected"), [(3, None), (2, Refusal.USER_LIMIT)])
def test_what_was_promised_counts_for_the_limit_of_the_user(
    driver: Preempting, most: int, expected: Refusal | None
) -> None:
    limit = LimitConfig(users=("bob",), max_resources={"vcore": most})
    driver.written.reconfigure(POOR, guaranteed={"vcore": 4}, limits=(limit,))
    driver.ask("q")
    assert driver.preempt("p", "v3") is None
    assert expected is driver.preempt("q", "v2")


def test_room_is_promised_once(driver: Preempting) -> None:
    """One is free and two go: `p` has two of that, `q` the third, and `r` has to have its own."""
    driver.written.node("n2", vcore=4)
    driver.ask("q", "r")
    assert driver.preempt("p", "v3", "v2") is None
    assert driver.preempt("q") is None
    assert driver.preempt("r") is Refusal.NODE_FULL
    assert driver.preempt("r", "v1") is None
    assert {"p", "q", "r"} == {key for _, key in driver.written.state.nodes["n1"].reservations}
    assert {"vcore": 4} == driver.written.state.nodes["n1"].promised


def test_a_promise_that_nothing_stands_behind(driver: Preempting) -> None:
    """Where an ask has only to be placed, nobody keeps the node for it by this way."""
    driver.written.node("n2", vcore=4)
    assert driver.preempt("p", node="n2") is Refusal.PREEMPTION_REFUSED
    assert driver.allocate("p", "n2", TAKER) is None


@pytest.mark.parametrize(
    ("keep", "priority", "expected"),
    [(False, 0, None), (True, 0, None), (True, 99, Refusal.NODE_RESERVED)],
)
def test_who_only_waits_gives_way_unless_it_is_more_important(
    driver: Preempting, *, keep: bool, priority: int, expected: Refusal | None
) -> None:
    written = driver.written
    written.ask_back(uuid_of(written, "v3"), "giver")
    if keep:
        written.ask("w", "giver", vcore=2, priority=priority)
        written.reserve("w", "n1", "giver")
    assert expected is driver.preempt("p")


def test_each_repeat_has_one_promise(driver: Preempting) -> None:
    driver.ask("twice", repeats=2)
    assert driver.preempt("twice", "v3", "v2") is None
    assert driver.preempt("twice") is None
    assert driver.preempt("twice") is Refusal.ASK_GONE
    assert 2 == driver.written.state.reservation_count
    assert driver.allocate("twice", "n1", TAKER) is None
    assert 1 == driver.written.state.reservation_count


def test_a_node_that_only_waits_is_given_up_for_a_promise(driver: Preempting) -> None:
    """There is one node for each repeat; the one that was promised first stays."""
    written = driver.written
    for node in ("n2", "n3"):
        written.node(node, vcore=1)
        written.recover(f"on-{node}", node, "giver", vcore=1)
    driver.ask("twice", repeats=2)
    assert driver.preempt("twice", "v3") is None
    written.reserve("twice", "n2", TAKER)
    assert driver.preempt("twice", "on-n3", node="n3") is None
    assert ("n1", "n3") == written.application(TAKER).asks["twice"].reserved


def test_promised_room_is_nobody_elses(driver: Preempting) -> None:
    driver.ask("o")
    assert driver.preempt("p", "v3") is None
    assert driver.allocate("o", "n1", TAKER) is Refusal.NODE_RESERVED


# -- who asks, and where


@pytest.mark.parametrize("key", ["p", "d"])
def test_a_node_that_nobody_knows(written: Written, key: str) -> None:
    if key == "d":
        want_the_node(written)
    assert Refusal.NODE_GONE is checked(written, replace(proposal_for(written, key), node_id="n9"))


@pytest.mark.parametrize("key", ["p", "d"])
def test_an_ask_belongs_to_one_queue(written: Written, key: str) -> None:
    """Books are kept by whom victims go for, so the proposal has to say it right."""
    if key == "d":
        want_the_node(written)
    made = proposal_for(written, key)
    assert Refusal.ASK_GONE is checked(
        written, replace(made, beneficiary=replace(made.beneficiary, queue=RICH))
    )


def test_nobody_goes_twice(driver: Preempting) -> None:
    """The ask needs the room of two."""
    driver.ask("large", vcore=3)
    assert driver.preempt("large", "v3", "v3") is Refusal.VICTIM_GONE
    assert driver.preempt("large", "v3", "v2") is None


def test_an_ask_that_requires_a_node_lives_on_no_guarantee(driver: Preempting) -> None:
    """It would have another node kept for it, where it may not run."""
    written = driver.written
    want_the_node(written)
    written.node("n2", vcore=4)
    assert driver.preempt("d", "v3") is Refusal.PREEMPTION_REFUSED
    assert driver.require("v3") is None


# -- by guarantee


def test_who_is_guaranteed_nothing_has_no_use_of_what_is_left_over(driver: Preempting) -> None:
    written = driver.written
    written.queue("root.free")
    written.add("free", queue="root.free")
    written.ask("f", "free", vcore=1, allow_preempt_other=True)
    driver.ask("q")
    assert driver.preempt("p", "v3", "v2") is None
    assert driver.preempt("f", taker="free") is Refusal.PREEMPTION_REFUSED
    assert driver.preempt("q") is None


def test_nobody_goes_in_the_queue_that_asks(driver: Preempting) -> None:
    written = driver.written
    written.resize_node("n1", vcore=5)
    written.recover("own", "n1", TAKER, vcore=1)
    assert driver.preempt("p", "own", giver=TAKER) is Refusal.PREEMPTION_REFUSED
    assert driver.preempt("p", "v3") is None


@pytest.mark.parametrize(("going", "expected"), [(2, None), (1, Refusal.QUEUE_LIMIT)])
def test_a_quota_of_a_parent_has_room_when_the_victims_are_gone(
    driver: Preempting, going: int, expected: Refusal | None
) -> None:
    """The node would do with fewer."""
    written = driver.written
    written.queue("root.p", leaf=False, max={"vcore": 4})
    written.queue("root.p.a", guaranteed={"vcore": 3})
    written.queue("root.p.b")
    written.node("n2", vcore=5)
    assert expected is _preempt_sibling(driver, going)


@pytest.mark.parametrize(("most", "expected"), [(3, None), (2, Refusal.USER_LIMIT)])
def test_what_was_promised_counts_for_the_limit_of_the_group(
    driver: Preempting, most: int, expected: Refusal | None
) -> None:
    """A limit of places alone, and one of a type that is not wanted, say nothing."""
    written = driver.written
    limits = (
        LimitConfig(groups=("ops",), max_resources={"vcore": most, "memory": 1}),
        LimitConfig(users=("bob",), max_applications=9),
    )
    written.reconfigure(POOR, guaranteed={"vcore": 4}, limits=limits)
    written.link(TAKER, "ops")
    driver.ask("q")
    assert driver.preempt("p", "v3") is None
    assert expected is driver.preempt("q", "v2")


def test_a_promise_of_a_type_that_is_not_wanted_does_not_count(driver: Preempting) -> None:
    """More of it was promised than the user may have by now."""
    written = driver.written
    written.resize_node("n1", vcore=4, memory=2)
    written.ask("m", TAKER, vcore=1, memory=2, allow_preempt_other=True)
    written.ask("q", TAKER, vcore=1, memory=0, allow_preempt_other=True)
    written.ask("r", TAKER, vcore=1, memory=1, allow_preempt_other=True)
    assert driver.preempt("m", "v3") is None
    limit = LimitConfig(users=("bob",), max_resources={"memory": 1})
    written.reconfigure(POOR, guaranteed={"vcore": 4}, limits=(limit,))
    assert driver.preempt("r", "v2") is Refusal.USER_LIMIT
    assert driver.preempt("q", "v2") is None


def test_others_go_from_the_end_of_the_delay(driver: Preempting) -> None:
    asked_ns = driver.written.application(TAKER).asks["p"].created_ns
    driver.later_ns = asked_ns + DELAY_NS - 1 - driver.written.now_ns
    assert driver.preempt("p", "v3") is Refusal.PREEMPTION_REFUSED
    driver.later_ns += 1
    assert driver.preempt("p", "v3") is None


# -- for an ask that requires its node


@pytest.fixture
def requiring(driver: Preempting) -> Preempting:
    want_the_node(driver.written)
    return driver


def test_nobody_else_goes_while_others_are_on_their_way_out(requiring: Preempting) -> None:
    assert requiring.require("v3") is None
    assert requiring.require("v2") is Refusal.PREEMPTION_REFUSED


def test_an_ask_that_could_run_elsewhere_requires_no_node(driver: Preempting) -> None:
    driver.written.reserve("p", "n1", TAKER)
    assert driver.require("v3", key="p") is Refusal.PREEMPTION_REFUSED


def test_nobody_goes_on_another_node(requiring: Preempting) -> None:
    written = requiring.written
    written.node("n2", vcore=4)
    written.recover("w", "n2", "giver", vcore=4)
    assert requiring.require("w") is Refusal.PREEMPTION_REFUSED


def test_nobody_goes_who_is_more_important(requiring: Preempting) -> None:
    written = requiring.written
    written.resize_node("n1", vcore=5)
    written.recover("w", "n1", "giver", vcore=2, priority=1)
    assert requiring.require("w") is Refusal.PREEMPTION_REFUSED


def test_that_nobody_may_go_is_found_only_where_there_is_no_room(requiring: Preempting) -> None:
    assert requiring.require() is None
    requiring.written.ask_back(uuid_of(requiring.written, "v3"), "giver")
    assert requiring.require() is Refusal.PREEMPTION_REFUSED


@pytest.mark.parametrize(("most", "expected"), [(4, None), (3, Refusal.USER_LIMIT)])
def test_what_was_promised_counts_for_the_limit_of_who_requires_a_node(
    requiring: Preempting, most: int, expected: Refusal | None
) -> None:
    """Otherwise the limit refuses the ask when its victims are gone."""
    written = requiring.written
    written.node("n2", vcore=2)
    written.reserve("p", "n2", TAKER, promises=True)
    limit = LimitConfig(users=("bob",), max_resources={"vcore": most})
    written.reconfigure(POOR, guaranteed={"vcore": 4}, limits=(limit,))
    assert expected is requiring.require("v3")


# -- to enforce a quota


@pytest.fixture
def above(driver: Preempting) -> Preempting:
    """`rich` uses one more than it may, and its time is up."""
    written = driver.written
    configure(written, "quotapreemptionenabled: true")
    written.reconfigure(RICH, max={"vcore": 2})
    arm(written, RICH)
    return driver


def arm(written: Written, path: str, later_ns: int = 0) -> None:
    due_ns = written.now_ns + later_ns
    written.record(f.QuotaPreemptionArmed(path=path, due_ns=due_ns, at_ns=written.now_ns))


def test_as_many_go_as_are_too_many(above: Preempting) -> None:
    assert above.enforce(RICH, "v3", "v2") is Refusal.PREEMPTION_REFUSED
    assert above.enforce(RICH, "v3") is None


OF_A_QUOTA: list[tuple[str, Change]] = [
    ("switched off", configure),
    ("time not up", lambda w: arm(w, RICH, 3 * DELAY_NS)),
    (
        "no time set",
        lambda w: w.record(f.QuotaPreemptionCleared(path=RICH, at_ns=w.now_ns)),
    ),
    (
        "guaranteed",
        lambda w: w.reconfigure(RICH, max={"vcore": 2}, guaranteed={"vcore": 3}),
    ),
    ("higher max", lambda w: w.reconfigure(RICH, max={"vcore": 3})),
    ("one is on its way out", lambda w: w.ask_back(uuid_of(w, "v2"), "giver")),
]


@pytest.mark.parametrize("change", [c[1] for c in OF_A_QUOTA], ids=[c[0] for c in OF_A_QUOTA])
def test_one_reason_not_to_enforce(above: Preempting, change: Change) -> None:
    change(above.written)
    assert above.enforce(RICH, "v3") is Refusal.PREEMPTION_REFUSED


def test_a_quota_is_enforced_from_the_moment_when_it_is_due(above: Preempting) -> None:
    above.later_ns = above.written.state.quotas[RICH] - 1 - above.written.now_ns
    assert above.enforce(RICH, "v3") is Refusal.PREEMPTION_REFUSED
    above.later_ns += 1
    assert above.enforce(RICH, "v3") is None


def test_nobody_goes_for_what_is_only_promised(above: Preempting) -> None:
    above.written.ask("o", "giver", vcore=1)
    above.written.reserve("o", "n1", "giver", promises=True)
    assert above.enforce(RICH, "v3", "v2") is Refusal.PREEMPTION_REFUSED
    assert above.enforce(RICH, "v3") is None


@pytest.mark.parametrize(
    ("going", "expected"),
    [(("v3", "v2", "m1"), None), (("v3", "m2"), Refusal.PREEMPTION_REFUSED)],
    ids=["as much of each", "too much of one"],
)
def test_each_type_counts_by_itself(
    above: Preempting, going: tuple[str, ...], expected: Refusal | None
) -> None:
    """2 and 1 are to go; of what the queue has no maximum for, whatever goes with it."""
    written = above.written
    written.node("n2", memory=3, disk=3)
    written.recover("m1", "n2", "giver", memory=1, disk=3)
    written.recover("m2", "n2", "giver", memory=2)
    written.reconfigure(RICH, max={"vcore": 1, "memory": 2})
    assert expected is above.enforce(RICH, *going)


def test_a_queue_that_nobody_knows(above: Preempting) -> None:
    assert above.enforce("root.gone", "v3") is Refusal.PREEMPTION_REFUSED


def test_nobody_goes_for_the_quota_of_another_queue(above: Preempting) -> None:
    """Its own guarantee would let it go."""
    guarantee(above.written, POOR, 0)
    above.written.recover("w", "n1", TAKER, vcore=1)
    assert above.enforce(RICH, "w", giver=TAKER) is Refusal.PREEMPTION_REFUSED


def test_nobody_goes_for_a_quota_who_can_run_on_one_node_alone(above: Preempting) -> None:
    above.written.recover("w", "n1", "giver", vcore=1, required_node="n1")
    assert above.enforce(RICH, "w") is Refusal.PREEMPTION_REFUSED


@pytest.fixture
def shared(driver: Preempting) -> Preempting:
    """`root.p` may use 2 and uses 5; its child `a` is guaranteed 2 and uses 3, `b` uses 2."""
    written = driver.written
    configure(written, "quotapreemptionenabled: true")
    written.queue("root.p", leaf=False, max={"vcore": 2})
    written.queue("root.p.a", guaranteed={"vcore": 2})
    written.queue("root.p.b")
    written.node("n2", vcore=5)
    for app, count in (("a", 3), ("b", 2)):
        written.add(app, queue=f"root.p.{app}")
        for number in range(count):
            written.ask(f"{app}{number}", app, vcore=1)
            written.allocate(f"{app}{number}", "n2", app)
    arm(written, "root.p")
    return driver


@pytest.mark.parametrize(("going", "expected"), [(1, None), (2, Refusal.PREEMPTION_REFUSED)])
def test_a_child_gives_what_it_uses_above_its_guarantee(
    shared: Preempting, going: int, expected: Refusal | None
) -> None:
    """The maximum of its parent would let more of it go."""
    victims = [f"a{number}" for number in range(going)]
    assert expected is shared.enforce("root.p", *victims, giver="a")


def test_a_child_that_uses_its_guarantee_gives_nothing(shared: Preempting) -> None:
    """Its parent is above its maximum by what the other child uses."""
    shared.written.release(uuid_of(shared.written, "a2", "a"), "a")
    assert shared.enforce("root.p", "a0", giver="a") is Refusal.PREEMPTION_REFUSED
    assert shared.enforce("root.p", "b0", giver="b") is None


# -- whose the room is


def _two_require(driver: Preempting, victims: int = 2) -> list[str]:
    """`d` has victims on n1 and `e` waits there with a reservation; return their UUIDs."""
    written = driver.written
    written.ask("e", TAKER, vcore=1, required_node="n1")
    written.reserve("e", "n1", TAKER)
    written.ask("d", TAKER, vcore=1 + victims, allow_preempt_other=True, required_node="n1")
    written.reserve("d", "n1", TAKER)
    assert driver.require(*("v3", "v2", "v1")[:victims]) is None
    return [uuid_of(written, key) for key in ("v3", "v2", "v1")[:victims]]


def _ask_of(driver: Preempting, key: str) -> Ask:
    return driver.written.application(TAKER).asks[key]


def _secured(driver: Preempting, key: str) -> dict[str, int]:
    return driver.written.state.nodes["n1"].reservations[TAKER, key].secured


def test_no_other_ask_takes_the_room_of_victims_nor_what_is_needed_beside_it(
    driver: Preempting,
) -> None:
    """One is free and two go for `d`: at no moment there is room for `e`."""
    going = _two_require(driver)
    assert {"vcore": 1} == _secured(driver, "d")
    for secured, uuid in enumerate(going, 2):
        assert driver.allocate("e", "n1", TAKER) is Refusal.NODE_FULL
        driver.written.release(uuid, "giver")
        assert {"vcore": secured} == _secured(driver, "d")
    assert driver.allocate("e", "n1", TAKER) is Refusal.NODE_FULL
    assert driver.allocate("d", "n1", TAKER) is None


def test_an_ask_that_gives_its_room_up_leaves_it_to_others(driver: Preempting) -> None:
    (first, *_) = _two_require(driver)
    driver.written.release(first, "giver")
    driver.written.drop("d", "n1", TAKER)
    assert driver.allocate("e", "n1", TAKER) is None


def test_a_victim_larger_than_needed_leaves_the_rest_to_others(driver: Preempting) -> None:
    written = driver.written
    written.resize_node("n1", vcore=7)
    written.recover("big", "n1", "giver", vcore=4)
    written.ask("e", TAKER, vcore=2, required_node="n1")
    written.reserve("e", "n1", TAKER)
    written.ask("d", TAKER, vcore=2, allow_preempt_other=True, required_node="n1")
    written.reserve("d", "n1", TAKER)
    assert driver.require("big") is None
    written.release(uuid_of(written, "big"), "giver")
    assert {"vcore": 2} == _secured(driver, "d")
    assert driver.allocate("e", "n1", TAKER) is None
    assert driver.allocate("d", "n1", TAKER) is None


def test_room_that_is_not_free_is_nobodys(driver: Preempting) -> None:
    """More is used on the node than it has: the room of the first victim only makes that good."""
    written = driver.written
    written.foreign("f", "n1", vcore=2)
    written.ask("d", TAKER, vcore=1, allow_preempt_other=True, required_node="n1")
    written.reserve("d", "n1", TAKER)
    first, second = uuid_of(written, "v3"), uuid_of(written, "v2")
    assert driver.require("v3", "v2") is None
    written.release(first, "giver")
    assert {} == _secured(driver, "d")
    written.release(second, "giver")
    assert {"vcore": 1} == _secured(driver, "d")


def test_what_leaves_for_a_former_reservation_is_for_everybody(driver: Preempting) -> None:
    first, second = _two_require(driver)
    driver.written.drop("d", "n1", TAKER)
    driver.written.reserve("d", "n1", TAKER)
    for uuid in (first, second):
        driver.written.release(uuid, "giver")
        assert {} == _secured(driver, "d")
    assert driver.allocate("e", "n1", TAKER) is None


def test_each_earmark_has_the_room_of_its_own_victim(driver: Preempting) -> None:
    """That of the youngest ask leaves first; `q` has what was free."""
    driver.ask("q", "r")
    assert driver.preempt("p", "v3", "v2") is None
    assert driver.preempt("q") is None
    assert driver.preempt("r", "v1") is None
    driver.written.release(uuid_of(driver.written, "v1"), "giver")
    assert driver.allocate("p", "n1", TAKER) is Refusal.NODE_FULL
    assert driver.allocate("r", "n1", TAKER) is None
    assert driver.allocate("q", "n1", TAKER) is None


def test_repeats_of_one_ask_share_what_is_secured(driver: Preempting) -> None:
    driver.ask("q", repeats=2)
    assert driver.preempt("q", "v3") is None
    assert driver.preempt("q") is None
    assert {"vcore": 1} == _secured(driver, "q")
    driver.written.release(uuid_of(driver.written, "v3"), "giver")
    assert {"vcore": 2} == _secured(driver, "q")
    assert driver.allocate("q", "n1", TAKER) is None
    assert {"vcore": 1} == _secured(driver, "q")


def test_an_ask_that_requires_the_node_comes_before_earmarks(driver: Preempting) -> None:
    assert driver.preempt("p", "v3") is None
    driver.written.release(uuid_of(driver.written, "v3"), "giver")
    driver.written.ask("d", TAKER, vcore=2, required_node="n1")
    assert driver.allocate("d", "n1", TAKER) is None
    assert {} == driver.written.state.nodes["n1"].reservations


@pytest.mark.parametrize("wanted", [2, 3, 4])
@pytest.mark.parametrize("priority", [0, 5])
def test_an_ask_that_is_sent_again_keeps_what_it_needs_of_its_room(
    driver: Preempting, wanted: int, priority: int
) -> None:
    """It wanted 3, and `e` would fit into the room of each victim."""
    for number, uuid in enumerate(_two_require(driver), 1):
        again = _ask_of(driver, "d").spec
        driver.take(replace(again, resource={"vcore": wanted}, priority=priority))
        driver.written.release(uuid, "giver")
        assert {"vcore": min(wanted, 1 + number)} == _secured(driver, "d")
        if number < wanted:
            assert driver.allocate("e", "n1", TAKER) is Refusal.NODE_FULL
    if wanted == 4:
        assert driver.require("v1") is None
        driver.written.release(uuid_of(driver.written, "v1"), "giver")
    assert driver.allocate("d", "n1", TAKER) is None


def test_room_that_an_ask_sent_again_smaller_does_not_need_serves_others(
    driver: Preempting,
) -> None:
    (first, *_) = _two_require(driver)
    driver.written.release(first, "giver")
    assert driver.allocate("e", "n1", TAKER) is Refusal.NODE_FULL
    driver.take(replace(_ask_of(driver, "d").spec, resource={"vcore": 1}))
    assert {"vcore": 1} == _secured(driver, "d")
    assert driver.allocate("e", "n1", TAKER) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"resource": {"vcore": 5}},
        {"allow_preempt_other": False},
        {"required_node": "n2"},
        {"placeholder": True, "task_group": "g"},
    ],
)
def test_a_reservation_ends_when_what_it_rests_on_is_sent_again_otherwise(
    driver: Preempting, changed: dict[str, object]
) -> None:
    (first, *_) = _two_require(driver)
    driver.written.release(first, "giver")
    driver.take(replace(_ask_of(driver, "d").spec, **changed))
    assert (TAKER, "d") not in driver.written.state.nodes["n1"].reservations
    assert {} == {kind: n for kind, n in driver.written.state.nodes["n1"].secured.items() if n}


@pytest.mark.parametrize(("repeats", "left"), [(1, 1), (2, 2), (3, 2)])
def test_as_many_earmarks_stay_as_repeats_wait(driver: Preempting, repeats: int, left: int) -> None:
    driver.ask("q", repeats=2)
    assert driver.preempt("q", "v3") is None
    assert driver.preempt("q") is None
    again = _ask_of(driver, "q").spec
    driver.take(replace(again, max_allocations=repeats, priority=1))
    assert left == driver.written.state.nodes["n1"].reservations[TAKER, "q"].repeats
    driver.written.release(uuid_of(driver.written, "v3"), "giver")
    assert {"vcore": left} == _secured(driver, "q")


def test_an_earmark_follows_the_size_of_its_ask(driver: Preempting) -> None:
    """`p` wants 2: 1 is free and one victim goes; then it wants 1, and `q` needs no victim."""
    assert driver.preempt("p", "v3") is None
    node, again = driver.written.state.nodes["n1"], _ask_of(driver, "p").spec
    driver.ask("q")
    assert driver.preempt("q") is Refusal.QUEUE_LIMIT
    driver.take(replace(again, resource={"vcore": 1}))
    assert {"vcore": 1} == node.promised
    assert driver.preempt("q") is None
    assert {"vcore": 2} == node.promised


def test_an_ask_that_outgrows_its_room_gives_up_its_own_earmark(driver: Preempting) -> None:
    assert driver.preempt("p", "v3") is None
    driver.ask("q")
    assert driver.preempt("q", "v2") is None
    again = _ask_of(driver, "p").spec
    driver.take(replace(again, resource={"vcore": 3}))
    assert [(TAKER, "q")] == list(driver.written.state.nodes["n1"].reservations)


def test_other_repeats_keep_their_earmarks_when_one_is_reported_with_another_size(
    driver: Preempting,
) -> None:
    """Both want 2 then: the room that is free or on its way suffices for one."""
    driver.written.node("n2", vcore=4)
    driver.ask("q", repeats=2)
    assert driver.preempt("q", "v3") is None
    assert driver.preempt("q") is None
    again = _ask_of(driver, "q").spec
    driver.take(replace(again, resource={"vcore": 2}), node="n2")
    ask = _ask_of(driver, "q")
    assert (1, ("n1",)) == (ask.remaining, ask.reserved)
    assert {"vcore": 2} == driver.written.state.nodes["n1"].promised
