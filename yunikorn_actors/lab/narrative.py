"""A run in English: what was sent to the core, what it sent, and which timers were due."""

import warnings
from collections.abc import Callable, Iterator
from typing import Final

from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.run_schedule import Outcome
from yunikorn_actors.lab.tapes.tape import Tape
from yunikorn_actors.lab.tapes.tape_names import mailbox_name, topics
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import RM_PROXY, TIMER, Delivery, is_callback
from yunikorn_actors.messages.callbacks import method_of
from yunikorn_actors.messages.rm_calls import CallMark

LINES_MAX: Final = 40
"""A longer story begins with its end: what came before is counted."""
_ABOUT_MAX: Final = 4
_SAID: Final = (
    rm.RegistrationRequested, rm.ConfigurationRequested, rm.AllocationsRequested,
    rm.ApplicationsRequested, rm.NodesRequested, rm.RMLost, rm.RMUnregistered,
)  # fmt: skip
"""What comes to the core from outside; what else RmProxy gets, the core sends to itself."""


def __getattr__(name: str) -> Callable[[Case, Tape, Outcome], str]:
    if name == "told":
        text = f"told of {__name__} is narrative_of now; the former name goes with the next release"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return narrative_of
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def narrative_of(case: Case, tape: Tape, outcome: Outcome) -> str:
    """Say what is wrong, by which tape, and how it came about."""
    shown = case.explained(tape)
    wrong = "nothing is wrong" if outcome.violation is None else outcome.violation.text
    count = len(tape.entries)
    deviations = f"{count} deviation{'' if count == 1 else 's'}"
    return "\n".join(
        (
            wrong,
            "",
            f"the tape, {deviations} ({outcome.stimuli} stimuli, {outcome.messages} messages):",
            *(f"  {line}" for line in str(shown).splitlines()),
            *not_played_lines(outcome),
            "",
            "what happened:",
            *(f"  {line}" for line in story(outcome)),
        )
    )


def not_played_lines(outcome: Outcome) -> Iterator[str]:
    """Say what of the tape did not come about; nothing if all of it did."""
    if outcome.not_played:
        yield "not played:"
        yield from (f"  {line}" for line in outcome.not_played)


def story(outcome: Outcome) -> list[str]:
    """Return a line for each message that crosses the border of the core."""
    lines = [line for delivery in outcome.deliveries for line in _line(delivery)]
    numbered = [f"{number:3}. {line}" for number, line in enumerate(lines, 1)]
    left_out = len(numbered) - LINES_MAX
    if left_out <= 0:
        return numbered
    return [f"({left_out} lines before)", *numbered[left_out:]]


def _line(delivery: Delivery) -> Iterator[str]:
    message, sender = delivery.message, delivery.sender
    about = ", ".join(topics(message)[:_ABOUT_MAX]) or type(message).__name__
    if is_callback(delivery.mailbox) and not isinstance(message, CallMark):
        method = method_of(type(message))
        yield f"{mailbox_name(delivery.mailbox)} receives in {method}: {about}"
    elif sender == TIMER:
        yield f"a timer of {mailbox_name(delivery.mailbox)} is due: {about}"
    elif isinstance(message, _SAID) and delivery.mailbox == RM_PROXY:
        yield f"the core receives from {_sender(delivery, about)}"


def _sender(delivery: Delivery, about: str) -> str:
    """Name a program by what it does; that is also the first thing that the message is about."""
    if is_callback(delivery.sender):
        return f"{mailbox_name(delivery.sender)}: {about}"
    label = delivery.stimulus.removeprefix("step ")
    if label == delivery.stimulus or label[:1].isdigit():
        return f"{delivery.stimulus}: {about}"
    _, _, others = about.partition(", ")
    return f"the program: {label}{', ' if others else ''}{others}"
