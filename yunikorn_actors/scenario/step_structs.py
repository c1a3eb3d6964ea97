"""Steps as they are written: one Struct for each, its fields annotated with their readers.

`rm` and `partition` are empty if a step does not name them; the stage puts in the defaults. Amounts
are base units, durations nanoseconds.
"""

import json
from typing import Annotated, Any, Final

import yaml
from msgspec import Struct, field
from yaml.constructor import SafeConstructor
from yaml.nodes import Node

from yunikorn_actors import si
from yunikorn_actors.config.yaml_tree import line_of
from yunikorn_actors.scenario.yaml_reading import (
    Amounts,
    Duration,
    Flag,
    OptionalAmounts,
    OptionalText,
    OptionalWhole,
    ScenarioFault,
    Text,
    TextMap,
    Texts,
    Whole,
    many,
    member_of,
    members,
    one_of,
    record,
)

RAW_CALLS: Final[dict[str, type[si.SiMessage]]] = {
    "register_resource_manager": si.RegisterResourceManagerRequest,
    "update_allocation": si.AllocationRequest,
    "update_application": si.ApplicationRequest,
    "update_node": si.NodeRequest,
    "update_configuration": si.UpdateConfigurationRequest,
}


def configuration(node: Node) -> str:
    """Turn a mapping back into text; single values stay exactly as they were written."""
    if "partitions" not in {key.value for key, _ in members(node)}:
        raise ScenarioFault(line_of(node), "a configuration must hold 'partitions'")
    written: str = yaml.serialize(node, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    return written


def _json(node: Node) -> bytes:
    try:
        value = SafeConstructor().construct_document(node)
        return json.dumps(value, default=str).encode()
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise ScenarioFault(line_of(node), f"cannot be written as JSON: {error}") from None


Configuration = Annotated[str, configuration]
Termination = Annotated[si.TerminationType, member_of(si.TerminationType)]


class Step(Struct, frozen=True, kw_only=True):
    """The base of all steps."""


class ManagerStep(Step, frozen=True, kw_only=True):
    rm: Text = ""


class PartitionStep(ManagerStep, frozen=True, kw_only=True):
    partition: Text = ""


class NamedStep(PartitionStep, frozen=True, kw_only=True):
    """A step that only names an object; it may be written as the name alone."""

    id: Text


class Register(ManagerStep, frozen=True, kw_only=True):
    config: Configuration = ""
    """Empty means the configuration of the file."""
    extra: TextMap = field(default_factory=dict)
    expect_error: OptionalText = None


class Running(Struct, frozen=True, kw_only=True):
    """Running work that is reported with its node."""

    key: Text
    app: Text
    resource: Amounts
    task_group: Text = ""
    placeholder: Flag = False
    priority: Whole = 0
    uuid: Text = ""
    tags: TextMap = field(default_factory=dict)


class CreateNode(PartitionStep, frozen=True, kw_only=True):
    id: Text = ""
    ids: Texts = ()
    count: OptionalWhole = None
    capacity: OptionalAmounts = None
    attributes: TextMap = field(default_factory=dict)
    occupied: OptionalAmounts = None
    draining: Flag = False
    allocations: Annotated[tuple[Running, ...], many(record(Running))] = ()

    def names(self) -> tuple[str, ...]:
        return self.ids or numbered(self.id, self.count)


class UpdateNode(NamedStep, frozen=True, kw_only=True):
    capacity: OptionalAmounts = None
    occupied: OptionalAmounts = None
    attributes: TextMap = field(default_factory=dict)


class DrainNode(NamedStep, frozen=True, kw_only=True):
    pass


class UndrainNode(NamedStep, frozen=True, kw_only=True):
    pass


class RemoveNode(NamedStep, frozen=True, kw_only=True):
    pass


class AddApp(NamedStep, frozen=True, kw_only=True):
    queue: Text = ""
    """Empty means that the placement rules decide."""
    user: Text = "test"
    groups: Texts = ()
    tags: TextMap = field(default_factory=dict)
    placeholder_ask: OptionalAmounts = None
    style: Annotated[str, one_of({"Soft": "Soft", "Hard": "Hard"})] = "Soft"
    timeout: Duration = 0


class RemoveApp(NamedStep, frozen=True, kw_only=True):
    pass


class Preemption(Struct, frozen=True, kw_only=True):
    allow_self: Flag = True
    allow_other: Flag = True


class AddAsk(PartitionStep, frozen=True, kw_only=True):
    app: Text
    key: Text
    resource: OptionalAmounts = None
    count: OptionalWhole = None
    max_allocations: Whole = 1
    priority: Whole = 0
    task_group: Text = ""
    placeholder: Flag = False
    originator: Flag = False
    required_node: Text = ""
    preemption: Annotated[Preemption, record(Preemption)] = Preemption()
    timeout: Duration = 0
    tags: TextMap = field(default_factory=dict)

    def all_keys(self) -> tuple[str, ...]:
        return numbered(self.key, self.count)


class ReleaseAsk(PartitionStep, frozen=True, kw_only=True):
    app: Text
    key: Text = ""


class Release(PartitionStep, frozen=True, kw_only=True):
    app: Text = ""
    """Empty: all work with this key, of any application or foreign."""
    key: Text = ""
    type: Termination = si.TerminationType.STOPPED_BY_RM


class Confirm(PartitionStep, frozen=True, kw_only=True):
    app: Text
    key: Text
    type: Termination


class ConfirmAll(ManagerStep, frozen=True, kw_only=True):
    pass


class Bind(PartitionStep, frozen=True, kw_only=True):
    app: Text = ""
    """Foreign work has none."""
    key: Text
    node: Text
    resource: OptionalAmounts = None
    task_group: Text = ""
    placeholder: Flag = False
    priority: Whole = 0
    uuid: Text = ""
    tags: TextMap = field(default_factory=dict)


class Config(ManagerStep, frozen=True, kw_only=True):
    queues: Configuration
    extra: TextMap = field(default_factory=dict)
    expect_error: OptionalText = None


class Reconfigure(PartitionStep, frozen=True, kw_only=True):
    """Of a simulation alone: one queue of the configuration in force, or a limit in it."""

    queue: Text
    max: OptionalAmounts = None
    max_applications: OptionalWhole = None
    guaranteed: OptionalAmounts = None
    properties: TextMap = field(default_factory=dict)
    user: Text = ""
    group: Text = ""
    template: Flag = False


class LoseRm(NamedStep, frozen=True, kw_only=True):
    pass


class Unregister(NamedStep, frozen=True, kw_only=True):
    pass


class Raw(Step, frozen=True, kw_only=True):
    call: Annotated[str, one_of({name: name for name in RAW_CALLS})]
    request: Annotated[bytes, _json]
    """As JSON; it is decoded when it is sent, so a malformed request can be written too."""
    expect_error: OptionalText = None


class Advance(Step, frozen=True, kw_only=True):
    duration_ns: int


class Denied(Struct, frozen=True, kw_only=True):
    key: Text = "*"
    node: Text = "*"
    raises: Flag = False
    """Whether the callback raises instead of returning a reason."""


class Predicate(ManagerStep, frozen=True, kw_only=True):
    deny: Annotated[tuple[Denied, ...], many(record(Denied))] = ()
    victims: OptionalWhole = None
    """So many more than are needed it wants to go; only then it is asked about victims at all."""


class Together(Step, frozen=True, kw_only=True):
    steps: "tuple[WrittenStep, ...]"


class Expect(Step, frozen=True, kw_only=True):
    expected: dict[str, Any]


class WrittenStep(Struct, frozen=True, kw_only=True):
    """A step with its name, number and line."""

    number: int
    line: int
    name: str
    step: Step


def numbered(name: str, count: int | None) -> tuple[str, ...]:
    return (name,) if count is None else tuple(f"{name}-{number}" for number in range(count))
