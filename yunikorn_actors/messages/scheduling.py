"""What Context and its schedulers say to each other, and Context's timers to Context."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from yunikorn_actors.domain.allocation import WaitingState
from yunikorn_actors.domain.application import Application
from yunikorn_actors.domain.facts import Fact, NodeActionRefused
from yunikorn_actors.domain.findings import Finding
from yunikorn_actors.domain.gates import GateKind
from yunikorn_actors.domain.proposals import Proposal, Refusal
from yunikorn_actors.domain.resource import Resource
from yunikorn_actors.messages.base import Message


class FactsAppended(Message, frozen=True, kw_only=True):
    """Facts in the order of their revisions, without a gap; the first has this revision.

    The epoch tells one life of a partition from the next: a second registration of its resource
    manager starts another.
    """

    partition: str
    epoch: int
    rm_id: str
    first_revision: int
    facts: tuple[Fact, ...]


class NodeActionsRefused(Message, frozen=True, kw_only=True):
    """For a partition that is not there, so no sequence of facts has them."""

    rm_id: str
    refused: tuple[NodeActionRefused, ...]


class ProposeAllocations(Message, frozen=True, kw_only=True):
    """Decisions made on a view of revision `as_of`."""

    partition: str
    epoch: int
    as_of: int
    proposals: tuple[Proposal, ...]


class Observation(Struct, frozen=True, kw_only=True, gc=False):
    """An ask was refused: by a quota (SKIPPED), or because no node holds it (FAILED)."""

    application_id: str
    key: str
    sequence: int
    state: WaitingState
    reason: str
    shortage: GateKind | None = None
    """What is too little for it; None if the planner did not look."""
    available: Resource = {}
    refusals: dict[str, int] = {}
    """Reasons of the resource manager, and how many nodes it refused for each."""


class CrowdObservation(Struct, frozen=True, kw_only=True, gc=False):
    """Where as many applications run as may this one is held back; or it is not any more."""

    application_id: str
    serial: int
    crowd: GateKind
    reason: str


def crowds_of(
    findings: Iterable[tuple[Application, GateKind, str]],
) -> tuple[CrowdObservation, ...]:
    return tuple(
        CrowdObservation(application_id=app.id, serial=app.serial, crowd=crowd, reason=reason)
        for app, crowd, reason in findings
    )


def observations_of(
    findings: Iterable[Finding],
) -> tuple[Observation, ...]:
    return tuple(
        Observation(
            application_id=found.ask.spec.application_id,
            key=found.ask.spec.key,
            sequence=found.ask.sequence,
            state=found.state,
            reason=found.reason,
            shortage=found.shortage,
            available=found.available,
            refusals=found.refusals,
        )
        for found in findings
    )


class ReportWaiting(Message, frozen=True, kw_only=True):
    """What a cycle found out about asks that wait, and about applications that may not run."""

    partition: str
    epoch: int
    as_of: int
    observations: tuple[Observation, ...]
    crowds: tuple[CrowdObservation, ...]


class ProposalRejected(Message, frozen=True, kw_only=True):
    proposal_id: int
    reason: Refusal


class RunCycle(Message, frozen=True, kw_only=True):
    """To itself, at most one outstanding for a partition: something may be decided now."""

    partition: str
    epoch: int


class PlanningDue(Message, frozen=True, kw_only=True):
    """Something that waits for time alone has come of age."""

    partition: str
    epoch: int


class PartitionClosed(Message, frozen=True, kw_only=True):
    """No fact of this life of the partition follows."""

    partition: str
    epoch: int
    rm_id: str


class MachineFailed(Message, frozen=True, kw_only=True):
    """The driver says it for a machine that has raised, and that handles nothing any more.

    It comes from the address of that machine, behind everything that it has sent.
    """

    address: str
    failure: str
    legacy: dict[str, Any]
    """The counts that go on with the next one."""


class PartitionSnapshot(Message, frozen=True, kw_only=True):
    """What a replica starts from that does not hear every fact: the only way to skip revisions."""

    partition: str
    epoch: int
    image: dict[str, Any]


class FactsMissed(Message, frozen=True, kw_only=True):
    """Like a snapshot, for a machine without a replica: the next fact follows this revision."""

    partition: str
    epoch: int
    revision: int


class ApplicationTimerDue(Message, frozen=True, kw_only=True):
    partition: str
    epoch: int
    application_id: str
    serial: int
    kind: str
    generation: int


class HistoryExpiryDue(Message, frozen=True, kw_only=True):
    partition: str
    epoch: int
    serial: int


class ConfirmationDue(Message, frozen=True, kw_only=True):
    """A release may have waited for its confirmation for too long."""

    partition: str
    epoch: int


class QueueCleaningDue(Message, frozen=True, kw_only=True):
    partition: str
    epoch: int
    path: str
    generation: int
