"""The choice where hard and soft gangs, single work, priorities, fences and guarantees are mixed.

As in `test_gang_choice.py` an integer program finds the optimum in another way: most asks served,
then the fewest applications, the least important, the least work lost. Here single work serves
too, what is more important than the ask stays, some work is bound to its node, and one queue lies
behind a fence. Some work opted out, which counts after all of that.
"""

import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import pytest
import ranges
from ganging import priority_of
from msgspec.structs import replace
from written import Written

from yunikorn_actors.planning.preemption import gang_choice, gang_packing
from yunikorn_actors.planning.preemption.claimant import (
    Claimant,
    Victim,
    candidates_on,
    room_on,
    whole_applications,
)
from yunikorn_actors.planning.preemption.gang_choice import Choice, Gang, gang_of
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import ExpectedUsage
from yunikorn_actors.planning.preemption.victim_units import Units
from yunikorn_actors.state.allocations import Allocation

NEAR = ("root.fence.one", "root.fence.two")
FAR, ASKING = "root.far", "root.fence.asking"
QUEUES = ("root.fence.one", "root.fence.two", FAR, ASKING)
NOW_NS = 100_000_000_000
STYLES, SINGLE = ("Hard", "Hard", "Hard", "Soft", ""), ("Soft", "")
PRIORITY = 2
"""Of the ask: what has a greater one stays."""
Quality = tuple[int, int, int, int]
NOBODY = (0, 0, 0, 0)


class Drawn(NamedTuple):
    written: Written
    claimant: Claimant
    rooms: dict[str, dict[str, int]]
    gangs: list[Gang]
    singles: dict[str, list[Victim]]
    size: int
    count: int
    spare: dict[str, int]
    """How much each queue that has a guarantee may give."""
    most: int
    """How many asks the guarantee of the asking queue has room for."""
    kept: list[str]
    """Hard gangs that may not go, as a part of them may not."""
    quota: int | None
    """How much the queue above the asking one and those near it has room for, if it has a quota."""


def draw(
    seed: int, most: int = 12, *, has_quota: bool = False, styles: Sequence[str] = STYLES
) -> Drawn:
    rng = random.Random(seed)  # noqa: S311 - which states, no secrets
    opts_out = random.Random(f"opts out {seed}")  # noqa: S311
    made = Written(FAR)
    made.queue("root.fence", leaf=False, properties={"preemption.policy": "fence"})
    for path in (*NEAR, ASKING):
        made.queue(path)
    nodes = [f"n{number}" for number in range(rng.randint(1, 4))]
    plan: list[tuple[str, str, int]] = []
    for number in range(rng.randint(2, most)):
        style = rng.choice(styles)
        sizes = [rng.randint(1, 3) for _ in range(rng.randint(1, 4))]
        name = f"app-{number}"
        gang = {"placeholder_ask": {"vcore": sum(sizes)}, "gang_style": style} if style else {}
        made.add(name, queue=rng.choice((*NEAR, *NEAR, FAR)), **gang)
        plan += [(name, rng.choice(nodes), size) for size in sizes]
    used = dict.fromkeys(nodes, 0)
    for _, node, size in plan:
        used[node] += size
    for node in nodes:
        made.node(node, vcore=used[node] + rng.randint(0, 2) + 1)
    in_queue: dict[str, int] = {}
    for number, (name, node, size) in enumerate(plan):
        app = made.application(name)
        # A group is known by its placeholders, so the first of a gang is one still.
        group = {"task_group": "g", "placeholder": not app.allocations} if app.spec.is_gang else {}
        uuid = made.recover(f"w-{number}", node, name, vcore=size, **group)
        held = app.allocations[uuid]
        held.allocated_ns = NOW_NS - rng.randint(1, 5) * 10_000_000_000
        bound = node if rng.random() < 0.03 else ""
        priority = rng.choice((0, 0, 1, 1, 2, 2, 2, 2, 3))
        willing = opts_out.random() < 0.8
        held.spec = replace(
            held.spec, priority=priority, required_node=bound, allow_preempt_self=willing
        )
        in_queue[app.queue.path] = in_queue.get(app.queue.path, 0) + size
    spare: dict[str, int] = {}
    for path in NEAR:
        has = in_queue.get(path, 0)
        if has and rng.random() < 0.6:
            spare[path] = rng.randint(0, has - 1)
            made.reconfigure(path, guaranteed={"vcore": has - spare[path]})
    size, count = rng.randint(1, 5), rng.randint(1, 8)
    claim = rng.randint(1, 12)
    quota = _draw_quota(made, seed, size * count) if has_quota else None
    made.reconfigure(ASKING, guaranteed={"vcore": claim * size})
    made.add("asks", queue=ASKING)
    made.ask("a", "asks", vcore=size, priority=PRIORITY)
    state = made.state
    spec = made.application("asks").asks["a"].spec
    claimant = Claimant(state, ExpectedUsage(), Throttle(state, NOW_NS), state.queues[ASKING], spec)
    units = Units()
    rooms = {node.id: room_on(node, node.available) for node in state.nodes.values()}
    gangs = [gang_of(state, it, NOW_NS) for it in whole_applications(state, claimant, units)]
    singles = {
        node.id: candidates_on(state, node, claimant, units) for node in state.nodes.values()
    }
    hard = [app for app in state.applications.values() if app.spec.is_hard and app.spec.is_gang]
    kept = [it.id for it in hard if not all(map(_may_go, it.allocations.values()))]
    may_go = {it.id for it in hard if it.queue.path != FAR} - {*kept}
    assert {it.victim.allocations[0].spec.application_id for it in gangs} == may_go
    return Drawn(
        made, claimant, rooms, gangs, singles, size, count, spare, min(count, claim), kept, quota
    )  # fmt: skip


def _draw_quota(made: Written, seed: int, most: int) -> int:
    """Let so much into the queue above the asking one and those near it."""
    rng = random.Random(f"quota {seed}")  # noqa: S311
    quota = rng.randint(0, most)
    used = made.state.queues["root.fence"].allocated.get("vcore", 0)
    fenced = {"preemption.policy": "fence"}
    made.reconfigure("root.fence", max={"vcore": used + quota}, properties=fenced)
    return quota


def _may_go(allocation: Allocation) -> bool:
    return allocation.spec.priority <= PRIORITY and not allocation.spec.required_node


Sizes = list[tuple[int, int]]
"""How large the asks of a claimant are, and how many there are of each."""


def optimum(it: Drawn, sizes: Sizes | None = None) -> Quality:
    """Of asks alike as many as may be are served; of a gang of several sizes all of it or none."""
    is_gang, sizes = sizes is not None, sizes or [(it.size, it.most)]
    optimize = pytest.importorskip("scipy.optimize")
    numpy = pytest.importorskip("numpy")
    gangs, nodes = it.gangs, list(it.rooms)
    singles = [victim for found in it.singles.values() for victim in found]
    victims = [*(gang.victim for gang in gangs), *singles]
    places = {
        (node, size): len(victims) + at
        for at, (node, (size, _)) in enumerate(product(nodes, sizes))
    }
    width = len(victims) + len(places) + 1
    rows: list[list[float]] = []
    uppers: list[float] = []

    def bound(entries: dict[int, float], upper: float) -> None:
        row = [0.0] * width
        for at, value in entries.items():
            row[at] = value
        rows.append(row)
        uppers.append(upper)

    for node in nodes:
        freed = {at: -float(v.on(node).get("vcore", 0)) for at, v in enumerate(victims)}
        used = {places[node, size]: float(size) for size, _ in sizes}
        bound({**freed, **used}, it.rooms[node].get("vcore", 0))
    for size, number in sizes:
        bound({places[node, size]: 1.0 for node in nodes}, number)
    served = width - 1
    bound({served: 1.0, **dict.fromkeys(range(len(victims), served), -1.0)}, 0)
    if it.quota is not None:
        near = {
            at: -float(v.resource["vcore"]) for at, v in enumerate(victims) if v.leaf.path in NEAR
        }
        bound({**near, **{at: float(size) for (_, size), at in places.items()}}, it.quota)
    for path, most in it.spare.items():
        of = {at: float(v.resource["vcore"]) for at, v in enumerate(victims) if v.leaf.path == path}
        bound(of, most)

    def solve(cost: dict[int, float], usable: list[bool]) -> int | None:
        free = [1.0] * len(singles) + [100.0] * len(places)
        found: Any = optimize.milp(
            [cost.get(at, 0.0) for at in range(width)],
            constraints=optimize.LinearConstraint(numpy.array(rows), -numpy.inf, uppers),
            integrality=numpy.ones(width),
            options={"mip_rel_gap": 0},
            bounds=optimize.Bounds(numpy.zeros(width), [*map(float, usable), *free, wanted]),
        )
        return round(found.fun) if found.status == 0 else None

    wanted, everything = sum(number for _, number in sizes), [True] * len(gangs)
    most = -(solve({served: -1.0}, everything) or 0)
    if is_gang and most < wanted:
        return NOBODY
    bound({served: -1.0}, -most)
    ones = dict.fromkeys(range(len(gangs)), 1.0)
    number = solve(ones, everything) or 0
    if not number:
        return most, 0, 0, 0
    bound(ones, number)
    return most, number, *_least(gangs, lambda usable: solve(ones, usable), solve)


def _least(
    gangs: list[Gang],
    is_enough: Callable[[list[bool]], int | None],
    solve: Callable[[dict[int, float], list[bool]], int | None],
) -> tuple[int, int]:
    """Of so many gangs: the least important, and of these the least work that is lost."""
    for priority in sorted({priority_of(gang) for gang in gangs}):
        usable = [priority_of(gang) <= priority for gang in gangs]
        if is_enough(usable) is not None:
            work = solve({at: float(g.work // 1_000) for at, g in enumerate(gangs)}, usable)
            assert work is not None
            return priority, work
    raise AssertionError("so many gangs were enough before")


def chosen(it: Drawn) -> Quality:
    choice = Choice(it.claimant, it.rooms, lambda node: it.singles.get(node, []), it.count)
    victims = choice.of(it.gangs)
    gone = [gang for gang in it.gangs if gang.victim in victims]
    worth = choice._worth(gone)
    assert worth is not None
    return (
        worth.served,
        len(gone),
        max((priority_of(gang) for gang in gone), default=0),
        sum(gang.work // 1_000 for gang in gone),
    )


def going(it: Drawn) -> tuple[Allocation, ...]:
    """What the search does for asks one after the other with what was chosen for all of them."""
    made = it.written
    made.replace("a", "asks", repeats=it.count, vcore=it.size, priority=PRIORITY)
    model = made.planner.model
    return made.planner.preemptor.would_go(model.app_of("asks").asks["a"], NOW_NS)


def would_go(it: Drawn) -> Quality:
    made, victims, places = it.written, going(it), 0
    for node, room in it.rooms.items():
        freed = sum(v.resource["vcore"] for v in victims if v.node_id == node)
        places += (room.get("vcore", 0) + freed) // it.size
    if it.quota is not None:
        freed = sum(
            v.resource["vcore"]
            for v in victims
            if made.application(v.spec.application_id).queue.path in NEAR
        )
        places = min(places, (it.quota + freed) // it.size)
    return (min(places, it.most), *_lost(it, {victim.uuid for victim in victims}))


Beside = tuple[int, int, int, int]
"""Whether any single work opted out, how many go, how important the greatest is, and its work."""


def least_beside(it: Drawn, victims: Sequence[Allocation], served: int) -> Beside:
    """Find the least single work with which the same gangs serve so many asks."""
    optimize = pytest.importorskip("scipy.optimize")
    numpy = pytest.importorskip("numpy")
    gone = [g.victim for g in it.gangs if g.victim.allocations[0] in victims]
    absorbed = {victim.allocations[0].spec.application_id for victim in gone}
    found = [gang_of(it.written.state, v, NOW_NS) for its in it.singles.values() for v in its]
    singles = [
        one for one in found if one.victim.allocations[0].spec.application_id not in absorbed
    ]
    nodes, ones, places = list(it.rooms), [1.0] * len(singles), [0.0] * len(it.rooms)
    rows: list[list[float]] = []
    uppers: list[float] = []

    def bound(amount: Callable[[Victim], int], here: list[float], most: int, sign: int) -> None:
        """What goes frees at least, or takes from its queue at most."""
        rows.append([float(sign * amount(one.victim)) for one in singles] + here)
        uppers.append(most - sign * sum(map(amount, gone)))

    for at, node in enumerate(nodes):
        here = [float(it.size * (at == other)) for other in range(len(nodes))]
        bound(lambda v, n=node: v.on(n).get("vcore", 0), here, it.rooms[node].get("vcore", 0), -1)
    rows.append([0.0] * len(singles) + [-1.0] * len(nodes))
    uppers.append(-served)
    if it.quota is not None:
        most = it.quota - served * it.size
        bound(lambda v: v.resource["vcore"] * (v.leaf.path in NEAR), places, most, -1)
    for path, most in it.spare.items():
        bound(lambda v, p=path: v.resource["vcore"] * (v.leaf.path == p), places, most, 1)

    def solve(cost: list[float], usable: list[bool]) -> int | None:
        result: Any = optimize.milp(
            cost + places,
            constraints=optimize.LinearConstraint(numpy.array(rows), -numpy.inf, uppers),
            integrality=numpy.ones(len(cost + places)),
            options={"mip_rel_gap": 0},
            bounds=optimize.Bounds(
                numpy.zeros(len(cost + places)), [*usable, *[100.0] * len(nodes)]
            ),
        )
        return round(result.fun) if result.status == 0 else None

    opted_out = [float(not it.victim.allocations[0].spec.allow_preempt_self) for it in singles]
    all_may = [True] * len(singles)
    least: list[int] = []
    # First the fewest that opted out, then the fewest of all.
    for cost in (opted_out, ones):
        number = solve(cost, all_may)
        assert number is not None, "so many were served"
        least.append(number)
        rows.append(cost + places)
        uppers.append(number)
    for priority in range(PRIORITY + 1):
        usable = [priority_of(one) <= priority for one in singles]
        work = solve([float(one.work // 1_000) for one in singles], usable)
        if work is not None:
            return least[0], least[1], priority if least[1] else 0, work
    raise AssertionError("some of them are enough")


def beside(it: Drawn, victims: Sequence[Allocation]) -> Beside:
    absorbed = {
        g.victim.allocations[0].spec.application_id
        for g in it.gangs
        if g.victim.allocations[0] in victims
    }
    going = [one for one in victims if one.spec.application_id not in absorbed]
    state = it.written.state
    return (
        sum(not one.spec.allow_preempt_self for one in going),
        len(going),
        max((one.spec.priority for one in going), default=0),
        sum(gang_of(state, Victim(state, (one,)), NOW_NS).work // 1_000 for one in going),
    )


def gang_of_sizes(it: Drawn, seed: int) -> Sizes:
    """Put a gang of several task groups in the place of the ask; it may claim all that it needs."""
    rng, made = random.Random(f"gang {seed}"), it.written  # noqa: S311 - which states, no secrets
    sizes = {rng.randint(1, 5): rng.randint(1, 3) for _ in range(rng.choice((1, 2, 2, 3)))}
    total = sum(size * number for size, number in sizes.items())
    made.withdraw("a", "asks")
    it.claimant.withdraw()
    made.reconfigure(ASKING, guaranteed={"vcore": total})
    made.add("gang", queue=ASKING, placeholder_ask={"vcore": total}, gang_style="Hard")
    for size, number in sizes.items():
        made.ask(
            f"g{size}", "gang", vcore=size, repeats=number, priority=PRIORITY,
            placeholder=True, task_group=f"t{size}", allow_preempt_other=True,
        )  # fmt: skip
    made.admit("gang")
    return list(sizes.items())


def would_go_for_gang(it: Drawn) -> Quality:
    planner = it.written.planner
    found = planner.preemptor._claims.find(planner.model.app_of("gang"), NOW_NS).found
    if found is None:
        return NOBODY
    going = {victim.uuid for _, solution in found for victim in solution.victims}
    return (len(found), *_lost(it, going))


def _lost(it: Drawn, going: set[str]) -> tuple[int, int, int]:
    gone = [gang for gang in it.gangs if gang.victim.allocations[0].uuid in going]
    assert all(part.uuid in going for gang in gone for part in gang.victim.allocations)
    return (
        len(gone),
        max((priority_of(gang) for gang in gone), default=0),
        sum(gang.work // 1_000 for gang in gone),
    )


@ranges.seeds(1000, usual=10)
def test_the_choice_is_the_optimum(seeds: range) -> None:
    hurt = kept = 0
    for seed in seeds:
        it = draw(seed)
        best = optimum(it)
        assert chosen(it) == best, f"seed {seed}"
        assert would_go(it) == best, f"seed {seed}"
        hurt += best[1]
        kept += len(it.kept)
    assert hurt > len(seeds) / 5, "vacuous: hardly anything has to go"
    assert kept > len(seeds) / 2, "vacuous: hardly anything may not go"


@ranges.seeds(1000, usual=10)
def test_the_choice_is_the_optimum_within_a_quota(seeds: range) -> None:
    """A quota that lets nothing more in makes single work go as a full node does."""
    hurt = short = 0
    for seed in seeds:
        it = draw(seed, has_quota=True)
        best = optimum(it)
        assert chosen(it) == best, f"seed {seed}"
        assert would_go(it) == best, f"seed {seed}"
        hurt += best[1]
        short += it.quota is not None and it.quota < best[0] * it.size
    assert hurt > len(seeds) / 5, "vacuous: hardly anything has to go"
    assert short > len(seeds) / 5, "vacuous: hardly a quota is in the way"


@pytest.mark.parametrize("has_quota", [False, True])
@pytest.mark.parametrize("styles", [STYLES, SINGLE])
@ranges.seeds(1000, usual=5)
def test_of_the_single_work_the_least_goes(
    seeds: range, styles: Sequence[str], has_quota: bool
) -> None:
    """Each ask by itself would take what is best for it, and all together more than they need."""
    several = 0
    for seed in seeds:
        it = draw(seed, has_quota=has_quota, styles=styles)
        victims, served = going(it), optimum(it)[0]
        found = beside(it, victims)
        # One ask alone takes what is best by its own order.
        if it.most > 1:
            assert found == least_beside(it, victims, served), f"seed {seed}"
        several += served > 1 and found[1] > 0
    assert several > len(seeds) / 8, "vacuous: hardly any single work goes for several asks"


@pytest.mark.parametrize("seed", [100, 116, 233, 360, 442, 851])
def test_other_single_work_than_in_order_serves_more(seed: int) -> None:
    """A guarantee lets only a part of it go: in order more gangs went, or fewer were served."""
    it = draw(seed)
    assert chosen(it) == would_go(it) == optimum(it)


@pytest.mark.parametrize("seed", [90530, 90573])
def test_what_a_gang_frees_is_used_before_single_work_goes(seed: int) -> None:
    """Single work that went first used up what its queue gives: fewer asks were served."""
    it = draw(seed)
    assert chosen(it) == would_go(it) == optimum(it)


def test_beyond_the_bound_of_steps_single_work_goes_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gang_choice, "STEPS_MAX", 0)
    worse = 0
    for seed in (100, 116, 233, 360, 442, 851):
        it = draw(seed)
        found, best = chosen(it), optimum(it)
        assert best[0] - 1 <= found[0] <= best[0], f"seed {seed}"
        worse += found != best
    assert worse == 6, "vacuous: in order would do as well"


@pytest.mark.parametrize("has_quota", [False, True])
@ranges.seeds(1000, usual=6)
def test_for_a_gang_of_several_sizes_the_optimum_goes(seeds: range, has_quota: bool) -> None:
    """All of its sizes find room together, or nothing goes."""
    hurt = served = several = 0
    for seed in seeds:
        it = draw(seed, has_quota=has_quota)
        sizes = gang_of_sizes(it, seed)
        best = optimum(it, sizes)
        assert would_go_for_gang(it) == best, f"seed {seed}: {sizes}"
        hurt += best[1]
        served += best[0] > 0
        several += best[0] > 0 and len(sizes) > 1
    assert min(hurt, served) > len(seeds) / 10, "vacuous: hardly anything has to go"
    assert several > len(seeds) / 10, "vacuous: hardly a gang of several sizes is served"


@pytest.mark.parametrize(
    "seed",
    ranges.first([
        9, 24, 90011, 90037, 90094, 90179, 90398, 90425, 90456, 90541, 90544, 90570, 90670, 90713,
        90750, 90815, 90927, 90945,
    ], 6),
)  # fmt: skip
def test_all_sizes_of_a_gang_are_packed_together(seed: int) -> None:
    """What was best for each size by itself hurt more gangs, lost more work, or left no room."""
    it = draw(seed)
    sizes = gang_of_sizes(it, seed)
    assert would_go_for_gang(it) == optimum(it, sizes)


def test_beyond_the_bound_a_gang_of_several_sizes_is_served_in_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gang_packing, "LOOKS_MAX", 0)
    worse = 0
    for seed in (9, 24, 90011, 90037, 90094, 90398, 90544, 90670):
        it = draw(seed)
        sizes = gang_of_sizes(it, seed)
        best, found = optimum(it, sizes), would_go_for_gang(it)
        assert found[0] in {0, best[0]}, f"seed {seed}"
        worse += found != best
    assert 0 < worse < 8, "vacuous: the bound makes no difference, or nothing is found"


def test_beyond_the_bound_of_looks_fewer_sets_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is of work: where much single work is looked at for each set, it is fewer sets."""
    looks = equal = 0
    may_take = Claimant.may_take

    def counted(claimant: Claimant, victim: Victim) -> bool:
        nonlocal looks
        looks += not victim.is_whole
        return may_take(claimant, victim)

    monkeypatch.setattr(Claimant, "may_take", counted)
    for seed in (123, 220, 311, 326, 394, 448, 489, 611, 1220, 1441):
        it = draw(seed, most=40)
        looks = 0
        best, of_all_sets = chosen(it), looks
        singles = sum(map(len, it.singles.values()))
        with monkeypatch.context() as bounds:
            bounds.setattr(gang_choice, "LOOKS_MAX", 10 * singles)
            bounds.setattr(gang_choice, "STEPS_MAX", 0)
            looks = 0
            found = chosen(it)
        # For sets and one by one, and once for each that is added and each that may be left out.
        assert looks <= (2 * 10 + 2 * len(it.gangs) + 4) * singles, f"seed {seed}"
        assert looks < of_all_sets, f"seed {seed}"
        assert best[0] - 1 <= found[0] <= best[0], f"seed {seed}"
        equal += found[:2] == best[:2]
    assert 7 < equal < 10, "vacuous: the bound makes no difference, or it costs too much"
