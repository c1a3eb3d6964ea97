"""The Apache YuniKorn scheduler core as actors."""

from yunikorn_actors import si
from yunikorn_actors.errors import (
    ApplicationEnded,
    ApplicationRejected,
    AskRejected,
    AskWithdrawn,
    CallbackStuck,
    ConfigError,
    CoreError,
    CoreFailed,
    CoreStopped,
    Duplicate,
    InvalidRequest,
    InvalidSetting,
    NodeRejected,
    NoReply,
    QuantityError,
    Refused,
    ResponsesLost,
    SchedulerClosed,
    UnknownAsk,
    UnknownName,
    UnknownResourceManager,
    WouldBlock,
)
from yunikorn_actors.front.aio import (
    AsyncApplication,
    AsyncEvent,
    AsyncEvents,
    AsyncLease,
    AsyncScheduler,
)
from yunikorn_actors.front.application import Application
from yunikorn_actors.front.desk import AskStatus
from yunikorn_actors.front.events import (
    ApplicationChanged,
    Event,
    Events,
    LeaseOver,
    NodeChanged,
    NotPlaced,
    Placed,
    WantedBack,
)
from yunikorn_actors.front.lease import Lease, Running
from yunikorn_actors.front.scheduler import Scheduler
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.runtime.aio import AsyncSchedulerCore
from yunikorn_actors.runtime.answering import AsyncResourceManagerCallback
from yunikorn_actors.runtime.hooks import CallbackRaised
from yunikorn_actors.runtime.logs import enable_logs
from yunikorn_actors.runtime.system import SchedulerCore
from yunikorn_actors.si import ResourceManagerCallback

__version__ = "0.1.0"

__all__ = [
    "Application",
    "ApplicationChanged",
    "ApplicationEnded",
    "ApplicationRejected",
    "AskRejected",
    "AskStatus",
    "AskWithdrawn",
    "AsyncApplication",
    "AsyncEvent",
    "AsyncEvents",
    "AsyncLease",
    "AsyncResourceManagerCallback",
    "AsyncScheduler",
    "AsyncSchedulerCore",
    "CallbackRaised",
    "CallbackStuck",
    "ConfigError",
    "CoreError",
    "CoreFailed",
    "CoreStopped",
    "Duplicate",
    "Event",
    "Events",
    "InvalidRequest",
    "InvalidSetting",
    "Lease",
    "LeaseOver",
    "NoReply",
    "NodeChanged",
    "NodeRejected",
    "NotPlaced",
    "Placed",
    "QuantityError",
    "Refused",
    "ResourceManagerCallback",
    "ResponsesLost",
    "Running",
    "Scheduler",
    "SchedulerClosed",
    "SchedulerCore",
    "Settings",
    "UnknownAsk",
    "UnknownName",
    "UnknownResourceManager",
    "WantedBack",
    "WouldBlock",
    "enable_logs",
    "si",
]
