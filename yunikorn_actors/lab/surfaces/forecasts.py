"""What would happen from a moment of a world, and with the least change of it.

The state is taken in each way in which one can be had: from the core itself, as it is and as a
follower hears of it, and from a dump. Changes are those that were made, made again and later, and
others of queues, bounds and properties.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final

import msgspec

from yunikorn_actors import si
from yunikorn_actors.lab.harness import World
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.core_inquiries import Answer, tried
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.values.ids import short_partition_name
from yunikorn_actors.what_if.answer import Answer as Foreseen
from yunikorn_actors.what_if.change_checks import checked, in_order
from yunikorn_actors.what_if.changes import Change, Reconfigure, Request
from yunikorn_actors.what_if.core_state import CoreState, state_of
from yunikorn_actors.what_if.dumps import state_from_dump
from yunikorn_actors.what_if.followed import state_of_core
from yunikorn_actors.what_if.least_change import LeastChange, Wanted, least_changes
from yunikorn_actors.what_if.simulation import simulate
from yunikorn_actors.what_if.text import (
    basis_lines,
    difference_lines,
    differing_lines,
    fit_lines,
    lines_of,
)

_SECONDS: Final = 30.0
"""So far is looked ahead."""
_AFTER_S: Final = (0.0, 0.0, 1.0, 2.5, 10.0, 30.0, 31.0)
_AMOUNTS: Final = (0, 500, 1000, 2000, 4000, 8000, 20_000)
_VCORES: Final[tuple[si.Amount, ...]] = (0, 1, 2, 4, "500m", 20)
_LOOKS: Final = 60
"""So often a search may look at its time, and so about as many trials it has."""
_WITHIN_S: Final = (0.0, 5.0)
_PROPERTIES: Final[tuple[dict[str, str], ...]] = (
    {}, {}, {"application.sort.policy": "fair"}, {"priority.offset": "3"},
    {"preemption.delay": "1s"}, {"application.sort.policy": "odd"},
)  # fmt: skip


class Forecasts:
    """Asks what would happen in one moment of a world."""

    def __init__(self, world: World, draw: Draw, requests: Sequence[Request]) -> None:
        """`requests` are those that were made last."""
        self._core, self._draw, self._requests = world.simulator, draw, requests
        self._partitions = {name: it.state for name, it in world.context.partitions.items()}

    def of_itself(self) -> Iterator[Answer]:
        """Say what would happen from here, with these made again and without, and with others."""
        state = state_of(self._core)
        for some in (self._requests, ()):
            found = tried(simulate, state, *some, until=_SECONDS, origin=self._core)
            yield "what would happen", found
        taken = list[Change]()
        yield from self._allowed(state, (*self._later(), *self._changes()), taken)
        found = tried(simulate, state, *taken, until=_SECONDS, origin=self._core)
        yield "what would happen with what is allowed", found
        yield from _written(found)

    def _allowed(
        self, state: CoreState, changes: Sequence[Change], taken: list[Change]
    ) -> Iterator[Answer]:
        """Take those of which nothing says that they cannot be made: one would refuse all."""
        for change in changes:
            said = tried(self._check, state, (*taken, change))
            yield "what is said of a change", said
            taken += [] if isinstance(said, str) else [change]

    def _check(self, state: CoreState, changes: Sequence[Change]) -> list[str]:
        policies = self._core.topology.policies
        _, notes = checked(in_order(changes), state, policies, until_s=_SECONDS)
        return notes

    def as_followed(self) -> Iterator[Answer]:
        """Say what a read side would say: it has replicas alone."""
        state = state_of_core(self._core, self._core.topology, self._core.now_ns)
        policies = self._core.topology.policies.given
        yield "what followers make of it", (state.registered, state.revisions, state.lacks)
        taken = list[Change]()
        yield from self._allowed(state, self._changes(), taken)
        found = tried(simulate, state, *taken, until=_SECONDS, policies=policies)
        yield "what would happen to what is followed", found
        for wanted in self._wanted():
            left = count(_LOOKS, -1)
            least = tried(
                least_changes, state, wanted, left_s=lambda left=left: float(next(left)),
                policies=policies,
            )  # fmt: skip
            yield f"the least change for {wanted.asks or 'more'}", least
            if isinstance(least, LeastChange):
                yield "the least change in words", [*fit_lines(least)]

    def from_dump(self) -> Iterator[Answer]:
        """Say what is made of a dump of this moment, and what the dump does not tell."""
        made = tried(_read_dump, self._core.state_dump())
        is_state = isinstance(made, CoreState)
        yield "what is made of a dump", (made.images, made.lacks) if is_state else made

    def _later(self) -> list[Change]:
        return [Change(it, self._draw.one_of(_AFTER_S)) for it in self._requests]

    def _changes(self) -> list[Change]:
        """Draw what an administrator might try."""
        draw, found = self._draw, []
        for name, state in self._partitions.items():
            if state.queues:
                changed = self._reconfigured(short_partition_name(name), state)
                found.append(Change(changed, draw.one_of(_AFTER_S)))
        return found

    def _reconfigured(self, partition: str, state: PartitionState) -> Reconfigure:
        draw = self._draw
        most = {"vcore": draw.one_of(_AMOUNTS)} if draw.once_in(2) else {}
        whose = draw.one_of(("", "", "user", "group"))
        names = [*(state.users if whose == "user" else state.groups)]
        return Reconfigure(
            queue=draw.one_of([*state.queues]), partition=partition, max=most,
            max_applications=draw.one_of((None, None, 0, 1, 3)),
            guaranteed={} if whose or draw.once_in(2) else {"vcore": draw.one_of(_AMOUNTS)},
            properties={} if whose else draw.one_of(_PROPERTIES),
            user=draw.one_of(names) if whose == "user" and names else "",
            group=draw.one_of(names) if whose == "group" and names else "",
        )  # fmt: skip

    def _wanted(self) -> Iterator[Wanted]:
        """Draw an ask that waits, and one that does not wait yet."""
        draw = self._draw
        waiting = [
            (app.id, ask.spec.key)
            for state in self._partitions.values()
            for app in state.applications.values()
            for ask in app.waiting_asks()
        ]
        if waiting:
            yield Wanted((), (draw.one_of(waiting),), draw.one_of(_WITHIN_S))
        apps = [
            app.id for state in self._partitions.values() for app in state.applications.values()
        ]
        if apps:
            ask = si.AllocationAsk(
                allocation_key="wanted", application_id=draw.one_of(apps),
                resource_ask=si.Resource.parse({"vcore": draw.one_of(_VCORES)}),
                max_allocations=draw.whole(1, 2),
            )  # fmt: skip
            yield Wanted((Change(si.AllocationRequest(asks=(ask,))),), (), draw.one_of(_WITHIN_S))


def _written(found: Any) -> Iterator[Answer]:  # noqa: ANN401 - an answer, or a refusal
    if isinstance(found, Foreseen):
        yield "what would happen, in words", [
            *lines_of(found), *differing_lines(found), *basis_lines(found),
            *difference_lines(found),
        ]  # fmt: skip


def _read_dump(dump: dict[str, Any]) -> CoreState:
    return state_from_dump(json.loads(msgspec.json.encode(dump)))
