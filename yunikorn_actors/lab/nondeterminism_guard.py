"""Names code that leaves the simulation: a run that reads a clock or rolls dice can't be repeated.

While a run goes on, what reads real time, draws without a seed, starts a thread, opens a socket or
makes an event loop raises at once. What was imported by its own name (`from time import time`) and
methods of C types (`datetime.now`) cannot be replaced: a profile function sees them, in the first
run of a workload. Other threads of the process, and what stamps lines of a log, are left alone.
"""

import _thread
import asyncio
import builtins
import gc
import multiprocessing.process
import os
import random
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import date, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from yunikorn_actors.errors import CoreError

_TIME: Final = (
    "a run has a time of its own: give the code a clock, here `lambda: trial.now`, and let time "
    "pass with `trial.advance`"
)
_DICE: Final = "draw from a `random.Random` that is made with a seed"
_NAMES: Final = "count: `itertools.count` gives names that are the same in every run"
_THREAD: Final = "do the work in the callback itself, or in a call of the workload"
_WAIT: Final = "nobody else runs here, so it would wait for ever; the callback is called instead"
_OUTSIDE: Final = "give the code a stand-in for what is outside of the process"
_LOOP: Final = "call the code from the workload without a loop: the simulator drives it"


class Escape(CoreError, RuntimeError):
    """Code in the simulator touched what is outside of it; it names the place and a remedy."""

    what = ""
    """What it has touched, such as `time.time`."""


class _Door(NamedTuple):
    """A way out: where it is found, and what to do instead."""

    home: Any
    names: tuple[str, ...]
    remedy: str


_DOORS: Final = (
    _Door(
        time,
        (
            "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
            "sleep",
        ),
        _TIME,
    ),
    _Door(
        random,
        (
            "random", "randint", "randrange", "randbytes", "choice", "choices", "shuffle", "sample",
            "uniform", "gauss", "expovariate", "getrandbits",
        ),
        _DICE,
    ),
    _Door(random.SystemRandom, ("random", "getrandbits", "randbytes"), _DICE),
    _Door(os, ("urandom",), _DICE),
    _Door(uuid, ("uuid1", "uuid4"), _NAMES),
    _Door(threading.Thread, ("start",), _THREAD),
    _Door(_thread, ("start_new_thread",), _THREAD),
    _Door(threading.Condition, ("wait",), _WAIT),
    _Door(multiprocessing.process.BaseProcess, ("start",), _THREAD),
    _Door(subprocess.Popen, ("__init__",), _OUTSIDE),
    _Door(socket.socket, ("__init__",), _OUTSIDE),
    _Door(asyncio, ("run", "new_event_loop"), _LOOP),
)  # fmt: skip
_DOORS_OF_PURE_CODE: Final = (
    _Door(builtins, ("open", "print", "input"), _OUTSIDE),
    _Door(type(os.environ), ("__getitem__", "__contains__", "__iter__", "__setitem__"), _OUTSIDE),
    _Door(random.Random, ("random", "getrandbits"), _DICE),
    _Door(gc, ("get_objects", "get_referrers", "get_referents"), _OUTSIDE),
)
"""A program may use these; a function of what it is given has no use for them."""
_IMPURE_MODULES: Final = {
    "time": _TIME,
    **dict.fromkeys(("posix", "nt", "io", "_io", "_socket", "_thread", "select", "gc"), _OUTSIDE),
}
_FRAMES: Final = sys._getframe
_INHERITED: Final = object()
"""Stands for what a class has from its base."""
_UNSEEDED: Final = "random.Random() without a seed"

_C_DOORS: Final[dict[tuple[int, str], tuple[str, str]]] = {
    **{
        (id(time), name): (f"time.{name}", _TIME)
        for name in ("time", "time_ns", "monotonic", "monotonic_ns", "sleep")
    },
    **{
        (id(kind), name): (f"{kind.__name__}.{name}", _TIME)
        for kind in (date, datetime)
        for name in ("now", "utcnow", "today")
    },
}
"""Functions in C, by who owns them and their name, each with what it is called and a remedy."""

_STDLIB: Final = tuple(sysconfig.get_path(kind) + os.sep for kind in ("stdlib", "platstdlib"))
_HERE: Final = str(Path(__file__).parents[1]) + os.sep
_LOGS: Final = ("logging", "loguru")


class Guard:
    """Keeps one run inside; it holds in the thread that made it."""

    def __init__(self) -> None:
        self.first: Escape | None = None
        """The first escape, even if the code around has caught it."""
        self.is_off = False
        """Between calls of pure code the program around it may do what it likes."""
        self._thread = threading.get_ident()

    def stop(self, what: str, remedy: str, frame: FrameType | None) -> None:
        """Raise Escape, unless it is no matter of the run."""
        if self.is_off or threading.get_ident() != self._thread:
            return
        place = _blamed(frame)
        if place is None:
            return
        escape = Escape(
            f"{place_of(place)} reaches {what}, and the run can't be repeated: {remedy}"
        )
        escape.what = what
        self.first = self.first or escape
        raise escape

    def take_first(self) -> Escape | None:
        """Return it, and begin anew."""
        first, self.first = self.first, None
        return first


def _blamed(frame: FrameType | None) -> FrameType | None:
    """Return the first frame of the user's code; None if a log or the laboratory is at work."""
    while frame is not None:
        name, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
        is_import = name.startswith("<frozen importlib")
        if is_import or module.partition(".")[0] in _LOGS or name.startswith(_HERE):
            return None
        if "site-packages" in name or not name.startswith((*_STDLIB, "<frozen")):
            return frame
        frame = frame.f_back
    return None


def place_of(frame: FrameType) -> str:
    """Say where the user's code is in a stack: in the last call that is of neither ours."""
    place: FrameType | None = frame
    while place is not None and place.f_code.co_filename.startswith((*_STDLIB, "<frozen", _HERE)):
        place = place.f_back
    at = place or frame
    return f"{shown_path(at.f_code.co_filename)}:{at.f_lineno}: {at.f_code.co_qualname}"


def is_debugged(frame: FrameType | None) -> bool:
    """Whether a debugger waits for its user."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "bdb":
            return True
        frame = frame.f_back
    return False


def shown_path(file: str) -> str:
    """Return the file as it is called from here, if it lies below."""
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _closed(guard: Guard, door: _Door, name: str) -> Callable[..., Any]:
    original = getattr(door.home, name)
    what = f"{getattr(door.home, '__module__', '')}.{door.home.__name__}".strip(".")
    shown = f"{what}.{name}".removesuffix(".__init__")

    def closed(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - stands for any function
        guard.stop(shown, door.remedy, sys._getframe(1))
        return original(*args, **named)

    return closed


def _seeded(guard: Guard, original: Callable[..., None]) -> Callable[..., None]:
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:  # noqa: ANN401
        if a is None:
            guard.stop(_UNSEEDED, _DICE, sys._getframe(1))
        original(self, a, version)

    return seed


@contextmanager
def inside(*, watches_c: bool = False, is_pure: bool = False) -> Iterator[Guard]:
    """Keep the code of a `with` inside of the simulation; watching C functions takes time.

    Of code that is to be pure files, the environment and generators with a seed are outside, too;
    `watching_pure` says when it runs.
    """
    guard = Guard()
    guard.is_off = is_pure
    doors = (*_DOORS, *(_DOORS_OF_PURE_CODE if is_pure else ()))
    closed = [
        (door.home, name, _closed(guard, door, name)) for door in doors for name in door.names
    ]
    closed.append((random.Random, "seed", _seeded(guard, random.Random.seed)))
    before = [(home, name, vars(home).get(name, _INHERITED)) for home, name, _ in closed]
    # A collection comes at any moment, and what libraries do at it would be blamed on the run:
    # Hypothesis measures how long each takes.
    callbacks, gc.callbacks[:] = [*gc.callbacks], []
    try:
        for home, name, function in closed:
            setattr(home, name, function)
        with _watching(guard) if watches_c else nullcontext():
            yield guard
    finally:
        gc.callbacks[:] = [*callbacks, *gc.callbacks]
        for home, name, original in before:
            if original is _INHERITED:
                delattr(home, name)
            else:
                setattr(home, name, original)


@contextmanager
def watching_pure(guard: Guard) -> Iterator[None]:
    """Name each function that pure code has no use for, those in C too; it goes on after that."""

    def find(called: Any) -> tuple[str, str] | None:  # noqa: ANN401
        module = getattr(called, "__module__", None)
        remedy = _IMPURE_MODULES.get(module) if isinstance(module, str) else None
        if called is _FRAMES:
            module, remedy = "sys", _OUTSIDE
        return _c_door(called) or (remedy and (f"{module}.{called.__name__}", remedy)) or None

    # Nor is what others do as their objects are collected.
    is_collecting = gc.isenabled()
    gc.disable()
    guard.is_off = False
    try:
        with _watching(guard, find):
            yield
    finally:
        guard.is_off = True
        if is_collecting:
            gc.enable()


def _c_door(called: Any) -> tuple[str, str] | None:  # noqa: ANN401
    return _C_DOORS.get((id(getattr(called, "__self__", None)), called.__name__))


@contextmanager
def _watching(
    guard: Guard, find: Callable[[Any], tuple[str, str] | None] = _c_door
) -> Iterator[None]:
    before = sys.getprofile()

    def profile(frame: FrameType, event: str, called: Any) -> None:  # noqa: ANN401
        if event == "c_call" and (door := find(called)) is not None:
            guard.stop(*door, frame)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)
