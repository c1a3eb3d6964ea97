"""A configuration becomes facts, for a new partition and for a reload alike.

The queues that a configuration describes are compared with those that exist, and the differences
are the facts. A reload depends on the new text and the tree alone, never on the old text (R-115): a
queue that is not described any more drains, one that is described again is active again (R-102),
and a dynamic one that is described becomes a managed one.
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
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.slices import Steps, ends_piece
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.queues import Queue, QueueSpec, QueueState


def configure(unit: UnitOfWork, config: PartitionConfig) -> Steps:
    state = unit.state
    # Equal settings leave no fact: a reload of the same text must not wake every planner.
    if state.config != config:
        unit.record(f.PartitionConfigured(config=config))
    described: set[str] = set()
    # Parents first, so that each finds its parent.
    for path, spec in _describe(config.root, "", 0, {}, None):
        described.add(path)
        _put(unit, path, spec)
        yield 1
    for number, queue in enumerate(tuple(state.queues.values())):
        # Dynamic queues were never described; they end when they are empty.
        if queue.spec.managed and queue.path not in described:
            _drain(unit, queue)
            yield 1
        elif ends_piece(number):
            yield 1
    # Limits may name other groups now: which applications count in a group that lost its limit is
    # looked at last, on the new tree.
    yield from relink_groups(unit)
    # And last the reservations: gates and gangs of a leaf are properties, which may have changed.
    yield from drop_barred(unit)


def _put(unit: UnitOfWork, path: str, spec: QueueSpec) -> None:
    queue = unit.state.queues.get(path)
    if queue is None:
        unit.record(f.QueueAdded(path=path, spec=spec, at_ns=unit.now_ns))
        return
    if queue.spec != spec:
        old_spec = queue.spec
        unit.record(
            f.QueueReconfigured(path=path, old_spec=old_spec, spec=spec, at_ns=unit.now_ns),
        )
        # Behind the fact: it compares the maximum that holds now with what is used.
        queue_reconfigured(unit, queue, old_spec)
    # Described again while it drained.
    if queue.state is not QueueState.ACTIVE:
        _change_state(unit, queue, QueueState.ACTIVE)


def _drain(unit: UnitOfWork, queue: Queue) -> None:
    if queue.state is QueueState.ACTIVE:
        _change_state(unit, queue, QueueState.DRAINING)
        # One that is empty already has no last application whose end would start the cleaning.
        clean_if_empty(unit, queue)


def _change_state(unit: UnitOfWork, queue: Queue, state: QueueState) -> None:
    unit.record(f.QueueStateChanged(path=queue.path, state=state, at_ns=unit.now_ns))


def clean(unit: UnitOfWork, path: str, generation: int) -> None:
    """The queue has been empty for a while: remove it, and perhaps its parent at once."""
    queue = unit.state.queues.get(path)
    # A timer of an earlier emptying: something has come and gone since.
    if queue is None or unit.partition.cleaning.get(path) != generation:
        return
    del unit.partition.cleaning[path]
    # An empty parent has nobody else who would notice: the child was the last thing in it.
    while queue is not None and queue.is_to_be_cleaned:
        unit.record(
            f.QueueRemoved(path=queue.path, managed=queue.spec.managed, at_ns=unit.now_ns),
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
    # The effective ones are stored: a reader of one queue needs no ancestors.
    properties = effective_properties(inherited, config.properties)
    # The nearest template above a leaf that is created counts; a leaf has nothing below it.
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
