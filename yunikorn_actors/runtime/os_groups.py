"""The accounts of the operating system, for the resolver `os`.

The system may ask a directory on the network, so a look-up can take its time: it is made on the
thread of the caller, never on one of the core.
"""

import grp
import os
import pwd


def groups_of(user: str) -> tuple[str, ...] | None:
    """Name the groups of a user, the primary one first; None where there is no such account."""
    try:
        primary = pwd.getpwnam(user).pw_gid
    except KeyError:
        return None
    others = (id_ for id_ in os.getgrouplist(user, primary) if id_ != primary)
    return tuple(map(_name, (primary, *others)))


def _name(group_id: int) -> str:
    """A group without a name goes by its number."""
    try:
        return grp.getgrgid(group_id).gr_name
    except KeyError:
        return str(group_id)
