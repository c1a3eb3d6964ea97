"""What recordings of earlier versions name otherwise.

A recording is kept for years, and a bug that it shows must still be found with it. So a message or
a field that gets another name keeps a line here, by which it is read.
"""

from typing import Any, Final

from yunikorn_actors.state.termination import ASKED_BACK

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


PARTS: Final = frozenset({"RMUpdateAllocation", "RMReleaseAllocation", "RMApplicationUpdate"})
"""Messages with parts that were of one kind, or mere ids, in earlier versions."""


def with_parts(payload: dict[str, Any]) -> dict[str, Any]:
    """Write the parts of a message as this version does.

    An accepted application was an id without a queue. What the core asks for has a type of its
    own. RmProxy did not tell confirmations apart from other releases, and Context handles both
    alike: so all of them are read as releases.
    """
    changed: dict[str, list[dict[str, Any]]] = {}
    if "accepted" in payload:
        changed["accepted"] = [{"id": id_} for id_ in payload["accepted"]]
    if "releases" in payload:
        changed["releases"] = [{"part": "ReleaseItem"} | item for item in payload["releases"]]
    if "released" in payload:
        changed["released"] = [
            {"part": "AskedBack" if item["type"] in ASKED_BACK else "AnnouncedRelease"} | item
            for item in payload["released"]
        ]
    return payload | changed


def renewed(type_: str, payload: Any) -> Any:  # noqa: ANN401 - whatever a recording holds
    """Return the payload as it is written now; one that is so already, or is no map, as it is."""
    if not isinstance(payload, dict):
        return payload
    for field, former in GATHERED.get(type_, {}).items():
        # Only if all of them are there: a part would be something else.
        if payload.keys() >= set(former):
            payload = payload | {field: {name: payload[name] for name in former}}
    return payload
