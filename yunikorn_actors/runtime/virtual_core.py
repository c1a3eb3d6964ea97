"""A core in virtual time: the calls and callbacks of `SchedulerCore`, on the caller's own thread.

An update returns at once, as on threads, and nothing of it is handled before the program lets the
core run. Then everything happens on that thread, callbacks included, in an order that the seed
chooses. Time stands still while the core works, and moves only when the program moves it, from
timer to timer. So a program asks when the next timer is due instead of waiting for it, and two runs
that make the same calls are the same, message by message.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, Self

from yunikorn_actors import si
from yunikorn_actors.core.registered_managers import overrides
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS, Checker, Simulator
from yunikorn_actors.errors import (
    CoreError,
    CoreFailed,
    CoreStopped,
    InvalidRequest,
    WouldBlock,
    anew,
)
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import EVENT_PUBLISHER, Delivery, Message, manager_of
from yunikorn_actors.messages.callbacks import method_of
from yunikorn_actors.messages.codec import TraceDigest
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.messages.rm_calls import CallMark
from yunikorn_actors.messages.rm_events import RMApplicationUpdate, RMContainerSchedulingState
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.planning.reasons import WaitingSum, Why
from yunikorn_actors.policies.registry import Policies, Policy
from yunikorn_actors.recording.recorder import FileRecorder, TraceSettings
from yunikorn_actors.recording.secret_values import masked_dump
from yunikorn_actors.runtime.core_api import ScopedCore
from yunikorn_actors.runtime.core_arguments import check_forms, read_config
from yunikorn_actors.runtime.event_streams import ROOM, Feed
from yunikorn_actors.runtime.failure_hooks import CallbackRaised, Hooks, OnCallbackError
from yunikorn_actors.si.form import check_counts
from yunikorn_actors.values.masking import masked_repr
from yunikorn_actors.values.resource import INT64_MAX
from yunikorn_actors.what_if.answer import Answer
from yunikorn_actors.what_if.changes import Change, Reconfigure, Request
from yunikorn_actors.what_if.core_state import state_of
from yunikorn_actors.what_if.run import Fits
from yunikorn_actors.what_if.simulation import simulate

LINES_KEPT: Final = 1_000
"""Of a log that nobody reads: a run may be as long as it likes."""
INSTANCE: Final = "virtual"
"""A part of every UUID: the same in each run, so that runs can be compared."""
_OVER: Final = {
    "new": "the core is new: call start() first",
    "stopped": "the core is stopped: make another one",
}


class VirtualCore(ScopedCore):
    """The core in virtual time: make one, `start` it or enter it, register, let time pass.

    `advance_to` moves the time, `run_until_idle` handles what is there at this moment, and
    `next_event_ns` says when something will happen by itself. Use it from one thread. A question
    (`explain`, `state_dump`, `events`) runs the core until it is answered, time stands still.
    """

    def __init__(
        self,
        *,
        topology: TopologyName = "proposing",
        schedulers: int = 1,
        settings: Settings | None = None,
        instance: str = INSTANCE,
        seed: int = 0,
        start_ns: int = EPOCH_NS,
        groups: Mapping[str, tuple[str, ...]] | None = None,
        checked: bool = False,
        quiet: bool = False,
        digest: bool = False,
        trace: str | Path | None = None,
        config: str | Path | None = None,
        policies: Mapping[str, Policy] | None = None,
        on_callback_error: OnCallbackError | None = None,
    ) -> None:
        """Make a core; what `SchedulerCore` has too means the same here.

        - `seed`: in which order messages are delivered that nothing orders; 0 is first in, first
          out.
        - `start_ns`: the time at the beginning, in nanoseconds since 1970.
        - `groups`: what the resolver `os` knows: users, each with their groups. No directory is
          asked.
        - `checked`: look after every message whether the invariants hold; not with `quiet`.
        - `quiet`: leave out event records, changes of applications, states of asks that have no
          reason, and calls of methods that yours does not override. `events` then finds none.
        - `digest`: compute `digest` as messages are delivered.
        """
        check_forms(
            settings=settings, instance=instance, trace=trace, config=config,
            policies=policies, on_callback_error=on_callback_error,
        )  # fmt: skip
        check_counts("VirtualCore", seed=seed, start_ns=start_ns)
        if quiet and (trace is not None or checked):
            whose = "a recording" if trace is not None else "a check"
            raise InvalidRequest(f"quiet: {whose} needs every message: leave one of the two out")
        built = Topology(
            topology, settings=settings or Settings(), instance=instance,
            schedulers=schedulers, policies=Policies(policies),
        )  # fmt: skip
        self._digest = TraceDigest() if digest else None
        self._recorder: FileRecorder | None = None
        self._trace = None if trace is None else TraceSettings(path=trace)
        self._header = {**built.described(), "driver": "sim", "seed": seed, "start_ns": start_ns}
        self._config = None if config is None else read_config(config, built.policies)
        self._state: Literal["new", "running", "stopped"] = "new"
        self._feeds: dict[str, Feed] = {}
        self._simulator = _Heard(
            built,
            seed=seed,
            checkers=default_checkers() if checked else (),
            accounts=groups,
            hooks=Hooks(None, on_callback_error),
            is_quiet=quiet,
            record=self._record,
        )
        self._simulator.now_ns = start_ns

    # -- life

    @property
    def failure(self) -> CoreError | None:
        """Why the core takes nothing more, None while it does."""
        error = self._simulator.failure
        if error is None or isinstance(error, CoreError):
            return error
        failure = CoreFailed(f"the core failed: {masked_repr(error)}")
        failure.__cause__ = error
        return failure

    def start(self) -> Self:
        """Take calls from now on."""
        if self._state != "new":
            raise CoreStopped(f"a core is started once; this one is {self._state}: make another")
        self._state = "running"
        if self._trace is not None:
            self._recorder = FileRecorder(self._trace, self._header)
        if self._config is not None:
            self.update_configuration(si.UpdateConfigurationRequest(config=self._config))
        return self

    def stop(self, timeout: float = 0.0) -> None:  # noqa: ARG002 - that of every core
        """Take nothing more; what was posted and not handled by then is dropped."""
        before, self._state = self._state, "stopped"
        if before != "running":
            return
        for feed in self._feeds.values():
            feed.end(self.failure)
        if self._recorder is not None:
            self._recorder.close(self._footer(self._recorder))

    # -- time

    @property
    def now_ns(self) -> int:
        """The time, in nanoseconds since 1970."""
        return self._simulator.now_ns

    @property
    def next_event_ns(self) -> int | None:
        """When something will happen by itself: now, if a message waits; None for never."""
        return self._simulator.next_event_ns

    def run_until_idle(self) -> None:
        """Handle every message that there is at this moment; time stands still.

        Raises CoreFailed if the core fails, and so does every call from then on.
        """
        with self._call():
            self._check_outside("run_until_idle")
            self._simulator.settle()

    def advance_to(self, time_ns: int) -> None:
        """Let time pass until then; timers fire in order, each moment is settled before the next.

        A time that has passed raises InvalidRequest: virtual time does not go back.
        """
        check_counts("advance_to", time_ns=time_ns)
        if time_ns < self.now_ns:
            raise InvalidRequest(f"time_ns: {time_ns} has passed: it is {self.now_ns} now")
        with self._call():
            self._check_outside("advance_to")
            self._simulator.advance(time_ns - self.now_ns)

    @property
    def handled(self) -> int:
        """How many messages have been handled since the start."""
        return self._simulator.delivered

    @property
    def digest(self) -> str:
        """A digest of all messages so far, in their order: equal runs have equal ones."""
        if self._digest is None:
            raise InvalidRequest("digest: make the core with digest=True")
        return self._digest.hex()

    # -- the calls of every core

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
    ) -> si.RegisterResourceManagerResponse:
        """Register, or register again: then everything of the former registration is dropped."""
        with self._call():
            return self._simulator.register_resource_manager(request, callback)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Make asks, report and release; `update_allocation` of the callback answers."""
        with self._call():
            self._simulator.update_allocation(request)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Add and remove applications; `update_application` of the callback answers."""
        with self._call():
            self._simulator.update_application(request)

    def update_node(self, request: si.NodeRequest) -> None:
        """Add, change, drain and remove nodes; `update_node` of the callback answers."""
        with self._call():
            self._simulator.update_node(request)

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Reload the configuration; if it is refused nothing has changed."""
        with self._call():
            self._simulator.update_configuration(request)

    def resource_manager_lost(self, rm_id: str) -> None:
        """Suspend its partitions: its work goes on, nothing is decided until it registers again."""
        with self._call():
            self._simulator.resource_manager_lost(rm_id)

    def unregister_resource_manager(self, rm_id: str) -> None:
        """Remove everything of a resource manager, registered or lost."""
        with self._call():
            self._simulator.unregister_resource_manager(rm_id)

    def state_dump(self) -> dict[str, Any]:
        """Return everything that the core knows, as plain values; what looks secret is masked."""
        with self._call():
            return masked_dump(self._simulator.state_dump())

    def explain(self, application_id: str, key: str, *, partition: str = "") -> Why:
        """Say why an ask waits, or what has become of it."""
        with self._call():
            return self._simulator.explain(application_id, key, partition=partition)

    def expected(self, application_id: str = "", *, partition: str = "") -> tuple[Expected, ...]:
        """Return when what waits will start, of an application or of all: places and intervals."""
        with self._call():
            return self._simulator.expected(application_id, partition=partition)

    def waiting(self, *, partition: str = "") -> tuple[WaitingSum, ...]:
        """Return what waits, added up by cause, queue and size."""
        with self._call():
            return self._simulator.waiting(partition=partition)

    def events(self, first_id: int = 0, count: int = 10_000) -> EventsFound:
        """Event records from this number on, with the range that is stored."""
        with self._call():
            return self._simulator.events(first_id, count)

    def event_stream(self, history: int = 0) -> Iterator[si.EventRecord]:
        """Hear every event record from now on, after the last `history` ones.

        A step never waits: iteration ends when what has come so far is taken, and may go on later.
        """
        check_counts("event_stream", least=-INT64_MAX, history=history)
        feed = Feed(max(ROOM, history))
        with self._call():
            # The feed is opened by a message, which runs the core until it is answered.
            self._feeds[self._simulator.followers.open_stream(feed, history)] = feed
        return _Taken(feed)

    def simulate(
        self,
        *changes: Change | Request | Reconfigure,
        until: float | None = None,
        compare: bool = True,
        fits: Fits | None = None,
    ) -> Answer:
        """Say what would happen from here with these changes; nothing of it happens.

        Changes are requests of the interface, `Reconfigure`, or `Change` for one that is made
        later. `until` is in seconds from now; without it the answer ends when nothing happens any
        more. `compare=False` leaves out the same run without the changes. `fits` takes the key of
        an ask and a node, and answers as `predicates` would; without it every answer is a yes.
        """
        with self._call():
            self._check_outside("simulate")
            # What was posted is part of the present: the copy begins behind it.
            self._simulator.settle()
            return simulate(
                state_of(self._simulator), *changes, until=until, compare=compare, fits=fits,
                origin=self._simulator, policies=self._simulator.topology.policies.given,
            )  # fmt: skip

    # -- parts

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Around whatever reaches the core: one that has failed, or fails now, takes nothing."""
        self.check_sound()
        if self._state != "running":
            raise CoreStopped(_OVER[self._state])
        try:
            yield
        except Exception:
            # The failure of the core says more than what it made the call raise.
            self.check_sound()
            raise

    def check_sound(self) -> None:
        """Raise what the core has failed with, if it has."""
        failure = self.failure
        if failure is not None:
            raise anew(failure)

    def _check_outside(self, call: str) -> None:
        if self._simulator.is_handling:
            raise WouldBlock(f"{call} was called from inside a callback: call it when that is over")

    def _record(self, delivery: Delivery) -> None:
        if self._digest is not None:
            self._digest.add(delivery)
        if self._recorder is not None:
            self._recorder.add(delivery)

    def _footer(self, recorder: FileRecorder) -> dict[str, Any]:
        if self.failure is not None:
            return {"states": {}, "failure": str(self.failure)}
        states = self._simulator.states().items()
        return {"states": {address: recorder.digest_of(state) for address, state in states}}


class _Heard(Simulator):
    """The simulator of a `VirtualCore`: its callbacks are a program's, and it may be quiet.

    A quiet simulator leaves out what nobody hears: messages to EventPublisher and to callback
    methods that are not overridden. No decision depends on these.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        seed: int,
        checkers: tuple[Checker, ...],
        accounts: Mapping[str, tuple[str, ...]] | None,
        hooks: Hooks,
        is_quiet: bool,
        record: Callable[[Delivery], None],
    ) -> None:
        super().__init__(
            topology,
            chooser=chooser_of(seed),
            checkers=checkers,
            recorders=(record,),
            accounts=accounts,
        )
        self._hooks = hooks
        self.lines = deque(maxlen=LINES_KEPT)
        self._is_quiet = is_quiet
        self._overridden: dict[tuple[str, type[Message]], bool] = {}
        """Whether a callback overrides the method that such a message calls."""

    @property
    def next_event_ns(self) -> int | None:
        return self.timers.first_due_ns() if self.is_at_rest else self.now_ns

    def _call_back(self, address: str, call: Message) -> None:
        super()._call_back(address, call)
        if self.callback_errors:
            error = self.callback_errors.pop()
            raised = CallbackRaised(manager_of(address), method_of(type(call)), error)
            self._hooks.callback_raised(address, type(call).__name__, raised)

    def _send(self, sender: str, to: str, message: Message) -> None:
        # Half of what a quiet core would send is for EventPublisher, so that is looked at first.
        if not self._is_quiet or (to != EVENT_PUBLISHER and self._has_effect(to, message)):
            super()._send(sender, to, message)

    def _has_effect(self, to: str, message: Message) -> bool:
        # Accepted applications and their states are left out, rejections are not.
        if type(message) is RMApplicationUpdate:
            return bool(message.rejected)
        if type(message) is RMContainerSchedulingState:
            return any(it.reason for it in message.states)
        callback = self.callbacks.get(to)
        # A mark calls no method: its answer says how far the callback has come.
        if callback is None or type(message) is CallMark:
            return True
        key = (to, type(message))
        if key not in self._overridden:
            self._overridden[key] = overrides(callback, method_of(type(message)))
        return self._overridden[key]


class _Taken(Iterator[si.EventRecord]):
    """What a feed has taken so far."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def __next__(self) -> si.EventRecord:
        record = self._feed.take()
        if record is None:
            raise StopIteration
        return record
