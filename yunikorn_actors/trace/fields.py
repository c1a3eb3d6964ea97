"""Two plain values, field by field: what is in one and not in the other."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from yunikorn_actors.recording.plain_text import printable

Plain = Any
"""What MessagePack can hold."""


MISSING: Final = object()
_IDS: Final = (
    ("proposal_id",), ("uuid",), ("application_id", "key"), ("key",), ("application_id",),
    ("node_id",), ("id",), ("path",), ("serial",),
)  # fmt: skip
"""What tells items of a list apart: the first of these that an item has."""


class Change(NamedTuple):
    """One field that differs; `MISSING` where one of the values does not have it."""

    path: tuple[str, ...]
    one: Plain
    other: Plain

    @property
    def field(self) -> str:
        return ".".join(self.path)


def change_line(change: Change) -> str:
    """Say it in a line: `-` and `+` for what only the one or the other has."""
    if change.other is MISSING:
        return printable(f"- {change.field}: {_said(change.one)}")
    if change.one is MISSING:
        return printable(f"+ {change.field}: {_said(change.other)}")
    return printable(f"  {change.field}: {_said(change.one)} -> {_said(change.other)}")


def _said(value: Plain) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def change_row(change: Change) -> dict[str, Plain]:
    """Say it as plain values; what is missing is missing."""
    values = {"before": change.one, "after": change.other}
    present = {name: value for name, value in values.items() if value is not MISSING}
    return {"field": change.path, **present}


def changes(one: Plain, other: Plain, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield the innermost fields that differ, in the order of the first value."""
    if isinstance(one, dict) and isinstance(other, dict):
        yield from _in_maps(one, other, path)
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        ours, theirs = _numbered(one, other), _numbered(other, one)
        yield from _in_maps(ours, theirs, path)
        order = [name for name in ours if name in theirs], [it for it in theirs if it in ours]
        if order[0] != order[1]:
            yield Change((*path, "order"), *order)
    elif one != other:
        yield Change(path, one, other)


def _in_maps(
    one: dict[str, Plain], other: dict[str, Plain], path: tuple[str, ...]
) -> Iterator[Change]:
    for name in {**one, **other}:
        yield from changes(one.get(name, MISSING), other.get(name, MISSING), (*path, str(name)))


def _numbered(items: Sequence[Plain], others: Sequence[Plain]) -> dict[str, Plain]:
    """Name items by what they are about, if that tells all of them apart, or else by number."""
    names = [_name(item) for item in items]
    is_clear = all(names) and len(set(names)) == len(names) and all(map(_name, others))
    return dict(zip(names if is_clear else map(str, range(len(items))), items, strict=True))


def _name(item: Plain) -> str:
    if not isinstance(item, dict):
        return ""
    names = next((ids for ids in _IDS if all(name in item for name in ids)), ())
    kind = [item["fact"]] if names and "fact" in item else []
    return "/".join(map(str, (*kind, *(item[name] for name in names))))
