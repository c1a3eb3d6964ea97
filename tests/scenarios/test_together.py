"""The order of steps that are delivered together."""

from collections.abc import Callable
from itertools import permutations
from random import Random

import pytest

from yunikorn_actors.scenario.document import parse_scenario
from yunikorn_actors.scenario.performer import ordered
from yunikorn_actors.scenario.step_structs import Together, WrittenStep

SEEDS = range(1, 300)


def together(*steps: str) -> tuple[WrittenStep, ...]:
    lines = "".join(f"    - {step}\n" for step in steps)
    step = parse_scenario(f"name: x\nsteps:\n  - together:\n{lines}", "x.yaml").steps[0].step
    assert isinstance(step, Together)
    return step.steps


def draws(seed: int) -> Callable[[], float]:
    return Random(seed).random  # noqa: S311 - a repeatable order, no secret


def orders(*steps: str) -> set[tuple[int, ...]]:
    """Return every order that some seed gives, as the numbers of the steps."""
    written = together(*steps)
    return {tuple(step.number for step in ordered(written, draws(seed))) for seed in SEEDS}


CONFIG = "config: {partitions: []}"


def test_seed_0_keeps_the_order_as_written() -> None:
    written = together(CONFIG, "remove_app: a", "remove_node: n")
    assert written == ordered(written, None)


def test_a_seed_gives_the_same_order_again() -> None:
    written = together(*(f"remove_app: a{number}" for number in range(9)))
    assert ordered(written, draws(7)) == ordered(written, draws(7))


def test_steps_about_different_things_come_in_every_order() -> None:
    steps = (CONFIG, "remove_app: a", "remove_node: n", "ask: {app: b, key: k}")
    assert set(permutations((1, 2, 3, 4))) == orders(*steps)


@pytest.mark.parametrize(
    "steps",
    [
        ("add_app: {id: a}", "remove_app: a"),
        ("add_app: {id: a}", "ask: {app: a, key: k}"),
        ("ask: {app: a, key: k}", "release_ask: {app: a}"),
        ("ask: {app: a, key: k, count: 2}", "release: {app: b, key: k-1}"),
        ("ask: {app: a, key: k}", "confirm: {app: b, key: k, type: TIMEOUT}"),
        ("confirm: {app: a, key: k, type: TIMEOUT}", "release_ask: {app: b, key: k}"),
        ("create_node: {id: n, count: 3}", "drain_node: n-2"),
        ("create_node: {ids: [m, n]}", "update_node: {id: n}"),
        ("undrain_node: n", "remove_node: n"),
        ("bind: {app: a, key: k, node: n}", "remove_node: n"),
        ("bind: {app: a, key: k, node: n}", "remove_app: a"),
        ("bind: {app: a, key: k, node: n}", "ask: {app: b, key: k}"),
        ("create_node: {id: n, allocations: [{key: k, app: a, resource: {}}]}", "remove_app: a"),
        ("create_node: {id: n, allocations: [{key: k, app: a, resource: {}}]}", "ask: {app: b, key: k}"),
    ],
)  # fmt: skip
def test_steps_about_the_same_thing_keep_their_order(steps: tuple[str, str]) -> None:
    assert {(1, 2)} == orders(*steps)
    assert {(1, 2, 3), (1, 3, 2), (3, 1, 2)} == orders(*steps, CONFIG)


@pytest.mark.parametrize(
    "steps",
    [
        ("ask: {app: a, key: k, count: 2}", "release: {app: b, key: k}"),
        ("ask: {app: a, key: n}", "remove_node: n"),
        ("remove_app: n", "remove_node: n"),
        ("release: {app: a}", "release: {app: b}"),
        ("confirm: all", "confirm: {app: a, key: k, type: TIMEOUT}"),
        ("predicate: allow", "raw: {call: update_node, request: {}}"),
    ],
)
def test_steps_that_share_nothing_move_freely(steps: tuple[str, str]) -> None:
    assert {(1, 2), (2, 1)} == orders(*steps)


def test_a_step_between_holds_back_what_is_tied_to_it() -> None:
    """The bind is about both, so the three keep their order although the ends share nothing."""
    steps = ("remove_app: a", "bind: {app: a, key: k, node: n}", "remove_node: n")
    assert {(1, 2, 3)} == orders(*steps)
