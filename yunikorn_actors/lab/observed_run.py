"""What can be seen of a run: from outside, and inside of the core.

Outside is what resource managers and callers hear, and at rest what a core answers and what stands
beside it makes of the run: routes of a read side, records in files, reports to another core.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import msgspec

from yunikorn_actors.drivers.simulator.notice_checks import RecordChecker
from yunikorn_actors.drivers.simulator.simulator import Checker, Simulator
from yunikorn_actors.errors import NoReply
from yunikorn_actors.lab import machine_contents
from yunikorn_actors.lab.harness import LabSimulator, Oracle, World
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.altered_victim_rules import ruled
from yunikorn_actors.lab.surfaces.cluster_requests import Reported
from yunikorn_actors.lab.surfaces.cluster_walk import walk_cluster
from yunikorn_actors.lab.surfaces.command_outputs import Commands
from yunikorn_actors.lab.surfaces.core_inquiries import inquire, leave, operate
from yunikorn_actors.lab.surfaces.core_walks import walk_awaited, walk_virtual
from yunikorn_actors.lab.surfaces.drawn_arguments import computed
from yunikorn_actors.lab.surfaces.drawn_proposals import placed, verdicts
from yunikorn_actors.lab.surfaces.forecasts import Forecasts
from yunikorn_actors.lab.surfaces.front_walk import DUMP, EVENTS, HEARD, OnLoop, walk
from yunikorn_actors.lab.surfaces.guarantee_walk import walk_contest
from yunikorn_actors.lab.surfaces.journal_files import Damage, Ended
from yunikorn_actors.lab.surfaces.kept_recording import KeptRecording
from yunikorn_actors.lab.surfaces.late_messages import LateMessages
from yunikorn_actors.lab.surfaces.live_pages import pictures, simulated
from yunikorn_actors.lab.surfaces.odd_configurations import read, read_as_written
from yunikorn_actors.lab.surfaces.partition_answers import answers
from yunikorn_actors.lab.surfaces.read_sides import FedReadSides
from yunikorn_actors.lab.surfaces.recording_questions import RecordingQuestions
from yunikorn_actors.lab.surfaces.route_answers import answers as routed
from yunikorn_actors.lab.surfaces.route_answers import questions_of
from yunikorn_actors.lab.surfaces.wire_round_trip import Encoded
from yunikorn_actors.lab.surfaces.workload_logs import played
from yunikorn_actors.lab.swarm.small_constants import OF_PROGRAMS, made_small
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    RM_PROXY,
    Delivery,
    follower_address,
    is_manager,
    is_reply,
)
from yunikorn_actors.messages.codec import canonical
from yunikorn_actors.messages.scheduling import FactsAppended

WIDTH: Final = 2
"""Bytes of each digest."""
_REQUESTS_AGAIN: Final = 3
"""So many requests, the last one among them, are made once more in what would happen."""
_TIMES: Final = 4
"""So often something is read and computed, which takes no time."""
_OF_PROGRAMS: Final = 5
"""The seed of what they do."""
_OF_QUESTIONS: Final = 6
"""The seed of what is proposed, and of what is read and computed beside a world."""
_CHECKED_EACH: Final = 30
"""Proposals are made up behind every so many messages to Context, one of each kind."""
_CHECKED_AT_REST: Final = 4
_FIRST: Final = follower_address(0)
"""No follower of a core has it."""
_CONTESTS: Final = 3
"""Beside each world victims are looked for in so many small partitions."""
_OF_CONTESTS: Final = 8
"""The seed of these."""
_OF_LATE: Final = 9
"""The seed of what machines are sent again."""
WHOLE: Final = 400
"""In worlds with higher numbers nothing dear is looked at: what stands beside a core is at work in
the first ones, and of the core itself as much is seen of the others for half of the time."""
TURNS: Final = 4
"""What is dear is looked at in turn: each in every so many worlds."""
_NOTHING: Final = -1
_ROUTES, _FORESIGHT, _FILES, _WIRE = range(TURNS)
_FRONT: Final = (_FILES, _WIRE)
"""Beside the world a program is at the front door then."""
_WALKS: Final = {_ROUTES: walk_virtual, _FORESIGHT: walk_awaited}
"""And beside others one makes the calls of a core itself."""
_PACKAGES: Final = {_ROUTES: "aiohttp", _FORESIGHT: "grpc", _FILES: "aiohttp", _WIRE: "grpc"}
"""Beside each second one a core is in service; what that needs not everybody has."""


_CLUSTER: Final = TURNS + _ROUTES
"""The rest of the numbers of worlds beside which a cluster is."""


def can_be_seen(number: int) -> bool:
    """Whether all that is looked at in this world can be looked at here."""
    return not _is_in_service(number) or find_spec(_PACKAGES[number % TURNS]) is not None


def _is_in_service(number: int) -> bool:
    return number <= WHOLE and number % (2 * TURNS) < TURNS


class Observation(NamedTuple):
    """One thing that can be seen."""

    what: str
    value: Any

    def digest(self) -> bytes:
        text = self.what.encode() + b"\0" + canonical(self.value)
        return hashlib.blake2b(text, digest_size=WIDTH).digest()

    def __str__(self) -> str:
        return f"{self.what}: {msgspec.json.encode(self.value).decode()}"


class Watched(Oracle):
    """Notes all that can be seen of a run; its number says what of the dearer things."""

    def __init__(self, number: int, settings: Settings, *, begins_again: bool) -> None:
        """`begins_again`: cores of the run end, and the next one goes on with their journal."""
        self.sights: list[Observation] = []
        """From outside."""
        self.inside: list[Observation] = []
        self._turn = number % TURNS if number <= WHOLE else _NOTHING
        self._number, self._settings = number, settings
        self._encoded, self._reported, self._ended = Encoded(), Reported(), Ended()
        # The next core has another recording.
        self._is_recorded = self._turn == _WIRE and not begins_again
        self._keeps_files = begins_again or self._turn == _FILES
        self.checkers: Final[tuple[Checker, ...]] = (
            *((RecordChecker(),) if begins_again else ()),
            *((self._ended,) if self._keeps_files else ()),
            self,
        )
        """What the run needs to be seen."""
        self._recording: KeptRecording | None = None
        self._fed = FedReadSides()
        self._course = machine_contents.Course()
        self._requests: list[Any] = []
        self._draw = Draw(_OF_QUESTIONS, number)
        self._late = LateMessages(Draw(_OF_LATE, number))
        self._handled = 0
        """Messages that Context has handled."""

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        mailbox, message = delivery.mailbox, delivery.message
        if self._is_recorded:
            self._record(simulator, delivery)
        if self._turn == _WIRE:
            self._encoded.delivered(simulator, delivery)
            self._reported.delivered(simulator, delivery)
        self._course.delivered(simulator, delivery)
        self._late.note(mailbox, message)
        if delivery is not simulator.last:
            return
        if is_manager(mailbox) or is_reply(mailbox):
            self.sights.append(Observation(f"{type(message).__name__} to {mailbox}", message))
        elif mailbox == RM_PROXY and hasattr(message, "request"):
            self._requests.append(message.request)
        elif mailbox == EVENT_PUBLISHER and isinstance(message, FactsAppended):
            if self._turn == _ROUTES:
                self._note([("facts in words", [it.in_words() for it in message.facts])])
        elif mailbox == CONTEXT:
            self._feed(simulator)
            self._late.pass_by(simulator.machines, simulator.now_ns)
            self._handled += 1
            if self._handled % _CHECKED_EACH == 0:
                self._note(self._checked(simulator, of_each=1))

    def _record(self, simulator: Simulator, delivery: Delivery) -> None:
        assert isinstance(simulator, LabSimulator)
        if self._recording is None:
            self._recording = KeptRecording(simulator, Draw(_OF_QUESTIONS, self._number))
        self._recording.add(delivery)

    def _feed(self, simulator: Simulator) -> None:
        assert isinstance(simulator, LabSimulator)
        if self._turn == _NOTHING:
            return
        fed = self._fed
        if fed.context is simulator.machines[CONTEXT]:
            fed.tell(simulator.effects, simulator.now_ns)
        elif fed.begin(simulator):
            fed.follow(simulator, _FIRST)

    def _checked(self, simulator: Simulator, of_each: int) -> Iterator[tuple[str, Any]]:
        """What Context says of this moment to what nobody proposes."""
        context, draw = simulator.machines[CONTEXT], self._draw
        assert isinstance(context, Context)
        for name, it in context.partitions.items():
            if it.state.applications:
                checks = verdicts(it.state, self._settings, simulator.now_ns, draw, of_each)
                yield f"what would be refused in {name}", list(checks)

    def at_rest(self, world: World) -> None:
        self._look_inside("at rest", world.simulator)
        self._late.copy(world.simulator.machines, world.simulator.now_ns)
        self._note([("what calls were refused for", world.refused)])
        self._note([("lines of the log", list(world.simulator.lines))])
        self._note(self._checked(world.simulator, of_each=_CHECKED_AT_REST))
        for name, it in world.context.partitions.items():
            placements = list(placed(it.state, self._draw))
            self._note([(f"where applications would go in {name}", placements)])
            said = list(ruled(it.state, world.simulator.now_ns, self._draw))
            self._note([(f"what the rules say of other queues in {name}", said)])
        self._note(
            [
                read(self._draw),
                read_as_written(self._draw),
                ("what is computed", list(computed(self._draw))),
            ]
        )
        self._note(self._beside(world))
        self._note(_contests(self._number))
        self._note(inquire(world))
        if self._turn == _FORESIGHT:
            self._note(played(self._draw))
            made = [self._draw.one_of(self._requests) for _ in self._requests[1:_REQUESTS_AGAIN]]
            foresight = Forecasts(world, self._draw, [*made, *self._requests[-1:]])
            self._note(foresight.of_itself())
            is_followed = self._number % (2 * TURNS) >= TURNS
            self._note(foresight.as_followed() if is_followed else foresight.from_dump())
        self._note(operate(world))

    def _beside(self, world: World) -> Iterator[tuple[str, Any]]:
        core = world.simulator
        for name, partition in world.context.partitions.items():
            state = partition.state
            for part, answer in answers(state, core.now_ns).items():
                yield f"what is answered of {name}, {part}", answer
        side = self._fed.sides.get(_FIRST)
        if side is not None and self._turn == _ROUTES:
            side.catch_up(core.now_ns)
            yield from routed(side, core)
            yield from pictures(side, questions_of(core), self._draw)
            yield from simulated(side, self._draw)
            yield from Commands(side, questions_of(core), self._draw).said(core.state_dump())
        if self._keeps_files:
            damage = Damage(Draw(_OF_QUESTIONS, self._number))
            yield "what the next core reads", self._ended.truth(Draw(self._number), damage)
            yield "what is said of damaged files", damage.outcomes
        if self._turn == _WIRE:
            yield "requests and answers as JSON", self._encoded.lines
            yield "their parts, and what of answers is news", self._reported.made
            yield "what would be reported to another core", self._reported.recoveries()
        publisher = core.machines.get(EVENT_PUBLISHER)
        if isinstance(publisher, EventPublisher):
            ring = publisher.ring
            records = tuple(ring.read(ring.lowest_id, ring.capacity))
            yield "the event records", records

    def _look_inside(self, when: str, simulator: Simulator) -> None:
        seen = (*self._course.taken(), *machine_contents.kept(simulator))
        self.inside.extend(Observation(f"{when}, {what}", value) for what, value in seen)

    def drained(self, world: World) -> None:
        self._look_inside("in the end", world.simulator)
        self._note([("how much was counted in the end", world.simulator.questions.counts())])
        self._note(leave(world))
        self._look_inside("when all have left", world.simulator)
        self.inside.extend(Observation(*it) for it in self._late.answers())
        if self._recording is not None:
            self._recording.end(world.simulator)
            policies = world.simulator.topology.policies.given
            self._note(RecordingQuestions(self._recording, self._draw, policies).answers())

    def at_the_front_door(self) -> None:
        """Have a program do something, in another core beside this world."""
        if self._turn in _FRONT:
            self._walk("at the front door", self._front)
        elif self._turn in _WALKS:
            self._walk("at a core", _WALKS[self._turn])
        if self._turn != _NOTHING and self._number % (2 * TURNS) == _CLUSTER:
            self._walk("at a cluster", _wrong_at_a_cluster)
        if self._turn != _NOTHING and _is_in_service(self._number):
            self._walk(f"at a service ({_PACKAGES[self._turn]})", _AT_SERVICES[self._turn])

    def _walk(self, where: str, steps: Callable[[Draw], Iterator[tuple[str, Any]]]) -> None:
        """Note what is seen; where that does not come to rest, twice, this is what is seen."""
        try:
            try:
                seen = [*steps(Draw(_OF_PROGRAMS, self._number))]
            except NoReply:
                # The computer may have been that busy.
                seen = [*steps(Draw(_OF_PROGRAMS, self._number))]
        except NoReply as error:
            seen = [("it does not come to rest, twice", str(error))]
        self._note((f"{where}, {what}", value) for what, value in seen)

    def _front(self, draw: Draw) -> Iterator[tuple[str, Any]]:
        """On a loop, on threads, or on threads with small bounds of the program."""
        if self._number % (2 * TURNS) >= TURNS:
            yield from _on_a_loop(draw)
            return
        bounds = OF_PROGRAMS if self._number % (4 * TURNS) >= 2 * TURNS else {}
        with made_small(Draw(_OF_PROGRAMS, self._number), bounds):
            yield from walk(draw, with_functions=True)

    def _note(self, seen: Iterable[tuple[str, Any]]) -> None:
        self.sights.extend(Observation(what, value) for what, value in seen)


def _on_a_loop(draw: Draw) -> Iterator[tuple[str, Any]]:
    """What shows in how many requests something was sent is left out: that is as it comes."""
    for what, value in walk(draw, OnLoop, with_functions=True):
        if what not in {DUMP, HEARD}:
            yield what, sorted(value) if what == EVENTS else value


def _contests(number: int) -> Iterator[tuple[str, Any]]:
    for contest in range(_CONTESTS):
        for what, value, faults in walk_contest(Draw(_OF_CONTESTS, number * _CONTESTS + contest)):
            yield f"in a small partition, {what}", [value, faults]


def _at_http(draw: Draw) -> Iterator[tuple[str, Any]]:
    from yunikorn_actors.lab.surfaces.http_walk import walk_http  # noqa: PLC0415 - as above

    return ((what, [value, faults]) for what, value, faults in walk_http(draw))


def _at_grpc(draw: Draw) -> Iterator[tuple[str, Any]]:
    # What is simulated is simulated in a copy of this process, which never calls by gRPC.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    from yunikorn_actors.lab.surfaces.rpc_walk import walk_rpc  # noqa: PLC0415 - as above

    return ((what, [value, faults]) for what, value, faults in walk_rpc(draw))


_AT_SERVICES: Final = {
    turn: {"aiohttp": _at_http, "grpc": _at_grpc}[package] for turn, package in _PACKAGES.items()
}


def _wrong_at_a_cluster(draw: Draw) -> Iterator[tuple[str, Any]]:
    """What is seen there has times of its own; it has to be what is seen at one core."""
    yield "what is wrong", [fault for _, _, faults in walk_cluster(draw) for fault in faults]
