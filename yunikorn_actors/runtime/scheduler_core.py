"""The core in service: machines that one dispatcher runs, callbacks on threads, timers.

With the driver `threads` the dispatcher has a thread of its own; with `direct` callers run the
machines (`dispatcher`).

`SchedulerCore` is what an embedder holds. Updates return at once; registration, configuration and
questions wait for their answer and may not be called from a thread of the core, which would wait
for itself. The first exception anywhere in the core is kept with its story; after that the core
takes nothing more. Stopping is idempotent and may come from anywhere, a callback included; what has
been taken and not handled by then is dropped.
"""

import os
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, Self

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.config import ExtraConfig
from yunikorn_actors.config.extra import LEVELS
from yunikorn_actors.core import groups as accounts
from yunikorn_actors.core.backlog import Backlog
from yunikorn_actors.core.driver import Follower
from yunikorn_actors.core.entry import Gateway
from yunikorn_actors.drivers.live.actor_registry import ActorRegistry
from yunikorn_actors.drivers.live.actors import Actor, CallbackHolder, FollowerHolder, Here
from yunikorn_actors.drivers.live.clock import Clock, RealClock, TimerThread
from yunikorn_actors.drivers.live.dispatcher import Dispatched, Dispatcher
from yunikorn_actors.errors import CallbackStuck, CoreFailed, CoreStopped, NoReply, WouldBlock, anew
from yunikorn_actors.former_names import FormerCalls
from yunikorn_actors.journal import Journal, Kept
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import (
    REPLACED_MAX,
    CancelTimer,
    Effect,
    InvariantViolation,
    Log,
    SetTimer,
    StartMachine,
    StopCore,
    StopMachine,
    refusal_of,
)
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import (
    CONTEXT,
    GATEWAY,
    TIMER,
    Cause,
    Delivery,
    Envelope,
    Message,
    manager_of,
)
from yunikorn_actors.messages.callbacks import method_of
from yunikorn_actors.messages.scheduling import ReportPolicyFailed
from yunikorn_actors.policies.registry import Policies, Policy
from yunikorn_actors.recording.logs import alarm, logger
from yunikorn_actors.recording.meter import Meter
from yunikorn_actors.recording.recorder import FlightRecorder, Recorder, TraceSettings
from yunikorn_actors.recording.secret_values import masked_dump
from yunikorn_actors.runtime.core_api import ScopedCore
from yunikorn_actors.runtime.core_arguments import (
    CoreDriver,
    check_forms,
    read_config,
    read_timeout,
)
from yunikorn_actors.runtime.core_trace import CoreTrace
from yunikorn_actors.runtime.event_streams import EventStreams, Feed
from yunikorn_actors.runtime.failure_hooks import CallbackRaised, Hooks, OnCallbackError, OnFailure
from yunikorn_actors.runtime.health_monitor import HealthWatch, SlowPolicies
from yunikorn_actors.runtime.replies import Replies
from yunikorn_actors.values.garbage import without_collections
from yunikorn_actors.values.masking import masked_repr
from yunikorn_actors.values.resource import INT64_MAX
from yunikorn_actors.what_if.answer import Answer
from yunikorn_actors.what_if.changes import Change, Reconfigure, Request
from yunikorn_actors.what_if.followed import state_of_core
from yunikorn_actors.what_if.run import Fits
from yunikorn_actors.what_if.simulation import simulate

REPLY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 5.0
JOURNAL_TIMEOUT_S = 1.0
"""A disk has that long at least, whatever a callback has used up of the time to stop."""
CALLBACK_TIMEOUT_S = 5.0
"""So long a former callback may still be in a call when its resource manager registers."""
_State = Literal["new", "running", "stopped", "forked"]
_OVER: Final[dict[_State, str]] = {
    "new": "the core is new: call start() first",
    "stopped": "the core is stopped: make another one",
    "forked": "the core is the parent's, whose threads a forked process does not have: "
    "make another one in this process, or start processes with `spawn`",
}
"""Why a core takes nothing, and the remedy."""
# For forks alone: a child finds every core of its parent here (`_forked`).
_cores: "weakref.WeakSet[SchedulerCore]" = weakref.WeakSet()


class SchedulerCore(Gateway, EventStreams, ScopedCore, FormerCalls):
    """The core on threads of this process: make one, `start` it or enter it, register.

    Updates return at once and are answered at the callback of the resource manager. Calls that wait
    for the core, which are registration, configuration and questions, raise `WouldBlock` inside a
    callback. Every call raises `InvalidRequest` if its request is malformed, `CoreStopped` or
    `CoreFailed` if the core takes nothing more.
    """

    def __init__(
        self,
        *,
        driver: CoreDriver = "threads",
        topology: TopologyName = "proposing",
        schedulers: int = 1,
        settings: Settings | None = None,
        instance: str = "",
        trace: str | Path | TraceSettings | None = None,
        journal: str | Path | None = None,
        config: str | Path | None = None,
        policies: Mapping[str, Policy] | None = None,
        clock: Clock | None = None,
        on_failure: OnFailure | None = None,
        on_callback_error: OnCallbackError | None = None,
    ) -> None:
        """Make a core; `config`, a file or its text, is the administrator's configuration.

        `journal` is a folder: what the core decides is kept there before anybody hears of it, and
        the next core with this folder goes on from it. `policies` are your own, by the names that a
        configuration may use.

        `schedulers` is how many plan for each partition; only `proposing` has several. Hooks are
        called on threads of the core; without them failures are logged, else printed on stderr.
        """
        check_forms(
            driver=driver, settings=settings, instance=instance, trace=trace, journal=journal,
            config=config, clock=clock, on_failure=on_failure, policies=policies,
            on_callback_error=on_callback_error,
        )  # fmt: skip
        self.clock = clock or RealClock()
        # Before `super().__init__`, which hands functions of these to its parts.
        self._set_up_actors(driver)
        slow = SlowPolicies(self.inside.policy_is_slow)
        known, lookups = Policies(policies, slow.call), {"os": accounts.groups_of}
        super().__init__(lookups, self.clock.now_ns, known, warn=_warn, complete=self._shown)
        self.failure: CoreFailed | None = None
        self.topology = Topology(
            topology,
            settings=_outside(settings or Settings(), self.clock.scale),
            instance=instance or os.urandom(4).hex(),
            schedulers=schedulers,
            # A name of its own for each run: no two cores issue the same UUID.
            policies=known,
        )
        self._trace, self._journal_path = CoreTrace(trace), journal
        self._journal: Journal | None = None
        # Read now: a program learns of a fault where it made the core, not where it starts it.
        self._config = None if config is None else read_config(config, known)
        self._own_policies, self._hooks = policies, Hooks(on_failure, on_callback_error)
        self._health = HealthWatch(lambda: health_of(self.questions.context_dump()))
        self._extras: dict[str, ExtraConfig] = {}
        """What each resource manager wishes of the log and of health checks."""
        self._feeds: dict[str, Feed] = {}
        self.when_over: list[Callable[[], None]] = []
        """Called when the core was stopped or has failed, perhaps twice; none may block."""
        self._lock = threading.RLock()
        """Guards the state and the failure. Its own thread may take it again: a handler of signals
        that stops the core runs in the middle of whatever the main thread is doing."""
        self.state: _State = "new"
        self._stopped = threading.Event()
        self._stopper: threading.Thread | None = None
        _cores.add(self)

    @property
    def trace_failure(self) -> OSError | None:
        """Why the trace ends early, None while it is whole; the core goes on without it."""
        return self._trace.failure

    def _set_up_actors(self, driver: CoreDriver) -> None:
        self._driver = driver
        self._replies = Replies()
        self._dispatcher = Dispatcher(callers_run=self._driver == "direct")
        self._actors = ActorRegistry(self._dispatcher)
        self.inside = Inside(self)
        """What its actors see of it, and what records or measures them."""
        self._timers = TimerThread(
            self.clock, self._actors.tell, self._dispatcher.go_on, self.inside.timers_failed
        )

    # -- life

    def start(self) -> Self:
        """Start the actors; where that is impossible nothing is left running."""
        with self._lock:
            if self.state != "new":
                raise CoreStopped(f"a core is started once; this one is {self.state}: make another")
            self.state = "running"
            try:
                self._start_threads()
            except BaseException:
                self.state = "stopped"
                self._stop(STOP_TIMEOUT_S)
                raise
        # Outside of the lock, like every call of the dispatcher: it may run machines on this
        # thread.
        self._go_on()
        # Without the lock: this waits for answers, and a machine that fails needs it to say so.
        try:
            self._await_restored()
            if self._config is not None:
                self.administer(self._config)
        except BaseException:
            self.stop()
            raise
        logger.info("core started, topology {}", self.topology.name)
        return self

    def _await_restored(self) -> None:
        """Wait until this core knows all that the core before it knew.

        How long it takes depends on how much that is: a question that got no answer is no failure.
        """
        if self._journal is not None and self._journal.restored is not None:
            # Dropped: the state of a large core need not be kept twice.
            self._journal.restored = None
            with suppress(NoReply), without_collections():
                self.questions.counts()

    def _start_threads(self) -> None:
        if self._journal_path is not None:
            self._journal = Journal(self._journal_path, self.topology.policies)
            # No other core has had this number, so no UUID comes again, whatever was lost.
            self.topology.instance += f"-{self._journal.number}"
        # Before any actor: the first messages have to be in it.
        self.inside.recorder = self._trace.open(
            self.topology, self._driver, self.clock.now_ns(), self._config or ""
        )
        for address, machine in self.topology.first_machines().items():
            if self._journal is not None and isinstance(machine, Context):
                machine = Kept(machine, self._journal)  # noqa: PLW2901 - it stands for the other
            self._actors.start(self.inside, address, machine)
        # Machines stand before anything can be delivered to them.
        self._dispatcher.start()
        self._timers.start()
        if self._journal is not None and self._journal.restored is not None:
            admin = self._journal.restored.registered.admin
            if admin is not None:
                self.managers.resolvers.bring_admin(admin)
            self._post(CONTEXT, self._journal.restored, "restart")

    def stop(self, timeout: float = STOP_TIMEOUT_S) -> None:
        """Stop everything and wait for the threads; called again it only waits.

        Called on a thread of the core it is scheduled, as that thread cannot wait for itself.
        """
        timeout = read_timeout("stop", timeout)
        deadline = time.monotonic() + timeout
        with self._lock:
            before, self.state = self.state, "stopped"
        if self.is_inside():
            if before == "running":
                # Inside: this thread cannot wait for itself, so another one stops the core.
                self._stop_elsewhere(timeout)
        elif before == "running":
            self._stop(timeout)
        elif before == "stopped":
            self._await_stop(deadline)
        else:
            self._stopped.set()

    def _stop_elsewhere(self, timeout: float) -> None:
        with self._lock:
            self._stopper = threading.Thread(
                target=self._stop, args=(timeout,), name="yunikorn-actors-stop", daemon=True
            )
            self._stopper.start()

    def _await_stop(self, deadline: float) -> None:
        """Another thread is stopping the core, or has done so."""
        # Not the lock: the one that stops needs it.
        self._stopped.wait(max(0.0, deadline - time.monotonic()))
        with self._lock:
            stopper = self._stopper
        if stopper is not None:
            stopper.join(max(0.0, deadline - time.monotonic()))

    def _stop(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        try:
            # In this order: nothing new falls due; callers leave before the machines that would
            # answer them; the states go into the footer once no thread changes them.
            self._timers.stop()
            self._health.stop()
            self._let_callers_go()
            left = self._actors.end(deadline)
            self._timers.join(max(0.0, deadline - time.monotonic()))
            self._health.join(max(0.0, deadline - time.monotonic()))
            self._trace.close(self.failure, self._actors.machines(), left, deadline)
            if self._journal is not None:
                # Behind the trace and after the actors: no handler writes any more.
                self._journal.close(max(JOURNAL_TIMEOUT_S, deadline - time.monotonic()))
            for actor in left:
                logger.warning(
                    "{} has not returned from a call after {} s and is left behind",
                    actor.address,
                    timeout,
                )
            logger.info("core stopped")
        finally:
            # The log is shared by all cores of the process; this one has no wish any more.
            logger.wish(self.topology.instance, None)
            self._stopped.set()

    def _become_a_copy(self) -> None:
        """Be a core that is over: this is its copy in a forked process, which has no threads.

        What a thread of the parent may have locked at that moment is made anew, and empty.
        """
        # Only a running core has threads that are missing in the child.
        if self.state != "running":
            return
        self.state = "forked"
        # Closes the copies of its descriptors; the folder stays the parent's.
        if self._journal is not None:
            self._journal.forget()
        self._lock, self.managers.order = threading.RLock(), threading.RLock()
        self._stopped = threading.Event()
        self._set_up_actors(self._driver)
        feeds, self._feeds = self._feeds, {}
        for feed in feeds.values():
            # Its reader comes later, if at all: nobody waits in this process.
            feed.failure, feed.has_ended = CoreStopped(_OVER["forked"]), True
        # Those belong to the parent: so does, for one, the pipe that wakes an event loop.
        self.when_over = []

    # -- calls and callbacks

    def _post(self, address: str, message: Message, stimulus: str) -> None:
        # Inside a callback or a machine the call is caused by the message in hand, so a recording
        # links the two.
        actor = self.inside.running()
        if actor is not None and actor.at is not None:
            envelope = Envelope(actor.address, message, *actor.at, self.inside.stamp())
        else:
            cause = Cause(GATEWAY, 0)
            envelope = Envelope(GATEWAY, message, cause, stimulus, self.inside.stamp())
        # Under the lock together with the check: a stop that comes between would leave a message
        # that nobody handles.
        with self._lock:
            self.check_running()
            addressee = self.inside.by_address.get(address)
            taken = addressee is not None and addressee.put(envelope)
        if not taken:
            raise CoreStopped(f"nobody is at {address}: the core has just been stopped")

    def _go_on(self) -> None:
        self._dispatcher.go_on()

    def is_inside(self) -> bool:
        """Whether this is a thread of the core, or one that runs its machines at this moment."""
        # Two ways to be inside: a thread of an outsider, or a caller that runs the machines
        # (`direct`).
        return self.inside.here.actor is not None or self._dispatcher.is_mine

    def _await_answer(self, post: Callable[[str], None], stimulus: str) -> Message:
        self.check_running()
        if self.is_inside():
            raise WouldBlock(
                f"{stimulus} waits for the core and was called from inside it: call it from "
                "another thread, or after the callback has returned"
            )
        # Opened before the question goes out, as the answer may come at once.
        reply_to = self._replies.open()
        try:
            with self._afterwards:
                # `afterwards` lets the dispatcher run before this thread waits.
                post(reply_to)
            answer = self._replies.wait(reply_to, REPLY_TIMEOUT_S)
        finally:
            self._replies.forget(reply_to)
        # A core that stopped or failed says so; only a core at work has not answered.
        if answer is None:
            with self._lock:
                self.check_running()
            raise NoReply(f"no answer to {stimulus} within {REPLY_TIMEOUT_S:.0f} s")
        return answer

    def check_sound(self) -> None:
        """Raise what the core has failed with, if it has."""
        if self.failure is not None:
            raise anew(self.failure)

    def check_running(self) -> None:
        """Raise if the core takes nothing more."""
        if self.failure is not None:
            raise anew(self.failure)
        if self.state != "running":
            raise CoreStopped(_OVER[self.state])

    def _await_room(self, backlog: Backlog) -> None:
        """A thread of the core would wait for itself; a core that is over lets everybody go."""
        if not self.is_inside():
            backlog.wait()

    def _check_former(self, rm_id: str) -> None:
        """A call that is about to return is waited for; a thread of the core waits for nobody."""
        if self.is_inside():
            return
        # Outside of the lock, as the stuck call may need it.
        stuck = self._actors.in_a_call(rm_id, CALLBACK_TIMEOUT_S)
        if stuck is not None:
            _, call, _ = stuck.story[-1]
            raise CallbackStuck(
                f"{rm_id} may not register: its former callback {stuck.address} has not returned "
                f"from {call.__name__} within {CALLBACK_TIMEOUT_S:g} s; let that call return, and "
                "register then"
            )

    def _open_callback(self, address: str, callback: si.ResourceManagerCallback) -> None:
        # Under the lock: a thread that was started after a stop had looked would never be joined.
        with self._lock:
            self.check_running()
            holder = CallbackHolder(callback, partial(self._callback_raised, address))
            # Its thread starts here: a RuntimeError at the limit of threads leaves nothing
            # registered.
            self._actors.start(self.inside, address, holder)

    def _open_follower(self, address: str, follower: Follower) -> None:
        with self._lock:
            self.check_running()
            # A follower's failure ends the follower alone (ADR 25).
            holder = FollowerHolder(follower, partial(self._follower_raised, address))
            self._actors.start(self.inside, address, holder)

    def _follower_raised(self, address: str, error: Exception) -> None:
        text = f"{address} raised and follows no more: {masked_repr(error)}"
        if not logger.error("{}", text, exception=error):
            alarm(text)
        self.followers.unfollow(address)

    def _callback_raised(self, address: str, call: Message, error: BaseException) -> None:
        rm_id = manager_of(address)
        self.managers.raised_in[rm_id] += 1
        raised = CallbackRaised(rm_id, method_of(type(call)), error)
        self._hooks.callback_raised(address, type(call).__name__, raised)

    def _close_callback(self, address: str) -> None:
        # Retired, not ended by force: a call that is under way ends by itself.
        self._actors.retire(address)

    def _set_up(self, rm_id: str, extra: ExtraConfig) -> None:
        """The finest level and the shortest interval count."""
        with self._lock:
            # A manager that has left wishes nothing. New names may come for ever, so none is kept.
            if extra == ExtraConfig():
                self._extras.pop(rm_id, None)
            else:
                self._extras[rm_id] = extra
            levels = [it.log_level for it in self._extras.values() if it.log_level is not None]
            intervals = [it.health_check_ns or 0 for it in self._extras.values()]
        logger.wish(self.topology.instance, min(levels, key=LEVELS.index, default=None))
        every_ns = min((interval for interval in intervals if interval > 0), default=None)
        # In the time of the world: the clock of the core may run faster.
        self._health.every(None if every_ns is None else every_ns / self.clock.scale / 1e9)

    def _shown(self, dump: dict[str, Any]) -> dict[str, Any]:
        """Add to a state dump how its recording is, and mask secrets."""
        failure = self.trace_failure
        recording = {"trace_failure": "" if failure is None else str(failure)}
        return masked_dump(dump | recording)

    def _let_callers_go(self) -> None:
        self._replies.close()
        # A copy: managers may leave on other threads meanwhile.
        for registration in self.managers.registered.copy().values():
            registration.backlog.close()
        for feed in self._feeds.copy().values():
            feed.end(self.failure)
        for tell in tuple(self.when_over):
            tell()

    # -- event streams

    def open_feed(self, feed: Feed, history: int) -> Callable[[], None]:
        """Feed it event records from now on; what is returned ends that."""
        address = self.followers.open_stream(feed, history)
        with self._lock:
            self._feeds[address] = feed
            # Under the lock together with the entry above: either `_let_callers_go` finds the feed,
            # or this sees that it has passed.
            if self.state != "running" or self.failure is not None:
                # It may have come too late to be ended with the others.
                feed.end(self.failure)
        return partial(self._close_feed, address)

    def _close_feed(self, address: str) -> None:
        # Popped first, so that two calls close once.
        if self._feeds.pop(address, None) is not None:
            self.followers.close_stream(address)

    def measure(self) -> None:
        """Have a meter: a service is asked for metrics, and no other core pays for them."""
        self.inside.meter = self.inside.meter or Meter()

    def metered(self) -> dict[str, Any] | None:
        """What each actor did since `measure`; None before."""
        return None if self.inside.meter is None else self.inside.meter.plain()

    def mailbox_lengths(self) -> dict[str, int]:
        """How many messages wait in each mailbox."""
        return self._actors.lengths()

    # -- failure

    def _end_with(self, failure: CoreFailed, error: BaseException | None) -> None:
        # The failure is there before a caller is let go: callers look for the reason. No machine
        # handles anything by then, so none acts on a truth that may be broken.
        # The first one only: what fails afterwards is a consequence.
        with self._lock:
            is_first = self.failure is None
            if is_first:
                self.failure = failure
        # Nothing is handled from here on, whichever thread is in a handler.
        self._actors.silence()
        self._let_callers_go()
        if is_first:
            self._hooks.failed(failure, error)
        else:
            logger.error("{}", failure, exception=error)

    # -- what if

    def simulate(
        self,
        *changes: Change | Request | Reconfigure,
        until: float | None = None,
        compare: bool = True,
        fits: Fits | None = None,
    ) -> Answer:
        """Say what would happen from here with these changes, as `VirtualCore.simulate` does.

        It is worked out on the caller's thread, in virtual time. To copy the state takes Context a
        while where there is much of it: a service asks its read side instead.
        """
        return simulate(
            state_of_core(self, self.topology, self.clock.now_ns()), *changes, until=until,
            compare=compare, fits=fits, policies=self._own_policies,
        )  # fmt: skip

    # -- rest, trace

    @property
    def handled(self) -> int:
        """How many messages have been handled since the start."""
        return self._actors.handled

    def is_settled(self) -> bool:
        """Every message that was sent has been handled, and no timer is due."""
        return self._timers.is_settled(self._actors.is_settled)

    @property
    def next_due_ns(self) -> int | None:
        """When the first timer fires that is armed now."""
        return self._timers.next_due_ns()

    def clock_was_moved(self) -> None:
        """Tell the timers that a standing clock shows another time."""
        self._timers.wake()

    @property
    def flight_recorder(self) -> FlightRecorder | None:
        """The last records, where the core was made with them."""
        return self._trace.flight_recorder

    def save_trace(self, path: str | Path) -> None:
        """Write what the flight recorder has kept (`TraceSettings.flight_recorder_bytes`)."""
        self._trace.save(Path(path))


class Inside:
    """A core as its actors see it: their clock, and where all that they want or raise goes.

    Apart from `SchedulerCore`, so that an embedder finds there only the calls that a program makes.
    """

    def __init__(self, core: SchedulerCore) -> None:
        self.clock = core.clock
        self.here = Here()
        self.by_address = core._actors.by_address
        self.recorder: Recorder | None = None
        self.meter: Meter | None = None
        self.survived: deque[CoreFailed] = deque(maxlen=REPLACED_MAX + 1)
        """What machines were replaced for: the first of too many is why the core stops."""
        self._core = core
        self._marks = count(1)

    def running(self) -> Dispatched | Actor | None:
        """Return the actor that works on this thread: a machine that it runs, or an outsider."""
        # The attribute is read without a lock: only the thread that runs the machines may believe
        # it.
        machine = self._core._dispatcher.actor
        if machine is not None and self._core._dispatcher.is_mine:
            return machine
        return self.here.actor

    def policy_is_slow(self, queue: str, policy: str, what: str) -> None:
        """Called within a machine, whose message it is not: no replay would find it slow."""
        # By a message from outside: a replay gets that, and measures nothing.
        message = ReportPolicyFailed(
            partition="", epoch=0, queue=queue, policy=policy, failure=what, is_slow=True
        )
        stimulus = self._core.driver.name("slow-policy")
        envelope = Envelope(GATEWAY, message, Cause(GATEWAY, 0), stimulus, self.stamp())
        self._core._actors.tell(CONTEXT, envelope)

    # -- effects, on the thread that runs the actor

    def carry_out(self, actor: Actor, effect: Effect) -> None:
        match effect:
            case SetTimer():
                assert actor.at is not None
                # Sent when it is due: until then it waits for nobody.
                # The cause is kept, so a trace shows which message armed the timer.
                envelope = Envelope(TIMER, effect.message, *actor.at, effect.due_ns)
                self._core._timers.arm(actor.address, effect.name, effect.due_ns, envelope)
            case CancelTimer():
                self._core._timers.cancel(actor.address, effect.name)
            case StopCore():
                first = self.survived[0]
                self._core._end_with(first, first.__cause__)
            case StartMachine():
                # What stood there has failed, so it arms nothing more.
                self._core._timers.cancel_all(effect.address)
                machine = self._core.topology.build(effect.kind, effect.arguments)
                self._core._actors.start(self, effect.address, machine)
            case StopMachine():
                # The machine first: what it still arms in the meantime is cancelled as well. If it
                # is in the middle of a message it may arm one later, which finds no mailbox.
                self._core._actors.retire(effect.address)
                self._core._timers.cancel_all(effect.address)
            case Log():
                (logger.warning if effect.is_warning else logger.info)("{}", effect.text)
                if effect.is_alarm:
                    alarm(effect.text)

    def send_elsewhere(self, actor: Actor, to: str, message: Message) -> None:
        """Take what is for a caller or the gateway; what is for an actor that has ended is lost."""
        # The gateway has no mailbox on threads: what it hears is taken on this very thread.
        if to == GATEWAY:
            self._record(actor, to, next(self._marks), message)
            self._core.managers.receive(message)
        elif self._core._replies.serves(to):
            self._record(actor, to, 1, message)
            self._core._replies.answer(to, message)
        elif self.meter is not None:
            self.meter.lost()

    def _record(self, actor: Actor, to: str, step: int, message: Message) -> None:
        """Note what goes to a caller, who has no mailbox; what the gateway hears has one sender."""
        if self.recorder is not None:
            assert actor.at is not None
            head = (to, step, actor.address, *actor.at, self.clock.now_ns())
            self.recorder.add(Delivery(*head, message))

    def stamp(self) -> int | None:
        """Return when an envelope is made, for recording and meter; nobody else asks."""
        # A clock is read for each message only where somebody reads the time.
        if self.recorder is None and self.meter is None:
            return None
        return self.clock.now_ns()

    # -- failure

    def fail(self, actor: Actor, envelope: Envelope | None, error: BaseException) -> None:
        """Keep the first failure with its story; from here on nothing is handled.

        Without an envelope it failed between two messages.
        """
        # First: what is called when a core fails may take its time.
        if self._core._dispatcher.is_mine:
            self._core._dispatcher.hand_over()
        self._core._end_with(_failure_of(actor, envelope, error), error)

    def timers_failed(self, error: BaseException) -> None:
        """The clock may be the program's own, and without timers nothing falls due."""
        failure = CoreFailed(f"the timers failed: {masked_repr(error)}")
        failure.__cause__ = error
        self._core._end_with(failure, error)

    def survive(self, actor: Actor, envelope: Envelope, error: Exception) -> None:
        """Keep the failure of a replaced machine: it is the reason if the core stops later."""
        failure = _failure_of(actor, envelope, error)
        self.survived.append(failure)
        text = f"{_headline(actor, envelope, error)}; another takes its place"
        logger.error("{}", text, exception=error)
        alarm(text)
        # What the frames hold is the whole machine; the lines are all that is of use.
        traceback.clear_frames(error.__traceback__)
        self.decline(envelope)

    def decline(self, envelope: Envelope) -> None:
        """Let a caller go whose question will not be answered any more."""
        answer = refusal_of(envelope)
        if answer is not None:
            now_ns = self.clock.now_ns()
            if self.recorder is not None:
                head = (answer.to, 1, GATEWAY, envelope.cause, envelope.stimulus)
                self.recorder.add(Delivery(*head, now_ns, answer.message))
            self._core._replies.answer(answer.to, answer.message)

    def stopped_from_outside(self, actor: Actor) -> None:
        """A call that stops all actors of the process stops this core as well."""
        logger.warning("{} was stopped from outside, so the core stops", actor.address)
        self._core.stop()


def _forked() -> None:
    for core in _cores:
        core._become_a_copy()


# Registered once for the process; cores that are gone are not in the set.
os.register_at_fork(after_in_child=_forked)


def _warn(complaints: Iterable[str]) -> None:
    for complaint in complaints:
        logger.warning("{}", complaint)


def _failure_of(actor: Actor, envelope: Envelope | None, error: BaseException) -> CoreFailed:
    """Tell a failure with the last messages of its machine."""
    story = tuple(
        f"{sender} -> {actor.address}: {kind.__name__} ({stimulus})"
        for sender, kind, stimulus in actor.story
    )
    failure = CoreFailed(
        f"{_headline(actor, envelope, error)}; its last messages:\n  " + "\n  ".join(story)
    )
    failure.__cause__ = (
        InvariantViolation(error.what, story) if isinstance(error, InvariantViolation) else error
    )
    return failure


def _headline(actor: Actor, envelope: Envelope | None, error: BaseException) -> str:
    where = "between two messages"
    if envelope is not None:
        where = f"on {type(envelope.message).__name__} ({envelope.stimulus})"
    return f"{actor.address} failed {where}: {masked_repr(error)}"


def _outside(settings: Settings, time_scale: int) -> Settings:
    """A callback lives in the world, so its second is one there, however fast the core's clock."""
    timeout_ns = min(settings.predicate_timeout_ns * time_scale, INT64_MAX)
    return replace(settings, predicate_timeout_ns=timeout_ns)
