"""The portal's side of the conversation of one resource manager with one partition.

Two threads: one sends, one receives. Both go on asking while the other side is away, with the same
numbers, so nothing is lost or done twice. When the core of the partition began anew, the thread
that receives registers again and reports, in the place of the manager.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.config import ExtraConfig
from yunikorn_actors.core.backlog import Backlog
from yunikorn_actors.core.registered_managers import overrides
from yunikorn_actors.errors import CoreError, CoreFailed, CoreStopped, NoReply, anew
from yunikorn_actors.recording.logs import logger
from yunikorn_actors.service.cluster.channel import Entry
from yunikorn_actors.service.cluster.partition_host import HANDLED, Answer, ChannelGone
from yunikorn_actors.service.cluster.recovery_report import RecoveryReport
from yunikorn_actors.service.cluster.split import Request
from yunikorn_actors.values.masking import masked_repr, masked_str

PAUSE_S: Final = 0.1
"""Between two attempts to reach a host that is away."""
BATCH: Final = 200
"""Requests that are sent at a time."""
ASKED: Final = (
    "predicates",
    "preemption_predicates",
    "update_container_scheduling_state",
    "get_state_dump",
)
"""Methods of a callback that are called only if it has them."""


class HostAway(CoreStopped):
    """The core of a partition cannot be reached now; the engine starts it again."""


class Far(Protocol):
    """The host of a partition, wherever it is."""

    def call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - of any method
        """Call a method of it; raise what that raises, or HostAway."""


def reach(far: Far, method: str, *arguments: object) -> Any:  # noqa: ANN401 - of any method
    """Call a host; one whose core has ended counts as away until another one takes its place."""
    try:
        return far.call(method, *arguments)
    except (CoreFailed, CoreStopped, NoReply) as error:
        raise HostAway(str(error)) from error


class ManagerChannel:
    def __init__(
        self,
        partition: str,
        far: Far,
        request: si.RegisterResourceManagerRequest,
        callback: si.ResourceManagerCallback,
        turn: threading.Lock,
        prepare: Callable[[], None],
    ) -> None:
        """`turn` is held while the callback is called; `prepare` has the host configured."""
        self.backlog: Final = Backlog(ExtraConfig.of(request.extra_config).unhandled_max)
        self._partition = partition
        self._far = far
        self._request = request
        self._callback = callback
        self._answered = frozenset(it for it in ASKED if overrides(callback, it))
        self._call_turn = turn
        self._prepare = prepare
        self._changed = threading.Condition()
        """Guards the rest."""
        self._report_after_restart = RecoveryReport(request.rm_id, partition)
        self._unsent: deque[Request] = deque()
        self._sent = 0
        """Requests that the present channel has."""
        self._reported = 0
        """Of them, those of the report; before it so many were taken here:"""
        self._before = 0
        self._ends = self._handled = 0
        """Those that end something, with which the report begins; and how many have been handled.

        What comes behind them waits until then: an announcement before that may be of what they
        end, and one behind it is of what came after them.
        """
        self._channel = ""
        self._begins_anew = False
        """Whether the core that it had is gone, and the next one has not been reported to."""
        self._over: CoreError | None = None
        self._registering = threading.Lock()
        """Held while this one registers again: it must not follow another registration."""
        self._threads = [
            threading.Thread(target=work, name=f"yunikorn-actors-{name}-{partition}", daemon=True)
            for work, name in ((self._send_all, "send"), (self._receive_all, "receive"))
        ]

    # -- on any thread

    def open(self) -> None:
        """Register; raise what the core has against it, or HostAway."""
        # Before the manager: a host that began anew has no configuration.
        self._prepare()
        self._channel = self._far.call("register", self._request, self._answered)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Raise if nothing more can be sent."""
        if self._over is not None:
            raise anew(self._over)

    def send(self, request: Request) -> None:
        """Have it sent; this waits for nothing."""
        with self._changed:
            # Recorded first: what was not sent when the host began anew is in the report.
            self._report_after_restart.sent(request)
            self._unsent.append(request)
            self.backlog.take()
            self._changed.notify_all()

    def configure(self, request: si.UpdateConfigurationRequest) -> None:
        self._far.call("update_configuration", request)
        with self._changed:
            # Kept for the next registration of a core that begins anew.
            self._request = replace(
                self._request, config=request.config, extra_config=request.extra_config
            )
        self.backlog.bound(ExtraConfig.of(request.extra_config).unhandled_max)

    def end(self, error: CoreError) -> None:
        """Say and hear nothing more."""
        with self._changed:
            self._over = self._over or error
            self._changed.notify_all()
        self.backlog.close()

    def leave_to_another(self, error: CoreError) -> None:
        """End, and do not disturb a registration that comes from now on."""
        self.end(error)
        # Waits for a registration that is under way, which is then known to be the former one.
        with self._registering:
            pass

    def lose(self) -> None:
        """Report to the host that the manager is lost, if it can be reached now."""
        self._far.call("lose", self._channel)

    @property
    def is_quiet(self) -> bool:
        """Whether every request and report has been handled, and its answers were given."""
        with self._changed:
            # Neither a report nor a request that nobody has answered yet.
            is_reported = not self._begins_anew and self._handled >= self._reported
            return is_reported and not self.backlog.unhandled

    # -- the thread that sends

    def _send_all(self) -> None:
        while (batch := self._next()) is not None:
            channel, first, requests = batch
            try:
                # The host takes them in order and passes over what it has.
                reach(self._far, "deliver", channel, first, requests)
            except HostAway:
                self._pause()
            except ChannelGone:
                # Of another life: the thread that receives makes the new channel.
                self._await_another(channel)
            except Exception as error:  # noqa: BLE001 - the edge: else it would just stand still
                self.end(_over_by(error))
            else:
                # Counted only then: a call that was lost has to be made again.
                self._was_sent(channel, len(requests))

    def _next(self) -> tuple[str, int, tuple[Request, ...]] | None:
        with self._changed:
            # What ends something goes first, and the rest waits until that was handled.
            while self._over is None and (not self._unsent or self._awaits_ends):
                self._changed.wait()
            if self._over is not None:
                return None
            ends = self._ends - self._sent
            count = min(ends if ends > 0 else BATCH, BATCH, len(self._unsent))
            return self._channel, self._sent + 1, tuple(self._unsent[it] for it in range(count))

    @property
    def _awaits_ends(self) -> bool:
        return self._sent >= self._ends > self._handled

    def _was_sent(self, channel: str, count: int) -> None:
        with self._changed:
            if channel == self._channel:
                self._sent += count
                for _ in range(count):
                    self._unsent.popleft()

    def _await_another(self, channel: str) -> None:
        with self._changed:
            while channel == self._channel and self._over is None:
                self._changed.wait()

    # -- the thread that receives

    def _receive_all(self) -> None:
        acknowledged = 0
        while self._over is None:
            try:
                for entry in reach(self._far, "entries", self._channel, acknowledged):
                    self._take(entry)
                    acknowledged = entry.number
            except HostAway:
                self._pause()
            except ChannelGone:
                self._begin_anew()
                acknowledged = 0
            except Exception as error:  # noqa: BLE001 - as above
                self.end(_over_by(error))

    def _begin_anew(self) -> None:
        """Register again with a core that began anew, and report to it, once it is there."""
        logger.warning(
            "the core of partition {} began anew: {} is reported to it",
            self._partition,
            self._request.rm_id,
        )
        channel, self._begins_anew = "", True
        # Until it is there: the engine starts it again, which takes a while.
        while not channel and self._over is None:
            try:
                channel = self._register_again()
            except HostAway:
                self._pause()
            except CoreError as error:
                logger.error(
                    "partition {} refuses {}: {}", self._partition, self._request.rm_id, error
                )
                self.end(error)
        if not channel:
            return
        with self._changed:
            # What was not sent yet is in the record, and so in the report.
            self._unsent = deque(self._report_after_restart.recover())
            self._reported, self._before = len(self._unsent), self.backlog.taken
            self._ends, self._handled = self._report_after_restart.repeated_ends, 0
            self._channel, self._sent = channel, 0
            self._begins_anew = False
            self._changed.notify_all()
        if not self._reported:
            # Nothing will be handled that would say so.
            self.backlog.handled(self._before)

    def _register_again(self) -> str:
        """Return the new channel; the empty text if all is over."""
        with self._registering:
            if self._over is not None:
                # Over in the meantime: another one has registered, and must not be disturbed.
                return ""
            self._prepare()
            channel: str = reach(self._far, "register", self._request, self._answered)
            return channel

    def _take(self, entry: Entry) -> None:
        if entry.kind == HANDLED:
            self._take_handled(entry.value)
        elif entry.kind in _RESPONSES:
            # The record has to see it first: it decides whether the manager knows it already.
            with self._changed:
                value = self._report_after_restart.news(entry.value)
            if value is not None:
                self._tell(entry.kind, value)
        elif hasattr(entry.value, "argument"):
            self._ask(entry.kind, entry.value.number, entry.value.argument)
        else:
            self._tell(entry.kind, entry.value)

    def _take_handled(self, number: int) -> None:
        with self._changed:
            unnotified = self._report_after_restart.handled(number)
            self._handled = number
            self._changed.notify_all()
        if unnotified is not None:
            self._tell("update_allocation", unnotified)
        # Behind the report: those before it were counted by the former channel.
        if number >= self._reported:
            self.backlog.handled(self._before + number - self._reported)

    def _tell(self, method: str, value: object) -> None:
        with self._call_turn:
            if self._over is None:
                getattr(self._callback, method)(value)

    def _ask(self, method: str, number: int, argument: object) -> None:
        """The callback of a portal waits no longer than the core does."""
        ask: Callable[..., object] = getattr(self._callback, method)
        try:
            value = ask() if argument is None else ask(argument)
            answer = Answer(value)
        except Exception as error:  # noqa: BLE001 - the edge: reported to the core
            answer = Answer(failure=masked_str(error))
        reach(self._far, "answer", self._channel, number, answer)

    def _pause(self) -> None:
        with self._changed:
            if self._over is None:
                self._changed.wait(PAUSE_S)


def _over_by(error: Exception) -> CoreError:
    if isinstance(error, CoreError):
        return error
    return CoreFailed(f"the channel to a partition has failed: {masked_repr(error)}")


_RESPONSES: Final = frozenset({"update_allocation", "update_application", "update_node"})
