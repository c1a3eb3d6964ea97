"""The page of a replay, or of several of one log: one file of HTML that loads nothing."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from math import ceil, log2
from typing import Any, Final

from yunikorn_actors.pages.html_page import Document
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.workload.charts import (
    LANES_MAX,
    Axis,
    Point,
    Thing,
    bars,
    lanes,
    lines,
    share_axis,
    time_axis,
)
from yunikorn_actors.workload.figures import percentile
from yunikorn_actors.workload.jobs import GIB, MEMORY
from yunikorn_actors.workload.replay_summary import duration, left_out_lines
from yunikorn_actors.workload.table import SCALES, Table

ASSETS: Final = files("yunikorn_actors.workload") / "assets"
GANTT_MAX: Final = 400
"""So many jobs a Gantt chart has at most."""
POINTS: Final = 300
"""Of a line; a longer one is thinned out."""
QUEUES_MAX: Final = 4
QUEUE: Final = "queue "
_FIGURES: Final = (
    "", "done", "wait mean", "median", "p95", "max", "slowdown mean", "p95", "makespan", "used",
)  # fmt: skip

Runs = Mapping[str, Table]
Row = Sequence[str]


def page(runs: Runs, *, verdict: str = "", guaranteed: Mapping[str, float] | None = None,
         added: str = "") -> str:  # fmt: skip
    """Return the page of runs by name; `guaranteed` is each queue's share of the cluster."""
    document = Document(ASSETS, ())
    first = next(iter(runs.values()))
    run = first.run
    capacity = (_amount(kind, amount) for kind, amount in run.capacity.items())
    about = f"nodes: {len(run.nodes):,}; {', '.join(capacity)}; {len(first):,} jobs"
    return document.text(
        policy="; ".join(document.policy),
        title=escape(printable(f"{run.log.rsplit('/', 1)[-1]}: {', '.join(runs)}")),
        about=escape(about),
        body="\n".join(_sections(runs, verdict, guaranteed or {}, added)),
    )


def _sections(
    runs: Runs, verdict: str, guaranteed: Mapping[str, float], added: str
) -> Iterator[str]:
    summaries = {name: table.summary() for name, table in runs.items()}
    left = list(left_out_lines(next(iter(summaries.values()))))
    figures = [_figures(name, it) for name, it in summaries.items()]
    yield section_table("Figures", _FIGURES, figures, "; ".join(left), verdict)
    time = time_axis(max(1.0, *(table.run.series.now_s for table in runs.values())))
    main = next(iter(runs.values())).run.main
    for channel, title, what in (
        (f"used {main}", "Utilisation", f"of the {main} in use"),
        ("waiting work", "Waiting work", f"of the {main} that the jobs that wait would fill"),
    ):
        drawn = {name: _over_time(table, channel) for name, table in runs.items()}
        top = max([1.0, *(value for points in drawn.values() for _, value in points)])
        yield _section(title, lines(title, drawn, time, share_axis(what, top)))
    yield _section("Waits", _waits(runs))
    yield _section("Slowdown by size", _by_size(runs))
    for name, table in runs.items():
        series = table.run.series
        used = {it: series.mean(it) for it in series.channels if it.startswith(QUEUE)}
        queues = sorted(
            ((it.removeprefix(QUEUE), share) for it, share in used.items()), key=lambda it: -it[1]
        )
        if len(queues) > 1 or guaranteed:
            yield _queues(name if len(runs) > 1 else "", table, queues, time, guaranteed)
        if len(table) <= GANTT_MAX and len(table.run.nodes) <= LANES_MAX:
            rows = [*_lanes(table)][:LANES_MAX]
            title, note = f"Jobs on nodes, {name}", "the node of a gang is that of its last task"
            yield _section(title, lanes(title, rows, time), note, is_wide=True)
    yield added
    found = [it["reasons"] for it in summaries.values()]
    reasons = dict.fromkeys(why for it in found for why in it)
    shares = [(why, *(f"{it.get(why, 0):.1%}" for it in found)) for why in reasons]
    note = "shares of all waiting time"
    yield section_table("Reasons of waiting", ("", *summaries), shares, note)


def _amount(kind: str, amount: int) -> str:
    if kind == MEMORY:
        return f"{kind} {amount / GIB:,.0f} Gi"
    return f"{kind} {amount / SCALES.get(kind, 1):,.0f}"


def section_table(
    title: str, head: Row, rows: Sequence[Row], note: str = "", verdict: str = ""
) -> str:
    first = f'<p class="verdict">{escape(printable(verdict))}</p>' if verdict else ""
    return _section(title, first + _rows(head, rows), note, is_wide=True)


def _section(title: str, content: str, note: str = "", *, is_wide: bool = False) -> str:
    kind = ' class="wide"' if is_wide else ""
    below = f'<p class="note">{escape(printable(note))}</p>' if note else ""
    return f"<section{kind}><h2>{escape(printable(title))}</h2>{content}{below}</section>"


def _rows(head: Row, rows: Sequence[Row]) -> str:
    def cells(row: Row, tag: str) -> str:
        return "".join(
            f"<{tag}{' class=number' if at else ''}>{escape(printable(cell))}</{tag}>"
            for at, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _figures(name: str, it: dict[str, Any]) -> Row:
    return (
        name, f"{it['done']:,}",
        *(duration(it["wait_s"][key]) for key in ("mean", "median", "p95", "max")),
        *(f"{it['slowdown'][key]:,.2f}" for key in ("mean", "p95")),
        duration(it["makespan_s"]),
        ", ".join(f"{kind} {share:.1%}" for kind, share in it["utilisation"].items()),
    )  # fmt: skip


def _over_time(table: Table, channel: str) -> list[Point]:
    series = table.run.series
    return [((at + 0.5) * series.width_s, it) for at, it in enumerate(series.means(channel))]


def _waits(runs: Runs) -> str:
    drawn, longest = {}, 10.0
    for name, table in runs.items():
        ordered = sorted(table.waits())
        longest = max([longest, *ordered[-1:]])
        step = max(1, len(ordered) // POINTS)
        some = [*range(0, len(ordered), step), len(ordered) - 1] if ordered else []
        drawn[name] = [(ordered[at], (at + 1) / len(ordered)) for at in some]
    x = Axis("wait in seconds", longest, is_log=True)
    return lines("Waits", drawn, x, share_axis("of the jobs that waited no longer"))


def _by_size(runs: Runs) -> str:
    by_size: dict[int, dict[str, list[float]]] = {}
    for name, table in runs.items():
        for size, value in table.slowdowns():
            of_size = by_size.setdefault(ceil(log2(max(1.0, size))), {})
            of_size.setdefault(name, []).append(value)
    p95s = sorted(
        (size, {name: percentile(sorted(it), 95) for name, it in of_size.items()})
        for size, of_size in by_size.items()
    )
    groups = {f"≤ {2**size}": [p95.get(name) for name in runs] for size, p95 in p95s}
    top = max([2.0, *(it for each in groups.values() for it in each if it is not None)])
    x = f"size of the job in {next(iter(runs.values())).run.main}"
    y = Axis("bounded slowdown, 95th percentile", top, is_log=True)
    return bars("Slowdown by size", groups, list(runs), x, y)


def _queues(
    name: str, table: Table, queues: Sequence[tuple[str, float]], time: Axis,
    guaranteed: Mapping[str, float],
) -> str:  # fmt: skip
    drawn = {it: _over_time(table, QUEUE + it) for it, _ in queues[:QUEUES_MAX]}
    chart = lines("Queues", drawn, time, share_axis(f"of the {table.run.main}"))
    rows = [
        (it, f"{share:.1%}", f"{guaranteed[it]:.1%}" if it in guaranteed else "")
        for it, share in queues
    ]
    return _section(f"Queues {name}".strip(), chart + _rows(("queue", "used", "guaranteed"), rows))


def _lanes(table: Table) -> Iterator[tuple[str, list[Thing]]]:
    """Yield what ran on each node; what overlaps is spread over several lanes."""
    run = table.run
    by_node: dict[str, list[Thing]] = {}
    for row in table:
        if row["start"] is not None:
            end = run.ended_s if row["end"] is None else row["end"]
            thing = row["start"] - run.began_s, end - run.began_s, f"{row['job']} ({row['user']})"
            by_node.setdefault(row["node"], []).append(thing)
    for node, things in sorted(by_node.items()):
        free: list[list[Thing]] = []
        for thing in sorted(things):
            lane = next((it for it in free if it[-1][1] <= thing[0]), None)
            if lane is None:
                free.append(lane := [])
            lane.append(thing)
        yield from ((node[-8:] if at == 0 else "", lane) for at, lane in enumerate(free))
