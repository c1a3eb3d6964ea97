"""Registration of a resource manager, and later changes of its configuration."""

from msgspec import field

from yunikorn_actors.si.wire import ConfigText, Name, SiMessage, Text


class RegisterResourceManagerRequest(SiMessage, frozen=True, kw_only=True):
    rm_id: Name = ""
    version: Name = ""
    policy_group: Name = ""
    build_info: dict[Name, Text] = field(default_factory=dict)
    config: ConfigText = ""
    extra_config: dict[Name, Text] = field(default_factory=dict)


class RegisterResourceManagerResponse(SiMessage, frozen=True, kw_only=True):
    """An empty answer: the registration was accepted."""


class UpdateConfigurationRequest(SiMessage, frozen=True, kw_only=True):
    rm_id: Name = ""
    policy_group: Name = ""
    config: ConfigText = ""
    extra_config: dict[Name, Text] = field(default_factory=dict)
