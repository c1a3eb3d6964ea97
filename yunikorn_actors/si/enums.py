"""The enumerations of the scheduler interface; on the wire they are their numbers.

The event enumerations are the union of both generations of the interface: no number has two
meanings. DECOMISSION is the spelling of the interface.
"""

from enum import IntEnum

from yunikorn_actors.state.termination import TerminationType as TerminationType


class ActionFromRM(IntEnum):
    """What is to be done with a node."""

    UNKNOWN_ACTION_FROM_RM = 0
    """Not set: nothing is done, and the log has a warning."""
    CREATE = 1
    """A new node. Answered: it is accepted or rejected."""
    UPDATE = 2
    """New capacity, occupied amount or attributes of a node; what is left out stays."""
    DRAIN_NODE = 3
    """Place nothing new on the node; what runs there goes on."""
    DECOMISSION = 4
    """Remove the node with all that runs on it. The spelling is that of the interface."""
    DRAIN_TO_SCHEDULABLE = 5
    """End a drain: the node takes new work again."""
    CREATE_DRAIN = 6
    """A new node that is drained from the start."""


class SchedulingState(IntEnum):
    """What an ask waits for, or that it no longer waits."""

    UNKNOWN_SCHEDULING_STATE = 0
    """Not set; the core never sends it."""
    SKIPPED = 1
    """A quota, a limit or the admission of its gang refuses it."""
    SCHEDULED = 2
    """It has been placed."""
    RESERVED = 3
    """A node is reserved for it."""
    FAILED = 4
    """Its quotas allow it and no node holds it: a larger cluster would help."""


class EventType(IntEnum):
    """The kind of the object that an event is about."""

    UNKNOWN_EVENTRECORD_TYPE = 0
    """Not set; the core never sends it."""
    REQUEST = 1
    """An ask; the object is its key, the reference its application."""
    APP = 2
    """An application."""
    NODE = 3
    """A node."""
    QUEUE = 4
    """A queue."""
    USERGROUP = 5
    """A user or a group."""


class ChangeType(IntEnum):
    """How the object of an event has changed."""

    NONE = 0
    """It has not: the message tells something about it."""
    SET = 1
    """A value of it was set."""
    ADD = 2
    """It was added, or something was added to it."""
    REMOVE = 3
    """It was removed, or something was removed from it."""


class ChangeDetail(IntEnum):
    """The hundreds tell which kind of object changed."""

    DETAILS_NONE = 0
    """Nothing more is known."""

    REQUEST_CANCEL = 100
    """An ask was withdrawn."""
    REQUEST_ALLOC = 101
    """An ask was placed."""
    REQUEST_TIMEOUT = 102
    """An ask was withdrawn because of a timeout."""

    APP_ALLOC = 200
    """An allocation of an application came."""
    APP_REQUEST = 201
    """An ask of an application came or went."""
    APP_REJECT = 202
    """An application was rejected."""
    APP_NEW = 203
    """An application came."""
    APP_ACCEPTED = 204
    """It is Accepted."""
    APP_STARTING = 205
    """It is Starting."""
    APP_RUNNING = 206
    """It is Running."""
    APP_COMPLETING = 207
    """It is Completing."""
    APP_COMPLETED = 208
    """It is Completed."""
    APP_FAILING = 209
    """It is Failing."""
    APP_FAILED = 210
    """It is Failed."""
    APP_RESUMING = 211
    """It is Resuming: it goes on without its gang."""
    APP_EXPIRED = 212
    """It is no longer remembered."""
    APP_CANNOTRUN_QUEUE = 213
    """It may not start: a queue has its maximum of running applications."""
    APP_RUNNABLE_QUEUE = 214
    """It may start, as far as its queues go."""
    APP_CANNOTRUN_QUOTA = 215
    """It may not start: its user or group has its maximum of running applications."""
    APP_RUNNABLE_QUOTA = 216
    """It may start, as far as its user and group go."""

    NODE_DECOMISSION = 300
    """A node was removed."""
    NODE_READY = 301
    """A node has become ready, or is no longer."""
    NODE_SCHEDULABLE = 302
    """A node takes new work again, or no longer."""
    NODE_ALLOC = 303
    """An allocation came to a node or left it."""
    NODE_CAPACITY = 304
    """A node has another capacity."""
    NODE_OCCUPIED = 305
    """Others use another amount of a node."""
    NODE_RESERVATION = 306
    """A reservation of a node came or went."""

    QUEUE_CONFIG = 400
    """The configuration changed a queue."""
    QUEUE_DYNAMIC = 401
    """A queue that placement created came or went."""
    QUEUE_TYPE = 402
    """A leaf became a parent, or a parent a leaf."""
    QUEUE_MAX = 403
    """A queue has another maximum."""
    QUEUE_GUARANTEED = 404
    """A queue has another guarantee."""
    QUEUE_APP = 405
    """An application came to a queue or left it."""
    QUEUE_ALLOC = 406
    """An allocation came to a queue or left it."""
    QUEUE_PREEMPTION = 407
    """Work of a queue is preempted."""

    ALLOC_CANCEL = 500
    """The resource manager released an allocation."""
    ALLOC_PREEMPT = 501
    """An allocation was preempted."""
    ALLOC_TIMEOUT = 502
    """An allocation took too long."""
    ALLOC_REPLACED = 503
    """A placeholder was replaced by a member of its gang."""
    ALLOC_NODEREMOVED = 504
    """An allocation left with its node."""

    UG_USER_LIMIT = 600
    """A limit of a user was set or removed."""
    UG_GROUP_LIMIT = 601
    """A limit of a group was set or removed."""
    UG_APP_LINK = 602
    """An application counts for a group, or no longer."""
    UG_USER_RESOURCE = 603
    """A user uses more or less."""
    UG_GROUP_RESOURCE = 604
    """A group uses more or less."""
