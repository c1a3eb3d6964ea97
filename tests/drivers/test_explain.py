"""Why an ask waits, asked from outside: the same answer from every driver and topology."""

from typing import Any

import pytest
from probes import Lab, add_nodes, register
from support import APP, CONFIG, RM, Recorder, ask

from yunikorn_actors import InvalidRequest, UnknownAsk, si
from yunikorn_actors.planning.reasons import Cause


class Choosy(Recorder):
    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return "no disk" if args.allocation_key == "picky" else None


def fill(lab: Lab, rm: Recorder, rm_id: str = RM) -> None:
    """Ten are free; `runs` takes six, and nobody else fits but `picky`."""
    register(lab.core, rm, rm_id)
    add_nodes(lab.core, "n1", rm_id=rm_id)
    ugi = si.UserGroupInformation(user="bob")
    app = si.AddApplicationRequest(application_id=APP, queue_name="root.default", ugi=ugi)
    lab.core.update_application(si.ApplicationRequest(rm_id=rm_id, new=(app,)))
    lab.rest()
    for one in (ask("runs", 6), ask("large", 11), ask("picky", 1)):
        lab.core.update_allocation(si.AllocationRequest(rm_id=rm_id, asks=(one,)))
        lab.rest()


def test_each_ask_has_its_own_reason(every_lab: Lab) -> None:
    fill(every_lab, Choosy())
    core = every_lab.core
    large, picky = core.explain(APP, "large"), core.explain(APP, "picky")
    assert (Cause.CLUSTER_FULL, {"vcore": 7}) == (large.obstacle.cause, large.obstacle.lacks)
    assert (Cause.PREDICATES, {"no disk": 1}) == (picky.obstacle.cause, picky.obstacle.refusals)
    assert large.since_ns < every_lab.now_ns + 1


def test_the_dump_has_all_of_them(every_lab: Lab) -> None:
    fill(every_lab, Choosy())
    dump = every_lab.core.state_dump()
    waiting = dump["waiting"]["[rm-1]default"]
    assert [("large", "CLUSTER_FULL"), ("picky", "PREDICATES")] == [
        (item["key"], item["obstacle"]["cause"]) for item in waiting["asks"]
    ]
    assert waiting["is_complete"]
    assert (2, {"CLUSTER_FULL": 1, "PREDICATES": 1}) == (waiting["total"], waiting["causes"])
    assert waiting["as_of"] == dump["partitions"]["[rm-1]default"]["revision"]


UNKNOWN = {
    "an ask that never was": (APP, "never", "", "no ask never of app-1 is known"),
    "an application": ("nobody", "k", "", "failed to find application nobody"),
    "a partition": (APP, "large", "[rm-9]default", "failed to find application app-1"),
}


@pytest.mark.parametrize(("app", "key", "partition", "words"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_known_is_said(
    every_lab: Lab, app: str, key: str, partition: str, words: str
) -> None:
    fill(every_lab, Choosy())
    with pytest.raises(UnknownAsk, match=words):
        every_lab.core.explain(app, key, partition=partition)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((None, "k"), "explain.application_id: must be str"),
        ((APP, {}), "explain.key: must be str"),
        (("", "k"), "explain.application_id: must not be empty"),
        ((APP, ""), "explain.key: must not be empty"),
        ((APP, "k" * 1_000_000), "explain.key: must be at most"),
        (("\ud800", "k"), "explain.application_id: has a lone surrogate"),
    ],
)
def test_what_is_no_name_is_refused_at_the_call(
    every_lab: Lab, names: tuple[Any, Any], words: str
) -> None:
    """Whatever is asked, the core goes on."""
    fill(every_lab, Choosy())
    with pytest.raises(InvalidRequest, match=words):
        every_lab.core.explain(*names)
    with pytest.raises(InvalidRequest, match=r"explain\.partition: must be str"):
        every_lab.core.explain(APP, "runs", partition=["default"])  # type: ignore[arg-type]
    assert every_lab.core.explain(APP, "runs").placed


def test_an_application_of_two_resource_managers(every_lab: Lab) -> None:
    fill(every_lab, Choosy())
    fill(every_lab, Recorder(), "rm-2")
    core = every_lab.core
    assert Cause.PREDICATES is core.explain(APP, "picky", partition="[rm-1]default").obstacle.cause
    placed = core.explain(APP, "picky", partition="[rm-2]default")
    assert (Cause.PLACED, {"n1": 1}) == (placed.obstacle.cause, placed.placed)
    assert (
        Cause.CLUSTER_FULL is core.explain(APP, "large", partition="[rm-2]default").obstacle.cause
    )


def test_where_a_placed_ask_runs(every_lab: Lab) -> None:
    fill(every_lab, Choosy())
    why = every_lab.core.explain(APP, "runs")
    assert (Cause.PLACED, "n1", {"n1": 1}, False) == (
        why.obstacle.cause, why.obstacle.where, why.placed, why.waits,
    )  # fmt: skip
    assert "runs of app-1: it runs on n1" == str(why)


def test_why_an_ask_was_rejected_until_it_is_taken(every_lab: Lab) -> None:
    fill(every_lab, Choosy())
    core = every_lab.core
    for one in (ask("bad", -1), ask("lost", 1, app="ghost")):
        core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(one,)))
    every_lab.rest()
    bad, lost = core.explain(APP, "bad"), core.explain("ghost", "lost")
    assert (Cause.REJECTED, every_lab.now_ns) >= (bad.obstacle.cause, bad.since_ns)
    assert "it was rejected: allocation contains negative resources" == bad.obstacle.text
    assert "it was rejected: failed to find application ghost" == lost.obstacle.text
    assert ["lost", "bad"] == [
        item["key"] for item in core.state_dump()["waiting"]["[rm-1]default"]["rejected"]
    ]
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask("bad", 1),)))
    every_lab.rest()
    assert Cause.PLACED is core.explain(APP, "bad").obstacle.cause
    gone = si.AllocationRelease(application_id=APP, allocation_key="bad")
    releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
    core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
    every_lab.rest()
    with pytest.raises(UnknownAsk, match="no ask bad of app-1 is known: it has ended"):
        core.explain(APP, "bad")


def test_asking_changes_nothing(every_lab: Lab) -> None:
    fill(every_lab, Choosy())
    before = every_lab.core.state_dump()
    every_lab.core.explain(APP, "large")
    assert before == every_lab.core.state_dump()


GANG = CONFIG.replace("{name: default}]", "{name: default, resources: {max: {vcore: 6m}}}]")


def test_a_gang_that_is_held_waits_and_is_swapped(every_lab: Lab) -> None:
    """Held for want of room, then a real ask waits for its placeholders, then for a confirmation."""
    core = every_lab.core
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id=RM, config=GANG), Recorder()
    )
    add_nodes(core, "n1")
    ugi = si.UserGroupInformation(user="bob")
    new = tuple(
        si.AddApplicationRequest(
            application_id=name, queue_name="root.default", ugi=ugi,
            placeholder_ask=si.Resource.of({"vcore": size}) if size else None,
        )
        for name, size in (("other", 0), (APP, 4))
    )  # fmt: skip
    core.update_application(si.ApplicationRequest(rm_id=RM, new=new))
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask("f", 4, app="other"),)))
    every_lab.rest()
    member = {"task_group_name": "tg"}
    gang = (ask("p1", 2, placeholder=True, **member), ask("p2", 2, placeholder=True, **member))
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(*gang, ask("real", 2, **member))))
    every_lab.rest()
    held, waits = core.explain(APP, "p1").obstacle, core.explain(APP, "real").obstacle
    assert (Cause.GANG_HELD, "root.default") == (held.cause, held.where)
    assert (Cause.GANG_WAITS, "tg") == (waits.cause, waits.where)
    gone = si.AllocationRelease(application_id="other", allocation_key="f")
    releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
    core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
    every_lab.rest()
    parked = core.explain(APP, "real")
    assert (Cause.PARKED, 1) == (parked.obstacle.cause, parked.repeats)
    (waiting,) = core.state_dump()["waiting"]["[rm-1]default"]["asks"]
    assert ("real", "PARKED") == (waiting["key"], waiting["obstacle"]["cause"])
