"""The work of one handler of Context, and the turns of which it is made.

Whatever a handler decides is written down here first: facts, which take effect at once, and what
goes to the resource manager. When the handler ends, `Work.effects` turns it into messages. So a
handler may work item by item, and the resource manager still gets at most one message of each kind.

Long work is one `Work` over several slices. Facts go out with the slice in which they were
recorded. The resource manager hears everything at the end, in parts that `RmProxy` puts together,
so that it gets the same responses however many slices the work has taken. At the first pause each
partition that the work has touched gets a mark in its state (`LongWorkStarted`): nothing is decided
for it, and a core that starts again goes on with what the mark names.
"""

from collections.abc import Callable, Iterator

from yunikorn_actors.machines.context.answers import Answer, Answers, in_parts
from yunikorn_actors.machines.context.partition_context import PartitionContext
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.slices import Steps
from yunikorn_actors.messages.base import EVENT_PUBLISHER, RM_PROXY, Message
from yunikorn_actors.messages.scheduling import FactsAppended, NodeActionsRefused
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.facts import Fact, NodeActionRefused, apply
from yunikorn_actors.state.long_work import LongWork, LongWorkKind


class Work:
    """What one handler decides, for one resource manager, at one moment.

    Its turns know what they write into, not the work itself: they would stand on a cycle with it,
    and all that a handler wrote would wait for the garbage collector.
    """

    def __init__(
        self,
        rm_id: str,
        now_ns: int,
        settings: Settings,
        hearers: tuple[str, ...] = (EVENT_PUBLISHER,),
    ) -> None:
        self.rm_id = rm_id
        self.now_ns = now_ns
        self.settings = settings
        self._hearers = hearers
        """Who hears the facts of all partitions."""
        self.answers = Answers()
        self.stray: list[NodeActionRefused] = []
        """Actions on nodes of a partition that is not there."""
        self.wanted: list[Effect] = []
        """Timers, and lines for the log."""
        self.turns: dict[str, Turn] = {}
        """One in each partition that the handler has come to, by its name."""

    def turn(self, partition: PartitionContext) -> "Turn":
        turn = self.turns.get(partition.name)
        if turn is None:
            turn = self.turns[partition.name] = Turn(self, partition)
        return turn

    def announce(self, answer: Answer) -> None:
        """Send this to the resource manager when the handler ends."""
        self.answers.add(answer)

    def effects(self) -> list[Effect]:
        # Answers, which a caller waits for, come before facts and timers. Per mailbox this is the
        # order of delivery; between mailboxes none is promised. So whatever has to come one after
        # the other goes to one mailbox.
        answers = self.answers.messages(self.rm_id)
        effects: list[Effect] = []
        for answer in answers:
            effects.append(Send(to=RM_PROXY, message=answer))  # noqa: PERF401 - mostly none or one
        self._publish(effects)
        if self.stray:
            stray = NodeActionsRefused(rm_id=self.rm_id, refused=tuple(self.stray))
            effects.extend(Send(to=hearer, message=stray) for hearer in self._hearers)
        effects.extend(self.wanted)
        return effects

    def resume(self, now_ns: int, hearers: tuple[str, ...]) -> None:
        """Go on after other messages were handled: some of them may have recorded facts."""
        self.now_ns, self._hearers = now_ns, hearers
        for turn in self.turns.values():
            turn.now_ns, turn.first_revision = now_ns, turn.state.revision + 1

    def told_so_far(self) -> list[Effect]:
        """Take out the facts and timers of a slice; the resource manager hears all at the end."""
        effects = self.silent_effects()
        self.wanted.clear()
        for turn in self.turns.values():
            turn.facts.clear()
            turn.first_revision = turn.state.revision + 1
        return effects

    def take_answers(self, items_max: int) -> Iterator[tuple[Message, int]]:
        """Take out the messages to the resource manager, in parts, each with the size of it."""
        answers, self.answers = self.answers.messages(self.rm_id), Answers()
        for turn in self.turns.values():
            turn.announce = self.answers.add
        for message in answers:
            yield from in_parts(message, items_max)

    def begin_anew(self) -> None:
        """Forget what has been sent."""
        self.turns.clear()
        self.wanted.clear()
        self.stray.clear()

    def silent_effects(self) -> list[Effect]:
        """Facts and timers alone, if there is no callback left to tell."""
        effects: list[Effect] = []
        self._publish(effects)
        effects.extend(self.wanted)
        return effects

    def _publish(self, effects: list[Effect]) -> None:
        for turn in self.turns.values():
            partition, facts = turn.partition, turn.facts
            if not facts:
                continue
            # One batch for all subscribers: they get each fact once, and in the same order.
            message = FactsAppended(
                partition=partition.name,
                epoch=partition.epoch,
                rm_id=partition.rm_id,
                first_revision=turn.first_revision,
                facts=tuple(facts),
            )
            for hearer in (*partition.schedulers.values(), *self._hearers):
                effects.append(Send(to=hearer, message=message))  # noqa: PERF401 - two, mostly


class Turn:
    """What one handler does in one partition, at one moment."""

    __slots__ = (
        "announce",
        "facts",
        "first_revision",
        "now_ns",
        "partition",
        "settings",
        "state",
        "want",
    )

    def __init__(self, work: Work, partition: PartitionContext) -> None:
        self.partition = partition
        self.state = partition.state
        self.now_ns = work.now_ns
        self.settings = work.settings
        self.facts: list[Fact] = []
        self.first_revision = self.state.revision + 1
        self.announce = work.answers.add
        """Send this to the resource manager when the handler ends."""
        self.want = work.wanted.append
        """Set or cancel a timer, or write a line for the log, when the handler ends."""

    def record(self, fact: Fact) -> None:
        """State a fact: it is true from here on."""
        apply(self.state, fact)
        # Fused, the planner sees each fact at once, as the next proposal is decided on it.
        planner = self.partition.planner
        if planner is not None:
            planner.observe(fact)
        self.facts.append(fact)


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
