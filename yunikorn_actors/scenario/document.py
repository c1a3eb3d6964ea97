"""A scenario file: from its text to a Scenario, or a ScenarioError that names file and line.

The YAML is as strict as that of configurations.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from yaml.nodes import Node, ScalarNode

from yunikorn_actors.config import ConfigError
from yunikorn_actors.config.fault import TEXT_BYTES_MAX, why_unreadable
from yunikorn_actors.config.yaml_tree import compose, line_of
from yunikorn_actors.machines.settings import InvalidSetting, Settings
from yunikorn_actors.policies.loading import found_at, policies_at
from yunikorn_actors.policies.registry import NO_POLICIES, InvalidPolicy, Policies
from yunikorn_actors.scenario.expectations import EXPECTATION
from yunikorn_actors.scenario.resource_manager import Confirmation
from yunikorn_actors.scenario.step_readers import read_steps
from yunikorn_actors.scenario.step_structs import (
    Predicate,
    Step,
    Together,
    WrittenStep,
    configuration,
)
from yunikorn_actors.scenario.yaml_reading import (
    ScenarioFault,
    duration,
    mapping,
    one_of,
    refuse_ambiguous_keys,
    table,
    text,
    whole,
)

DEFAULT_QUEUES: Final = """\
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues: [{name: default}]
"""
SCENARIO_FORMAT: Final = 1
"""Number of the form of a file: another one where a reader of this one would be misled."""
PROMISES: Final = ("always", "sometimes", "eventually")
_NS: Final = "_ns"
"""The end of the name of a setting that is a time; in a file it is left out."""


class ScenarioError(ValueError):
    """The file cannot be read as a scenario."""


class Scenario(Struct, frozen=True, kw_only=True):
    file: str
    name: str
    queues: str
    settings: Settings
    confirmation: Confirmation
    policies: Policies = NO_POLICIES
    """Of the user's own, by the names that its configurations may use."""
    steps: tuple[WrittenStep, ...]
    always: dict[str, Any] = {}
    sometimes: dict[str, Any] = {}
    eventually: dict[str, Any] = {}
    """Promises that the laboratory watches in every order: expectations by name."""

    def predicates(self) -> Iterator[Predicate]:
        """Yield the steps that say what a resource manager answers to questions of the core."""
        steps = (step for written in self.steps for step in _alone(written.step))
        return (step for step in steps if isinstance(step, Predicate))


def _alone(step: Step) -> Iterator[Step]:
    """Yield the step itself, or the steps of a `together`."""
    if isinstance(step, Together):
        yield from (written.step for written in step.steps)
    else:
        yield step


def read_scenario(path: Path) -> Scenario:
    return parse_scenario(read_source(path), str(path))


def read_source(path: Path) -> str:
    """Return the text of a scenario file, at most one byte more than is allowed."""
    try:
        with path.open("rb") as file:
            return file.read(TEXT_BYTES_MAX + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {why_unreadable(error)}") from None


def parse_scenario(source: str, file: str) -> Scenario:
    try:
        return _scenario(source, file)
    except ConfigError as error:
        fault = error.faults[0]
        raise ScenarioError(f"{file}:{fault.line}: {fault.what} ({fault.remedy})") from None
    except ScenarioFault as fault:
        raise ScenarioError(f"{file}:{fault.line}: {fault}") from None


def _scenario(source: str, file: str) -> Scenario:
    root = compose(source)
    if root is None:
        raise ScenarioFault(1, "the file is empty; write at least `name` and `steps`")
    refuse_ambiguous_keys(root)
    return scenario_of(root, file)


def scenario_of(root: Node, file: str) -> Scenario:
    """Read a tree of YAML; raise ScenarioFault or ConfigError if it is no scenario."""
    values: dict[str, Any] = _read_document(root)
    for key in ("name", "steps"):
        if key not in values:
            raise ScenarioFault(line_of(root), f"{key!r} is missing")
    return Scenario(
        file=file,
        name=values["name"],
        queues=values.get("queues", DEFAULT_QUEUES),
        settings=values.get("settings", Settings()),
        confirmation=values.get("rm", {}).get("confirm", "auto"),
        policies=values.get("policies", NO_POLICIES),
        steps=values["steps"],
        **{kind: values[kind] for kind in PROMISES if kind in values},
    )


def _read_name(node: Node) -> str:
    name = text(node)
    if not name.strip() or len(name.splitlines()) > 1:
        raise ScenarioFault(line_of(node), "a name is one line")
    return name


def _read_format(node: Node) -> str:
    number = text(node)
    if number != str(SCENARIO_FORMAT):
        raise ScenarioFault(
            line_of(node),
            f"the file is of format {number}, and this version reads format {SCENARIO_FORMAT}; run "
            "it with the version that it was written for",
        )
    return number


def _read_settings(node: Node) -> Settings:
    try:
        return Settings(**{_SETTINGS[name]: value for name, value in _read_values(node).items()})
    except InvalidSetting as error:
        raise ScenarioFault(line_of(node), str(error)) from None


def _read_policies(node: Node) -> Policies:
    """Load a mapping of names to MODULE:CLASS, or MODULE:ATTRIBUTE that is such a mapping."""
    try:
        if isinstance(node, ScalarNode):
            return policies_at(text(node))
        places = mapping(text)(node)
        return Policies({name: found_at(place) for name, place in places.items()})
    except InvalidPolicy as error:
        raise ScenarioFault(line_of(node), str(error)) from None


_CONFIRMATIONS: Final[dict[str, Confirmation]] = {"auto": "auto", "manual": "manual"}
_SETTINGS: Final = {name.removesuffix(_NS): name for name in Settings.__struct_fields__}
_read_values: Final = table(
    {name: duration if field.endswith(_NS) else whole for name, field in _SETTINGS.items()}
)
_read_document: Final = table(
    {
        "format": _read_format,
        "name": _read_name,
        "about": text,
        "queues": configuration,
        "policies": _read_policies,
        "settings": _read_settings,
        "rm": table({"confirm": one_of(_CONFIRMATIONS)}),
        "steps": read_steps,
        **dict.fromkeys(PROMISES, mapping(EXPECTATION.read)),
    }
)
