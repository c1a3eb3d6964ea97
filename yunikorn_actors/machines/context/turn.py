"""The work of one handler of Context, and its turn in each partition that it comes to.

Whatever a handler decides is written down here first: facts, which take effect at once, and what
the resource manager is to hear. When the handler ends, `Work.effects` turns it into messages. So a
handler may work item by item, and the resource manager still gets at most one message of each kind.
"""

from yunikorn_actors.domain.changes import apply
from yunikorn_actors.domain.facts import Fact, NodeActionRefused
from yunikorn_actors.machines.context.answers import Answer, Answers
from yunikorn_actors.machines.context.partition import Partition
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import EVENT_PUBLISHER, RM_PROXY
from yunikorn_actors.messages.scheduling import FactsAppended, NodeActionsRefused


class Work:
    """What one handler decides, for one resource manager, at one moment."""

    def __init__(self, rm_id: str, now_ns: int, settings: Settings) -> None:
        self.rm_id = rm_id
        self.now_ns = now_ns
        self.settings = settings
        self.answers = Answers()
        self.stray: list[NodeActionRefused] = []
        """Actions on nodes of a partition that is not there."""
        self.touched: list[Turn] = []
        """The turns that recorded a fact, in the order of their first one."""
        self.wanted: list[Effect] = []
        """Timers, and lines for the log."""
        self._turns: dict[str, Turn] = {}

    def turn(self, partition: Partition) -> "Turn":
        """Return the one turn that this handler has in a partition."""
        turn = self._turns.get(partition.name)
        if turn is None:
            turn = self._turns[partition.name] = Turn(self, partition)
        return turn

    def announce(self, answer: Answer) -> None:
        """Let the resource manager hear this when the handler ends."""
        self.answers.add(answer)

    def effects(self) -> list[Effect]:
        answers = self.answers.messages(self.rm_id)
        return [*(Send(to=RM_PROXY, message=it) for it in answers), *self.silent_effects()]

    def silent_effects(self) -> list[Effect]:
        """Facts and timers alone, if there is no callback left to tell."""
        return [*self._publications(), *self.wanted]

    def _publications(self) -> list[Effect]:
        effects: list[Effect] = []
        for turn in self.touched:
            message = turn.publication()
            if turn.partition.scheduler is not None:
                effects.append(Send(to=turn.partition.scheduler, message=message))
            effects.append(Send(to=EVENT_PUBLISHER, message=message))
        if self.stray:
            stray = NodeActionsRefused(rm_id=self.rm_id, refused=tuple(self.stray))
            effects.append(Send(to=EVENT_PUBLISHER, message=stray))
        return effects


class Turn:
    """One item that Context handles, for one partition, at one moment.

    Items of one message that concern the same partition share a turn.
    """

    __slots__ = ("_facts", "_work", "now_ns", "partition", "settings", "state")

    def __init__(self, work: Work, partition: Partition) -> None:
        self.partition = partition
        self.state = partition.state
        self.now_ns = work.now_ns
        self.settings = work.settings
        self._work = work
        self._facts: list[Fact] = []

    def record(self, fact: Fact) -> None:
        """State a fact: it is true from here on."""
        apply(self.state, fact)
        planner = self.partition.planner
        if planner is not None:
            planner.observe(fact)
        if not self._facts:
            self._work.touched.append(self)
        self._facts.append(fact)

    def announce(self, answer: Answer) -> None:
        """Let the resource manager hear this when the handler ends."""
        self._work.announce(answer)

    def want(self, effect: Effect) -> None:
        """Set or cancel a timer, or write a line for the log, when the handler ends."""
        self._work.wanted.append(effect)

    def publication(self) -> FactsAppended:
        """Tell the facts to those who follow the partition."""
        return FactsAppended(
            partition=self.partition.name,
            epoch=self.partition.epoch,
            rm_id=self.partition.rm_id,
            first_revision=self.state.revision - len(self._facts) + 1,
            facts=tuple(self._facts),
        )
