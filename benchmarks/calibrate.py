"""A yardstick for CPython on the machine at hand: one number, million simple operations a second.

Figures and targets were taken where this prints CALIBRATION_REFERENCE; elsewhere they are scaled by
the ratio. The loop is what a scheduler does all day: small dicts, attribute access, integer
arithmetic, a method call, a bisect.
"""

import statistics
import time
from bisect import bisect_left

CALIBRATION_REFERENCE = 1.69


class _Node:
    __slots__ = ("free", "score")

    def __init__(self, score: int) -> None:
        self.free = {"vcore": 16000, "memory": 1 << 36}
        self.score = score

    def take(self, wanted: dict[str, int]) -> bool:
        free = self.free
        for name, amount in wanted.items():
            if free.get(name, 0) < amount:
                return False
        for name, amount in wanted.items():
            free[name] -= amount
        self.score += 1
        return True


def one_round(steps: int = 100_000) -> float:
    nodes = [_Node(i) for i in range(256)]
    keys = list(range(256))
    wanted = {"vcore": 1, "memory": 1 << 10}
    started = time.perf_counter()
    for step in range(steps):
        node = nodes[bisect_left(keys, step & 255)]
        node.take(wanted)
    return steps / (time.perf_counter() - started) / 1e6


def measure() -> float:
    one_round(20_000)
    return statistics.median(one_round() for _ in range(7))


if __name__ == "__main__":
    print(f"{measure():.3f}")
