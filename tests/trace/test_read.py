"""Reading traces: whole ones, growing ones, damaged ones, and what is none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from recordings import header, records, rewrite, write

from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import Cause, Delivery, Message
from yunikorn_actors.messages.codec import UnknownMessage
from yunikorn_actors.messages.scheduling import RunCycle
from yunikorn_actors.trace.read import ITEMS_MAX, RECORD_MAX, TraceError, TraceReader

FIRST = RunCycle(partition="[rm-1]default", epoch=1)
SECOND = RunCycle(partition="[rm-1]other", epoch=2)


def read(path: Path) -> tuple[list[Message], bool]:
    """All messages that are there, and whether the trace is complete."""
    with TraceReader(path) as trace:
        return [delivery.message for delivery in trace], trace.footer is not None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def test_header_deliveries_and_footer(path: Path) -> None:
    write(path, FIRST, seed=7, topology="fused", start_ns=5)
    with TraceReader(path) as trace:
        known = trace.header
        deliveries = list(trace)
    assert (known.topology, known.driver, known.seed) == ("fused", "sim", 7)
    assert (known.instance, known.settings, known.start_ns) == ("core", Settings(), 5)
    cause, at_ns = Cause("rm_proxy", 2), 1_767_225_600_001_500_000
    assert deliveries == [Delivery("context", 1, "rm_proxy", cause, "node-1", at_ns, FIRST)]
    assert trace.footer is not None
    assert trace.footer.states == {}


def test_without_a_footer_a_trace_is_incomplete(path: Path) -> None:
    assert ([FIRST, SECOND], False) == read(write(path, FIRST, SECOND, whole=False))


def test_a_trace_that_is_cut_off_is_read_up_to_its_last_whole_record(path: Path) -> None:
    data = write(path, FIRST, SECOND, whole=False).read_bytes()
    start = len(write(path, whole=False).read_bytes())
    middle = len(write(path, FIRST, whole=False).read_bytes())
    for size in range(start, len(data)):
        path.write_bytes(data[:size])
        assert ([] if size < middle else [FIRST], False) == read(path)


def test_a_growing_trace_is_read_as_far_as_it_goes(path: Path) -> None:
    data = write(path, FIRST, SECOND, whole=False).read_bytes()
    path.write_bytes(data[:-1])
    with path.open("ab") as file:
        assert ([FIRST], False) == read(path)
        file.write(data[-1:])
        file.flush()
        assert ([FIRST, SECOND], False) == read(path)


# -- what is refused

NOT_A_TRACE = {
    "text": (b"partitions: []\n", "record 1 is not the header of a trace"),
    "another map": (msgspec.msgpack.encode({"a": 1}), "record 1 is not the header of a trace"),
    "nil": (b"\xc0", "record 1 is not the header of a trace"),
    "a reserved byte": (b"\xc1", "record 1 is not the header of a trace"),
    "no utf-8": (b"\xa1\xff", "record 1 is not the header of a trace"),
    "keys that are no text": (b"\x81\x01\x01", "record 1 is not the header of a trace"),
    "an extension": (b"\xd4\x05\x00", "record 1 is not the header of a trace"),
    "a huge list": (b"\xdd\xff\xff\xff\xff", "record 1 is not the header of a trace"),
    "too deep": (b"\x91" * 100_000, "record 1 is not the header of a trace"),
    "nothing": (b"", "has no header yet"),
    "half a header": (msgspec.msgpack.encode(header())[:-1], "has no header yet"),
}


@pytest.mark.parametrize("what", NOT_A_TRACE)
def test_a_file_that_is_no_trace_is_refused(path: Path, what: str) -> None:
    data, expected = NOT_A_TRACE[what]
    path.write_bytes(data)
    assert f"{path}: {expected}" in refusal(path)


MIB = 2**20
TOO_LARGE = {
    "in pieces that are small enough": b"\x81\xa1a\xdc\x00\x41"
    + (b"\xc6\x00\x10\x00\x00" + bytes(MIB)) * 65,
    "in one piece": b"\x81\xa1a\xdb\xff\xff\xff\xff" + bytes(65 * MIB),
}


@pytest.mark.parametrize("how", TOO_LARGE)
def test_a_record_beyond_the_limit_is_refused(path: Path, how: str) -> None:
    assert RECORD_MAX == 64 * MIB
    path.write_bytes(TOO_LARGE[how])
    assert f"{path}: record 1 is larger than 64 MiB; the file is damaged" in refusal(path)


def refusal(path: Path) -> str:
    with pytest.raises(TraceError) as caught:
        read(path)
    return str(caught.value)


def test_a_file_that_cannot_be_opened_is_named(path: Path) -> None:
    expected = (
        f"{path}: cannot be opened: No such file or directory; give the path of a recorded trace"
    )
    assert expected == refusal(path)
    assert "Is a directory" in refusal(path.parent)


def test_another_format_is_refused_with_its_number(path: Path) -> None:
    data = write(path, FIRST).read_bytes()
    path.write_bytes(data.replace(b"\xa6format\x02", b"\xa6format\x03", 1))
    expected = (
        f"{path}: record 1 says format 3, and this version reads formats 1 and 2; "
        "read it with the version that wrote it, or record the run again"
    )
    assert expected == refusal(path)


Damage = Callable[[list[dict[str, Any]]], object]
DAMAGED: dict[str, tuple[Damage, str]] = {
    "a header without settings": (
        lambda it: it[0].pop("settings"),
        "record 1 is not as recorded: Object missing required field `settings`",
    ),
    "a header with an unknown topology": (
        lambda it: it[0].update(topology="round"),
        "record 1 is not as recorded: Invalid enum value 'round' - at `$.topology`",
    ),
    "a header with more schedulers than there can be": (
        lambda it: it[0].update(topology="fused", schedulers=2),
        (
            "record 1 is not as recorded: fused has no room for several schedulers: there Context "
            'plans by itself, on the truth that it alone may change; take topology "proposing"'
        ),
    ),
    "a header that starts before time": (
        lambda it: it[0].update(start_ns=-1),
        "record 1 is not as recorded: Expected `int` >= 0 - at `$.start_ns`",
    ),
    "a delivery without a step": (
        lambda it: it[2].pop("step"),
        "record 3 is not as recorded: Object missing required field `step`",
    ),
    "a step that is a text": (
        lambda it: it[2].update(step="2"),
        "record 3 is not as recorded: Expected `int`, got `str` - at `$.step`",
    ),
    "a cause of one part": (
        lambda it: it[1].update(cause=["context"]),
        "record 2 is not as recorded: Expected `array` of length 2, got 1 - at `$.cause`",
    ),
    "a payload without its field": (
        lambda it: it[1].update(payload={"partition": "p"}),
        "record 2 is not as recorded: Object missing required field `epoch`",
    ),
    "a record without a kind": (
        lambda it: it[1].pop("record"),
        "record 2 is not as recorded: Object missing required field `record`",
    ),
    "a payload that is nested too deep": (
        lambda it: it[1].update(payload=msgspec.Raw(b"\x91" * 1100 + b"\x00")),
        "record 2 cannot be read: it is nested too deep",
    ),
    "a footer without states": (
        lambda it: it[3].pop("states"),
        "record 4 is not as recorded: Object missing required field `states`",
    ),
    "two headers": (lambda it: it.insert(1, it[0]), "record 2 is a second header"),
    "a record after the footer": (
        lambda it: it.append(it[1]),
        "record 5 follows the footer, which ends a trace",
    ),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_refused_with_the_number_of_the_record(path: Path, what: str) -> None:
    damage, expected = DAMAGED[what]
    changed = records(write(path, FIRST, SECOND))
    damage(changed)
    rewrite(path, changed)
    message = refusal(path)
    assert message.startswith(f"{path}: {expected}; ")


def test_keys_that_a_later_version_may_add_do_no_harm(path: Path) -> None:
    changed = records(write(path, FIRST))
    for record in changed:
        record["note"] = 1
    rewrite(path, changed)
    assert ([FIRST], True) == read(path)


# -- what a later version may have written


def test_records_of_unknown_kinds_are_passed_over_and_counted(path: Path) -> None:
    changed = records(write(path, FIRST, SECOND))
    changed.insert(2, {"record": "note", "text": "here"})
    rewrite(path, changed)
    with TraceReader(path) as trace:
        assert [FIRST, SECOND] == [delivery.message for delivery in trace]
    assert trace.unknown == {"note": 1}


def test_a_message_of_an_unknown_type_is_read_with_its_payload(path: Path) -> None:
    changed = records(write(path, FIRST, SECOND))
    changed[1].update(type="Go", payload={"far": 1})
    rewrite(path, changed)
    assert ([UnknownMessage(type="Go", payload={"far": 1}), SECOND], True) == read(path)


# -- limits


@pytest.mark.parametrize("where", ["in a payload", "beside it"])
def test_what_is_small_on_the_disk_and_huge_in_memory_is_refused(path: Path, where: str) -> None:
    changed = records(write(path, FIRST))
    maps = msgspec.Raw(b"\xdd" + (ITEMS_MAX + 1).to_bytes(4) + b"\x80" * (ITEMS_MAX + 1))
    if where == "in a payload":
        changed[1].update(payload={"state": maps})
    else:
        changed[1].update(note=maps)
    rewrite(path, changed)
    assert f"{path}: record 2 cannot be read: " in refusal(path)


def test_what_was_lost_is_counted(path: Path) -> None:
    changed = records(write(path, FIRST, SECOND))
    changed.insert(2, {"record": "gap", "messages": 3, "mailboxes": {"context": 3}})
    rewrite(path, changed)
    with TraceReader(path) as trace:
        assert [FIRST, SECOND] == [delivery.message for delivery in trace]
    assert trace.lost == 3
