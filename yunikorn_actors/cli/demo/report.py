"""The table at the end. A parent counts all below it, so all columns but the peak add up."""

from typing import Final

from yunikorn_actors.cli.demo.company import MILLI
from yunikorn_actors.cli.demo.picture import indented
from yunikorn_actors.cli.demo.totals import Books, QueueBook

_HEADS: Final = ("apps", "tasks", "peak vcore", "max", "mean wait")
_GAP: Final = "  "


def report(books: Books) -> list[str]:
    queues = tuple(books.queues.values())
    rows = [_HEADS, *(_cells(queue) for queue in queues)]
    names = ["queue", *(indented(queue) for queue in queues)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    left = max(len(name) for name in names)
    return [
        _GAP.join(
            [f"{name:{left}}", *(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True))]
        )
        for name, row in zip(names, rows, strict=True)
    ]


def _cells(queue: QueueBook) -> tuple[str, ...]:
    return (
        str(queue.applications),
        str(queue.tasks),
        str(queue.peak // MILLI),
        str(queue.room // MILLI),
        f"{queue.mean_wait_ms} ms",
    )
