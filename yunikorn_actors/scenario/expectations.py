"""What an `expect` step may say: one table for each view.

The view of the same name holds the actual values, from the core or the resource manager; the table
says how each is compared.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final

from yaml.nodes import Node, SequenceNode

from yunikorn_actors import si
from yunikorn_actors.config.yaml_tree import line_of
from yunikorn_actors.scenario.expected_values import (
    AMOUNTS,
    NUMBER,
    Difference,
    Kind,
    Value,
    each,
    existing,
    leaf,
    named,
    nothing_or,
    plain,
)
from yunikorn_actors.scenario.yaml_reading import (
    Reader,
    ScenarioFault,
    flag,
    many,
    one_of,
    optional,
    table,
    text,
)


def _in_order(
    expected: Sequence[Any], actual: Iterable[Any], matches: Callable[[Any, Any], bool]
) -> bool:
    """Whether all expected items occur in this order, with any others between them."""
    rest = iter(actual)
    return all(any(matches(wanted, found) for found in rest) for wanted in expected)


def _name_of(kind: type[IntEnum]) -> Reader[str]:
    return one_of({member.name: member.name for member in kind})


_WORD: Final = leaf(text, lambda expected, actual: expected == actual)
_FLAG: Final = leaf(flag, lambda expected, actual: expected is actual)
_QUEUE: Final = leaf(text, lambda expected, actual: expected.lower() == actual.lower())
_SET: Final = leaf(many(text), lambda expected, actual: set(expected) == set(actual))
_SEQUENCE: Final = leaf(many(text), lambda expected, actual: list(expected) == list(actual))
_REASON: Final = leaf(
    optional(text),
    lambda expected, actual: (
        not actual if expected is None else any(expected in reason for reason in actual)
    ),
)


# --- the core's objects ---------------------------------------------------------------------------


def _read_nodes(node: Node) -> str | tuple[str, ...]:
    return many(text)(node) if isinstance(node, SequenceNode) else text(node)


def _is_on(expected: str | tuple[str, ...], actual: str) -> bool:
    return expected == actual if isinstance(expected, str) else actual in expected


def _every(kind: Kind) -> Kind:
    """One key may have several allocations: each of them must match."""

    def differences(expected: Value, actual: Value) -> Iterator[Difference]:
        for item in actual:
            yield from kind.differences(expected, item)

    return Kind(kind.read, differences)


_TASK_GROUP: Final = named({"count": NUMBER, "replaced": NUMBER, "timed_out": NUMBER})
_APP: Final = named(
    {
        "state": _WORD,
        "queue": _QUEUE,
        "allocated": AMOUNTS,
        "placeholders": AMOUNTS,
        "pending": AMOUNTS,
        "allocations": NUMBER,
        "placeholder_count": NUMBER,
        "reservations": NUMBER,
        "task_groups": each(existing(_TASK_GROUP)),
    }
)
_QUEUE_OBJECT: Final = named(
    {
        "state": _WORD,
        "allocated": AMOUNTS,
        "pending": AMOUNTS,
        "preempting": AMOUNTS,
        "max": AMOUNTS,
        "guaranteed": AMOUNTS,
        "running_apps": NUMBER,
        "dynamic": _FLAG,
    }
)
_NODE: Final = named(
    {
        "capacity": AMOUNTS,
        "allocated": AMOUNTS,
        "available": AMOUNTS,
        "occupied": AMOUNTS,
        "schedulable": _FLAG,
        "allocations": NUMBER,
        "reservations": NUMBER,
    }
)
_ALLOCATION: Final = named(
    {"node": leaf(_read_nodes, _is_on), "placeholder": _FLAG, "priority": NUMBER}
)
_TRACKED: Final = existing(
    each(
        existing(
            named({"usage": AMOUNTS, "running_apps": NUMBER}),
            absent={"usage": {}, "running_apps": 0},
        ),
        fold=str.lower,
    ),
    absent={},
)
_PENDING: Final = leaf(
    optional(many(text)), lambda expected, actual: list(expected or ()) == list(actual)
)


# --- the responses to the resource manager --------------------------------------------------------


def _read_new(node: Node) -> Value:
    return (_SET if isinstance(node, SequenceNode) else _COUNTS).read(node)


def _new_differences(expected: Value, actual: Value) -> Iterable[Difference]:
    if isinstance(expected, tuple):
        return _SET.differences(expected, actual["keys"])
    return _COUNTS.differences(expected, actual["applications"])


def _same_releases(expected: Sequence[Mapping[str, str]], actual: Sequence[Any]) -> bool:
    """Compare multisets, precise items first: a vague one must not take the match of another."""
    left = list(actual)
    for wanted in sorted(expected, key=len, reverse=True):
        found = next((item for item in left if wanted.items() <= item.items()), None)
        if found is None:
            return False
        left.remove(found)
    return not left


_COUNTS: Final = nothing_or(each(NUMBER, missing=0))
_REASONS: Final = nothing_or(each(_REASON, missing=()))
_RELEASES: Final = leaf(
    many(table({"key": text, "type": _name_of(si.TerminationType)})), _same_releases
)
_STATE: Final = leaf(
    optional(_name_of(si.SchedulingState)), lambda expected, actual: expected == actual
)
_LOG: Final = leaf(
    many(text), lambda expected, actual: _in_order(expected, actual, lambda a, b: bool(a == b))
)
_RM: Final = named(
    {
        "accepted_apps": _SET,
        "rejected_apps": _REASONS,
        "accepted_nodes": _SET,
        "rejected_nodes": _REASONS,
        "rejected_asks": _REASONS,
        "new": Kind(_read_new, _new_differences),
        "released": _RELEASES,
        "released_asks": _RELEASES,
        "app_states": nothing_or(each(_SEQUENCE, missing=())),
        "container_states": nothing_or(each(_STATE)),
        "log": nothing_or(_LOG),
    }
)


# --- events ---------------------------------------------------------------------------------------


def _is_event(expected: Mapping[str, str], actual: Mapping[str, str]) -> bool:
    return all(
        value in actual[name] if name == "message" else value == actual[name]
        for name, value in expected.items()
    )


def _event_differences(expected: Value, actual: Value) -> Iterator[Difference]:
    """Show only the events of the expected objects."""
    if _in_order(expected, actual, _is_event):
        return
    objects = {event.get("object", "") for event in expected}
    seen = [f"{it['object']} {it['detail']}" for it in actual if {"", it["object"]} & objects]
    yield Difference("", plain(expected), seen)


_EVENTS: Final = Kind(
    many(
        table(
            {
                "object": text,
                "detail": _name_of(si.ChangeDetail),
                "type": _name_of(si.EventType),
                "change": _name_of(si.ChangeType),
                "reference": text,
                "message": text,
            }
        )
    ),
    _event_differences,
)


# --- all together ---------------------------------------------------------------------------------


def _read_alternatives(node: Node) -> tuple[dict[str, Any], ...]:
    alternatives = many(EXPECTATION.read)(node)
    if not alternatives:
        raise ScenarioFault(line_of(node), "an empty list, so no alternative can hold")
    return alternatives


def _any_differences(expected: Value, views: Value) -> list[Difference]:
    """Compare each alternative with all the views, until one holds."""
    tried: list[Difference] = []
    for number, alternative in enumerate(expected, 1):
        found = [
            difference.under(str(number))
            for difference in EXPECTATION.differences(alternative, views)
        ]
        if not found:
            return []
        tried.extend(found)
    return tried


OBJECTS: Final[Mapping[str, Callable[[str], str]]] = {
    "apps": str,
    "queues": str.lower,
    "nodes": str,
    "allocations": str,
    "pending": str,
}
"""The views of what comes and goes, each with what turns a written name into that of the view."""

EXPECTATION: Final = named(
    {
        "apps": each(existing(_APP)),
        "queues": each(existing(_QUEUE_OBJECT), fold=OBJECTS["queues"]),
        "nodes": each(existing(_NODE)),
        "users": each(_TRACKED),
        "groups": each(_TRACKED),
        "allocations": each(existing(_every(_ALLOCATION))),
        "pending": each(_PENDING, missing=()),
        "rm": _RM,
        "events": _EVENTS,
        "invariants": leaf(one_of({"hold": "hold"}), lambda _, __: True),
        "any_of": Kind(_read_alternatives, _any_differences),
    }
)
"""Each name is that of a view; `any_of` gets all views."""
