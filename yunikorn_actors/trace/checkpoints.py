"""Where a replay of a recording has been, so that the next one need not begin at the beginning.

A checkpoint holds the machines, packed, in the memory of this process. It is written to no file,
and nothing is ever unpacked that was not packed here: what lies beside a recording comes from
anywhere. Checkpoints count only for the very files that were read; for others, and for those that
have grown, the replay begins anew.
"""

import copyreg
import pickle
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from types import FunctionType, MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import Struct

from yunikorn_actors.trace.source import FileId

EVERY: Final = 25_000
"""So many messages are between two checkpoints: to handle them again takes about a second."""
BYTES_MAX: Final = 64 * 2**20
"""So much is kept; behind the last checkpoint that has room a replay takes as long as it takes."""


class Checkpoint(NamedTuple):
    """After the record of some message, before the next."""

    record: int
    segment: int
    """Of the recording, in which that record stands."""
    steps: dict[str, int]
    """How many messages each mailbox had received."""
    latest_ns: int
    """The latest time of any message up to here."""
    packed: bytes


class Checkpoints:
    """All checkpoints of one recording."""

    def __init__(self, every: int = EVERY) -> None:
        self.every = every
        self._of: tuple[tuple[FileId, ...], dict[int, Checkpoint]] = (), {}

    def of(self, files: tuple[FileId, ...]) -> dict[int, Checkpoint]:
        """Return the checkpoints in these files, by their records; forget those in others."""
        if self._of[0] != files:
            self._of = files, {}
        return self._of[1]


def newest(
    checkpoints: dict[int, Checkpoint], is_before: Callable[[Checkpoint], bool]
) -> Checkpoint | None:
    # A copy: another thread may ask the same recording.
    found = filter(is_before, tuple(checkpoints.values()))
    return max(found, key=lambda checkpoint: checkpoint.record, default=None)


def has_room(checkpoints: dict[int, Checkpoint]) -> bool:
    return sum(len(checkpoint.packed) for checkpoint in tuple(checkpoints.values())) < BYTES_MAX


# -- as bytes


def packed(value: object) -> bytes:
    file = BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return zlib.compress(file.getvalue(), 1)


def unpacked(data: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """Return a copy of what this process has packed, and never of anything else."""
    return _Unpickler(BytesIO(zlib.decompress(data))).load()


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


class _Pickler(pickle.Pickler):
    """Names the defaults of fields: an encoder omits one only if it is the very same text."""

    dispatch_table = copyreg.dispatch_table | {
        # What is shown of a shape to policies: the sizes of a shape stay as they are.
        MappingProxyType: lambda shown: (_read_only, (dict(shown),))
    }

    def persistent_id(self, value: object) -> object:
        if type(value) is str and _default_texts().get(value) is value:
            return value
        if isinstance(value, type | FunctionType) and "<" in value.__qualname__:
            # A policy that was written inside a function or as a lambda has no name to be found by.
            _nameless[id(value)] = value
            return id(value)
        return None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: object) -> Any:  # noqa: ANN401 - as it was packed
        return _nameless[name] if isinstance(name, int) else _default_texts()[str(name)]


_nameless: Final[dict[int, object]] = {}
"""Kept as long as this process, as what is packed may be."""


@cache
def _default_texts() -> dict[str, str]:
    defaults = (it for kind in _kinds(Struct) for it in kind.__struct_defaults__)
    return {it: it for it in defaults if type(it) is str}


def _kinds(kind: type[Struct]) -> Iterator[type[Struct]]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds(below)
