"""What every driver promises of messages that a machine handles together."""

from itertools import pairwise

import pytest
from probes import MS, Do, Joint, Lab, SimulatorLab, ThreadsLab

from yunikorn_actors.drivers.live import actors
from yunikorn_actors.machines.machine import Send
from yunikorn_actors.messages.base import Delivery


def joint(*labels: str, takes_ms: int = 0, to: str = "b") -> list[Joint]:
    """Messages of which each sends its label on to a probe."""
    return [
        Joint(
            label=label,
            takes_ns=takes_ms * MS,
            effects=(Send(to=to, message=Do(label=label)),),
        )
        for label in labels
    ]


class Tape:
    """Stands in for the recorder of a core."""

    def __init__(self, found: list[Delivery]) -> None:
        self.add = found.append

    def took(self, *_: object) -> None:
        """Nobody asks how long it took."""

    def digest_of(self, *_: object) -> str:
        """Nobody reads it."""
        return ""

    def close(self, *_: object) -> None:
        """Nothing is written."""


@pytest.fixture
def deliveries(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> list[Delivery]:
    """What a recording would have, of any driver."""
    found: list[Delivery] = []
    if isinstance(lab, SimulatorLab):
        lab.core._recorders = (found.append,)
    elif isinstance(lab, ThreadsLab):
        monkeypatch.setattr(lab.core.inside, "recorder", Tape(found))
    return found


def test_those_that_wait_are_handled_once_and_in_their_order(lab: Lab) -> None:
    labels = [str(number) for number in range(20)]
    lab.hold("joiner")
    lab.post("joiner", *joint(*labels))
    lab.let_go()
    lab.rest()
    assert labels == lab.notebook.labels("joiner")
    assert labels == [label for labels in lab.notebook.joint for label in labels]
    assert labels == lab.notebook.labels("b")
    assert lab.is_settled()


def test_drivers_in_service_take_all_that_wait(lab: Lab) -> None:
    if isinstance(lab, SimulatorLab):
        pytest.skip("there the chooser says how many")
    lab.hold("joiner")
    lab.post("joiner", *joint("1", "2", "3"))
    lab.let_go()
    lab.rest()
    assert [["1", "2", "3"]] == lab.notebook.joint


def test_the_chooser_of_the_simulator_says_how_many() -> None:
    """Different seeds take different numbers, and plain first in, first out takes one by one."""
    sizes = set()
    for seed in range(8):
        lab = SimulatorLab("proposing", seed=seed)
        lab.post("joiner", *joint(*"1234"))
        lab.rest()
        sizes.add(tuple(len(labels) for labels in lab.notebook.joint))
        if not seed:
            assert {(1, 1, 1, 1)} == sizes
    assert len(sizes) > 4


def test_a_message_that_may_not_join_comes_between(lab: Lab) -> None:
    lab.hold("joiner")
    lab.post("joiner", *joint("1", "2"), Do(label="other"), *joint("3", "4"))
    lab.let_go()
    lab.rest()
    assert ["1", "2", "other", "3", "4"] == lab.notebook.labels("joiner")
    assert not any({"2", "3"} <= set(labels) for labels in lab.notebook.joint)
    assert lab.is_settled()


def test_each_has_its_own_record_and_the_last_has_caused_it_all(
    lab: Lab, deliveries: list[Delivery]
) -> None:
    lab.hold("joiner")
    lab.post("joiner", *joint("1", "2", "3", "4"))
    lab.let_go()
    lab.rest()
    at_joiner = [it for it in deliveries if isinstance(it.message, Joint)]
    assert ["1", "2", "3", "4"] == [it.message.label for it in at_joiner]
    assert all(later.step == first.step + 1 for first, later in pairwise(at_joiner))
    begins = [labels[0] for labels in lab.notebook.joint]
    assert begins == [it.message.label for it in at_joiner if not it.joined]
    last_of = {labels[-1]: labels for labels in lab.notebook.joint}
    led_to = [labels for it in at_joiner for labels in [last_of.get(it.message.label, [])]]
    by_cause = [
        [it.message.label for it in deliveries if it.mailbox == "b" and it.cause.step == each.step]
        for each in at_joiner
    ]
    assert led_to == by_cause
    for each in deliveries:
        handled_before = deliveries[: deliveries.index(each)]
        assert not each.cause.step or each.cause in [it[:2] for it in handled_before]


def test_no_more_are_taken_when_the_time_is_over(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of two milliseconds each: after the second there is a millisecond left."""
    if isinstance(lab, SimulatorLab):
        pytest.skip("time stands still there")
    monkeypatch.setattr(actors, "monotonic_ns", lambda: lab.notebook.spent_ns)
    assert 5 * MS == actors.JOINT_MAX_NS
    lab.hold("joiner")
    lab.post("joiner", *joint(*"12345678", takes_ms=2))
    lab.let_go()
    lab.rest()
    assert [["1", "2", "3"], ["4", "5", "6"], ["7", "8"]] == lab.notebook.joint


def test_nothing_more_is_taken_by_a_core_that_is_stopped(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(lab, SimulatorLab):
        pytest.skip("a simulated core is not stopped")
    assert isinstance(lab, ThreadsLab)
    core = lab.core

    def stopped_after_the_first() -> int:
        if lab.notebook.joint:
            core._actors.silence()
        return 0

    monkeypatch.setattr(actors, "monotonic_ns", stopped_after_the_first)
    lab.hold("joiner")
    lab.post("joiner", *joint("1", "2", "3"))
    lab.let_go()
    lab.rest()
    assert [["1"]] == lab.notebook.joint


def test_a_failure_names_the_message_that_was_in_hand(lab: Lab) -> None:
    if isinstance(lab, SimulatorLab):
        lab.post("joiner", *joint("1"), Joint(label="2", error=ValueError("broken")))
        with pytest.raises(ValueError, match="broken"):
            lab.rest()
        return
    assert isinstance(lab, ThreadsLab)
    lab.hold("joiner")
    lab.post("joiner", *joint("1"), *joint("2"))
    with lab.core._afterwards:
        lab.core._post("joiner", Joint(label="3", error=ValueError("broken")), "the third")
    lab.let_go()
    lab.run_until(lambda: lab.core.failure)  # type: ignore[union-attr]
    assert "joiner failed on Joint (the third)" in str(lab.core.failure)
    assert [] == lab.notebook.labels("b"), "what was decided before is not told either"
