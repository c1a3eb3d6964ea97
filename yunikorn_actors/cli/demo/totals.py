"""The books of the demo's resource manager, for each queue and node.

They change only by what the core announces, in that order. So they show what the core has
allocated, which is never more than a queue may have.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from yunikorn_actors.cli.demo.company import CONFIG, Day, Job, Task
from yunikorn_actors.config import QueueConfig, parse_config
from yunikorn_actors.state.applications import COUNTS_AS_RUNNING
from yunikorn_actors.values.quantity import VCORE

_RUNNING: Final = tuple(state.value for state in sorted(COUNTS_AS_RUNNING))
COMPLETED: Final = "Completed"


class NodeState(StrEnum):
    UP = "up"
    DRAINED = "drained"
    LOST = "lost"


class QueueBook(Struct, kw_only=True):
    """A queue with all queues below it."""

    path: str
    room: int
    """Its maximum, or that of the nearest queue above that has one; for root, the cluster."""
    applications: int = 0
    running: int = 0
    completed: int = 0
    tasks: int = 0
    waiting: int = 0
    at_work: int = 0
    done: int = 0
    used: int = 0
    peak: int = 0
    placed: int = 0
    waited_s: float = 0.0

    @property
    def depth(self) -> int:
        return self.path.count(".")

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def mean_wait_ms(self) -> int:
        return round(self.waited_s * 1000 / self.placed) if self.placed else 0


class NodeBook(Struct, kw_only=True):
    vcore: int
    used: int = 0
    state: NodeState = NodeState.UP


class Attempt(Struct, kw_only=True):
    """A task: asked for, placed or ended."""

    task: Task
    application: Job
    number: int
    asked_s: float
    node: str = ""
    uuid: str = ""
    has_ended: bool = False

    @property
    def key(self) -> str:
        """Make the ask of the task; one that lost its node gets a new key."""
        return self.task.key if self.number == 1 else f"{self.task.key}-again-{self.number}"


class Books(Struct, kw_only=True):
    expected: int
    """Applications of the whole day."""
    queues: dict[str, QueueBook]
    nodes: dict[str, NodeBook]
    states: dict[str, str] = field(default_factory=dict)
    """The last state that the core reported of each application."""

    @property
    def root(self) -> QueueBook:
        return self.queues["root"]

    @property
    def is_over(self) -> bool:
        return self.root.completed == self.expected

    def submitted(self, app: Job) -> None:
        for queue in self._lineage(app):
            queue.applications += 1
            queue.tasks += len(app.tasks)
            queue.waiting += len(app.tasks)

    def placed(self, attempt: Attempt, at_s: float) -> None:
        vcore = attempt.task.vcore
        self.nodes[attempt.node].used += vcore
        for queue in self._lineage(attempt.application):
            queue.waiting -= 1
            queue.at_work += 1
            queue.used += vcore
            queue.peak = max(queue.peak, queue.used)
            queue.placed += 1
            queue.waited_s += at_s - attempt.asked_s

    def given_back(self, attempt: Attempt) -> None:
        """Free the room of a task that is done or waits again."""
        vcore, is_done = attempt.task.vcore, attempt.has_ended
        self.nodes[attempt.node].used -= vcore
        for queue in self._lineage(attempt.application):
            queue.at_work -= 1
            queue.used -= vcore
            queue.done += is_done
            queue.waiting += not is_done

    def moved(self, app: Job, state: str) -> None:
        before = self.states.get(app.id, "")
        self.states[app.id] = state
        for queue in self._lineage(app):
            queue.running += (state in _RUNNING) - (before in _RUNNING)
            queue.completed += state == COMPLETED

    def _lineage(self, app: Job) -> list[QueueBook]:
        parts = app.queue.split(".")
        return [self.queues[".".join(parts[: end + 1])] for end in range(len(parts))]


def open_books(day: Day) -> Books:
    root = parse_config(CONFIG).partitions[0].root
    room = sum(machine.vcore for machine in day.machines)
    return Books(
        expected=len(day.applications),
        queues={book.path: book for book in _queue_books(root, root.name, room)},
        nodes={machine.id: NodeBook(vcore=machine.vcore) for machine in day.machines},
    )


def _queue_books(queue: QueueConfig, path: str, room: int) -> list[QueueBook]:
    """Return the books of a queue and of all below it, parents first."""
    room = min(room, (queue.max or {}).get(VCORE, room))
    below = [
        book
        for child in queue.children
        for book in _queue_books(child, f"{path}.{child.name}", room)
    ]
    return [QueueBook(path=path, room=room), *below]
