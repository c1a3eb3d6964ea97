"""Other names in a message that came from outside.

The name of a field shows what it holds, in a few places also the class that it stands in. A text
of which nothing is known is covered as a whole.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, structs

from yunikorn_actors.config.extra import READERS as EXTRA_READERS
from yunikorn_actors.config.model import (
    FilterConfig,
    NodeSortConfig,
    PartitionConfig,
    QueueConfig,
    RuleConfig,
)
from yunikorn_actors.config.names import looks_like_expression
from yunikorn_actors.config.placement_rules import TAG
from yunikorn_actors.config.properties import READERS
from yunikorn_actors.messages.base import callback_address, is_callback, manager_of
from yunikorn_actors.messages.scheduling import ALLOCATION_TIMER, ApplicationTimerDue
from yunikorn_actors.trace.scrub.alphabet import Alphabet, Words
from yunikorn_actors.values import tags as c

_PARTS: Final = re.compile(r"(\.|_dot_)")
"""What parts the names of queues in a path, and those in the name of a queue made for a user."""
_LISTED: Final = re.compile(r"[^\s,]+")
_PARTITION: Final = re.compile(r"\[(.*)\](.*)", re.DOTALL)
_SCHEDULER: Final = re.compile(r"(scheduler:)(.*)(#[0-9.]+)", re.DOTALL)
_NOBODY: Final = "(?!)"
"""An expression that matches nothing."""


class Cover:
    """Before it is settled it takes names down, and gives back what it was given."""

    def __init__(self, instance: str, new_instance: str) -> None:
        self._uuids = (f"{instance}-", f"{new_instance}-")
        self._words = Words()
        self._users = Alphabet("user")
        """Which words are users and groups; a filter may be an expression for them."""
        self._alphabets = {kind: Alphabet(kind) for kind in ("app", "ask", "node", "text")}
        self._is_settled = False

    @property
    def names(self) -> int:
        return sum(len(it.all()) for it in (self._words, *self._alphabets.values()))

    def settle(self) -> None:
        for alphabet in (self._words, *self._alphabets.values()):
            alphabet.settle()
        self._is_settled = True

    # -- kinds of names

    def word(self, text: str) -> str:
        """Cover a name that may be a path of queues, or become one."""
        return "".join(
            part if number % 2 else self._covered(self._words, part)
            for number, part in enumerate(_PARTS.split(text))
        )

    def person(self, text: str) -> str:
        self._users.note(text)
        return self.word(text)

    def application(self, text: str) -> str:
        return self._covered(self._alphabets["app"], text)

    def ask(self, text: str) -> str:
        return self._covered(self._alphabets["ask"], text)

    def node(self, text: str) -> str:
        return self._covered(self._alphabets["node"], text)

    def text(self, text: str) -> str:
        return self._covered(self._alphabets["text"], text)

    def uuid(self, text: str) -> str:
        """Those that the core made say so; others came with work that was reported."""
        ours, new = self._uuids
        return f"{new}{text.removeprefix(ours)}" if text.startswith(ours) else self.ask(text)

    def timer(self, text: str) -> str:
        """Cover the kind of a timer: that of an allocation has its UUID."""
        uuid = text.removeprefix(ALLOCATION_TIMER)
        return text if uuid == text else f"{ALLOCATION_TIMER}{self.uuid(uuid)}"

    def partition(self, text: str) -> str:
        found = _PARTITION.fullmatch(text)
        return f"[{self.word(found[1])}]{self.word(found[2])}" if found else self.word(text)

    def address(self, text: str) -> str:
        if found := _SCHEDULER.fullmatch(text):
            return f"{found[1]}{self.partition(found[2])}{found[3]}"
        if is_callback(text) and (manager := manager_of(text)) and not text.startswith("events:"):
            return callback_address(self.word(manager), int(text.rpartition("#")[2]))
        return text

    def models(self, text: str) -> str:
        """Cover the models that will do, each by itself: a node has one of them."""
        return "|".join(map(self.word, text.split("|")))

    def listed(self, text: str) -> str:
        """Cover the names in an access list."""
        return _LISTED.sub(lambda found: self.person(found[0]), text)

    def chosen(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Cover a filter; a single entry may be an expression, and then it names whom it meets."""
        if len(names) != 1 or not looks_like_expression(names[0]):
            return tuple(map(self.person, names))
        if not self._is_settled:
            return names
        met = sorted(filter(re.compile(names[0]).search, self._users.all()))
        return ("|".join(f"^{re.escape(self.word(name))}$" for name in met) or _NOBODY,)

    def _covered(self, alphabet: Alphabet, name: str) -> str:
        if self._is_settled:
            return alphabet.new(name)
        alphabet.note(name)
        return name

    # -- values

    def struct(self, value: Any) -> Any:  # noqa: ANN401 - of whatever class it was, it is
        kinds = _TAG_RULE if _is_tag_rule(value) else _IN.get(type(value), {})
        return structs.replace(
            value,
            **{
                name: self._field(kinds.get(name, _FIELDS.get(name, Cover.text)), old)
                for name in value.__struct_fields__
                if isinstance(old := getattr(value, name), str | Struct | tuple | dict)
            },
        )

    def _field(self, kind: "Kind", value: Any) -> Any:  # noqa: ANN401 - as above
        if kind in _WHOLE or isinstance(value, str):
            return kind(self, value)
        if isinstance(value, Struct):
            return self.struct(value)
        if isinstance(value, tuple):
            return tuple(self._field(kind, it) for it in value)
        # What a message of a later version holds may be of any kind: it is not replayed after that.
        if isinstance(value, dict) and _has_texts(value):
            return {key: self._field(kind, it) for key, it in value.items()}
        return value

    def tags(self, tags: Mapping[str, str]) -> dict[str, str]:
        return self._mapped(tags, _TAGS, Cover.word)

    def attributes(self, attributes: Mapping[str, str]) -> dict[str, str]:
        return self._mapped(attributes, _ATTRIBUTES, Cover.word)

    def properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        return {key: it if key in READERS else self.text(it) for key, it in properties.items()}

    def extra(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {key: it if key in EXTRA_READERS else self.text(it) for key, it in texts.items()}

    def legacy(self, value: Any) -> Any:  # noqa: ANN401 - as a machine left it
        if isinstance(value, str):
            return self.partition(value) if _PARTITION.fullmatch(value) else self.address(value)
        if isinstance(value, dict):
            return {key: self.legacy(it) for key, it in value.items()}
        return [self.legacy(it) for it in value] if isinstance(value, list | tuple) else value

    def _mapped(
        self, texts: Mapping[str, str], known: "dict[str, Kind]", other: "Kind"
    ) -> dict[str, str]:
        return {key: known.get(key.lower(), other)(self, it) for key, it in texts.items()}


def _is_tag_rule(value: Struct) -> bool:
    return isinstance(value, RuleConfig) and value.name == TAG


def _has_texts(value: Mapping[str, object]) -> bool:
    return any(isinstance(it, str) for it in value.values())


def _kept(_: Cover, value: Any) -> Any:  # noqa: ANN401 - it means something to the core
    return value


def _left_out(_: Cover, value: str) -> str:  # noqa: ARG001 - whatever it was
    return ""


Kind = Callable[[Cover, Any], Any]
_WHOLE: Final = frozenset(
    {Cover.tags, Cover.attributes, Cover.properties, Cover.extra, Cover.legacy, Cover.chosen, _kept}
)
"""What is covered as a whole, not value by value."""
_FIELDS: Final[dict[str, Kind]] = {
    "application_id": Cover.application,
    **dict.fromkeys(("key", "allocation_key"), Cover.ask),
    "uuid": Cover.uuid,
    "node_id": Cover.node,
    **dict.fromkeys(("partition", "partition_name"), Cover.partition),
    **dict.fromkeys(("rm_id", "queue_name", "path", "task_group_name", "policy_group"), Cover.word),
    **dict.fromkeys(("user", "users", "groups"), Cover.person),
    **dict.fromkeys(("admin_acl", "submit_acl"), Cover.listed),
    **dict.fromkeys(("callback", "address"), Cover.address),
    **dict.fromkeys(("tags", "allocation_tags"), Cover.tags),
    "attributes": Cover.attributes,
    "properties": Cover.properties,
    "extra_config": Cover.extra,
    "legacy": Cover.legacy,
    # The parsed configuration stands beside its text, and machines read that.
    "config": _left_out,
    **dict.fromkeys(
        (
            *("reply_to", "hearer", "follower", "kind", "extra"),
            *("gang_scheduling_style", "user_group_resolver"),
        ),
        _kept,
    ),
}
_IN: Final[dict[type, dict[str, Kind]]] = {
    ApplicationTimerDue: {"kind": Cover.timer},
    PartitionConfig: {"name": Cover.partition},
    QueueConfig: {"name": Cover.word},
    RuleConfig: {"name": _kept, "value": Cover.word},
    FilterConfig: {"type": _kept, "users": Cover.chosen, "groups": Cover.chosen},
    NodeSortConfig: {"policy": _kept, "weights": _kept},
}
_TAG_RULE: Final[dict[str, Kind]] = {"name": _kept, "value": _kept}
"""It names a tag, and the names of tags stay."""
_TAGS: Final[dict[str, Kind]] = {
    c.TAG_REQUIRED_NODE.lower(): Cover.node,
    **{
        tag.lower(): _kept
        for tag in (
            c.TAG_ALLOW_PREEMPTION, c.TAG_CREATION_TIME, c.TAG_FOREIGN,
            c.APP_TAG_CREATION_TIME, c.APP_TAG_CREATE_FORCE, c.APP_TAG_STATE_AWARE_DISABLE,
            c.APP_TAG_NAMESPACE_RESOURCE_QUOTA, c.APP_TAG_NAMESPACE_RESOURCE_GUARANTEED,
            c.APP_TAG_NAMESPACE_RESOURCE_MAX_APPS, c.APP_TAG_COMPLETING_DISABLE,
            c.APP_TAG_NODE_SORT_POLICY, c.APP_TAG_QUEUE_FALLBACK,
            c.TAG_PREDICATES, c.TAG_RUNTIME, c.GPU_DEVICES,
        )
    },
    c.GPU_MODEL.lower(): Cover.models,
}  # fmt: skip
_ATTRIBUTES: Final[dict[str, Kind]] = {
    c.NODE_READY_ATTRIBUTE: _kept,
    c.NODE_PARTITION: Cover.partition,
    c.GPU_DEVICES: _kept,
    c.GPU_MODEL: Cover.models,
}
