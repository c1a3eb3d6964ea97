"""What all facts share."""

from msgspec import Struct


class Base(Struct, frozen=True, kw_only=True, tag=True, tag_field="fact", gc=False):
    """What all facts share: on the wire each says which it is."""
