"""What would happen: a copy of a core's state, changed and run on in virtual time."""

from yunikorn_actors.what_if.answer import Answer, Course, Difference, Ended, Placed, Refused, Wait
from yunikorn_actors.what_if.changes import Change, Reconfigure
from yunikorn_actors.what_if.core_state import CoreState
from yunikorn_actors.what_if.simulate import simulate

__all__ = [
    "Answer",
    "Change",
    "CoreState",
    "Course",
    "Difference",
    "Ended",
    "Placed",
    "Reconfigure",
    "Refused",
    "Wait",
    "simulate",
]
