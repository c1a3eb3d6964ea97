"""The numbers of the interface: clients compare numbers, so each is spelt out here."""

from enum import IntEnum

import pytest

from yunikorn_actors import si
from yunikorn_actors.state import termination

NUMBERS = {
    si.TerminationType: {
        "UNKNOWN_TERMINATION_TYPE": 0,
        "STOPPED_BY_RM": 1,
        "TIMEOUT": 2,
        "PREEMPTED_BY_SCHEDULER": 3,
        "PLACEHOLDER_REPLACED": 4,
        "SCHEDULING_FAILED_ON_RM": 5,
    },
    si.ActionFromRM: {
        "UNKNOWN_ACTION_FROM_RM": 0,
        "CREATE": 1,
        "UPDATE": 2,
        "DRAIN_NODE": 3,
        "DECOMISSION": 4,
        "DRAIN_TO_SCHEDULABLE": 5,
        "CREATE_DRAIN": 6,
    },
    si.SchedulingState: {
        "UNKNOWN_SCHEDULING_STATE": 0,
        "SKIPPED": 1,
        "SCHEDULED": 2,
        "RESERVED": 3,
        "FAILED": 4,
    },
    si.EventType: {
        "UNKNOWN_EVENTRECORD_TYPE": 0,
        "REQUEST": 1,
        "APP": 2,
        "NODE": 3,
        "QUEUE": 4,
        "USERGROUP": 5,
    },
    si.ChangeType: {"NONE": 0, "SET": 1, "ADD": 2, "REMOVE": 3},
    si.ChangeDetail: {
        "DETAILS_NONE": 0,
        "REQUEST_CANCEL": 100,
        "REQUEST_ALLOC": 101,
        "REQUEST_TIMEOUT": 102,
        "APP_ALLOC": 200,
        "APP_REQUEST": 201,
        "APP_REJECT": 202,
        "APP_NEW": 203,
        "APP_ACCEPTED": 204,
        "APP_STARTING": 205,
        "APP_RUNNING": 206,
        "APP_COMPLETING": 207,
        "APP_COMPLETED": 208,
        "APP_FAILING": 209,
        "APP_FAILED": 210,
        "APP_RESUMING": 211,
        "APP_EXPIRED": 212,
        "APP_CANNOTRUN_QUEUE": 213,
        "APP_RUNNABLE_QUEUE": 214,
        "APP_CANNOTRUN_QUOTA": 215,
        "APP_RUNNABLE_QUOTA": 216,
        "NODE_DECOMISSION": 300,
        "NODE_READY": 301,
        "NODE_SCHEDULABLE": 302,
        "NODE_ALLOC": 303,
        "NODE_CAPACITY": 304,
        "NODE_OCCUPIED": 305,
        "NODE_RESERVATION": 306,
        "QUEUE_CONFIG": 400,
        "QUEUE_DYNAMIC": 401,
        "QUEUE_TYPE": 402,
        "QUEUE_MAX": 403,
        "QUEUE_GUARANTEED": 404,
        "QUEUE_APP": 405,
        "QUEUE_ALLOC": 406,
        "QUEUE_PREEMPTION": 407,
        "ALLOC_CANCEL": 500,
        "ALLOC_PREEMPT": 501,
        "ALLOC_TIMEOUT": 502,
        "ALLOC_REPLACED": 503,
        "ALLOC_NODEREMOVED": 504,
        "UG_USER_LIMIT": 600,
        "UG_GROUP_LIMIT": 601,
        "UG_APP_LINK": 602,
        "UG_USER_RESOURCE": 603,
        "UG_GROUP_RESOURCE": 604,
    },
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers(kind: type[IntEnum]) -> None:
    assert NUMBERS[kind] == {member.name: member.value for member in kind}


def test_termination_is_the_domains_own() -> None:
    assert termination.TerminationType is si.TerminationType
