"""What a recording can be exported to: a name for each, and who writes it, line by line."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from yunikorn_actors.trace.export.dot import dot
from yunikorn_actors.trace.export.markdown import markdown
from yunikorn_actors.trace.export.mermaid import mermaid
from yunikorn_actors.trace.export.otlp import otlp
from yunikorn_actors.trace.export.perfetto import perfetto
from yunikorn_actors.trace.export.shiviz import shiviz
from yunikorn_actors.trace.filters import DeliveryFilter
from yunikorn_actors.trace.read import TraceError, TraceReader

# The recording as lines of JSON, one record on a line: every command reads this as well.
#
# Records stand there as they were written, whatever this version knows of them. What a filter
# leaves out is counted in a gap, so that nobody takes the rest for a whole run.


def jsonl(trace: TraceReader, sieve: DeliveryFilter) -> Iterator[str]:
    yield _line(trace, trace.raw_header)
    left_out: Counter[str] = Counter()
    for raw, delivery in trace.records():
        if delivery is not None and not sieve(delivery):
            left_out[delivery.mailbox] += 1
            continue
        if left_out:
            yield _gap(left_out)
            left_out.clear()
        yield _line(trace, raw)
    if left_out:
        yield _gap(left_out)


def _gap(left_out: Counter[str]) -> str:
    gap: dict[str, Any] = {"record": "gap", "messages": left_out.total(), "mailboxes": left_out}
    return msgspec.json.encode({**gap, "filtered": True}).decode()


def _line(trace: TraceReader, raw: bytes) -> str:
    try:
        return msgspec.json.encode(msgspec.msgpack.decode(raw)).decode()
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise TraceError(
            f"{trace.path}: record {trace.number} cannot be written as JSON: {error}; the file is "
            "damaged, record the run again"
        ) from error


FORMATS: Final[dict[str, Callable[[TraceReader, DeliveryFilter], Iterator[str]]]] = {
    "jsonl": jsonl,
    "perfetto": perfetto,
    "markdown": markdown,
    "shiviz": shiviz,
    "mermaid": mermaid,
    "dot": dot,
    "otlp": otlp,
}
