"""Which event records a fact gives rise to.

A record is built only when it is read. A fact is turned into builders, one for each record,
and the ring keeps the fact and the builders. How many records there are is known at once, so they
can be numbered; what they say is worked out from the fact alone.
"""

from collections.abc import Callable
from typing import Any, get_args

from yunikorn_actors.machines.events import (
    applications,
    asks,
    gangs,
    nodes,
    preemption,
    queues,
)
from yunikorn_actors.machines.events.record import Builder, Chosen, Fixed
from yunikorn_actors.state import facts as f


def builders_of(fact: f.Fact) -> tuple[Builder, ...]:
    """Return the builders of the records of this fact, in their order."""
    kind = type(fact)
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return fixed
    chosen = _CHOSEN.get(kind)
    return () if chosen is None else chosen(fact)


def count_of(fact: f.Fact) -> int:
    """Say how many records this fact has."""
    kind = type(fact)
    count = COUNTS.get(kind)
    if count is not None:
        return count
    count_of = _RUNS.get(kind)
    return len(_CHOSEN[kind](fact)) if count_of is None else count_of(fact)


_FIXED: Fixed = {
    **applications.FIXED, **asks.FIXED, **gangs.FIXED,
    **nodes.FIXED, **preemption.FIXED, **queues.FIXED,
}  # fmt: skip
_CHOSEN: Chosen = {
    **applications.CHOSEN, **asks.CHOSEN, **gangs.CHOSEN,
    **nodes.CHOSEN, **preemption.CHOSEN, **queues.CHOSEN,
}  # fmt: skip
_RUNS: dict[type, Callable[[Any], int]] = {
    f.AllocationsCommitted: asks.count_of_run,
    f.AsksAdded: lambda fact: len(fact.specs) * len(_FIXED[f.AskAdded]),
}
"""How many records the parts have together: those are built from the parts."""
COUNTS: dict[type, int] = {
    kind: len(_FIXED.get(kind, ()))
    for kind in get_args(f.Fact)
    if kind not in _CHOSEN and kind not in _RUNS
}
"""Of the facts that always have the same number of records, most of them none."""
