"""What a user promises of their own code, and what it believes to be running.

`always` holds after every message, `eventually` at rest, `sometimes` in one run of many. At rest
the resource manager and the core must believe the same to be running where.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.lab.tapes.tape_names import mailbox_name
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.state.allocations import Allocation

ALWAYS: Final = "always"
EVENTUALLY: Final = "eventually"
Holds = Callable[[], bool]
Fault = Callable[[], str]
"""Returns how a promise is broken now; empty where it holds."""
DOES_NOT_HOLD: Final = "does not hold"
Believed = Callable[[], Mapping[str, str]]
"""Returns what runs: the UUID of each allocation with its node."""


def is_promise(kind: str | None) -> bool:
    """Whether a violation of this kind breaks a promise about all the steps there are."""
    return (kind or "").startswith((f"{ALWAYS} ", f"{EVENTUALLY} "))


class Broken(InvariantViolation):
    """A promise does not hold; two runs fail alike if the same one does not."""

    def __init__(self, promise: str, how: str) -> None:
        super().__init__(f"{promise}: {how}")
        self.promise = promise


def fault_of(holds: Holds) -> Fault:
    return lambda: "" if holds() else DOES_NOT_HOLD


class Promises:
    """Those of one run; it hears of each message."""

    def __init__(self) -> None:
        self.held: dict[str, bool] = {}
        """What is to hold sometimes, each with whether it has in this run."""
        self.always: dict[str, Fault] = {}
        self.unjudged: set[str] = set()
        """Of these, what says something of objects alone that were not there in this run."""
        self.sometimes: dict[str, Holds] = {}
        self.eventually: dict[str, Fault] = {}
        self.believed: list[tuple[str, Believed]] = []
        """Views of resource managers, each with its id; empty for all."""
        self._keys: dict[str, str] = {}
        """What was announced: keys by UUID."""
        self._is_over = False

    @property
    def are_watched(self) -> bool:
        """Whether there are any that take a look at each message."""
        return bool(self.always or self.sometimes)

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        if self._is_over:
            return
        if isinstance(delivery.message, CallUpdateAllocation):
            new = delivery.message.response.new
            self._keys.update((item.uuid, item.allocation_key) for item in new)
        for name, fault in self.always.items():
            if found := fault():
                kind = type(delivery.message).__name__
                where = mailbox_name(delivery.mailbox)
                raise Broken(f"{ALWAYS} {name}", f"{found} after {kind} to {where}")
        self._look()

    def _look(self) -> None:
        for name, holds in self.sometimes.items():
            if not self.held.get(name):
                self.held[name] = holds()

    def at_rest(self, context: Context, *, judges_eventually: bool) -> None:
        """Judge the end of a run: nothing is under way. What comes behind it is nobody's doing."""
        self._is_over = True
        self._look()
        if judges_eventually:
            for name, fault in self.eventually.items():
                if found := fault():
                    raise Broken(f"{EVENTUALLY} {name}", f"{found} at the end of the run")
        for rm_id, believed in self.believed:
            runs = believed()
            if not isinstance(runs, Mapping):
                raise TypeError(
                    f"compare: its function must return the node of each UUID, not {runs!r:.80}"
                )
            faults = list(self._differences(runs, _running(context, rm_id)))
            if faults:
                raise Broken("what runs", "; ".join(faults))

    def _differences(
        self, believed: Mapping[str, str], running: Mapping[str, Allocation]
    ) -> Iterator[str]:
        for uuid, item in running.items():
            node = believed.get(uuid)
            if node is None:
                so = "" if item.releasing is None else f", asked back as {item.releasing.name}"
                yield f"{item.spec.key} runs on {item.node_id} for the core alone{so}"
            elif node != item.node_id:
                yield f"{item.spec.key} runs on {item.node_id} and for its manager on {node}"
        for uuid, node in believed.items():
            if uuid not in running:
                yield f"{self._keys.get(uuid, uuid)} runs on {node} for the resource manager alone"


def _running(context: Context, rm_id: str) -> dict[str, Allocation]:
    return {
        uuid: item
        for partition in context.partitions.values()
        if not rm_id or partition.rm_id == rm_id
        for app in partition.state.applications.values()
        for uuid, item in app.allocations.items()
    }
