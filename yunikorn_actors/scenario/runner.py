"""Runs scenarios: a file once for each seed, each run step by step up to the first failure.

Checkers watch every simulated run. What they or the core raise is a failure of the current step; it
ends the run, and the report has the command that repeats it.
"""

import shlex
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.errors import CoreError
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.scenario.document import Scenario, ScenarioError, read_scenario
from yunikorn_actors.scenario.drivers import (
    INSTANCE,
    Driver,
    DriverName,
    ServiceDriver,
    SimulatorDriver,
)
from yunikorn_actors.scenario.expected_values import Difference
from yunikorn_actors.scenario.performer import Stage
from yunikorn_actors.scenario.step_structs import Register, WrittenStep

IMPLIED_REGISTRATION: Final = WrittenStep(number=0, line=1, name="register", step=Register())


class RunOptions(Struct, frozen=True, kw_only=True):
    seeds: Sequence[int] = (0,)
    """They run in this order, up to the first that fails."""
    topology: TopologyName = "proposing"
    schedulers: int = 1
    """How many plan for each partition."""
    driver: DriverName = "sim"
    time_scale: int | None = None
    """How much faster than real time the clock in service runs; without it the clock stands."""
    policies: Policies = NO_POLICIES
    """Beside those that a file names, and before them."""
    trace: Path | None = None
    """The file for the recording of the last run."""
    checkers: Callable[[], tuple[Checker, ...]] = default_checkers
    replaced_for: tuple[type[Exception], ...] = ()
    """Exceptions for which the simulator replaces a machine instead of ending the run."""


class Failure(Struct, frozen=True, kw_only=True):
    step: int
    """From 1; 0 is the implied registration."""
    line: int
    path: str
    expected: Any
    actual: Any


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a file: its first failing run, or else its last run."""

    file: str
    ok: bool
    name: str = ""
    seed: int = 0
    failures: tuple[Failure, ...] = ()
    messages: int = 0
    virtual_ms: float = 0.0
    wall_ms: float = 0.0
    digest: str | None = None
    runs: int = 0
    error: str | None = None
    """Why the file cannot be read."""


def run_file(path: Path, options: RunOptions) -> Outcome:
    """Read a file once and run it for every seed, up to the first that fails."""
    try:
        scenario = read_scenario(path)
    except ScenarioError as error:
        return Outcome(file=str(path), ok=False, error=str(error))
    return run_scenario(scenario, options)


def run_scenario(scenario: Scenario, options: RunOptions) -> Outcome:
    """Run a scenario for every seed, up to the first that fails."""
    outcome = Outcome(file=scenario.file, ok=True, name=scenario.name)
    for runs, seed in enumerate(options.seeds, 1):
        outcome = replace(_run(scenario, seed, options), runs=runs)
        if not outcome.ok:
            break
    return outcome


def _run(scenario: Scenario, seed: int, options: RunOptions) -> Outcome:
    started = time.perf_counter()
    driver = _driver(scenario, seed, options)
    try:
        failures = _failures(scenario, seed, options, driver)
        report = driver.report()
    finally:
        driver.close()
    return Outcome(
        file=scenario.file,
        name=scenario.name,
        seed=seed,
        ok=not failures,
        failures=failures,
        messages=report.messages,
        virtual_ms=report.virtual_ns / 1e6,
        wall_ms=round((time.perf_counter() - started) * 1e3, 3),
        digest=report.digest,
    )


def _driver(scenario: Scenario, seed: int, options: RunOptions) -> Driver:
    topology = Topology(
        options.topology, settings=scenario.settings, instance=INSTANCE,
        schedulers=options.schedulers, policies=options.policies.beside(scenario.policies),
    )  # fmt: skip
    if options.driver == "sim":
        return SimulatorDriver(
            topology=topology, seed=seed, trace=options.trace,
            checkers=options.checkers(), replaced_for=options.replaced_for,
        )  # fmt: skip
    return ServiceDriver(
        driver=options.driver, topology=topology, trace=options.trace,
        time_scale=options.time_scale,
    )  # fmt: skip


def _failures(
    scenario: Scenario, seed: int, options: RunOptions, driver: Driver
) -> tuple[Failure, ...]:
    """Perform the steps up to the first that fails, and return its failures."""
    stage = Stage(scenario, driver, Random(seed).random if seed else None)  # noqa: S311 - no secret
    for step in steps_of(scenario):
        try:
            differences = stage.perform(step)
            driver.check()
        except Exception as error:  # noqa: BLE001 - whatever the core raises belongs to the step
            actual = f"{_text_of(error)}; repeat: {_command(scenario, seed, options)}"
            differences = (Difference("invariants", "hold", actual),)
        if differences:
            return tuple(
                Failure(step=step.number, line=step.line, **difference._asdict())
                for difference in differences
            )
    return ()


def steps_of(scenario: Scenario) -> tuple[WrittenStep, ...]:
    """Return the steps of a scenario, with the implied registration in front."""
    first = scenario.steps[0].step
    implied = () if isinstance(first, Register) else (IMPLIED_REGISTRATION,)
    return (*implied, *scenario.steps)


def _text_of(error: Exception) -> str:
    """Return the text of an error of the core; for any other, also where it was raised."""
    if isinstance(error, InvariantViolation | CoreError):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error!r} in {frame.name} ({Path(frame.filename).name}:{frame.lineno})"


def _command(scenario: Scenario, seed: int, options: RunOptions) -> str:
    driver = "" if options.driver == "sim" else f" --driver {options.driver}"
    schedulers = "" if options.schedulers == 1 else f" --schedulers {options.schedulers}"
    return (
        f"yunikorn-actors scenario run {shlex.quote(scenario.file)} --seed {seed} "
        f"--topology {options.topology}{schedulers}{driver}"
    )
