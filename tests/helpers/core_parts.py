"""Calls of a core that are not for embedders."""

from typing import Final

from yunikorn_actors.service.served import QuestionedCore

OF_A_FRONT: Final = frozenset(
    {
        "check_sound",
        "driver",
        "inside",
        "is_inside",
        "submit_checked",
    }
)
"""For a front, which is built upon a core on threads."""

OF_OURS: Final = OF_A_FRONT | {*dir(QuestionedCore)}
"""For a front, or for a part of a service."""
