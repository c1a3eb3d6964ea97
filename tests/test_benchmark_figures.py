"""The arithmetic of the benchmarks: percentiles, scaled marks, and the report."""

import time
from itertools import count

import pytest

from benchmarks import calibrate
from benchmarks.load import Timing
from benchmarks.report import figure_of, report
from benchmarks.run import Run
from benchmarks.targets import GOALS, Kind, cpu_calibration, scaled, times_as_good
from benchmarks.workloads import WORKLOADS


def test_percentiles_are_values_that_were_measured() -> None:
    timing = Timing(wall_s=2.0, cpu_s=1.0, latencies_s=[n / 1000 for n in range(200, 0, -1)])
    assert timing.latency_ms(0.1, 50, 99, 100) == [1.0, 100.0, 198.0, 200.0]
    assert timing.allocations_per_s == 100.0


@pytest.mark.parametrize(
    ("kind", "calibration", "expected"),
    [
        (Kind.RATE, 1.69, 1000.0),
        (Kind.RATE, 3.38, 2000.0),
        (Kind.LATENCY, 3.38, 500.0),
        (Kind.LATENCY, 0.845, 2000.0),
        (Kind.CPU, 3.38, 500.0),
        (Kind.MEMORY, 3.38, 1000.0),
        (Kind.SHARE, 3.38, 1000.0),
    ],
)
def test_marks_are_scaled_by_the_calibration(
    kind: Kind, calibration: float, expected: float
) -> None:
    assert expected == scaled(1000, kind, calibration)


@pytest.mark.parametrize(
    ("measured", "reference", "kind", "expected"),
    [
        (20.0, 10.0, Kind.RATE, 2.0),
        (20.0, 10.0, Kind.LATENCY, 0.5),
        (100.0, 150.0, Kind.MEMORY, 1.5),
        (0.9, 0.0, Kind.SHARE, None),
    ],
)
def test_more_than_one_is_better_than_the_reference(
    measured: float, reference: float, kind: Kind, expected: float | None
) -> None:
    assert expected == times_as_good(measured, reference, kind)


def planted(workload: str, rate: float, **added: float) -> Run:
    return {
        "workload": workload,
        "topology": "fused",
        "allocations_per_s": rate,
        "latency_ms": {"p50": 1.5, "p99": 300.0, "max": 9.0},
        "peak_rss_mib": 75.0,
        "cpu_s": 0.5,
        "cpu_us_each": 40.0,
        "wall_s": 1.0,
        "calibration": 3.38,
        "cpu_calibration": 3.38,
        **added,
    }


URGENT = {"urgent_p50_ms": 2.0, "urgent_p99_ms": 9.0}
GANGS = {"placeholders_per_s": 3.0, "swaps_per_s": 4.0}


def test_goals_stand_on_figures_that_runs_have() -> None:
    run = planted("any", 1.0, pairs_per_s=2.0, answered_share=0.5, **GANGS, **URGENT)
    goals = [goal for goal in GOALS if goal.workload in WORKLOADS]
    assert {goal.workload for goal in goals} | {"W9", "W10", "W11", "W13", "W15"} == set(WORKLOADS)
    assert [goal.figure for goal in goals if figure_of(run, goal.figure) <= 0] == []


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_report_shows_median_lowest_and_highest() -> None:
    text = report([planted("W2", rate) for rate in (30_000, 80_000, 40_000)])
    measured = "W2 fused 40,000 (30,000..80,000) 1.50 (1.50..1.50) 300 (300..300)"
    assert lines(text)[1].startswith(measured)


def test_the_report_compares_with_scaled_marks() -> None:
    text = report([planted("W2", 40_000)])
    rate = "W2 fused allocations_per_s 40,000 19,200 80,000 120,000 2.08 0.50"
    memory = "W2 fused peak_rss_mib 75.0 130 150 120 1.73 2.00"
    assert [rate, memory] == lines(text)[4:6]


def test_seconds_of_cpu_are_scaled_by_cpu_time_though_the_machine_was_busy() -> None:
    text = report([planted("W12", 40_000) | {"calibration": 0.5, "cpu_calibration": 1.69}])
    assert "W12 fused cpu_s 0.50 - 3.00 - - 6.00" in lines(text)


def test_the_calibration_of_cpu_time_does_not_count_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process has the CPU a quarter of the time: a round takes 0.05 s of 0.2 s."""
    clock, cpu = count(0.0, 0.2), count(0.0, 0.05)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(time, "process_time", lambda: next(cpu))
    assert (0.5, 2.0) == (pytest.approx(calibrate.measure()), pytest.approx(cpu_calibration()))


def test_the_report_relates_workloads_of_one_topology() -> None:
    text = report([planted("W2", 40_000), planted("W9", 34_000)])
    assert "tracing: W9 / W2 fused 0.85 - 0.85 0.95 - 1.00" in lines(text)


def test_a_quotient_of_cpu_goes_by_the_calibration_of_cpu_and_less_is_better() -> None:
    many = planted("W13", 1.0) | {"cpu_us_each": 30.0, "cpu_calibration": 3.38, "calibration": 9.0}
    few = planted("W3", 1.0) | {"cpu_us_each": 40.0, "cpu_calibration": 1.69}
    row = next(line for line in lines(report([many, few])) if line.startswith("leaves and users"))
    assert row == "leaves and users: W13 / W3 fused 1.50 - 1.30 1.15 - 0.87"
