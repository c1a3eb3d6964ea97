"""What-if: a copy of a core's state, changed and run on in virtual time.

- State: `core_state`, which comes from a core that is followed (`followed`), from a journal or a
  dump (`dumps`, with `core_dump` and `yunikorn_dump`), or from a recording.
- Changes: `changes`, and `change_checks` before anything is simulated.
- Answer: `run` is one run, `simulation` two of them and what differs; `answer` is data, `text`
  words.
- The least change that helps: `least_change`, which tries `bounds` and work that `missing_room`
  proposes.
"""

from yunikorn_actors.what_if.answer import (
    Answer,
    Course,
    Difference,
    Ended,
    NotTaken,
    Placed,
    Wait,
    Waiting,
)
from yunikorn_actors.what_if.changes import Change, Reconfigure

__all__ = [
    "Answer",
    "Change",
    "Course",
    "Difference",
    "Ended",
    "NotTaken",
    "Placed",
    "Reconfigure",
    "Wait",
    "Waiting",
]
