"""What a resource manager does: it registers, leaves, sends configurations, answers predicates.

A move is drawn for one of its partitions, and is about all of them or about any.
"""

import json
from typing import Any, Final

from yunikorn_actors.lab.swarm.node_moves import report_all
from yunikorn_actors.lab.swarm.reloads import (
    Config,
    with_little,
    with_lower_quota,
    with_one_change,
    with_other_limits,
    without_a_queue,
)
from yunikorn_actors.lab.swarm.small_bounds import drawn_extra
from yunikorn_actors.lab.swarm.world_parts import OPERATORS
from yunikorn_actors.lab.swarm.worlds import Manager, PartitionWriter

_GROUP: Final = "together"
"""The policy group of those that share a configuration."""


def register(writer: PartitionWriter) -> None:
    manager = writer.manager
    config = manager.config()
    fields: dict[str, Any] = {} if config == writer.world.queues else {"config": config}
    if extra := drawn_extra(writer.draw, writer.world.parts):
        fields["extra"] = extra
    if "policy-groups" in writer.world.parts and writer.draw.once_in(2):
        _register_in_group(manager, config, extra)
    elif OPERATORS in writer.world.parts and writer.draw.once_in(4):
        # It lives under what an operator loads.
        names = {"rmID": manager.rm_id, "config": "", "extraConfig": extra}
        manager.add_raw("register_resource_manager", names)
    else:
        manager.add("register", fields)
    manager.is_lost = False


def _register_in_group(manager: Manager, config: dict[str, Any], extra: dict[str, str]) -> None:
    """Members bring the same configuration, or none."""
    text = "" if manager.draw.once_in(3) else json.dumps(config)
    names = {"rmID": manager.rm_id, "policyGroup": _GROUP}
    manager.add_raw("register_resource_manager", {**names, "config": text, "extraConfig": extra})


def come_back(writer: PartitionWriter) -> None:
    """Register, and report what there was; the order of that differs."""
    manager = writer.manager
    register(writer)
    for partition in manager.partitions:
        report_all(partition)


def leave(writer: PartitionWriter) -> None:
    manager = writer.manager
    step = "unregister" if writer.draw.once_in(4) else "lose_rm"
    writer.world.steps.append({step: manager.rm_id})
    manager.is_lost = True


def reload(writer: PartitionWriter) -> None:
    manager = writer.manager
    partition = writer.draw.one_of(manager.partitions)
    _reload(partition, writer.draw.one_of(partition.configs))


def lower_quota(writer: PartitionWriter) -> None:
    """Send a configuration in which a queue may have less than it perhaps uses."""
    manager = writer.manager
    partition = writer.draw.one_of(manager.partitions)
    _reload(partition, with_lower_quota(writer.draw, partition.config))


def bring_queue_down(writer: PartitionWriter, path: str) -> None:
    """Send a configuration in which this queue may have little, and soon."""
    _reload(writer, with_little(writer.draw, writer.config, path))


def change_queue(writer: PartitionWriter) -> None:
    manager = writer.manager
    partition = writer.draw.one_of(manager.partitions)
    changed = with_one_change(writer.draw, partition.config, partition.configs)
    _reload(partition, changed)


def limit_otherwise(writer: PartitionWriter) -> None:
    """Send a configuration in which users and groups may have more or less than before."""
    manager = writer.manager
    partition = writer.draw.one_of(manager.partitions)
    _reload(partition, with_other_limits(writer.draw, partition.config))


def leave_queue_out(writer: PartitionWriter) -> None:
    """Send a configuration without one of the queues; the next one may have it again."""
    manager = writer.manager
    partition = writer.draw.one_of(manager.partitions)
    _reload(partition, without_a_queue(writer.draw, partition.config))


def _reload(writer: PartitionWriter, config: Config | None) -> None:
    if config is not None:
        writer.config = config
        _configure(writer.manager, writer.manager.config())


def leave_partition_out(writer: PartitionWriter) -> None:
    """Send a configuration without one of the partitions; the next one has it again."""
    manager = writer.manager
    gone = writer.draw.one_of(manager.partitions)
    left = [it.config for it in manager.partitions if it is not gone]
    if left:
        _configure(manager, {"partitions": left})


def _configure(manager: Manager, config: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"queues": config}
    if extra := drawn_extra(manager.draw, manager.world.parts):
        fields["extra"] = extra
    if "policy-groups" in manager.world.parts and manager.draw.once_in(2):
        names = {"rmID": manager.rm_id, "policyGroup": _GROUP, "config": json.dumps(config)}
        manager.add_raw("update_configuration", {**names, "extraConfig": extra})
    else:
        manager.add("config", fields)


def refuse_nodes(writer: PartitionWriter) -> None:
    """Its predicates refuse some nodes from now on, or none any more."""
    manager = writer.manager
    nodes = writer.draw.one_of(manager.partitions).nodes
    deny: list[dict[str, Any]] = []
    if nodes and not writer.draw.once_in(3):
        deny.append({"node": writer.draw.one_of(nodes), "key": writer.draw.one_of(("*", "k*"))})
        if writer.draw.once_in(4):
            deny[0]["raises"] = True
    fields: dict[str, Any] = {"deny": deny}
    if "victims" in writer.world.parts:
        fields["victims"] = writer.draw.whole(0, 2)
    manager.add("predicate", fields)


def confirm(writer: PartitionWriter) -> None:
    """Confirm what is to end, where that waits for a step."""
    writer.confirm()
