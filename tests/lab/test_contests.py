"""Small partitions in which work has to go for a guarantee: all sets of victims are compared."""

from collections import Counter
from collections.abc import Iterator

import pytest

from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.oracles.judges import contests_drawn, judged_by
from yunikorn_actors.lab.oracles.walk_oracle import CONTEST, OF_A_WALK, ContestsBeside, walked
from yunikorn_actors.lab.run_schedule import explore
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces import guarantee_walk
from yunikorn_actors.lab.surfaces.forced_preemption_walk import walk_forced
from yunikorn_actors.lab.surfaces.guarantee_walk import Contest, walk_contest
from yunikorn_actors.lab.swarm.swarm_runs import Plan

COUNT = 60
TRIED = 200
WITH_CONTESTS = 1
"""A run beside which there are some."""


def _mistake(where: str, old: str, new: str) -> Mutant:
    return Mutant(id="", source="", wrong="", where=where, old=old, new=new)


MISTAKES = {
    "the important goes first": _mistake(
        "planning.preemption.gang_choice:loss_of", "max((gang.victim.importance", "-max((gang.victim.importance"
    ),
    "the most work is lost": _mistake(
        "planning.preemption.gang_choice:loss_of", "sum(gang.work", "-sum(gang.work"
    ),
    "opted out or not": _mistake(
        "planning.preemption.least_choice:loss_of", "opted_out += victim.order[0]", "opted_out += 0"
    ),
    "a budget never ends": _mistake(
        "planning.preemption.throttle:Throttle._is_due", "self.again_ns = min(self.again_ns, due_ns)", "pass"
    ),
    "a guarantee is undercut": _mistake(
        "planning.preemption.victim_rules:may_give", "if has >= least > has - size:", "if has >= least > has:"
    ),
    "a required node takes its own kind first": _mistake(
        "planning.preemption.required_node:_order", "part,\n        victim.priority", "-part,\n        victim.priority"
    ),
    "a required node takes the important": _mistake(
        "planning.preemption.required_node:may_go_along", "<= spec.priority", "<= spec.priority + 1"
    ),
    "a quota takes too much": _mistake(
        "planning.preemption.quota:plan_of", "used.get(kind, 0) - size,", "used.get(kind, 0) - size + 1,"
    ),
    "a fence of priorities is not seen": _mistake(
        "config.properties:QueueProperties.priority_outside",
        "self.priority_offset if self.priority_fence else", "",
    ),
}  # fmt: skip


def _faults(count: int) -> Iterator[str]:
    for seed in range(count):
        yield from walked(CONTEST, seed)


def test_what_goes_costs_least() -> None:
    seen = Counter[str]()
    for seed in range(COUNT):
        contest = Contest(Draw(seed))
        seen["of gangs"] += contest.is_gang
        for what, value, faults in walk_contest(Draw(seed)):
            assert not faults, f"seed {seed}"
            if what.startswith("goes") and value[0]:
                seen["goes"] += 1
                seen["later"] += what != "goes after 0 s"
                seen["placed"] += bool(value[1])
    assert seen["goes"] > COUNT / 3, "vacuous: hardly anything has to go"
    assert seen["later"] > COUNT / 12, "vacuous: no budget and no cooldown ends"
    assert seen["placed"] > COUNT / 3, "vacuous: nothing uses the room"
    assert COUNT / 4 < seen["of gangs"] < COUNT * 3 / 4


def test_for_a_node_and_a_quota_goes_what_has_to() -> None:
    seen = Counter[str]()
    for seed in range(COUNT):
        for what, gone, faults in walk_forced(Draw(seed)):
            assert not faults, f"seed {seed}: {what}"
            kind = "node" if "requires" in what else "quota" if "too much" in what else ""
            seen[kind] += bool(gone)
    assert min(seen["node"], seen["quota"]) > COUNT / 6, "vacuous: hardly anything has to go"


@pytest.mark.slow
def test_what_goes_costs_least_in_many_more() -> None:
    assert [] == [*_faults(2000)]


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_of_the_choice_is_found(mistake: Mutant) -> None:
    with mistake.applied():
        assert next(_faults(TRIED), ""), "no contest is wrong with it"


def test_contests_stand_beside_some_runs() -> None:
    judges = [Plan(seed=1).drawn(number).judges for number in range(1, 13)]
    named = [word for words in judges for word in words if word.startswith("contests ")]
    assert len(named) == 2
    assert any(isinstance(it, ContestsBeside) for it in judged_by(named))
    assert contests_drawn(3, 4) == "contests 3/4"


def test_a_fault_in_one_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarantee_walk, "faults_of", lambda *_: ["wrong"])
    run = Plan(seed=1).drawn(WITH_CONTESTS)
    outcome = explore(run.case, run.schedule(), run.checkers())
    assert outcome.violation is not None
    assert outcome.violation.kind == f"{OF_A_WALK}, {CONTEST}"
