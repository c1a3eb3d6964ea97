"""Simulate, then do it: what was simulated from a drawn state is what then happens.

    python -m tests.simulated --runs 1000 --seed 1 --begin copy|image|journal|replica|follower|dump
    python -m tests.simulated --runs 100 --seed 1 --begin grpc|rest

A world of the laboratory is played for a while. Then its state is copied and what comes next is
simulated from the copy; then the very core does it, in the same virtual time. Both have to place,
end and refuse the same, at the same times and on the same nodes, and end in the same state. The
state is copied, or read from a journal that the core has written, or is what a follower hears: then
UUIDs are others. A dump says less, so what it says is compared. With `grpc` and `rest` a service is
asked (see `simulated_served`).
"""

import argparse
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec.structs import replace

from tests.simulated_served import BEGUN, DOORS, SEEN, TURNS, remembers, served_differences
from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.errors import CoreError, InvalidRequest
from yunikorn_actors.journal import Journal, Kept
from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.world_parts import Wanted
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.messages.base import CONTEXT, manager_of
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.performer import DEFAULT_RM, Stage
from yunikorn_actors.scenario.steps import request_of
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import QueueState
from yunikorn_actors.state.snapshot import LivingImage, restore
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import pruned
from yunikorn_actors.values.tags import TAG_RUNTIME
from yunikorn_actors.what_if import Answer, Change, Course
from yunikorn_actors.what_if.change_checks import checked, in_order
from yunikorn_actors.what_if.core_state import Copy, CoreState, state_of
from yunikorn_actors.what_if.dumps import state_from_dump, state_from_journal
from yunikorn_actors.what_if.followed import state_of_core
from yunikorn_actors.what_if.run import Manager, Run
from yunikorn_actors.what_if.simulation import simulate

UNLIKE = ("predicates", "back-off")
"""What a planner remembers beside the state: refused nodes, and who rests. Worlds have it where the
machines themselves are copied."""
UNTIL_S = 120.0
PARTS_OF_COURSE = ("placed", "ended", "refused", "until_s", "digest")


class Driver:
    """The core as the stage of a scenario sees it."""

    def __init__(self, case: Case) -> None:
        self.core = Simulator(case.built())
        self.settle = self.core.settle
        self.advance = self.core.advance


@dataclass(frozen=True)
class World:
    """A state that was drawn, and what comes next."""

    simulator: Simulator
    changes: tuple[Change, ...]

    def simulated(self, state: CoreState, origin: Simulator | None = None) -> Answer:
        return simulate(
            state, *self.changes, until=UNTIL_S, compare=False, origin=origin,
            policies=self.simulator.topology.policies.given,
        )  # fmt: skip

    def done(self, *, is_held: bool = False) -> Course:
        """Do it: with the very core.

        Held, it takes all requests of the first moment before it decides, as a copy does.
        """
        ordered = sorted(self.changes, key=lambda it: it.after_s)
        let_decide = self._held() if is_held else None
        run = Run(self.simulator, ordered, others_max=0, let_decide=let_decide)
        context = self.simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        known = {it.registration.rm_id: it.registration for it in context.registered.managers}
        for address in tuple(self.simulator.callbacks):
            rm_id = manager_of(address)
            manager = Manager(rm_id, known[rm_id].capabilities, run)
            self.simulator.callbacks[address] = manager
        return run.go(self.simulator.now_ns + round(UNTIL_S * SECOND))

    def _held(self) -> Callable[[], None]:
        simulator: Any = self.simulator
        put, cycles = simulator.put, []

        def kept(channel: Any, envelope: Any) -> None:
            if isinstance(envelope.message, RunCycle):
                cycles.append((channel, envelope))
            else:
                put(channel, envelope)

        def let_decide() -> None:
            del simulator.put
            for channel, envelope in cycles:
                put(channel, envelope)

        simulator.put = kept
        return let_decide


RARE: Final[Counter[str]] = Counter()
"""What stood at the beginning of how many simulations, of what is seldom there."""


def rare(context: Context) -> Iterator[str]:
    """Yield what is in a state that hardly any drawn moment has."""
    for partition in context.partitions.values():
        state = partition.state
        apps, nodes = state.applications.values(), state.nodes.values()
        work = [it for app in apps for it in app.allocations.values()]
        found = {
            "a queue being removed": bool(partition.cleaning)
            or any(it.state is QueueState.DRAINING for it in state.queues.values()),
            "a budget": any(it.preempted for it in state.queues.values()),
            "a quota that comes due": bool(state.quotas),
            "a manager that is away": state.suspended,
            "a node on its way out": any(it.drained and it.allocations for it in nodes),
            "a node not ready": any(not it.ready or it.awaited for it in nodes),
            "a reservation": any(it.reservations for it in nodes),
            "a swap": any(app.swaps for app in apps),
            "a gang half placed": any(
                any(it.spec.placeholder and it.remaining for it in app.asks.values())
                and any(it.spec.placeholder for it in app.allocations.values())
                for app in apps
            ),
            "a victim": any(it.beneficiary is not None for it in work),
            "an application on its way out": any(app.state in _LEAVING for app in apps),
            "long work": state.long_work is not None,
        }
        yield from (name for name, is_there in found.items() if is_there)


_LEAVING: Final = {ApplicationState.FAILING, ApplicationState.RESUMING, ApplicationState.COMPLETING}


def world(
    seed: int,
    number: int,
    topology: str,
    journal: Path | None = None,
    *,
    is_whole: bool = True,
    is_rare: bool = False,
) -> World | None:
    """Draw a world, play a part of it, and return it with the steps that come next.

    Where that is to be rare, it stops as soon as something seldom is there, if that ever is.
    """
    case = drawn(seed, number, Wanted(without=() if is_whole else UNLIKE)).case
    case = case.on(topology, policies=case.policies)  # type: ignore[arg-type]
    draw = Draw(seed, number)
    driver = Driver(case)
    machines = driver.core.machines
    written = None if journal is None else Journal(journal)
    if written is not None:
        machines[CONTEXT] = Kept(_context(driver.core), written)
    stage = Stage(case.scenario, driver, None)
    steps = [
        replace(it.written, step=_with_runtime(it.step, draw))
        for it in case.steps
        # Which nodes were refused is remembered beside the state.
        if is_whole or not isinstance(it.step, w.Predicate)
    ]
    cut = draw.whole(1, max(1, len(steps) - 1))
    first = draw.whole(1, 3)
    for played, step in enumerate(steps[: len(steps) - 1 if is_rare else cut], 1):
        stage.act(step)
        driver.core.settle()
        driver.core.callback_errors.clear()
        found = {*rare(_context(driver.core))} if is_rare else set()
        # Now the first of them, now what comes behind it.
        first -= bool(found)
        if found and first <= 0:
            RARE.update(found)
            cut = played
            break
    else:
        cut = len(steps) - 1 if is_rare else cut
    if written is not None:
        written.close()
        kept = machines[CONTEXT]
        assert isinstance(kept, Kept)
        machines[CONTEXT] = kept._context
    if not _context(driver.core).partitions:
        return None
    return World(driver.core, tuple(_taken(_changes(steps[cut:], draw, driver.core), driver.core)))


def _taken(changes: Iterator[Change], simulator: Simulator) -> Iterator[Change]:
    """Leave out what is refused before it is simulated, such as a node that is not there."""
    taken: list[Change] = []
    state, policies = state_of(simulator), Policies(simulator.topology.policies.given)
    for change in in_order(changes):
        try:
            checked([*taken, change], state, policies, until_s=UNTIL_S)
        except InvalidRequest:
            LEFT_OUT[type(change.request).__name__] += 1
        else:
            taken.append(change)
    yield from taken


def _context(simulator: Simulator) -> Context:
    context: Any = simulator.machines[CONTEXT]
    context = context._context if isinstance(context, Kept) else context
    assert isinstance(context, Context)
    return context


def _of_journal(simulator: Simulator, folder: Path) -> CoreState:
    topology = simulator.topology
    state = state_from_journal(folder, topology=topology.name, settings=topology.settings)
    return replace(state, at_ns=simulator.now_ns)


def _of_replica(simulator: Simulator, _: Path) -> CoreState:
    return state_of_core(simulator, simulator.topology, simulator.now_ns)


def _of_follower(simulator: Simulator, folder: Path) -> CoreState:
    """As the read side has it: the replica itself is taken over."""
    state = _of_replica(simulator, folder)
    if state.schedulers > 1:
        return state
    is_fused = state.topology == "fused"
    images = {}
    for name, image in state.images.items():
        replica = PartitionState(name, Folds(NO_POLICIES))
        restore(replica, image)
        images[name] = LivingImage(replica, is_planned_by_context=is_fused)
    return replace(state, images=images)


def _of_dump(simulator: Simulator, _: Path) -> CoreState:
    dump = json.loads(json.dumps(simulator.state_dump()))
    topology = simulator.topology
    state = state_from_dump(dump, topology=topology.name, settings=topology.settings)
    # A request may name a UUID that the core is to give.
    return replace(
        state, schedulers=topology.schedulers, instance=topology.instance,
        issued_uuids=dump["issued_uuids"],
    )  # fmt: skip


BEGINNINGS: dict[str, Callable[[Simulator, Path], CoreState]] = {
    "copy": lambda simulator, _: state_of(simulator),
    "image": lambda simulator, _: state_of(simulator),
    "journal": _of_journal,
    "replica": _of_replica,
    "follower": _of_follower,
    "dump": _of_dump,
}


def unlike_dump(simulator: Simulator) -> Iterator[str]:
    """Yield what a state made of a dump has otherwise, of what the dump says."""
    dump = json.loads(json.dumps(simulator.state_dump()))
    state = state_from_dump(dump, settings=simulator.topology.settings)
    yield from (line for line in state.lacks if "does not take" in line)
    made = Copy(state).state_dump()["partitions"]
    for name, part in dump["partitions"].items():
        away = {word: state.images[name][word] for word in ("held", "behind")}
        if away != {word: part[word] for word in away}:
            yield f"{name}: {away}"
        if told_of(made[name]) != told_of(part):
            yield f"{name}: {told_of(made[name])} / {told_of(part)}"


def lost_in_a_dump(context: Context) -> Iterator[str]:
    """Yield what a dump does not say, as the answer says."""
    for partition in context.partitions.values():
        state = partition.state
        apps = state.applications.values()
        if any(node.reservations for node in state.nodes.values()):
            yield "a reservation"
        if any(it.beneficiary is not None for app in apps for it in app.allocations.values()):
            yield "a beneficiary"
        if any(not it.remaining for app in apps for it in app.asks.values()):
            yield "which ask came first"
        if state.finished:
            yield "an application that has ended"


def told_of(part: dict[str, Any]) -> dict[str, Any]:
    asks = ("key", "resource", "repeats", "priority", "placeholder", "task_group")
    work = (
        "key", "node", "resource", "priority", "placeholder", "task_group", "releasing", "devices",
    )  # fmt: skip
    lives = (
        "state", "started_ns", "state_log", "timers", "task_groups", "admitted", "lapsed_ns",
        "placed", "reported", "spared",
    )  # fmt: skip
    queue = (
        "state", "leaf", "dynamic", "allocated", "pending", "max", "guaranteed", "properties",
        "max_applications", "limits", "template", "submit_acl", "admin_acl",
    )  # fmt: skip
    return {
        "nodes": {
            id_: [it[name] for name in ("capacity", "allocated", "occupied", "schedulable")]
            for id_, it in part["nodes"].items()
        },
        "queues": {path: {name: it[name] for name in queue} for path, it in part["queues"].items()},
        "applications": {
            id_: [
                app["queue"],
                app["user"],
                sorted([str([it[name] for name in asks]) for it in app["asks"]]),
                sorted([str([it.get(name) for name in work]) for it in app["allocations"]]),
                app["swaps"],
            ]
            for id_, app in part["applications"].items()
        },
        "lives": {
            id_: {name: app.get(name) for name in lives}
            for id_, app in part["applications"].items()
        },
        "quotas": part["quotas"],
        "budgets": {path: it.get("preempted") for path, it in part["queues"].items()},
        "running": {path: it["running_apps"] for path, it in part["queues"].items()},
    }


def _with_runtime(step: w.Step, draw: Draw) -> w.Step:
    if isinstance(step, w.AddAsk) and draw.chance(0.7):
        return replace(step, tags={**step.tags, TAG_RUNTIME: str(draw.whole(1, 90))})
    return step


def _changes(steps: list[w.WrittenStep], draw: Draw, simulator: Simulator) -> Iterator[Change]:
    """Yield what the steps ask for, at times that are drawn, while they only make requests."""
    after_s = 0.0
    known = {
        it.registration.rm_id: it.registration.policy_group
        for it in _context(simulator).registered.managers
    }
    for written in steps:
        step = written.step
        if isinstance(step, w.Advance):
            after_s += step.duration_ns / SECOND
        elif isinstance(step, w.Register | w.LoseRm | w.Unregister | w.Raw):
            return
        elif isinstance(step, w.Together | w.Predicate | w.Confirm | w.ConfirmAll | w.Expect):
            continue
        else:
            rm_id = (step.rm if isinstance(step, w.ManagerStep) else "") or DEFAULT_RM
            if rm_id not in known:
                return
            if draw.chance(0.5):
                after_s += draw.whole(0, 10)
            request = (
                si.UpdateConfigurationRequest(
                    rm_id=rm_id,
                    policy_group=known[rm_id],
                    config=step.queues,
                    extra_config=step.extra,
                )
                if isinstance(step, w.Config)
                else request_of(step, rm_id)
            )
            if request is not None:
                yield Change(_with_groups(request), after_s)


def _with_groups(request: Any) -> Any:
    """Groups that a request leaves out are remembered from others, and that is no state."""
    if not isinstance(request, si.ApplicationRequest):
        return request
    new = tuple(
        replace(it, ugi=replace(it.ugi, groups=it.ugi.groups or (it.ugi.user,)))
        for it in request.new
        if it.ugi is not None
    )
    return replace(request, new=new)


REFUSED: list[str] = []
"""Simulations that the core refuses to begin or to go on with."""


LEFT_OUT: Counter[str] = Counter()
"""Changes that name what is not there, or that no core would carry out, by their kind."""


def differences(
    seed: int, number: int, topology: str, begin: str = "copy", *, is_rare: bool = False
) -> list[str] | None:
    """Return in what the run differs from the simulation; None where there is no such world."""
    with TemporaryDirectory() as name:
        journal = Path(name) if begin == "journal" else None
        found = world(seed, number, topology, journal, is_whole=begin == "copy", is_rare=is_rare)
        if found is None:
            return None
        if begin == "dump" and (unlike := list(unlike_dump(found.simulator))):
            return unlike
        state = BEGINNINGS[begin](found.simulator, Path(name))
    lost = lost_in_a_dump(_context(found.simulator)) if begin == "dump" else ()
    begun_anew = (*remembers(found.simulator.machines), *lost)
    remembered = "" if begin == "copy" else ", ".join(begun_anew)
    origin = found.simulator if begin == "copy" else None
    simulated = outcome(lambda: found.simulated(state, origin).course)
    done = outcome(lambda: found.done(is_held=begin != "copy"))
    if isinstance(simulated, str) or isinstance(done, str):
        REFUSED.append(f"{seed} {number}: {simulated}")
        return [] if simulated == done else [f"{simulated!s:.300} / {done!s:.300}"]
    found_unequal = list(unequal(simulated, done))
    context = found.simulator.machines[CONTEXT]
    assert isinstance(context, Context)
    if found_unequal and (begin != "copy" or len(context.partitions) > 1):
        found_unequal = [] if in_any_order(simulated) == in_any_order(done) else found_unequal
    if found_unequal and remembered:
        BEGUN[f"{remembered} ({seed}/{number})"] += 1
        return []
    return found_unequal


def in_any_order(course: Course) -> list[list[str]]:
    """Leave out in which order partitions decide at one moment: that is in no state.

    Amounts of zero are left out as well, as in a dump.
    """
    placed = [
        dataclasses.replace(it, uuid="", resources=dict(sorted(pruned(it.resources).items())))
        for it in course.placed
    ]
    return [sorted(map(str, it)) for it in (placed, course.ended, course.refused)]


def outcome(play: Any) -> Course | str:
    try:
        course: Course = play()
    except (CoreError, InvalidRequest) as error:
        return repr(error)
    return course


def unequal(simulated: Course, done: Course) -> Iterator[str]:
    for part in PARTS_OF_COURSE:
        one, other = getattr(simulated, part), getattr(done, part)
        if one != other:
            yield f"{part}: {_first(one, other)}"


def _first(one: Any, other: Any) -> str:
    if not isinstance(one, tuple):
        return f"{one} / {other}"
    number = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if number is None:
        number = min(len(one), len(other))
    return f"#{number} {one[number : number + 1]} / {other[number : number + 1]}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    choices = [*BEGINNINGS, *DOORS]
    parser.add_argument("--begin", choices=choices, default="copy")
    parser.add_argument("--rare", action="store_true", help="begin where something seldom is")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for number in range(options.first, options.first + options.runs):
        topology = TOPOLOGIES[number % 2]
        play = (
            served_differences
            if options.begin in DOORS
            else partial(differences, is_rare=options.rare)
        )
        found = play(options.seed, number, topology, options.begin)
        if found is None:
            counts["empty"] += 1
            continue
        counts["equal" if not found else "different"] += 1
        for line in found:
            sys.stdout.write(f"{number} {topology}: {line[:900]}\n")
            sys.stdout.flush()
    counts["equal"] -= BEGUN.total() + len(TURNS)
    sys.stdout.write(f"{dict(counts)}; differ by what begins anew: {BEGUN.total()} {[*BEGUN]}; ")
    if options.begin in DOORS:
        sys.stdout.write(f"differ by turns of threads: {TURNS}; compared: {dict(SEEN)}; ")
    sys.stdout.write(f"refused: {len(REFUSED)} {REFUSED[:3]}; ")
    if options.rare:
        sys.stdout.write(f"at the beginning: {dict(RARE)}; ")
    sys.stdout.write(f"changes left out: {dict(LEFT_OUT)}\n")
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
