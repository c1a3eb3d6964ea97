"""What goes wrong is heard: by a hook of the program, else on standard error, and in the dump."""

import asyncio
import threading
from collections.abc import Callable
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from looping import break_down, gated, node_request, on_a_loop, outcome, until
from looping import register as register_on_loop
from probes import PATIENCE_S, Break, Notebook, add_nodes, probed_core, register, wait_until
from support import RM, Recorder

from yunikorn_actors import (
    AsyncSchedulerCore,
    CallbackRaised,
    CoreFailed,
    SchedulerCore,
    si,
)
from yunikorn_actors.messages import rm_calls as c
from yunikorn_actors.messages.callbacks import call_back, method_of
from yunikorn_actors.messages.predicates import PredicatesAnswered, PreemptionPredicatesAnswered
from yunikorn_actors.runtime import failure_hooks as hooks


class Raising(Recorder):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        raise self._error


ERRORS = [ValueError("its own fault"), SystemExit(3), KeyboardInterrupt("made up")]


# -- callbacks


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_what_a_callback_raises_is_printed_and_counted(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    with SchedulerCore() as core:
        register(core, Raising(error))
        assert {} == core.state_dump()["callback_errors"]
        add_nodes(core, "n1")
        wait_until(lambda: core.state_dump()["callback_errors"] == {RM: 1})
    printed = capsys.readouterr().err
    line = "yunikorn_actors: callback rm:rm-1#1 raised on CallUpdateNode\nTraceback"
    assert (1, 1) == (printed.count(line), printed.count(f"\n{type(error).__name__}"))


def test_what_is_raised_again_and_again_is_printed_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 1_000.0
    monkeypatch.setattr(hooks, "time", SimpleNamespace(monotonic=lambda: now_s))
    told = hooks.Hooks(None, None)

    def printed(rm_id: str = RM, method: str = "update_node") -> list[str]:
        told.callback_raised("rm:it#1", "It", CallbackRaised(rm_id, method, ERRORS[0]))
        return [it for it in capsys.readouterr().err.splitlines() if "raised" in it]

    line = "yunikorn_actors: callback rm:it#1 raised on It"
    assert [[line], [], []] == [printed() for _ in range(3)]
    assert [line] == printed("rm-2") == printed(method="update_allocation")
    now_s += hooks.QUIET_S
    assert [f"{line}, as 2 times since the last line about it"] == printed()
    now_s += hooks.QUIET_S
    assert [line] == printed()
    assert 1 == len(told._printed), "of managers that come and go nothing stays"


def test_it_is_not_printed_where_the_log_has_it(
    log: StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    with SchedulerCore() as core:
        register(core, Raising(ERRORS[0]))
        add_nodes(core, "n1")
        wait_until(lambda: "its own fault" in log.getvalue())
    assert "yunikorn_actors: callback" not in capsys.readouterr().err


def test_a_program_may_hear_of_it_itself(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[CallbackRaised] = []
    with SchedulerCore(on_callback_error=told.append) as core:
        register(core, Raising(ERRORS[1]))
        add_nodes(core, "n1")
        wait_until(lambda: told)
    assert [(RM, "update_node", ERRORS[1])] == told
    assert "" == capsys.readouterr().err


def test_a_hook_that_raises_hides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def hook(told: CallbackRaised) -> None:
        raise SystemExit(told.method)

    with SchedulerCore(on_callback_error=hook) as core:
        register(core, rm := Raising(ERRORS[0]))
        add_nodes(core, "n1")
        add_nodes(core, "n2")
        wait_until(lambda: len(rm.told("node")) == 2)
        wait_until(core.is_settled)
    printed = capsys.readouterr().err
    assert (2, 2) == (printed.count("its own fault"), printed.count("SystemExit: update_node"))
    assert "yunikorn_actors: on_callback_error raised, and was given CallbackRaised" in printed


class Speechless(si.ResourceManagerCallback):
    """Every question raises what `sys.exit` does."""

    def predicates(self, args: si.PredicatesArgs) -> str | None:  # noqa: ARG002
        raise SystemExit

    def preemption_predicates(
        self,
        args: si.PreemptionPredicatesArgs,  # noqa: ARG002
    ) -> si.PreemptionPredicatesResponse | None:
        raise SystemExit

    def get_state_dump(self) -> str:
        raise SystemExit


@pytest.mark.parametrize(
    ("call", "method"),
    [
        (c.CallPredicates(call_id=1, args=si.PredicatesArgs()), "predicates"),
        (
            c.CallPreemptionPredicates(call_id=1, args=si.PreemptionPredicatesArgs()),
            "preemption_predicates",
        ),
        (c.CallGetStateDump(reply_to="reply:1"), "get_state_dump"),
    ],
)
def test_a_question_on_which_a_callback_raises_is_answered_and_told(
    call: c.Message, method: str
) -> None:
    answer, error = call_back(Speechless(), call)
    assert answer is not None
    assert SystemExit is type(error)
    assert method == method_of(type(call))


class Mistaken(si.ResourceManagerCallback):
    """Every question is answered as if it were another one."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def predicates(self, args: si.PredicatesArgs) -> Any:  # noqa: ARG002
        return self._answer

    def preemption_predicates(self, args: si.PreemptionPredicatesArgs) -> Any:  # noqa: ARG002
        return self._answer


@pytest.mark.parametrize("answer", [True, False, 0, ("no",), si.PredicatesArgs()], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        c.CallPredicates(call_id=1, args=si.PredicatesArgs()),
        c.CallPreemptionPredicates(call_id=1, args=si.PreemptionPredicatesArgs()),
    ],
    ids=["predicates", "preemption_predicates"],
)
def test_an_answer_of_another_type_is_a_no_that_is_told(call: c.Message, answer: object) -> None:
    """`False` for "does not fit" would be read as "no reason why not"."""
    outcome_, error = call_back(Mistaken(answer), call)
    assert isinstance(error, TypeError)
    assert f"{method_of(type(call))} returned {answer!r:.100}" in str(error)
    match outcome_:
        case PredicatesAnswered(reason=reason):
            assert reason
        case PreemptionPredicatesAnswered(response=response):
            assert not response.success
        case _:
            pytest.fail("no answer")


def test_every_call_is_of_a_method_that_exists() -> None:
    methods = {name for name in vars(si.ResourceManagerCallback) if not name.startswith("_")}
    calls = {it for name, it in vars(c).items() if name.startswith("Call")} - {c.CallMark}
    assert methods == {method_of(it) for it in calls}


# -- failures of the core


def test_a_failure_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    core = probed_core(Notebook()).start()
    core._post("a", Break(error=ValueError("two and two\nmake five")), "the blow")
    core._go_on()
    core._post("b", Break(error=ValueError("later")), "the blow")
    core._go_on()
    wait_until(core.is_settled)
    core.stop(PATIENCE_S)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("yunikorn_actors: ")
    assert "failed on Break (the blow): ValueError(" in line
    assert line.endswith("; the core takes nothing more: start another one")


def test_a_program_hears_of_a_failure_without_a_call(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[CoreFailed] = []
    heard = threading.Event()

    def hook(failure: CoreFailed) -> None:
        told.append(failure)
        core.stop()
        heard.set()

    core = probed_core(Notebook(), on_failure=hook).start()
    core._post("a", Break(error=ValueError()), "the blow")
    core._go_on()
    assert heard.wait(PATIENCE_S)
    core.stop(PATIENCE_S)
    assert core.failure is not None
    assert [core.failure.args] == [failure.args for failure in told]
    assert "" == capsys.readouterr().err


@on_a_loop
async def test_on_a_loop_the_hook_is_called_on_it() -> None:
    told: asyncio.Queue[tuple[str, CoreFailed]] = asyncio.Queue()
    core = AsyncSchedulerCore(
        on_failure=lambda failure: told.put_nowait((threading.current_thread().name, failure))
    )
    await core.start()
    break_down(core)
    thread, failure = await told.get()
    assert (threading.current_thread().name, type(failure)) == (thread, CoreFailed)
    await core.stop()


@on_a_loop
async def test_whatever_waits_ends_with_the_reason() -> None:
    core = await AsyncSchedulerCore(on_failure=lambda _: None).start()
    handle = await register_on_loop(core)
    stream = await core.event_stream()
    gate = gated(core)
    break_down(core)
    questions = (core.state_dump(), core.explain("app", "a"), register_on_loop(core, "rm-2"))
    waiting = [
        asyncio.create_task(outcome(it))
        for it in (anext(handle.nodes()), anext(handle.allocations()), anext(stream), *questions)
    ]
    await until(lambda: len(core._core._replies._slots) == len(questions))
    gate.let_go()
    assert [CoreFailed] * len(waiting) == await asyncio.gather(*waiting)
    assert CoreFailed is await outcome(core.update_node(node_request("n1")))
    await core.stop()


# -- what has no answer


def _without_an_action(core: SchedulerCore) -> None:
    core.update_node(si.NodeRequest(rm_id=RM, nodes=(si.NodeInfo(node_id="n9"),)))


def _without_an_action_on_a_node_that_is_there(core: SchedulerCore) -> None:
    add_nodes(core, "n9")
    _without_an_action(core)


def _elsewhere(core: SchedulerCore) -> None:
    node = si.NodeInfo(
        node_id="n9", action=si.ActionFromRM.UPDATE, attributes={si.constants.NODE_PARTITION: "gpu"}
    )
    core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))


def _unknown_node(core: SchedulerCore) -> None:
    node = si.NodeInfo(node_id="n9", action=si.ActionFromRM.DRAIN_NODE)
    core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))


def _unknown_application(core: SchedulerCore, partition: str = "") -> None:
    gone = si.RemoveApplicationRequest(application_id="ghost", partition_name=partition)
    core.update_application(si.ApplicationRequest(rm_id=RM, remove=(gone,)))


@pytest.mark.parametrize(
    ("act", "line"),
    [
        (
            _without_an_action,
            (
                "WARNING yunikorn_actors.runtime.scheduler_core action UNKNOWN_ACTION_FROM_RM on node n9 of "
                "[rm-1]default refused: unknown node; set NodeInfo.action"
            ),
        ),
        (
            _without_an_action_on_a_node_that_is_there,
            (
                "WARNING yunikorn_actors.runtime.scheduler_core action UNKNOWN_ACTION_FROM_RM on node n9 of "
                "[rm-1]default refused: unknown action; set NodeInfo.action"
            ),
        ),
        (
            _elsewhere,
            (
                "WARNING yunikorn_actors.runtime.scheduler_core action UPDATE on node n9 of [rm-1]gpu refused: "
                "unknown partition [rm-1]gpu"
            ),
        ),
        (
            _unknown_node,
            (
                "WARNING yunikorn_actors.runtime.scheduler_core action DRAIN_NODE on node n9 of "
                "[rm-1]default refused: unknown node"
            ),
        ),
        (
            _unknown_application,
            (
                "INFO yunikorn_actors.runtime.scheduler_core application ghost of [rm-1]default cannot be "
                "removed: it is unknown or has ended already"
            ),
        ),
        (
            lambda core: _unknown_application(core, "gpu"),
            (
                "INFO yunikorn_actors.runtime.scheduler_core application ghost of [rm-1]gpu cannot be removed: "
                "it is unknown or has ended already"
            ),
        ),
    ],
)
def test_what_is_not_answered_leaves_a_line(
    act: Callable[[SchedulerCore], None], line: str, log: StringIO
) -> None:
    with SchedulerCore() as core:
        register(core, Recorder())
        act(core)
        wait_until(core.is_settled)
    assert f" {line}\n" in log.getvalue()
