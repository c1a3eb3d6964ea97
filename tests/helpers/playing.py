"""A resource manager that sends the requests it is given to a simulator.

The player resolves what a move leaves open (which allocation is "the fifth one") by what the
resource manager has heard, posts the request, and counts what came of it. It never settles by
itself, so the moves race with everything that the core does about the earlier ones.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from configurations import CONFIGS
from moves import Move
from msgspec.structs import replace
from support import AFTER_HISTORY_NS, Races
from watching import Kept

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.simulator import Checker, Simulator
from yunikorn_actors.errors import ConfigError, CoreError, InvalidRequest
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.durations import HOUR, SECOND
from yunikorn_actors.values.ids import short_partition_name
from yunikorn_actors.values.resource import pruned, sub

AFTER_PAUSES_NS = 2 * HOUR
"""By then whoever is lost has been forgotten, and reservations are looked at no more."""
_REFUSALS = (InvalidRequest, ConfigError, CoreError)
_TO_CONFIRM = frozenset(
    {
        si.TerminationType.TIMEOUT,
        si.TerminationType.PREEMPTED_BY_SCHEDULER,
        si.TerminationType.PLACEHOLDER_REPLACED,
    }
)


_ACTIONS: dict[str, Callable[[str], si.NodeInfo]] = {
    "drain": lambda node: si.NodeInfo(node_id=node, action=si.ActionFromRM.DRAIN_NODE),
    "shrink": lambda node: si.NodeInfo(
        node_id=node,
        action=si.ActionFromRM.UPDATE,
        schedulable_resource=si.Resource.of({"vcore": 2, "memory": 20}),
    ),
    "decommission": lambda node: si.NodeInfo(node_id=node, action=si.ActionFromRM.DECOMISSION),
}


class Voice(si.ResourceManagerCallback):
    """One registration, and what it has heard; `confirm` is called from inside the callback."""

    def __init__(self, confirm: Callable[[si.AllocationRelease], None] | None) -> None:
        self._confirm = confirm
        self.heard: dict[str, si.Allocation] = {}
        """By UUID, those that have ended included."""
        self.to_confirm: dict[str, si.AllocationRelease] = {}

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for new in response.new:
            self.heard[new.uuid] = new
        for gone in response.released:
            if gone.termination_type in _TO_CONFIRM:
                self.to_confirm[gone.uuid] = gone
                if self._confirm is not None:
                    self._confirm(gone)


class Attentive(Voice):
    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        assert request.state is not si.SchedulingState.UNKNOWN_SCHEDULING_STATE


def settings_of(seed: int) -> Settings:
    """Half of the runs have the shortest turns, so that requests wait for each other.

    And every eighth one the shortest slices, so that long work is nearly all work.
    """
    return Settings(turn_max=1 + seed % 2 * 499, slice_max=1 if seed % 8 == 7 else 100)


class Player:
    def __init__(
        self,
        topology: TopologyName,
        seed: int,
        *,
        schedulers: int = 1,
        confirms_at_once: bool = False,
        settles: bool = False,
        checkers: tuple[Checker, ...] = (),
    ) -> None:
        self._confirms_at_once = confirms_at_once
        self._settles = settles
        """Whether each request is settled before the next."""
        self.races = Races()
        self.kept = Kept()
        self.simulator = Simulator(
            Topology(
                topology,
                settings=settings_of(seed),
                instance="core",
                schedulers=schedulers,
            ),
            chooser=chooser_of(seed),
            checkers=(*default_checkers(), self.races, self.kept, *checkers),
        )
        self.seen: Counter[str] = Counter()
        self._voices: dict[str, Voice] = {}

    @property
    def context(self) -> Context:
        context = self.simulator.machines[CONTEXT]
        assert isinstance(context, Context)
        return context

    def planner(self, partition: PartitionContext) -> Planner:
        """Return who can say why asks of a partition wait."""
        if partition.planner is not None:
            return partition.planner
        assert partition.planning is not None
        scheduler = self.simulator.machines[partition.planning]
        assert isinstance(scheduler, Scheduler)
        return scheduler.planner

    def dump(self) -> dict[str, Any]:
        return self.simulator.state_dump()

    def preempted(self) -> int:
        """Count what was asked back for the sake of something else."""
        wanted = si.TerminationType.PREEMPTED_BY_SCHEDULER
        asked_back = (gone for voice in self._voices.values() for gone in voice.to_confirm.values())
        return sum(gone.termination_type is wanted for gone in asked_back)

    def announced(self) -> int:
        return sum(len(voice.heard) for voice in self._voices.values())

    def play(self, move: Move) -> None:
        try:
            getattr(self, f"_{move.what}")(move.rm, **move.said)
        except _REFUSALS as refusal:
            self.seen[type(refusal).__name__] += 1
        else:
            self.seen[move.what] += 1
        self._pause(0)

    def _pause(self, steps: int) -> None:
        """Let this many messages be handled, or all."""
        for _ in range(steps):
            self.simulator.step()
        if self._settles:
            self.simulator.settle()

    def _register(self, rm: str, *, config: str, group: str, hears_states: bool) -> None:
        confirm = partial(self._confirm_release, rm) if self._confirms_at_once else None
        voice = (Attentive if hears_states else Voice)(confirm)
        request = si.RegisterResourceManagerRequest(rm_id=rm, config=config, policy_group=group)
        self.simulator.register_resource_manager(request, voice)
        self._voices[rm] = voice

    def _come_back(self, rm: str) -> None:
        if rm not in self.simulator.managers.registered:
            self._register(rm, config=CONFIGS[0], group="", hears_states=True)

    def _lose(self, rm: str) -> None:
        self.simulator.resource_manager_lost(rm)

    def _unregister(self, rm: str) -> None:
        self.simulator.unregister_resource_manager(rm)

    def _reload(self, rm: str, *, config: str) -> None:
        request = si.UpdateConfigurationRequest(rm_id=rm, config=config)
        self.simulator.update_configuration(request)

    def _administer(self, _: str, *, config: str) -> None:
        self.simulator.update_configuration(si.UpdateConfigurationRequest(config=config))

    def _nodes(self, rm: str, *, nodes: tuple[si.NodeInfo, ...]) -> None:
        self.simulator.update_node(si.NodeRequest(rm_id=rm, nodes=nodes))

    def _applications(self, rm: str, **parts: Any) -> None:
        self.simulator.update_application(si.ApplicationRequest(rm_id=rm, **parts))

    def _asks(self, rm: str, *, asks: tuple[si.AllocationAsk, ...]) -> None:
        self.simulator.update_allocation(si.AllocationRequest(rm_id=rm, asks=asks))

    def _reports(self, rm: str, *, allocations: tuple[si.Allocation, ...]) -> None:
        self.simulator.update_allocation(si.AllocationRequest(rm_id=rm, allocations=allocations))

    def _release(
        self,
        rm: str,
        *,
        releases: tuple[si.AllocationRelease, ...],
        asks: tuple[si.AllocationAskRelease, ...] = (),
    ) -> None:
        gone = si.AllocationReleasesRequest(
            allocations_to_release=releases, allocation_asks_to_release=asks
        )
        self.simulator.update_allocation(si.AllocationRequest(rm_id=rm, releases=gone))

    def _release_heard(self, rm: str, *, pick: int, type: si.TerminationType) -> None:  # noqa: A002
        known = self._heard(rm, pick)
        if known is not None:
            self._release(
                rm,
                releases=(
                    si.AllocationRelease(
                        partition_name=known.partition_name,
                        application_id=known.application_id,
                        uuid=known.uuid,
                        termination_type=type,
                    ),
                ),
            )

    def _report_heard(self, rm: str, *, pick: int, node: str, amount: si.Resource) -> None:
        """Report a known allocation under its UUID: in place, elsewhere, with another size."""
        known = self._heard(rm, pick)
        if known is not None:
            item = si.Allocation(
                allocation_key=known.allocation_key,
                application_id=known.application_id,
                node_id=node,
                resource_per_alloc=amount,
                uuid=known.uuid,
            )
            self._reports(rm, allocations=(item,))

    def _heard(self, rm: str, pick: int) -> si.Allocation | None:
        heard = list(self._voices[rm].heard.values()) if rm in self._voices else []
        return heard[-1 - pick] if pick < len(heard) else None

    def _confirm(self, rm: str, *, pick: int, type: si.TerminationType | None) -> None:  # noqa: A002
        """Late, again, or with another type than was asked for."""
        waiting = list(self._voices[rm].to_confirm.values()) if rm in self._voices else []
        if pick < len(waiting):
            self.seen["confirmed"] += 1
            self._confirm_release(rm, waiting[pick], type)

    def _confirm_release(
        self, rm: str, release: si.AllocationRelease, type_: si.TerminationType | None = None
    ) -> None:
        wanted = release.termination_type if type_ is None else type_
        with suppress(CoreError):
            self._release(rm, releases=(replace(release, termination_type=wanted, message=""),))

    # -- two requests, the second against what comes of the first

    def _rush(
        self, rm: str, *, asks: tuple[si.AllocationAsk, ...], steps: int, against: str, node: str
    ) -> None:
        """Ask, let a little happen, and take away what a decision may rest on."""
        self._asks(rm, asks=asks)
        self._pause(steps)
        app = asks[0].application_id
        match against:
            case "withdraw":
                gone = (si.AllocationAskRelease(application_id=app),)
                self._release(rm, releases=(), asks=gone)
            case "grow":
                much = si.Resource.of({"vcore": 7})
                self._asks(rm, asks=tuple(replace(ask, resource_ask=much) for ask in asks))
            case "remove":
                self._applications(rm, remove=(si.RemoveApplicationRequest(application_id=app),))
            case "lose":
                self._lose(rm)
            case "":
                pass
            case _:
                self._nodes(rm, nodes=(_ACTIONS[against](node),))

    def _gang(self, rm: str, *, app: str, members: list[int], between: int, **rest: Any) -> None:
        """Placeholders first, then as many members as were drawn, then what disturbs them."""
        asks = tuple(
            si.AllocationAsk(
                allocation_key=f"{app}-{what}-{number}",
                application_id=app,
                resource_ask=si.Resource.of({"vcore": vcore}),
                task_group_name="team",
                placeholder=what == "ph",
            )
            for what, sizes in (("ph", (2, 2)), ("member", members))
            for number, vcore in enumerate(sizes)
        )
        self._asks(rm, asks=asks[:2])
        self._pause(between)
        self._rush(rm, asks=asks[2:], **rest)

    def _linger(self, rm: str, *, ask: si.AllocationAsk, seconds: float) -> None:
        """Let an application complete, and ask again while its timer is firing."""
        self._release(rm, releases=(si.AllocationRelease(application_id=ask.application_id),))
        self._fire(rm, seconds=seconds)
        self._pause(0)
        self._asks(rm, asks=(ask,))

    # -- time

    def _step(self, _: str, *, times: int) -> None:
        self._pause(times)

    def _settle(self, _: str) -> None:
        self.simulator.settle()

    def _fire(self, _: str, *, seconds: float) -> None:
        """Let timers fire, and handle nothing: what is said next races with them.

        Where everything is settled before the next thing, each moment is as well.
        """
        if self._settles:
            self._advance(_, seconds=seconds)
            return
        self.simulator.settle()
        self.simulator.now_ns += int(seconds * SECOND)
        self.simulator._fire_due()

    def _advance(self, _: str, *, seconds: float) -> None:
        self.simulator.advance(int(seconds * SECOND))

    # -- the end

    def take_everything_back(self) -> None:
        """Confirm and remove all there is, and wait until nobody remembers."""
        self.simulator.settle()
        for rm in tuple(self.simulator.managers.registered):
            self._confirm_all(rm)
            for full_name in self.dump()["managers"][rm]["partitions"]:
                self._clear(rm, self.context.partitions[full_name].state)
            self._confirm_all(rm)
        self.simulator.advance(AFTER_PAUSES_NS)
        timers = [name for _, name in self.simulator.timers if not name.startswith("history/")]
        assert [] == timers, f"timers of nothing: {timers}"
        self.simulator.advance(AFTER_HISTORY_NS)

    def _confirm_all(self, rm: str) -> None:
        for pick in range(len(self._voices[rm].to_confirm)):
            self._confirm(rm, pick=pick, type=None)
        self.simulator.settle()

    def _clear(self, rm: str, state: PartitionState) -> None:
        name = short_partition_name(state.name)
        gone = [
            si.RemoveApplicationRequest(application_id=id_, partition_name=name)
            for id_ in state.applications
        ]
        self._applications(rm, remove=tuple(gone))
        foreign = [
            si.AllocationRelease(partition_name=name, allocation_key=key) for key in state.foreign
        ]
        self._release(rm, releases=tuple(foreign))
        empty = [
            si.NodeInfo(
                node_id=id_,
                action=si.ActionFromRM.UPDATE,
                attributes={si.constants.NODE_PARTITION: name},
                occupied_resource=si.Resource(),
            )
            for id_ in state.nodes
        ]
        self._nodes(rm, nodes=tuple(empty))
        self.simulator.settle()

    def leftovers(self) -> dict[str, Any]:
        """Whatever is not zero although nothing runs and nothing waits (G29)."""
        current = [it.callback for it in self.simulator.managers.registered.values()]
        left: dict[str, Any] = {
            "timers": list(self.simulator.timers),
            "callbacks": [it for it in self.simulator.callbacks if it not in current],
        }
        for name, partition in self.context.partitions.items():
            left[f"cleaning of {name}"] = partition.cleaning
            left |= {f"{what} of {name}": rest for what, rest in _left(partition.state).items()}
        return {name: rest for name, rest in left.items() if rest}


def _left(state: PartitionState) -> dict[str, Any]:
    left: dict[str, Any] = {
        "applications": [*state.applications, *state.finished],
        "usage": [*state.users, *state.groups],
        "allocations": state.allocation_count,
        "reservations": state.reservation_count,
        "foreign": state.foreign,
    }
    for queue in state.queues.values():
        books = (queue.allocated, queue.pending, queue.preempting)
        left[queue.path] = [book for book in books if any(book.values())]
        left[f"count of {queue.path}"] = queue.running_apps or queue.allocating
        left[f"stay of {queue.path}"] = queue.is_to_be_cleaned
    for node in state.nodes.values():
        left[node.id] = pruned(sub(node.capacity, node.available)) or node.reservations
    return left
