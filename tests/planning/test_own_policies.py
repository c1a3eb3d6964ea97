"""Policies of a program's own: by name, in each place, and what becomes of one that fails."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.helpers.support import RM, Lab, Recorder, ask
from yunikorn_actors import si
from yunikorn_actors.config import ConfigError
from yunikorn_actors.policies import Hold, InvalidPolicy, Policies, Started

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
            properties: {application.sort.policy: %s}
"""
TAGS = {"short": "5", "long": "500", "middle": "50"}


class LongestFirst:
    reads = ("runtime_ns",)

    def application_key(self, app: Any) -> int:
        return -app.runtime_ns


@dataclass
class Counting:
    """A strict order whose key reads nothing that changes, and a gate, so all are ordered often."""

    asked: list[str] = field(default_factory=list)
    passes: int = 0

    def application_key(self, app: Any) -> int:
        self.asked.append(app.id)
        return int(app.submitted_ns)

    def may_start(self, job: Any, pool: Any) -> Hold | None:
        self.passes += 1
        return Hold(f"{job.id} comes behind what runs") if pool.running else None


class ByName:
    def ask_key(self, ask: Any) -> str:
        return str(ask.id)


class OneAtATime:
    def may_start(self, job: Any, pool: Any) -> Hold | None:
        return Hold(f"{job.id} comes behind what runs") if pool.running else None


class Raising:
    def application_key(self, app: Any) -> int:
        raise RuntimeError(f"no key for {app.id}")


class Mixed:
    def application_key(self, app: Any) -> object:
        return "short" if app.id == "short" else 7


class RaisingGate:
    def may_start(self, job: Any, pool: Any) -> Hold | None:
        raise RuntimeError(f"do not know about {job.id} in {pool.queue}")


class Fullest:
    """A node score: the least left over of what is asked for."""

    def score(self, node: Any, shape: Any) -> float:
        return float(sum(node.free.get(kind, 0) - size for kind, size in shape.items()))


@dataclass
class FewestRunning:
    """A fold in an order: the user with the fewest jobs first."""

    reads = ("state",)
    running: dict[str, int] = field(default_factory=dict)

    def application_key(self, app: Any) -> int:
        return self.running.get(app.user, 0)

    def observe(self, fact: Any, now_ns: int) -> None:
        if isinstance(fact, Started):
            self.running[fact.job.user] = self.running.get(fact.job.user, 0) + (now_ns > 0)


class RaisingScore:
    def score(self, node: Any, shape: Any) -> float:
        raise RuntimeError(f"do not know {node.id} for {shape}")


@dataclass
class RaisingFold:
    seen: int = 0

    def application_key(self, app: Any) -> int:
        return app.submitted_ns + self.seen

    def observe(self, fact: Any, now_ns: int) -> None:
        raise RuntimeError(f"do not know {fact} of {now_ns}")


def lab(policy: Any, topology: Any = "proposing", name: str = "mine", **options: Any) -> Lab:
    made = Policies({"mine": policy})
    return Lab(topology=topology, config=CONFIG % name, policies=made, **options)


def submit(it: Lab) -> None:
    """Three applications at once, and room for one at a time."""
    it.nodes(n=1)
    it.submit(*TAGS)
    asks = (
        ask(name, app=name, tags={"yunikorn-actors/runtime": runtime})
        for name, runtime in TAGS.items()
    )
    it.request(asks=tuple(asks))
    it.settle()


def order(it: Lab) -> list[str]:
    """End what runs again and again; return what ran, in order."""
    submit(it)
    ran = []
    while running := it.running():
        ran += running
        it.release(*running, app=running[0])
        it.settle()
    return ran


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_an_order_of_ones_own_goes_by_what_it_reads(topology: Any) -> None:
    assert order(lab(LongestFirst, topology)) == ["long", "middle", "short"]


@pytest.mark.parametrize("topology", ["fused", "proposing"])
@pytest.mark.parametrize(
    "text", ["soon", "-5", "nan", "-inf", "inf", "1e300", "9e9999", " ", "1e10"]
)
def test_a_run_time_that_is_none_is_as_long_as_can_be(topology: Any, text: str) -> None:
    """It ended the core: infinity is no whole number of nanoseconds."""
    it = lab(LongestFirst, topology)
    it.nodes(n=1)
    it.submit("short", "long")
    times = {"short": "1", "long": text}
    asks = (ask(it, app=it, tags={"yunikorn-actors/runtime": tag}) for it, tag in times.items())
    it.request(asks=tuple(asks))
    it.settle()
    assert ["long"] == it.running()


def test_without_a_policy_the_first_is_first() -> None:
    assert order(lab(LongestFirst, name="fifo")) == ["short", "long", "middle"]


def test_an_order_of_asks() -> None:
    it = lab(ByName)
    it.nodes(n=1)
    it.submit("app-1")
    it.ask("c", "a", "b")
    it.settle()
    assert it.running() == ["a"]


def test_a_gate_holds_what_has_room_and_explain_says_so() -> None:
    it = lab(OneAtATime)
    it.nodes(n=5)
    it.submit("app-1")
    it.ask("one", "two")
    it.settle()
    assert it.running() == ["one"]
    why = it.simulator.explain("app-1", "two", partition="[rm-1]default")
    assert why.obstacle.cause == "POLICY"
    assert why.obstacle.text == "mine lets it wait: app-1/two comes behind what runs"
    it.release("one")
    it.settle()
    assert it.running() == ["two"]


class Hearing(Recorder):
    """Is told why asks wait."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[tuple[str, str]] = []

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.reasons.append((request.allocation_key, request.reason))


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_a_hold_that_ends_the_pass_is_the_answer_for_all_behind(topology: Any) -> None:
    asked: list[str] = []

    class Closed:
        def may_start(self, job: Any, pool: Any) -> Hold | None:
            asked.append(job.id)
            reason = f"{pool.running[0].size} runs" if pool.running else ""
            return Hold(reason, ends_pass=True) if reason else None

    rm = Hearing()
    it = lab(Closed, topology, rm=rm)
    it.nodes(n=3)
    it.submit("app-1")
    it.submit("gang", placeholder_ask=si.Resource.of({"vcore": 2}))
    it.request(asks=(*(ask(key) for key in ("one", "two", "three")), ask("large", vcore=4)))
    it.request(asks=tuple(ask(k, app="gang", placeholder=True, task_group_name="g") for k in "ab"))
    it.settle()
    assert it.running() == ["one"]
    asked.clear()
    it.node("n", si.ActionFromRM.UPDATE, 10)
    it.settle()
    first = asked[0]
    assert set(asked) == {first}, asked
    waits = {"two": "app-1", "three": "app-1", "large": "app-1", "a": "gang", "b": "gang"}
    for key, app in waits.items():
        why = it.simulator.explain(app, key, partition="[rm-1]default")
        assert why.obstacle.text == "mine lets it wait: {'vcore': 1} runs", key
        told = {reason for name, reason in rm.reasons if name == key}
        assert told == {"{'vcore': 1} runs"}, key
    it.release("one")
    it.settle()
    assert len(it.running()) == 1


@pytest.mark.parametrize("policy", [Raising, Mixed, RaisingGate, RaisingFold])
@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_one_that_fails_stops_nobody(policy: Any, topology: Any) -> None:
    it = lab(policy, topology)
    assert sorted(order(it)) == sorted(TAGS)
    told = [line for line in it.simulator.lines if "has failed and decides no more" in line]
    assert len(told) == 1, it.simulator.lines


class MixedBeside(Mixed):
    """Its asks compare, its applications do not."""

    def ask_key(self, _: Any) -> object:
        return 0


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_the_keys_of_each_method_have_to_compare(topology: Any) -> None:
    it = lab(MixedBeside, topology)
    assert sorted(order(it)) == sorted(TAGS)
    told = [line for line in it.simulator.lines if "keys that do not compare" in line]
    assert len(told) == 1, it.simulator.lines


NODES = """
partitions:
  - name: default
    nodesortpolicy: {type: mine}
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_what_a_policy_remembers_moves_those_that_wait(topology: Any) -> None:
    it = lab(FewestRunning, topology)
    it.nodes(n=1)
    it.submit("ann-1", "ann-2", "ann-3", user="ann")
    it.submit("bob-1", user="bob")
    names = ("ann-1", "ann-2", "ann-3", "bob-1")
    it.request(asks=tuple(ask(name, app=name) for name in names))
    it.settle()
    ran = []
    while running := it.running():
        ran += running
        it.release(*running, app=running[0])
        it.settle()
    assert ran == ["ann-1", "bob-1", "ann-2", "ann-3"]
    truth = it.state.folds.image()
    assert truth["root.default"][1]["running"] == {"ann": 3, "bob": 1}
    for each in it.schedulers if topology == "proposing" else ():
        assert each.replica.folds.image() == truth


def nodes_of(it: Lab) -> dict[str, str]:
    found = it.state.applications["app-1"].allocations.values()
    return {each.spec.key: each.node_id for each in found}


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_a_node_score_is_asked_for_each_shape(topology: Any) -> None:
    it = Lab(topology=topology, config=NODES, policies=Policies({"mine": Fullest}))
    it.nodes(large=10, small=3, middle=5)
    it.submit("app-1")
    it.ask("a", vcore=2)
    it.ask("b", vcore=4)
    it.ask("c", vcore=1)
    it.settle()
    assert nodes_of(it) == {"a": "small", "b": "middle", "c": "middle"}
    it.ask("d", vcore=6)
    it.settle()
    assert nodes_of(it)["d"] == "large"


def test_the_scores_of_a_size_outlive_the_last_ask_of_it() -> None:
    """One ask at a time, as most come: else each would have every node scored."""
    asked: list[str] = []

    class Counting(Fullest):
        def score(self, node: Any, shape: Any) -> float:
            asked.append(node.id)
            return super().score(node, shape)

    it = Lab(config=NODES, policies=Policies({"mine": Counting}))
    it.nodes(**{f"n{number}": 10 for number in range(50)})
    it.submit("app-1")
    it.ask("first", vcore=1)
    it.settle()
    assert len(asked) >= 50
    asked.clear()
    it.ask("second", vcore=1)
    it.settle()
    assert it.running() == ["first", "second"]
    assert len(asked) <= 3, asked


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_a_node_score_goes_by_attributes_that_were_replaced(topology: Any) -> None:
    """The second ask is of a size for which all nodes have a score already."""

    class ZoneFirst:
        def score(self, node: Any, shape: Any) -> float:  # noqa: ARG002
            return float(node.attributes.get("zone") != "a")

    it = Lab(topology=topology, config=NODES, policies=Policies({"mine": ZoneFirst}))
    it.nodes(n1=10, n2=10)
    it.submit("app-1")
    it.ask("a", vcore=1)
    it.settle()
    action, zone = si.ActionFromRM.UPDATE, {"zone": "a"}
    info = si.NodeInfo(node_id="n2", action=action, attributes=zone)
    it.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(info,)))
    it.settle()
    it.ask("b", vcore=1)
    it.settle()
    assert nodes_of(it) == {"a": "n1", "b": "n2"}


def test_a_node_score_that_raises_stops_nobody() -> None:
    it = Lab(config=NODES, policies=Policies({"mine": RaisingScore}))
    it.nodes(a=2, b=2)
    it.submit("app-1")
    it.ask("a", vcore=2)
    it.ask("b", vcore=2)
    it.settle()
    it.ask("c", vcore=2)
    it.settle()
    assert it.running() == ["a", "b"]
    told = [line for line in it.simulator.lines if "the policy mine of the nodes" in line]
    assert len(told) == 1, it.simulator.lines


def test_a_policy_may_come_and_go_with_the_configuration() -> None:
    it = lab(OneAtATime)
    it.nodes(n=5)
    it.submit("app-1")
    it.ask("one", "two", "three")
    it.settle()
    assert it.running() == ["one"]
    it.configure(CONFIG % "fifo")
    it.settle()
    assert it.running() == ["one", "three", "two"]
    it.configure(CONFIG % "mine")
    it.ask("four")
    it.settle()
    assert it.waiting() == ["four"]


def test_where_policies_are_given_an_unknown_name_is_refused_with_the_list() -> None:
    with pytest.raises(ConfigError, match=r"'other' is no value.*or a policy: .*mine"):
        lab(LongestFirst, name="other")


@pytest.mark.parametrize("bad", [7, object, lambda: 1 / 0])
def test_what_is_no_policy_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidPolicy, match="policy 'mine'"):
        Policies({"mine": bad})


def test_a_recording_has_the_digest_of_each() -> None:
    first, second = Policies({"mine": LongestFirst}), Policies({"mine": OneAtATime})
    assert first.digests["mine"] != second.digests["mine"]
    assert first.digests == Policies({"mine": LongestFirst}).digests


class NoGangs(LongestFirst):
    takes_gangs = False


@pytest.mark.parametrize("topology", ["fused", "proposing"])
@pytest.mark.parametrize(("policy", "takes"), [(NoGangs, False), (LongestFirst, True)])
def test_an_order_says_whether_its_leaf_takes_gangs(
    policy: Any, takes: bool, topology: Any
) -> None:
    it = lab(policy, topology)
    it.nodes(n=4)
    it.submit("gang", placeholder_ask=si.Resource.of({"vcore": 2}))
    it.submit("single")
    it.settle()
    told = dict(it.rm.told("application"))
    assert told["single"] == "accepted"
    if takes:
        assert told["gang"] == "accepted"
        return
    assert "cannot run application gang with task group request: unsupported sort" in told["gang"]
    it.ask("late", app="single", placeholder=True, task_group_name="team")
    it.settle()
    ((key, reason),) = it.rm.told("rejected")
    assert key == "late"
    assert "unsupported sort type" in reason


def test_a_key_that_reads_nothing_that_changes_is_not_asked_for_in_each_pass() -> None:
    policy = Counting()
    it = lab(lambda: policy)
    it.nodes(n=30)
    for number in range(20):
        it.submit(f"a-{number}")
        it.request(asks=(ask(f"a-{number}", app=f"a-{number}"),))
        it.settle()
    # Each is held anew in every pass, beside the one that runs.
    assert policy.passes > 100
    assert len(policy.asked) <= 20 * 3


@pytest.mark.parametrize("asks", [3, 30])
def test_a_key_by_what_waits_is_asked_for_once_however_many_asks_change(asks: int) -> None:
    asked: list[str] = []

    class Noting(LongestFirst):
        def application_key(self, app: Any) -> int:
            asked.append(app.id)
            return super().application_key(app)

    it = lab(Noting)
    it.nodes(n=1)
    it.submit("app-1")
    it.ask(*(f"ask-{number}" for number in range(asks)))
    it.settle()
    asked.clear()
    tags = {"yunikorn-actors/runtime": "60"}
    it.request(asks=tuple(ask(f"late-{n}", app="app-1", tags=tags) for n in range(asks)))
    it.settle()
    assert asked == ["app-1"]


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_a_score_sees_a_node_as_it_is_when_it_has_another_size(topology: Any) -> None:
    """What it sees is kept as long as the node is the same."""
    it = Lab(topology=topology, config=NODES, policies=Policies({"mine": Fullest}))
    it.nodes(small=3, large=10)
    it.submit("app-1")
    it.ask("a", vcore=2)
    it.settle()
    it.node("small", si.ActionFromRM.UPDATE, 20)
    it.ask("b", vcore=2)
    it.settle()
    assert nodes_of(it) == {"a": "small", "b": "large"}
    it.decommission("small")
    it.settle()
    it.nodes(small=4)
    it.ask("c", vcore=2)
    it.settle()
    assert nodes_of(it)["c"] == "small"


GROUPS = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        limits: [{limit: one, groups: [%s], maxresources: {vcore: 100}}]
        queues:
          - name: default
            properties: {application.sort.policy: mine}
"""


class StaffFirst:
    """Its key reads nothing that changes while an application waits, but for a reload."""

    def application_key(self, app: Any) -> bool:
        return bool(app.group != "staff")


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_a_group_that_counts_no_more_makes_another_key(topology: Any) -> None:
    it = Lab(topology=topology, config=GROUPS % "staff", policies=Policies({"mine": StaffFirst}))
    for name, groups in (("first", ()), ("staff", ("staff",))):
        it.submit(name, groups=groups)
        it.ask(name, app=name)
    it.settle()
    it.configure(GROUPS % "others")
    it.settle()
    it.nodes(n=1)
    it.settle()
    assert it.running() == ["first"]


class LargeForStaff:
    """Staff have their largest ask first, others their smallest."""

    def ask_key(self, ask: Any) -> int:
        size: int = ask.size["vcore"]
        return -size if ask.group == "staff" else size


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_a_group_that_counts_no_more_orders_the_asks_anew(topology: Any) -> None:
    mine = Policies({"mine": LargeForStaff})
    it = Lab(topology=topology, config=GROUPS % "staff", policies=mine)
    it.submit("app", groups=("staff",))
    it.ask("small", app="app", vcore=1)
    it.ask("large", app="app", vcore=2)
    it.settle()
    it.configure(GROUPS % "others")
    it.settle()
    it.nodes(n=2)
    it.settle()
    assert it.running() == ["small"]


class Largest:
    """Its key has a sense only while something waits."""

    reads = ("size",)

    def application_key(self, app: Any) -> int:
        return -int(app.size["vcore"])


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_no_key_is_asked_of_what_has_nothing_that_waits(topology: Any) -> None:
    """Neither for a question, nor for a place among those that a maximum keeps from running."""
    of_jobs = "properties: {application.sort.policy"
    config = GROUPS.replace(of_jobs, f"maxapplications: 1\n            {of_jobs}")
    it = Lab(topology=topology, config=config % "staff", policies=Policies({"mine": Largest}))
    it.nodes(n=1)
    for name in ("runs", "blocked", "waits"):
        it.submit(name, groups=("staff",))
        it.ask(name, app=name)
        it.settle()
    assert it.running() == ["runs"]
    it.withdraw("blocked", app="blocked")
    it.configure(config % "others")
    it.settle()
    assert it.simulator.explain("waits", "waits").position == 1
    failed = [it.message for it in it.simulator.events().records if "has failed" in it.message]
    assert failed == []
