"""All that a read side answers about a partition, where it begins with an image of the state."""

from typing import Any

from yunikorn_actors.lab.surfaces.answers_check import whole
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.service.read import applications, clusters, nodes, queues
from yunikorn_actors.service.read import owner_usage as usage
from yunikorn_actors.service.read.incremental_answers import Each, at_once
from yunikorn_actors.service.read.replica import Book, EventCounts
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import image_of


def answers(truth: PartitionState, now_ns: int) -> dict[str, Any]:
    book = Book(truth.name, 1, EventCounts(), now_ns)
    book.restore(image_of(truth))
    found: dict[str, Any] = {
        "partition": clusters.partition(book),
        "nodes": nodes.nodes(book),
        "utilizations": nodes.utilizations(book),
        "active": applications.active(book),
        "completed": applications.completed(book),
        "rejected": applications.rejected(book),
        "users": usage.users(book),
        "groups": usage.groups(book),
    }
    if truth.queues:
        found["queues"] = at_once(queues.Queues.measured(book, Settings())).tree()
    return {part: _written_out(it) for part, it in found.items()}


def _written_out(value: Any) -> Any:  # noqa: ANN401 - an answer, or what makes it
    """Make what is made only when it is written."""
    value = whole(value)
    if isinstance(value, dict):
        return {key: _written_out(it) for key, it in value.items()}
    if isinstance(value, list | tuple | Each):
        return [_written_out(it) for it in value]
    return value
