"""The Apache YuniKorn scheduler core as actors.

Start with `Scheduler`, or `AsyncScheduler` on an event loop. Below them are `SchedulerCore` and
`AsyncSchedulerCore`, which speak the scheduler interface; its messages are in `yunikorn_actors.si`.
Each name is imported when it is first used, so a program that needs a part of it does not wait for
the rest.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from yunikorn_actors.former_names import FormerNames
from yunikorn_actors.version import VERSION

if TYPE_CHECKING:
    from yunikorn_actors import si
    from yunikorn_actors.config import Fault
    from yunikorn_actors.drivers.live.clock import (
        Clock,
        RealClock,
        StandingClock,
    )
    from yunikorn_actors.errors import (
        ApplicationEnded,
        ApplicationRejected,
        AskRejected,
        AskWithdrawn,
        CallbackStuck,
        ConfigError,
        ConfigWarning,
        ConnectionLost,
        CoreError,
        CoreFailed,
        CoreStopped,
        DeadlinePassed,
        Duplicate,
        InvalidRequest,
        InvalidSetting,
        InvalidTopology,
        JournalError,
        LeaseLost,
        NodeRejected,
        NoReply,
        QuantityError,
        QueueNotFound,
        Refused,
        Replaced,
        ResponsesLost,
        SchedulerClosed,
        StillWaiting,
        UnknownAsk,
        UnknownName,
        UnknownResourceManager,
        WouldBlock,
    )
    from yunikorn_actors.front.aio import AsyncApplication, AsyncScheduler
    from yunikorn_actors.front.aio_executor import AsyncLeasedExecutor
    from yunikorn_actors.front.aio_futures import AsyncEvent, AsyncEvents, AsyncLease
    from yunikorn_actors.front.application import Application
    from yunikorn_actors.front.asks import AskStatus
    from yunikorn_actors.front.blocking import Scheduler
    from yunikorn_actors.front.executor import LeasedExecutor
    from yunikorn_actors.front.lease import (
        Lease,
        Running,
    )
    from yunikorn_actors.front.nodes import Node
    from yunikorn_actors.front.subscriptions import (
        ApplicationChanged,
        ApplicationWantedBack,
        Connection,
        ConnectionChanged,
        Event,
        Events,
        LeaseOver,
        NodeChanged,
        NotPlaced,
        Placed,
        WantedBack,
    )
    from yunikorn_actors.front.workers import DaskClient, current_lease
    from yunikorn_actors.machines.settings import Settings
    from yunikorn_actors.messages.queries import EventsFound
    from yunikorn_actors.planning.expected import Expected
    from yunikorn_actors.planning.reasons import (
        Cause,
        Gang,
        NearMiss,
        NodeCheck,
        Obstacle,
        Preempting,
        PreemptionCost,
        PreemptionVictim,
        WaitingSum,
        Why,
    )
    from yunikorn_actors.recording.logs import enable_logs
    from yunikorn_actors.recording.recorder import TraceSettings
    from yunikorn_actors.runtime.aio import (
        AsyncCore,
        AsyncEventStream,
        AsyncSchedulerCore,
    )
    from yunikorn_actors.runtime.async_callback import AsyncResourceManagerCallback
    from yunikorn_actors.runtime.core_api import Core
    from yunikorn_actors.runtime.event_streams import EventStream
    from yunikorn_actors.runtime.failure_hooks import CallbackRaised
    from yunikorn_actors.runtime.responses import (
        AllocationSaid,
        ApplicationSaid,
        EventsSaid,
        NodeSaid,
        Response,
        Responses,
    )
    from yunikorn_actors.runtime.scheduler_core import SchedulerCore
    from yunikorn_actors.runtime.virtual_core import VirtualCore
    from yunikorn_actors.service.aio import AsyncRemoteCore, connect_async
    from yunikorn_actors.service.connect import connect
    from yunikorn_actors.service.remote import RemoteCore
    from yunikorn_actors.si import ResourceManagerCallback

__version__ = VERSION
sys.meta_path.insert(0, FormerNames())

__all__ = [
    "AllocationSaid",
    "Application",
    "ApplicationChanged",
    "ApplicationEnded",
    "ApplicationRejected",
    "ApplicationSaid",
    "ApplicationWantedBack",
    "AskRejected",
    "AskStatus",
    "AskWithdrawn",
    "AsyncApplication",
    "AsyncCore",
    "AsyncEvent",
    "AsyncEventStream",
    "AsyncEvents",
    "AsyncLease",
    "AsyncLeasedExecutor",
    "AsyncRemoteCore",
    "AsyncResourceManagerCallback",
    "AsyncScheduler",
    "AsyncSchedulerCore",
    "CallbackRaised",
    "CallbackStuck",
    "Cause",
    "Clock",
    "ConfigError",
    "ConfigWarning",
    "Connection",
    "ConnectionChanged",
    "ConnectionLost",
    "Core",
    "CoreError",
    "CoreFailed",
    "CoreStopped",
    "DaskClient",
    "DeadlinePassed",
    "Duplicate",
    "Event",
    "EventStream",
    "Events",
    "EventsFound",
    "EventsSaid",
    "Expected",
    "Fault",
    "Gang",
    "InvalidRequest",
    "InvalidSetting",
    "InvalidTopology",
    "JournalError",
    "Lease",
    "LeaseLost",
    "LeaseOver",
    "LeasedExecutor",
    "NearMiss",
    "NoReply",
    "Node",
    "NodeChanged",
    "NodeCheck",
    "NodeRejected",
    "NodeSaid",
    "NotPlaced",
    "Obstacle",
    "Placed",
    "Preempting",
    "PreemptionCost",
    "PreemptionVictim",
    "QuantityError",
    "QueueNotFound",
    "RealClock",
    "Refused",
    "RemoteCore",
    "Replaced",
    "ResourceManagerCallback",
    "Response",
    "Responses",
    "ResponsesLost",
    "Running",
    "Scheduler",
    "SchedulerClosed",
    "SchedulerCore",
    "Settings",
    "StandingClock",
    "StillWaiting",
    "TraceSettings",
    "UnknownAsk",
    "UnknownName",
    "UnknownResourceManager",
    "VirtualCore",
    "WaitingSum",
    "WantedBack",
    "Why",
    "WouldBlock",
    "connect",
    "connect_async",
    "current_lease",
    "enable_logs",
    "si",
]

_HOMES = {
    "config": ("Fault",),
    "drivers.live.clock": ("Clock", "RealClock", "StandingClock"),
    "errors": (
        "ApplicationEnded",
        "ApplicationRejected",
        "AskRejected",
        "AskWithdrawn",
        "CallbackStuck",
        "ConfigError",
        "ConfigWarning",
        "ConnectionLost",
        "CoreError",
        "CoreFailed",
        "CoreStopped",
        "DeadlinePassed",
        "Duplicate",
        "InvalidRequest",
        "InvalidSetting",
        "InvalidTopology",
        "JournalError",
        "LeaseLost",
        "NoReply",
        "NodeRejected",
        "QuantityError",
        "QueueNotFound",
        "Refused",
        "Replaced",
        "ResponsesLost",
        "SchedulerClosed",
        "StillWaiting",
        "UnknownAsk",
        "UnknownName",
        "UnknownResourceManager",
        "WouldBlock",
    ),
    "front.aio": ("AsyncApplication", "AsyncScheduler"),
    "front.aio_executor": ("AsyncLeasedExecutor",),
    "front.aio_futures": ("AsyncEvent", "AsyncEvents", "AsyncLease"),
    "front.application": ("Application",),
    "front.asks": ("AskStatus",),
    "front.subscriptions": (
        "ApplicationChanged",
        "ApplicationWantedBack",
        "Connection",
        "ConnectionChanged",
        "Event",
        "Events",
        "LeaseOver",
        "NodeChanged",
        "NotPlaced",
        "Placed",
        "WantedBack",
    ),
    "front.executor": ("LeasedExecutor",),
    "front.lease": ("Lease", "Running"),
    "front.nodes": ("Node",),
    "front.blocking": ("Scheduler",),
    "front.workers": ("DaskClient", "current_lease"),
    "machines.settings": ("Settings",),
    "messages.queries": ("EventsFound",),
    "planning.expected": ("Expected",),
    "planning.reasons": (
        "Cause",
        "Gang",
        "NearMiss",
        "NodeCheck",
        "Obstacle",
        "Preempting",
        "PreemptionCost",
        "PreemptionVictim",
        "WaitingSum",
        "Why",
    ),
    "recording.logs": ("enable_logs",),
    "recording.recorder": ("TraceSettings",),
    "runtime.aio": ("AsyncCore", "AsyncEventStream", "AsyncSchedulerCore"),
    "runtime.async_callback": ("AsyncResourceManagerCallback",),
    "runtime.core_api": ("Core",),
    "runtime.event_streams": ("EventStream",),
    "runtime.failure_hooks": ("CallbackRaised",),
    "runtime.responses": (
        "AllocationSaid",
        "ApplicationSaid",
        "EventsSaid",
        "NodeSaid",
        "Response",
        "Responses",
    ),
    "runtime.scheduler_core": ("SchedulerCore",),
    "runtime.virtual_core": ("VirtualCore",),
    "service.aio": ("AsyncRemoteCore", "connect_async"),
    "service.connect": ("connect",),
    "service.remote": ("RemoteCore",),
    "si": ("ResourceManagerCallback",),
}
"""The modules of this package, each with what is public of it."""
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "si":
        return import_module(f"{__name__}.si")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
