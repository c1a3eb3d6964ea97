"""A resource manager that says anything, in any order, at any time, against every checker.

Whatever it did, the core is sound after each message; and when it has taken everything back and
time has passed, nothing is left (G29). The same moves lead `proposing` and `fused` to equal states
when each is settled before the next.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import ranges
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from moves import Move, scripts
from playing import Player
from support import settled

from yunikorn_actors.checks.health_checks import health_of
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import RM_PROXY

USUAL = 10
MANY = 1_000
SAME = 14
"""A seed with which everything that is expected below happens."""
LONGEST = 60
SEEDS = st.integers(0, 2**32 - 1)
BROKEN_ON_PURPOSE = {"Scheduling errors", "Failed nodes"}
"""Asks of applications that are not there, and nodes that were refused."""

EXPECTED = {
    *("InvalidRequest", "ConfigError", "Refused", "UnknownResourceManager"),
    *("lost proposal", "stale timer", "confirmed", "reserved", "given up", "preempted"),
    "swapped",
}
"""Without these the runs were too tame to show anything."""

pytestmark = pytest.mark.timeout(1800)
"""For a long run, and to make a run that failed as short as can be."""


def repeatable(
    examples: int, same: int = SAME
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The usual run is the same each time; a longer one is there to find what that does not."""
    drawn = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    return lambda test: drawn(seed(same)(test) if examples < MANY else test)


@ranges.examples(USUAL, MANY)
def test_everything_comes_to_an_end(examples: int) -> None:
    seen: Counter[str] = Counter()

    @repeatable(examples)
    @given(scripts(LONGEST), st.sampled_from(TOPOLOGIES), SEEDS, st.booleans())
    def play(script: list[Move], topology: TopologyName, number: int, at_once: bool) -> None:
        player = Player(topology, number, confirms_at_once=at_once)
        for move in script:
            player.play(move)
        player.take_everything_back()
        assert {} == player.leftovers()
        assert [] == player.simulator.callback_errors
        failing = [it.name for it in health_of(player.dump()).checks if not it.succeeded]
        assert BROKEN_ON_PURPOSE.issuperset(failing)
        seen.update(player.seen)
        seen.update({"lost proposal": player.races.refusals.total()})
        seen.update({"stale timer": player.races.stale_timers})
        seen.update({"reserved": player.kept.made, "given up": player.kept.dropped.total()})
        seen.update({"preempted": player.preempted()})
        seen.update({"swapped": player.kept.swapped})

    play()
    missing = sorted(EXPECTED - {what for what, times in seen.items() if times})
    assert [] == missing, f"vacuous: never seen: {missing}"


@ranges.examples(4, MANY)
def test_topologies_agree_when_each_move_is_settled(examples: int) -> None:
    decided = 0

    @repeatable(examples)
    @given(scripts(LONGEST), SEEDS)
    def play(script: list[Move], number: int) -> None:
        nonlocal decided
        proposing, fused = (
            Player("proposing", number, settles=True),
            Player("fused", number + 1, settles=True),
        )
        for move in script:
            proposing.play(move)
            fused.play(move)
            assert _states(proposing) == _states(fused), move
        decided += proposing.announced()

    play()
    assert decided > examples, "vacuous: hardly anything was allocated"


def _states(player: Player) -> dict[str, Any]:
    return {name: settled(partition.state) for name, partition in player.context.partitions.items()}


@ranges.examples(16, MANY)
def test_at_rest_rm_proxy_knows_all_that_is_asked_back(examples: int) -> None:
    """So each answer is recognised; and nothing is kept of what has ended otherwise."""
    known = 0

    @repeatable(examples, same=1)
    @given(scripts(LONGEST), st.sampled_from(TOPOLOGIES), SEEDS, st.booleans())
    def play(script: list[Move], topology: TopologyName, number: int, at_once: bool) -> None:
        nonlocal known
        player = Player(topology, number, confirms_at_once=at_once)
        for move in script:
            player.play(move)
            if move.what == "settle":
                known += _agree_on_asked_back(player)
        player.simulator.settle()
        known += _agree_on_asked_back(player)

    play()
    assert known > examples / 2, "vacuous: hardly anything was asked back"


def _agree_on_asked_back(player: Player) -> int:
    """Compare what RmProxy knows with the truth, and return how much that is."""
    proxy = player.simulator.machines[RM_PROXY]
    assert isinstance(proxy, RmProxy)
    count = 0
    for rm_id, deliveries in proxy.deliveries.items():
        own = (it for it in player.context.partitions.values() if it.rm_id == rm_id)
        apps = (app for partition in own for app in partition.state.applications.values())
        allocations = (it for app in apps for it in app.allocations.values())
        waiting = sorted(it.uuid for it in allocations if it.releasing is not None)
        assert waiting == sorted(deliveries.requested_back.uuids)
        count += len(waiting)
    return count
