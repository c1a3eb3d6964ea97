"""Notices: what a resource manager can be notified of, one type for each thing.

A notice is made twice: by what arrives at the callback, and by the truth that it is to state. The
two are compared field by field.
"""

from typing import Final, NamedTuple

from yunikorn_actors import si
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import Devices, devices_in
from yunikorn_actors.values.ids import short_partition_name
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import GPU_DEVICES

Thing = tuple[str, ...]
"""A kind of notice, and the names of what it is about."""
TEXTS: Final = frozenset({"message", "reason"})
"""Words for people: they hold what the truth says, and are never empty."""


class Placed(NamedTuple):
    """An allocation has been made."""

    uuid: str
    key: str
    application_id: str
    partition: str
    node_id: str
    resource: Resource
    devices: Devices
    priority: int
    task_group: str
    placeholder: bool
    originator: bool
    allow_preempt_self: bool
    allow_preempt_other: bool
    tags: dict[str, str]

    @property
    def invariant(self) -> str:
        return "G16"

    @property
    def thing(self) -> Thing:
        return ("allocation", self.uuid)

    @property
    def what(self) -> str:
        return f"allocation {self.uuid} ({self.key} of {self.application_id})"


class Ended(NamedTuple):
    """An allocation has ended, or is asked back."""

    uuid: str
    key: str
    application_id: str
    partition: str
    type: TerminationType
    message: str

    @property
    def invariant(self) -> str:
        # An end that the core asked for has a rule of its own.
        return "G15" if self.type is TerminationType.STOPPED_BY_RM else "G13"

    @property
    def thing(self) -> Thing:
        return ("allocation", self.uuid)

    @property
    def what(self) -> str:
        return f"release {self.type.name} of {self.uuid} ({self.key} of {self.application_id})"


class Withdrawn(NamedTuple):
    """The core has withdrawn an ask."""

    key: str
    application_id: str
    partition: str
    type: TerminationType
    message: str
    later_form: bool

    @property
    def invariant(self) -> str:
        return "G11"

    @property
    def thing(self) -> Thing:
        return ("withdrawn", self.application_id, self.key)

    @property
    def what(self) -> str:
        return f"withdrawal of {self.key} of {self.application_id}"


class ApplicationAccepted(NamedTuple):
    application_id: str
    queue: str
    by_last_resort: bool

    @property
    def invariant(self) -> str:
        return "G25"

    @property
    def thing(self) -> Thing:
        return ("accepted", self.application_id)

    @property
    def what(self) -> str:
        return f"acceptance of application {self.application_id}"


class ApplicationRefused(NamedTuple):
    application_id: str
    reason: str

    @property
    def invariant(self) -> str:
        return "G25"

    @property
    def thing(self) -> Thing:
        return ("rejected", self.application_id)

    @property
    def what(self) -> str:
        return f"rejection of application {self.application_id}"


class ApplicationIs(NamedTuple):
    """An application has come into another state."""

    application_id: str
    state: str
    at_ns: int
    message: str

    @property
    def invariant(self) -> str:
        return "G21"

    @property
    def thing(self) -> Thing:
        return ("state", self.application_id)

    @property
    def what(self) -> str:
        return f"state {self.state} of application {self.application_id}"


class NodeAccepted(NamedTuple):
    node_id: str

    @property
    def invariant(self) -> str:
        return "G25"

    @property
    def thing(self) -> Thing:
        return ("node", self.node_id)

    @property
    def what(self) -> str:
        return f"acceptance of node {self.node_id}"


class AskIs(NamedTuple):
    """How an ask that waits is doing."""

    application_id: str
    key: str
    state: str
    reason: str

    @property
    def invariant(self) -> str:
        return "G27"

    @property
    def thing(self) -> Thing:
        return ("ask", self.application_id, self.key)

    @property
    def what(self) -> str:
        return f"container state {self.state} of {self.key} of {self.application_id}"


Notice = (
    Placed
    | Ended
    | Withdrawn
    | ApplicationAccepted
    | ApplicationRefused
    | ApplicationIs
    | NodeAccepted
    | AskIs
)


def placed_by(
    partition: str,
    uuid: str,
    spec: AskSpec,
    node_id: str,
    resource: Resource,
    devices: Devices,
) -> Placed:
    """State an allocation as the core has it."""
    return Placed(
        uuid,
        spec.key,
        spec.application_id,
        short_partition_name(partition),
        node_id,
        resource,
        devices,
        spec.priority,
        spec.task_group,
        spec.placeholder,
        spec.originator,
        spec.allow_preempt_self,
        spec.allow_preempt_other,
        without_devices(spec.tags),
    )


def placed_in(item: si.Allocation) -> Placed:
    """State an allocation as the callback was notified of it."""
    resource, policy = item.resource_per_alloc, item.preemption_policy
    return Placed(
        item.uuid,
        item.allocation_key,
        item.application_id,
        item.partition_name,
        item.node_id,
        {} if resource is None else resource.amounts(),
        devices_in(item.allocation_tags),
        item.priority,
        item.task_group_name,
        item.placeholder,
        item.originator,
        policy is None or policy.allow_preempt_self,
        policy is not None and policy.allow_preempt_other,
        without_devices(item.allocation_tags),
    )


def without_devices(tags: dict[str, str]) -> dict[str, str]:
    """Leave out what the core itself says in the tags."""
    return {name: text for name, text in tags.items() if name != GPU_DEVICES}


def ended_in(item: si.AllocationRelease) -> Ended:
    return Ended(
        item.uuid,
        item.allocation_key,
        item.application_id,
        item.partition_name,
        item.termination_type,
        item.message,
    )


def difference(actual: Notice, expected: Notice) -> str:
    """Name the first field that differs, with both values; empty if none does."""
    # Equal nearly always: only then the fields are looked at.
    if actual == expected:
        return ""
    for name, has, wanted in zip(actual._fields, actual, expected, strict=True):
        if name in TEXTS:
            if not has:
                return f"{name} is empty, expected {wanted!r}"
            # Words may say more than the truth does, and never less.
            if str(wanted) not in str(has):
                return f"{name} is {has!r}, expected {wanted!r}"
        elif has != wanted:
            return f"{name} is {has!r}, expected {wanted!r}"
    return ""
