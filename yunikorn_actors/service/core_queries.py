"""Questions of a read side to its core, each with a plain answer.

A read side may live in another process, so questions and answers are plain values. What is to be
changed is a question as well: whether it was done. The answers that take long are counted here by
name, and none of them is a state dump.
"""

import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from yunikorn_actors.errors import ConfigError, Refused, UnknownAsk
from yunikorn_actors.planning.reasons import WaitingQuestion
from yunikorn_actors.recording.secret_values import masked_dump
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.service.listener import Questions, Site, Standing
from yunikorn_actors.service.node_acts import NODE_ACTS, NodeAct
from yunikorn_actors.service.served import QuestionedCore, ServedCore
from yunikorn_actors.values.masking import masked

CAUSES_S: Final = 0.5
CAUSES_SHARE: Final = 30
"""What was counted holds for so many times as long as it took to count."""


def questions_of(site: Site) -> Questions:
    """Find who answers: whom the site names, or the core of this process."""
    if site.questions is not None:
        return site.questions
    assert isinstance(site.core, SchedulerCore)
    return CoreQuestions(site.core, site.standing)


class CoreQuestions:
    def __init__(
        self,
        core: QuestionedCore,
        standing: Standing,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._core = core
        self._standing = standing
        self._causes = Causes(core, now_s)

    def ask(self, question: str, *arguments: str) -> Any:  # noqa: ANN401 - plain values
        if question in OF_SERVICE:
            return OF_SERVICE[question](self._core, self._standing, *arguments)
        if question == "causes":
            return self._causes.of(*arguments)
        if question == "metrics":
            return _metrics(self._core) | {"causes": self._causes.of(*arguments)}
        return ANSWERS[question](self._core, *arguments)


class Causes:
    """Counts of waiting asks by cause, no oftener than the core can be asked for them.

    Counting takes the planner's time: a small share of it, however many pages are open.
    """

    def __init__(self, core: QuestionedCore, now_s: Callable[[], float]) -> None:
        self._core = core
        self._now_s = now_s
        self._lock = threading.Lock()
        self._found: dict[str, tuple[float, dict[str, int]]] = {}
        """By partition, with the time up to which it holds."""

    def of(self, *partitions: str) -> dict[str, dict[str, int]]:
        with self._lock:
            return {name: self._of(name) for name in partitions}

    def _of(self, partition: str) -> dict[str, int]:
        until_s, causes = self._found.get(partition, (0.0, {}))
        begin_s = self._now_s()
        if begin_s < until_s:
            return causes
        question = WaitingQuestion(by_cause=True)
        causes = self._core.questions.count_waiting(partition, question).causes
        took_s = self._now_s() - begin_s
        # A long count is asked for less often, so the planner stays free.
        holds_s = max(CAUSES_S, CAUSES_SHARE * took_s)
        self._found[partition] = (self._now_s() + holds_s, causes)
        return causes


def _asks(core: QuestionedCore, partition: str, cause: str, text: str, count: str) -> Any:  # noqa: ANN401 - plain values
    """List the first asks that wait for this, or with this text."""
    question = WaitingQuestion(cause=cause, text=text, listed=int(count))
    return msgspec.to_builtins(core.questions.count_waiting(partition, question))


def _health(core: QuestionedCore, standing: Standing) -> dict[str, Any]:
    """Tell what a check of health cannot see in the replicas."""
    return {
        "counts": msgspec.to_builtins(core.questions.counts()),
        "trace_failure": "" if core.trace_failure is None else str(core.trace_failure),
        "configuration_fault": standing.configuration_fault,
        "read_side_fault": standing.read_side_fault,
    }


def _load(core: QuestionedCore, standing: Standing, text: str, by: str) -> dict[str, Any]:
    """Load a configuration, and name the file that the service follows: its next change counts."""
    refused = changed(core, lambda: core.administer(text, by))
    return refused or {"follows": standing.follows}


def _metrics(core: QuestionedCore) -> dict[str, Any]:
    return {"counts": msgspec.to_builtins(core.questions.counts()), "mailboxes": _mailboxes(core)}


def _why(core: QuestionedCore, application: str, key: str, partition: str) -> dict[str, Any]:
    try:
        return {"why": msgspec.to_builtins(core.explain(application, key, partition=partition))}
    except UnknownAsk as error:
        return {"unknown": masked(str(error))}


def _waiting(core: QuestionedCore, partition: str) -> dict[str, Any]:
    return core.questions.waiting_asks(partition)


def _mailboxes(core: QuestionedCore) -> dict[str, Any]:
    """Tell how long each mailbox is, and with a meter what its actor did."""
    return {
        "lengths": core.mailbox_lengths(),
        "metered": core.metered(),
        "callback_errors": core.managers.callback_error_counts(),
        "unhandled": core.managers.unhandled(),
    }


def _diagnostics(core: QuestionedCore) -> dict[str, Any]:
    return masked_dump(core.questions.diagnostics())


def _trace(core: QuestionedCore) -> bytes | None:
    """Return what the flight recorder has kept; None where there is none."""
    recorder = core.flight_recorder
    if recorder is None:
        return None
    with TemporaryDirectory() as folder:
        path = Path(folder) / recorder.path.name
        recorder.save(path)
        return path.read_bytes()


# -- what an administrator changes


def changed(core: ServedCore, change: Callable[[], None]) -> dict[str, Any]:
    """Say why it was refused, if it was; if not, the read sides know of it before the answer."""
    try:
        change()
    except (Refused, ConfigError) as error:
        return {"refused": masked(str(error))}
    core.followers.catch_up()
    return {}


def _node(act: NodeAct, core: QuestionedCore, partition: str, node: str, by: str) -> dict[str, Any]:
    set_drained = core.operator.set_drained
    return changed(core, lambda: set_drained(partition, node, by, drained=act.drained))


def _unregister(core: QuestionedCore, rm_id: str, by: str) -> dict[str, Any]:
    return changed(core, lambda: core.operator.unregister_lost(rm_id, by))


# -- the process


def _stacks(_: QuestionedCore) -> str:
    frames = sys._current_frames()
    return "\n".join(
        f"thread {number}:\n{''.join(traceback.format_stack(frame))}"
        for number, frame in sorted(frames.items())
    )


def _is_ready(core: QuestionedCore) -> str:
    """Say why the core takes nothing; empty while it does."""
    if core.failure is not None:
        return str(core.failure).partition(";")[0]
    return "" if core.state == "running" else f"the core is {core.state}"


ANSWERS: Final[dict[str, Callable[..., Any]]] = {
    "why": _why,
    "waiting": _waiting,
    "asks": _asks,
    "mailboxes": _mailboxes,
    "diagnostics": _diagnostics,
    "trace": _trace,
    "stacks": _stacks,
    "is_ready": _is_ready,
    **{name: partial(_node, act) for name, act in NODE_ACTS.items()},
    "unregister": _unregister,
}
OF_SERVICE: Final[dict[str, Callable[..., Any]]] = {"health": _health, "load": _load}
"""Of what the service knows beside its core."""
