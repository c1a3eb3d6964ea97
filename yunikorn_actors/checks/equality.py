"""Equality of two states of a partition, found out fast.

A replica applies the very facts of the truth, so the two hold equal values, mostly the same
objects, and comparing field by field needs no plain values of either. It is stricter than comparing
snapshots, which leave out zeros and much that follows from the rest: if two states are not alike
here, their snapshots decide. A replica that was made from an image has no zeros, for example.
"""

from operator import attrgetter
from typing import Any, Final

from msgspec.structs import astuple

from yunikorn_actors.state.applications import Application, Usage
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue

_PARTS: Final = {"queues", "nodes", "applications", "users", "groups", "folds"}
"""Compared one by one: they lead to each other, or do not compare by value."""
_NEIGHBOURS: Final = {"parent", "lineage", "children", "limits"}
"""Other queues, and limits that follow from the `spec`."""
_QUEUE: Final = attrgetter(*(name for name in Queue.__slots__ if name not in _NEIGHBOURS))
_BOOKS: Final = {"queue", "usages", "group_usages", "allocated_books", "pending_books"}
"""Books of others, which are compared where they stand."""
_APPLICATION: Final = attrgetter(*(name for name in Application.__slots__ if name not in _BOOKS))
_USAGE: Final = attrgetter(*Usage.__slots__)


def are_alike(one: PartitionState, other: PartitionState) -> bool:
    theirs = vars(other)
    return (
        all(value == theirs[name] for name, value in vars(one).items() if name not in _PARTS)
        # First the keys: the comparisons after it rely on them.
        and _have_same_keys(one, other)
        and all(_QUEUE(it) == _QUEUE(other.queues[path]) for path, it in one.queues.items())
        and all(astuple(it) == astuple(other.nodes[id_]) for id_, it in one.nodes.items())
        and all(
            _are_apps_alike(it, other.applications[id_]) for id_, it in one.applications.items()
        )
        and _are_users_alike(one.users, other.users)
        and _are_users_alike(one.groups, other.groups)
        and _kept_by_policies(one) == _kept_by_policies(other)
    )


def _kept_by_policies(state: PartitionState) -> dict[str, Any]:
    return {} if state.folds is None else state.folds.image()


def _have_same_keys(one: PartitionState, other: PartitionState) -> bool:
    return (
        one.queues.keys() == other.queues.keys()
        and one.nodes.keys() == other.nodes.keys()
        and one.applications.keys() == other.applications.keys()
    )


def _are_apps_alike(one: Application, other: Application) -> bool:
    same: bool = _APPLICATION(one) == _APPLICATION(other)
    # Of the queue only which one: it is compared where it stands.
    return same and one.queue.path == other.queue.path


Users = dict[str, dict[str, Usage]]


def _are_users_alike(one: Users, other: Users) -> bool:
    if one.keys() != other.keys():
        return False
    for name, by_path in one.items():
        others = other[name]
        if by_path.keys() != others.keys():
            return False
        for path, usage in by_path.items():
            if _USAGE(usage) != _USAGE(others[path]):
                return False
    return True
