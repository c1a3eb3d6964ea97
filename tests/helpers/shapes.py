# ruff: noqa: N815 - these are the names of the interface
"""The objects of YuniKorn's REST interface: their names, their types, and what is always there.

A field without a default stands in every object; one that is `Left` is left out when it is empty. A
name that is not here is a fault.
"""

from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

T = TypeVar("T")
Left = T | UnsetType
Amounts = dict[str, int]
Texts = dict[str, str]
Ns = Annotated[int, Meta(ge=10**18)]
"""Unix time in nanoseconds."""
Digits = Annotated[str, Meta(pattern=r"^-?[0-9]+$")]
GoDuration = Annotated[str, Meta(pattern=r"^(\d+h)?(\d+m)?\d+(\.\d+)?(s|ms|µs|ns)$")]


class Shape(Struct, forbid_unknown_fields=True, kw_only=True, rename=None):
    pass


class Cluster(Shape, kw_only=True):
    startTime: Ns
    rmBuildInformation: list[Texts]
    partition: str
    clusterName: str


class Capacity(Shape, kw_only=True):
    capacity: Left[Amounts] = UNSET
    usedCapacity: Left[Amounts] = UNSET
    utilization: Left[Amounts] = UNSET


class NodeSortingPolicy(Shape, kw_only=True):
    type: str
    resourceWeights: dict[str, float]


class Partition(Shape, kw_only=True):
    clusterId: str
    name: str
    capacity: Capacity
    nodeSortingPolicy: NodeSortingPolicy
    preemptionEnabled: bool
    quotaPreemptionEnabled: bool
    totalNodes: Left[int] = UNSET
    applications: Amounts
    totalContainers: Left[int] = UNSET
    state: str
    lastStateTransitionTime: Ns


class Template(Shape, kw_only=True):
    maxApplications: Left[int] = UNSET
    maxResource: Left[Amounts] = UNSET
    guaranteedResource: Left[Amounts] = UNSET
    properties: Left[Texts] = UNSET


class Queue(Shape, kw_only=True):
    queuename: str
    status: str
    partition: str
    pendingResource: Left[Amounts] = UNSET
    maxResource: Left[Amounts] = UNSET
    guaranteedResource: Left[Amounts] = UNSET
    allocatedResource: Left[Amounts] = UNSET
    preemptingResource: Left[Amounts] = UNSET
    headroom: Left[Amounts] = UNSET
    isLeaf: bool
    isManaged: bool
    properties: Left[Texts] = UNSET
    parent: Left[str] = UNSET
    template: Left[Template] = UNSET
    children: "Left[list[Queue]]" = UNSET
    childNames: Left[list[str]] = UNSET
    absUsedCapacity: Left[Amounts] = UNSET
    maxRunningApps: Left[int] = UNSET
    runningApps: Left[int] = UNSET
    currentPriority: int
    allocatingAcceptedApps: Left[list[str]] = UNSET
    sortingPolicy: str
    prioritySorting: bool
    preemptionEnabled: bool
    isPreemptionFence: bool
    preemptionDelay: GoDuration
    quotaPreemptionDelay: GoDuration
    isPriorityFence: bool
    priorityOffset: Left[int] = UNSET


class Said(Shape, kw_only=True):
    message: str
    lastOccurrence: Ns
    count: int


class Request(Shape, kw_only=True):
    allocationKey: str
    allocationTags: Left[Texts] = UNSET
    requestTime: Ns
    resource: Amounts
    priority: Digits
    requiredNodeId: Left[str] = UNSET
    applicationId: str
    placeholder: Left[bool] = UNSET
    taskGroupName: Left[str] = UNSET
    allocationLog: Left[list[Said]] = UNSET
    triggeredPreemption: Left[bool] = UNSET
    originator: Left[bool] = UNSET
    schedulingAttempted: Left[bool] = UNSET
    triggeredScaleUp: Left[bool] = UNSET


class Allocation(Shape, kw_only=True):
    allocationKey: str
    allocationTags: Left[Texts] = UNSET
    requestTime: Ns
    allocationTime: Ns
    allocationDelay: Left[int] = UNSET
    resource: Amounts
    priority: Digits
    nodeId: str
    applicationId: str
    placeholder: Left[bool] = UNSET
    placeholderUsed: Left[bool] = UNSET
    taskGroupName: Left[str] = UNSET
    preempted: Left[bool] = UNSET
    originator: Left[bool] = UNSET


class StateEntry(Shape, kw_only=True):
    time: Ns
    applicationState: str


class Placeholders(Shape, kw_only=True):
    taskGroupName: str
    count: Left[int] = UNSET
    minResource: Left[Amounts] = UNSET
    replaced: Left[int] = UNSET
    timedout: Left[int] = UNSET


class ResourceHistory(Shape, kw_only=True):
    resourceUsage: Left[dict[str, Amounts]] = UNSET
    preemptedResource: Left[dict[str, Amounts]] = UNSET
    placeholderResource: Left[dict[str, Amounts]] = UNSET


class Application(Shape, kw_only=True):
    applicationID: str
    usedResource: Left[Amounts] = UNSET
    maxUsedResource: Left[Amounts] = UNSET
    pendingResource: Left[Amounts] = UNSET
    partition: str
    queueName: str
    submissionTime: Ns
    finishedTime: Left[Ns] = UNSET
    requests: Left[list[Request]] = UNSET
    allocations: Left[list[Allocation]] = UNSET
    applicationState: str
    user: Left[str] = UNSET
    groups: Left[list[str]] = UNSET
    rejectedMessage: Left[str] = UNSET
    stateLog: list[StateEntry]
    placeholderData: Left[list[Placeholders]] = UNSET
    hasReserved: Left[bool] = UNSET
    reservations: Left[list[str]] = UNSET
    maxRequestPriority: Left[int] = UNSET
    startTime: int
    resourceHistory: ResourceHistory
    backoffDeadline: Left[str] = UNSET


class Foreign(Shape, kw_only=True):
    allocationKey: str
    allocationTags: Texts
    allocationTime: Ns
    resource: Amounts
    priority: Digits
    nodeId: str
    preemptable: Left[bool] = UNSET


class Node(Shape, kw_only=True):
    nodeID: str
    hostName: Left[str] = UNSET
    rackName: Left[str] = UNSET
    attributes: Left[Texts] = UNSET
    capacity: Amounts
    allocated: Left[Amounts] = UNSET
    occupied: Left[Amounts] = UNSET
    available: Left[Amounts] = UNSET
    utilized: Left[Amounts] = UNSET
    allocations: Left[list[Allocation]] = UNSET
    foreignAllocations: Left[list[Foreign]] = UNSET
    schedulable: bool
    isReserved: bool
    reservations: Left[list[str]] = UNSET


class Bucket(Shape, kw_only=True):
    bucketName: Annotated[str, Meta(pattern=r"^\d+-\d+%$")]
    numOfNodes: Left[int] = UNSET
    nodeNames: Left[list[str]] = UNSET


class Utilization(Shape, kw_only=True):
    type: str
    utilization: Annotated[list[Bucket], Meta(min_length=10, max_length=10)]


class Utilizations(Shape, kw_only=True):
    clusterId: str
    partition: str
    utilizations: list[Utilization]


class QueueUsage(Shape, kw_only=True):
    queuePath: str
    resourceUsage: Left[Amounts] = UNSET
    runningApplications: Left[list[str]] = UNSET
    maxResources: Left[Amounts] = UNSET
    maxApplications: Left[int] = UNSET
    children: "Left[list[QueueUsage]]" = UNSET


class UserUsage(Shape, kw_only=True):
    userName: str
    groups: Left[Texts] = UNSET
    queues: QueueUsage


class GroupUsage(Shape, kw_only=True):
    groupName: str
    applications: Left[list[str]] = UNSET
    queues: QueueUsage


class Filter(Shape, kw_only=True):
    type: str
    userList: Left[list[str]] = UNSET
    groupList: Left[list[str]] = UNSET
    userExp: Left[str] = UNSET
    groupExp: Left[str] = UNSET


class Rule(Shape, kw_only=True):
    name: str
    parameters: Texts
    filter: Left[Filter] = UNSET
    parentRule: "Left[Rule]" = UNSET


class Check(Shape, kw_only=True):
    Name: str
    Succeeded: bool
    Description: str
    DiagnosisMessage: str


class Health(Shape, kw_only=True):
    Healthy: bool
    HealthChecks: list[Check]


class EventRecord(Shape, kw_only=True):
    type: Left[int] = UNSET
    objectID: Left[str] = UNSET
    message: Left[str] = UNSET
    timestampNano: Ns
    eventChangeType: Left[int] = UNSET
    eventChangeDetail: Left[int] = UNSET
    referenceID: Left[str] = UNSET
    resource: dict[str, dict[str, Amounts]]


class Events(Shape, kw_only=True):
    InstanceUUID: str
    LowestID: int
    HighestID: int
    EventRecords: list[EventRecord] | None


class Applications(Shape, kw_only=True):
    timestamp: Ns
    totalApplications: Digits


class Containers(Shape, kw_only=True):
    timestamp: Ns
    totalContainers: Digits


class Verdict(Shape, kw_only=True):
    allowed: bool
    reason: Left[str] = UNSET


class Refused(Shape, kw_only=True):
    status_code: int
    message: str
    description: str


class Dump(Shape, kw_only=True):
    timestamp: Ns
    partitions: list[Partition]
    applications: list[Application]
    appHistory: list[Applications]
    nodes: list[dict[str, Any]]
    clusterInfo: list[Cluster]
    containerHistory: list[Containers]
    queues: list[Queue]
    rmDiagnostics: dict[str, Any]
    logLevel: str
    config: dict[str, Any]
    placementRules: list[dict[str, Any]]
    eventStreams: list[dict[str, Any]]


_P = "/ws/v1/partition/{partition}"
_Q = f"{_P}/queue/{{queue}}"
ANSWERS: dict[str, Any] = {
    "/ws/v1/clusters": list[Cluster],
    "/ws/v1/partitions": list[Partition],
    f"{_P}/queues": Queue,
    _Q: Queue,
    f"{_Q}/applications": list[Application],
    f"{_Q}/applications/{{state}}": list[Application],
    f"{_Q}/application/{{application}}": Application,
    f"{_P}/applications/{{state}}": list[Application],
    f"{_P}/application/{{application}}": Application,
    f"{_P}/nodes": list[Node],
    f"{_P}/node/{{node}}": Node,
    f"{_P}/placementrules": list[Rule],
    f"{_P}/usage/users": list[UserUsage],
    f"{_P}/usage/user/{{user}}": UserUsage,
    f"{_P}/usage/groups": list[GroupUsage],
    f"{_P}/usage/group/{{group}}": GroupUsage,
    "/ws/v1/events/batch": Events,
    "/ws/v1/scheduler/healthcheck": Health,
    "/ws/v1/scheduler/node-utilizations": list[Utilizations],
    "/ws/v1/history/apps": list[Applications],
    "/ws/v1/history/containers": list[Containers],
    "/ws/v1/validate-conf": Verdict,
    "/debug/fullstatedump": Dump,
}
"""What each route answers, in JSON; the description of the routes for programs is made of this."""
