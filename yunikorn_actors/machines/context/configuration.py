"""A configuration becomes facts, for a new partition and for a reload alike.

The queues that a configuration describes are compared with those that exist; the differences are
the facts. A reload is a pure function of the new text and the tree, never a merge with the old text
(R-115): a queue that is not described any more drains, one that is described again is active again
(R-102), a dynamic one that is described becomes a managed one.
"""

from collections.abc import Iterator

from yunikorn_actors.domain import facts as f
from yunikorn_actors.domain.config import (
    PartitionConfig,
    QueueConfig,
    TemplateConfig,
    effective_properties,
)
from yunikorn_actors.domain.queue import Queue, QueueSpec, QueueState
from yunikorn_actors.machines.context.lifecycle import clean_if_empty, relink_groups
from yunikorn_actors.machines.context.quotas import queue_reconfigured
from yunikorn_actors.machines.context.reservations import drop_barred
from yunikorn_actors.machines.context.work import Partition, Work


def configure(work: Work, partition: Partition, config: PartitionConfig) -> None:
    state = partition.state
    if state.config != config:
        work.record(partition, f.PartitionConfigured(config=config))
    described = dict(_describe(config.root, "", 0, {}, None))
    for path, spec in described.items():
        _put(work, partition, path, spec)
    for queue in tuple(state.queues.values()):
        if queue.spec.managed and queue.path not in described:
            _drain(work, partition, queue)
    relink_groups(work, partition)
    drop_barred(work, partition)


def _put(work: Work, partition: Partition, path: str, spec: QueueSpec) -> None:
    queue = partition.state.queues.get(path)
    if queue is None:
        work.record(partition, f.QueueAdded(path=path, spec=spec, at_ns=work.now_ns))
        return
    if queue.spec != spec:
        old_spec = queue.spec
        work.record(
            partition,
            f.QueueReconfigured(path=path, old_spec=old_spec, spec=spec, at_ns=work.now_ns),
        )
        queue_reconfigured(work, partition, queue, old_spec)
    if queue.state is not QueueState.ACTIVE:
        _change_state(work, partition, queue, QueueState.ACTIVE)


def _drain(work: Work, partition: Partition, queue: Queue) -> None:
    if queue.state is QueueState.ACTIVE:
        _change_state(work, partition, queue, QueueState.DRAINING)
        clean_if_empty(work, partition, queue)


def _change_state(work: Work, partition: Partition, queue: Queue, state: QueueState) -> None:
    work.record(partition, f.QueueStateChanged(path=queue.path, state=state, at_ns=work.now_ns))


def clean(work: Work, partition: Partition, path: str, generation: int) -> None:
    """The queue has been empty for a while: remove it, and perhaps its parent at once."""
    queue = partition.state.queues.get(path)
    if queue is None or partition.cleaning.get(path) != generation:
        return
    del partition.cleaning[path]
    while queue is not None and queue.is_to_be_cleaned:
        work.record(
            partition,
            f.QueueRemoved(path=queue.path, managed=queue.spec.managed, at_ns=work.now_ns),
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
