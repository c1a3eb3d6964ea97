"""A world: one run of a case, in which a schedule decides what happens next.

In the simulator a message waits for its delivery, a step of the case for its turn, a timer for its
time. The world offers all of them to the schedule and carries out what it chooses. Left alone it
delivers first in, first out, and goes on with the case when all is quiet.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.core.backlog import Backlog
from yunikorn_actors.core.due import ArmedTimers
from yunikorn_actors.drivers.simulator.choosers import Channel, Channels, oldest
from yunikorn_actors.drivers.simulator.quiescence import RestWatch
from yunikorn_actors.drivers.simulator.simulator import Checker, Simulator
from yunikorn_actors.errors import NoReply, UnknownResourceManager
from yunikorn_actors.lab.case import Case, CaseStep
from yunikorn_actors.lab.oracles.scenario_promises import Glimpse, promises_of
from yunikorn_actors.lab.tapes.tape import ALTERING, Entry, Verb
from yunikorn_actors.lab.tapes.tape_names import mailbox_name, message_name, numbered
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import (
    CancelTimer,
    Effect,
    Machine,
    Replaceable,
    Send,
    SetTimer,
)
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import (
    CONTEXT,
    GATEWAY,
    TIMER,
    Delivery,
    Envelope,
    Message,
    is_callback,
    reply_address,
)
from yunikorn_actors.messages.queries import Declined
from yunikorn_actors.messages.restart import CoreRestored
from yunikorn_actors.runtime.event_streams import Feed
from yunikorn_actors.scenario.actual_values import Views
from yunikorn_actors.scenario.drivers import INSTANCE
from yunikorn_actors.scenario.performer import DEFAULT_RM, Stage
from yunikorn_actors.scenario.resource_manager import ChoosyResourceManager
from yunikorn_actors.scenario.step_structs import Advance, Config, Register
from yunikorn_actors.state.termination import ASKED_BACK


class SlowReader:
    """A reader of event records in a run: slow, so that it misses some, and learns how many."""

    def __init__(self, room: int) -> None:
        self.feed = Feed(room)
        self.taken: list[si.EventRecord] = []
        self.has_left = False

    def read(self) -> None:
        """Take all that waits."""
        while (record := self.feed.take()) is not None:
            self.taken.append(record)


_C = TypeVar("_C")
_OUTSIDE: Final = frozenset({GATEWAY, TIMER})


class Planted(Exception):
    """A machine raised because the tape says so."""


class Endless(Exception):
    """The run does not come to an end."""


class Redundant(BaseException):
    """Whatever may follow was played in another order; code that is played must not catch it."""


class Schedule(Protocol):
    """Decides what happens next. The same world must always get the same answers."""

    watched: frozenset[str] | None
    """The types of messages whose names it wants to hear; None for all."""

    def choose(self, world: "World") -> Channel | Entry | None:
        """Return a channel to deliver from, something else to do, or None to go on with the case.

        None with messages under way means that they wait until the case has gone on.
        """
        ...

    def happened(self, event: str) -> None:
        """Hear the name of a message that was delivered, or of a step that was done.

        A step that has to wait for the core, and a timer that is due, are reported as well.
        """
        ...

    def confirmation(self, name: str) -> str:
        """Say how the resource manager confirms: empty, `twice`, `never`, `later` or `as TYPE`."""
        ...


class Oracle:
    """Judges a run beyond its single messages; it raises InvariantViolation."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        """Hear of each message, right after it was handled."""

    def at_rest(self, world: "World") -> None:
        """Judge the end of the case: every message was delivered, every release confirmed."""

    def patience_ns(self) -> int:
        """Return how much time is to pass after that before something is surely wrong."""
        return 0

    def waited(self, world: "World") -> None:
        """Judge what has not come about since; only if some oracle wanted time to pass."""

    def drained(self, world: "World") -> None:
        """Judge what is left when all applications were removed and time has passed."""


class World:
    def __init__(
        self,
        case: Case,
        schedule: Schedule,
        steps: tuple[CaseStep, ...],
        acts: "Mapping[Verb, Callable[[World, str], bool]]",
        checkers: tuple[Checker, ...] = (),
    ) -> None:
        self.case = case
        self._acts = acts
        self.deliveries: list[Delivery] = []
        self.turns = 0
        """How often the schedule was asked, or a program went on."""
        self.stimuli = 0
        """Calls, answers and timers: what came to the core from outside until the case was over."""
        self.is_closing = False
        self.length = 0
        """How many messages were delivered until the case was over."""
        self.promises = promises_of(case.scenario, self._look, self._life)
        if self.promises.are_watched or case.workload is not None:
            checkers = (*checkers, self.promises)
        self.simulator = LabSimulator(self, checkers)
        self.stage = Stage(case.scenario, StageDriver(self.simulator), None)
        self.script = deque(steps)
        self.late: dict[str, si.AllocationRequest] = {}
        """Confirmations that the resource manager has not sent yet, by name."""
        self.frozen: dict[str, int] = {}
        """Mailboxes that get nothing, each with the number of events until it does again."""
        self.in_vain: list[Entry] = []
        """What was to be done, and nothing came of it."""
        self.refused: list[object] = []
        """What calls were refused for, of steps that nothing was expected of."""
        self.keeps_order = True
        """Whether the steps were done in the order in which they are written."""
        self._is_altered = False
        """Whether a fault has changed what the case brings and asks for."""
        self.unanswered: list[str] = []
        """Releases that the resource manager never confirms."""
        self.readers: dict[str, SlowReader] = {}
        """Of event records, by the addresses of their streams at the core that there is now."""
        self._schedule = schedule
        self._checkers = checkers
        self._until_ns = 0
        """The moment to which the step in hand lets time go on; 0 without one."""
        self._blocked = 0
        """How many calls of the case wait for the core."""
        self._acting = ""
        """What is being done to the core from outside."""
        self._unsaid = ""
        """What has begun of that, where no observer knows yet that it has to wait."""
        self._waits: Counter[str] = Counter()
        self._confirmations: Counter[str] = Counter()

    def _look(self) -> Views:
        return self.stage.views(Glimpse(self.simulator))

    def _life(self, views: Views) -> int | None:
        partition = self.context.partitions.get(views.partition_name)
        return None if partition is None else partition.epoch

    # -- the run

    def run(self) -> None:
        """Play the case to its end, and raise what is wrong."""
        for _ in range(self.case.events_max):
            if not self.turn():
                break
        else:
            raise Endless(_endless(self.case))
        self._close()

    def turn(self) -> bool:
        """Let one thing happen; False if nothing is left, or all that is left has to wait."""
        self.turns += 1
        if self._unsaid:
            self._say_waiting()
        choice = self._schedule.choose(self)
        if choice is None:
            return self._go_on()
        if self.frozen:
            self._thaw()
        if isinstance(choice, Entry):
            self.act(choice)
        else:
            self.simulator.deliver_from(choice)
        return True

    def _say_waiting(self) -> None:
        name, self._unsaid = f"{self._unsaid} waits", ""
        self._waits[name] += 1
        self._schedule.happened(numbered(name, self._waits[name]))

    @property
    def channels(self) -> Channels:
        return self.simulator.channels

    def deliverable(self) -> Channels:
        """Return the channels whose mailbox is not frozen; all, if nothing else could happen."""
        if not self.frozen:
            return self.channels
        open_ = {
            channel: queue
            for channel, queue in self.channels.items()
            if mailbox_name(channel[1]) not in self.frozen
        }
        return open_ if open_ or self.next_step else self.channels

    @property
    def next_step(self) -> str:
        """The step that is in hand or comes next; empty if none may begin now."""
        return "" if self._blocked or not self.script else self.script[0].name

    def name_of(self, number: int) -> str:
        """Name a message that is under way, by the number of its sending."""
        return self.simulator.names.get(number, "")

    def _thaw(self) -> None:
        """Count an event; none is counted where the case goes on, as a tape may not name that."""
        self.frozen = {mailbox: left - 1 for mailbox, left in self.frozen.items() if left > 1}

    # -- the case

    def _go_on(self) -> bool:
        """Do the next step; time goes from timer to timer, and stops at each."""
        if self._blocked or not self.script:
            return False
        step = self.script[0]
        if isinstance(step.step, Advance):
            if not self._until_ns:
                self._until_ns = self.simulator.now_ns + step.step.duration_ns
            if self.simulator.move_to_next_timer(self._until_ns):
                return True
        self.do(step.name)
        return True

    def do(self, name: str) -> bool:
        """Do a step now, with messages under way or not; a step that was done is not done again."""
        step = next((step for step in self.script if step.name == name), None)
        if step is None:
            return False
        self.keeps_order &= step is self.script[0]
        if isinstance(step.step, Advance):
            first_ns = self._until_ns if step is self.script[0] else 0
            self._until_ns = 0
            self.script.remove(step)
            self.simulator.jump_to(first_ns or self.simulator.now_ns + step.step.duration_ns)
        else:
            self.script.remove(step)
            self.perform(step, name)
        self._schedule.happened(name)
        return True

    def perform(self, step: CaseStep, name: str) -> None:
        """Carry out a step as the resource manager would; what the core refuses is refused."""
        before, self._acting = self._acting, name
        self._blocked += 1
        self._unsaid = name
        try:
            self.refused += (it.actual for it in self.stage.act(step.written))
        finally:
            self._unsaid = ""
            self._blocked -= 1
            self._acting = before

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Name the calls that are made in the meantime, whatever happens while they wait."""
        before, self._acting = self._acting, name
        try:
            yield
        finally:
            self._acting = before

    def act(self, entry: Entry) -> None:
        """Do what the entry says, now."""
        if not self._acts[entry.verb](self, entry.what):
            self.in_vain.append(entry)
        elif entry.verb in ALTERING:
            self._is_altered = True

    def again(self, name: str) -> bool:
        """Do a step once more; time does not pass twice."""
        for step in self.steps:
            if step.name == name and not isinstance(step.step, Advance):
                self.perform(step, name)
                return True
        return False

    def mailboxes(self) -> frozenset[str]:
        """Name the mailboxes that there are now."""
        simulator = self.simulator
        receivers = (receiver for _, receiver in self.channels)
        addresses = (*simulator.machines, *simulator.callbacks, *receivers)
        return frozenset(map(mailbox_name, addresses))

    @property
    def steps(self) -> tuple[CaseStep, ...]:
        """The steps of the case, as far as they are known by now."""
        return self.case.steps

    def done(self) -> tuple[CaseStep, ...]:
        """Return the steps that were done."""
        left = {step.label for step in self.script}
        return tuple(step for step in self.case.steps if step.label not in left)

    def queues_of(self, rm_id: str) -> str:
        """Return the configuration that a resource manager sent last."""
        sent = [
            step.step.queues if isinstance(step.step, Config) else step.step.config
            for step in self.done()
            if isinstance(step.step, Config | Register) and (step.step.rm or DEFAULT_RM) == rm_id
        ]
        return next((queues for queues in reversed(sent) if queues), self.case.scenario.queues)

    # -- timers

    def timers(self) -> dict[str, tuple[str, str]]:
        """Return the armed timers by their names on a tape."""
        return {
            timer_name(envelope, key[0]): key for key, envelope in self.simulator.timers.armed()
        }

    def fire(self, name: str) -> bool:
        """Fire a timer whatever the time; one that is not armed any more fires in vain."""
        key = self.timers().get(name)
        if key is not None:
            due_ns, envelope = self.simulator.timers.take(key)
            self.simulator.now_ns = max(self.simulator.now_ns, due_ns)
            self.simulator.put((TIMER, key[0]), envelope)
        elif name in self.simulator.cancelled:
            address, envelope = self.simulator.cancelled[name]
            self.simulator.in_vain.append(envelope.message)
            self.simulator.put((TIMER, address), envelope)
        else:
            return False
        return True

    # -- confirmations

    def confirm(self, request: si.AllocationRequest) -> None:
        """Send the confirmation that a callback makes, in the way that the schedule wants."""
        assert request.releases is not None
        item = request.releases.allocations_to_release[0]
        self._confirmations[item.allocation_key] += 1
        count = self._confirmations[item.allocation_key]
        name = numbered(item.allocation_key, count)
        how = self._schedule.confirmation(name)
        self._is_altered |= how == "never" or how.startswith("as ")
        if how == "never":
            self.unanswered.append(name)
        elif how == "later":
            self.late[name] = request
        elif how.startswith("as "):
            self.simulator.post(_as(how[3:], request))
        else:
            self.simulator.post(request)
            if how == "twice":
                self.simulator.post(request)

    def unconfirmed(self) -> tuple[str, ...]:
        """Name what a resource manager could confirm now, and has not."""
        kept = (
            release.allocation_key
            for manager in self.stage.managers()
            for release in manager.unconfirmed()
        )
        return (*self.late, *kept)

    def confirm_now(self, what: str) -> bool:
        """Confirm what was put off, or what the manager of a scenario has not confirmed by itself.

        With `as TYPE` behind the name the confirmation has that type.
        """
        name, _, type_ = what.partition(" as ")
        self._is_altered |= bool(type_)
        is_known = name in self.unconfirmed()
        self._acting = f"confirm {name}"
        with suppress(UnknownResourceManager):
            if name in self.late:
                self.simulator.post(_as(type_, self.late.pop(name)))
            else:
                self._have_confirmed(name, type_)
        self._acting = ""
        return is_known

    def _have_confirmed(self, key: str, type_: str) -> None:
        for manager in self.stage.managers():
            for release in manager.unconfirmed():
                if release.allocation_key == key:
                    wanted = si.TerminationType[type_] if type_ else release.termination_type
                    manager.confirm(release.application_id, key, wanted, release.partition_name)

    # -- another core

    def checker(self, kind: type[_C]) -> _C | None:
        """Return what judges this run in some way; None if nothing does."""
        return next((it for it in self._checkers if isinstance(it, kind)), None)

    def begin_again(self, restored: CoreRestored) -> None:
        """Have the core end between two messages, and another begin with its truth."""
        self.late.clear()
        self.frozen.clear()
        self.readers.clear()
        self.simulator.begin_again(restored)

    # -- the end

    def _close(self) -> None:
        """Faults are over: everything is delivered and confirmed, then everything goes."""
        self._schedule = _Fifo()
        self.is_closing = True
        self.length = self.simulator.delivered
        self.simulator.failing.clear()
        self.frozen.clear()
        for name in tuple(self.late):
            self.confirm_now(name)
        self._settle()
        self._lift_refusals()
        self._confirm_all()
        self._judge()
        self._wait()
        self._drain()

    def _lift_refusals(self) -> None:
        """A no, or no answer in time, holds until the next request: have each manager make one."""
        for manager in self.stage.managers():
            if isinstance(manager, ChoosyResourceManager):
                with suppress(UnknownResourceManager):
                    self.simulator.update_allocation(si.AllocationRequest(rm_id=manager.rm_id))

    def _judge(self) -> None:
        """Have judged what is left when all is quiet."""
        for oracle in self._oracles():
            oracle.at_rest(self)
        # A program answers faults by itself; the steps of a file say nothing for them.
        keeps_end = self.case.workload is not None or not self._is_altered
        self.promises.at_rest(self.context, judges_eventually=keeps_end)

    def _wait(self) -> None:
        patience_ns = max((oracle.patience_ns() for oracle in self._oracles()), default=0)
        if patience_ns:
            until_ns = self.simulator.now_ns + patience_ns
            while self.simulator.move_to_next_timer(until_ns):
                self._settle()
                self._confirm_all()
            self.simulator.jump_to(until_ns)
            self._settle()
            for oracle in self._oracles():
                oracle.waited(self)

    def _oracles(self) -> Iterator[Oracle]:
        return (checker for checker in self._checkers if isinstance(checker, Oracle))

    def _confirm_all(self) -> None:
        """Confirm until nothing new is asked back: one end may be the reason of the next."""
        confirmed: tuple[str, ...] | None = None
        while confirmed != (waiting := self.unconfirmed()):
            confirmed = waiting
            for manager in self.stage.managers():
                with suppress(UnknownResourceManager):
                    manager.confirm_all()
            self._settle()

    def _settle(self) -> None:
        self.simulator.settle()
        if self.simulator.callback_errors:
            raise self.simulator.callback_errors[0]

    def _drain(self) -> None:
        """Remove every application, and let the time pass after which nobody remembers it."""
        for partition in self.context.partitions.values():
            gone = tuple(
                si.RemoveApplicationRequest(application_id=id_, partition_name=partition.state.name)
                for id_ in partition.state.applications
            )
            request = si.ApplicationRequest(rm_id=partition.rm_id, remove=gone)
            with suppress(UnknownResourceManager):
                self.simulator.update_application(request)
        self._settle()
        self._confirm_all()
        self.simulator.advance(_forgetting_ns(self.case.scenario.settings))
        self._settle()
        for oracle in self._oracles():
            oracle.drained(self)

    @property
    def context(self) -> Context:
        context = self.simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        return context


class LabSimulator(Simulator):
    """A simulator in which the world decides what is next, also while a call waits."""

    def __init__(self, world: World, checkers: tuple[Checker, ...]) -> None:
        super().__init__(
            world.case.built(),
            checkers=tuple(filter(_follows_messages, checkers)),
            recorders=(world.deliveries.append,),
            replaced_for=(Planted,),
        )
        self.names: dict[int, str] = {}
        """The names of the messages under way that the schedule watches."""
        self.cancelled: dict[str, tuple[str, Envelope]] = {}
        """Timers that were cancelled or armed anew, with their addresses."""
        self.in_vain: list[Message] = []
        """What was sent of them all the same, as a timer does that is cancelled too late."""
        self.failing: dict[str, bool] = {}
        """Messages at which a machine fails, each with whether it has changed already by then."""
        self.joining: dict[str, None] = {}
        """Messages that are handled together with those right before them, if they still wait."""
        self.overheard: dict[str, None] = {}
        """Followers for whom an oracle takes from the effects what is sent to them."""
        self._joined: list[str] = []
        """Those of them that are being handled."""
        self._is_late: bool | None = None
        """Whether the machine at work fails after its message; None if it does not fail."""
        self._lives = 1
        """How many cores there were."""
        self._awaited: dict[str, None] = {}
        """Addresses at which calls wait for their answers."""
        self._world = world
        self._sendings: Counter[str] = Counter()

    def step(self) -> bool:
        return self._world.turn()

    def settle(self) -> None:
        for _ in range(self._world.case.events_max):
            if not self.step():
                return
        raise Endless(_endless(self._world.case))

    # -- another core

    @property
    def has_begun_again(self) -> bool:
        return self._lives > 1

    def begin_again(self, restored: CoreRestored) -> None:
        """Lose all that is under way, and begin with this; a call that waits is refused."""
        for book in (
            self.followers.following, self.callbacks, self._followers, self.channels, self.names,
            self.cancelled, self.failing, self.joining, self._dead,
        ):  # fmt: skip
            book.clear()
        self.managers.forget()
        self.timers, self._rest = ArmedTimers(), RestWatch()
        declined = Declined(reason="the core has ended")
        self._replies.update(dict.fromkeys(self._awaited, declined))
        self._lives += 1
        self.topology.instance = f"{INSTANCE}-{self._lives}"
        self.machines = self.topology.first_machines()
        self._post(CONTEXT, restored, "restart")
        self.deliver_from((GATEWAY, CONTEXT))

    def _await_answer(self, post: Callable[[str], None], stimulus: str) -> Message:
        awaited: list[str] = []

        def noted(reply_to: str) -> None:
            awaited.append(reply_to)
            self._awaited[reply_to] = None
            post(reply_to)

        try:
            return super()._await_answer(noted, stimulus)
        finally:
            for it in awaited:
                del self._awaited[it]

    def question(self, address: str, make: Callable[[str], Message], stimulus: str) -> None:
        """Ask a machine, and do not wait for its answer."""
        self._post(address, make(reply_address(next(self._reply_numbers))), stimulus)

    def _await_room(self, backlog: Backlog) -> None:
        """Wait for the core that there is: the next one knows nothing of this."""
        life = self._lives
        while self._at is None and backlog.is_full and life == self._lives:
            if not self.step():
                raise NoReply("everything was handled, and the backlog is full")

    # -- messages

    def deliver_from(self, channel: Channel) -> None:
        number = self.channels[channel][0][0]
        self._is_late = self.failing.pop(self.names.get(number, ""), None) if self.failing else None
        super().deliver_from(channel)
        if self.callback_errors:
            raise self.callback_errors[0]
        name = self.names.pop(number, None)
        if name is not None:
            self._world._schedule.happened(name)
        if self._joined:
            joined, self._joined = self._joined, []
            for name in joined:
                self._world._schedule.happened(name)

    def _joins(self, channel: Channel) -> bool:
        number = self.channels[channel][0][0]
        is_joining = self.names.get(number) in self.joining
        if is_joining:
            self._joined.append(self.names.pop(number))
        return is_joining

    def put(self, channel: Channel, envelope: Envelope) -> None:
        super().put(channel, envelope)
        watched = self._world._schedule.watched
        if envelope.sender in _OUTSIDE or is_callback(envelope.sender):
            self._world.stimuli += not self._world.is_closing
        if watched is None or type(envelope.message).__name__ in watched:
            name = message_name(envelope, channel[1])
            self._sendings[name] += 1
            number = self.channels[channel][-1][0]
            self.names[number] = numbered(name, self._sendings[name])
            if envelope.sender == TIMER:
                self._world._schedule.happened(due_event(self.names[number]))

    def _name(self, call: str) -> str:
        """Name a call by the step that makes it, so that it keeps its name when others go."""
        return self._world._acting or super()._name(call)

    # -- time

    def move_to_next_timer(self, until_ns: int) -> bool:
        """Let time go on to the next timer that is due until then; False if there is none."""
        due_ns = self.timers.first_due_ns()
        if due_ns is None or due_ns > until_ns:
            return False
        self.now_ns = max(self.now_ns, due_ns)
        self._fire_due()
        return True

    def jump_to(self, now_ns: int) -> None:
        """Let time pass in one go; all timers that are due by then fire together."""
        self.now_ns = max(self.now_ns, now_ns)
        self._fire_due()

    def _carry_out(self, address: str, effect: Effect) -> None:
        if isinstance(effect, Send) and effect.to in self.overheard:
            return
        if isinstance(effect, CancelTimer | SetTimer):
            envelope = self.timers.get((address, effect.name))
            if envelope is not None:
                self.cancelled[timer_name(envelope, address)] = (address, envelope)
        super()._carry_out(address, effect)

    # -- failures

    def _effects(self, address: str, machine: Machine, envelope: Envelope) -> list[Effect]:
        is_late, self._is_late = self._is_late, None
        if is_late is None or not isinstance(machine, Replaceable):
            return super()._effects(address, machine, envelope)
        return super()._effects(address, _Failing(machine, is_late=is_late), envelope)

    # -- confirmations

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Make a request; the schedule says what becomes of a confirmation from a callback."""
        if self._at is not None and _is_confirmation(request):
            self._world.confirm(request)
        else:
            self.post(request)

    def post(self, request: si.AllocationRequest) -> None:
        super().update_allocation(request)


class _Failing:
    """A machine that raises at its next message, or right after it has changed by it."""

    def __init__(self, machine: Replaceable, *, is_late: bool) -> None:
        self._machine = machine
        self._is_late = is_late
        self.legacy = machine.legacy
        self.canonical_state = machine.canonical_state

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        if self._is_late:
            self._machine.handle(message, now_ns)
        raise Planted(f"the tape has {type(self._machine).__name__} fail")


def _forgetting_ns(settings: Settings) -> int:
    """After so long nothing waits any more: each time of the settings is over, short ones too.

    What a queue, an application or a resource manager sets for itself is within the usual times.
    """
    usual = Settings()
    times = (name for name in settings.__struct_fields__ if name.endswith("_ns"))
    return sum(max(getattr(settings, name), getattr(usual, name)) for name in times)


def _follows_messages(checker: Checker) -> bool:
    """Whether it looks at single messages; the others judge the run when it rests."""
    return not isinstance(checker, Oracle) or type(checker).delivered is not Oracle.delivered


def _endless(case: Case) -> str:
    return f"the case is not over after {case.events_max} events: machines keep busy"


class StageDriver:
    """The core as the stage sees it."""

    def __init__(self, core: LabSimulator) -> None:
        self.core = core
        self.settle = core.settle
        self.advance = core.advance


class _Fifo:
    watched: frozenset[str] | None = frozenset()

    def choose(self, world: World) -> Channel | Entry | None:
        return oldest(world.channels) if world.channels else None

    def happened(self, event: str) -> None:
        """Nothing waits for anything."""

    def confirmation(self, _: str) -> str:
        return ""


def timer_name(envelope: Envelope, address: str) -> str:
    """Name a timer as its message is named; there is one sender of timers."""
    return message_name(envelope._replace(sender=TIMER), address).replace(" from timer", "", 1)


def due_event(name: str) -> str:
    """Say that a timer is due, whose message has this name."""
    return f"due {name.replace(' from timer', '', 1)}"


def _is_confirmation(request: si.AllocationRequest) -> bool:
    releases = () if request.releases is None else request.releases.allocations_to_release
    return bool(releases) and all(item.termination_type in ASKED_BACK for item in releases)


def _as(type_: str, request: si.AllocationRequest) -> si.AllocationRequest:
    """Give a confirmation another type; without one it stays as it is."""
    if not type_ or request.releases is None:
        return request
    items = tuple(
        replace(item, termination_type=si.TerminationType[type_])
        for item in request.releases.allocations_to_release
    )
    return replace(request, releases=replace(request.releases, allocations_to_release=items))
