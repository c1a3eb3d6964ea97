"""Machines as bytes, in the memory of this process: for a checkpoint, or to make another of them.

They are written to no file, and nothing is ever unpacked that was not packed here.
"""

import copyreg
import pickle
import sys
import zlib
from collections.abc import Iterator
from functools import cache
from gc import get_referents
from io import BytesIO
from operator import attrgetter
from types import FunctionType, MappingProxyType
from typing import Any, Final

from msgspec import Struct


def packed(value: object) -> bytes:
    try:
        data = _dumped(_Pickler, value)
    except (TypeError, AttributeError, pickle.PicklingError):
        data = _dumped(_SharingPickler, value)
    return zlib.compress(data, 1)


def _dumped(pickler: "type[_Pickler]", value: object) -> bytes:
    file = BytesIO()
    pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def unpacked(data: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """Return a copy of what this process has packed, and never of anything else."""
    return _Unpickler(BytesIO(zlib.decompress(data))).load()


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


class _Pickler(pickle.Pickler):
    """Names the defaults of fields: an encoder omits one only if it is the very same text."""

    dispatch_table = copyreg.dispatch_table | {
        # What is shown to policies: of the copy what is copied, so it shows what changes there.
        MappingProxyType: lambda shown: (_read_only, tuple(get_referents(shown)))
    }

    def persistent_id(self, value: object) -> object:
        if type(value) is str and _default_texts().get(value) is value:
            return value
        if isinstance(value, type | FunctionType) and "<" in value.__qualname__:
            # A policy that was written inside a function or as a lambda has no name to be found by.
            return _shared(value)
        return None


def _shared(value: object) -> int:
    _held[id(value)] = value
    return id(value)


class _SharingPickler(_Pickler):
    """Leaves as it is what cannot be copied: a policy may have a cache, a lock or a file.

    That is nothing to decide by: what a policy keeps to decide by are its fields, as plain values.
    """

    def persistent_id(self, value: object) -> object:
        found = super().persistent_id(value)
        if found is None and type(value) not in _PLAIN and not _is_copied(value):
            return _shared(value)
        return found


def _is_copied(value: object) -> bool:
    """Whether it says how it is copied, and can be found by its name if it only has one."""
    try:
        how = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if isinstance(how, str):
            whence = getattr(value, "__module__", None) or "__main__"
            return attrgetter(how)(sys.modules[whence]) is value
    except (TypeError, AttributeError, KeyError, pickle.PicklingError):
        return isinstance(value, type | FunctionType)
    return True


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: object) -> Any:  # noqa: ANN401 - as it was packed
        return _held[name] if isinstance(name, int) else _default_texts()[str(name)]


_held: Final[dict[int, object]] = {}
"""Kept as long as this process, as what is packed may be."""
_PLAIN: Final = frozenset({str, int, float, bool, type(None), dict, list, tuple, set, bytes})


@cache
def _default_texts() -> dict[str, str]:
    defaults = (it for kind in _kinds(Struct) for it in kind.__struct_defaults__)
    return {it: it for it in defaults if type(it) is str}


def _kinds(kind: type[Struct]) -> Iterator[type[Struct]]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds(below)
