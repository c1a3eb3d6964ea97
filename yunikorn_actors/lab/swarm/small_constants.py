"""Bounds that nobody can set, made small for a while, so that small worlds come to them.

A structure that is cut into runs of a hundred, or a search that ends after so many tries, goes
another way in a large cluster than in any world that is drawn. With a bound of two or three it goes
that way in nearly every world. What such a core decides is compared with itself alone: some bounds
are there to save time and change no decision, others cut a search short.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from yunikorn_actors.lab.schedules.random_draw import Draw

_FEW: Final = (1, 2, 3)
SMALL: Final[Mapping[str, Mapping[str, tuple[int, ...]]]] = {
    "planning.model.nodes": {
        "RUN_LENGTH": (2, 3, 4), "FLOORS_MAX": (1, 2), "SHAPES_MAX": (1, 2),
    },
    "planning.model.sorted_collections": {"BLOCK_MAX": (2, 3, 4)},
    "planning.why.victim_objections": {"LOOKED_AT_MAX": (1, 3, 6)},
    "planning.preemption.device_room": {"TARGETS_MAX": _FEW},
    "planning.preemption.gang_choice": {"SETS_MAX": (1, 3, 9)},
    "planning.preemption.gang_claims": {"RETRIES_MAX": _FEW, "SIZES_MAX": (1, 2)},
    "planning.preemption.gang_packing": {"LOOKS_MAX": (1, 20, 100), "PACKED_MAX": _FEW},
    "planning.preemption.single_choice": {"SINGLES_MAX": _FEW, "STEPS_MAX": (2, 9, 40)},
    "planning.preemption.victim_search": {"RETRACTIONS_MAX": _FEW},
    "planning.planner": {"STEPS_IN_ONE": (1, 3, 9)},
    "planning.stages.denials": {"DOUBLINGS_MAX": (1, 2)},
    "planning.stages.guarantees": {"ATTEMPTS_MAX": (1, 2, 5), "GANGS_MAX": _FEW},
    "planning.stages.preempt": {"WOULD_GO_MAX": (1, 2)},
    "planning.stages.reporting": {"LOOKED_AT_MAX": _FEW},
    "planning.expected": {"PLANNED_MAX": _FEW, "RUNS_MAX": (2, 3), "RUNS_MIN": (1, 2)},
    "planning.why.inquiry": {"NAMES_MAX": (1, 2)},
    "planning.why.explain": {"HOLDERS_MAX": (1, 2)},
    "planning.reasons": {"EXPLAINED_MAX": _FEW, "LOOKS_MAX": (1, 10, 50)},
    "planning.why.survey": {"NAMED_MAX": (1, 2)},
    "planning.why.waiting_counts": {
        "APPLICATIONS_MAX": _FEW, "ASKS_MAX": (2, 5), "COST_MAX": (1, 20, 100),
        "EXPLAINED_MAX": _FEW, "LOOKS_MAX": _FEW, "SURVEYED_MAX": (1, 10),
    },
    "planning.waiting_sums": {"KINDS_MAX": _FEW, "MARKS_MAX": _FEW, "SUMS_MAX": _FEW},
    "machines.context.asks": {"ADDED_IN_ONE": (1, 2)},
    "machines.context.batch_commit": {"LONGEST_BATCH": _FEW},
    "machines.context.partitions": {"REJECTED_TOLD_MAX": _FEW},
    "machines.events.publisher": {"COMPACTION": (1, 3, 9)},
    "machines.events.record": {"MESSAGE_MAX": (20, 60)},
    "machines.rm_proxy.flow_control": {"MARKS": (1, 2, 4)},
    "machines.slices": {"COPIED_IN_ONE": (1, 5), "LOOKED_AT_IN_ONE": _FEW},
    "service.read.applications": {"ASKS_AT_ONCE": _FEW},
    "service.read.incremental_answers": {"AT_ONCE": _FEW, "SORTED_AT_ONCE": (1, 2, 5)},
    "service.read.load_history": {"POINTS_MAX": (1, 2, 5)},
    "service.read.overview": {
        "LISTED_MAX": _FEW, "NODES_MAX": (1, 2), "PARTITIONS_MAX": (1, 2), "QUEUES_MAX": (1, 3),
    },
    "service.read.projection": {"LOG_MAX": (1, 2)},
    "service.read.replica": {"LISTED_MAX": (1, 2)},
    "service.rest.yunikorn_routes": {"BATCH_MAX": (2, 7), "LOOKS": _FEW},
    "state.applications": {"STATE_LOG_MAX": (2, 3)},
    "state.facts.fact": {"SHOWN_MAX": (1, 2)},
    "state.placement": {"_NAMED_MAX": (1, 2), "_QUEUES_MAX": _FEW},
    "trace.compare_runs": {"CONTEXT_LINES": (1, 2)},
    "trace.export.mermaid": {"FACTS_MAX": (1, 2)},
    "trace.holders": {"SHOWN_MAX": (1, 2)},
    "trace.other_configuration": {"UNLIKE_MAX": (1, 2)},
    "trace.stats": {"SLOWEST": (1, 3)},
    "values.close_names": {"_LISTED_MAX": (1, 2)},
    "what_if.bounds": {"_NAMED_MAX": (1, 2)},
    "what_if.missing_room": {"_PROPOSED_MAX": _FEW},
    "what_if.run": {"WATCHED_MAX": _FEW},
    "what_if.text": {"LINES_MAX": (2, 5)},
}  # fmt: skip
"""Of which module which constant, and what it may be instead.

None of policies: one policy serves all cores of a process, and remembers what it found.
"""
OF_PROGRAMS: Final[Mapping[str, Mapping[str, tuple[int, ...]]]] = {
    "front.applications": {"EARLY_MAX": (1, 2), "FORMER_MAX": (1, 2)},
    "front.asks": {"REMEMBERED_MAX": _FEW}, "front.deadlines": {"KEPT_MIN": (1, 2)},
    "front.subscriptions": {"ROOM": (1, 5, 20)},
}  # fmt: skip
"""Those of a program at the front door, beside its core and not within."""
_ALL: Final = {**SMALL, **OF_PROGRAMS}


@cache
def _places() -> tuple[tuple[str, str, tuple[dict[str, Any], ...]], ...]:
    """Return each constant with all namespaces that have it: it was imported into some."""
    package = __package__.partition(".")[0]
    ours = {
        # A module that has a former name as well is there twice.
        id(it): it
        for name, it in sorted(sys.modules.items())
        if name.startswith(f"{package}.")
    }
    found = []
    for module, names in _ALL.items():
        own = vars(sys.modules[f"{package}.{module}"])
        for name in names:
            others = (vars(it) for it in ours.values() if vars(it).get(name) == own[name])
            found.append((module, name, (*others,)))
    return tuple(found)


@contextmanager
def made_small(
    draw: Draw, some: Mapping[str, Mapping[str, tuple[int, ...]]] = SMALL
) -> Iterator[None]:
    """Make about half of them small in the meantime."""
    former = []
    try:
        for module, name, spaces in _places():
            if module not in some:
                continue
            value = draw.one_of(some[module][name])
            if draw.once_in(2):
                for space in spaces:
                    former.append((space, name, space[name]))
                    space[name] = value
        yield
    finally:
        for space, name, value in reversed(former):
            space[name] = value
