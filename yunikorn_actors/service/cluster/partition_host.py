"""The host of a partition: its core on the cluster, for portals that come and go.

All of it is on one event loop, so that many may wait here at a time. A portal has a channel for
each of its resource managers, and one for each of its read sides. A channel belongs to one life of
this host: after a restart there are none, and `ChannelGone` makes a portal begin anew.
"""

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from yunikorn_actors import si
from yunikorn_actors.core.registered_managers import StandIn
from yunikorn_actors.errors import CoreError, CoreFailed, UnknownResourceManager
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.codec import encode
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.planning.reasons import WaitingSum, Why
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.service.cluster.channel import Channel, Entry
from yunikorn_actors.service.cluster.split import Request
from yunikorn_actors.service.core_queries import CoreQuestions
from yunikorn_actors.service.listener import Standing

POLL_S: Final = 5.0
"""How long a portal waits here for news at a time."""
SILENT_S: Final = 30.0
"""A portal that has not asked for this time is gone."""
BEGINNING: Final = "the service in front of it"
"""Who brings a configuration to a core that has begun."""
HANDLED: Final = "handled"
"""Kind of an entry: all requests up to this number were handled, and answered before."""


class ChannelGone(CoreError, LookupError):
    """The core was started again since, or has not heard of its portal for too long."""


class Question(NamedTuple):
    """The value of an entry that is to be answered."""

    number: int
    argument: Any


class Answer(NamedTuple):
    """What a callback has answered, or why it has not."""

    value: Any = None
    failure: str = ""


class Manager(StandIn):
    """The callback of a resource manager that is far away."""

    def __init__(self, channel: Channel, answered: frozenset[str], answer_s: float) -> None:
        self._channel = channel
        self._answered = answered
        self._answer_s = answer_s
        self._numbers = count(1)
        self._asked: dict[int, Future[Answer]] = {}

    def answers(self, method: str) -> bool:
        return method in self._answered

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._channel.put("update_allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._channel.put("update_application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        self._channel.put("update_node", response)

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self._channel.put("update_container_scheduling_state", request)

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        self._channel.put("send_event", events)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        answer = self._ask("predicates", args)
        return answer.failure or answer.value

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        found: si.PreemptionPredicatesResponse | None = self._ask(
            "preemption_predicates", args
        ).value
        return found

    def get_state_dump(self) -> str:
        answer = self._ask("get_state_dump", None)
        if answer.failure:
            raise RuntimeError(answer.failure)
        return str(answer.value)

    def _ask(self, kind: str, question: object) -> Answer:
        number, waiting = next(self._numbers), Future[Answer]()
        # Before it is put: the answer may come before this returns.
        self._asked[number] = waiting
        self._channel.put(kind, Question(number, question))
        # Bounded: a portal that is gone must not hold a thread of the core.
        try:
            return waiting.result(self._answer_s)
        except TimeoutError:
            return Answer(failure=f"no answer within {self._answer_s:g} s")
        finally:
            # Taken out in any case, or a late answer would find a question that is over.
            del self._asked[number]

    def answered(self, number: int, answer: Answer) -> None:
        """An answer that nobody waits for any more changes nothing."""
        waiting = self._asked.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)


class Seat:
    """A resource manager of a portal."""

    def __init__(self, rm_id: str, channel: Channel, manager: Manager) -> None:
        self.rm_id: Final = rm_id
        self.channel: Final = channel
        self.manager: Final = manager
        self.turn: Final = asyncio.Lock()
        self.taken = 0
        """Requests."""


class Follower:
    """Takes down what becomes true, for the read side of a portal."""

    def __init__(self, channel: Channel) -> None:
        self.channel: Final = channel
        self.address = ""

    def receive(self, message: Message) -> None:
        self.channel.put(type(message).__name__, encode(message))


class Host:
    """The methods are what a portal calls; arguments and answers travel as copies."""

    def __init__(
        self,
        partition: str,
        journal: str | None = None,
        topology: TopologyName = "proposing",
        on_failure: Callable[[CoreFailed], object] | None = None,
        make: Callable[..., SchedulerCore] = SchedulerCore,
    ) -> None:
        """`make` makes the core, with the arguments of one."""
        self._core = make(
            journal=None if journal is None else Path(journal) / partition,
            topology=topology,
            on_failure=on_failure,
        )
        self._core.managers.on_handled = self._tell_handled
        self._core.measure()
        self._questions = CoreQuestions(self._core, Standing())
        self._life = os.urandom(8).hex()
        self._numbers = count(1)
        self._seats: dict[str, Seat] = {}
        """By the name of the channel, as the next ones."""
        self._followers: dict[str, Follower] = {}
        self._given_up: set[str] = set()
        """Channels of portals that were silent for too long."""
        self._by_manager: dict[str, str] = {}
        self._configuring = asyncio.Lock()
        self._is_configured = False
        self._watching: asyncio.Task[None] | None = None
        self._core.start()

    # -- resource managers

    async def begin_with(self, config: str) -> None:
        """Take the configuration of the administrator, unless one was taken since the beginning."""
        # Only once: a portal that starts again brings what the host has already.
        async with self._configuring:
            if not self._is_configured:
                await self._configure(config, BEGINNING)

    async def configure(self, config: str, by: str) -> None:
        """Take the configuration of the administrator."""
        async with self._configuring:
            await self._configure(config, by)

    async def _configure(self, config: str, by: str) -> None:
        await asyncio.to_thread(self._core.administer, config, by)
        self._is_configured = True

    async def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Take the configuration of a resource manager."""
        await asyncio.to_thread(self._core.update_configuration, request)

    async def register(
        self, request: si.RegisterResourceManagerRequest, answered: frozenset[str]
    ) -> str:
        """Register a manager whose callback answers these questions; return its channel."""
        self._watch()
        rm_id = request.rm_id
        former = self._seats.get(self._by_manager.get(rm_id, ""))
        # A thread that waits for room there would hold up the new registration.
        if former is not None:
            former.channel.lift()
        channel = Channel(asyncio.get_running_loop())
        answer_s = self._core.topology.settings.predicate_timeout_ns / 1e9
        seat = Seat(rm_id, channel, Manager(channel, answered, answer_s))
        register = self._core.register_resource_manager
        # On a thread: the core may wait for a directory of users.
        await asyncio.to_thread(register, request, seat.manager)
        self._leave(rm_id)
        name = self._name()
        self._seats[name], self._by_manager[rm_id] = seat, name
        return name

    async def deliver(self, name: str, first: int, requests: tuple[Request, ...]) -> None:
        """Take requests in order, numbered from `first`; those that it has already are left out."""
        seat = self._seat(name)
        # One after the other: two deliveries at a time could take the same request twice.
        async with seat.turn:
            for number, request in enumerate(requests, first):
                if number > seat.taken:
                    await self._take(seat, request)
                    # After it was taken, so that a delivery in the middle goes on there.
                    seat.taken = number
            # The core says up to which number it has handled.
            self._core.managers.mark_taken(seat.rm_id)

    async def _take(self, seat: Seat, request: Request) -> None:
        while not self._core.has_room(seat.rm_id):
            await self._room(seat.rm_id)
        match request:
            case si.AllocationRequest():
                self._core.update_allocation(request)
            case si.NodeRequest():
                self._core.update_node(request)
            case si.ApplicationRequest():
                # It may have to ask a directory of users.
                await asyncio.to_thread(self._core.update_application, request)

    async def _room(self, rm_id: str) -> None:
        loop, room = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            loop.call_soon_threadsafe(room.set)

        self._core.when_room(rm_id, tell)
        await room.wait()

    async def answer(self, name: str, number: int, answer: Answer) -> None:
        """Take what a callback has answered to a question."""
        self._seat(name).manager.answered(number, answer)

    async def lose(self, name: str) -> None:
        """The manager is lost to its portal; one that has registered elsewhere is not."""
        seat = self._seats.get(name)
        if seat is not None:
            self._leave(seat.rm_id)
            with suppress(CoreError):
                self._core.resource_manager_lost(seat.rm_id)

    async def unregister(self, rm_id: str) -> None:
        self._leave(rm_id)
        self._core.unregister_resource_manager(rm_id)

    def _leave(self, rm_id: str) -> None:
        seat = self._seats.pop(self._by_manager.pop(rm_id, ""), None)
        if seat is not None:
            seat.channel.close()

    def _seat(self, name: str) -> Seat:
        seat = self._seats.get(name)
        if seat is None:
            raise self._why_gone(name)
        return seat

    def _why_gone(self, name: str) -> CoreError:
        if name.startswith(self._life) and name not in self._given_up:
            return UnknownResourceManager("it has left, or has registered with another portal")
        return ChannelGone("the core of this partition was started again")

    def _tell_handled(self, rm_id: str, number: int) -> None:
        """Called on a thread of the core."""
        seat = self._seats.get(self._by_manager.get(rm_id, ""))
        if seat is not None:
            seat.channel.put(HANDLED, number, waits=False)

    # -- what portals hear

    async def entries(self, name: str, acknowledged: int) -> tuple[Entry, ...]:
        """Wait a while for entries after this number."""
        channel = (
            self._followers[name].channel if name in self._followers else self._seat(name).channel
        )
        return tuple(await channel.take(acknowledged, POLL_S))

    async def follow(self) -> str:
        """Return a channel at which everything comes that becomes true, and first how it stands."""
        self._watch()
        follower = Follower(Channel(asyncio.get_running_loop()))
        # On a thread, as the core waits until the follower has the beginning.
        follower.address = await asyncio.to_thread(self._core.followers.follow, follower)
        name = self._name()
        self._followers[name] = follower
        return name

    async def last_entry(self, name: str) -> int:
        """Return the number of the entry up to which this channel has all that is true now."""
        # Only then the number says how far everything is.
        await asyncio.to_thread(self._core.followers.catch_up)
        follower = self._followers.get(name)
        if follower is None:
            raise self._why_gone(name)
        return follower.channel.last

    async def unfollow(self, name: str) -> None:
        follower = self._followers.pop(name, None)
        if follower is not None:
            follower.channel.close()
            self._core.followers.unfollow(follower.address)

    def _name(self) -> str:
        return f"{self._life}/{next(self._numbers)}"

    # -- questions

    async def ask(self, question: str, *arguments: str) -> Any:  # noqa: ANN401 - plain values
        return await asyncio.to_thread(self._questions.ask, question, *arguments)

    async def explain(self, application_id: str, key: str, partition: str) -> Why:
        explain = partial(self._core.explain, application_id, key, partition=partition)
        return await asyncio.to_thread(explain)

    async def waiting(self, partition: str) -> tuple[WaitingSum, ...]:
        return await asyncio.to_thread(partial(self._core.waiting, partition=partition))

    async def expected(self, application_id: str, partition: str) -> tuple[Expected, ...]:
        expected = partial(self._core.expected, application_id, partition=partition)
        return await asyncio.to_thread(expected)

    async def state_dump(self) -> dict[str, Any]:
        return await asyncio.to_thread(self._core.state_dump)

    async def process(self) -> int:
        """Name the process that this runs in."""
        return os.getpid()

    # -- portals that are gone

    def _watch(self) -> None:
        if self._watching is None:
            self._watching = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            long_ago = time.monotonic() - SILENT_S
            for name in [it for it, seat in self._seats.items() if seat.channel.asked_s < long_ago]:
                self._given_up.add(name)
                await self.lose(name)
            silent = [it for it, to in self._followers.items() if to.channel.asked_s < long_ago]
            for name in silent:
                self._given_up.add(name)
                await self.unfollow(name)

    def close(self) -> None:
        """Stop the core, where the host is in the same process."""
        self._core.stop()
