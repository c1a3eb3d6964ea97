"""Names that a configuration may use, and the characters each kind of name may have.

These are the only rules on characters: limits, filters and access lists all take user and group
names from here, so that a name which can be limited can also be let in. Queue names ignore case and
are kept in lower case.
"""

import re
from typing import Final

ROOT: Final = "root"
WILDCARD: Final = "*"
RECOVERY_QUEUE: Final = "@recovery@"
"""Made by the core itself below root, for work that is found running and fits nowhere else."""

QUEUE_CHARACTERS: Final = "1 to 64 letters, digits and any of _ : # / @ -"

_QUEUE: Final = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")
_USER: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?")
_GROUP: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:_.-]*")
_RULE: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_]*")
_EXPRESSION: Final = frozenset("^$*+?()[{}|")


def is_queue_name(name: str) -> bool:
    return _QUEUE.fullmatch(name) is not None


def is_user_name(name: str) -> bool:
    return _USER.fullmatch(name) is not None


def is_group_name(name: str) -> bool:
    return _GROUP.fullmatch(name) is not None


def looks_like_expression(entry: str) -> bool:
    """Whether an entry of a filter is an expression for names, by its characters, and no name."""
    return not _EXPRESSION.isdisjoint(entry)


def is_rule_name(name: str) -> bool:
    return _RULE.fullmatch(name) is not None
