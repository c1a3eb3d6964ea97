"""What a workload is made of: jobs and nodes, what was wrong with a log, and how its words map."""

from collections import Counter
from collections.abc import Iterator
from math import isfinite
from string import Formatter
from typing import Any, Final

from msgspec import Struct, field

from yunikorn_actors.errors import CoreError

NAMED_MAX: Final = 20
"""So many bad lines are named; all are counted."""
SECOND: Final = 1_000_000_000
CPU: Final = 1_000
"""A processor, in base units of `vcore`."""
VCORE: Final = "vcore"
MEMORY: Final = "memory"
GPU: Final = "gpu"

FIELDS: Final = frozenset({"user", "group", "queue", "partition", "executable", "name"})
"""What a template of a mapping may name."""


class WorkloadError(CoreError, ValueError):
    """A log cannot be read, or an option of its replay means nothing; the text has the remedy."""


class Job(Struct, frozen=True, kw_only=True):
    """One job of a log: some equal tasks that start together and end together."""

    id: str
    number: int
    """Jobs of one moment are submitted in the order of their numbers."""
    submit_s: float
    run_s: float
    size: dict[str, int]
    """What one task needs, in base units."""
    tasks: int = 1
    declared_s: float = 0.0
    """How long its user declared that it would run; 0 is unknown."""
    user: str = "nobody"
    group: str = "nobody"
    queue: str = "root.default"
    models: tuple[str, ...] = ()
    """The models of node that will do; any if there is none."""
    priority: int = 0
    waited_s: float | None = None
    """How long it waited where the log was written."""

    @property
    def order(self) -> tuple[float, int]:
        return self.submit_s, self.number


class Node(Struct, frozen=True, kw_only=True):
    """A node on which jobs run."""

    id: str
    resources: dict[str, int]
    """In base units."""
    model: str = ""
    devices: int = 0
    """How many devices its `gpu` are, each of a thousand."""


class Fault(Struct, frozen=True):
    """A line of a log that says nothing that can be used."""

    line: int
    what: str


class Findings:
    """What was wrong with a log, and what was left out of it."""

    def __init__(self, *, is_strict: bool = False) -> None:
        self.bad = 0
        self.faults: list[Fault] = []
        self.left_out: Counter[str] = Counter()
        self._is_strict = is_strict

    def fault(self, line: int, what: str) -> None:
        if self._is_strict:
            raise WorkloadError(f"line {line}: {what}")
        self.bad += 1
        if len(self.faults) < NAMED_MAX:
            self.faults.append(Fault(line, what))

    def leave_out(self, why: str) -> None:
        self.left_out[why] += 1


class Mapping(Struct, frozen=True, kw_only=True):
    """How the words of a log become those of the scheduler.

    `user`, `group` and `queue` are templates that may name fields of the log: `root.{group}`.
    """

    user: str = "{user}"
    group: str = "{group}"
    queue: str = "root.default"
    memory: str = "none"
    """Whether a job of SWF asks for memory: `none`, `requested` or `used`."""

    def __post_init__(self) -> None:
        for name in ("user", "group", "queue"):
            for part in Formatter().parse(getattr(self, name)):
                if part[1] is not None and part[1] not in FIELDS:
                    raise WorkloadError(
                        f"map {name}: {{{part[1]}}} is no field: "
                        f"the fields are {', '.join(sorted(FIELDS))}"
                    )
        if self.memory not in {"none", "requested", "used"}:
            raise WorkloadError(f"map memory: {self.memory!r}: write none, requested or used")

    @classmethod
    def parse(cls, items: list[str]) -> "Mapping":
        """Read `key=value` items, as `--map` has them."""
        given: dict[str, Any] = {}
        for item in items:
            key, equals, value = item.partition("=")
            if not equals or key not in cls.__struct_fields__:
                known = ", ".join(cls.__struct_fields__)
                raise WorkloadError(f"map {item!r}: write KEY=VALUE, with one of the keys {known}")
            given[key] = value
        return cls(**given)

    def names(self, **fields: str) -> dict[str, Any]:
        """Return user, group and queue of a job of which the log says these."""
        values = {name: fields.get(name, "") or "unknown" for name in FIELDS}
        return {name: getattr(self, name).format_map(values) for name in ("user", "group", "queue")}


class Survey(Struct, kw_only=True):
    """What a log has, found by reading it once."""

    format: str = ""
    jobs: int = 0
    submitted_s: tuple[float, float] = (0.0, 0.0)
    """Of the first and the last."""
    is_sorted: bool = True
    header: dict[str, str] = field(default_factory=dict)


def number(text: str | float) -> float:
    """Read a number of a log, such as `-1`, `3.0` or `-0.0`; raise ValueError if it is none."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def ns(seconds: float) -> int:
    return round(seconds * SECOND)


Numbered = Iterator[tuple[int, str]]
"""Lines with their numbers."""
