"""The life of an application: every pair of a state and an event, in both kinds of leaves (R-134)."""

from itertools import product

import pytest
from support import APP, Lab

from yunikorn_actors.state.applications import (
    COUNTS_AS_RUNNING,
    FINISHED,
    SCHEDULABLE,
    TAKES_NO_ASKS,
    ApplicationEvent,
    ApplicationState,
    next_state,
)

S, E = ApplicationState, ApplicationEvent
PAIRS = tuple(product(S, E))

AFTER: dict[ApplicationEvent, dict[ApplicationState, ApplicationState]] = {
    E.REJECT: {S.NEW: S.REJECTED},
    E.RUN: {
        S.NEW: S.ACCEPTED,
        S.RESUMING: S.ACCEPTED,
        S.ACCEPTED: S.RUNNING,
        S.STARTING: S.RUNNING,
        S.COMPLETING: S.RUNNING,
    },
    E.COMPLETE: {
        S.ACCEPTED: S.COMPLETING,
        S.STARTING: S.COMPLETING,
        S.RUNNING: S.COMPLETING,
        S.COMPLETING: S.COMPLETED,
    },
    E.FAIL: {
        S.NEW: S.FAILING,
        S.ACCEPTED: S.FAILING,
        S.STARTING: S.FAILING,
        S.RUNNING: S.FAILING,
        S.FAILING: S.FAILED,
    },
    E.RESUME: {S.NEW: S.RESUMING, S.ACCEPTED: S.RESUMING},
    E.EXPIRE: {S.COMPLETED: S.EXPIRED, S.FAILED: S.EXPIRED, S.REJECTED: S.EXPIRED},
}


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_every_pair(state: ApplicationState, event: ApplicationEvent) -> None:
    expected = AFTER[event].get(state)
    assert expected is next_state(state, event, stateaware=False)


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_stateaware_differs_in_one_row(state: ApplicationState, event: ApplicationEvent) -> None:
    expected = AFTER[event].get(state)
    if (state, event) == (S.ACCEPTED, E.RUN):
        expected = S.STARTING
    assert expected is next_state(state, event, stateaware=True)


def test_groups_of_states() -> None:
    """A finished application takes nothing, schedules nothing and counts nowhere.

    One that is being resumed takes asks and schedules them when it is Accepted again.
    """
    assert SCHEDULABLE.isdisjoint(TAKES_NO_ASKS)
    assert FINISHED < TAKES_NO_ASKS
    assert COUNTS_AS_RUNNING < SCHEDULABLE
    assert set(S) - SCHEDULABLE - TAKES_NO_ASKS == {S.NEW, S.RESUMING}


def test_no_way_leads_back_from_the_end() -> None:
    for state, event in product(sorted(FINISHED), E):
        assert next_state(state, event, stateaware=False) in {None, S.EXPIRED}


# -- what the resource manager hears of it

STATEAWARE = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: "
    "[{name: default, properties: {application.sort.policy: stateaware}}]}]}]"
)


def _states(lab: Lab) -> list[str]:
    return [state for _, state in lab.rm.told("state")]


def test_a_whole_life() -> None:
    lab = Lab()
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    lab.ask("b")
    lab.settle()
    assert _states(lab) == ["Accepted", "Running"]
    lab.release("a", "b")
    lab.settle()
    assert _states(lab)[2:] == ["Completing"]
    lab.ask("c")
    lab.settle()
    assert _states(lab)[3:] == ["Running"]
    lab.release("c")
    lab.advance(29)
    assert _states(lab)[4:] == ["Completing"]
    lab.advance(1)
    assert _states(lab)[5:] == ["Completed"]
    assert {} == lab.state.applications


def test_starting_ends_with_the_second_allocation_or_after_five_minutes() -> None:
    for second_ask, wait_s in ((True, 0), (False, 300)):
        lab = Lab(config=STATEAWARE)
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.ask("a")
        lab.settle()
        assert _states(lab) == ["Accepted", "Starting"]
        assert lab.state.queues["root.default"].running_apps == 1
        if second_ask:
            lab.ask("b")
        lab.advance(wait_s)
        assert _states(lab) == ["Accepted", "Starting", "Running"]


def test_a_tag_skips_starting() -> None:
    lab = Lab(config=STATEAWARE)
    lab.submit(APP, tags={"application.stateaware.disable": "true"})
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    assert _states(lab) == ["Accepted", "Running"]
