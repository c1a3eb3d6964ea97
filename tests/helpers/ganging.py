"""A gang in a small cluster, a member that takes a placeholder's place, and who answers what.

The words of docs/reference/races.md: *same* and *other* say where the member goes. A swap to
another node comes about by a resource manager that refuses the placeholder's node to the member.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from picky import Picky
from support import APP, Lab

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.messages.scheduling import ApplicationTimerDue
from yunikorn_actors.planning.preemption.gang_choice import Gang
from yunikorn_actors.state.applications import Application
from yunikorn_actors.values.durations import SECOND

GROUP = "team"
TIMEOUT_S = 60
REPLACED = si.TerminationType.PLACEHOLDER_REPLACED
STOPPED = si.TerminationType.STOPPED_BY_RM
TIMED_OUT = si.TerminationType.TIMEOUT
PREEMPTED = si.TerminationType.PREEMPTED_BY_SCHEDULER

topologies = pytest.mark.parametrize("topology", TOPOLOGIES)
both_ways = pytest.mark.parametrize("crosses", [False, True], ids=["same", "other"])


class Manager(Picky):
    """Confirms nothing by itself, and hears of asks that are withdrawn."""

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        for gone in response.released_asks:
            self.heard.append(("withdrawn", gone.allocation_key, gone.termination_type.name))


def placeholders(number: int) -> list[str]:
    return [f"ph-{index}" for index in range(1, number + 1)]


def ask_placeholders(lab: Lab, *keys: str, vcore: int = 1, **fields: Any) -> None:
    lab.ask(*keys, vcore=vcore, task_group_name=GROUP, placeholder=True, **fields)


def ask_members(lab: Lab, *keys: str, vcore: int = 1, **fields: Any) -> None:
    lab.ask(*keys, vcore=vcore, task_group_name=GROUP, **fields)


def submit_gang(lab: Lab, vcore: int, *, style: str = "", **fields: Any) -> None:
    lab.submit(
        APP,
        placeholder_ask=si.Resource.of({"vcore": vcore}),
        gang_scheduling_style=style,
        execution_timeout_milli_seconds=TIMEOUT_S * 1000,
        **fields,
    )


def gang_lab(
    number: int = 1,
    *denied: tuple[str, str],
    vcore: int = 1,
    expected: int = 0,
    style: str = "",
    queue: str = "root.default",
    spare: int = 10,
    **made_with: Any,
) -> Lab:
    """The placeholders ph-1, ph-2 and so on stand on n1; n2 comes empty, with room to spare or not.

    A gang that expects more than it asks for stays incomplete.
    """
    lab = Lab(**{"rm": Manager(*denied), **made_with})
    lab.nodes(n1=10)
    submit_gang(lab, expected or number * vcore, style=style, queue=queue)
    ask_placeholders(lab, *placeholders(number), vcore=vcore)
    lab.settle()
    lab.nodes(n2=spare)
    lab.settle()
    assert placeholders(number) == lab.running()
    return lab


def swapping_lab(
    number: int = 1, *, crosses: bool, vcore: int = 1, real: int = 1, **made_with: Any
) -> Lab:
    """The member `real` takes the place of ph-1, which is asked back and not confirmed yet."""
    denied = [("real", "n1")] if crosses else []
    lab = gang_lab(number, *denied, vcore=vcore, **made_with)
    ask_members(lab, "real", vcore=real)
    lab.settle()
    assert_swapping(lab, crosses=crosses)
    return lab


def assert_swapping(lab: Lab, key: str = "real", *, crosses: bool) -> None:
    """What follows hits a swap that is under way."""
    found = [(swap.key, swap.crosses) for swap in application(lab).swaps.values()]
    assert [(key, crosses)] == found, "vacuous: no such swap is under way"


def swapped(lab: Lab) -> str:
    """Return the key of the placeholder whose swap is under way."""
    (uuid,) = application(lab).swaps
    return application(lab).allocations[uuid].spec.key


def confirm(lab: Lab, *keys: str, type_: si.TerminationType = REPLACED, app: str = APP) -> None:
    """Say that these have ended; only what the resource manager decides by itself is echoed."""
    if type_ is not STOPPED:
        running = lab.rm.running
        lab.rm.running = {uuid: key for uuid, key in running.items() if key not in keys}
    lab.release(*keys, app=app, termination_type=type_)


def preempt_for_daemon(lab: Lab, vcore: int) -> None:
    """Ask for room on n1 that only placeholders can give."""
    lab.submit("daemon")
    lab.ask(
        "d",
        vcore=vcore,
        app="daemon",
        tags={si.constants.TAG_REQUIRED_NODE: "n1"},
        preemption_policy=si.PreemptionPolicy(allow_preempt_other=True),
    )


def application(lab: Lab) -> Application:
    return lab.state.applications[APP]


def counts(lab: Lab) -> tuple[int, int, int]:
    """Return how many placeholders of the group came, were replaced, and timed out."""
    group = application(lab).task_groups[GROUP]
    return (group.count, group.replaced, group.timed_out)


def used(lab: Lab) -> dict[str, int]:
    """Return what each node, the leaf and the application itself have, in one type."""
    app = application(lab)
    books = {node.id: node.allocated for node in lab.state.nodes.values()}
    books |= {"leaf": app.queue.allocated, "real": app.allocated, "ph": app.placeholders}
    return {name: book.get("vcore", 0) for name, book in books.items()}


def told(lab: Lab, key: str) -> list[tuple[str, str]]:
    """Return all that the resource manager heard of one ask or allocation, in order."""
    return [(line[0], line[2]) for line in lab.rm.heard if line[1] == key]


def states(lab: Lab) -> list[str]:
    return [state for id_, state in lab.rm.told("state") if id_ == APP]


def gangs(seeds: int, number: int = 1, **made_with: Any) -> Iterator[Lab]:
    """One gang for each seed, from 1 on, as `labs` does."""
    for seed in range(1, seeds + 1):
        yield gang_lab(number, seed=seed, **made_with)


def fire_amid(lab: Lab, steps: int) -> None:
    """Let the gang's time be up when so many more messages have been handled."""
    for _ in range(steps):
        lab.simulator.step()
    lab.simulator.now_ns += TIMEOUT_S * SECOND
    lab.simulator._fire_due()


class Firings:
    """Notes which timers of applications fired, whether or not they were stale."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT and isinstance(delivery.message, ApplicationTimerDue):
            self.kinds.append(delivery.message.kind)


def priority_of(gang: Gang) -> int:
    """As it is written: the states that are drawn have no offsets and no fences."""
    return max(it.spec.priority for it in gang.victim.allocations)
