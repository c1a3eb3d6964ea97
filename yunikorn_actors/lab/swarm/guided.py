"""Guides the swarm by what runs reach: a run that reached something new is kept, and changed.

A corpus is a folder of scenario files. A remark at the top of each says in which order it is played
and with which faults, so the file is a run. Most runs are drawn afresh; the others are kept ones
with a few changes: steps, amounts, settings, the order, or the end of a fresh one.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from yunikorn_actors.lab.case import DIGITS, Case, parse_case
from yunikorn_actors.lab.coverage import Coverage
from yunikorn_actors.lab.scenario_documents import Document, document_of, written
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.drawn import Drawn
from yunikorn_actors.lab.swarm.small_bounds import drawn_settings
from yunikorn_actors.lab.swarm.swarm_runs import Plan, Planned, Played, played
from yunikorn_actors.scenario.document import ScenarioError

FRESH: Final = 0.7
"""The share of runs that are drawn afresh: with fewer of them less was reached."""
_RECENT: Final = 20
"""So many of those that were kept last are changed: what all runs reach was kept first."""
_CHANGES_MAX: Final = 3
_TRIES: Final = 20
"""So many changed worlds are tried out until one is a scenario."""
_STEPS_MAX: Final = 80
"""Copies of copies would grow for ever, and take longer than what they show is worth."""
_ORDERS: Final = 1 << 32
_BOUNDS: Final = frozenset({"small-bounds", "short-times"})
_REGISTRATIONS: Final = frozenset({"new-registrations"})
_MUTATION: Final = 7
"""The draws of changes are others than those of fresh runs."""
_REMARK: Final = re.compile(
    r"# run (?P<number>\d+) of seed (?P<seed>\d+), (?P<strategy>\w+) of order (?P<order>\d+) "
    r"on (?P<topology>\w+) with (?P<schedulers>\d+) schedulers, parts: (?P<parts>[\w,-]*)\n"
)


class Corpus:
    """Runs that reached something new, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        files = sorted(folder.glob("*.yaml"))
        read = [run for file in files if (run := _read(file.read_text("utf-8"), file)) is not None]
        self.runs = sorted(read, key=lambda it: it.number)

    def add(self, run: Drawn) -> None:
        text = _remark(run) + run.case.text
        digest = hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
        (self._folder / f"{digest}.yaml").write_text(text, "utf-8")
        self.runs.append(run)


def _remark(run: Drawn) -> str:
    case = run.case
    return (
        f"# run {run.number} of seed {run.seed}, {run.strategy} of order {run.order} on "
        f"{case.topology} with {case.schedulers} schedulers, parts: {','.join(sorted(run.parts))}\n"
    )


def _read(text: str, file: Path) -> Drawn | None:
    """Read a run; None if it is no scenario, or says not how it is played."""
    found = _REMARK.match(text)
    if found is None:
        return None
    try:
        case = parse_case(text[found.end() :], file.name)
    except ScenarioError:
        return None
    return Drawn(
        seed=int(found["seed"]),
        number=int(found["number"]),
        parts=frozenset(filter(None, found["parts"].split(","))),
        case=case.on(
            "fused" if found["topology"] == "fused" else "proposing", int(found["schedulers"])
        ),
        strategy=found["strategy"],
        order=int(found["order"]),
    )


class Guided:
    """A plan in which a run depends on what those before it reached: one process plays it."""

    def __init__(self, plan: Plan, corpus: Corpus) -> None:
        self._plan = plan
        self._corpus = corpus
        self._coverage = Coverage()
        self._at: Drawn | None = None
        for run in corpus.runs:
            self._coverage.add(played(_Only(run), run.number).run.tried)

    @property
    def first(self) -> int:
        """The number with which the search goes on from this corpus."""
        return max((run.number for run in self._corpus.runs), default=0) + 1

    def drawn(self, number: int) -> Drawn:
        if self._at is None or self._at.number != number:
            self._at = self._chosen(number)
        return self._at

    def play(self, _: Planned, numbers: range) -> Iterator[Played]:
        for number in numbers:
            one = played(self, number)
            # Of orders there is always one more, and then all runs would be kept.
            if self._coverage.has_new_features(one.run.tried):
                self._coverage.add(one.run.tried)
                self._corpus.add(self.drawn(number))
            yield one

    def _chosen(self, number: int) -> Drawn:
        draw, runs = Draw(self._plan.seed + _MUTATION, number), self._corpus.runs
        if not runs or draw.chance(FRESH):
            return self._plan.drawn(number)
        run = changed(draw.one_of(runs[-_RECENT:]), self._plan.drawn(number), draw)
        return replace(run, seed=self._plan.seed, number=number)


class _Only:
    """A plan of one run."""

    def __init__(self, run: Drawn) -> None:
        self._run = run

    def drawn(self, _: int) -> Drawn:
        return self._run


def changed(run: Drawn, other: Drawn, draw: Draw) -> Drawn:
    """Change a run in a few places; with nothing that is a scenario, only its order changes."""
    run = replace(run, order=draw.number(_ORDERS) if draw.once_in(2) else run.order)
    for _ in range(_TRIES):
        document = document_of(run.case.text)
        for _ in range(draw.whole(1, _CHANGES_MAX)):
            draw.one_of(_CHANGES)(document, document_of(other.case.text), draw)
        document["steps"] = document["steps"][:_STEPS_MAX]
        text = written(document)
        if text == run.case.text:
            continue  # One change has undone another, or changed nothing.
        try:
            case = parse_case(text, run.case.scenario.file)
        except ScenarioError:
            continue
        parts = run.parts | other.parts | _BOUNDS
        # Each world begins with one; wherever else it got to, its manager registers anew.
        if any("register" in step for step in document["steps"][1:]):
            parts |= _REGISTRATIONS
        return replace(run, case=_like(run.case, case), parts=parts)
    return replace(run, order=draw.number(_ORDERS))


def _like(run: Case, case: Case) -> Case:
    return replace(case.on(run.topology, run.schedulers), events_max=run.events_max)


# -- changes


def _leave_out(document: Document, _: Document, draw: Draw) -> None:
    steps = document["steps"]
    if len(steps) > 1:
        del steps[draw.number(len(steps))]


def _repeat(document: Document, _: Document, draw: Draw) -> None:
    steps = document["steps"]
    steps.insert(draw.number(len(steps) + 1), draw.one_of(steps))


def _exchange(document: Document, _: Document, draw: Draw) -> None:
    steps = document["steps"]
    one, two = draw.number(len(steps)), draw.number(len(steps))
    steps[one], steps[two] = steps[two], steps[one]


def _take_over(document: Document, other: Document, draw: Draw) -> None:
    steps = document["steps"]
    steps[draw.number(len(steps))] = draw.one_of(other["steps"])


def _splice(document: Document, other: Document, draw: Draw) -> None:
    """End as another one does."""
    steps, others = document["steps"], other["steps"]
    at = 1 + draw.number(len(steps))
    document["steps"] = [*steps[:at], *others[draw.number(len(others)) :]]


def _other_amount(document: Document, _: Document, draw: Draw) -> None:
    """Change a number to one beside it, or to another that the world has: there bounds are."""
    places = list(_numbers(document["steps"]))
    if places:
        holder, key = draw.one_of(places)
        holder[key] = draw.one_of(
            (holder[key] + 1, max(0, holder[key] - 1), 1, 2 * holder[key], _one(places, draw))
        )


def _one(places: list[tuple[Any, Any]], draw: Draw) -> int:
    holder, key = draw.one_of(places)
    number: int = holder[key]
    return number


def _numbers(value: object) -> Iterator[tuple[Any, Any]]:
    """Yield where the whole numbers are."""
    items: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in list(items):
        if type(item) is int:
            yield value, key
        else:
            yield from _numbers(item)


def _other_settings(document: Document, _: Document, draw: Draw) -> None:
    settings = drawn_settings(draw, _BOUNDS)
    if settings:
        document["settings"] = settings
    else:
        document.pop("settings", None)


_CHANGES: Final[tuple[Callable[[Document, Document, Draw], None], ...]] = (
    _leave_out, _repeat, _repeat, _exchange, _exchange, _take_over, _splice, _other_amount,
    _other_amount, _other_settings,
)  # fmt: skip
