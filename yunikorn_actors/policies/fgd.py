from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from math import exp
from typing import Final, NamedTuple

from yunikorn_actors.policies.places import NodeSeen
from yunikorn_actors.values.devices import WHOLE, Devices, Parts, amount_of, is_of_model, pick, take
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import CPU

# Fragmentation: how much of a node's devices the typical asks of a workload cannot use.

TYPICAL_SHARE: Final = 0.95
REMEMBERED: Final = 4096
"""States of nodes."""


class Kind(NamedTuple):
    """What asks of one kind want."""

    vcore: int
    gpu: int
    """Thousandths of devices."""
    models: str = ""


def typical(kinds: Iterable[Kind]) -> dict[Kind, float]:
    """Return the most frequent kinds that make up most of a workload, with their shares."""
    counts = Counter(kinds)
    total, taken = counts.total(), 0
    found: dict[Kind, int] = {}
    for kind, count in sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True):
        if taken >= TYPICAL_SHARE * total:
            break
        found[kind] = count
        taken += count
    # Of all first, then of those found: the last bit differs from one division, and decides ties.
    return {kind: (count / total) / (taken / total) for kind, count in found.items()}


def added(numbers: Iterable[float]) -> float:
    """Add one after the other: `sum` corrects the last bit, and not in every version of Python."""
    total = 0.0
    for number in numbers:
        total += number
    return total


class Fragments:
    def __init__(self, shares: dict[Kind, float]) -> None:
        self._shares = shares
        # Each shape that waits asks for the same node, and often leaves the same.
        self.of = lru_cache(maxsize=REMEMBERED)(self._measure)

    def _measure(self, model: str, vcore: int, free: Parts) -> float:
        """Return how much of the devices typical asks cannot use, by their shares.

        Scores are whole numbers, so the last bit of a sum decides between nodes that are as good.
        It is added up by reason, as in the simulator of the authors, to decide as that does.
        """
        total, by_reason = sum(free), [0.0] * len(_Reason)
        for kind, share in self._shares.items():
            reason = _reason(kind, model, vcore, free)
            lost = total
            if reason is None:
                least = min(kind.gpu, WHOLE)
                reason, lost = _Reason.NO_GPU, sum(part for part in free if part < least)
            by_reason[reason] += share * lost
        return added(by_reason)


class _Reason(IntEnum):
    """Why an ask of a kind cannot use what is free, in the order in which it is added up."""

    NEITHER = 0
    NO_GPU = 1
    NO_VCORE = 2
    WANTS_NONE = 3
    WANTS_NONE_NO_VCORE = 4
    NO_MODEL = 5


def _reason(kind: Kind, model: str, vcore: int, free: Parts) -> _Reason | None:
    """Return None where it can use some of it."""
    has_vcore = kind.vcore <= vcore
    if not kind.gpu:
        return _Reason.WANTS_NONE if has_vcore else _Reason.WANTS_NONE_NO_VCORE
    if not is_of_model(model, kind.models):
        return _Reason.NO_MODEL
    if pick(free, kind.gpu) is None:
        return _Reason.NO_GPU if has_vcore else _Reason.NEITHER
    return None if has_vcore else _Reason.NO_VCORE


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
