"""What steps of a drawn world say of devices, and of how long work runs."""

from typing import Any, Final

from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.values.devices import WHOLE, number_of
from yunikorn_actors.values.tags import GPU, GPU_DEVICES, GPU_MODEL, TAG_RUNTIME

Fields = dict[str, Any]

SIZES: Final = (
    {"vcore": 1000, GPU: 500}, {"vcore": 1000, GPU: 1000}, {"vcore": 1000, GPU: 400},
    {"vcore": 1000, GPU: 700}, {"vcore": 2000, GPU: 2000}, {"vcore": 1000},
    {"memory": 8, GPU: 250}, {"vcore": 4000}, {"vcore": 1000, GPU: 1500},
    {"vcore": 1000, GPU: 0},
)  # fmt: skip
"""Shares of one device that leave a rest, whole devices, and what no device can be shared into."""
NODES: Final = (
    {"vcore": 4000, "memory": 30, GPU: 2000}, {"vcore": 4000, "memory": 20, GPU: 1000},
    {"vcore": 6000, "memory": 20, GPU: 2000}, {"vcore": 8000, "memory": 40, GPU: 4000},
    {"vcore": 3000}, {"vcore": 4000, GPU: 3000},
)  # fmt: skip
_MODELS: Final = ("T4", "T4", "V100", "")
_WANTED: Final = ("T4", "V100", "T4|V100", "A100")
_RUNTIMES: Final = ("1", "5", "20", "20", "60", "0.5", "soon")
"""Seconds, and what is none."""


def node_with_devices(draw: Draw, node: Fields) -> Fields:
    """Have a node tell its devices apart, or have it say nothing of them."""
    attributes = dict(node.get("attributes", {}))
    if GPU_DEVICES not in attributes and GPU in node.get("capacity", {}):
        if not draw.once_in(6):
            attributes[GPU_DEVICES] = str(node["capacity"][GPU] // WHOLE)
        if model := draw.one_of(_MODELS):
            attributes[GPU_MODEL] = model
    running = [with_devices(draw, it) for it in node.get("allocations", ())]
    node = {**node, "allocations": running} if running else node
    return {**node, "attributes": attributes} if attributes else node


def changed_devices(draw: Draw, update: Fields) -> Fields:
    """Have a node report another number of devices, or another model; not always a sound one."""
    if GPU not in update.get("capacity", {}) or draw.once_in(4):
        return update
    attributes = {
        **update.get("attributes", {}),
        GPU_DEVICES: str(update["capacity"][GPU] // WHOLE),
    }
    if draw.once_in(8):
        attributes[GPU_DEVICES] = draw.one_of(("1", "many", "9999"))
    if draw.once_in(4):
        attributes[GPU_MODEL] = draw.one_of(_MODELS)
    return {**update, "attributes": attributes}


def with_model(draw: Draw, ask: Fields) -> Fields:
    """Have an ask name models."""
    if GPU not in (ask.get("resource") or {}) or not draw.once_in(4):
        return ask
    return {**ask, "tags": {**ask.get("tags", {}), GPU_MODEL: draw.one_of(_WANTED)}}


def with_devices(draw: Draw, work: Fields) -> Fields:
    """Have work that is reported name its devices, rightly or not."""
    amount = work["resource"].get(GPU, 0)
    if amount <= 0 or draw.once_in(3):
        return work
    first, number = draw.whole(0, 2), max(1, number_of(amount))
    named = ",".join(str(first + it) for it in range(number))
    if draw.once_in(6):
        named = draw.one_of(("0,0", "99", "one", ""))
    return {**work, "tags": {**work.get("tags", {}), GPU_DEVICES: named}}


def with_runtime(draw: Draw, fields: Fields) -> Fields:
    """Have an application or an ask say how long it runs."""
    if not draw.once_in(2):
        return fields
    return {**fields, "tags": {**fields.get("tags", {}), TAG_RUNTIME: draw.one_of(_RUNTIMES)}}
