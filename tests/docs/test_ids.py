"""Races and invariants: each is defined once, what is named is defined, and a race has a test."""

import re
from collections.abc import Iterable
from pathlib import Path

from pages import REPOSITORY, faulty

from yunikorn_actors.checks.state_invariants import CHECKS

TESTS = REPOSITORY / "tests"
RACES = REPOSITORY / "docs/reference/races.md"
INVARIANTS = REPOSITORY / "docs/reference/invariants.md"


def defined_ids(text: str) -> list[str]:
    return re.findall(r"^\| ([RH]-[0-9]+|G[0-9]{2})\b", text, re.MULTILINE)


def undefined(named: Iterable[str], defined: Iterable[str]) -> list[str]:
    return sorted(set(named) - set(defined))


def _ids_in(text: str) -> list[str]:
    return re.findall(r"\b[RH]-[0-9]+\b|\bG[0-9]{2}\b", text)


def _all_defined() -> list[str]:
    return [*defined_ids(RACES.read_text("utf-8")), *defined_ids(INVARIANTS.read_text("utf-8"))]


def _sources() -> list[Path]:
    folders = ("yunikorn_actors", "tests", "benchmarks", "examples")
    kinds = ("*.py", "*.yaml")
    return [path for name in folders for kind in kinds for path in (REPOSITORY / name).rglob(kind)]


def test_every_id_in_code_and_tests_is_defined() -> None:
    named = [id_ for path in _sources() for id_ in _ids_in(path.read_text("utf-8"))]
    assert {"G01", "R-036"} <= set(named)
    assert [] == undefined(named, _all_defined())
    assert [] == undefined((id_ for id_, _ in CHECKS), _all_defined())


def test_every_id_in_the_pages_is_defined() -> None:
    defined = _all_defined()
    assert {} == faulty(lambda page: undefined(_ids_in(page.read_text("utf-8")), defined))


def test_each_id_is_defined_once_and_none_is_left_out() -> None:
    expected = [
        *(f"R-{number:03}" for number in range(1, 145)),
        *(f"H-{number:02}" for number in range(1, 34)),
        *(f"G{number:02}" for number in range(1, 34)),
    ]
    assert expected == _all_defined()


def test_an_id_without_definition_is_noticed() -> None:
    unknown = f"R-{999}"
    assert [unknown] == undefined(_ids_in(f"see {unknown} and R-036"), _all_defined())


def races_without_a_test(page: str, tests: str) -> list[str]:
    """Return the races that can happen here and that no test names, in its text or its name."""
    named = {*_ids_in(tests), *(id_.upper() for id_ in re.findall(r"_([rh][0-9]+)(?=_)", tests))}
    rows = re.findall(r"^\| ([RH]-[0-9]+)\b(.*)$", page, re.MULTILINE)
    return [
        id_
        for id_, text in rows
        if not {id_, id_.replace("-", "")} & named
        and not re.search("structure|a matter of the RM", text, re.IGNORECASE)
    ]


def test_every_race_has_a_test() -> None:
    files = [path for path in _sources() if TESTS in path.parents and path.parent != TESTS / "docs"]
    tests = "\n".join(f"{path.name}\n{path.read_text('utf-8')}" for path in files)
    assert [] == races_without_a_test(RACES.read_text("utf-8"), tests)


def test_a_race_without_a_test_is_noticed() -> None:
    page = "| R-001 | x | y |\n| R-002 | x | structure |\n| H-01 | x | y |\n| R-003 | x | y |"
    assert ["R-003"] == races_without_a_test(page, "def test_r001_x() -> None: H-01")
