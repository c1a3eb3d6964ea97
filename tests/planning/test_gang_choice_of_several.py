"""The choice of whole applications where several queues give, some may not, and devices count.

As in `test_gang_choice.py` an integer program finds the optimum in another way: most asks served,
then the fewest applications, the least important, the least work lost.
"""

import random
from typing import Any, NamedTuple

import pytest
import ranges
from ganging import priority_of
from written import Written

from yunikorn_actors.planning.preemption.claimant import Claimant, room_on, whole_applications
from yunikorn_actors.planning.preemption.device_room import with_parts
from yunikorn_actors.planning.preemption.gang_choice import Choice, Gang, gang_of
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import ExpectedUsage
from yunikorn_actors.planning.preemption.victim_units import Units
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.values.devices import WHOLE
from yunikorn_actors.values.tags import GPU, GPU_DEVICES

GIVING = ("root.one", "root.two", "root.three")
SHUT, ASKING = "root.shut", "root.asking"
NOW_NS = 100_000_000_000
Bins = dict[tuple[str, int], int]


class Drawn(NamedTuple):
    written: Written
    claimant: Claimant
    rooms: dict[str, dict[str, int]]
    gangs: list[Gang]
    size: int
    count: int
    spare: dict[str, int]
    """How much each queue that has a guarantee may give."""
    bins: Bins
    """What is free of each device, or of a node where devices do not count."""
    freed: dict[str, Bins]
    """What each application leaves there."""
    kind: str


def draw(seed: int) -> Drawn:
    rng = random.Random(seed)  # noqa: S311 - which states, no secrets
    made = Written(*GIVING, SHUT, ASKING)
    kind = rng.choice(("vcore", GPU))
    devices = kind == GPU
    nodes = {f"n{number}": rng.randint(2, 5) for number in range(rng.randint(1, 4))}
    bins: Bins = {}
    for name, number in nodes.items():
        if devices:
            made.record(
                f.NodeAdded(
                    node_id=name, capacity={GPU: number * WHOLE}, occupied={}, drained=False,
                    ready=True, attributes={GPU_DEVICES: str(number)}, at_ns=made.now_ns,
                )
            )  # fmt: skip
            bins |= {(name, device): WHOLE for device in range(number)}
        else:
            made.node(name, vcore=number * 2)
            bins[name, 0] = number * 2
    freed: dict[str, Bins] = {}
    queue_of: dict[str, str] = {}
    for number in range(rng.randint(1, 12)):
        name = f"app-{number}"
        queue_of[name] = rng.choice((*GIVING, *GIVING, SHUT))
        made.add(name, queue=queue_of[name])
        freed[name] = {}
        for member in range(rng.randint(1, 4)):
            free = [place for place, room in bins.items() if room > 0]
            if not free:
                break
            place = rng.choice(free)
            amount = min(
                bins[place], rng.choice((250, 500, WHOLE)) if devices else rng.randint(1, 3)
            )
            _run(made, rng, name, f"w-{number}-{member}", place, {kind: amount}, is_device=devices)
            bins[place] -= amount
            freed[name][place] = freed[name].get(place, 0) + amount
    unit = {"preemption.unit": "application"}
    spare: dict[str, int] = {}
    for queue in GIVING:
        used = made.state.queues[queue].allocated.get(kind, 0)
        given = None
        if used and rng.random() < 0.7:
            step = 250 if devices else 1
            spare[queue] = rng.randint(0, used // step) * step
            given = {kind: used - spare[queue]} if used > spare[queue] else None
            if given is None:
                del spare[queue]
        made.reconfigure(queue, guaranteed=given, properties=unit)
    made.reconfigure(SHUT, properties=unit | {"preemption.policy": "disabled"})
    made.reconfigure(ASKING, guaranteed={kind: 1_000_000})
    made.add("asks", queue=ASKING)
    size = rng.choice((250, 500, WHOLE, 2 * WHOLE)) if devices else rng.randint(1, 4)
    made.record(
        f.AskAdded(
            spec=AskSpec(application_id="asks", key="a", resource={kind: size}, priority=9),
            created_ns=made.now_ns, sequence=made._next(), at_ns=made.now_ns,
        )
    )  # fmt: skip
    state = made.state
    spec = made.application("asks").asks["a"].spec
    claimant = Claimant(state, ExpectedUsage(), Throttle(state, NOW_NS), state.queues[ASKING], spec)
    rooms = {it.id: room_on(it, with_parts(it.available, it.parts)) for it in state.nodes.values()}
    whole = list(whole_applications(state, claimant, Units()))
    gangs = [gang_of(state, victim, NOW_NS) for victim in whole]
    assert not any(queue_of[_name(gang)] == SHUT for gang in gangs)
    return Drawn(
        made, claimant, rooms, gangs, size, rng.randint(1, 8), spare, bins, freed, kind
    )  # fmt: skip


def _run(
    made: Written,
    rng: random.Random,
    app: str,
    key: str,
    place: tuple[str, int],
    resource: dict[str, int],
    *,
    is_device: bool,
) -> None:
    owner = made.application(app)
    uuid = f"u-{key}"
    made.record(
        f.AllocationRecovered(
            spec=AskSpec(application_id=app, key=key, resource=resource, priority=rng.randint(0, 2)),
            queue=owner.queue.path, user=owner.spec.user, group=owner.group, uuid=uuid,
            node_id=place[0], created_ns=made.now_ns, sequence=made._next(), at_ns=made.now_ns,
            devices=(place[1],) if is_device else (),
        )
    )  # fmt: skip
    owner.allocations[uuid].allocated_ns = NOW_NS - rng.randint(1, 5) * 10_000_000_000


def _name(gang: Gang) -> str:
    return gang.victim.allocations[0].spec.application_id


def optimum(it: Drawn) -> tuple[int, int, int, int]:
    optimize = pytest.importorskip("scipy.optimize")
    numpy = pytest.importorskip("numpy")
    places, gangs = list(it.bins), it.gangs
    nodes = list(dict.fromkeys(node for node, _ in places))
    many = max(1, it.size // WHOLE) if it.kind == GPU else 1
    piece = it.size // many
    width = len(gangs) + len(places) + len(nodes) + 1
    rows: list[list[float]] = []
    uppers: list[float] = []

    def bound(entries: dict[int, float], upper: float) -> None:
        row = [0.0] * width
        for at, value in entries.items():
            row[at] = value
        rows.append(row)
        uppers.append(upper)

    for number, place in enumerate(places):
        freed = {at: -float(it.freed[_name(g)].get(place, 0)) for at, g in enumerate(gangs)}
        bound({**freed, len(gangs) + number: piece}, it.bins[place])
    first_node = len(gangs) + len(places)
    for number, node in enumerate(nodes):
        here = {len(gangs) + at: -1.0 for at, place in enumerate(places) if place[0] == node}
        bound({**here, first_node + number: many}, 0)
    served = width - 1
    bound({served: 1.0, **dict.fromkeys(range(first_node, served), -1.0)}, 0)
    for queue, most in it.spare.items():
        of = {
            at: float(g.victim.resource.get(it.kind, 0))
            for at, g in enumerate(gangs)
            if g.victim.leaf.path == queue
        }
        bound(of, most)

    def solve(cost: dict[int, float], usable: list[bool]) -> int | None:
        costs = [cost.get(at, 0.0) for at in range(width)]
        upper = [float(may) for may in usable] + [100.0] * (len(places) + len(nodes))
        found: Any = optimize.milp(
            costs,
            constraints=optimize.LinearConstraint(numpy.array(rows), -numpy.inf, uppers),
            integrality=numpy.ones(width),
            options={"mip_rel_gap": 0},
            bounds=optimize.Bounds(numpy.zeros(width), [*upper, float(it.count)]),
        )
        return round(found.fun) if found.status == 0 else None

    everything = [True] * len(gangs)
    most = -(solve({served: -1.0}, everything) or 0)
    bound({served: -1.0}, -most)
    ones = dict.fromkeys(range(len(gangs)), 1.0)
    number = solve(ones, everything) or 0
    if not number:
        return most, 0, 0, 0
    bound(ones, number)
    for priority in sorted({priority_of(gang) for gang in gangs}):
        usable = [priority_of(gang) <= priority for gang in gangs]
        if solve(ones, usable) is not None:
            break
    work = solve({at: float(g.work // 1_000) for at, g in enumerate(gangs)}, usable)
    assert work is not None
    return most, number, priority, work


def chosen(it: Drawn) -> tuple[int, int, int, int]:
    victims = Choice(it.claimant, it.rooms, lambda _: [], it.count).of(it.gangs)
    gone = [gang for gang in it.gangs if gang.victim in victims]
    for queue, most in it.spare.items():
        taken = sum(g.victim.resource[it.kind] for g in gone if g.victim.leaf.path == queue)
        assert taken <= most
    many = max(1, it.size // WHOLE) if it.kind == GPU else 1
    pieces: dict[str, int] = {}
    for (node, device), room in it.bins.items():
        free = room + sum(it.freed[_name(gang)].get((node, device), 0) for gang in gone)
        pieces[node] = pieces.get(node, 0) + free // (it.size // many)
    places = sum(number // many for number in pieces.values())
    return (
        min(places, it.count),
        len(gone),
        max((priority_of(gang) for gang in gone), default=0),
        sum(gang.work // 1_000 for gang in gone),
    )


@ranges.seeds(1000, usual=6)
def test_the_choice_is_the_optimum(seeds: range) -> None:
    hurt = of_devices = 0
    for seed in seeds:
        it = draw(seed)
        expected = optimum(it)
        assert expected == chosen(it), f"seed {seed}"
        hurt += expected[1]
        of_devices += expected[1] * (it.kind == GPU)
    assert min(hurt - of_devices, of_devices) > len(seeds) / 12, (
        "vacuous: hardly anything has to go"
    )


def test_the_states_are_of_several_queues() -> None:
    drawn = [draw(seed) for seed in range(8)]
    assert any(len({g.victim.leaf.path for g in it.gangs}) == 3 for it in drawn)
    assert any(it.count > 1 and len(it.spare) > 1 for it in drawn)
