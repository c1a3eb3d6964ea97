"""The partitions of Context, each with the counters that name things in it."""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from yunikorn_actors.domain.partition import PartitionState
from yunikorn_actors.domain.proposals import Proposal
from yunikorn_actors.machines.context.rejections import Rejections
from yunikorn_actors.machines.life import Life
from yunikorn_actors.machines.machine import Effect
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import CONTEXT, scheduler_address
from yunikorn_actors.messages.queries import ExplainRequested
from yunikorn_actors.planning.planner import Planner

DIGITS_MAX = 19


class Uuids:
    """Names of allocations: a part of the core's instance, and a number that never comes again."""

    def __init__(self, instance: str) -> None:
        self._prefix = f"{instance}-"
        self.issued = 0

    def next(self) -> str:
        self.issued += 1
        return self._prefix + str(self.issued)

    def avoid(self, uuid: str) -> None:
        """Never issue a UUID that a resource manager has brought, as after a restart."""
        number = uuid.removeprefix(self._prefix)
        if number != uuid and number.isascii() and number.isdecimal() and len(number) < DIGITS_MAX:
            self.issued = max(self.issued, int(number))


class PartitionContext:
    """One life of a partition, with the counters that name things in it."""

    def __init__(
        self,
        life: Life,
        *,
        commit: Callable[["PartitionContext", list[Proposal], int], list[Effect]] | None,
        uuids: Uuids,
        settings: Settings,
    ) -> None:
        self.life = life
        """Of who plans for it."""
        self.name = life.partition
        self.rm_id = life.rm_id
        self.epoch = life.epoch
        self.hears_states = life.capabilities.hears_states
        """Whether its resource manager takes container states."""
        self.scheduler = None if commit is not None else scheduler_address(self.name, self.epoch)
        """Address of the Scheduler; None if Context plans by itself."""
        self.state = PartitionState(self.name)
        self.uuids = uuids
        """All partitions of the core share them."""
        self.loop: PlanningLoop | None = None
        self.planner: Planner | None = None
        if commit is not None:
            self.loop = PlanningLoop(
                self.state,
                partial(commit, self),
                life=life,
                address=CONTEXT,
                settings=settings,
            )
            self.planner = self.loop.planner
        self.explaining: dict[str, ExplainRequested] = {}
        """What its Scheduler was asked, by who waits for the answer."""
        self.rejections = Rejections(settings.rejected_max)
        self.awaits_confirmation = False
        """A timer is armed for the releases that are not confirmed."""
        self.cleaning: dict[str, int] = {}
        """Generation of the cleaning timer of each queue that has become empty."""
        self.last_serial = 0
        self.last_sequence = 0
        self.last_timer = 0

    def begin_life(self) -> None:
        """Another Scheduler takes over; messages to the former one are dropped."""
        self.life = replace(self.life, number=self.life.number + 1)
        self.scheduler = scheduler_address(self.name, self.epoch, self.life.number)

    def next_serial(self) -> int:
        self.last_serial += 1
        return self.last_serial

    def next_sequence(self) -> int:
        self.last_sequence += 1
        return self.last_sequence

    def next_timer(self) -> int:
        self.last_timer += 1
        return self.last_timer
