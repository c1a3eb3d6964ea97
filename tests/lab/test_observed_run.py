"""What stands beside a core is seen as well: a defect in it changes what is seen of worlds."""

import pytest
from unspoilt import seen_unspoilt

from yunikorn_actors import si
from yunikorn_actors.lab.baseline import seen_in
from yunikorn_actors.lab.surfaces import wire_round_trip
from yunikorn_actors.machines.context import nodes
from yunikorn_actors.scenario.drivers import INSTANCE
from yunikorn_actors.service import core_queries
from yunikorn_actors.service.cluster import recovery_report
from yunikorn_actors.service.read import load_history
from yunikorn_actors.service.rest import live_page, simulate_route, yunikorn_routes
from yunikorn_actors.trace.text import tables
from yunikorn_actors.trace.view import run_data
from yunikorn_actors.what_if import run

FILES, ROUTES, FORESIGHT, WIRE, PICTURED = 2, 4, 17, 7, 39
"""Worlds in which the one of the dear things is looked at."""
COUNTED = 8
"""A world of which a live page is shown twice."""
RESTARTED = 45
"""A world whose core ends."""


def _nothing(*_: object, **__: object) -> None:
    return None


@pytest.mark.parametrize(
    ("world", "place", "name", "spoilt"),
    [
        (ROUTES, yunikorn_routes, "exposition", lambda _: iter((b"",))),
        pytest.param(ROUTES, yunikorn_routes, "_records", _nothing, marks=pytest.mark.slow),
        pytest.param(ROUTES, live_page, "_figures", lambda _: {}, marks=pytest.mark.slow),
        pytest.param(ROUTES, load_history.Course, "last", lambda *_: [], marks=pytest.mark.slow),
        (ROUTES, simulate_route, "_found", lambda *_: {}),
        (FORESIGHT, run.Run, "_note_end", _nothing),
        (WIRE, recovery_report.RecoveryReport, "_drop_application", _nothing),
        (PICTURED, tables, "_cells", lambda *_: 1),
        pytest.param(PICTURED, run_data, "_says", lambda _: "", marks=pytest.mark.slow),
        (FILES, nodes, "record_act", _nothing),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_what_is_wrong_beside_the_core_is_seen(
    monkeypatch: pytest.MonkeyPatch, world: int, place: object, name: str, spoilt: object
) -> None:
    before = seen_unspoilt(world)
    monkeypatch.setattr(place, name, spoilt)
    assert before != seen_in(world)


@pytest.mark.parametrize("form", ["JSON", "protobuf"])
def test_what_comes_back_otherwise_is_a_violation(
    monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    def lost(*_: object) -> si.SiMessage:
        return si.NodeRequest(rm_id="lost")

    if form == "JSON":
        monkeypatch.setattr(si, "from_json", lost)
    else:
        monkeypatch.setattr(
            wire_round_trip.codec(si.RegisterResourceManagerRequest), "decode", lost
        )
    assert f"as {form} it comes back otherwise" in seen_in(WIRE)[-1].value


def test_a_core_that_begins_again_is_seen() -> None:
    sights = seen_unspoilt(RESTARTED)
    assert "what the next core reads" in {sight.what for sight in sights}
    assert f"{INSTANCE}-2-" in " ".join(map(str, sights)), "a second core has given UUIDs"


def test_a_busy_computer_sees_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What asks wait for is counted as often, however long it takes."""
    before = seen_unspoilt(COUNTED)
    monkeypatch.setattr(core_queries, "CAUSES_S", 1e-9)
    monkeypatch.setattr(core_queries, "CAUSES_SHARE", 0)
    assert before == seen_in(COUNTED)
