"""Ask a service what a drawn world does next, then do it there: both have to be the same.

    python -m tests.simulated --runs 100 --seed 1 --begin grpc|rest

The world's resource managers are clients, who send over gRPC what they want. Then the service is
asked by gRPC, or by REST, what the next steps lead to, and gets these very steps. Its clock stands,
and moves from timer to timer. UUIDs and the order of what happens at one moment are left out, as
messages take their turns on threads.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.core.registered_managers import StandIn, overrides
from yunikorn_actors.drivers.live.clock import StandingClock
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.errors import Refused
from yunikorn_actors.lab.case import Case, parse_case
from yunikorn_actors.lab.scenario_documents import document_of, steps_alone, written
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.world_parts import Wanted
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import Machine
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.messages.base import CONTEXT, RM_PROXY
from yunikorn_actors.scenario import step_structs as w
from yunikorn_actors.scenario.performer import Stage
from yunikorn_actors.scenario.recorded_core import RecordedCore
from yunikorn_actors.service import service
from yunikorn_actors.service.listener import Part
from yunikorn_actors.service.remote import RemoteCore
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.service.rest.in_process import RestPart
from yunikorn_actors.service.rpc.grpc_server import RpcPart
from yunikorn_actors.service.service import Serving
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.tags import TAG_RUNTIME

DOORS: Final = ("grpc", "rest")
ANY: Final = "127.0.0.1:0"
REST_S: Final = 20.0
NO_CHANGES: Final = (
    w.Register | w.LoseRm | w.Unregister | w.Raw | w.Predicate | w.Confirm | w.ConfirmAll
)  # fmt: skip
"""Steps that no question can name."""
_CALLED: Final = ("update_allocation", "update_application", "update_node")
_CONFIRMED: Final = ("TIMEOUT", "PREEMPTED_BY_SCHEDULER", "PLACEHOLDER_REPLACED")
_AT: Final = 3
"""Where the time stands in a row."""
BEGUN: Final[Counter[str]] = Counter()
"""Worlds that differ, and could: by what begins anew, as the answer says."""
SEEN: Final[Counter[str]] = Counter()
"""How much happened, of what was compared."""
TURNS: Final[list[str]] = []
"""Worlds that differ by the turns that threads take."""
Row = tuple[Any, ...]
Happened = dict[str, list[Row]]
"""What was placed and ended, with its times, and what was refused."""
Told = Callable[[str, Any], None]


class CountingCore(RecordedCore):
    """Counts what came in from clients, and what went out to their callbacks."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.received = self.notices = 0
        self._counting = threading.Lock()

    def notified(self, address: str, response: object) -> None:
        with self._counting:
            self.notices += not isinstance(response, si.UpdateContainerSchedulingStateRequest)
        super().notified(address, response)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        super().update_allocation(request)
        self._count()

    def update_application(self, request: si.ApplicationRequest) -> None:
        super().update_application(request)
        self._count()

    def update_node(self, request: si.NodeRequest) -> None:
        super().update_node(request)
        self._count()

    def _count(self) -> None:
        with self._counting:
            self.received += 1


class Heard(StandIn):
    """Notes what the core says to a resource manager, and hands it on."""

    def __init__(self, callback: si.ResourceManagerCallback, client: "CountingClient") -> None:
        self._callback, self._client = callback, client

    def answers(self, method: str) -> bool:
        return overrides(self._callback, method)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._client.note(response)
        with self._client.together():
            self._callback.update_allocation(response)
        self._client.heard += 1

    def update_application(self, response: si.ApplicationResponse) -> None:
        for it in response.rejected:
            self._client.refused.append(("application", it.application_id, it.reason))
        self._callback.update_application(response)
        self._client.heard += 1

    def update_node(self, response: si.NodeResponse) -> None:
        for it in response.rejected:
            self._client.refused.append(("node", it.node_id, it.reason))
        self._callback.update_node(response)
        self._client.heard += 1

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return self._callback.predicates(args)

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        return self._callback.preemption_predicates(args)


class CountingClient:
    """The core of another process as a stage has it; counts what is sent and heard."""

    def __init__(self, remote: RemoteCore, now_ns: Callable[[], int]) -> None:
        self._remote, self._now_ns = remote, now_ns
        self.sent = self.heard = 0
        self._sending = threading.Lock()
        self._collected: list[si.AllocationRequest] | None = None
        self._collects = 0
        self.placed: list[tuple[int, str, si.Allocation]] = []
        self.ended: list[tuple[int, Any]] = []
        self.refused: list[Row] = []

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._remote, name)
        if name not in _CALLED:
            return call

        def counted(request: Any) -> None:
            if self._collected is not None and threading.get_ident() == self._collects:
                self._collected.append(request)
                return
            with self._sending:
                call(request)
                self.sent += 1

        return counted

    @contextmanager
    def together(self) -> Iterator[None]:
        """Confirm in one request what one notice asks back: nothing is decided in between."""
        self._collected, self._collects = [], threading.get_ident()
        yield
        confirmed, self._collected = self._collected, None
        if confirmed:
            ended = [it for one in confirmed for it in one.releases.allocations_to_release]
            releases = si.AllocationReleasesRequest(allocations_to_release=tuple(ended))
            self.update_allocation(replace(confirmed[0], releases=releases))

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: si.ResourceManagerCallback
    ) -> Any:
        return self._remote.register_resource_manager(request, Heard(callback, self))

    def note(self, response: si.AllocationResponse) -> None:
        now_ns = self._now_ns()
        for it in (*response.rejected, *response.rejected_allocations):
            self.refused.append(("ask", f"{it.application_id}/{it.allocation_key}", it.reason))
        self.ended += [(now_ns, it) for it in (*response.released_asks, *response.released)]
        self.placed += [(now_ns, it.uuid, it) for it in response.new]


class ServedWorld:
    """A service with the clients of a world; a stage acts on it."""

    def __init__(self, case: Case, core: CountingCore, clock: StandingClock, grpc: str) -> None:
        self.service, self._clock = core, clock
        self.remote = RemoteCore(grpc).start()
        self.core: Any = CountingClient(self.remote, clock.now_ns)
        self._stage = Stage(case.scenario, self, None)

    def act(self, step: w.WrittenStep) -> None:
        self._stage.act(step)
        if isinstance(step.step, w.LoseRm | w.Unregister):
            # The end of a conversation is no call, which could be counted.
            time.sleep(0.05)
        self.settle()

    def settle(self) -> None:
        """Wait until all that was sent has been handled, and the clients know of it."""
        deadline = time.monotonic() + REST_S
        while not (self._is_at_rest() and self._is_at_rest()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.core.sent} sent, {self.service.received} received")
            time.sleep(0.0005)

    def _is_at_rest(self) -> bool:
        client, core = self.core, self.service
        return bool(
            core.received >= client.sent
            and client.heard >= core.notices
            and core.is_settled()
            and core.received >= client.sent
        )

    @property
    def now_ns(self) -> int:
        return self._clock.now_ns()

    def advance(self, duration_ns: int) -> None:
        end_ns = self.now_ns + duration_ns
        while (due_ns := self.service.next_due_ns) is not None and due_ns <= end_ns:
            self._move_to(due_ns)
            self.settle()
        self._move_to(end_ns)
        self.settle()

    def _move_to(self, now_ns: int) -> None:
        self._clock.move_to(now_ns)
        self.service.clock_was_moved()


def served_differences(seed: int, number: int, topology: str, door: str) -> list[str] | None:
    """Return in what the service differs from what it says; None where there is no such world."""
    case, steps = _drawn_case(seed, number, topology)
    draw = Draw(seed, number)
    cut = draw.whole(1, max(1, len(case.steps) - 1))
    with _serving(case) as (world, ask):
        for one in case.steps[:cut]:
            world.act(one.written)
        if not world.service.state_dump()["partitions"]:
            return None
        changes = []
        for one in case.steps[cut:]:
            if isinstance(one.step, NO_CHANGES):
                break
            changes.append((one.written, steps[one.label]))
        remembered = list(remembers(world.service._actors.machines()))
        answer, changes = _simulated(world, changes, partial(ask, door))
        simulated, done = _happened(answer["course"]), _done(world, changes)
    # The answer says that a manager which is behind takes its messages at once.
    remembered += [it for it in answer["assumptions"] if "takes its messages again" in it]
    SEEN.update({what: len(rows) for what, rows in done.items()})
    found = {what: _both_ways(simulated[what], done[what]) for what in simulated}
    if _is_of_turns(found, done["ended"]):
        TURNS.append(f"{seed}/{number}")
        return []
    if remembered and any(rows for both in found.values() for rows in both):
        BEGUN[f"{', '.join(remembered)} ({seed}/{number})"] += 1
        return []
    return [
        f"{what}: only simulated {only}, only done {other}"
        for what, (only, other) in found.items()
        if only or other
    ]


def _is_of_turns(found: dict[str, tuple[list[Row], list[Row]]], ended: list[Row]) -> bool:
    """Whether it differs from a moment on at which several notices asked something back.

    The client confirms each by itself, and the core may decide between two confirmations. What is
    placed then may be the same, and the order of nodes that are alike another one.
    """
    differing = [row for what in ("placed", "ended") for rows in found[what] for row in rows]
    first_s = min((row[_AT] for row in differing), default=-1.0)
    asked_back = Counter(row[_AT] for row in ended if row[2] in _CONFIRMED)
    return any(at_s <= first_s and count > 1 for at_s, count in asked_back.items())


def remembers(machines: Mapping[str, Machine]) -> Iterator[str]:
    """Yield what a core knows that is in no state, of what its answer says that it begins anew."""
    context = machines[CONTEXT]
    assert isinstance(context, Context)
    partitions = context.partitions.values()
    loops = (it.loop for it in machines.values() if isinstance(it, Scheduler))
    own = (it.loop for it in partitions)
    models = [it.planner.model for it in (*loops, *own) if it is not None]
    apps = [app for model in models for app in model.apps.values()]
    if any(ask.tried is not None for app in apps for ask in app.asks.values()):
        yield "a pause between searches for victims"
    if any(len(model.reserved_nodes) > 1 for model in models):
        yield "which of the nodes that are kept had room first"
    if any(it.cleaning for it in partitions):
        yield "an empty queue"
    if machines[RM_PROXY].canonical_state().get("at_context"):
        yield "a turn"


def _both_ways(one: list[Row], other: list[Row]) -> tuple[list[Row], list[Row]]:
    here, there = Counter(one), Counter(other)
    return [*(here - there).elements()], [*(there - here).elements()]


def _drawn_case(seed: int, number: int, topology: str) -> tuple[Case, dict[str, dict[str, Any]]]:
    """Draw a world whose managers confirm at once; return it with each step as it is written."""
    text = drawn(seed, number, Wanted(without=("predicates", "back-off"))).case.text
    # Clients do not end their work, so it does not say how long it runs.
    document = document_of(text.replace(TAG_RUNTIME, "drawn/runtime"))
    document["rm"] = {"confirm": "auto"}
    for label, step in steps_alone(document):
        for word, about in step.items():
            if word == "bind":
                # Without one, a stage adds that of what runs under this key, if something does.
                about.setdefault("uuid", f"bound-{label}")
            if word == "add_app" and isinstance(about, dict):
                # Groups that are left out are remembered from others, and that is no state.
                about.setdefault("groups", [about.get("user", w.AddApp(id="").user)])
    case = parse_case(written(document), f"served-{seed}-{number}.yaml")
    # Which nodes a manager refused is remembered beside the state.
    kept = tuple(it for it in case.steps if not isinstance(it.step, w.Predicate))
    case = replace(case.on(topology), steps=kept)  # type: ignore[arg-type]
    return case, dict(steps_alone(document))


@contextmanager
def _serving(case: Case) -> Iterator[tuple[ServedWorld, Callable[[str, str], dict[str, Any]]]]:
    clock = StandingClock(EPOCH_NS)
    # Clients answer on threads, and some worlds draw a millisecond for that: a refusal for want of
    # time comes from this computer.
    settings = replace(case.scenario.settings, predicate_timeout_ns=round(REST_S * 1e9))
    core = CountingCore(
        driver="threads", topology=case.topology, settings=settings,
        schedulers=case.schedulers, policies=case.scenario.policies.given, clock=clock,
    )  # fmt: skip
    makers: dict[str, type[Part]] = {"REST": RestPart, "gRPC": RpcPart}
    with ExitStack() as stack:
        with patch.object(service, "maker_of", lambda kind: makers[kind.title]):
            serving = Serving(core, {"rest": ANY, "grpc": ANY})
        stack.enter_context(serving)
        world = ServedWorld(case, core, clock, serving.parts["grpc"].address)
        stack.callback(world.remote.stop)
        client = Client(serving.parts["rest"].address)

        def ask(door: str, body: str) -> dict[str, Any]:
            if door == "rest":
                found: dict[str, Any] = client.post("ws", "v1", "x", "simulate", body=body.encode())
                return found
            question = json.loads(body)
            return world.remote.simulate_steps(
                *question["steps"], until=question["until"], compare=False
            )

        yield world, ask


Written = tuple[w.WrittenStep, dict[str, Any]]


def _simulated(
    world: ServedWorld, changes: list[Written], ask: Callable[[str], dict[str, Any]]
) -> tuple[dict[str, Any], list[Written]]:
    """Ask what they lead to, a while between two; leave out those that no question may have."""
    changes = list(changes)
    while True:
        if all(isinstance(it.step, w.Advance) for it, _ in changes):
            changes = []
        steps, origins = _steps_of(changes)
        until_s = sum(map(_passes_ms, changes)) / 1000
        text = [written({"steps": steps})] if changes else []
        try:
            found = ask(json.dumps({"steps": text, "until": until_s, "compare": False}))
        except Refused as refused:
            place = re.search(r"steps 1:\d+: step (\d+)", str(refused))
            if place is None:
                raise
            del changes[origins[int(place[1]) - 1]]
            continue
        parts = world.service.state_dump()["partitions"]
        if found["answer"]["revisions"] == {name: it["revision"] for name, it in parts.items()}:
            return found["answer"], changes


def _passes_ms(one: Written) -> int:
    """Say how much time passes with it: no timer is due just when something is changed."""
    step = one[0].step
    return round(step.duration_ns / 1e6) if isinstance(step, w.Advance) else 1_037


def _steps_of(changes: list[Written]) -> tuple[list[dict[str, Any]], list[int]]:
    """Return them as they are written, with time between them, and where each comes from."""
    steps: list[dict[str, Any]] = []
    origins: list[int] = []
    for number, one in enumerate(changes):
        own = [] if isinstance(one[0].step, w.Advance) else [one[1]]
        steps += [*own, {"advance": f"{_passes_ms(one)}ms"}]
        origins += [number] * (len(own) + 1)
    return steps, origins


def _happened(course: dict[str, Any]) -> Happened:
    placed = ("application", "key", "node", "at_s", "is_placeholder")
    ended = ("application", "key", "why", "at_s")
    return {
        "placed": [tuple(it[name] for name in placed) for it in course["placed"]],
        "ended": [
            tuple(it[name] for name in ended)
            for it in course["ended"]
            # What waits and goes with its application, or by a request, is told to no client.
            if it["node"] or it["why"] == "TIMEOUT"
        ],
        "refused": [(it["what"], it["name"], it["reason"]) for it in course["refused"]],
    }


def _done(world: ServedWorld, changes: list[Written]) -> Happened:
    client, begin_ns = world.core, world.now_ns
    client.placed, client.ended, client.refused = [], [], []
    for one in changes:
        if not isinstance(one[0].step, w.Advance):
            world.act(one[0])
        world.advance(_passes_ms(one) * 1_000_000)

    def at_s(it_ns: int) -> float:
        return (it_ns - begin_ns) / SECOND

    return {
        "placed": [
            (it.application_id, it.allocation_key, it.node_id, at_s(at), it.placeholder)
            for at, _, it in client.placed
        ],
        "ended": [
            (it.application_id, it.allocation_key, si.TerminationType(it.termination_type).name,
             at_s(at))
            for at, it in client.ended
        ],
        "refused": client.refused,
    }  # fmt: skip
