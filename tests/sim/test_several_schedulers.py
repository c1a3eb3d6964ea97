"""Several schedulers plan for one partition, one after the other, in the order of one.

The checkers look after every message. At rest each replica is the truth, one scheduler has the
token, and that one has nothing left to decide. Where schedulers are to be in each other's way, each
plans as if it had the token (`contested`), and that they were is asserted.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import ranges
from contesting import contest
from faults import Killer, PlantedFault
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from listening import Listening
from moves import Move, scripts
from playing import Player
from support import APP, Lab, Races

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.machine import Effect
from yunikorn_actors.machines.planning_loop import PATIENCE_NS
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import CONTEXT, Delivery, Message
from yunikorn_actors.messages.scheduling import (
    ProposalRejected,
    ProposeAllocations,
    TokenPassed,
)
from yunikorn_actors.planning.stages.stage import OpenProposals, Owner
from yunikorn_actors.scenario.runner import RunOptions, run_file
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.state.proposals import Refusal
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.ids import scheduler_of

SCENARIOS = Path(__file__).parents[1] / "scenarios"
FILES = sorted(SCENARIOS.rglob("*.yaml"))
EVERY = 20
"""In the usual run one file of so many is run, and with two schedules."""
LOST = {Refusal.ASK_GONE, Refusal.ASK_PARKED, Refusal.GANG_HELD, Refusal.VICTIM_GONE}
"""What both decided: an ask placed or parked, a gang admitted, victims chosen."""
PARTS = 10
"""Of a slow range: all files with all seeds take most of an hour, and a part can be run alone."""


def in_parts(seeds: range, schedulers: int) -> list[Any]:
    return [
        pytest.param(FILES[part::PARTS], seeds, schedulers, marks=pytest.mark.slow)
        for part in range(PARTS)
    ]


@pytest.fixture
def contested(monkeypatch: pytest.MonkeyPatch) -> None:
    contest(monkeypatch)


# -- scenario files


@pytest.mark.parametrize(
    ("files", "seeds", "schedulers"),
    [
        pytest.param(FILES[::EVERY], (3,), 2, id="usual"),
        *in_parts(range(51), 2),
        *in_parts(range(51), 3),
        *in_parts(range(6), 4),
    ],
)
def test_every_scenario_holds(files: list[Path], seeds: range, schedulers: int) -> None:
    """All that they expect, not only what is checked in any order; and hardly two try the same."""
    shares, failed = run_all(files, seeds, schedulers)
    assert [] == failed
    assert schedulers == len(shares.proposed), "vacuous: one has proposed all"
    assert shares.refused.total() < 0.1 * shares.proposed.total()


@pytest.mark.usefixtures("contested")
@pytest.mark.parametrize(
    ("files", "seeds", "schedulers"),
    [
        pytest.param(FILES[::EVERY], (0, 5), 2, id="usual"),
        pytest.param(FILES, range(8), 2, id="two", marks=pytest.mark.slow),
        pytest.param(FILES, range(3), 3, id="three", marks=pytest.mark.slow),
    ],
)
def test_what_all_decide_is_committed_once(
    files: list[Path], seeds: range, schedulers: int
) -> None:
    shares, failed = run_all(files, seeds, schedulers)
    assert [] == failed
    assert LOST <= set(shares.refusals), "vacuous: they never decided the same"


class Shares(Races):
    """Counts what each scheduler has proposed, and what of it was refused."""

    def __init__(self) -> None:
        super().__init__()
        self.proposed: Counter[int] = Counter()
        self.refused: Counter[int] = Counter()

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        super().delivered(simulator, delivery)
        message = delivery.message
        if delivery.mailbox == CONTEXT and isinstance(message, ProposeAllocations):
            self.proposed.update(scheduler_of(it.proposal_id) for it in message.proposals)
        elif isinstance(message, ProposalRejected):
            self.refused[scheduler_of(message.proposal_id)] += 1


def run_all(files: list[Path], seeds: Iterable[int], schedulers: int) -> tuple[Shares, list[Any]]:
    shares = Shares()
    options = RunOptions(
        schedulers=schedulers, seeds=seeds, checkers=lambda: (*default_checkers(), shares)
    )
    failed = [(file.name, it.failures) for file in files if not (it := run_file(file, options)).ok]
    return shares, failed


# -- who proposes what


@pytest.mark.parametrize("schedulers", [2, 3, 4])
@ranges.each("number", 2, usual=1)
def test_each_has_its_share_of_the_work(schedulers: int, number: int) -> None:
    """As W3, at a small size: parents over leaves, and applications that all ask at once."""
    shares = Shares()
    leaves = "".join(f"{{name: l{leaf}}}, " for leaf in range(3))
    parents = "".join(f"{{name: p{parent}, queues: [{leaves}]}}, " for parent in range(4))
    config = f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', queues: [{parents}]}}]}}]"
    lab = Lab(seed=number, schedulers=schedulers, config=config, checkers=(shares,))
    lab.nodes(**{f"n{node}": 30 for node in range(30)})
    for app in range(36):
        lab.submit(f"app-{app}", queue=f"root.p{app % 4}.l{app % 3}")
    for app in range(36):
        lab.ask(*(f"{app}-{key}" for key in range(20)), app=f"app-{app}")
    lab.settle()
    assert 36 * 20 == len(lab.running())
    assert shares.refused.total() < 0.1 * shares.proposed.total()
    for scheduler in range(schedulers):
        mine = shares.proposed[scheduler] - shares.refused[scheduler]
        assert mine * 2 * schedulers >= 36 * 20, f"{scheduler} made {mine}"
    equal_schedulers(lab)


@ranges.each("number", 36, usual=4)
def test_who_runs_is_who_would_with_one(number: int) -> None:
    """Everything waits, then nodes come with too little room: the order alone decides."""
    first, *others = [crowd(number, schedulers) for schedulers in (1, 2, 3, 4)]
    assert first.waiting_count, "vacuous: there was room for all"
    assert [first.running()] * 3 == [it.running() for it in others]


class Crowd(Lab):
    waiting_count = 0


def crowd(number: int, schedulers: int) -> Crowd:
    dice = Random(number)  # noqa: S311 - a test material
    config = (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
        "{name: a, properties: {priority.offset: '2'}}, {name: b, queues: [{name: c}, "
        "{name: d, properties: {application.sort.policy: fair}}]}, "
        "{name: e, resources: {max: {vcore: 9m}}}]}]}]"
    )
    lab = Crowd(seed=number, schedulers=schedulers, config=config)
    leaves, total = ("root.a", "root.b.c", "root.b.d", "root.e"), 0
    for app in range(8):
        lab.submit(f"app-{app}", queue=leaves[app % 4])
    for app in range(8):
        for key in range(6):
            total += 1
            size, priority = dice.choice((1, 2, 3, 5)), dice.choice((0, 0, 1))
            lab.ask(f"{app}-{key}", vcore=size, app=f"app-{app}", priority=priority)
    lab.settle()
    lab.nodes(n1=20)
    lab.settle()
    lab.nodes(n2=13)
    lab.settle()
    lab.waiting_count = total - len(lab.running())
    return lab


@pytest.mark.parametrize("schedulers", [1, 2, 3, 4])
def test_each_decision_is_made_once(schedulers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, and though asks come while others are decided."""
    made: Counter[str] = Counter()
    next_id = OpenProposals.next_id

    def counted(open_proposals: OpenProposals, owner: Owner) -> int:
        made[type(owner).__name__] += 1
        return next_id(open_proposals, owner)

    monkeypatch.setattr(OpenProposals, "next_id", counted)
    shares = Shares()
    lab = Lab(seed=3, schedulers=schedulers, checkers=(shares,))
    lab.nodes(n1=200, n2=200)
    lab.submit("app-0", "app-1", "app-2")
    for key in range(60):
        lab.ask(f"{key}-a", f"{key}-b", app=f"app-{key % 3}")
        for _ in range(7):
            lab.simulator.step()
    lab.settle()
    assert 120 == len(lab.running()) == shares.proposed.total()
    assert {"Placer": 120} == made
    assert schedulers == len(shares.proposed), "vacuous: one has proposed all"


# -- one that does not decide


class Hanging:
    """A machine that handles nothing until it comes back; then all of it, in order."""

    def __init__(self, machine: Any) -> None:
        self._machine, self._handle = machine, machine.handle
        self._waiting: list[tuple[Message, int]] = []
        machine.handle = self._keep

    def _keep(self, message: Message, now_ns: int) -> list[Effect]:
        self._waiting.append((message, now_ns))
        return []

    def come_back(self) -> None:
        """With the next message; till then it knows nothing of what has come."""
        self._machine.handle = self._handle_all

    def _handle_all(self, message: Message, now_ns: int) -> list[Effect]:
        waiting = [*(message for message, _ in self._waiting), message]
        self._waiting.clear()
        self._machine.handle = self._handle
        return [effect for it in waiting for effect in self._handle(it, now_ns)]


def ask_of_all(lab: Lab, name: str) -> None:
    for number in range(6):
        lab.ask(f"{name}-{number}", app=f"app-{number}")
        lab.settle()


@pytest.fixture
def shares() -> Shares:
    return Shares()


@pytest.fixture
def three(shares: Shares, monkeypatch: pytest.MonkeyPatch) -> Lab:
    # They would find that the replica of one is not the truth at rest.
    monkeypatch.setattr("support.default_checkers", tuple)
    lab = Lab(schedulers=3, checkers=(shares,))
    lab.nodes(n1=100)
    lab.submit(*(f"app-{number}" for number in range(6)))
    lab.settle()
    return lab


def holders(lab: Lab) -> list[int]:
    return [at for at, it in enumerate(lab.schedulers) if it.loop.has_token]


def test_the_token_of_one_that_does_not_decide_is_claimed(three: Lab, shares: Shares) -> None:
    """After a while, by one; from then on it is left out, until it is back."""
    lab = three
    assert [0] == holders(lab)
    hanging = Hanging(lab.schedulers[0])
    ask_of_all(lab, "first")
    lab.advance(1.99)
    assert [] == lab.running(), "vacuous: it has decided"
    lab.advance(0.2)
    assert 6 == len(lab.running())
    assert 6 == shares.proposed.total(), "two of them have claimed it"
    ask_of_all(lab, "second")
    assert 12 == len(lab.running()), "it is known to be absent"
    hanging.come_back()
    ask_of_all(lab, "third")
    assert 18 == len(lab.running())
    shares.proposed.clear()
    ask_of_all(lab, "fourth")
    assert 24 == len(lab.running())
    assert 3 == len(shares.proposed), "one of them does not get the token"
    assert 1 == len(holders(lab))
    equal_schedulers(lab)
    assert {} == lab.leftovers()


def test_what_a_time_has_come_for_is_decided_without_the_token_too(three: Lab) -> None:
    """An ask keeps a node after a delay: as much later as the others wait."""
    lab = three
    lab.nodes(n2=100)
    lab.ask("small-1", "small-2", vcore=60, app="app-0")
    lab.settle()
    (holder,) = holders(lab)
    Hanging(lab.schedulers[holder])
    lab.ask("large", vcore=60, app="app-1")
    lab.settle()
    assert 2 * SECOND == PATIENCE_NS == Settings().reservation_delay_ns
    lab.advance(3.99)
    assert [] == reserved(lab)
    lab.advance(0.3)
    assert ["large"] == reserved(lab)


def reserved(lab: Lab) -> list[str]:
    return [it.key for node in lab.state.nodes.values() for it in node.reservations.values()]


def test_no_one_claims_what_is_decided_in_time() -> None:
    """An ask that waits is looked at by all, and there is nothing to decide."""
    claims = Claims()
    lab = Lab(schedulers=3, checkers=(claims,))
    lab.nodes(n1=4)
    lab.submit(APP)
    lab.ask("a", "b")
    lab.ask("large", vcore=9)
    for _ in range(5):
        lab.advance(2)
    assert ["a", "b"] == lab.running()
    assert claims.passed, "vacuous: the token stayed where it was"
    assert 0 == claims.claimed
    assert [False, False, False] == [it.planner.has_work for it in lab.schedulers]
    assert {} == lab.leftovers()


class Claims:
    def __init__(self) -> None:
        self.passed = self.claimed = 0

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT and isinstance(delivery.message, TokenPassed):
            self.passed += 1
            self.claimed += delivery.message.is_claimed


# -- random orders


@ranges.examples(4, 1_000)
@pytest.mark.parametrize("is_contested", [False, True])
def test_whatever_the_resource_manager_says(
    examples: int, is_contested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_contested:
        contest(monkeypatch)
    refusals: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @seed(1)
    @given(scripts(60), st.integers(0, 2**32 - 1), st.sampled_from((2, 3)), st.booleans())
    def play(script: list[Move], number: int, schedulers: int, at_once: bool) -> None:
        nonlocal refusals
        player = Player("proposing", number, schedulers=schedulers, confirms_at_once=at_once)
        for move in script:
            player.play(move)
        player.take_everything_back()
        assert {} == player.leftovers()
        assert [] == player.simulator.callback_errors
        refusals += player.races.refusals

    play()
    assert not is_contested or refusals[Refusal.ASK_GONE] > examples


# -- what both decide


def equal_schedulers(lab: Lab) -> None:
    for scheduler in lab.schedulers:
        assert snapshot(lab.state) == snapshot(scheduler.replica)
        assert [] == scheduler.planner.unresolved


def test_one_ask_is_proposed_once() -> None:
    lab = Lab(schedulers=2)
    lab.nodes(n1=50, n2=50)
    lab.submit(APP)
    lab.ask(*(f"a{number}" for number in range(60)))
    lab.settle()
    assert 60 == len(lab.running())
    assert {} == lab.races.refusals
    equal_schedulers(lab)


@pytest.mark.usefixtures("contested")
def test_one_ask_is_placed_once_and_one_proposal_refused_for_each() -> None:
    """First in, first out both decide the same: this would be the price without a token."""
    lab = Lab(schedulers=2)
    lab.nodes(n1=50, n2=50)
    lab.submit(APP)
    lab.settle()
    lab.ask(*(f"a{number}" for number in range(60)))
    lab.settle()
    assert sorted(f"a{number}" for number in range(60)) == lab.running()
    assert {Refusal.ASK_GONE: 60} == lab.races.refusals
    equal_schedulers(lab)
    assert {} == lab.leftovers()


@pytest.mark.parametrize("number", range(6))
def test_a_state_is_told_once(number: int) -> None:
    """Whoever has the token finds out that an ask waits, and why, also when one was replaced."""
    killer = Killer(5)
    lab = Lab(
        seed=number, schedulers=2, rm=Listening(), checkers=(killer,),
        replaced_for=(PlantedFault,),
    )  # fmt: skip
    lab.nodes(n1=3)
    lab.submit(APP)
    lab.ask("a", "b", "c", "d")
    lab.ask("large", vcore=99)
    lab.settle()
    lab.release("a")
    lab.ask("e")
    lab.settle()
    assert 1 == len(killer.killed), "vacuous: nothing failed"
    told: dict[str, list[str]] = {}
    for key, state in lab.rm.told("container"):
        told.setdefault(key, []).append(state)
    repeated = {key: it for key, it in told.items() if any(x == y for x, y in pairwise(it))}
    assert {} == repeated
    assert "FAILED" in told["large"]
    equal_schedulers(lab)


def test_one_of_them_answers() -> None:
    lab = Lab(schedulers=3)
    lab.nodes(n1=4)
    lab.submit(APP)
    lab.ask("large", vcore=9)
    lab.settle()
    assert "large" == lab.simulator.explain(APP, "large").key
    assert {} == lab.partition.explaining


# -- one of them fails


def kill(lab: Lab, address: str) -> None:
    machine: Any = lab.simulator.machines[address]

    def fail(*_: object) -> None:
        raise PlantedFault(address)

    machine.handle = fail


@pytest.mark.parametrize("place", [0, 1])
def test_the_place_of_one_that_fails_is_taken(place: int) -> None:
    """Whichever it is: the others go on meanwhile, and questions are answered once."""
    lab = Lab(schedulers=2, replaced_for=(PlantedFault,))
    lab.nodes(n1=4)
    lab.submit(APP)
    lab.ask("large", vcore=9)
    lab.settle()
    first, second = lab.partition.schedulers.values()
    kill(lab, (first, second)[place])
    lab.ask("a")
    assert "large" == lab.simulator.explain(APP, "large").key
    lab.settle()
    heirs = list(lab.partition.schedulers.values())
    assert [0, 1, 2] == sorted({*lab.partition.schedulers, place}), "numbers are never given again"
    assert (first, second)[1 - place] == heirs[1 - place]
    assert (first, second)[place] not in lab.simulator.machines
    lab.node("n1", si.ActionFromRM.UPDATE, 10)
    lab.settle()
    assert ["a", "large"] == lab.running()
    equal_schedulers(lab)
    assert {} == lab.leftovers()


@pytest.mark.parametrize("late", [False, True])
def test_nothing_is_lost_whichever_message_one_fails_at(late: bool) -> None:
    wanted = sorted(f"a{number}" for number in range(8))
    position = 0
    while True:
        position += 3
        killer = Killer(position, late=late)
        lab = Lab(seed=2, schedulers=2, checkers=(killer,), replaced_for=(PlantedFault,))
        lab.nodes(n1=6, n2=6)
        lab.submit(APP)
        lab.ask(*wanted[:4])
        lab.settle()
        lab.ask(*wanted[4:])
        lab.settle()
        if not killer.killed:
            break
        assert wanted == lab.running(), killer.killed
        equal_schedulers(lab)
        assert {} == lab.leftovers()
    assert position > 30, "vacuous: hardly a message was a last one"


# -- predicates


class Choosy(Listening):
    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[tuple[str, str]] = Counter()

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        self.asked[args.allocation_key, args.node_id] += 1
        return "not here" if args.node_id == "n1" else None


@pytest.mark.parametrize("number", range(6))
def test_one_asks_and_an_ask_is_placed_once(number: int) -> None:
    rm = Choosy()
    lab = Lab(seed=number, schedulers=2, rm=rm)
    lab.nodes(n1=4, n2=4)
    lab.submit(APP)
    lab.ask("a", "b", "c")
    lab.settle()
    assert ["a", "b", "c"] == lab.running()
    assert {"n2"} == {node for _, node in rm.told("new")}
    assert 1 == max(rm.asked.values()), "all learn of what was refused to one"
    assert {} == lab.races.refusals
    equal_schedulers(lab)
    assert {} == lab.leftovers()


@pytest.mark.usefixtures("contested")
def test_two_that_ask_for_the_same_place_it_once() -> None:
    """Both have a yes for the same ask: Context takes the first."""
    refusals: Counter[str] = Counter()
    for number in range(6):
        rm = Choosy()
        lab = Lab(seed=number, schedulers=2, rm=rm)
        lab.nodes(n1=4, n2=4)
        lab.submit(APP)
        lab.ask("a", "b", "c")
        lab.settle()
        assert ["a", "b", "c"] == lab.running()
        assert {"n2"} == {node for _, node in rm.told("new")}
        assert max(rm.asked.values()) <= 2, "more often than there are schedulers"
        equal_schedulers(lab)
        assert {} == lab.leftovers()
        refusals += lab.races.refusals
    assert refusals[Refusal.ASK_GONE], "vacuous: both had a yes for the same ask"
