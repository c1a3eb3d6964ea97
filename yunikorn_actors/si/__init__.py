"""The scheduler interface: the messages between a resource manager and the core.

Messages are values with snake_case fields; `to_json` and `from_json` use the names and numbers of
the interface. Every request is checked by `check_form`.
"""

from yunikorn_actors.si.allocation import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
    AllocationResponse,
    PreemptionPolicy,
    RejectedAllocation,
    RejectedAllocationAsk,
)
from yunikorn_actors.si.api import ResourceManagerCallback, SchedulerAPI
from yunikorn_actors.si.application_messages import (
    AcceptedApplication,
    AddApplicationRequest,
    ApplicationRequest,
    ApplicationResponse,
    RejectedApplication,
    RemoveApplicationRequest,
    UpdatedApplication,
    UserGroupInformation,
)
from yunikorn_actors.si.enums import (
    ActionFromRM,
    ChangeDetail,
    ChangeType,
    EventType,
    SchedulingState,
    TerminationType,
)
from yunikorn_actors.si.form import InvalidRequest, check_form
from yunikorn_actors.si.json import (
    LARGEST_JSON,
    SiDecodeError,
    from_json,
    to_json,
)
from yunikorn_actors.si.node import (
    AcceptedNode,
    NodeInfo,
    NodeRequest,
    NodeResponse,
    RejectedNode,
)
from yunikorn_actors.si.plugin import (
    EventRecord,
    PredicatesArgs,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
    UpdateContainerSchedulingStateRequest,
)
from yunikorn_actors.si.registration import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateConfigurationRequest,
)
from yunikorn_actors.si.resource_message import Amount, Quantity, Resource
from yunikorn_actors.si.wire import SiMessage
from yunikorn_actors.values import tags as constants

__all__ = [
    "AcceptedApplication",
    "AcceptedNode",
    "ActionFromRM",
    "AddApplicationRequest",
    "Allocation",
    "AllocationAsk",
    "AllocationAskRelease",
    "AllocationRelease",
    "AllocationReleasesRequest",
    "AllocationRequest",
    "AllocationResponse",
    "Amount",
    "ApplicationRequest",
    "ApplicationResponse",
    "ChangeDetail",
    "ChangeType",
    "EventRecord",
    "EventType",
    "InvalidRequest",
    "LARGEST_JSON",
    "NodeInfo",
    "NodeRequest",
    "NodeResponse",
    "PredicatesArgs",
    "PreemptionPolicy",
    "PreemptionPredicatesArgs",
    "PreemptionPredicatesResponse",
    "Quantity",
    "RegisterResourceManagerRequest",
    "RegisterResourceManagerResponse",
    "RejectedAllocation",
    "RejectedAllocationAsk",
    "RejectedApplication",
    "RejectedNode",
    "RemoveApplicationRequest",
    "Resource",
    "ResourceManagerCallback",
    "SchedulerAPI",
    "SchedulingState",
    "SiDecodeError",
    "SiMessage",
    "TerminationType",
    "UpdateConfigurationRequest",
    "UpdateContainerSchedulingStateRequest",
    "UpdatedApplication",
    "UserGroupInformation",
    "check_form",
    "constants",
    "from_json",
    "to_json",
]
