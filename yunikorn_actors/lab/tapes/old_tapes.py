"""Reads tapes of programs that number the steps, as earlier versions wrote them.

A number is that of a call in the run, those included that are left out. What a program calls shows
only when it runs, and may depend on what the tape does: so the tape is played with the names that
are known, which makes more of them known.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.run_schedule import run, world_of
from yunikorn_actors.lab.tapes.tape import Entry, Tape
from yunikorn_actors.lab.tapes.tape_names import RETURN, START
from yunikorn_actors.lab.tapes.tape_player import Listening, TapePlayer
from yunikorn_actors.lab.user_program import TrialWorld

_NUMBERED: Final = re.compile(r"\bstep (\d+)\b")


def is_numbered(tape: Tape) -> bool:
    texts = (text for entry in tape.entries for text in (entry.what, entry.after))
    return tape.steps is not None or any(map(_NUMBERED.search, texts))


def with_names(case: Case, tape: Tape) -> Tape:
    """Return the tape of a program with names; a number that never comes is left as it is."""
    tried: list[Tape] = []
    named = replace(tape, steps=None)
    while named not in tried:
        tried.append(named)
        named = _named(case, tape, tried[-1])
    return named


def _named(case: Case, tape: Tape, latest: Tape) -> Tape:
    """Name the steps as they come when the latest tape is played."""
    listening = Listening(TapePlayer(latest))
    world = world_of(case, listening, latest)
    assert isinstance(world, TrialWorld)
    run(world)
    names = [step.name for step in world.made]
    left_out = {name for name in names if name not in {step.name for step in world.done()}}
    by_number = {str(number): name for number, name in enumerate((*names, f"step {RETURN}"), 1)}
    moments = dict(by_number)
    for number, name in by_number.items():
        if name in left_out:
            moments[number] = _before(listening.events, names[int(number) :], left_out)
    kept = tape.steps
    return replace(
        tape,
        steps=None,
        without=()
        if kept is None
        else tuple(
            by_number[str(number)].removeprefix("step ")
            for number in range(1, len(case.steps) + 1)
            if str(number) not in kept and number <= len(names)
        ),
        entries=tuple(
            Entry(it.verb, _with(by_number, it.what), _with(moments, it.after))
            for it in tape.entries
        ),
    )


def _before(events: list[str], names: list[str], left_out: set[str]) -> str:
    """Return the moment at which a step was left out: the program waited for the next one then."""
    following = next((name for name in names if name not in left_out), f"step {RETURN}")
    place = events.index(following) if following in events else len(events)
    return events[place - 1] if place else START


def _with(names: Mapping[str, str], text: str) -> str:
    return _NUMBERED.sub(lambda found: names.get(found[1], found[0]), text)
