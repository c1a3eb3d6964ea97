"""The limits of one queue, found by the name that they count for.

A queue may have a limit for each of a thousand users, and is asked at each allocation.
"""

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.config.names import WILDCARD


class LimitTable:
    """A name stands once in the limits of a queue; should it stand twice, the first counts."""

    __slots__ = ("_groups", "_ranks", "_users")

    def __init__(self, limits: tuple[LimitConfig, ...]) -> None:
        self._users: dict[str, LimitConfig] = {}
        self._groups: dict[str, LimitConfig] = {}
        for limit in limits:
            for user in limit.users:
                self._users.setdefault(user, limit)
            for group in limit.groups:
                self._groups.setdefault(group, limit)
        self._ranks = {group: rank for rank, group in enumerate(self._groups)}

    def for_user(self, user: str) -> LimitConfig | None:
        """Return his own, or what the wildcard gives to each of the others."""
        return self._users.get(user) or self._users.get(WILDCARD)

    def for_group(self, group: str) -> LimitConfig | None:
        """Return the limit of a group, or of the wildcard group; no other stands for it."""
        return self._groups.get(group)

    def group_among(self, groups: tuple[str, ...]) -> str:
        """Return the first group in the order of the configuration that is among these.

        Else the wildcard group, if it is named; empty for none.
        """
        # By the groups of the user, which are few; the queue may name a thousand.
        named = [group for group in groups if group in self._ranks]
        if named:
            return min(named, key=self._ranks.__getitem__)
        return WILDCARD if WILDCARD in self._ranks else ""


NO_LIMITS = LimitTable(())
