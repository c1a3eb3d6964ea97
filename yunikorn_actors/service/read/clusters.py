"""The pages about a whole core: clusters, partitions, history, health."""

from collections import Counter
from typing import Final

from yunikorn_actors.checks.health_checks import Dump, Health, HealthCheck, health_of
from yunikorn_actors.messages.queries import CountsFound
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.read.rendering import Value, lean, most, percentages, used
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.state.dump import snapshot

CLUSTER: Final = "kubernetes"
"""YuniKorn calls every cluster so, and its pages know no other."""
ALWAYS: Final = frozenset({
    "clusterId", "name", "capacity", "nodeSortingPolicy", "preemptionEnabled",
    "quotaPreemptionEnabled",
})  # fmt: skip


def clusters(side: ReadSide) -> list[Value]:
    return [
        {
            "startTime": side.start_ns,
            "rmBuildInformation": [_build(side, book.rm_id)],
            "partition": book.short_name,
            "clusterName": CLUSTER,
        }
        for book in side.books.values()
    ]


def _build(side: ReadSide, rm_id: str) -> dict[str, str]:
    manager = side.managers.get(rm_id)
    return {"rmId": rm_id} if manager is None else manager.build_info


def partition(book: Book) -> Value:
    state = book.state
    config = state.config
    # Before it has a configuration a partition has no queues.
    taken = used(state.root.allocated) if state.queues else {}
    return lean(
        {
            "clusterId": book.rm_id,
            "name": book.short_name,
            "capacity": lean(
                {
                    "capacity": most(state.capacity),
                    "usedCapacity": taken,
                    "utilization": percentages(taken, state.capacity),
                }
            ),
            "nodeSortingPolicy": {}
            if config is None
            else {
                "type": config.node_sort.policy,
                "resourceWeights": dict(config.node_sort.weights),
            },
            # Not configured means that it is on, as with YuniKorn.
            "preemptionEnabled": config is None or config.preemption_enabled,
            "quotaPreemptionEnabled": config is not None and config.quota_preemption_enabled,
            "totalNodes": len(state.nodes),
            "applications": _applications(book),
            "totalContainers": state.allocation_count,
            "state": book.state_name,
            "lastStateTransitionTime": book.changed_ns,
        },
        ALWAYS,
    )


def _applications(book: Book) -> dict[str, int]:
    """Count applications by state, remembered ones that ended included."""
    state = book.state
    counts = Counter(app.state.value for app in state.applications.values())
    counts.update(app.state.value for app in state.finished.values())
    return {**dict(sorted(counts.items())), "total": counts.total()}


def applications_over_time(side: ReadSide) -> list[Value]:
    return [
        {"timestamp": it.at_ns, "totalApplications": str(it.applications)}
        for it in side.history.samples
    ]


def containers_over_time(side: ReadSide) -> list[Value]:
    return [
        {"timestamp": it.at_ns, "totalContainers": str(it.containers)}
        for it in side.history.samples
    ]


def _dump(side: ReadSide, counts: CountsFound, trace_failure: str) -> Dump:
    """Return a state dump as far as checks of health look at it; the replicas are the truth."""
    return {
        "partitions": {name: snapshot(book.state) for name, book in side.books.items()},
        "scheduling_errors": counts.scheduling_errors,
        "failed_nodes": list(counts.failed_nodes),
        "failed_machines": counts.failed_machines,
        "failed_policies": list(counts.failed_policies),
        "trace_failure": trace_failure,
    }


def health(
    side: ReadSide, counts: CountsFound, trace_failure: str, of_file: str, of_reading: str
) -> Health:
    """Judge the replicas, and what its core and its service say of themselves."""
    found = health_of(_dump(side, counts, trace_failure))
    of_service = (
        HealthCheck(
            name="Configuration file",
            succeeded=not of_file,
            description="The configuration file is in force as it stands",
            diagnosis=of_file or "nothing found",
        ),
        HealthCheck(
            name="Read side",
            succeeded=not of_reading,
            description="The process that answers by REST has not ended lately",
            diagnosis=of_reading or "nothing found",
        ),
    )
    healthy = found.healthy and all(it.succeeded for it in of_service)
    return Health(healthy=healthy, checks=(*found.checks, *of_service))


def shown_health(found: Health) -> Value:
    return {
        "Healthy": found.healthy,
        "HealthChecks": [
            {
                "Name": check.name,
                "Succeeded": check.succeeded,
                "Description": check.description,
                "DiagnosisMessage": check.diagnosis,
            }
            for check in found.checks
        ],
    }
