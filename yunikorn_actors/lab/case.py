"""A case: what happens outside of the core in a run, step by step.

It is made from a scenario file. Expectations are left out, because they hold for one order only;
what judges a run here holds in any order. The steps of a `together` are steps of their own.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.lab.tapes.tape import Entry, Tape, TapeError
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.policies.loading import policies_at
from yunikorn_actors.policies.registry import NO_POLICIES
from yunikorn_actors.scenario.document import Scenario, parse_scenario, read_source
from yunikorn_actors.scenario.drivers import INSTANCE
from yunikorn_actors.scenario.runner import steps_of
from yunikorn_actors.scenario.step_structs import Expect, Step, Together, WrittenStep

PACKAGE: Final = Path(__file__).parent.parent
"""The files of cases that come with the package are named from here, so anybody can play them."""
DIGITS: Final = 12
"""So much of its digest tells one file from another."""


class CaseStep(Struct, frozen=True):
    label: str
    """In a file its number: `7`, or `7.2` for the second step of a `together`. In a program what it
    does: `ask job-1`, and `ask job-1 #2` when it does that again.
    """
    written: WrittenStep

    @property
    def name(self) -> str:
        return f"step {self.label}"

    @property
    def step(self) -> Step:
        return self.written.step

    def explained(self) -> str:
        """Name it and say what it does, where the name does not."""
        if not self.label[:1].isdigit():
            return self.name
        about = " ".join(
            str(value)
            for field in ("id", "key", "app", "node")
            if isinstance(value := getattr(self.step, field, None), str) and value
        )
        return f"{self.name} ({f'{self.written.name} {about}'.strip()})"


Workload = Callable[[Any], None]
"""A function that drives the core in each run. It gets the run, a Trial."""


EVENTS_MAX: Final = 100_000


class Case(Struct, frozen=True, kw_only=True):
    scenario: Scenario
    digest: str
    topology: TopologyName
    steps: tuple[CaseStep, ...]
    schedulers: int = 1
    """How many plan for each partition."""
    events_max: int = EVENTS_MAX
    """After so many events a run counts as one that never ends."""
    text: str = ""
    """What the file says; empty if there is none."""
    policies: str = ""
    """MODULE:ATTRIBUTE of those that were named beside the file; it goes to any machine."""
    workload: Workload | None = None
    """What makes the steps, where they do not come from a file; then those of a first run."""

    def on(self, topology: TopologyName, schedulers: int = 1, policies: str = "") -> "Case":
        return replace(self, topology=topology, schedulers=schedulers, policies=policies)

    def built(self) -> Topology:
        """Return what makes its machines."""
        named = policies_at(self.policies) if self.policies else NO_POLICIES
        return Topology(
            self.topology, settings=self.scenario.settings, instance=INSTANCE,
            schedulers=self.schedulers, policies=named.beside(self.scenario.policies),
        )  # fmt: skip

    def tape(self, *entries: Entry) -> Tape:
        return Tape(
            scenario=self.scenario.file,
            digest=self.digest,
            topology=self.topology,
            schedulers=self.schedulers,
            policies=self.policies,
            entries=entries,
        )

    def left(self, tape: Tape) -> tuple[CaseStep, ...]:
        """Return the steps that the tape leaves; raise TapeError if it names others."""
        known = {step.label: step for step in self.steps}
        for label in (*(tape.steps or ()), *_steps_named(tape)):
            if label not in known:
                raise TapeError(
                    f"tape of {tape.scenario}: there is no step {label} to play: the steps of "
                    f"{self.scenario.file} are {', '.join(known)}"
                )
        if tape.steps is None:
            return self.steps
        kept = dict.fromkeys(tape.steps)
        return tuple(step for step in self.steps if step.label in kept)

    def explained(self, tape: Tape) -> Tape:
        """Return the tape with what its steps do, in brackets."""
        names = {step.name: step.explained() for step in self.steps}
        entries = (
            replace(
                entry,
                what=names.get(entry.what, entry.what),
                after=names.get(entry.after, entry.after),
            )
            for entry in tape.entries
        )
        return replace(tape, entries=tuple(entries))


def _steps_named(tape: Tape) -> Iterator[str]:
    """Yield the steps that the entries do; an event may be one that is left out."""
    for entry in tape.entries:
        if entry.what.startswith("step "):
            yield entry.what.removeprefix("step ")


def read_case(path: Path, topology: TopologyName = "proposing") -> Case:
    """Read a scenario file; raise ScenarioError if it is none."""
    return parse_case(read_source(path), str(path), topology)


def parse_case(text: str, file: str, topology: TopologyName = "proposing") -> Case:
    """Read the text of a scenario file; raise ScenarioError if it is none."""
    return replace(case_of(parse_scenario(text, file), digest_of(text), topology), text=text)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def case_of(scenario: Scenario, digest: str, topology: TopologyName = "proposing") -> Case:
    steps = tuple(_flat(steps_of(scenario)))
    return Case(scenario=scenario, digest=digest, topology=topology, steps=steps)


def _flat(written: tuple[WrittenStep, ...]) -> Iterator[CaseStep]:
    for item in written:
        if isinstance(item.step, Together):
            for inner in item.step.steps:
                yield CaseStep(f"{item.number}.{inner.number}", inner)
        elif not isinstance(item.step, Expect):
            yield CaseStep(str(item.number), item)
