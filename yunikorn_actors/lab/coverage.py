"""Counts what runs reached: orders of messages in each mailbox, and what `features` lists.

Orders are ordered pairs of types of messages. A pair is tried when a message of its first type is
handled right before one of its second. Possible is each type that a mailbox ever got after each of
them, so some of what was never tried can't be.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from yunikorn_actors.lab.features import BATCHES, UNIVERSE, Feature, features_in
from yunikorn_actors.lab.tapes.tape_names import mailbox_name
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import Delivery, is_reply
from yunikorn_actors.values.close_names import first_few

RUNS_MIN: Final = 50
"""Before so many runs nobody can say that enough were tried."""
CHANCE_ENOUGH: Final = 0.02


class Pair(Struct, frozen=True, order=True):
    mailbox: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.mailbox}: {self.first}, {self.second}"


class Tried(Struct, frozen=True):
    """What one run tried."""

    types: tuple[tuple[str, str], ...]
    """Each mailbox with each type that it got."""
    pairs: tuple[Pair, ...]
    features: tuple[Feature, ...] = ()


def tried_in(deliveries: Sequence[Delivery], settings: Settings) -> Tried:
    last: dict[str, str] = {}
    types: dict[tuple[str, str], None] = {}
    pairs: dict[tuple[str, str, str], None] = {}
    for delivery in deliveries:
        if is_reply(delivery.mailbox):
            continue
        mailbox, kind = _mailbox(delivery), type(delivery.message).__name__
        types[mailbox, kind] = None
        if mailbox in last:
            pairs[mailbox, last[mailbox], kind] = None
        last[mailbox] = kind
    features = features_in(deliveries, settings)
    return Tried(tuple(types), tuple(Pair(*pair) for pair in pairs), features)


class Growth(Struct, frozen=True):
    runs: int
    pairs: int


class Coverage:
    def __init__(self) -> None:
        self._runs_with: Counter[Pair] = Counter()
        """The number of runs in which each pair was tried."""
        self._types: dict[str, dict[str, None]] = {}
        self._growth: list[Growth] = []
        self._reached: dict[Feature, None] = {}
        self.runs = 0

    def add(self, tried: Tried) -> None:
        """Count one run."""
        for mailbox, kind in tried.types:
            self._types.setdefault(mailbox, {})[kind] = None
        self.runs += 1
        before = len(self._runs_with)
        self._runs_with.update(tried.pairs)
        self._reached.update(dict.fromkeys(tried.features))
        if len(self._runs_with) > before:
            self._growth.append(Growth(self.runs, len(self._runs_with)))

    @property
    def tried(self) -> int:
        return len(self._runs_with)

    @property
    def possible(self) -> int:
        return sum(len(types) ** 2 for types in self._types.values())

    @property
    def chance_of_new(self) -> float:
        """How likely another run tries a pair that no run has tried, at most.

        It is the estimate of Good and Turing: pairs that one run alone has tried, by runs.
        """
        once = sum(1 for count in self._runs_with.values() if count == 1)
        return min(1.0, once / self.runs) if self.runs else 1.0

    @property
    def is_enough(self) -> bool:
        """Whether more runs of this kind would hardly show anything new."""
        return self.runs >= RUNS_MIN and self.chance_of_new <= CHANCE_ENOUGH

    def growth(self) -> tuple[Growth, ...]:
        """Return the number of pairs after 1, 2, 4, 8... runs, and after all."""
        marks = [1 << power for power in range(self.runs.bit_length())]
        return tuple(
            Growth(mark, self._pairs_after(mark)) for mark in dict.fromkeys((*marks, self.runs))
        )

    def _pairs_after(self, runs: int) -> int:
        return max((step.pairs for step in self._growth if step.runs <= runs), default=0)

    def never_tried(self) -> Iterator[Pair]:
        for mailbox, types in sorted(self._types.items()):
            for first in sorted(types):
                for second in sorted(types):
                    pair = Pair(mailbox, first, second)
                    if pair not in self._runs_with:
                        yield pair

    def reached(self, group: str) -> tuple[str, ...]:
        """Return what was reached of a group, in the order of its table, else in that of runs."""
        found = {key: None for in_group, key in self._reached if in_group == group}
        return tuple(key for key in UNIVERSE.get(group, found) if key in found)

    def never_reached(self, group: str) -> tuple[str, ...]:
        """Return the rest of the table of a group."""
        found = self.reached(group)
        return tuple(key for key in UNIVERSE[group] if key not in found)

    def counts(self) -> dict[str, int]:
        """Return how much was reached of each group."""
        return {group: len(self.reached(group)) for group in (BATCHES, *UNIVERSE)}

    def has_new_features(self, tried: Tried) -> bool:
        """Whether a run reached what none has so far, orders aside."""
        return any(feature not in self._reached for feature in tried.features)

    def by_mailbox(self) -> dict[str, tuple[int, int]]:
        """Return for each mailbox the pairs that were tried, and those that are possible."""
        tried = Counter(pair.mailbox for pair in self._runs_with)
        return {name: (tried[name], len(types) ** 2) for name, types in sorted(self._types.items())}


def _mailbox(delivery: Delivery) -> str:
    """Name the mailbox for all its lives: schedulers and callbacks are replaced."""
    return mailbox_name(delivery.mailbox).partition("#")[0]


def coverage_lines(coverage: Coverage, never_max: int = 0) -> Iterator[str]:
    """Tell of it, and of so many pairs that were never tried."""
    yield (
        f"orders: {coverage.tried} pairs of {coverage.possible} tried in {coverage.runs} runs; "
        f"chance that another run tries a new one: {coverage.chance_of_new:.1%}"
        f"{', enough' if coverage.is_enough else ''}"
    )
    yield "growth: " + ", ".join(f"{step.pairs} after {step.runs}" for step in coverage.growth())
    for mailbox, (tried, possible) in coverage.by_mailbox().items():
        yield f"  {mailbox}: {tried} of {possible}"
    never = list(coverage.never_tried())
    if never_max and never:
        yield "never tried, one right before the other:"
        yield from (f"  {pair}" for pair in never[:never_max])
        if len(never) > never_max:
            yield f"  and {len(never) - never_max} more"
    yield f"reached: {len(coverage.reached(BATCHES))} pairs of {BATCHES}, and of tables"
    for group, keys in UNIVERSE.items():
        missed = coverage.never_reached(group)
        yield f"  {group}: {len(keys) - len(missed)} of {len(keys)}{_never(missed, never_max)}"


def _never(keys: Sequence[str], most: int) -> str:
    if not most or not keys:
        return ""
    return f"; never {first_few(keys, most)}"
