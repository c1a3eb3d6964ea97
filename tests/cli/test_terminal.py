"""Tables fit a terminal and are whole for a pipe; JSON holds nothing that steers a terminal."""

import json

import pytest

from yunikorn_actors.cli.terminal import json_of
from yunikorn_actors.trace.tables import table

HEAD = ("name", "place", "count")
ROWS = [("a" * 40, "b" * 25, "7"), ("short", "\x1b[2J", "123")]


@pytest.mark.parametrize("width", [0, 200, 74, 60, 45])
def test_names_are_cut_until_a_table_fits(width: int) -> None:
    lines = list(table(HEAD, ROWS, 2, width))
    longest = max(map(len, lines))
    assert longest == 40 + 25 + 5 + 4 if width in {0, 74, 200} else longest == width
    assert [line.split()[-1] for line in lines] == ["count", "7", "123"]
    assert (width in {60, 45}) == ("..." in lines[1])
    assert r"\x1b[2J" in lines[2]


def test_a_terminal_that_is_too_narrow_wraps() -> None:
    lines = list(table(HEAD, ROWS, 2, 10))
    assert 12 + 12 + 5 + 4 == max(map(len, lines))


def test_a_table_without_columns_of_names_is_left_alone() -> None:
    assert ["count", "1234567"] == list(table(("count",), [("1234567",)], 1, 3))


@pytest.mark.parametrize(
    "text", ["plain", "gr\u00f6\u00dfe", "\x1b[2J\x7f", "\u202e\u009b", "\U000e0001"]
)
def test_json_says_the_same_without_steering(text: str) -> None:
    line = json_of({text: [text]})
    assert {text: [text]} == json.loads(line)
    assert line.isprintable()
