"""A gang as a program writes it: its groups, how large a member is, how members are treated.

Placeholders are treated as the members that take over their room: what holds for one holds for the
other, so that room is sought for a member in the way in which it will be kept.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from yunikorn_actors import si
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.front.arguments import (
    GROUP_TAGS,
    changed_policy,
    check_arguments,
    check_words,
    read_amounts,
    read_count,
    read_texts,
    shown,
    with_tags,
)
from yunikorn_actors.front.lease import Running
from yunikorn_actors.front.node_rules import Rule, read_rule
from yunikorn_actors.values.tags import GPU


class Treatment(NamedTuple):
    """How asks are treated, unless one of them says otherwise."""

    priority: int = 0
    policy: si.PreemptionPolicy = si.PreemptionPolicy(
        allow_preempt_self=True, allow_preempt_other=True
    )
    tags: Mapping[str, str] = {}
    """With that of the required node, if there is one."""
    rule: Rule | None = None
    """Where members of a group, and the room that is kept for them, may go."""


PLAIN: Final = Treatment()
"""By default."""


class Members(NamedTuple):
    """How many members a group of a gang has, how large each is and how it is treated."""

    number: int
    written: dict[str, si.Amount]
    size: si.Resource
    treatment: Treatment


_TREATED: Final = ("priority", "may_preempt", "preemptible", *GROUP_TAGS, "tags")
_RULED: Final = ("where", "spread", "apart_from")
_WORDS: Final = ("count", *_TREATED, *_RULED)
_ELSEWHERE: Final = {
    "ask": frozenset({"deadline", "fits", "group", "key", "originator"}),
    "application": frozenset(
        {"fallback", "gang_style", "queue", "running", "stays", "timeout", "user"}
    ),
}
"""Words of a call that would be resource types here."""
_OTHER_NAMES: Final = dict.fromkeys(
    ("number", "size", "replicas", "members", "instances", "min_member", "minMember"), "count"
)


def read_gang(gang: Mapping[str, Any] | None, otherwise: Treatment) -> dict[str, Members]:
    """Read `{"executor": {"count": 4, "vcore": 2, "priority": 10}}`."""
    if gang is not None and not isinstance(gang, Mapping):
        raise InvalidRequest(f"gang: must be a mapping from groups to sizes, not {shown(gang)}")
    return {name: _members(name, written, otherwise) for name, written in (gang or {}).items()}


def _members(name: object, written: object, otherwise: Treatment) -> Members:
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"gang: {shown(name)} is no name of a group; use a text")
    what = f"gang: {name}"
    if not isinstance(written, Mapping):
        raise InvalidRequest(f"{what}: must be a mapping such as {{'count': 4, 'vcore': 2}}")
    for call, words in _ELSEWHERE.items():
        for word in words & written.keys():
            raise InvalidRequest(f"{what}: {word} is for {call}(...), not for a group")
    # Taken out one after the other: what is left must be a resource.
    rest = dict(written)
    count = read_count(what, rest.pop("count", 1))
    given = {word: rest.pop(word) for word in _TREATED if word in rest}
    rule = read_rule(
        what, rest.pop("where", None), rest.pop("spread", ""), rest.pop("apart_from", "")
    )
    resources = rest.pop("resources", None)
    check_words(what, rest, _WORDS, _OTHER_NAMES)
    vcore, memory, gpu = (rest.pop(word, None) for word in ("vcore", "memory", GPU))
    amounts = read_amounts(what, vcore, memory, resources, gpu)
    twice = sorted(amounts.keys() & rest.keys())
    if twice:
        raise InvalidRequest(f"{what}: {twice[0]} is given twice, by name and in resources")
    amounts |= rest
    if not amounts:
        raise InvalidRequest(f"{what}: say how much a member needs, such as 'vcore': 2")
    treatment = read_treatment(what, given, otherwise, amounts)
    return Members(count, amounts, si.Resource.parse(amounts), treatment._replace(rule=rule))


def read_treatment(
    what: str,
    given: Mapping[str, Any],
    otherwise: Treatment,
    amounts: Mapping[str, object] = {},
) -> Treatment:
    """Take what is given, checked as an ask is; what is not given is as otherwise."""
    tags = {**otherwise.tags, **read_texts(f"{what}: tags", given.get("tags"))}
    treatment = Treatment(
        given.get("priority", otherwise.priority),
        changed_policy(otherwise.policy, given.get("preemptible"), given.get("may_preempt")),
        with_tags(what, tags, given, amounts, "'gpu':"),
    )
    # A throwaway ask: the checks of the interface apply to a group as well.
    ask = si.AllocationAsk(
        application_id="a",
        allocation_key="k",
        priority=treatment.priority,
        tags=dict(treatment.tags),
        preemption_policy=treatment.policy,
    )
    check_arguments(what, si.AllocationRequest(rm_id="rm", asks=(ask,)))
    return treatment


def still_missing(
    groups: Mapping[str, Members], application: str, running: Iterable[Running]
) -> dict[str, Members]:
    """Take off the members that run already."""
    there = Counter(it.group for it in running if it.application == application)
    rest = {name: it._replace(number=it.number - there[name]) for name, it in groups.items()}
    return {name: it for name, it in rest.items() if it.number > 0}


def whole_gang(groups: Mapping[str, Members]) -> si.Resource | None:
    """Sum all members up; None if there is none."""
    if not groups:
        return None
    total: Counter[str] = Counter()
    for members in groups.values():
        for kind, amount in members.size.amounts().items():
            total[kind] += amount * members.number
    return si.Resource.of(total)


def placeholders(
    application: str, partition: str, groups: Mapping[str, Members], tags: Mapping[str, str]
) -> Iterable[si.AllocationAsk]:
    for name, members in groups.items():
        for number in range(1, members.number + 1):
            yield si.AllocationAsk(
                application_id=application,
                allocation_key=f"~{name}-{number}",
                partition_name=partition,
                resource_ask=members.size,
                task_group_name=name,
                placeholder=True,
                priority=members.treatment.priority,
                # With a rule the core has to ask; without one a tag says that it need not.
                tags={**members.treatment.tags, **({} if members.treatment.rule else tags)},
                preemption_policy=members.treatment.policy,
            )
