"""A search through the orders in which things may happen to a gang: `python tests/searching.py`.

Two nodes, a gang of two or three placeholders and a plain application; around them everything that
may happen while releases are on their way: confirmations now, later, never, twice or with another
type, deletions, cancellations, new sizes, reports, nodes that go, drain and come back, timers at
any step, predicates that change their mind, applications that go and come back under their name. With `--preempt` a daemon set and a queue
below its guarantee want room as well.
Every message is checked, and in the end everything drains to zero. A run is a number, and the same
number is the same run; runs that delivered the same messages in the same order count once.
"""

import argparse
import hashlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from support import APP, CONFIG, Lab, Recorder, report

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.errors import NoReply
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.messages.base import Delivery

PLAIN = "plain"
NODES = ("n1", "n2")
GROUPS = ("a", "b", "c")
MEMBERS = ("m-a", "m-b", "m-c", "extra", "large")
TIMEOUT_S = 60
_T = si.TerminationType
TO_CONFIRM = (_T.TIMEOUT, _T.PREEMPTED_BY_SCHEDULER, _T.PLACEHOLDER_REPLACED)
TYPES = (_T.STOPPED_BY_RM, *TO_CONFIRM)
POLICIES = ("now", "later", "later", "later", "twice", "other type")


MAY_PREEMPT = si.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=True)
ENTITLED = "entitled"
SHARED = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}, "
    "{name: entitled, resources: {guaranteed: {vcore: 5m}}, properties: {preemption.delay: 1s}}]}]}]"
)


class Draw:
    """Choices; of Python's generator `random()` alone is the same in every version."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a repeatable run, no secret

    def number(self, below: int) -> int:
        return int(self._random.random() * below)

    def one_of(self, choices: Any) -> Any:
        return choices[self.number(len(choices))]


class Manager(Recorder):
    """Confirms as it was drawn, and changes its mind about nodes."""

    lab: Lab

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.draw = draw
        self.outstanding: list[si.AllocationRelease] = []
        self.answered: list[si.AllocationRelease] = []
        self.announced: dict[str, None] = {}
        self.refuses = False
        """Members may not run where their placeholders stand."""

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        refused = self.refuses and args.allocation_key in MEMBERS and args.node_id == "n1"
        return "not here" if refused else None

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        self.announced.update((item.uuid, None) for item in response.new)
        for item in response.released:
            if item.termination_type in TO_CONFIRM:
                self._answer(item)

    def _answer(self, item: si.AllocationRelease) -> None:
        policy = self.draw.one_of(POLICIES)
        if policy == "later":
            self.outstanding.append(item)
            return
        type_ = self.draw.one_of(TYPES) if policy == "other type" else item.termination_type
        for _ in range(2 if policy == "twice" else 1):
            self.confirm(item, type_)

    def confirm(self, item: si.AllocationRelease, type_: si.TerminationType) -> None:
        self.answered.append(item)
        self.lab.request(
            releases=si.AllocationReleasesRequest(
                allocations_to_release=(
                    si.AllocationRelease(
                        application_id=item.application_id,
                        uuid=item.uuid,
                        allocation_key=item.allocation_key,
                        termination_type=type_,
                    ),
                )
            )
        )

    def confirm_all(self) -> None:
        while self.outstanding:
            item = self.outstanding.pop(0)
            self.confirm(item, item.termination_type)


class Order:
    """What was delivered, in its order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        message = delivery.message
        said = f"{delivery.mailbox} {type(message).__name__}"
        facts = getattr(message, "facts", ())
        told = [type(fact).__name__ + getattr(fact, "key", "") for fact in facts]
        self._hash.update(f"{said} {told};".encode())

    def digest(self) -> bytes:
        return self._hash.digest()


class Run:
    def __init__(self, seed: int, *, preempts: bool = False, schedulers: int = 1) -> None:
        self.draw = draw = Draw(seed)
        self.manager = Manager(draw)
        self.order = Order()
        self.preempts = preempts
        topology = TOPOLOGIES[draw.number(2)]
        self.lab = Lab(
            seed=seed,
            topology="proposing" if schedulers > 1 else topology,
            schedulers=schedulers,
            config=SHARED if preempts else CONFIG,
            rm=self.manager,
            checkers=(self.order,),
        )
        self.manager.lab = self.lab
        self.size = 2 + draw.number(2)
        self.hard = bool(draw.number(2))

    def play(self) -> bytes:
        self._begin()
        actions = (*ACTIONS, *PREEMPTING) if self.preempts else ACTIONS
        for _ in range(4 + self.draw.number(9)):
            self.draw.one_of(actions)(self)
            self._go_on()
        self._end()
        return self.order.digest()

    def _begin(self) -> None:
        self.manager.refuses = bool(self.draw.number(2))
        self.lab.nodes(n1=6, n2=4)
        self.submit()
        self.lab.submit(PLAIN)
        self.lab.ask("p", app=PLAIN)
        if self.preempts:
            self.lab.submit(ENTITLED, queue="root.entitled")
        if self.draw.number(4):
            self.lab.settle()

    def _go_on(self) -> None:
        """Nothing, a few messages, or everything is handled before the next thing happens."""
        how = self.draw.number(4)
        if how == 0:
            self.lab.settle()
        for _ in range(how * how):
            self.lab.simulator.step()

    def _end(self) -> None:
        """With every release answered nobody is parked, and everything drains to zero."""
        self.lab.settle()
        while self.manager.outstanding:
            self.manager.confirm_all()
            self.lab.settle()
        parked = [app.swaps for app in self.lab.state.applications.values() if app.swaps]
        assert not parked, f"G11: parked at rest: {parked}"
        releasing = [
            item
            for app in self.lab.state.applications.values()
            for item in app.allocations.values()
            if item.releasing is not None
        ]
        assert not releasing, f"G29: unconfirmed at rest: {releasing}"
        untold = [
            uuid
            for app in self.lab.state.applications.values()
            for uuid in app.allocations
            if uuid not in self.manager.announced
        ]
        assert not untold, f"G16: never announced: {untold}"
        assert {} == self.lab.leftovers()

    # -- what may happen

    def submit(self) -> None:
        gang = si.Resource.of({"vcore": 2 * self.size})
        self.lab.submit(
            APP,
            placeholder_ask=gang,
            gang_scheduling_style="Hard" if self.hard else "Soft",
            execution_timeout_milli_seconds=TIMEOUT_S * 1000,
        )
        for group in GROUPS[: self.size]:
            self.lab.ask(f"ph-{group}", vcore=2, task_group_name=group, placeholder=True)

    def ask(self) -> None:
        """A member comes, or comes again with another size."""
        member = self.draw.one_of(MEMBERS)
        group = member.removeprefix("m-") if member.startswith("m-") else "a"
        vcore = 3 if member == "large" else 1 + self.draw.number(2)
        self.lab.ask(member, vcore=vcore, task_group_name=group)

    def confirm(self) -> None:
        waiting = self.manager.outstanding
        if waiting:
            item = waiting.pop(self.draw.number(len(waiting)))
            self.manager.confirm(item, item.termination_type)

    def confirm_otherwise(self) -> None:
        waiting = self.manager.outstanding
        if waiting:
            item = waiting.pop(self.draw.number(len(waiting)))
            self.manager.confirm(item, self.draw.one_of(TYPES))

    def confirm_again(self) -> None:
        if self.manager.answered:
            item = self.draw.one_of(self.manager.answered)
            self.manager.confirm(item, self.draw.one_of(TYPES))

    def release(self) -> None:
        running = list(self.manager.running.values())
        if running:
            key = self.draw.one_of(running)
            app = PLAIN if key == "p" else APP
            self.lab.release(key, app=app, termination_type=self.draw.one_of(TYPES))

    def release_member(self) -> None:
        self.lab.release(self.draw.one_of(MEMBERS), termination_type=_T.STOPPED_BY_RM)

    def release_all(self) -> None:
        self.lab.release("", termination_type=_T.STOPPED_BY_RM)

    def cancel(self) -> None:
        self.lab.withdraw(self.draw.one_of((*MEMBERS, "ph-a", "ph-b")))

    def bind(self) -> None:
        member = self.draw.one_of(MEMBERS)
        group = member.removeprefix("m-") if member.startswith("m-") else "a"
        node = self.draw.one_of(NODES)
        self.lab.report(report(member, node, 1 + self.draw.number(3), task_group_name=group))

    def resize(self) -> None:
        """A placeholder that runs is reported with another size."""
        running = [uuid for uuid, key in self.manager.running.items() if key.startswith("ph-")]
        if running:
            uuid = self.draw.one_of(running)
            key = self.manager.running[uuid]
            vcore = 1 + self.draw.number(3)
            group = key.removeprefix("ph-")
            item = report(key, "n1", vcore, uuid=uuid, task_group_name=group, placeholder=True)
            self.lab.report(item)

    def lose_node(self) -> None:
        self.lab.decommission(self.draw.one_of(NODES))

    def bring_node(self) -> None:
        self.lab.nodes(**{self.draw.one_of(NODES): 6})

    def drain(self) -> None:
        self.lab.node(self.draw.one_of(NODES), si.ActionFromRM.DRAIN_NODE)

    def open(self) -> None:
        self.lab.node(self.draw.one_of(NODES), si.ActionFromRM.DRAIN_TO_SCHEDULABLE)

    def change_mind(self) -> None:
        """Any request has the refusals forgotten."""
        self.manager.refuses = not self.manager.refuses
        self.lab.request()

    def wait(self) -> None:
        self.lab.let_timers_fire(self.draw.one_of((1, 16, 31, TIMEOUT_S + 1)))

    def wait_settled(self) -> None:
        self.lab.advance(self.draw.one_of((1, 16, 31, TIMEOUT_S + 1)))

    def remove(self) -> None:
        self.lab.remove(APP)

    def come_back(self) -> None:
        self.lab.remove(APP)
        self.submit()

    def plain(self) -> None:
        self.lab.ask(self.draw.one_of(("q", "r")), app=PLAIN, vcore=1 + self.draw.number(4))

    def demand(self) -> None:
        """A queue below its guarantee wants room that others use."""
        key = self.draw.one_of(("e-1", "e-2"))
        vcore = 1 + self.draw.number(4)
        self.lab.ask(key, app=ENTITLED, vcore=vcore, preemption_policy=MAY_PREEMPT)

    def place_daemon(self) -> None:
        node = self.draw.one_of(NODES)
        self.lab.ask(
            f"d-{node}",
            app=PLAIN,
            vcore=1 + self.draw.number(4),
            tags={si.constants.TAG_REQUIRED_NODE: node},
            preemption_policy=MAY_PREEMPT,
        )

    def stop_demanding(self) -> None:
        self.lab.withdraw(self.draw.one_of(("e-1", "e-2")), app=ENTITLED)
        self.lab.withdraw(self.draw.one_of(("d-n1", "d-n2")), app=PLAIN)


PREEMPTING: tuple[Callable[[Run], None], ...] = (
    *(Run.demand for _ in range(5)),
    *(Run.place_daemon for _ in range(4)),
    *(Run.stop_demanding for _ in range(2)),
    *(Run.wait_settled for _ in range(2)),
)
ACTIONS: tuple[Callable[[Run], None], ...] = (
    *(Run.ask for _ in range(6)),
    *(Run.confirm for _ in range(4)),
    Run.confirm_otherwise,
    Run.confirm_again,
    *(Run.release for _ in range(2)),
    Run.release_member,
    Run.release_all,
    *(Run.cancel for _ in range(2)),
    Run.bind,
    Run.resize,
    *(Run.lose_node for _ in range(2)),
    Run.bring_node,
    Run.drain,
    Run.open,
    *(Run.change_mind for _ in range(2)),
    *(Run.wait for _ in range(2)),
    Run.wait_settled,
    Run.remove,
    Run.come_back,
    Run.plain,
)


class Found(NamedTuple):
    orders: int
    runs: int
    broken: list[int]


def search(first: int, wanted: int, *, preempts: bool = False) -> Found:
    """Play runs until so many different orders were seen; tell of each that broke something."""
    seen: set[bytes] = set()
    number = first
    broken: list[int] = []
    while len(seen) + len(broken) < wanted:
        try:
            seen.add(Run(number, preempts=preempts).play())
        except (AssertionError, InvariantViolation, NoReply) as failure:
            sys.stderr.write(f"run {number}: {failure}\n")
            broken.append(number)
        number += 1
    return Found(orders=len(seen), runs=number - first, broken=broken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", type=int, default=200_000, help="different orders to see")
    parser.add_argument("--first", type=int, default=1, help="the number of the first run")
    parser.add_argument("--preempt", action="store_true", help="others want room as well")
    options = parser.parse_args()
    begun = time.monotonic()
    found = search(options.first, options.orders, preempts=options.preempt)
    took = time.monotonic() - begun
    sys.stdout.write(
        f"{found.orders} different orders in {found.runs} runs, {took:.0f} s, "
        f"{len(found.broken)} violations {found.broken or ''}\n"
    )
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
