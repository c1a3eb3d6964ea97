"""A cluster whose nodes tell their devices apart."""

from typing import Any

from support import APP, RM, Lab

from yunikorn_actors import si
from yunikorn_actors.state.allocations import Allocation

GPU_DEVICES = si.constants.GPU_DEVICES
GPU_MODEL = si.constants.GPU_MODEL


def device_tags(count: int, model: str = "") -> dict[str, str]:
    return {GPU_DEVICES: str(count), **({GPU_MODEL: model} if model else {})}


def size(gpu: int, vcore: int = 1) -> si.Resource:
    return si.Resource.of({"vcore": vcore, **({"gpu": gpu} if gpu else {})})


def gpu_node(
    lab: Lab,
    name: str,
    count: int,
    model: str = "",
    *,
    action: si.ActionFromRM = si.ActionFromRM.CREATE,
    running: tuple[si.Allocation, ...] = (),
    vcore: int = 100,
) -> None:
    info = si.NodeInfo(
        node_id=name,
        action=action,
        attributes=device_tags(count, model),
        schedulable_resource=size(count * 1000, vcore),
        existing_allocations=running,
    )
    lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))


def gpu_ask(lab: Lab, *keys: str, gpu: int, model: str = "", app: str = APP, **said: Any) -> None:
    tags = said.pop("tags", {}) | ({GPU_MODEL: model} if model else {})
    lab.ask(*keys, app=app, resource_ask=size(gpu), tags=tags, **said)


def gpu_report(
    key: str, node: str, gpu: int, devices: str = "", app: str = APP, **said: Any
) -> si.Allocation:
    return si.Allocation(
        allocation_key=key,
        application_id=app,
        node_id=node,
        resource_per_alloc=size(gpu),
        allocation_tags={GPU_DEVICES: devices} if devices else {},
        **said,
    )


def placed(lab: Lab) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Node and devices of all that runs, by key; a resource manager was sent the same."""
    truth: dict[str, Allocation] = {
        item.spec.key: item
        for app in lab.state.applications.values()
        for item in app.allocations.values()
    }
    return {key: (item.node_id, item.devices) for key, item in sorted(truth.items())}


def free_on(lab: Lab, name: str) -> list[int] | None:
    return lab.state.nodes[name].parts
