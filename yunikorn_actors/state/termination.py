"""Why an allocation, or an ask, ends: the number that travels with every release.

It names who started the release. A confirmation repeats the number of the request it answers, so
that both directions of the conversation read the same.
"""

from enum import IntEnum


class TerminationType(IntEnum):
    """Why an allocation or an ask ends; it names who started the release."""

    UNKNOWN_TERMINATION_TYPE = 0
    """Not set: the end of what ran on a removed node, or of a withdrawn ask."""
    STOPPED_BY_RM = 1
    """The resource manager ended it, or removed its application."""
    TIMEOUT = 2
    """It, its application or its gang took too long: the core asks it back."""
    PREEMPTED_BY_SCHEDULER = 3
    """Others are entitled to its room: the core asks it back."""
    PLACEHOLDER_REPLACED = 4
    """A member of its gang takes its place: the core asks the placeholder back."""
    SCHEDULING_FAILED_ON_RM = 5
    """The resource manager could not bind it, so it gives it back: a release of its own."""


FREES = frozenset({TerminationType.TIMEOUT, TerminationType.PREEMPTED_BY_SCHEDULER})
"""What is asked back for these leaves its room free; a swap does not, while it is on."""

ASKED_BACK = FREES | {TerminationType.PLACEHOLDER_REPLACED}
"""For these the core asks back what runs."""

BY_RM = frozenset(
    {
        TerminationType.UNKNOWN_TERMINATION_TYPE,
        TerminationType.STOPPED_BY_RM,
        TerminationType.SCHEDULING_FAILED_ON_RM,
    }
)
"""These the resource manager decides by itself, and gets an echo; the others confirm."""

TAKES_THE_ASK = BY_RM | {TerminationType.PREEMPTED_BY_SCHEDULER}
"""A release by key with one of these withdraws the ask too."""
