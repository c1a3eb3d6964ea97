"""The words of a tape that are no free names: types of messages, machines, kinds of release.

A key or an id may be one that just does not occur. Any other word that is not known is a mistake of
who wrote it, so it is refused at its place, and never played.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from yunikorn_actors import si
from yunikorn_actors.lab.tapes.tape_names import STEP_VERBS
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, GATEWAY, RM_PROXY, TIMER
from yunikorn_actors.messages.codec import MESSAGE_TYPES
from yunikorn_actors.messages.rm_calls import CallMark
from yunikorn_actors.messages.rm_events import (
    ResponsesDelivered,
    RMLost,
    RMPartitionsRemove,
    RMUnregistered,
)
from yunikorn_actors.values.close_names import did_you_mean

MESSAGE: Final = r"(?P<type>\w+)\((?P<about>.*)\) from (?P<sender>\S.*) to (?P<to>\S.*?)(?: #\d+)?"
TIMER_NAME: Final = r"(?P<type>\w+)\((?P<about>.*)\) to (?P<to>\S.*?)(?: #\d+)?"
_MACHINES: Final = (CONTEXT, RM_PROXY, EVENT_PUBLISHER, "scheduler", GATEWAY, TIMER, "caller")
_NO_MANAGER: Final = re.compile(
    rf"{'|'.join(_MACHINES)}|nothing|scheduler(?::\S.*#\d+)?(?:\.\d+)?|(?:events|follower):\d+"
)
"""Mailboxes and senders, but for the callbacks of resource managers: those have free names."""
_OF_MANAGERS: Final = frozenset(
    {kind for kind in MESSAGE_TYPES if kind.endswith(("Requested", "Answered"))}
    | {kind.__name__ for kind in (RMLost, RMUnregistered, ResponsesDelivered)}
)
"""What a callback sends: the calls that it makes, and its answers."""
_TO_MANAGERS: Final = frozenset(
    name for name, kind in MESSAGE_TYPES.items() if kind.__module__ == CallMark.__module__
)
TIMERS: Final = frozenset(
    {kind for kind in MESSAGE_TYPES if kind.endswith("Due")} | {RMPartitionsRemove.__name__}
)
_KEYWORDS: Final = frozenset(
    {
        "step", "node", "application", "queues", "of", "again", "until", "after", "from", "to",
        "due", "waits", "the", "start", "end", "twice", "never", "as", "return", "place",
        "reserve", "admit", "swap", "preempt", "with", "on", "for", "at", "dump",
        "events", "manager", "asks", "wait",
    }
)  # fmt: skip


def faults_in_message(text: str) -> Iterator[str]:
    """Say which word of the name of a message is not known."""
    found = re.fullmatch(MESSAGE, text)
    if found is not None:
        kind = found["type"]
        yield from _unless_known(kind, MESSAGE_TYPES, "type of message")
        yield from _unless_mailbox(found["to"], kind, _TO_MANAGERS)
        yield from _unless_mailbox(found["sender"], kind, _OF_MANAGERS)


def faults_in_timer(text: str) -> Iterator[str]:
    found = re.fullmatch(TIMER_NAME, text)
    if found is not None:
        yield from _unless_known(found["type"], TIMERS, "timer")
        yield from _unless_mailbox(found["to"], found["type"], ())


def faults_in_mailbox(name: str) -> Iterator[str]:
    """Say so if words follow a machine; any other name may be that of a resource manager."""
    machine, _, rest = name.partition(" ")
    if machine in _MACHINES and rest:
        yield f"nothing follows {machine!r}"


def faults_in_confirmation(what: str, *, is_late: bool) -> Iterator[str]:
    """Say what is wrong with KEY twice, KEY never or KEY as TYPE."""
    manner = re.fullmatch(r"\S+(?: #\d+)?(?: (?P<how>twice|never|as (?P<type>\S+)))?", what)
    if manner is None:
        return
    if manner["type"]:
        yield from _unless_known(manner["type"], si.TerminationType.__members__, "kind of release")
    elif manner["how"] and is_late:
        yield f"{manner['how']!r} and 'after' exclude each other"
    elif not manner["how"] and not is_late:
        yield "it does not say how: twice, never, as TYPE, or after EVENT"


def hint(phrase: str, verbs: Iterable[str]) -> str:
    """Name the first word that is like one that is known, where a phrase is not understood."""
    known = _KEYWORDS.union(verbs, STEP_VERBS)
    for word in re.findall(r"\w+", phrase):
        if word not in known and (near := did_you_mean(word, known)):
            return f" ({word!r}{near})"
    return ""


def _unless_known(word: str, known: Iterable[str], what: str) -> Iterator[str]:
    names = frozenset(known)
    if word not in names:
        yield f"{word!r:.60} is no {what}{did_you_mean(word, names)}"


def _unless_mailbox(name: str, kind: str, of_managers: Iterable[str]) -> Iterator[str]:
    if _NO_MANAGER.fullmatch(name) is None and (kind not in of_managers or " #" in name):
        yield f"{name!r:.60} is no machine{did_you_mean(name, _MACHINES)}"
