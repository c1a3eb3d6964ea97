"""Every route of YuniKorn, through a server and a plain client, against a typed table."""

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from probes import PATIENCE_S, wait_until
from served import CONFIG, RM, P, Served, node, register, serving
from shapes import (
    ANSWERS,
    Refused,
    Verdict,
)

from yunikorn_actors import TraceSettings, si
from yunikorn_actors.config import parse_config
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.service.rest import http_server as server
from yunikorn_actors.service.rest import sessions, streaming
from yunikorn_actors.service.rest import yunikorn_routes as yunikorn
from yunikorn_actors.service.rest.exchange import Answer
from yunikorn_actors.service.rest.http_server import STREAMS_OF_HOST_MAX, all_routes
from yunikorn_actors.service.rest.in_process import RestPart
from yunikorn_actors.service.rest.request_guard import Guard
from yunikorn_actors.trace.read import TraceReader

STREAM = "/ws/v1/events/stream"


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as it:
        yield it


# -- the typed table

PATHS = [
    "/ws/v1/clusters",
    "/ws/v1/partitions",
    f"{P}/queues",
    f"{P}/queue/root.prod",
    f"{P}/queue/root?subtree",
    f"{P}/queue/root.prod/applications",
    f"{P}/queue/root.prod/applications/active?status=running",
    f"{P}/queue/root.prod/application/app-gang",
    f"{P}/applications/active",
    f"{P}/applications/rejected",
    f"{P}/applications/COMPLETED",
    f"{P}/application/app-need",
    f"{P}/nodes",
    f"{P}/node/n1",
    f"{P}/placementrules",
    f"{P}/usage/users",
    f"{P}/usage/user/ann",
    f"{P}/usage/groups",
    f"{P}/usage/group/ops",
    "/ws/v1/events/batch?count=20",
    "/ws/v1/scheduler/healthcheck",
    "/ws/v1/scheduler/node-utilizations",
    "/ws/v1/history/apps",
    "/ws/v1/history/containers",
    "/debug/fullstatedump",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_route_answers_in_its_shape(town: Served, path: str) -> None:
    response = town.ask(path)
    assert (200, "application/json; charset=UTF-8") == (
        response.status,
        response.headers["Content-Type"],
    )
    (shape,) = (shape for route, shape in ANSWERS.items() if is_of(path, route))
    msgspec.json.decode(response.body, type=shape)


def test_every_route_of_yunikorn_stands_in_a_test() -> None:
    """What the table has not is tested by itself below."""
    apart = {
        "/ws/v1/config",
        "/ws/v1/validate-conf",
        "/debug/stack",
        "/ws/v1/fullstatedump",
        "/ws/v1/stack",
        "/ws/v1/metrics",
        STREAM,
    }
    routes = {route.path for route in all_routes() if route.is_yunikorns}
    tested = {route for route in routes for path in PATHS if is_of(path, route)}
    assert routes - apart == tested


def is_of(path: str, route: str) -> bool:
    parts, names = path.partition("?")[0].split("/"), route.split("/")
    return len(parts) == len(names) and all(
        name.startswith("{") or name == part for part, name in zip(parts, names, strict=True)
    )


# -- what they say


def by(values: list[dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    return {value[name]: value for value in values}


def test_a_gang_and_its_swap(town: Served) -> None:
    app = town.get(f"{P}/application/app-gang")
    placed = by(app["allocations"], "allocationKey")
    real = placed["real-0"]
    expected = {"taskGroupName": "tg", "count": 3, "replaced": 1}
    (group,) = app["placeholderData"]
    assert expected == {name: group[name] for name in expected}
    assert {"vcore": 1000, "memory": 1 << 30} == group["minResource"] == app["usedResource"]
    # All three placeholders stood before the first was replaced.
    assert 3000 == app["maxUsedResource"]["vcore"]
    assert real["placeholderUsed"]
    assert real["allocationDelay"] == real["allocationTime"] - real["requestTime"] > 0
    assert placed["ph-1" if "ph-1" in placed else "ph-2"]["placeholder"]
    assert {"kubernetes.io/meta/namespace": "ns", "kubernetes.io/meta/podName": "real-0"} == real[
        "allocationTags"
    ]


def test_preemption_and_reservation(town: Served) -> None:
    (ask,) = town.get(f"{P}/application/app-need")["requests"]
    assert ("need-0", "7", True, True) == (
        ask["allocationKey"],
        ask["priority"],
        ask["triggeredPreemption"],
        ask["schedulingAttempted"],
    )
    app = town.get(f"{P}/application/app-need")
    assert ["need-0"] == app["reservations"]
    assert (True, 7) == (app["hasReserved"], app["maxRequestPriority"])
    (kept,) = [node for node in town.get(f"{P}/nodes") if node["isReserved"]]
    assert ["need-0"] == kept["reservations"]
    assert any(item.get("preempted") for item in kept["allocations"])
    queue = town.get(f"{P}/queue/root.dev.hogs")
    assert queue["preemptingResource"]["vcore"] > 0
    assert not queue["isManaged"]


def test_what_holds_an_ask_back_and_how_often(town: Served) -> None:
    app = town.get(f"{P}/application/app-etl")
    (ask,) = app["requests"]
    (said,) = ask["allocationLog"]
    assert "queue root.dev.batch has no room for it" in said["message"]
    assert 1 <= said["count"]


def test_work_of_others(town: Served) -> None:
    proxy = town.get(f"{P}/node/n1")["foreignAllocations"][0]
    other = town.get(f"{P}/node/n2")["foreignAllocations"][0]
    assert {"foreign": "static"} == proxy["allocationTags"]
    assert ("preemptable" in proxy, other["preemptable"]) == (False, True)


def test_a_node(town: Served) -> None:
    found = town.get(f"{P}/node/n1")
    assert ("host-n1", "/rack") == (found["hostName"], found["rackName"])
    for kind, capacity in found["capacity"].items():
        parts = (found[name].get(kind, 0) for name in ("allocated", "occupied", "available"))
        assert capacity == sum(parts)


def test_applications_that_have_ended(town: Served) -> None:
    (done,) = town.get(f"{P}/applications/completed")
    assert ("app-done", "Completed", "ann", ["ops"], "root.prod") == tuple(
        done[name] for name in ("applicationID", "applicationState", "user", "groups", "queueName")
    )
    assert {"vcore": 1000, "memory": 1 << 30} == done["maxUsedResource"]
    assert done["submissionTime"] < done["finishedTime"]
    (lost,) = town.get(f"{P}/applications/rejected")
    assert "Rejected" == lost["applicationState"]
    assert "nowhere" in lost["rejectedMessage"]
    counts = town.get("/ws/v1/partitions")[0]["applications"]
    assert (1, 1, 6) == (counts["Completed"], counts["Rejected"], counts["total"])


def test_a_queue_and_its_policies(town: Served) -> None:
    prod = town.get(f"{P}/queue/root.prod")
    assert (5, "1ms", "fifo", 12, 10) == (
        prod["priorityOffset"],
        prod["preemptionDelay"],
        prod["sortingPolicy"],
        prod["currentPriority"],
        prod["maxRunningApps"],
    )
    assert 16_000 - prod["allocatedResource"]["vcore"] >= prod["headroom"]["vcore"]
    tree = town.get(f"{P}/queues")
    below = by(tree["children"], "queuename")
    assert ("default", "", ["root.prod", "root.dev"]) == (
        tree["partition"],
        below["root.prod"]["partition"],
        tree["childNames"],
    )
    fenced = by(below["root.dev"]["children"], "queuename")["root.dev.batch"]
    assert fenced["isPreemptionFence"]
    assert {"maxApplications": 3, "maxResource": {"vcore": 4000}} == below["root.dev"]["template"]


def test_what_users_and_groups_have_and_may_have(town: Served) -> None:
    ann, ops = town.get(f"{P}/usage/user/ann"), town.get(f"{P}/usage/group/ops")
    (prod,) = ann["queues"]["children"]
    assert (["app-gang"], {"vcore": 12_000}) == (prod["runningApplications"], prod["maxResources"])
    assert {"app-gang": "ops", "app-need": "ops"} == ann["groups"]
    (prod,) = ops["queues"]["children"]
    assert (5, ["app-gang", "app-need"]) == (prod["maxApplications"], ops["applications"])


def test_placement_rules(town: Served) -> None:
    provided, tag, recovery = town.get(f"{P}/placementrules")
    assert {"type": "allow", "userList": ["ann", "bob"]} == provided["filter"]
    assert {"tagName": "namespace", "create": "true"} == tag["parameters"]
    assert {"queue": "root.dev", "qualified": "true", "create": "false"} == tag["parentRule"][
        "parameters"
    ]
    assert {"name": "recovery", "parameters": {"queue": "root.@recovery@"}} == recovery


def test_health_is_that_of_the_core(town: Served) -> None:
    health = town.get("/ws/v1/scheduler/healthcheck")
    assert health["Healthy"], health
    assert "Scheduling errors" == health["HealthChecks"][0]["Name"]


def test_the_configuration_reads_as_the_same(town: Served) -> None:
    response = town.ask("/ws/v1/config")
    assert "application/x-yaml" in response.headers["Content-Type"]
    document = yaml.safe_load(response.body)
    assert ("hidden" in response.body.decode(), document["extra"]["log.level"]) == (False, "INFO")
    again = yaml.safe_dump({"partitions": document["partitions"]})
    assert parse_config(CONFIG).partitions == parse_config(again).partitions
    as_json = town.ask("/ws/v1/config", Accept="application/json").json
    assert "root" == as_json["Partitions"][0]["Queues"][0]["Name"]
    assert {"Checksum", "Extra", "Partitions"} <= as_json.keys()
    assert as_json == town.ask("/debug/fullstatedump").json["config"]


def test_a_configuration_is_judged(town: Served) -> None:
    path = "/ws/v1/validate-conf"
    good = town.ask(path, method="POST", body=CONFIG.encode())
    assert Verdict(allowed=True) == msgspec.json.decode(good.body, type=Verdict)
    for body in (b"partitions: [{nam: a}]", b"\xff"):
        bad = msgspec.json.decode(town.ask(path, method="POST", body=body).body, type=Verdict)
        assert not bad.allowed
        assert bad.reason


def test_former_addresses(town: Served) -> None:
    for name in ("fullstatedump", "stack"):
        response = town.ask(f"/ws/v1/{name}")
        assert (301, f"/debug/{name}") == (response.status, response.headers["Location"])
    assert b"thread " in town.ask("/debug/stack").body


# -- the nine calls of YuniKorn's pages

PAGES = {
    "/ws/v1/clusters": ("clusterName", "partition", "startTime", "rmBuildInformation"),
    "/ws/v1/partitions": ("name", "nodeSortingPolicy", "totalNodes", "totalContainers", "applications"),
    "/ws/v1/scheduler/node-utilizations": ("utilizations",),
    f"{P}/queue/root.prod/applications": (
        "applicationID", "applicationState", "usedResource", "maxUsedResource",
        "submissionTime", "stateLog",
    ),
    f"{P}/nodes": (
        "nodeID", "hostName", "rackName", "capacity", "allocated", "occupied", "available",
        "utilized", "attributes", "allocations", "foreignAllocations",
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_the_pages_of_yunikorn_find_what_they_read(town: Served, path: str) -> None:
    first = town.get(path)[0]
    assert set(PAGES[path]) <= first.keys()


def test_the_pages_of_yunikorn_never_get_an_error_before_anybody_registers(served: Served) -> None:
    for path in ("clusters", "partitions", "scheduler/node-utilizations", "history/apps"):
        assert [] == served.get(f"/ws/v1/{path}")
    assert [] == served.get("/ws/v1/history/containers")
    assert served.get("/ws/v1/scheduler/healthcheck")["Healthy"]


# -- errors

REFUSED = [
    ("/ws/v1/partition/nowhere/queues", 404, "Partition not found"),
    (f"{P}/queue/root.nowhere", 404, "Queue not found"),
    (f"{P}/queue/root.%3F", 400, "problem in queue query parameter parsing: '?'"),
    (f"{P}/queue/root.prod/applications/rejected", 400, "Only following application states"),
    (f"{P}/applications/sleeping", 400, "Only following application states are allowed"),
    (f"{P}/applications/active?status=done", 400, "Only following active statuses are allowed"),
    (f"{P}/applications/completed?status=x", 400, "Only following active statuses are allowed"),
    (f"{P}/application/app-done", 404, "Application not found"),
    (f"{P}/queue/root.dev.batch/application/app-gang", 404, "Application not found"),
    (f"{P}/node/n9", 404, "Node not found"),
    (f"{P}/usage/user/eve", 404, "User not found"),
    (f"{P}/usage/user/a%20b", 400, "Invalid user name"),
    (f"{P}/usage/group/none", 404, "Group not found"),
    (f"{P}/usage/group/%2F", 400, "Invalid group name"),
    ("/ws/v1/events/batch?count=0", 400, '0 is not a valid value for "count"'),
    ("/ws/v1/events/batch?start=-1", 400, 'strconv.ParseUint: parsing "-1": invalid syntax'),
    (f"/ws/v1/events/batch?start={2**64}", 400, f'strconv.ParseUint: parsing "{2**64}": value out'),
    (f"{STREAM}?count=x", 400, 'strconv.ParseUint: parsing "x": invalid syntax'),
    ("/ws/v1/x/why", 400, "Missing parameters: application, key"),
    ("/ws/v1/x/why?application=a&key=b", 404, "failed to find application a"),
    ("/ws/v1/x/partition/nowhere/waiting", 404, "Partition not found"),
    ("/ws/v1/x/trace", 404, "there is no flight recorder"),
]


@pytest.mark.parametrize(("path", "status", "message"), REFUSED, ids=[it[0] for it in REFUSED])
def test_a_refusal(town: Served, path: str, status: int, message: str) -> None:
    response = town.ask(path)
    refused = msgspec.json.decode(response.body, type=Refused)
    assert (status, status) == (response.status, refused.status_code)
    assert refused.message.startswith(message)


def test_what_is_not_there_and_what_is_asked_in_another_way(town: Served) -> None:
    wrong = town.ask("/ws/v1/clusters", method="DELETE")
    assert (405, "GET,OPTIONS") == (wrong.status, wrong.headers["Allow"])
    assert "DELETE is not taken here" == wrong.json["message"]
    slash = town.ask("/ws/v1/clusters/")
    assert (301, "/ws/v1/clusters") == (slash.status, slash.headers["Location"])


UNKNOWN = [
    ("/ws/v1/nothing", "GET", 404, "there is no /ws/v1/nothing"),
    ("/favicon.ico", "GET", 404, "there is no /favicon.ico"),
    ("/ws/v1/x/\x22%00", "GET", 404, "there is no "),
    ("/ws/v1/clusters", "DELETE", 405, "DELETE is not taken here"),
    ("/ws/v1/x/config", "GET", 405, "GET is not taken here"),
    ("/ws/v1/validate-conf", "PUT", 405, "PUT is not taken here"),
]


@pytest.mark.parametrize(("path", "method", "status", "message"), UNKNOWN)
def test_what_is_no_route_is_refused_as_a_route_refuses(
    town: Served, path: str, method: str, status: int, message: str
) -> None:
    response = town.ask(path, method=method)
    refused = msgspec.json.decode(response.body, type=Refused)
    assert (status, status) == (response.status, refused.status_code)
    assert "application/json; charset=UTF-8" == response.headers["Content-Type"]
    assert refused.message.startswith(message)


def test_a_body_that_is_too_large_is_refused_as_a_route_refuses(town: Served) -> None:
    response = town.ask("/ws/v1/validate-conf", method="POST", body=b"#" * (server.BODY_MAX + 1))
    refused = msgspec.json.decode(response.body, type=Refused)
    assert (413, 413, "the body is too large") == (
        response.status,
        refused.status_code,
        refused.message,
    )


# -- ours


def test_why_an_ask_waits(town: Served) -> None:
    waits = next(it for it in town.get(f"{P}/application/app-etl")["requests"])["allocationKey"]
    why = town.get(f"/ws/v1/x/why?application=app-etl&key={waits}&partition=default")
    assert "root.dev.batch" == why["obstacle"]["where"]
    waiting = town.get("/ws/v1/x/partition/default/waiting")
    assert waiting["total"] == sum(waiting["causes"].values()) == 2


def test_when_an_ask_is_expected_to_start(town: Served) -> None:
    where = "/ws/v1/x/partition/default/expected?application=app-etl"

    def waiting() -> list[str]:
        requests = town.get(f"{P}/application/app-etl")["requests"]
        return [it["allocationKey"] for it in requests]

    # The read side is behind the core, and works it out every few seconds: it may not know yet of
    # the last asks, nor that others were placed.
    waits = ["etl-6"]
    wait_until(lambda: waits == waiting() and town.get(where)["total"] == 1)
    found = town.get(where)
    assert waits == [it["key"] for it in found["asks"]]
    first = found["asks"][0]
    why = town.get(f"/ws/v1/x/why?application=app-etl&key={waits[0]}&partition=default")
    assert ("root.dev.batch", why["position"], why["waiting"]) == (
        first["queue"], first["position"], first["waiting"],
    )  # fmt: skip
    assert why["expected"] == first
    # Nothing that it waits for has said how long it runs.
    assert first["latest_ns"] is None
    # Of one that has ended nothing waits; one that nobody knows is an error, with those like it.
    assert 0 == town.get("/ws/v1/x/partition/default/expected?application=app-done")["total"]
    unknown = town.ask("/ws/v1/x/partition/default/expected?application=app-elt")
    assert (404, "Application not found") == (unknown.status, unknown.json["message"])
    assert unknown.json["description"].startswith("there is app-etl")


def test_mailboxes(town: Served) -> None:
    told = town.get("/ws/v1/x/mailboxes")
    flow = next(it for it in told["flows"] if it["message"] == "ProposeAllocations")
    assert ("scheduler", "context") == (flow["from"], flow["to"])
    assert told["actors"]["context"]["messages"] >= flow["count"] > 0
    assert {"context", "rm_proxy", "event_publisher"} <= told["mailboxes"].keys()
    assert {f"[{RM}]default"} == told["revisions"].keys()


def test_readiness_and_liveness(served: Served) -> None:
    assert b"ok\n" == served.ask("/ws/v1/x/live").body == served.ask("/ws/v1/x/ready").body
    served.core.stop()
    response = served.ask("/ws/v1/x/ready")
    assert (503, "the core is stopped") == (response.status, response.json["message"])
    assert 200 == served.ask("/ws/v1/x/live").status


def test_what_the_flight_recorder_has_kept(tmp_path: Path) -> None:
    settings = TraceSettings(path=tmp_path / "a.trace", flight_recorder_bytes=1 << 20)
    with serving(trace=settings) as it:
        register(it)
        response = it.ask("/ws/v1/x/trace")
        copy = tmp_path / "copy.trace"
        copy.write_bytes(response.body)
        assert "attachment" in response.headers["Content-Disposition"]
        with TraceReader(copy) as trace:
            assert "RMRegistration" in {type_name(delivery.message) for delivery in trace}


# -- events as they come


def test_events_come_as_they_happen(served: Served) -> None:
    connection = http.client.HTTPConnection(served.part.address, timeout=60)
    connection.request("GET", f"{STREAM}?count=5")
    stream = connection.getresponse()
    instance = json.loads(stream.readline())["InstanceUUID"]
    assert instance == served.get("/ws/v1/events/batch")["InstanceUUID"]
    register(served)
    first = json.loads(stream.readline())
    assert (4, "root") == (first["type"], first["objectID"])
    (open_one,) = served.get("/debug/fullstatedump")["eventStreams"]
    assert open_one["Name"].startswith("127.0.0.1#")
    connection.close()


def test_so_many_streams_from_one_host_and_no_more(served: Served) -> None:
    streams = []
    for _ in range(STREAMS_OF_HOST_MAX):
        connection = http.client.HTTPConnection(served.part.address, timeout=60)
        connection.request("GET", STREAM)
        stream = connection.getresponse()
        assert 200 == stream.status
        stream.readline()
        streams.append((connection, stream))
    refused = served.ask(STREAM)
    assert (503, "Too many streaming connections") == (refused.status, refused.json["message"])
    connection, stream = streams.pop()
    stream.close()
    connection.close()
    register(served)
    wait_until(lambda: len(served.get("/debug/fullstatedump")["eventStreams"]) < len(streams) + 1)
    for connection, stream in streams:
        stream.close()
        connection.close()


def test_the_place_of_a_reader_that_has_gone_is_free_though_nothing_happens(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "GONE_S", 0.05)
    for _ in range(STREAMS_OF_HOST_MAX):
        connection = http.client.HTTPConnection(served.part.address, timeout=60)
        connection.request("GET", STREAM)
        with closing(connection), connection.getresponse() as stream:
            stream.readline()
    wait_until(lambda: not served.get("/debug/fullstatedump")["eventStreams"])


def test_a_stream_that_nobody_reads_is_cut_off(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of an answer waits for its reader as well, so it would never come."""
    monkeypatch.setattr(server, "WRITE_S", 0.2)
    assert isinstance(served.part, RestPart)
    inside = served.part._server
    assert inside is not None
    host, _, port = served.part.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as silent:
        silent.sendall(f"GET {STREAM} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert silent.recv(12) == b"HTTP/1.1 200"
        (hear,) = inside._side._record_readers.values()
        for _ in range(100):
            long = si.EventRecord(message="x" * 200_000)
            served.part._loop.call_soon_threadsafe(hear, (long,))
        wait_until(lambda: not inside._connections())


# -- who may ask


def test_pages_of_others_read_yunikorns_routes_alone(town: Served) -> None:
    assert "*" == town.ask("/ws/v1/clusters").headers["Access-Control-Allow-Origin"]
    assert "GET, OPTIONS" == town.ask("/ws/v1/clusters", method="OPTIONS").headers["Allow"]
    for path in ("/ws/v1/x/mailboxes", "/ws/v1/x/live"):
        assert "Access-Control-Allow-Origin" not in town.ask(path).headers


def test_that_can_be_switched_off_and_names_can_be_given() -> None:
    with serving(Guard(frozenset({"Scheduler.Local"}), cors=False)) as it:
        response = it.ask("/ws/v1/clusters", Host="scheduler.local:9080")
        assert (200, None) == (
            response.status,
            response.headers["Access-Control-Allow-Origin"],
        )


def test_with_a_token_all_but_its_wellness_is_kept() -> None:
    word = "s3cret"
    with serving(Guard(token=word)) as it:
        for shown in ("", "Bearer wrong", "Bearer s3cre\u00e9"):
            refused = it.ask("/ws/v1/partitions", Authorization=shown)
            assert (401, False) == (refused.status, b"s3cret" in refused.body)
        assert 200 == it.ask("/ws/v1/partitions", Authorization="Bearer s3cret").status
        assert 200 == it.ask("/ws/v1/x/live").status == it.ask("/ws/v1/x/ready").status


# -- logging in

WORD = "s3cret-and-long-enough"
LOGIN = "/ws/v1/x/login"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def logged_in(it: Served, **headers: str) -> str:
    """Show the token, and return the cookie as a browser sends it."""
    response = it.ask(LOGIN, method="POST", body=WORD.encode(), **headers)
    assert 204 == response.status
    return response.headers["Set-Cookie"].partition(";")[0]


def test_a_browser_shows_the_token_once() -> None:
    with serving(Guard(token=WORD)) as it:
        response = it.ask(LOGIN, method="POST", body=f"{WORD}\n".encode())
        given = response.headers["Set-Cookie"]
        port = it.part.address.rpartition(":")[2]
        assert given.startswith(f"yunikorn-actors-{port}=")
        assert given.endswith("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict")
        assert WORD not in given
        cookie = given.partition(";")[0]
        assert [] == it.ask("/ws/v1/partitions", Cookie=cookie).json
        gone = it.ask("/ws/v1/x/logout", method="POST", Cookie=cookie).headers["Set-Cookie"]
        assert gone.startswith(f"yunikorn-actors-{port}=; Path=/; Max-Age=0;")


@pytest.mark.parametrize(
    "change",
    [
        lambda cookie: cookie[:-1] + ("0" if cookie[-1] != "0" else "1"),
        lambda cookie: cookie.replace("=", "=9"),
        lambda cookie: cookie.partition(".")[0],
        lambda cookie: cookie.partition("=")[0] + "=é",
        lambda _: "",
    ],
)
def test_a_cookie_that_was_changed_lets_nobody_in(change: Any) -> None:
    with serving(Guard(token=WORD)) as it:
        changed = change(logged_in(it))
        assert 401 == it.ask("/ws/v1/partitions", Cookie=changed).status


def test_a_cookie_ends_with_its_time_and_with_its_process() -> None:
    clock = Clock()
    with serving(Guard(token=WORD, now_s=clock)) as it:
        cookie = logged_in(it)
        clock.now_s += 12 * 3600 - 2
        assert 200 == it.ask("/ws/v1/partitions", Cookie=cookie).status
        clock.now_s += 2
        assert 401 == it.ask("/ws/v1/partitions", Cookie=cookie).status
    value = cookie.partition("=")[2]
    with serving(Guard(token=WORD, now_s=Clock())) as it:
        port = it.part.address.rpartition(":")[2]
        shown = f"yunikorn-actors-{port}={value}"
        assert 401 == it.ask("/ws/v1/partitions", Cookie=shown).status


def test_a_cookie_counts_for_what_our_own_page_asks() -> None:
    """A page on another port of this host sends it too."""
    with serving(Guard(token=WORD)) as it:
        cookie = logged_in(it)
        for status, headers in (
            (200, {"Sec_Fetch_Site": "same-origin"}),
            (403, {"Sec_Fetch_Site": "same-site"}),
            (403, {"Origin": "http://127.0.0.1:1"}),
        ):
            assert status == it.ask("/ws/v1/partitions", Cookie=cookie, **headers).status
            assert status == it.ask("/ws/v1/x/mailboxes", Cookie=cookie, **headers).status


def test_who_guesses_has_to_wait() -> None:
    clock = Clock()
    with serving(Guard(token=WORD, now_s=clock)) as it:
        for _ in range(10):
            refused = it.ask(LOGIN, method="POST", body=b"a guess")
            assert (401, None) == (refused.status, refused.headers["Set-Cookie"])
            clock.now_s += 1
        refused = it.ask(LOGIN, method="POST", body=WORD.encode())
        assert (429, "wait for 50 s, and copy the token from its file") == (
            refused.status,
            refused.json["description"],
        )
        # Those who have the token are not locked out with it.
        assert 200 == it.ask("/ws/v1/partitions", Authorization=f"Bearer {WORD}").status
        clock.now_s += 50
        logged_in(it)


def test_wrong_tokens_are_remembered_of_so_many_hosts_and_no_more() -> None:
    attempts = sessions.Attempts(Clock())
    for number in range(sessions.HOSTS_MAX + 1):
        for _ in range(sessions.WRONG_MAX):
            attempts.note_wrong(f"host-{number}")
    waiting = sum(attempts.wait_s(f"host-{it}") > 0 for it in range(sessions.HOSTS_MAX + 1))
    assert sessions.HOSTS_MAX == waiting


@pytest.mark.parametrize("path", ["/ws/v1/x/mailboxes", "/ws/v1/x/why?application=a&key=b"])
def test_ours_are_asked_from_our_own_origin(town: Served, path: str) -> None:
    assert 403 == town.ask(path, Origin="http://evil.example").status
    assert 403 == town.ask(path, Sec_Fetch_Site="cross-site").status
    own = {"Origin": f"http://{town.part.address}", "Sec_Fetch_Site": "same-origin"}
    assert 403 != town.ask(path, **own).status


FOREIGN = [
    ("evil.example", 403),
    ("evil.example:9080", 403),
    ("127.0.0.1.evil.example", 403),
    ("[localhost].evil.example", 400),
    ("[::1].evil.example", 400),
    ("localhost@evil.example", 400),
    ("localhost:80:80", 400),
]


@pytest.mark.parametrize(("host", "status"), FOREIGN)
def test_a_foreign_host_is_refused(town: Served, host: str, status: int) -> None:
    response = town.ask("/ws/v1/clusters", Host=host)
    assert status == response.status
    assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize(
    ("line", "host"), [("http://evil.example", "localhost"), ("http://localhost", "evil.example")]
)
def test_a_foreign_host_is_refused_in_the_first_line_too(
    town: Served, line: str, host: str
) -> None:
    assert 403 == town.ask(f"{line}/ws/v1/clusters", Host=host).status


def test_a_request_that_names_no_host_is_refused_without_asking_the_resolver(
    town: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(socket, "getfqdn", lambda: asked.append("") or "localhost")
    answer = exchange(town, b"GET /ws/v1/clusters HTTP/1.0\r\n\r\n")
    assert b"the request names no host" in answer
    assert [] == asked


@pytest.mark.parametrize(
    "path", ["//evil.example/", "//evil.example/..//", "/%5Cevil.example/", "/a%0d%0ab/", "//"]
)
def test_no_answer_sends_a_reader_elsewhere(town: Served, path: str) -> None:
    response = town.ask(path)
    assert (404, None) == (response.status, response.headers["Location"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Origin": "http://localhost:1", "Host": "localhost:1"}, 200),
    ],
)
def test_what_is_sent_from_another_origin_is_refused(
    town: Served, headers: dict[str, str], status: int
) -> None:
    assert status == town.ask("/ws/v1/validate-conf", method="POST", body=b"", **headers).status


# -- bounds

HOSTILE = {
    "a long path": b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 10_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: 1\r\n" * 1_000 + b"\r\n",
    "two lengths": b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a length and chunks": b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bytes": bytes(range(256)) * 4,
    "no host": b"GET /ws/v1/clusters HTTP/1.1\r\n\r\n",
    "a large body": b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: 5000000\r\n\r\n" + b"#" * 5_000_000,
}


def exchange(served: Served, data: bytes) -> bytes:
    """Send bytes as they are; return what comes first."""
    host, _, port = served.part.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        try:
            connection.sendall(data)
            return connection.recv(1 << 16)
        except ConnectionError:
            return b""


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_what_is_hostile_is_refused_and_others_are_served(
    town: Served, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    answer = exchange(town, data)
    if answer:
        head, _, body = answer.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        assert status in {400, 413, 414, 431}
        assert b"Content-Type: application/json; charset=UTF-8" in head
        assert status == msgspec.json.decode(body, type=Refused).status_code
    assert 200 == town.ask("/ws/v1/x/live").status
    # Or strangers could fill the disk with tracebacks.
    assert [] == caplog.records


def test_a_packed_body_is_not_taken(town: Served) -> None:
    path, bomb = "/ws/v1/validate-conf", gzip.compress(b"#" * 1000)
    for body in (bomb, b"nothing that is packed"):
        refused = town.ask(path, method="POST", body=body, Content_Encoding="gzip")
        assert (415, 415) == (refused.status, refused.json["status_code"])


def test_what_fails_in_here_is_told_as_an_error_like_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(yunikorn, "_clusters", lambda *_: 1 / 0)
    with serving() as it:
        refused = it.ask("/ws/v1/clusters")
        said = msgspec.json.decode(refused.body, type=Refused)
        assert (500, "the service has failed to answer this") == (refused.status, said.message)


def test_a_configuration_that_takes_long_to_judge_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goes_on, is_read = threading.Event(), threading.Event()

    def slowly(*_: object) -> None:
        is_read.set()
        assert goes_on.wait(60)

    monkeypatch.setattr(yunikorn, "parse_config", slowly)
    monkeypatch.setattr(server, "APART_MAX", 1)
    path = "/ws/v1/validate-conf"
    with serving() as it, ThreadPoolExecutor(1) as pool:
        judged = pool.submit(it.ask, path, method="POST", body=b"a")
        assert is_read.wait(60)
        assert 200 == it.ask("/ws/v1/x/live").status
        refused = it.ask(path, method="POST", body=b"b")
        assert (503, "too many ask for this at one time") == (
            refused.status,
            refused.json["message"],
        )
        goes_on.set()
        assert {"allowed": True} == judged.result(60).json


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_S", 0.2)
    head = b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
    with serving() as it:
        assert b"408" == exchange(it, head + b"par").split()[1]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a server starts: a wait that has begun keeps its length."""
    monkeypatch.setattr(server, "IDLE_S", 0.2)
    monkeypatch.setattr(streaming, "WRITE_S", 0.2)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Served, socket.socket]]:
    """A reader who asks for more than the network holds, and does not read."""
    monkeypatch.setattr(server, "UNREAD_MAX", 40 << 20)
    monkeypatch.setattr(yunikorn, "_clusters", lambda *_: Answer(b"x" * (32 << 20)))
    with serving() as it:
        host, _, port = it.part.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(b"GET /ws/v1/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert isinstance(it.part, RestPart)
            assert it.part._server is not None
            wait_until(lambda: any(map(server._unread, it.part._server._connections())))
            yield it, connection


def test_what_slow_readers_leave_unread_is_bounded(unread: tuple[Served, socket.socket]) -> None:
    it, _ = unread
    refused = it.ask("/ws/v1/clusters")
    assert (503, "too much waits for slow readers") == (refused.status, refused.json["message"])
    assert 200 == it.ask("/ws/v1/partitions").status


@pytest.mark.usefixtures("impatient")
def test_a_reader_who_does_not_read_is_let_go(unread: tuple[Served, socket.socket]) -> None:
    it, connection = unread
    wait_until(lambda: not it.part._server._connections())
    received = 0
    while data := connection.recv(1 << 20):
        received += len(data)
    assert received < 32 << 20


def test_at_the_end_nobody_is_waited_for_who_does_not_read(
    unread: tuple[Served, socket.socket],
) -> None:
    it, connection = unread
    assert isinstance(it.part, RestPart)
    assert it.part._server is not None
    (left,) = (each.transport for each in it.part._server._connections())
    it.part._on_loop(it.part._server.stop(0.1)).result(60)
    assert left._sock is None, "it is closed"
    with suppress(ConnectionResetError):
        while connection.recv(1 << 20):
            pass


@pytest.mark.usefixtures("impatient")
def test_whoever_asks_for_nothing_is_let_go() -> None:
    with serving() as it:
        host, _, port = it.part.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(b"GET /ws/v1/clusters HTTP/1.1\r\nHost: loc")
            assert b"" == connection.recv(1)


def test_ids_with_markup_come_back_as_text(served: Served) -> None:
    register(served)
    name = "<script>alert(1)</script>"
    served.nodes(node(name), node("n/../1"))
    names = {it["nodeID"] for it in served.get(f"{P}/nodes")}
    assert {name, "n/../1"} == names
    response = served.ask(f"{P}/node/n%2F..%2F1")
    assert ("n/../1", "nosniff") == (
        response.json["nodeID"],
        response.headers["X-Content-Type-Options"],
    )


def test_a_large_answer_is_packed_for_those_who_take_it(town: Served) -> None:
    packed = town.ask(f"{P}/nodes", Accept_Encoding="gzip")
    assert "gzip" == packed.headers["Content-Encoding"]
    assert town.get(f"{P}/nodes") == json.loads(gzip.decompress(packed.body))


@pytest.mark.parametrize(
    ("accepted", "packs"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("br, gzip;q=0.5", True),
        ("gzip ; q=0.001", True),
        ("gzip;q=0", False),
        ("br;q=1, gzip; q=0.000", False),
        ("x-gzip", False),
        ("", False),
    ],
)
def test_an_answer_is_packed_as_its_reader_asks(town: Served, accepted: str, packs: bool) -> None:
    answer = town.ask(f"{P}/nodes", Accept_Encoding=accepted)
    assert packs is (answer.headers.get("Content-Encoding") == "gzip")


def test_after_another_registration_it_is_another_life(served: Served) -> None:
    register(served)
    served.nodes(node("n1"))
    register(served)
    assert [] == served.get(f"{P}/nodes")
    served.core.unregister_resource_manager(RM)
    served.settle()
    assert [] == served.get("/ws/v1/partitions")


def test_a_lost_resource_manager_shows(served: Served) -> None:
    register(served)
    before = served.get("/ws/v1/partitions")[0]
    served.core.resource_manager_lost(RM)
    served.settle()
    after = served.get("/ws/v1/partitions")[0]
    assert ("Active", "Paused") == (before["state"], after["state"])
    assert before["lastStateTransitionTime"] < after["lastStateTransitionTime"]


def test_where_events_are_not_tracked_they_cannot_be_read(served: Served) -> None:
    served.core.register_resource_manager(
        si.RegisterResourceManagerRequest(
            rm_id=RM, extra_config={"event.trackingEnabled": "false"}
        ),
        si.ResourceManagerCallback(),
    )
    served.settle()
    for path in ("/ws/v1/events/batch", STREAM):
        refused = served.ask(path)
        assert (500, "Event tracking is disabled") == (refused.status, refused.json["message"])


def test_a_thread_that_made_an_answer_ends_with_its_server() -> None:
    """Not with what holds the server, which a program may keep."""
    before = {*threading.enumerate()}
    with serving() as served:
        served.ask("/ws/v1/validate-conf", method="POST", body=b"partitions: 3")
        apart = [it for it in threading.enumerate() if it.name.startswith("yunikorn-actors-apart")]
        (thread,) = {*apart} - before
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
