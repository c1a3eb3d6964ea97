"""Worlds about placement, limits, priorities and one leaf: what shows in them, and who sees it."""

from collections import Counter
from functools import cache
from typing import Any

import pytest
import ranges
from msgspec.structs import replace

from yunikorn_actors.config import parse_config
from yunikorn_actors.config.properties import QueueProperties
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.run_schedule import explore
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm import scripts
from yunikorn_actors.lab.swarm.drawn import Drawn, drawn
from yunikorn_actors.lab.swarm.reloads import paths_below, with_capitals
from yunikorn_actors.lab.swarm.scripts import AWARE, FENCED, LIMITED, Queues, drawn_queues
from yunikorn_actors.lab.swarm.world_parts import ALL, UNKNOWN_TO_MODEL, Wanted
from yunikorn_actors.lab.swarm.world_queues import with_drawn_rules
from yunikorn_actors.machines.context import lifecycle
from yunikorn_actors.machines.rm_proxy.flow_control import ManagerTurns
from yunikorn_actors.planning.preemption import victim_rules
from yunikorn_actors.state import placement

SCENES = ("one-user", "one-placement", "one-priority", "one-leaf")
RUNS_MAX = 40


def _mutant(where: object, old: str, new: str) -> Mutant:
    return Mutant(id="one", source="a slip", wrong="", where=where, old=old, new=new)  # type: ignore[arg-type]


WRONG = {
    "a rule that keeps nobody out": (
        _mutant(placement._passes, "        return allow\n    matches", "        return True\n    matches"),
        ("one-placement",), "G28", 21,
    ),
    "a list of names is an expression": (
        _mutant(placement._matches, "len(wanted) == 1", "len(wanted) >= 1"),
        ("one-placement",), "G28", 4,
    ),
    "a queue that drains takes applications": (
        _mutant(placement._will_do, "is not QueueState.DRAINING", "is not None"),
        ("one-placement",), "G28", 6,
    ),
    "a priority leaves its fence": (
        _mutant(
            victim_rules.reach_of,
            "priority = child.properties.priority_outside(priority)",
            "priority += child.properties.priority_offset",
        ),
        ("one-priority",), "model, victim", 29,
    ),
    "the time of a gang begins again": (
        _mutant(
            lifecycle.watch_commitment,
            "    elif COMMITMENT_TIMER not in app.timers:\n",
            "    else:\n        _cancel_timer(unit, app, COMMITMENT_TIMER)\n",
        ),
        ("one-gang", "withdrawals", "quotas", "removals", "releases"), "G21", 1,
    ),
    "what has left is counted": (
        _mutant(
            ManagerTurns.send,
            "    if type(message) in _LAST:\n",
            "    if not self._max:\n",
        ),
        (
            "one-manager", "several-managers", "small-bounds", "lost-managers",
            "new-registrations", "runs",
        ),
        "G29", 4,
    ),
}  # fmt: skip
"""A mistake, the parts of worlds in which it shows, who sees it, and a world in which it is seen."""


def _violation(parts: tuple[str, ...], seen_in: int) -> str:
    for number in ranges.from_(seen_in, range(1, RUNS_MAX + 1)):
        run = drawn(3, number, Wanted(only=parts))
        outcome = explore(run.case, run.schedule(), run.checkers())
        if outcome.violation is not None:
            return f"{outcome.violation.kind} {outcome.violation.text}"
    return ""


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_seen(what: str) -> None:
    mutant, parts, kind, seen_in = WRONG[what]
    with mutant.applied():
        assert kind in _violation(parts, seen_in)


@cache
def _worlds() -> tuple[Drawn, ...]:
    return tuple(drawn(2, number, ALL) for number in range(1, 120))


@pytest.mark.parametrize("scene", SCENES)
def test_a_part_of_these_is_judged_by_the_model(scene: str) -> None:
    assert scene not in UNKNOWN_TO_MODEL
    having = [run for run in _worlds() if scene in run.parts]
    assert 1 < len(having) < 30
    assert any(run.is_judged for run in having)


@pytest.mark.parametrize("theme", [LIMITED, FENCED, AWARE])
def test_their_queues_are_what_they_are_about(theme: str) -> None:
    said = Counter[str]()
    for number in range(20):
        (whole,), leaves = drawn_queues(theme, number, 1)
        text = str(whole)
        words = {LIMITED: "'limits'", FENCED: "priority.policy", AWARE: "stateaware"}
        said["all"] += words[theme] in text
        assert leaves
    assert said["all"] > 15


def test_drawn_rules_have_every_form() -> None:
    seen = Counter[str]()
    for number in range(60):
        (whole,), _ = drawn_queues("order", number, 1)
        config = with_drawn_rules(Draw(4, number), whole["partitions"][0])
        parse_config(str({"partitions": [config]}))
        for rule in config.get("placementrules", ()):
            seen[rule["name"]] += 1
            seen["parent"] += "parent" in rule
            seen[rule.get("filter", {}).get("type", "no filter")] += 1
    forms = ("provided", "user", "tag", "fixed", "parent", "deny", "allow", "no filter")
    assert all(seen[form] > 3 for form in forms), seen


def test_capitals_mean_the_same() -> None:
    changed = 0
    for number in range(10):
        (whole,), _ = drawn_queues(FENCED, number, 1)
        before = whole["partitions"][0]
        after = with_capitals(Draw(1, number), before)
        changed += after != before
        for (_, one), (_, other) in zip(
            paths_below(before["queues"][0]), paths_below(after["queues"][0]), strict=True
        ):
            ours, theirs = (QueueProperties.of(it.get("properties", {})) for it in (one, other))
            # A name that stands for nothing is kept as it is written, and means what none means.
            assert theirs.application_policy in {ours.application_policy, "FIFO"}
            assert ours == replace(theirs, application_policy=ours.application_policy)
    assert changed > 5


def test_what_is_refused_at_sight_would_be_refused_when_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def configs() -> list[dict[str, Any]]:
        return [Queues(it, number).config() for it in ("limits", LIMITED) for number in range(10)]

    at_sight, found, refused = scripts.is_refused_at_sight, configs(), 0

    def counted(queue: dict[str, Any], above: dict[tuple[str, str], int]) -> bool:
        nonlocal refused
        refused += at_sight(queue, above)
        return False

    monkeypatch.setattr(scripts, "is_refused_at_sight", counted)
    assert found == configs()
    assert refused > 10, "vacuous"
