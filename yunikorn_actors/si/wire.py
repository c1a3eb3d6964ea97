"""What all messages of the interface share: their base, their wire names and their scalar types.

A message is plain data: constructing one checks nothing, because the core builds them by the
hundred thousand. Bounds are declared here, on the types; reading JSON enforces the numeric ones,
and the check of a request at the call derives all of its own from them.

A field that equals its default is left out of the JSON, as in proto3. Absent then reads as the
default again, so nothing is lost.

No message can lead back to itself: its fields hold scalars, messages made before it, and tuples and
maps of these. So the collector of garbage need not look at them (`gc=False`), which matters when a
resource manager reports a hundred thousand allocations at once.
"""

from typing import Annotated, Final, TypeAlias

import msgspec

from yunikorn_actors.domain.resource import INT64_MAX, INT64_MIN

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1

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

_ACRONYMS: Final = {"id": "ID", "uuid": "UUID"}


def wire_name(field: str) -> str:
    """Spell a field as the interface does: rm_id is rmID, node_id is nodeID, uuid is UUID."""
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
    """Base of every message; what is spelt here holds for all of them, except kw_only."""
