"""A recording as lines of JSON: nothing is lost, and every command reads it."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from recordings import in_service, records, rewrite, simulate, write

from yunikorn_actors.messages.codec import TraceDigest
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.trace.export.formats import jsonl
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.read import RECORD_MAX, TraceError, TraceReader
from yunikorn_actors.trace.records.source import COMMAS_MAX, LINE_MAX
from yunikorn_actors.trace.replay import replay
from yunikorn_actors.trace.text.show import ending

CYCLES = [RunCycle(partition=name, epoch=1) for name in "pqr"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def exported(path: Path, **wanted: Any) -> Path:
    out = path.with_suffix(".jsonl")
    with TraceReader(path) as trace:
        out.write_text(
            "".join(
                f"{line}\n" for line in jsonl(trace, DeliveryFilter(FilterOptions(**wanted), trace))
            )
        )
    return out


def digest(path: Path) -> str:
    hashed = TraceDigest()
    with TraceReader(path) as trace:
        for delivery in trace:
            hashed.add(delivery)
    return hashed.hex()


@pytest.mark.parametrize("run", [simulate, in_service])
def test_a_run_comes_back_as_it_was(path: Path, run: Any) -> None:
    out = exported(run(path))
    assert [json.loads(line) for line in out.read_text().splitlines()] == records(path)
    assert digest(out) == digest(path)
    with TraceReader(out) as trace:
        outcome = replay(trace)
    assert (outcome.difference, outcome.complete) == (None, True)
    assert outcome.states == len(records(path)[-1]["states"]) > 0


def test_what_this_version_does_not_know_is_kept(path: Path) -> None:
    write(path, *CYCLES)
    changed = records(path)
    changed[1]["payload"]["novelty"] = [1.5, None, "\x00"]
    changed.insert(2, {"record": "dream", "of": {"what": -1}})
    rewrite(path, changed)
    lines = exported(path).read_text().splitlines()
    assert [json.loads(line) for line in lines] == changed


def test_what_is_filtered_out_is_counted_and_cannot_be_replayed(path: Path) -> None:
    write(path, *CYCLES)
    out = exported(path, about=("q",))
    kinds = [json.loads(line)["record"] for line in out.read_text().splitlines()]
    assert kinds == ["header", "gap", "delivery", "gap", "footer"]
    with TraceReader(out) as trace:
        assert [delivery.stimulus for delivery in trace] == ["node-2"]
        assert ending(trace) == "complete; 2 messages were left out when it was exported"
    with TraceReader(out) as trace, pytest.raises(TraceError, match="needs every message"):
        replay(trace)


def test_a_gap_at_the_end_cannot_be_replayed(path: Path) -> None:
    """The messages before it can be, but what is compared at the end is of the whole run."""
    out = exported(simulate(path), stimulus=("register-1",))
    first = [line for line in out.read_text().splitlines() if '"register-1"' in line]
    lines = [
        out.read_text().splitlines()[0],
        first[0],
        '{"record":"gap","messages":3,"mailboxes":{}}',
    ]
    out.write_text("\n".join([*lines, out.read_text().splitlines()[-1]]))
    with TraceReader(out) as trace, pytest.raises(TraceError, match="3 messages are missing"):
        replay(trace)


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_is_cut_off_is_read_up_to_its_last_line(path: Path, *, packed: bool) -> None:
    text = exported(write(path, *CYCLES)).read_bytes()
    *lines, footer = text.splitlines()
    for tail, is_complete in ((b"", False), (footer[:-1], False), (footer, True), (b"\n\n", False)):
        data = b"\n".join([*lines, tail])
        path.write_bytes(zlib.compress(data) if packed else data)
        with TraceReader(path) as trace:
            assert len(list(trace)) == len(CYCLES)
            assert (trace.footer is not None) is is_complete


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{nonsense}\n", "record 2 cannot be read: JSON is malformed"),
        (b'{"record":"gap","messages":1e999,"mailboxes":{}}\n', "record 2 cannot be read: "),
        (b'{"record":"delivery"}\n', "record 2 is not as recorded: Object missing required field"),
        (b'{"record":"dream","of":%d}\n' % 2**64, "a number has more than 64 bits"),
        (b'{"record":"dream","of":"\xff"}\n', "record 2 cannot be read: "),
        (b'{"of":' + b"[" * 100_000 + b"\n", "record 2 cannot be read: "),
        (b'{"of":[' + b"0," * COMMAS_MAX + b"0,0]}\n", "has more than 4000000 items"),
        (b'{"of":"' + b" " * LINE_MAX + b'"}\n', "a line is larger than 64 MiB"),
    ],
    ids=["nonsense", "infinity", "lacks", "large number", "no text", "deep", "many", "large"],
)
def test_damage_is_named(path: Path, line: bytes, said: str) -> None:
    out = exported(write(path, *CYCLES))
    head, rest = out.read_bytes().split(b"\n", 1)
    out.write_bytes(head + b"\n" + line + rest)
    with TraceReader(out) as trace, pytest.raises(TraceError) as caught:
        list(trace)
    assert said in str(caught.value)


def test_other_json_is_no_trace(path: Path) -> None:
    path.write_text('{"name": "x"}\n')
    with pytest.raises(TraceError, match="record 1 is not the header of a trace"):
        TraceReader(path)


def test_the_limits_agree() -> None:
    assert LINE_MAX == RECORD_MAX
