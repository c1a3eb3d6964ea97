"""A recording as spans of OpenTelemetry."""

import json
import re
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from recordings import in_service, records, rewrite, simulate, write

from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.rm_events import (
    AskItem,
    AskReleaseItem,
    RejectedAsk,
    RMRejectedAllocationAsk,
    RMUpdateAllocation,
)
from yunikorn_actors.messages.scheduling import FactsAppended, PlanningDue, RunCycle
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.facts import AskRemoved
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.trace.export.otlp import LINKS_MAX, otlp
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.origins.items import items_in
from yunikorn_actors.trace.read import TraceReader

CYCLE = RunCycle(partition="p", epoch=1)
START_NS = 1_767_225_600_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def lines(path: Path, **wanted: Any) -> list[str]:
    with TraceReader(path) as trace:
        return list(otlp(trace, DeliveryFilter(FilterOptions(**wanted), trace)))


def resource_spans(path: Path, **wanted: Any) -> list[dict[str, Any]]:
    """Read each line by itself, as the receiver of a collector does."""
    found: list[dict[str, Any]] = []
    for line in lines(path, **wanted):
        assert "\n" not in line
        found += json.loads(line)["resourceSpans"]
    return found


def spans(path: Path, **wanted: Any) -> list[dict[str, Any]]:
    return [
        span
        for resource in resource_spans(path, **wanted)
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


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
    assert [lasting(it) for it in spans(path)] == [5, 0, 7, 11]
    rewrite(path, changed[:-1])
    assert [lasting(it) for it in spans(path)] == [5, 0, 7, 0]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_time_of_what_was_handled_together_is_told_once(
    path: Path, topology: TopologyName
) -> None:
    in_service(path, topology)
    recorded = [it for it in records(path) if it["record"] == "delivery"]
    took = [it["previous_took_ns"] for it in recorded if it.get("previous_took_ns") is not None]
    took += records(path)[-1]["took_ns"].values()
    assert sum(map(lasting, spans(path))) == sum(took)
    assert any(it.get("joined") for it in recorded), "vacuous: nothing was handled together"


def test_without_its_last_message_a_batch_has_its_time_all_the_same(path: Path) -> None:
    write(path, CYCLE, PlanningDue(partition="p", epoch=1), driver="threads")
    changed = records(path)
    changed[2]["joined"] = True
    changed[-1]["took_ns"] = {"context": 11}
    rewrite(path, changed)
    assert [lasting(it) for it in spans(path, type=("RunCycle",))] == [11]


def asks(path: Path, count: int, answered: int) -> list[dict[str, Any]]:
    """So many requests for an ask each, handled together, and what tells of some of them."""
    specs = [
        AskSpec(application_id="app", key=f"a-{number}", resource={"vcore": 1})
        for number in range(count)
    ]
    requests = [
        RMUpdateAllocation(rm_id="rm-1", asks=(AskItem(partition="p", spec=spec),))
        for spec in specs
    ]
    rejected = tuple(
        RejectedAsk(application_id="app", key=spec.key, reason="no", later_form=False)
        for spec in specs[:answered]
    )
    answer = RMRejectedAllocationAsk(rm_id="rm-1", rejected=rejected)
    write(path, *requests, answer, driver="threads")
    changed = records(path)
    for number, record in enumerate(changed[1:-1], start=1):
        record["joined"] = 1 < number <= count
        record["stimulus"] = f"allocation-{number}"
    changed[-2].update(
        stimulus=f"allocation-{count}", cause=["context", count], mailbox="rm_proxy", step=1
    )
    rewrite(path, changed)
    *brought, told_ = sorted(spans(path), key=lambda it: int(told(it)["number"]))
    return [*brought, told_]


def test_a_message_is_linked_to_what_brought_its_items_and_to_nothing_else(path: Path) -> None:
    *brought, answer = asks(path, 40, 3)
    assert not any("links" in it for it in brought)
    assert answer["parentSpanId"] == brought[-1]["spanId"]
    assert answer["traceId"] == brought[-1]["traceId"]
    assert {it["spanId"] for it in answer["links"]} == {it["spanId"] for it in brought[:3]}
    assert {it["traceId"] for it in answer["links"]} == {it["traceId"] for it in brought[:3]}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_each_link_of_a_service_leads_to_a_message_about_one_of_the_items(
    path: Path, topology: TopologyName
) -> None:
    in_service(path, topology)
    with TraceReader(path) as trace:
        messages = {(it.mailbox, it.step): it.message for it in trace}
    found = {it["spanId"]: it for it in spans(path)}

    def names(span: dict[str, Any]) -> set[str]:
        at = told(span)["messaging.destination.name"], int(told(span)["step"])
        return {name for item in items_in(messages[at]) for name in item.names}

    links = [(span, found[it["spanId"]]) for span in found.values() for it in span.get("links", [])]
    of_items = [(names(span), names(cause)) for span, cause in links if names(span)]
    assert len(of_items) > 5, "vacuous: hardly anything was handled together"
    assert [pair for pair in of_items if pair[0].isdisjoint(pair[1])] == []


def test_an_end_is_linked_to_the_request_to_end_it_and_not_to_the_ask(path: Path) -> None:
    ask = AskItem(partition="p", spec=AskSpec(application_id="app", key="a", resource={"vcore": 1}))
    end = AskReleaseItem(partition="p", application_id="app", key="a")
    gone = AskRemoved(
        application_id="app", key="a", resource={"vcore": 1}, at_ns=START_NS,
        type=TerminationType.STOPPED_BY_RM,
    )  # fmt: skip
    write(
        path,
        RMUpdateAllocation(rm_id="rm-1", ask_releases=(end,)),
        RMUpdateAllocation(rm_id="rm-1", asks=(ask,)),
        CYCLE,
        FactsAppended(rm_id="rm-1", partition="p", epoch=1, first_revision=1, facts=(gone,)),
        driver="threads",
    )
    changed = records(path)
    for number, record in enumerate(changed[1:4], start=1):
        record["joined"] = number > 1
    changed[4].update(cause=["context", 3], mailbox="event_publisher", step=1)
    changed[4]["stimulus"] = changed[3]["stimulus"]
    rewrite(path, changed)
    brought, _, _, answer = sorted(spans(path), key=lambda it: int(told(it)["number"]))
    assert [it["spanId"] for it in answer["links"]] == [brought["spanId"]]


def test_a_span_has_as_many_links_as_libraries_keep_and_counts_the_others(path: Path) -> None:
    *brought, answer = asks(path, 200, 200)
    assert len(answer["links"]) == LINKS_MAX == 128
    assert answer["droppedLinksCount"] == 199 - 128
    known = {it["spanId"] for it in brought}
    assert {it["spanId"] for it in answer["links"]} < known


def test_no_line_is_longer_than_collectors_read(path: Path) -> None:
    write(path, *[CYCLE] * 2_000)
    written = lines(path)
    assert 1 < len(written) < 20
    assert max(len(it.encode()) for it in written) < 2**19
    assert len({it["spanId"] for it in spans(path)}) == 2_000


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
    (found,) = resource_spans(path)
    attributes = found["resource"]["attributes"]
    assert "the time is the order number" in str(attributes)
    assert lines(path, mailbox=("nobody",)) == []


# -- what collectors take


KEYS: dict[str, set[str]] = {
    "document": {"resourceSpans"},
    "resourceSpans": {"resource", "scopeSpans"},
    "scopeSpans": {"scope", "spans"},
    "span": {
        "traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano",
        "endTimeUnixNano", "attributes", "links", "droppedLinksCount",
    },
    "link": {"traceId", "spanId"},
}  # fmt: skip
"""Of opentelemetry/proto/trace/v1/trace.proto, in lowerCamelCase."""
VALUES = {"stringValue": str, "intValue": str, "boolValue": bool}


def check_document(text: str) -> None:
    document = json.loads(text)
    assert document.keys() == KEYS["document"]
    for resource in document["resourceSpans"]:
        assert resource.keys() == KEYS["resourceSpans"]
        check_attributes(resource["resource"]["attributes"])
        for scope in resource["scopeSpans"]:
            assert scope.keys() == KEYS["scopeSpans"]
            for span in scope["spans"]:
                check_span(span)


def check_span(span: dict[str, Any]) -> None:
    assert span.keys() <= KEYS["span"]
    check_ids(span)
    assert "parentSpanId" not in span or re.fullmatch("[0-9a-f]{16}", span["parentSpanId"])
    assert span["name"]
    assert span["kind"] == 5
    begin, end = span["startTimeUnixNano"], span["endTimeUnixNano"]
    assert begin.isdecimal()
    assert end.isdecimal()
    assert 0 < int(begin) <= int(end) < 2**64
    check_attributes(span["attributes"])
    for link in span.get("links", []):
        assert link.keys() == KEYS["link"]
        check_ids(link)


def check_ids(of: dict[str, Any]) -> None:
    assert re.fullmatch("[0-9a-f]{32}", of["traceId"])
    assert re.fullmatch("[0-9a-f]{16}", of["spanId"])
    assert int(of["traceId"], 16)
    assert int(of["spanId"], 16)


def check_attributes(attributes: list[dict[str, Any]]) -> None:
    for attribute in attributes:
        assert attribute.keys() == {"key", "value"}
        ((kind, value),) = attribute["value"].items()
        assert type(value) is VALUES[kind]
        assert kind != "intValue" or re.fullmatch(r"-?\d+", value)


def recorded(path: Path, name: str) -> Path:
    match name:
        case "simulated":
            return simulate(path)
        case "two schedulers":
            return in_service(path, schedulers=2)
        case "direct and fused":
            return in_service(path, "fused", "direct")
        case "cut off":
            path.write_bytes(in_service(path).read_bytes()[:-100])
        case "compressed":
            path.write_bytes(zlib.compress(in_service(path).read_bytes()))
    return path


@pytest.mark.parametrize(
    "name", ["simulated", "two schedulers", "direct and fused", "cut off", "compressed"]
)
def test_each_line_is_what_the_protocol_has(path: Path, name: str) -> None:
    recorded(path, name)
    written = lines(path)
    for line in written:
        check_document(line)
    found = spans(path)
    assert len({it["spanId"] for it in found}) == len(found) > 100
    traces = {it["spanId"]: it["traceId"] for it in found}
    for span in found:
        assert traces.get(span.get("parentSpanId", ""), span["traceId"]) == span["traceId"]
        assert "parentSpanId" not in span or span["parentSpanId"] in traces
        assert all(traces[it["spanId"]] == it["traceId"] for it in span.get("links", []))


@pytest.mark.engines
@pytest.mark.parametrize("name", ["simulated", "two schedulers"])
def test_the_libraries_of_opentelemetry_read_each_line(path: Path, name: str) -> None:
    """In its JSON ids are hexadecimal; the JSON of protobuf, which reads it here, has base64."""
    pytest.importorskip("opentelemetry.proto", reason="opentelemetry-proto is not there")
    from google.protobuf.json_format import Parse  # noqa: PLC0415
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData  # noqa: PLC0415

    count = 0
    for line in lines(recorded(path, name)):
        in_base64 = re.sub(
            r'"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"',
            lambda it: f'"{it[1]}":"{b64encode(bytes.fromhex(it[2])).decode()}"',
            line,
        )
        read = Parse(in_base64, TracesData())
        found = [it for one in read.resource_spans for two in one.scope_spans for it in two.spans]
        assert {(len(it.trace_id), len(it.span_id)) for it in found} == {(16, 8)}
        count += len(found)
    assert count == len(spans(path)) > 100
