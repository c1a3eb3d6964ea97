"""What an observer cannot know of a plan: reasons to count a finding as undecided."""

from yunikorn_actors.lab.model import sums
from yunikorn_actors.lab.model.judged_cluster import Ask
from yunikorn_actors.lab.model.judging.judged_run import JudgedRun
from yunikorn_actors.lab.model.rules import admitting, placing


def is_new(run: JudgedRun, ask: Ask) -> bool:
    """Whether the ask has room only where a node was kept when this was planned."""
    let_go = run.plan.let_go
    nodes = placing.fitting(run.cluster, ask) if let_go else []
    return bool(let_go) and {node.id for node in nodes} <= let_go.keys()


def is_for_others(run: JudgedRun, ask: Ask) -> bool:
    """Whether all room for it is where others have work go, or are promised what comes free.

    It may be theirs.
    """
    cluster = run.cluster
    others = [kept for kept in cluster.kept if kept.ask is not ask]
    made = {kept.node for kept in others if kept.victims or kept.claims}
    nodes = {node.id for node in placing.fitting(cluster, ask)}
    return bool(nodes) and nodes <= made


def waits_behind_gangs(run: JudgedRun, ask: Ask) -> bool:
    """Whether its gang has lapsed and another one fits, if only it may start in this plan."""
    cluster = run.cluster
    lapsed = ask.spec.placeholder and ask.app.lapsed is not None
    return lapsed and any(
        admitting.fits_before(cluster, other, ask.app) for other in sums.waiting(cluster)
    )


def was_of_age(run: JudgedRun, ask: Ask) -> bool:
    """Whether it had waited long enough for a node at the last rest, so in this plan too."""
    return run.last_rest.at_ns - ask.created > run.cluster.settings.reservation_delay_ns
