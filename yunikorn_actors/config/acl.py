"""Access lists: who may submit to a queue.

The text is `users groups`, each a list with commas; a leading blank leaves the users out. `*` alone
in either place lets everybody in, and an empty text nobody. How many blanks stand between the two
does not matter. A name with characters that no user or group can have matches nobody.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from yunikorn_actors.config.names import WILDCARD, is_group_name, is_user_name

_PARTS_MAX: Final = 2


class AclError(ValueError):
    """A text that has more than users and groups in it."""


class Acl(Struct, frozen=True, kw_only=True, gc=False):
    everybody: bool = False
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @classmethod
    @lru_cache(maxsize=256)
    def parse(cls, text: str) -> "Acl":
        """Read the text of an access list; of a thousand queues most have the same, or none."""
        parts = text.split()
        if len(parts) > _PARTS_MAX:
            raise AclError(f"multiple spaces found in ACL: {text!r}")
        if len(parts) == 1:
            parts.insert(0 if text[0].isspace() else 1, "")
        users, groups = (part.split(",") for part in parts or ("", ""))
        return cls(
            everybody=[WILDCARD] in (users, groups),
            users=frozenset(name for name in users if is_user_name(name)),
            groups=frozenset(name for name in groups if is_group_name(name)),
        )

    def allows(self, user: str, groups: Sequence[str]) -> bool:
        return self.everybody or user in self.users or not self.groups.isdisjoint(groups)
