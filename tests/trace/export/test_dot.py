"""What led to what is wanted, as a graph."""

import re
from pathlib import Path
from typing import Any

import pytest
from recordings import records, rewrite, simulate, write

from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.trace.export.dot import MESSAGES, dot, quoted
from yunikorn_actors.trace.export.timeline import TooMuchError
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.read import TraceReader

CYCLE = RunCycle(partition="p", epoch=1)
EDGE = re.compile(r'  "(.*)" -> "(.*?)"( \[style=dashed\])?')
NODE = re.compile(r'  "(.*?)" \[label="(.*)"(, style=dotted)?\]')


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def graph(path: Path, **wanted: Any) -> tuple[dict[str, bool], list[tuple[str, ...]]]:
    """The nodes, and whether each is wanted; the edges."""
    with TraceReader(path) as trace:
        lines = list(dot(trace, DeliveryFilter(FilterOptions(**wanted), trace)))
    assert (lines[0], lines[-1]) == ("digraph trace {", "}")
    nodes = {it[1]: it[3] is None for it in map(NODE.fullmatch, lines) if it}
    edges = [it.groups("") for it in map(EDGE.fullmatch, lines) if it]
    assert len(nodes) + len(edges) == len(lines) - 3
    return nodes, edges


def test_all_that_led_to_a_message_is_there_and_nothing_else(path: Path) -> None:
    nodes, edges = graph(simulate(path), type=("RMNewAllocations",))
    causes = {
        f"{it['mailbox']}/{it['step']}": "/".join(map(str, it["cause"]))
        for it in records(path)
        if it["record"] == "delivery"
    }
    wanted = [
        f"{it['mailbox']}/{it['step']}"
        for it in records(path)
        if it.get("type") == "RMNewAllocations"
    ]
    expected = set()
    for at in wanted:
        step = at
        while step in causes:
            expected.add(step)
            step = causes[step]
    assert set(nodes) == expected
    assert [at for at, is_wanted in nodes.items() if is_wanted] == wanted
    assert {(start, end) for start, end, _ in edges} == {
        (causes[at], at) for at in expected if causes[at] in expected
    }


def test_what_was_handled_together_led_there_together(path: Path) -> None:
    write(path, *[CYCLE] * 4)
    changed = records(path)
    changed[2]["joined"] = changed[3]["joined"] = True
    changed[4].update(mailbox="rm_proxy", step=1, cause=["context", 3])
    rewrite(path, changed)
    nodes, edges = graph(path, mailbox=("rm_proxy",))
    assert nodes == {"context/1": False, "context/2": False, "context/3": False, "rm_proxy/1": True}
    assert sorted(edges) == [
        ("context/1", "context/2", " [style=dashed]"),
        ("context/2", "context/3", " [style=dashed]"),
        ("context/3", "rm_proxy/1", ""),
    ]


def test_more_than_it_takes_is_refused(path: Path) -> None:
    write(path, *[CYCLE] * (MESSAGES.messages + 1))
    with pytest.raises(TooMuchError, match="a graph takes 500 messages"):
        graph(path)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a", '"a"'),
        ('a"b', r'"a\"b"'),
        ("a\\", r'"a\\"'),
        ("\\N", r'"\\N"'),
        ("a\nb", r'"a\nb"'),
        ("\x1b", r'"\\x1b"'),
    ],
)
def test_a_text_stays_within_its_quotes(text: str, written: str) -> None:
    assert quoted(text) == written
