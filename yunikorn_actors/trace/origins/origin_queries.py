"""What is asked of a recording to find out from where items came."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple, Protocol

from yunikorn_actors.messages.base import EVENT_PUBLISHER, Cause, Delivery
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.trace.origins.item_matching import Together
from yunikorn_actors.trace.origins.items import Item, ItemsOnce, manager_in
from yunikorn_actors.trace.origins.message_parts import Copies, facts_of, texts_in


class TextIndex:
    """Finds messages, by their places in the row, by a text in them."""

    def __init__(self, deliveries: Iterable[Delivery]) -> None:
        self._places: dict[str, list[int]] = {}
        self._copies: dict[int, list[int]] = {}
        """Facts go to several receivers: what stands in a copy is noted once."""
        copies, first = Copies(), dict[int, int]()
        for place, it in enumerate(deliveries):
            message = copies.of(it.message)
            if isinstance(message, FactsAppended) and first.setdefault(id(message), place) != place:
                self._copies.setdefault(first[id(message)], []).append(place)
                continue
            for text in set(texts_in(message)):
                self._places.setdefault(text, []).append(place)

    def of(self, text: str) -> list[int]:
        """Return the places of the messages in which a text stands, in no order."""
        found = self._places.get(text, [])
        copies = [self._copies[place] for place in found if place in self._copies]
        return [*found, *chain.from_iterable(copies)]

    def of_any(self, texts: Iterable[str]) -> set[int]:
        return set(chain.from_iterable(map(self.of, texts)))


Receives = Callable[[str], bool]
"""Whether messages to a mailbox are meant."""
Written = tuple[Delivery, Fact]
"""A fact, and the message that brought it to the event publisher, which hears of all."""


class Addition(NamedTuple):
    """When an ask came into the truth."""

    step: int
    """Of Context."""
    by: Delivery


class Recorded(Protocol):
    items_of: ItemsOnce
    additions: dict[Item, list[Addition]]
    """Those of each ask that was asked about; they are asked for at each stage of its way."""

    def joined_with(self, step: Cause) -> Together:
        """Return the messages that were handled together with this one, up to it."""

    def alone(self, delivery: Delivery) -> Together:
        """Return a message by itself, whatever it was handled together with."""

    def naming(self, names: Iterable[str], receives: Receives) -> Sequence[Delivery]:
        """Return the messages to these mailboxes of which an item has one of the names, in order.

        What the event publisher receives is asked for by `written`.
        """

    def speaking(self, names: Iterable[str], receives: Receives) -> Sequence[Delivery]:
        """Return those in which one of the names stands, also if no item has it."""

    def written(self, names: Iterable[str]) -> Sequence[Written]:
        """Return the facts that name one of these asks, allocations or applications, in order."""

    def of_manager(self, manager: str) -> "Recorded":
        """Return what concerns one resource manager."""


class OfManager:
    """What concerns one resource manager: another may use the same ids."""

    def __init__(self, recorded: Recorded, manager: str) -> None:
        self._recorded = recorded
        self._manager = manager
        self._allowed = {"", manager}
        self.items_of = recorded.items_of
        self.additions: dict[Item, list[Addition]] = {}

    def joined_with(self, step: Cause) -> Together:
        return self._recorded.joined_with(step).of_manager(self._manager)

    def alone(self, delivery: Delivery) -> Together:
        return self._recorded.alone(delivery)

    def naming(self, names: Iterable[str], receives: Receives) -> list[Delivery]:
        found = self._recorded.naming(names, receives)
        return [it for it in found if manager_in(it) in self._allowed]

    def speaking(self, names: Iterable[str], receives: Receives) -> list[Delivery]:
        found = self._recorded.speaking(names, receives)
        return [it for it in found if manager_in(it) in self._allowed]

    def written(self, names: Iterable[str]) -> list[Written]:
        found = self._recorded.written(names)
        return [it for it in found if manager_in(it[0]) in self._allowed]

    def of_manager(self, manager: str) -> Recorded:
        return OfManager(self._recorded, manager)


def written_in(deliveries: Iterable[Delivery], names: Iterable[str]) -> Iterator[Written]:
    wanted = set(names)
    for it in deliveries:
        if it.mailbox == EVENT_PUBLISHER:
            facts = facts_of(it.message)
            yield from ((it, fact) for fact in facts if not wanted.isdisjoint(names_in(fact)))


def names_in(fact: Fact) -> set[str]:
    """Return the names in a fact: of its work or queue, and of what goes for what."""
    whom = (fact, getattr(fact, "spec", None), getattr(fact, "beneficiary", None))
    found = {getattr(it, name, "") for it in whom for name in ("application_id", "key")}
    found.update((getattr(fact, "uuid", ""), getattr(fact, "path", "")))
    if isinstance(fact, PAIRING):
        found.add(fact.placeholder)
    return found - {""}


PAIRING: Final = (f.AskParked, f.AskUnparked, f.PlaceholderCancelled, f.SwapCompleted)
"""Facts of a member that name its placeholder."""


class InMemory:
    """A recording of which all messages are held."""

    def __init__(self, deliveries: Sequence[Delivery]) -> None:
        self._deliveries = deliveries
        self._steps: dict[Cause, Delivery] = {}
        self.items_of = ItemsOnce()
        self._together: dict[Cause, Together] = {}
        self._alone: dict[int, Together] = {}
        self.additions: dict[Item, list[Addition]] = {}
        self._written: dict[str, list[int]] = {}
        self._facts: list[Written] = []
        for it in deliveries:
            # A caller's mailbox counts its answers from one again, and those lead nowhere.
            self._steps.setdefault(Cause(it.mailbox, it.step), it)
            if it.mailbox == EVENT_PUBLISHER:
                for fact in facts_of(it.message):
                    for name in names_in(fact):
                        self._written.setdefault(name, []).append(len(self._facts))
                    self._facts.append((it, fact))

    def joined_with(self, step: Cause) -> Together:
        found = self._together.get(step)
        if found is None:
            found = self._together[step] = Together(self._joined(step), self.items_of)
        return found

    def _joined(self, step: Cause) -> list[Delivery]:
        found: list[Delivery] = []
        at = self._steps.get(step)
        while at is not None:
            found.append(at)
            at = self._steps.get(Cause(at.mailbox, at.step - 1)) if at.joined else None
        return found[::-1]

    def alone(self, delivery: Delivery) -> Together:
        found = self._alone.get(id(delivery.message))
        if found is None:
            found = self._alone[id(delivery.message)] = Together((delivery,), self.items_of)
        return found

    def naming(self, names: Iterable[str], receives: Receives) -> list[Delivery]:
        return self._at(_merged([self._named.get(it, ()) for it in names]), receives)

    def speaking(self, names: Iterable[str], receives: Receives) -> list[Delivery]:
        return self._at(sorted(self._spoken.of_any(names)), receives)

    def _at(self, places: Iterable[int], receives: Receives) -> list[Delivery]:
        found = map(self._deliveries.__getitem__, places)
        return [it for it in found if receives(it.mailbox)]

    @cached_property
    def _named(self) -> dict[str, list[int]]:
        """By each name of an item in which messages it is."""
        named: dict[str, list[int]] = {}
        for place, it in enumerate(self._deliveries):
            if it.mailbox != EVENT_PUBLISHER:
                items = self.items_of(it.message)
                for name in {name for item in items for name in item[1:] if name}:
                    named.setdefault(name, []).append(place)
        return named

    @cached_property
    def _spoken(self) -> TextIndex:
        return TextIndex(self._deliveries)

    def written(self, names: Iterable[str]) -> list[Written]:
        numbers = _merged([self._written.get(name, ()) for name in names])
        return [self._facts[number] for number in numbers]

    def of_manager(self, manager: str) -> Recorded:
        return self if self._managers <= {"", manager} else OfManager(self, manager)

    @cached_property
    def _managers(self) -> set[str]:
        return set(map(manager_in, self._deliveries))


def _merged(rows: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return the numbers of several ascending rows in their order, each once."""
    return rows[0] if len(rows) == 1 else sorted({*chain.from_iterable(rows)})
