"""A resource manager that ends what the core asks back, at once or when it is told to."""

from support import Lab, Recorder, facts_of

from yunikorn_actors import si
from yunikorn_actors.drivers.simulator.simulator import Checker, Simulator
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.state.facts import VictimMarked

PREEMPTED = si.TerminationType.PREEMPTED_BY_SCHEDULER
_BY_CORE = frozenset({si.TerminationType.TIMEOUT, PREEMPTED})


class Confirming(Recorder):
    lab: Lab

    def __init__(self, *, at_once: bool = True) -> None:
        super().__init__()
        self.at_once = at_once
        self.outstanding: list[si.AllocationRelease] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        # What the core asks back runs until it is confirmed.
        kept = dict(self.running)
        super().update_allocation(response)
        for item in response.released:
            if item.termination_type in _BY_CORE:
                self.running[item.uuid] = kept[item.uuid]
                self.outstanding.append(item)
        if self.at_once:
            self.confirm_all()

    def confirm_all(self) -> None:
        for item in self.outstanding:
            self.running.pop(item.uuid, None)
            releases = si.AllocationReleasesRequest(allocations_to_release=(item,))
            self.lab.request(releases=releases)
        self.outstanding.clear()


class Victims:
    """Remembers who had to go, in the order in which it was decided."""

    def __init__(self) -> None:
        self.marked: list[VictimMarked] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT:
            facts = facts_of(simulator, delivery)
            self.marked.extend(fact for fact in facts if isinstance(fact, VictimMarked))

    def keys(self) -> list[str]:
        return [fact.key for fact in self.marked]


def confirming_lab(
    config: str,
    *,
    seed: int = 0,
    topology: TopologyName = "proposing",
    at_once: bool = True,
    rm: Confirming | None = None,
    checkers: tuple[Checker, ...] = (),
    policies: Policies = NO_POLICIES,
    schedulers: int = 1,
) -> Lab:
    rm = rm or Confirming(at_once=at_once)
    lab = rm.lab = Lab(
        config=config, seed=seed, topology=topology, rm=rm, checkers=checkers, policies=policies,
        schedulers=schedulers,
    )  # fmt: skip
    return lab


def policy(*, willing: bool = True, pushy: bool = True) -> si.PreemptionPolicy:
    return si.PreemptionPolicy(allow_preempt_self=willing, allow_preempt_other=pushy)
