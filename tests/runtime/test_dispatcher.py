"""On threads one dispatcher runs the machines, whichever has messages.

The driver `direct` has tests of its own.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pykka
import pytest
from probes import PATIENCE_S, Break, Do, Hold, Joint, Notebook, Probe, probed_core, wait_until
from support import Recorder

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.drivers.live import dispatcher
from yunikorn_actors.drivers.live.actors import MachineActor
from yunikorn_actors.machines.machine import CallRm, Effect, Send
from yunikorn_actors.messages.base import RM_PROXY, Message
from yunikorn_actors.messages.rm_calls import CallUpdateNode

MANY = 300
OWN = "yunikorn-actors-dispatcher"


class Run:
    """A core with probes."""

    def __init__(self, **made_with: Any) -> None:
        self.notebook = Notebook()
        self.core: SchedulerCore = probed_core(self.notebook, **made_with)

    def post(self, address: str, *messages: Message) -> None:
        with self.core._afterwards:
            for message in messages:
                self.core._post(address, message, "test")

    def actor(self, address: str) -> MachineActor:
        found = self.core._actors.by_address[address]
        assert isinstance(found, MachineActor)
        return found

    def order(self) -> list[str]:
        """Return who has handled what, when all is done."""
        wait_until(self.core.is_settled)
        return [f"{it.address}{it.label}" for it in self.notebook.notes]


def sent(to: str, *effects: Effect, label: str = "") -> Send:
    return Send(to=to, message=Do(label=label, effects=effects))


@pytest.fixture
def run() -> Iterator[Run]:
    run = Run()
    with run.core:
        yield run
        run.notebook.let_go.set()


def test_all_machines_run_on_the_thread_of_the_dispatcher(run: Run) -> None:
    run.post("a", Do(label="1", effects=(sent("b", sent("c", label="3"), label="2"),)))
    assert ["a1", "b2", "c3"] == run.order()
    assert {OWN} == {it.thread for it in run.notebook.notes}


def test_each_mailbox_is_worked_off_before_the_next(run: Run) -> None:
    """What waits together is handled together."""
    to_each = [sent(to, label=str(n)) for n in range(3) for to in "bc"]
    run.post("a", Do(label="", effects=tuple(to_each)))
    assert ["a", "b0", "b1", "b2", "c0", "c1", "c2"] == run.order()


def test_after_a_slice_of_time_the_next_comes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "SLICE_NS", 0)
    to_each = [sent(to, label=str(n)) for n in range(3) for to in "bc"]
    run.post("a", Do(label="", effects=tuple(to_each)))
    assert ["a", "b0", "c0", "b1", "c1", "b2", "c2"] == run.order()


def test_rm_proxy_comes_first() -> None:
    run = Run(replaced=(RM_PROXY,))
    with run.core:
        run.post("a", Do(label="", effects=(sent("b"), sent("c"), sent(RM_PROXY))))
        assert ["a", RM_PROXY, "b", "c"] == run.order()


def test_messages_are_handled_together(run: Run) -> None:
    run.post("a", Do(label="", effects=tuple(_joint(str(n)) for n in range(3))))
    wait_until(run.core.is_settled)
    assert [["0", "1", "2"]] == run.notebook.joint


def _joint(label: str) -> Send:
    return Send(to="joiner", message=Joint(label=label))


class Where(Recorder):
    def __init__(self, noted: Callable[[], None]) -> None:
        super().__init__()
        self.threads: list[str] = []
        self._noted = noted

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        self.threads.append(threading.current_thread().name)
        self._noted()


TOLD = CallUpdateNode(response=si.NodeResponse(accepted=(si.AcceptedNode(node_id="n1"),)))


def test_a_callback_has_its_own_thread_and_hears_last(run: Run) -> None:
    """The dispatcher is about to wait then, and the interpreter is free for the callback."""
    before: list[list[str]] = []
    rm = Where(lambda: before.append(run.notebook.labels("c")))
    run.core._open_callback("rm:x#1", rm)
    run.post("a", Do(label="", effects=(CallRm(callback="rm:x#1", call=TOLD), sent("c"))))
    wait_until(run.core.is_settled)
    assert (["yunikorn-actors-rm:x#1"], [[""]]) == (rm.threads, before)


def test_a_callback_does_not_wait_for_a_machine_that_has_much_to_do(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "SLICE_NS", 0)
    heard = threading.Event()
    run.core._open_callback("rm:x#1", Where(heard.set))
    call = CallRm(callback="rm:x#1", call=TOLD)
    run.post("a", Do(label="", effects=(call, sent("b"), Send(to="c", message=Hold()))))
    assert heard.wait(PATIENCE_S)
    run.notebook.let_go.set()


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


def test_what_comes_after_the_last_look_is_not_forgotten(run: Run) -> None:
    """Who brings it does not get the hold, and who has that has found nothing left."""
    wait_until(run.core.is_settled)
    wait_until(lambda: not run.core._dispatcher._hold.locked())
    bring = lambda: run.post("b", Do(label="late"))  # noqa: E731
    run.core._dispatcher._hold = Last(run.core._dispatcher._hold, bring)  # type: ignore[assignment]
    run.post("a", Do(label=""))
    wait_until(lambda: run.notebook.labels("b"))
    assert ["late"] == run.notebook.labels("b")


class Meeting(Probe):
    """Notes whether two threads met here."""

    def __init__(self, address: str, notebook: Notebook) -> None:
        super().__init__(address, notebook)
        self.have_met = False
        self._lock = threading.Lock()

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        self.have_met |= not self._lock.acquire(blocking=False)
        effects = super().handle(message, now_ns)
        self._lock.release()
        return effects


@pytest.mark.parametrize("driver", ["threads", "direct"])
def test_many_send_to_each_other_at_once(driver: str) -> None:
    """Every message is handled once and in order."""
    run = Run(driver=driver)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with run.core:
            probes = {address: Meeting(address, run.notebook) for address in "abc"}
            for address, probe in probes.items():
                run.actor(address).holder = probe
            _send_around(run)
            wait_until(run.core.is_settled)
    finally:
        sys.setswitchinterval(before)
    for address, probe in probes.items():
        assert not probe.have_met
        labels = run.notebook.labels(address)
        assert 3 * MANY == len(labels)
        for caller in "012":
            mine = [label for label in labels if label.startswith(caller)]
            assert [f"{caller}-{n}" for n in range(MANY)] == mine


def _send_around(run: Run) -> None:
    """Have three callers each send to one probe, which sends on to the others."""
    barrier = threading.Barrier(3)

    def call(caller: int, way: str) -> None:
        barrier.wait(PATIENCE_S)
        for n in range(MANY):
            label = f"{caller}-{n}"
            onward = sent(way[1], sent(way[2], label=label), label=label)
            run.post(way[0], Do(label=label, effects=(onward,)))

    threads = [threading.Thread(target=call, args=it) for it in enumerate(("abc", "bca", "cab"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)


# -- failures and stops


def test_a_failure_names_its_machine_and_nothing_is_handled_after_it(
    ours: Callable[[], list[str]],
) -> None:
    run = Run()
    run.core.start()
    blow = Send(to="c", message=Break(error=ValueError("bad")))
    run.post("a", Do(label="", effects=(blow, sent("joiner"))))
    wait_until(run.core.is_settled)
    run.core.stop(PATIENCE_S)
    assert "c failed on Break (test): ValueError('bad')" in str(run.core.failure)
    assert "a -> c: Break (test)" in str(run.core.failure)
    assert [] == run.notebook.labels("joiner")
    assert [] == ours()


def test_a_machine_that_does_not_return_keeps_no_stop_waiting(
    ours: Callable[[], list[str]],
) -> None:
    run = Run()
    run.core.start()
    held = Send(to="c", message=Hold())
    run.post("a", Do(label="", effects=(held, sent("c", label="late"), sent("joiner"))))
    assert run.notebook.held.wait(PATIENCE_S)
    run.core.stop(timeout=0)
    assert OWN in ours()
    run.notebook.let_go.set()
    wait_until(lambda: not ours())
    assert ([], []) == (run.notebook.labels("c"), run.notebook.labels("joiner"))
    assert run.core.failure is None


def test_a_machine_that_is_stopped_from_outside_ends_behind_what_waits(
    ours: Callable[[], list[str]],
) -> None:
    run = Run()
    run.core.start()
    run.post("c", Hold(), Do(label="before"))
    assert run.notebook.held.wait(PATIENCE_S)
    ended = run.actor("c").actor_ref.stop(block=False)
    assert pykka.ActorRegistry.get_by_urn(run.actor("c").actor_urn) is not None
    run.notebook.let_go.set()
    assert ended.get(timeout=PATIENCE_S)
    wait_until(lambda: run.core.state == "stopped" and not ours())
    assert ["before"] == run.notebook.labels("c")


@pytest.mark.parametrize(
    "ending", [SystemExit(3), KeyboardInterrupt(), ValueError("bad")], ids=repr
)
def test_what_a_proxied_call_raises_is_for_its_caller(run: Run, ending: BaseException) -> None:
    """The dispatcher goes on: it holds what nobody else could give back."""
    call = pykka.messages.ProxyCall(
        attr_path=("holder", "handle"), args=(Break(error=ending), 0), kwargs={}
    )
    with pytest.raises(type(ending)):
        run.actor("c").actor_ref.ask(call, timeout=PATIENCE_S)
    run.post("a", Do(label="after"))
    assert ["aafter"] == run.order()[-1:]
    assert run.core.failure is None


def test_what_a_signal_raises_in_a_proxied_call_is_for_the_main_thread() -> None:
    """With `direct` it runs the machines; nobody may wait for the outcome of the call."""
    run = Run(driver="direct")
    with run.core:
        call = pykka.messages.ProxyCall(
            attr_path=("holder", "handle"), args=(Break(error=SystemExit(3)), 0), kwargs={}
        )
        with pytest.raises(SystemExit):
            run.actor("c").actor_ref.tell(call)
        run.post("a", Do(label="after"))
        assert ["aafter"] == run.order()[-1:]
