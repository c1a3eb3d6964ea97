"""Whatever a resource manager says: each ask that waits at rest has a reason, and it adds up."""

from collections import Counter

import pytest
import ranges
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from moves import Move, scripts
from msgspec.structs import replace
from playing import Player

from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.planning import waiting_sums
from yunikorn_actors.planning.reasons import LOOKS_MAX, Cause, Obstacle, WaitingQuestion, Why
from yunikorn_actors.planning.why import waiting_counts as waiting
from yunikorn_actors.planning.why.explain import explain_all
from yunikorn_actors.planning.why.waiting_counts import count_waiting

USUAL = 6
ALL = 1_000
EXPECTED = {
    *(Cause.NO_NODE, Cause.CLUSTER_FULL, Cause.QUEUE_LIMIT, Cause.NODE_KEPT),
    *(Cause.GANG_WAITS, Cause.RM_PAUSED),
}

pytestmark = pytest.mark.timeout(1800)


def _explained(player: Player) -> list[Why]:
    """At rest nothing is next: it would have been placed."""
    told: list[Why] = []
    for partition in player.context.partitions.values():
        found = explain_all(player.planner(partition), ALL, player.simulator.now_ns)
        assert found.total == len(found.asks) == sum(found.causes.values())
        told.extend(found.asks)
    return told


def _counted_alike(player: Player) -> None:
    """What is counted part by part is what `why` says of each, without a look at the nodes."""
    for partition in player.context.partitions.values():
        planner, now_ns = player.planner(partition), player.simulator.now_ns
        each = explain_all(planner, ALL, now_ns)
        found = [(it.application_id, it.key, it.obstacle.cause) for it in each.asks]
        question = WaitingQuestion(by_cause=True, listed=ALL, explained=ALL, looks=LOOKS_MAX)
        total, causes, listed = 0, Counter[str](), list[tuple[str, str, Cause]]()
        explained: list[Why] = []
        is_all = False
        while not is_all:
            part = count_waiting(planner, question, now_ns)
            is_all, total = part.is_all, total + part.total
            question = replace(question, serial=part.serial, place=part.place)
            causes.update(part.causes)
            explained += part.explained
            listed += [(it.application_id, it.key, it.cause) for it in part.asks]
        assert (each.total, each.causes) == (total, dict(causes))
        assert sorted(found) == sorted(listed)
        assert each.asks == explained


FIRST = [
    *(Cause.RM_PAUSED, Cause.APP_STATE, Cause.BACKING_OFF, Cause.GANG_HELD, Cause.GANG_WAITS),
    *(Cause.STATEAWARE_BUSY, Cause.APP_LIMIT, Cause.QUEUE_LIMIT, Cause.USER_LIMIT),
    *(Cause.PREDICATES, Cause.CLUSTER_FULL, Cause.NO_NODE, Cause.NODE_KEPT),
]
"""As a program that grows a cluster wants it; with a node kept for it an ask has no other."""


def _summed_alike(player: Player, seen: Counter[Cause]) -> None:
    """What the planner has added up all the time is what a look at each ask finds.

    One for which a node is kept counts as the others of its size.
    """
    for partition in player.context.partitions.values():
        planner = player.planner(partition)
        expected: Counter[tuple[Cause, str, str]] = Counter()
        kept: Counter[tuple[str, str]] = Counter()
        nodes: dict[tuple[str, str], set[str]] = {}
        for why in explain_all(planner, ALL, player.simulator.now_ns).asks:
            record = planner.state.applications[why.application_id].asks[why.key]
            cause = min((it.cause for it in why.obstacles), key=[*FIRST, *Cause].index)
            # An ask of none of a type is of the size of one that does not name it.
            amounts = sorted((it, many) for it, many in record.spec.resource.items() if many)
            required = record.spec.required_node
            size = f"{amounts} {bool(required)} {record.spec.gpu_model}"
            if required:
                nodes.setdefault((why.queue, size), set()).add(required)
            if record.reserved:
                kept[why.queue, size] += record.remaining
            else:
                expected[cause, why.queue, size] += record.remaining
        found: Counter[tuple[Cause, str, str]] = Counter()
        named: dict[tuple[str, str], set[str]] = {}
        question, is_all, total = WaitingQuestion(sums=True), False, 0
        while not is_all:
            part = planner.waiting_sums.part(question)
            is_all, total = part.is_all, total + part.total
            question = replace(question, serial=part.serial, place=part.place)
            for it in part.sums:
                size = f"{sorted(it.size.items())} {bool(it.required_nodes)} {it.gpu_model}"
                found[it.cause, it.queue, size] += it.count
                assert list(it.required_nodes) == sorted(set(it.required_nodes))
                named.setdefault((it.queue, size), set()).update(it.required_nodes)
        assert nodes == {place: found for place, found in named.items() if found}
        assert total == found.total()
        assert expected <= found, f"{+expected} {found}"
        rest: Counter[tuple[str, str]] = Counter()
        for (_, queue, size), count in (found - expected).items():
            rest[queue, size] += count
        assert +kept == rest
        seen.update(it[0] for it in found)


def _check(obstacle: Obstacle) -> None:
    bounded = [kind for kind in obstacle.lacks if kind in obstacle.maximum]
    for kind in bounded:
        taken = obstacle.used[kind] + obstacle.promised.get(kind, 0)
        assert obstacle.lacks[kind] == obstacle.wanted[kind] - obstacle.maximum[kind] + taken
    if obstacle.never and bounded:
        assert any(obstacle.wanted[kind] > obstacle.maximum[kind] for kind in bounded)


@ranges.examples(USUAL, 1_000)
def test_each_ask_that_waits_has_a_reason(examples: int) -> None:
    seen: Counter[Cause] = Counter()
    summed: Counter[Cause] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @seed(1)
    @given(scripts(40), st.sampled_from(TOPOLOGIES), st.integers(0, 2**32 - 1))
    def play(script: list[Move], topology: TopologyName, number: int) -> None:
        player = Player(topology, number, settles=True)
        for move in script:
            player.play(move)
            _counted_alike(player)
            _summed_alike(player, summed)
            for why in _explained(player):
                assert why.report()
                assert why.obstacle.cause is not Cause.NEXT, (move, why)
                for obstacle in why.obstacles:
                    _check(obstacle)
                    seen[obstacle.cause] += 1

    with pytest.MonkeyPatch.context() as patched:
        # Several parts for a few asks.
        patched.setattr(waiting, "ASKS_MAX", 3)
        patched.setattr(waiting, "APPLICATIONS_MAX", 2)
        patched.setattr(waiting_sums, "KINDS_MAX", 2)
        patched.setattr(waiting_sums, "MARKS_MAX", 2)
        patched.setattr(waiting_sums, "SUMS_MAX", 2)
        play()
    missing = sorted((EXPECTED - seen.keys()) | (EXPECTED - {Cause.NODE_KEPT} - summed.keys()))
    assert [] == missing, f"vacuous: never seen: {missing}"
