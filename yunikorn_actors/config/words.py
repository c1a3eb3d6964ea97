"""Parts of a configuration in words, as commands print them."""

from collections.abc import Mapping

from yunikorn_actors.config.acl import Acl
from yunikorn_actors.config.model import FilterConfig, LimitConfig, RuleConfig
from yunikorn_actors.values.quantity import amounts


def access(text: str) -> str:
    acl = Acl.parse(text)
    if acl.everybody:
        return "everybody"
    return listed({"users": tuple(sorted(acl.users)), "groups": tuple(sorted(acl.groups))})


def people(named: LimitConfig | FilterConfig) -> str:
    return listed({"users": named.users, "groups": named.groups})


def listed(names: Mapping[str, tuple[str, ...]]) -> str:
    return " and ".join(f"{kind} {', '.join(some)}" for kind, some in names.items() if some)


def allowance(limit: LimitConfig) -> str:
    most = f"{limit.max_applications} applications" if limit.max_applications else ""
    allowed = ", ".join(text for text in (amounts(limit.max_resources), most) if text)
    return f"{allowed} ({limit.description})" if limit.description else allowed


def rule_in_words(rule: RuleConfig) -> str:
    parts = (
        f"{rule.name} {rule.value}".rstrip(),
        "creates queues" if rule.create else "",
        "" if rule.filter is None else f"{rule.filter.type} {people(rule.filter)}".rstrip(),
        "" if rule.parent is None else f"below the queue of [{rule_in_words(rule.parent)}]",
    )
    return ", ".join(part for part in parts if part)
