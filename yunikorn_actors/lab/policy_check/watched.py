# ruff: noqa: ANN401 - a policy, and what it answers, may be anything
"""Calls of a policy, watched: what it reads, changes, reaches and answers, and how long it takes.

Each call is made twice, once watched and once timed: a function of what it is given answers the
same. A watched policy never fails where the core would notice, so a world shows all of its faults.
"""

import pickle
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import partial
from statistics import median
from time import thread_time_ns
from types import FrameType, TracebackType
from typing import Any, Final

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from yunikorn_actors.lab.nondeterminism_guard import Escape, Guard, watching_pure
from yunikorn_actors.lab.policy_check.findings import Findings
from yunikorn_actors.policies import places
from yunikorn_actors.policies.guard import (
    OUTSIDE,
    FromOutside,
    Kind,
    Unfit,
    common_kind,
    devices_of,
    hold_of,
    key_of,
    kind_of,
    score_of,
    shown,
)
from yunikorn_actors.policies.inputs import (
    Arrived,
    Candidate,
    Ended,
    Job,
    Left,
    Running,
    Sized,
    Started,
)
from yunikorn_actors.policies.registry import reads_of
from yunikorn_actors.values.durations import SECOND

CALL_S: Final = 2.0
"""Who has not answered by then hangs."""
PATIENCE_NS: Final = 3 * SECOND
"""So much time is given to all calls of a method; what is slow is known by then."""
SLOW_NS: Final = 500_000
"""What the middle one of the calls of a method may take."""
_SEEN: Final[dict[str, type]] = {
    "app": places.ApplicationSeen,
    "queue": places.QueueSeen,
    "node": places.NodeSeen,
    "pool": places.Pool,
}
_NAMES: Final = {
    kind: frozenset(name for name in vars(kind) if not name.startswith("_"))
    for kind in _SEEN.values()
}
_MOVING: Final = frozenset({"used", "runtime_ns", "size", "priority", "waited_ns"})
"""What changes of an application while it waits."""
_FIT: Final[dict[str, Callable[[Any], Any]]] = {
    "score": score_of, "devices": devices_of, "may_start": hold_of,
}  # fmt: skip
_INSTEAD: Final = {"application_key": 0, "ask_key": 0, "queue_key": 0, "score": 0.0}
"""What is answered where the policy gives no answer; None by the others."""


class _TooLong(FromOutside):
    """A call has not ended in time."""


class Watch:
    """Watches all calls of one policy, in all worlds."""

    def __init__(self, findings: Findings, guard: Guard) -> None:
        self.findings = findings
        self._guard = guard
        self._is_inside = False
        self._kinds: dict[str, Kind] = {}
        self._hanging: dict[str, None] = {}
        self.answers: list[str] = []
        """All that was answered, in order; compared with that of another process."""
        self._given: dict[object, Any] = {}
        """What was answered to which facts."""
        self.times_ns: defaultdict[str, list[int]] = defaultdict(list)
        self.read: dict[str, None] = {}
        self._classes: dict[type, type] = {}

    def new_world(self) -> None:
        """Of another world no fact is the same."""
        self._given.clear()
        self._kinds.clear()

    def made_by(self, make: Callable[[], Any]) -> Callable[[], Any]:
        """Return what makes the same policies, watched."""

        def make_watched() -> Any:
            made = make()
            made.__class__ = self._watched(type(made))
            return made

        return make_watched

    def _watched(self, kind: type) -> type:
        if kind not in self._classes:
            methods: dict[str, Any] = {
                name: _method(self, name) for name in places.METHODS if hasattr(kind, name)
            }
            # So the class of what there is already can be made this one.
            slots = {} if issubclass(kind, Struct) else {"__slots__": ()}
            made = type(kind)(kind.__name__, (kind,), {**slots, **methods})
            self._classes[kind] = made
        return self._classes[kind]

    def call(self, policy: Any, method: str, given: tuple[Any, ...]) -> Any:
        original = getattr(super(type(policy), policy), method)
        if self._is_inside:
            return original(*given)
        if sum(self.times_ns.get(method, ())) > PATIENCE_NS or method in self._hanging:
            return _INSTEAD.get(method)
        self._is_inside = True
        try:
            if method == "observe":
                return self._observe(policy, original, *given)
            return self._ask(policy, method, original, given)
        finally:
            self._is_inside = False

    # -- what decides

    def _ask(self, policy: Any, method: str, original: Any, given: tuple[Any, ...]) -> Any:
        read: dict[str, None] = {}
        shown_args = tuple(
            self._seen(method, name, it, read)
            for name, it in zip(places.METHODS[method], given, strict=True)
        )
        may_change = method == "may_start" and hasattr(policy, "observe")
        before = _kept(policy)
        twin = _copied(policy) if may_change else None
        answer, is_given = self._watched_call(method, original, shown_args)
        if not may_change and _kept(policy) != before:
            self.findings.add("state", f"{method} changes what the policy keeps", method)
        if not is_given:
            return _INSTEAD.get(method)
        again = original if twin is None else getattr(super(type(twin), twin), method)
        second = self._timed(method, again, shown_args)
        fit = self._fit(method, answer)
        if fit is _UNFIT:
            return _INSTEAD.get(method)
        self.answers.append(f"{method} {shown(fit, 200)}")
        if shown(second) != shown(answer):
            what = f"{method} gives {shown(answer, 60)}, then {shown(second, 60)} for the same"
            self.findings.add(
                "answers", f"{method} gives two answers for the same facts ({what})", method
            )
        self._compare(policy, method, given, read, fit)
        return answer

    def _fit(self, method: str, answer: object) -> Any:
        fit_of: Callable[[Any], Any] = _FIT.get(method, key_of)
        try:
            fit = fit_of(answer)
        except Unfit as error:
            self.findings.add("key", f"{method} is not total: {error}", method)
            return _UNFIT
        if method not in _FIT:
            kind = kind_of(fit)
            common = common_kind(self._kinds.get(method, kind), kind)
            if common is not None:
                self._kinds[method] = common
            else:
                what = (
                    f"{method} is not total: keys of two forms do not compare ({shown(answer, 60)})"
                )
                self.findings.add("key", what, method)
                return _UNFIT
        return fit

    def _compare(
        self, policy: Any, method: str, given: tuple[Any, ...], read: dict[str, None],
        answer: object,
    ) -> None:  # fmt: skip
        """Look whether the answer goes by what it may go by."""
        declared = reads_of(policy)
        self.read.update(read)
        undeclared = (_MOVING & read.keys()) - declared
        if method == "application_key":
            for name in sorted(undeclared):
                self.findings.add("reads", f"{method} reads {name}, which is undeclared", method)
        is_fold, is_free = hasattr(policy, "observe"), method == "may_start"
        goes_by_state = (
            is_fold and not is_free and self._differs_when_new(policy, method, given, answer)
        )
        if goes_by_state and method == "application_key" and "state" not in declared:
            what = f"{method} goes by what the policy keeps, and `state` is undeclared"
            self.findings.add("reads", what, method)
        elif goes_by_state and method != "application_key":
            what = (
                f"{method} goes by what the policy keeps, and is not asked again when that changes"
            )
            self.findings.add("answers", what, method)
        if is_free:
            return
        facts = (method, *(_facts(it, declared) for it in given))
        if "state" in declared:
            facts = (*facts, shown(to_builtins(policy), 10**6))
        before = self._given.setdefault(facts, answer)
        if before != answer and not goes_by_state and not undeclared:
            what = f"({shown(before, 60)}, then {shown(answer, 60)})"
            self.findings.add("answers", f"{method} changes while its facts do not {what}", method)

    def _differs_when_new(
        self,
        policy: Any,
        method: str,
        given: tuple[Any, ...],
        answer: object,
    ) -> bool:
        with suppress(Exception):
            fresh = type(policy).__mro__[1]()
            return bool(key_of(getattr(fresh, method)(*given)) != answer)
        return True

    # -- what is given

    def _seen(self, method: str, name: str, it: Any, read: dict[str, None]) -> Any:
        if name in _SEEN:
            return _Tracked(it, _SEEN[name], lambda *told: self._note(method, *told), read)
        return self._guarded(method, it)

    def _guarded(self, method: str, it: Any) -> Any:
        note = partial(self._note, method, "mutates")
        if isinstance(it, Arrived | Left | Started | Ended):
            return type(it)(self._guarded(method, it.job))
        if isinstance(it, Sized):
            return Sized(guarded(it.capacity, note))
        if isinstance(it, Job | Running | Candidate):
            return replace(it, size=guarded(it.size, note))
        return guarded(it, note)

    def _note(self, method: str, kind: str, what: str) -> None:
        if not self.findings.knows(kind, f"{method} {what}", method):
            self.findings.add(kind, f"{method} {what}", method, _raised_here())

    # -- folds

    def _observe(self, policy: Any, original: Any, fact: Any, now_ns: int) -> None:
        twin = _copied(policy)
        self._watched_call("observe", original, (self._guarded("observe", fact), now_ns))
        if twin is None:
            self.findings.add("fold", "what it keeps cannot be copied", "observe")
            return
        again = getattr(super(type(twin), twin), "observe")  # noqa: B009 - mypy has no such base
        self._timed("observe", again, (fact, now_ns))
        try:
            first, second = to_builtins(policy), to_builtins(twin)
        except Exception as error:  # noqa: BLE001 - whatever it keeps
            self.findings.add(
                "fold", f"what it keeps cannot be written ({shown(error)})", "observe"
            )
            return
        self.answers.append(f"observe {shown(first, 1000)}")
        if shown(first, 10**6) != shown(second, 10**6):
            self.findings.add("answers", "observe keeps another thing for the same fact", "observe")

    # -- one call

    def _watched_call(
        self,
        method: str,
        original: Any,
        given: tuple[Any, ...],
    ) -> tuple[Any, bool]:
        self._guard.take_first()
        try:
            with _in_time(), watching_pure(self._guard):
                answer, is_given = original(*given), True
        except _TooLong as error:
            self._hanging[method] = None
            self.findings.add("hangs", f"{method} has not returned in {CALL_S:g} s", method, error)
            return None, False
        except Escape:
            answer, is_given = None, False
        except BaseException as error:
            if isinstance(error, OUTSIDE):
                raise
            if not isinstance(error, _ElsewhereError):
                self._raised(method, error)
            answer, is_given = None, False
        escape = self._guard.take_first()
        if escape is not None:
            self.findings.escape(escape, method)
        return answer, is_given and escape is None

    def _raised(self, method: str, error: BaseException) -> None:
        text = str(error) if isinstance(error, AttributeError | TypeError) else ""
        if "immutable type" in text or "mappingproxy" in text:
            self.findings.add("mutates", f"{method} changes what it is given", method, error)
            return
        self.findings.add("raises", f"{method} raised {shown(error)}", method, error)

    def _timed(self, method: str, original: Any, given: tuple[Any, ...]) -> Any:
        begun = thread_time_ns()
        try:
            with _in_time():
                return original(*given)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return error  # Then the answers differ.
        finally:
            self.times_ns[method].append(thread_time_ns() - begun)

    def name_slow(self) -> None:
        for method, times in self.times_ns.items():
            middle = median(times)
            if middle > SLOW_NS and not self.findings.has(method):
                what = f"{method} is slow ({middle / 1e6:.1f} ms a call, {SLOW_NS / 1e6:g} at most)"
                self.findings.add("slow", what, method)


_UNFIT: Final = object()


class _ElsewhereError(AttributeError):
    """It has been named."""


class _Tracked:
    """What a policy may see of something; it knows what was read."""

    def __init__(
        self,
        it: Any,
        kind: type,
        note: Callable[[str, str], None],
        read: dict[str, None],
    ) -> None:
        vars(self)["polcheck"] = (it, kind, note, read)

    def __getattr__(self, name: str) -> Any:
        it, kind, note, read = vars(self)["polcheck"]
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in _NAMES[kind]:
            what = (
                f"looks at {name}, which leads out of its queue"
                if hasattr(it, name)
                else f"looks for {name}"
            )
            note("elsewhere", f"{what}: {kind.__name__} has no such thing")
            raise _ElsewhereError(f"{kind.__name__} has no {name}")
        read[name] = None
        return guarded(getattr(it, name), lambda what: note("mutates", f"{what} ({name})"))

    def __setattr__(self, name: str, _: object) -> None:
        _, _, note, _ = vars(self)["polcheck"]
        note("mutates", f"changes what it is given ({name})")
        raise _ElsewhereError(name)


def guarded(it: Any, note: Callable[[str], None]) -> Any:
    """Return a copy that notes when it is changed."""
    if isinstance(it, Mapping):
        return _of(dict, it, note)
    if isinstance(it, list):
        return _of(list, it, note)
    return it


_CHANGES: Final[dict[Any, tuple[str, ...]]] = {
    dict: (
        "__setitem__", "__delitem__", "clear", "pop", "popitem", "setdefault", "update", "__ior__",
    ),
    list: (
        "__setitem__", "__delitem__", "append", "clear", "extend", "insert", "pop", "remove",
        "reverse", "sort", "__iadd__",
    ),
}  # fmt: skip


def _of(base: Any, it: Any, note: Callable[[str], None]) -> Any:
    def changing(name: str) -> Callable[..., Any]:
        def change(self: Any, *given: Any, **named: Any) -> Any:
            note("changes what it is given")
            return getattr(base, name)(self, *given, **named)

        return change

    def plain(self: Any, *_: object) -> Any:
        return base(self)

    methods: dict[str, Any] = {name: changing(name) for name in _CHANGES[base]}
    methods |= dict.fromkeys(("copy", "__copy__", "__deepcopy__"), plain)
    methods["__reduce_ex__"] = lambda self, _: (base, (base(self),))
    kind: Any = type(base.__name__, (base,), methods)
    return kind(it)


def _raised_here() -> BaseException:
    """Return an error whose traceback leads here, as one that was raised."""
    frame: FrameType | None = sys._getframe(1)
    traceback = None
    while frame is not None:
        traceback = TracebackType(traceback, frame, max(0, frame.f_lasti), frame.f_lineno)
        frame = frame.f_back
    return Exception().with_traceback(traceback)


def _method(watch: Watch, name: str) -> Callable[..., Any]:
    def method(self: Any, *given: Any) -> Any:
        return watch.call(self, name, given)

    method.__name__ = name
    return method


def _kept(policy: Any) -> object:
    if isinstance(policy, Struct):
        kept: Any = {name: getattr(policy, name) for name in policy.__struct_fields__}
    else:
        kept = vars(policy) if hasattr(policy, "__dict__") else {}
        slots = (name for kind in type(policy).__mro__ for name in getattr(kind, "__slots__", ()))
        kept = {**kept, **{name: getattr(policy, name, None) for name in slots}}
    try:
        return pickle.dumps(kept)
    except Exception:  # noqa: BLE001 - it may keep anything
        return shown(kept, 10**6)


def _copied(policy: Any) -> Any:
    try:
        return deepcopy(policy)
    except Exception:  # noqa: BLE001 - it may keep anything
        return None


def _facts(it: Any, declared: frozenset[str]) -> object:
    """Return what an answer about it may go by, as a text."""
    for name, kind in _SEEN.items():
        names = _NAMES[kind]
        if name != "pool" and all(hasattr(it, each) for each in names):
            kept = sorted(names - (_MOVING - declared if name == "app" else frozenset()))
            return shown([getattr(it, each) for each in kept], 10**6)
    return shown(it, 10**6)


@contextmanager
def _in_time() -> Iterator[None]:
    """Raise _TooLong in what takes too long, where a signal can."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def end(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, CALL_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
