"""What the core ends by itself: allocations and asks whose time is up."""

from yunikorn_actors.lab.model.judging.judged_run import JudgedRun, name_of
from yunikorn_actors.lab.model.rules import gangs
from yunikorn_actors.state import facts as f
from yunikorn_actors.values.durations import MILLISECOND


def check_release(run: JudgedRun, fact: f.ReleaseRequested) -> None:
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
