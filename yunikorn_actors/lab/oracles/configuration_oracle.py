"""An oracle of configurations: what is read is what is written, key by key.

Each configuration of the case is taken as plain data and read a second time, in the fewest words;
nothing of `yunikorn_actors.config` is asked but what is judged. Forms that drawn worlds do not
write are not read here: a configuration with one of them is left alone.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from yunikorn_actors.config import (
    PartitionConfig,
    QueueConfig,
    RuleConfig,
    TemplateConfig,
    parse_config,
)
from yunikorn_actors.config.policy_names import ANY_NAMES
from yunikorn_actors.config.properties import QueueProperties
from yunikorn_actors.errors import ConfigError
from yunikorn_actors.lab.harness import Oracle, World
from yunikorn_actors.lab.scenario_documents import document_of
from yunikorn_actors.lab.swarm.reloads import IGNORE_CASE
from yunikorn_actors.machines.machine import InvariantViolation
from yunikorn_actors.values.durations import HOUR, MILLISECOND, MINUTE, SECOND

_Plain = Mapping[str, Any]
_CONFIGS_MAX: Final = 5
"""So many of one case are read: the others differ from these in little."""
_NS_OF: Final = {"ns": 1, "ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR}
_NO_RULES: Final = ({"name": "provided"},)
_WEIGHTS: Final = {"vcore": 1.0, "memory": 1.0}


class _OtherFormError(Exception):
    """Something is written as drawn worlds do not write it."""


class Configurations(Oracle):
    def at_rest(self, world: World) -> None:
        if not world.case.text:
            return
        document = document_of(world.case.text)
        found: dict[str, None] = {}
        for written in _written_in(document):
            found[json.dumps(written, sort_keys=True)] = None
        for text in list(found)[:_CONFIGS_MAX]:
            with suppress(_OtherFormError):
                if wrong := tuple(_wrong(text)):
                    raise InvariantViolation(f"a configuration is read wrongly: {'; '.join(wrong)}")


def _written_in(document: _Plain) -> Iterator[_Plain]:
    """Yield the configurations of a case: the first one, and those of its steps."""
    steps: list[Any] = [{"config": document}, *(document.get("steps") or ())]
    while steps:
        step = steps.pop(0)
        for word, fields in step.items() if isinstance(step, dict) else ():
            if word == "together":
                steps += fields
            for key in ("config", "queues") if isinstance(fields, dict) else ():
                written = fields.get(key)
                if isinstance(written, dict) and "partitions" in written:
                    yield written


def _wrong(text: str) -> Iterator[str]:
    try:
        read = parse_config(text, ANY_NAMES)
    except ConfigError:
        return
    written = json.loads(text)["partitions"]
    if len(read.partitions) != len(written):
        yield f"{len(read.partitions)} partitions are read of {len(written)}"
        return
    for config, as_written in zip(read.partitions, written, strict=True):
        for what, is_, expected in _partition(config, as_written):
            if is_ != expected:
                yield f"{what} is {is_!r}, written is {expected!r}"


def _name(written: _Plain) -> str:
    name: str = written.get("name", "")
    if not name or name != name.lower():
        raise _OtherFormError
    return name


_Compared = Iterator[tuple[str, object, object]]
"""What it is about, as it was read, and as it is written."""


def _partition(config: PartitionConfig, written: _Plain) -> _Compared:
    if len(written["queues"]) != 1:
        raise _OtherFormError
    (root,) = written["queues"]
    sort, preemption = written.get("nodesortpolicy", {}), written.get("preemption", {})
    yield "the partition", config.name, _name(written)
    yield "the node order", config.node_sort.policy, sort.get("type", "fair")
    weights = sort.get("resourceweights") or _WEIGHTS
    yield "the weights of nodes", dict(config.node_sort.weights), dict(weights)
    yield "preemption", config.preemption_enabled, preemption.get("enabled", True)
    by_quota = preemption.get("quotapreemptionenabled", False)
    yield "preemption for quotas", config.quota_preemption_enabled, by_quota
    rules = written.get("placementrules") or _NO_RULES
    yield "the number of rules", len(config.placement_rules), len(rules)
    for read, rule in zip(config.placement_rules, rules, strict=False):
        yield from _rule(read, rule)
    yield from _queue(config.root, root, "")


def _rule(read: RuleConfig, written: _Plain) -> _Compared:
    about = f"rule {_name(written)}"
    yield f"the name of {about}", read.name, _name(written)
    yield f"create of {about}", read.create, written.get("create", False)
    yield f"the value of {about}", read.value, written.get("value", "")
    of_users = written.get("filter")
    yield f"the filter of {about}", read.filter is not None, of_users is not None
    if read.filter is not None and of_users is not None:
        yield f"the type of {about}", read.filter.type, of_users.get("type", "allow")
        for word in ("users", "groups"):
            yield f"{word} of {about}", list(getattr(read.filter, word)), of_users.get(word, [])
    above = written.get("parent")
    yield f"the parent of {about}", read.parent is not None, above is not None
    if read.parent is not None and above is not None:
        yield from _rule(read.parent, above)


def _queue(read: QueueConfig, written: _Plain, above: str) -> _Compared:
    path = f"{above}.{_name(written)}" if above else _name(written)
    below: Sequence[_Plain] = written.get("queues") or ()
    yield f"a queue in {above or 'the partition'}", read.name, _name(written)
    yield from _bounds(path, read, written)
    for word, access in (("submitacl", read.submit_acl), ("adminacl", read.admin_acl)):
        yield f"{word} of {path}", access, written.get(word, "")
    if above:
        yield f"that {path} is a parent", read.is_leaf, not (written.get("parent") or below)
    yield from _limits(path, read, written.get("limits") or ())
    template = written.get("childtemplate")
    yield f"that {path} has a template", read.template is not None, bool(template)
    if read.template is not None and template:
        yield from _bounds(f"the template of {path}", read.template, template)
    yield f"the queues of {path}", [it.name for it in read.children], list(map(_name, below))
    for child, it in zip(read.children, below, strict=False):
        yield from _queue(child, it, path)


def _bounds(path: str, read: QueueConfig | TemplateConfig, written: _Plain) -> _Compared:
    resources = written.get("resources", {})
    yield f"max of {path}", read.max, _amounts(resources.get("max"))
    guaranteed = _amounts(resources.get("guaranteed"))
    yield f"guaranteed of {path}", read.guaranteed, guaranteed if any(guaranteed or ()) else None
    yield f"applications of {path}", read.max_applications, written.get("maxapplications", 0)
    own = {key: str(text) for key, text in written.get("properties", {}).items()}
    yield f"properties of {path}", dict(read.properties), own
    for key, text in own.items():
        field, expected = _meant_by(key, text)
        if field:
            is_ = getattr(QueueProperties.of({key: text}), field)
            yield f"{key} of {path}", _plain(is_), expected


def _limits(path: str, read: QueueConfig, written: Sequence[_Plain]) -> _Compared:
    yield f"the number of limits of {path}", len(read.limits), len(written)
    for limit, it in zip(read.limits, written, strict=False):
        yield f"users of a limit of {path}", list(limit.users), it.get("users", [])
        yield f"groups of a limit of {path}", list(limit.groups), it.get("groups", [])
        most = _amounts(it.get("maxresources"))
        yield f"resources of a limit of {path}", limit.max_resources, most
        yield (
            f"applications of a limit of {path}",
            limit.max_applications,
            it.get("maxapplications", 0),
        )


def _amounts(written: _Plain | None) -> dict[str, int] | None:
    """Processors are written whole and count in thousandths; all else counts as it is written."""
    if not written:
        return None
    return {
        kind: _whole(amount) * (1000 if kind == "vcore" else 1) for kind, amount in written.items()
    }


def _whole(text: object) -> int:
    if re.fullmatch(r"-?\d+", str(text)) is None:
        raise _OtherFormError
    return int(str(text))


# -- properties


def _time_ns(text: str) -> int:
    found = re.fullmatch(r"(\d+)(ns|ms|s|m|h)", text)
    if found is None:
        raise _OtherFormError
    return int(found[1]) * _NS_OF[found[2]]


def _budget(text: str) -> tuple[int, bool, int]:
    if text == "none":
        return (0, False, 0)
    most, _, window = text.partition("/")
    return (_whole(most.rstrip("%")), most.endswith("%"), _time_ns(window))


def _plain(value: object) -> object:
    fields = getattr(value, "__struct_fields__", None)
    return value if fields is None else tuple(getattr(value, name) for name in fields)


_TIMES: Final = frozenset({
    "preemption.delay", "preemption.cooldown", "preemption.grace", "quota.preemption.delay",
    "application.unschedasks.backoff.delay",
})  # fmt: skip
_NUMBERS: Final = {
    "priority.offset": "priority_offset",
    "application.unschedasks.backoff": "backoff_count",
    "reservation.max.nodes.percent": "reservation_max_nodes_percent",
}
_WORDS: Final = {
    "application.sort.policy": ("fifo", "fair", "stateaware"),
    "queue.sort.policy": ("fifo", "fair"),
    "preemption.policy": (),
    "preemption.unit": (),
    "gang.admission": (),
}
"""Where the name of a policy may stand as well, the words that are none."""
_SWITCHES: Final = {
    "application.sort.priority": ("application_sort_priority", "disabled"),
    "priority.policy": ("priority_fence", "default"),
}
"""The field, and the word that switches it off."""


def _meant_by(key: str, text: str) -> tuple[str, object]:
    """Return the field of a property and its value; no field where that is not known here."""
    field = key.removeprefix("application.unschedasks.").replace(".", "_")
    if text != text.lower():
        if key not in IGNORE_CASE:
            return "", None
        text = text.lower()
    if key in _TIMES:
        return f"{field}_ns", _time_ns(text)
    if key in _NUMBERS:
        return _NUMBERS[key], _whole(text)
    if key in _SWITCHES:
        field, off = _SWITCHES[key]
        return field, text != off
    if key == "preemption.budget":
        return field, _budget(text)
    is_word = key in _WORDS and (not _WORDS[key] or text in _WORDS[key])
    return (field, text) if is_word else ("", None)
