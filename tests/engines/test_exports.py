"""What is exported is taken by the programs that it is for, and they count what the recording has."""

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import blank_page
from perfetto_engine import engine_with
from recordings import in_service, records, simulate

from yunikorn_actors.cli import main
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

pytestmark = [pytest.mark.engines, pytest.mark.timeout(500)]

Run = Callable[[Path], Path]
BOTH = pytest.mark.parametrize("run", [simulate, in_service])
ID_BYTES = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def exported(path: Path, to: str, *options: str) -> Path:
    out = path.with_suffix(f".{to}")
    assert main(["trace", "export", str(path), "--to", to, "-o", str(out), *options]) == 0
    return out


def counts(path: Path) -> tuple[int, int]:
    """How many messages a recording has, and how many of them another one led to."""
    messages = [it for it in records(path) if it["record"] == "delivery"]
    steps = {(it["mailbox"], it["step"]) for it in messages}
    return len(messages), sum(1 for it in messages if tuple(it["cause"]) in steps)


@BOTH
def test_perfetto_takes_every_slice_and_every_arrow(path: Path, run: Run) -> None:
    messages, edges = counts(run(path))
    with engine_with(exported(path, "perfetto")) as engine:
        slices = "SELECT count(*) FROM slice WHERE category = 'handling'"
        assert engine.rows(slices) == [(str(messages),)]
        assert engine.rows("SELECT count(*) FROM flow") == [(str(edges),)]
        waiting = "SELECT count(*) > 0 FROM slice WHERE category = 'waiting'"
        assert engine.rows(waiting) == [(str(int(run is in_service)),)]
        assert engine.rows("SELECT count(*) > 0 FROM counter") == [("1",)]
        lost = "SELECT name, value FROM stats WHERE severity != 'info' AND value != 0"
        assert engine.rows(lost) == []


def in_base64(value: Any) -> Any:
    """Bytes are hex in OTLP, and base64 in the JSON of protobuf, which takes hex without a word."""
    if isinstance(value, list):
        return [in_base64(it) for it in value]
    if isinstance(value, dict):
        return {
            key: base64.b64encode(bytes.fromhex(it)).decode() if key in ID_BYTES else in_base64(it)
            for key, it in value.items()
        }
    return value


@BOTH
def test_opentelemetry_takes_every_span(path: Path, run: Run) -> None:
    trace_pb2 = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    messages, edges = counts(run(path))
    told = in_base64(json.loads(exported(path, "otlp").read_text()))
    data = json_format.ParseDict(told, trace_pb2.TracesData())
    spans = data.resource_spans[0].scope_spans[0].spans
    assert len(spans) == messages
    assert sum(1 for span in spans if span.parent_span_id) == edges
    assert {(len(span.trace_id), len(span.span_id)) for span in spans} == {(16, 8)}
    assert {len(span.parent_span_id) for span in spans} == {0, 8}
    assert {span.kind for span in spans} == {trace_pb2.Span.SPAN_KIND_CONSUMER}
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    # All comes back as it was written, so nothing in it was taken for something else.
    assert json_format.MessageToDict(data, use_integers_for_enums=True) == told


def test_graphviz_draws_every_message_and_every_arrow(path: Path) -> None:
    dot = shutil.which("dot")
    if dot is None:
        pytest.skip("there is no Graphviz here")
    messages, edges = counts(simulate(path))
    picture = exported(path, "dot")
    drawn = subprocess.run(
        [dot, "-Tplain", str(picture)], capture_output=True, check=True, text=True
    )
    kinds = [
        line.split()[0] for line in drawn.stdout.splitlines() if line[:5] in {"node ", "edge "}
    ]
    assert (kinds.count("node"), kinds.count("edge")) == (messages, edges)
    assert drawn.stderr == ""


@BOTH
def test_markdown_is_one_table(path: Path, run: Run) -> None:
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    messages, _ = counts(run(path))
    tokens = markdown.parse(exported(path, "markdown").read_text())
    assert [it.type for it in tokens].count("table_open") == 1
    cells = [it.content for it in tokens if it.type == "inline"]
    assert sum(1 for cell in cells if cell.isdecimal()) == messages


MERMAID = Path(sys.prefix, "node_modules/mermaid/dist/mermaid.min.js")
"""Where `npm install --prefix` puts it, of the environment that runs the tests."""
DRAW = """async (text) => {
  const { svg } = await mermaid.render("drawn", text);
  document.body.innerHTML = svg;
  const count = (what) => document.querySelectorAll(what).length;
  return [count(".messageText"), count(".noteText"), count("text.actor-box")];
}"""


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_mermaid_draws_every_message(path: Path, topology: TopologyName) -> None:
    if not MERMAID.exists():
        pytest.skip("mermaid is not installed here")
    simulate(path, topology)
    stimulus = next(it["stimulus"] for it in records(path)[1:] if it["type"] == "NodesRequested")
    text = exported(path, "mermaid", "--stimulus", stimulus).read_text()
    lines = [line.split() for line in text.splitlines()]
    messages = sum(1 for it in records(path) if it.get("stimulus") == stimulus)
    assert messages > 5
    notes = [it for it in lines if it[0] == "Note"]
    participants = [it for it in lines if it[0] == "participant"]
    with blank_page() as page:
        page.add_script_tag(path=MERMAID)
        drawn, noted, named = page.evaluate(DRAW, text)
    assert drawn == messages
    assert noted >= len(notes) > 0
    assert named == 2 * len(participants), "each stands above and below"
