"""Questions to a core in virtual time: what would happen, and nothing of it happens."""

import msgspec
import pytest
from msgspec.structs import replace as with_fields
from support import RM

from yunikorn_actors import InvalidRequest, VirtualCore, si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.what_if import Answer, Change, Reconfigure, core_state, run
from yunikorn_actors.what_if.answer import differences_of
from yunikorn_actors.what_if.changes import Request
from yunikorn_actors.what_if.least_change import Wanted, least_changes
from yunikorn_actors.what_if.run import Run
from yunikorn_actors.what_if.text import lines_of

CONFIG = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: a
      resources: {max: {vcore: 4}}
      limits: [{users: [ann], maxresources: {vcore: 4}}]
"""
SECOND = 1_000_000_000
both = pytest.mark.parametrize("topology", TOPOLOGIES)


def node(name: str, vcore: int, action: si.ActionFromRM = si.ActionFromRM.CREATE) -> si.NodeRequest:
    room = si.Resource.of({"vcore": vcore})
    info = si.NodeInfo(node_id=name, action=action, schedulable_resource=room)
    return si.NodeRequest(rm_id=RM, nodes=(info,))


def asks(*keys: str, vcore: int = 2_000, runtime: str = "100") -> si.AllocationRequest:
    return si.AllocationRequest(
        rm_id=RM,
        asks=tuple(
            si.AllocationAsk(
                application_id="app",
                allocation_key=key,
                resource_ask=si.Resource.of({"vcore": vcore}),
                tags={"yunikorn-actors/runtime": runtime} if runtime else {},
            )
            for key in keys
        ),
    )


def busy(topology: TopologyName) -> VirtualCore:
    """Two asks run since ten seconds, and the quota has no room for more."""
    core = VirtualCore(topology=topology).start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(node("n1", 4_000))
    core.update_node(node("n2", 4_000))
    ugi = si.UserGroupInformation(user="ann", groups=("staff",))
    app = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
    core.update_allocation(asks("1", "2"))
    core.run_until_idle()
    core.advance_to(core.now_ns + 10 * SECOND)
    return core


@both
def test_an_ask_starts_when_what_runs_has_ended(topology: TopologyName) -> None:
    core = busy(topology)
    before = core.state_dump()
    answer = core.simulate(asks("3"))
    assert core.state_dump() == before
    (placed,) = answer.course.placed
    assert (placed.key, placed.at_s, placed.ends_s) == ("3", 90.0, 190.0)
    (wait,) = answer.course.waits
    assert (wait.cause, wait.from_s, wait.until_s) == ("QUEUE_LIMIT", 0.0, 90.0)
    assert [it.what for it in answer.differences] == ["starts"]
    assert answer.revisions == {"[rm-1]default": before["partitions"]["[rm-1]default"]["revision"]}
    assert "3 run times are as declared" in answer.assumptions


@both
def test_a_quota_and_a_limit_raised_let_it_start_at_once(topology: TopologyName) -> None:
    core = busy(topology)
    quota = Reconfigure(queue="root.a", max={"vcore": 6_000})
    (wait,) = core.simulate(quota, asks("3"), until=0).course.waits
    assert wait.cause == "USER_LIMIT"
    limit = Reconfigure(queue="root.a", user="ann", max={"vcore": 6_000})
    (placed,) = core.simulate(quota, limit, asks("3"), until=0).course.placed
    assert placed.at_s == 0
    core.update_allocation(asks("3"))
    core.run_until_idle()
    assert core.explain("app", "3").waits


@both
def test_changes_have_times_and_are_compared_with_nothing_changed(topology: TopologyName) -> None:
    core = busy(topology)
    core.update_allocation(asks("3"))
    release = si.AllocationReleasesRequest(
        allocations_to_release=(si.AllocationRelease(application_id="app", allocation_key="1"),)
    )
    answer = core.simulate(Change(si.AllocationRequest(rm_id=RM, releases=release), after_s=30))
    earlier, ended = answer.differences
    assert (earlier.key, earlier.what) == ("3", "earlier")
    assert (earlier.with_s, earlier.without_s) == (30.0, 90.0)
    assert (ended.key, ended.what, ended.with_s) == ("1", "ended", 30.0)


def removal(application: str) -> si.ApplicationRequest:
    gone = si.RemoveApplicationRequest(application_id=application)
    return si.ApplicationRequest(rm_id=RM, remove=(gone,))


def releases(*keys: str, waiting: str = "") -> si.AllocationRequest:
    ends = tuple(si.AllocationRelease(application_id="app", allocation_key=it) for it in keys)
    asks = (si.AllocationAskRelease(application_id="app", allocation_key=waiting),)
    given = si.AllocationReleasesRequest(
        allocations_to_release=ends, allocation_asks_to_release=asks if waiting else ()
    )
    return si.AllocationRequest(rm_id=RM, releases=given)


ONE, TWO, THREE = (("1", "ended", "n1"), ("2", "ended", "n2"), ("3", "withdrawn", ""))
OTHER = CONFIG.replace("default", "other")


@both
@pytest.mark.parametrize(
    ("change", "lost", "words"),
    [
        (node("n1", 4_000, si.ActionFromRM.DECOMISSION), [ONE], "Node n1 Removed"),
        (removal("app"), [ONE, TWO, THREE], "Application app Removed"),
        (
            si.UpdateConfigurationRequest(rm_id=RM, config=OTHER),
            [ONE, TWO, THREE],
            "Application app Removed",
        ),
        (releases("2"), [TWO], "allocation remove as per RM request"),
        (releases(waiting="3"), [THREE], "withdrawn while it waited"),
    ],
    ids=["node", "application", "partition", "release", "withdrawal"],
)
def test_what_a_change_ends_is_a_difference(
    topology: TopologyName, change: Request, lost: list[tuple[str, str, str]], words: str
) -> None:
    core = busy(topology)
    # It waits to the end, with the change and without it.
    core.update_allocation(asks("3", vcore=8_000))
    core.run_until_idle()
    answer = core.simulate(change, until=5)
    found = [(it.key, it.what, it.with_node) for it in answer.differences]
    assert found == lost
    assert {(it.queue, it.user) for it in answer.differences} == {("root.a", "ann")}
    ended = {it.key: it for it in answer.course.ended}
    assert {key: it.node for key, it in ended.items()} == {key: on for key, _, on in lost}
    assert words in {it.why for it in answer.differences}
    assert "without the changes: the same" not in lines_of(answer)


@both
def test_what_times_out_in_one_of_the_runs_alone_is_a_difference(
    topology: TopologyName,
) -> None:
    core = busy(topology)
    larger = CONFIG.replace("max: {vcore: 4}", "max: {vcore: 8}")
    core.update_configuration(si.UpdateConfigurationRequest(rm_id=RM, config=larger))
    gang = si.AddApplicationRequest(
        application_id="gang", queue_name="root.a", execution_timeout_milli_seconds=30_000,
        ugi=si.UserGroupInformation(user="bob"), placeholder_ask=si.Resource.of({"vcore": 4_000}),
    )  # fmt: skip
    hold = si.AllocationAsk(
        application_id="gang", allocation_key="hold", placeholder=True, task_group_name="g",
        resource_ask=si.Resource.of({"vcore": 2_000}), max_allocations=2,
    )  # fmt: skip
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(gang,)))
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(hold,)))
    core.run_until_idle()
    work = msgspec.structs.replace(hold, allocation_key="work", placeholder=False)
    answer = core.simulate(si.AllocationRequest(rm_id=RM, asks=(work,)), until=60)
    assert answer.without is not None
    for one, other, what, times in (
        (answer.course, answer.without, "not ended", (None, 30.0)),
        (answer.without, answer.course, "ended", (30.0, None)),
    ):
        found = [it for it in differences_of(one, other) if it.key == "hold"]
        # A member that takes the place of its placeholder is no loss.
        assert [(it.what, it.with_s, it.without_s) for it in found] == [(what, *times)] * 2
    assert {it.why for it in answer.course.ended} == {"PLACEHOLDER_REPLACED"}


@both
def test_what_ends_with_a_manager_that_stays_away_is_told(topology: TopologyName) -> None:
    """Nobody hears of it then."""
    core = busy(topology)
    core.update_allocation(asks("long", runtime="9000"))
    core._simulator.resource_manager_lost(RM)
    core.run_until_idle()
    answer = core.simulate(until=3_600, compare=False)
    ended = {(it.key, it.node, it.words) for it in answer.course.ended if it.node}
    assert ended == {
        (key, node, "its resource manager has left") for key, node in (("1", "n1"), ("2", "n2"))
    }
    assert "long" in {it.key for it in answer.course.ended if not it.node}


@both
def test_members_that_a_complete_gang_brings_are_counted_once(topology: TopologyName) -> None:
    core = busy(topology)
    gang = si.AddApplicationRequest(
        application_id="gang", queue_name="root.a", ugi=si.UserGroupInformation(user="bob"),
        placeholder_ask=si.Resource.of({"vcore": 4_000}),
    )  # fmt: skip
    hold = si.AllocationAsk(
        application_id="gang", allocation_key="hold", placeholder=True, task_group_name="g",
        resource_ask=si.Resource.of({"vcore": 2_000}), max_allocations=2,
        tags={"yunikorn-actors/runtime": "10"},
    )  # fmt: skip
    raised = Reconfigure(queue="root.a", max={"vcore": 8_000})
    new = si.ApplicationRequest(rm_id=RM, new=(gang,))
    answer = core.simulate(raised, new, si.AllocationRequest(rm_id=RM, asks=(hold,)))
    assert [it.key for it in answer.course.placed] == ["hold"] * 2 + ["g.member"] * 2
    (members,) = (it for it in answer.assumptions if "members" in it)
    assert members.startswith("2 members of complete gangs ask at once")


@both
def test_what_declares_no_run_time_does_not_end(topology: TopologyName) -> None:
    core = busy(topology)
    answer = core.simulate(asks("3", runtime=""))
    assert "of 1 allocation no run time is known: it does not end" in answer.assumptions
    answer = core.simulate(node("n3", 4_000), asks("big", vcore=9_000), until=600)
    assert answer.course.placed == ()
    assert answer.course.waits[-1].until_s is None


@both
def test_bad_changes_are_refused(topology: TopologyName) -> None:
    core = busy(topology)
    with pytest.raises(InvalidRequest, match=r"change 1: must be a request of the interface"):
        core.simulate("more nodes")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=r"queue: 'root.b' is not configured"):
        core.simulate(Reconfigure(queue="root.b", max={"vcore": 1}))
    with pytest.raises(InvalidRequest, match=r"queue: root.a has no limit for bob"):
        core.simulate(Reconfigure(queue="root.a", user="bob", max={"vcore": 1}))
    with pytest.raises(InvalidRequest, match=r"until: must be seconds"):
        core.simulate(until=-1)
    answer = core.simulate(node("n1", 1_000))
    assert [it.what for it in answer.course.refused] == ["node"]


@both
def test_a_time_that_is_no_whole_number_of_nanoseconds_comes(topology: TopologyName) -> None:
    core = busy(topology)
    answer = core.simulate(Change(node("n3", 4_000), after_s=1.0000000004), until=2)
    assert (answer.course.until_s, answer.course.refused) == (2.0, ())


@both
def test_what_waited_before_the_changes_is_explained_from_the_beginning(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = busy(topology)
    core.update_allocation(asks("3", "4"))
    core.run_until_idle()
    changed = core.simulate(asks("new", vcore=1_000)).course
    spans = [(it.key, it.from_s, it.until_s) for it in changed.waits]
    assert sorted(spans) == [("3", 0.0, 90.0), ("4", 0.0, 90.0), ("new", 0.0, 190.0)]
    # Where these are too many to look at, they are noted to be.
    monkeypatch.setattr(run, "OTHERS_MAX", 1)
    answer = core.simulate(asks("new", vcore=5_000), until=50)
    spans = [(it.key, it.from_s, it.until_s) for it in answer.course.waits]
    assert sorted(spans) == [("3", 50.0, None), ("4", 50.0, None), ("new", 0.0, None)]
    assert any("is explained until 0 s, and at the end" in it for it in answer.assumptions)


@both
def test_each_reason_for_which_it_waits_is_told_also_those_of_one_kind(
    topology: TopologyName,
) -> None:
    core = VirtualCore(topology=topology).start()
    below = "queues: [{name: b, resources: {max: {vcore: 2}}}, {name: c}]"
    config = CONFIG[: CONFIG.index("      limits")] + f"      {below}\n"
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=config)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(node("n1", 9_000))
    ugi = si.UserGroupInformation(user="bob")
    new = tuple(
        si.AddApplicationRequest(application_id=name, queue_name=f"root.a.{queue}", ugi=ugi)
        for name, queue in (("app", "b"), ("other", "c"))
    )
    core.update_application(si.ApplicationRequest(rm_id=RM, new=new))
    core.update_allocation(asks("1", "2"))
    (ask,) = asks("3").asks
    ask = msgspec.structs.replace(ask, application_id="other")
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
    core.run_until_idle()
    larger = (Reconfigure(queue="root.a.b", max={"vcore": it}) for it in (3_000, 4_000))
    changes = [Change(it, after_s=after_s) for it, after_s in zip(larger, (10, 20), strict=True)]
    answer = core.simulate(*changes, until=50)
    waits = [(it.from_s, it.until_s, it.text.partition(";")[0]) for it in answer.course.waits]
    short = "has no room for it, vcore"
    assert waits == [
        (0, 10, f"queue root.a.b {short} 2 short: vcore 2 of vcore 2 are used"),
        (10, 20, f"queue root.a.b {short} 1 short: vcore 2 of vcore 3 are used"),
        (20, None, f"queue root.a {short} 2 short: vcore 4 of vcore 4 are used"),
    ]


@both
def test_the_last_words_for_one_reason_count(topology: TopologyName) -> None:
    core = busy(topology)
    core.update_allocation(asks("short", vcore=1_000, runtime="20"))
    core.run_until_idle()
    answer = core.simulate(
        Reconfigure(queue="root.a", max={"vcore": 5_000}),
        Reconfigure(queue="root.a", user="ann", max={"vcore": 5_000}),
        asks("4", vcore=3_000),
        until=50,
    )
    (wait,) = (it for it in answer.course.waits if it.key == "4")
    assert (wait.from_s, wait.until_s) == (0, None)
    assert "vcore 2 short: vcore 4 of vcore 5 are used" in wait.text
    # A reader who is shown that it waits from the beginning reads of the beginning.
    assert "vcore 3 short: vcore 5 of vcore 5 are used" in wait.first_text
    (line,) = (
        it for it in lines_of(answer) if it.startswith("  app/4 from the beginning to the e")
    )
    assert line.endswith(f": {wait.first_text}; at last: {wait.text}")


def test_asks_that_wait_for_the_same_are_one_line() -> None:
    lines = [*lines_of(busy("proposing").simulate(asks("3", "4", "5"), asks("6", vcore=1_000)))]
    waits = lines[lines.index("waits:") + 1 :]
    assert waits[0].startswith("  app/3 to 4 (2 asks) from the beginning until 1 min 30 s: queue")
    assert waits[1].startswith("  app/5 ")
    assert waits[2].startswith("  app/6 ")


def test_the_last_words_about_a_partition_that_is_gone_are_taken() -> None:
    run = Run(Simulator(Topology("fused", settings=Settings(), instance="t")))
    gone = si.AllocationRelease(
        partition_name="gone", application_id="app", allocation_key="1", uuid="u"
    )
    run.receive(RM, si.AllocationResponse(released=(gone,)))
    assert [it.key for it in run.go(0).ended] == ["1"]


@both
def test_both_runs_begin_with_one_copy(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packing all machines is most of what a question costs."""
    copies: list[object] = []
    packed = core_state.packed

    def counted(value: object) -> bytes:
        copies.append(value)
        return packed(value)

    monkeypatch.setattr(core_state, "packed", counted)
    answer = busy(topology).simulate(Change(asks("3")), until=200)
    assert answer.differences, "vacuous: nothing was compared"
    assert len(copies) == 1


def test_predicates_that_nobody_would_ask_are_refused() -> None:
    """Not taken in silence: the answer would look as if they had said yes."""
    core = busy("proposing")
    with pytest.raises(InvalidRequest, match="fits: no resource manager of this state answers pre"):
        core.simulate(asks("3"), fits=lambda _key, _node: "no")
    with pytest.raises(InvalidRequest, match="fits: must be a function of a key and a node, not 5"):
        core.simulate(asks("3"), fits=5)  # type: ignore[arg-type]


@both
def test_a_manager_that_is_away_makes_no_change(topology: TopologyName) -> None:
    core = busy(topology)
    core.resource_manager_lost(RM)
    core.run_until_idle()
    assert f"the resource manager of [{RM}]default stays away" in core.simulate(until=0).assumptions
    for change in (node("n3", 1_000), Reconfigure(queue="root.a", max={"vcore": 8_000})):
        with pytest.raises(
            InvalidRequest, match=f"change 1: resource manager {RM}: it is away, so"
        ):
            core.simulate(change)


@both
def test_one_name_in_two_partitions(topology: TopologyName) -> None:
    """What is released in one is no change in the other, and the text tells them apart."""
    core = VirtualCore(topology=topology).start()
    queues = "{name: root, submitacl: '*', queues: [{name: a, resources: {max: {vcore: 4}}}]}"
    parts = ", ".join(f"{{name: {it}, queues: [{queues}]}}" for it in ("default", "gpu"))
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=f"partitions: [{parts}]")
    core.register_resource_manager(request, si.ResourceManagerCallback())
    for name, runtime in (("default", "100"), ("gpu", "500")):
        room = node(f"n-{name}", 8_000)
        place = {si.constants.NODE_PARTITION: name}
        core.update_node(with_fields(room, nodes=(with_fields(room.nodes[0], attributes=place),)))
        ann = si.UserGroupInformation(user="ann")
        app = si.AddApplicationRequest(
            application_id="app", queue_name="root.a", ugi=ann, partition_name=name
        )
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
        for key in ("runs", "waits"):
            ask = with_fields(asks(key, vcore=3_000, runtime=runtime).asks[0], partition_name=name)
            core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
    core.run_until_idle()
    gone = si.AllocationRelease(application_id="app", allocation_key="runs", partition_name="gpu")
    releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
    answer = core.simulate(si.AllocationRequest(rm_id=RM, releases=releases))
    waits, runs = answer.differences
    gpu = f"[{RM}]gpu"
    assert (waits.name, waits.without_s, waits.with_s) == ((gpu, "app", "waits"), 500.0, 0.0)
    assert (runs.name, runs.what) == ((gpu, "app", "runs"), "ended")
    lines = list(lines_of(answer))
    assert "  app/waits of partition gpu on n-gpu at once, ends after 8 min 20 s (vcore 3)" in lines
    assert "  app/waits on n-default after 1 min 40 s, ends after 3 min 20 s (vcore 3)" in lines


@both
def test_what_may_come_behind_the_end_is_not_called_never(topology: TopologyName) -> None:
    core = busy(topology)
    core.update_allocation(asks("3"))
    core.run_until_idle()
    changes = (
        Reconfigure(queue="root.a", max={"vcore": 8_000}),
        Reconfigure(queue="root.a", user="ann", max={"vcore": 8_000}),
    )
    line = "  app/3: starts {}, with the changes at once on n1"
    assert line.format("not within 5 s") in lines_of(core.simulate(*changes, until=5))
    assert not [it for it in lines_of(core.simulate(*changes)) if "not within" in it]


PREEMPTING = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: a
    - name: b
      resources: {guaranteed: {vcore: 4}}
      properties: {preemption.delay: 3h}
"""


@both
def test_what_ends_by_a_time_out_is_waited_for_however_far_that_is(topology: TopologyName) -> None:
    core = VirtualCore(topology=topology).start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(node("n1", 4_000))
    ann = si.UserGroupInformation(user="ann")
    app = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ann)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
    long = asks("long", vcore=4_000, runtime="").asks[0]
    long = with_fields(long, execution_timeout_milli_seconds=30 * 3_600_000)
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(long,)))
    core.run_until_idle()
    answer = core.simulate(asks("next"))
    assert [(it.key, it.at_s) for it in answer.course.placed] == [("next", 30 * 3_600.0)]
    assert [(it.key, it.why) for it in answer.course.ended] == [("long", "TIMEOUT")]
    assert not [it for it in answer.assumptions if "no run time is known" in it]


@both
def test_a_delay_of_hours_is_waited_for(topology: TopologyName) -> None:
    core = VirtualCore(topology=topology).start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=PREEMPTING)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(node("n1", 4_000))
    ann = si.UserGroupInformation(user="ann")
    new = tuple(
        si.AddApplicationRequest(application_id=id_, queue_name=queue, ugi=ann)
        for id_, queue in (("app", "root.a"), ("other", "root.b"))
    )
    core.update_application(si.ApplicationRequest(rm_id=RM, new=new))
    policy = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)
    works = tuple(
        with_fields(it, preemption_policy=policy) for it in asks("1", "2", runtime="").asks
    )
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=works))
    core.run_until_idle()
    wants = with_fields(works[0], application_id="other", allocation_key="wants")
    answer = core.simulate(si.AllocationRequest(rm_id=RM, asks=(wants,)))
    assert [(it.key, it.at_s) for it in answer.course.placed] == [("wants", 3 * 3_600.0)]
    assert len(answer.course.preempted) == 1


def limited(answer: Answer) -> list[str]:
    return [it for it in answer.assumptions if "time limit" in it or "not end" in it]


@both
def test_a_time_limit_ends_what_no_run_time_ends(topology: TopologyName) -> None:
    core = busy(topology)
    ask = with_fields(asks("k", runtime="10").asks[0], execution_timeout_milli_seconds=60_000)
    core.update_configuration(
        si.UpdateConfigurationRequest(rm_id=RM, config=CONFIG.replace("vcore: 4", "vcore: 8"))
    )
    undeclared = with_fields(ask, allocation_key="u", tags={})
    found = core.simulate(si.AllocationRequest(rm_id=RM, asks=(undeclared,)))
    line = "1 allocation that no run time ends runs to its time limit"
    assert limited(found) == [line]
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask,)))
    core.run_until_idle()
    core.advance_to(core.now_ns + 20 * SECOND)
    overdue = core.simulate()
    assert limited(overdue) == [line]
    assert [(it.key, it.at_s) for it in overdue.course.ended] == [("k", 40.0)]


def rotating(topology: TopologyName) -> VirtualCore:
    """Two gangs that no node has room for: each in turn is promised the quota, for ever."""
    core = VirtualCore(topology=topology).start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
    core.register_resource_manager(request, si.ResourceManagerCallback())
    core.update_node(node("n1", 1_000))
    for name in ("one", "two"):
        new = si.AddApplicationRequest(
            application_id=name, queue_name="root.a", ugi=si.UserGroupInformation(user="bob"),
            placeholder_ask=si.Resource.of({"vcore": 4_000}),
        )  # fmt: skip
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
        held = with_fields(
            asks("hold").asks[0], application_id=name, max_allocations=2, placeholder=True,
            task_group_name="g",
        )  # fmt: skip
        core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(held,)))
    core.run_until_idle()
    return core


@both
def test_an_answer_says_how_far_it_looked_at_what_is_tried_for_ever(
    topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = rotating(topology)
    answer = core.simulate()
    assert any("what comes later than 3600 s" in it for it in answer.assumptions)
    assert answer.course.has_more
    monkeypatch.setattr(run, "IDLE_MAX", 10)
    answer = core.simulate(until=1e9)
    assert (answer.course.is_cut, answer.course.has_more) == (True, True)
    assert answer.course.until_s < 1e9
    assert any(it.startswith("cut short") for it in lines_of(answer))


def test_a_wrong_answer_of_fits_is_called_by_its_name() -> None:
    class Asked(si.ResourceManagerCallback):
        def predicates(self, args: si.PredicatesArgs) -> str | None:  # noqa: ARG002 - of the interface
            return None

    core = VirtualCore().start()
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
    core.register_resource_manager(request, Asked())
    core.update_node(node("n1", 4_000))
    ugi = si.UserGroupInformation(user="ann")
    app = si.AddApplicationRequest(application_id="app", queue_name="root.a", ugi=ugi)
    new = si.ApplicationRequest(rm_id=RM, new=(app,))
    (wait,) = core.simulate(new, asks("1"), fits=lambda _, __: 7, until=0).course.waits  # type: ignore[arg-type, return-value]
    assert "fits returned 7: return None, or the reason as text" in wait.text


@both
def test_what_is_refused_is_one_difference(topology: TopologyName) -> None:
    core = busy(topology)
    ugi = si.UserGroupInformation(user="ann")
    app = si.AddApplicationRequest(application_id="new", queue_name="root.a", ugi=ugi)
    ask = with_fields(asks("k").asks[0], application_id="new")
    requests = (
        Change(si.ApplicationRequest(rm_id=RM, new=(app,)), 200),
        Change(si.AllocationRequest(rm_id=RM, asks=(ask,)), 200),
    )
    closed = CONFIG.replace('submitacl: "*"', 'submitacl: "nobody"')
    change = si.UpdateConfigurationRequest(rm_id=RM, config=closed)
    with_, without = core.simulate(change, *requests).course, core.simulate(*requests).course
    found = differences_of(with_, without)
    assert [(it.what, it.application, it.key, it.without_s) for it in found] == [
        ("refused", "new", "", None), ("refused", "new", "k", 200.0),
    ]  # fmt: skip
    assert {it.partition for it in found} == {"[rm-1]default"}
    back = differences_of(without, with_)
    assert [(it.what, it.key, it.with_s) for it in back] == [
        ("taken", "", None), ("taken", "k", 200.0),
    ]  # fmt: skip


@both
def test_a_manager_that_is_away_confirms_nothing(topology: TopologyName) -> None:
    core = busy(topology)
    config = CONFIG.replace("vcore: 4", "vcore: 6")
    core.update_configuration(si.UpdateConfigurationRequest(rm_id=RM, config=config))
    late = with_fields(asks("late", runtime="").asks[0], execution_timeout_milli_seconds=1_000)
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(late,)))
    core.update_allocation(asks("3"))
    core.run_until_idle()
    core.advance_to(core.now_ns + 2 * SECOND)
    assert "1 release under way is confirmed at once" in core.simulate(until=0).assumptions
    core.resource_manager_lost(RM)
    core.run_until_idle()
    assert not [it for it in core.simulate(until=0).assumptions if "confirm" in it]
    found = least_changes(core_state.state_of(core._simulator), Wanted((), (("app", "3"),)))
    assert ([it.kind for it in found.options], found.fits) == ([], False)
    assert "is away" in found.waits[0].text


@both
def test_what_ends_in_one_moment_is_counted(topology: TopologyName) -> None:
    core = busy(topology)
    together = "2 ends come in one moment with others: the core decides by all of them at once"
    assert together in core.simulate(asks("3")).assumptions
    assert together not in core.simulate(asks("3"), until=80).assumptions
