"""Which applications and nodes a fact is about: nothing else of a partition changes by it.

A table of the facts that come by the thousand. Those that change queues, limits or the size of
nodes are rare and reach far, so they are not in it: after them everything is looked at.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from yunikorn_actors.state import facts as f

Names = dict[str, None]
Touched = tuple[Names, Names]
"""Ids of applications and of nodes; both may be gone by now."""


def touched_by(facts: Iterable[f.Fact]) -> Touched | None:
    """Return what the facts are about; None if one of them reaches further."""
    apps: Names = {}
    nodes: Names = {}
    for fact in facts:
        note = _NOTES.get(type(fact))
        if note is None:
            return None
        note(fact, apps, nodes)
    return apps, nodes


def _nobody(_: f.Fact, __: Names, ___: Names) -> None:
    """It changes nothing that is summed up anywhere."""


def _application(fact: Any, apps: Names, _: Names) -> None:  # noqa: ANN401 - as the table says
    apps[fact.application_id] = None


def _owner(fact: Any, apps: Names, _: Names) -> None:  # noqa: ANN401 - as the table says
    apps[fact.spec.application_id] = None


def _place(fact: Any, apps: Names, nodes: Names) -> None:  # noqa: ANN401 - as the table says
    apps[fact.application_id] = None
    nodes[fact.node_id] = None


def _recovered(fact: f.AllocationRecovered, apps: Names, nodes: Names) -> None:
    apps[fact.spec.application_id] = None
    nodes[fact.node_id] = None


def _node(fact: f.NodeAttributesReplaced, _: Names, nodes: Names) -> None:
    nodes[fact.node_id] = None


def _run(fact: f.AllocationsCommitted, apps: Names, nodes: Names) -> None:
    apps.update((charged.application_id, None) for charged in fact.charged)
    nodes.update(dict.fromkeys(fact.node_ids))


def _swapped(fact: f.SwapCompleted, apps: Names, nodes: Names) -> None:
    apps[fact.application_id] = None
    nodes[fact.node_id] = nodes[fact.placeholder_node] = None


_NOTES: Final[dict[type, Callable[[Any, Names, Names], None]]] = {
    **dict.fromkeys(
        (
            f.AdministratorActed,
            f.ApplicationForgotten,
            f.ApplicationRejected,
            f.ApplicationSummarized,
            f.ConfigurationRefused,
            f.LongWorkStarted,
            f.MachineReplaced,
            f.NodeActionRefused,
            f.PlaceholderCancelled,
            f.PolicyFailed,
            f.PreemptionDecided,
            f.QuotaPreemptionArmed,
            f.QuotaPreemptionCleared,
            f.SchedulingHeld,
        ),
        _nobody,
    ),
    **dict.fromkeys(
        (
            f.ApplicationCrowded,
            f.ApplicationLinked,
            f.ApplicationRemoved,
            f.ApplicationStateChanged,
            f.AskRefused,
            f.AskRemoved,
            f.AskReported,
            f.AskShortageChanged,
            f.AsksAdded,
            f.ConfirmationMissed,
            f.GangAdmitted,
            f.GangLapsed,
            f.ReleaseRequested,
            f.TimerArmed,
            f.TimerCancelled,
        ),
        _application,
    ),
    **dict.fromkeys((f.ApplicationAdded, f.AskAdded), _owner),
    **dict.fromkeys(
        (
            f.AllocationCommitted,
            f.AllocationReleased,
            f.AllocationResized,
            f.AskParked,
            f.PreemptionFailed,
            f.ReservationDropped,
            f.ReservationMade,
            f.VictimMarked,
        ),
        _place,
    ),
    f.AllocationRecovered: _recovered,
    f.AllocationsCommitted: _run,
    f.NodeAttributesReplaced: _node,
    f.SwapCompleted: _swapped,
}
