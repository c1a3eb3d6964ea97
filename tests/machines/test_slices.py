"""Long work in slices: what others see of it, and what comes between two slices."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import ranges
from restarting import Restarted
from support import APP, CONFIG, PARTITION, RM, Lab, Recorder, ask, settled

from yunikorn_actors import si
from yunikorn_actors.config import ExtraConfig, parse_config
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import Effect, Log, Send
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.slices import LOOKED_AT_IN_ONE, Slices, Steps, drained
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, RM_PROXY, Delivery
from yunikorn_actors.messages.scheduling import (
    FactsAppended,
    MachineFailed,
    ProposeAllocations,
    ReportWaiting,
    RunCycle,
    RunSlice,
)
from yunikorn_actors.planning.stages.reporting import LOOKED_AT_MAX
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.partition import LongWorkKind
from yunikorn_actors.state.queues import QueueState

COUNT = 12
"""Asks that run, and as many that wait."""
SLICE_MAX = 2
WHOLE = Settings(slice_max=10**6)
SLICED = Settings(slice_max=SLICE_MAX)
GANG_S = 5
UPDATES = (rm.RMUpdateAllocation, rm.RMUpdateNode, rm.RMUpdateApplication)
EVERY = pytest.mark.parametrize("topology", TOPOLOGIES)

# -- the mechanism


class Piecework:
    """A job of so many pieces, which notes each."""

    def __init__(self, name: str, pieces: int, notes: list[str]) -> None:
        self.name, self.notes = name, notes
        self.steps: Steps = self._steps(pieces)

    def _steps(self, pieces: int) -> Iterator[int]:
        for _ in range(pieces):
            self.notes.append(self.name)
            yield 1

    def begin_slice(self, now_ns: int) -> None:
        self.notes.append(f"{self.name} at {now_ns}")

    def end_slice(self) -> list[Effect]:
        return [Log(text=self.name)]

    def pause(self) -> None:
        self.notes.append(f"{self.name} pauses")


def test_jobs_take_turns_and_what_concerns_one_waits_behind_it() -> None:
    notes: list[str] = []
    slices = Slices(CONTEXT, 1)
    again = Send(to=CONTEXT, message=RunSlice())

    def said(text: str) -> Callable[[int], list[Effect]]:
        return lambda _: [Log(text=text)]

    assert [Log(text="a"), again] == slices.do("a", lambda _: Piecework("a", 4, notes), 1)
    # One `RunSlice` is on its way, whoever it is for.
    assert [Log(text="b")] == slices.do("b", lambda _: Piecework("b", 2, notes), 1)
    assert [] == slices.do("a", said("behind a"), 1)
    assert [Log(text="c")] == slices.do("c", said("c"), 1)
    assert {"a": 1, "b": 0} == slices.canonical_state()
    went = [slices.go_on(now_ns) for now_ns in (2, 3, 4)]
    assert [[Log(text="a"), again], [Log(text="b"), again], [Log(text="a"), again]] == went[:3]
    assert [Log(text="behind a")] == slices.go_on(5) or slices.canonical_state()
    while slices.jobs:
        slices.go_on(6)
    assert {} == slices.canonical_state()
    assert notes.index("b pauses") < notes.index("a at 2")
    assert 4 == notes.count("a")
    assert 2 == notes.count("b")


# -- long work of Context


class Long(NamedTuple):
    """Something that takes several slices, and what must be true when it has been done."""

    act: Callable[[Lab], None]
    is_done: Callable[[Lab], bool]
    kind: LongWorkKind
    prepare: Callable[[Lab], None] = lambda _: None


def _fill(lab: Lab) -> None:
    lab.nodes(n1=COUNT, n2=1)
    lab.submit(APP, "other")
    lab.ask(*(f"runs-{n}" for n in range(COUNT)))
    lab.settle()
    lab.ask(*(f"waits-{n}" for n in range(COUNT)), vcore=99)
    lab.ask("other-runs", app="other")
    lab.settle()


def _gang(lab: Lab) -> None:
    """A gang that times out before it is complete."""
    amount = si.Resource.of({"vcore": 99 * COUNT})
    style = {"gang_scheduling_style": "Hard", "execution_timeout_milli_seconds": GANG_S * 1000}
    lab.submit("gang", placeholder_ask=amount, **style)
    members = {"placeholder": True, "task_group_name": "g"}
    lab.ask("ph", app="gang", **members)
    lab.ask(*(f"ph-{n}" for n in range(COUNT)), app="gang", vcore=99, **members)
    lab.settle()


def _roomy(lab: Lab) -> None:
    lab.nodes(n3=1)
    _gang(lab)


QUEUES = "".join(f"      - {{name: q{n}}}\n" for n in range(COUNT))
MANY_QUEUES = f"""
partitions:
  - name: default
    queues:
    - name: root
      submitacl: "*"
      queues:
      - {{name: default}}
{QUEUES}"""
MORE_PARTITIONS = MANY_QUEUES + MANY_QUEUES.partition("partitions:\n")[2].replace(
    "name: default\n    queues", "name: next\n    queues"
)
OTHER_PARTITION = MANY_QUEUES.replace("name: default\n    queues", "name: next\n    queues")


def _partitions(lab: Lab) -> list[PartitionContext]:
    return list(lab.context.partitions.values())


def _post_unregister(lab: Lab) -> None:
    lab.simulator._post("rm_proxy", rm.RMUnregistered(rm_id=RM), "unregister")


def _is_gone(lab: Lab) -> bool:
    return PARTITION not in lab.context.partitions and RM not in lab.registered


class SliceLab(Lab):
    @property
    def registered(self) -> list[str]:
        return [it.registration.rm_id for it in self.context.registered.managers]

    def until_slice(self, number: int) -> bool:
        """Run until this many slices are done and more are to come; False if there are not."""
        while number and self.simulator.step():
            last = self.simulator.last.message
            number -= isinstance(last, RunSlice)
        return not number and not self.context.is_at_rest


def _new(application_id: str) -> si.AddApplicationRequest:
    return si.AddApplicationRequest(
        application_id=application_id,
        queue_name="root.default",
        ugi=si.UserGroupInformation(user="al"),
    )


LONG = {
    "application": Long(
        lambda lab: lab.remove(APP),
        lambda lab: APP not in lab.state.applications,
        LongWorkKind.APPLICATION,
    ),
    "node": Long(
        lambda lab: lab.decommission("n1"),
        lambda lab: "n1" not in lab.state.nodes,
        LongWorkKind.NODE,
    ),
    "hard timeout": Long(
        lambda lab: lab.let_timers_fire(GANG_S),
        lambda lab: not any(it.remaining for it in _asks(lab, "gang")),
        LongWorkKind.TIMER,
        _roomy,
    ),
    "reload": Long(
        lambda lab: _post_config(lab, MANY_QUEUES),
        lambda lab: f"root.q{COUNT - 1}" in lab.state.queues,
        LongWorkKind.RELOAD,
    ),
    "partitions added": Long(
        lambda lab: _post_config(lab, MORE_PARTITIONS),
        lambda lab: any("root.q0" in it.state.queues for it in _partitions(lab)),
        LongWorkKind.RELOAD,
    ),
    "partition dropped": Long(
        lambda lab: _post_config(lab, OTHER_PARTITION),
        lambda lab: ["[rm-1]next"] == list(lab.context.partitions),
        LongWorkKind.RELOAD,
    ),
    "unregistered": Long(_post_unregister, _is_gone, LongWorkKind.MANAGER),
    "all released": Long(
        lambda lab: lab.request(
            releases=si.AllocationReleasesRequest(
                allocations_to_release=(si.AllocationRelease(application_id=APP),)
            )
        ),
        lambda lab: not lab.state.applications[APP].allocations,
        LongWorkKind.REQUEST,
    ),
    "many asks": Long(
        # Of different sizes: those of one size are added at once.
        lambda lab: lab.request(
            asks=tuple(ask(f"more-{n}", 98 + n, app="other") for n in range(COUNT))
        ),
        lambda lab: COUNT == sum(it.spec.key.startswith("more") for it in _asks(lab, "other")),
        LongWorkKind.REQUEST,
    ),
    "many applications": Long(
        lambda lab: lab.simulator.update_application(
            si.ApplicationRequest(rm_id=RM, new=tuple(_new(f"new-{n}") for n in range(COUNT)))
        ),
        lambda lab: f"new-{COUNT - 1}" in lab.state.applications,
        LongWorkKind.REQUEST,
    ),
}
each = pytest.mark.parametrize("name", LONG)
one_topology_each = pytest.mark.parametrize(
    ("name", "topology"), ranges.one_each(list(LONG), TOPOLOGIES)
)


def _asks(lab: Lab, app: str) -> list[Any]:
    found = lab.state.applications.get(app)
    return [] if found is None else list(found.asks.values())


def _post_config(lab: Lab, config: str) -> None:
    request = si.UpdateConfigurationRequest(rm_id=RM, config=config)
    message = rm.ConfigurationRequested(
        request=request,
        config=parse_config(config),
        extra=ExtraConfig(),
        reply_to="nobody",
    )
    lab.simulator._post("rm_proxy", message, "configure")


def begun(
    name: str, topology: TopologyName, settings: Settings = SLICED, seed: int = 0
) -> SliceLab:
    """Have everything there, and the long work asked for."""
    lab = SliceLab(topology=topology, settings=settings, seed=seed)
    _fill(lab)
    LONG[name].prepare(lab)
    lab.settle()
    lab.rm.heard.clear()
    LONG[name].act(lab)
    return lab


@EVERY
@each
def test_the_resource_manager_hears_the_same_however_many_slices(
    name: str, topology: TopologyName
) -> None:
    whole, sliced = begun(name, topology, WHOLE), begun(name, topology)
    whole.settle()
    assert whole.context.is_at_rest
    assert sliced.until_slice(2), "vacuous: it was done in two slices"
    sliced.settle()
    for lab in (whole, sliced):
        assert LONG[name].is_done(lab)
    assert whole.rm.heard == sliced.rm.heard
    assert [_settled(it.state) for it in whole.context.partitions.values()] == [
        _settled(it.state) for it in sliced.context.partitions.values()
    ]


def _settled(state: Any) -> Any:
    return settled(state)


@EVERY
@each
def test_no_handler_does_more_than_a_slice(name: str, topology: TopologyName) -> None:
    """A piece has few facts; what is told goes in parts."""
    lab = begun(name, topology)
    most = 0
    while lab.simulator.step():
        delivery = lab.simulator.last
        for effect in lab.simulator.effects:
            if delivery.mailbox == CONTEXT and isinstance(effect, Send):
                lists = [it for it in _fields(effect.message) if isinstance(it, tuple)]
                most = max([most, *map(len, lists)])
    # Of each piece a few facts, the mark, and its end.
    assert most <= 5 * (SLICE_MAX + 1)


def _fields(message: Any) -> list[Any]:
    return [getattr(message, field) for field in message.__struct_fields__]


class Orders(NamedTuple):
    """What comes between two slices, and what it must lead to in the end."""

    come: Callable[[SliceLab], None]
    check: Callable[[SliceLab, str], None]


def _late_ask(lab: SliceLab) -> None:
    lab.ask("late", app="other", vcore=97)


def _late_ask_came(lab: SliceLab, name: str) -> None:
    if name not in GONE:
        assert "late" in {it.spec.key for it in _asks(lab, "other")}


def _same_name(lab: SliceLab) -> None:
    lab.submit(APP)


def _name_follows(lab: SliceLab, name: str) -> None:
    """A new application of that name is taken only when the former one is gone."""
    if name in GONE:
        return
    answers = [line for line in lab.rm.told("application") if line[0] == APP]
    assert len(answers) == 1
    assert ("accepted" == answers[0][1]) is (name == "application")


def _register_anew(lab: SliceLab) -> None:
    request = si.RegisterResourceManagerRequest(rm_id=RM)
    message = rm.RegistrationRequested(
        request=request,
        config=parse_config(MANY_QUEUES),
        callback=f"rm:{RM}#99",
        capabilities=rm.Capabilities(),
        extra=ExtraConfig(),
        reply_to="nobody",
    )
    lab.simulator._open_callback(f"rm:{RM}#99", Recorder())
    lab.simulator._post("rm_proxy", message, "register")


def _is_clean(lab: SliceLab, _: str) -> None:
    state = lab.context.partitions[PARTITION].state
    assert not state.applications
    assert not state.nodes
    assert state.queue(f"root.q{COUNT - 1}")


def _lose(lab: SliceLab) -> None:
    lab.simulator._post("rm_proxy", rm.RMLost(rm_id=RM), "lose")


def _is_paused(lab: SliceLab, name: str) -> None:
    assert name == "unregistered" or all(
        it.state.suspended for it in lab.context.partitions.values()
    )


def _fail_scheduler(lab: SliceLab) -> None:
    for partition in lab.context.partitions.values():
        for address in partition.schedulers.values():
            failed = MachineFailed(address=address, failure="planted", legacy={})
            lab.simulator._post(CONTEXT, failed, "fail")


def _nothing(*_: object) -> None:
    """The default checkers judge it: replica and truth are alike at rest."""


BETWEEN = {
    "ask of the same": Orders(_late_ask, _late_ask_came),
    "application of the same name": Orders(_same_name, _name_follows),
    "reload": Orders(lambda lab: _post_config(lab, MANY_QUEUES), _nothing),
    "unregistered": Orders(_post_unregister, lambda lab, _: _assert(_is_gone(lab))),
    "registered anew": Orders(_register_anew, _is_clean),
    "lost": Orders(_lose, _is_paused),
    "scheduler fails": Orders(_fail_scheduler, _nothing),
    "timers": Orders(lambda lab: _pass(lab, 2 * GANG_S), _nothing),
    "a cycle": Orders(lambda lab: lab.ask("small", app="other"), _nothing),
    "a dump": Orders(lambda lab: _assert(lab.context.canonical_state()["long_work"]), _nothing),
}
UNDOES = {"application": ("application of the same name",), "partition dropped": ("reload",)}
"""What comes behind it and undoes it."""
GONE = {"unregistered", "partition dropped"}


def _assert(value: object) -> None:
    assert value


def _pass(lab: SliceLab, seconds: int) -> None:
    lab.simulator.now_ns += seconds * 1_000_000_000
    lab.simulator._fire_due()


@pytest.mark.parametrize(
    ("topology", "stride"),
    [
        ("proposing", 32),
        *(pytest.param(it, 1, id=f"{it}, all", marks=pytest.mark.slow) for it in TOPOLOGIES),
    ],
)
@pytest.mark.parametrize("between", BETWEEN)
@each
def test_what_comes_between_two_slices_is_handled_behind_them(
    name: str, between: str, topology: TopologyName, stride: int
) -> None:
    """It comes before the first slice, and before each further one or a few of them."""
    number, came = 0, 0
    while True:
        lab = begun(name, topology)
        if number == 0:
            _until_context_is_busy(lab)
        elif not lab.until_slice(number):
            break
        assert not lab.context.is_at_rest
        BETWEEN[between].come(lab)
        came += 1
        lab.settle()
        assert lab.context.is_at_rest
        if between not in UNDOES.get(name, ()) and between not in {
            "unregistered",
            "registered anew",
        }:
            assert LONG[name].is_done(lab)
        BETWEEN[between].check(lab, name)
        number += stride if number else 1
    assert came > 1, "vacuous: it never came between two slices"


def _until_context_is_busy(lab: SliceLab) -> None:
    while lab.context.is_at_rest:
        assert lab.simulator.step(), "vacuous: it was no long work"


@one_topology_each
@ranges.seeds(19, usual=3)
def test_nothing_is_decided_between_two_slices(
    name: str, topology: TopologyName, seeds: range
) -> None:
    """Proposals wait, and what they are about is looked at when the work is done."""
    for seed in seeds:
        lab = begun(name, topology, seed=seed)
        lab.ask("small", app="other")
        decided: list[int] = []
        while lab.simulator.step():
            delivery: Delivery = lab.simulator.last
            if isinstance(delivery.message, ProposeAllocations) and not lab.context.is_at_rest:
                decided.extend(
                    len(it.message.facts)
                    for it in lab.simulator.effects
                    if isinstance(it, Send)
                    and it.to == EVENT_PUBLISHER
                    and isinstance(it.message, FactsAppended)
                )
        assert not decided
        assert LONG[name].is_done(lab)


@one_topology_each
def test_a_core_that_ends_between_two_slices_goes_on_with_the_work(
    name: str, topology: TopologyName
) -> None:
    number = 1
    while True:
        lab = begun(name, topology)
        if not lab.until_slice(number):
            break
        marks = [it.state.long_work for it in lab.context.partitions.values()]
        again = Restarted(lab, topology, SLICED)
        assert all(it.state.long_work is None for it in again.context.partitions.values())
        if any(mark is not None and mark.kind is LONG[name].kind for mark in marks):
            assert LONG[name].kind is LongWorkKind.REQUEST or _is_done_again(name, again)
        number += 1
    assert number > 2, "vacuous: the core never ended between two slices"


def _post_admin_config(lab: Lab, config: str) -> None:
    message = rm.AdminConfigUpdate(config=parse_config(config), reply_to="nobody")
    lab.simulator._post(CONTEXT, message, "configure")


@EVERY
def test_a_core_that_ends_in_a_reload_that_was_called_off_goes_back(
    topology: TopologyName,
) -> None:
    """Then the configuration that holds is the one of before, and the partitions are not."""
    number, half_done = 1, 0
    while True:
        lab = SliceLab(topology=topology, settings=SLICED, config="")
        _post_admin_config(lab, CONFIG)
        lab.settle()
        before = [sorted(it.state.queues) for it in _partitions(lab)]
        _post_admin_config(lab, MORE_PARTITIONS)
        if not lab.until_slice(number):
            break
        _post_admin_config(lab, CONFIG)
        while lab.context.registry.admin != parse_config(CONFIG):
            assert lab.simulator.step()
        half_done += any(it.state.long_work is not None for it in _partitions(lab))
        again = Restarted(lab, topology, SLICED)
        assert before == [
            sorted(path for path, it in state.queues.items() if it.state is QueueState.ACTIVE)
            for state in (it.state for it in _partitions(again))
        ]
        number += 1
    assert half_done > 1, "vacuous: no reload was half done"


def _resuming(lab: Lab) -> None:
    """The time of a soft gang is up, and what it has is asked back."""
    amount = si.Resource.of({"vcore": 99})
    style = {"gang_scheduling_style": "Soft", "execution_timeout_milli_seconds": GANG_S * 1000}
    lab.nodes(n3=COUNT)
    lab.submit("gang", placeholder_ask=amount, **style)
    members = {"placeholder": True, "task_group_name": "g"}
    lab.ask(*(f"ph-{n}" for n in range(COUNT)), app="gang", **members)
    lab.settle()
    lab.let_timers_fire(GANG_S)
    lab.settle()
    assert lab.state.applications["gang"].state is ApplicationState.RESUMING


@EVERY
def test_a_core_that_ends_before_the_state_has_followed_lets_it_follow(
    topology: TopologyName,
) -> None:
    number, followed = 1, 0
    gone = si.AllocationRelease(application_id="gang", termination_type=si.TerminationType.TIMEOUT)
    while True:
        lab = SliceLab(topology=topology, settings=SLICED)
        _fill(lab)
        _resuming(lab)
        lab.request(releases=si.AllocationReleasesRequest(allocations_to_release=(gone,)))
        if not lab.until_slice(number):
            break
        gang = lab.state.applications["gang"]
        followed += gang.state is ApplicationState.RESUMING and not gang.allocations
        gang = Restarted(lab, topology).state.applications["gang"]
        assert gang.allocations or gang.state is not ApplicationState.RESUMING
        number += 1
    assert followed, "vacuous: the state never followed in a slice of its own"


def _is_done_again(name: str, again: Restarted) -> bool:
    if name == "unregistered":
        return not again.context.partitions and not again.context.registered.managers
    return LONG[name].is_done(again)


def test_another_resource_manager_is_handled_between_two_slices() -> None:
    lab = SliceLab(settings=SLICED)
    _fill(lab)
    other = Recorder()
    request = si.RegisterResourceManagerRequest(rm_id="rm-2")
    lab.simulator.register_resource_manager(request, other)
    lab.settle()
    _post_unregister(lab)
    _until_context_is_busy(lab)
    lab.simulator.update_application(si.ApplicationRequest(rm_id="rm-2", new=(_new("theirs"),)))
    while not other.told("application"):
        assert lab.simulator.step()
    assert not lab.context.is_at_rest, "it waited until the other one's work was done"
    lab.settle()
    assert _is_gone(lab)


def test_rm_proxy_translates_a_long_request_in_slices_and_keeps_the_order() -> None:
    """What the same resource manager sends waits behind it; another one does not wait."""
    lab = SliceLab(settings=SLICED)
    _fill(lab)
    other = Recorder()
    lab.simulator.register_resource_manager(si.RegisterResourceManagerRequest(rm_id="rm-2"), other)
    lab.settle()
    many = [f"many-{n}" for n in range(200)]
    lab.ask(*many, vcore=99)
    lab.ask("behind", vcore=99)
    lab.decommission("n2")
    lab.remove(APP)
    lab.simulator.update_application(si.ApplicationRequest(rm_id="rm-2", new=(_new("theirs"),)))
    slices, came = 0, []
    while lab.simulator.step():
        last = lab.simulator.last
        slices += last.mailbox == RM_PROXY and isinstance(last.message, RunSlice)
        if last.mailbox == CONTEXT and isinstance(last.message, UPDATES):
            came.append(last.message)
    assert slices >= 200 / LOOKED_AT_IN_ONE / (SLICE_MAX + 1)
    own = [it for it in came if it.rm_id == RM]
    assert [type(it) for it in own] == [*[rm.RMUpdateAllocation] * 2, *UPDATES[1:]]
    assert [200, 1] == [len(it.asks) for it in own if isinstance(it, rm.RMUpdateAllocation)]
    assert came[0].rm_id == "rm-2", "it waited until the request of the other was translated"


def test_work_of_one_slice_sends_nothing_to_itself() -> None:
    lab = begun("application", "proposing", WHOLE)
    seen: list[type] = []
    while lab.simulator.step():
        seen.append(type(lab.simulator.last.message))
    assert RunSlice not in seen


def test_what_is_drained_is_let_go_one_by_one() -> None:
    """A million asks that are freed at the end would be one long piece."""

    class Thing:
        alive = 0

        def __init__(self) -> None:
            Thing.alive += 1

        def __del__(self) -> None:
            Thing.alive -= 1

    things = {number: Thing() for number in range(9)}
    left = []
    for number, thing in enumerate(drained(deque(things.values()))):
        del things[number], thing
        left.append(Thing.alive)
    assert sorted(left, reverse=True) == left
    assert left[0] > left[4] > left[-1]


@EVERY
def test_one_plan_says_of_so_many_asks_only_why_they_wait(topology: TopologyName) -> None:
    """The others follow in plans of their own, and nobody is forgotten."""
    lab = SliceLab(topology=topology)
    lab.nodes(n1=1)
    lab.submit(APP)
    count = 2 * LOOKED_AT_MAX + 1
    lab.ask(*(f"waits-{n}" for n in range(count)), vcore=99)
    most = cycles = 0
    while lab.simulator.step():
        message = lab.simulator.last.message
        cycles += isinstance(message, RunCycle)
        if isinstance(message, ReportWaiting):
            most = max(most, len(message.observations))
    assert most <= LOOKED_AT_MAX
    assert cycles > count // LOOKED_AT_MAX
    assert all(it.shortage is not None for it in _asks(lab, APP))
    assert count == len(lab.waiting())
