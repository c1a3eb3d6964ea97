"""The direct driver: whoever brings a message runs the machines, one thread at a time.

What it has in common with the others is in tests/drivers; here are its own races. A probe that is
held stands inside a handler, on the thread that runs the machines.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pykka
import pytest
from looping import on_a_loop
from probes import PATIENCE_S, Break, Do, Hold, Notebook, Probe, probed_core, register, wait_until
from support import APP, CONFIG, RM, Recorder, ask

from yunikorn_actors import (
    AsyncSchedulerCore,
    CoreError,
    CoreFailed,
    SchedulerCore,
    UnknownResourceManager,
    WouldBlock,
    si,
)
from yunikorn_actors.drivers.live import dispatcher
from yunikorn_actors.drivers.live.clock import StandingClock
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.machines.machine import Effect, Send, SetTimer
from yunikorn_actors.messages.base import Message

MAIN, TIMERS, OWN = "MainThread", "yunikorn-actors-timers", "yunikorn-actors-dispatcher"


class Run:
    """A core with probes, and calls to it from threads of one's own."""

    def __init__(self) -> None:
        self.notebook = Notebook()
        self.clock = StandingClock(EPOCH_NS)
        self.core: SchedulerCore = probed_core(self.notebook, driver="direct", clock=self.clock)
        self.core.start()
        self._threads: list[threading.Thread] = []

    def post(self, *messages: Message, to: str = "a") -> None:
        with self.core._afterwards:
            for message in messages:
                self.core._post(to, message, "test")

    def elsewhere(self, call: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=call, name=f"caller-{len(self._threads)}")
        self._threads.append(thread)
        thread.start()
        return thread

    def hold(self) -> None:
        """Have another thread run the machines, until it is let go."""
        self.elsewhere(lambda: self.post(Hold()))
        assert self.notebook.held.wait(PATIENCE_S)
        self.notebook.held.clear()

    def threads_at(self, address: str) -> list[str]:
        return [note.thread for note in self.notebook.notes if note.address == address]

    def close(self) -> None:
        self.notebook.let_go.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self.core.stop(PATIENCE_S)


@pytest.fixture
def run() -> Iterator[Run]:
    run = Run()
    yield run
    run.close()


def send(label: str, to: str = "b") -> Send:
    return Send(to=to, message=Do(label=label))


# -- who runs the machines


def test_a_call_returns_when_nothing_is_left(run: Run) -> None:
    """Every machine it reaches runs on the thread of the caller; callbacks do not."""
    rm = Recorder()
    register(run.core, rm)
    run.post(Do(label="1", effects=(send("2"),)))
    assert [MAIN, MAIN] == [*run.threads_at("a"), *run.threads_at("b")]
    wait_until(run.core.is_settled)
    assert not {"Context", "context"} & {thread.name for thread in threading.enumerate()}


def test_one_runs_and_the_others_leave_their_message_and_go_on(run: Run) -> None:
    run.hold()
    run.post(Do(label="left"))
    assert [] == run.notebook.labels("a"), "vacuous: nobody stood in the way"
    assert not run.core.is_settled()
    run.notebook.let_go.set()
    wait_until(run.core.is_settled)
    assert ["caller-0"] == run.threads_at("a")


class Releasing:
    """Has something happen while the one who ran the machines is about to give them back."""

    def __init__(self, lock: threading.Lock, do: Callable[[], object]) -> None:
        self.acquire, self.locked = lock.acquire, lock.locked
        self._lock = lock
        self._do: Callable[[], object] | None = do

    def release(self) -> None:
        do, self._do = self._do, None
        if do is not None:
            do()
        self._lock.release()


def test_what_comes_after_the_last_look_is_not_forgotten(run: Run) -> None:
    """Who brings it finds the machines busy, and who runs them has found nothing left (R-113)."""
    dispatcher = run.core._dispatcher

    def bring() -> None:
        run.elsewhere(lambda: run.post(Do(label="late"))).join(PATIENCE_S)
        assert [] == run.notebook.labels("a"), "vacuous: it was in time"

    dispatcher._hold = Releasing(dispatcher._hold, bring)  # type: ignore[assignment]
    run.post(Do(label="first"), to="b")
    assert [MAIN] == run.threads_at("a")


def test_many_call_at_once(run: Run) -> None:
    """Again, until the machines have run on several threads: one alone may be fast enough for all."""
    barrier = threading.Barrier(4)

    def call() -> None:
        barrier.wait(PATIENCE_S)
        for number in range(500):
            run.post(Do(label=str(number)))

    rounds = 0
    while len(set(run.threads_at("a"))) < 2:
        rounds += 1
        assert rounds < 100, "vacuous: one thread ran all of it"
        threads = [run.elsewhere(call) for _ in range(4)]
        for thread in threads:
            thread.join(PATIENCE_S)
        wait_until(run.core.is_settled)
        assert rounds * 2_000 == len(run.notebook.notes)


def test_nobody_is_kept_for_ever_by_what_others_bring(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "RUN_MAX", 10)
    run.post(*(Do(label=str(number)) for number in range(35)))
    assert 10 <= len(run.notebook.notes)
    wait_until(run.core.is_settled)
    assert [MAIN] * 10 + [OWN] * 25 == run.threads_at("a")
    assert [str(number) for number in range(35)] == run.notebook.labels("a")


# -- callbacks


class Calling(Recorder):
    """Makes a call in each callback."""

    def __init__(self, call: Callable[[str], object]) -> None:
        super().__init__()
        self._call = call

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        for node in response.accepted:
            self._call(node.node_id)


def node(name: str, rm_id: str = RM) -> si.NodeRequest:
    size = si.Resource.of({"vcore": 10})
    info = si.NodeInfo(node_id=name, action=si.ActionFromRM.CREATE, schedulable_resource=size)
    return si.NodeRequest(rm_id=rm_id, nodes=(info,))


def application(rm_id: str = RM) -> si.ApplicationRequest:
    ugi = si.UserGroupInformation(user="bob")
    new = si.AddApplicationRequest(application_id=APP, queue_name="root.default", ugi=ugi)
    return si.ApplicationRequest(rm_id=rm_id, new=(new,))


def test_a_callback_that_calls_in_runs_the_machines_on_its_own_thread(run: Run) -> None:
    returned = threading.Event()

    def call(name: str) -> None:
        assert returned.wait(PATIENCE_S)
        run.post(Do(label=name))

    register(run.core, Calling(call))
    run.core.update_node(node("n1"))
    returned.set()
    wait_until(lambda: run.notebook.labels("a"))
    assert ["yunikorn-actors-rm:rm-1#1"] == run.threads_at("a")


def test_a_callback_that_calls_in_while_somebody_runs_them_goes_on(run: Run) -> None:
    returned = threading.Event()

    def call(name: str) -> None:
        assert run.notebook.held.wait(PATIENCE_S)
        run.post(Do(label=name))
        returned.set()

    register(run.core, Calling(call))
    run.core.update_node(node("n1"))
    run.elsewhere(lambda: run.post(Hold()))
    assert returned.wait(PATIENCE_S)
    assert [] == run.notebook.labels("a"), "vacuous: nobody stood in the way"
    run.notebook.let_go.set()
    wait_until(run.core.is_settled)
    assert ["caller-0"] == run.threads_at("a")


class Stuck(Recorder):
    """Does not return from a callback, or from a predicate, before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = threading.Event()
        self.let_go = threading.Event()

    def stay(self) -> None:
        self.inside.set()
        assert self.let_go.wait(PATIENCE_S)

    def update_node(self, response: si.NodeResponse) -> None:
        self.stay()
        super().update_node(response)


class Pondering(Stuck):
    def update_node(self, response: si.NodeResponse) -> None:
        Recorder.update_node(self, response)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        self.stay()
        return None if args.node_id == "n1" else "only there"


def test_a_callback_that_does_not_return_holds_up_no_caller(run: Run) -> None:
    stuck, other = Stuck(), Recorder()
    register(run.core, stuck, "rm-1")
    register(run.core, other, "rm-2")
    run.core.update_node(node("n1"))
    assert stuck.inside.wait(PATIENCE_S)
    for number in range(20):
        run.core.update_node(node(f"n{number}", "rm-2"))
        run.core.update_node(node(f"m{number}"))
    wait_until(lambda: 20 == len(other.told("node")))
    stuck.let_go.set()
    wait_until(lambda: 21 == len(stuck.told("node")))


def test_no_caller_waits_for_the_answer_of_a_predicate(run: Run) -> None:
    rm = Pondering()
    register(run.core, rm)
    run.core.update_node(node("n1"))
    run.core.update_application(application())
    run.core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask("k1"),)))
    assert rm.inside.wait(PATIENCE_S)
    assert [] == rm.told("new")
    rm.let_go.set()
    wait_until(lambda: [("k1", "n1")] == rm.told("new"))


# -- timers


def test_a_timer_that_is_due_during_a_call_waits_its_turn(run: Run) -> None:
    bell = SetTimer(name="bell", due_ns=EPOCH_NS + 1, message=Do(label="bell"))
    run.post(Do(label="", effects=(bell,)))
    run.hold()
    run.clock.move_to(EPOCH_NS + 1)
    run.core.clock_was_moved()
    wait_until(lambda: run.core.next_due_ns is None)
    assert [""] == run.notebook.labels("a"), "vacuous: nobody stood in the way"
    run.notebook.let_go.set()
    wait_until(run.core.is_settled)
    assert [(MAIN, ""), ("caller-0", "bell")] == [
        (note.thread, note.label) for note in run.notebook.notes
    ]


def test_a_timer_runs_the_machines_on_its_own_thread(run: Run) -> None:
    effects = (send("told"),)
    bell = SetTimer(name="bell", due_ns=EPOCH_NS + 1, message=Do(label="bell", effects=effects))
    run.post(Do(label="", effects=(bell,)))
    run.clock.move_to(EPOCH_NS + 1)
    run.core.clock_was_moved()
    wait_until(lambda: run.notebook.labels("b"))
    assert [TIMERS] == run.threads_at("b")


# -- interrupts


class Interrupting(Probe):
    """Is interrupted in the middle of a handler."""

    def __init__(self, notebook: Notebook, number: int) -> None:
        super().__init__("a", notebook)
        self._number = number

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        signal.raise_signal(self._number)
        return super().handle(message, now_ns)


def interrupted_by(run: Run, number: int) -> None:
    run.core._actors.by_address["a"].holder = Interrupting(run.notebook, number)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_does_not_tear_a_handler_in_two(run: Run) -> None:
    """It is raised in the call, and what is left is done by the thread of the dispatcher."""
    interrupted_by(run, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run.post(Do(label="whole", effects=(send("follows"),)))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    wait_until(run.core.is_settled)
    assert ([MAIN], [OWN]) == (run.threads_at("a"), run.threads_at("b"))
    assert run.core.failure is None
    interrupted_by(run, signal.SIGCHLD)
    run.post(Do(label="goes on"))
    assert ["whole", "goes on"] == run.notebook.labels("a")


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_in_a_question_is_raised_and_leaves_nothing_open(run: Run) -> None:
    register(run.core, Recorder())
    context = run.core._actors.by_address["context"]
    handle = context.holder.handle

    def interrupted(message: Message, now_ns: int) -> list[Effect]:
        signal.raise_signal(signal.SIGINT)
        return handle(message, now_ns)

    context.holder.handle = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run.core.state_dump()
    context.holder.handle = handle  # type: ignore[method-assign]
    assert {} == run.core._replies._slots
    assert ["[rm-1]default"] == list(run.core.state_dump()["partitions"])


@pytest.fixture
def handled_by() -> Iterator[Callable[[int, Any], None]]:
    """Handlers of the embedder."""
    former: dict[int, Any] = {}

    def handle(number: int, handler: Any) -> None:
        former[number] = signal.signal(number, handler)

    yield handle
    for number, handler in former.items():
        signal.signal(number, handler)


def test_a_handler_of_the_embedder_is_called_at_once_and_stays(
    run: Run, handled_by: Callable[[int, Any], None]
) -> None:
    seen = []
    own = lambda *_: seen.append(run.notebook.labels("a"))  # noqa: E731
    handled_by(signal.SIGINT, own)
    interrupted_by(run, signal.SIGINT)
    run.post(Do(label="1"))
    assert [[]] == seen
    assert signal.getsignal(signal.SIGINT) is own


def test_a_signal_that_raises_in_a_handler_fails_the_core_and_reaches_the_caller(
    run: Run, handled_by: Callable[[int, Any], None]
) -> None:
    def leave(*_: object) -> None:
        raise SystemExit(3)

    handled_by(signal.SIGUSR1, leave)
    interrupted_by(run, signal.SIGUSR1)
    with pytest.raises(SystemExit, match="3"):
        run.post(Do(label="torn", effects=(send("never"),)))
    with pytest.raises(CoreFailed, match=r"a failed on Do .*SystemExit"):
        run.post(Do(label=""))
    assert [] == run.notebook.notes
    wait_until(run.core.is_settled)


def test_a_signal_may_call_in_and_stop_whatever_the_main_thread_is_doing(
    run: Run, handled_by: Callable[[int, Any], None], ours: Callable[[], list[str]]
) -> None:
    """It leaves its message, may not wait for an answer, and stops on another thread."""
    raised = []

    def call(*_: object) -> None:
        run.post(Do(label="left"), to="b")
        try:
            run.core.state_dump()
        except WouldBlock as error:
            raised.append(error)

    handled_by(signal.SIGUSR1, call)
    interrupted_by(run, signal.SIGUSR1)
    run.post(Do(label="first", effects=(send("second"),)))
    assert ["left", "second"] == run.notebook.labels("b")
    assert 1 == len(raised)
    handled_by(signal.SIGUSR2, lambda *_: run.core.stop(PATIENCE_S))
    interrupted_by(run, signal.SIGUSR2)
    run.post(Do(label="last"))
    run.core.stop(PATIENCE_S)
    assert [] == ours()


# -- failures, and the end


def test_several_callers_that_wait_are_let_go_by_a_failure(run: Run) -> None:
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            run.core.state_dump()
        except CoreFailed as error:
            raised.append(error)

    run.hold()
    run.post(Break(error=ValueError("no more")))
    threads = [run.elsewhere(wait) for _ in range(3)]
    wait_until(lambda: 3 == len(run.core._replies._slots))
    assert run.core.failure is None, "vacuous: nobody stood in the way"
    run.notebook.let_go.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert 3 == len(raised)
    assert {True} == {"no more" in str(error) for error in raised}


@pytest.mark.parametrize("error", [SystemExit(), KeyboardInterrupt(), ValueError()])
def test_what_a_machine_raises_on_a_thread_of_somebody_else_stays_there(
    run: Run, error: BaseException
) -> None:
    """On a thread that was not interrupted it is the machine's own, and the core keeps it."""
    raised: list[BaseException] = []

    def call() -> None:
        try:
            run.post(Break(error=error))
        except BaseException as caught:  # noqa: BLE001 - the test looks at all of them
            raised.append(caught)

    run.elsewhere(call).join(PATIENCE_S)
    assert [] == raised
    assert error is run.core.failure.__cause__  # type: ignore[union-attr]


def test_a_hook_that_stops_the_core_does_not_wait_for_itself(
    ours: Callable[[], list[str]],
) -> None:
    core = probed_core(Notebook(), driver="direct", on_failure=lambda _: core.stop(PATIENCE_S))
    core.start()
    with core._afterwards:
        core._post("a", Break(error=ValueError()), "test")
    core.stop(PATIENCE_S)
    assert [] == ours()


def test_a_stop_waits_for_the_one_who_runs_the_machines(
    run: Run, ours: Callable[[], list[str]]
) -> None:
    run.hold()
    run.post(*(Do(label="late") for _ in range(10)))
    stopping = run.elsewhere(lambda: run.core.stop(PATIENCE_S))
    wait_until(lambda: run.core._dispatcher._is_closed)
    assert stopping.is_alive(), "vacuous: nobody stood in the way"
    run.notebook.let_go.set()
    stopping.join(PATIENCE_S)
    assert [] == run.notebook.labels("a")
    assert run.core.is_settled()
    assert [] == ours()


def test_a_machine_that_does_not_come_to_an_end_is_named_and_left(run: Run, log: StringIO) -> None:
    run.hold()
    run.post(Do(label="late"), to="b")
    run.core.stop(timeout=0.05)
    warnings = [line for line in log.getvalue().splitlines() if " WARNING " in line]
    assert 1 == len(warnings)
    assert "a has not returned from a call after 0.05 s and is left behind" in warnings[0]
    run.notebook.let_go.set()
    wait_until(run.core.is_settled)
    assert [] == run.notebook.notes


def test_stopping_all_actors_of_the_process_stops_a_core_that_has_callbacks(
    run: Run, ours: Callable[[], list[str]]
) -> None:
    register(run.core, Recorder())
    pykka.ActorRegistry.stop_all()
    wait_until(lambda: not ours())


# -- resource managers


def flooded(run: Run, rm: Recorder) -> tuple[threading.Event, list[CoreError]]:
    """Have a caller that is too far ahead of a resource manager; return when he is done."""
    request = si.RegisterResourceManagerRequest(
        rm_id="rm-1",
        config=CONFIG,
        extra_config={"rm.maxUnhandled": "5", "rm.maxUndelivered": "1"},
    )
    run.core.register_resource_manager(request, rm)
    done, raised = threading.Event(), list[CoreError]()

    def flood() -> None:
        try:
            for number in range(200):
                run.core.update_node(node(f"n{number}"))
        except CoreError as error:
            raised.append(error)
        done.set()

    run.elsewhere(flood)
    return done, raised


def test_a_caller_that_is_held_back_holds_up_nobody(run: Run) -> None:
    """A caller waits at the gateway, where he runs no machines."""
    stuck, other = Stuck(), Recorder()
    register(run.core, other, "rm-2")
    done, _ = flooded(run, stuck)
    backlog = run.core.managers.registered["rm-1"].backlog
    wait_until(lambda: backlog.is_full)
    run.core.update_node(node("n1", "rm-2"))
    wait_until(lambda: [("n1", "accepted")] == other.told("node"))
    assert not done.is_set(), "vacuous: the caller was not held back"
    stuck.let_go.set()
    assert done.wait(PATIENCE_S)
    wait_until(lambda: 200 == len(stuck.told("node")))


def test_a_caller_that_is_held_back_is_let_go_when_its_resource_manager_is_lost(run: Run) -> None:
    stuck = Stuck()
    done, raised = flooded(run, stuck)
    backlog = run.core.managers.registered["rm-1"].backlog
    wait_until(lambda: backlog.is_full)
    assert not done.wait(0.01), "vacuous: the caller was not held back"
    run.core.resource_manager_lost("rm-1")
    assert done.wait(PATIENCE_S)
    assert [UnknownResourceManager] == [type(error) for error in raised]
    stuck.let_go.set()


def test_a_resource_manager_is_lost_while_its_requests_are_under_way(run: Run) -> None:
    register(run.core, Recorder())
    run.hold()
    run.core.update_node(node("before"))
    run.core.resource_manager_lost(RM)
    with pytest.raises(UnknownResourceManager):
        run.core.update_node(node("after"))
    run.notebook.let_go.set()
    wait_until(run.core.is_settled)
    dump = run.core.state_dump()
    assert ["before"] == list(dump["partitions"]["[rm-1]default"]["nodes"])
    assert "Running" != dump["managers"][RM]["state"]


@on_a_loop
async def test_the_core_of_an_event_loop_may_be_direct() -> None:
    async with AsyncSchedulerCore(driver="direct") as core:
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG)
        responses = await core.register_resource_manager(request)
        await core.update_node(node("n1"))
        await core.update_application(application())
        await core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask("k1"),)))
        async for response in responses.allocations():
            assert ["k1"] == [it.allocation_key for it in response.new]
            break
