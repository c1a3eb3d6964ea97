"""How the asks of a gang are treated: its placeholders are treated as its members are to be."""

import asyncio
from typing import Any

import pytest
from fronting import PATIENCE_S, raised
from probes import wait_until

from yunikorn_actors import AsyncScheduler, Cause, InvalidRequest, Scheduler, si
from yunikorn_actors.core.entry import Update

QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: batch}
    - {name: web, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1ms}}
"""
PAIR = {"count": 2, "vcore": 2}


def taken(s: Scheduler, **said: Any) -> str:
    """Let a gang come to a full node, and say who runs in the end: `gang` or `batch`."""
    s.add_node("n1", vcore=4)
    batch = s.application("etl", queue="root.batch", user="ann")
    leases = [it.result(PATIENCE_S) for it in batch.ask("long", vcore=2, count=2)]
    group = said.pop("group", {})
    app = s.application("g", queue="root.web", user="bob", gang={"w": PAIR | group}, **said)
    members = app.ask("m", group="w", count=2)
    wait_until(
        lambda: (
            all(it.done() for it in members) or "forbids to preempt" in app.explain("m-1").report()
        )
    )
    if all(it.done() for it in members):
        assert ["wanted back"] * 2 == [it.state for it in leases] or all(it.lost for it in leases)
        return "gang"
    assert ["held"] * 2 == [it.state for it in leases]
    return "batch"


@pytest.mark.parametrize(
    ("said", "who"),
    [
        ({}, "gang"),
        ({"may_preempt": False}, "batch"),
        ({"group": {"may_preempt": False}}, "batch"),
        ({"may_preempt": False, "group": {"may_preempt": True}}, "gang"),
    ],
    ids=["unless it is forbidden", "by the application", "by the group", "the group wins"],
)
def test_a_gang_preempts(said: dict[str, Any], who: str) -> None:
    with Scheduler(QUEUES, grace=0.01) as s:
        assert who == taken(s, **said)


def first_of_two(s: Scheduler, **said: Any) -> str:
    """Let a plain application and a gang wait for the same room, and say which gets it."""
    s.add_node("n1", vcore=2)
    holder = s.application("h", queue="root.batch", user="ann")
    lease = holder.ask("h", vcore=2).result(PATIENCE_S)
    plain = s.application("p", queue="root.batch", user="ann").ask("p", vcore=2)
    group = {"vcore": 2, "count": 1} | said.pop("group", {})
    app = s.application("g", queue="root.batch", user="ann", gang={"w": group}, **said)
    member = app.ask("m", group="w")
    wait_until(lambda: s.explain("g", "m").why and s.explain("p", "p").why)
    lease.release()
    wait_until(lambda: plain.done() or member.done())
    return "gang" if member.done() else "plain"


@pytest.mark.parametrize(
    ("said", "who"),
    [
        ({}, "plain"),
        ({"priority": 100}, "gang"),
        ({"group": {"priority": 100}}, "gang"),
        ({"priority": 100, "group": {"priority": -1}}, "plain"),
    ],
    ids=["it came later", "of the application", "of the group", "the group wins"],
)
def test_a_gang_has_a_priority(said: dict[str, Any], who: str) -> None:
    with Scheduler(QUEUES) as s:
        assert who == first_of_two(s, **said)


def asks_of(s: Scheduler, name: str) -> dict[str, dict[str, Any]]:
    apps = s.core.state_dump()["partitions"]["[rm-1]default"]["applications"]
    return {it["key"]: it for it in apps[name]["asks"].values()}


def test_placeholders_and_members_are_treated_alike() -> None:
    sent: list[si.AllocationAsk] = []
    with Scheduler(QUEUES) as s:
        submit = s.core.submit_checked

        def noted(request: Update) -> None:
            sent.extend(getattr(request, "asks", ()))
            submit(request)

        s.core.submit_checked = noted  # type: ignore[method-assign]
        s.add_node("n1", vcore=4)
        group = {
            "vcore": 2, "priority": 7, "may_preempt": False, "preemptible": False,
            "tags": {"team": "red"}, "required_node": "n1",
        }  # fmt: skip
        app = s.application(
            "g", queue="root.batch", user="ann", gang={"w": group, "v": {"vcore": 1}}
        )
        lease = app.ask("m", group="w").result(PATIENCE_S)
        assert (7, False) == (lease.running.priority, lease.running.preemptible)
        app.ask("own", group="w", priority=1, may_preempt=True, tags={"team": "blue"})
        wait_until(lambda: len(sent) == 4)
    keep, other, member, own = sent
    assert ("~w-1", "~v-1", "m", "own") == tuple(it.allocation_key for it in sent)
    for ask in (keep, member):
        assert 7 == ask.priority
        assert si.PreemptionPolicy() == ask.preemption_policy
        assert "red" == ask.tags["team"]
        assert "n1" == ask.tags[si.constants.TAG_REQUIRED_NODE]
    assert si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True) == (
        other.preemption_policy
    )
    assert (1, si.PreemptionPolicy(allow_preempt_other=True)) == (
        own.priority,
        own.preemption_policy,
    )
    assert ("blue", "n1") == (own.tags["team"], own.tags[si.constants.TAG_REQUIRED_NODE])


def test_a_gang_runs_where_its_group_must() -> None:
    with Scheduler(QUEUES) as s:
        for name in ("n1", "n2", "n3"):
            s.add_node(name, vcore=4)
        gang = {"w": PAIR | {"required_node": "n2"}}
        app = s.application("g", queue="root.batch", user="ann", gang=gang)
        assert ["n2", "n2"] == [
            it.result(PATIENCE_S).node_id for it in app.ask("m", group="w", count=2)
        ]


def test_what_an_application_says_is_for_all_of_its_asks() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann", priority=5, preemptible=False)
        leases = [app.ask("t", vcore=1), app.ask("u", vcore=1, priority=-3, preemptible=True)]
        said = [it.result(PATIENCE_S).running for it in leases]
        assert [(5, False), (-3, True)] == [(it.priority, it.preemptible) for it in said]


def test_explain_names_the_cause_of_a_gang() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=3)
        app = s.application(
            "g", queue="root.batch", user="ann", gang={"w": PAIR}, may_preempt=False
        )
        app.ask("m", group="w")
        wait_until(lambda: app.explain("m").cause is Cause.CLUSTER_FULL)
        status = app.explain("m")
        assert status.why is not None
        assert status.report() == status.why.report()
        assert (
            "GANG_WAITS: 1 of 2 placeholders of its gang are placed; ~w-2 waits" in status.report()
        )
        assert "preemption: ~w-2: its policy forbids to preempt others for it" in status.report()


@pytest.mark.parametrize(
    ("group", "told"),
    [
        ({"cout": 2, "vcore": 1}, "gang: w: 'cout' would be a resource type; did you mean 'count'?"),
        ({"replicas": 2, "vcore": 1}, "did you mean 'count'?"),
        ({"priorty": 2, "vcore": 1}, "did you mean 'priority'?"),
        ({"cpu": 2}, "'cpu' would be a resource type; did you mean 'vcore'?"),
        ({"vcore": 1, "fits": print}, "gang: w: fits is for ask(...)"),
        ({"vcore": 1, "deadline": 5}, "gang: w: deadline is for ask(...)"),
        ({"vcore": 1, "timeout": 5}, "gang: w: timeout is for application(...)"),
        ({"vcore": 1, "priority": "high"}, "gang: w: priority: "),
        ({"vcore": 1, "priority": 2**40}, "gang: w: priority: "),
        ({"vcore": 1, "may_preempt": 1}, "gang: w: may_preempt: "),
        ({"vcore": 1, "preemptible": "no"}, "gang: w: preemptible: "),
        ({"vcore": 1, "tags": {"a": 1}}, "gang: w: tags['a']: "),
        ({"vcore": 1, "tags": "a"}, "gang: w: tags: must be a mapping"),
        ({"vcore": 1, "required_node": 5}, "gang: w: required_node: must be the id of a node"),
        ({"priority": 5}, "gang: w: say how much a member needs"),
        ({"vcore": 1, "resources": {"vcore": 2}}, "gang: w: vcore is given twice"),
    ],
)  # fmt: skip
def test_wrong_words_of_a_group_are_refused(group: dict[str, Any], told: str) -> None:
    with Scheduler(QUEUES) as s:
        said = raised(
            lambda: s.application("g", queue="root.batch", user="ann", gang={"w": group}),
            InvalidRequest,
        )
        assert told in said
        s.application("g", queue="root.batch", user="ann", gang={"w": {"vcore": 1, "gpu": 0}})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"priority": "high"}, "application: priority: "),
        ({"may_preempt": 0}, "application: may_preempt: "),
        ({"preemptible": 1}, "application: preemptible: "),
    ],
)
def test_wrong_terms_of_an_application_are_refused(said: dict[str, Any], told: str) -> None:
    with Scheduler(QUEUES) as s:
        assert told in raised(
            lambda: s.application("a", queue="root.batch", user="ann", **said), InvalidRequest
        )
        s.application("a", queue="root.batch", user="ann")


def test_the_async_front_does_the_same() -> None:
    async def run() -> tuple[list[int], list[str]]:
        async with AsyncScheduler(QUEUES, grace=0.01) as s:
            await s.add_node("n1", vcore=4)
            batch = await s.application("etl", queue="root.batch", user="ann")
            leases = await asyncio.gather(*batch.ask("long", vcore=2, count=2))
            app = await s.application(
                "g", queue="root.web", user="bob", gang={"w": PAIR}, priority=3
            )
            members = await asyncio.wait_for(
                asyncio.gather(*app.ask("m", group="w", count=2)), PATIENCE_S
            )
            return [it.running.priority for it in members], [it.reason for it in leases]

    priorities, reasons = asyncio.run(run())
    assert [3, 3] == priorities
    assert all("preempting" in it for it in reasons)
