"""What would happen: a copy of a core's state, changed and run on in virtual time."""

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
