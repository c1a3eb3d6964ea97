from math import exp
from typing import Final

from yunikorn_actors.policies.fragments import Fragments, Kind
from yunikorn_actors.policies.places import NodeSeen
from yunikorn_actors.values.devices import WHOLE, Devices, Parts, amount_of, pick, take
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import CPU

BEST: Final = 100
ALIKE: Final = {Kind(1000, gpu): 1 / 6 for gpu in (0, 250, 500, 1000, 2000, 8000)}
"""Where nobody has said what is typical, asks for any part are as frequent as others."""


class Fgd:
    """Takes the node, and for a share the device, where what typical asks cannot use grows least.

    It is fragmentation gradient descent (ATC'23); give it the `typical` kinds of your workload.
    """

    def __init__(self, shares: dict[Kind, float] = ALIKE) -> None:
        self._fragments = Fragments(shares)

    def score(self, node: NodeSeen, shape: Resource) -> float:
        best, _ = self._best(node, shape, node.parts or ())
        return -best

    def devices(self, node: NodeSeen, shape: Resource, free: Parts) -> Devices | None:
        _, devices = self._best(node, shape, free)
        return devices

    def _best(self, node: NodeSeen, shape: Resource, free: Parts) -> tuple[int, Devices | None]:
        vcore, amount = node.free.get(CPU, 0), amount_of(shape)
        before = self._fragments.of(node.model, vcore, tuple(free))
        left = vcore - shape.get(CPU, 0)
        choices: list[Devices]
        if 0 < amount < WHOLE:
            choices = [(device,) for device, part in enumerate(free) if part >= amount]
        else:
            choices = [() if amount <= 0 else pick(free, amount) or ()]
        best: tuple[int, Devices | None] = (-1, None)
        for devices in choices:
            parts = list(free)
            take(parts, devices, amount)
            after = self._fragments.of(node.model, left, tuple(parts))
            score = int(BEST / (1 + exp(-(before - after) / WHOLE)))
            if score > best[0]:
                best = (score, devices or None)
        return best
