"""A resource manager at a portal of a cluster, and the same one at one core of all partitions.

Each partition has a core of its own behind the portal, and names mean other things in each: nodes,
applications and asks are called alike. What is answered, what the managers are told and what a read
side shows has to be the same as of one core. Hosts may end and begin anew: then what runs has to be
the same in the end, and nothing may be told twice.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.drivers.live.clock import StandingClock
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.errors import CoreError, NoReply
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.core_walks import Program
from yunikorn_actors.lab.surfaces.local_hosts import NearHost
from yunikorn_actors.lab.surfaces.partition_answers import answers
from yunikorn_actors.lab.surfaces.temporary_folder import temporary_folder
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import Message
from yunikorn_actors.planning.reasons import Cause
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.service.cluster.cluster_queries import ClusterQuestions
from yunikorn_actors.service.cluster.partition_host import BEGINNING
from yunikorn_actors.service.cluster.portal import ClusterCore
from yunikorn_actors.service.core_queries import CoreQuestions
from yunikorn_actors.service.listener import Standing
from yunikorn_actors.service.node_acts import NODE_ACTS
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.ids import manager_of_partition
from yunikorn_actors.values.tags import NODE_PARTITION

Fault = tuple[str, Any, list[str]]
_PARTITIONS: Final = (("default", "gpu"), ("gpu", "default"), ("default", "gpu", "far"))
_MANAGERS: Final = ("rm-1", "rm-1", "rm-1", "rm-2")
_STEPS: Final = (12, 28)
_BREAKS: Final = 2
"""In one walk of so many hosts end and begin anew."""
_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.0002
_QUIET_ROUNDS: Final = 2
_UUID: Final = re.compile(r"\b(?:one|default|gpu|far)\d-[0-9a-zA-Z]+(?:-\d+)?")
_REFUSAL: Final = re.compile(r'"[A-Z][A-Za-z]+:')
_SIZES: Final = (1, 1, 2, 3, 5, 40)
_OPEN: Final[tuple[str, ...]] = ("work", "work", "work", "sure")
_LEAVES: Final[tuple[str, ...]] = (*_OPEN, "closed", "nowhere")
_FEWEST: Final = 7
"""The quota of the first partition; each next one has one more."""
_EXTRAS: Final[tuple[dict[str, str], ...]] = (
    {}, {}, {"event.ringBufferCapacity": "50"}, {"rm.confirmWarning": "30s"},
)  # fmt: skip
_REFUSED: Final = (
    "partitions: [{name: other, queues: [{name: root}]}]", "partitions: 3",
)  # fmt: skip


def _text(partitions: tuple[str, ...], *, later: bool = False) -> str:
    """Return a configuration; each partition has other quotas."""
    parts = [
        {
            "name": name,
            "queues": [
                {
                    "name": "root",
                    "submitacl": "*",
                    "queues": [
                        {"name": "work", "resources": {"max": {"vcore": f"{most + later}"}},
                         "limits": [{"users": ["*"], "maxapplications": 3,
                                     "maxresources": {"vcore": f"{most}"}}]},
                        {"name": "sure", "resources": {"guaranteed": {"vcore": "2"}}},
                        *([{"name": "play"}] if later else []),
                        *([{"name": "closed", "maxapplications": 1}] if most == _FEWEST else []),
                    ],
                },
            ],
        }
        for most, name in enumerate(partitions, _FEWEST)
    ]  # fmt: skip
    return msgspec.json.encode({"partitions": parts}).decode()


class _Side:
    """One of the two ways, and all that is seen there."""

    def __init__(self, core: Any, clock: StandingClock) -> None:  # noqa: ANN401 - a core, or a portal
        self.core, self._clock = core, clock
        self.read_side = ReadSide(settings=Settings(), instance="one", start_ns=EPOCH_NS)
        self.programs: dict[str, Program] = {}
        self._names: dict[str, str] = {}
        """How UUIDs are called here, by themselves: as they are announced."""
        self._counts = Counter[str]()
        self.uuids: dict[str, list[si.Allocation]] = {}
        """What was announced and has not ended, by its manager."""
        self.seen: list[str] = []

    def receive(self, message: Message) -> None:
        """Have the read side follow."""
        self.read_side.handle(message, self._clock.now_ns())

    def follow(self) -> None:
        self.core.followers.follow(self)

    # -- calls

    def tried(self, call: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - what it returns, or the refusal
        try:
            return self.plain(call(self.core))
        except (CoreError, ValueError, LookupError) as error:
            return self.plain(f"{type(error).__name__}: {error}")

    def told(self) -> str:
        """Return what the managers were told since, without the order of partitions."""
        found = [
            (rm_id, kind, it)
            for rm_id, program in self.programs.items()
            for response in _taken(program)
            for kind, it in _items(response)
        ]
        for rm_id, _, it in found:
            if isinstance(it, si.Allocation):
                self._announce(rm_id, it)
        for rm_id, _, it in found:
            if isinstance(it, si.AllocationRelease):
                self._end(rm_id, it)
        return "\n".join(sorted(self.plain((rm_id, kind, repr(it))) for rm_id, kind, it in found))

    def _announce(self, rm_id: str, it: si.Allocation) -> None:
        name = f"{rm_id} {it.partition_name} {it.application_id} {it.allocation_key}"
        if it.uuid in self._names:
            self.seen.append(f"{name} is announced twice")
        self._counts[name] += 1
        self._names[it.uuid] = f"<{name} {self._counts[name]}>"
        self.uuids.setdefault(rm_id, []).append(it)

    def _end(self, rm_id: str, it: si.AllocationRelease) -> None:
        own = self.uuids.get(rm_id, [])
        left = [one for one in own if one.uuid != it.uuid]
        if len(left) == len(own) and it.uuid:
            self.seen.append(f"{it.allocation_key} of {rm_id} ends and does not run")
        self.uuids[rm_id] = left

    def plain(self, value: Any) -> str:  # noqa: ANN401 - whatever is seen
        text = msgspec.json.encode(value, enc_hook=repr, order="deterministic").decode()
        return _UUID.sub(lambda found: self._names.get(found[0], found[0]), text)

    # -- what is seen

    def name_of(self, it: si.Allocation) -> str:
        return self._names[it.uuid]

    def uuid_of(self, name: str) -> str:
        """Return the UUID that is called so here; the name if there is none."""
        return next((uuid for uuid, its in self._names.items() if its == name), name)

    def keys_that_run(self) -> set[str]:
        return {it.allocation_key for own in self.uuids.values() for it in own}

    def running(self) -> list[str]:
        """Name what the managers believe to be running."""
        return sorted(self._names[it.uuid] for own in self.uuids.values() for it in own)

    def placed(self) -> list[str]:
        """Name what the cores have."""
        dump = self.core.state_dump()
        return sorted(
            self._names.get(it["uuid"], it["uuid"])
            for partition in dump["partitions"].values()
            for app in partition["applications"].values()
            for it in app["allocations"]
        )

    def books(self) -> str:
        now_ns, books = self._clock.now_ns(), sorted(self.read_side.books.items())
        shown = self.plain({name: answers(it.state, now_ns) for name, it in books})
        return shown + self._described(self.read_side.managers)

    def things(self, managers: Collection[str]) -> str:
        """Name what a read side shows of these; the core of one that is lost may have ended."""
        shown = self.plain(
            {
                name: _things(book.state)
                for name, book in sorted(self.read_side.books.items())
                if manager_of_partition(name) in managers
            }
        )
        return shown + self._described(managers)

    def _described(self, managers: Collection[str]) -> str:
        described = sorted(self.read_side.managers.items())
        return ", ".join(
            f"{name} has {' '.join(it.name for it in one.config.partitions)} {one.extra_config}"
            for name, one in described if name in managers
        )  # fmt: skip

    def questions(self) -> Any:  # noqa: ANN401 - what answers
        kind: Any = ClusterQuestions if isinstance(self.core, ClusterCore) else CoreQuestions
        return kind(self.core, Standing())


def _things(state: PartitionState) -> Any:  # noqa: ANN401 - plain values
    """Name nodes, of which each is drained or not, applications, and what they want and have."""
    apps = state.applications.values()
    keys = {(app.id, key) for app in apps for key in app.asks}
    keys |= {(app.id, it.spec.key) for app in apps for it in app.allocations.values()}
    nodes = sorted((it.id, it.drained, it.capacity) for it in state.nodes.values())
    return nodes, sorted(state.applications), sorted(keys)


def _taken(program: Program) -> list[Any]:
    received, program.received = program.received, []
    return received


def _items(response: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - of a callback
    if isinstance(response, tuple):
        yield from (("event", it) for it in response)
    elif not isinstance(response, si.UpdateContainerSchedulingStateRequest):
        # How often it is told that an ask waits depends on how many are planned together.
        for name in response.__struct_fields__:
            yield from ((name, it) for it in getattr(response, name))


class _Requests:
    """Draws requests of several items, each about any of the partitions."""

    def __init__(self, draw: Draw, partitions: tuple[str, ...], *, is_plain: bool) -> None:
        """`is_plain`: each names the partition that it is for."""
        self._draw, self._partitions, self._is_plain = draw, partitions, is_plain
        self._number = 0
        self.keys: list[tuple[str, str, str]] = []

    def home(self, rm_id: str = "") -> str:
        draw = self._draw
        name = draw.one_of(self._partitions)
        others = () if self._is_plain else ("", "none")
        found: str = draw.one_of((name, name, name, f"[{rm_id}]{name}", *others))
        return found

    def node(self, rm_id: str) -> si.NodeRequest:
        draw = self._draw
        often = (si.ActionFromRM.CREATE,) * (3 if self._is_plain else 8)
        actions = (*often, *si.ActionFromRM)
        nodes = tuple(
            si.NodeInfo(
                node_id=f"n{draw.whole(1, 3)}", action=draw.one_of(actions),
                attributes={NODE_PARTITION: self.home(rm_id), "zone": draw.one_of("ab")},
                schedulable_resource=si.Resource.parse({"vcore": draw.one_of((2, 3, 6))}),
            )
            for _ in range(draw.whole(1, 4))
        )  # fmt: skip
        return si.NodeRequest(nodes=nodes, rm_id=rm_id)

    def application(self, rm_id: str) -> si.ApplicationRequest:
        draw, leaves = self._draw, _LEAVES
        names: list[str] = [f"app{draw.whole(1, 3)}" for _ in range(draw.whole(1, 4))]
        if self._is_plain:
            names, leaves = [*dict.fromkeys(names)], _OPEN
        new = tuple(
            si.AddApplicationRequest(
                application_id=name,
                queue_name=f"root.{draw.one_of(leaves)}", partition_name=self.home(rm_id),
                ugi=si.UserGroupInformation(user=draw.one_of(("ann", "bob")), groups=("dev",)),
            )
            for name in names
        )  # fmt: skip
        gone = tuple(
            si.RemoveApplicationRequest(
                application_id=f"app{draw.whole(1, 3)}", partition_name=self.home(rm_id)
            )
            for _ in range(draw.one_of((0, 0, 0, 1)))
        )
        return si.ApplicationRequest(new=new, remove=gone, rm_id=rm_id)

    def ask(self, rm_id: str) -> si.AllocationRequest:
        draw, asks = self._draw, []
        for _ in range(draw.whole(1, 4)):
            self._number += 1
            name = (self.home(rm_id), f"app{draw.whole(1, 3)}", f"k{self._number}")
            self.keys.append(name)
            ask = si.AllocationAsk(
                partition_name=name[0], application_id=name[1], allocation_key=name[2],
                resource_ask=si.Resource.parse({"vcore": draw.one_of(_SIZES)}),
                priority=draw.one_of((0, 0, 1)),
            )  # fmt: skip
            asks.append(ask)
        return si.AllocationRequest(asks=tuple(asks), rm_id=rm_id)

    def withdrawal(self, rm_id: str, names: list[tuple[str, str, str]]) -> si.AllocationRequest:
        withdrawn = tuple(
            si.AllocationAskRelease(partition_name=home, application_id=app, allocation_key=key)
            for home, app, key in (self._draw.one_of(names) for _ in names[:2])
        )
        releases = si.AllocationReleasesRequest(allocation_asks_to_release=withdrawn)
        return si.AllocationRequest(releases=releases, rm_id=rm_id)


Calls = Callable[[_Side], Callable[[Any], Any]]
"""Makes the call of a side, which may name what is there by itself."""


def _call(method: str, request: object) -> Calls:
    return lambda _: lambda core: getattr(core, method)(request)


class _Walk:
    def __init__(self, draw: Draw, folder: Path | None) -> None:
        self._draw = draw
        self._partitions: tuple[str, ...] = draw.one_of(_PARTITIONS)
        self._breaks = draw.once_in(_BREAKS)
        self._requests = _Requests(draw, self._partitions, is_plain=self._breaks)
        self._clock = StandingClock(EPOCH_NS)
        self._journal = folder
        words: dict[str, Any] = {"driver": "direct", "clock": self._clock}
        self._hosts = {name: NearHost(name, folder, **words) for name in self._partitions}
        text = _text(self._partitions)
        self._portal = ClusterCore(text, lambda _: self._hosts)
        self._one = SchedulerCore(**words, instance="one1")
        self._sides = (_Side(self._one, self._clock), _Side(self._portal, self._clock))
        self._text = text
        self._blank = [it for it in sorted({*_MANAGERS}) if draw.once_in(2)]
        """Managers that live under the configuration of the administrator."""
        self._has_broken = False
        self._there: dict[str, tuple[str, ...]] = {}
        """The partitions of each manager."""

    def __enter__(self) -> Self:
        self._one.start()
        self._portal.start()
        self._one.administer(self._text, BEGINNING)
        for side in self._sides:
            side.follow()
        self._settle()
        return self

    def __exit__(self, *error: object) -> None:
        self._portal.stop()
        for host in self._hosts.values():
            host.close()
        self._one.stop()

    # -- the walk

    def steps(self) -> Iterator[Fault]:
        draw = self._draw
        yield from self._register("rm-1")
        for first in (self._node, self._node, self._application, self._application, self._ask):
            yield from first()
        steps = (
            *(self._node, self._application) * 2, *(self._ask,) * 6, *(self._release,) * 3,
            self._withdraw, self._configure, self._administer, self._refused,
            *(self._question,) * 3, self._leave, self._again,
            *((self._break,) * 8 if self._breaks else
              (self._lose, self._wait, self._act, self._act, self._report, self._report)),
        )  # fmt: skip
        for _ in range(draw.whole(*_STEPS)):
            if "rm-1" not in self._there and not draw.once_in(3):
                yield from self._register("rm-1")
            yield from draw.one_of(steps)()
        yield from self._ends()

    def _both(self, what: str, call: Calls) -> Iterator[Fault]:
        """Make a call at both, and compare all that is seen of it."""
        one, other = ((side, call(side)) for side in self._sides)
        here, there = one[0].tried(one[1]), other[0].tried(other[1])
        self._settle()
        yield from self._compared(what, here, there)
        seen = [(side.told(), side.books()) for side in self._sides]
        for name, a, b in zip(("told", "shown"), *seen, strict=True):
            yield from self._compared(f"{what}, what is {name}", a, b)
        for side in self._sides:
            if side.seen:
                yield f"{what}, what cannot be", side.seen, [f"{what}: {it}" for it in side.seen]
                side.seen.clear()
        if self._has_broken:
            yield from self._after_breaks(what)

    def _compared(self, what: str, here: str, there: str) -> Iterator[Fault]:
        if self._has_broken:
            return
        same = _unworded(here) == _unworded(there)
        yield what, there, [] if same else [f"{what}: {_first(here, there)}"]

    def _after_breaks(self, what: str) -> Iterator[Fault]:
        """What is where may differ from then on; what there is must not."""
        _, portal = self._sides
        running, placed = portal.running(), portal.placed()
        faults = [] if running == placed else [f"{what}: told {running}, placed {placed}"]
        shown = [side.things(self._there) for side in self._sides]
        if shown[0] != shown[1]:
            faults.append(f"{what}, what is shown: {_first(*shown)}")
        yield f"{what}, what there is", shown[1], faults

    def _whose(self) -> str:
        return self._draw.one_of(_MANAGERS)

    def _register(self, rm_id: str = "") -> Iterator[Fault]:
        draw, rm_id = self._draw, rm_id or self._whose()
        own = self._partitions
        if rm_id not in self._blank:
            own = own[: draw.whole(1, len(own))]
        request = si.RegisterResourceManagerRequest(
            rm_id=rm_id,
            config=self._config_of(rm_id, own),
            version="1",
            policy_group=rm_id,
            extra_config=draw.one_of(_EXTRAS),
        )
        refuses = draw.one_of(("", "n1", "n2"))

        def call(side: _Side) -> Callable[[Any], Any]:
            program = side.programs[rm_id] = Program(Draw(0))
            program.refuses, program.is_odd, program.dump = refuses, False, ""
            side.uuids.pop(rm_id, None)
            return lambda core: core.register_resource_manager(request, program)

        self._there[rm_id] = own
        yield from self._both(f"{rm_id} registers", call)

    def _config_of(self, rm_id: str, own: tuple[str, ...]) -> str:
        """Draw what a manager brings; a blank one is of all partitions."""
        later = self._draw.once_in(2)
        return "" if rm_id in self._blank else _text(own, later=later)

    def _again(self) -> Iterator[Fault]:
        yield from self._register()

    def _node(self) -> Iterator[Fault]:
        request = self._requests.node(self._whose())
        yield from self._both("nodes", _call("update_node", request))

    def _application(self) -> Iterator[Fault]:
        request = self._requests.application(self._whose())
        yield from self._both("applications", _call("update_application", request))

    def _ask(self) -> Iterator[Fault]:
        request = self._requests.ask(self._whose())
        yield from self._both("asks", _call("update_allocation", request))

    def _withdraw(self) -> Iterator[Fault]:
        if names := self._withdrawable():
            request = self._requests.withdrawal(self._whose(), names)
            yield from self._both("withdrawn", _call("update_allocation", request))

    def _runs(self, rm_id: str) -> list[tuple[si.Allocation, str]]:
        """Return what runs at both, as the one core has it, each with its name."""
        one, portal = self._sides
        keys = portal.keys_that_run()
        runs = one.uuids.get(rm_id, ())
        return [(it, one.name_of(it)) for it in runs if it.allocation_key in keys]

    def _withdrawable(self) -> list[tuple[str, str, str]]:
        """Name the asks that run at both, or at neither."""
        here, there = (side.keys_that_run() for side in self._sides)
        return [it for it in self._requests.keys if (it[2] in here) == (it[2] in there)]

    def _release(self) -> Iterator[Fault]:
        rm_id = self._whose()
        if self._runs(rm_id):
            yield from self._both("releases", self._releases(rm_id))

    def _releases(self, rm_id: str) -> Calls:
        draw, runs = self._draw, self._runs(rm_id)
        chosen = [draw.one_of(runs) for _ in range(draw.whole(1, 3))]
        by_key = draw.once_in(4)

        def call(side: _Side) -> Callable[[Any], Any]:
            ended = tuple(
                si.AllocationRelease(
                    partition_name=it.partition_name, application_id=it.application_id,
                    allocation_key=it.allocation_key if by_key else "",
                    uuid="" if by_key else side.uuid_of(name),
                    termination_type=si.TerminationType.STOPPED_BY_RM,
                )
                for it, name in chosen
            )  # fmt: skip
            releases = si.AllocationReleasesRequest(allocations_to_release=ended)
            request = si.AllocationRequest(releases=releases, rm_id=rm_id)
            return lambda core: core.update_allocation(request)

        return call

    def _report(self) -> Iterator[Fault]:
        """Report again what runs, mostly with another size, and now and then without its UUID."""
        rm_id = self._whose()
        if not self._runs(rm_id):
            return
        item, name = self._draw.one_of(self._runs(rm_id))
        size, names = self._draw.one_of((1, 2, 3)), not self._draw.once_in(3)

        def call(side: _Side) -> Callable[[Any], Any]:
            again = replace(
                item, uuid=side.uuid_of(name) if names else "",
                resource_per_alloc=si.Resource.parse({"vcore": size}),
            )  # fmt: skip
            request = si.AllocationRequest(allocations=(again,), rm_id=rm_id)
            return lambda core: core.update_allocation(request)

        yield from self._both("reported again", call)

    def _configure(self) -> Iterator[Fault]:
        rm_id = self._whose()
        own = self._there.get(rm_id, self._partitions)
        text = self._config_of(rm_id, own)
        request = si.UpdateConfigurationRequest(
            rm_id=rm_id, config=text, extra_config=self._draw.one_of(_EXTRAS)
        )
        yield from self._both("a configuration", _call("update_configuration", request))

    def _administer(self) -> Iterator[Fault]:
        text = self._draw.one_of((self._text, _text(self._partitions, later=True)))
        yield from self._both("administered", lambda _: lambda core: core.administer(text, "ann"))

    def _refused(self) -> Iterator[Fault]:
        """What a portal refuses by itself, where one core has other partitions or an event."""
        _, portal = self._sides
        rm_id, text = self._whose(), self._draw.one_of(_REFUSED)
        configuration = si.UpdateConfigurationRequest(rm_id=rm_id, config=text)
        calls: tuple[Callable[[Any], Any], ...] = (
            lambda core: core.administer(text, "ann"),
            lambda core: core.update_configuration(configuration),
            lambda core: core.events(),
            lambda core: core.start(),
        )
        for call in calls:
            refusal = portal.tried(call)
            faults = [] if _REFUSAL.match(refusal) else [f"a portal does not refuse: {refusal}"]
            yield "refused by the portal", refusal, faults

    def _act(self) -> Iterator[Fault]:
        draw = self._draw
        name = f"[{self._whose()}]{draw.one_of(self._partitions)}"
        act, node = draw.one_of([*NODE_ACTS]), f"n{draw.whole(1, 3)}"
        yield from self._both(
            act, lambda side: lambda _: side.questions().ask(act, name, node, "ann")
        )

    def _question(self) -> Iterator[Fault]:
        draw, (home, app, key) = (
            self._draw,
            self._draw.one_of(self._requests.keys or [("", "", "")]),
        )
        rm_id = self._whose()
        full = f"[{rm_id}]{draw.one_of(self._partitions)}"
        cause = draw.one_of([*Cause])
        asked: tuple[tuple[str, ...], ...] = (
            ("why", app, key, full), ("waiting", full),
            ("is_ready",), ("diagnostics",), ("trace",),
            ("unregister", rm_id, "ann"), ("asks", full, cause.value, "", "5"),
        )  # fmt: skip
        words = draw.one_of(asked)
        yield from self._both(
            f"asked {' '.join(words)}", lambda side: lambda _: side.questions().ask(*words)
        )
        del home
        yield from self._both(
            "explained", lambda _: lambda core: core.explain(app, key, partition=full)
        )
        yield from self._both("waits", lambda _: lambda core: core.waiting(partition=full))
        yield from self._both("expected", lambda _: lambda core: core.expected(partition=full))

    def _wait(self) -> Iterator[Fault]:
        def call(side: _Side) -> Callable[[Any], Any]:
            if side is self._sides[0]:
                self._clock.move_to(self._clock.now_ns() + 60 * SECOND)
                self._one.clock_was_moved()
                for host in self._hosts.values():
                    if host.host is not None:
                        host.host.clock_was_moved()
            return lambda _: ""

        yield from self._both("time goes by", call)

    def _lose(self) -> Iterator[Fault]:
        rm_id = self._whose()
        self._there.pop(rm_id, None)
        yield from self._both("lost", lambda _: lambda core: core.resource_manager_lost(rm_id))

    def _leave(self) -> Iterator[Fault]:
        rm_id = self._whose()

        def call(side: _Side) -> Callable[[Any], Any]:
            side.uuids.pop(rm_id, None)
            return lambda core: core.unregister_resource_manager(rm_id)

        self._there.pop(rm_id, None)
        yield from self._both("leaves", call)

    def _break(self) -> Iterator[Fault]:
        """A host ends, is sent something while it is away, and begins anew."""
        self._has_broken = True
        host = self._hosts[self._draw.one_of(self._partitions)]
        host.end()
        for request in self._requests_of_break():
            for side in self._sides:
                side.tried(request(side))
        host.begin()
        yield from self._both("a break", lambda _: lambda _: "")

    def _requests_of_break(self) -> Iterator[Calls]:
        """Applications come alone: in a report they are before the asks."""
        draw, requests, rm_id = self._draw, self._requests, self._whose()
        if draw.once_in(3):
            yield _call("update_application", requests.application(rm_id))
            return
        for _ in range(draw.whole(0, 3)):
            kind = draw.one_of(("node", "release", "release", "withdrawal", "ask"))
            if kind == "node":
                yield _call("update_node", requests.node(rm_id))
            elif kind == "release" and self._runs(rm_id):
                yield self._releases(rm_id)
            else:
                names = self._withdrawable() if kind == "withdrawal" else []
                asked = requests.withdrawal(rm_id, names) if names else requests.ask(rm_id)
                yield _call("update_allocation", asked)

    def _ends(self) -> Iterator[Fault]:
        dumps = [_unordered(side.tried(_partitions_of)) for side in self._sides]
        yield from self._compared("the partitions of a dump", *dumps)
        if self._breaks:
            # Asks that waited are planned anew, in another order.
            return
        one, portal = (side.placed() for side in self._sides)
        same = [it.rpartition(" ")[0] for it in one], [it.rpartition(" ")[0] for it in portal]
        faults = [] if same[0] == same[1] else [f"runs: {_first(*same)}"]
        yield "what runs in the end", "", faults

    # -- rest

    def _settle(self) -> None:
        deadline, quiet = time.monotonic() + _PATIENCE_S, 0
        while quiet <= _QUIET_ROUNDS:
            time.sleep(_POLL_S)
            quiet = quiet + 1 if self._is_settled() else 0
            if time.monotonic() > deadline:
                raise NoReply("the cluster does not come to rest")

    def _is_settled(self) -> bool:
        return (
            self._one.is_settled()
            and self._portal.is_settled()
            and all(map(self._is_at_rest, self._hosts))
        )

    def _is_at_rest(self, partition: str) -> bool:
        """Whether a host has the managers that it should have, and nothing is under way there."""
        host = self._hosts[partition].host
        managers = {rm_id for rm_id, own in self._there.items() if partition in own}
        return host is not None and host.managers == managers and host.is_settled()


def _partitions_of(core: Any) -> Any:  # noqa: ANN401 - plain values of a core, or of a portal
    partitions = core.state_dump()["partitions"]
    # How many facts there were depends on how many asks were planned together.
    return {name: {**it, "revision": 0} for name, it in partitions.items()}


def _unordered(text: str) -> str:
    """Put lists in the order of their texts: some are in the order of UUIDs."""
    return msgspec.json.encode(_sorted(msgspec.json.decode(text))).decode()


def _sorted(value: Any) -> Any:  # noqa: ANN401 - plain values
    if isinstance(value, dict):
        return {key: _sorted(it) for key, it in value.items()}
    return sorted(map(_sorted, value), key=repr) if isinstance(value, list) else value


def _unworded(value: str) -> str:
    """A portal refuses in words of its own."""
    found = _REFUSAL.match(value)
    return value if found is None else found[0]


def _first(here: Any, there: Any) -> str:  # noqa: ANN401 - two that differ
    a, b = f"{here}", f"{there}"
    place = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
    begin = max(0, place - 60)
    return f"...{b[begin : place + 120]} and not ...{a[begin : place + 120]}"


def walk_cluster(draw: Draw) -> Iterator[Fault]:
    """Yield what is done, what is seen of it at the portal, and what is wrong with that."""
    with (
        temporary_folder() as folder,
        _Walk(draw, Path(folder) if draw.once_in(2) else None) as walk,
    ):
        yield from walk.steps()
