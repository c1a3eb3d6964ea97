"""Worlds about swaps, about who is asked for victims, and about policies with each method."""

from collections import Counter
from functools import cache

import pytest

from yunikorn_actors.lab.run_schedule import explore
from yunikorn_actors.lab.swarm.deciding_policies import POLICIES
from yunikorn_actors.lab.swarm.drawn import Drawn, drawn
from yunikorn_actors.lab.swarm.world_parts import ALL, UNKNOWN_TO_MODEL, Wanted
from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.predicates import CheckPreemptionPredicates
from yunikorn_actors.policies.places import METHODS
from yunikorn_actors.state import facts as f

NEW = ("one-swap", "asked-victims", "own-policies")
SWAPS = ("one-swap", "manual-confirmations", "releases", "lost-nodes", "drained-nodes")


def played(only: tuple[str, ...], runs: int = 12, seed: int = 3) -> list[tuple[Drawn, Delivery]]:
    found = []
    for number in range(1, runs + 1):
        run = drawn(seed, number, Wanted(only=only))
        outcome = explore(run.case, run.schedule(), run.checkers())
        assert outcome.ok, f"{number}: {outcome.violation}"
        found += [(run, it) for it in outcome.deliveries]
    return found


def facts_of(played: list[tuple[Drawn, Delivery]]) -> list[f.Fact]:
    return [fact for _, it in played for fact in getattr(it.message, "facts", ())]


def test_swaps_cross_nodes_and_are_given_up() -> None:
    facts = facts_of(played(SWAPS))
    crossing = [it for it in facts if isinstance(it, f.AskParked) and it.crosses]
    kinds = Counter(type(it) for it in facts)
    assert len(crossing) > 5
    assert kinds[f.AskUnparked] > 1
    assert kinds[f.AskReplaced] > 1, "a member comes again"


def test_resource_managers_are_asked_who_goes() -> None:
    asked = [
        it.message
        for _, it in played(
            ("asked-victims", "one-contest", "guarantees", "waits", "required-nodes")
        )
        if isinstance(it.message, CheckPreemptionPredicates)
    ]
    assert len(asked) > 5
    further = [it for it in asked if len(it.args.preempt_allocation_keys) > 1 + it.args.start_index]
    assert further


def test_each_method_of_a_policy_decides_somewhere() -> None:
    methods = {name for policy in POLICIES.values() for name in METHODS if hasattr(policy, name)}
    assert methods == METHODS.keys()
    run, _ = played(("own-policies", "guarantees", "waits", "contests", "devices"))[0]
    assert run.case.scenario.policies


@pytest.mark.slow
def test_no_policy_of_theirs_fails() -> None:
    facts = facts_of(played(("own-policies", "one-contest", "guarantees", "waits", "devices")))
    assert not [it for it in facts if isinstance(it, f.PolicyFailed)]


@cache
def _worlds() -> tuple[Drawn, ...]:
    return tuple(drawn(2, number, ALL) for number in range(1, 120))


@pytest.mark.parametrize("part", NEW)
def test_the_model_judges_none_of_these(part: str) -> None:
    assert part in UNKNOWN_TO_MODEL
    having = [run for run in _worlds() if part in run.parts]
    assert 3 < len(having) < 40
    assert not any(run.is_judged for run in having)
