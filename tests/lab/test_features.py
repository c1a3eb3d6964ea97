"""What a run reached is seen in what was delivered: facts together, reasons, bounds, tables."""

from typing import Any

import pytest
from msgspec.structs import replace

from yunikorn_actors.lab import features as ft
from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.coverage import Coverage, coverage_lines, tried_in
from yunikorn_actors.lab.explore import Options, Runs
from yunikorn_actors.lab.mutants.tries import cases
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.schedules.faults import FAULTS
from yunikorn_actors.machines.settings import Settings

CLUSTER = """\
name: x
steps:
  - create_node: {ids: [n1, n2], capacity: {vcore: 4}}
  - add_app: {id: app, queue: root.default}
  - ask: {app: app, key: a, count: 3, resource: {vcore: 1}}
"""


def reached(steps: str, **settings: Any) -> dict[str, set[str]]:
    case = parse_case(CLUSTER + steps, "x.yaml")
    scenario = replace(case.scenario, settings=Settings(**settings))
    outcome = play(replace(case, scenario=scenario), case.tape())
    assert outcome.violation is None
    found: dict[str, set[str]] = {}
    for group, key in ft.features_in(outcome.deliveries, scenario.settings):
        found.setdefault(group, set()).add(key)
    return found


def test_facts_come_together() -> None:
    pair = "NodeRemoved, ClusterResized"
    assert pair not in reached("")[ft.BATCHES]
    assert pair in reached("  - remove_node: n1\n")[ft.BATCHES]


def test_an_application_goes_through_its_table() -> None:
    life = reached("  - release: {app: app}\n  - advance: 80h\n")[ft.LIVES]
    assert {
        "New runApplication Accepted",
        "Accepted runApplication Running",
        "Running completeApplication Completing",
        "Completing completeApplication Completed",
        "Completed expireApplication Expired",
    } == life
    assert life <= set(ft.UNIVERSE[ft.LIVES])


REJECTED = "".join(
    f"  - add_app: {{id: r{number}, queue: root.default, user: ''}}\n" for number in range(3)
)
ENDED = "".join(
    f"  - add_app: {{id: e{number}, queue: root.default}}\n"
    f"  - ask: {{app: e{number}, key: e{number}, resource: {{vcore: 1}}}}\n"
    f"  - release: {{app: e{number}}}\n"
    "  - advance: 40s\n"
    for number in range(2)
)


@pytest.mark.parametrize(
    ("bound", "settings", "steps"),
    [
        ("cycle_max", {"cycle_max": 2}, ""),
        ("inflight_max", {"inflight_max": 2}, ""),
        ("slice_max", {"slice_max": 1}, "  - remove_app: app\n"),
        ("history_max", {"history_max": 1}, ENDED),
        ("rejected_max", {"rejected_max": 2}, REJECTED),
    ],
)
def test_a_bound_is_reached(bound: str, settings: dict[str, Any], steps: str) -> None:
    assert bound in reached(steps, **settings).get(ft.BOUNDS, set())
    assert bound not in reached(steps).get(ft.BOUNDS, set()), "by default it is far away"


def test_an_expired_history_is_no_bound() -> None:
    found = reached(ENDED + "  - advance: 80h\n", history_max=5)
    assert "HistoryExpiryDue" in found[ft.TIMERS]
    assert ft.BOUNDS not in found


@pytest.mark.parametrize(
    ("group", "key", "steps"),
    [
        (ft.PLACEMENTS, "as asked", ""),
        (ft.PLACEMENTS, "rejected", REJECTED),
        (ft.CLUSTER, "node drained", "  - drain_node: n1\n"),
        (ft.CLUSTER, "node opened", "  - drain_node: n1\n  - undrain_node: n1\n"),
        (ft.CLUSTER, "node removed", "  - remove_node: n1\n"),
        (ft.GATES, "FAILED by queue", "  - ask: {app: app, key: b, resource: {vcore: 9}}\n"),
        (ft.ENDS, "ended: STOPPED_BY_RM", "  - release: {app: app}\n"),
        (ft.TIMERS, "state", "  - release: {app: app}\n  - advance: 40s\n"),
    ],
)
def test_a_key_is_reached(group: str, key: str, steps: str) -> None:
    assert key in reached(steps)[group]


def test_whatever_is_reached_is_in_its_table() -> None:
    """Else it would be counted, and never be shown."""
    found: set[ft.Feature] = set()
    for number, case in enumerate(cases()[::2]):
        runs = Runs(case=case, options=Options(faults=tuple(FAULTS)), length=100)
        for run in (0, 2 * number + 1, 2 * number + 2):
            found.update(runs.play(run).tried.features)
    for group, keys in ft.UNIVERSE.items():
        assert {it.key for it in found if it.group == group} <= set(keys)
    seen = {group for group, _ in found}
    assert ft.UNIVERSE.keys() - seen <= {ft.BOUNDS, ft.LONG}, "vacuous: hardly anything was reached"


def test_what_was_never_reached_is_listed() -> None:
    case = parse_case(CLUSTER, "x.yaml")
    coverage = Coverage()
    tried = tried_in(play(case, case.tape()).deliveries, Settings())
    assert coverage.has_new_features(tried)
    coverage.add(tried)
    assert not coverage.has_new_features(tried)
    lines = list(coverage_lines(coverage, 2))
    assert (
        "  preemption: 0 of 6; never guarantee decided, required node decided and 4 more" in lines
    )
    assert "  preemption: 0 of 6" in coverage_lines(coverage)
