"""What the Go core does on these workloads, and what this core is to do.

The Go figures are medians of three runs of its development state of 1.10, through its own API with
one callback in the process, on the machine where the calibration printed its reference. Elsewhere
rates grow with the calibration, latencies and seconds of CPU shrink with it; memory and shares stay
as they are. Seconds of CPU go by a calibration in CPU time: on a busy machine the clock goes on
while a process waits for its turn, and the other one would make the target too easy.
"""

import time
from collections.abc import Callable
from enum import Enum, auto
from statistics import median

from msgspec import Struct

from benchmarks import calibrate
from benchmarks.calibrate import CALIBRATION_REFERENCE

ROUNDS = 7


class Kind(Enum):
    RATE = auto()
    LATENCY = auto()
    CPU = auto()
    MEMORY = auto()
    SHARE = auto()


_SCALE: dict[Kind, Callable[[float, float], float]] = {
    Kind.RATE: lambda figure, calibration: figure * calibration / CALIBRATION_REFERENCE,
    Kind.LATENCY: lambda figure, calibration: figure * CALIBRATION_REFERENCE / calibration,
    Kind.CPU: lambda figure, calibration: figure * CALIBRATION_REFERENCE / calibration,
    Kind.MEMORY: lambda figure, _: figure,
    Kind.SHARE: lambda figure, _: figure,
}
_LOWER_IS_BETTER = (Kind.LATENCY, Kind.CPU, Kind.MEMORY)


def cpu_calibration(steps: int = 100_000) -> float:
    """Return what `calibrate.measure` does, but by CPU time."""
    calibrate.one_round(steps // 5)
    return median(_cpu_round(steps) for _ in range(ROUNDS))


def _cpu_round(steps: int) -> float:
    began = time.process_time()
    calibrate.one_round(steps)
    return steps / (time.process_time() - began) / 1e6


def calibrated_by(kind: Kind) -> str:
    """Name the figure of a run by which marks of this kind are scaled."""
    return "cpu_calibration" if kind is Kind.CPU else "calibration"


class Goal(Struct, frozen=True, kw_only=True):
    """A figure of one workload, by where it stands in the JSON object of a run."""

    workload: str
    figure: str
    kind: Kind
    go: float | None
    target: float
    stretch: float | None


class Quotient(Struct, frozen=True, kw_only=True):
    """A figure of one workload over that of another: allocations per second, if not said."""

    name: str
    over: str
    under: str
    figure: str = "allocations_per_s"
    kind: Kind = Kind.RATE
    go: float | None
    target: float
    stretch: float


def scaled(figure: float, kind: Kind, calibration: float) -> float:
    """Carry a figure over to a machine of this calibration."""
    return _SCALE[kind](figure, calibration)


def at_reference(figure: float, kind: Kind, calibration: float) -> float:
    """Carry a figure from a machine of this calibration back to where the marks were taken."""
    return scaled(figure, kind, CALIBRATION_REFERENCE**2 / calibration)


def times_as_good(measured: float, reference: float, kind: Kind) -> float | None:
    """Compare so that 1 is as good and more is better; nothing compares with zero."""
    above, below = (reference, measured) if kind in _LOWER_IS_BETTER else (measured, reference)
    return above / below if below else None


def _goal(
    workload: str, figure: str, kind: Kind, go: float | None, target: float, stretch: float | None
) -> Goal:
    return Goal(workload=workload, figure=figure, kind=kind, go=go, target=target, stretch=stretch)


_RATE, _P50, _P99, _PEAK = "allocations_per_s", "latency_ms.p50", "latency_ms.p99", "peak_rss_mib"

GOALS: tuple[Goal, ...] = (
    _goal("W1", _RATE, Kind.RATE, 17_500, 35_000, 50_000),
    _goal("W2", _RATE, Kind.RATE, 9_600, 40_000, 60_000),
    _goal("W2", _PEAK, Kind.MEMORY, 130, 150, 120),
    _goal("W2-binpacking", _RATE, Kind.RATE, 6_000, 30_000, 45_000),
    _goal("W3", _RATE, Kind.RATE, 7_100, 32_000, 50_000),
    _goal("W4", _RATE, Kind.RATE, 5_000, 28_000, 45_000),
    _goal("W4", _PEAK, Kind.MEMORY, 551, 500, 350),
    _goal("W5", "pairs_per_s", Kind.RATE, 7_100, 24_000, 40_000),
    _goal("W5", _P99, Kind.LATENCY, 2_400, 300, 100),
    _goal("W6", "placeholders_per_s", Kind.RATE, 6_300, 25_000, 40_000),
    _goal("W6", "swaps_per_s", Kind.RATE, 9_800, 25_000, 40_000),
    _goal("W7a", _P50, Kind.LATENCY, 0.10, 0.4, 0.15),
    _goal("W7a", _P99, Kind.LATENCY, 0.80, 2, 0.8),
    _goal("W7b", _P50, Kind.LATENCY, 44, 1, 0.4),
    _goal("W7b", _P99, Kind.LATENCY, 102, 4, 2),
    _goal("W7c", "answered_share", Kind.SHARE, 0, 0.90, 0.95),
    _goal("W7c", _P50, Kind.LATENCY, None, 2, 1),
    _goal("W8", _P50, Kind.LATENCY, 0.08, 0.3, 0.15),
    _goal("W8", _P99, Kind.LATENCY, 0.36, 1.5, 0.5),
    *[
        goal
        for workload in ("W14", "W14-priority")
        for goal in (
            _goal(workload, "urgent_p50_ms", Kind.LATENCY, None, 10, 3),
            _goal(workload, "urgent_p99_ms", Kind.LATENCY, None, 50, 15),
        )
    ],
    _goal("W12", "cpu_s", Kind.CPU, None, 3, None),
    _goal("W12-alone", "cpu_s", Kind.CPU, None, 3, None),
)

QUOTIENTS: tuple[Quotient, ...] = (
    Quotient(name="growth: W4 / W1", over="W4", under="W1", go=0.28, target=0.7, stretch=0.9),
    Quotient(name="tracing: W9 / W2", over="W9", under="W2", go=None, target=0.85, stretch=0.95),
    Quotient(
        name="leaves and users: W13 / W3",
        over="W13",
        under="W3",
        figure="cpu_us_each",
        kind=Kind.CPU,
        go=None,
        target=1.3,
        stretch=1.15,
    ),
    *[
        Quotient(
            name=f"urgent asks: {over} / W4", over=over, under="W4", go=None, target=0.95, stretch=1
        )
        for over in ("W14", "W14-priority")
    ],
)
