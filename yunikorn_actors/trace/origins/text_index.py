"""In which messages of a row which texts stand."""

from collections.abc import Iterable
from itertools import chain

from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.trace.origins.message_parts import texts_in
from yunikorn_actors.trace.origins.new_facts import Copies


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
