"""Calls of a core that are not for embedders."""

from typing import Final

from yunikorn_actors.service.served import QuestionedCore

OF_A_FRONT: Final = frozenset(
    {
        "await_acceptance",
        "check_sound",
        "configure_with",
        "inside",
        "is_inside",
        "is_registered",
        "open_stream",
        "post_unregistration",
        "register_with",
        "submit_checked",
    }
)
"""For a front, which is built upon a core on threads."""

OF_OURS: Final = OF_A_FRONT | {*dir(QuestionedCore)}
"""For a front, or for a part of a service."""
