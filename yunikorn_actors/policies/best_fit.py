from typing import Final

from yunikorn_actors.policies.places import NodeSeen
from yunikorn_actors.values.devices import WHOLE, amount_of
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import CPU

BEST: Final = 100


class BestFit:
    """Takes the node with the least left, in equal parts of cpus and devices."""

    def __init__(self, vcore: int = 128_000, gpu: int = 8 * WHOLE) -> None:
        self._vcore, self._gpu = vcore, gpu
        """What the largest node has."""

    def score(self, node: NodeSeen, shape: Resource) -> float:
        vcore = (node.free.get(CPU, 0) - shape.get(CPU, 0)) / self._vcore
        gpu = (amount_of(node.free) - amount_of(shape)) / self._gpu
        return -int(BEST * (1 - (0.5 * vcore + 0.5 * gpu)))
