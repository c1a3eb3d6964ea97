"""The books as lines for a terminal.

A line is a row of spans: text with the name of its style. So it can be cut to the width of the
terminal before it is painted. A line that wraps would spoil every redraw after it.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from yunikorn_actors.cli.demo.company import MILLI
from yunikorn_actors.cli.demo.totals import Books, NodeBook, NodeState, QueueBook

Span: TypeAlias = tuple[str, str]
Line: TypeAlias = tuple[Span, ...]

PLAIN: Final = ""
STYLES: Final = {"bold": "1", "dim": "2", "bar": "36", "busy": "33", "good": "32", "bad": "31"}

BAR_MAX: Final = 40
BAR_MIN: Final = 6


class Glyphs(Struct, frozen=True, kw_only=True):
    full: str
    empty: str
    levels: str
    """How full a node is, from nothing to everything."""


BLOCKS: Final = Glyphs(full="█", empty="░", levels="▁▁▂▃▄▅▆▇█")
ASCII: Final = Glyphs(full="#", empty=".", levels="0123456789")

_NODE_STYLES: Final = {NodeState.UP: "bar", NodeState.DRAINED: "busy", NodeState.LOST: "bad"}


def glyphs_for(encoding: str) -> Glyphs:
    """Return block characters if the terminal can show them."""
    try:
        (BLOCKS.full + BLOCKS.empty + BLOCKS.levels).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def picture(books: Books, now_s: float, width: int, glyphs: Glyphs) -> list[Line]:
    lines = [*_heading(books, now_s), *_queue_lines(books, width, glyphs), _nodes(books, glyphs)]
    return [_cut(line, width) for line in lines]


def painted(line: Line, *, colour: bool) -> str:
    return "".join(
        f"\x1b[{STYLES[style]}m{text}\x1b[0m" if colour and style else text for text, style in line
    )


def _cut(line: Line, width: int) -> Line:
    kept: list[Span] = []
    for text, style in line:
        kept.append((text[:width], style))
        width -= len(kept[-1][0])
    return tuple(kept)


def _heading(books: Books, now_s: float) -> Iterator[Line]:
    root = books.root
    yield (
        (f"{now_s:5.1f} s  ", "bold"),
        (f"applications {root.running:4} running  ", PLAIN),
        (f"{root.completed:4} of {books.expected} completed", "good"),
    )
    yield (
        (" " * 9, PLAIN),
        (f"tasks        {root.at_work:4} running  ", PLAIN),
        (f"{root.done:4} done  ", "good"),
        (f"{root.waiting:4} waiting", "busy"),
    )


def _queue_lines(books: Books, width: int, glyphs: Glyphs) -> Iterator[Line]:
    queues = tuple(books.queues.values())
    names = max(len(indented(queue)) for queue in queues)
    numbers = max(len(_numbers(queue)) for queue in queues)
    bar = _bar_size(width - names - numbers - len("  ") * 2)
    for queue in queues:
        yield (
            (f"{indented(queue):{names}}  ", PLAIN),
            *_bar(queue, bar, glyphs),
            (f"  {_numbers(queue)}" if bar else _numbers(queue), PLAIN),
            (_waiting(queue), "busy"),
        )


def indented(queue: QueueBook) -> str:
    return "  " * queue.depth + queue.name


def _numbers(queue: QueueBook) -> str:
    return f"{queue.used // MILLI:3}/{queue.room // MILLI:3} vcore"


def _waiting(queue: QueueBook) -> str:
    return f"  {queue.waiting:4} waiting" if queue.waiting else ""


def _bar_size(room: int) -> int:
    """Leave room for the words behind the bar, unless the bar would be too short."""
    beside_words = room - len("  9999 waiting")
    size = beside_words if beside_words >= BAR_MIN else room
    return min(size, BAR_MAX) if size >= BAR_MIN else 0


def _bar(queue: QueueBook, size: int, glyphs: Glyphs) -> tuple[Span, Span]:
    full = size * min(queue.used, queue.room) // queue.room
    return ((glyphs.full * full, "bar"), (glyphs.empty * (size - full), "dim"))


def _nodes(books: Books, glyphs: Glyphs) -> Line:
    """One character for each node: how full it is, or that it is gone."""
    signs = tuple(
        (f" {_node_sign(node, glyphs)}", _NODE_STYLES[node.state]) for node in books.nodes.values()
    )
    away = ", ".join(
        f"{id_} {node.state}" for id_, node in books.nodes.items() if node.state is not NodeState.UP
    )
    return (("nodes", PLAIN), *signs, (f"  {away}", "busy"))


def _node_sign(node: NodeBook, glyphs: Glyphs) -> str:
    if node.state is NodeState.LOST:
        return "x"
    return glyphs.levels[(len(glyphs.levels) - 1) * node.used // node.vcore]
