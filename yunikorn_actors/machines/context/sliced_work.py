"""Long work of Context: one `Work` over several slices, with a mark in the state while it lasts.

Facts go out with the slice in which they were recorded. The resource manager hears everything at
the end, in parts that `RmProxy` puts together, so that it gets the same responses however many
slices the work has taken.

At the first pause each partition that the work has touched gets a mark (`LongWorkStarted`): nothing
is decided for it, and a core that starts again goes on with what the mark names.
"""

from collections.abc import Callable

from yunikorn_actors.machines.context.unit_of_work import Turn, Work
from yunikorn_actors.machines.machine import Effect
from yunikorn_actors.machines.slices import Steps
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.long_work import LongWork, LongWorkKind

_REQUEST = LongWork(LongWorkKind.REQUEST)


class ContextJob:
    def __init__(
        self,
        work: Work,
        steps: Callable[["ContextJob"], Steps],
        hearers: Callable[[], tuple[str, ...]],
    ) -> None:
        self.work = work
        self.out: list[Effect] = []
        """What follows from this slice."""
        self.was_paused = False
        self._hearers = hearers
        self._doing: tuple[str, LongWork] = "", _REQUEST
        self.steps = steps(self)

    @property
    def now_ns(self) -> int:
        return self.work.now_ns

    def turn_to(self, turn: Turn, kind: LongWorkKind, id_: str = "", detail: str = "") -> Turn:
        """From here on this is done, in this partition: it must not stay half done."""
        self._doing = turn.partition.name, LongWork(kind, id_, detail)
        return turn

    def begin_slice(self, now_ns: int) -> None:
        self.work.resume(now_ns, self._hearers())

    def pause(self) -> None:
        self.was_paused = True
        name, doing = self._doing
        for turn in self.work.turns.values():
            before, mark = turn.state.long_work, _REQUEST
            if turn.partition.name == name:
                mark = doing
            elif before is not None and before.kind is LongWorkKind.RELOAD:
                # A reload ends in all partitions at once: one that is to go may be half done.
                mark = before
            if before != mark:
                turn.record(f.LongWorkStarted(work=mark, at_ns=turn.now_ns))
        self.out.extend(self.work.told_so_far())

    def end_slice(self) -> list[Effect]:
        effects, self.out = self.out, []
        return effects


class Ending:
    """What is sent when a number of jobs, each in a lane of its own, have all ended."""

    def __init__(self, tell: Callable[[], list[Effect]]) -> None:
        self.awaited = 1
        """The jobs that have not ended, and one for who starts them."""
        self._tell = tell

    def arrived(self) -> list[Effect]:
        self.awaited -= 1
        return [] if self.awaited else self._tell()
