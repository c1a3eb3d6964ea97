"""Tables fit a terminal and are whole for a pipe; JSON holds nothing that steers a terminal."""

import json
from collections.abc import Callable

import pytest

from yunikorn_actors.cli.terminal import json_of, wrapped
from yunikorn_actors.recording.plain_text import table
from yunikorn_actors.recording.text_width import columns

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


def test_wide_characters_keep_columns_apart() -> None:
    rows = [("\u7bc0\u70b9-3", "a", "1"), ("n-1", "bb", "22"), ("e\u0301", "c", "3")]
    for width in (0, 40):
        lines = list(table(HEAD, rows, 2, width))
        assert len({columns(line) for line in lines}) == 1
    assert all(columns(it) <= 30 for it in table(HEAD, [("\u7bc0" * 40, "b", "1")], 2, 30))


@pytest.mark.parametrize(
    "name",
    [
        "root.the-department-of-the-north.team-with-a-long-name-{:02}".format,
        "application-{:02}-of-the-department-of-the-north".format,
        "{:02}-of-the-department-of-the-north".format,
    ],
)
def test_names_that_are_cut_can_be_told_apart(name: Callable[[int], str]) -> None:
    """Those of a cluster begin alike, or end alike, or both."""
    names = [*map(name, range(20)), name(0).partition(".team")[0]]
    shown = [it.split()[0] for it in table(HEAD, [(it, "b" * 30, "1") for it in names], 2, 40)]
    assert 1 + len({*names}) == len({*shown})
    assert all("..." in it for it in shown[1:])


def test_sentences_wrap_between_words() -> None:
    line = "    1. it asks for vcore 1000, \u7bc0\u70b9-3 has vcore 16 and-a-word-that-is-longer-than-all"
    parts = list(wrapped(line, 24))
    assert line.split() == " ".join(parts).split()
    assert all(columns(it) <= 24 or len(it.split()) == 1 for it in parts)
    assert parts[0].startswith("    1. ")
    assert all(it.startswith("      ") for it in parts[1:])
    assert [line] == list(wrapped(line, 200))
