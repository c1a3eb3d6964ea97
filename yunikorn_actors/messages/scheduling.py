"""Messages between Context and its schedulers, and messages of Context's timers."""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from yunikorn_actors.messages.base import Message
from yunikorn_actors.state.allocations import WaitingState
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.facts import Fact, NodeActionRefused
from yunikorn_actors.state.gates import GateKind
from yunikorn_actors.state.proposals import Finding, Proposal, Refusal
from yunikorn_actors.values.resource import Resource


class FactsAppended(Message, frozen=True, kw_only=True):
    """Facts in the order of their revisions, without a gap, from `first_revision` on.

    The epoch is the number of one life of a partition: a second registration of its resource
    manager starts another life.
    """

    partition: str
    epoch: int
    rm_id: str
    first_revision: int
    facts: tuple[Fact, ...]


class NodeActionsRefused(Message, frozen=True, kw_only=True):
    """Refused actions on nodes of a partition that does not exist, so it has no facts."""

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
    """Which kind of gate has too little room; None if the planner did not look."""
    available: Resource = {}
    refusals: dict[str, int] = {}
    """For each reason of the resource manager, how many nodes it refused."""


class RunLimitObservation(Struct, frozen=True, kw_only=True, gc=False):
    """A run limit blocks an application, or does not any more."""

    application_id: str
    serial: int
    crowd: GateKind
    reason: str


def run_limits_of(
    findings: Iterable[tuple[Application, GateKind, str]],
) -> tuple[RunLimitObservation, ...]:
    return tuple(
        RunLimitObservation(application_id=app.id, serial=app.serial, crowd=kind, reason=reason)
        for app, kind, reason in findings
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
    """What a cycle found out about waiting asks and about applications blocked by a run limit."""

    partition: str
    epoch: int
    as_of: int
    observations: tuple[Observation, ...]
    crowds: tuple[RunLimitObservation, ...]


class ReportPolicyFailed(Message, frozen=True, kw_only=True):
    """A policy has failed in a planner, or the driver of the core has found it slow."""

    partition: str
    """Empty for all: who measures calls does not know for which of them they were made."""
    epoch: int
    queue: str
    """Empty for that of the nodes."""
    policy: str
    failure: str
    is_slow: bool = False
    """It decides all the same."""


class ProposalRejected(Message, frozen=True, kw_only=True):
    proposal_id: int
    reason: Refusal


class TokenPassed(Message, frozen=True, kw_only=True):
    """The token: of several schedulers only the one that has it plans, and then hands it on.

    It comes from a scheduler behind its proposals, and to the next behind the facts of those.
    """

    partition: str
    epoch: int
    scheduler: int
    """The number of the scheduler that hands it on, or gets it."""
    round: int
    """How often it was handed on until that one got it."""
    is_claimed: bool = False
    """It did not have the token: the one that has does not decide."""


class TokenRevoked(Message, frozen=True, kw_only=True):
    """The scheduler did not decide for so long that another one has claimed the token."""

    partition: str
    epoch: int


class RunCycle(Message, frozen=True, kw_only=True):
    """Plan again; a machine sends it to itself, at most one at a time for each partition."""

    partition: str
    epoch: int


class RunSlice(Message, frozen=True, kw_only=True):
    """Do the next slice of long work; a machine sends it to itself, at most one at a time."""


class PlanningDue(Message, frozen=True, kw_only=True):
    """A delay, a pause or a back-off has ended, so something may be decided."""

    partition: str
    epoch: int


class PartitionClosed(Message, frozen=True, kw_only=True):
    """No fact of this life of the partition follows."""

    partition: str
    epoch: int
    rm_id: str


class MachineFailed(Message, frozen=True, kw_only=True):
    """A machine has raised and handles nothing any more; the driver sends this for it.

    It comes from the address of that machine, behind everything that the machine has sent.
    """

    address: str
    failure: str
    legacy: dict[str, Any]
    """The counts that its successor goes on with."""


class PartitionSnapshot(Message, frozen=True, kw_only=True):
    """The state from which a new replica begins: the only way to skip revisions."""

    partition: str
    epoch: int
    image: dict[str, Any]


class FactsMissed(Message, frozen=True, kw_only=True):
    """Like a snapshot, for a machine without a replica: the next fact follows this revision."""

    partition: str
    epoch: int
    revision: int


ALLOCATION_TIMER: Final = "allocation:"
"""The kind of a timer of one allocation begins so, and its UUID follows."""


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
    """The time to confirm a release is over."""

    partition: str
    epoch: int


class QueueCleaningDue(Message, frozen=True, kw_only=True):
    partition: str
    epoch: int
    path: str
    generation: int
