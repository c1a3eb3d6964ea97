"""Everything at once, for as long as one likes: `python -m tests.stress --minutes 30 --seed 1`.

Several resource managers talk to one core in service: each has a thread of its own that asks,
releases, confirms late or twice, and lets nodes and applications go and come back under their
names. Another thread registers them anew, loses them, lets them leave and reloads configurations;
a third moves the clock. Callbacks are quick, slow, raise, or call back into the core; some have
predicates. With the smallest switch interval threads change turns nearly everywhere.

After each round everybody stops, what the core asked back is confirmed, and the core comes to rest.
Then the books are checked: the invariants of every partition, each planner against the truth, the
health checks of the state dump, what each resource manager was told against what the core holds,
and that nobody waits for anybody. Memory has to be flat in the second half of the run. The first
failure ends the run with exit code 1 and says what to look at; what was drawn depends on the seed
alone, in which order the threads came does not.
"""

import argparse
import faulthandler
import gc
import json
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from tempfile import gettempdir
from typing import Any, get_args

from yunikorn_actors import (
    CoreError,
    Settings,
    UnknownResourceManager,
    si,
)
from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.checks.model_audit import audit
from yunikorn_actors.checks.state_invariants import violations
from yunikorn_actors.drivers.live.actors import CallbackHolder
from yunikorn_actors.drivers.live.clock import StandingClock
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.runtime.scheduler_core import CoreDriver
from yunikorn_actors.scenario.recorded_core import Recorded, RecordedCore
from yunikorn_actors.state.dump import snapshot
from yunikorn_actors.values.durations import MINUTE, SECOND

PATIENCE_S = 60.0
"""Longer than this nothing takes, however busy the machine is."""
MOVES = 150
"""Of each resource manager in one round."""
FLAT_MIB = 16.0
FLAT_SHARE = 0.1
JUDGED_ROUNDS = 40
"""Before so many rounds caches and histories are still filling, so memory is not judged."""
UNHANDLED_MAX = 128

APPS = tuple(f"app-{number}" for number in range(8))
NODES = tuple(f"n{number}" for number in range(6))
KEYS = tuple(f"k{number}" for number in range(24))
LEAVES = ("root.default", "root.entitled", "root.limited", "root.fair", "root.gone")
PARTITIONS = ("default", "default", "default", "batch")
_T = si.TerminationType
TO_CONFIRM = frozenset({_T.TIMEOUT, _T.PREEMPTED_BY_SCHEDULER, _T.PLACEHOLDER_REPLACED})
MAY_PREEMPT = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)


def _config(quota: int, *, batch: bool, gone: bool) -> str:
    leaves = [
        "{name: default}",
        "{name: entitled, resources: {guaranteed: {vcore: 12m}}, properties: {preemption.delay: 1s}}",
        f"{{name: limited, maxapplications: 2, resources: {{max: {{vcore: {quota}m}}}}}}",
        "{name: fair, properties: {application.sort.policy: fair}}",
        *(["{name: gone}"] if gone else []),
    ]
    names = ["default", *(["batch"] if batch else [])]
    return "partitions:\n" + "".join(
        f"  - {{name: {name}, queues: [{{name: root, submitacl: '*', queues: [{', '.join(leaves)}]}}]}}\n"
        for name in names
    )


CONFIGS = (
    _config(8, batch=True, gone=True),
    _config(3, batch=True, gone=False),
    _config(20, batch=False, gone=True),
)


class Failure(Exception):
    """What was found, one line each."""

    def __init__(self, *findings: str) -> None:
        super().__init__("\n".join(findings))


class Draw:
    """Choices of one thread."""

    def __init__(self, *seeds: object) -> None:
        self._random = Random("/".join(map(str, seeds)))  # noqa: S311 - no secret

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def number(self, below: int) -> int:
        return int(self._random.random() * below)

    def one_of(self, choices: Any) -> Any:
        return choices[self.number(len(choices))]


# -- resource managers


class Voice(si.ResourceManagerCallback):
    """One registration, and what it was told."""

    def __init__(self, manager: "Manager", draw: Draw) -> None:
        self._manager = manager
        self._draw = draw
        self.to_confirm: dict[str, si.AllocationRelease] = {}

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for gone in response.released:
            if gone.termination_type in TO_CONFIRM:
                self.to_confirm[gone.uuid] = gone
            else:
                self.to_confirm.pop(gone.uuid, None)
        self._manager.run.counts["allocations"] += len(response.new)
        self.misbehave(response)

    def misbehave(self, response: si.AllocationResponse) -> None:
        """As its kind does; by now it has taken note."""

    def confirm(self, release: si.AllocationRelease) -> None:
        """From here on it is gone, said once, twice, or to a core that knows nothing of it."""
        self.to_confirm.pop(release.uuid, None)
        said = si.AllocationRelease(
            partition_name=release.partition_name,
            application_id=release.application_id,
            uuid=release.uuid,
            allocation_key=release.allocation_key,
            termination_type=release.termination_type,
        )
        self._manager.release(said)
        if self._draw.chance(0.2):
            self._manager.release(said)


class Slow(Voice):
    def misbehave(self, _: si.AllocationResponse) -> None:
        if self._draw.chance(0.2):
            time.sleep(0.005)

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        assert request.allocation_key


class Raising(Voice):
    def misbehave(self, _: si.AllocationResponse) -> None:
        if self._draw.chance(0.3):
            raise ValueError("a fault of the resource manager")

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        if self._draw.chance(0.05):
            raise ValueError("a fault of the predicate")
        return f"not on {args.node_id}" if self._draw.chance(0.2) else None


class Reentrant(Voice):
    """Answers inside the callback."""

    def misbehave(self, response: si.AllocationResponse) -> None:
        for gone in response.released:
            if gone.uuid in self.to_confirm and self._draw.chance(0.8):
                self.confirm(gone)
        if response.new and self._draw.chance(0.2):
            self._manager.ask(self._draw)


VOICES = (Voice, Slow, Raising, Reentrant)


class Manager:
    """What one resource manager says, on whichever thread."""

    def __init__(self, run: "Run", number: int) -> None:
        self.run = run
        self.rm_id = f"rm-{number + 1}"
        self._kind = VOICES[number % len(VOICES)]
        self._lives = 0
        self.moves: dict[Callable[[Draw], None], int] = {
            self.ask: 30,
            self.give_back: 14,
            self.confirm_one: 14,
            self.submit: 8,
            self.gang: 4,
            self.withdraw: 4,
            self.remove: 3,
            self.node: 12,
        }

    @property
    def voice(self) -> Voice | None:
        """Of the registration that is in force."""
        core = self.run.core
        registration = core.managers.registered.get(self.rm_id)
        shell = registration and core._actors.by_address.get(registration.callback)
        holder = shell and shell.holder
        callback = holder._callback if isinstance(holder, CallbackHolder) else None
        voice = callback.callback if isinstance(callback, Recorded) else None
        return voice if isinstance(voice, Voice) else None

    def play(self, draw: Draw) -> None:
        weighed = [move for move, weight in self.moves.items() for _ in range(weight)]
        for _ in range(MOVES):
            move = draw.one_of(weighed)
            self.run.say(self.rm_id, move.__name__)
            with suppress(UnknownResourceManager):
                move(draw)

    # -- its life

    def register(self, draw: Draw) -> None:
        self._lives += 1
        voice = self._kind(self, Draw(self.run.seed, self.rm_id, "voice", self._lives))
        request = si.RegisterResourceManagerRequest(
            rm_id=self.rm_id,
            policy_group=self.rm_id,
            config=draw.one_of(CONFIGS),
            extra_config={"rm.maxUndelivered": "32", "rm.maxUnhandled": str(UNHANDLED_MAX)},
        )
        self.run.core.register_resource_manager(request, voice)
        self.run.counts["registrations"] += 1
        for node in NODES[:4]:
            with suppress(UnknownResourceManager):
                self._nodes(node, si.ActionFromRM.CREATE, draw)

    def reload(self, draw: Draw) -> None:
        extra = {
            "rm.maxUndelivered": draw.one_of(("8", "32")),
            "rm.maxUnhandled": str(UNHANDLED_MAX),
        }
        request = si.UpdateConfigurationRequest(
            rm_id=self.rm_id, config=draw.one_of(CONFIGS), extra_config=extra
        )
        self.run.core.update_configuration(request)

    # -- its moves

    def ask(self, draw: Draw) -> None:
        self._ask(
            draw,
            application_id=draw.one_of(APPS),
            allocation_key=draw.one_of(KEYS),
            max_allocations=draw.one_of((1, 1, 1, 3)),
            priority=draw.one_of((0, 0, 5)),
            preemption_policy=draw.one_of((None, MAY_PREEMPT)),
            tags=draw.one_of(({}, {}, {}, {si.constants.TAG_REQUIRED_NODE: draw.one_of(NODES)})),
        )

    def gang(self, draw: Draw) -> None:
        """Placeholders, and members that take their places at once or much later."""
        app, size = draw.one_of(APPS), 2 + draw.number(3)
        self._submit(draw, app, placeholder_ask=si.Resource.of({"vcore": 2 * size}))
        for what in ("ph", "member"):
            for number in range(size):
                self._ask(
                    draw,
                    vcore=2,
                    application_id=app,
                    allocation_key=f"{what}-{number}",
                    task_group_name="team",
                    placeholder=what == "ph",
                )

    def submit(self, draw: Draw) -> None:
        self._submit(draw, draw.one_of(APPS))

    def remove(self, draw: Draw) -> None:
        gone = si.RemoveApplicationRequest(
            application_id=draw.one_of(APPS), partition_name=draw.one_of(PARTITIONS)
        )
        self._said(
            self.run.core.update_application,
            si.ApplicationRequest(rm_id=self.rm_id, remove=(gone,)),
        )

    def withdraw(self, draw: Draw) -> None:
        key = draw.one_of(("", *KEYS))
        gone = si.AllocationAskRelease(
            application_id=draw.one_of(APPS),
            allocation_key=key,
            partition_name=draw.one_of(PARTITIONS),
        )
        self._releases(si.AllocationReleasesRequest(allocation_asks_to_release=(gone,)))

    def give_back(self, draw: Draw) -> None:
        """By key: what runs, what waits, or what was never there."""
        self.release(
            si.AllocationRelease(
                partition_name=draw.one_of(PARTITIONS),
                application_id=draw.one_of(APPS),
                allocation_key=draw.one_of((*KEYS, "ph-0", "member-0")),
            )
        )

    def confirm_one(self, draw: Draw) -> None:
        voice = self.voice
        waiting = list(voice.to_confirm.copy().values()) if voice is not None else []
        if voice is not None and waiting:
            voice.confirm(draw.one_of(waiting))

    def node(self, draw: Draw) -> None:
        actions = si.ActionFromRM
        action = draw.one_of(
            (
                *((actions.CREATE,) * 4),
                actions.UPDATE,
                actions.DRAIN_NODE,
                *((actions.DRAIN_TO_SCHEDULABLE,) * 2),
                actions.DECOMISSION,
            )
        )
        self._nodes(draw.one_of(NODES), action, draw)

    # -- parts

    def release(self, item: si.AllocationRelease) -> None:
        self._releases(si.AllocationReleasesRequest(allocations_to_release=(item,)))

    def _releases(self, releases: si.AllocationReleasesRequest) -> None:
        self._said(
            self.run.core.update_allocation,
            si.AllocationRequest(rm_id=self.rm_id, releases=releases),
        )

    def _submit(self, draw: Draw, app: str, **fields: Any) -> None:
        new = si.AddApplicationRequest(
            application_id=app,
            queue_name=draw.one_of(LEAVES),
            partition_name=draw.one_of(PARTITIONS),
            ugi=si.UserGroupInformation(user=draw.one_of(("bob", "alice"))),
            **fields,
        )
        self._said(
            self.run.core.update_application, si.ApplicationRequest(rm_id=self.rm_id, new=(new,))
        )

    def _ask(self, draw: Draw, *, vcore: int = 0, **fields: Any) -> None:
        amount = si.Resource.of({"vcore": vcore or 1 + draw.number(4)})
        partition = draw.one_of(PARTITIONS)
        ask = si.AllocationAsk(resource_ask=amount, partition_name=partition, **fields)
        self._said(
            self.run.core.update_allocation, si.AllocationRequest(rm_id=self.rm_id, asks=(ask,))
        )

    def _nodes(self, name: str, action: si.ActionFromRM, draw: Draw) -> None:
        info = si.NodeInfo(
            node_id=name,
            action=action,
            attributes={si.constants.NODE_PARTITION: draw.one_of(PARTITIONS)},
            schedulable_resource=si.Resource.of({"vcore": 10}),
        )
        self._said(self.run.core.update_node, si.NodeRequest(rm_id=self.rm_id, nodes=(info,)))

    def _said(self, call: Callable[[Any], None], request: object) -> None:
        call(request)
        self.run.counts["requests"] += 1


# -- a run


class Run:
    def __init__(
        self,
        *,
        seed: int,
        topology: TopologyName,
        driver: CoreDriver = "threads",
        managers: int = len(VOICES),
    ) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()
        """Threads count without a lock, so a few may be missing."""
        self.said: deque[str] = deque(maxlen=60)
        self.clock = StandingClock(EPOCH_NS)
        self.core = RecordedCore(
            driver=driver,
            topology=topology,
            clock=self.clock,
            instance="stress",
            settings=Settings(history_ns=10 * MINUTE, event_ring_capacity=2_000, rejected_max=100),
        )
        self.managers = [Manager(self, number) for number in range(managers)]
        self.rss_mib: list[float] = []
        self._errors: list[BaseException] = []

    def say(self, who: str, what: str) -> None:
        self.said.append(f"{who} {what}")

    def round(self, number: int) -> None:
        """Let everybody loose, bring them together again, and look at what they have left."""
        draws = partial(Draw, self.seed, number)
        busy = threading.Event()
        players = [
            *(partial(manager.play, draws(manager.rm_id)) for manager in self.managers),
            partial(self._meddle, draws("meddler")),
        ]
        clock = self._thread(partial(self._move_clock, draws("clock"), busy))
        threads = [self._thread(player) for player in players]
        self._join(threads)
        busy.set()
        self._join([clock])
        if self._errors:
            raise Failure(
                f"a caller was told what it should not be: {self._errors[0]!r}"
            ) from self._errors[0]
        self._come_to_rest()
        self._check()
        self.counts["rounds"] += 1
        self.rss_mib.append(_rss_mib())

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - the run fails with it
                self._errors.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def _join(self, threads: list[threading.Thread]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                faulthandler.dump_traceback(all_threads=True)
                raise Failure(f"{thread.name} does not come back; every thread's stack is above")

    # -- what goes on beside the resource managers

    def _meddle(self, draw: Draw) -> None:
        """Registrations, losses, leaves, reloads and questions."""
        core = self.core
        acts: list[Callable[[Manager], object]] = [
            *[lambda manager: manager.register(draw)] * 3,
            lambda manager: core.resource_manager_lost(manager.rm_id),
            lambda manager: core.unregister_resource_manager(manager.rm_id),
            *[lambda manager: manager.reload(draw)] * 4,
            *[lambda _: core.state_dump()] * 2,
            lambda _: core.explain(draw.one_of(APPS), draw.one_of(KEYS)),
            lambda _: core.events(),
        ]
        for manager in self.managers:
            if manager.rm_id not in core.managers.registered:
                manager.register(draw)
        for _ in range(6):
            act = draw.one_of(range(len(acts)))
            self.say("meddler", f"act {act}")
            with suppress(UnknownResourceManager, CoreError):
                acts[act](draw.one_of(self.managers))
            time.sleep(0.02)

    def _move_clock(self, draw: Draw, busy: threading.Event) -> None:
        while not busy.wait(0.01):
            self._let_time_pass(draw.one_of((SECOND // 10, SECOND, 5 * SECOND, 31 * SECOND)))

    def _let_time_pass(self, duration_ns: int) -> None:
        self.clock.move_to(self.clock.now_ns() + duration_ns)
        self.core.clock_was_moved()

    # -- at rest

    def _come_to_rest(self) -> None:
        """Confirm what the core asks back until it asks for nothing more."""
        for _ in range(200):
            self._settle()
            waiting = [
                (voice, release)
                for manager in self.managers
                if (voice := manager.voice) is not None
                for release in list(voice.to_confirm.values())
            ]
            if not waiting:
                return
            for voice, release in waiting:
                with suppress(UnknownResourceManager):
                    voice.confirm(release)
        raise Failure("the core keeps asking for allocations back, though time stands still")

    def _settle(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_at_rest():
            self._check_core()
            if time.monotonic() > deadline:
                faulthandler.dump_traceback(all_threads=True)
                raise Failure(
                    "the core does not come to rest; every thread's stack is above", *self._unrest()
                )
            time.sleep(0.002)
        self._check_core()

    def _is_at_rest(self) -> bool:
        """Nothing is due, and nothing was handled while we looked."""
        handled = self.core.handled
        looks = [self.core.is_settled() for _ in range(2)]
        return all(looks) and self.core.handled == handled

    def _unrest(self) -> Iterator[str]:
        """Who has messages left, who works all the same, and which timer is due."""
        before = {shell.address: shell.handled for shell in self.core._actors._known}
        time.sleep(0.2)
        for shell in self.core._actors._known:
            left, done = shell.received - shell.handled, shell.handled
            if left or done != before.get(shell.address):
                story = [kind.__name__ for _, kind, _ in shell.story][-8:]
                yield (
                    f"{shell.address} has {left} messages left, has handled {done} (a moment ago "
                    f"{before.get(shell.address)}), the last ones {story}"
                )
        due_ns, now_ns = self.core.next_due_ns, self.clock.now_ns()
        if due_ns is not None and due_ns <= now_ns:
            yield f"a timer has been due for {(now_ns - due_ns) / SECOND:.1f} s of the core's time"

    def _check_core(self) -> None:
        if self.core.failure is not None:
            raise Failure(f"the core failed: {self.core.failure}")

    def _check(self) -> None:
        findings = [*self._state(), *self._health(), *self._told(), *self._waiting()]
        if findings:
            raise Failure(*findings)

    def _state(self) -> Iterator[str]:
        machines = self.core._actors.machines()
        context = machines[CONTEXT]
        assert isinstance(context, Context)
        for name, partition in context.partitions.items():
            yield from (f"{name}: {what}" for what in violations(partition.state))
            if partition.planner is not None:
                yield from self._planner(name, partition.planner)
            for address in partition.schedulers.values():
                scheduler = machines[address]
                assert isinstance(scheduler, Scheduler)
                if snapshot(scheduler.replica) != snapshot(partition.state):
                    yield f"{address}: the replica is not the truth"
                yield from self._planner(address, scheduler.planner)
            if partition.state.is_backpressured:
                yield f"{name}: at rest, and held back"

    @staticmethod
    def _planner(name: str, planner: Planner) -> Iterator[str]:
        yield from (f"{name}: {what}" for what in audit(planner))
        if planner.unresolved:
            yield f"{name}: at rest, and {len(planner.unresolved)} proposals are unresolved"

    def _health(self) -> Iterator[str]:
        """Requests about what is not there are made on purpose, and are no fault."""
        wanted = {"Scheduling errors", "Failed nodes"}
        for check in health_of(self.core.state_dump()).checks:
            if not check.succeeded and check.name not in wanted:
                yield f"health: {check.name}: {check.diagnosis}"

    def _told(self) -> Iterator[str]:
        dump = self.core.state_dump()
        for manager in self.managers:
            known = dump["managers"].get(manager.rm_id)
            is_registered = manager.rm_id in self.core.managers.registered
            if is_registered is not (known is not None and known["state"] == "Running"):
                yield f"{manager.rm_id}: registered is {is_registered}, and the core has {known}"
        yield from self.core.faults()

    def _waiting(self) -> Iterator[str]:
        for rm_id, count in self.core.state_dump()["unhandled_requests"].items():
            if count > UNHANDLED_MAX // 64:
                yield f"{rm_id}: at rest, and {count} requests are unhandled"
        if self.core._replies._slots:
            yield f"at rest, and callers wait for answers: {list(self.core._replies._slots)}"
        gc.collect()
        ours = [it for it in threading.enumerate() if it.name.startswith("yunikorn-actors")]
        most = len(self.core._actors.by_address) + 1
        deadline = time.monotonic() + PATIENCE_S
        while len([it for it in ours if it.is_alive()]) > most and time.monotonic() < deadline:
            time.sleep(0.01)
        left = [it.name for it in ours if it.is_alive()]
        if len(left) > most:
            yield f"{len(left)} threads for {most - 1} mailboxes: {left}"

    def check_memory(self) -> None:
        """Judge the second half; the first one fills caches, histories and pools."""
        if self.counts["rounds"] < JUDGED_ROUNDS:
            return
        middle, end = _middle(self.rss_mib), _end(self.rss_mib)
        if end - middle > max(FLAT_MIB, FLAT_SHARE * middle):
            raise Failure(
                f"memory grew from {middle:.1f} MiB in the middle to {end:.1f} at the end"
            )

    def summary(self, failures: int) -> str:
        count = self.counts
        text = (
            f"{count['rounds']} rounds, {count['requests']} requests, "
            f"{count['allocations']} allocations, {count['registrations']} registrations, "
            f"{failures} failures"
        )
        if self.rss_mib:
            text += (
                f"; RSS {self.rss_mib[0]:.1f} MiB at the start, {_middle(self.rss_mib):.1f} in the "
                f"middle, {_end(self.rss_mib):.1f} at the end"
            )
        return text


def _rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def _middle(samples: list[float]) -> float:
    half = len(samples) // 2
    return median(samples[max(0, half - 3) : half + 3])


def _end(samples: list[float]) -> float:
    return median(samples[-5:])


@contextmanager
def _many_turns() -> Iterator[None]:
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(former)


def stress(
    *, seconds: float, seed: int, topology: TopologyName, driver: CoreDriver = "threads"
) -> tuple[Run, Failure | None]:
    """Run for so long, and until something was placed; return the run and what was found."""
    run = Run(seed=seed, topology=topology, driver=driver)
    deadline = time.monotonic() + seconds
    with _many_turns():
        try:
            run.core.start()
            while not run.counts["allocations"] or time.monotonic() < deadline:
                run.round(run.counts["rounds"])
            run.check_memory()
        except Failure as failure:
            return run, failure
        finally:
            run.core.stop()
    return run, None


def _what_to_look_at(run: Run, failure: Failure) -> str:
    """The findings, the last things said, and where the books are."""
    path = Path(gettempdir()) / f"stress-{run.seed}.json"
    machines = run.core._actors.machines()
    states = {name: machine.canonical_state() for name, machine in machines.items()}
    path.write_text(json.dumps(states, indent=1, default=str))
    return "\n  ".join(
        (
            f"FAILED in round {run.counts['rounds']} of seed {run.seed}:",
            *str(failure).splitlines(),
            "said last: " + ", ".join(run.said),
            f"what every machine knew: {path}",
        )
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--topology", choices=TOPOLOGIES, default=TOPOLOGIES[0])
    parser.add_argument("--driver", choices=get_args(CoreDriver), default="threads")
    options = parser.parse_args(arguments)
    run, failure = stress(
        seconds=60 * options.minutes,
        seed=options.seed,
        topology=options.topology,
        driver=options.driver,
    )
    if failure is not None:
        sys.stdout.write(_what_to_look_at(run, failure) + "\n")
    sys.stdout.write(run.summary(0 if failure is None else 1) + "\n")
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
