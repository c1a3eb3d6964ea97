"""What judges a run beside the oracles of the core, in words that a tape can carry.

Some judges are not in every run, and what some look at is drawn. So a tape names them: without them
it would give the same messages, and nobody would find what was found.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.model.follower import FollowedByModel
from yunikorn_actors.lab.oracles.operator_oracle import Operators
from yunikorn_actors.lab.oracles.run_oracles import all_oracles, oracles
from yunikorn_actors.lab.oracles.walk_oracle import ContestsBeside, WalkBeside
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.replay_check import Replayed
from yunikorn_actors.lab.tapes.tape import Tape

CORE: Final = "core"
"""The oracles that judge every run: a tape that names no other names them."""
RECORDING: Final = "recording"
BY_OPERATORS: Final = "operators"
MODEL: Final = "model"
_SIDES: Final = re.compile(r"sides (\d+)/(\d+)")
_WALKS: Final = re.compile(r"walk (\d+)/(\d+)")
_CONTESTS: Final = re.compile(r"contests (\d+)/(\d+)")


def sides_drawn(seed: int, run: int) -> str:
    """Name the sides of a core, and what they draw from."""
    return f"sides {seed}/{run}"


def walk_drawn(seed: int, run: int) -> str:
    """Name the walk beside the world, and what it is drawn from."""
    return f"walk {seed}/{run}"


def contests_drawn(seed: int, run: int) -> str:
    """Name the contests for room beside the world, and what they are drawn from."""
    return f"contests {seed}/{run}"


def judged_by(words: Iterable[str]) -> tuple[Checker, ...]:
    """Make the oracles of the core and those named, for one run."""
    named = tuple(words)
    draw = next(_draws_of(_SIDES, named), None)
    judges = oracles() if draw is None else all_oracles(draw)
    if RECORDING in named:
        judges = (*judges, Replayed())
    if BY_OPERATORS in named:
        judges = (*judges, Operators())
    judges = (*judges, *(WalkBeside(it) for it in _draws_of(_WALKS, named)))
    judges = (*judges, *(ContestsBeside(it) for it in _draws_of(_CONTESTS, named)))
    return (*judges, FollowedByModel()) if MODEL in named else judges


def _draws_of(form: re.Pattern[str], words: Iterable[str]) -> Iterator[Draw]:
    """Yield what those words name from which something is drawn."""
    for found in filter(None, map(form.fullmatch, words)):
        yield Draw(int(found[1]), int(found[2]))


def judges_of(tape: Tape, *, by_model: bool = False) -> tuple[Checker, ...]:
    """Make those that the tape names; all but the model where it names none."""
    if tape.judges:
        return judged_by({**dict.fromkeys(tape.judges), **({MODEL: None} if by_model else {})})
    return (*all_oracles(), FollowedByModel()) if by_model else all_oracles()
