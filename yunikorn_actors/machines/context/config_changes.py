"""A configuration becomes facts, for a new partition and for a reload alike.

The queues that a configuration describes are compared with those that exist; the differences are
the facts. A reload is a pure function of the new text and the tree, never a merge with the old text
(R-115): a queue that is not described any more drains, one that is described again is active again
(R-102), a dynamic one that is described becomes a managed one.
"""

from collections.abc import Iterator

from yunikorn_actors.config import (
    PartitionConfig,
    QueueConfig,
    TemplateConfig,
    effective_properties,
)
from yunikorn_actors.machines.context.lifecycle import clean_if_empty, relink_groups
from yunikorn_actors.machines.context.quota_preemption import queue_reconfigured
from yunikorn_actors.machines.context.reservations import drop_barred
from yunikorn_actors.machines.context.unit_of_work import Turn
from yunikorn_actors.machines.slices import Steps, ends_piece
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.queues import Queue, QueueSpec, QueueState


def configure(turn: Turn, config: PartitionConfig) -> Steps:
    state = turn.state
    if state.config != config:
        turn.record(f.PartitionConfigured(config=config))
    described: set[str] = set()
    for path, spec in _describe(config.root, "", 0, {}, None):
        described.add(path)
        _put(turn, path, spec)
        yield 1
    for number, queue in enumerate(tuple(state.queues.values())):
        if queue.spec.managed and queue.path not in described:
            _drain(turn, queue)
            yield 1
        elif ends_piece(number):
            yield 1
    yield from relink_groups(turn)
    yield from drop_barred(turn)


def _put(turn: Turn, path: str, spec: QueueSpec) -> None:
    queue = turn.state.queues.get(path)
    if queue is None:
        turn.record(f.QueueAdded(path=path, spec=spec, at_ns=turn.now_ns))
        return
    if queue.spec != spec:
        old_spec = queue.spec
        turn.record(
            f.QueueReconfigured(path=path, old_spec=old_spec, spec=spec, at_ns=turn.now_ns),
        )
        queue_reconfigured(turn, queue, old_spec)
    if queue.state is not QueueState.ACTIVE:
        _change_state(turn, queue, QueueState.ACTIVE)


def _drain(turn: Turn, queue: Queue) -> None:
    if queue.state is QueueState.ACTIVE:
        _change_state(turn, queue, QueueState.DRAINING)
        clean_if_empty(turn, queue)


def _change_state(turn: Turn, queue: Queue, state: QueueState) -> None:
    turn.record(f.QueueStateChanged(path=queue.path, state=state, at_ns=turn.now_ns))


def clean(turn: Turn, path: str, generation: int) -> None:
    """The queue has been empty for a while: remove it, and perhaps its parent at once."""
    queue = turn.state.queues.get(path)
    if queue is None or turn.partition.cleaning.get(path) != generation:
        return
    del turn.partition.cleaning[path]
    while queue is not None and queue.is_to_be_cleaned:
        turn.record(
            f.QueueRemoved(path=queue.path, managed=queue.spec.managed, at_ns=turn.now_ns),
        )
        queue = queue.parent


def _describe(
    config: QueueConfig,
    parent: str,
    position: int,
    inherited: dict[str, str],
    template: TemplateConfig | None,
) -> Iterator[tuple[str, QueueSpec]]:
    """List this queue and all below it, parents first."""
    path = f"{parent}.{config.name}" if parent else config.name
    properties = effective_properties(inherited, config.properties)
    template = None if config.is_leaf else config.template or template
    yield (
        path,
        QueueSpec(
            leaf=config.is_leaf,
            position=position,
            guaranteed=config.guaranteed,
            max=config.max,
            max_applications=config.max_applications,
            properties=properties,
            submit_acl=config.submit_acl,
            admin_acl=config.admin_acl,
            limits=config.limits,
            template=template,
        ),
    )
    for number, child in enumerate(config.children):
        yield from _describe(child, path, number, properties, template)
