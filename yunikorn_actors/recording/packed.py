"""Machines as bytes, in the memory of this process: for a checkpoint, or to make another of them.

They are written to no file, and nothing is ever unpacked that was not packed here.
"""

import copyreg
import pickle
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from gc import get_referents
from io import BytesIO
from operator import attrgetter
from types import FunctionType, MappingProxyType
from typing import Any, Final, cast

from msgspec import Struct


def packed(value: object) -> bytes:
    # The first asks nothing of the single objects, and nearly everything can be packed by it.
    for pickler in (_Pickler, _NamingPickler):
        with suppress(TypeError, AttributeError, pickle.PicklingError):
            return _dumped(pickler, value)
    return _dumped(_SharingPickler, value)


def _dumped(pickler: "type[_Pickler]", value: object) -> bytes:
    file = BytesIO()
    made = pickler(file, pickle.HIGHEST_PROTOCOL)
    made.dispatch_table = _dispatch_table()
    made.dump(value)
    return zlib.compress(file.getvalue(), 1)


def unpacked(data: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """Return a copy of what this process has packed, and never of anything else."""
    return _Unpickler(BytesIO(zlib.decompress(data))).load()


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


class _Pickler(pickle.Pickler):
    """Needs no call for each object: what it does otherwise is in the table of types."""


@cache
def _dispatch_table() -> dict[type, Callable[[Any], Any]]:
    table: dict[type, Callable[[Any], Any]] = {**copyreg.dispatch_table}
    # What is shown to policies: of the copy what is copied, so it shows what changes there.
    table[MappingProxyType] = lambda shown: (_read_only, tuple(get_referents(shown)))
    for kind in _kinds(Struct):
        texts = _default_texts_of(kind)
        if texts:
            table[kind] = partial(_without_defaults, texts=texts)
    return table


def _default_texts_of(kind: type[Struct]) -> dict[str, str]:
    """Return the fields whose default is a text of which there may be another that is equal."""
    fields, defaults = kind.__struct_fields__, kind.__struct_defaults__
    with_default = zip(fields[len(fields) - len(defaults) :], defaults, strict=True)
    return {name: it for name, it in with_default if type(it) is str and it}


def _without_defaults(value: Struct, *, texts: dict[str, str]) -> tuple[Any, ...]:
    """Leave out the defaults: an encoder omits one only if it is the very same text."""
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    for name, default in texts.items():
        if fields[name] is default:
            del fields[name]
    return _made, (type(value), fields)


def _made(kind: type[Struct], fields: dict[str, Any]) -> Struct:
    return kind(**fields)


class _NamingPickler(_Pickler):
    def persistent_id(self, value: object) -> object:
        if isinstance(value, type | FunctionType) and "<" in value.__qualname__:
            # A policy that was written inside a function or as a lambda has no name to be found by.
            return _shared(value)
        return None


def _shared(value: object) -> int:
    _held[id(value)] = value
    return id(value)


class _SharingPickler(_NamingPickler):
    """Shares what cannot be copied, such as a cache, a lock or a file of a policy.

    A policy may not decide by these: it decides by its fields, which are plain values.
    """

    def persistent_id(self, value: object) -> object:
        found = super().persistent_id(value)
        kind = type(value)
        # What the table says how to copy is shared with nobody, though it does not say so itself.
        is_plain = kind in _PLAIN or kind in _dispatch_table()
        if found is None and not is_plain and not _is_copied(value):
            return _shared(value)
        return found


def _is_copied(value: object) -> bool:
    """Whether it says how it is copied, and can be found by its name if it only has one."""
    try:
        how = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if isinstance(how, str):
            # As pickle does it, to see whether the name leads back to the object.
            whence = getattr(value, "__module__", None) or "__main__"
            return attrgetter(how)(sys.modules[whence]) is value
    except (TypeError, AttributeError, KeyError, pickle.PicklingError):
        return isinstance(value, type | FunctionType)
    return True


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: object) -> Any:  # noqa: ANN401 - as it was packed
        return _held[cast(int, name)]


_held: Final[dict[int, object]] = {}
"""Kept as long as this process, as what is packed may be."""
_PLAIN: Final = frozenset({str, int, float, bool, type(None), dict, list, tuple, set, bytes})


def _kinds(kind: type[Struct]) -> Iterator[type[Struct]]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds(below)
