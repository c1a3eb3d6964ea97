"""The groups of users: each user is looked up once and remembered for a while.

Groups that a request brings hold, and are remembered like those that were looked up. An unknown
user is remembered too, for a shorter time, so that a broken client does not cause a look-up for
each application. The age of an entry is read from an injected clock whenever the entry is used, so
an expired entry is never used, swept out or not (R-125). Calls may come from several threads at
once: no step leaves the tables half changed, and at worst two callers look up the same user.
"""

import grp
import os
import pwd
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from yunikorn_actors import si
from yunikorn_actors.config import SchedulerConfig
from yunikorn_actors.config.names import is_user_name
from yunikorn_actors.values.durations import SECOND

Lookup = Callable[[str], tuple[str, ...] | None]
"""Returns the groups of a user, the primary one first; None if there is no such user."""
Clock = Callable[[], int]

KNOWN_NS: Final = 300 * SECOND
UNKNOWN_NS: Final = 30 * SECOND
SWEEP_NS: Final = 60 * SECOND

NOGROUP: Final = "nogroup"
NOBODY: Final = si.UserGroupInformation(user="nobody", groups=(NOGROUP,))


class UserResolutionFailed(LookupError):
    """The groups of a user are not known; the resource manager gets the text."""


def own_group(user: str) -> tuple[str, ...]:
    """Take every user as the one member of a group of the same name."""
    return (user,)


class _Entry(NamedTuple):
    groups: tuple[str, ...] | None
    """None for an unknown user."""
    until_ns: int


class UserGroups:
    """The remembered groups of one resolver, from its answers and from requests."""

    def __init__(self, resolver: str, lookup: Lookup, now_ns: Clock) -> None:
        self._resolver = resolver
        self._lookup = lookup
        self._now_ns = now_ns
        self._entries: dict[str, _Entry] = {}
        self._next_sweep_ns = now_ns() + SWEEP_NS

    def copy(self, now_ns: Clock) -> "UserGroups":
        """Return a copy with what this one remembers, by another clock."""
        made = UserGroups(self._resolver, self._lookup, now_ns)
        made._entries, made._next_sweep_ns = dict(self._entries), self._next_sweep_ns
        return made

    def __len__(self) -> int:
        """How many users are remembered, expired entries included."""
        return len(self._entries)

    def resolve(
        self, given: si.UserGroupInformation | None, *, forced: bool
    ) -> si.UserGroupInformation:
        """Add the groups to the user of a request, or raise UserResolutionFailed.

        A forced application runs already, so it is accepted even if its groups are not known.
        """
        if given is None or not given.user:
            return _nobody(forced=forced)
        if not is_user_name(given.user):
            raise UserResolutionFailed(
                f"invalid username, it contains invalid characters: {given.user!r}"
            )
        # The request knows better than any directory.
        if given.groups:
            self._remember(given.user, given.groups)
            return given
        return si.UserGroupInformation(
            user=given.user, groups=self._groups(given.user, forced=forced)
        )

    def _groups(self, user: str, *, forced: bool) -> tuple[str, ...]:
        try:
            return self._known(user)
        except UserResolutionFailed:
            if not forced:
                raise
            return (NOGROUP,)

    def _known(self, user: str) -> tuple[str, ...]:
        entry = self._entries.get(user)
        if entry is None or entry.until_ns <= self._now_ns():
            return self._looked_up(user)
        if entry.groups is None:
            raise UserResolutionFailed(
                f"user resolution failed, cached data returned: a moment ago resolver "
                f"{self._resolver!r} knew no user {user!r}"
            )
        return entry.groups

    def _looked_up(self, user: str) -> tuple[str, ...]:
        # May raise, or take seconds: nothing is held meanwhile.
        groups = self._lookup(user)
        self._remember(user, groups)
        if groups is None:
            raise UserResolutionFailed(
                f"user resolution failed: resolver {self._resolver!r} knows no user {user!r}; "
                "make the user known to it, or send the groups with the application"
            )
        return groups

    def _remember(self, user: str, groups: tuple[str, ...] | None) -> None:
        now_ns = self._now_ns()
        if now_ns >= self._next_sweep_ns:
            self._sweep(now_ns)
        life_ns = UNKNOWN_NS if groups is None else KNOWN_NS
        self._entries[user] = _Entry(groups, now_ns + life_ns)

    def _sweep(self, now_ns: int) -> None:
        """Forget expired entries; walk over a copy, because another thread may add some."""
        self._next_sweep_ns = now_ns + SWEEP_NS
        for user, entry in self._entries.copy().items():
            if entry.until_ns <= now_ns:
                self._entries.pop(user, None)


class Resolvers:
    """Which resolver each resource manager uses.

    The members of a policy group share one configuration, so they share its resolver: that of the
    first partition in the configuration that a member brought, or else in the administrator's.
    """

    def __init__(self, lookups: Mapping[str, Lookup], now_ns: Clock) -> None:
        self._lookups = {"": own_group, **lookups}
        self._now_ns = now_ns
        self._users: dict[str, UserGroups] = {}
        """By name of the resolver; made when first needed."""
        self._members: dict[str, str] = {}
        """Resource managers, lost ones included, each with its policy group."""
        self._brought: dict[str, str] = {}
        """Policy groups that brought a configuration, each with its resolver."""
        self._admin: str | None = None
        """None while the administrator has brought no configuration."""

    def copy(self, now_ns: Clock) -> "Resolvers":
        """Return a copy with what this one knows, by another clock."""
        made = Resolvers(self._lookups, now_ns)
        made._members, made._brought = dict(self._members), dict(self._brought)
        made._admin = self._admin
        for name, users in self._users.items():
            made._users[name] = users.copy(now_ns)
        return made

    def join(self, rm_id: str, policy_group: str, config: SchedulerConfig | None) -> None:
        # A manager may register anew in another group: the former one may be empty by that.
        former = self._members.get(rm_id, policy_group)
        self._members[rm_id] = policy_group
        self._forget_if_empty(former)
        self.bring(rm_id, config)

    def bring(self, rm_id: str, config: SchedulerConfig | None) -> None:
        """Without a configuration the group keeps its resolver."""
        group = self._members.get(rm_id)
        if group is not None and config is not None:
            self._brought[group] = _resolver_of(config)

    @property
    def is_administered(self) -> bool:
        """Whether the administrator has brought a configuration."""
        return self._admin is not None

    def bring_admin(self, config: SchedulerConfig) -> None:
        self._admin = _resolver_of(config)

    def leave(self, rm_id: str) -> None:
        group = self._members.pop(rm_id, None)
        if group is not None:
            self._forget_if_empty(group)

    def remember(self, rm_id: str, user: str, groups: tuple[str, ...]) -> None:
        """Know the groups of a user from a request that was made before."""
        if groups:
            self.users_of(rm_id).resolve(
                si.UserGroupInformation(user=user, groups=groups), forced=True
            )

    def users_of(self, rm_id: str) -> UserGroups:
        # The group's own, else the administrator's, else the built-in one (the empty name).
        name = self._brought.get(self._members.get(rm_id, ""), self._admin or "")
        users = self._users.get(name)
        if users is None:
            mine = UserGroups(name, self._lookups[name], self._now_ns)
            # Two threads may make one at once: the first stays.
            users = self._users.setdefault(name, mine)
        return users

    def _forget_if_empty(self, group: str) -> None:
        if group not in self._members.copy().values():
            self._brought.pop(group, None)


def _resolver_of(config: SchedulerConfig) -> str:
    return next((partition.user_group_resolver for partition in config.partitions), "")


def _nobody(*, forced: bool) -> si.UserGroupInformation:
    if not forced:
        raise UserResolutionFailed("empty user cannot resolve: name the user of the application")
    return NOBODY


# The accounts of the operating system, for the resolver `os`.
#
# The system may ask a directory on the network, so a look-up can take its time: it is made on the
# thread of the caller, never on one of the core.


def groups_of(user: str) -> tuple[str, ...] | None:
    """Name the groups of a user, the primary one first; None where there is no such account."""
    try:
        primary = pwd.getpwnam(user).pw_gid
    except KeyError:
        return None
    others = (id_ for id_ in os.getgrouplist(user, primary) if id_ != primary)
    return tuple(map(_name, (primary, *others)))


def _name(group_id: int) -> str:
    """A group without a name goes by its number."""
    try:
        return grp.getgrgid(group_id).gr_name
    except KeyError:
        return str(group_id)
