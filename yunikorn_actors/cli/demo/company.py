"""The company whose cluster the demo shows: its queues, its nodes, and one day of its work.

The seed alone decides the day before anything runs: counts, sizes and durations are the same in
every run. Only how long each task waits varies.
"""

import random
from typing import Final

from msgspec import Struct

from yunikorn_actors.si import ActionFromRM

CONFIG: Final = """\
partitions:
  - name: default
    nodesortpolicy: {type: fair}
    queues:
      - name: root
        queues:
          - name: engineering
            submitacl: " engineering"
            resources:
              guaranteed: {vcore: 128}
              max: {vcore: 184}
            queues:
              - name: build
                resources:
                  max: {vcore: 64}
              - name: ml
                resources:
                  guaranteed: {vcore: 96, memory: 288Gi}
                  max: {vcore: 120, memory: 384Gi}
          - name: reports
            submitacl: " finance"
            resources:
              guaranteed: {vcore: 32}
              max: {vcore: 48}
            queues:
              - name: daily
                resources:
                  max: {vcore: 32}
              - name: adhoc
                properties: {application.sort.policy: fair}
                resources:
                  max: {vcore: 16}
          - name: sandbox
            submitacl: "*"
            resources:
              max: {vcore: 32}
"""

MILLI: Final = 1000
GIB: Final = 1 << 30


class Server(Struct, frozen=True, kw_only=True):
    id: str
    vcore: int
    """In thousandths, as in all messages."""
    memory: int


class Task(Struct, frozen=True, kw_only=True):
    key: str
    vcore: int
    memory: int
    seconds: float


class Job(Struct, frozen=True, kw_only=True):
    id: str
    queue: str
    user: str
    group: str
    submitted_s: float
    tasks: tuple[Task, ...]


class Incident(Struct, frozen=True, kw_only=True):
    """Something that happens to a node, whatever the seed."""

    at_s: float
    node: str
    action: ActionFromRM
    story: str


class Trade(Struct, frozen=True, kw_only=True):
    """One kind of work: its user and queue, the number of applications, the size of their tasks."""

    name: str
    queue: str
    user: str
    group: str
    applications: int
    last_s: float
    """All work is submitted by then."""
    tasks: tuple[int, int]
    vcore: int
    memory_gib: int
    seconds: tuple[float, float]


class Day(Struct, frozen=True, kw_only=True):
    machines: tuple[Server, ...]
    applications: tuple[Job, ...]
    incidents: tuple[Incident, ...]


_MACHINES: Final = (
    *(Server(id=f"node-{n:02}", vcore=16 * MILLI, memory=64 * GIB) for n in range(1, 9)),
    *(Server(id=f"node-{n:02}", vcore=32 * MILLI, memory=128 * GIB) for n in range(9, 13)),
)

_INCIDENTS: Final = (
    Incident(
        at_s=2.5,
        node="node-04",
        action=ActionFromRM.DRAIN_NODE,
        story="is drained: nothing new starts there",
    ),
    Incident(
        at_s=3.0,
        node="node-11",
        action=ActionFromRM.DECOMISSION,
        story="is lost: its tasks wait again",
    ),
    Incident(at_s=4.0, node="node-11", action=ActionFromRM.CREATE, story="is back"),
    Incident(
        at_s=4.5,
        node="node-04",
        action=ActionFromRM.DRAIN_TO_SCHEDULABLE,
        story="takes work again",
    ),
)

_TRADES: Final = (
    Trade(
        name="build",
        queue="root.engineering.build",
        user="ci",
        group="engineering",
        applications=14,
        last_s=3.0,
        tasks=(10, 16),
        vcore=2,
        memory_gib=4,
        seconds=(0.4, 1.2),
    ),
    Trade(
        name="train",
        queue="root.engineering.ml",
        user="maria",
        group="engineering",
        applications=7,
        last_s=2.4,
        tasks=(8, 14),
        vcore=4,
        memory_gib=12,
        seconds=(1.2, 2.4),
    ),
    Trade(
        name="daily",
        queue="root.reports.daily",
        user="finance-bot",
        group="finance",
        applications=8,
        last_s=2.8,
        tasks=(5, 9),
        vcore=2,
        memory_gib=8,
        seconds=(0.8, 1.6),
    ),
    Trade(
        name="query",
        queue="root.reports.adhoc",
        user="olga",
        group="finance",
        applications=6,
        last_s=3.0,
        tasks=(4, 7),
        vcore=2,
        memory_gib=4,
        seconds=(0.6, 1.2),
    ),
    Trade(
        name="try",
        queue="root.sandbox",
        user="juan",
        group="interns",
        applications=5,
        last_s=3.4,
        tasks=(10, 18),
        vcore=1,
        memory_gib=2,
        seconds=(0.8, 1.6),
    ),
)


class _Dice:
    """Draw with `random()` alone: its sequence is the same in every version of Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random  # noqa: S311 - a workload, not a secret

    def between(self, low: float, high: float) -> float:
        return low + self._random() * (high - low)

    def whole(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low + 1))


def draw_day(seed: int) -> Day:
    dice = _Dice(seed)
    applications = [app for trade in _TRADES for app in _applications(trade, dice)]
    return Day(
        machines=_MACHINES,
        applications=tuple(sorted(applications, key=lambda app: (app.submitted_s, app.id))),
        incidents=_INCIDENTS,
    )


def _applications(trade: Trade, dice: _Dice) -> list[Job]:
    """Spread the applications evenly up to the last moment, each a little early."""
    spacing = trade.last_s / trade.applications
    return [
        _application(trade, f"{trade.name}-{number + 1:02}", spacing * number, spacing, dice)
        for number in range(trade.applications)
    ]


def _application(trade: Trade, id_: str, from_s: float, spacing: float, dice: _Dice) -> Job:
    return Job(
        id=id_,
        queue=trade.queue,
        user=trade.user,
        group=trade.group,
        submitted_s=dice.between(from_s, from_s + spacing),
        tasks=tuple(
            Task(
                key=f"{id_}-task-{number + 1:02}",
                vcore=trade.vcore * MILLI,
                memory=trade.memory_gib * GIB,
                seconds=dice.between(*trade.seconds),
            )
            for number in range(dice.whole(*trade.tasks))
        ),
    )
