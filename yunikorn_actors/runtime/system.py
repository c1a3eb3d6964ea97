"""The core on threads: one pykka actor for each machine, one for each callback, one timer thread.

`SchedulerCore` is what an embedder holds. Updates return at once; registration, configuration and
questions wait for their answer and may not be called from a thread of the core, which would wait
for itself. The first exception anywhere in the core is kept with its story; the core then takes
nothing more and says so. Stopping is idempotent and may come from anywhere, a callback included.
"""

import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pykka

from yunikorn_actors import si
from yunikorn_actors.errors import CoreFailed, CoreStopped, NoReply, WouldBlock
from yunikorn_actors.gateway import Gateway
from yunikorn_actors.machines.machine import (
    CallRm,
    CancelTimer,
    Effect,
    InvariantViolation,
    Machine,
    Send,
    SetTimer,
    StartMachine,
    StopMachine,
)
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import (
    GATEWAY,
    TIMER,
    Cause,
    Delivery,
    Envelope,
    Message,
    is_callback,
)
from yunikorn_actors.messages.codec import state_digest
from yunikorn_actors.runtime.clock import Clock
from yunikorn_actors.runtime.logs import logger
from yunikorn_actors.runtime.recorder import Recorder
from yunikorn_actors.runtime.replies import Replies
from yunikorn_actors.runtime.shell import CallbackHolder, Shell
from yunikorn_actors.runtime.timers import TimerThread

REPLY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 5.0


class SchedulerCore(Gateway):
    def __init__(
        self,
        *,
        topology: TopologyName = "proposing",
        settings: Settings | None = None,
        instance: str = "",
        trace: str | Path | None = None,
        time_scale: int = 1,
    ) -> None:
        super().__init__()
        self.clock = Clock(time_scale)
        self.failure: CoreFailed | None = None
        self._topology = Topology(
            topology, settings=settings or Settings(), instance=instance or secrets.token_hex(4)
        )
        self._trace = None if trace is None else Path(trace)
        self.recorder: Recorder | None = None
        self._shells: dict[str, pykka.ActorRef[Shell]] = {}
        self._actors: list[Shell] = []
        self._replies = Replies()
        self._timers = TimerThread(self.clock, self._deliver_timer)
        self._lock = threading.Lock()
        self._outside_sent = 0
        self._timer_sent = 0
        self._state = "new"
        self._stopped = threading.Event()

    # -- life

    def start(self) -> Self:
        """Start the actors."""
        with self._lock:
            if self._state != "new":
                raise CoreStopped(
                    f"a core is started once; this one is {self._state}: make another"
                )
            self._state = "running"
        if self._trace is not None:
            self.recorder = Recorder(self._trace, self._header())
        for address, machine in self._topology.first_machines().items():
            self._start_shell(address, machine)
        self._timers.start()
        logger.info("core started, topology {}", self._topology.name)
        return self

    def stop(self, timeout: float = STOP_TIMEOUT_S) -> None:
        """Stop everything and wait for the threads; called again it only waits.

        Called on a thread of the core it is scheduled, as that thread cannot wait for itself.
        """
        with self._lock:
            first, self._state = self._state == "running", "stopped"
        if not first:
            if not self._on_core_thread():
                self._stopped.wait(timeout)
            return
        if self._on_core_thread():
            threading.Thread(
                target=self._stop, args=(timeout,), name="yunikorn-actors-stop", daemon=True
            ).start()
        else:
            self._stop(timeout)

    def _stop(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        self._timers.stop()
        self._replies.close()
        for shell in self._actors:
            if is_callback(shell.address):
                shell.deaf = True
        for shell in self._actors:
            shell.actor_ref.stop(block=False)
        self._timers.join(max(0.0, deadline - time.monotonic()))
        for shell in self._actors:
            thread = shell.thread
            if thread is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
                if thread.is_alive():
                    logger.warning("{} sits in a call and is left behind", shell.address)
        self._close_trace()
        self._stopped.set()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if self.failure is not None and error is None:
            raise self.failure

    # -- the door

    def _post(self, address: str, message: Message, stimulus: str) -> None:
        shell = self._current_shell()
        if shell is not None and shell.at is not None:
            envelope = Envelope(shell.address, message, *shell.at)
        else:
            envelope = Envelope(GATEWAY, message, Cause(GATEWAY, 0), stimulus)
        ref = self._shells.get(address)
        with self._lock:
            self._check_running()
            if ref is None:
                raise CoreStopped("the core is not running: call start() first")
            self._outside_sent += 1
            ref.tell(envelope)

    def _ask(self, address: str, question: Callable[[str], Message], stimulus: str) -> Message:
        if self._on_core_thread():
            raise WouldBlock(
                f"{stimulus} waits for the core and was called from inside it: call it from "
                "another thread, or after the callback has returned"
            )
        reply_to = self._replies.open()
        try:
            self._post(address, question(reply_to), stimulus)
            answer = self._replies.wait(reply_to, REPLY_TIMEOUT_S)
        finally:
            self._replies.forget(reply_to)
        if answer is None:
            with self._lock:
                self._check_running()
            raise NoReply(f"no answer to {stimulus} within {REPLY_TIMEOUT_S:.0f} s")
        return answer

    def _check_running(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self._state != "running":
            hint = "call start() first" if self._state == "new" else "make another one"
            raise CoreStopped(f"the core is {self._state}: {hint}")

    def _open_callback(self, address: str, callback: si.ResourceManagerCallback) -> None:
        with self._lock:
            self._check_running()
        self._start_shell(address, CallbackHolder(address, callback))

    # -- effects, on the thread of the shell that wants them

    def carry_out(self, shell: Shell, effect: Effect) -> None:
        match effect:
            case Send():
                self._send(shell, effect.to, effect.message)
            case CallRm():
                self._send(shell, effect.callback, effect.call)
            case SetTimer():
                envelope = self._envelope(shell, TIMER, effect.message)
                self._timers.arm(shell.address, effect.name, effect.due_ns, envelope)
            case CancelTimer():
                self._timers.cancel(shell.address, effect.name)
            case StartMachine():
                machine = self._topology.build(effect.kind, effect.arguments)
                self._start_shell(effect.address, machine)
            case StopMachine():
                self._retire(effect.address)

    def _send(self, shell: Shell, to: str, message: Message) -> None:
        ref = self._shells.get(to)
        if ref is not None:
            shell.sent += 1
            ref.tell(self._envelope(shell, shell.address, message))
        elif to.startswith("reply:"):
            self._record_reply(shell, to, message)
            self._replies.answer(to, message)

    def _record_reply(self, shell: Shell, to: str, message: Message) -> None:
        if self.recorder is not None:
            assert shell.at is not None
            now_ns = self.clock.now_ns()
            self.recorder.add(Delivery(to, 1, shell.address, *shell.at, now_ns, message))

    @staticmethod
    def _envelope(shell: Shell, sender: str, message: Message) -> Envelope:
        assert shell.at is not None
        return Envelope(sender, message, *shell.at)

    def _deliver_timer(self, address: str, envelope: Envelope) -> None:
        ref = self._shells.get(address)
        if ref is not None:
            self._timer_sent += 1
            ref.tell(envelope)

    def _start_shell(self, address: str, holder: Machine | CallbackHolder) -> None:
        ref = Shell.start(self, address, holder)
        actor = ref._actor_weakref()
        assert actor is not None
        with self._lock:
            self._actors.append(actor)
            self._shells[address] = ref

    def _retire(self, address: str) -> None:
        """Nothing of a former life is handled any more; what is queued is counted and dropped."""
        with self._lock:
            ref = self._shells.pop(address, None)
        if ref is not None:
            for actor in self._actors:
                if actor.address == address:
                    actor.deaf = True
            ref.stop(block=False)

    # -- failure

    def fail(self, shell: Shell, envelope: Envelope, error: Exception) -> None:
        """Keep the first failure with its story; from here on nothing is handled."""
        story = tuple(
            f"{sender} -> {shell.address}: {kind.__name__} ({stimulus})"
            for sender, kind, stimulus in shell.story
        )
        failure = CoreFailed(
            f"{shell.address} failed on {type(envelope.message).__name__} "
            f"({envelope.stimulus}): {error!r}; its last messages:\n  " + "\n  ".join(story)
        )
        failure.__cause__ = (
            InvariantViolation(error.what, story)
            if isinstance(error, InvariantViolation)
            else error
        )
        with self._lock:
            if self.failure is None:
                self.failure = failure
        for actor in tuple(self._actors):
            actor.deaf = True
        self._replies.close()
        logger.opt(exception=error).error("{}", failure)

    # -- rest, threads, trace

    def is_settled(self) -> bool:
        """Every message that was sent has been handled.

        Handled is read first: a message counts as handled only after all it caused was counted as
        sent, so equality means that nothing was under way when handled was read.
        """
        actors = tuple(self._actors)
        handled = 0
        for actor in actors:
            handled += actor.handled
        sent = self._timer_sent + self._outside_sent
        for actor in actors:
            sent += actor.sent
        return sent == handled

    def _current_shell(self) -> Shell | None:
        thread = threading.current_thread()
        for actor in self._actors:
            if actor.thread is thread:
                return actor
        return None

    def _on_core_thread(self) -> bool:
        return self._current_shell() is not None

    def _header(self) -> dict[str, Any]:
        return {
            "topology": self._topology.name,
            "driver": "threads",
            "seed": None,
            "instance": self._topology.instance,
            "settings": msgspec.to_builtins(self._topology.settings),
            "start_ns": self.clock.now_ns(),
        }

    def _close_trace(self) -> None:
        if self.recorder is None:
            return
        machines = {shell.address: shell.holder for shell in self._actors}
        states = {
            address: state_digest(machine.canonical_state())
            for address, machine in sorted(machines.items())
            if address in self._shells and not isinstance(machine, CallbackHolder)
        }
        self.recorder.close({"states": states})
        if self.recorder.failure is not None:
            logger.warning("trace {} is incomplete: {}", self._trace, self.recorder.failure)
