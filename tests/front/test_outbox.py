"""Who sends what was written, in which order, and when it waits."""

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from fronting import PATIENCE_S, QUEUES, raised
from looping import on_a_loop
from probes import wait_until

from yunikorn_actors import (
    AsyncScheduler,
    AsyncSchedulerCore,
    CoreStopped,
    InvalidRequest,
    Running,
    Scheduler,
    SchedulerCore,
    Settings,
    si,
)
from yunikorn_actors.core.entry import Update
from yunikorn_actors.front.outbox import AHEAD_MAX, Outbox

OWN = "yunikorn-actors-out"
PATIENT = Settings(predicate_timeout_ns="1m")


def me() -> str:
    return threading.current_thread().name


class FakeCore:
    """Notes what it is sent, and on which thread."""

    def __init__(self) -> None:
        self.room_left = True
        self.keys: list[str] = []
        self.threads: list[str] = []
        self.requests = 0
        self.then: Callable[[], object] = lambda: None
        """Called with each request, before it is taken."""

    def has_room(self, rm_id: str) -> bool:
        assert "rm" == rm_id
        return self.room_left

    def submit_checked(self, request: Update) -> None:
        self.then()
        self.requests += 1
        if isinstance(request, si.AllocationRequest):
            self.keys += [it.allocation_key for it in request.asks]
        elif isinstance(request, si.ApplicationRequest):
            self.keys += [it.application_id for it in request.new]
        self.threads.append(me())


class Tried:
    """A lock that counts how often it was tried in vain."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self.vain = 0
        self.before_release: Callable[[], object] = lambda: None
        self.releaser = ""
        """The thread that calls it: any one by default."""

    def acquire(self, *, blocking: bool = True) -> bool:
        is_mine: bool = self._lock.acquire(blocking=blocking)
        self.vain += not is_mine
        return is_mine

    def release(self) -> None:
        if self.releaser in {"", me()}:
            do, self.before_release = self.before_release, lambda: None
            do()
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Box:
    """An outbox, and the lock of the books above it."""

    def __init__(self) -> None:
        self.core = FakeCore()
        self.failures: list[BaseException] = []
        self.outbox = Outbox(cast("Any", self.core), "rm", self._failed)
        self.lock = threading.Lock()
        self.tried = Tried(self.outbox._sending)
        self.outbox._sending = self.tried  # type: ignore[assignment]
        self.written: list[str] = []
        self.outbox.start()

    def _failed(self, error: BaseException) -> None:
        self.failures.append(error)
        self.outbox.close()

    def put(self, key: str) -> None:
        with self.lock:
            self.written.append(key)
            self.outbox.put(si.AllocationAsk(allocation_key=key, application_id="a"))

    def ask(self, key: str) -> None:
        self.put(key)
        self.outbox.send()

    def elsewhere(self, call: Callable[[], object]) -> None:
        """Have a call made by another thread, and wait for it."""
        thread = threading.Thread(target=call, name="other")
        thread.start()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()

    def all_is_sent(self) -> None:
        wait_until(lambda: self.core.keys == self.written)
        assert [] == self.failures


@pytest.fixture
def box() -> Any:
    box = Box()
    yield box
    box.outbox.close()
    box.outbox.join(PATIENCE_S)


def test_the_caller_sends(box: Box) -> None:
    box.ask("1")
    assert (["1"], [me()]) == (box.core.keys, box.core.threads)


def test_what_comes_while_one_sends_is_sent_by_that_one(box: Box) -> None:
    def others() -> None:
        box.core.then = lambda: None
        box.elsewhere(lambda: [box.ask("2"), box.ask("3")])
        assert 2 == box.tried.vain
        assert [] == box.core.keys

    box.core.then = others
    box.ask("1")
    assert (["1", "2", "3"], [me(), me()]) == (box.core.keys, box.core.threads)


def test_what_comes_after_the_last_look_is_not_forgotten(box: Box) -> None:
    """Who brings it finds another one sending, which has found nothing left."""
    box.tried.before_release = lambda: box.elsewhere(lambda: box.ask("2"))
    box.ask("1")
    assert 1 == box.tried.vain
    assert (["1", "2"], [me(), me()]) == (box.core.keys, box.core.threads)


def test_what_comes_after_the_last_look_of_the_thread_is_not_forgotten(box: Box) -> None:
    box.core.room_left = False

    def late() -> None:
        box.core.room_left, box.core.then = True, lambda: None
        box.elsewhere(lambda: box.ask("2"))

    # The caller may release it after the thread has sent: that is not the last look.
    box.tried.releaser = OWN
    box.core.then = lambda: setattr(box.tried, "before_release", late)
    box.ask("1")
    # Between what it has sent and its last look the thread has nothing left.
    wait_until(lambda: box.core.keys == ["1", "2"])
    assert 1 == box.tried.vain
    assert [OWN, OWN] == box.core.threads


def test_the_order_is_that_of_the_books_whoever_sends(box: Box) -> None:
    """Now and then the core has no room, so callers and the thread of the outbox take turns."""
    many, before = 500, sys.getswitchinterval()
    start = threading.Barrier(4)

    def look() -> None:
        box.core.room_left = box.core.requests % 7 != 0
        # The interpreter is free meanwhile, so others find this one sending.
        time.sleep(1e-5)

    def work(name: str) -> None:
        start.wait(PATIENCE_S)
        for number in range(many):
            box.ask(f"{name}-{number}")
            if not number % 20:
                wait_until(lambda: not box.outbox._is_left)

    box.core.then = look
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(it,), name=it) for it in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    finally:
        sys.setswitchinterval(before)
    box.core.room_left = True
    box.ask("last")
    box.all_is_sent()
    assert 4 * many + 1 == len(box.core.keys)
    assert box.tried.vain, "vacuous: no thread found another one sending"
    assert {OWN} < set(box.core.threads), "vacuous: they took no turns"


def test_while_the_core_has_no_room_nobody_waits_but_the_thread(box: Box) -> None:
    room = threading.Event()
    box.core.room_left = False
    box.core.then = lambda: room.wait(PATIENCE_S) if me() == OWN else None
    for number in range(5):
        box.ask(str(number))
    assert [] == box.core.keys
    box.core.room_left = True
    # There would be room for this one, but it comes after the others.
    box.ask("5")
    assert [] == box.core.keys
    room.set()
    box.all_is_sent()
    assert {OWN} == set(box.core.threads)
    assert box.core.requests <= 3, "what has gathered goes out as few requests"
    wait_until(lambda: not box.outbox._is_left and not box.outbox._sending._lock.locked())  # type: ignore[attr-defined]
    box.ask("6")
    assert me() == box.core.threads[-1]


def test_a_directory_of_users_may_be_slow(box: Box) -> None:
    box.written.append("app")
    box.outbox.put(si.AddApplicationRequest(application_id="app"))
    box.ask("1")
    box.all_is_sent()
    assert {OWN} == set(box.core.threads)


def test_what_a_program_writes_without_waiting_is_gathered(box: Box) -> None:
    """Where the core answers each before the next is written, callers send all of them."""
    go_on = threading.Event()
    box.core.then = lambda: go_on.wait(PATIENCE_S) if me() == OWN else None
    for number in range(100):
        box.ask(str(number))
    assert AHEAD_MAX == len(box.core.keys)
    go_on.set()
    box.all_is_sent()
    assert AHEAD_MAX == box.core.threads.count(me())
    assert box.core.requests <= AHEAD_MAX + 2
    wait_until(lambda: not box.outbox._is_left)
    box.core.threads.clear()
    for number in range(100):
        box.ask(f"{number} again")
        box.outbox.answered()
    assert {me()} == set(box.core.threads)


def test_a_caller_sends_for_others_within_bounds(box: Box) -> None:
    others = iter(range(100))

    def more() -> None:
        if me() != OWN and (number := next(others, None)) is not None:
            box.put(f"more-{number}")

    box.core.then = more
    box.ask("1")
    assert AHEAD_MAX == box.core.threads.count(me())
    box.all_is_sent()
    assert OWN == box.core.threads[-1]


def test_what_the_core_raises_ends_the_front_and_not_the_call(box: Box) -> None:
    error = CoreStopped("over")

    def end() -> None:
        raise error

    box.core.then = end
    box.ask("1")
    box.ask("2")
    assert [error] == box.failures


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_loses_nothing_of_others(box: Box) -> None:
    def interrupt() -> None:
        box.core.then = lambda: None
        box.elsewhere(lambda: box.ask("other"))
        signal.raise_signal(signal.SIGINT)

    box.core.then = interrupt
    with pytest.raises(KeyboardInterrupt):
        box.ask("1")
    box.all_is_sent()
    assert [me(), OWN] == box.core.threads
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_ends_the_program_ends_the_front(box: Box) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: sys.exit(3))
    box.core.then = lambda: signal.raise_signal(signal.SIGUSR1)
    try:
        with pytest.raises(SystemExit):
            box.ask("1")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [SystemExit] == [type(it) for it in box.failures]


# -- with a core


def submitting_threads(core: SchedulerCore) -> list[tuple[str, type]]:
    """Note which thread submits what, from now on."""
    noted: list[tuple[str, type]] = []
    submit = core.submit_checked

    def noting(request: Update) -> None:
        noted.append((me(), type(request)))
        submit(request)

    core.submit_checked = noting  # type: ignore[method-assign]
    return noted


@pytest.mark.parametrize("driver", ["threads", "direct"])
def test_fits_and_callbacks_send_what_they_ask(driver: Any) -> None:
    asked: list[Any] = []

    class Asking(si.ResourceManagerCallback):
        def update_allocation(self, response: si.AllocationResponse) -> None:
            if [it.allocation_key for it in response.new] == ["t"]:
                asked.append(app.ask("from a callback", vcore=1))

    def fits(_: str) -> bool:
        if not asked:
            asked.append(app.ask("from fits", vcore=1))
        return True

    core = SchedulerCore(driver=driver, settings=PATIENT)
    with Scheduler(QUEUES, core=core, callback=Asking()) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        noted = submitting_threads(core)
        assert "n1" == app.ask("t", vcore=1, fits=fits).result(PATIENCE_S).node_id
        wait_until(lambda: len(asked) == 2)
        assert ["from fits", "from a callback"] == [it.result(PATIENCE_S).key for it in asked]
        callback = "yunikorn-actors-rm:rm-1#1"
        wait_until(lambda: len(noted) == 3)
        assert [me(), callback, callback] == [name for name, _ in noted]


def test_a_core_that_is_behind_makes_no_caller_wait() -> None:
    """The program does not return from its callback, so the core takes no more."""
    gate, entered = threading.Event(), threading.Event()

    class Slow(si.ResourceManagerCallback):
        def update_allocation(self, response: si.AllocationResponse) -> None:  # noqa: ARG002
            entered.set()
            gate.wait(PATIENCE_S)

    core = SchedulerCore(settings=PATIENT)
    with Scheduler(QUEUES, core=core, callback=Slow()) as s:
        s.add_node("n1", vcore=1000)  # Room for all that a slow core lets come.
        app = s.application("a", queue="root.batch", user="ann", stays=True)
        names = {"rm.maxUnhandled": "4", "rm.maxUndelivered": "1"}
        text = s._options.queues
        core.update_configuration(
            si.UpdateConfigurationRequest(rm_id="rm-1", config=text, extra_config=names)
        )
        noted = submitting_threads(core)
        first = app.ask("first", vcore=1)
        assert entered.wait(PATIENCE_S)
        futures = []
        while core.has_room("rm-1") or time.sleep(0.05) or core.has_room("rm-1"):
            futures.append(app.ask(f"t{len(futures)}", vcore="1m"))
        futures += [app.ask(f"more{number}", vcore="1m") for number in range(50)]
        wait_until(lambda: noted[-1][0] == OWN)
        assert not core.has_room("rm-1")
        gate.set()
        assert "n1" == first.result(PATIENCE_S).node_id
        for future in futures:
            assert "n1" == future.result(PATIENCE_S).node_id
        keys = [future.result().key for future in futures]
        assert [f"more{number}" for number in range(50)] == keys[-50:]


@pytest.mark.parametrize("driver", ["threads", "direct"])
def test_a_loop_sends_nothing(driver: Any) -> None:
    """With `direct` it would run the machines, which is the work of others as well."""

    @on_a_loop
    async def run() -> None:
        core = AsyncSchedulerCore(driver=driver, settings=PATIENT)
        async with AsyncScheduler(QUEUES, core=core) as s:
            noted = submitting_threads(core._core)
            await s.add_node("n1", vcore=4)
            app = await s.application("a", queue="root.batch", user="ann")
            async with await asyncio.wait_for(app.ask("t", vcore=1), PATIENCE_S):
                assert ("a" == app.id, "n1" in s.nodes) == (True, True)
            wait_until(lambda: len(noted) == 4)
            assert {OWN} == {name for name, _ in noted}

    run()


# -- what is put there has the right form


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"priority": "x"}, "add_node: running[0].priority: must be int, not str"),
        ({"key": "k\ud800"}, "add_node: running[0].key: "),
        ({"group": 3}, "add_node: running[0].group: must be str, not int"),
        ({"preemptible": "no"}, "add_node: running[0].preemptible: must be bool, not str"),
    ],
)
def test_what_runs_with_a_wrong_form_is_refused_at_the_call(
    wrong: dict[str, Any], told: str
) -> None:
    runs: dict[str, Any] = {"application": "a", "key": "k", "node_id": "n", "resources": {}}
    with Scheduler(QUEUES) as s:
        s.application("a", queue="root.batch", user="ann")
        item = Running(**(runs | {"resources": {"vcore": 1}} | wrong))
        call = lambda: s.add_node("n", vcore=4, running=[item])  # noqa: E731
        assert told in raised(call, InvalidRequest)
        assert [] == list(s.nodes)
        assert [] == s.add_node("n", vcore=4)


def test_a_group_that_makes_no_keys_is_refused_at_the_call() -> None:
    with Scheduler(QUEUES) as s:
        for name in ("g" * 2_000, "g\ud800"):
            gang = {name: {"vcore": 1}}
            call = lambda gang=gang: s.application(  # type: ignore[misc] # noqa: E731
                "a", queue="root.batch", user="ann", gang=gang
            )
            assert "application: gang: " in raised(call, InvalidRequest)
        assert "a" == s.application("a", queue="root.batch", user="ann").id
