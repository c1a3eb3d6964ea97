"""The partitions of Context, each with the counters that name things in it.

A partition remembers asks that were rejected, or withdrawn by the core. They are remembered to be
asked about only: no decision depends on them, so they are no part of the state. The bound is that
of rejected applications; the oldest go first.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from yunikorn_actors.machines.life import Life
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import CONTEXT, scheduler_address
from yunikorn_actors.messages.queries import ExplainRequested
from yunikorn_actors.messages.restart import LastNumbers
from yunikorn_actors.messages.rm_events import Capabilities
from yunikorn_actors.messages.scheduling import ReportPolicyFailed, TokenPassed, TokenRevoked
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.reasons import Cause, Obstacle, Why
from yunikorn_actors.policies.folds import Folds, policy_name
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.state.allocations import Allocation, Ask
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import Proposal, Refusal
from yunikorn_actors.state.snapshot import LivingImage, restore

# What a resource manager still has to report after the core was restarted.
#
# The core comes back with all that it had decided. Its resource managers may have missed the last
# of it, or may have lost something in the meantime. So everything that is charged is *awaited*:
# nodes take no work until they are reported, and an allocation that is not reported in time is
# dropped, and its end announced. What is reported is known already: it keeps its UUID and is
# charged once.


class Awaited:
    """The applications and allocations that are known and were not reported yet.

    Nodes have a mark of their own in the state (`Node.awaited`), because schedulers must not use
    them.
    """

    def __init__(self, state: PartitionState) -> None:
        self._nodes = state.nodes
        # By serial: an application that was submitted again under its id is another life, and new.
        self._applications = {app.id: app.serial for app in state.applications.values()}
        self._uuids = dict.fromkeys(state.owners)
        self._wanted: dict[str, None] = {}

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(id_ for id_, node in self._nodes.items() if node.awaited)

    @property
    def uuids(self) -> tuple[str, ...]:
        return tuple(self._uuids)

    def has_allocation(self, uuid: str) -> bool:
        return uuid in self._uuids

    # Pops: a second report of the same life is a duplicate application, and rejected as such.
    def takes_application(self, app: Application) -> bool:
        """Whether this life of it is awaited; it is not from now on."""
        return self._applications.pop(app.id, None) == app.serial

    def takes_allocation(self, uuid: str) -> bool:
        """Whether this allocation is awaited; it is not from now on."""
        # The values are None, so None is "was awaited" and the default means "was not".
        return self._uuids.pop(uuid, "") is None

    def find(self, allocations: Iterable[Allocation], uuid: str, node_id: str) -> str:
        """Return the one of these that a report means; the empty text if there is none."""
        for it in allocations:
            # Without a UUID any awaited allocation of this ask on that node will do: they are
            # alike.
            if it.uuid in self._uuids and it.node_id == node_id and uuid in {"", it.uuid}:
                return it.uuid
        return ""

    # Remembered even if the node is awaited still: `take_wanted` comes back to it with the report.
    def note_wanted(self, ask: Ask) -> None:
        """Note that the ask came again: its resource manager does not know that it was placed."""
        self._wanted.update(dict.fromkeys(uuid for uuid in ask.uuids if uuid in self._uuids))

    @property
    def wanted(self) -> tuple[str, ...]:
        """What was asked for again and was not reported yet."""
        return tuple(uuid for uuid in self._wanted if uuid in self._uuids)

    def is_wanted(self, uuid: str) -> bool:
        return uuid in self._wanted

    def unreported(self, app: Application, ask: Ask) -> list[Allocation]:
        """Return the allocations of an ask whose node was reported without them."""
        return [
            app.allocations[uuid]
            for uuid in ask.uuids
            # A node that is awaited itself says nothing yet about its work.
            if uuid in self._uuids and not self._nodes[app.allocations[uuid].node_id].awaited
        ]


class Rejection(NamedTuple):
    reason: str
    at_ns: int
    was_taken: bool


class Rejections:
    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[tuple[str, str], Rejection] = {}

    def __len__(self) -> int:
        return len(self._known)

    def note(
        self, application_id: str, key: str, reason: str, at_ns: int, *, was_taken: bool = False
    ) -> None:
        name = (application_id, key)
        # Put anew, so that the newest is last: the bound drops the first.
        self._known.pop(name, None)
        self._known[name] = Rejection(reason, at_ns, was_taken)
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def forget(self, application_id: str, key: str) -> None:
        """The ask came again and was taken."""
        self._known.pop((application_id, key), None)

    def explain(self, application_id: str, key: str, now_ns: int) -> Why | None:
        name = (application_id, key)
        return _why(name, self._known[name], now_ns) if name in self._known else None

    def newest(self, count: int, now_ns: int) -> tuple[Why, ...]:
        known = islice(reversed(self._known.items()), count)
        return tuple(_why(name, rejection, now_ns) for name, rejection in known)


def _why(name: tuple[str, str], rejection: Rejection, now_ns: int) -> Why:
    how = "the core withdrew it" if rejection.was_taken else "it was rejected"
    return Why(
        application_id=name[0],
        key=name[1],
        repeats=0,
        since_ns=rejection.at_ns,
        reserved=(),
        obstacle=Obstacle(cause=Cause.REJECTED, text=f"{how}: {rejection.reason}"),
        at_ns=now_ns,
    )


DIGITS_MAX = 19


class Uuids:
    """Names of allocations: the instance of the core, and a number that is never used again."""

    def __init__(self, instance: str) -> None:
        self._prefix = f"{instance}-"
        self.issued = 0

    def next(self) -> str:
        self.issued += 1
        return self._prefix + str(self.issued)

    def take(self, count: int) -> tuple[str, ...]:
        """Issue `count` UUIDs that follow each other."""
        first, self.issued = self.issued + 1, self.issued + count
        return tuple([self._prefix + str(number) for number in range(first, self.issued + 1)])

    def avoid(self, uuid: str) -> None:
        """Never issue a UUID that a resource manager has brought, as after a restart."""
        # A resource manager may report UUIDs that a former core of the same instance issued
        # . A number of 19 digits or more never was one.
        number = uuid.removeprefix(self._prefix)
        if number != uuid and number.isascii() and number.isdecimal() and len(number) < DIGITS_MAX:
            self.issued = max(self.issued, int(number))


class Explaining(NamedTuple):
    """A question that was passed on to a scheduler."""

    scheduler: str
    question: ExplainRequested


class PartitionContext:
    """One life of a partition, with the counters that name things in it."""

    def __init__(
        self,
        life: Life,
        *,
        schedulers: int,
        commit: Callable[["PartitionContext", list[Proposal], int], list[Effect]],
        uuids: Uuids,
        settings: Settings,
        policies: Policies = NO_POLICIES,
    ) -> None:
        """Without schedulers Context plans by itself, and resolves its decisions with `commit`."""
        self.name = life.partition
        self.rm_id = life.rm_id
        self.epoch = life.epoch
        self.schedulers = {number: self._address(number) for number in range(schedulers)}
        """The addresses of its schedulers by their numbers, in the order in which they plan."""
        self._last_scheduler = schedulers - 1
        self._holder = 0
        """The number of the scheduler that has the token, and plans."""
        # A token that was on its way while another scheduler claimed it names an old round, so it
        # cannot become two (ADR 21).
        self._round = 0
        """How often the token was handed on; what is about an earlier round changes nothing."""
        self._absent: dict[int, None] = {}
        """Those that had the token and did not decide; they do not get it before they are back."""
        self.state = PartitionState(self.name, Folds(policies))
        self._policies = policies
        self.uuids = uuids
        """All partitions of the core share them."""
        self.loop: PlanningLoop | None = None
        self.planner: Planner | None = None
        self._commit, self._settings = commit, settings
        self._plan_for(life)
        self.refused: list[tuple[Proposal, Refusal]] = []
        """What was refused of the newest plan of its own planner."""
        self.explaining: dict[str, Explaining] = {}
        """By who waits for the answer."""
        self.rejections = Rejections(settings.rejected_max)
        self.failed_policies: dict[str, ReportPolicyFailed] = {}
        """By queue; that of the nodes has none."""
        self.awaited: Awaited | None = None
        """What its resource manager has to report after a restart of the core."""
        self.awaits_confirmation = False
        """A timer is armed for the releases that are not confirmed."""
        self.cleaning: dict[str, int] = {}
        """Generation of the cleaning timer of each queue that has become empty."""
        self.last_serial = 0
        self.last_sequence = 0
        self.last_timer = 0

    def _plan_for(self, life: Life) -> None:
        self._life = life
        """With which its planners were started; each scheduler has a number of its own."""
        self.hears_states = life.capabilities.hears_states
        """Whether its resource manager takes container states."""
        if not self.schedulers:
            commit = partial(self._commit, self)
            self.loop = PlanningLoop(
                self.state,
                commit,
                # Fused: the planner reads the very state that Context changes, and `record` shows
                # it each fact.
                life=life,
                address=CONTEXT,
                settings=self._settings,
                policies=self._policies,
            )
            self.planner = self.loop.planner

    @property
    def last_numbers(self) -> LastNumbers:
        return LastNumbers(self.last_serial, self.last_sequence, self.last_timer)

    def restore(self, image: dict[str, Any], last: LastNumbers) -> None:
        """Begin with what is true already; the counters go on behind all that has a number."""
        # In the same process the state itself is handed over; from a journal it is read from an
        # image.
        state = self.state
        if isinstance(image, LivingImage):
            image.give(state)
        else:
            restore(state, image)
        apps = state.applications.values()
        # Behind everything that has ever had a number, or a late firing or proposal of the former
        # core could name something new.
        self.last_serial = max([last.serial, *state.finished, *(app.serial for app in apps)])
        asks = (ask.sequence for app in apps for ask in app.asks.values())
        self.last_sequence = max([last.sequence, *asks])
        timers = (timer.generation for app in apps for timer in app.timers.values())
        self.last_timer = max([last.timer, *timers])
        # The planner has seen none of these facts: it builds its model from the state.
        if self.planner is not None:
            self.planner.adopt()

    def awaits(self, uuid: str) -> bool:
        """Whether an allocation is to be reported yet, because the core was restarted."""
        return self.awaited is not None and self.awaited.has_allocation(uuid)

    @property
    def capabilities(self) -> Capabilities:
        return self._life.capabilities

    def has_other(self, capabilities: Capabilities) -> bool:
        return self.capabilities != capabilities

    def plan_anew(self, capabilities: Capabilities) -> None:
        """Plan by these capabilities: the resource manager has come back with another callback."""
        self._plan_for(replace(self._life, capabilities=capabilities))
        if self.planner is not None:
            self.planner.adopt()

    def note_failed_policy(self, message: ReportPolicyFailed) -> bool:
        """Whether this is new, and of a policy that still decides there."""
        # Each of several planners finds the same failure by itself: one report is enough.
        known = self.failed_policies.get(message.queue)
        if known is not None and known.policy == message.policy:
            # One that is slow may fail later, and one that has failed is not asked any more.
            is_worse = known.is_slow and not message.is_slow
            if not is_worse:
                return False
        # The configuration has named another policy since the planner met this one.
        if self._policy_of(message.queue) != message.policy:
            return False
        self.failed_policies[message.queue] = message
        return True

    def forget_failed_policies(self) -> None:
        """Forget the failures of policies that decide nowhere any more."""
        self.failed_policies = {
            key: message
            for key, message in self.failed_policies.items()
            if self._policy_of(message.queue) == message.policy
        }

    def _policy_of(self, path: str) -> str:
        if path:
            queue = self.state.queues.get(path)
            return "" if queue is None else policy_name(queue)
        return "" if self.state.config is None else self.state.config.node_sort.policy

    @property
    def planning(self) -> str | None:
        """Which of its schedulers plans, and knows why asks wait; None if Context does."""
        return self.schedulers.get(self._holder)

    def lives(self) -> dict[str, Life]:
        """Return what each of its schedulers is made with, by address."""
        return {
            address: replace(
                self._life,
                number=number,
                # The place is that in the circle, by which the waiting times of schedulers differ
                # (`APART_NS`).
                place=place,
                planners=len(self.schedulers),
            )
            for place, (number, address) in enumerate(self.schedulers.items())
        }

    def token(self) -> list[Effect]:
        """Give the token to the one that is to have it; a scheduler alone needs none."""
        to = self.planning
        # A token among one would be a message for nothing at each cycle.
        if to is None or len(self.schedulers) == 1:
            return []
        passed = TokenPassed(
            partition=self.name, epoch=self.epoch, scheduler=self._holder, round=self._round
        )
        return [Send(to=to, message=passed)]

    def pass_token(self, message: TokenPassed) -> list[Effect]:
        """Give the token to the next scheduler that is at work.

        One that was absent and comes back changes nothing but that it is in the circle again.
        """
        number = message.scheduler
        # A scheduler that has failed: its successor has its place and another number.
        if number not in self.schedulers:
            return []
        # A scheduler that sends anything is at work again.
        self._absent.pop(number, None)
        withdrawn: list[Effect] = []
        if message.is_claimed:
            if number == self._holder:
                # It is on its way there.
                return []
            # It did not decide in time. It is left out until it answers the revocation.
            self._absent[self._holder] = None
            gone = TokenRevoked(partition=self.name, epoch=self.epoch)
            withdrawn.append(Send(to=self.schedulers[self._holder], message=gone))
        elif (number, message.round) != (self._holder, self._round):
            # A token of an earlier round: it was claimed meanwhile, and two would plan at once.
            return []
        # Beginning behind the one that passes: in a circle, so that nobody is preferred.
        numbers = list(self.schedulers)
        place = numbers.index(number) + 1
        following = (*numbers[place:], *numbers[:place])
        # There is one: the one that has just spoken is not absent.
        self._holder = next(it for it in following if it not in self._absent)
        self._round += 1
        return [*withdrawn, *self.token()]

    def succeed(self, failed: str) -> str:
        """Put a new scheduler in the place of one that failed; return its address.

        Its number is new, so that proposals of the former are known by theirs and dropped.
        """
        self._last_scheduler += 1
        heir = self._last_scheduler
        (former,) = (number for number, address in self.schedulers.items() if address == failed)
        self._absent.pop(former, None)
        if self._holder == former:
            self._holder = heir
        # The order is kept: dictionaries keep places, and a place is a turn.
        self.schedulers = {
            heir if address == failed else number: address
            for number, address in self.schedulers.items()
        }
        self.schedulers[heir] = self._address(heir)
        return self.schedulers[heir]

    def _address(self, number: int) -> str:
        return scheduler_address(self.name, self.epoch, number)

    def next_serial(self) -> int:
        self.last_serial += 1
        return self.last_serial

    def next_sequence(self) -> int:
        self.last_sequence += 1
        return self.last_sequence

    def take_sequences(self, count: int) -> int:
        """Take `count` numbers that follow each other; return the first."""
        first, self.last_sequence = self.last_sequence + 1, self.last_sequence + count
        return first

    def next_timer(self) -> int:
        self.last_timer += 1
        return self.last_timer
