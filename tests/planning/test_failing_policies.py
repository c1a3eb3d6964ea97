"""A policy that fails stops nobody, wherever it decides and however it fails; operators hear of it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import ranges

from tests.helpers.support import APP, PARTITION, RM, Lab, ask
from yunikorn_actors import si
from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.policies import Hold, InvalidPolicy, Policies
from yunikorn_actors.values.tags import GPU, GPU_DEVICES

CONFIG = """
partitions:
  - name: default
    nodesortpolicy: {type: %s}
    queues:
      - name: root
        submitacl: "*"
        properties: {queue.sort.policy: %s}
        queues:
          - {name: default, properties: {application.sort.policy: %s}}
          - {name: other}
"""


def raising(error: BaseException) -> Callable[[], object]:
    def raise_it() -> object:
        raise error

    return raise_it


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no text for it")


class Panic(BaseException):
    """As extension modules raise it."""


class UnshowableError(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no text for it")


class Incomparable(float):
    def __lt__(self, _: object) -> bool:
        raise RuntimeError("does not compare")


async def never_awaited() -> int:
    return 1


class Counting:
    """Gives what is next: another kind than before."""

    def __init__(self) -> None:
        self.given = 0

    def __call__(self) -> object:
        self.given += 1
        return ("a",) if self.given % 2 else (1,)


WRONG: dict[str, Callable[[], Callable[[], object]]] = {
    "it raises": lambda: raising(RuntimeError("do not know")),
    "it divides by zero": lambda: raising(ZeroDivisionError()),
    "it recurses": lambda: raising(RecursionError()),
    "it exits": lambda: raising(SystemExit(3)),
    "it closes": lambda: raising(GeneratorExit()),
    "it panics": lambda: raising(Panic()),
    "it raises what has no text": lambda: raising(UnshowableError()),
    "nan": lambda: lambda: float("nan"),
    "nan within": lambda: lambda: (1, float("nan")),
    "none": lambda: lambda: None,
    "list": lambda: lambda: [1],
    "set": lambda: lambda: {1, 2},
    "generator": lambda: lambda: (i for i in range(2)),
    "coroutine": lambda: never_awaited,
    "complex": lambda: lambda: 1j,
    "bytes": lambda: lambda: b"1",
    "no text": lambda: Unshowable,
    "object": lambda: object,
    "kinds": Counting,
}
GOOD_FOR_KEYS: dict[str, Callable[[], object]] = {
    "incomparable number": lambda: Incomparable(1),
    "truth": lambda: True,
    "nested": lambda: (1, ("a", 2.5)),
    "infinite": lambda: float("-inf"),
}


def policy_with(method: str, give: Callable[[], object]) -> Any:
    """Make a class whose one method gives this, whatever it is given."""
    return type("Mine", (), {method: lambda _, *__: give()})


def lab_with(policy: Any, method: str, topology: Any, **options: Any) -> Lab:
    names = ("fair", "fair", "mine")
    if method == "queue_key":
        names = ("fair", "mine", "fifo")
    elif method in {"score", "devices"}:
        names = ("mine", "fair", "fifo")
    made = Policies({"mine": policy})
    return Lab(topology=topology, config=CONFIG % names, policies=made, **options)


def play(it: Lab) -> list[str]:
    """Let some wait, some run and some end; return what has run."""
    it.nodes(n=2, m=2)
    it.submit(APP, "app-2")
    it.submit("app-3", queue="root.other")
    ran = []
    for app in (APP, "app-2", "app-3"):
        it.ask(f"{app}.1", f"{app}.2", f"{app}.3", app=app)
    it.settle()
    while running := it.running():
        ran += running
        for key in running:
            it.release(key, app=key.partition(".")[0])
        it.settle()
    return ran


ALL = sorted(f"{app}.{number}" for app in (APP, "app-2", "app-3") for number in (1, 2, 3))


def told(it: Lab) -> list[str]:
    return [line for line in it.simulator.lines if "has failed and decides no more" in line]


@pytest.mark.parametrize(
    ("method", "topology"),
    ranges.one_each(
        ["application_key", "ask_key", "queue_key", "score", "may_start"], ["fused", "proposing"]
    ),
)
@pytest.mark.parametrize("wrong", WRONG)
def test_whatever_it_does_stops_nobody(wrong: str, method: str, topology: Any) -> None:
    is_right = method == "may_start" and wrong == "none"
    it = lab_with(policy_with(method, WRONG[wrong]()), method, topology)
    assert sorted(play(it)) == ALL
    assert len(told(it)) == (0 if is_right else 1), it.simulator.lines
    for line in told(it):
        assert "policy mine of" in line, method
        assert method in line


@pytest.mark.parametrize("method", ["application_key", "ask_key", "queue_key"])
@pytest.mark.parametrize("good", GOOD_FOR_KEYS)
def test_what_compares_is_a_key(good: str, method: str) -> None:
    it = lab_with(policy_with(method, GOOD_FOR_KEYS[good]), method, "proposing")
    assert sorted(play(it)) == ALL
    assert not told(it)


@pytest.mark.parametrize("topology", ["fused", "proposing"])
@pytest.mark.parametrize(
    "hold",
    [
        Hold("later", until_ns=float("nan")),
        Hold(7),
        Hold("x", until_ns="soon"),
        Hold("x", ends_pass=1),
        # A message can hold neither.
        Hold("wait \ud800"),
        Hold("x", until_ns=2**70),
    ],  # type: ignore[arg-type]
)
def test_a_hold_that_is_none_lets_everybody(hold: Hold, topology: Any) -> None:
    it = lab_with(policy_with("may_start", lambda: hold), "may_start", topology)
    assert sorted(play(it)) == ALL
    assert len(told(it)) == 1


@dataclass
class UnwritableGate:
    lock: Any = field(default_factory=threading.Lock)

    def may_start(self, *_: Any) -> None:
        return None

    def observe(self, fact: Any, now_ns: int) -> None:
        pass


class MadeOnce:
    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        if type(self).made > 2:
            raise RuntimeError("made once only")

    def application_key(self, _: Any) -> int:
        return 0

    def score(self, *_: Any) -> float:
        return 0.0


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_a_fold_that_cannot_be_written_down_is_refused_when_it_is_given(topology: Any) -> None:
    with pytest.raises(InvalidPolicy, match=r"what it keeps cannot be written down: .*lock"):
        lab_with(UnwritableGate, "may_start", topology)


@pytest.mark.parametrize("topology", ["fused", "proposing"])
@pytest.mark.parametrize("method", ["application_key", "score"])
def test_one_that_cannot_be_made_again_stops_nobody(method: str, topology: Any) -> None:
    MadeOnce.made = 0
    it = lab_with(MadeOnce, method, topology)
    assert sorted(play(it)) == ALL
    assert MadeOnce.made > 2, "vacuous"
    assert len(told(it)) == 1


@pytest.mark.parametrize("devices", [(1.5,), [0], ("a",), (-1,), (7,), 3])
def test_devices_that_are_none_are_chosen_by_the_core(devices: Any) -> None:
    class Mine:
        def score(self, *_: Any) -> float:
            return 0.0

        def devices(self, *_: Any) -> Any:
            return devices

    it = lab_with(Mine, "score", "proposing")
    size = si.Resource.of({"vcore": 4, GPU: 2000})
    node = si.NodeInfo(
        node_id="gpus",
        action=si.ActionFromRM.CREATE,
        schedulable_resource=size,
        attributes={GPU_DEVICES: "2"},
    )
    it.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
    it.submit(APP)
    it.request(asks=(ask("share", resource_ask=si.Resource.of({"vcore": 1, GPU: 500})),))
    it.settle()
    (found,) = it.state.applications[APP].allocations.values()
    assert found.devices == (0,)


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_operators_hear_of_it_by_event_and_health(topology: Any) -> None:
    policy = policy_with("application_key", raising(RuntimeError("do not know")))
    it = lab_with(policy, "application_key", topology)
    play(it)
    it.advance(10)
    (event,) = [record for record in it.rm.records if "the policy mine" in record.message]
    assert event.object_id == "root.default"
    assert event.message == (
        "the policy mine of queue root.default has failed and decides no more: "
        "application_key raised RuntimeError('do not know')"
    )
    faults = [check for check in health_of(it.simulator.state_dump()).checks if not check.succeeded]
    assert [check.name for check in faults] == ["Policies"]
    assert faults[0].diagnosis.startswith(f"{PARTITION}: mine of root.default: application_key")
    assert it.simulator.questions.counts().failed_policies == (faults[0].diagnosis,)


@pytest.mark.parametrize("method", ["application_key", "score"])
def test_another_name_ends_the_fault_and_the_same_one_tries_anew(method: str) -> None:
    failing = [True]

    def give() -> object:
        if failing[0]:
            raise RuntimeError("do not know")
        return 1

    it = lab_with(policy_with(method, give), method, "proposing")
    play(it)
    assert len(told(it)) == 1
    other = ("fair", "fair", "fifo")
    mine = ("mine", "fair", "fifo") if method == "score" else ("fair", "fair", "mine")
    it.configure(CONFIG % other)
    assert health_of(it.simulator.state_dump()).healthy
    for is_failing in (True, False):
        failing[0] = is_failing
        it.configure(CONFIG % mine)
        it.ask(f"again-{is_failing}")
        it.settle()
        assert health_of(it.simulator.state_dump()).healthy is not is_failing
        it.configure(CONFIG % other)
    assert len(told(it)) == 2


def test_one_failure_is_told_once_however_many_schedulers_plan() -> None:
    policy = policy_with("application_key", raising(RuntimeError("do not know")))
    it = lab_with(policy, "application_key", "proposing", schedulers=3)
    assert sorted(play(it)) == ALL
    assert len(told(it)) == 1


class OneAtATime:
    def may_start(self, _: Any, pool: Any) -> Hold | None:
        return Hold("comes behind what runs") if pool.running or pool.held else None


@pytest.mark.parametrize("topology", ["fused", "proposing"])
def test_passes_end_with_the_last_gated_leaf(topology: Any) -> None:
    it = lab_with(OneAtATime, "may_start", topology)
    it.nodes(n=1)
    it.submit(APP)
    it.ask("one", "two")
    it.settle()
    assert it.planner.gatekeeper.passes
    it.configure(CONFIG % ("fair", "fair", "fifo"))
    it.settle()
    assert not it.planner.gatekeeper.passes
    assert it.planner.gatekeeper.due_ns > it.simulator.now_ns
    it.nodes(m=1)
    it.settle()
    assert it.running() == ["one", "two"]


def test_what_a_policy_is_given_is_not_what_the_core_has() -> None:
    class Mutating:
        def ask_key(self, ask: Any) -> int:
            ask.size["vcore"] = 0
            ask.size["gpu"] = 7
            return 0

        def may_start(self, job: Any, _: Any) -> None:
            job.size.clear()

    it = lab_with(Mutating, "ask_key", "fused")
    it.nodes(n=2)
    it.submit(APP)
    it.ask("one", vcore=2)
    it.settle()
    (ask,) = it.state.applications[APP].asks.values()
    assert ask.spec.resource == {"vcore": 2}
    assert it.running() == ["one"]


class Unreadable:
    def application_key(self, _: Any) -> int:
        return 0

    @property
    def may_start(self) -> Any:
        raise RuntimeError("not now")


def test_attributes_that_raise_are_refused_at_once() -> None:
    with pytest.raises(InvalidPolicy, match="reading its methods raised RuntimeError"):
        Policies({"mine": Unreadable})
