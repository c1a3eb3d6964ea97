"""The last hours: sampled whether or not anybody looks, bounded, and drawn with few points."""

import sys
from random import Random
from typing import Any

import pytest
from probes import wait_until
from served import ANN, Served, node, register, serving

from yunikorn_actors.service.read.incremental_answers import at_once
from yunikorn_actors.service.read.load_history import (
    HOURS_MAX,
    POINTS_MAX,
    SAMPLE_NS,
    Course,
    Courses,
    Mailboxes,
    Sample,
)
from yunikorn_actors.service.rest import http_server as server
from yunikorn_actors.values.durations import HOUR

X = "/ws/v1/x/partition/default/history"


def sample(at_ns: int, asks: int = 1) -> Sample:
    return Sample(at_ns, asks, asks * 10, asks * 100, asks * 1000)


def told(messages: int, handled: int, waited_ns: int) -> dict[str, Any]:
    actor = {"messages": handled, "waiting_ns": waited_ns}
    return {"lengths": {"context": messages}, "metered": {"actors": {"context": actor}}}


def test_however_long_a_service_runs_so_much_is_kept() -> None:
    course, now_ns = Course(), 0
    for number in range(3 * 24 * 360):
        now_ns = number * SAMPLE_NS
        course.take(sample(now_ns, number))
    for hours in (1, 6, HOURS_MAX):
        points = course.last(hours, now_ns)
        assert len(points) <= POINTS_MAX + 1
        assert points[0].at_ns >= now_ns - hours * HOUR
        assert now_ns == points[-1].at_ns
        assert points == sorted(points)
    assert len(course._recent) + len(course._minutes) <= 360 + 1440
    assert sys.getsizeof(course._minutes) < 100_000


@pytest.mark.parametrize("hours", [1, 6, 24])
def test_no_peak_is_lost(hours: int) -> None:
    """Whatever came between, the largest is drawn."""
    random, course = Random(hours), Course()  # noqa: S311 - no secret
    count = hours * 360
    peak = random.randrange(count)
    for number in range(count):
        course.take(sample(number * SAMPLE_NS, 9_999 if number == peak else random.randrange(100)))
    points = course.last(hours, (count - 1) * SAMPLE_NS)
    assert 9_999 == max(it.asks for it in points)
    assert 99_990 == max(it.oldest_ns for it in points)


def test_a_message_waits_as_long_as_those_since_the_sample_before() -> None:
    courses = Courses()
    for handled, waited_ns in ((10, 1_000), (30, 5_000), (30, 5_000)):
        at_once(courses.take({}, told(3, handled, waited_ns), 0))
    assert 200 == Mailboxes(0, 30, 5_000).wait_since(Mailboxes(0, 10, 1_000))
    assert 0 == Mailboxes(0, 30, 5_000).wait_since(Mailboxes(0, 30, 5_000))
    # A core that began anew counts from nothing.
    assert 0 == Mailboxes(0, 5, 10).wait_since(Mailboxes(0, 30, 5_000))
    assert {} == courses.by_name


def test_what_was_begun_anew_is_kept_once() -> None:
    courses = Courses()
    given_up = courses.take({}, told(0, 5, 5), 1)
    given_up.close()
    assert Mailboxes() == courses._former


def test_a_service_samples_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SAMPLE_S", 0.05)
    with serving() as served:
        _waits(served)

        def samples() -> list[list[int]]:
            found: list[list[int]] = served.get(f"{X}?hours=1")["asks"]
            return found

        # One for each 15 s is shown: that is as close as a picture of an hour has them.
        wait_until(lambda: bool(samples()) and samples()[-1][1] == 3)
        shown = served.get(X)
        assert shown["oldest_ns"][-1][1] > 0
        assert {"messages", "wait_ns", "applications", "allocations"} <= shown.keys()
        assert shown["end_ns"] - shown["begin_ns"] == HOUR
        assert 24 * HOUR == _span(served.get(f"{X}?hours=1000"))
        assert 400 == served.ask(f"{X}?hours=none").status
        assert 404 == served.ask(X.replace("default", "nowhere")).status
        # YuniKorn's history, of the same time.
        served.part._server._side.catch_up(  # type: ignore[attr-defined]
            served.core.clock.now_ns() + HOUR // 20
        )
        assert {1} == {count for _, count in served.get(X)["applications"]}
        assert {2} == {count for _, count in served.get(X)["allocations"]}


def _span(shown: dict[str, Any]) -> int:
    span: int = shown["end_ns"] - shown["begin_ns"]
    return span


def _waits(served: Served) -> None:
    register(served)
    served.nodes(node("n1", vcore=2000))
    served.application("app-1", "root.prod", ANN)
    served.asks("app-1", *(f"a-{number}" for number in range(5)), vcore=1000)
