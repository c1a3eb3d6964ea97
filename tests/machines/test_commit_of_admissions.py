"""The check of an admission: the whole gang has to fit beside what is to come of the others."""

from collections.abc import Callable

import pytest
from written import LEAF, Written

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.machines.context.gangs import check_admission
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.gangs import awaits_admission
from yunikorn_actors.state.proposals import AdmitGang, Refusal

Change = Callable[[Written], object]


@pytest.fixture
def written() -> Written:
    """Two gangs of 4 in a leaf that may have 6; the first is admitted, and nothing of it placed."""
    written = Written()
    written.reconfigure(LEAF, max={"vcore": 6})
    written.node("n1", vcore=20)
    for name in ("first", "second"):
        written.add(name, placeholder_ask={"vcore": 4})
        written.ask(f"ph-{name}", name, vcore=4, placeholder=True, task_group="g")
    written.admit("first")
    return written


def _admission(written: Written) -> Refusal | None:
    second = written.application("second")
    return check_admission(
        written.state, AdmitGang(proposal_id=1, application_id="second", serial=second.serial)
    )


def _place(written: Written) -> None:
    written.allocate("ph-first", "n1", "first")


def _place_half(written: Written) -> None:
    """The other half has not been asked for yet."""
    written.replace("ph-first", "first", vcore=2, placeholder=True, task_group="g")
    _place(written)


def _run_without_placeholders(written: Written) -> None:
    written.move("first", ApplicationState.RUNNING)
    written.withdraw("ph-first", "first")


REFUSED: dict[str, Change] = {
    "the other is to be placed": lambda _: None,
    "half of it is placed, and the rest may come": _place_half,
    "it runs and a placeholder waits": lambda w: w.move("first", ApplicationState.RUNNING),
    "it has been placed": _place,
}
ADMITTED: dict[str, Change] = {
    "it runs and no placeholder waits": _run_without_placeholders,
    "its commitment lapsed": lambda w: w.lapse("first"),
    "the maximum was raised": lambda w: w.reconfigure(LEAF, max={"vcore": 8}),
    "the maximum is of another type": lambda w: w.reconfigure(LEAF, max={"memory": 1}),
    "there is no maximum": lambda w: w.reconfigure(LEAF),
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_there_is_no_room_beside_the_other(written: Written, change: Change) -> None:
    change(written)
    assert awaits_admission(written.application("second"))
    assert Refusal.GANG_HELD is _admission(written)


@pytest.mark.parametrize("change", ADMITTED.values(), ids=ADMITTED)
def test_there_is_room_for_all_of_it(written: Written, change: Change) -> None:
    change(written)
    assert _admission(written) is None


@pytest.mark.parametrize("most", [7, 8])
def test_the_limit_of_the_user_counts_too(written: Written, most: int) -> None:
    limit = LimitConfig(users=("bob",), max_resources={"vcore": most})
    written.reconfigure(LEAF, limits=(limit,))
    assert (Refusal.GANG_HELD if most < 8 else None) is _admission(written)


def test_a_gang_is_admitted_once(written: Written) -> None:
    written.reconfigure(LEAF)
    assert _admission(written) is None
    written.admit("second")
    assert Refusal.GANG_HELD is _admission(written)


def test_where_gangs_are_not_held_there_is_nothing_to_admit(written: Written) -> None:
    written.reconfigure(LEAF, properties={"gang.admission": "immediate"})
    assert not awaits_admission(written.application("second"))
    assert Refusal.GANG_HELD is _admission(written)
