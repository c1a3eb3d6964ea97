"""What a recording can be exported to: a name for each, and who writes it, line by line."""

from collections.abc import Callable, Iterator
from typing import Final

from yunikorn_actors.trace.export.dot import dot
from yunikorn_actors.trace.export.jsonl import jsonl
from yunikorn_actors.trace.export.markdown import markdown
from yunikorn_actors.trace.export.mermaid import mermaid
from yunikorn_actors.trace.export.otlp import otlp
from yunikorn_actors.trace.export.perfetto import perfetto
from yunikorn_actors.trace.export.shiviz import shiviz
from yunikorn_actors.trace.filters import DeliveryFilter
from yunikorn_actors.trace.read import TraceReader

FORMATS: Final[dict[str, Callable[[TraceReader, DeliveryFilter], Iterator[str]]]] = {
    "jsonl": jsonl,
    "perfetto": perfetto,
    "markdown": markdown,
    "shiviz": shiviz,
    "mermaid": mermaid,
    "dot": dot,
    "otlp": otlp,
}
