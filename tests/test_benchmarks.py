"""The benchmarks on tiny clusters: what they check, what they print, how they end. Never how fast."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ranges
from msgspec.structs import replace

from benchmarks import (
    calibrate,
    cli,
    cycle,
    flood,
    imports,
    laboratory,
    questions,
    recording,
    schedulers,
    simulator,
    targets,
    workloads,
)
from benchmarks.cluster import Cluster
from benchmarks.failure import CheckFailed, Stalled, TurnedDown
from benchmarks.load import Load
from benchmarks.run import measure, run
from benchmarks.workloads import ASK, WORKLOADS, Flood, Outcome, Workload
from yunikorn_actors import CoreFailed, SchedulerCore, si
from yunikorn_actors.cli import main as yunikorn_actors
from yunikorn_actors.config import parse_config
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.runtime.scheduler_core import CoreDriver

TINY: dict[str, dict[str, int]] = {
    "W1": {"asks_each": 3},
    "W2": {"asks_each": 3},
    "W2-binpacking": {"asks_each": 3},
    "W3": {"asks_each": 1},
    "W4": {"asks_each": 1},
    "W5": {"running": 7, "pairs": 40},
    "W6": {"groups": 2, "members": 2},
    "W7a": {"waiting": 6, "releases": 5},
    "W7b": {"older": 7, "waiting": 6, "releases": 5},
    "W7c": {"older": 7, "waiting": 6, "releases": 5, "rest_s": 0},
    "W8": {"rounds": 12},
    "W10": {"asks": 3},
    "W11": {"asks": 3},
    "W15": {"gangs": 3, "claiming": 1, "members": 8},
    "W12": {"running": 15},
    "W12-alone": {"running": 15},
    "W13": {"asks_each": 3},
    "W14": {"asks_each": 3, "every_s": 60.0},
    "W14-priority": {"asks_each": 3, "every_s": 60.0},
    "W9": {"asks_each": 3},
}
RUN_KEYS = {
    "workload",
    "topology",
    "driver",
    "allocations",
    "allocations_per_s",
    "latency_ms",
    "peak_rss_mib",
    "cpu_s",
    "cpu_us_each",
    "wall_s",
    "calibration",
    "cpu_calibration",
}
ADDED_KEYS = {
    "W5": {"pairs_per_s"},
    "W6": {"placeholders_per_s", "swaps_per_s"},
    "W10": {"preemptions_per_s", "served_in_1s"},
    "W11": {"preemptions_per_s", "served_in_1s"},
    "W12": {f"quarter_{number}_cpu_s" for number in range(1, 5)},
    "W12-alone": {f"quarter_{number}_cpu_s" for number in range(1, 5)},
    "W15": {"preemptions_per_s", "gangs_gone", "gangs_broken"},
    "W14": {"urgent_p50_ms", "urgent_p99_ms"},
    "W14-priority": {"urgent_p50_ms", "urgent_p99_ms"},
} | {name: {"answered_share"} for name in ("W7a", "W7b", "W7c")}
ANNOUNCED = {
    "W1": 15,
    "W2": 15,
    "W2-binpacking": 15,
    "W3": 5,
    "W4": 5,
    "W5": 40,
    "W6": 20,
    "W7a": 5,
    "W7b": 5,
    "W7c": 5,
    "W8": 12,
    "W10": 3,
    "W11": 3,
    "W12": 15,
    "W12-alone": 15,
    "W13": 15,
    "W15": 8,
    "W14": 15,
    "W14-priority": 15,
    "W9": 15,
}


def tiny(name: str) -> Workload:
    workload = WORKLOADS[name]
    cluster = replace(workload.cluster, nodes=3, applications=5)
    return replace(workload, cluster=cluster, **TINY[name])


TINY_CLUSTER = Cluster(nodes=2, leaves=2, applications=2)


# -- runs


def test_what_several_schedulers_cost_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(WORKLOADS, "W2", tiny("W2"))
    assert 0 == schedulers.main(["--workload", "W2", "--one", "2"])
    words = capsys.readouterr().out.split()
    assert ["2", "schedulers", "refused", "shares", "us"] == [*words[:2], *words[3:5], words[-1]]
    shares = [float(share) for share in words[5:-2]]
    assert 1 == pytest.approx(sum(shares), abs=0.01)


def test_every_workload_has_a_tiny_one() -> None:
    assert list(WORKLOADS) == list(TINY)


@pytest.mark.parametrize(("name", "topology"), ranges.one_each([*WORKLOADS], TOPOLOGIES))
def test_a_run_passes_its_check_and_has_the_promised_keys(
    name: str, topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORKLOADS, name, tiny(name))
    found = run(name, topology, 2.0, 3.0)
    assert RUN_KEYS | ADDED_KEYS.get(name, set()) == set(found)
    assert {"p50", "p99", "max"} == set(found["latency_ms"])
    assert (name, topology) == (found["workload"], found["topology"])
    assert (2.0, 3.0) == (found["calibration"], found["cpu_calibration"])


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_is_measured_is_what_the_workload_counts(name: str) -> None:
    workload = tiny(name)
    with SchedulerCore() as core:
        load = Load(core)
        load.set_up(workload.cluster)
        timing = workload.drive(load).timing
        load.settle()
    assert ANNOUNCED[name] == len(timing.latencies_s)
    assert {True} == {0 < latency <= timing.wall_s for latency in timing.latencies_s}


def test_churn_never_has_more_outstanding_than_were_running() -> None:
    outstanding = []

    class Watched(Load):
        def submit(self, application_id: str, keys: Any, size: Any) -> None:
            super().submit(application_id, keys, size)
            outstanding.append(len(self.waiting) + len(self.held))

    workload = tiny("W5")
    with SchedulerCore() as core:
        measure(workload, Watched(core))
    assert {7} == set(outstanding[5:])


def test_a_release_that_nothing_follows_counts_as_unanswered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workloads, "ANSWER_S", 0.05)
    workload = replace(tiny("W7b"), waiting=2)
    with SchedulerCore() as core:
        found = measure(workload, Load(core))
    assert found["answered_share"] == 2 / 5


def test_a_run_whose_releases_nothing_follows_has_no_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workloads, "ANSWER_S", 0.05)
    monkeypatch.setattr(workloads, "RELEASING_S", 0.1)
    workload = replace(tiny("W7b"), waiting=0)
    with SchedulerCore() as core, pytest.raises(Stalled, match=r"^nothing followed [23] releases"):
        measure(workload, Load(core))


def test_what_interrupts_a_flood_is_timed_apart_and_its_resource_manager_is_checked() -> None:
    with SchedulerCore() as core:
        load = Load(core)
        load.set_up(tiny("W14").cluster)
        outcome = tiny("W14").drive(load)
        (urgent,) = outcome.beside
        assert ("rm-urgent", 15) == (urgent.rm_id, len(outcome.timing.latencies_s))
        assert [held.application_id for held in urgent.held] == ["app-urgent"]


# -- the check at the end


def _lose_one_on_a_node(partition: dict[str, Any]) -> None:
    node = next(node for node in partition["nodes"].values() if node["allocations"])
    node["allocations"].pop()


def _invent_one_on_a_node(partition: dict[str, Any]) -> None:
    next(iter(partition["nodes"].values()))["allocations"].append("uuid-of-nobody")


def _charge_a_node_more(partition: dict[str, Any]) -> None:
    next(iter(partition["nodes"].values()))["allocated"]["pods"] += 1


def _charge_a_leaf_less(partition: dict[str, Any]) -> None:
    partition["queues"]["root.leaf-0"]["allocated"]["vcore"] -= 500


def _charge_root_less(partition: dict[str, Any]) -> None:
    partition["queues"]["root"]["allocated"] = {}


def _shrink_an_allocation(partition: dict[str, Any]) -> None:
    application = next(iter(partition["applications"].values()))
    application["allocations"][0]["resource"]["memory"] -= 1


class LyingCore(SchedulerCore):
    """Schedules as it should, and tells something else when it is asked."""

    lie: Callable[[dict[str, Any]], None]

    def state_dump(self) -> dict[str, Any]:
        state = super().state_dump()
        (partition,) = state["partitions"].values()
        self.lie(partition)
        return state


@pytest.mark.parametrize(
    ("lie", "complaint"),
    [
        (_lose_one_on_a_node, r"^1 announced allocations are on no node"),
        (_invent_one_on_a_node, r"^1 allocations on nodes were not announced \(uuid-of-nobody"),
        (_charge_a_node_more, r"^the nodes sum up to .*'pods': 7,.* announced was .*'pods': 6,"),
        (_charge_a_leaf_less, r"^the leaf queues sum up to .*'vcore': 2500}, announced was"),
        (_charge_root_less, r"^the root queue sum up to {}, announced was"),
        (_shrink_an_allocation, r"^the allocations of the applications sum up to"),
    ],
)
def test_a_core_whose_books_differ_fails_the_check(
    lie: Callable[[dict[str, Any]], None], complaint: str
) -> None:
    with LyingCore() as core:
        core.lie = lie
        with pytest.raises(CheckFailed, match=complaint):
            measure(Flood(cluster=TINY_CLUSTER, asks_each=3), Load(core))


class Impatient(Flood, frozen=True, kw_only=True):
    """Does not wait for an ask that no node can hold."""

    def drive(self, load: Load) -> Outcome:
        outcome = Flood.drive(self, load)
        load.submit("app-0", ("too-large",), {"vcore": 1_000_000})
        return outcome


class Hasty(Flood, frozen=True, kw_only=True):
    """Believes in a release that it has never sent."""

    def drive(self, load: Load) -> Outcome:
        outcome = Flood.drive(self, load)
        load.unconfirmed += 1
        return outcome


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (Impatient, r"^1 asks were not allocated \(too-large"),
        (Hasty, r"^1 releases were not confirmed$"),
    ],
)
def test_a_run_that_leaves_something_open_fails_the_check(
    kind: type[Flood], complaint: str
) -> None:
    with SchedulerCore() as core, pytest.raises(CheckFailed, match=complaint):
        measure(kind(cluster=TINY_CLUSTER, asks_each=1), Load(core))


def test_an_allocation_that_nobody_asked_for_fails_the_run() -> None:
    class Forgetful(Load):
        def submit(self, application_id: str, keys: Any, size: Any) -> None:
            super().submit(application_id, keys, size)
            self.waiting.pop("app-1-0", None)

    with SchedulerCore() as core, pytest.raises(CheckFailed, match=r"^app-1-0 was announced twice"):
        measure(Flood(cluster=TINY_CLUSTER, asks_each=1), Forgetful(core))


# -- runs that do not end


class TooLarge(Flood, frozen=True, kw_only=True):
    def drive(self, load: Load) -> Outcome:
        load.submit("app-0", ("too-large",), {"vcore": 1_000_000})
        load.receive_all()
        return Outcome(timing=load.timing())


def test_a_run_without_progress_gives_up() -> None:
    complaint = r"^1 asks wait and nothing comes: gave up after 0\.05 s"
    with SchedulerCore() as core, pytest.raises(Stalled, match=complaint):
        measure(TooLarge(cluster=TINY_CLUSTER, asks_each=1), Load(core, patience_s=0.05))


class Broken(Load):
    """The core breaks down as soon as the first ask has been sent."""

    def submit(self, application_id: str, keys: Any, size: Any) -> None:
        super().submit(application_id, keys, size)
        self.core.failure = CoreFailed("planted")


def test_a_run_on_a_core_that_failed_ends_with_its_failure() -> None:
    with pytest.raises(CoreFailed, match="planted"), SchedulerCore() as core:
        measure(TooLarge(cluster=TINY_CLUSTER, asks_each=1), Broken(core))


def test_what_the_core_turns_down_ends_the_run() -> None:
    class Elsewhere(Cluster, frozen=True, kw_only=True):
        def leaf_paths(self) -> list[str]:
            return ["root.nowhere"]

    cluster = Elsewhere(nodes=1, leaves=1, applications=1)
    with SchedulerCore() as core, pytest.raises(TurnedDown, match=r"^application app-0: "):
        measure(Flood(cluster=cluster, asks_each=1), Load(core))


def test_an_ask_that_the_core_turns_down_ends_the_run() -> None:
    with SchedulerCore() as core:
        load = Load(core)
        load.set_up(TINY_CLUSTER)
        load.submit("nobody", ("of-nobody",), ASK)
        with pytest.raises(TurnedDown, match=r"^ask of-nobody: "):
            load.receive_all()


# -- clusters


@pytest.mark.parametrize(
    ("name", "leaves"),
    [("W1", 1), ("W2", 10), ("W3", 50), ("W4", 100), ("W5", 10), ("W7c", 10), ("W8", 10)],
)
def test_the_leaves_are_those_that_are_configured_and_may_use_the_whole_cluster(
    name: str, leaves: int
) -> None:
    cluster = WORKLOADS[name].cluster
    (partition,) = parse_config(cluster.registration().config).partitions
    below = {f"root.{queue.name}": queue for queue in partition.root.children}
    for path, queue in tuple(below.items()):
        below.update({f"{path}.{child.name}": child for child in queue.children})
    maxima = {path: queue.max for path, queue in below.items() if queue.is_leaf}
    nodes = cluster.nodes
    whole = {"vcore": nodes * 16_000, "memory": nodes << 36, "pods": nodes * 110}
    assert dict.fromkeys(cluster.leaf_paths(), whole) == maxima
    assert leaves == len(maxima)


def test_applications_go_to_the_leaves_in_rotation() -> None:
    cluster = Cluster(nodes=1, leaves=2, applications=3)
    queues = [request.new[0].queue_name for request in cluster.application_requests()]
    assert queues == ["root.leaf-0", "root.leaf-1", "root.leaf-0"]


def test_nodes_come_a_hundred_to_a_request() -> None:
    cluster = Cluster(nodes=250, leaves=1, applications=1)
    assert [len(request.nodes) for request in cluster.node_requests()] == [100, 100, 50]


# -- the command


def test_a_run_prints_one_json_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(WORKLOADS, "W1", tiny("W1"))
    monkeypatch.setattr(calibrate, "measure", lambda: 2.0)
    monkeypatch.setattr(targets, "cpu_calibration", lambda: 3.0)
    assert cli.main(["--one", "W1", "--topology", "fused"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == RUN_KEYS


def test_a_run_that_fails_its_check_prints_no_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(WORKLOADS, "W1", Hasty(cluster=TINY_CLUSTER, asks_each=1))
    monkeypatch.setattr(calibrate, "measure", lambda: 2.0)
    monkeypatch.setattr(targets, "cpu_calibration", lambda: 3.0)
    assert cli.main(["--one", "W1", "--topology", "fused"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "W1 fused: 1 releases were not confirmed\n")


@pytest.mark.parametrize("failing", [(), ("W1",), ("W1", "W2")])
def test_one_failure_makes_the_exit_status_1_and_the_others_are_reported(
    failing: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    def start(name: str, topology: TopologyName, driver: CoreDriver) -> str:  # noqa: ARG001
        return "" if name in failing else json.dumps({"workload": name})

    assert int(bool(failing)) == cli.main(["W1", "W2", "--topology", "fused", "--json"], start)
    printed = [json.loads(line)["workload"] for line in capsys.readouterr().out.splitlines()]
    assert [name for name in ("W1", "W2") if name not in failing] == printed


def test_the_default_is_every_workload_on_both_topologies() -> None:
    started = []

    def start(name: str, topology: TopologyName, driver: CoreDriver) -> str:
        assert driver == "threads"
        started.append((name, topology))
        return ""

    cli.main([], start)
    assert [(name, topology) for name in WORKLOADS for topology in TOPOLOGIES] == started


def test_a_run_in_a_process_of_its_own_answers_with_its_figures() -> None:
    assert set(json.loads(cli.in_a_child("W1", "fused", "direct"))) == RUN_KEYS


def test_a_process_that_fails_has_no_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.in_a_child("W99", "fused", "threads") == ""
    assert "W99 fused: no figure" in capsys.readouterr().err


def test_an_unknown_workload_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["W99"])
    assert "no workload 'W99': choose of W1, " in capsys.readouterr().err


def test_the_callback_passes_refusals_of_nodes_on() -> None:
    node = si.NodeInfo(node_id="twice", action=si.ActionFromRM.CREATE)

    class Twice(Cluster, frozen=True, kw_only=True):
        def node_requests(self) -> Any:
            yield si.NodeRequest(rm_id="rm-benchmark", nodes=(node, node))

    with SchedulerCore() as core, pytest.raises(TurnedDown, match=r"^node twice: "):
        Load(core).set_up(Twice(nodes=1, leaves=1, applications=1))


@pytest.mark.slow
def test_imports_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == imports.main(["--pairs", "1"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert ["clock", "cpu"] == head.split()[-2:]
    assert list(imports.PROGRAMS) == [line[:46].strip() for line in lines]
    assert all(line.count(" ms") == 2 for line in lines)


def test_an_import_that_fails_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "PROGRAMS", ("raise SystemExit(3)",))
    with pytest.raises(SystemExit, match="'raise SystemExit\\(3\\)' ended with 3"):
        imports.main(["--pairs", "1"])


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_cycle_says_what_each_machine_spends(
    topology: TopologyName, capsys: pytest.CaptureFixture[str]
) -> None:
    cycle.main(["--topology", topology, "--rounds", "20"])
    lines = capsys.readouterr().out.splitlines()
    assert ["2.00"] == [it.split()[2] for it in lines if "RMUpdateAllocation" in it]
    assert ["1.00"] == [it.split()[2] for it in lines if "RMNewAllocations" in it]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_flood_says_what_each_machine_spends(
    topology: TopologyName, capsys: pytest.CaptureFixture[str]
) -> None:
    flood.main(["W1", "--topology", topology])
    lines = capsys.readouterr().out.splitlines()
    assert ["0.01"] == [it.split()[2] for it in lines if "RMUpdateAllocation" in it]
    flood.main(["W1", "--topology", topology, "--calls"])
    assert "function calls" in capsys.readouterr().out


def test_a_cycle_says_what_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    cycle.main(["--rounds", "20", "--calls"])
    assert "function calls" in capsys.readouterr().out


@pytest.mark.slow
def test_the_laboratory_says_how_fast_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    laboratory.main(["--runs", "1", "--worlds", "1", "--cases", "plain"])
    checked, unchecked, *worlds, calibration = capsys.readouterr().out.splitlines()
    speeds = [int(line.split()[-2].replace(",", "")) for line in (checked, unchecked)]
    assert all(line.endswith(" messages/s") for line in (checked, unchecked))
    assert 0 < min(speeds)
    assert ["swarm, seed 3", "packaged baseline"] == [
        it.partition("  ")[0].removeprefix("worlds of ").removeprefix("lab ").removeprefix("the ")
        for it in worlds
    ]
    assert all(" ms, mean " in line for line in worlds)
    assert calibration.startswith("calibration ")


@pytest.mark.parametrize(
    "load", ["gang", *(pytest.param(it, marks=pytest.mark.slow) for it in ("flood", "fifo"))]
)
def test_the_simulator_says_how_fast_it_is(load: str, capsys: pytest.CaptureFixture[str]) -> None:
    simulator.main([load, "--topology", "fused", "--rounds", "1"])
    *lines, calibration = capsys.readouterr().out.splitlines()
    assert [*simulator.COLUMNS] == [line[18:35].strip() for line in lines]
    assert calibration.startswith("calibration ")


# -- recordings


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_a_recording_costs_is_told_beside_a_run_without_one(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORKLOADS, "W2", tiny("W2"))
    runs = [recording.run("W2", topology, way) for way in recording.WAYS]
    without, plain, compressed = (it["bytes"] for it in runs)
    assert (without, {it["placements"] for it in runs}) == (0, {ANNOUNCED["W2"]})
    assert 0 < compressed < plain
    head, *rows = recording.lines([runs, runs])
    assert [row.split()[0] for row in rows] == list(recording.WAYS)
    assert rows[0].split()[2] == "1.00"
    assert len(head.split()) == 7


def test_each_question_is_asked_of_a_recording_and_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.trace"
    questions.record(path, 4)
    for name, arguments in questions.questions(path, 4):
        assert yunikorn_actors(["trace", *arguments]) == 0, name
    assert "replayed" in capsys.readouterr().out


@pytest.mark.slow
def test_a_question_is_asked_in_a_process_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions.main(["--applications", "2", "--keep", str(tmp_path / "a.trace"), "--only", "show"])
    told, _, row = capsys.readouterr().out.splitlines()
    assert " messages, " in told
    assert row.split()[0] == "show"
    assert "status" not in row
