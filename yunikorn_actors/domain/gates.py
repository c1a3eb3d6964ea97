"""What can refuse an ask or hold an application back: queues, and limits of users and groups."""

from enum import StrEnum


class GateKind(StrEnum):
    """Which kind of gate it is that has no room, or as many applications running as it may."""

    NONE = ""
    QUEUE = "queue"
    QUOTA = "limit of a user or group"
