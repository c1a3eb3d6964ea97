"""States of applications and the group that each counts in, when they change and at rest."""

from yunikorn_actors.checks.state_invariants import total
from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import App
from yunikorn_actors.lab.model.judging.judged_run import JudgedRun, name_of
from yunikorn_actors.lab.model.rules import gangs
from yunikorn_actors.state import facts as f
from yunikorn_actors.values.durations import MILLISECOND
from yunikorn_actors.values.resource import equals_or_empty

NEXT_STATES = {
    "New": ("Accepted", "Failing", "Resuming", "Rejected"),
    "Accepted": ("Starting", "Running", "Completing", "Failing", "Resuming"),
    "Starting": ("Running", "Completing", "Failing"),
    "Running": ("Completing", "Failing"),
    "Completing": ("Running", "Completed"),
    "Resuming": ("Accepted",),
    "Failing": ("Failed",),
}


def check_state(run: JudgedRun, fact: f.ApplicationStateChanged) -> None:
    cluster = run.cluster
    app, state = cluster.apps.get(fact.application_id), fact.state.value
    if app is None or app.serial != fact.serial:
        return
    name = f"{app.id} goes from {app.state} to {state}"
    run.must("state", state in NEXT_STATES[app.state], name)
    stateaware = app.leaf.says.application_sort_policy == "stateaware"
    waits = bool(sums.asks_of(cluster, app) or sums.is_swapping(cluster, app))
    real = bool(sums.reals_of(cluster, app))
    aware = stateaware and "application.stateaware.disable" not in app.spec.tags
    right = {
        "Running": _may_start_on(run, app) and (not aware or app.state != "Accepted"),
        "Starting": aware and (real or _is_whole(run, app)),
        "Completing": not (waits or real),
        "Completed": not (sums.asks_of(cluster, app) or sums.allocations_of(cluster, app))
        and cluster.now >= app.entered + cluster.settings.completing_timeout_ns,
        "Resuming": gangs.gang_is_over(cluster, app) and not app.spec.is_hard,
        "Failing": gangs.gang_is_over(cluster, app) or app.spec.timeout_ms > 0,
        "Failed": not sums.allocations_of(cluster, app),
    }  # fmt: skip
    run.must("state", right.get(state, True), f"{name}, which is not so")
    if stateaware:
        run.plan.moved[app.leaf] = cluster.revision


def _may_start_on(run: JudgedRun, app: App) -> bool:
    """Whether an application may go to Running: one that is Starting takes a second step."""
    cluster = run.cluster
    if app.state == "Starting":
        over = cluster.now >= app.entered + cluster.settings.starting_timeout_ns
        return over or app.reals > (0 if app.spec.is_gang else 1)
    return app.state != "Accepted" or bool(sums.reals_of(cluster, app)) or _is_whole(run, app)


def _is_whole(run: JudgedRun, app: App) -> bool:
    """Whether all placeholders of a gang stand."""
    held = total(placed.size for placed in sums.placeholders_of(run.cluster, app))
    return app.spec.is_gang and equals_or_empty(held, app.spec.placeholder_ask)


def check_group(run: JudgedRun, fact: f.ApplicationLinked) -> None:
    app = run.cluster.apps[fact.application_id]
    if fact.group:
        run.must("group", fact.group == _group_of(app), f"{app.id} counts in {fact.group}")


def _group_of(app: App) -> str:
    for queue in app.leaf.up:
        names = [name for limit in queue.spec.limits for name in limit.groups]
        for name in names:
            if name in app.spec.groups:
                return name
        if "*" in names:
            return "*"
    return ""


def check_at_rest(run: JudgedRun, app: App) -> None:
    cluster = run.cluster
    mine, placeholders = sums.allocations_of(cluster, app), sums.placeholders_of(cluster, app)
    idle = app.admitted and app.state == "Accepted" and not placeholders
    idle = idle and gangs.awaits_placeholders(cluster, app)
    idle = idle and any(gangs.unplaced(app).values())
    late = idle and app.bare_since + gangs.gang_timeout(cluster, app) <= cluster.now
    run.must("gang", not late, f"{app.id} has room that it cannot use")
    waits = bool(sums.asks_of(cluster, app) or sums.is_swapping(cluster, app))
    done = app.entered + cluster.settings.completing_timeout_ns
    started = app.entered + cluster.settings.starting_timeout_ns
    stale = [placed for placed in placeholders if not placed.leaving]
    lives, real = waits or bool(mine), bool(sums.reals_of(cluster, app))
    right = {
        "New": not lives,
        "Accepted": (lives or app.timed_out) and not real,
        "Running": lives,
        "Starting": lives and cluster.now <= started,
        "Completing": not (waits or real) and (cluster.now <= done or (bool(mine) and not stale)),
        "Resuming": bool(placeholders),
        "Failing": bool(mine),
    }
    run.must("state", right.get(app.state, False), f"{app.id} rests in {app.state}")
    if stale and gangs.gang_is_over(cluster, app):
        run.must("timeout", False, f"{stale[0].spec.key} stays beyond its time")
    for item in mine:
        most_ns = item.spec.timeout_ms * MILLISECOND
        late = not item.leaving and 0 < most_ns < cluster.now - item.since
        run.must("timeout", not late, f"{item.spec.key} runs beyond its time")


def check_release(run: JudgedRun, fact: f.ReleaseRequested) -> None:
    """What the core ends by itself: allocations and asks whose time is up."""
    cluster = run.cluster
    item = cluster.placed[fact.uuid]
    run.must("release", not item.leaving, f"{fact.key} is asked back a second time")
    if fact.type.name != "TIMEOUT" or "incompatible" in fact.message:
        return
    app, spec = item.app, item.spec
    alone = 0 < spec.timeout_ms * MILLISECOND <= cluster.now - item.since
    gang = item.spec.placeholder and gangs.gang_is_over(cluster, app)
    over = not app.spec.is_gang and app.spec.timeout_ms > 0 and app.started is not None
    over = over and app.started + app.spec.timeout_ms * MILLISECOND <= cluster.now  # type: ignore[operator]
    done = (
        app.state == "Completing"
        and app.entered + cluster.settings.completing_timeout_ns <= cluster.now
    )
    run.must(
        "timeout", alone or gang or over or (done and spec.placeholder), f"{fact.key} is early"
    )


def check_withdrawal(run: JudgedRun, fact: f.AskRemoved) -> None:
    """The core withdraws asks when a time is up.

    Of a gang its placeholders, or all of a hard one that does not run yet.
    """
    cluster = run.cluster
    if fact.type.name != "TIMEOUT":
        return
    ask = cluster.asks[fact.application_id, fact.key]
    app = ask.app
    fails = app.spec.is_hard and app.state == "Accepted"
    gang = gangs.gang_is_over(cluster, app) and (ask.spec.placeholder or fails)
    over = not app.spec.is_gang and app.spec.timeout_ms > 0 and app.started is not None
    over = over and app.started + app.spec.timeout_ms * MILLISECOND <= cluster.now  # type: ignore[operator]
    run.must("timeout", gang or over, f"{name_of(ask)} is withdrawn, and its time is not up")
