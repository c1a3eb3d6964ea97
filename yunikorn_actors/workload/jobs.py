"""What a workload is made of: jobs and nodes, what was wrong with a log, and how its words map."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from string import Formatter
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from yunikorn_actors.errors import CoreError
from yunikorn_actors.values.durations import SECOND as SECOND
from yunikorn_actors.values.quantity import MEMORY as MEMORY
from yunikorn_actors.values.quantity import VCORE as VCORE

NAMED_MAX: Final = 20
"""So many bad lines are named; all are counted."""
CPU: Final = 1_000
"""A processor, in base units of `vcore`."""
DEVICE: Final = 1_000
"""A whole GPU, in base units of `gpu`."""
MIB: Final = 1 << 20
GIB: Final = 1 << 30
GPU: Final = "gpu"
SECONDS_MAX: Final = 4e9
"""No time of a log is later, and no run longer: that is past the year 2096 in either."""
COUNT_MAX: Final = 1 << 53
"""Larger numbers are damage: a float no longer tells them from their neighbours."""

_OF_NUMBERS: Final = "0123456789.+-eE \t\r\n"
NAME_MAX: Final = 256
"""So many bytes a name has at most."""

FIELDS: Final = frozenset({"user", "group", "queue", "partition", "executable", "name"})
"""What a template of a mapping may name."""
TEMPLATES: Final = ("user", "group", "queue")
NOT_READ: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading raises where a log is not as its format says."""


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
    """The models of device that will do; any if there is none."""
    node: str = ""
    """The only node that will do, as for a member of a daemon set."""
    application: str = ""
    """Jobs that name the same one share an application; without it a job has its own."""
    is_cut_short: bool = False
    """Whether it ended because it was preempted or its node left. What its owner did then is in the
    log as well, so where that happens again it has ended, and does not begin anew."""
    gang: bool = False
    """Whether its tasks are members of a gang, also where a job is one ask by default."""
    priority: int = 0
    may_preempt: bool = True
    preemptible: bool = True
    waited_s: float | None = None
    """How long it waited where the log was written."""

    @property
    def order(self) -> tuple[float, int]:
        return self.submit_s, self.number

    def unusable(self, *, stays: bool) -> str:
        """Say why it cannot be played; one that stays needs no run time."""
        if not (0 < self.run_s <= SECONDS_MAX or (stays and self.run_s <= 0)):
            return "no run time"
        if not all(0 < it <= COUNT_MAX for it in (self.tasks, *self.size.values(), len(self.size))):
            return "no processors"
        if not 0 <= self.submit_s <= SECONDS_MAX or abs(self.number) > COUNT_MAX:
            return "no submit"
        optional = [it for it in (self.node, self.application) if it]
        names = (self.id, self.user, self.group, self.queue, *self.models, *optional)
        if not all(map(_is_name, names)):
            return "no name that is short enough"
        return "" if abs(self.priority) < 1 << 31 else "no priority"


class Node(Struct, frozen=True, kw_only=True):
    """A node on which jobs run, for as long as it is so: one that changes is several in turn."""

    id: str
    resources: dict[str, int]
    """In base units."""
    model: str = ""
    devices: int = 0
    """How many devices its `gpu` are, each of a thousand."""
    from_s: float = 0.0
    """Since the first submit; what is there at that moment may have come before."""
    until_s: float | None = None
    """When it leaves, or changes; None if it stays."""
    drained: bool = False
    """What runs there continues, and nothing new starts."""


class Fault(Struct, frozen=True):
    """A line of a log that says nothing that can be used."""

    line: int
    what: str


class Findings:
    """What was wrong with a log, and what was left out of it."""

    def __init__(self, *, is_strict: bool = False, log: str = "") -> None:
        self.bad = 0
        self.faults: list[Fault] = []
        self.left_out: Counter[str] = Counter()
        self.assumed: Counter[str] = Counter()
        """Of jobs that were taken what the log does not say."""
        self._is_strict, self._log = is_strict, log

    def fault(self, line: int, what: object, place: str = "") -> None:
        """Count a line, or a place; an error says what is missing or of another form."""
        text = place + in_words(what)[:120]
        if self._is_strict:
            raise WorkloadError(f"{self._log}:{line}: {text}")
        self.bad += 1
        if len(self.faults) < NAMED_MAX:
            self.faults.append(Fault(line, text))

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
        known = ", ".join(sorted(FIELDS))
        for name in TEMPLATES:
            try:
                parts = [*Formatter().parse(getattr(self, name))]
            except ValueError as error:
                raise WorkloadError(f"map {name}: {error}") from error
            if not parts:
                raise WorkloadError(
                    f"map {name}: it is empty: write a name, with fields as {known}"
                )
            for _, field_, spec, conversion in parts:
                if field_ is not None and (field_ not in FIELDS or spec or conversion):
                    raise WorkloadError(
                        f"map {name}: {{{field_}}} is no field, or has a format: "
                        f"the fields are {known}"
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
        return {name: getattr(self, name).format_map(values) for name in TEMPLATES}


class Survey(Struct, kw_only=True):
    """What a log has, found by reading it once."""

    format: str = ""
    jobs: int = 0
    submitted_s: tuple[float, float] = (0.0, 0.0)
    """Of the first and the last."""
    is_sorted: bool = True
    header: dict[str, str] = field(default_factory=dict)

    def take(self, jobs: Iterator[Job]) -> "Survey":
        """Read them, and say what they are."""
        first, last, before = inf, 0.0, (-1.0, -1)
        for job in jobs:
            self.jobs += 1
            first, last = min(first, job.submit_s), max(last, job.submit_s)
            self.is_sorted = self.is_sorted and before <= job.order
            before = job.order
        self.submitted_s = (first if self.jobs else 0.0, last)
        return self


def in_words(error: object) -> str:
    """Say what is missing or of another form."""
    if isinstance(error, KeyError):
        return f"there is no {error.args[0]!r:.40}"
    return f"{error}" or type(error).__name__


def _is_name(text: str) -> bool:
    with suppress(UnicodeEncodeError):
        return 0 < len(text.encode()) <= NAME_MAX
    return False


def number(text: object) -> float:
    """Read a number of a log, such as `-1`, `3.0` or `-0.0`; raise ValueError if it is none."""
    with suppress(ValueError, TypeError, OverflowError):
        value = float(text)  # type: ignore[arg-type]
        # Python takes `1_0` and the digits of other scripts as well.
        if abs(value) <= COUNT_MAX and not str(text).strip(_OF_NUMBERS):
            return value
    raise ValueError(f"{text!r:.40} is no number")


def check_number(name: str, value: float, most: float = COUNT_MAX) -> None:
    """Raise WorkloadError for an option that is no such number: NaN is in no range."""
    if not 0 <= value <= most:
        raise WorkloadError(f"{name} {value:g}: write a number from 0 to {most:g}")


def ns(seconds: float) -> int:
    return round(seconds * SECOND)


def json_of(lines: "Numbered") -> Any:  # noqa: ANN401 - any JSON
    """Read a log that is one document of JSON: that has no lines which mean anything."""
    return msgspec.json.decode("".join(line for _, line in lines))


Numbered = Iterator[tuple[int, str]]
"""Lines with their numbers."""
