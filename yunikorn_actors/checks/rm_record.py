"""The record of a resource manager: its requests and notifications, compared with the truth.

A resource manager knows nothing but that, so neither does its record. Three rules hold:

- Each request has the answers that it is owed: once, in the form in which it was made, and with
  what was requested in them (G25).
- Each notification suits what was requested and notified before it (G13 to G16, G27); where the
  facts of the truth can be followed, it is what they owe (`checks/owed.py`).
- When nothing is on its way, what the record holds and what the truth holds are the same, in both
  directions and field by field (G16, G28).

A rule that is broken is described by its invariant, the resource manager, the thing, and both
values.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from yunikorn_actors.checks.notices import Placed, Thing
from yunikorn_actors.checks.owed import Owed
from yunikorn_actors.checks.rm_comparison import States, compared
from yunikorn_actors.checks.rm_knowledge import RmKnowledge, Touched
from yunikorn_actors.checks.rm_notifications import JUDGES
from yunikorn_actors.checks.rm_requests import NOTES
from yunikorn_actors.state.facts import AdministratorActed, Fact


class RmRecord:
    """The record of one registration of a resource manager."""

    def __init__(
        self,
        rm_id: str,
        *,
        takes_states: bool = False,
        follows_facts: bool = False,
        was_restored: bool = False,
        others: Mapping[str, "RmRecord"] = MappingProxyType({}),
    ) -> None:
        """With `follows_facts` every notification has to be owed by a fact given to `follow`.

        A resource manager of a core that was restored is not notified again of what it knew. What
        is not owed may be owed to one of the others.
        """
        self.rm_id = rm_id
        self._rm = RmKnowledge(rm_id, takes_states=takes_states, was_restored=was_restored)
        if follows_facts:
            self._rm.owed = Owed(rm_id, self, takes_states=takes_states)
        self._others = others

    @property
    def owed(self) -> Owed | None:
        return self._rm.owed

    @property
    def running(self) -> dict[str, Placed]:
        """What it was notified of, or reported, and has not ended."""
        return self._rm.running

    # -- the truth as it comes about

    def follow(self, partition: str, facts: Iterable[Fact], turn: int) -> None:
        """Take in facts that Context recorded in this turn."""
        if self.owed is not None:
            self.owed.follow(partition, facts, turn)
        for fact in facts:
            # An operator's word may come after any report, so the drain is not compared.
            if isinstance(fact, AdministratorActed) and fact.node_id in self._rm.nodes:
                self._rm.nodes[fact.node_id].is_operated |= True

    def partition_ended(self, partition: str) -> None:
        """A configuration does without it, and all that was in it goes without an answer.

        What was requested meanwhile may be meant for one that comes again under this name.
        """
        for node in self._rm.nodes.values():
            node.is_gone |= node.partition == partition
        for name in self._rm.asks:
            if name[0] == partition:
                self._rm.unsure_asks[name] = None
        for app in self._rm.applications.values():
            app.is_unsure |= partition in app.partitions

    def owner_of(self, thing: Thing) -> str:
        """Name another resource manager to which this is owed; empty if none is."""
        for other in self._others.values():
            if other is not self and other.owed is not None and other.owed.owes(thing):
                return other.rm_id
        return ""

    def is_announced(self, partition: str, application_id: str, key: str) -> bool | None:
        """Whether reported work is announced to its manager; None if it was reported both ways."""
        asked = self._rm.asks.get((partition, application_id, key))
        # Both ways, or neither: only the core knows which one it took.
        if asked is None or asked.by_list is asked.by_node:
            return None
        return asked.by_list

    # -- requests and notifications

    def requested(self, request: object) -> None:
        """Note a request, in the moment in which it is sent."""
        note = NOTES.get(type(request))
        if note is not None:
            note(self._rm, request)

    def notified(self, response: object) -> list[str]:
        """Note what arrives at the callback, and return what is wrong with it."""
        judge = JUDGES.get(type(response))
        return [] if judge is None else judge(self._rm, response)

    # -- the record and the truth, when nothing is on its way

    def settled(self, states: States) -> list[str]:
        """Compare what has been touched since the last time."""
        faults = [] if self.owed is None else self.owed.missing()
        # Taken out first: what is touched while comparing belongs to the next time.
        touched, self._rm.touched = self._rm.touched, Touched()
        if self.owed is not None:
            touched.uuids.update(dict.fromkeys(self.owed.placed))
            self.owed.placed.clear()
        uuids, asks, apps = touched.uuids, touched.asks, touched.applications
        faults.extend(compared(self._rm, states, uuids, asks, apps, touched.nodes))
        return faults

    def differences(self, states: States) -> list[str]:
        """Compare all that either of the two holds."""
        faults = [] if self.owed is None else self.owed.missing()
        uuids = dict.fromkeys(self.running)
        asks = dict.fromkeys(self._rm.wanted)
        nodes = dict.fromkeys(self._rm.nodes)
        for name, state in states.items():
            uuids.update(dict.fromkeys(state.owners))
            nodes.update(dict.fromkeys(state.nodes))
            asks.update(
                dict.fromkeys(
                    (name, id_, k) for id_, a in state.applications.items() for k in a.asks
                )
            )
        apps = dict.fromkeys(self._rm.applications)
        faults.extend(compared(self._rm, states, uuids, asks, apps, nodes))
        return faults
