"""A survey: which nodes would take one ask, and what stands against the others.

Nobody but `explain` looks at nodes one by one; placing finds its node by the index.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.shape import Shape, Use
from yunikorn_actors.planning.model.views import AskView
from yunikorn_actors.planning.reasons import NearMiss, NodeCheck
from yunikorn_actors.state.device_fit import parts_for
from yunikorn_actors.state.eligibility import check_open, is_kept_from
from yunikorn_actors.state.gates import shortfall
from yunikorn_actors.state.preemption import room_for
from yunikorn_actors.state.proposals import Refusal
from yunikorn_actors.values.devices import pick
from yunikorn_actors.values.resource import Resource, fits_in
from yunikorn_actors.values.tags import GPU

_OF_SIZE = frozenset({NodeCheck.TOO_SMALL, NodeCheck.FULL})
_EVEN_EMPTY = frozenset({NodeCheck.TOO_SMALL, NodeCheck.DEVICES})
Checks = tuple[NodeCheck, ...]
NAMED_MAX = 10


class Survey(NamedTuple):
    total: int
    fitting: int
    """Nodes that would take the ask."""
    first: dict[str, int]
    """For each check, how many nodes fail it first."""
    without: dict[str, int]
    """For each check, how many nodes fail this one alone."""
    exhausted: dict[str, int]
    """For each type, how many nodes that are open to the ask have too little of it."""
    near_miss: NearMiss | None
    kept_for: dict[str, str]
    """For some of the nodes that are reserved for others, for whom."""
    refusals: dict[str, int]
    split: int
    """What is free of devices on nodes where only that stands against it, that it is in parts."""
    is_hopeless: bool
    """No node could hold the ask, even when empty."""


def survey(ask: AskView, nodes: Iterable[NodeView]) -> Survey:
    total = too_small = split = 0
    first: Counter[str] = Counter()
    without: Counter[str] = Counter()
    exhausted: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    kept_for: dict[str, str] = {}
    nearest = Nearest(ask.shape)
    for node in nodes:
        total += 1
        failing = _failing(ask, node)
        if not failing:
            continue
        check = failing[0]
        first[check] += 1
        # Failing this one alone: taking it away would let the ask in.
        if len(failing) == 1:
            without[check] += 1
        # No room will ever come free there: the node is too small or without such devices.
        if not _EVEN_EMPTY.isdisjoint(failing):
            too_small += 1
        if failing == (NodeCheck.SPLIT,):
            split += node.free[GPU]
        # A few names: with thousands of nodes a list would say nothing.
        if check is NodeCheck.KEPT and len(kept_for) < NAMED_MAX:
            kept_for.update((node.id, f"{key} of {app}") for app, key in node.node.reservations)
        # Only where size matters is there a node that comes nearest.
        if check in _OF_SIZE:
            exhausted.update(nearest.look(node, check).keys())
        elif check is NodeCheck.REFUSED:
            assert ask.shape.denial is not None
            refusals[ask.shape.denial.refused[Use.PLACING][node.id]] += 1
    return Survey(
        total=total,
        fitting=total - sum(first.values()),
        first={check.value: first[check] for check in NodeCheck if first[check]},
        without={check.value: without[check] for check in NodeCheck if without[check]},
        exhausted=dict(sorted(exhausted.items())),
        near_miss=nearest.found,
        kept_for=kept_for,
        refusals=dict(sorted(refusals.items())),
        split=split,
        # All of them, and there is one at least.
        is_hopeless=0 < total == too_small,
    )


class Nearest:
    """The node that is short by the smallest share; one that could hold the ask comes first."""

    def __init__(self, shape: Shape) -> None:
        self._wanted = shape.wanted
        self._sizes = dict(shape.wanted)
        self._rank: tuple[bool, float, str] | None = None
        self.found: NearMiss | None = None

    def look(self, node: NodeView, check: NodeCheck) -> Resource:
        """Return what this one lacks."""
        is_small = check is NodeCheck.TOO_SMALL
        # As a share of what is asked for, so that types can be compared.
        lacks = shortfall(node.node.capacity if is_small else node.free, {}, self._wanted, True)
        short = max(lacks[kind] / self._sizes[kind] for kind in lacks)
        rank = (is_small, short, node.id)
        if self._rank is None or rank < self._rank:
            self._rank = rank
            taken = node.node.occupied
            self.found = NearMiss(
                node_id=node.id,
                check=check,
                lacks=lacks,
                foreign={kind: taken[kind] for kind in lacks if taken.get(kind)},
            )
        return lacks


def _failing(ask: AskView, node: NodeView) -> Checks:
    """Return the checks that the node fails, in their order."""
    closed = _closed(ask, node)
    shape = ask.shape
    # One of size, devices and their parts: the first that fails hides the others.
    if not shape.could_have_devices_of(node.node):
        closed = (*closed, NodeCheck.DEVICES)
    elif not node.fits(shape.wanted):
        is_small = not fits_in(ask.resource, node.node.capacity)
        closed = (*closed, NodeCheck.TOO_SMALL if is_small else NodeCheck.FULL)
    elif shape.devices and node.devices_for(shape) is None:
        closed = (*closed, NodeCheck.SPLIT)
    if shape.denial is not None and shape.is_refused(node.id, Use.PLACING):
        closed = (*closed, NodeCheck.REFUSED)
    return closed


def _closed(ask: AskView, node: NodeView) -> Checks:
    """Return what closes a node to an ask that requires it: no drain and no foreign reservation.

    The room that victims of other asks made there is closed to it.
    """
    spec = ask.ask.spec
    # Nothing else is known of it: its amounts are those of before the restart.
    if node.node.awaited:
        return (NodeCheck.AWAITED,)
    # It would fit, but that room is promised to others.
    if node.fits(ask.shape.wanted) and not fits_in(
        ask.resource, room_for(node.node, spec, node.free)
    ):
        return (NodeCheck.KEPT,)
    if _is_kept_on_devices(ask, node):
        return (NodeCheck.KEPT,)
    refusal = check_open(node.node, spec)
    # Kept, drained or given up: what is on its way counts as closed.
    if refusal is None and not node.keeping:
        return ()
    is_drained = refusal is Refusal.NODE_DRAINING
    is_coming = node.keeping and not spec.required_node and node.id not in ask.ask.reserved
    is_kept = is_coming or (refusal is not None and is_kept_from(node.node, spec))
    return (NodeCheck.NO_WORK,) * is_drained + (NodeCheck.KEPT,) * bool(is_kept)


def _is_kept_on_devices(ask: AskView, node: NodeView) -> bool:
    """Whether devices that would do are free, and victims of other asks left them."""
    free, amount = node.parts, ask.shape.devices
    if free is None or not node.node.reservations or pick(free, amount) is None:
        return False
    return pick(parts_for(node.node, ask.ask.spec, free), amount) is None
