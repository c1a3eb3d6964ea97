"""The summary of a replay as text."""

from collections.abc import Iterator
from typing import Any, Final

_DAY_S: Final = 86_400
_HOUR_S: Final = 3_600


def summary_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Say what the replay found, a line for each thing."""
    policy = summary["policy"] or "as configured"
    yield f"{summary['log']} ({summary['format']}), policy {policy}"
    yield "jobs         " + ", ".join(
        f"{summary[state]:,} {state}"
        for state in ("done", "running", "waiting", "rejected")
        if summary[state] or state == "done"
    )
    for why, count in list(summary["rejections"].items())[:5]:
        yield f"rejected     {count:,}: {why}"
    yield from left_out_lines(summary)
    for name, title in (("wait_s", "wait"), ("slowdown", "slowdown")):
        unit = " s" if name == "wait_s" else ""
        figures = (f"{key} {value:,.2f}{unit}" for key, value in summary[name].items())
        yield f"{title:<12} " + ", ".join(figures)
    yield f"makespan     {duration(summary['makespan_s'])}"
    used = (f"{kind} {share:.1%}" for kind, share in summary["utilisation"].items())
    yield "utilisation  " + ", ".join(used)
    for name, title in (("users", "users"), ("queues", "queues")):
        fairness = summary["fairness"][name]
        yield f"{title:<12} {fairness['count']}, evenness of slowdown {fairness['jain']:.3f}"
    if summary["preemptions"] or summary["restarts"]:
        preempted, restarts = summary["preemptions"], summary["restarts"]
        yield f"put back     {preempted} preempted, {restarts} after a fault"
    for kind, count in summary["faults"].items():
        yield f"planted      {count} {kind}"
    for reason, share in list(summary["reasons"].items())[:5]:
        yield f"waited       {share:6.1%} of the time: {reason}"
    yield f"digest       {summary['digest'][:16]}"


def left_out_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Say what of the log was not played."""
    for why, count in sorted(summary["left_out"].items()):
        yield f"left out     {count:,}: {why}"
    if summary["bad_lines"]:
        yield f"bad lines    {summary['bad_lines']:,}"


def why_nothing_ran(summary: dict[str, Any]) -> str:
    """Say why a replay shows nothing: the core took no job; the empty text if it took one."""
    if not summary["jobs"]:
        return (
            f"no job of it was played{_and_why_not(summary)}: look at --limit, --until and --nodes"
        )
    if summary["rejected"] < summary["jobs"]:
        return ""
    # A result that was kept before reasons were counted has none.
    why = next(iter(summary.get("rejections") or {"no reason was kept": 0}))
    return (
        f"the configuration rejects all {summary['jobs']:,} jobs ({why}): give one that has the "
        "queues of the jobs, or say with --map queue=... which of its queues they go to"
    )


def _and_why_not(summary: dict[str, Any]) -> str:
    left_out = [f"{count:,} {why}" for why, count in sorted(summary["left_out"].items())]
    bad = [f"{summary['bad_lines']:,} bad lines"] if summary["bad_lines"] else []
    return f" ({', '.join(left_out + bad) or 'it has none'})"


def duration(seconds: float) -> str:
    if seconds >= _DAY_S:
        return f"{seconds / _DAY_S:,.2f} days"
    return f"{seconds / _HOUR_S:,.2f} h" if seconds >= _HOUR_S else f"{seconds:,.0f} s"


def duration_signed(seconds: float) -> str:
    text = duration(abs(seconds))
    return text if text == duration(0) else ("-" if seconds < 0 else "+") + text
