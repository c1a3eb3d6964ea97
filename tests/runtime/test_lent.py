"""On threads: an actor that was idle is run by the thread that has sent to it, and by one at a time.

The driver `direct` runs machines on one thread anyway, and has its own tests.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pykka
import pytest
from probes import PATIENCE_S, Break, Do, Hold, Joint, Notebook, probed_core, wait_until
from support import Recorder

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.machines.machine import CallRm, Effect, Send
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.rm_calls import CallUpdateNode
from yunikorn_actors.runtime import shell
from yunikorn_actors.runtime.shell import Shell

MANY = 300


class Run:
    """A core with probes: what is sent to `a` comes from outside, so its thread lends itself not."""

    def __init__(self, **made_with: Any) -> None:
        self.notebook = Notebook()
        self.core: SchedulerCore = probed_core(self.notebook, **made_with)

    def b_sends(self, *effects: Effect) -> None:
        """Have `b` want these, for a message of `a`."""
        self.core._post("a", Do(label="", effects=(sent("b", *effects),)), "test")

    def thread_of(self, address: str) -> str:
        """Return who has handled the only message there, when all is done."""
        wait_until(self.core.is_settled)
        (note,) = (it for it in self.notebook.notes if it.address == address)
        return note.thread.removeprefix("yunikorn-actors-")

    def shell(self, address: str) -> Shell:
        found = self.core._shells._by_address[address]
        assert isinstance(found, Shell)
        return found


def sent(to: str, *effects: Effect, label: str = "") -> Send:
    return Send(to=to, message=Do(label=label, effects=effects))


@pytest.fixture
def run() -> Iterator[Run]:
    run = Run()
    with run.core:
        yield run
        run.notebook.let_go.set()


def test_an_idle_actor_is_run_by_the_thread_that_has_sent_to_it(run: Run) -> None:
    run.b_sends(sent("c"))
    assert "b" == run.thread_of("c")


def test_the_thread_is_that_of_the_actor_it_works_for(run: Run) -> None:
    """What is called from there is called by that actor; afterwards it is its own again."""
    here, seen = run.core._inside.here, []
    for address in "bc":
        shell = run.shell(address)
        shell.holder.handle = _noting(shell.holder.handle, lambda: seen.append(here.shell))  # type: ignore[method-assign]
    for _ in range(2):
        run.b_sends(sent("c"))
        wait_until(run.core.is_settled)
    assert [run.shell(address) for address in "bcbc"] == seen


def _noting(handle: Callable[..., list[Effect]], note: Callable[[], None]) -> Any:
    def noting(message: Message, now_ns: int) -> list[Effect]:
        note()
        return handle(message, now_ns)

    return noting


def test_what_was_sent_from_outside_is_left_to_the_next_thread(run: Run) -> None:
    """More calls may come, and are taken while it works."""
    run.b_sends()
    assert ("a", "b") == (run.thread_of("a"), run.thread_of("b"))


def test_a_message_to_itself_is_no_other_work(run: Run) -> None:
    run.b_sends(sent("c"), Send(to="b", message=Joint(label="later")))
    assert "b" == run.thread_of("c")


def test_messages_are_handled_together_by_a_thread_that_is_lent(run: Run) -> None:
    run.b_sends(*(Send(to="joiner", message=Joint(label=str(number))) for number in range(3)))
    wait_until(run.core.is_settled)
    assert [["0", "1", "2"]] == run.notebook.joint
    assert {"yunikorn-actors-b"} == {it.thread for it in run.notebook.notes if it.label}


class Where(Recorder):
    def __init__(self) -> None:
        super().__init__()
        self.threads: list[str] = []

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        self.threads.append(threading.current_thread().name)


def test_a_callback_has_its_own_thread(run: Run) -> None:
    rm = Where()
    run.core._open_callback("rm:x#1", rm)
    told = CallUpdateNode(response=si.NodeResponse(accepted=(si.AcceptedNode(node_id="n1"),)))
    run.b_sends(CallRm(callback="rm:x#1", call=told), sent("c"))
    assert "b" == run.thread_of("c")
    assert ["yunikorn-actors-rm:x#1"] == rm.threads


def test_both_work_while_there_is_enough_for_both(run: Run) -> None:
    held = Send(to="c", message=Hold())
    run.core._post("a", Do(label="", effects=(sent("b", held), sent("b", label="more"))), "test")
    assert run.notebook.held.wait(PATIENCE_S)
    wait_until(lambda: "more" in run.notebook.labels("b"))


def test_a_thread_is_lent_for_a_short_time_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "LENT_MAX_NS", 0)
    run.b_sends(sent("c"))
    assert "c" == run.thread_of("c")


# -- nothing is forgotten, and one thread at a time


class Last:
    """A hold that is let go when something else has just come."""

    def __init__(self, hold: threading.Lock, do: Callable[[], object]) -> None:
        self.acquire = hold.acquire
        self._hold = hold
        self._do: Callable[[], object] | None = do

    def release(self) -> None:
        do, self._do = self._do, None
        if do is not None:
            do()
        self._hold.release()


@pytest.mark.parametrize("address", ["b", "c"], ids=["own thread", "lent thread"])
def test_what_comes_after_the_last_look_is_not_forgotten(run: Run, address: str) -> None:
    """Who brings it does not get the hold, and who has that has found nothing left."""
    mailbox = run.shell(address).mailbox
    late: Message = Do(label="late")

    def bring() -> None:
        run.core._post(address, late, "test")

    # Until its own thread waits, the first release is that of the beginning.
    wait_until(lambda: not mailbox._hold.locked())
    mailbox._hold = Last(mailbox._hold, bring)  # type: ignore[assignment]
    run.b_sends(sent("c"))
    wait_until(lambda: len(run.notebook.labels(address)) > 1)
    assert ["", "late"] == run.notebook.labels(address)


class Watch:
    """Notes who handles what is sent to an actor, and whether two threads met there."""

    def __init__(self, it: Shell) -> None:
        self.threads: set[str] = set()
        self.handled = 0
        self.have_met = False
        self._lock = threading.Lock()
        self._handle = it.holder.handle
        it.holder.handle = self.handle  # type: ignore[method-assign]

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        self.have_met |= not self._lock.acquire(blocking=False)
        self.threads.add(threading.current_thread().name)
        effects = self._handle(message, now_ns)
        self.handled += 1
        self._lock.release()
        return effects


def test_many_send_to_each_other_at_once(run: Run) -> None:
    """Every message is handled once and in order, by own threads and by those that were lent."""
    watches = {address: Watch(run.shell(address)) for address in "abc"}
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    rounds = 0
    try:
        while any(len(watches[address].threads) < 2 for address in "bc"):
            rounds += 1
            assert rounds < 100, "vacuous: each had one thread"
            _send_around(run)
    finally:
        sys.setswitchinterval(before)
    for address, watch in watches.items():
        assert (4 * MANY * rounds, False) == (watch.handled, watch.have_met)
        told = run.notebook.labels(address)
        for caller in "012":
            mine = [label for label in told if label.startswith(caller)]
            assert [f"{caller}-{n}" for n in range(MANY)] * rounds == mine


def _send_around(run: Run) -> None:
    """Have three callers each send to one probe, which sends on to the others."""
    barrier = threading.Barrier(3)

    def call(caller: int, way: str) -> None:
        barrier.wait(PATIENCE_S)
        for n in range(MANY):
            label = f"{caller}-{n}"
            onward = sent(way[1], sent(way[2], label=label), label=label)
            run.core._post(way[0], Do(label=label, effects=(onward,)), "test")

    threads = [threading.Thread(target=call, args=it) for it in enumerate(("abc", "bca", "cab"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    for _ in range(MANY):
        run.b_sends(sent("c"))
    wait_until(run.core.is_settled)


# -- failures and stops


def test_what_fails_is_the_actor_and_not_the_thread_that_was_lent(
    ours: Callable[[], list[str]],
) -> None:
    run = Run()
    run.core.start()
    run.b_sends(Send(to="c", message=Break(error=ValueError("bad"))), sent("joiner"))
    wait_until(run.core.is_settled)
    run.core.stop(PATIENCE_S)
    assert "c failed on Break (test): ValueError('bad')" in str(run.core.failure)
    assert "b -> c: Break (test)" in str(run.core.failure)
    assert [] == run.notebook.labels("joiner")
    assert [] == ours()


def test_who_is_told_of_a_failure_keeps_no_other_actor_from_ending(
    ours: Callable[[], list[str]],
) -> None:
    notebook = Notebook()
    run = Run(on_failure=lambda _: notebook.stay())
    run.core.start()
    run.b_sends(Send(to="c", message=Break(error=ValueError("bad"))), sent("joiner"))
    assert notebook.held.wait(PATIENCE_S)
    run.core.stop(timeout=1)
    # The thread of `b` is in the hook, and `c` is what it works for.
    assert {"yunikorn-actors-b", "yunikorn-actors-c"} == set(ours())
    notebook.let_go.set()
    wait_until(lambda: not ours())


def test_a_stop_while_a_thread_is_lent(ours: Callable[[], list[str]]) -> None:
    run = Run()
    run.core.start()
    run.b_sends(Send(to="c", message=Hold()), sent("c", label="late"), sent("joiner"))
    assert run.notebook.held.wait(PATIENCE_S)
    run.core.stop(timeout=0)
    run.notebook.let_go.set()
    wait_until(lambda: not ours())
    assert ([], []) == (run.notebook.labels("c"), run.notebook.labels("joiner"))
    assert run.core.failure is None


def test_an_actor_that_is_stopped_from_outside_meanwhile_ends_on_its_own_thread(
    ours: Callable[[], list[str]],
) -> None:
    run = Run()
    run.core.start()
    run.b_sends(Send(to="c", message=Hold()), sent("c", label="before"))
    assert run.notebook.held.wait(PATIENCE_S)
    ended = run.shell("c").actor_ref.stop(block=False)
    assert pykka.ActorRegistry.get_by_urn(run.shell("c").actor_urn) is not None
    run.notebook.let_go.set()
    assert ended.get(timeout=PATIENCE_S)
    wait_until(lambda: run.core._state == "stopped" and not ours())
    assert ["before"] == run.notebook.labels("c")
