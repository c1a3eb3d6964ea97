"""The line between a core and a read side in a process of its own: frames of MessagePack.

Down go the messages to followers, each with the time at which the core sent it, answers, and what
is to be simulated; up go questions, and what would happen. A frame is four bytes of length and an
array whose first entry says what it is. A side that closes its end sends nothing more; the other
side then ends. The pipe is a pair of sockets that nobody else has, so what comes is what the other
side has written.
"""

import signal
from typing import Any, Final

import msgspec
from msgspec import Struct

from yunikorn_actors.config.policy_names import SHIPPED_NAMES, PolicyNames
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.policies.loading import PolicyPlace
from yunikorn_actors.service.log_lines import LogFormat

LENGTH_BYTES: Final = 4
IGNORED: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""A terminal and a supervisor signal the whole group; the process of the core decides for both."""
_encoder: Final = msgspec.msgpack.Encoder()


class Begin(Struct, frozen=True, array_like=True, tag=True):
    """The first frame: how the read side is made."""

    settings: Settings
    instance: str
    start_ns: int
    now_ns: int
    policies: PolicyNames = SHIPPED_NAMES
    names: tuple[str, ...] = ()
    cors: bool = True
    token: str = ""
    read_token: str = ""
    chain: bytes = b""
    key: bytes = b""
    clients: bytes = b""
    log_level: str = ""
    """Empty where it is to log nothing."""
    log_format: LogFormat = "text"
    topology: TopologyName = "proposing"
    schedulers: int = 1
    own_policies: tuple[PolicyPlace, ...] = ()
    """Where those that were given to the service stand."""


class Renewed(Struct, frozen=True, array_like=True, tag=True):
    """The tokens that are in force from now on."""

    token: str
    read_token: str


class CoreMessage(Struct, frozen=True, array_like=True, tag=True):
    """A message to a follower."""

    kind: str
    now_ns: int
    payload: msgspec.Raw


class Question(Struct, frozen=True, array_like=True, tag=True):
    number: int
    question: str
    arguments: tuple[str, ...]


class Answered(Struct, frozen=True, array_like=True, tag=True):
    number: int
    value: Any = None
    error: str = ""
    """Why there is no answer."""


class Simulate(Struct, frozen=True, array_like=True, tag=True):
    """What another part of the service was asked: the body of that route."""

    number: int
    body: bytes


class Simulated(Struct, frozen=True, array_like=True, tag=True):
    number: int
    content: bytes = b""
    error: str = ""
    """Why there is no answer."""


class Ready(Struct, frozen=True, array_like=True, tag=True):
    """The read side listens."""


Down = Begin | Renewed | CoreMessage | Answered | Simulate
Up = Question | Ready | Simulated


def frame(entry: Down | Up) -> bytes:
    data = _encoder.encode(entry)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data
