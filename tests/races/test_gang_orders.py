"""A part of the search through the orders around a gang; all of it is a command.

Each order is checked after every message and drains to zero; that the orders differ, and that what
they are about happened in them, is asserted here.
"""

import pytest
from searching import Run, search

ORDERS = 40


@pytest.mark.parametrize("preempts", [False, True], ids=["gangs", "with preemption"])
def test_no_order_breaks_anything(preempts: bool) -> None:
    found = search(1, ORDERS, preempts=preempts)
    assert ([], ORDERS) == (found.broken, found.orders)
    assert found.runs < 2 * ORDERS


@pytest.mark.parametrize("preempts", [False, True], ids=["gangs", "with preemption"])
def test_the_orders_are_about_swaps(preempts: bool) -> None:
    asked_back: dict[str, int] = {}
    for seed in range(1, 60):
        run = Run(seed, preempts=preempts)
        run.play()
        for _, type_ in run.manager.told("released"):
            asked_back[type_] = asked_back.get(type_, 0) + 1
    wanted = {"PLACEHOLDER_REPLACED", "TIMEOUT", "STOPPED_BY_RM"}
    assert wanted | ({"PREEMPTED_BY_SCHEDULER"} if preempts else set()) <= asked_back.keys()
    assert asked_back["PLACEHOLDER_REPLACED"] >= 20, "vacuous: hardly a swap began"
