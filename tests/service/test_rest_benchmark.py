"""The benchmark of being looked at runs, and says what it is for. Never how fast."""

import pytest
from msgspec.structs import replace

from benchmarks import holds, rest
from benchmarks.cluster import Cluster
from benchmarks.rest import ALONE, METERED, WORKLOADS_HERE, lines, run
from yunikorn_actors.service.rest.http_server import all_routes

TINY = Cluster(nodes=2, leaves=1, applications=2)


@pytest.fixture(autouse=True)
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = replace(WORKLOADS_HERE["waits"], cluster=TINY, asks_each=2, rounds=5)
    monkeypatch.setitem(rest.WORKLOADS_HERE, "waits", tiny)


@pytest.mark.slow
def test_only_who_is_looked_at_pays_for_it() -> None:
    alone, metered, looked = (run("waits", mode) for mode in (ALONE, METERED, "pages"))
    assert {5} == {it["allocations"] for it in (alone, metered, looked)}
    assert 0 == alone["looking_share"]
    assert looked["looking_share"] > 0
    assert metered["looking_share"] > 0
    assert (0, 0) == (alone["look_worst_ms"], metered["look_worst_ms"])
    assert looked["context_worst_ms"] > 0


def test_each_mode_is_compared_with_the_run_alone_of_its_round() -> None:
    def ran(rate: float) -> rest.Run:
        return {
            "allocations_per_s": rate,
            "cpu_us_each": 1e6 / rate,
            "latency_ms": {"p50": 1.0, "p99": 1e5 / rate, "max": 9.0},
            "context_worst_ms": 1.0,
            "look_worst_ms": 0.25,
            "looking_share": 0.02,
            "round_s": 0.5,
        }

    found = [
        {ALONE: ran(alone), "pages": ran(pages)}
        for alone, pages in ((1000, 800), (500, 450), (250, 250))
    ]
    head, alone, pages = (it.split() for it in lines(found, (ALONE, "pages")))
    assert ["mode", "allocations/s", "ratio", "CPU", "us", "ratio", "share"] == head[:7]
    assert ["alone", "500", "1.000", "2000.0", "1.000"] == alone[:5]
    assert ["pages", "450", "0.900", "2222.2", "1.111", "0.020"] == pages[:6]


@pytest.mark.slow
def test_every_route_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holds, "ROUNDS", 1)
    monkeypatch.setattr(holds, "LISTEN_S", 0.3)
    tiny = Cluster(nodes=3, parents=1, leaves=2, applications=2, users=2)
    found = dict(holds.holds(tiny, asks_each=2, large_asks=3))
    asked = [f"{method} {path}" for method, path, _ in holds.paths()]
    assert len(all_routes()) < len(asked) == len(set(asked))
    assert set(asked) < found.keys()
    assert {200} == {found[f"GET {it}"].status for it in (holds.DUMP, holds.NODES, holds.METRICS)}
    assert "4 answered" in " ".join(found)
    assert all(it.hold_ms >= 0 for it in found.values())
    head, *rows = holds.lines(list(found.items()))
    assert "longest hold ms" in head
    assert len(rows) == len(found)
