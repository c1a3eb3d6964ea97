"""Steps as other requests: asks in the later form of the interface, several things in one.

What comes of it is a `raw` step, which says a request as it is.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, Final

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.config.properties import parse_duration
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.resource_manager import Request
from yunikorn_actors.scenario.steps import request_of

WrittenStep = dict[str, Any]
_CALLS: Final[dict[type[si.SiMessage], str]] = {
    si.ApplicationRequest: "update_application",
    si.NodeRequest: "update_node",
    si.AllocationRequest: "update_allocation",
}
"""In this order, as what is asked for needs its application and perhaps a node."""
_STEPS: Final[Mapping[str, type[w.Step]]] = {
    "add_app": w.AddApp,
    "remove_app": w.RemoveApp,
    "create_node": w.CreateNode,
    "update_node": w.UpdateNode,
    "drain_node": w.DrainNode,
    "undrain_node": w.UndrainNode,
    "remove_node": w.RemoveNode,
    "ask": w.AddAsk,
    "bind": w.Bind,
    "release_ask": w.ReleaseAsk,
    "release": w.Release,
}
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "timeout": parse_duration,
    "type": lambda name: si.TerminationType[name],
    "preemption": lambda words: w.Preemption(**words),
    "allocations": lambda items: tuple(w.Running(**item) for item in items),
    "groups": tuple,
}


def joined(rm_id: str, steps: Iterable[WrittenStep]) -> list[WrittenStep]:
    """Join the requests among the steps, those of each kind into one; other steps come first."""
    others: list[WrittenStep] = []
    by_kind: dict[type[si.SiMessage], list[WrittenStep]] = {kind: [] for kind in _CALLS}
    for step in steps:
        request = _request(rm_id, step)
        by_kind.get(type(request), others).append(step)
    for several in by_kind.values():
        if len(several) > 1:
            others.append(_raw(reduce(_with, (_request(rm_id, step) for step in several))))
        else:
            others.extend(several)
    return others


def in_later_form(rm_id: str, step: WrittenStep, *, has_policy: bool) -> WrittenStep:
    """Ask as the later form does: in the list of allocations, without a node."""
    request = _request(rm_id, step)
    items = tuple(
        si.Allocation(
            allocation_key=ask.allocation_key,
            allocation_tags=ask.tags,
            resource_per_alloc=ask.resource_ask,
            priority=ask.priority,
            application_id=ask.application_id,
            partition_name=ask.partition_name,
            task_group_name=ask.task_group_name,
            placeholder=ask.placeholder,
            originator=ask.originator,
            preemption_policy=ask.preemption_policy if has_policy else None,
        )
        for ask in request.asks
    )
    return _raw(replace(request, asks=(), allocations=items))


def release_of_all(rm_id: str, partition: str, type_: str) -> WrittenStep:
    """End all that runs in a partition."""
    return release_of_one(rm_id, partition, "", app="", type_=type_)


def release_of_one(rm_id: str, partition: str, uuid: str, *, app: str, type_: str) -> WrittenStep:
    """End one by its UUID; without an application it may be of any."""
    item = si.AllocationRelease(
        partition_name=partition,
        application_id=app,
        uuid=uuid,
        termination_type=si.TerminationType[type_],
    )
    releases = si.AllocationReleasesRequest(allocations_to_release=(item,))
    return _raw(si.AllocationRequest(releases=releases, rm_id=rm_id))


def as_raw(rm_id: str, step: WrittenStep) -> WrittenStep:
    """Write the request of a step as it is."""
    return _raw(_request(rm_id, step))


def _request(rm_id: str, step: WrittenStep) -> Any:  # noqa: ANN401 - of any kind
    ((name, fields),) = step.items()
    kind = _STEPS.get(name)
    if kind is None:
        return None
    words = {word: _READ.get(word, lambda it: it)(it) for word, it in fields.items()}
    return request_of(kind(**words), rm_id)


def _with(one: Any, two: Any) -> Request:  # noqa: ANN401 - two requests of one kind
    """Return one request with what is in both; what ends is in a part of its own."""
    fields = {
        name: getattr(one, name) + getattr(two, name)
        for name in one.__struct_fields__
        if isinstance(getattr(one, name), tuple)
    }
    ends = [it for it in (getattr(one, "releases", None), getattr(two, "releases", None)) if it]
    if ends:
        fields["releases"] = ends[0] if len(ends) == 1 else _with(*ends)
    return replace(one, **fields)  # type: ignore[no-any-return]


def _raw(request: Any) -> WrittenStep:  # noqa: ANN401 - of any kind
    written = json.loads(si.to_json(request))
    return {"raw": {"call": _CALLS[type(request)], "request": written}}
