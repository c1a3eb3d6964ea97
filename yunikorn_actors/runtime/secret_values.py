"""Records and dumps without the secrets in them; the texts of logs need no codec for that."""

from functools import lru_cache
from typing import Any, Final

import msgspec

from yunikorn_actors.messages.codec import encode
from yunikorn_actors.runtime.secrets import NAME_OF_A_SECRET, Cover, masked, stars

_HINTS: Final = (
    b"pass", b"secret", b"token", b"credential", b"api", b"private", b"authorization", b"bearer",
    b"://",
)  # fmt: skip
"""Without one of these there is no secret in a record. Each is looked for in every record, and that
is most of what a recording costs: so there are few, and one may stand for several names."""


def masked_record(data: bytes, cover: Cover) -> bytes:
    """Return MessagePack without the secrets in it."""
    if not may_hold_secrets(data):
        return data
    return encode(_masked_value(msgspec.msgpack.decode(data), cover))


def masked_json(data: bytes, cover: Cover = stars) -> bytes:
    """Return JSON without the secrets in it."""
    if not may_hold_secrets(data):
        return data
    return msgspec.json.encode(_masked_value(msgspec.json.decode(data), cover))


def may_hold_secrets(data: bytes) -> bool:
    lowered = data.lower()
    return any(hint in lowered for hint in _HINTS)


def masked_dump(dump: dict[str, Any]) -> dict[str, Any]:
    """Return a dump of the state without the secrets in it."""
    data = encode(dump)
    covered = masked_record(data, stars)
    if covered is data:
        return dump
    plain: dict[str, Any] = msgspec.msgpack.decode(covered)
    return plain


def _masked_value(value: Any, cover: Cover) -> Any:  # noqa: ANN401 - whatever MessagePack can hold
    if isinstance(value, str):
        return masked(value, cover)
    if isinstance(value, dict):
        return {key: _masked_item(key, item, cover) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked_value(item, cover) for item in value]
    return value


@lru_cache(4096)
def _names_a_secret(key: str) -> bool:
    """Keys are few and come again and again, and to match one takes long."""
    return NAME_OF_A_SECRET.fullmatch(key) is not None


def _masked_item(key: object, value: Any, cover: Cover) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, str) and value and isinstance(key, str) and _names_a_secret(key):
        return cover(value)
    return _masked_value(value, cover)
