"""The core in virtual time: the calls of every core, and time that only the program moves."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from core_parts import OF_A_FRONT
from support import APP, CONFIG, QUEUE, RM, Recorder

from yunikorn_actors import (
    CallbackRaised,
    CoreFailed,
    CoreStopped,
    InvalidRequest,
    Scheduler,
    Settings,
    VirtualCore,
    WouldBlock,
    si,
)
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.runtime.core_api import Core
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

SECOND = 1_000_000_000


class Worker(Recorder):
    """Ends each allocation ten seconds after it came, by a plan that it keeps."""

    def __init__(self, core: VirtualCore) -> None:
        super().__init__()
        self.core = core
        self.ends: dict[str, int] = {}
        self.began: dict[str, int] = {}

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        for new in response.new:
            self.began[new.allocation_key] = self.core.now_ns
            self.ends[new.uuid] = self.core.now_ns + 10 * SECOND


def setup(core: VirtualCore, callback: si.ResourceManagerCallback, vcore: int = 1_000) -> None:
    request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
    core.register_resource_manager(request, callback)
    room = si.Resource.of({"vcore": vcore})
    node = si.NodeInfo(node_id="n", action=si.ActionFromRM.CREATE, schedulable_resource=room)
    core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
    ugi = si.UserGroupInformation(user="ann", groups=("staff",))
    app = si.AddApplicationRequest(application_id=APP, queue_name=QUEUE, ugi=ugi)
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))


def ask(core: VirtualCore, *keys: str) -> None:
    room = si.Resource.of({"vcore": 1_000})
    asks = tuple(
        si.AllocationAsk(application_id=APP, allocation_key=it, resource_ask=room) for it in keys
    )
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))


def work(core: VirtualCore, worker: Worker) -> None:
    """Run three asks one after the other on a node that has room for one."""
    setup(core, worker)
    ask(core, "a", "b", "c")
    core.run_until_idle()
    while worker.ends:
        uuid = min(worker.ends, key=worker.ends.__getitem__)
        core.advance_to(worker.ends.pop(uuid))
        ended = si.AllocationRelease(application_id=APP, uuid=uuid)
        releases = si.AllocationReleasesRequest(allocations_to_release=(ended,))
        core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
        core.run_until_idle()


def worked(**options: Any) -> tuple[VirtualCore, Worker]:
    core = VirtualCore(**options)
    worker = Worker(core)
    with core:
        work(core, worker)
    return core, worker


BUILT_UPON = OF_A_FRONT | {"has_room", "when_over", "open_feed", "check_running"}
"""For what is built upon a core on threads, as a front is."""


def test_it_has_the_calls_of_every_core() -> None:
    named = dict.fromkeys(it for kind in Core.__mro__[:-1] for it in vars(kind))
    calls = [it for it in named if not it.startswith("_") and it not in BUILT_UPON]
    assert "update_allocation" in calls
    for name in calls:
        theirs, ours = getattr(Core, name), getattr(VirtualCore, name)
        if not isinstance(theirs, property):
            assert [*inspect.signature(theirs).parameters] == [*inspect.signature(ours).parameters]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_work_is_done_in_virtual_time(topology: TopologyName) -> None:
    core, worker = worked(topology=topology, checked=True, start_ns=0)
    assert {"a": 0, "b": 10 * SECOND, "c": 20 * SECOND} == worker.began
    assert 30 * SECOND == core.now_ns


def test_nothing_is_handled_before_the_program_lets_it() -> None:
    with VirtualCore() as core:
        worker = Worker(core)
        setup(core, worker)
        before = core.handled
        ask(core, "a")
        assert core.now_ns == core.next_event_ns
        assert before == core.handled
        assert not worker.began
        core.run_until_idle()
        assert {"a"} == {*worker.began}


def test_it_says_when_the_next_timer_is_due() -> None:
    with VirtualCore(settings=Settings(completing_timeout_ns="30s")) as core:
        assert core.next_event_ns is None
        worker = Worker(core)
        work(core, worker)
        empty_ns = core.now_ns
        while worker.heard[-1] != ("state", APP, "Completed"):
            due_ns = core.next_event_ns
            assert due_ns is not None
            core.advance_to(due_ns)
        assert 30 * SECOND == core.now_ns - empty_ns


def test_equal_runs_have_equal_digests_and_others_have_not() -> None:
    digests = [worked(digest=True, seed=seed)[0].digest for seed in (0, 0, 7, 7, 8)]
    assert digests[0] == digests[1]
    assert digests[2] == digests[3]
    assert 3 == len(set(digests))
    with pytest.raises(InvalidRequest, match="digest=True"):
        _ = VirtualCore().digest


def test_quiet_decides_the_same_with_fewer_messages() -> None:
    class Deaf(Worker):
        update_application = si.ResourceManagerCallback.update_application

    told: dict[bool, tuple[int, dict[str, int]]] = {}
    for quiet in (False, True):
        core = VirtualCore(quiet=quiet)
        worker = Deaf(core)
        with core:
            work(core, worker)
        told[quiet] = core.handled, worker.began
    assert told[True][1] == told[False][1]
    assert told[True][0] < told[False][0] - 10


def test_quiet_tells_why_an_ask_waits_and_not_that_it_was_placed() -> None:
    class Waiting(Worker):
        def update_container_scheduling_state(
            self, request: si.UpdateContainerSchedulingStateRequest
        ) -> None:
            states.append((request.state, bool(request.reason)))

    found = {}
    for quiet in (False, True):
        states: list[tuple[si.SchedulingState, bool]] = []
        core = VirtualCore(quiet=quiet)
        with core:
            work(core, Waiting(core))
        found[quiet] = states
    assert any(not is_reasoned for _, is_reasoned in found[False])
    assert [it for it in found[False] if it[1]] == found[True]
    assert found[True], "nothing waited"


def test_quiet_tells_of_a_rejected_application() -> None:
    with VirtualCore(quiet=True) as core:
        worker = Worker(core)
        setup(core, worker)
        new = si.AddApplicationRequest(application_id="other", queue_name="root.nowhere")
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
        core.run_until_idle()
        assert ("application", "other") == worker.heard[-1][:2]


def test_a_recording_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    worked(trace=path)
    with TraceReader(path) as trace:
        assert replay(trace).difference is None
    with pytest.raises(InvalidRequest, match="a recording needs every message"):
        VirtualCore(quiet=True, trace=path)
    with pytest.raises(InvalidRequest, match="a check needs every message"):
        VirtualCore(quiet=True, checked=True)


def test_questions_are_answered_while_time_stands_still() -> None:
    with VirtualCore() as core:
        setup(core, Worker(core), vcore=500)
        ask(core, "a")
        core.run_until_idle()
        now_ns = core.now_ns
        assert "a" == core.explain(APP, "a").key
        assert [APP] == [*core.state_dump()["partitions"]["[rm-1]default"]["applications"]]
        assert core.events().records
        assert now_ns == core.now_ns


def test_a_stream_of_events_never_waits() -> None:
    with VirtualCore() as core:
        stream = core.event_stream()
        assert [] == [*stream]
        setup(core, Worker(core))
        core.advance_to(core.now_ns + 10 * SECOND)
        assert [*stream]
        assert [] == [*stream]


def test_the_front_door_does_not_take_it() -> None:
    """Its futures wait on threads of their own, for which nobody would let time pass."""
    with pytest.raises(InvalidRequest, match="must be a SchedulerCore"):
        Scheduler(core=VirtualCore())  # type: ignore[arg-type]


def test_time_does_not_go_back() -> None:
    with VirtualCore() as core, pytest.raises(InvalidRequest, match="has passed"):
        core.advance_to(core.now_ns - 1)


def test_a_callback_may_call_the_core_and_may_not_let_time_pass() -> None:
    raised: list[CallbackRaised] = []

    class Impatient(Worker):
        def update_node(self, _: si.NodeResponse) -> None:
            ask(self.core, "from inside")
            self.core.run_until_idle()

    with VirtualCore(on_callback_error=raised.append) as core:
        worker = Impatient(core)
        setup(core, worker)
        core.run_until_idle()
        assert {"from inside"} == {*worker.began}
    assert ["update_node"] == [it.method for it in raised]
    assert isinstance(raised[0].error, WouldBlock)


def test_one_that_is_new_or_stopped_takes_nothing() -> None:
    core = VirtualCore()
    with pytest.raises(CoreStopped, match="is new"):
        core.run_until_idle()
    with core:
        pass
    with pytest.raises(CoreStopped, match="is stopped"):
        ask(core, "a")
    with pytest.raises(CoreStopped, match="started once"):
        core.start()


def test_one_that_failed_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    core = VirtualCore()
    core.start()
    setup(core, Recorder())
    core.run_until_idle()
    monkeypatch.setattr(Context, "handle", lambda *_: 1 / 0)
    monkeypatch.setattr(Context, "joins", lambda *_: False)
    ask(core, "a")
    for _ in range(2):
        with pytest.raises(CoreFailed, match="ZeroDivisionError"):
            core.run_until_idle()
    with pytest.raises(CoreFailed):
        core.events()
    assert isinstance(core.failure, CoreFailed)
    core.stop()
