"""What each strategy promises: that it finds, that it can be repeated, and when it has tried all."""

from pathlib import Path

import pytest

from yunikorn_actors.drivers.simulator.choosers import Channel
from yunikorn_actors.lab.case import Case, read_case
from yunikorn_actors.lab.explore import Budget, Options, Report, Runs, Search
from yunikorn_actors.lab.harness import World
from yunikorn_actors.lab.run_schedule import explore, play
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.schedules.strategies import (
    STRATEGIES,
    Delaying,
    Lot,
    Pct,
    Pos,
    Uniform,
    schedules_of,
)
from yunikorn_actors.lab.tapes.tape import Entry, parse_tape

SCENARIOS = Path(__file__).parents[1] / "scenarios"
GANG = SCENARIOS / "gang-disturbances"


@pytest.fixture
def case(small: str) -> Case:
    return read_case(Path(small))


def searched(case: Case, strategy: str, runs: int, depth: int = 2) -> Report:
    options = Options(strategy=strategy, depth=depth, budget=Budget(runs=runs), shrinks=False)
    return Search(case, options).run()


@pytest.mark.usefixtures("nodes_unchecked")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_finds_a_race(case: Case, strategy: str) -> None:
    finding = searched(case, strategy, 200).finding
    assert finding is not None
    assert finding.run > 0, "vacuous: it fails in any order"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_each_plays_is_a_tape_that_gives_the_same_run(strategy: str) -> None:
    case = read_case(min(GANG.glob("*.yaml")))
    orders = set()
    for schedulers in (1, 2):
        runs = Runs(case=case.on("proposing", schedulers), options=Options(strategy=strategy))
        runs = Runs(case=runs.case, options=runs.options, length=runs.play(0).length)
        for number in (1, 45):
            tape = runs.tape(number)
            assert schedulers == tape.schedulers
            played = play(runs.case, parse_tape(str(tape)))
            assert runs.play(number).order == played.order()
            orders.add(played.order())
    assert len(orders) == 4, "vacuous: hardly anything was disturbed"


# -- pct


@pytest.mark.usefixtures("nodes_unchecked")
def test_pct_keeps_its_guarantee(case: Case) -> None:
    """Two events have to come in one order: 1 in n * k runs at least, by Burckhardt et al."""
    length = play(case, case.tape()).length
    outcomes = [
        explore(case, Pct(Draw(7, run), length, 2), Options().checkers()) for run in range(120)
    ]
    channels = {(it.sender, it.mailbox) for outcome in outcomes for it in outcome.deliveries}
    found = sum(not outcome.ok for outcome in outcomes)
    assert found / len(outcomes) >= 1 / (len(channels) * length)


class Noted:
    """Remembers what a schedule chose, and among how many channels."""

    watched: frozenset[str] | None = frozenset()

    def __init__(self, schedule: Pct | Pos | Uniform | Delaying) -> None:
        self._schedule = schedule
        self.chosen: list[tuple[Channel | Entry | None, tuple[Channel, ...]]] = []

    def choose(self, world: World) -> Channel | Entry | None:
        channels = tuple(world.deliverable())
        self.chosen.append((self._schedule.choose(world), channels))
        return self.chosen[-1][0]

    def happened(self, event: str) -> None:
        self._schedule.happened(event)

    def confirmation(self, name: str) -> str:
        return self._schedule.confirmation(name)


def reversals(noted: Noted, events: slice) -> int:
    """Count pairs of channels of which now the one came first and now the other."""
    ahead: set[tuple[Channel, Channel]] = set()
    for choice, channels in noted.chosen[events]:
        if isinstance(choice, tuple):
            ahead |= {(choice, other) for other in channels if other != choice}
    return sum((b, a) in ahead for a, b in ahead) // 2


def test_pct_is_strict_but_for_its_demotions_and_fair_in_the_end(case: Case) -> None:
    length = play(case, case.tape()).length
    strict = fair = 0
    for run in range(20):
        never = Noted(Pct(Draw(3, run), length, 1))
        explore(case, never)
        strict += reversals(never, slice(length))
        early = Noted(Pct(Draw(3, run), 5, 1))
        explore(case, early)
        fair += reversals(early, slice(5, None))
    assert 0 == strict
    assert fair > 0


def test_each_demotion_changes_the_order(case: Case) -> None:
    length = play(case, case.tape()).length
    turned = []
    for depth in (2, 8):
        notes = [Noted(Pct(Draw(3, run), length, depth)) for run in range(20)]
        for noted in notes:
            explore(case, noted)
        turned.append(sum(reversals(noted, slice(length)) for noted in notes))
    assert 0 < turned[0] < turned[1]


# -- pos


class Drawing(Draw):
    """Counts what is drawn."""

    def __init__(self) -> None:
        super().__init__(5)
        self.drawn = 0
        share = self.share

        def counted() -> float:
            self.drawn += 1
            return share()

        self.share = counted


def test_only_those_who_race_draw_again(case: Case) -> None:
    draw = Drawing()
    noted = Noted(Pos(draw))
    explore(case, noted)
    raced = 0
    for choice, channels in noted.chosen:
        if isinstance(choice, tuple):
            raced += sum(it[1] == choice[1] for it in channels if it != choice)
    chosen = sum(isinstance(choice, tuple) for choice, _ in noted.chosen)
    assert raced > 0, "vacuous: nobody raced"
    assert chosen + raced == draw.drawn


# -- delays


@pytest.mark.parametrize(("length", "depth"), [(1, 1), (5, 2), (4, 3), (3, 5)])
def test_each_combination_of_delays_has_one_number(length: int, depth: int) -> None:
    total = schedules_of("delay", length, depth)
    assert total is not None
    lots = [Lot(number, Draw(1), length, depth) for number in range(total)]
    delays = [STRATEGIES["delay"](lot)._delays for lot in lots]  # type: ignore[attr-defined]
    assert {} == delays[0]
    assert total == len({tuple(sorted(it.items())) for it in delays})
    assert sorted(map(len, delays)) == list(map(len, delays)), "the cheapest come first"
    assert all(0 <= event < length for it in delays for event in it)
    with pytest.raises(IndexError):
        STRATEGIES["delay"](Lot(total, Draw(1), length, depth))


def test_delays_come_to_an_end_and_that_is_said(case: Case) -> None:
    length = play(case, case.tape()).length
    total = 1 + 2 * length
    report = searched(case, "delay", 10_000, depth=1)
    assert total == report.runs
    assert f"at most 1 delays among the first {length} messages" in report.exhausted
    assert "" == searched(case, "delay", total - 1, depth=1).exhausted
    assert "" == searched(case, "uniform", 5).exhausted


def test_without_delays_nothing_is_disturbed(case: Case) -> None:
    undisturbed = play(case, case.tape())
    assert undisturbed.digest() == explore(case, Delaying({})).digest()


def test_a_long_delay_comes_behind_a_step_and_a_short_one_before_it(case: Case) -> None:
    names = [type(it.message).__name__ for it in play(case, case.tape()).deliveries]
    event = names.index("ProposeAllocations")
    for is_long in (False, True):
        played = explore(case, Delaying({event: is_long})).deliveries
        types = [type(it.message).__name__ for it in played]
        before = [it.stimulus for it in played[: types.index("ProposeAllocations")]]
        assert is_long is ("step 4" in before)


def test_a_short_delay_comes_behind_what_is_under_way(case: Case) -> None:
    undisturbed = Noted(Delaying({}))
    explore(case, undisturbed)
    turned = 0
    delivered = [it for it in undisturbed.chosen if isinstance(it[0], tuple)]
    for event, (choice, channels) in enumerate(delivered):
        delayed = Noted(Delaying({event: False}))
        explore(case, delayed)
        following = [it for it, _ in delayed.chosen if isinstance(it, tuple)][event:]
        assert set(channels) - {choice} <= set(following[: following.index(choice)])
        turned += len(channels) > 1
    assert turned > 5, "vacuous"
