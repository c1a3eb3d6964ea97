"""What the live page is made of and what it is sent: parts, bounds, lists, incidents."""

import asyncio
import base64
import http.client
import json
import math
import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from typing import Any

import pytest
from probes import wait_until
from served import ANN, BOB, P, Served, node, register, serving

from yunikorn_actors import si
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.service.read import overview
from yunikorn_actors.service.read.incremental_answers import Steps, at_once
from yunikorn_actors.service.read.overview import CLOSED, FULL, OPEN, sign_of
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.read.replica import LISTED_MAX, Incidents
from yunikorn_actors.service.rest import http_server as server
from yunikorn_actors.service.rest import live_page as live_pages
from yunikorn_actors.service.rest import loop_slices as slicing
from yunikorn_actors.service.rest.live_page import EVERY_S, SHARE, Live
from yunikorn_actors.service.rest.loop_slices import Slices
from yunikorn_actors.service.rest.request_guard import Guard
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.nodes import Node
from yunikorn_actors.state.termination import TerminationType

OVERVIEW = "/ws/v1/x/overview"
X = P.replace("/v1/", "/v1/x/")


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as it:
        register(it)
        yield it


@contextmanager
def following(served: Served, partition: str = "") -> Iterator[Iterator[dict[str, Any]]]:
    """Follow as a browser does; give what comes."""
    connection = http.client.HTTPConnection(served.part.address, timeout=60)
    connection.request("GET", f"{OVERVIEW}?partition={partition}")
    stream = connection.getresponse()
    assert (200, "text/event-stream; charset=utf-8") == (
        stream.status,
        stream.headers["Content-Type"],
    )
    try:
        yield (json.loads(line[6:]) for line in stream if line.startswith(b"data: "))
    finally:
        stream.close()
        connection.close()


def first(served: Served, partition: str = "") -> dict[str, Any]:
    with following(served, partition) as events:
        return next(events)


# -- the page


def test_the_page_runs_its_own_scripts_and_asks_its_own_service(town: Served) -> None:
    response = town.ask("/")
    text = response.body.decode()
    assert "text/html; charset=utf-8" == response.headers["Content-Type"]
    policy = response.headers["Content-Security-Policy"].split("; ")
    rules = dict(it.partition(" ")[::2] for it in policy)
    for kind, tag in (("script-src", "script"), ("style-src", "style")):
        found = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digests = (base64.b64encode(sha256(it.encode()).digest()).decode() for it in found)
        assert rules[kind] == " ".join(f"'sha256-{digest}'" for digest in digests)
    expected = {
        "default-src": "'none'",
        "connect-src": "'self'",
        "frame-ancestors": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert expected.items() <= rules.items()
    assert "no-referrer" == response.headers["Referrer-Policy"]
    markup = re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"\s(src|style|on\w+)\s*=", markup)
    assert ["data:"] == [it[:5] for it in re.findall(r'href="([^"]*)"', markup)]


def test_the_page_has_nothing_to_hide_and_what_it_asks_for_has() -> None:
    with serving(Guard(token="a-token-of-nothing-01")) as it:  # noqa: S106
        assert 200 == it.ask("/").status
        assert 401 == it.ask(OVERVIEW).status == it.ask(f"{X}/asks").status
        assert {"needs_token": True, "is_in": False} == it.get("/ws/v1/x/session")


def test_without_a_token_everybody_is_in(town: Served) -> None:
    assert {"needs_token": False, "is_in": True} == town.get("/ws/v1/x/session")


# -- what is sent


def test_a_partition_at_one_glance(town: Served) -> None:
    parts = first(town)
    assert "[rm-1]default" == parts["partition"]
    assert [{"name": "[rm-1]default", "short": "default", "rm": "rm-1", "state": "Active"}] == (
        parts["partitions"]
    )
    expected = {"nodes": 2, "finished": 2, "allocations": 13, "closed_nodes": 0}
    assert expected.items() <= parts["cluster"].items()
    assert ["vcore", "memory", "pods"] == parts["cluster"]["kinds"]
    queues = {it["path"]: it for it in parts["queues"]["listed"]}
    assert ["root", "root.prod", "root.dev", "root.dev.batch", "root.dev.hogs"] == list(queues)
    prod = queues["root.prod"]
    assert ({"vcore": 6000}, {"vcore": 16_000}, 1, 10, True) == (
        prod["guaranteed"],
        prod["max"],
        prod["waiting"],
        prod["max_running"],
        prod["leaf"],
    )
    assert "managed" not in queues["root.dev.hogs"]
    assert {"QUEUE_LIMIT": 1, "NODE_KEPT": 1} == parts["waiting"]
    assert "" == parts["failure"]
    actors = {it["role"]: it for it in parts["core"]["actors"]}
    assert actors["context"]["messages"] > 0
    assert {"scheduler", "context", "rm_proxy", "event_publisher"} <= actors.keys()
    assert parts["core"]["flows"][0]["count"] >= parts["core"]["flows"][-1]["count"] > 0
    assert [("preempted", "app-hog", 2), ("refused", "app-lost", 1)] == [
        (it["kind"], it["whom"], it["count"]) for it in parts["troubles"]
    ]


def test_a_page_is_sent_what_has_changed(served: Served) -> None:
    with following(served) as events:
        assert {"queues", "nodes", "core"} <= next(events).keys()
        assert {"now_ns"} == next(it for it in events if "core" not in it).keys()
        served.nodes(node("n1"))
        changed = next(it for it in events if "nodes" in it)
        assert ("0", "1.1") == (changed["nodes"]["signs"], changed["nodes"]["version"])
        assert "partitions" not in changed


def test_before_anybody_registers_there_is_no_partition() -> None:
    with serving() as it:
        parts = first(it)
        assert ([], None) == (parts["partitions"], parts["partition"])
        assert "cluster" not in parts


def test_a_partition_that_is_not_there(town: Served) -> None:
    parts = first(town, "nowhere")
    assert (None, 1) == (parts["partition"], len(parts["partitions"]))


def test_a_core_that_has_stopped_is_told(served: Served) -> None:
    with following(served) as events:
        next(events)
        served.core.stop()
        assert "the core is stopped" == next(it for it in events if "failure" in it)["failure"]


# -- bounds


def test_so_many_pages_and_no_more(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_pages, "PAGES_MAX", 2)
    with following(served) as one, following(served) as other:
        next(one), next(other)
        refused = served.ask(OVERVIEW)
        assert (503, "2 live pages are open, and more are not served") == (
            refused.status,
            refused.json["message"],
        )
    wait_until(lambda: _open_pages(served) == 0)
    assert first(served)["partition"]


def _open_pages(served: Served) -> int:
    pages: int = served.part._server._live._pages.total()  # type: ignore[attr-defined]
    return pages


def test_a_browser_that_takes_nothing_is_cut_off(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = count()
    monkeypatch.setattr(live_pages, "EVERY_S", 0.0)
    monkeypatch.setattr(live_pages, "SHARE", 0)

    def picture(*_: object) -> Steps[dict[str, Any]]:
        yield
        return {"nodes": [next(pictures), "x" * 500_000]}

    monkeypatch.setattr(live_pages, "overview", picture)
    monkeypatch.setattr(server, "PAGE_WRITE_S", 0.2)
    host, _, port = served.part.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as silent:
        silent.sendall(f"GET {OVERVIEW} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert silent.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: not served.part._server._connections())  # type: ignore[attr-defined]
        made = next(pictures)
    # What was never taken was never made: as much as fits between the two, and no more.
    assert made < 100
    assert 0 == _open_pages(served)


class Silent:
    """A core that has nothing to tell."""

    def ask(self, question: str, *_: str) -> Any:
        empty = {"metered": None, "lengths": {}, "callback_errors": {}, "unhandled": {}}
        return "" if question == "is_ready" else empty


class Seen:
    """Pages of a read side without any core, with a clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, took_s: float = 0.0) -> None:
        self.made = 0
        self.busy_s = 0.0
        side = ReadSide(settings=Settings(), instance="i", start_ns=0)

        def picture(_: ReadSide, __: str) -> Steps[dict[str, Any]]:
            self.made += 1
            self.busy_s += took_s
            yield
            return {"cluster": self.made}

        monkeypatch.setattr(live_pages, "overview", picture)
        monkeypatch.setattr(live_pages.time, "thread_time", lambda: self.busy_s)
        # A picture that a busy computer cuts short is begun again, and counts twice.
        monkeypatch.setattr(slicing, "SLICE_S", math.inf)
        self.closing = asyncio.Event()
        slices = Slices(side.handle)
        self.live = Live(side, Silent(), lambda: 7, lambda: "", self.closing, slices)


def told(event: bytes) -> Any:
    return json.loads(event.removeprefix(b"data: "))


def test_pages_of_one_partition_share_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    async def follow() -> None:
        seen = Seen(monkeypatch)
        pages = [seen.live.follow("") for _ in range(5)]
        with seen.live.opened(""):
            firsts = await asyncio.gather(*(anext(it) for it in pages))
        assert {1} == {told(it)["cluster"] for it in firsts}
        assert 1 == seen.made

    asyncio.run(follow())


def test_a_slow_page_gets_the_newest_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has not taken is not kept for it: nothing is made before it asks again."""

    async def follow() -> None:
        monkeypatch.setattr(live_pages, "EVERY_S", 0.0)
        seen = Seen(monkeypatch)
        slow, quick = seen.live.follow(""), seen.live.follow("")
        await anext(slow)
        for _ in range(50):
            await anext(quick)
        made = seen.made
        assert made > 40
        assert told(await anext(slow))["cluster"] >= made

    asyncio.run(follow())


def test_a_picture_that_takes_long_is_made_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    async def pause(took_s: float) -> float:
        return (await Seen(monkeypatch, took_s).live._picture("")).pause_s

    assert EVERY_S == asyncio.run(pause(0.001))
    assert SHARE * 0.5 == pytest.approx(asyncio.run(pause(0.5)))


def test_a_read_side_that_has_failed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def follow() -> None:
        seen = Seen(monkeypatch)
        seen.live._failure = lambda: "the read side has failed"
        parts = told(await anext(seen.live.follow("")))
        assert ("the read side has failed", False) == (parts["failure"], "cluster" in parts)

    asyncio.run(follow())


def test_many_queues_and_nodes_are_cut_and_counted(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "QUEUES_MAX", 2)
    monkeypatch.setattr(overview, "NODES_MAX", 3)
    served.nodes(*(node(f"n{number}") for number in range(5)))
    parts = first(served)
    assert (2, 2) == (len(parts["queues"]["listed"]), parts["queues"]["left_out"])
    assert ("000", 2) == (parts["nodes"]["signs"], parts["nodes"]["left_out"])
    assert ["n0", "n1", "n2"] == served.get(f"{X}/nodes")["names"]


def test_a_picture_that_fails_ends_its_stream_and_nothing_else(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> dict[str, Any]:
        raise ValueError

    monkeypatch.setattr(live_pages, "overview", fail)
    with following(served) as events:
        assert [] == list(events)
    assert 200 == served.ask("/ws/v1/partitions").status


# -- nodes


@pytest.mark.parametrize(
    ("allocated", "tenths"),
    [({}, 0), ({"vcore": 1}, 1), ({"vcore": 550}, 5), ({"vcore": 999}, 9), ({"vcore": 1000}, 10)],
)
def test_only_what_is_full_is_shown_as_full(allocated: dict[str, int], tenths: int) -> None:
    it = Node.reported(
        "n", capacity={"vcore": 1000, "memory": 1000}, occupied={}, attributes={},
        drained=False, ready=True,
    )  # fmt: skip
    for kind, amount in allocated.items():
        it.available[kind] -= amount
    assert (OPEN, tenths) == divmod(ord(sign_of(it)) - ord("0"), FULL + 1)
    it.drained = True
    assert (CLOSED, tenths) == divmod(ord(sign_of(it)) - ord("0"), FULL + 1)


def test_names_belong_to_a_list_of_nodes(served: Served) -> None:
    served.nodes(node("n1"), node("n2"))
    before = served.get(f"{X}/nodes")
    assert ["n1", "n2"] == before["names"]
    assert before["version"] == first(served)["nodes"]["version"]
    gone = si.NodeInfo(node_id="n1", action=si.ActionFromRM.DECOMISSION)
    served.nodes(gone, node("n3"))
    after = served.get(f"{X}/nodes")
    assert (["n2", "n3"], True) == (after["names"], after["version"] != before["version"])


# -- lists


def test_asks_by_what_they_wait_for_and_by_a_text(town: Served) -> None:
    everything = town.get(f"{X}/asks")
    assert (2, {"etl-6", "need-0"}) == (
        everything["total"],
        {it["key"] for it in everything["asks"]},
    )
    (short,) = town.get(f"{X}/asks?reason=QUEUE_LIMIT")["asks"]
    assert ("app-etl", "root.dev.batch", 1) == (
        short["application"],
        short["queue"],
        short["repeats"],
    )
    assert "queue root.dev.batch has no room for it" in short["said"]
    assert ["need-0"] == [it["key"] for it in town.get(f"{X}/asks?text=ROOT.PROD")["asks"]]
    assert {"total": 0, "asks": []} == town.get(f"{X}/asks?reason=QUEUE_LIMIT&text=need")
    assert 404 == town.ask("/ws/v1/x/partition/nowhere/asks").status


def test_applications_by_a_text(town: Served) -> None:
    listed = town.get(f"{X}/applications")["applications"]
    assert [False] * 4 + [True] * 2 == [it["ended"] for it in listed]
    found = town.get(f"{X}/applications?text=Completed")
    assert (1, "app-done") == (found["total"], found["applications"][0]["id"])
    (gang,) = town.get(f"{X}/applications?text=gang")["applications"]
    assert (True, 3, {"vcore": 1000, "memory": 1 << 30}) == (
        gang["gang"],
        gang["allocations"],
        gang["allocated"],
    )
    (lost,) = town.get(f"{X}/applications?text=rejected")["applications"]
    assert "nowhere" in lost["message"]


def test_what_waits_for_its_gang_says_so(served: Served) -> None:
    served.nodes(node("n1", vcore=2000))
    group = si.Resource.of({"vcore": 3000})
    served.application("app-gang", "root.prod", ANN, placeholder_ask=group)
    served.asks("app-gang", "ph-0", "ph-1", "ph-2", placeholder=True, task_group_name="tg")
    served.asks("app-gang", "real", task_group_name="tg")
    assert "GANG_WAITS" in first(served)["waiting"]
    assert "real" in {it["key"] for it in served.get(f"{X}/asks?reason=GANG_WAITS")["asks"]}
    metric = 'yunikorn_actors_waiting_asks{partition="[rm-1]default",reason="GANG_WAITS"}'
    assert metric in served.ask("/ws/v1/metrics").body.decode()


# -- incidents


def test_what_is_refused_again_is_counted() -> None:
    incidents = Incidents()
    for at_ns in range(3):
        incidents.note(
            f.AskRefused(application_id="a", key="k", refusals={"taint": 2}, at_ns=at_ns)
        )
        incidents.note(f.NodeRemoved(node_id="n", at_ns=at_ns))
    lost, refused = incidents.newest()
    assert ("lost", "n", 3, 2) == (lost.kind, lost.whom, lost.count, lost.last_ns)
    assert ("refused", "a", "k", 3) == (
        refused.kind, refused.whom, refused.such_as, refused.count,
    )  # fmt: skip
    assert refused.what.endswith("every node with room: taint")


def test_so_many_troubles_are_listed_and_the_oldest_goes() -> None:
    incidents = Incidents()
    for number in range(LISTED_MAX + 5):
        incidents.note(f.NodeRemoved(node_id=f"n{number}", at_ns=number))
    listed = incidents.newest()
    assert (LISTED_MAX, f"n{LISTED_MAX + 4}", "n5") == (
        len(listed),
        listed[0].whom,
        listed[-1].whom,
    )


def _asked_back(app: str, key: str, type_: TerminationType, at_ns: int) -> f.ReleaseRequested:
    return f.ReleaseRequested(
        application_id=app, key=key, uuid=f"{app}-{key}", type=type_, message="", at_ns=at_ns
    )


def test_a_storm_of_one_application_is_one_line() -> None:
    incidents = Incidents()
    refusal = f.NodeActionRefused(node_id="n", action="DRAIN_NODE", reason="unknown", at_ns=0)
    incidents.note(refusal)
    for number in range(160):
        timeout, preempted = TerminationType.TIMEOUT, TerminationType.PREEMPTED_BY_SCHEDULER
        incidents.note(_asked_back("gang", f"ph-{number}", timeout, number))
        incidents.note(_asked_back("hog", f"h-{number}", preempted, number))
        incidents.note(_asked_back("quiet", "k", TerminationType.STOPPED_BY_RM, number))
    assert [
        ("preempted", "hog", 160, "h-159"), ("timeout", "gang", 160, "ph-159"), ("refused", "n", 1, ""),
    ] == [(it.kind, it.whom, it.count, it.such_as) for it in incidents.newest()]  # fmt: skip


def test_a_storm_of_one_kind_leaves_the_lines_of_others() -> None:
    incidents = Incidents()
    for number in range(3):
        incidents.note(f.NodeRemoved(node_id=f"n{number}", at_ns=number))
    for number in range(10 * LISTED_MAX):
        incidents.note(_asked_back(f"app-{number}", "k", TerminationType.TIMEOUT, number))
    kinds = Counter(it.kind for it in incidents.newest())
    assert {"lost": 3, "timeout": LISTED_MAX - 3} == kinds
    assert f"app-{10 * LISTED_MAX - 1}" == incidents.newest()[0].whom


def test_timeouts_and_losses_are_told(served: Served) -> None:
    served.nodes(node("n1"))
    served.nodes(si.NodeInfo(node_id="n1", action=si.ActionFromRM.DECOMISSION))
    served.nodes(si.NodeInfo(node_id="n9", action=si.ActionFromRM.DRAIN_NODE))
    served.core.resource_manager_lost("rm-1")
    served.settle()
    told_of = {(it["kind"], it["whom"]) for it in first(served)["troubles"]}
    assert {("lost", "n1"), ("refused", "n9"), ("lost", "partition")} <= told_of


def test_a_read_side_without_partitions_has_an_overview() -> None:
    side = ReadSide(settings=Settings(), instance="i", start_ns=0)
    assert {"partitions": [], "partition": None} == at_once(overview.overview(side, ""))


def test_what_waits_in_a_queue_counts_in_each_queue_above_it(served: Served) -> None:
    served.nodes(node("n1", vcore=1000))
    served.application("app-1", "root.dev.batch", BOB, tags={"namespace": "ns"})
    served.asks("app-1", "a", "b", "c")
    queues = {it["path"]: it.get("waiting", 0) for it in first(served)["queues"]["listed"]}
    assert (2, 2, 2, 0) == tuple(
        queues[it] for it in ("root", "root.dev", "root.dev.batch", "root.prod")
    )
