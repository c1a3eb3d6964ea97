"""A recording as a page of Markdown."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import records, simulate, write

from yunikorn_actors.messages.scheduling import FactsAppended, RunCycle
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.export.markdown import markdown, plain
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.read import TraceReader


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a_b.trace"


def page(path: Path, **wanted: Any) -> list[str]:
    with TraceReader(path) as trace:
        return list(markdown(trace, DeliveryFilter(FilterOptions(**wanted), trace)))


def facts(*keys: str) -> FactsAppended:
    put = [
        f.ForeignAllocationPut(key=key, node_id="n1", resource={"vcore": 1}, at_ns=1)
        for key in keys
    ]
    return FactsAppended(partition="p", epoch=1, rm_id="rm-1", first_revision=5, facts=tuple(put))


def test_a_page(path: Path) -> None:
    write(path, RunCycle(partition="[rm-1]p", epoch=1), facts("a|*b*", "c"), seed=3)
    assert page(path, about=("a|*b*", "[rm-1]p")) == [
        "# a_b.trace",
        "",
        "proposing topology, driver sim, seed 3, core",
        "",
        "| number | ms | stimulus | from | to | message | what it says |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        r"| 1 | 1.500 | node-1 | rm_proxy/2 | context/1 | RunCycle | \[rm-1\]p with \[rm-1\]p |",
        r"| 2 | 3.000 | node-2 | rm_proxy/3 | context/2 | FactsAppended | p revisions 5 to 6 with a\|\*b\* |",
        r"|  |  |  |  |  | ForeignAllocationPut | a\|\*b\* -\> n1 vcore=1 |",
        "|  |  |  |  |  | and | 1 about others |",
        "",
        "complete",
    ]


def test_every_message_has_a_row_of_all_columns(path: Path) -> None:
    rows = [line for line in page(simulate(path)) if re.match(r"\| \d", line)]
    assert len(rows) == len(records(path)) - 2
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}


@given(text=st.text())
def test_text_comes_back_when_the_escapes_are_taken_out(text: str) -> None:
    escaped = plain(text)
    assert re.sub(r"\\(\W|_)", r"\1", escaped) == printable(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*<>|~\[\]]", escaped)
