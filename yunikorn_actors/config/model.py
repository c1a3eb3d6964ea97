"""A configuration that has been accepted: plain values that travel in messages.

Nothing in here needs a second look: names are lower case where case does not matter, defaults are
filled in, quantities are base units. `None` for a resource means that it was not set; a `max` of
nothing but zeros is a limit of zero and stays, a `guaranteed` of nothing but zeros promises nothing
and becomes `None`. Access lists stay text, `Acl.parse` reads them; properties are each queue's own,
`effective_properties` adds what the parent hands down.
"""

from msgspec import Struct, field

from yunikorn_actors.config.node_order import FAIR
from yunikorn_actors.values.resource import Resource


class LimitConfig(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the named users, each for himself, and the named groups may use of a queue."""

    description: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    max_resources: Resource | None = None
    max_applications: int = 0
    """0 is no limit."""


class TemplateConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a queue that placement creates below this one starts with."""

    guaranteed: Resource | None = None
    max: Resource | None = None
    max_applications: int = 0
    properties: dict[str, str] = field(default_factory=dict)


class QueueConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    parent: bool = False
    """The flag as written; root always has it."""
    children: "tuple[QueueConfig, ...]" = ()
    guaranteed: Resource | None = None
    max: Resource | None = None
    max_applications: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    admin_acl: str = ""
    submit_acl: str = ""
    limits: tuple[LimitConfig, ...] = ()
    template: TemplateConfig | None = None

    @property
    def is_leaf(self) -> bool:
        return not self.parent and not self.children


class FilterConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whom a placement rule is for: `allow` or `deny` those on the lists."""

    type: str = "allow"
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class RuleConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    create: bool = False
    filter: FilterConfig | None = None
    parent: "RuleConfig | None" = None
    value: str = ""


class NodeSortConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    policy: str = FAIR.name
    """A name of `NODE_ORDERS`."""
    weights: dict[str, float] = field(default_factory=lambda: {"vcore": 1.0, "memory": 1.0})


class PartitionConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    root: QueueConfig
    placement_rules: tuple[RuleConfig, ...] = ()
    node_sort: NodeSortConfig = field(default_factory=NodeSortConfig)
    preemption_enabled: bool = True
    quota_preemption_enabled: bool = False
    user_group_resolver: str = ""
    """Empty stands for the resolver that knows one group, named like the user."""


class SchedulerConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    partitions: tuple[PartitionConfig, ...]
    checksum: str
    """Of the text, without the checksum that it may carry itself."""
