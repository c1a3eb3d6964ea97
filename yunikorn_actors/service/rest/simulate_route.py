"""The route `simulate`: answered by a copy of this process, so that nobody waits for it.

A fork has the replica as it stands at that moment, and shares its memory for as long as nobody
writes there. It may compute for a minute, and is gone with its answer. Pages are answered
meanwhile, and the core hears nothing of it.
"""

import gc
import math
import os
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final

import msgspec

from yunikorn_actors.errors import CoreError, InvalidRequest
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.policies.folds import policies_in_use
from yunikorn_actors.scenario.change_steps import NAMED_MAX, parse_changes
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest.exchange import JSON, OWN, Answer, Asked, Refusal, Route
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import Image, LivingImage, image_of
from yunikorn_actors.values.masking import masked
from yunikorn_actors.what_if.answer import AskName, Course
from yunikorn_actors.what_if.changes import Change
from yunikorn_actors.what_if.core_state import Copy, CoreState
from yunikorn_actors.what_if.followed import state_of_replicas
from yunikorn_actors.what_if.least_change import Wanted, least_changes
from yunikorn_actors.what_if.simulation import simulate
from yunikorn_actors.what_if.text import fit_lines, lines_of

SIMULATE: Final = f"{OWN}/simulate"
SECONDS_MAX: Final = 60
"""How long a simulation may compute."""
SEARCH_S: Final = 40
"""How long a search for the least changes tries; what it has found by then is its answer."""
RESULT_MAX: Final = 16 * 1024 * 1024
AT_ONCE_MAX: Final = 2
_YIELDS: Final = 10
"""How far a copy yields to others, as a priority of processes."""
_SHORT_S: Final = 0.25
"""Work that has taken more of a processor than that is long."""
_REFUSED: Final = b"!"
"""Before the words of a copy that refuses the question; no answer begins so."""
_KEPT: Final[list[object]] = []
"""What a copy of this process works with: it ends with that, and to free it before would write to
all the memory that the copy still shares."""
_BAD_REQUEST: Final = 400
_CONFLICT: Final = 409
_TOO_LARGE: Final = 413
_UNAVAILABLE: Final = 503


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """What stands in the body."""

    steps: list[str] = []
    """Texts in YAML, each a list of steps; the times of each begin at the beginning."""
    until: float | None = None
    """So many seconds ahead; without it until nothing happens any more."""
    compare: bool = True
    """Run it without the changes as well."""
    least: bool = False
    """Find the least changes that let what is asked for start."""
    within: float = 0.0
    """For that: how soon it is to start, in seconds."""
    waiting: list[AskName] = []
    """For that: asks that wait already, by application and key, instead of what steps ask for."""

    def __post_init__(self) -> None:
        if self.least and self.until is not None:
            raise ValueError("until: a search has an end of its own: give within, or leave it out")
        if self.within and not self.least:
            raise ValueError("within: a simulation has no such end: give until, or least as well")
        if self.waiting and not self.least:
            raise ValueError("waiting: it is what a search lets start: give least as well")


class Simulations:
    """The copies that are at work."""

    def __init__(self) -> None:
        self._running: dict[int, tuple[int, float]] = {}
        """Process, the end of the pipe from it, and when it began."""

    def handle(self, side: ReadSide, asked: Asked) -> Answer:
        """Refuse what cannot be simulated; fork here, where the replica stands still."""
        question = _read(asked.body)
        _check_policies(side)
        self._forget_left()
        if len(self._running) >= AT_ONCE_MAX:
            raise Refusal(
                _UNAVAILABLE, "too many simulations at one time", "ask again later", retry_s=5
            )
        # Here, on the loop: the replica stands still while the process is copied.
        process, reads = _forked(lambda: msgspec.json.encode(_found(side, question)), SECONDS_MAX)
        self._running[process] = reads, time.monotonic()
        # The answer is read on a thread, and other pages are answered meanwhile.
        return Answer(partial(self._result, process))

    def _forget_left(self) -> None:
        """Forget copies whose askers have gone: by now their time is over."""
        # Twice the time that it may compute: it is over in any case.
        over = time.monotonic() - 2 * SECONDS_MAX
        for process, (reads, began) in tuple(self._running.items()):
            if began < over:
                os.close(reads)
                os.waitpid(process, 0)
                del self._running[process]

    def _result(self, process: int) -> bytes:
        reads, _ = self._running[process]
        parts, size = [], 0
        with os.fdopen(reads, "rb") as pipe:
            while size <= RESULT_MAX and (part := pipe.read(1 << 20)):
                parts.append(part)
                size += len(part)
        # It would go on writing to a pipe that nobody reads.
        if size > RESULT_MAX:
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        del self._running[process]
        if size > RESULT_MAX:
            raise Refusal(_TOO_LARGE, f"the answer has more than {RESULT_MAX} bytes", "give until")
        if status:
            raise Refusal(
                _UNAVAILABLE,
                f"the simulation did not end within {SECONDS_MAX} s",
                "give until, or begin with the journal in a process of your own",
            )
        found = b"".join(parts)
        if found.startswith(_REFUSED):
            raise Refusal(_BAD_REQUEST, found[len(_REFUSED) :].decode())
        return found


def _read(body: bytes) -> Question:
    try:
        return msgspec.json.decode(body, type=Question)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refusal(_BAD_REQUEST, f"the body is no question: {error}") from None


def _changes_of(question: Question) -> list[Change]:
    """Read the steps: in the copy, as a short text may be long work."""
    changes: list[Change] = []
    for number, text in enumerate(question.steps, 1):
        changes += parse_changes(text, f"steps {number}")
        if sum(map(_named, changes)) > NAMED_MAX:
            raise InvalidRequest(
                f"steps {number}: more than {NAMED_MAX} asks and nodes in all: ask for fewer"
            )
    return changes


def _named(change: Change) -> int:
    request = change.request
    return len(getattr(request, "asks", ())) + len(getattr(request, "nodes", ()))


def _forked(work: Callable[[], bytes], within_s: int) -> tuple[int, int]:
    """Have a copy of this process do the work; return it, and where its result can be read."""
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        # The copy runs nothing but the work, and takes no lock that a thread may hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    # From here on this is the copy: it ends in any case and returns to nobody.
    if not process:
        status = 1
        try:
            # Whatever this process does with the alarm, the copy ends by it.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(within_s)
            # A collection would write to pages that are shared, and copy them all.
            gc.disable()
            _yield_to_others()
            try:
                found = work()
            except (CoreError, InvalidRequest) as error:
                found = _REFUSED + masked(str(error)).encode()
            with os.fdopen(writes, "wb") as pipe:
                pipe.write(found)
            status = 0
        finally:
            # Without cleaning up: threads and locks of the process are not its own.
            os._exit(status)
    os.close(writes)
    return process, reads


def _yield_to_others() -> None:
    """Have the core go first where processors are scarce.

    By its priority alone each copy would still get one part in thirty of the core's processor, and
    the core would wait for the end of its slices. What is idle by its policy gets what nobody else
    wants: that is for long work alone, or a short question would never end on a busy computer.
    """
    os.nice(_YIELDS)
    if hasattr(os, "SCHED_IDLE"):
        signal.signal(signal.SIGPROF, _be_idle)
        signal.setitimer(signal.ITIMER_PROF, _SHORT_S)


def _be_idle(*_: object) -> None:
    # A container may forbid it.
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _beside(work: Callable[[], Course], within_s: int | None = None) -> Course:
    """Fork once more, where all is ready, for a run that is not the last, or for a trial."""
    process, reads = _forked(
        lambda: msgspec.msgpack.encode(work()), SECONDS_MAX if within_s is None else within_s
    )
    with os.fdopen(reads, "rb") as pipe:
        found = pipe.read()
    _, status = os.waitpid(process, 0)
    # Killed by its alarm, which is a matter of time.
    if status:
        raise TimeoutError
    if found.startswith(_REFUSED):
        raise InvalidRequest(found[len(_REFUSED) :].decode())
    return msgspec.msgpack.decode(found, type=Course)


def _found(side: ReadSide, question: Question) -> dict[str, Any]:
    begun = time.monotonic()
    changes = _changes_of(question)
    # Each of several schedulers has a replica of its own: for them nothing can be taken over.
    beside = _beside if side.schedulers == 1 else None
    living: Callable[[PartitionState], Image] = image_of
    if beside is not None:
        living = partial(LivingImage, is_planned_by_context=side.topology == "fused")
    # A search looks at all there is, as plain values; its trials begin with one core.
    state = _state_of(side, image_of if question.least else living)
    of_core = _state_of(side, living) if question.least and beside else state
    policies = side.policies.given
    ready = None if beside is None else cache(partial(Copy, of_core, policies=policies))
    _KEPT.extend((state, of_core, ready))
    if question.least:
        wanted = Wanted(tuple(changes), tuple(question.waiting), question.within)

        def left_s() -> float:
            return begun + SEARCH_S - time.monotonic()

        # A second more than is left, so that the search itself ends first.
        def tried(work: Callable[[], Course]) -> Course:
            return _beside(work, 1 + max(0, math.ceil(left_s())))

        least = least_changes(
            state, wanted, None if beside is None else tried, left_s, ready=ready,
            policies=policies,
        )  # fmt: skip
        fits = least.fits or bool(least.options)
        return {"answer": least, "lines": list(fit_lines(least)), "fits": fits}
    answer = simulate(
        state, *changes, until=question.until, compare=question.compare,
        digest=False, beside=beside, ready=ready, policies=policies,
    )  # fmt: skip
    return {"answer": answer, "lines": list(lines_of(answer)), "fits": answer.course.is_smooth}


def _state_of(side: ReadSide, image: Callable[[PartitionState], Image]) -> CoreState:
    return state_of_replicas(
        side.managers.values(),
        {name: (book.epoch, image(book.state)) for name, book in side.books.items()},
        Topology(
            side.topology, settings=side.settings, schedulers=side.schedulers,
            instance=side.instance,
        ),
        side.now_ns,
    )  # fmt: skip


def _check_policies(side: ReadSide) -> None:
    """Refuse what would be decided by a policy that is not here, and not be what will happen."""
    names = policies_in_use(it.state for it in side.books.values())
    for name in sorted(names & side.policy_faults.keys()):
        raise Refusal(
            _CONFLICT,
            f"policy {name!r} decides here, and what simulates cannot load it: "
            f"{side.policy_faults[name]}",
            "have it stand at the top of a module that Python finds, and start the service again",
        )


def simulate_route() -> Route:
    """Return the route; the copies that it makes are its own."""
    return Route(
        SIMULATE,
        "what would happen if something were changed",
        Simulations().handle,
        method="POST",
        is_yunikorns=False,
        is_apart=True,
        takes=JSON,
    )
