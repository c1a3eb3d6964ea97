"""The messages that are wanted and all that led to them, as a graph for Graphviz.

An arrow leads from cause to effect; a dashed one from a message to the one that was handled
together with it, as what came of both has the last of them as its cause.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.trace.export.timeline import Limit, Timeline
from yunikorn_actors.trace.filters import DeliveryFilter
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.show import cut, place
from yunikorn_actors.trace.text.summary import message_summary

MESSAGES: Final = Limit("a graph", 500)
_LABEL_WIDTH: Final = 60


class _Node(NamedTuple):
    step: Cause
    cause: Cause
    joined_to: Cause | None
    label: str


def dot(trace: TraceReader, sieve: DeliveryFilter) -> Iterator[str]:
    nodes: dict[Cause, _Node] = {}
    wanted: dict[Cause, None] = {}
    for step in MESSAGES.of(trace, Timeline(trace.header).steps(trace, sieve)):
        node = _node(step.delivery)
        nodes[node.step] = node
        if step.is_wanted:
            wanted[node.step] = None
    slice_ = _with_what_led_there(nodes, wanted)
    yield "digraph trace {"
    yield "  node [shape=box, fontname=monospace]"
    for at, node in slice_.items():
        look = "" if at in wanted else ", style=dotted"
        yield f"  {quoted(place(at))} [label={quoted(node.label)}{look}]"
    for at, node in slice_.items():
        if node.cause in slice_:
            yield f"  {quoted(place(node.cause))} -> {quoted(place(at))}"
        if node.joined_to in slice_:
            yield f"  {quoted(place(node.joined_to))} -> {quoted(place(at))} [style=dashed]"
    yield "}"


def _node(delivery: Delivery) -> _Node:
    mailbox, step = delivery.mailbox, delivery.step
    kind = type_name(delivery.message)
    says = cut(printable(message_summary(delivery.message)), "", _LABEL_WIDTH).strip()
    label = "\n".join((printable(f"{mailbox}/{step}"), kind, *((says,) if says else ())))
    before = Cause(mailbox, step - 1) if delivery.joined else None
    return _Node(Cause(mailbox, step), delivery.cause, before, label)


def _with_what_led_there(
    nodes: dict[Cause, _Node], wanted: dict[Cause, None]
) -> dict[Cause, _Node]:
    """Return them in the order of the recording."""
    waiting, found = list(wanted), dict[Cause, None]()
    while waiting:
        at = waiting.pop()
        if at in nodes and at not in found:
            found[at] = None
            node = nodes[at]
            waiting.append(node.cause)
            if node.joined_to is not None:
                waiting.append(node.joined_to)
    return {at: node for at, node in nodes.items() if at in found}


def quoted(text: str) -> str:
    """Quote a text; within quotes a backslash begins an escape of its own, such as for the name."""
    lines = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return '"' + "\\n".join(lines) + '"'
