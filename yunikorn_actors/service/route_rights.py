"""The right that each route and each method of gRPC needs: none, to read, or all.

One table has all of them, whichever server answers, and a test compares it with what is served.
What stands in no list needs the full token: a route that is forgotten here is closed, not open.
"""

from enum import IntEnum
from typing import Final

from yunikorn_actors.service.node_acts import NODE_ACTS


class Right(IntEnum):
    """What a caller may do; each includes those before it."""

    NONE = 0
    READ = 1
    """Ask, and change nothing."""
    FULL = 2
    """Change the core, and be a resource manager."""


_OPEN: Final = (
    # Whether a service is well is nobody's secret, and a page without data is none either.
    "GET /",
    "GET /ws/v1/x/live",
    "GET /ws/v1/x/ready",
    "GET /ws/v1/x/session",
    "POST /ws/v1/x/login",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/List",
    "/grpc.health.v1.Health/Watch",
)
_READING: Final = (
    "GET /ws/v1/clusters",
    "GET /ws/v1/partitions",
    "GET /ws/v1/partition/{partition}/queues",
    "GET /ws/v1/partition/{partition}/queue/{queue}",
    "GET /ws/v1/partition/{partition}/queue/{queue}/applications",
    "GET /ws/v1/partition/{partition}/queue/{queue}/applications/{state}",
    "GET /ws/v1/partition/{partition}/queue/{queue}/application/{application}",
    "GET /ws/v1/partition/{partition}/applications/{state}",
    "GET /ws/v1/partition/{partition}/application/{application}",
    "GET /ws/v1/partition/{partition}/nodes",
    "GET /ws/v1/partition/{partition}/node/{node}",
    "GET /ws/v1/partition/{partition}/placementrules",
    "GET /ws/v1/partition/{partition}/usage/users",
    "GET /ws/v1/partition/{partition}/usage/user/{user}",
    "GET /ws/v1/partition/{partition}/usage/groups",
    "GET /ws/v1/partition/{partition}/usage/group/{group}",
    "GET /ws/v1/events/batch",
    "GET /ws/v1/events/stream",
    "GET /ws/v1/scheduler/healthcheck",
    "GET /ws/v1/scheduler/node-utilizations",
    "GET /ws/v1/history/apps",
    "GET /ws/v1/history/containers",
    "GET /ws/v1/metrics",
    "GET /ws/v1/config",
    # It judges a text that comes with it, and changes nothing.
    "POST /ws/v1/validate-conf",
    # It changes a copy, and nothing else.
    "POST /ws/v1/x/simulate",
    "GET /debug/fullstatedump",
    "GET /debug/stack",
    "GET /ws/v1/fullstatedump",
    "GET /ws/v1/stack",
    "GET /ws/v1/x/why",
    "GET /ws/v1/x/partition/{partition}/waiting",
    "GET /ws/v1/x/partition/{partition}/asks",
    "GET /ws/v1/x/partition/{partition}/expected",
    "GET /ws/v1/x/partition/{partition}/applications",
    "GET /ws/v1/x/partition/{partition}/history",
    "GET /ws/v1/x/partition/{partition}/nodes",
    "GET /ws/v1/x/mailboxes",
    "GET /ws/v1/x/trace",
    "GET /ws/v1/x/overview",
    "POST /ws/v1/x/logout",
    "/yunikorn_actors.v1.Extension/Explain",
    "/yunikorn_actors.v1.Extension/Expected",
    "/yunikorn_actors.v1.Extension/Simulate",
    "/yunikorn_actors.v1.Extension/StateDump",
    "/yunikorn_actors.v1.Extension/Events",
    "/yunikorn_actors.v1.Extension/EventStream",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
)
_CHANGING: Final = (
    *(f"POST /ws/v1/x/partition/{{partition}}/node/{{node}}/{act}" for act in NODE_ACTS),
    "POST /ws/v1/x/manager/{manager}/unregister",
    "POST /ws/v1/x/config",
    "/si.v1.Scheduler/RegisterResourceManager",
    "/si.v1.Scheduler/UpdateAllocation",
    "/si.v1.Scheduler/UpdateApplication",
    "/si.v1.Scheduler/UpdateNode",
    "/yunikorn_actors.v1.Extension/Converse",
    "/yunikorn_actors.v1.Extension/Unregister",
    "/yunikorn_actors.v1.Extension/UpdateConfiguration",
)
NEEDS: Final[dict[str, Right]] = {
    **dict.fromkeys(_OPEN, Right.NONE),
    **dict.fromkeys(_READING, Right.READ),
    **dict.fromkeys(_CHANGING, Right.FULL),
}
"""By `METHOD PATH` of a route, with the names of its parts, or by the path of a method of gRPC."""


def needed_for(what: str) -> Right:
    return NEEDS.get(what, Right.FULL)
