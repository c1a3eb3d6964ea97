"""R-010, R-013 to R-016: a swap, a preemption and a timeout want the same placeholder.

The first one has it. The others send nothing, choose another one, or wait; and the confirmation of
the first ends exactly what it was for.
"""

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import pytest
import ranges
from ganging import (
    PREEMPTED,
    Firings,
    application,
    ask_members,
    confirm,
    counts,
    fire_amid,
    gang_lab,
    placeholders,
    preempt_for_daemon,
    swapped,
    told,
    topologies,
    used,
)
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.machines.topology import TopologyName

Preemptor: TypeAlias = Callable[[Lab, int], None]
seeded = ranges.seeds(150)
STEPS = 30
TAKER = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}, "
    "{name: taker, resources: {guaranteed: {vcore: 10m}}, properties: {preemption.delay: 1ms}}]}]}]"
)


def _preempt_for_guarantee(lab: Lab, vcore: int) -> None:
    policy = si.PreemptionPolicy(allow_preempt_other=True)
    lab.submit("daemon", queue="root.taker")
    lab.ask("d", vcore=vcore, app="daemon", preemption_policy=policy)
    lab.settle()
    lab.advance(1)


PREEMPTORS: dict[str, Preemptor] = {
    "guarantee": _preempt_for_guarantee,
    "required node": preempt_for_daemon,
}
by_both_rules = pytest.mark.parametrize("preempt", PREEMPTORS.values(), ids=PREEMPTORS)


def _asked_back(lab: Lab) -> dict[str, list[str]]:
    """Return why each placeholder was asked back, or ended by its resource manager."""
    told_of = {key: told(lab, key)[1:] for key in placeholders(2)}
    return {key: [why for _, why in lines] for key, lines in told_of.items() if lines}


@topologies
@by_both_rules
def test_r013_r015_a_placeholder_in_a_swap_is_no_victim(
    topology: TopologyName, preempt: Preemptor
) -> None:
    lab = gang_lab(2, vcore=5, spare=0, config=TAKER, topology=topology)
    ask_members(lab, "real", vcore=5)
    lab.settle()
    swapping = swapped(lab)
    preempt(lab, 5)
    lab.settle()
    (victim,) = set(placeholders(2)) - {swapping}
    expected = {swapping: ["PLACEHOLDER_REPLACED"], victim: ["PREEMPTED_BY_SCHEDULER"]}
    assert expected == _asked_back(lab), "vacuous: nothing was preempted"
    confirm(lab, victim, type_=PREEMPTED)
    confirm(lab, swapping)
    lab.settle()
    assert ["d", "real"] == lab.running()
    assert (2, 1, 1) == counts(lab)
    assert lab.leftovers() == {}


@topologies
@by_both_rules
def test_r013_the_only_one_is_in_a_swap(topology: TopologyName, preempt: Preemptor) -> None:
    lab = gang_lab(vcore=10, spare=0, config=TAKER, topology=topology)
    ask_members(lab, "real", vcore=10)
    lab.settle()
    preempt(lab, 5)
    lab.advance(1)
    assert ["d"] == lab.waiting(), "vacuous: nobody looked for a victim"
    assert [("new", "n1"), ("released", "PLACEHOLDER_REPLACED")] == told(lab, "ph-1")
    confirm(lab, "ph-1")
    lab.settle()
    assert [("new", "n1")] == told(lab, "real")[:1]


@topologies
@by_both_rules
def test_r010_r014_a_victim_is_not_swapped(topology: TopologyName, preempt: Preemptor) -> None:
    """Its confirmation has no echo; the member is placed plainly, elsewhere."""
    lab = gang_lab(vcore=10, spare=0, config=TAKER, topology=topology)
    preempt(lab, 10)
    lab.settle()
    assert {"ph-1": ["PREEMPTED_BY_SCHEDULER"]} == _asked_back(lab), "vacuous: no victim"
    ask_members(lab, "real", vcore=3)
    lab.settle()
    assert ({}, ["d", "real"]) == (application(lab).swaps, lab.waiting())
    lab.node("n2", si.ActionFromRM.UPDATE, 3)
    confirm(lab, "ph-1", type_=PREEMPTED)
    lab.settle()
    assert {"ph-1": ["PREEMPTED_BY_SCHEDULER"]} == _asked_back(lab)
    assert ["d", "real"] == lab.running()
    assert (1, 0, 1) == counts(lab)
    assert (10, 3, 3, 0) == tuple(used(lab)[name] for name in ("n1", "n2", "real", "ph"))
    assert lab.leftovers() == {}


@ranges.seeds(150, usual=50)
def test_r014_r015_a_swap_and_a_preemption_at_once(seeds: range) -> None:
    """Both asks come together; the placeholder serves one of them, the other decision is refused."""
    ends: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    for seed in seeds:
        lab = gang_lab(vcore=10, spare=3, seed=seed)
        if seed % 2:
            ask_members(lab, "real", vcore=3)
            preempt_for_daemon(lab, 10)
        else:
            preempt_for_daemon(lab, 10)
            ask_members(lab, "real", vcore=3)
        lab.settle()
        (why,) = _asked_back(lab)["ph-1"]
        ends[why] += 1
        refusals.update(lab.races.refusals)
        confirm(lab, "ph-1", type_=si.TerminationType[why])
        lab.settle()
        target = "n1" if why == "PLACEHOLDER_REPLACED" else "n2"
        assert ("new", target) == told(lab, "real")[0]
        assert lab.leftovers() == {}
    assert {"PLACEHOLDER_REPLACED", "PREEMPTED_BY_SCHEDULER"} == set(ends), (
        "vacuous: one always won"
    )
    assert {"PLACEHOLDER_GONE", "VICTIM_GONE"} <= set(refusals), "vacuous: they never met"


@pytest.mark.parametrize("seed", [6, 18])
def test_r014_a_placeholder_that_goes_is_offered_to_no_member_again(seed: int) -> None:
    """Its swap is refused, because it is a victim; two more of the group are still to be had."""
    lab = gang_lab(3, vcore=3, spare=3, seed=seed)
    preempt_for_daemon(lab, 4)
    ask_members(lab, "real-1", "real-2", "real-3", vcore=3)
    lab.settle()
    assert 1 == lab.races.refusals["PLACEHOLDER_GONE"], "vacuous if they never met"
    assert 2 == len(application(lab).swaps)


def _end_amid_timeout(lab: Lab, firings: Firings, seed: int) -> str:
    """The time of the gang is up somewhere on the way; return why ph-1 was asked back."""
    fire_amid(lab, seed % STEPS)
    lab.settle()
    assert ["placeholder"] == firings.kinds, "vacuous: the timer did not fire"
    (why,) = _asked_back(lab)["ph-1"]
    confirm(lab, "ph-1", type_=si.TerminationType[why])
    lab.settle()
    return why


@ranges.seeds(150, usual=50)
def test_r016_a_timeout_and_a_preemption_at_once(seeds: range) -> None:
    ends: Counter[str] = Counter()
    for seed in seeds:
        firings = Firings()
        lab = gang_lab(vcore=10, spare=0, seed=seed, checkers=(firings,))
        preempt_for_daemon(lab, 10)
        why = _end_amid_timeout(lab, firings, seed)
        ends[why] += 1
        assert ["d"] == lab.running()
        assert lab.leftovers() == {}
    assert {"TIMEOUT", "PREEMPTED_BY_SCHEDULER"} == set(ends), "vacuous: one of them always won"


@seeded
def test_r016_a_timeout_and_a_swap_at_once(seeds: range) -> None:
    ends: Counter[str] = Counter()
    for seed in seeds:
        firings = Firings()
        lab = gang_lab(seed=seed, checkers=(firings,))
        ask_members(lab, "real")
        why = _end_amid_timeout(lab, firings, seed)
        ends[why] += 1
        assert ["real"] == lab.running()
        assert ((1, 1, 0) if why == "PLACEHOLDER_REPLACED" else (1, 0, 1)) == counts(lab)
        assert lab.leftovers() == {}
    assert {"TIMEOUT", "PLACEHOLDER_REPLACED"} == set(ends), "vacuous: one of them always won"
