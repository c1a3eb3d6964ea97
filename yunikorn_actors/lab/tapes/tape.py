"""A tape: a schedule written down, as what differs from first in, first out.

Without entries every message is delivered in the order of sending, and a step of the case begins
when all is quiet. An entry is one deviation from that, in one phrase of English:

    hold RMUpdateAllocation(confirm ph-a) from rm_proxy to context until after step 9

Nothing on a tape is a count of messages or a moment, so a tape outlives changes of the code that
have nothing to do with it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple, get_args
from urllib.parse import quote, unquote

from msgspec import Struct

from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.tapes.tape_names import RETURN, START, STEP_VERBS
from yunikorn_actors.lab.tapes.vocabulary import (
    faults_in_confirmation,
    faults_in_mailbox,
    faults_in_message,
    faults_in_timer,
    hint,
)
from yunikorn_actors.machines.settings import InvalidTopology
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName, check_topology
from yunikorn_actors.values.close_names import did_you_mean

TAPE_FORMAT: Final = 2
FORMATS_READ: Final = (1, 2)
"""The first one numbers the steps of programs, too."""
TAPE_BYTES_MAX: Final = 1_000_000
ENTRIES_MAX: Final = 20_000

Verb = Literal[
    "hold", "do", "repeat", "fire", "confirm", "flap", "drain", "open", "shrink", "bounce", "lose",
    "reload", "register", "restart", "freeze", "thaw", "join", "fail", "propose", "query",
    "operate",
]  # fmt: skip
ALTERING: Final[frozenset[Verb]] = frozenset(
    {
        "repeat", "fire", "flap", "drain", "open", "shrink", "bounce", "lose", "reload", "register",
        "operate",
    }
)  # fmt: skip
"""What changes what a case brings and asks for, or has time pass; other verbs change only the order
and what the machines bear.
"""
THE_END: Final = "the end"
"""What is held until then is delivered when nothing else is left to happen."""


class TapeError(CoreError, ValueError):
    """A text is not a tape, or the tape does not fit its case; it names the place and a remedy."""


class Entry(Struct, frozen=True):
    """One deviation: what is done, to what, and right after which event."""

    verb: Verb
    what: str
    after: str = ""
    """The name of an event; empty where the entry itself says when."""

    def __str__(self) -> str:
        return (
            f"{self.verb} {self.what}{_link(self.verb)}{self.after}" if self.after else self._bare()
        )

    def _bare(self) -> str:
        return f"{self.verb} {self.what}"


class _Form(NamedTuple):
    what: re.Pattern[str]
    has_after: bool | None
    """None if it may have one, or not."""
    usage: str


def _form(what: str, has_after: bool | None, usage: str) -> _Form:
    return _Form(re.compile(what), has_after, usage)


_MESSAGE: Final = r"\w+\(.*\) from \S.* to \S.*?(?: #\d+)?"
_LABEL: Final = rf"(?:{'|'.join(STEP_VERBS)}) [^\s,;#()]+(?: #\d+)?"
"""What a step of a program does: `ask job-1 #2`."""
_STEP: Final = rf"step (?:\d+(?:\.\d+)?|{_LABEL}|{RETURN})"
_TIMER: Final = r"\w+\(.*\) to \S.*"
_NODE: Final = r"node \S+"
_MAILBOX: Final = r"\S(?:(?! for | #).)*"
_WISH: Final = (
    r"to (?:place \S+ of \S+ on|reserve \S+ for \S+ of|admit|swap \S+ of \S+ with \S+ on"
    r"|preempt \S+ of \S+ for \S+ of) \S+"
)
_QUESTION: Final = r"dump|counts|events from \d{1,9}|manager \S+|asks that wait|\S+ of \S+"
_ACT: Final = (
    r"(?:drain|open) \S+ in \S+|unregister \S+|load (?:queues of \S+|no queues)"
    r"|(?:follow \d{1,4}|read|leave) events"
)
_FORMS: Final[dict[str, _Form]] = {
    "hold": _form(_MESSAGE, True, "hold MESSAGE until after EVENT"),
    "do": _form(_STEP, True, "do step STEP after EVENT"),
    "repeat": _form(_STEP, True, "repeat step STEP after EVENT"),
    "fire": _form(_TIMER, True, "fire TIMER to MAILBOX after EVENT"),
    "confirm": _form(
        r"\S+(?: #\d+)?(?: (?:twice|never|as [A-Z_]+))?", None,
        "confirm KEY twice|never|as TYPE, or confirm KEY [as TYPE] after EVENT",
    ),
    "flap": _form(_NODE, True, "flap node ID after EVENT"),
    "drain": _form(_NODE, True, "drain node ID after EVENT"),
    "open": _form(_NODE, True, "open node ID after EVENT"),
    "shrink": _form(_NODE, True, "shrink node ID after EVENT"),
    "bounce": _form(r"application \S+", True, "bounce application ID after EVENT"),
    "reload": _form(r"queues of \S+", True, "reload queues of RM after EVENT"),
    "register": _form(r"\S+ again", True, "register RM again after EVENT"),
    "restart": _form(r"core by \d{1,9}", True, "restart core by NUMBER after EVENT"),
    "lose": _form(r"manager \S+", True, "lose manager RM after EVENT"),
    "freeze": _form(rf"{_MAILBOX}(?: for \d{{1,6}})?", True, "freeze MAILBOX after EVENT"),
    "thaw": _form(_MAILBOX, True, "thaw MAILBOX after EVENT"),
    "join": _form(_MESSAGE, False, "join MESSAGE"),
    "fail": _form(
        rf"(?:at|after) {_MESSAGE}", False, "fail at MESSAGE, or fail after MESSAGE"
    ),
    "propose": _form(
        _WISH, True,
        "propose to place KEY of APP on NODE after EVENT, or to reserve NODE for KEY of APP, to "
        "admit APP, to swap KEY of APP with PLACEHOLDER on NODE, to preempt KEY of APP for KEY of "
        "APP",
    ),
    "query": _form(
        _QUESTION, True,
        "query dump after EVENT, or counts, events from NUMBER, manager RM, asks that wait, KEY of "
        "APP",
    ),
    "operate": _form(
        _ACT, True,
        "operate drain NODE in PARTITION after EVENT, or open NODE in PARTITION, unregister RM, "
        "load queues of RM, load no queues, follow NUMBER events, read events, leave events",
    ),
}  # fmt: skip
assert _FORMS.keys() == set(get_args(Verb))


def _link(verb: str) -> str:
    return " until after " if verb == "hold" else " after "


class Tape(Struct, frozen=True, kw_only=True):
    scenario: str
    """The file of the case; where it lies is up to who plays it."""
    digest: str
    """The first digits of the SHA-256 of that file when the tape was made."""
    topology: TopologyName = "proposing"
    schedulers: int = 1
    policies: str = ""
    """MODULE:ATTRIBUTE of those that the case was given beside its file."""
    steps: tuple[str, ...] | None = None
    """The numbers of the steps that are left of a scenario file; None for all of them."""
    without: tuple[str, ...] = ()
    """The steps that are left out of a program. Which steps it has shows only when it runs."""
    judges: tuple[str, ...] = ()
    """What judged the run beside the oracles of the core; empty where a replay has all of them."""
    entries: tuple[Entry, ...] = ()

    def header(self) -> str:
        steps = "" if self.steps is None else f", steps {_ranges(self.steps)}"
        if self.without:
            steps += f", without {', '.join(self.without)}"
        if self.judges:
            steps += f", judged by {', '.join(self.judges)}"
        file = quote(self.scenario, safe="-_./+=@~")
        several = f" with {self.schedulers} schedulers" if self.schedulers > 1 else ""
        policies = f" with policies {self.policies}" if self.policies else ""
        where = f"{self.topology}{several}{policies}{steps}"
        return f"tape {TAPE_FORMAT} of {file} sha256 {self.digest} on {where}"

    def __str__(self) -> str:
        """The header and one line for each entry."""
        return "\n".join((self.header(), *map(str, self.entries)))

    def line(self) -> str:
        """The same in one line, for a commit message or a command line."""
        return "; ".join((self.header(), *map(str, self.entries)))


# -- steps as ranges


def _ranges(steps: Iterable[str]) -> str:
    """Write neighbours as a range: `1-4 6 7.2`; no step at all is `none`."""
    runs: list[list[str]] = []
    for step in steps:
        if runs and step.isdecimal() and runs[-1][-1].isdecimal() and (
            int(step) == int(runs[-1][-1]) + 1
        ):  # fmt: skip
            runs[-1].append(step)
        else:
            runs.append([step])
    words = (run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return " ".join(words) or "none"


_RANGE: Final = re.compile(r"(\d{1,6})-(\d{1,6})|(\d{1,6}(?:\.\d{1,6})?)|none")


def _steps(text: str, place: str) -> Iterator[str]:
    for part in text.split():
        found = _RANGE.fullmatch(part)
        if found is None or (found[1] and int(found[1]) > int(found[2])):
            raise TapeError(
                f"{place}: {part!r} is no step: write numbers and ranges like 1-4 6 7.2"
            )
        if found[3]:
            yield found[3]
        elif found[1]:
            yield from map(str, range(int(found[1]), int(found[2]) + 1))


# -- from text

_JUDGE: Final = r"(?:core|(?:sides|walk|contests) \d{1,10}/\d{1,10}|recording|operators|model)"
_HEADER: Final = re.compile(
    r"tape (?P<format>\d+) of (?P<file>\S+) sha256 (?P<digest>[0-9a-f]{8,64}) "
    r"on (?P<topology>\w+)(?: with (?P<schedulers>\d{1,6}) schedulers)?"
    rf"(?: with policies (?P<policies>[\w.]+:[\w.]+))?"
    rf"(?:, steps (?P<steps>[^;,]*))?(?:, without (?P<without>{_LABEL}(?:, {_LABEL})*))?"
    rf"(?:, judged by (?P<judges>{_JUDGE}(?:, {_JUDGE}){{0,5}}))?"
)


def parse_tape(text: str, source: str = "tape") -> Tape:
    """Read a tape in one line or in several; lines that begin with # are remarks."""
    if len(text) > TAPE_BYTES_MAX:
        raise TapeError(f"{source}: more than {TAPE_BYTES_MAX} characters: that is no tape")
    phrases = list(_phrases(text))
    if not phrases:
        raise TapeError(f"{source}: the tape is empty: it begins with 'tape {TAPE_FORMAT} of FILE'")
    line, first = phrases[0]
    header = _HEADER.fullmatch(first)
    place = f"{source}:{line}"
    if header is None:
        raise TapeError(
            f"{place}: {first!r:.80} is no header: write 'tape {TAPE_FORMAT} of FILE sha256 DIGITS "
            f"on {'|'.join(TOPOLOGIES)}', and ', steps 1-4 6' behind it if steps are left out of a "
            "file, or ', without ask a, cancel b' if they are of a program"
        )
    if header["format"] not in map(str, FORMATS_READ):
        raise TapeError(
            f"{place}: the tape is of format {header['format']}, this version plays the formats "
            f"{' and '.join(map(str, FORMATS_READ))}: play it with the version that made it"
        )
    schedulers = int(header["schedulers"] or 1)
    try:
        check_topology(header["topology"], schedulers)
    except InvalidTopology as error:
        raise TapeError(f"{place}: {error}") from None
    if len(phrases) > ENTRIES_MAX:
        raise TapeError(f"{source}: more than {ENTRIES_MAX} entries: shrink it first")
    steps = header["steps"]
    return Tape(
        scenario=unquote(header["file"]),
        digest=header["digest"],
        topology="fused" if header["topology"] == "fused" else "proposing",
        schedulers=schedulers,
        policies=header["policies"] or "",
        steps=None if steps is None else tuple(_steps(steps, place)),
        without=() if header["without"] is None else tuple(header["without"].split(", ")),
        judges=() if header["judges"] is None else tuple(header["judges"].split(", ")),
        entries=tuple(_entry(phrase, f"{source}:{line}") for line, phrase in phrases[1:]),
    )


def _phrases(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("#"):
            yield from ((number, part.strip()) for part in line.split(";") if part.strip())


def _entry(phrase: str, place: str) -> Entry:
    verb, _, rest = phrase.partition(" ")
    form = _FORMS.get(verb)
    if form is None:
        near = did_you_mean(verb, _FORMS)
        raise TapeError(
            f"{place}: unknown word {verb!r:.40}: write one of {', '.join(_FORMS)}{near}"
        )
    link = _link(verb)
    what, found, after = rest.partition(link) if form.has_after is not False else (rest, "", "")
    what, after = canonical(what), canonical(after)
    if form.what.fullmatch(what) is None or bool(found) is not bool(after):
        near = hint(phrase, _FORMS)
        raise TapeError(f"{place}: {phrase!r:.120} is not understood{near}: write {form.usage}")
    if form.has_after and not after:
        raise TapeError(f"{place}: {phrase!r:.120} does not say when: write {form.usage}")
    if after and not _is_event(after):
        near = hint(after, ())
        raise TapeError(
            f"{place}: {after!r:.100} is no event{near}: write a message as TYPE(ABOUT) from "
            f"MAILBOX to MAILBOX, a step as 'step STEP' or 'step STEP waits', 'due TIMER to "
            f"MAILBOX', '{START}', or '{THE_END}'"
        )
    for fault in (*_faults_in_words(verb, what, is_late=bool(after)), *_faults_in_event(after)):
        raise TapeError(f"{place}: {phrase!r:.120} is not understood: {fault}")
    return Entry(verb, what, after)  # type: ignore[arg-type]  # its form was found


def _faults_in_words(verb: str, what: str, *, is_late: bool) -> Iterator[str]:
    match verb:
        case "hold" | "join":
            yield from faults_in_message(what)
        case "fail":
            yield from faults_in_message(what.partition(" ")[2])
        case "fire":
            yield from faults_in_timer(what)
        case "confirm":
            yield from faults_in_confirmation(what, is_late=is_late)
        case "freeze" | "thaw":
            yield from faults_in_mailbox(what.partition(" for ")[0])


def _faults_in_event(event: str) -> Iterator[str]:
    if event.startswith("due "):
        yield from faults_in_timer(event.removeprefix("due "))
    else:
        yield from faults_in_message(event)


_ACTS_OF_MANAGERS: Final = (
    "flap", "drain", "open", "shrink", "bounce", "reload", "register", "lose", "restart",
)  # fmt: skip
_CALL: Final = "|".join(
    (
        _STEP,
        *(f"{verb} {_FORMS[verb].what.pattern}" for verb in _ACTS_OF_MANAGERS),
    )
)
"""What a resource manager does, so that it may have to wait for the core."""
_EVENT: Final = re.compile(
    rf"{_MESSAGE}|{_STEP}|(?:{_CALL}) waits(?: #\d+)?|due {_TIMER}|{START}|{THE_END}"
)
_EXPLAINED: Final = re.compile(rf"({_STEP}) \(.*\)")


def _is_event(text: str) -> bool:
    return _EVENT.fullmatch(text) is not None


def canonical(event: str) -> str:
    """Leave out what only helps a reader: what a step does stands in brackets behind its number."""
    found = _EXPLAINED.fullmatch(event.strip())
    return found[1] if found else event.strip()
