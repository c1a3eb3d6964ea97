"""Keys of asks: the program's, and those that the core gets.

An ask keeps the key that the program gave it, as long as the core can tell it from others. After a
withdrawal the core may still speak of the former ask of that key, and a question of the core names
a key without its application. Where that could be mistaken the core gets the key with a number.
"""

from collections import Counter, deque
from typing import Generic, TypeVar

from yunikorn_actors.front.books import Account, Deal
from yunikorn_actors.front.lease import BaseLease

L = TypeVar("L", bound=BaseLease)


class Keys(Generic[L]):
    """What the core says of a key is about one deal, or about one that is over.

    Within an application no two deals share a core key. A withdrawn one is not used again before
    the core has answered a later ask. A deal with a say in where it runs shares its core key with
    no deal of any application. Nobody else changes the keys of an account.
    """

    def __init__(self) -> None:
        self._fits: dict[str, Deal[L]] = {}
        """Deals with a say in where they run; no other ask has one of these keys at that time."""
        self._live: Counter[str] = Counter()
        """How many applications use each core key."""
        self._entered = 0
        self._withdrawn: deque[tuple[int, Account[L], str]] = deque()

    def enter(self, deal: Deal[L]) -> None:
        account = deal.account
        if not deal.is_placeholder:
            deal.core_key = self._free_key(deal)
            account.by_key[deal.key] = deal
        self._entered += 1
        deal.number = self._entered
        account.by_core_key[deal.core_key] = deal
        if deal.fits is not None or deal.rule is not None:
            self._fits[deal.core_key] = deal
        self._live[deal.core_key] += 1

    def _free_key(self, deal: Deal[L]) -> str:
        """Return a key that the core will not take for another one."""
        account, core_key, number = deal.account, deal.key, 1
        while (
            core_key in account.by_core_key
            or core_key in account.withdrawn
            or core_key in self._fits
            or (self._live[core_key] and (deal.fits is not None or deal.rule is not None))
        ):
            number += 1
            core_key = f"{deal.key}~{number}"
        return core_key

    def leave(self, deal: Deal[L]) -> None:
        """Forget an ask that is over; its key may be used again."""
        account = deal.account
        if account.by_core_key.pop(deal.core_key, None) is None:
            return
        if account.by_key.get(deal.key) is deal:
            del account.by_key[deal.key]
        self._fits.pop(deal.core_key, None)
        self._live[deal.core_key] -= 1
        if not self._live[deal.core_key]:
            del self._live[deal.core_key]

    def withdraw(self, deal: Deal[L]) -> None:
        """As `leave`, of one that the core may have placed already."""
        self.leave(deal)
        deal.account.withdrawn.add(deal.core_key)
        self._withdrawn.append((self._entered, deal.account, deal.core_key))

    def answered(self, deal: Deal[L]) -> None:
        """An answer to a later ask: the core has heard of every withdrawal before it."""
        while self._withdrawn and self._withdrawn[0][0] < deal.number:
            _, account, core_key = self._withdrawn.popleft()
            account.withdrawn.discard(core_key)

    def asked_about(self, core_key: str) -> Deal[L] | None:
        """Return the deal that has a say in where this key runs; needs no lock, being one look."""
        return self._fits.get(core_key)
