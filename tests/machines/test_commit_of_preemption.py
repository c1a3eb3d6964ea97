"""The checks of who is to go: each reason to refuse, alone, and nothing else to be said."""

from collections.abc import Callable

import pytest
from written import Written

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.application import ApplicationState
from yunikorn_actors.domain.beneficiary import Beneficiary, PreemptionRule
from yunikorn_actors.domain.config import LimitConfig, parse_config
from yunikorn_actors.domain.invariants import violations
from yunikorn_actors.domain.proposals import Allocate, Preempt, Proposal, Refusal, VictimRef
from yunikorn_actors.machines.context.commit import commit
from yunikorn_actors.machines.context.preemption import check_preempt
from yunikorn_actors.machines.context.work import Partition, Uuids, Work
from yunikorn_actors.machines.settings import SECOND, Settings

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


FOR_AN_ASK: list[tuple[str, Refusal, Change]] = [
    ("victim gone", Refusal.VICTIM_GONE, lambda w: w.release(uuid_of(w, "v3"), "giver")),
    ("victim asked back", Refusal.VICTIM_GONE, lambda w: w.ask_back(uuid_of(w, "v3"), "giver")),
    ("its application removed", Refusal.VICTIM_GONE, lambda w: w.remove("giver")),
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


class Driver:
    """Proposes whatever it is told to, and has it committed."""

    def __init__(self, written: Written) -> None:
        self.written = written
        self._settings = Settings(preemption_delay_ns=DELAY_NS)
        self._partition = Partition(
            written.state.name,
            rm_id="rm-1",
            epoch=1,
            commit=None,
            reports=False,
            has_predicates=False,
            has_preemption_predicates=False,
            settings=self._settings,
        )
        self._partition.state = written.state

    def ask(self, *keys: str, vcore: int = 1, repeats: int = 1) -> None:
        for key in keys:
            self.written.ask(key, TAKER, vcore=vcore, repeats=repeats, allow_preempt_other=True)

    def preempt(
        self, key: str, *victims: str, node: str = "n1", taker: str = TAKER, giver: str = "giver"
    ) -> Refusal | None:
        app = self.written.application(taker)
        refs = tuple(
            VictimRef(application_id=giver, uuid=uuid_of(self.written, name, giver))
            for name in victims
        )
        return self._commit(
            Preempt(
                proposal_id=1,
                beneficiary=Beneficiary(
                    rule=PreemptionRule.GUARANTEE,
                    queue=app.queue.path,
                    application_id=taker,
                    key=key,
                ),
                victims=refs,
                sequence=app.asks[key].sequence,
                node_id=node,
            )
        )

    def allocate(self, key: str, node: str) -> Refusal | None:
        sequence = self.written.application(TAKER).asks[key].sequence
        return self._commit(
            Allocate(proposal_id=1, application_id=TAKER, key=key, sequence=sequence, node_id=node)
        )

    def _commit(self, proposal: Proposal) -> Refusal | None:
        now_ns = self.written.now_ns + 2 * DELAY_NS
        work = Work("rm-1", now_ns, self._settings, Uuids("core"))
        refusal = commit(work, self._partition, proposal)
        assert [] == violations(self.written.state)
        return refusal


@pytest.fixture
def driver(written: Written) -> Driver:
    return Driver(written)


@pytest.mark.parametrize(("guaranteed", "expected"), [(3, None), (2, Refusal.PREEMPTION_REFUSED)])
def test_what_was_promised_counts_for_the_guarantee_of_the_taker(
    driver: Driver, guaranteed: int, expected: Refusal | None
) -> None:
    guarantee(driver.written, POOR, guaranteed)
    driver.ask("q")
    assert driver.preempt("p", "v3") is None
    assert expected is driver.preempt("q", "v2")


@pytest.mark.parametrize(("going", "expected"), [(3, None), (2, Refusal.PREEMPTION_REFUSED)])
def test_an_ask_stays_within_the_guarantee_that_it_lives_on(
    driver: Driver, going: int, expected: Refusal | None
) -> None:
    """It lives on its parent's, which is used up: so much has to go there that it is kept."""
    written = driver.written
    written.queue("root.p", leaf=False)
    written.queue("root.p.a")
    written.queue("root.p.b")
    guarantee(written, "root.p", 3)
    guarantee(written, "root.p.b", 1)
    written.node("n2", vcore=4)
    written.add("b", queue="root.p.b")
    written.add("a", queue="root.p.a")
    for number in range(4):
        written.ask(f"b{number}", "b", vcore=1)
        written.allocate(f"b{number}", "n2", "b")
    written.ask("a", "a", vcore=2, allow_preempt_other=True)
    assert expected is driver.preempt(
        "a", *(f"b{number}" for number in range(going)), node="n2", taker="a", giver="b"
    )


@pytest.mark.parametrize(("most", "expected"), [(3, None), (2, Refusal.PREEMPTION_REFUSED)])
def test_what_was_promised_counts_for_a_quota_when_others_are_to_go(
    driver: Driver, most: int, expected: Refusal | None
) -> None:
    driver.written.reconfigure(POOR, guaranteed={"vcore": 4}, max={"vcore": most})
    driver.ask("q")
    assert driver.preempt("p", "v3") is None
    assert expected is driver.preempt("q", "v2")


@pytest.mark.parametrize(("most", "expected"), [(3, None), (2, Refusal.QUEUE_LIMIT)])
def test_what_was_promised_counts_for_a_quota_when_another_is_placed(
    driver: Driver, most: int, expected: Refusal | None
) -> None:
    driver.written.reconfigure(POOR, guaranteed={"vcore": 4}, max={"vcore": most})
    driver.written.node("n2", vcore=4)
    driver.ask("o")
    assert driver.preempt("p", "v3") is None
    assert expected is driver.allocate("o", "n2")


def test_its_own_promise_stands_in_nobodys_way(driver: Driver) -> None:
    driver.written.reconfigure(POOR, guaranteed={"vcore": 4}, max={"vcore": 2})
    driver.written.node("n2", vcore=4)
    assert driver.preempt("p", "v3") is None
    assert driver.allocate("p", "n2") is None
    assert {} == driver.written.state.nodes["n1"].reservations


@pytest.mark.parametrize(("most", "expected"), [(3, None), (2, Refusal.USER_LIMIT)])
def test_what_was_promised_counts_for_the_limit_of_the_user(
    driver: Driver, most: int, expected: Refusal | None
) -> None:
    limit = LimitConfig(users=("bob",), max_resources={"vcore": most})
    driver.written.reconfigure(POOR, guaranteed={"vcore": 4}, limits=(limit,))
    driver.ask("q")
    assert driver.preempt("p", "v3") is None
    assert expected is driver.preempt("q", "v2")


def test_room_is_promised_once(driver: Driver) -> None:
    """One is free and two go: `p` has two of that, `q` the third, and `r` has to have its own."""
    driver.written.node("n2", vcore=4)
    driver.ask("q", "r")
    assert driver.preempt("p", "v3", "v2") is None
    assert driver.preempt("q") is None
    assert driver.preempt("r") is Refusal.NODE_FULL
    assert driver.preempt("r", "v1") is None
    assert {"p", "q", "r"} == {key for _, key in driver.written.state.nodes["n1"].reservations}
    assert {"vcore": 4} == driver.written.state.nodes["n1"].promised


def test_a_promise_that_nothing_stands_behind(driver: Driver) -> None:
    """Where an ask has only to be placed, nobody keeps the node for it by this way."""
    driver.written.node("n2", vcore=4)
    assert driver.preempt("p", node="n2") is Refusal.PREEMPTION_REFUSED
    assert driver.allocate("p", "n2") is None


@pytest.mark.parametrize(("keep", "expected"), [(False, None), (True, Refusal.NODE_RESERVED)])
def test_nobody_who_waits_is_displaced_without_need(
    driver: Driver, *, keep: bool, expected: Refusal | None
) -> None:
    written = driver.written
    written.ask_back(uuid_of(written, "v3"), "giver")
    if keep:
        written.ask("w", "giver", vcore=2)
        written.reserve("w", "n1", "giver")
    assert expected is driver.preempt("p")


def test_each_repeat_has_one_promise(driver: Driver) -> None:
    driver.ask("twice", repeats=2)
    assert driver.preempt("twice", "v3", "v2") is None
    assert driver.preempt("twice") is None
    assert driver.preempt("twice") is Refusal.ASK_GONE
    assert 2 == driver.written.state.reservation_count
    assert driver.allocate("twice", "n1") is None
    assert 1 == driver.written.state.reservation_count


def test_promised_room_is_nobody_elses(driver: Driver) -> None:
    driver.ask("o")
    assert driver.preempt("p", "v3") is None
    assert driver.allocate("o", "n1") is Refusal.NODE_RESERVED
