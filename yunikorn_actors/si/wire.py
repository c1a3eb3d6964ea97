"""What all messages of the interface share: their base, their wire names and their scalar types.

Making a message checks nothing, because the core makes them by the hundred thousand. The types here
declare the bounds: reading JSON enforces those of numbers, and the check of a request at the call
enforces all of them.

A field that equals its default is left out of the JSON, as in proto3. A missing field is read as
the default, so nothing is lost.

No message can contain itself: its fields hold scalars, messages made before it, and tuples and maps
of these. So the garbage collector need not track them (`gc=False`), which matters when a resource
manager reports a hundred thousand allocations at once.
"""

from typing import Annotated, Final, TypeAlias

import msgspec

from yunikorn_actors.values.resource import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

LONGEST_NAME: Final = 1024
LONGEST_TEXT: Final = 64 * 1024
LONGEST_CONFIG: Final = 4 * 1024 * 1024

MAX_BYTES: Final = "max_bytes"
"""Key of the bound on a string's UTF-8 form, in the metadata of its type."""

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
Name: TypeAlias = Annotated[str, msgspec.Meta(extra={MAX_BYTES: LONGEST_NAME})]
Text: TypeAlias = Annotated[str, msgspec.Meta(extra={MAX_BYTES: LONGEST_TEXT})]
ConfigText: TypeAlias = Annotated[str, msgspec.Meta(extra={MAX_BYTES: LONGEST_CONFIG})]

BESIDE: Final = "beside"
"""Key in the metadata of a field that the interface does not have: it is for callers in Python.
Neither JSON nor si.v1 carries it, because their readers reject or lose what they do not know."""
_BESIDE: Final = msgspec.Meta(extra={BESIDE: True})
BesideText: TypeAlias = Annotated[str, _BESIDE]
BesideNumber: TypeAlias = Annotated[
    int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX, extra={BESIDE: True})
]
BesideFlag: TypeAlias = Annotated[bool, _BESIDE]
BesideNames: TypeAlias = Annotated[tuple[str, ...], _BESIDE]

_ACRONYMS: Final = {"id": "ID", "uuid": "UUID"}


def wire_name(field: str) -> str:
    """Return the interface's name of a field: rm_id is rmID, node_id is nodeID, uuid is UUID."""
    first, *rest = field.split("_")
    return _ACRONYMS.get(first, first) + "".join(_ACRONYMS.get(it, it.capitalize()) for it in rest)


class SiMessage(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
    rename=wire_name,
):
    """The base of every message; its options hold for all of them, except kw_only."""
