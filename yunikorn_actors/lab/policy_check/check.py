"""The check of a policy: its shape, its calls in drawn worlds, and the worlds without a watch."""

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from difflib import get_close_matches
from importlib import import_module
from operator import attrgetter
from statistics import median
from types import FunctionType, ModuleType
from typing import Any, Final

from msgspec import Struct, convert, to_builtins

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.nondeterminism_guard import inside
from yunikorn_actors.lab.policy_check.findings import Finding, Findings
from yunikorn_actors.lab.policy_check.growth import name_growing
from yunikorn_actors.lab.policy_check.small_worlds import NAME, World
from yunikorn_actors.lab.policy_check.watched import Watch
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.policies.folds import Folds
from yunikorn_actors.policies.guard import shown, tried
from yunikorn_actors.policies.places import METHODS, VictimOrder
from yunikorn_actors.policies.registry import methods_of, step_of, unwritable

# What can be seen of a policy without asking it: its methods, and how they are written.

_DECIDES: Final = tuple(name for name in METHODS if name not in {"devices", "observe"})
_NEAR: Final = 0.8


def made_of(policy: object, findings: Findings) -> Any | None:  # noqa: ANN401 - what it makes
    """Make one and look at its methods; None if it is of no use to play with it."""
    if not callable(policy):
        findings.add("type", f"it is {shown(policy, 100)}, and no class")
        return None
    made, fault = tried("making it", policy)
    if fault:
        findings.add("type", f"it cannot be made without arguments: {fault}")
        return None
    findings.of_class(type(made))
    _, fault = tried("reading its methods", methods_of, made)
    if fault:
        findings.add("type", f"its attributes raise: {fault}")
        return None
    before = len(findings.all())
    for name in METHODS:
        if hasattr(made, name):
            _look_at(name, getattr(made, name), findings)
    _look_for_slips(made, findings)
    if not any(hasattr(made, name) for name in _DECIDES):
        findings.add("type", f"it decides nothing: it has none of {', '.join(_DECIDES)}")
    _look_at_fields(made, findings)
    return None if len(findings.all()) > before else made


def _look_at(name: str, method: Any, findings: Findings) -> None:  # noqa: ANN401
    given = METHODS[name]
    shape = f"{name}(self, {', '.join(given)})"
    if not callable(method):
        findings.add("shape", f"{name} is {shown(method, 100)}, and no method; it is {shape}", name)
        return
    if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
        findings.add("shape", f"{name} is written with `async def`, and nobody awaits it", name)
    elif inspect.isgeneratorfunction(method):
        findings.add("shape", f"{name} is a generator, and nobody iterates over it", name)
    try:
        inspect.signature(method).bind(*given)
    except TypeError:
        findings.add("shape", f"{name} cannot be called as {shape}", name)
    except ValueError:
        """It has no signature, as some functions in C have none."""


def _look_for_slips(made: object, findings: Findings) -> None:
    own = [name for kind in type(made).__mro__[:-1] for name in vars(kind)]
    for name in dict.fromkeys(own):
        if name in METHODS or name.startswith("_") or not callable(getattr(made, name, None)):
            continue
        for near in get_close_matches(name, METHODS, 1, _NEAR):
            if not hasattr(made, near):
                findings.add("shape", f"nobody calls {name}: did you mean {near}?", name)


def _look_at_fields(made: object, findings: Findings) -> None:
    _, fault = tried("reads", step_of, made)
    if fault:
        findings.add("type", fault.partition("raised InvalidPolicy(")[2].rstrip(")") or fault)
    if not isinstance(getattr(made, "takes_gangs", True), bool):
        findings.add("type", "takes_gangs is neither True nor False")
    if hasattr(made, "observe"):
        if not (is_dataclass(made) or isinstance(made, Struct)):
            findings.add("fold", "it has observe, and what it keeps has no types")
        elif fault := unwritable(made):
            findings.add("fold", f"what it keeps cannot be written down: {fault}", "observe")
        if hasattr(made, "score"):
            what = "it has score and observe, and a node score is given no facts"
            findings.add("type", what, "observe")


WORLDS: Final = 10
_OTHER: Final = (
    "import json, sys; from yunikorn_actors.lab.policy_check.check import answers_of_name; "
    "sys.stdout.write('\\n' + json.dumps(answers_of_name(*sys.argv[1:])))"
)
"""What the other process runs."""
COMPARED: Final = 2
"""So many of them are played in another process as well."""
_BUILT_IN: Final = {"applications": "fifo", "queues": "fair", "nodes": "fair"}
_PLACES: Final = {
    "application_key": "applications",
    "ask_key": "applications",
    "may_start": "applications",
    "victim_key": "applications",
    "queue_key": "queues",
    "score": "nodes",
}


class Cost(Struct, frozen=True):
    method: str
    calls: int
    middle_us: float
    most_us: float


class Report(Struct, frozen=True):
    policy: str
    worlds: int
    findings: tuple[Finding, ...]
    costs: tuple[Cost, ...]

    @property
    def is_good(self) -> bool:
        return not self.findings

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        for finding in self.findings:
            yield finding.text
        for cost in self.costs:
            yield (
                f"{self.policy}.{cost.method}: {cost.calls} calls, {cost.middle_us:.0f} us "
                f"(most {cost.most_us:.0f})"
            )
        found = len(self.findings)
        faults = "no fault" if not found else "1 fault" if found == 1 else f"{found} faults"
        played = f"in {self.worlds} worlds" if self.worlds else "before any world was played"
        yield f"{self.policy}: {faults} {played}"


def check_policy(
    policy: Any,  # noqa: ANN401 - it may be anything
    *,
    seed: int = 1,
    worlds: int = WORLDS,
    name: str = "",
    place: str = "",
) -> Report:
    """Play a policy, a class or what makes one, in so many worlds that the seed draws.

    What is no class has no name and no place of its own, so these may be given.
    """
    findings = Findings(policy, name, place)
    made = made_of(policy, findings)
    if made is None:
        return Report(findings.name, 0, findings.all(), ())
    before = _shared(type(made))
    with inside(is_pure=True) as guard:
        watch = Watch(findings, guard)
        _play_all(watch, policy, made, seed, worlds)
    after = _shared(type(made))
    for changed in sorted(it for it in before if before[it] != after.get(it)):
        findings.add("shared", f"calls change {changed}, which all instances share")
    watch.name_slow()
    if not findings:
        name_growing(policy, findings)
    if not findings:
        _compare_processes(policy, seed, watch.answers, findings)
        for number in range(worlds):
            _play_plainly(_world(policy, made, seed, number), findings)
    costs = tuple(
        Cost(method, len(times), median(times) / 1000, max(times) / 1000)
        for method, times in watch.times_ns.items()
    )
    uncalled = [it for it in _PLACES if hasattr(made, it) and it not in watch.times_ns]
    if worlds >= WORLDS and not findings:
        for method in uncalled:
            findings.add("shape", f"{method} was never called", method)
    return Report(findings.name, worlds, findings.all(), costs)


def _places_of(made: object) -> dict[str, str]:
    return {**_BUILT_IN, **{_PLACES[it]: NAME for it in _PLACES if hasattr(made, it)}}


def _world(policy: Any, made: object, seed: int, number: int) -> World:  # noqa: ANN401
    preempts = isinstance(made, VictimOrder)
    step_ns, _ = tried("reads", step_of, made)
    return World(policy, _places_of(made), seed, number, preempts=preempts, ages=bool(step_ns))


def _play_all(watch: Watch, policy: Any, made: object, seed: int, worlds: int) -> None:  # noqa: ANN401
    for number in range(worlds):
        watch.new_world()
        world = _world(watch.made_by(policy), made, seed, number)
        world.play()
        _compare_folds(world.simulator, watch.findings)


def answers_of_name(name: str, seed: str) -> list[str]:
    """Return all that a policy, MODULE:CLASS, answers in the first worlds of a seed."""
    module, _, attribute = name.partition(":")
    policy = attrgetter(attribute)(import_module(module))
    findings = Findings(policy)
    made = made_of(policy, findings)
    with inside(is_pure=True) as guard:
        watch = Watch(findings, guard)
        _play_all(watch, policy, made, int(seed), COMPARED)
    return watch.answers


def _compare_processes(
    policy: Any,  # noqa: ANN401
    seed: int,
    answers: list[str],
    findings: Findings,
) -> None:
    """In another process texts have other hashes, so sets are in another order."""
    name = f"{getattr(policy, '__module__', '')}:{getattr(policy, '__qualname__', '')}"
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    paths = os.pathsep.join(path or "." for path in sys.path)
    environ = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
    # What hangs has been found, so this ends.
    command = [sys.executable, "-c", _OTHER, name, str(seed)]
    done = subprocess.run(  # noqa: S603 - this Python
        command, env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode:
        # It is found in this process alone, such as a class within a function.
        return
    others = json.loads(done.stdout.splitlines()[-1])
    for mine, other in zip(answers, others, strict=False):
        if mine != other:
            method = mine.partition(" ")[0]
            what = f"({mine.partition(' ')[2][:60]}, then {other.partition(' ')[2][:60]})"
            findings.add(
                "answers", f"{method} gives another answer in another process {what}", method
            )
            return


def _play_plainly(world: World, findings: Findings) -> None:
    """Play it as the core has it: what happens there is what counts."""
    world.play()
    for line in world.simulator.lines:
        if "has failed and decides no more" in line:
            findings.add("raises", line.partition(" decides no more: ")[2])
    _compare_folds(world.simulator, findings)


def _compare_folds(simulator: Simulator, findings: Findings) -> None:
    """Replica and truth keep the same, and what they keep outlives a snapshot."""
    context = simulator.machines[CONTEXT]
    assert isinstance(context, Context)
    replicas = {
        machine.replica.name: machine.replica.folds
        for machine in simulator.machines.values()
        if isinstance(machine, Scheduler)
    }
    for name, partition in context.partitions.items():
        folds = partition.state.folds
        assert isinstance(folds, Folds)
        replica = replicas.get(name)
        for path, fold in folds.by_queue.items():
            try:
                written = to_builtins(fold)
                again = convert(written, type(fold))
            except Exception as error:  # noqa: BLE001 - whatever it keeps
                what = f"what it keeps cannot be written and read again ({shown(error)})"
                findings.add("fold", what, "observe")
                continue
            if not _is_same(again, fold):
                findings.add("fold", "what it keeps is another when it is read again", "observe")
            its = replica.by_queue.get(path) if isinstance(replica, Folds) else None
            if its is not None and to_builtins(its) != written:
                what = "a replica keeps another thing than the truth"
                findings.add("answers", what, "observe")


def _is_same(one: object, other: object) -> bool:
    """Whether they keep the same, though there is no telling whether the class compares."""
    if isinstance(one, Struct):
        names = one.__struct_fields__
    else:
        names = tuple(getattr(one, "__dataclass_fields__", ()))
    pairs = [(getattr(one, name), getattr(other, name)) for name in names]
    return all(a == b or shown(a, 10**6) == shown(b, 10**6) for a, b in pairs)


def _shared(kind: type) -> dict[str, str]:
    """Return what instances share: attributes of classes, variables of the module, defaults."""
    found: dict[str, str] = {}
    for owner in kind.__mro__[:-1]:
        for name, value in vars(owner).items():
            if not name.startswith("__"):
                _note_shared(found, f"{owner.__name__}.{name}", value)
        for name, function in vars(owner).items():
            if isinstance(function, FunctionType):
                _note_parts(found, f"{owner.__name__}.{name}", function)
    return found


def _note_parts(found: dict[str, str], name: str, function: FunctionType) -> None:
    """Note what a function has beside its code, and the variables of its module that it names."""
    for default in function.__defaults__ or ():
        _note_shared(found, f"a default of {name}", default)
    for cell_name, cell in zip(
        function.__code__.co_freevars, function.__closure__ or (), strict=True
    ):
        try:
            _note_shared(found, cell_name, cell.cell_contents)
        except ValueError:
            """It has nothing yet."""
    for global_name in function.__code__.co_names:
        if global_name in function.__globals__:
            _note_shared(found, global_name, function.__globals__[global_name])


def _note_shared(found: dict[str, str], name: str, value: object) -> None:
    if isinstance(value, type | ModuleType | FunctionType | classmethod | staticmethod | property):
        return
    if isinstance(value, Callable) and not hasattr(value, "__next__"):  # type: ignore[arg-type]
        return
    found[name] = shown(value, 10**6) + shown(getattr(value, "__dict__", ""), 10**6)
