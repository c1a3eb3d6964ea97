"""The parts of which a world may have each or not.

In a world with everything, rare things seldom happen often enough: a pause of the scheduler is hard
to come by where each advance of time ends it. So each run has some parts only, drawn for it (swarm
testing, Groce and others, 2012).
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.schedules import faults
from yunikorn_actors.lab.schedules.random_draw import Draw

FAULT: Final = "fault-"
RESTART: Final = f"{FAULT}{faults.RESTART}"
OPERATORS: Final = f"{FAULT}{faults.OPERATE}"
OFTEN: Final = 0.5
SELDOM: Final = 0.2

PARTS: Final[dict[str, float]] = {
    # the cluster
    "fused": OFTEN,
    "several-managers": 0.35,
    "several-partitions": SELDOM,
    "several-schedulers": 0.3,
    "large": 0.15,
    "policy-groups": SELDOM,
    "small-bounds": OFTEN,
    "short-times": OFTEN,
    "extra-configuration": 0.3,
    "one-gang": 0.15,
    "one-contest": 0.25,
    "one-rush": 0.2,
    "one-reservation": 0.2,
    # the queues
    "quotas": OFTEN,
    "guarantees": OFTEN,
    "fences": OFTEN,
    "limits": OFTEN,
    "application-limits": OFTEN,
    "priorities": OFTEN,
    "sort-policies": OFTEN,
    "node-orders": OFTEN,
    "no-preemption": SELDOM,
    "quota-preemption": OFTEN,
    "placement-rules": 0.3,
    "back-off": 0.4,
    "application-tags": 0.3,
    # what is asked for
    "gangs": OFTEN,
    "odd-amounts": SELDOM,
    "runs": OFTEN,
    "repeats": OFTEN,
    "required-nodes": OFTEN,
    "opt-outs": OFTEN,
    "timeouts": OFTEN,
    "creation-times": OFTEN,
    "contests": OFTEN,
    "reservations": OFTEN,
    "later-form": OFTEN,
    "joined-requests": OFTEN,
    # what happens to it
    "manual-confirmations": OFTEN,
    "re-sent-asks": OFTEN,
    "changed-asks": OFTEN,
    "rejections": OFTEN,
    "withdrawals": OFTEN,
    "releases": OFTEN,
    "removals": OFTEN,
    "reported-work": OFTEN,
    "named-work": 0.35,
    "late-placeholders": 0.3,
    "foreign-work": OFTEN,
    "drained-nodes": OFTEN,
    "lost-nodes": OFTEN,
    "resized-nodes": OFTEN,
    "reloads": OFTEN,
    "removed-partitions": SELDOM,
    "lost-managers": 0.3,
    "new-registrations": SELDOM,
    "predicates": SELDOM,
    "victims": OFTEN,
    "waits": 0.8,
    "due-times": OFTEN,
    "bursts": OFTEN,
    **{f"{FAULT}{name}": 0.3 if name in {"propose", "query"} else OFTEN for name in faults.FAULTS},
    "devices": 0.2,
    "policies": 0.2,
    "one-gate": 0.16,
    "one-eviction": 0.1,
    "one-quota": 0.07,
    "broken-requests": SELDOM,
    "second-type": 0.25,
    "one-node": 0.06,
    "one-ask": 0.06,
    "one-manager": 0.08,
    "one-swap": 0.13,
    "asked-victims": 0.1,
    "own-policies": 0.15,
    "one-user": 0.08,
    "one-placement": 0.06,
    "one-priority": 0.06,
    "one-leaf": 0.06,
    "capitals": 0.08,
    "one-packing": 0.06,
    "changed-returns": 0.12,
    RESTART: 0.12,
    OPERATORS: 0.15,
}
"""Each with the share of the runs that have it."""
_LATER: Final = (
    "devices", "policies", "one-gate", f"{FAULT}query", "one-eviction", "one-quota",
    "broken-requests",
)  # fmt: skip
"""Parts that are drawn apart from the others, so that runs without them are as they were."""
_LATEST: Final = ("one-user", "one-placement", "one-priority", "one-leaf")
"""Scenes that came after all others, so that these are drawn as they were."""
_OLD_OF_ONE: Final = ("one-node", "one-ask", "one-manager", "one-swap")
OF_ONE: Final = (*_OLD_OF_ONE, *_LATEST, "one-packing")
"""Scenes about one thing; a run that has one of these has no other."""
_LAST: Final = (
    "second-type", *_OLD_OF_ONE, "asked-victims", "own-policies", *_LATEST,
    "capitals", "one-packing", "changed-returns",
)  # fmt: skip
"""Parts that are drawn apart from those as well."""


_GATE_ALONE: Final = 0.7
_OTHER_BARS: Final = {"limits", "application-limits", "back-off", "several-schedulers"}
"""What keeps applications from starting too, or hides what a plan has known."""
_OTHER_SCENES: Final = {"one-gang", "one-contest", "one-rush", "one-reservation"}
_LATER_SCENES: Final = {"one-gate", "one-eviction", "one-quota"}
_BESIDE_RULES: Final = {
    "timeouts", "odd-amounts", "limits", "application-limits", "extra-configuration", "large",
    "short-times", "placement-rules", "joined-requests", "creation-times", "node-orders",
}  # fmt: skip
"""What mostly hides in a small world whose work goes, and who comes first."""
_ASKED_SHARE: Final = 0.15
"""In so many of these worlds resource managers are asked who goes."""
_LATER_OF_RULES: Final = ("one-eviction", "one-quota")
"""Scenes in which the rules decide whose work goes."""


class NoPart(CoreError, ValueError):
    """There is no part of this name."""


class Wanted(Struct, frozen=True, kw_only=True):
    """Which parts the runs may have."""

    only: tuple[str, ...] = ()
    """Each run has all of these and no others; empty draws among all."""
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (*self.only, *self.without):
            if name not in PARTS:
                raise NoPart(f"{name!r:.40} is no part: take some of {', '.join(PARTS)}")


ALL: Final = Wanted()
UNKNOWN_TO_MODEL: Final = frozenset({
    "several-managers", "several-partitions", "several-schedulers", "lost-managers",
    "new-registrations", "removed-partitions", "policy-groups", "predicates", "named-work",
    "late-placeholders", "back-off", "devices", "policies", "one-gate",
    "broken-requests", "one-manager", "one-swap", "asked-victims", "own-policies",
    *(f"{FAULT}{name}" for name in ("register", "lose", "propose", "fail", "fire")),
    RESTART, OPERATORS,
})  # fmt: skip
"""Parts of which the rules of the model say nothing."""
_JUDGED_SHARE: Final = 0.3
"""So many of the runs have none of those, so that the model can judge them."""
_JUDGED_CONTESTS: Final = 0.8
"""So many of those in which the rules decide whose work goes, or who has a node."""
_OF_RULES: Final = {"one-contest", "one-reservation"}

_FOCUSED_SHARE: Final = 0.5
"""So many of the runs are about one thing, and have little else."""
_FOCI: Final = (
    # whose work has to go
    frozenset({
        "one-contest", "guarantees", "fences", "priorities", "opt-outs", "required-nodes", "quotas",
        "quota-preemption", "manual-confirmations", "waits", "reservations", "limits",
        "contests",
    }),
    # quotas and limits that runs and several planners come to
    frozenset({
        "one-rush", "runs", "quotas", "limits", "application-limits", "several-schedulers",
        "bursts", "joined-requests", "re-sent-asks", "odd-amounts", "priorities", "releases",
    }),
    # nodes that are kept
    frozenset({
        "one-reservation", "application-limits", "limits", "required-nodes", "drained-nodes",
        "lost-nodes", "resized-nodes", "waits", "due-times", "reported-work", "foreign-work",
        "manual-confirmations", "guarantees", "repeats", "releases", "reloads", "priorities",
    }),
    # resource managers that come and go, and are slow
    frozenset({
        "several-managers", "lost-managers", "new-registrations", "small-bounds", "predicates",
        "extra-configuration", "bursts", "policy-groups", "fault-lose", "fault-slow",
        "fault-register", "manual-confirmations", "runs",
    }),
    # times that are up
    frozenset({
        "timeouts", "due-times", "waits", "short-times", "creation-times", "removals", "releases",
        "gangs", "manual-confirmations", "extra-configuration", "reported-work",
        "late-placeholders",
    }),
    # configurations that change under what runs
    frozenset({
        "reloads", "quotas", "limits", "guarantees", "placement-rules", "several-partitions",
        "removed-partitions", "quota-preemption", "waits", "removals", "gangs",
    }),
    # work that runs, whatever was decided of it
    frozenset({
        "reported-work", "named-work", "late-placeholders", "foreign-work", "quotas", "limits",
        "quota-preemption", "gangs", "resized-nodes", "lost-nodes", "drained-nodes", "releases",
        "reloads", "creation-times", "waits",
    }),
)  # fmt: skip
_OF_FOCUS: Final = 0.85
_BESIDE_FOCUS: Final = 0.3
"""The chance of a part that a run has otherwise."""


_JUDGED_LATEST: Final = 0.5
"""So many of the latest scenes that the model could not judge otherwise."""


def drawn_parts(draw: Draw, wanted: Wanted) -> frozenset[str]:
    """Draw for each part whether a run has it; what is drawn for one is the same for all wishes."""
    early = [name for name in PARTS if name not in {*_LATER, *_LAST, RESTART, OPERATORS}]
    drawn = {name for name in early if draw.chance(PARTS[name])}
    if draw.chance(_FOCUSED_SHARE):
        focus = draw.one_of(_FOCI)
        drawn = {
            name
            for name in early
            if draw.chance(_OF_FOCUS if name in focus else _BESIDE_FOCUS)
            and (name in focus or name in drawn)
        }
    if draw.chance(_JUDGED_CONTESTS if _OF_RULES & drawn else _JUDGED_SHARE):
        drawn -= UNKNOWN_TO_MODEL
    return frozenset(set(wanted.only) or drawn) - frozenset(wanted.without)


def with_later_parts(draw: Draw, parts: frozenset[str], wanted: Wanted) -> frozenset[str]:
    """Draw those of the parts that need no others."""
    if wanted.only:
        return parts
    drawn = {name for name in _LATER if draw.chance(PARTS[name])} - {*wanted.without}
    scene = next((name for name in _LATER_OF_RULES if name in drawn), "")
    if scene:
        parts -= _OTHER_SCENES | {"no-preemption"}
        drawn -= {"one-gate", *_LATER_OF_RULES} - {scene}
        if draw.chance(_FOCUSED_SHARE):
            parts -= _BESIDE_RULES
        if draw.chance(_ASKED_SHARE):
            parts |= {"predicates", "victims"} - {*wanted.without}
        elif draw.chance(_JUDGED_CONTESTS):
            parts, drawn = parts - UNKNOWN_TO_MODEL, drawn - UNKNOWN_TO_MODEL
    elif "one-gate" in drawn:
        parts -= _OTHER_SCENES
        drawn.add("policies")
        if draw.chance(_GATE_ALONE):
            parts -= _OTHER_BARS
    return parts | drawn


def with_operators(draw: Draw, parts: frozenset[str], wanted: Wanted) -> frozenset[str]:
    """Draw whether operators act in a run; those that the model can judge are few enough."""
    may_have = not wanted.only and OPERATORS not in wanted.without and parts & UNKNOWN_TO_MODEL
    return parts | {OPERATORS} if may_have and draw.chance(PARTS[OPERATORS]) else parts


def with_last_parts(draw: Draw, parts: frozenset[str], wanted: Wanted) -> frozenset[str]:
    """Draw those that leave all others as they are; what the model can judge it still can."""
    if wanted.only:
        return with_what_it_needs(parts)
    drawn = {name for name in _LAST if draw.chance(PARTS[name])} - {*wanted.without}
    if not parts & UNKNOWN_TO_MODEL:
        drawn -= UNKNOWN_TO_MODEL
    elif drawn & {*_LATEST} and draw.chance(_JUDGED_LATEST):
        parts, drawn = parts - UNKNOWN_TO_MODEL, drawn - UNKNOWN_TO_MODEL
    scenes = [name for name in OF_ONE if name in drawn]
    if scenes:
        parts -= _OTHER_SCENES | _LATER_SCENES
        scene = draw.one_of(scenes)
        drawn -= {*OF_ONE} - {scene}
        if scene == "one-packing":
            parts -= _BESIDE_RULES | {"no-preemption"}
    elif "asked-victims" in drawn and not parts & (_OTHER_SCENES | _LATER_SCENES):
        parts |= {"one-contest"}
    return with_what_it_needs(parts | drawn)


_NEEDS: Final = {
    "one-swap": frozenset({"predicates"}),
    "asked-victims": frozenset({"predicates", "victims"}),
    "own-policies": frozenset({"policies"}),
}


def with_what_it_needs(parts: frozenset[str]) -> frozenset[str]:
    """Add the parts without which others are nothing."""
    return parts.union(*(needed for part, needed in _NEEDS.items() if part in parts))


def with_restart(draw: Draw, parts: frozenset[str], wanted: Wanted) -> frozenset[str]:
    """Draw whether the core of a run ends in the middle; drawn last, it changes nothing else.

    Runs that the model can judge are few enough, so none of them has it.
    """
    may_have = not wanted.only and RESTART not in wanted.without and parts & UNKNOWN_TO_MODEL
    return parts | {RESTART} if may_have and draw.chance(PARTS[RESTART]) else parts


def faults_among(parts: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of faults among the parts."""
    here = frozenset(parts)
    return tuple(name for name in faults.FAULTS if f"{FAULT}{name}" in here)
