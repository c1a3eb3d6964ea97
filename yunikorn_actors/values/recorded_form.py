"""Plain values as a recording gives them back: lists where there were tuples."""

from typing import Any

from msgspec import msgpack


def as_recorded(value: Any) -> Any:  # noqa: ANN401 - plain values, or what is written as such
    return msgpack.decode(msgpack.encode(value))
