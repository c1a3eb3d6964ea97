"""The queues that a configuration makes, and where it puts applications, for checks (G28).

A second time, from the configuration itself and in the plainest way: the functions that decide may
be what is wrong.
"""

import re
from collections.abc import Container, Iterator

from yunikorn_actors.config import (
    Acl,
    FilterConfig,
    PreemptionPolicy,
    QueueConfig,
    RuleConfig,
    TemplateConfig,
)
from yunikorn_actors.config.names import is_group_name, is_queue_name, is_user_name
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.applications import ApplicationSpec
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue, QueueSpec, QueueState
from yunikorn_actors.values.resource import Resource
from yunikorn_actors.values.tags import APP_TAG_CREATE_FORCE, APP_TAG_QUEUE_FALLBACK

_STAYS: dict[str, str] = {
    "priority.policy": "default",
    "priority.offset": "0",
    "preemption.policy": "default",
}
"""What sets a queue apart from those beside it is no business of those below it."""
_RECOVERED = "root.@recovery@"
_EXPRESSION = frozenset("^$*+?()[]{}|")
_NO_PLACE = "failed to place application"


# -- queues


def described(
    config: QueueConfig,
    above: str = "",
    place: int = 0,
    handed_down: dict[str, str] | None = None,
    template: TemplateConfig | None = None,
) -> Iterator[tuple[str, QueueSpec]]:
    """Yield this queue and all below it, each with what it has to be like."""
    path = f"{above}.{config.name}" if above else config.name
    properties = {**(handed_down or {}), **config.properties}
    is_leaf = not config.parent and not config.children
    below = None if is_leaf else (config.template or template)
    yield path, QueueSpec(
        leaf=is_leaf, position=place, guaranteed=config.guaranteed, max=config.max,
        max_applications=config.max_applications, properties=properties,
        submit_acl=config.submit_acl, admin_acl=config.admin_acl, limits=config.limits,
        template=below,
    )  # fmt: skip
    # Worked out per queue: what sets one apart from its siblings is not handed down.
    passed_on = {key: _passed_on(key, text) for key, text in properties.items()}
    for number, child in enumerate(config.children):
        yield from described(child, path, number, passed_on, below)


def _passed_on(key: str, text: str) -> str:
    # Switched off is for all below as well, which no other value is.
    if key == "preemption.policy" and text.lower() == PreemptionPolicy.DISABLED.value:
        return text
    return _STAYS.get(key, text)


def _created(path: str, above: Queue, *, is_leaf: bool) -> QueueSpec:
    """What placement makes: a leaf as its template says, and a parent that hands that on."""
    # The recovery queue has no template: it must take work whatever the configuration says.
    template = None if path == _RECOVERED else above.spec.template
    if not is_leaf:
        return QueueSpec(leaf=False, managed=False, template=template)
    template = template or TemplateConfig()
    guaranteed, most = map(_if_it_says_something, (template.guaranteed, template.max))
    return QueueSpec(
        leaf=True, managed=False, guaranteed=guaranteed, max=most,
        max_applications=template.max_applications, properties=template.properties,
    )  # fmt: skip


def _if_it_says_something(bound: Resource | None) -> Resource | None:
    # A template of zeros says nothing, and bounds nothing.
    return bound if bound and min(bound.values()) >= 0 < max(bound.values()) else None


# -- applications


class _Refused(Exception):
    """A rule names something impossible: no further rule is asked."""


def place_of(state: PartitionState, spec: ApplicationSpec, created: Container[str] = ()) -> str:
    """Return the path of the leaf for an application, empty if none will do.

    `created`: queues that were created for it, which count as missing.
    """
    assert state.config is not None
    switch = [text for tag, text in spec.tags.items() if tag.lower() == APP_TAG_CREATE_FORCE]
    forced = bool(switch) and switch[0] in {"1", "t", "T", "true", "True", "TRUE"}
    try:
        for rule in state.config.placement_rules:
            path = _by_rule(state, spec, rule, created)
            # Only a forced application may come there by a rule.
            if path == _RECOVERED and forced:
                return path
            if path and path != _RECOVERED and _takes(state, spec, path, created):
                return path
    except _Refused:
        return _RECOVERED if forced else ""
    if forced:
        return _RECOVERED
    # The last resort, if it is there already and the application does not refuse it.
    last = "root.default"
    refuses = _tag(spec, APP_TAG_QUEUE_FALLBACK) in {"0", "f", "false"}
    there = last in state.queues and last not in created
    return last if there and not refuses and _takes(state, spec, last, created) else ""


def _tag(spec: ApplicationSpec, name: str) -> str:
    wanted = name.lower()
    return next((text.lower() for tag, text in spec.tags.items() if tag.lower() == wanted), "")


def _by_rule(
    state: PartitionState, spec: ApplicationSpec, rule: RuleConfig, created: Container[str]
) -> str:
    words = {
        "provided": spec.queue_name, "user": spec.user.replace(".", "_dot_"),
        "tag": _tag(spec, rule.value), "fixed": rule.value,
    }  # fmt: skip
    name = words[rule.name].lower()
    if not name or not _is_meant(spec, rule.filter):
        return ""
    is_whole = name == "root" or name.startswith("root.")
    if not is_whole and rule.name != "fixed":
        name = name.replace(".", "_dot_")
    if not all(is_queue_name(part) for part in name.split(".")):
        raise _Refused
    path = name
    if not is_whole:
        above = "root" if rule.parent is None else _by_rule(state, spec, rule.parent, created)
        known = None if above in created else state.queues.get(above)
        if known is not None and known.spec.leaf:
            raise _Refused
        path = f"{above}.{name}" if above else ""
    there = path in state.queues and path not in created
    return path if there or rule.create else ""


def _is_meant(spec: ApplicationSpec, whom: FilterConfig | None) -> bool:
    if whom is None:
        return True
    if not (whom.users or whom.groups):
        return whom.type != "deny"
    # Expressions see names that are none; lists do not.
    users = [spec.user] if is_user_name(spec.user) or _is_expression(whom.users) else []
    groups = [it for it in spec.groups if is_group_name(it) or _is_expression(whom.groups)]
    listed = _any_of(whom.users, users) or _any_of(whom.groups, groups)
    return listed is (whom.type != "deny")


def _is_expression(words: tuple[str, ...]) -> bool:
    return len(words) == 1 and bool(_EXPRESSION & set(words[0]))


def _any_of(words: tuple[str, ...], names: list[str]) -> bool:
    if _is_expression(words):
        return any(re.search(words[0], name) for name in names)
    return bool(set(words) & set(names))


def _takes(
    state: PartitionState, spec: ApplicationSpec, path: str, created: Container[str]
) -> bool:
    """Whether an existing queue takes the application, or may get the missing queue below it."""
    there = path
    while there not in state.queues or there in created:
        there = there.rpartition(".")[0] or "root"
    queue = state.queues[there]
    acls = [
        text for level in queue.lineage for text in (level.spec.submit_acl, level.spec.admin_acl)
    ]
    is_let_in = any(Acl.parse(text).allows(spec.user, spec.groups) for text in acls)
    if there == path:
        return is_let_in and queue.spec.leaf and queue.state is QueueState.ACTIVE
    is_possible = not queue.spec.leaf and queue.state is QueueState.ACTIVE
    if is_let_in and (not is_possible or "@recovery@" in path.split(".")):
        raise _Refused
    return is_let_in


# -- what is recorded


def against_the_configuration(
    state: PartitionState, fact: f.Fact, created: Container[str]
) -> Iterator[str]:
    """Yield what is wrong with a queue that comes, or with where an application goes.

    `created` are the queues that were made in the same handler, for this application.
    """
    if state.config is None:
        return
    if isinstance(fact, f.QueueAdded) and not fact.spec.managed:
        above = state.queues[fact.path.rpartition(".")[0]]
        if fact.spec != _created(fact.path, above, is_leaf=fact.spec.leaf):
            yield f"G28: {fact.path} is created as {fact.spec}, against its template"
    elif isinstance(fact, f.ApplicationAdded):
        path = place_of(state, fact.spec, created)
        if path != fact.queue:
            expected = path or "that it is refused"
            yield f"G28: {fact.spec.application_id} comes to {fact.queue}, expected {expected}"
    elif isinstance(fact, f.ApplicationRejected) and fact.reason.startswith(_NO_PLACE):
        path = place_of(state, fact.spec, created)
        if path:
            yield f"G28: {fact.spec.application_id} is refused, expected in {path}"
