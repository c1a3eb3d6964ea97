"""Makes the document of a scenario small, whatever it is that the document must still show.

First whole steps go, in large pieces, then whatever stands below a word or in a list, outer ones
first, then queues become plainer, and at last numbers become smaller.
"""

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from yunikorn_actors.lab.scenario_documents import Data, Document

Fails = Callable[[Document, tuple[int, ...]], bool]
"""Whether a document still fails; the numbers are the places that its steps had at first."""

_T = TypeVar("_T")
_PLAIN_NUMBERS: Final = (
    1, 2, 3, 4, 5, 6, 8,
    *(first * 10**power for power in range(1, 19) for first in (1, 2, 5)),
)  # fmt: skip
_NEEDED: Final = ("name", "steps")
_NUMBER: Final = re.compile(r"(\d{1,18})(\D*)")
"""An amount or a duration as text: a number, and maybe its unit."""


def minimal(parts: Sequence[_T], fails: Callable[[tuple[_T, ...]], bool]) -> tuple[_T, ...]:
    """Leave out as much as can be (ddmin): first in large pieces, last one by one."""
    left = tuple(parts)
    if not left or fails(()):
        return ()
    size = len(left)
    while size:
        at = 0
        while at < len(left):
            shorter = (*left[:at], *left[at + size :])
            if len(shorter) < len(left) and shorter and fails(shorter):
                left = shorter
            else:
                at += size
        size //= 2
    return left


class DocumentShrinker:
    """Tries what may be left out, one after the other, and keeps what still fails."""

    def __init__(self, document: Document, fails: Fails) -> None:
        self.document = copy.deepcopy(document)
        self.places = tuple(range(len(document["steps"])))
        """Where each of its steps stood at first."""
        self._fails = fails

    def shrink(self) -> None:
        """Go on until nothing can be left out alone."""
        before = None
        while before != self.document:
            before = copy.deepcopy(self.document)
            self.leave_out_steps()
            self._leave_out_words()
            self._simplify_queues()
            self._lower_numbers()

    def leave_out_steps(self) -> None:
        steps = dict(zip(self.places, self.document["steps"], strict=True))

        def fails(left: tuple[int, ...]) -> bool:
            fewer = {**self.document, "steps": [steps[place] for place in left]}
            return bool(left) and self._fails(fewer, left)

        self.places = minimal(self.places, fails)
        self.document = {**self.document, "steps": [steps[place] for place in self.places]}

    def _still(self) -> bool:
        return self._fails(self.document, self.places)

    def _leave_out_words(self) -> None:
        for holder in _holders(self.document):
            if isinstance(holder, dict):
                self._leave_out_keys(holder)
            elif holder is not self.document["steps"]:
                self._leave_out_items(holder)

    def _leave_out_keys(self, holder: dict[str, Data]) -> None:
        for key in list(holder):
            if holder is self.document and key in _NEEDED:
                continue
            before = dict(holder)
            del holder[key]
            if not self._still():
                # The order of the words stays.
                holder.clear()
                holder.update(before)

    def _leave_out_items(self, holder: list[Data]) -> None:
        items = list(holder)

        def fails(left: tuple[int, ...]) -> bool:
            holder[:] = [items[place] for place in left]
            return self._still()

        left = minimal(range(len(items)), fails)
        holder[:] = [items[place] for place in left]

    def _simplify_queues(self) -> None:
        """Try the queues that a file has without naming any; then have parents become leaves."""
        plain = {word: copy.deepcopy(it) for word, it in self.document.items() if word != "queues"}
        plain["steps"] = _with_queues(plain["steps"], lambda _: "root.default")
        self._try(plain)
        for path in [path for path, _ in _parents(self.document.get("queues"))]:
            self._try(_as_leaf(self.document, path))

    def _try(self, document: Document) -> None:
        if document != self.document and self._fails(document, self.places):
            self.document = document

    def _lower_numbers(self) -> None:
        for holder in _holders(self.document):
            places: Iterable[Data] = holder if isinstance(holder, dict) else range(len(holder))
            for place in list(places):
                self._lower(holder, place)

    def _lower(self, holder: Data, place: Data) -> None:
        """Find the smallest plain number that will do, as if all above one that does did."""
        smaller = list(_smaller(holder[place]))
        low, high = 0, len(smaller)
        while low < high:
            middle = (low + high) // 2
            before, holder[place] = holder[place], smaller[middle]
            if self._still():
                high = middle
            else:
                holder[place] = before
                low = middle + 1


def _holders(value: Data) -> Iterator[Data]:
    """Yield every mapping and list, outer ones first, as they are when their turn comes."""
    if isinstance(value, dict | list):
        yield value
        for item in list(value.values() if isinstance(value, dict) else value):
            yield from _holders(item)


def _with_queues(steps: list[Data], renamed: Callable[[str], str]) -> list[Data]:
    """Return the steps with the queues that they name renamed."""
    steps = copy.deepcopy(steps)
    for holder in _holders(steps):
        if isinstance(holder, dict) and isinstance(holder.get("queue"), str):
            holder["queue"] = renamed(holder["queue"])
    return steps


def _as_leaf(document: Document, path: str) -> Document:
    """Return the document with what is below a queue in the queue itself."""
    document = copy.deepcopy(document)
    for parent, queue in list(_parents(document.get("queues"))):
        if parent == path:
            del queue["queues"]
    document["steps"] = _with_queues(
        document["steps"], lambda name: path if name.startswith(f"{path}.") else name
    )
    return document


def _parents(queues: Data) -> Iterator[tuple[str, Document]]:
    """Yield the queues that have others below, without the roots, each with its path."""
    for partition in (queues or {}).get("partitions", ()):
        for root in partition.get("queues", ()):
            yield from _parents_below(root)


def _parents_below(
    queue: dict[str, Data], above: str = ""
) -> Iterator[tuple[str, dict[str, Data]]]:
    path = f"{above}.{queue.get('name')}" if above else "root"
    if above and queue.get("queues"):
        yield path, queue
    for below in queue.get("queues") or ():
        yield from _parents_below(below, path)


def _smaller(value: Data) -> Iterator[Data]:
    """Yield plain numbers below this one, the smallest first, written alike."""
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        if found:
            yield from (f"{number}{found[2]}" for number in _below(int(found[1])))
    elif type(value) is int:
        yield from _below(value)


def _below(number: int) -> Iterator[int]:
    yield from (plain for plain in _PLAIN_NUMBERS if plain < number)
