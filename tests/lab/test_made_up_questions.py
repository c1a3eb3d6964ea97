"""What is asked beside a world: proposals, placements, configurations, sums, files that came to harm."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import ranges
from unspoilt import seen_unspoilt

from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.restored_state import Entry
from yunikorn_actors.journal.writing import Journal
from yunikorn_actors.lab.baseline import seen_in
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces import drawn_proposals
from yunikorn_actors.lab.surfaces.drawn_arguments import calls, computed
from yunikorn_actors.lab.surfaces.journal_files import Damage
from yunikorn_actors.lab.surfaces.odd_configurations import read
from yunikorn_actors.lab.swarm.small_constants import SMALL, _places, made_small
from yunikorn_actors.machines.rm_proxy import rm_proxy
from yunikorn_actors.planning.model import nodes as node_order
from yunikorn_actors.state.proposals import Refusal
from yunikorn_actors.values import resource


def _seen(what: str, numbers: range) -> list[str]:
    sights = [sight for number in numbers for sight in seen_unspoilt(number)]
    return [str(it) for it in sights if it.what.startswith(what)]


KINDS = {
    "Allocate", "Reserve", "Unreserve", "AdmitGang", "Replace", "CancelPlaceholder", "Preempt", "together",
}  # fmt: skip


def test_context_is_asked_about_proposals_of_all_kinds_and_refuses_them_for_many_reasons() -> None:
    kinds, reasons, some_would_do = set[str](), set[str](), False
    for number in range(1, 81, 4):
        text = " ".join(_seen("what would be refused", range(number, number + 1)))
        kinds |= {*re.findall(r'"(\w+) (?:\w+)"', text)}
        reasons |= {*re.findall(r"[A-Z]+_[A-Z]+", text)} & {*Refusal}
        some_would_do |= '"Allocate None"' in text
        if kinds == KINDS and len(reasons) > 12 and some_would_do:
            return
    pytest.fail(f"{kinds ^ KINDS}, {reasons}, {some_would_do}")


@pytest.mark.parametrize("name", ranges.first(["check_preempt", "place", "check_cancel"], 1))
def test_a_check_that_says_something_else_is_seen(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {number: seen_unspoilt(number) for number in (1, 5)}
    monkeypatch.setattr(drawn_proposals, name, lambda *_, **__: Refusal.NODE_GONE)
    assert before != {number: seen_in(number) for number in (1, 5)}


def test_configurations_are_refused_in_many_ways_and_others_are_read() -> None:
    outcomes = [read(Draw(5, number)) for number in range(120)]
    refused = [text for what, value in outcomes if what.endswith("refused") for text in value]
    kinds = {re.sub(r"'.*?'|\d+|^line.*?: ", "_", text)[-60:] for text in refused}
    assert len(kinds) > 40
    assert 20 < sum(what.endswith("read") for what, _ in outcomes) < 60


def test_functions_are_called_by_the_types_of_their_arguments() -> None:
    names = {call.name for call in calls()}
    assert {"add", "fits_in", "component_wise_min", "parse_quantity", "pick", "fair_share",
            "has_room", "properties", "extra configuration", "allows"} <= names  # fmt: skip
    assert 50 < len(names)
    assert [*computed(Draw(5, 1))] == [*computed(Draw(5, 1))]


def test_a_sum_that_is_wrong_beyond_all_amounts_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [[*computed(Draw(5, number))] for number in range(40)]
    monkeypatch.setattr(resource, "INT64_MAX", 2**63)
    assert before != [[*computed(Draw(5, number))] for number in range(40)]


def test_bounds_are_small_for_a_while_wherever_their_names_were_imported_to() -> None:
    former = node_order.RUN_LENGTH
    seen = Counter[int]()
    for number in range(20):
        with made_small(Draw(1, number)):
            seen[node_order.RUN_LENGTH] += 1
    assert {former, *SMALL["planning.model.nodes"]["RUN_LENGTH"]} == seen.keys()
    with pytest.raises(ZeroDivisionError), made_small(Draw(1, 1)):
        raise ZeroDivisionError
    assert former == node_order.RUN_LENGTH
    for number in range(20):
        from yunikorn_actors.machines import slices  # noqa: PLC0415

        with made_small(Draw(1, number)):
            assert slices.LOOKED_AT_IN_ONE == rm_proxy.LOOKED_AT_IN_ONE


def test_a_module_with_a_former_name_gets_its_bounds_back(monkeypatch: pytest.MonkeyPatch) -> None:
    module, former = "yunikorn_actors.planning.model.nodes", node_order.RUN_LENGTH
    monkeypatch.setitem(sys.modules, f"{module}_before", sys.modules[module])
    _places.cache_clear()
    for number in range(8):
        with made_small(Draw(1, number)):
            pass
        assert former == node_order.RUN_LENGTH
    _places.cache_clear()


def _folder(path: Path) -> Folder:
    journal = Journal(str(path))
    for at_ns in (1, 2, 3):
        journal.append(Entry(at_ns=at_ns))
    journal.close()
    return Folder(str(path))


def test_files_that_come_to_harm_are_refused_and_whole_again(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    before = {it.name: it.read_bytes() for it in tmp_path.iterdir()}
    outcomes: list[str] = []
    for number in range(30):
        damage = Damage(Draw(1, number))
        damage.do(folder)
        outcomes += damage.outcomes
    assert before == {it.name: it.read_bytes() for it in tmp_path.iterdir()}
    assert str(tmp_path) not in " ".join(outcomes)
    assert 3 < len({re.sub(r"\d+", "_", it.partition(": ")[2])[:60] for it in outcomes})


def test_streams_and_dumps_are_seen() -> None:
    streams = " ".join(_seen("what the streams got", range(1, 3)))
    assert "schedulable" in streams
    assert "applications" in " ".join(_seen("what is made of a dump", range(1, 2)))
