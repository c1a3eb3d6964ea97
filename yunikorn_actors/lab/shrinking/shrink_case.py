"""Makes a failing case and its tape small together: a file and a tape to read at a glance.

What is left out of the one often makes something of the other needless, so both take turns until
neither gets smaller. A step keeps its number while this goes on, and what stands on the tape for
something that is not there any more falls away.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.case import Case, parse_case
from yunikorn_actors.lab.oracles.promises import is_promise
from yunikorn_actors.lab.run_schedule import Outcome, play
from yunikorn_actors.lab.scenario_documents import Document, document_of, steps_alone, written
from yunikorn_actors.lab.shrinking.shrink import Effort, Shrinker
from yunikorn_actors.lab.shrinking.shrink_document import DocumentShrinker
from yunikorn_actors.lab.tapes.tape import THE_END, Entry, Tape
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.scenario.document import ScenarioError

_STEP: Final = re.compile(r"\bstep (\d+(?:\.\d+)?)\b")


class Failing(Struct, frozen=True):
    """A case and a tape of it that fails."""

    case: Case
    tape: Tape


class CaseShrinker:
    """Keeps the best so far, for a caller that interrupts it."""

    def __init__(
        self,
        failing: Failing,
        kind: str | None,
        checkers: Callable[[], tuple[Checker, ...]],
        effort: Effort | None = None,
    ) -> None:
        """Without a kind any failure will do."""
        self.effort = effort or Effort()
        self._tapes: Shrinker | None = None
        self._kind = kind
        self._checkers = checkers
        self._best = failing
        self._needs_deviation = False
        """Whether what is left of the steps has to go well undisturbed."""

    @property
    def best(self) -> Failing:
        """The smallest that was seen to fail."""
        tape = None if self._tapes is None else self._tapes.best
        return self._best if tape is None else replace(self._best, tape=tape)

    def shrink(self) -> Failing:
        if is_promise(self._kind):
            undisturbed = _undisturbed(self._best)
            if self._fails(undisturbed):
                self._best = undisturbed
                return self._best
            self._needs_deviation = True
        if not self._best.case.text or not self._try(_alone(self._best)):
            # Made by a function, or written in a way that plain data has not: its tape is all.
            self._shrink_tape()
            return self._best
        self._try(_undisturbed(self._best))
        self._shrink_document(steps_only=True)
        before = None
        while before != self._best:
            before = self._best
            self._simplify_where()
            self._shrink_tape()
            self._try(_cut(self._best))
            self._shrink_document()
        return self._best

    def play(self, failing: Failing) -> Outcome:
        return play(failing.case, failing.tape, self._checkers())

    def _fails(self, failing: Failing) -> bool:
        if not self.effort.spend():
            return False
        outcome = self.play(failing)
        if is_promise(self._kind) and not outcome.keeps_order:
            return False
        return outcome.violation is not None and self._kind in {None, outcome.violation.kind}

    def _fails_alike(self, failing: Failing) -> bool:
        """Whether it fails as the first one did, and not for want of a step."""
        if self._needs_deviation and not self.effort.allows(2):
            # Without a play left for the second question its answer would be no.
            return False
        if not self._fails(failing):
            return False
        return not (self._needs_deviation and self._fails(_undisturbed(failing)))

    def _try(self, failing: Failing) -> bool:
        if failing != self._best:
            if not self._fails_alike(failing):
                return False
            self._best = failing
        return True

    def _simplify_where(self) -> None:
        """Try one scheduler, and the usual topology."""
        self._try(replace(self._best, tape=replace(self._best.tape, schedulers=1)))
        usual: TopologyName = "proposing"
        self._try(replace(self._best, tape=replace(self._best.tape, topology=usual)))

    def _shrink_tape(self) -> None:
        best = self._best
        self._tapes = Shrinker(best.case, self._kind, self._checkers, self.effort)
        self._tapes.shrink(best.tape)
        self._best, self._tapes = self.best, None

    def _shrink_document(self, *, steps_only: bool = False) -> None:
        """Leave out of the document what may be; a step is numbered anew as soon as that is so."""
        first = self._best

        def fails(document: Document, places: tuple[int, ...]) -> bool:
            try:
                smaller = with_document(first, document, places)
            except ScenarioError:
                return False
            return self._try(smaller)

        shrinker = DocumentShrinker(document_of(first.case.text), fails)
        if steps_only:
            shrinker.leave_out_steps()
        else:
            shrinker.shrink()


def _undisturbed(failing: Failing) -> Failing:
    return replace(failing, tape=replace(failing.tape, entries=()))


def _alone(failing: Failing) -> Failing:
    """Write each step by itself, without expectations: as they are played."""
    document = document_of(failing.case.text)
    steps = tuple(steps_alone(document))
    numbers = {number: str(new) for new, (number, _) in enumerate(steps, 1)}
    document = {**document, "steps": [step for _, step in steps]}
    document.pop("about", None)
    return _numbered(failing, document, numbers)


def _cut(failing: Failing) -> Failing:
    """Leave out of the file the steps that the tape leaves out."""
    if failing.tape.steps is None:
        return failing
    document = document_of(failing.case.text)
    places = tuple(int(number) - 1 for number in failing.tape.steps if number != "0")
    if not places:
        return failing
    document["steps"] = [document["steps"][place] for place in places]
    return with_document(failing, document, places)


def with_document(failing: Failing, document: Document, places: tuple[int, ...]) -> Failing:
    """Take another document, whose steps stood at these places."""
    numbers = {str(place + 1): str(new) for new, place in enumerate(places, 1)}
    return _numbered(failing, document, numbers)


def _numbered(failing: Failing, document: Document, numbers: Mapping[str, str]) -> Failing:
    """Number the steps anew on the tape; raise ScenarioError if the document is no scenario."""
    file = failing.case.scenario.file
    case = parse_case(written(document), file, failing.case.topology)
    case = replace(
        case, schedulers=failing.case.schedulers, policies=failing.case.policies,
        events_max=failing.case.events_max,
    )  # fmt: skip
    left = {step.label for step in case.steps}
    named = {**numbers, **dict.fromkeys(left & {"0"}, "0")}
    entries = (_entry(entry, named) for entry in failing.tape.entries)
    steps = failing.tape.steps
    tape = replace(
        failing.tape,
        digest=case.digest,
        steps=None if steps is None else tuple(named[it] for it in steps if it in named),
        entries=tuple(entry for entry in entries if entry is not None),
    )
    return Failing(case, tape)


def _entry(entry: Entry, numbers: Mapping[str, str]) -> Entry | None:
    """Return the entry with its steps numbered anew; None if nothing would come of it."""
    what, after = _renamed(entry.what, numbers), _renamed(entry.after, numbers)
    if what is None:
        return None
    if after is None:
        return replace(entry, what=what, after=THE_END) if entry.verb == "hold" else None
    return replace(entry, what=what, after=after)


def _renamed(text: str, numbers: Mapping[str, str]) -> str | None:
    """Number the steps in the name of an event anew; None if one of them is not there."""
    if any(found not in numbers for found in _STEP.findall(text)):
        return None
    return _STEP.sub(lambda found: f"step {numbers[found[1]]}", text)
