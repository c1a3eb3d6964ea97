"""The workloads: a table of names, and a class for each kind of load.

`drive` sends the load and returns what was measured. All of it happens inside the measured time:
nothing is prepared before the clock starts but the cluster and its applications.
"""

import time
from abc import abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from math import ceil
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from benchmarks.cluster import NODE, NODES_TO_A_REQUEST, URGENT, Cluster
from benchmarks.failure import Stalled
from benchmarks.load import PREEMPTS, Load, Size, Timing
from yunikorn_actors import si

ASK = {"vcore": 500, "memory": 1 << 30, "pods": 1}
RUNNING = si.Resource.of(ASK)
GPU_SHARE = {"vcore": 2_000, "memory": 1 << 30, "pods": 1}
"""What belongs to one of the eight devices of a node."""
FRAGMENT = {"vcore": 5_000, "memory": 16 << 30, "pods": 1}
FRAGMENTS_TO_A_NODE = 3
ANSWER_S = 1.0
RELEASING_S = 60.0
QUARTERS = 4

Report = Callable[[], None]


class Outcome(Struct, frozen=True, kw_only=True):
    timing: Timing
    added: dict[str, float] = field(default_factory=dict)
    """Figures that only this kind of load has."""
    beside: tuple[Load, ...] = ()
    """Of other resource managers, to be checked as well."""


class Workload(Struct, frozen=True, kw_only=True):
    cluster: Cluster
    traced: bool = False

    @abstractmethod
    def drive(self, load: Load) -> Outcome: ...

    def ask(self, load: Load, name: str, total: int, size: Size) -> None:
        """Spread equal asks over the applications, one request for each."""
        share, rest = divmod(total, self.cluster.applications)
        for index, application_id in enumerate(self.cluster.application_ids()):
            count = share + (index < rest)
            if count:
                keys = [f"{application_id}-{name}-{number}" for number in range(count)]
                load.submit(application_id, keys, size)


class Flood(Workload, frozen=True, kw_only=True):
    """Every application asks for all it wants at once."""

    asks_each: int

    def drive(self, load: Load) -> Outcome:
        for application_id in self.cluster.application_ids():
            keys = [f"{application_id}-{number}" for number in range(self.asks_each)]
            load.submit(application_id, keys, ASK)
            load.receive_ready()
        load.receive_all()
        return Outcome(timing=load.timing())


class Interrupted(Flood, frozen=True, kw_only=True):
    """A flood, and now and then one ask of a queue with a higher priority, timed apart.

    A partition belongs to one resource manager, and priorities rank within it. So another resource
    manager has a partition of its own beside the flood, and shows how far one that asks for much
    holds the other up. Where there is none, the asks come from the resource manager of the flood,
    and have its partition's queue of a higher priority. One thread sends for both: what is timed is
    from the call to the callback, and each resource manager has its own callback.
    """

    other: Cluster | None
    every_s: float = 0.1

    def drive(self, load: Load) -> Outcome:
        urgent = load
        if self.other is not None:
            urgent = Load(load.core)
            urgent.set_up(self.other)
        interruption = Interruption(urgent, self.every_s)
        for application_id in self.cluster.application_ids():
            keys = [f"{application_id}-{number}" for number in range(self.asks_each)]
            load.submit(application_id, keys, ASK)
            load.receive_ready()
            interruption.go_on()
        while load.waiting:
            load.receive()
            interruption.go_on()
        timing = load.timing()
        urgent.receive_all()
        p50, p99 = replace(timing, latencies_s=interruption.latencies_s).latency_ms(50, 99)
        return Outcome(
            timing=timing,
            added={"urgent_p50_ms": p50, "urgent_p99_ms": p99},
            beside=() if urgent is load else (urgent,),
        )


class Interruption:
    """Asks for one more whenever it is time for it."""

    def __init__(self, load: Load, every_s: float) -> None:
        self.latencies_s = array("d")
        self._load = load
        self._every_s = every_s
        self._due = time.perf_counter()

    def go_on(self) -> None:
        if time.perf_counter() < self._due:
            return
        self._load.receive_ready()
        key = f"{URGENT}-{self._due}"
        self._load.submit(URGENT, (key,), ASK, apart=self.latencies_s)
        self._due = time.perf_counter() + self._every_s


class Churn(Workload, frozen=True, kw_only=True):
    """A full house in which each allocation that goes makes room for a new ask.

    What is held and what is outstanding are `running` together, so there is nothing to release just
    when that many asks are outstanding: then, and only then, the load waits.
    """

    running: int
    pairs: int

    def drive(self, load: Load) -> Outcome:
        self.ask(load, "first", self.running, ASK)
        load.receive_all()
        load.begin()
        rotation = cycle(self.cluster.application_ids())
        for number, application_id in enumerate(islice(rotation, self.pairs)):
            while not load.held:
                load.receive()
            load.release_oldest()
            load.submit(application_id, (f"{application_id}-next-{number}",), ASK)
        load.receive_all()
        timing = load.timing()
        return Outcome(timing=timing, added={"pairs_per_s": self.pairs / timing.wall_s})


class OneByOne(Workload, frozen=True, kw_only=True):
    """One ask at a time on an idle cluster."""

    rounds: int

    def drive(self, load: Load) -> Outcome:
        rotation = cycle(self.cluster.application_ids())
        for number, application_id in enumerate(islice(rotation, self.rounds)):
            load.submit(application_id, (f"{application_id}-{number}",), ASK)
            load.receive_all()
            load.release_oldest()
        return Outcome(timing=load.timing())


class Fragmented(Workload, frozen=True, kw_only=True):
    """A full house where each allocation that goes makes room for one of many that wait.

    What is older and larger waits too, for something that does not come: it must hold nobody up.
    """

    older: int = 0
    older_size: Size = field(default_factory=dict)
    waiting: int
    releases: int
    rest_s: float = 0.0
    """Between the asks and the first release."""

    def drive(self, load: Load) -> Outcome:
        self.ask(load, "first", FRAGMENTS_TO_A_NODE * self.cluster.nodes, FRAGMENT)
        load.receive_all()
        self.ask(load, "older", self.older, self.older_size)
        self.ask(load, "next", self.waiting, FRAGMENT)
        load.settle()
        time.sleep(self.rest_s)
        timing, share = self._release(load)
        load.settle()
        load.withdraw_all()
        return Outcome(timing=timing, added={"answered_share": share})

    def _release(self, load: Load) -> tuple[Timing, float]:
        began, cpu_began = time.perf_counter(), time.process_time()
        answers: list[float] = []
        released = 0
        while released < self.releases and time.perf_counter() - began < RELEASING_S:
            answer = load.answer_to_release(ANSWER_S)
            released += 1
            if answer is not None:
                answers.append(answer)
        if not answers:
            raise Stalled(f"nothing followed {released} releases")
        timing = Timing(
            wall_s=time.perf_counter() - began,
            cpu_s=time.process_time() - cpu_began,
            latencies_s=answers,
        )
        return timing, len(answers) / released


class Gangs(Workload, frozen=True, kw_only=True):
    """Every application is a gang: first all placeholders, then a member for each of them.

    The two phases are timed apart; what the core takes back is confirmed at once.
    """

    groups: int
    members: int
    """Of each group."""

    def drive(self, load: Load) -> Outcome:
        self._ask(load, "placeholder", placeholder=True)
        load.receive_all()
        placed = load.timing()
        load.settle()
        load.begin()
        self._ask(load, "member", placeholder=False)
        load.receive_all()
        swapped = load.timing()
        load.settle()
        load.forget_taken_back()
        added = {
            "placeholders_per_s": placed.allocations_per_s,
            "swaps_per_s": swapped.allocations_per_s,
        }
        return Outcome(timing=swapped, added=added)

    def _ask(self, load: Load, name: str, *, placeholder: bool) -> None:
        for id_ in self.cluster.application_ids():
            for group in range(self.groups):
                keys = [f"{id_}-{name}-{group}-{number}" for number in range(self.members)]
                task_group = f"group-{group}"
                load.submit(id_, keys, ASK, task_group_name=task_group, placeholder=placeholder)
            load.receive_ready()


class Takeover(Workload, frozen=True, kw_only=True):
    """A full house of work above its guarantee, and a queue that takes back what it is entitled to.

    The clock starts with the asks of the second leaf.
    """

    asks: int

    def drive(self, load: Load) -> Outcome:
        ids = self.cluster.application_ids()
        full = self.cluster.nodes * NODE["vcore"] // ASK["vcore"]
        _spread(load, ids[0::2], "first", full)
        load.receive_all()
        load.settle()
        load.begin()
        _spread(load, ids[1::2], "entitled", self.asks, preemption_policy=PREEMPTS)
        load.receive_all()
        timing = load.timing()
        load.settle()
        rate = len(load.taken_back) / timing.wall_s
        at_once = sum(latency_s <= 1.0 for latency_s in timing.latencies_s)
        load.forget_taken_back()
        return Outcome(
            timing=timing, added={"preemptions_per_s": rate, "served_in_1s": float(at_once)}
        )


class Return(Workload, frozen=True, kw_only=True):
    """A full house of hard gangs, and a queue that takes half of it back, with gangs as well.

    The clock starts with the placeholders of the second leaf. A gang goes whole, and one that
    claims has room for all of it or nobody goes.
    """

    gangs: int
    """In the first leaf; they fill all nodes."""
    claiming: int
    members: int

    def drive(self, load: Load) -> Outcome:
        ids = self.cluster.application_ids()
        running, claiming = ids[0::2][: self.gangs], ids[1::2][: self.claiming]
        for kind in ("placeholder", "member"):
            self._ask(load, running, kind)
            load.receive_all()
            load.settle()
        load.forget_taken_back()
        load.begin()
        self._ask(load, claiming, "placeholder", preemption_policy=PREEMPTS)
        load.receive_all()
        timing = load.timing()
        load.settle()
        gone = Counter(it.application_id for it in load.held if it.uuid in load.taken_back)
        broken = sum(count < self.members for count in gone.values())
        rate = gone.total() / timing.wall_s
        load.forget_taken_back()
        return Outcome(
            timing=timing,
            added={
                "preemptions_per_s": rate,
                "gangs_gone": float(len(gone)),
                "gangs_broken": float(broken),
            },
        )

    def _ask(self, load: Load, ids: list[str], kind: str, **shared: Any) -> None:  # noqa: ANN401
        for id_ in ids:
            keys = [f"{id_}-{kind}-{number}" for number in range(self.members)]
            shared |= {"task_group_name": "rank", "placeholder": kind == "placeholder"}
            load.submit(id_, keys, GPU_SHARE, **shared)
            load.receive_ready()


class Recovery(Workload, frozen=True, kw_only=True):
    """After a restart: all that runs is reported under its old UUIDs, one quarter after the other.

    It comes with its nodes, a hundred to a request, or by itself, one request for each application.
    """

    running: int

    def drive(self, load: Load) -> Outcome:
        if self.cluster.comes_later:
            reports, total = self._with_nodes(load), self.cluster.nodes / NODES_TO_A_REQUEST
        else:
            reports, total = self._by_itself(load), self.cluster.applications
        added = {}
        for number in range(1, QUARTERS + 1):
            began = time.process_time()
            for report in islice(reports, ceil(total / QUARTERS)):
                report()
            load.settle()
            added[f"quarter_{number}_cpu_s"] = time.process_time() - began
        return Outcome(timing=load.timing(), added=added)

    def _with_nodes(self, load: Load) -> Iterator[Report]:
        for request in self.cluster.node_requests(self._running_on):
            yield partial(load.report_nodes, request, ASK)

    def _by_itself(self, load: Load) -> Iterator[Report]:
        share = self.running // self.cluster.nodes
        names = [self.cluster.node_id(node) for node in range(self.cluster.nodes)]
        for first in range(self.cluster.applications):
            numbers = range(first, self.running, self.cluster.applications)
            running = tuple([self._allocation(it, names[it // share]) for it in numbers])
            yield partial(load.report, running, ASK)

    def _running_on(self, node: int) -> tuple[si.Allocation, ...]:
        share = self.running // self.cluster.nodes
        numbers, name = range(node * share, (node + 1) * share), self.cluster.node_id(node)
        return tuple([self._allocation(number, name) for number in numbers])

    def _allocation(self, number: int, node_id: str) -> si.Allocation:
        return si.Allocation(
            application_id=f"app-{number % self.cluster.applications}",
            allocation_key=f"running-{number}",
            uuid=f"old-{number}",
            resource_per_alloc=RUNNING,
            node_id=node_id,
        )


def _spread(
    load: Load,
    application_ids: list[str],
    name: str,
    total: int,
    **shared: Any,  # noqa: ANN401 - fields of an ask
) -> None:
    share, rest = divmod(total, len(application_ids))
    for index, id_ in enumerate(application_ids):
        keys = [f"{id_}-{name}-{number}" for number in range(share + (index < rest))]
        load.submit(id_, keys, ASK, **shared)
        load.receive_ready()


_TEN_LEAVES = Cluster(nodes=1_000, leaves=10, applications=100)
_LARGEST = Cluster(nodes=10_000, parents=10, leaves=10, applications=1_000)

_FRAGMENTED = Fragmented(cluster=_TEN_LEAVES, waiting=2_000, releases=1_000)

WORKLOADS: dict[str, Workload] = {
    "W1": Flood(cluster=Cluster(nodes=100, leaves=1, applications=10), asks_each=100),
    "W2": Flood(cluster=_TEN_LEAVES, asks_each=100),
    "W2-binpacking": Flood(cluster=replace(_TEN_LEAVES, node_order="binpacking"), asks_each=100),
    "W3": Flood(
        cluster=Cluster(nodes=5_000, parents=10, leaves=5, applications=500), asks_each=100
    ),
    "W4": Flood(cluster=_LARGEST, asks_each=100),
    "W5": Churn(cluster=_TEN_LEAVES, running=2_000, pairs=30_000),
    "W6": Gangs(
        cluster=replace(_TEN_LEAVES, placeholder_ask={name: 50 * n for name, n in ASK.items()}),
        groups=2,
        members=25,
    ),
    "W7a": _FRAGMENTED,
    "W7b": replace(_FRAGMENTED, older=10_000, older_size=FRAGMENT | {"vcore": 20_000}),
    "W7c": replace(_FRAGMENTED, older=10_000, older_size=FRAGMENT | {"vcore": 12_000}, rest_s=2.5),
    "W8": OneByOne(cluster=replace(_TEN_LEAVES, applications=10), rounds=1_000),
    "W10": Takeover(
        cluster=Cluster(nodes=1_000, leaves=2, applications=100, entitled_part=32), asks=1_000
    ),
    "W11": Takeover(
        cluster=Cluster(nodes=10, leaves=2, applications=10, entitled_part=2), asks=160
    ),
    "W15": Return(
        cluster=Cluster(
            nodes=200,
            leaves=2,
            applications=400,
            entitled_part=2,
            placeholder_ask={name: 8 * n for name, n in GPU_SHARE.items()},
        ),
        gangs=200,
        claiming=100,
        members=8,
    ),
    "W12": Recovery(cluster=replace(_LARGEST, comes_later=True), running=100_000),
    "W12-alone": Recovery(cluster=_LARGEST, running=100_000),
    "W13": Flood(
        cluster=Cluster(nodes=5_000, parents=20, leaves=50, applications=5_000, users=1_000),
        asks_each=20,
    ),
    "W14": Interrupted(
        cluster=_LARGEST,
        asks_each=100,
        other=Cluster(rm_id="rm-urgent", nodes=100, leaves=1, applications=0, is_urgent=True),
    ),
    "W14-priority": Interrupted(
        cluster=replace(_LARGEST, is_urgent=True), asks_each=100, other=None
    ),
    "W9": Flood(cluster=_TEN_LEAVES, asks_each=100, traced=True),
}
