"""The page of a replay, or of several of one log: one file of HTML that loads nothing."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from math import ceil, log2
from typing import Any, Final

from yunikorn_actors.pages.html_page import Document
from yunikorn_actors.recording.printable import printable
from yunikorn_actors.workload.charts import LANES_MAX, Axis, Line, bars, lanes, lines
from yunikorn_actors.workload.figures import percentile
from yunikorn_actors.workload.summary import duration, left_out_lines
from yunikorn_actors.workload.table import Table

ASSETS: Final = files("yunikorn_actors.workload") / "assets"
GANTT_MAX: Final = 400
"""So many jobs a Gantt chart has at most."""
POINTS: Final = 300
"""Of a line; a longer one is thinned out."""
QUEUES_MAX: Final = 4

Runs = Mapping[str, Table]


def page(runs: Runs, *, verdict: str = "", guaranteed: Mapping[str, float] | None = None,
         added: str = "") -> str:  # fmt: skip
    """Return the page of runs by name; `guaranteed` is each queue's share of the cluster."""
    document = Document(ASSETS, ())
    first = next(iter(runs.values()))
    title = f"{first.run.log.rsplit('/', 1)[-1]}: {', '.join(runs)}"
    sections = list(_sections(runs, verdict, guaranteed or {}, added))
    return document.text(
        policy="; ".join(document.policy),
        title=escape(printable(title)),
        about=escape(
            f"nodes: {len(first.run.nodes):,}; {', '.join(_capacity(first))}; {len(first):,} jobs"
        ),
        body="\n".join(sections),
    )


def _capacity(table: Table) -> Iterator[str]:
    for kind, amount in table.run.capacity.items():
        yield f"{kind} {amount / (table.run.scale if kind == table.run.main else 1):,.0f}"


def _sections(
    runs: Runs, verdict: str, guaranteed: Mapping[str, float], added: str
) -> Iterator[str]:
    summaries = {name: table.summary() for name, table in runs.items()}
    told = f'<p class="verdict">{escape(printable(verdict))}</p>' if verdict else ""
    yield _section("Figures", told + _figures(summaries), "", is_wide=True)
    end_s = max(1.0, *(table.run.series.now_s for table in runs.values()))
    time = Axis(0, end_s, duration)
    for name, title, note in (
        (
            f"used {next(iter(runs.values())).run.main}",
            "Utilisation",
            "share of the cluster in use",
        ),
        ("waiting work", "Waiting work", "share of the cluster that the jobs that wait would fill"),
    ):
        drawn = [Line(run, _over_time(table, name)) for run, table in runs.items()]
        top = max([1.0, *(value for line in drawn for _, value in line.points)])
        chart = lines(title, drawn, time, Axis(0, top, lambda value: f"{value:.0%}"))
        yield _section(title, chart, note)
    yield _waits(runs)
    yield _by_size(runs)
    for name, table in runs.items():
        yield from _queues(name if len(runs) > 1 else "", table, time, guaranteed)
        if len(table) <= GANTT_MAX and len(table.run.nodes) <= LANES_MAX:
            yield _gantt(name, table, time)
    if added:
        yield added
    yield _section(
        "Reasons of waiting", _reasons(summaries), "shares of all waiting time", is_wide=True
    )


def section_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str) -> str:
    return _section(title, _rows(head, rows), note, is_wide=True)


def _section(title: str, content: str, note: str, *, is_wide: bool = False) -> str:
    kind = ' class="wide"' if is_wide else ""
    said = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section{kind}><h2>{escape(printable(title))}</h2>{said}{content}</section>"


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=number' if at else ''}>{escape(printable(cell))}</{tag}>"
            for at, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _figures(summaries: Mapping[str, dict[str, Any]]) -> str:
    head = (
        "",
        "done",
        "wait mean",
        "median",
        "p95",
        "max",
        "slowdown mean",
        "p95",
        "makespan",
        "used",
    )
    rows = [
        (
            name, f"{it['done']:,}",
            *(duration(it["wait_s"][key]) for key in ("mean", "median", "p95", "max")),
            *(f"{it['slowdown'][key]:,.2f}" for key in ("mean", "p95")),
            duration(it["makespan_s"]),
            ", ".join(f"{kind} {share:.1%}" for kind, share in it["utilisation"].items()),
        )
        for name, it in summaries.items()
    ]  # fmt: skip
    left = list(left_out_lines(next(iter(summaries.values()))))
    note = f'<p class="note">{escape("; ".join(left))}</p>' if left else ""
    return _rows(head, rows) + note


def _over_time(table: Table, name: str) -> list[tuple[float, float]]:
    width_s = table.run.series.width_s
    return [((at + 0.5) * width_s, value) for at, value in enumerate(table.run.series.means(name))]


def _waits(runs: Runs) -> str:
    drawn, longest = [], 10.0
    for name, table in runs.items():
        ordered = sorted(table.waits())
        longest = max([longest, *ordered[-1:]])
        step = max(1, len(ordered) // POINTS)
        some = [*range(0, len(ordered), step), len(ordered) - 1] if ordered else []
        drawn.append(Line(name, [(max(1.0, ordered[at]), (at + 1) / len(ordered)) for at in some]))
    high = 10.0 ** ceil(len(str(int(longest))))
    x = Axis(1, high, lambda value: f"{value:,.0f} s", is_log=True)
    chart = lines("Waits", drawn, x, Axis(0, 1, lambda value: f"{value:.0%}"))
    return _section("Waits", chart, "share of the jobs that waited no longer")


def _by_size(runs: Runs) -> str:
    by_run = []
    for table in runs.values():
        sizes: dict[int, list[float]] = {}
        for size, value in table.slowdowns():
            sizes.setdefault(ceil(log2(max(1.0, size))), []).append(value)
        by_run.append({size: percentile(sorted(values), 95) for size, values in sizes.items()})
    sizes_ = sorted({size for it in by_run for size in it})
    groups = [(f"≤ {2**size}", [max(1.0, it.get(size, 1.0)) for it in by_run]) for size in sizes_]
    high = 10.0 ** ceil(len(str(int(max([1.0, *(it for _, each in groups for it in each)])))))
    y = Axis(1, high, lambda value: f"{value:,.0f}", is_log=True)
    chart = bars("Slowdown by size", groups, list(runs), y)
    return _section("Slowdown by size", chart, "95th percentile, by the size of jobs")


def _queues(name: str, table: Table, time: Axis, guaranteed: Mapping[str, float]) -> Iterator[str]:
    prefix = "queue "
    series = table.run.series
    used = {it: series.mean(it) for it in series.channels if it.startswith(prefix)}
    queues = sorted(used, key=lambda it: -used[it])
    if len(queues) > 1 or guaranteed:
        drawn = [Line(it.removeprefix(prefix), _over_time(table, it)) for it in queues[:QUEUES_MAX]]
        chart = lines("Queues", drawn, time, Axis(0, 1, lambda value: f"{value:.0%}"))
        promised = {f"{prefix}{it}": f"{share:.1%}" for it, share in guaranteed.items()}
        rows = [(it.removeprefix(prefix), f"{used[it]:.1%}", promised.get(it, "")) for it in queues]
        title = f"Queues {name}".strip()
        yield _section(
            title, chart + _rows(("queue", "used", "guaranteed"), rows), "share of the cluster"
        )


def _gantt(name: str, table: Table, time: Axis) -> str:
    by_node: dict[str, list[tuple[float, float, str]]] = {}
    for row in table:
        if row["start"] is not None:
            begin = row["start"] - table.run.began_s
            end = (table.run.ended_s if row["end"] is None else row["end"]) - table.run.began_s
            by_node.setdefault(row["node"], []).append(
                (begin, end, f"{row['job']} ({row['user']})")
            )
    rows = [
        (lane[-7:], things)
        for node in sorted(by_node)
        for lane, things in _lanes(node, by_node[node])
    ]
    chart = lanes(f"Jobs on nodes, {name}", rows[:LANES_MAX], time)
    return _section(
        f"Jobs on nodes, {name}", chart, "the node of a gang is that of its last task", is_wide=True
    )


def _lanes(
    node: str, things: list[tuple[float, float, str]]
) -> Iterator[tuple[str, list[tuple[float, float, str]]]]:
    """Spread what overlaps over several lanes."""
    free: list[list[tuple[float, float, str]]] = []
    for thing in sorted(things):
        lane = next((it for it in free if it[-1][1] <= thing[0]), None)
        if lane is None:
            free.append([thing])
        else:
            lane.append(thing)
    yield from ((node if at == 0 else "", lane) for at, lane in enumerate(free))


def _reasons(summaries: Mapping[str, dict[str, Any]]) -> str:
    reasons = list(dict.fromkeys(why for it in summaries.values() for why in it["reasons"]))
    rows = [
        (why, *(f"{it['reasons'].get(why, 0):.1%}" for it in summaries.values())) for why in reasons
    ]
    return _rows(("", *summaries), rows)
