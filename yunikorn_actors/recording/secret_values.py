"""Secrets in records and dumps: replaced before anything is written.

In a log and in a dump of the state a value is replaced by stars. In a recording it is replaced by a
digest of it with a salt that is never written down. So equal values stay equal and different ones
different, and a replay, which gives the machines what was recorded, comes to the same: no machine
decides by a secret. What a secret looks like stands in `values.masking`.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import msgspec

from yunikorn_actors.messages.codec import encode
from yunikorn_actors.values.masking import HINT, Cover, masked, names_a_secret, stars

_HINT: Final = re.compile(HINT.encode())


def masked_record(data: bytes, cover: Cover) -> bytes:
    """Return MessagePack without the secrets in it."""
    # One look at the bytes: nearly no record holds anything like a secret.
    if not may_hold_secrets(data):
        return data
    return encode(_masked_value(msgspec.msgpack.decode(data), cover))


def masked_json(data: bytes, cover: Cover = stars) -> bytes:
    """Return JSON without the secrets in it."""
    if not may_hold_secrets(data):
        return data
    return msgspec.json.encode(_masked_value(msgspec.json.decode(data), cover))


def may_hold_secrets(data: bytes) -> bool:
    return _HINT.search(data.lower()) is not None


def masked_dump(dump: dict[str, Any]) -> dict[str, Any]:
    """Return a dump of the state without the secrets in it."""
    data = encode(dump)
    covered = masked_record(data, stars)
    # The very same object: nothing was covered, and nothing is decoded again.
    if covered is data:
        return dump
    plain: dict[str, Any] = msgspec.msgpack.decode(covered)
    return plain


def masked_texts(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Return tags or attributes without the secrets in them."""
    if not texts:
        return texts
    return {_masked_key(key, stars): _masked_item(key, it, stars) for key, it in texts.items()}


def _masked_value(value: Any, cover: Cover) -> Any:  # noqa: ANN401 - whatever MessagePack can hold
    if isinstance(value, str):
        return masked(value, cover)
    if isinstance(value, dict):
        return _masked_map(value, cover)
    if isinstance(value, list):
        return [
            _masked_item(former, item, cover) if _is_option(former) else _masked_value(item, cover)
            # An option may be followed by its value: `--token abc`.
            for former, item in pairwise([None, *value])
        ]
    return value


def _masked_map(value: dict[Any, Any], cover: Cover) -> dict[Any, Any]:
    if _is_named_pair(value):
        return {**value, "value": cover(value["value"])}
    return {_masked_key(key, cover): _masked_item(key, it, cover) for key, it in value.items()}


def _is_named_pair(value: dict[Any, Any]) -> bool:
    """Whether it is a variable of a container: its name stands in a field, not in a key."""
    name, secret = value.get("name"), value.get("value")
    is_pair = isinstance(name, str) and isinstance(secret, str) and bool(secret)
    return is_pair and _names_a_secret(str(name))


def _is_option(value: object) -> bool:
    """Whether what stands behind it in a list of arguments may be its value."""
    return isinstance(value, str) and value.startswith("-")


def _masked_key(key: Any, cover: Cover) -> Any:  # noqa: ANN401 - whatever MessagePack can hold
    return masked(key, cover) if isinstance(key, str) and not _is_plain(key) else key


@lru_cache(4096)
def _is_plain(key: str) -> bool:
    return masked(key) == key


@lru_cache(4096)
def _names_a_secret(key: str) -> bool:
    """Keys are few and come again and again, and to match one takes long."""
    return names_a_secret(key)


def _masked_item(key: object, value: Any, cover: Cover) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, str) and value and isinstance(key, str) and _names_a_secret(key):
        return cover(value)
    return _masked_value(value, cover)


def salted() -> Cover:
    """Return a cover by which equal secrets stay equal; only this process could tell them."""
    # Made for this process and never written down: nobody else can tell what it covers.
    salt = os.urandom(16)
    return lambda secret: f"masked:{hashlib.sha256(salt + secret.encode()).hexdigest()[:8]}"
