"""Commands are given to a service of a run, to its dump and to its recording, and what they print is seen."""

from collections.abc import Iterable
from itertools import chain

import pytest
import ranges
from unspoilt import seen_unspoilt

from yunikorn_actors.cli import nodes, trace
from yunikorn_actors.lab.baseline import seen_in
from yunikorn_actors.lab.observed_run import Observation
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces import altered_victim_rules
from yunikorn_actors.lab.surfaces.command_outputs import _ASKED, _OF_FILES, called
from yunikorn_actors.planning.preemption import required_node

ROUTES, RECORDED = (24, 52, 56), (27,)
SAID = "what is said to "


def _said(sights: Iterable[Observation]) -> dict[str, list[tuple[int, str, str]]]:
    found: dict[str, list[tuple[int, str, str]]] = {}
    for sight in sights:
        if SAID in sight.what:
            found.setdefault(sight.what.partition(SAID)[2], []).append(sight.value)
    return found


def test_a_service_and_its_dump_are_asked_by_commands() -> None:
    said = _said(chain.from_iterable(map(seen_unspoilt, ROUTES)))
    assert len({*said} & {*_ASKED, *_OF_FILES}) > 20
    statuses = {status for answers in said.values() for status, _, _ in answers}
    assert {0, 1} <= statuses
    printed = "".join(out for answers in said.values() for _, out, _ in answers)
    assert "takes work" in printed
    assert '{"' in printed
    assert "/dev/shm" not in printed  # noqa: S108


def test_a_recording_is_asked_by_commands() -> None:
    said = _said(chain.from_iterable(map(seen_unspoilt, RECORDED)))
    assert len({it for it in said if it.startswith("trace ")}) > 2


def _is_seen(
    numbers: Iterable[int], place: object, name: str, spoilt: object, *, is_said: bool = False
) -> bool:
    """Whether something is different with this in one of the worlds, in what commands print or at all."""
    for number in numbers:
        before = seen_unspoilt(number)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(place, name, spoilt)
            after = seen_in(number)
        if (_said(before) != _said(after)) if is_said else before != after:
            return True
    return False


def test_a_mistake_in_the_words_has_the_width_of_the_terminal_that_is_drawn() -> None:
    status, out, errors = called(["nodes", "--nothing"], Draw(1))
    assert (status, out) == (2, "")
    assert "unrecognized arguments: --nothing" in errors


@pytest.mark.parametrize(
    ("numbers", "place", "name", "spoilt"),
    [
        (ROUTES, nodes, "_used", lambda *_: "1"),
        pytest.param(RECORDED, trace, "tell", lambda *_: None, marks=pytest.mark.slow),
    ],
    ids=["nodes", "trace"],
)
def test_what_a_command_prints_otherwise_is_seen(
    numbers: tuple[int, ...], place: object, name: str, spoilt: object
) -> None:
    assert _is_seen(numbers, place, name, spoilt, is_said=True)


@pytest.mark.parametrize(
    ("first", "place", "name", "spoilt"),
    [
        (13, altered_victim_rules, "keeps_guarantees", lambda *_: True),
        (405, required_node, "_order", lambda _, it, *__: it.uuid),
        (405, altered_victim_rules, "plan_of", lambda *_: {}),
        (405, altered_victim_rules, "may_give", lambda *_: True),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_a_rule_about_victims_that_says_something_else_is_seen(
    first: int, place: object, name: str, spoilt: object
) -> None:
    numbers = (5, 9, 13, 405, 409)
    assert _is_seen(ranges.from_(first, numbers), place, name, spoilt)
