"""Messages as JSON: camel case names, enumerations as numbers, defaults left out.

Reading is typed and strict. An unknown field is an error: otherwise the core would use the default
of a field that was misspelt.
"""

from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from yunikorn_actors.si.allocation import (
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
    AllocationResponse,
)
from yunikorn_actors.si.application_messages import (
    AcceptedApplication,
    ApplicationResponse,
    RejectedApplication,
)
from yunikorn_actors.si.wire import SiMessage

M = TypeVar("M", bound=SiMessage)

LARGEST_JSON: Final = 64 * 1024 * 1024
"""Bytes that `from_json` reads at most, unless it is given another limit."""


class SiDecodeError(ValueError):
    """The bytes are not a message of the expected type."""


def to_json(message: SiMessage) -> bytes:
    """Return a message as JSON with the names of the interface."""
    return msgspec.json.encode(_without_beside(message))


def _without_beside(message: SiMessage) -> SiMessage:
    """Leave out what the interface does not have: its readers are as strict as `from_json`."""
    match message:
        case ApplicationResponse(accepted=accepted, rejected=rejected):
            return replace(
                message,
                accepted=tuple(map(_without_beside, accepted)),
                rejected=tuple(map(_without_beside, rejected)),
            )
        case AllocationResponse(released=released):
            return replace(message, released=tuple(map(_without_beside, released)))
        case AllocationReleasesRequest(allocations_to_release=released):
            return replace(message, allocations_to_release=tuple(map(_without_beside, released)))
        case AllocationRequest(releases=AllocationReleasesRequest() as releases):
            return replace(message, releases=_without_beside(releases))
        case AllocationRelease() if message.grace_ms:
            return replace(message, grace_ms=0)
        case AcceptedApplication():
            return AcceptedApplication(application_id=message.application_id)
        case RejectedApplication():
            return RejectedApplication(application_id=message.application_id, reason=message.reason)
        case _:
            return message


def from_json(kind: type[M], data: bytes, limit: int = LARGEST_JSON) -> M:
    """Read a message of this kind from JSON; anything else raises SiDecodeError."""
    if len(data) > limit:
        reason = f"{len(data)} bytes exceed the limit of {limit}; send it in smaller requests"
        raise SiDecodeError(f"{kind.__name__}: {reason} - at `$`")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SiDecodeError(f"{kind.__name__}: {_with_path(_why(data, error))}") from error


def _why(data: bytes, error: Exception) -> str:
    """Word it here where it is no text: releases of msgspec word that in different ways."""
    try:
        data.decode()
    except UnicodeDecodeError as undecodable:
        return f"byte {undecodable.start} is not UTF-8"
    return str(error)


def _with_path(reason: str) -> str:
    """Return the text with a path; if the bytes are not JSON the path is that of the whole."""
    return reason if " - at `$" in reason else f"{reason} - at `$`"
