"""Why an ask waits is one word and one sentence, wherever it is read."""

import http.client
import json
import re
import runpy
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final
from urllib.parse import urlencode

import pytest
import ranges
from pages import REPOSITORY
from probes import wait_until
from served import Response, Served, serving

from yunikorn_actors import UnknownAsk, si
from yunikorn_actors.planning.reasons import IN_WORDS, Cause, Why
from yunikorn_actors.service import core_queries as questions
from yunikorn_actors.service.rest import live_page as live
from yunikorn_actors.values.durations import SECOND

SCRIPT = runpy.run_path(str(REPOSITORY / "docs/situations.py"))
SITUATIONS = {it.what: it.arrange for it in SCRIPT["SITUATIONS"]}
PARTITION: Final = "[rm-1]default"
X = "/ws/v1/x/partition/default"
OF_EVENTS: Final = {
    "does not fit in queue": {Cause.QUEUE_LIMIT, Cause.CLUSTER_FULL},
    "exceeds the available user quota": {Cause.USER_LIMIT},
    "is in another zone": {Cause.PREDICATES},
}
"""What YuniKorn's words of an event may mean; the queue in them is the leaf of the ask."""


@pytest.fixture(autouse=True)
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question is answered anew."""
    monkeypatch.setattr(questions, "CAUSES_S", 0.0)
    monkeypatch.setattr(questions, "CAUSES_SHARE", 0)
    monkeypatch.setattr(live, "QUIET_S", 0.0)


@contextmanager
def arranged(what: str) -> Iterator[tuple[Served, tuple[str, str]]]:
    with serving() as served:
        core = served.core

        def passed(_: int) -> None:
            wait_until(lambda: _state(served, "job") == "Completed")

        cluster = SCRIPT["Cluster"](core, served.settle, passed)
        yield served, SITUATIONS[what](cluster)


def _state(served: Served, name: str) -> str:
    found = served.get(f"{X}/applications?text={name}")["applications"]
    return found[0]["state"] if found else ""


def metric(served: Served) -> dict[str, int]:
    text = served.ask("/ws/v1/metrics").body.decode()
    pattern = r'^yunikorn_actors_waiting_asks\{partition="([^"]*)",reason="([^"]*)"\} (\d+)$'
    return {
        reason: int(count)
        for partition, reason, count in re.findall(pattern, text, re.MULTILINE)
        if partition == PARTITION
    }


def on_the_page(served: Served) -> dict[str, int]:
    """Follow as a browser does, up to the first picture."""
    connection = http.client.HTTPConnection(served.part.address, timeout=60)
    connection.request("GET", "/ws/v1/x/overview")
    with connection.getresponse() as stream:
        told = next(json.loads(it[6:]) for it in stream if it.startswith(b"data: "))
    connection.close()
    waiting: dict[str, int] = told["waiting"]
    return waiting


def of_asks(served: Served, **query: str) -> Any:
    return served.get(f"{X}/asks?{urlencode(query)}")


def events(served: Served) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for it in served.core.events().records:
        if it.type is si.EventType.REQUEST:
            told.setdefault(it.object_id, []).append(it.message)
    return told


def come_to_rest(served: Served) -> None:
    """Wait until no timer fires while the answers are read one behind the other."""
    core = served.core

    def none_is_near() -> bool:
        due_ns = core.next_due_ns
        return due_ns is None or due_ns > core.clock.now_ns() + 5 * SECOND

    wait_until(lambda: none_is_near() and core.is_settled() and none_is_near())


def agree(served: Served, *, with_events: bool = True) -> Counter[Cause]:
    """Compare everything that says why asks wait; return what they wait for.

    Events and the log of an ask tell of the past: where much has happened since, they may differ.
    """
    waiting = served.get(f"{X}/waiting")
    listed = of_asks(served)
    causes = Counter(waiting["causes"])
    assert causes == metric(served) == on_the_page(served)
    assert waiting["total"] == listed["total"] == causes.total()
    rows = {(it["application"], it["key"]): it for it in listed["asks"]}
    assert causes == Counter(it["reason"] for it in rows.values())
    for (application, key), row in rows.items():
        why = served.core.explain(application, key)
        asked = served.get(f"/ws/v1/x/why?application={application}&key={key}")
        assert row["reason"] == why.obstacle.cause == asked["obstacle"]["cause"]
        assert IN_WORDS[why.obstacle.cause]
        _says_the_same(row["said"], why)
        if with_events:
            _event_agrees(events(served).get(key, []), why)
            _log_agrees(served, application, key, why)
    for cause, number in causes.items():
        chosen = of_asks(served, reason=cause)
        assert number == chosen["total"] == len(chosen["asks"])
        assert {cause} == {it["reason"] for it in chosen["asks"]}
    return Counter({Cause(it): number for it, number in causes.items()})


def _says_the_same(said: str, why: Why) -> None:
    """The sentence of the list is the shorter one: it begins as the longer one does."""
    if why.obstacle.cause is Cause.NO_NODE:
        assert "node" in said
        return
    words = re.split(r"[,;:{(]", why.obstacle.text)[0].split(" is ")[0]
    assert said.startswith(words), (said, why.obstacle.text)


def _event_agrees(told: list[str], why: Why) -> None:
    """The last that an event said of why it waits is one of the things that hold it back."""
    for message in reversed(told):
        for words, causes in OF_EVENTS.items():
            if words in message:
                assert causes & {it.cause for it in why.obstacles}, (message, why)
                return


def _log_agrees(served: Served, application: str, key: str, why: Why) -> None:
    app: Response = served.ask(f"/ws/v1/partition/default/application/{application}")
    if app.status != 200:
        return
    for request in app.json.get("requests", ()):
        for line in request.get("allocationLog", ()) if request["allocationKey"] == key else ():
            if line["message"].startswith("queue "):
                queue = line["message"].split()[1]
                assert queue in {it.where for it in why.obstacles}, (line, why)
            if line["message"].startswith("the whole cluster"):
                assert Cause.CLUSTER_FULL in {it.cause for it in why.obstacles}


@pytest.mark.parametrize("what", SITUATIONS)
def test_each_situation_is_told_alike(what: str) -> None:
    with arranged(what) as (served, (application, key)):
        come_to_rest(served)
        found = agree(served)
        if what == "an application that has ended":
            assert "REJECTED" == served.core.explain(application, key).obstacle.cause
            assert not found
        else:
            assert found[served.core.explain(application, key).obstacle.cause]


@ranges.each("seed", 8, usual=3)
def test_what_nobody_thought_of_is_told_alike(seed: int) -> None:
    """Queues, limits, nodes, gangs and asks as they come: every reader agrees with every other."""
    random = Random(seed)  # noqa: S311 - no secret
    with serving() as served:
        cluster = SCRIPT["Cluster"](served.core, served.settle, lambda _: None)
        paths = _drawn_queues(cluster, random)
        cluster.nodes(**{f"node_{it}": random.randrange(2, 9) * 1_000 for it in range(4)})
        for number in range(8):
            _draw_application(cluster, random, f"app-{number}", random.choice(paths))
        if random.random() < 0.5:
            cluster.drain("node-1")
        come_to_rest(served)
        assert agree(served, with_events=False), "vacuous: nothing waits"


@ranges.each("seed", 8, usual=3)
def test_the_reasons_are_true(seed: int) -> None:
    """What a queue or a node has is counted here from the routes, and no planner is asked."""
    random = Random(100 + seed)  # noqa: S311 - no secret
    with serving() as served:
        cluster = SCRIPT["Cluster"](served.core, served.settle, lambda _: None)
        paths = _drawn_queues(cluster, random)
        cluster.nodes(**{f"node_{it}": random.randrange(1, 9) * 1_000 for it in range(4)})
        for number in range(8):
            _draw_application(cluster, random, f"app-{number}", random.choice(paths))
        come_to_rest(served)
        partition = "/ws/v1/partition/default"
        nodes = served.get(f"{partition}/nodes")
        free = [it["available"]["vcore"] for it in nodes]
        open_to_all = [it["available"]["vcore"] for it in nodes if not it["isReserved"]]
        (root,) = [served.get(f"{partition}/queues")]
        queues = {it["queuename"]: it for it in root["children"]}
        seen: Counter[Cause] = Counter()
        for row in of_asks(served)["asks"]:
            why = served.core.explain(row["application"], row["key"])
            app = served.get(f"{partition}/application/{row['application']}")
            (ask,) = (it for it in app["requests"] if it["allocationKey"] == row["key"])
            causes = {it.cause for it in why.obstacles}
            # The node that it requires stands there: no other counts.
            is_required = any(it.where for it in why.obstacles if it.cause is Cause.NO_NODE)
            if ask.get("placeholder") or is_required or causes & NOT_OF_ROOM:
                continue
            wanted, queue = ask["resource"]["vcore"], queues[why.queue]
            most = queue.get("maxResource", {}).get("vcore", 10**9)
            is_over = queue.get("allocatedResource", {}).get("vcore", 0) + wanted > most
            seen.update(causes)
            assert is_over == (Cause.QUEUE_LIMIT in causes), why
            assert (wanted > sum(free)) == (Cause.CLUSTER_FULL in causes), why
            assert (wanted > max(open_to_all, default=0)) == (Cause.NO_NODE in causes), why
        assert seen, "vacuous"


NOT_OF_ROOM: Final = {Cause.NODE_KEPT, Cause.GANG_WAITS, Cause.ON_ITS_WAY, Cause.PARKED}


def _draw_application(cluster: Any, random: Random, app: str, path: str) -> None:
    gang = si.Resource.of({"vcore": 2_000}) if random.random() < 0.3 else None
    cluster.submit(app, queue=path, user=random.choice(("ann", "bob")), placeholder_ask=gang)
    for place in range(random.randrange(1, 5)):
        key = f"{'choosy' if random.random() < 0.2 else 'task'}-{app}-{place}"
        more: dict[str, Any] = {}
        if gang is not None:
            more = {"placeholder": place < 2, "task_group_name": "g"}
        elif random.random() < 0.15:
            more = {"tags": {si.constants.TAG_REQUIRED_NODE: f"node-{random.randrange(5)}"}}
        cluster.ask(app, key, random.choice((500, 1_000, 3_000, 7_000, 12_000)), **more)


def _drawn_queues(cluster: Any, random: Random) -> list[str]:
    def queue(name: str) -> str:
        most = random.choice(
            ("", ", resources: {max: {vcore: 4}}", ", resources: {max: {vcore: 9}}")
        )
        runs = random.choice(("", "", ", maxapplications: 2"))
        limit = "[{limit: '', users: [ann], maxresources: {vcore: 3}}]"
        limits = f", limits: {limit}" if random.random() < 0.3 else ""
        return f"{{name: {name}{most}{runs}{limits}}}"

    names = ("a", "b", "c")
    cluster.queues(", ".join(map(queue, names)))
    return [f"root.{it}" for it in names]


def test_a_full_cluster_is_no_queue_at_its_maximum() -> None:
    """No queue has a maximum; what is used up is the cluster."""
    with serving() as served:
        cluster = SCRIPT["Cluster"](served.core, served.settle, lambda _: None)
        cluster.queues("{name: batch}")
        cluster.nodes(node_1=4_000)
        cluster.submit("job")
        for number in range(5):
            cluster.ask("job", f"task-{number}", 1_000)
        served.settle()
        assert {Cause.CLUSTER_FULL: 1} == agree(served)
        (request,) = served.get("/ws/v1/partition/default/application/job")["requests"]
        (line,) = request["allocationLog"]
        assert line["message"].startswith("the whole cluster has no room for it (requested")
        (row,) = of_asks(served)["asks"]
        assert "the whole cluster has no room for it, vcore 1 short" == row["said"]


def test_a_text_chooses_asks_and_their_applications() -> None:
    with arranged("the queue is full") as (served, _):
        for text in ("second", "job", "root.batch", "ANN"):
            assert 1 == of_asks(served, text=text)["total"], text
        assert 0 == of_asks(served, text="first")["total"]
        assert 1 == of_asks(served, text="second", reason="QUEUE_LIMIT")["total"]
        assert 0 == of_asks(served, text="second", reason="NO_NODE")["total"]
        assert 0 == of_asks(served, reason="nothing that there is")["total"]


def test_what_was_counted_holds_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "CAUSES_S", 60.0)
    with arranged("the queue is full") as (served, _):
        counted = served.core.questions.count_waiting
        asked = 0

        def count(*arguments: Any) -> Any:
            nonlocal asked
            asked += 1
            return counted(*arguments)

        monkeypatch.setattr(served.core.questions, "count_waiting", count)
        assert metric(served) == metric(served) == on_the_page(served)
        assert asked <= 1


def test_a_partition_that_has_gone_waits_for_nothing() -> None:
    with arranged("the queue is full") as (served, _):
        ask = served.part._questions.ask  # type: ignore[attr-defined]
        assert {"[rm-1]gone": {}} == ask("causes", "[rm-1]gone")
        assert 0 == ask("asks", "[rm-1]gone", "", "", "10").get("total", 0)
        with pytest.raises(UnknownAsk):
            served.core.explain("nobody", "nothing")
