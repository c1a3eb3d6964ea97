"""Checks of placement rules: whatever would keep a rule from being built or from ever matching.

First each rule by itself, its parents before it. Then the part of its path that is fixed in the
configuration is walked through the queue tree: a rule that can only end in a queue that is missing,
or of the wrong type, is refused now and not with the first application that it fails.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from yunikorn_actors.config.fault import Fault
from yunikorn_actors.config.names import (
    QUEUE_CHARACTERS,
    RECOVERY_QUEUE,
    ROOT,
    is_group_name,
    is_queue_name,
    is_rule_name,
    is_user_name,
    looks_like_expression,
)
from yunikorn_actors.config.site import PartitionSite, Site
from yunikorn_actors.config.written import Word, WrittenFilter, WrittenRule

PROVIDED: Final = "provided"
FIXED: Final = "fixed"
TAG: Final = "tag"
USER: Final = "user"
KNOWN_RULES: Final = (FIXED, PROVIDED, TAG, USER)
FILTER_TYPES: Final = ("", "allow", "deny")


class _At(Struct, frozen=True, kw_only=True):
    """A rule and where it stands in the list."""

    path: str
    rule: WrittenRule

    def fault(self, line: int, what: str, remedy: str) -> Fault:
        return Fault(line=line, path=self.path, what=what, remedy=remedy)


def rule_faults(partition: PartitionSite) -> list[Fault]:
    """Check the placement rules of a partition."""
    places = [
        _At(path=f"{partition.path}: placementrules[{index}]", rule=rule)
        for index, rule in enumerate(partition.written.placementrules)
    ]
    return [fault for at in places for fault in _faults_of(at, partition.root)]


def _faults_of(at: _At, root: Site) -> list[Fault]:
    alone = [fault for step in _chain(at) for fault in _own_faults(step)]
    return alone or list(_path_faults(at, root))


def is_qualified(value: str) -> bool:
    """Tell whether the value of a fixed rule starts at the root."""
    return value.lower().split(".")[0] == ROOT


def _chain(at: _At) -> list[_At]:
    """Return the rule with its parents, in the order in which they make up a path."""
    if at.rule.parent is None:
        return [at]
    return [*_chain(_At(path=f"{at.path}.parent", rule=at.rule.parent)), at]


# --- one rule -------------------------------------------------------------------------------------


def _own_faults(at: _At) -> Iterator[Fault]:
    rule, line = at.rule, at.rule.line_of("name")
    if not is_rule_name(rule.name):
        what = f"invalid rule name {rule.name!r}"
        yield at.fault(line, what, f"use one of {', '.join(KNOWN_RULES)}")
    elif rule.name.lower() not in KNOWN_RULES:
        what = f"unknown rule name specified {rule.name}, failing placement rule config"
        yield at.fault(line, what, f"use one of {', '.join(KNOWN_RULES)}")
    yield from _VALUE_CHECKS.get(rule.name.lower(), _any_value)(at)
    if rule.filter is not None:
        yield from _filter_faults(at, rule.filter)


def _any_value(_at: _At) -> Iterator[Fault]:
    return iter(())


def _tag_value(at: _At) -> Iterator[Fault]:
    if not at.rule.value.strip():
        what = "a tag rule without a value"
        yield at.fault(at.rule.line_of("value"), what, "set value to the name of the tag")


def _fixed_value(at: _At) -> Iterator[Fault]:
    value, line = at.rule.value, at.rule.line_of("value")
    if not value:
        yield at.fault(line, "a fixed rule without a value", "set value to a queue")
        return
    for part in value.split("."):
        if not is_queue_name(part) or part.lower() == RECOVERY_QUEUE:
            what = f"invalid queue name {part!r} in value {value!r}"
            yield at.fault(line, what, f"use {QUEUE_CHARACTERS} between dots")
    if is_qualified(value) and at.rule.parent is not None:
        what = f"illegal fully qualified 'fixed' rule with value {value!r} below a parent rule"
        yield at.fault(line, what, "remove the parent rule, or the root from the value")


_VALUE_CHECKS: Final[dict[str, Callable[[_At], Iterator[Fault]]]] = {
    TAG: _tag_value,
    FIXED: _fixed_value,
}


def _filter_faults(at: _At, written: WrittenFilter) -> Iterator[Fault]:
    if written.type.lower() not in FILTER_TYPES:
        what = f"invalid filter type {written.type!r}"
        yield at.fault(written.line_of("type"), what, "use allow or deny")
    for noun, words, is_name in (
        ("user", written.users, is_user_name),
        ("group", written.groups, is_group_name),
    ):
        # Of two or more names the impossible ones are dropped; a single one is the whole filter.
        if len(words) == 1 and not is_name(words[0].text) and not _is_expression(words[0]):
            what = f"filter entry {words[0].text!r} is neither a {noun} name nor an expression"
            yield at.fault(words[0].line, what, "correct the entry")


def _is_expression(word: Word) -> bool:
    if not looks_like_expression(word.text):
        return False
    try:
        re.compile(word.text)
    # A warning is an exception where the interpreter is set so.
    except (re.error, OverflowError, RecursionError, Warning):
        return False
    return True


# --- the path of a rule ---------------------------------------------------------------------------


def _path_faults(at: _At, root: Site) -> Iterator[Fault]:
    chain = _chain(at)
    fixed = _leading_fixed(chain)
    if not fixed:
        return
    text = ".".join(step.rule.value.lower() for step in fixed)
    path = text if is_qualified(text) else f"{ROOT}.{text}"
    wrong = _walk_fault(root, path.split(".")[1:], at.rule.create, len(fixed) < len(chain))
    if wrong is not None:
        yield at.fault(at.rule.line, f"path {path!r} {wrong[0]}", wrong[1])


def _leading_fixed(chain: list[_At]) -> list[_At]:
    names = [step.rule.name.lower() == FIXED for step in chain]
    return chain[: names.index(False)] if False in names else chain


def _walk_fault(
    site: Site, segments: list[str], create: bool, dynamic: bool
) -> tuple[str, str] | None:
    """Follow a path from the root; return what is wrong with it and the remedy."""
    for segment in segments:
        below = next((child for child in site.children if child.name == segment), None)
        if below is None:
            return _missing_fault(site, create)
        site = below
    if dynamic and not site.is_parent:
        what = f"references a queue ({site.path}) which is a leaf, and goes on below it"
        return what, "set parent on that queue"
    if not dynamic and site.is_parent:
        return f"references a queue ({site.path}) which is not a leaf", "name a leaf below it"
    return None


def _missing_fault(last: Site, create: bool) -> tuple[str, str] | None:
    if not last.is_parent:
        what = f"cannot be created because the last queue ({last.path}) in the hierarchy is a leaf"
        return what, "set parent on that queue"
    if not create:
        what = f"references non-existing queues below {last.path} and create is 'false'"
        return what, "set create, or add the queues"
    return None
