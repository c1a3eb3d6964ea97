"""Rules on the attributes of nodes for gangs: the room that is kept, and the members that take it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fronting import is_all_handled
from probes import wait_until

from yunikorn_actors import InvalidRequest, Lease, Scheduler, SchedulerCore, UnknownName
from yunikorn_actors.machines.topology import TOPOLOGIES

PATIENCE_S = 60.0
ZONES = {"n1": "a", "n2": "a", "n3": "b", "n4": "c"}
CASES = [(topology, driver) for topology in TOPOLOGIES for driver in ("threads", "direct")]


@pytest.fixture(params=CASES, ids=["-".join(it) for it in CASES])
def s(request: pytest.FixtureRequest) -> Iterator[Scheduler]:
    topology, driver = request.param
    with Scheduler(core=SchedulerCore(topology=topology, driver=driver)) as made:
        for name, zone in ZONES.items():
            made.add_node(name, vcore=8, attributes={"zone": zone})
        yield made


def members(s: Scheduler, name: str, group: Mapping[str, Any], count: int) -> list[Lease]:
    app = s.application(name, user="ann", gang={"w": {"vcore": 1, "count": count, **group}})
    return [it.result(PATIENCE_S) for it in app.ask("m", group="w", count=count)]


def zones(leases: list[Lease]) -> dict[str, int]:
    return dict(Counter(ZONES[it.node_id] for it in leases))


def test_a_gang_goes_where_the_attributes_are_as_it_wants(s: Scheduler) -> None:
    assert {"b": 4} == zones(members(s, "one", {"where": {"zone": "b"}}, 4))
    assert {"b", "c"} >= {*zones(members(s, "two", {"where": {"zone": ["b", "c"]}}, 6))}


def test_members_are_spread_over_zones(s: Scheduler) -> None:
    assert {"a": 2, "b": 2, "c": 2} == zones(members(s, "one", {"spread": "zone"}, 6))


def test_members_are_apart(s: Scheduler) -> None:
    leases = members(s, "one", {"apart_from": "db"}, 4)
    assert {*ZONES} == {it.node_id for it in leases}
    # Others of that name, members or not, find no node any more.
    ask = s.application("two", user="ann").ask("t", vcore=1, apart_from="db")
    wait_until(lambda: "PREDICATES" == s.explain("two", "t").cause)
    leases[0].release()
    assert leases[0].node_id == ask.result(PATIENCE_S).node_id


def test_gangs_whose_groups_have_one_name_keep_their_rules_apart(s: Scheduler) -> None:
    """The core names a placeholder without its application where it asks about it."""
    apps = [
        s.application(
            f"g{zone}", user="ann",
            gang={"w": {"vcore": 1, "count": 2, "where": {"zone": zone}}},
        )
        for zone in "abc"
    ]  # fmt: skip
    for app, zone in zip(apps, "abc", strict=True):
        leases = [it.result(PATIENCE_S) for it in app.ask("m", group="w", count=2)]
        assert {zone: 2} == zones(leases)


def test_members_take_their_room_though_a_zone_came_since(s: Scheduler) -> None:
    app = s.application(
        "g", user="ann", gang={"w": {"vcore": 1, "count": 6, "spread": "zone"}}
    )  # fmt: skip
    wait_until(lambda: 6_000 == sum(it.used.get("vcore", 0) for it in s.nodes.values()))
    s.add_node("n5", vcore=8, attributes={"zone": "d"})
    leases = [it.result(PATIENCE_S) for it in app.ask("m", group="w", count=6)]
    assert {"a": 2, "b": 2, "c": 2} == zones(leases)
    # What comes beside the gang counts its members.
    assert "n5" == app.ask("one", vcore=1, spread="zone").result(PATIENCE_S).node_id


def test_a_member_beside_its_room_heeds_the_rule(s: Scheduler) -> None:
    """Larger than its room, where that is full: it goes elsewhere, in the same zone."""
    app = s.application(
        "g", user="ann", gang={"w": {"vcore": 1, "count": 1, "where": {"zone": "a"}}}
    )  # fmt: skip
    wait_until(lambda: [it for it in s.nodes.values() if it.used])
    [kept] = [it.id for it in s.nodes.values() if it.used]
    s.application("x", user="ann").ask("full", vcore=7, required_node=kept).result(PATIENCE_S)
    lease = app.ask("m", group="w").result(PATIENCE_S)
    assert kept == lease.node_id


def test_a_gang_that_finds_no_such_nodes_says_why(s: Scheduler) -> None:
    app = s.application(
        "g", user="ann", gang={"w": {"vcore": 1, "count": 2, "where": {"zone": "x"}}},
        gang_style="Soft", timeout=0.3,
    )  # fmt: skip
    ask = app.ask("m", group="w")
    wait_until(lambda: "its zone is" in app.explain("m").report())
    # As one by one later: the rule holds for members, too.
    wait_until(lambda: "PREDICATES" == app.explain("m").cause)
    s.add_node("n9", vcore=1, attributes={"zone": "x"})
    assert "n9" == ask.result(PATIENCE_S).node_id


def test_all_is_forgotten(s: Scheduler) -> None:
    rule = {"spread": "zone", "apart_from": "db"}
    leases = members(s, "one", rule, 4)
    more = s.application("two", user="ann", gang={"w": {"vcore": 1, "count": 2, "spread": "zone"}})
    wait_until(lambda: 6_000 == sum(it.used.get("vcore", 0) for it in s.nodes.values()))
    leases[0].release()
    more.close()
    s.applications["one"].close()
    found = s._operations._asks.whereabouts
    wait_until(lambda: is_all_handled(s))
    assert ({}, {}, {}, {}) == (found._at, found.counts, found._kept, found._taken)


@pytest.mark.parametrize(
    ("group", "says"),
    [
        ({"where": "a"}, "gang: w: where: must be a mapping"),
        ({"where": {"zone": 3}}, "gang: w: where: zone: must be a text or several"),
        ({"spread": 3}, "gang: w: spread: must be an attribute of nodes"),
        ({"apart_from": 3}, "gang: w: apart_from: must be a name"),
    ],
)
def test_what_is_no_rule_is_refused(group: dict[str, Any], says: str) -> None:
    with Scheduler() as s, pytest.raises(InvalidRequest, match=says):
        s.application("g", user="ann", gang={"w": {"vcore": 1, **group}})


def test_a_rule_of_a_member_stands_in_its_group() -> None:
    with Scheduler() as s:
        app = s.application("g", user="ann", gang={"w": {"vcore": 1}})
        with pytest.raises(InvalidRequest, match="write them in the group, as gang="):
            app.ask("m", group="w", spread="zone")
        with pytest.raises(UnknownName, match="has no group 'v'"):
            app.ask("m", group="v", spread="zone")
