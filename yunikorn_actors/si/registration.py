"""Registration of a resource manager, and later changes of its configuration."""

from msgspec import field

from yunikorn_actors.si.wire import ConfigText, Name, SiMessage, Text


class RegisterResourceManagerRequest(SiMessage, frozen=True, kw_only=True):
    """Who registers, with which queues (`config`) and settings (`extra_config`)."""

    rm_id: Name = ""
    version: Name = ""
    policy_group: Name = ""
    build_info: dict[Name, Text] = field(default_factory=dict)
    config: ConfigText = ""
    extra_config: dict[Name, Text] = field(default_factory=dict)


class RegisterResourceManagerResponse(SiMessage, frozen=True, kw_only=True):
    """An empty answer: the registration was accepted."""


class UpdateConfigurationRequest(SiMessage, frozen=True, kw_only=True):
    """A new configuration, of a resource manager or, without `rm_id`, of the administrator."""

    rm_id: Name = ""
    policy_group: Name = ""
    config: ConfigText = ""
    extra_config: dict[Name, Text] = field(default_factory=dict)
