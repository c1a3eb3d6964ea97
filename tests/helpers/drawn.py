"""Draws values of any type that msgspec can describe: every message, every fact.

Texts and collections are short, numbers go to the ends of what a trace can hold.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect as types

from yunikorn_actors.values.resource import INT64_MAX, INT64_MIN

UINT64_MAX = 2**64 - 1

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(INT64_MIN, INT64_MAX) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)
_KNOWN: dict[type, st.SearchStrategy[Any]] = {}
"""One strategy for each struct: queues hold queues."""


def values_of(kind: type) -> st.SearchStrategy[Any]:
    """Draw whatever the type allows."""
    return _values_of(types.type_info(kind))


def _values_of(info: types.Type) -> st.SearchStrategy[Any]:
    return _STRATEGIES[type(info)](info)


def _known(info: types.StructType) -> st.SearchStrategy[Any]:
    if info.cls not in _KNOWN:
        _KNOWN[info.cls] = st.deferred(lambda: _structs(info))
    return _KNOWN[info.cls]


def _integers(info: types.IntType) -> st.SearchStrategy[int]:
    low = INT64_MIN if info.ge is None else info.ge
    return st.integers(low, UINT64_MAX if info.le is None else info.le)


def _structs(info: types.StructType) -> st.SearchStrategy[Any]:
    """Leave out fields that have a default now and then."""
    required = {field.name: _values_of(field.type) for field in info.fields if field.required}
    optional = {field.name: _values_of(field.type) for field in info.fields if not field.required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda it: info.cls(**it))


_STRATEGIES: dict[type, Callable[[Any], st.SearchStrategy[Any]]] = {
    types.Metadata: lambda info: _values_of(info.type),
    types.StructType: _known,
    types.UnionType: lambda info: st.one_of(*map(_values_of, info.types)),
    types.VarTupleType: lambda info: st.lists(_values_of(info.item_type), max_size=2).map(tuple),
    types.DictType: lambda info: st.dictionaries(
        _values_of(info.key_type), _values_of(info.value_type), max_size=2
    ),
    types.EnumType: lambda info: st.sampled_from(info.cls),
    types.IntType: _integers,
    types.FloatType: lambda _: st.floats(allow_nan=False),
    types.StrType: lambda _: st.text(max_size=4),
    types.BoolType: lambda _: st.booleans(),
    types.NoneType: lambda _: st.none(),
    types.AnyType: lambda _: _PLAIN,
}
