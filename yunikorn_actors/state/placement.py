"""Placement rules: which queue an application belongs to.

Rules are tried in order; the first that names a suitable queue wins. Work that must be accepted
goes to the recovery queue if no rule does. A rule that names nothing lets the next one decide; a
rule that names something impossible ends the placement. When no rule matched, `root.default` takes
the application if it exists and is suitable: the last resort. An application may refuse that by a
tag.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from yunikorn_actors.config import FilterConfig, RuleConfig
from yunikorn_actors.config.names import (
    RECOVERY_QUEUE,
    ROOT,
    is_group_name,
    is_queue_name,
    is_user_name,
    looks_like_expression,
)
from yunikorn_actors.state.applications import ApplicationSpec
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue, QueueState
from yunikorn_actors.values.close_names import first_few
from yunikorn_actors.values.tag_lookup import is_forced, tag_of
from yunikorn_actors.values.tags import APP_TAG_QUEUE_FALLBACK

RECOVERY_PATH = f"{ROOT}.{RECOVERY_QUEUE}"
FALLBACK_PATH = f"{ROOT}.default"
_NAMED_MAX = 10
"""More permitted names than anyone reads in a message."""
_FALSE = frozenset({"0", "f", "false"})


_QUEUES_MAX = 100
"""Queues that a rejection lists, at most: enough to find the one that was meant."""


class PlacementFailed(Exception):
    """No queue for this application; the text says why."""

    def __init__(self, text: str, queues: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.queues = queues
        """Those that would take the application, where no rule matched."""


class Placed(NamedTuple):
    """Where an application goes."""

    path: str
    """Of the leaf, which may still have to be created."""
    by_last_resort: bool = False
    """No placement rule matched, so `root.default` takes it."""


def place(state: PartitionState, spec: ApplicationSpec) -> Placed:
    assert state.config is not None
    for rule in state.config.placement_rules:
        path = _path_of(state, spec, rule)
        if path and _will_do(state, spec, path):
            return Placed(path)
    # Running work comes before the last resort: it must not be refused.
    if is_forced(spec.tags):
        return Placed(RECOVERY_PATH)
    is_refused = tag_of(spec.tags, APP_TAG_QUEUE_FALLBACK).lower() in _FALSE
    if not is_refused and FALLBACK_PATH in state.queues and _will_do(state, spec, FALLBACK_PATH):
        return Placed(FALLBACK_PATH, by_last_resort=True)
    # Each reason once, in the order of the rules.
    why = "; ".join(dict.fromkeys(_obstacles(state, spec, fallback=not is_refused)))
    queues = _open_to(state, spec)
    named = is_refused or spec.queue_name.lower() == FALLBACK_PATH
    listed = f"; {_few('queues', [*queues])} would take it" if named and queues else ""
    raise PlacementFailed(f"application rejected: no placement rule matched: {why}{listed}", queues)


def _open_to(state: PartitionState, spec: ApplicationSpec) -> tuple[str, ...]:
    leaves = (path for path, queue in sorted(state.queues.items()) if queue.is_leaf)
    return tuple(islice((it for it in leaves if _will_do(state, spec, it)), _QUEUES_MAX))


def _will_do(state: PartitionState, spec: ApplicationSpec, path: str) -> bool:
    if path == RECOVERY_PATH:
        return is_forced(spec.tags)
    queue = state.queues.get(path)
    # It would be created below the deepest queue that exists, so that one's access list counts.
    if queue is None:
        return nearest(state, path).allows_submit(spec.user, spec.groups)
    return (
        queue.is_leaf
        # A draining queue takes nothing new.
        and queue.state is not QueueState.DRAINING
        and queue.allows_submit(spec.user, spec.groups)
    )


def _obstacles(state: PartitionState, spec: ApplicationSpec, *, fallback: bool) -> Iterator[str]:
    """Say what was the matter with each queue that was named, or that none was."""
    assert state.config is not None
    named = [_named_by(state, spec, rule) for rule in state.config.placement_rules]
    if not any(path for path, _ in named):
        yield f"no rule names a queue for it (asked for {spec.queue_name!r})"
    for path, create in named:
        if path:
            yield _obstacle(state, spec, path, create=create)
    if fallback and FALLBACK_PATH in state.queues:
        yield _obstacle(state, spec, FALLBACK_PATH, create=False)


def _named_by(state: PartitionState, spec: ApplicationSpec, rule: RuleConfig) -> tuple[str, bool]:
    """Return the path that a rule names, or that of the parent that is missing for it.

    Beside it stands whether that queue may be created.
    """
    # The path is missing because its parent is: name that one.
    path = _named_path(state, spec, rule)
    if path or rule.parent is None or not _name_of(spec, rule):
        return path, rule.create
    return _named_by(state, spec, rule.parent)


def _obstacle(state: PartitionState, spec: ApplicationSpec, path: str, *, create: bool) -> str:
    """Say why a queue will not do."""
    if path == RECOVERY_PATH:
        return f"queue {path} takes recovered work only"
    queue = nearest(state, path)
    if queue.path != path and not create:
        return f"there is no queue {path}"
    if not queue.allows_submit(spec.user, spec.groups):
        return f"user {spec.user!r} may not submit to queue {path}: {_permitted(queue)}"
    if not queue.is_leaf:
        return f"queue {path} is a parent, so name a leaf below it"
    return f"queue {path} is draining"


def _permitted(queue: Queue) -> str:
    """Name whom the access lists of a queue and its ancestors let in; the rest only count."""
    acls = [acl for level in queue.lineage for acl in (level.submit_acl, level.admin_acl)]
    users = sorted(set().union(*(acl.users for acl in acls)))
    groups = sorted(set().union(*(acl.groups for acl in acls)))
    parts = [_few("users", users), _few("groups", groups)]
    return f"permitted are {' and '.join(filter(None, parts)) or 'no users and no groups'}"


def _few(kind: str, names: list[str]) -> str:
    return f"{kind} {first_few(names, _NAMED_MAX)}" if names else ""


def nearest(state: PartitionState, path: str) -> Queue:
    """Return the deepest queue on the path that exists; the root always does."""
    # The deepest existing queue: its properties and access lists hold for what would be created.
    while path not in state.queues:
        path = path.rpartition(".")[0] or ROOT
    return state.queues[path]


def _path_of(state: PartitionState, spec: ApplicationSpec, rule: RuleConfig) -> str:
    """Return the path that one rule names, if it is there or may be created; or nothing."""
    path = _named_path(state, spec, rule)
    return path if rule.create or path in state.queues else ""


def _name_of(spec: ApplicationSpec, rule: RuleConfig) -> str:
    name = _NAMES[rule.name](spec, rule)
    return name if name and _passes(spec, rule.filter) else ""


def _named_path(state: PartitionState, spec: ApplicationSpec, rule: RuleConfig) -> str:
    name = _name_of(spec, rule)
    if not name:
        return ""
    if _is_qualified(name):
        _check_names(name, rule)
        return name.lower()
    # A dot in a name would be read as a level; a fixed name is written by an administrator, who may
    # mean levels.
    if rule.name != "fixed":
        name = name.replace(".", "_dot_")
    _check_names(name, rule)
    parent = _parent_of(state, spec, rule)
    return f"{parent}.{name}".lower() if parent else ""


# The rule for the parent is a rule like any other, and may create it too.
def _parent_of(state: PartitionState, spec: ApplicationSpec, rule: RuleConfig) -> str:
    if rule.parent is None:
        return ROOT
    parent = _path_of(state, spec, rule.parent)
    known = state.queues.get(parent)
    if known is not None and known.is_leaf:
        raise PlacementFailed(f"parent rule returned a leaf queue: {parent}")
    return parent


def _is_qualified(name: str) -> bool:
    lower = name.lower()
    return lower == ROOT or lower.startswith(f"{ROOT}.")


def _check_names(name: str, rule: RuleConfig) -> None:
    for part in name.split("."):
        if not is_queue_name(part):
            raise PlacementFailed(
                f"rule {rule.name} gives an invalid queue name {part!r}: use letters, digits and "
                "_ : # / @ -, at most 64"
            )


def _provided(spec: ApplicationSpec, _: RuleConfig) -> str:
    return spec.queue_name


def _user(spec: ApplicationSpec, _: RuleConfig) -> str:
    return spec.user.replace(".", "_dot_")


def _tag(spec: ApplicationSpec, rule: RuleConfig) -> str:
    return tag_of(spec.tags, rule.value)


def _fixed(_: ApplicationSpec, rule: RuleConfig) -> str:
    return rule.value


_NAMES: dict[str, Callable[[ApplicationSpec, RuleConfig], str]] = {
    "provided": _provided,
    "user": _user,
    "tag": _tag,
    "fixed": _fixed,
}


def _passes(spec: ApplicationSpec, filter_: FilterConfig | None) -> bool:
    if filter_ is None:
        return True
    # An empty filter lets everything through, or nothing.
    allow = filter_.type != "deny"
    if not filter_.users and not filter_.groups:
        return allow
    matches = _matches(filter_.users, (spec.user,), is_user_name) or _matches(
        filter_.groups, spec.groups, is_group_name
    )
    return allow if matches else not allow


def _matches(
    wanted: tuple[str, ...], names: tuple[str, ...], is_name: Callable[[str], bool]
) -> bool:
    """A single entry may be an expression, which is searched for anywhere in the name."""
    # Upstream takes a single entry with special characters for an expression.
    if len(wanted) == 1 and looks_like_expression(wanted[0]):
        expression = re.compile(wanted[0])
        return any(expression.search(name) for name in names)
    return any(name in wanted and is_name(name) for name in names)
