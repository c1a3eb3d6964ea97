"""How a resource manager introduces itself, and how it changes its configuration later."""

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
    """Says nothing: that it came is the answer."""


class UpdateConfigurationRequest(SiMessage, frozen=True, kw_only=True):
    rm_id: Name = ""
    policy_group: Name = ""
    config: ConfigText = ""
    extra_config: dict[Name, Text] = field(default_factory=dict)
