"""Secrets in what goes out: no log has their values, and no recording.

Nobody tells the core what is secret, so names decide: what is called like a password or a token. In
a log and in a dump of the state the value is replaced by stars. In a recording it is replaced by a
digest of it with a salt that is never written down. So equal values stay equal and different ones
different, and a replay, which gives the machines what was recorded, comes to the same: no machine
decides by a secret.
"""

import hashlib
import os
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from yunikorn_actors.messages.codec import encode

_NAMES: Final = (
    "password", "passwd", "passphrase", "secret", "token", "credential", "api[_-]?key",
    "private[_-]?key", "authorization",
)  # fmt: skip
_NAMED: Final = rf"[\w-]*(?:{'|'.join(_NAMES)})[\w-]*"
_VALUE: Final = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?:bearer|basic)\s+\S+|[^\s,;&})\]]+"
_SECRETS: Final = (
    re.compile(rf"(?i)((?<![\w-]){_NAMED}['\"]?\s*[:=]\s*)({_VALUE})()"),
    re.compile(r"(?i)\b(bearer\s+)(\S+)()"),
    re.compile(r"(://[^\s/:@]*:)([^\s/@]+)(@)"),
)
"""What is named like a secret; a bearer's token; the password in an address."""
_NAME_OF_A_SECRET: Final = re.compile(rf"(?i).*?{_NAMED}.*", re.DOTALL)
_HINTS: Final = (
    b"passw", b"passphrase", b"secret", b"token", b"credential", b"apikey", b"api_key", b"api-key",
    b"privatekey", b"private_key", b"private-key", b"authorization", b"bearer", b"://",
)  # fmt: skip
"""Without one of these there is no secret in a record; looking for them costs next to nothing."""


Cover = Callable[[str], str]
"""What stands in the place of a secret."""


def stars(_: str) -> str:
    return "***"


def salted() -> Cover:
    """Return a cover by which equal secrets stay equal; only this process could tell them."""
    salt = os.urandom(16)
    return lambda secret: f"masked:{hashlib.sha256(salt + secret.encode()).hexdigest()[:8]}"


def masked(text: str, cover: Cover = stars) -> str:
    """Replace the value of everything that is named like a secret."""
    for pattern in _SECRETS:
        text = pattern.sub(lambda found: f"{found[1]}{cover(found[2])}{found[3]}", text)
    return text


def masked_record(data: bytes, cover: Cover) -> bytes:
    """Return MessagePack without the secrets in it."""
    lowered = data.lower()
    if not any(hint in lowered for hint in _HINTS):
        return data
    return encode(_masked_value(msgspec.msgpack.decode(data), cover))


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


def _masked_item(key: object, value: Any, cover: Cover) -> Any:  # noqa: ANN401 - as above
    is_named = isinstance(key, str) and _NAME_OF_A_SECRET.fullmatch(key) is not None
    if is_named and isinstance(value, str) and value:
        return cover(value)
    return _masked_value(value, cover)
