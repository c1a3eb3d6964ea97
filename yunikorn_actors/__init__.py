"""The Apache YuniKorn scheduler core as actors."""

from yunikorn_actors import si
from yunikorn_actors.errors import (
    CallbackStuck,
    ConfigError,
    CoreError,
    CoreFailed,
    CoreStopped,
    InvalidRequest,
    InvalidSetting,
    NoReply,
    Refused,
    ResponsesLost,
    UnknownAsk,
    UnknownResourceManager,
    WouldBlock,
)
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.runtime.aio import AsyncSchedulerCore
from yunikorn_actors.runtime.answering import AsyncResourceManagerCallback
from yunikorn_actors.runtime.hooks import CallbackRaised
from yunikorn_actors.runtime.logs import enable_logs
from yunikorn_actors.runtime.system import SchedulerCore
from yunikorn_actors.si import ResourceManagerCallback

__version__ = "0.1.0"

__all__ = [
    "AsyncResourceManagerCallback",
    "AsyncSchedulerCore",
    "CallbackRaised",
    "CallbackStuck",
    "ConfigError",
    "CoreError",
    "CoreFailed",
    "CoreStopped",
    "InvalidRequest",
    "InvalidSetting",
    "NoReply",
    "Refused",
    "ResourceManagerCallback",
    "ResponsesLost",
    "SchedulerCore",
    "Settings",
    "UnknownAsk",
    "UnknownResourceManager",
    "WouldBlock",
    "enable_logs",
    "si",
]
