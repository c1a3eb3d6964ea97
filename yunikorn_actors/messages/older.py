"""What recordings of earlier versions name otherwise.

A recording is kept for years, and a bug that it shows must still be found with it. So a message or
a field that gets another name keeps a line here, by which it is read.
"""

from typing import Any, Final

RENAMED: Final[dict[str, str]] = {
    "ResourceManagerLost": "RMLost",
    "ResourceManagerLeft": "RMUnregistered",
    "RMRequestsMarked": "RequestsMarked",
    "RMRequestsHandled": "RequestsHandled",
}
"""Each was the same message on another part of its way."""

GATHERED: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    message: {"capabilities": ("hears_states", "has_predicates", "has_preemption_predicates")}
    for message in ("RegistrationRequested", "RMRegistration")
}
"""Fields of a message that stand together in one of its fields now."""


def renewed(type_: str, payload: Any) -> Any:  # noqa: ANN401 - whatever a recording holds
    """Return the payload as it is written now; one that is so already, or is no map, as it is."""
    if not isinstance(payload, dict):
        return payload
    for field, former in GATHERED.get(type_, {}).items():
        if payload.keys() >= set(former):
            payload = payload | {field: {name: payload[name] for name in former}}
    return payload
