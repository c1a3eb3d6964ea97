"""Machines that do as they are told, and the two drivers behind one face.

A `Do` carries the effects that its receiver is to have, so a test writes down a whole exchange as
one value. A probe notes what reaches it, and can be held: then its mailbox fills while it stands
inside a handler. In the simulator nothing reaches anybody before it is told to run, so holding
needs no doing there. On threads the clock of the core is set by hand, so no test waits for time to
pass or depends on how much of it has passed.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from support import CONFIG, RM

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.drivers.live.clock import StandingClock
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS, Simulator
from yunikorn_actors.machines.machine import Effect, Joining, Machine
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology, TopologyName
from yunikorn_actors.messages.base import Message
from yunikorn_actors.runtime.core_arguments import CoreDriver

PATIENCE_S = 60.0
"""Nothing that works takes so long, however busy the machine is."""
MS = 1_000_000


class Do(Message, frozen=True, kw_only=True):
    label: str
    effects: tuple[Any, ...] = ()


class Joint(Message, frozen=True, kw_only=True):
    """A `Joiner` handles it together with others; `takes_ns` is for a clock that is set by hand."""

    label: str
    effects: tuple[Any, ...] = ()
    takes_ns: int = 0
    error: Any = None


class Hold(Message, frozen=True, kw_only=True):
    """Stay in the handler until let go."""


class Break(Message, frozen=True, kw_only=True):
    """Raise this, at once or when let go."""

    error: Any
    held: bool = False


class Note(NamedTuple):
    address: str
    label: str
    now_ns: int
    thread: str


class Notebook:
    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.joint: list[list[str]] = []
        """What joiners have handled, as they were handled together."""
        self.spent_ns = 0
        """What all of it took."""
        self.other: list[Message] = []
        """What reached a probe and is no word of a test."""
        self.held = threading.Event()
        self.let_go = threading.Event()

    def stay(self) -> None:
        self.held.set()
        assert self.let_go.wait(PATIENCE_S)

    def labels(self, address: str) -> list[str]:
        return [note.label for note in self.notes if note.address == address]


class Probe:
    def __init__(self, address: str, notebook: Notebook) -> None:
        self._address = address
        self._notebook = notebook

    def handle(self, message: Message, now_ns: int) -> list[Effect]:
        match message:
            case Hold():
                self._notebook.stay()
            case Break():
                if message.held:
                    self._notebook.stay()
                raise message.error
            case Do():
                thread = threading.current_thread().name
                self._notebook.notes.append(Note(self._address, message.label, now_ns, thread))
                return list(message.effects)
            case _:
                self._notebook.other.append(message)
        return []

    def canonical_state(self) -> dict[str, Any]:
        return {"heard": self._notebook.labels(self._address)}


class Joiner(Probe, Joining):
    """A probe that handles `Joint` together with others of its kind."""

    joined = frozenset({Joint})

    def joins(self, first: Message, message: Message) -> bool:
        assert isinstance(first, Joint)
        return isinstance(message, Joint)

    def handle_together(self, messages: Iterator[Message], now_ns: int) -> list[Effect]:
        labels: list[str] = []
        effects: list[Effect] = []
        self._notebook.joint.append(labels)
        for message in messages:
            assert isinstance(message, Joint)
            if message.error is not None:
                raise message.error
            thread = threading.current_thread().name
            self._notebook.notes.append(Note(self._address, message.label, now_ns, thread))
            self._notebook.spent_ns += message.takes_ns
            labels.append(message.label)
            effects.extend(message.effects)
        return effects


class ProbeTopology(Topology):
    """The whole core, three probes and a joiner beside it; more of them can be started.

    A machine of the core whose address is replaced by a probe never answers anything.
    """

    def __init__(
        self, name: TopologyName, notebook: Notebook, replaced: tuple[str, ...] = ()
    ) -> None:
        super().__init__(name, settings=Settings(), instance="core")
        self._notebook = notebook
        self._probes = ("a", "b", "c", *replaced)
        self._kinds["probe"] = self._probe

    def first_machines(self) -> dict[str, Machine]:
        probes = {address: self._probe(address=address) for address in self._probes}
        joiner = Joiner("joiner", self._notebook)
        return {**super().first_machines(), **probes, "joiner": joiner}

    def _probe(self, *, address: str) -> Probe:
        return Probe(address, self._notebook)


def probed_core(
    notebook: Notebook,
    topology: TopologyName = "proposing",
    replaced: tuple[str, ...] = (),
    **made_with: Any,
) -> SchedulerCore:
    core = SchedulerCore(topology=topology, **made_with)
    core.topology = ProbeTopology(topology, notebook, replaced)
    return core


def register(
    core: SchedulerCore | Simulator, callback: si.ResourceManagerCallback, rm_id: str = RM
) -> None:
    request = si.RegisterResourceManagerRequest(rm_id=rm_id, config=CONFIG)
    core.register_resource_manager(request, callback)


def add_nodes(core: SchedulerCore | Simulator, *names: str, rm_id: str = RM) -> None:
    size = si.Resource.of({"vcore": 10})
    create = si.ActionFromRM.CREATE
    infos = (si.NodeInfo(node_id=n, action=create, schedulable_resource=size) for n in names)
    core.update_node(si.NodeRequest(rm_id=rm_id, nodes=tuple(infos)))


def wait_until(condition: Callable[[], object]) -> None:
    """Look ever more seldom: to look may be a question to another process, which works meanwhile."""
    deadline, pause_s = time.monotonic() + PATIENCE_S, 0.001
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, 0.02)


class Lab(ABC):
    """A driver, with its probes."""

    core: SchedulerCore | Simulator

    def __init__(self, topology: TopologyName) -> None:
        self.notebook = Notebook()
        self.topology = topology

    def post(self, to: str, *messages: Message) -> None:
        with self.core._afterwards:
            for message in messages:
                self.core._post(to, message, "test")

    def open(self, address: str, callback: si.ResourceManagerCallback) -> None:
        self.core._open_callback(address, callback)

    @property
    @abstractmethod
    def now_ns(self) -> int: ...

    @abstractmethod
    def rest(self) -> None:
        """Run until nothing is under way."""

    @abstractmethod
    def run_until(self, condition: Callable[[], object]) -> None: ...

    @abstractmethod
    def hold(self, address: str) -> None: ...

    @abstractmethod
    def let_go(self) -> None: ...

    @abstractmethod
    def pass_time(self, until_ns: int) -> None:
        """Let the clock reach this moment; what is due then has been sent."""

    @abstractmethod
    def is_settled(self) -> bool: ...

    @abstractmethod
    def close(self) -> None: ...


class ThreadsLab(Lab):
    driver: CoreDriver = "threads"

    def __init__(self, topology: TopologyName) -> None:
        super().__init__(topology)
        self.clock = StandingClock(EPOCH_NS)
        self.core: SchedulerCore = probed_core(
            self.notebook, topology, clock=self.clock, driver=self.driver
        )
        self.core.start()

    @property
    def now_ns(self) -> int:
        return self.clock.now_ns()

    def rest(self) -> None:
        wait_until(self.core.is_settled)

    def run_until(self, condition: Callable[[], object]) -> None:
        # What is held holds up every machine.
        self.let_go()
        wait_until(condition)

    def hold(self, address: str) -> None:
        self.post(address, Hold())
        assert self.notebook.held.wait(PATIENCE_S)

    def let_go(self) -> None:
        self.notebook.let_go.set()

    def pass_time(self, until_ns: int) -> None:
        self.clock.move_to(until_ns)
        self.core.clock_was_moved()
        wait_until(lambda: (self.core.next_due_ns or until_ns + 1) > until_ns)

    def is_settled(self) -> bool:
        return self.core.is_settled()

    def close(self) -> None:
        self.let_go()
        self.core.stop(PATIENCE_S)


class DirectLab(ThreadsLab):
    """What is held holds up the thread that runs the machines, which is a caller's."""

    driver: CoreDriver = "direct"

    def hold(self, address: str) -> None:
        thread = threading.Thread(target=self.post, args=(address, Hold()), daemon=True)
        thread.start()
        assert self.notebook.held.wait(PATIENCE_S)


class SimulatorLab(Lab):
    def __init__(self, topology: TopologyName, seed: int) -> None:
        super().__init__(topology)
        self.core: Simulator = Simulator(
            ProbeTopology(topology, self.notebook), chooser=chooser_of(seed)
        )

    @property
    def now_ns(self) -> int:
        return self.core.now_ns

    def rest(self) -> None:
        self.core.settle()

    def run_until(self, condition: Callable[[], object]) -> None:
        while not condition():
            assert self.core.step(), "it did not come to pass"

    def hold(self, address: str) -> None:
        """Nothing is delivered while nobody settles."""

    def let_go(self) -> None:
        """As `hold`."""

    def pass_time(self, until_ns: int) -> None:
        self.core.advance(until_ns - self.core.now_ns)

    def is_settled(self) -> bool:
        return self.core.is_at_rest

    def close(self) -> None:
        """Nothing of it runs by itself."""


def has_refusals(core: SchedulerCore) -> bool:
    """Whether somebody was told a no that still holds."""
    proxy = core._actors.machines()["rm_proxy"]
    assert isinstance(proxy, RmProxy)
    return bool(proxy.questions.refused)
