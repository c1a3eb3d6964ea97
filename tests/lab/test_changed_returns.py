"""Worlds in which nodes, queues, limits and members of gangs come back otherwise than they were."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import yaml

from yunikorn_actors.lab.swarm.drawn import drawn
from yunikorn_actors.lab.swarm.reloads import paths_below
from yunikorn_actors.lab.swarm.world_parts import Wanted

PARTS = ("changed-returns", "gangs", "limits", "waits")
WORLDS = 60


def _steps(number: int) -> Iterator[tuple[str, Any]]:
    """Yield the steps of a world one after another, those of bursts as well."""
    document = yaml.safe_load(drawn(4, number, Wanted(only=PARTS)).case.text)
    for step in document["steps"]:
        for word, fields in step.items():
            if word == "together":
                yield from (item for one in fields for item in one.items())
            else:
                yield word, fields


def test_what_comes_back_is_changed() -> None:
    seen = Counter[str]()
    for number in range(1, WORLDS):
        gone: set[str] = set()
        groups: dict[tuple[str, str], Any] = {}
        configs: list[dict[str, Any]] = []
        for word, fields in _steps(number):
            if word == "remove_node":
                gone.add(fields["id"])
            elif word == "create_node" and fields.get("id") in gone:
                seen["drained"] += bool(fields.get("draining"))
                seen["not ready"] += "attributes" in fields
            elif word == "ask" and fields.get("task_group"):
                name = fields["app"], fields["key"]
                now = fields["task_group"], fields.get("placeholder", False)
                before = groups.setdefault(name, now)
                seen["another group"] += before[0] != now[0]
                seen["placeholder or not"] += before[1] != now[1]
            elif word == "config":
                configs += fields["queues"]["partitions"]
        for before, after in pairwise(configs):
            queues = [dict(paths_below(it["queues"][0])) for it in (before, after)]
            seen["queue returns"] += bool(queues[1].keys() - queues[0].keys())
            both = queues[0].keys() & queues[1].keys()
            seen["limits"] += any(
                queues[0][it].get("limits") != queues[1][it].get("limits") for it in both
            )
    kinds = ("drained", "not ready", "another group", "placeholder or not", "queue returns")
    assert all(seen[kind] >= 3 for kind in (*kinds, "limits")), seen
