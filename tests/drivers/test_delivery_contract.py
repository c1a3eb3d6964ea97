"""What both drivers promise, for any machine.

Order from one sender to one receiver, every message once, effects in their order, timers that fire
once, addresses that can be stopped, and callbacks one at a time.
"""

from typing import Any

import pytest
from probes import MS, Do, Lab, SimulatorLab

from yunikorn_actors import si
from yunikorn_actors.machines.machine import (
    CallRm,
    CancelTimer,
    Send,
    SetTimer,
    StartMachine,
    StopMachine,
)
from yunikorn_actors.messages.rm_calls import CallUpdateNode

OLD, NEW, CALLBACK = "rm:x#1", "rm:x#2", "rm:x#1"


def send(to: str, label: str, *effects: Any) -> Send:
    return Send(to=to, message=Do(label=label, effects=effects))


def timer(name: str, due_ns: int, *effects: Any, label: str | None = None) -> SetTimer:
    return SetTimer(name=name, due_ns=due_ns, message=Do(label=label or name, effects=effects))


def call(number: int, callback: str = CALLBACK) -> CallRm:
    accepted = (si.AcceptedNode(node_id=str(number)),)
    return CallRm(
        callback=callback, call=CallUpdateNode(response=si.NodeResponse(accepted=accepted))
    )


# -- messages


def test_what_one_sender_sends_to_one_receiver_arrives_once_and_in_order(lab: Lab) -> None:
    numbers = [str(number) for number in range(200)]
    lab.post("a", *(Do(label=number, effects=(send("b", number),)) for number in numbers))
    lab.post("b", *(Do(label="direct " + number) for number in numbers))
    lab.rest()
    at_b = lab.notebook.labels("b")
    assert numbers == lab.notebook.labels("a")
    assert numbers == [label for label in at_b if label in numbers]
    assert ["direct " + number for number in numbers] == [x for x in at_b if x not in numbers]
    assert lab.is_settled()


def test_two_senders_lose_nothing_to_each_other(lab: Lab) -> None:
    expected: dict[str, list[str]] = {}
    for sender in ("a", "b"):
        expected[sender] = [f"{sender}{number}" for number in range(100)]
        lab.post(sender, *(Do(label="", effects=(send("c", x),)) for x in expected[sender]))
    lab.rest()
    at_c = lab.notebook.labels("c")
    for sender, labels in expected.items():
        assert labels == [label for label in at_c if label.startswith(sender)]
    assert 200 == len(at_c)


def test_a_message_to_oneself_comes_after_those_that_wait(lab: Lab) -> None:
    lab.post("a", Do(label="1", effects=(send("a", "3"), send("a", "4"))))
    lab.rest()
    assert ["1", "3", "4"] == lab.notebook.labels("a")


def test_a_long_chain_of_messages_ends(lab: Lab) -> None:
    message = Do(label="0")
    for number in range(1, 100):
        to = "ab"[number % 2]
        message = Do(label=str(number), effects=(Send(to=to, message=message),))
    lab.post("a", message)
    lab.rest()
    assert 100 == len(lab.notebook.notes)
    assert lab.is_settled()


def test_the_chooser_of_the_simulator_orders_what_it_may() -> None:
    """Different seeds give different orders between senders, or nothing would be explored."""
    orders = set()
    for seed in range(8):
        lab = SimulatorLab("proposing", seed=seed)
        for sender in ("a", "b"):
            lab.post(sender, *(Do(label="", effects=(send("c", sender),)) for _ in range(5)))
        lab.rest()
        orders.add("".join(lab.notebook.labels("c")))
    assert len(orders) > 4


# -- effects


def test_effects_happen_in_their_order(lab: Lab) -> None:
    start = StartMachine(address="d", kind="probe", arguments={"address": "d"})
    effects = (send("d", "too early"), start, send("d", "in time"), send("b", "last"))
    lab.post("a", Do(label="", effects=effects))
    lab.rest()
    assert ["in time"] == lab.notebook.labels("d")
    assert ["last"] == lab.notebook.labels("b")


def test_nothing_reaches_an_address_that_was_stopped(lab: Lab) -> None:
    lab.post("a", Do(label="", effects=(StopMachine(address="b"), send("b", "lost"))))
    lab.rest()
    lab.post("a", Do(label="", effects=(send("b", "lost"), send("c", "there"))))
    lab.rest()
    assert [] == lab.notebook.labels("b")
    assert ["there"] == lab.notebook.labels("c")
    assert lab.is_settled()


def test_what_waited_at_an_address_that_is_stopped_is_dropped(lab: Lab) -> None:
    lab.hold("b")
    waiting = (send("b", "lost") for _ in range(10))
    effects = (*waiting, StopMachine(address="b"), send("c", "stopped"))
    lab.post("a", Do(label="", effects=effects))
    lab.run_until(lambda: lab.notebook.labels("c"))
    lab.let_go()
    lab.rest()
    assert [] == lab.notebook.labels("b")


def test_machines_may_stop_themselves_and_each_other(lab: Lab) -> None:
    lab.post("a", Do(label="", effects=(StopMachine(address="b"), StopMachine(address="a"))))
    lab.post("c", Do(label="", effects=(StopMachine(address="b"), StopMachine(address="nobody"))))
    lab.rest()
    lab.post("c", Do(label="", effects=(send("a", "lost"), send("c", "alive"))))
    lab.rest()
    assert ["", "", "alive"] == lab.notebook.labels("c")
    assert lab.is_settled()


def test_an_address_can_be_used_again(lab: Lab) -> None:
    start = StartMachine(address="b", kind="probe", arguments={"address": "b"})
    for number in range(20):
        stop = StopMachine(address="b")
        lost, kept = send("b", "lost"), send("b", str(number))
        lab.post("a", Do(label="", effects=(stop, lost, start, kept)))
        lab.rest()
    assert [str(number) for number in range(20)] == lab.notebook.labels("b")


# -- timers


def test_a_timer_fires_once_at_its_time(lab: Lab) -> None:
    due_ns = lab.now_ns + 50 * MS
    lab.post("a", Do(label="", effects=(timer("bell", due_ns),)))
    lab.rest()
    lab.pass_time(due_ns - 1)
    lab.rest()
    assert [""] == lab.notebook.labels("a")
    lab.pass_time(due_ns)
    lab.rest()
    lab.pass_time(due_ns + 1000 * MS)
    lab.rest()
    assert [("bell", due_ns)] == [(note.label, note.now_ns) for note in lab.notebook.notes[1:]]


def test_timers_fire_in_the_order_of_their_times(lab: Lab) -> None:
    start = lab.now_ns
    effects = [timer(str(n), start + n * MS) for n in (30, 10, 20, 0, 11)]
    lab.post("a", Do(label="", effects=tuple(effects)))
    lab.rest()
    lab.pass_time(start + 30 * MS)
    lab.rest()
    assert ["", "0", "10", "11", "20", "30"] == lab.notebook.labels("a")


REARMED = {"later": (10, 20), "earlier": (20, 10), "the same": (10, 10)}


@pytest.mark.parametrize(("first", "second"), REARMED.values(), ids=REARMED)
def test_a_timer_armed_again_is_replaced(lab: Lab, first: int, second: int) -> None:
    start = lab.now_ns
    old = timer("bell", start + first * MS, label="old")
    new = timer("bell", start + second * MS, label="new")
    lab.post("a", Do(label="", effects=(old, new)))
    lab.rest()
    for step in range(5, 40, 5):
        lab.pass_time(start + step * MS)
        lab.rest()
    rung = [(note.label, (note.now_ns - start) // MS) for note in lab.notebook.notes[1:]]
    assert [("new", second)] == rung


def test_a_cancelled_timer_does_not_fire(lab: Lab) -> None:
    due_ns = lab.now_ns + 10 * MS
    cancel = CancelTimer(name="bell")
    effects = (timer("bell", due_ns), timer("fence", due_ns + MS), cancel, cancel)
    lab.post("a", Do(label="", effects=effects))
    lab.rest()
    lab.pass_time(due_ns + MS)
    lab.rest()
    assert ["", "fence"] == lab.notebook.labels("a")


def test_a_name_is_a_timer_of_its_machine_alone(lab: Lab) -> None:
    due_ns = lab.now_ns + 10 * MS
    lab.post("a", Do(label="", effects=(timer("bell", due_ns),)))
    lab.rest()
    lab.post("b", Do(label="", effects=(CancelTimer(name="bell"), timer("bell", due_ns))))
    lab.rest()
    lab.pass_time(due_ns)
    lab.rest()
    assert (["", "bell"], ["", "bell"]) == (lab.notebook.labels("a"), lab.notebook.labels("b"))


def test_a_firing_under_way_is_not_called_back(lab: Lab) -> None:
    """The cancel comes too late for it: that is why firings carry a generation."""
    due_ns = lab.now_ns + 10 * MS
    cancels = timer("first", due_ns, CancelTimer(name="second"))
    lab.post("a", Do(label="", effects=(cancels, timer("second", due_ns))))
    lab.rest()
    lab.hold("a")
    lab.pass_time(due_ns)
    lab.let_go()
    lab.rest()
    assert ["", "first", "second"] == lab.notebook.labels("a")


def test_timers_of_a_stopped_machine_do_not_fire_for_the_next_one_there(lab: Lab) -> None:
    due_ns = lab.now_ns + 10 * MS
    lab.post("b", Do(label="former", effects=(timer("bell", due_ns), timer("gong", due_ns))))
    lab.rest()
    start = StartMachine(address="b", kind="probe", arguments={"address": "b"})
    lab.post("a", Do(label="", effects=(StopMachine(address="b"), start)))
    lab.rest()
    lab.pass_time(due_ns)
    lab.rest()
    assert ["former"] == lab.notebook.labels("b")
    assert lab.is_settled()


def test_time_stands_still_while_the_simulator_settles() -> None:
    lab = SimulatorLab("proposing", seed=5)
    start = lab.now_ns
    lab.post("a", Do(label="", effects=(timer("later", start + 1), *(send("b", "") for _ in "ab"))))
    lab.rest()
    assert {start} == {note.now_ns for note in lab.notebook.notes}
    lab.core.advance(10 * MS)
    assert (start + 1, start + 10 * MS) == (lab.notebook.notes[-1].now_ns, lab.now_ns)


def test_each_moment_is_settled_before_the_next() -> None:
    lab = SimulatorLab("proposing", seed=0)
    start = lab.now_ns
    again = timer("again", start + 5 * MS, send("b", "second"))
    first = timer("first", start + 5 * MS, send("b", "first"), again)
    lab.post("a", Do(label="", effects=(first, timer("last", start + 6 * MS, send("b", "last")))))
    lab.core.advance(10 * MS)
    expected = [("first", 5), ("second", 5), ("last", 6)]
    at_b = [note for note in lab.notebook.notes if note.address == "b"]
    assert expected == [(note.label, (note.now_ns - start) // MS) for note in at_b]


# -- callbacks


class Hearer(si.ResourceManagerCallback):
    """Notes the numbers it is called with, and whether two calls were ever under way at once."""

    def __init__(self, raised: BaseException | None = None) -> None:
        self.numbers: list[int] = []
        self.overlapped = False
        self.inside = False
        self._raised = raised

    def update_node(self, response: si.NodeResponse) -> None:
        self.overlapped = self.overlapped or self.inside
        self.inside = True
        self.numbers.extend(int(node.node_id) for node in response.accepted)
        self.inside = False
        if self._raised is not None:
            raise self._raised


def test_callbacks_come_in_order_and_one_at_a_time(lab: Lab) -> None:
    hearer = Hearer()
    lab.open(CALLBACK, hearer)
    lab.post("a", *(Do(label="", effects=(call(2 * n), call(2 * n + 1))) for n in range(100)))
    lab.rest()
    assert list(range(200)) == hearer.numbers
    assert not hearer.overlapped


def test_a_callback_that_raises_hurts_nobody(lab: Lab) -> None:
    raising, other = Hearer(ValueError("its own fault")), Hearer()
    lab.open(OLD, raising)
    lab.open(NEW, other)
    lab.post("a", *(Do(label="", effects=(call(n, OLD), call(n, NEW))) for n in range(10)))
    lab.rest()
    assert (list(range(10)), list(range(10))) == (raising.numbers, other.numbers)
    lab.post("b", Do(label="alive"))
    lab.rest()
    assert ["alive"] == lab.notebook.labels("b")


def test_a_callback_that_was_closed_hears_nothing_more(lab: Lab) -> None:
    old, new = Hearer(), Hearer()
    lab.open(OLD, old)
    lab.open(NEW, new)
    cut = (call(1, OLD), StopMachine(address=OLD), call(2, OLD), call(3, NEW))
    lab.post("a", Do(label="", effects=(call(0, OLD),)))
    lab.rest()
    lab.post("a", Do(label="", effects=cut))
    lab.rest()
    assert [3] == new.numbers
    assert [0] == [number for number in old.numbers if number != 1]
