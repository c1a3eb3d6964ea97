"""A recording as a sequence diagram of Mermaid."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import records, rewrite, write

from yunikorn_actors.messages.scheduling import FactsAppended, RunCycle
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.export.mermaid import MESSAGES, mermaid, plain
from yunikorn_actors.trace.export.timeline import TooMuchError
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.read import TraceReader

CYCLE = RunCycle(partition="[rm-1]p", epoch=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def diagram(path: Path, **wanted: Any) -> list[str]:
    with TraceReader(path) as trace:
        return list(mermaid(trace, DeliveryFilter(FilterOptions(**wanted), trace)))


def facts(*keys: str) -> FactsAppended:
    put = [f.ForeignAllocationPut(key=key, node_id="n", resource={}, at_ns=1) for key in keys]
    return FactsAppended(partition="p", epoch=1, rm_id="rm-1", first_revision=5, facts=tuple(put))


def test_a_diagram(path: Path) -> None:
    write(path, CYCLE, facts(*"abcdef"), facts(*"abcdef"))
    changed = records(path)
    changed[1].update(sender="gateway", mailbox="scheduler:[rm-1]p#1")
    changed[2].update(joined=True)
    rewrite(path, changed)
    assert diagram(path) == [
        "sequenceDiagram",
        "    participant p0 as outside",
        "    participant p1 as scheduler#58;#91;rm-1#93;p#35;1",
        "    participant p2 as rm_proxy",
        "    participant p3 as context",
        "    p0->>p1: RunCycle #91;rm-1#93;p",
        "    p2->>p3: FactsAppended p revisions 5 to 10 (joined)",
        f"    Note over p3: {'<br/>'.join(f'ForeignAllocationPut {key} #45;#62; n nothing' for key in 'abcd')}<br/>+2 more",
        "    p2->>p3: FactsAppended p revisions 5 to 10",
    ]


def test_more_than_it_takes_is_refused(path: Path) -> None:
    write(path, *[CYCLE] * MESSAGES.messages)
    assert len(diagram(path)) == MESSAGES.messages + 3
    write(path, *[CYCLE] * (MESSAGES.messages + 1))
    with pytest.raises(TooMuchError, match="takes 40 messages"):
        diagram(path)
    assert len(diagram(path, stimulus=("node-1",))) == 4


@given(
    text=st.text()
    | st.sampled_from(["end", "the END.", "a-->b", "a;b#c", "<img onerror=x>", "%%", "->>"])
)
def test_text_is_only_text(text: str) -> None:
    escaped = plain(text)
    rest = re.sub(r"#\d+;", "\0", escaped)
    assert re.fullmatch(r"[A-Za-z0-9 _.,/=+()\0-]*", rest)
    assert not re.search(r"\bend\b|--", rest, re.IGNORECASE)
    assert re.sub(r"#(\d+);", lambda code: chr(int(code[1])), escaped).strip() == text.strip()
