"""A recording as spans of OpenTelemetry."""

import json
from pathlib import Path
from typing import Any

import pytest
from recordings import in_service, records, rewrite, simulate, write

from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.trace.export.otlp import otlp
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.wanted import Sieve, Wanted

CYCLE = RunCycle(partition="p", epoch=1)
START_NS = 1_767_225_600_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def resource_spans(path: Path, **wanted: Any) -> dict[str, Any]:
    with TraceReader(path) as trace:
        text = "\n".join(otlp(trace, Sieve(Wanted(**wanted), trace)))
    (found,) = json.loads(text)["resourceSpans"]
    assert isinstance(found, dict)
    return found


def spans(path: Path, **wanted: Any) -> list[dict[str, Any]]:
    (scope,) = resource_spans(path, **wanted)["scopeSpans"]
    found: list[dict[str, Any]] = scope["spans"]
    return found


def told(span: dict[str, Any]) -> dict[str, Any]:
    return {it["key"]: next(iter(it["value"].values())) for it in span["attributes"]}


def lasting(span: dict[str, Any]) -> int:
    return int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])


@pytest.mark.parametrize("run", [simulate, in_service])
def test_every_message_is_a_span_below_its_cause(path: Path, run: Any) -> None:
    found = {
        (told(it)["messaging.destination.name"], int(told(it)["step"])): it
        for it in spans(run(path))
    }
    messages = {
        (it["mailbox"], it["step"]): it for it in records(path) if it["record"] == "delivery"
    }
    assert set(found) == set(messages)
    assert len({it["spanId"] for it in found.values()}) == len(messages)
    stimuli: dict[str, set[str]] = {}
    for at, record in messages.items():
        span = found[at]
        stimuli.setdefault(span["traceId"], set()).add(record["stimulus"])
        parent = found.get(tuple(record["cause"]))
        assert span.get("parentSpanId") == (parent and parent["spanId"])
        assert span["name"] == record["type"]
        assert span["kind"] == 5
        assert (len(bytes.fromhex(span["traceId"])), len(bytes.fromhex(span["spanId"]))) == (16, 8)
        if run is in_service:
            assert int(span["startTimeUnixNano"]) == record["at_ns"]
    assert all(len(names) == 1 for names in stimuli.values())
    assert len(stimuli) == len({it["stimulus"] for it in messages.values()})
    assert (run is in_service) == any(lasting(it) for it in found.values())


def test_a_span_is_as_long_as_the_next_record_or_the_footer_says(path: Path) -> None:
    write(path, *[CYCLE] * 4, driver="threads")
    changed = records(path)
    changed[2]["previous_took_ns"] = 5
    changed[3]["joined"] = True
    changed[4].update(step=9, previous_took_ns=7)
    changed[-1]["took_ns"] = {"context": 11}
    rewrite(path, changed)
    assert [lasting(it) for it in spans(path)] == [5, 0, 0, 11]
    changed[4]["step"] = 4
    rewrite(path, changed)
    assert [lasting(it) for it in spans(path)] == [5, 7, 7, 11]
    rewrite(path, changed[:-1])
    assert [lasting(it) for it in spans(path)] == [5, 7, 7, 0]


def test_what_was_handled_together_is_linked(path: Path) -> None:
    write(path, *[CYCLE] * 3, driver="threads")
    changed = records(path)
    changed[2]["joined"] = changed[3]["joined"] = True
    rewrite(path, changed)
    first, second, third = spans(path)
    assert "links" not in first
    assert second["links"] == [{"traceId": first["traceId"], "spanId": first["spanId"]}]
    assert [it["spanId"] for it in third["links"]] == [first["spanId"], second["spanId"]]


def test_a_cause_of_another_stimulus_is_linked_and_no_parent(path: Path) -> None:
    write(path, *[CYCLE] * 2, driver="threads")
    changed = records(path)
    changed[2]["cause"] = ["context", 1]
    rewrite(path, changed)
    first, second = spans(path)
    assert "parentSpanId" not in second
    assert second["links"] == [{"traceId": first["traceId"], "spanId": first["spanId"]}]


def test_the_same_recording_has_the_same_ids_and_another_has_others(path: Path) -> None:
    write(path, CYCLE)
    ids = [(it["traceId"], it["spanId"]) for it in spans(path)]
    assert ids == [(it["traceId"], it["spanId"]) for it in spans(path)]
    write(path, CYCLE, instance="other")
    assert set(ids).isdisjoint((it["traceId"], it["spanId"]) for it in spans(path))


def test_what_is_left_out_is_nobodys_parent(path: Path) -> None:
    found = spans(simulate(path), mailbox=("context",))
    assert len(found) == sum(1 for it in records(path) if it.get("mailbox") == "context")
    known = {it["spanId"] for it in found}
    assert {it["parentSpanId"] for it in found if "parentSpanId" in it} <= known


def test_a_simulated_run_says_what_its_times_are(path: Path) -> None:
    write(path, CYCLE)
    attributes = resource_spans(path)["resource"]["attributes"]
    assert "the time is the order number" in str(attributes)
    assert spans(path, mailbox=("nobody",)) == []
