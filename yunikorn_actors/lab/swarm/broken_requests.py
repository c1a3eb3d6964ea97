"""Requests with one thing wrong in them: what a resource manager in error may send.

Each has to be refused, by the call or in an answer, and must leave everything else as it is.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.request_forms import WrittenStep, as_raw
from yunikorn_actors.values import tags

Item = dict[str, Any]
_LARGEST: Final = 2**63 - 1
_ODD_AMOUNTS: Final[tuple[dict[str, int], ...]] = (
    {}, {"vcore": -1}, {"vcore": 0}, {"vcore": 1000, "memory": -5}, {"vcore": _LARGEST},
    {"": 1}, {"pods": 3}, {"nvidia.com/gpu": 1}, {"vcore": 1000, "ephemeral-storage": 1},
)  # fmt: skip
_ODD_NAMES: Final = ("", "nobody", "a b", "root", "n1", "app-1", "x" * 300, "Ünicode", "a/b")
_ODD_PARTITIONS: Final = ("", "other", "[rm-1]default", "[rm-9]default", "default ", "DEFAULT")
ODD_PATHS: Final = (
    "", "root", "root.", ".root", "root..a", "root.none.x", "ROOT.A", "root.a.x.y", "a", "root.a b",
    "root.$", "root." + "y" * 80,
)  # fmt: skip
_ODD_NUMBERS: Final = (-1, 0, 1, 2**31 - 1, -(2**31))


def _amount(draw: Draw) -> Item:
    amounts = draw.one_of(_ODD_AMOUNTS)
    return {"resources": {kind: {"value": value} for kind, value in amounts.items()}}


def _tags(draw: Draw) -> dict[str, str]:
    name = draw.one_of(
        (tags.TAG_RUNTIME, tags.GPU_MODEL, tags.CREATION_TIME, tags.NODE_PARTITION, "")
    )
    return {name: draw.one_of(("", "soon", "-1", "1e400", "0", "12.5", "ann", "99999999999999"))}


def _attributes(draw: Draw) -> dict[str, str]:
    name = draw.one_of(
        (tags.GPU_DEVICES, tags.GPU_MODEL, tags.NODE_READY_ATTRIBUTE, tags.NODE_PARTITION)
    )
    return {name: draw.one_of(("", "false", "maybe", "-2", "3", "100", "1,2", "A100", "other"))}


def _one_of(*values: object) -> Callable[[Draw], object]:
    return lambda draw: draw.one_of(values)


_name, _partition = _one_of(*_ODD_NAMES), _one_of(*_ODD_PARTITIONS)
_number = _one_of(*_ODD_NUMBERS)
_ASK: Final = {
    "applicationID": _name, "allocationKey": _name, "partitionName": _partition,
    "taskGroupName": _name, "placeholder": _one_of(True, False), "priority": _number,
    "executionTimeoutMilliSeconds": _number,
}  # fmt: skip
_RELEASE: Final = {
    "applicationID": _name, "partitionName": _partition, "allocationKey": _name,
    "terminationType": _one_of(0, 1, 2, 3, 4, 5),
}  # fmt: skip
_APPLICATION: Final = {"applicationID": _name, "partitionName": _partition}
_WRONG: Final[Mapping[str, Mapping[str, Callable[[Draw], object]]]] = {
    "asks": {**_ASK, "resourceAsk": _amount, "maxAllocations": _number, "tags": _tags},
    "allocations": {
        **_ASK, "resourcePerAlloc": _amount, "nodeID": _name, "UUID": _name,
        "allocationTags": _tags,
    },
    "new": {
        **_APPLICATION, "queueName": _one_of(*ODD_PATHS), "placeholderAsk": _amount,
        "ugi": _one_of({}, {"user": ""}, {"user": "a b"}, {"user": "ann", "groups": ["", "x y"]}),
        "tags": _tags, "executionTimeoutMilliSeconds": _number,
        "gangSchedulingStyle": _one_of("", "Firm", "hard", "Soft"),
    },
    "remove": _APPLICATION,
    "nodes": {
        "nodeID": _name, "action": _one_of(0, 1, 2, 3, 4, 5, 6), "attributes": _attributes,
        "schedulableResource": _amount,
    },
    "allocationsToRelease": {**_RELEASE, "UUID": _name},
    "allocationAsksToRelease": _RELEASE,
}  # fmt: skip
"""By the list in which an item stands: what each of its fields may be instead."""


def damaged(draw: Draw, rm_id: str, step: WrittenStep) -> WrittenStep:
    """Return the request of a step with one field of one item changed, or that item twice."""
    raw = as_raw(rm_id, step)
    request = raw["raw"]["request"]
    lists = [
        (name, items)
        for part in (request, request.get("releases", {}))
        for name, items in part.items()
        if name in _WRONG and items
    ]
    name, items = draw.one_of(lists)
    if draw.once_in(8):
        items.append(items[0])
        return raw
    field = draw.one_of(sorted(_WRONG[name]))
    draw.one_of(items)[field] = _WRONG[name][field](draw)
    return raw
