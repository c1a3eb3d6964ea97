"""Registration of a resource manager, and later changes of its configuration."""

from msgspec import field

from yunikorn_actors.si.wire import ConfigText, Name, SiMessage, Text


class RegisterResourceManagerRequest(SiMessage, frozen=True, kw_only=True):
    """The first request of a resource manager."""

    rm_id: Name = ""
    """Its id, of its own choice; every later request carries it."""
    version: Name = ""
    """Its version; the core only keeps it."""
    policy_group: Name = ""
    """Resource managers of one group share one configuration. Empty is a group as well."""
    build_info: dict[Name, Text] = field(default_factory=dict)
    """About its build; the core only keeps it."""
    config: ConfigText = ""
    """The configuration, `queues.yaml` as text. Empty means that it brings none."""
    extra_config: dict[Name, Text] = field(default_factory=dict)
    """Settings of this resource manager, such as `rm.pausedTimeout`."""


class RegisterResourceManagerResponse(SiMessage, frozen=True, kw_only=True):
    """An empty answer: the registration was accepted."""


class UpdateConfigurationRequest(SiMessage, frozen=True, kw_only=True):
    """A new configuration, for `update_configuration`."""

    rm_id: Name = ""
    """Whose; empty if it comes from the administrator."""
    policy_group: Name = ""
    """The group of the resource manager."""
    config: ConfigText = ""
    """The configuration, `queues.yaml` as text. Empty means none of its own: then that of the
    administrator holds, or the built-in one."""
    extra_config: dict[Name, Text] = field(default_factory=dict)
    """Settings of this resource manager; they replace the former ones."""
