"""What a run is about: applications, asks, nodes, queues and users, each with its life.

Why an ask waited is worked out by running the recording again and asking after each step. That
takes long for many asks, so it may be left out, or done for some of them.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.policies.registry import MissingPolicy
from yunikorn_actors.trace.causes import Period, Waits, why
from yunikorn_actors.trace.origins.batch_origins import BatchOrigins
from yunikorn_actors.trace.origins.message_parts import texts_in
from yunikorn_actors.trace.origins.origin_queries import TextIndex
from yunikorn_actors.trace.read import TraceError, TraceReader, silent
from yunikorn_actors.trace.story import StoryLine, Subject, stories, subjects_in
from yunikorn_actors.trace.text.show import place
from yunikorn_actors.trace.view.run_data import NONE, Drawn, Shown, Tell, counted

WHY_USUAL: Final = 50
"""The default number of asks for which it is worked out."""


class WhyOf(StrEnum):
    """Of which asks it is worked out why they waited."""

    ALL = "all"
    FILTERED = "filtered"
    NONE = "none"


class Lines(Struct, kw_only=True):
    """Of all stories; many stand in several. An entry of each list is about one line."""

    at_ns: list[int] = []
    message: list[int] = []
    place: list[str] = []
    """Where it happened; empty if the message is in the picture."""
    text: list[str] = []


class Wait(Struct, frozen=True, kw_only=True):
    """One reason for which an ask waited, and from when to when; the last has no end."""

    from_ns: int
    to_ns: int | None
    from_record: int
    to_record: int | None
    text: str
    since: str
    message: int
    held_by: tuple[str, ...]


class Object(Struct, kw_only=True):
    kind: str
    name: str
    names: list[str]
    """As which it stands in payloads."""
    application: str
    """Of an ask: its names are its own only beside this one."""
    uuids: list[str]
    """Of an ask: these are its own wherever they stand."""
    messages: list[int] | None
    """Those that speak of it; None if those do in which its names stand, as texts of JSON."""
    story: list[int]
    """Numbers of lines."""
    why: list[Wait] | None
    """None if it was not worked out."""


class Objects(Struct, kw_only=True):
    objects: list[Object]
    lines: Lines
    has_times: bool
    """Whether the clock went on while asks waited; if not, only the records tell how long."""
    problem: str
    """Why there is no `why`, or not of all."""


def objects_of(shown: Shown, picture: Drawn, why_of: WhyOf, tell: Tell = silent) -> Objects:
    """Return the objects of the messages in a picture; each has its whole life."""
    path = shown.path
    with _all_of(path, picture) as deliveries:
        subjects = subjects_in(counted(deliveries, tell, "names in "))
    with _all_of(path, picture) as deliveries:
        grouped = stories(counted(deliveries, tell, "stories in "), subjects, BatchOrigins())
    spoken = _spoken_of(subjects, picture)
    numbers = {Cause(it.mailbox, it.step): place for place, it in enumerate(picture.deliveries)}
    story = _Story(numbers, picture.start_ns)
    objects = [
        Object(
            kind=it.kind, name=it.name, names=_names(it), application=it.application_id,
            uuids=sorted(it.uuids), messages=messages, story=[*map(story.number, life)], why=None,
        )
        for it, life, messages in zip(subjects, grouped, spoken, strict=True)
        if messages != []
    ]  # fmt: skip
    has_times, problem = _add_why(shown, objects, numbers, why_of, tell)
    return Objects(objects=objects, lines=story.lines, has_times=has_times, problem=problem)


class _Story:
    """Numbers the lines of lives; those that are shared are the same one."""

    def __init__(self, numbers: dict[Cause, int], start_ns: int) -> None:
        self.lines = Lines()
        self._numbers: dict[int, int] = {}
        self._messages = numbers
        self._start_ns = start_ns

    def number(self, line: StoryLine) -> int:
        lines = self.lines
        number = self._numbers.setdefault(id(line), len(lines.text))
        if number == len(lines.text):
            message = self._messages.get(line.step, NONE)
            lines.at_ns.append(line.at_ns - self._start_ns)
            lines.message.append(message)
            lines.place.append(place(line.step) if message == NONE else "")
            lines.text.append(f"{line.what} {line.text}".rstrip())
        return number


@contextmanager
def _all_of(path: Path, picture: Drawn) -> Iterator[Iterable[Delivery]]:
    """Read the recording again only if the filters have left something out."""
    if picture.is_whole:
        yield picture.deliveries
        return
    with TraceReader(path) as trace:
        yield trace


def _names(subject: Subject) -> list[str]:
    if subject.kind != "ask":
        return [subject.name]
    placeholders = [*subject.placeholders.values(), *subject.placeholders]
    own = sorted(subject.keys) + sorted(subject.uuids)
    return own + [name for name in placeholders if name not in own]


def _spoken_of(subjects: list[Subject], picture: Drawn) -> Iterator[list[int] | None]:
    """Yield for each thing the messages that speak of it.

    The page finds them by itself, where all is in the picture and names are plain.
    """
    spoken = _Sought(picture) if picture.is_whole else TextIndex(picture.deliveries)
    of_owners: dict[str, set[int]] = {}
    for subject in subjects:
        names, owner = _names(subject), subject.application_id
        if picture.is_whole and all(map(_is_plain, [*names, owner] if owner else names)):
            yield None
            continue
        found = spoken.of_any(names)
        if owner:
            # A UUID tells by itself whose it is; a key does with its application.
            if owner not in of_owners:
                of_owners[owner] = spoken.of_any([owner])
            found = found & of_owners[owner] | spoken.of_any(subject.uuids)
        yield sorted(found)


class _Sought:
    """Finds messages by a text in them, without knowing all texts."""

    def __init__(self, picture: Drawn) -> None:
        self._messages = [it.message for it in picture.deliveries]
        self._payloads = picture.payloads

    def of_any(self, texts: Iterable[str]) -> set[int]:
        return {place for text in texts for place in self._of(text)}

    def _of(self, text: str) -> Iterator[int]:
        written = msgspec.json.encode(text)
        for number, payload in enumerate(self._payloads):
            if written in payload and text in texts_in(self._messages[number]):
                yield number


def _is_plain(name: str) -> bool:
    """Whether a name in quotes stands wherever it is a text of a payload, and nowhere else."""
    return name not in _words() and _PLAIN.fullmatch(name) is not None


_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f,:}\]][^"\\\x00-\x1f]*')
"""It is written as it is, and is not what may stand behind a text."""


@cache
def _words() -> frozenset[str]:
    """Return what stands in payloads besides what they say: names of fields, and of kinds."""
    return frozenset(_words_of(Struct))


def _words_of(kind: type[Struct]) -> Iterator[str]:
    for below in kind.__subclasses__():
        config = below.__struct_config__
        yield from below.__struct_encode_fields__
        yield from (it for it in (config.tag_field, config.tag) if isinstance(it, str))
        yield from _words_of(below)


# -- why


def _add_why(
    shown: Shown, objects: list[Object], numbers: dict[Cause, int], why_of: WhyOf, tell: Tell
) -> tuple[bool, str]:
    """Work out why asks waited; return whether that has times, and what was in the way of it."""
    asks = [it for it in objects if it.kind == "ask"]
    if why_of is WhyOf.FILTERED:
        asks = asks[:WHY_USUAL]
    if why_of is WhyOf.NONE or not asks:
        return True, ""
    wanted = {it.name: it for it in asks}

    def is_wanted(application_id: str, key: str) -> bool:
        return f"{application_id}/{key}" in wanted

    try:
        with TraceReader(shown.path, policies=shown.policies) as trace:
            answer = why(trace, is_wanted, partial(tell, doing="why asks waited in ")).grouped()
    except (TraceError, MissingPolicy) as error:
        return True, str(error)
    for waits in answer.waits:
        ask = wanted[f"{waits.application_id}/{waits.key}"]
        ask.why = [*(ask.why or ()), *_waits(waits, numbers, answer.start_ns)]
    return answer.has_times, "" if answer.difference is None else answer.difference.as_warning()


def _waits(waits: Waits, numbers: dict[Cause, int], start_ns: int) -> Iterable[Wait]:
    return (_wait(it, numbers.get(it.step, NONE), start_ns) for it in waits.periods)


def _wait(period: Period, message: int, start_ns: int) -> Wait:
    begin, end = period.begin, period.end
    return Wait(
        from_ns=begin.at_ns - start_ns,
        to_ns=None if end is None else end.at_ns - start_ns,
        from_record=begin.record,
        to_record=None if end is None else end.record,
        text=period.brief,
        since=period.since,
        message=message,
        held_by=period.held_by,
    )
