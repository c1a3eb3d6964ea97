"""The first failure is kept with its story; the core then takes nothing more and says so."""

import threading
from typing import Any

import pykka
import pytest
from probes import (
    PATIENCE_S,
    Break,
    Do,
    Notebook,
    Probe,
    add_nodes,
    probed_core,
    register,
    wait_until,
)
from support import Recorder

from yunikorn_actors import CoreFailed, SchedulerCore, si
from yunikorn_actors.machines.machine import (
    CallRm,
    Effect,
    InvariantViolation,
    Send,
    StartMachine,
)
from yunikorn_actors.messages.base import EVENT_PUBLISHER, Cause, Envelope, Message
from yunikorn_actors.messages.rm_calls import CallUpdateNode


def failed(core: SchedulerCore, error: BaseException) -> CoreFailed:
    core._post("a", Break(error=error), "the blow")
    core._go_on()
    wait_until(lambda: core.failure)
    assert core.failure is not None
    return core.failure


def test_a_failure_is_told_with_its_story() -> None:
    core = probed_core(Notebook()).start()
    for number in range(40):
        core._post("a", Do(label=""), f"call-{number}")
        core._go_on()
    failure = failed(core, ValueError("two and two make five"))
    text = str(failure)
    assert text.startswith("a failed on Break (the blow): ValueError('two and two make five')")
    assert "gateway -> a: Do (call-39)\n  gateway -> a: Break (the blow)" in text
    assert 29 == text.count("gateway -> a: Do")
    assert ValueError is type(failure.__cause__)
    core.stop(PATIENCE_S)


def test_a_broken_invariant_carries_the_story_itself() -> None:
    core = probed_core(Notebook()).start()
    failure = failed(core, InvariantViolation("negative free"))
    core.stop(PATIENCE_S)
    assert isinstance(failure.__cause__, InvariantViolation)
    assert ("negative free", ("gateway -> a: Break (the blow)",)) == (
        failure.__cause__.what,
        failure.__cause__.story,
    )


def test_every_call_says_so_and_so_does_the_end_of_the_block() -> None:
    core = probed_core(Notebook())
    core.__enter__()
    register(core, Recorder())
    failed(core, ValueError())
    for ask in (
        lambda: add_nodes(core, "n1"),
        lambda: register(core, Recorder()),
        core.state_dump,
        core.events,
        lambda: core.__exit__(None, None, None),
    ):
        with pytest.raises(CoreFailed, match="a failed on Break") as caught:
            ask()
        assert ValueError is type(caught.value.__cause__)
        assert caught.value is not core.failure
    assert ["rm:rm-1#1"] == [x for x in core._actors.by_address if x.startswith("rm:")]


def test_the_end_of_the_block_does_not_hide_what_was_raised_inside() -> None:
    core = probed_core(Notebook()).start()
    failed(core, ValueError())
    inside = KeyError("raised inside")
    core.__exit__(KeyError, inside, None)
    assert isinstance(core.failure, CoreFailed)


class FailingTwice(Probe):
    """Its message fails the core; what is raised while that is dealt with does so again."""

    core: SchedulerCore

    def handle(self, message: Message, now_ns: int) -> list[Effect]:  # noqa: ARG002
        failed = CoreFailed("first")
        self.core._end_with(failed, failed)
        raise ValueError("second")


def test_the_second_failure_does_not_replace_the_first() -> None:
    notebook = Notebook()
    core = probed_core(notebook).start()
    probe = core._actors.by_address["a"].holder = FailingTwice("a", notebook)
    probe.core = core
    first = failed(core, ValueError())
    wait_until(core.is_settled)
    core.stop(PATIENCE_S)
    assert core.failure is first
    assert "first" in str(first)


def test_a_caller_that_waits_is_let_go() -> None:
    core = probed_core(Notebook(), replaced=(EVENT_PUBLISHER,)).start()
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            core.events()
        except CoreFailed as error:
            raised.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_until(lambda: core._replies._slots)
    failed(core, ValueError())
    asking.join(PATIENCE_S)
    core.stop(PATIENCE_S)
    assert 1 == len(raised)


def test_nothing_is_handled_after_a_failure() -> None:
    """Neither by machines nor by callbacks; what waits is counted, so the core is at rest."""
    notebook, rm = Notebook(), Recorder()
    core = probed_core(notebook).start()
    core._open_callback("rm:x#1", rm)
    told = CallUpdateNode(response=si.NodeResponse(accepted=(si.AcceptedNode(node_id="n1"),)))
    wanted: tuple[Any, ...] = (
        CallRm(callback="rm:x#1", call=told),
        Send(to="c", message=Do(label="lost")),
        StartMachine(address="d", kind="probe", arguments={"address": "d"}),
    )
    core._post("a", Break(error=ValueError(), held=True), "")
    core._go_on()
    assert notebook.held.wait(PATIENCE_S)
    core._post("b", Do(label="", effects=wanted), "")
    notebook.let_go.set()
    wait_until(lambda: core.failure)
    threads = threading.active_count()
    actor = core._actors.by_address["a"]
    blow = Do(label="", effects=wanted)
    core._actors.tell("a", Envelope("test", blow, *_at(actor).at))
    core._go_on()
    wait_until(core.is_settled)
    core.inside.carry_out(_at(actor), wanted[-1])
    assert ([], []) == (notebook.notes, rm.heard)
    assert threads == threading.active_count()
    core.stop(PATIENCE_S)


def _at(actor: Any) -> Any:
    actor.at = (Cause("test", 1), "")
    return actor


@pytest.mark.parametrize("error", [SystemExit(), KeyboardInterrupt(), MemoryError()])
def test_a_machine_that_exits_fails_its_core_alone(error: BaseException) -> None:
    foreign = pykka.ThreadingActor.start()
    try:
        core = probed_core(Notebook()).start()
        failed(core, error)
        core.stop(PATIENCE_S)
        assert foreign.is_alive()
    finally:
        foreign.stop()


def test_an_effect_that_cannot_be_carried_out_is_a_failure() -> None:
    core = probed_core(Notebook()).start()
    start = StartMachine(address="d", kind="no such kind", arguments={})
    core._post("a", Do(label="", effects=(start,)), "")
    core._go_on()
    wait_until(lambda: core.failure)
    core.stop(PATIENCE_S)
    assert isinstance(core.failure, CoreFailed)
    assert "no such kind" in str(core.failure)


def test_a_core_that_has_failed_is_stopped_like_any_other() -> None:
    core = probed_core(Notebook()).start()
    failed(core, ValueError())
    stopping = [threading.Thread(target=core.stop, args=(PATIENCE_S,)) for _ in range(3)]
    for thread in stopping:
        thread.start()
    for thread in stopping:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in stopping)
