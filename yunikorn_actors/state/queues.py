"""Queues: a tree of parents and leaves, with the books kept up the tree.

`lineage` runs from the queue itself to the root and never changes, because a queue never moves. The
root has no limit of its own: its max is the capacity of the cluster.
"""

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct, field

from yunikorn_actors.config import Acl, LimitConfig, QueueProperties, TemplateConfig
from yunikorn_actors.config.names import WILDCARD
from yunikorn_actors.state.gates import Places
from yunikorn_actors.values.resource import Resource


class LimitTable:
    """The limits of one queue, found by the name that they count for.

    A queue may have a limit for each of a thousand users and is asked at each allocation, so names
    are looked up. If a name stands twice, the first entry counts.
    """

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
        # `or`: a limit is a Struct and always true.
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
ROOT = "root"


class QueueState(StrEnum):
    ACTIVE = "Active"
    DRAINING = "Draining"


class QueueSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the configuration, or a template, says of one queue."""

    leaf: bool
    managed: bool = True
    position: int = 0
    """Place among its siblings in the configuration."""
    guaranteed: Resource | None = None
    max: Resource | None = None
    max_applications: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    """The effective ones, inheritance applied."""
    submit_acl: str = ""
    admin_acl: str = ""
    limits: tuple[LimitConfig, ...] = ()
    template: TemplateConfig | None = None
    """What a leaf that placement creates below starts with."""


class Queue:
    """A queue with its books; changed by facts alone."""

    __slots__ = (
        "admin_acl",
        "allocated",
        "allocating",
        "applications",
        "children",
        "earmarked",
        "leaving",
        "limits",
        "lineage",
        "name",
        "parent",
        "path",
        "pending",
        "preempted",
        "preempting",
        "properties",
        "reserving",
        "running_apps",
        "spec",
        "state",
        "submit_acl",
    )

    def __init__(self, name: str, spec: QueueSpec, parent: "Queue | None") -> None:
        self.name = name
        self.parent = parent
        self.path: str = name if parent is None else f"{parent.path}.{name}"
        self.lineage: tuple[Queue, ...] = (self, *(parent.lineage if parent else ()))
        self.state = QueueState.ACTIVE
        self.children: dict[str, Queue] = {}
        self.applications: dict[int, str] = {}
        """Serial to id of the active applications of a leaf."""
        self.allocated: Resource = {}
        self.pending: Resource = {}
        self.preempting: Resource = {}
        """What was preempted and is not confirmed yet."""
        self.preempted: dict[int, int] = {}
        """When how many allocations of a leaf with a budget were preempted, as far as it counts."""
        self.leaving: Resource = {}
        """What was asked back for whatever reason and frees its room; preempting is part of it."""
        self.earmarked: Resource = {}
        """What asks below will use for which others were preempted."""
        self.running_apps = 0
        self.allocating: dict[int, None] = {}
        """Serials of Accepted applications that hold something: they count as running too."""
        self.reserving: dict[int, None] = {}
        """Those that hold nothing and have a node kept for them take a place, too."""
        self.configure(spec)

    def configure(self, spec: QueueSpec) -> None:
        self.spec = spec
        self.properties = QueueProperties.of(spec.properties)
        # Parsed once here, because access is asked for with each application.
        self.submit_acl = Acl.parse(spec.submit_acl)
        self.admin_acl = Acl.parse(spec.admin_acl)
        self.limits = LimitTable(spec.limits) if spec.limits else NO_LIMITS
        # Without a budget nothing reads these times.
        if not self.properties.preemption_budget.is_set:
            self.preempted.clear()

    @property
    def is_leaf(self) -> bool:
        return self.spec.leaf

    @property
    def is_empty(self) -> bool:
        return not self.children and not self.applications

    @property
    def is_to_be_cleaned(self) -> bool:
        """Empty, and either leaving the configuration or never in it."""
        leaving = self.state is QueueState.DRAINING or not self.spec.managed
        return leaving and self.is_empty and self.parent is not None

    def allows_submit(self, user: str, groups: tuple[str, ...]) -> bool:
        """Access is granted by the submit or admin list of the queue or of any ancestor."""
        # Any level grants: an administrator of a parent may submit below it.
        return any(
            level.submit_acl.allows(user, groups) or level.admin_acl.allows(user, groups)
            for level in self.lineage
        )

    @property
    def places(self) -> Places:
        # Running ones, and Accepted ones that hold something.
        taken = self.running_apps + len(self.allocating)
        return Places(self.spec.max_applications, taken, self.allocating, self.reserving)

    @property
    def is_entitled(self) -> bool:
        """Something is guaranteed to it, by itself or by an ancestor."""
        return any(level.spec.guaranteed for level in self.lineage)

    def note_preempted(self, at_ns: int) -> None:
        """Count a victim, if there is a budget; what it does not count any more is forgotten."""
        window_ns = self.properties.preemption_budget.window_ns
        if not window_ns:
            return
        self.preempted[at_ns] = self.preempted.get(at_ns, 0) + 1
        # In the order of time, so the first that counts ends the walk.
        for before_ns in list(self.preempted):
            if before_ns > at_ns - window_ns:
                break
            del self.preempted[before_ns]

    def quota(self, own: Resource | None = None) -> Resource | None:
        """Return its max less what is promised to asks below, but for the share of the asking one.

        The root has none, so promises take nothing from the cluster.
        """
        limit, earmarked = self.spec.max, self.earmarked
        # Nearly never is anything promised: then the limit itself is given, and nothing is copied.
        if limit is None or not any(earmarked.values()):
            return limit
        own = own or {}
        return {
            kind: quantity - earmarked.get(kind, 0) + own.get(kind, 0)
            for kind, quantity in limit.items()
        }

    def quota_for(
        self, own: Resource, used: Resource, redeemed: Resource | None = None
    ) -> Resource | None:
        """Return how much may be used with an ask that was promised `own`.

        After a reload, or with work that was reported, the maximum may not hold all that was
        promised. Then each has its own as long as there is room, in the order of the promises: the
        later ones would keep the earlier ones out.
        """
        limit, earmarked = self.spec.max, self.earmarked
        if limit is None or not any(earmarked.values()):
            return limit
        left: Resource = {}
        for kind, most in limit.items():
            free = most - earmarked.get(kind, 0)
            if redeemed:
                free += redeemed.get(kind, 0)
            # Its own promise is its own even where the others have used the rest up.
            if kind in own:
                free = max(free + own[kind], min(most, used.get(kind, 0) + own[kind]))
            left[kind] = free
        return left

    def walk(self) -> Iterator["Queue"]:
        """This queue and all below it, parents first, in the order of creation."""
        yield self
        for child in self.children.values():
            yield from child.walk()
