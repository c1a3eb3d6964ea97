"""The ways of single events do not get longer, nor changes wider, than the page says."""

import re

from pages import REPOSITORY

from benchmarks.ways import CHANGES, files_naming, ways

WAITS = {"preemption"}
"""For a delay in real time: so it passes a cycle more or less."""
PAGE = REPOSITORY / "docs/explanation/performance.md"


def bounds(head: str) -> dict[str, tuple[int, ...]]:
    """Read the rows of the table on the page that begins so."""
    text = PAGE.read_text("utf-8")
    found = re.search(rf"^\| {head} \|.*\n\| ---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found is not None, f"{PAGE} has no table of {head}"
    rows = ([it.strip() for it in line.strip("|").split("|")] for line in found[1].splitlines())
    return {name: tuple(int(it.replace(",", "")) for it in figures) for name, *figures in rows}


def longer_than(allowed: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    found = {name: way[:4] for name, way in ways("proposing", "direct", turns=5)}
    assert allowed.keys() == found.keys()
    assert all(calls > 100 and messages for _, _, calls, messages in found.values()), "vacuous"
    return {
        name: way
        for name, way in found.items()
        if name not in WAITS
        and any(one > bound for one, bound in zip(way, allowed[name], strict=True))
    }


def test_no_way_is_longer_than_it_was() -> None:
    """A timer that comes due on a busy computer is no part of a way: it is not there twice."""
    allowed = bounds("way")
    longer = longer_than(allowed) and longer_than(allowed)
    assert {} == longer, f"longer than {allowed}: find what the event passes now"


def test_no_change_is_wider_than_it_was() -> None:
    found = {name: (files_naming(like),) for name, like in CHANGES.items()}
    allowed = bounds("change")
    assert allowed.keys() == found.keys()
    assert {} == {name: it for name, it in found.items() if it > allowed[name]}
    assert all(it > (0,) for it in found.values()), "vacuous: nothing has this name any more"
