"""Placing an application: the rules name a queue, and whatever is missing of it is created.

Creating the queue and adding the application happen in one handler, so no cleaner runs in between
(R-110, H-25). If the application is refused after its queue was created, the empty queue is cleaned
like any other.
"""

from typing import Annotated

import msgspec

from yunikorn_actors.config import TemplateConfig
from yunikorn_actors.config.names import RECOVERY_QUEUE
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationSpec
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.placement import (
    RECOVERY_PATH,
    PlacementFailed,
    nearest,
    place,
)
from yunikorn_actors.state.queues import Queue, QueueSpec, QueueState
from yunikorn_actors.values.resource import INT64_MAX, Resource, strictly_greater_than_zero
from yunikorn_actors.values.tag_lookup import is_forced, tag_of
from yunikorn_actors.values.tags import (
    APP_TAG_NAMESPACE_RESOURCE_GUARANTEED,
    APP_TAG_NAMESPACE_RESOURCE_MAX_APPS,
    APP_TAG_NAMESPACE_RESOURCE_QUOTA,
)

# Users write these tags. Parsing megabytes would take longer than a handler may (G30).
_TAG_MAX = 64 * 1024


class _Quantity(msgspec.Struct):
    value: Annotated[int, msgspec.Meta(ge=-INT64_MAX, le=INT64_MAX)]


class _TaggedResource(msgspec.Struct):
    resources: dict[str, _Quantity]


_DECODER = msgspec.json.Decoder(_TaggedResource)


def queue_for(unit: UnitOfWork, spec: ApplicationSpec) -> tuple[Queue, bool]:
    """Return the leaf for an application, created if needed; or raise PlacementFailed.

    The second value says whether only the last resort took it.
    """
    try:
        # Nothing is created before both the rules and the queues above have agreed: a refusal must
        # leave no queue behind.
        path, by_last_resort = place(unit.state, spec)
        if path not in unit.state.queues:
            _check_creation(unit.state, spec, path)
    except PlacementFailed:
        # Its work runs: whatever became of queues and rules, nobody else would count it.
        if not is_forced(spec.tags):
            raise
        path, by_last_resort = RECOVERY_PATH, False
    if path not in unit.state.queues:
        _create(unit, path)
    queue = unit.state.queues[path]
    # A managed leaf has its amounts from the configuration. For a dynamic one the tags come first:
    # the application is judged by the quota that it brought itself.
    if not queue.spec.managed and path != RECOVERY_PATH:
        _apply_tags(unit, spec, queue)
    return queue, by_last_resort


def _check_creation(state: PartitionState, spec: ApplicationSpec, path: str) -> None:
    above = nearest(state, path)
    if path == RECOVERY_PATH:
        return
    reason = None
    # The recovery queue takes what runs already. A path through it could only come from a rule or a
    # user that names it.
    if RECOVERY_QUEUE in path.split("."):
        reason = f"creation of queue {path} failed: the recovery queue cannot be asked for"
    elif not above.allows_submit(spec.user, spec.groups):
        reason = f"submit access to queue {above.path} denied during create of: {path}"
    elif above.is_leaf:
        reason = f"creation of queue {path} failed parent is already a leaf: {above.path}"
    elif above.state is QueueState.DRAINING:
        reason = f"creation of queue {path} failed: {above.path} is draining"
    if reason is not None:
        raise PlacementFailed(
            f"failed to create rule based queue {path} for application "
            f"{spec.application_id}: {reason}"
        )


def _create(unit: UnitOfWork, path: str) -> None:
    """Make every missing level: parents on the way, a leaf at the end."""
    state = unit.state
    parts = path.split(".")
    # Parents first: the fact of a queue looks its parent up in the state.
    for number in range(1, len(parts) + 1):
        name = ".".join(parts[:number])
        if name in state.queues:
            continue
        above = state.queues[".".join(parts[: number - 1])]
        is_leaf = number == len(parts)
        # No template for the recovery queue: it holds what runs, and a quota cannot refuse that.
        template = None if name == RECOVERY_PATH else above.spec.template
        spec = _leaf_spec(template) if is_leaf else _parent_spec(template)
        unit.record(f.QueueAdded(path=name, spec=spec, at_ns=unit.now_ns))


def _parent_spec(template: TemplateConfig | None) -> QueueSpec:
    return QueueSpec(leaf=False, managed=False, template=template)


def _leaf_spec(template: TemplateConfig | None) -> QueueSpec:
    template = template or TemplateConfig()
    return QueueSpec(
        leaf=True,
        managed=False,
        guaranteed=_positive(template.guaranteed),
        max=_positive(template.max),
        max_applications=template.max_applications,
        properties={key: value for key, value in template.properties.items() if key and value},
    )


def _positive(resource: Resource | None) -> Resource | None:
    return resource if strictly_greater_than_zero(resource) else None


def _apply_tags(unit: UnitOfWork, spec: ApplicationSpec, queue: Queue) -> None:
    """The last application that brings quota tags decides for its dynamic queue."""
    new = queue.spec
    quota = _tagged(spec, APP_TAG_NAMESPACE_RESOURCE_QUOTA)
    guaranteed = _tagged(spec, APP_TAG_NAMESPACE_RESOURCE_GUARANTEED)
    # Both are set together: where one tag is missing its amount is cleared.
    if quota is not None or guaranteed is not None:
        new = msgspec.structs.replace(new, max=quota, guaranteed=guaranteed)
    text = tag_of(spec.tags, APP_TAG_NAMESPACE_RESOURCE_MAX_APPS)
    if text.isascii() and text.isdecimal() and len(text) < 20 and int(text):  # noqa: PLR2004 - uint64
        new = msgspec.structs.replace(new, max_applications=int(text))
    if new != queue.spec:
        unit.record(
            f.QueueReconfigured(path=queue.path, old_spec=queue.spec, spec=new, at_ns=unit.now_ns),
        )


def _tagged(spec: ApplicationSpec, tag: str) -> Resource | None:
    """Read `{"resources": {"memory": {"value": 123}}}`; what is no such thing is ignored."""
    text = tag_of(spec.tags, tag)
    if not text or len(text) > _TAG_MAX:
        return None
    try:
        entries = _DECODER.decode(text).resources
    except (msgspec.MsgspecError, RecursionError):
        # A tag nested too deep for the parser is as little an amount as any other text.
        return None
    return _positive({kind: entry.value for kind, entry in entries.items() if kind})
