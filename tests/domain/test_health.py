"""Each health check finds what it is for, and nothing else does."""

import copy

import pytest

from yunikorn_actors.checks.health_checks import health_of

HEALTHY = {
    "scheduling_errors": 0,
    "failed_nodes": [],
    "partitions": {
        "[rm-1]default": {
            "capacity": {"vcore": 10},
            "queues": {"root": {"allocated": {"vcore": 4}}},
            "nodes": {
                "n1": {
                    "capacity": {"vcore": 10},
                    "allocated": {"vcore": 4},
                    "occupied": {"vcore": 1},
                    "available": {"vcore": 5},
                    "allocations": ["u1"],
                    "reservations": [["app", "waits"]],
                }
            },
            "applications": {
                "app": {"allocations": [{"uuid": "u1", "key": "k", "node": "n1", "overdue": False}]}
            },
        }
    },
}


def failed(dump: object) -> list[int]:
    health = health_of(dump)  # type: ignore[arg-type]  # a test may pass anything

    return [number for number, check in enumerate(health.checks) if not check.succeeded]


def changed(path: tuple[str, ...], value: object) -> object:
    dump = copy.deepcopy(HEALTHY)
    place: object = dump
    for key in path[:-1]:
        place = place[key]  # type: ignore[index]  # plain nested values
    place[path[-1]] = value  # type: ignore[index]  # plain nested values
    return dump


def test_a_sound_core_is_healthy() -> None:
    assert (True, []) == (health_of(HEALTHY).healthy, failed(HEALTHY))


PARTITION = ("partitions", "[rm-1]default")
NODE = (*PARTITION, "nodes", "n1")


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("scheduling_errors",), 3, [0]),
        (("failed_nodes",), ["n9"], [1]),
        ((*PARTITION, "queues", "root", "allocated"), {"vcore": -1}, [2]),
        ((*NODE, "available"), {"vcore": -5}, [3, 5]),
        ((*PARTITION, "capacity"), {"vcore": 11}, [4]),
        ((*NODE, "occupied"), {"vcore": 2}, [5]),
        ((*PARTITION, "applications"), {}, [7]),
        ((*NODE, "allocations"), [], [8]),
        (
            (*PARTITION, "applications", "app", "allocations"),
            [{"uuid": "u1", "key": "k", "node": "gone", "overdue": False}],
            [7, 8],
        ),
        (
            (*PARTITION, "applications", "app", "allocations"),
            [{"uuid": "u1", "key": "k", "node": "n1", "overdue": True}],
            [9],
        ),
    ],
)
def test_each_fault_is_found_by_its_check(
    path: tuple[str, ...], value: object, expected: list[int]
) -> None:
    assert expected == failed(changed(path, value))


def test_how_many_nodes_are_reserved_is_told_and_never_a_fault() -> None:
    check = next(c for c in health_of(HEALTHY).checks if c.name == "Reservation check")

    assert (True, "1 of 1 nodes are reserved") == (check.succeeded, check.diagnosis)


def test_a_diagnosis_names_the_object() -> None:
    health = health_of(changed(("failed_nodes",), ["n9"]))  # type: ignore[arg-type]  # plain values

    assert "n9" in health.checks[1].diagnosis
