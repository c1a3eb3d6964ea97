"""What is wrong with a policy: where, what, and what to do instead."""

import inspect
from types import TracebackType
from typing import Any, Final

from msgspec import Struct

from yunikorn_actors.lab.nondeterminism_guard import Escape, shown_path

REMEDIES: Final = {
    "type": "give a class with one of the methods in yunikorn_actors.policies.places",
    "shape": "write the method as yunikorn_actors.policies.places has it",
    "raises": "return an answer for all that the policy may be given",
    "key": "give a number, a text, or a tuple of such, of one form in all calls",
    "clock": "a fold is given the time with each fact, and a gate has `pool.now_ns`",
    "dice": "give the same answer for the same facts; arrival decides between equal keys",
    "outside": "decide by what the policy is given, and give parameters to its class",
    "reads": "name it in `reads`, so that keys are made anew when it changes",
    "mutates": "what a policy is given is read-only: make a copy",
    "state": "let `observe` alone change what the policy keeps",
    "shared": "keep it in fields of the instance: each queue, and each replica, has its own",
    "answers": "decide by what the policy is given alone, so that every replica decides the same",
    "elsewhere": "a policy sees its own queue: use what yunikorn_actors.policies.places lists",
    "slow": "keep sums in `observe` and look them up, or read less",
    "fold": "make it a dataclass or a Struct whose fields have types that JSON can hold",
    "hangs": "return from every call",
}
"""By the kind of the fault."""


class Finding(Struct, frozen=True, order=True):
    place: str
    """The file and the line, and what is there."""
    kind: str
    what: str

    @property
    def remedy(self) -> str:
        return REMEDIES[self.kind]

    @property
    def text(self) -> str:
        return f"{self.place}: {self.what}: {self.remedy}"


class Findings:
    """Each is named once, however often it happens."""

    def __init__(self, policy: object, name: str = "", place: str = "") -> None:
        self._name, self._place = name, place
        self._kind = policy if isinstance(policy, type) else None
        self._policy = policy
        self._found: dict[tuple[str, str, str], Finding] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def all(self) -> tuple[Finding, ...]:
        return tuple(self._found.values())

    def of_class(self, kind: type) -> None:
        """Know the class of what a factory makes."""
        self._kind = kind

    def knows(self, kind: str, what: str, method: str) -> bool:
        return (kind, method, _subject(what.removeprefix(f"{method} "))) in self._found

    def has(self, method: str) -> bool:
        return any(key[1] == method for key in self._found)

    def add(
        self, kind: str, what: str, method: str = "", error: BaseException | None = None
    ) -> None:
        if self.knows(kind, what, method):
            return
        place = self._place_of(method, error)
        what = what.removeprefix(f"{method} ")
        self._found[kind, method, _subject(what)] = Finding(place, kind, what)

    def escape(self, escape: Escape, method: str) -> None:
        what = escape.what
        if what.partition(".")[0] in {"time", "datetime", "date"}:
            kind = "clock"
        elif "random" in what.lower() or what.startswith(("uuid.", "os.urandom", "secrets.")):
            kind = "dice"
        else:
            kind = "outside"
        self.add(kind, f"{method} reaches {what}", method, escape)

    def _place_of(self, method: str, error: BaseException | None) -> str:
        name = self.name
        if self._kind is None and self._place:
            return f"{self._place}: {name}"
        file, line = _source_of(self._kind if self._kind is not None else self._policy)
        function = inspect.unwrap(getattr(self._kind, method, None) or (lambda: None))
        if method and callable(function) and hasattr(function, "__code__"):
            code = function.__code__
            if code.co_filename != __file__:
                file, line = code.co_filename, code.co_firstlineno
        raised = None if error is None else _raised_at(error.__traceback__, file)
        return f"{shown_path(file)}:{raised or line}: {name}{'.' if method else ''}{method}"

    @property
    def name(self) -> str:
        if self._name:
            return self._name
        it = self._kind or self._policy
        return getattr(it, "__qualname__", type(it).__qualname__).rpartition("<locals>.")[2]


def _subject(what: str) -> str:
    """What is the same in two findings that differ in values alone."""
    return what.partition(" (")[0].partition(" raised ")[0]


def _source_of(it: Any) -> tuple[str, int]:  # noqa: ANN401 - anything that a name may stand for
    try:
        return inspect.getsourcefile(it) or "?", inspect.getsourcelines(it)[1]
    except (OSError, TypeError):
        return "?", 0


def _raised_at(traceback: TracebackType | None, file: str) -> int | None:
    """Return the last line of that file on the way to where it was raised."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
