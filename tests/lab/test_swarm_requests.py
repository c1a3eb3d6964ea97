"""Steps that are joined, or in the later form, ask for the same; broken ones are refused."""

import re
from collections import Counter
from typing import Any

import pytest

from yunikorn_actors import si
from yunikorn_actors.lab.baseline import Watched
from yunikorn_actors.lab.case import Case, parse_case
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import explore, play
from yunikorn_actors.lab.scenario_documents import written
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.request_forms import in_later_form, joined
from yunikorn_actors.lab.swarm.world_parts import RESTART, Wanted
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.messages.rm_events import AllocationsRequested

ASK = {"ask": {"app": "app-1", "key": "k", "resource": {"vcore": 1}, "count": 2, "priority": 3}}
BEFORE: list[dict[str, Any]] = [
    {"create_node": {"id": "n1", "capacity": {"vcore": 9}}},
    {"add_app": {"id": "app-1"}},
]


def _case(*steps: dict[str, Any]) -> Case:
    return parse_case(written({"name": "requests", "steps": [*BEFORE, *steps]}), "requests.yaml")


def _new(case: Case) -> list[tuple[str, int]]:
    outcome = play(case, case.tape(), oracles())
    assert outcome.ok, outcome.violation
    return sorted(
        (item.allocation_key, item.priority)
        for it in outcome.deliveries
        if isinstance(it.message, CallUpdateAllocation)
        for item in it.message.response.new
    )


def test_the_later_form_asks_for_the_same() -> None:
    later = in_later_form("rm-1", ASK, has_policy=True)
    request = later["raw"]["request"]
    assert "asks" not in request
    assert [it["allocationKey"] for it in request["allocations"]] == ["k-0", "k-1"]
    assert _new(_case(later)) == _new(_case(ASK)) == [("k-0", 3), ("k-1", 3)]
    bare = in_later_form("rm-1", ASK, has_policy=False)["raw"]["request"]["allocations"]
    assert all("preemptionPolicy" not in it for it in bare)


def test_requests_of_one_kind_become_one() -> None:
    others = [
        {"ask": {"app": "app-1", "key": "j", "resource": {"vcore": 2}, "timeout": "20s"}},
        {"release": {"app": "app-1", "key": "k-0", "type": "TIMEOUT"}},
        {"release_ask": {"app": "app-1", "key": "j"}},
        {"drain_node": {"id": "n1"}},
        {"lose_rm": "rm-1"},
    ]
    lost, drained, several = joined("rm-1", [ASK, *others])
    assert ({"lose_rm": "rm-1"}, {"drain_node": {"id": "n1"}}) == (lost, drained)
    request = several["raw"]["request"]
    assert [it["allocationKey"] for it in request["asks"]] == ["k-0", "k-1", "j"]
    assert request["asks"][-1]["executionTimeoutMilliSeconds"] == 20_000
    ends = request["releases"]
    assert ends["allocationsToRelease"][0]["terminationType"] == si.TerminationType.TIMEOUT
    assert ends["allocationAsksToRelease"][0]["allocationKey"] == "j"


def test_drawn_worlds_have_them() -> None:
    parts = ("joined-requests", "later-form", "releases", "withdrawals", "reported-work")
    asked = {"main": 0, "later": 0, "joined": 0}
    for number in range(1, 25):
        case = drawn(1, number, Wanted(only=parts)).case
        for it in play(case, case.tape(), oracles()).deliveries:
            if isinstance(it.message, AllocationsRequested):
                request = it.message.request
                keys = [ask.allocation_key for ask in request.asks]
                asked["main"] += bool(keys)
                asked["later"] += any(not item.node_id for item in request.allocations)
                asked["joined"] += bool(request.releases is not None and keys)
    assert all(asked.values()), asked


# -- requests with something wrong in them


def test_what_is_wrong_in_a_request_is_refused_in_many_ways() -> None:
    reasons = Counter[str]()
    wanted = Wanted(only=("broken-requests", "gangs", "devices", "releases", "removals"))
    for number in range(1, 31):
        run = drawn(1, number, wanted)
        watched = Watched(number, run.case.scenario.settings, begins_again=RESTART in run.parts)
        outcome = explore(run.case, run.schedule(), watched.checkers)
        assert outcome.ok, outcome.violation
        for sight in watched.sights:
            if sight.what == "what calls were refused for":
                reasons.update(re.sub(r"'.*?'|\d+", "_", text) for text in sight.value)
            elif "rejected" in str(sight):
                found = re.findall(r'"reason":"(.*?)"', str(sight))
                reasons.update(re.sub(r"\S*[-/\d]\S*", "_", text) for text in found)
        if len(reasons) > 10:
            return
    pytest.fail(str(reasons))
