"""What one configuration changes against another: what was written, and what counts because of it.

A value of a queue may come from above: a max and the limits of users bound all that is below,
properties and templates are handed down, who may submit to a parent may submit to its leaves. So a
queue of which nothing was written anew may change as well. Such a change names the queue that it
comes from.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from msgspec import Struct

from yunikorn_actors.config.acl import Acl
from yunikorn_actors.config.model import (
    FilterConfig,
    LimitConfig,
    PartitionConfig,
    QueueConfig,
    RuleConfig,
    SchedulerConfig,
    TemplateConfig,
)
from yunikorn_actors.config.names import WILDCARD
from yunikorn_actors.config.properties import (
    POLICY_OF,
    READERS,
    QueueProperties,
    Reader,
    handed_down,
)
from yunikorn_actors.values.quantity import amounts, quantity
from yunikorn_actors.values.resource import Resource


class Kind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    INHERITED = "inherited"
    """Nothing of it was written anew in this queue."""
    IGNORED = "ignored"
    """The core takes no notice of it, so it is no difference."""


class ConfigChange(Struct, frozen=True, kw_only=True):
    partition: str
    queue: str = ""
    """Its path; empty for what is of the whole partition."""
    kind: Kind = Kind.CHANGED
    what: str
    before: str = ""
    """In the units of a configuration; with the queue that it comes from, if that is another."""
    after: str = ""
    of: str = ""
    """The queue that an inherited value comes from, or came from."""


def config_changes(old: SchedulerConfig, new: SchedulerConfig) -> Iterator[ConfigChange]:
    """Yield what differs, partitions in the order of the new one.

    If both mean the same, there is nothing but what the core ignores.
    """
    before = {it.name: it for it in old.partitions}
    after = {it.name: it for it in new.partitions}
    for name in sorted(before.keys() - after.keys()):
        yield ConfigChange(
            partition=name, kind=Kind.REMOVED, what="partition", after=PARTITION_ENDS
        )
    for name, partition in after.items():
        if name in before:
            yield from _of_partition(before[name], partition)
        else:
            yield ConfigChange(partition=name, kind=Kind.ADDED, what="partition")
            yield from _of_partition(PartitionConfig(name=name, root=_NO_QUEUE), partition)


PARTITION_ENDS: Final = "its applications end and its nodes are given back"
QUEUE_DRAINS: Final = (
    "it drains: no new application, those that it has go on, and it is gone after the last of them"
)
_NO_QUEUE: Final = QueueConfig(name="root", parent=True)


# --- a partition ----------------------------------------------------------------------------------


def _of_partition(old: PartitionConfig, new: PartitionConfig) -> Iterator[ConfigChange]:
    before, after = _settings(old), _settings(new)
    for what in dict.fromkeys((*before, *after)):
        texts = before.get(what, "0"), after.get(what, "0")
        if texts[0] != texts[1]:
            yield ConfigChange(partition=new.name, what=what, before=texts[0], after=texts[1])
    yield from _rules(new.name, old.placement_rules, new.placement_rules)
    yield from _of_queues(new.name, "", (old.root, new.root), _Pair({}, {}))


def _settings(partition: PartitionConfig) -> dict[str, str]:
    switch = {True: "on", False: "off"}
    return {
        "node order": partition.node_sort.policy,
        **{
            f"weight of {kind} in the node order": f"{weight:g}"
            for kind, weight in sorted(partition.node_sort.weights.items())
            if weight
        },
        "preemption": switch[partition.preemption_enabled],
        "preemption by quota": switch[partition.quota_preemption_enabled],
        "groups of users": partition.user_group_resolver or "those that a request names",
    }


def _rules(
    partition: str, old: Sequence[RuleConfig], new: Sequence[RuleConfig]
) -> Iterator[ConfigChange]:
    meant = SequenceMatcher(None, [*map(_meant, old)], [*map(_meant, new)], autojunk=False)
    for tag, i, i_end, j, j_end in meant.get_opcodes():
        if tag == "equal":
            continue
        pairs = zip_longest(range(i, i_end), range(j, j_end))
        for at_old, at_new in pairs:
            kind = (
                Kind.ADDED if at_old is None
                else Kind.REMOVED if at_new is None
                else Kind.CHANGED
            )  # fmt: skip
            yield ConfigChange(
                partition=partition, kind=kind,
                what=f"placement rule {(at_old if at_new is None else at_new) + 1}",
                before="" if at_old is None else rule_in_words(old[at_old]),
                after="" if at_new is None else rule_in_words(new[at_new]),
            )  # fmt: skip


def _meant(rule: RuleConfig) -> tuple[object, ...]:
    """What of a rule counts: the order of names in a filter does not, nor one for everybody."""
    it, above = rule.filter, rule.parent
    only = None if it is None else (it.type == "deny", frozenset(it.users), frozenset(it.groups))
    if only == (False, frozenset(), frozenset()):
        only = None
    return rule.name, rule.value, rule.create, only, above and _meant(above)


# --- values of a queue ----------------------------------------------------------------------------


class _Key(NamedTuple):
    family: str
    name: str = ""
    """Of a user, a group, a property."""
    kind: str = ""
    """Of resource, or a word for what else a limit has."""

    @property
    def words(self) -> str:
        whose = f"{self.family} {self.name}".rstrip()
        return (
            f"{whose}: {self.kind}" if self.name and self.kind else f"{whose} {self.kind}".strip()
        )

    @property
    def is_ignored(self) -> bool:
        """The core takes no notice of it."""
        is_unknown = self.family == _UNKNOWN or self.name.startswith(_UNKNOWN)
        return is_unknown or self.kind == _DESCRIPTION


class _Value(NamedTuple):
    counts: Any
    """Compares with that of the other configuration."""
    text: str
    source: str = ""
    """The queue that says so."""


_Values = Mapping[_Key, _Value]

_USER: Final = "limit of user"
_GROUP: Final = "limit of group"
_BOUNDS: Final = frozenset({"max", "applications at a time", _USER, _GROUP})
"""The smallest of the path counts."""
_PROPERTY: Final = "property"
_UNKNOWN: Final = "unknown property"
_TEMPLATE: Final = "queues created below:"
_ACCESS: Final = (_Key("admin access"), _Key("submit access"))
_MAY_SUBMIT: Final = _Key("who may submit")
_CARRIED: Final = _BOUNDS | {_PROPERTY, _TEMPLATE, _MAY_SUBMIT.family}
_NOTHING: Final = {**dict.fromkeys(_BOUNDS, "no limit"), "guaranteed": "0"}
"""What it means that nothing is written."""


def _own(queue: QueueConfig) -> dict[_Key, _Value]:
    """Return what is written of a queue."""
    lists = zip(_ACCESS, (queue.admin_acl, queue.submit_acl), strict=True)
    own = {_Key("kind of queue"): _said("leaf" if queue.is_leaf else "parent")}
    own |= _amounts("", queue)
    own |= {key: _Value(Acl.parse(it), access(it)) for key, it in lists if access(it)}
    for key, text in queue.properties.items():
        own[_Key(_family(key), key)] = _property(key, text)
    for family, named in ((_USER, "users"), (_GROUP, "groups")):
        for limit in queue.limits:
            for name in getattr(limit, named):
                own |= {_Key(family, name, kind): it for kind, it in _allowed(limit)}
    groups = tuple(dict.fromkeys(group for limit in queue.limits for group in limit.groups))
    if len(groups) > 1:
        own[_Key("order of groups in the limits")] = _said(", ".join(groups))
    if queue.template is not None and not queue.is_leaf:
        own |= _amounts(_TEMPLATE, queue.template)
        for key, text in queue.template.properties.items():
            own[_Key(_TEMPLATE, f"{_family(key)} {key}")] = _property(key, text)
    return own


def _said(text: str) -> _Value:
    return _Value(text, text)


def _amounts(family: str, of: QueueConfig | TemplateConfig) -> dict[_Key, _Value]:
    def key(what: str, kind: str = "") -> _Key:
        return _Key(family, f"{what} {kind}".rstrip()) if family else _Key(what, kind=kind)

    found = {
        key(what, kind): _Value(amount, quantity(kind, amount))
        for what, amounts in (("guaranteed", of.guaranteed), ("max", of.max))
        for kind, amount in sorted((amounts or {}).items())
    }
    if of.max_applications:
        found[key("applications at a time")] = _Value(of.max_applications, str(of.max_applications))
    return found


def _allowed(limit: LimitConfig) -> Iterator[tuple[str, _Value]]:
    amounts: Resource = limit.max_resources or {}
    for kind, amount in sorted(amounts.items()):
        yield kind, _Value(amount, quantity(kind, amount))
    if limit.max_applications:
        yield "applications", _Value(limit.max_applications, str(limit.max_applications))
    if limit.description:
        yield _DESCRIPTION, _Value(None, limit.description)


_DESCRIPTION: Final = "description"


def _family(key: str) -> str:
    return _PROPERTY if key in READERS else _UNKNOWN


def _property(key: str, text: str) -> _Value:
    reader = READERS.get(key)
    if reader is None:
        return _Value(None, text)
    read = reader.parse(text)
    if read is not None:
        return _Value(read, text)
    if key in POLICY_OF:
        return _Value(text, f"{text} (a policy of your own; if there is none, as if not set)")
    return _Value(_default(reader), f"{text} (no such value: as if not set)")


def _default(reader: Reader) -> object:
    return getattr(QueueProperties(), reader.field)


def _absent(key: _Key) -> _Value:
    reader = READERS.get(key.name) if key.family == _PROPERTY else None
    if reader is None:
        return _Value(None, "none" if key.is_ignored else _NOTHING.get(key.family, "none"))
    default = _default(reader)
    word = next((it for it in reader.words if reader.parse(it) == default), "")
    return _Value(default, f"{word} by default" if word else "the default")


# --- what is handed down --------------------------------------------------------------------------


def _counting(path: str, queue: QueueConfig, own: _Values, above: _Values) -> dict[_Key, _Value]:
    """Return what counts in a queue, of what may come from above."""
    counts = dict(above)
    if queue.is_leaf or queue.template is not None:
        for key in _of_family(_TEMPLATE, counts):
            del counts[key]
    for key in _of_family(_PROPERTY, counts):
        text = handed_down(key.name, counts[key].text)
        if text != counts[key].text:
            counts[key] = _property(key.name, text)._replace(source=counts[key].source)
    _count_wildcards(path, own, counts)
    for key, value in own.items():
        if key.family in _BOUNDS and key.kind != _DESCRIPTION:
            _bound(counts, key, value._replace(source=path))
        elif key.family in {_PROPERTY, _TEMPLATE}:
            counts[key] = value._replace(source=path)
    if queue.submit_acl.strip() or queue.admin_acl.strip():
        lists = [Acl.parse(it) for it in (queue.submit_acl, queue.admin_acl)]
        counts[_MAY_SUBMIT] = _joined([counts.get(_MAY_SUBMIT, _NOBODY).counts, *lists], path)
    return counts


def _with_wildcards(own: _Values, other: _Values) -> _Values:
    """Name the users and groups of the other one: who is not named here has what `*` gives."""
    found = dict(own)
    for family in (_USER, _GROUP):
        here, there = ({key.name for key in _of_family(family, it)} for it in (own, other))
        for key, value in own.items():
            if key[:2] == (family, WILDCARD) and not key.is_ignored:
                for name in sorted(there - here):
                    text = f"{value.text} (of {WILDCARD})"
                    found[key._replace(name=name)] = value._replace(text=text)
    return found


def _of_family(family: str, values: _Values) -> list[_Key]:
    return [key for key in values if key.family == family]


def _count_wildcards(path: str, own: _Values, counts: dict[_Key, _Value]) -> None:
    """At each level the wildcard stands for every user that is not named there."""
    here = {key.name for key in _of_family(_USER, own)}
    if not here:
        return
    known = {key.name for key in _of_family(_USER, counts)}
    others = {key: it for key, it in counts.items() if key[:2] == (_USER, WILDCARD)}
    for key, value in others.items():
        counts.update((key._replace(name=name), value) for name in sorted(here - known))
    for key in own:
        if key[:2] == (_USER, WILDCARD) and key.kind != _DESCRIPTION:
            for name in sorted(known - here):
                _bound(counts, key._replace(name=name), own[key]._replace(source=path))


def _bound(counts: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Of equal bounds the nearest is named."""
    if key not in counts or value.counts <= counts[key].counts:
        counts[key] = value


def _joined(lists: Iterable[Acl], path: str) -> _Value:
    lists = tuple(lists)
    if any(it.everybody for it in lists):
        return _Value(Acl(everybody=True), "everybody", path)
    users, groups = (
        frozenset().union(*(getattr(it, name) for it in lists)) for name in ("users", "groups")
    )
    text = listed({"users": tuple(sorted(users)), "groups": tuple(sorted(groups))})
    return _Value(Acl(users=users, groups=groups), text or "nobody", path)


_NOBODY: Final = _Value(Acl(), "nobody")


# --- two trees ------------------------------------------------------------------------------------


class _Pair(NamedTuple):
    """The same of both configurations."""

    old: _Values
    new: _Values

    def differing(self) -> frozenset[_Key]:
        keys = self.old.keys() | self.new.keys()
        return frozenset(key for key in keys if _raw(self.old, key) != _raw(self.new, key))


def _raw(values: _Values, key: _Key) -> object:
    return (values.get(key) or _absent(key)).counts


def _of_queues(
    partition: str, parent: str, pair: tuple[QueueConfig, QueueConfig], above: _Pair
) -> Iterator[ConfigChange]:
    """Compare a queue that is in both, and all below it."""
    old, new = pair
    touched = above.differing()
    if old == new and not touched:
        return
    path = f"{parent}.{new.name}" if parent else new.name
    before, after = map(_own, pair)
    own = _Pair(_with_wildcards(before, after), _with_wildcards(after, before))
    counts = _Pair(
        _counting(path, old, own.old, above.old), _counting(path, new, own.new, above.new)
    )
    for key in sorted({*own.old, *own.new, *touched, _MAY_SUBMIT}):
        yield from _of_value(partition, path, key, own, counts)
    earlier, later = ({it.name: it for it in one.children} for one in pair)
    common = [
        [name for name in one if name in other]
        for one, other in ((earlier, later), (later, earlier))
    ]
    if common[0] != common[1]:
        texts = [", ".join(it) for it in common]
        yield ConfigChange(
            partition=partition,
            queue=path,
            what="order of its queues",
            before=texts[0],
            after=texts[1],
        )
    for child in old.children:
        if child.name not in later:
            yield from _removed(partition, path, child)
    for child in new.children:
        if child.name in earlier:
            yield from _of_queues(partition, path, (earlier[child.name], child), counts)
        else:
            yield from _added(partition, path, child)


def _of_value(
    partition: str, path: str, key: _Key, own: _Pair, counts: _Pair
) -> Iterator[ConfigChange]:
    if key.is_ignored:
        before, after = (it.get(key, _absent(key)).text for it in own)
        if before != after:
            yield ConfigChange(
                partition=partition, queue=path, kind=Kind.IGNORED, what=key.words,
                before=before, after=after,
            )  # fmt: skip
        return
    is_own = _raw(own.old, key) != _raw(own.new, key) or (key in own.old) != (key in own.new)
    is_carried = key.family in _CARRIED and key.kind != _DESCRIPTION
    values = counts if is_carried else own
    is_the_same = _raw(values.old, key) == _raw(values.new, key)
    # A property is what counts, wherever that is written; a bound that another one is below may
    # count some day.
    if is_the_same and (not is_own or key.family == _PROPERTY):
        return
    if key == _MAY_SUBMIT and any(_raw(own.old, it) != _raw(own.new, it) for it in _ACCESS):
        return
    old, new = (values.old.get(key), values.new.get(key))
    sources = [it.source for it in (new, old) if it and it.source not in {"", path}]
    yield ConfigChange(
        partition=partition, queue=path, what=key.words,
        kind=Kind.CHANGED if is_own else Kind.INHERITED,
        before=_shown(path, key, own.old, old), after=_shown(path, key, own.new, new),
        of="" if is_own else next(iter(sources), ""),
    )  # fmt: skip


def _shown(path: str, key: _Key, own: _Values, value: _Value | None) -> str:
    value = value or _absent(key)
    if value.source in {"", path}:
        return value.text
    return (
        f"{own[key].text}, but {value.text} of {value.source} counts"
        if key in own
        else f"{value.text} (of {value.source})"
    )


def _added(partition: str, parent: str, queue: QueueConfig) -> Iterator[ConfigChange]:
    path = f"{parent}.{queue.name}"
    yield ConfigChange(partition=partition, queue=path, kind=Kind.ADDED, what="queue")
    for key, value in sorted(_own(queue).items()):
        kind = Kind.IGNORED if key.is_ignored else Kind.ADDED
        yield ConfigChange(
            partition=partition, queue=path, kind=kind, what=key.words, after=value.text
        )
    for child in queue.children:
        yield from _added(partition, path, child)


def _removed(partition: str, parent: str, queue: QueueConfig) -> Iterator[ConfigChange]:
    path = f"{parent}.{queue.name}"
    yield ConfigChange(
        partition=partition, queue=path, kind=Kind.REMOVED, what="queue", after=QUEUE_DRAINS
    )
    for child in queue.children:
        yield from _removed(partition, path, child)


def access(text: str) -> str:
    """Say who an access control list lets in."""
    acl = Acl.parse(text)
    if acl.everybody:
        return "everybody"
    return listed({"users": tuple(sorted(acl.users)), "groups": tuple(sorted(acl.groups))})


def people(named: LimitConfig | FilterConfig) -> str:
    return listed({"users": named.users, "groups": named.groups})


def listed(names: Mapping[str, tuple[str, ...]]) -> str:
    return " and ".join(f"{kind} {', '.join(some)}" for kind, some in names.items() if some)


def allowance(limit: LimitConfig) -> str:
    most = f"{limit.max_applications} applications" if limit.max_applications else ""
    allowed = ", ".join(text for text in (amounts(limit.max_resources), most) if text)
    return f"{allowed} ({limit.description})" if limit.description else allowed


def rule_in_words(rule: RuleConfig) -> str:
    parts = (
        f"{rule.name} {rule.value}".rstrip(),
        "creates queues" if rule.create else "",
        "" if rule.filter is None else f"{rule.filter.type} {people(rule.filter)}".rstrip(),
        "" if rule.parent is None else f"below the queue of [{rule_in_words(rule.parent)}]",
    )
    return ", ".join(part for part in parts if part)
